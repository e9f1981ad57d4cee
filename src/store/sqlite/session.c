/*
 * Session files: how one process knows that another lives.
 *
 * A session is a file in the directory beside the database, named by the session's id and
 * locked for as long as the session lives by an open-file-description lock. The
 * kernel drops that lock when the last descriptor of that description is closed, so
 * at any death whatever, and not a moment before. A session is dead if its file
 * is gone or not locked. Beside it lies its socket, if it ever had to wait.
 *
 * Invariant: the file is locked before the session's first ticket is written, and its
 * tickets are taken out before the file is removed in order. So a ticket whose session
 * is dead may be taken out by anybody.
 *
 * Whatever cannot be found out (no descriptor left, no right to look) counts as alive:
 * to wait too long is safe.
 */
#include "base/error.h"
#include "store/sqlite/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SWEEP_MARK "swept"
#define SWEEP_SECONDS 60
#define SWEEP_MAX 256

static struct flock whole_file(void)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
}

/* An error of `path`, which lies in the sessions' directory. */
static int start_error(const struct mrt_store *store, const char *doing)
{
    char text[128];
    int code = errno;
    return mrt_error(code == EACCES || code == EROFS ? MORTISE_EPERMISSION : MORTISE_ESTORE,
                     "%s: %s: %s", store->file.sessions, doing,
                     strerror_r(code, text, sizeof text));
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

int mrt_sqlite_session_start(struct mrt_store *store, struct mrt_id id)
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

static void unlink_one(struct mrt_store *store, struct mrt_id id, const char *suffix)
{
    char digits[MRT_ID_TEXT_SIZE], name[MRT_ID_TEXT_SIZE + 4];
    mrt_id_format(id, digits);
    snprintf(name, sizeof name, "%s%s", digits, suffix);
    unlinkat(store->file.sessions_fd, name, 0);
}

void mrt_sqlite_session_unlink(struct mrt_store *store, struct mrt_id id)
{
    unlink_one(store, id, "");
    unlink_one(store, id, ".s");
}

void mrt_sqlite_session_end(struct mrt_store *store, struct mrt_sqlite_session *session)
{
    struct mrt_sqlite_ticket *ticket;
    while ((ticket = TAILQ_FIRST(&session->tickets)))
        mrt_sqlite_ticket_free(store, ticket);
    mrt_sqlite_observers_free(store, session);
    unlink_one(store, session->id, "");
    if (session->socket.fd >= 0)
        unlink_one(store, session->id, ".s");
    mrt_sqlite_deafen(store, session);
    mrt_sqlite_fork_close_fd(&session->file);
    TAILQ_REMOVE(&store->sessions, session, link);
    free(session);
}

struct mrt_sqlite_session *mrt_sqlite_session_find(struct mrt_store *store, struct mrt_id id)
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

bool mrt_sqlite_sessions_visible(const struct mrt_store *store)
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

bool mrt_sqlite_session_dead(struct mrt_store *store, struct mrt_id id)
{
    char name[MRT_ID_TEXT_SIZE];
    if (mrt_id_none(id) || mrt_sqlite_session_find(store, id))
        return false; /* a ticket that is nobody's, or our own */
    mrt_id_format(id, name);
    return file_dead(store->file.sessions_fd, name);
}

/* ------------------------------------------------------------------- sweep */

/* Old by the wall clock: housekeeping only. What is young may be about to be locked. */
static bool older_than(int directory, const char *name, time_t seconds)
{
    struct stat status;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           (status.st_mtime + seconds < now.tv_sec || status.st_mtime > now.tv_sec + seconds);
}

/* True: it is this process's turn to sweep. */
static bool take_turn(int directory)
{
    struct stat status;
    if (fstatat(directory, SWEEP_MARK, &status, AT_SYMLINK_NOFOLLOW) < 0) {
        if (errno == ENOENT)
            mknodat(directory, SWEEP_MARK, S_IFREG | 0600, 0);
        return false;
    }
    return older_than(directory, SWEEP_MARK, SWEEP_SECONDS) &&
           utimensat(directory, SWEEP_MARK, NULL, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The session that a file belongs to; the socket's name has a suffix. */
static bool parse_name(const char *name, struct mrt_id *id)
{
    char digits[MRT_ID_TEXT_SIZE];
    size_t length = strlen(name);
    if (length < sizeof digits - 1 || (name[sizeof digits - 1] && name[sizeof digits - 1] != '.'))
        return false;
    memcpy(digits, name, sizeof digits - 1);
    digits[sizeof digits - 1] = '\0';
    return mrt_id_parse(digits, id);
}

void mrt_sqlite_sweep(struct mrt_store *store, mrt_time patience)
{
    struct mrt_id dead[SWEEP_MAX];
    size_t count = 0;
    int directory = store->file.sessions_fd;
    if (!take_turn(directory))
        return;
    int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (!stream) {
        if (fd >= 0)
            close(fd);
        return;
    }
    const struct dirent *entry;
    while (count < SWEEP_MAX && (entry = readdir(stream)))
        if (parse_name(entry->d_name, &dead[count]) &&
            older_than(directory, entry->d_name, SWEEP_SECONDS) &&
            mrt_sqlite_session_dead(store, dead[count]))
            count++;
    closedir(stream);
    for (size_t i = 0; i < count; i++)
        if (mrt_sqlite_bury(store, dead[i], patience) != MRT_DONE)
            break;
}
