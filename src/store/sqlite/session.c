/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Session files: how one process knows that another lives.
 *
 * A session is a file in the directory beside the database. The file is named by the session's id,
 * and locked by an open-file-description lock for as long as the session lives. The
 * kernel drops that lock when the last descriptor of that description is closed: at any kind of
 * death, and not a moment before. A session is dead if its file
 * is gone or not locked. Beside it is its socket, if the session ever had to wait.
 *
 * Invariant: the file is locked before the session's first ticket is written, and an orderly end
 * removes the tickets before the file. So any process may remove a ticket whose session
 * is dead.
 *
 * A session counts as alive if the truth cannot be found out (no descriptor left, no permission):
 * to wait too long is safe.
 */
#include "store/sqlite/session.h"

#include "base/epoll.h"
#include "base/error.h"
#include "base/system.h"
#include "store/sqlite/ticket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static struct flock whole_file(void)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
}

/* An error of `path`, which lies in the sessions' directory. */
static int start_error(const struct mrt_sqlite_store *store, const char *doing)
{
    char text[128];
    int code = errno;
    return mrt_error(code == EACCES || code == EROFS ? MORTISE_EPERMISSION : MORTISE_ESTORE,
                     "%s: %s: %s", store->file.sessions, doing,
                     mrt_system_text(code, text, sizeof text));
}

/* Creates and locks the file; its descriptor, or -1 with errno. */
static int create_locked(int directory, const char *name)
{
    int fd = openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    struct flock lock = whole_file();
    struct stat status;
    if (fcntl(fd, F_OFD_SETLK, &lock) == 0 && fstat(fd, &status) == 0 && status.st_nlink == 1)
        return fd;
    int code = errno;
    unlinkat(directory, name, 0);
    close(fd);
    errno = code;
    return -1;
}

int mrt_sqlite_session_start(struct mrt_sqlite_store *store, struct mrt_id id)
{
    char name[MRT_ID_TEXT_SIZE];
    struct mrt_sqlite_session *session = calloc(1, sizeof *session);
    if (!session)
        return MORTISE_ENOMEM;
    mrt_id_format(id, name);
    int fd = create_locked(store->file.sessions_fd, name);
    if (fd < 0) {
        free(session);
        return start_error(store, "cannot make a session file");
    }
    session->id = id;
    session->socket.fd = -1;
    TAILQ_INIT(&session->tickets);
    mrt_sqlite_fork_guard_fd(&session->file, fd);
    TAILQ_INSERT_TAIL(&store->sessions, session, link);
    return 0;
}

void mrt_sqlite_session_address(const struct mrt_sqlite_store *store, struct mrt_id session,
                                struct sockaddr_un *address)
{
    char name[MRT_ID_TEXT_SIZE];
    mrt_id_format(session, name);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/%s.s",
             store->file.sessions_fd, name);
}

void mrt_sqlite_listen(struct mrt_sqlite_store *store, struct mrt_sqlite_session *session)
{
    struct sockaddr_un address;
    if (session->socket.fd >= 0)
        return;
    mrt_sqlite_session_address(store, session->id, &address);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    store->no_socket = true;
    if (fd < 0)
        return;
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        !mrt_epoll_watch(store->epoll_fd, fd, EPOLLIN, session)) {
        close(fd);
        return;
    }
    /* Sending needs the right to write, which the umask may have taken. */
    chmod(address.sun_path, 0600);
    mrt_sqlite_fork_guard_fd(&session->socket, fd);
    store->no_socket = false;
}

static void deafen(struct mrt_sqlite_store *store, struct mrt_sqlite_session *session)
{
    if (session->socket.fd < 0)
        return;
    /* Said expressly: a forked child may still have the description open. */
    epoll_ctl(store->epoll_fd, EPOLL_CTL_DEL, session->socket.fd, NULL);
    mrt_sqlite_fork_close_fd(&session->socket);
}

static void unlink_one(struct mrt_sqlite_store *store, struct mrt_id id, const char *suffix)
{
    char digits[MRT_ID_TEXT_SIZE], name[MRT_ID_TEXT_SIZE + 4];
    mrt_id_format(id, digits);
    snprintf(name, sizeof name, "%s%s", digits, suffix);
    unlinkat(store->file.sessions_fd, name, 0);
}

void mrt_sqlite_session_unlink(struct mrt_sqlite_store *store, struct mrt_id id)
{
    unlink_one(store, id, "");
    unlink_one(store, id, ".s");
}

void mrt_sqlite_observers_free(struct mrt_sqlite_store *store,
                               const struct mrt_sqlite_session *session)
{
    struct mrt_sqlite_observer *observer, *next;
    TAILQ_FOREACH_SAFE (observer, &store->observers, link, next)
        if (!session || mrt_id_equal(observer->session, session->id)) {
            TAILQ_REMOVE(&store->observers, observer, link);
            free(observer);
        }
}

void mrt_sqlite_session_end(struct mrt_sqlite_store *store, struct mrt_sqlite_session *session)
{
    struct mrt_sqlite_ticket *ticket;
    while ((ticket = TAILQ_FIRST(&session->tickets)))
        mrt_sqlite_ticket_free(store, ticket);
    mrt_sqlite_observers_free(store, session);
    unlink_one(store, session->id, "");
    if (session->socket.fd >= 0)
        unlink_one(store, session->id, ".s");
    deafen(store, session);
    mrt_sqlite_fork_close_fd(&session->file);
    TAILQ_REMOVE(&store->sessions, session, link);
    free(session);
}

struct mrt_sqlite_session *mrt_sqlite_session_find(struct mrt_sqlite_store *store, struct mrt_id id)
{
    struct mrt_sqlite_session *session;
    TAILQ_FOREACH (session, &store->sessions, link)
        if (mrt_id_equal(session->id, id))
            return session;
    return NULL;
}

bool mrt_sqlite_session_visible(const struct mrt_sqlite_session *session)
{
    struct stat status;
    return fstat(session->file.fd, &status) == 0 && status.st_nlink == 1;
}

bool mrt_sqlite_sessions_visible(const struct mrt_sqlite_store *store)
{
    struct stat status;
    return fstat(store->file.sessions_fd, &status) == 0 && status.st_nlink > 0;
}

static bool file_dead(int directory, const char *name)
{
    int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT;
    struct flock lock = whole_file();
    bool dead = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
    close(fd);
    return dead;
}

bool mrt_sqlite_session_dead(struct mrt_sqlite_store *store, struct mrt_id id)
{
    char name[MRT_ID_TEXT_SIZE];
    if (mrt_id_none(id) || mrt_sqlite_session_find(store, id))
        return false; /* a ticket that is nobody's, or our own */
    mrt_id_format(id, name);
    return file_dead(store->file.sessions_fd, name);
}
