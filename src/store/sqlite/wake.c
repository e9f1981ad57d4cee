/*
 * How a waiter hears that its turn may have come.
 *
 * A departure in order: who takes a ticket out sends each session that has become
 * grantable a datagram, after the commit: the ticket, and the weight ahead of it as the
 * transaction saw it. Weight ahead only falls, so what was true then holds whenever it is
 * read, and the waiter need not read the database again: a third of a hand-over's cost.
 * The sender has the rights to write the database as well, so this trusts nobody more. A
 * full socket may have lost the words to other tickets: after a full one, all look for
 * themselves. A refused one tells that the peer is dead. A weight that grants nothing
 * tells the ticket to look whom to watch now.
 *
 * A death: the waiter watches the session file of the ticket just ahead for being
 * closed or removed (the first waiter: of all who hold), and the kernel closes it. The
 * watch is armed first and the lock tried then, so that no death falls in between.
 * The event can come a moment before the lock is gone, so a session that still looks
 * alive after one stays under suspicion and is looked at again, three times.
 * A watch is kept when the wait is over, since the same neighbours come again; it goes
 * with the session that it watches.
 *
 * Only 128 inotify instances are allowed to a user. Where one is refused, or the socket,
 * waiting tickets look again every tenth of a second, and each look tries the lock of the
 * session ahead.
 *
 * Names of more than 107 bytes do not fit a socket's address: all go through
 * /proc/self/fd.
 */
#include "store/sqlite/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* The kernel's default for datagrams that one socket holds. */
#define SOCKET_QUEUE 10
#define RECHECK MRT_SECOND
#define RECHECK_DEAF (100 * MRT_MILLISECOND)
#define SUSPECT_FIRST MRT_MILLISECOND
#define SUSPECT_LOOKS 3
#define PROCESS_PATIENCE (5 * MRT_MILLISECOND)

mrt_time mrt_sqlite_recheck(const struct mrt_store *store)
{
    return store->no_events || store->no_socket ? RECHECK_DEAF : RECHECK;
}

/* `session`: NULL for file events. */
static bool poll_for(struct mrt_store *store, int fd, struct mrt_sqlite_session *session)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = session}};
    return epoll_ctl(store->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* ----------------------------------------------------------------- sockets */

static void socket_address(const struct mrt_store *store, struct mrt_id session,
                           struct sockaddr_un *address)
{
    char name[MRT_ID_TEXT_SIZE];
    mrt_id_format(session, name);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/%s.s",
             store->file.sessions_fd, name);
}

static int open_socket(void)
{
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

void mrt_sqlite_listen(struct mrt_store *store, struct mrt_sqlite_session *session)
{
    struct sockaddr_un address;
    if (session->socket.fd >= 0)
        return;
    socket_address(store, session->id, &address);
    int fd = open_socket();
    store->no_socket = true;
    if (fd < 0)
        return;
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        !poll_for(store, fd, session)) {
        close(fd);
        return;
    }
    /* Without the right to write, which the umask may have taken, nobody can send. */
    chmod(address.sun_path, 0600);
    mrt_sqlite_fork_guard_fd(&session->socket, fd);
    store->no_socket = false;
}

void mrt_sqlite_deafen(struct mrt_store *store, struct mrt_sqlite_session *session)
{
    if (session->socket.fd < 0)
        return;
    /* Said expressly: a forked child may still have the description open. */
    epoll_ctl(store->epoll_fd, EPOLL_CTL_DEL, session->socket.fd, NULL);
    mrt_sqlite_fork_close_fd(&session->socket);
}

struct mrt_sqlite_wake *mrt_sqlite_wake_later(struct mrt_store *store, struct mrt_id session,
                                              struct mrt_id ticket, uint64_t weight_ahead)
{
    struct mrt_sqlite_wakes *wakes = &store->wakes;
    if (mrt_id_none(session))
        return NULL; /* nobody hears */
    if (wakes->count == wakes->room) {
        size_t room = wakes->room ? wakes->room * 2 : 16;
        struct mrt_sqlite_wake *items = realloc(wakes->items, room * sizeof *items);
        if (!items)
            return NULL; /* it will see by its recheck */
        wakes->items = items;
        wakes->room = room;
    }
    struct mrt_sqlite_wake *wake = &wakes->items[wakes->count++];
    *wake = (struct mrt_sqlite_wake){session, {ticket, weight_ahead, 0}};
    return wake;
}

/* The place that a session's socket has; where no descriptor is left for one, any other. */
static struct mrt_sqlite_peer *peer_for(struct mrt_store *store, struct mrt_id session)
{
    struct mrt_sqlite_peer *peer = &store->peers[session.low % MRT_SQLITE_PEERS];
    if (peer->fd < 0)
        peer->fd = open_socket();
    for (size_t i = 0; peer->fd < 0 && i < MRT_SQLITE_PEERS; i++)
        peer = &store->peers[i];
    return peer;
}

/* Connects this place's socket to a session. 0 or an errno. */
static int connect_to_peer(struct mrt_store *store, struct mrt_sqlite_peer *peer,
                           struct mrt_id session)
{
    struct sockaddr_un address;
    if (mrt_id_equal(peer->session, session))
        return 0;
    if (peer->fd < 0)
        return EMFILE;
    socket_address(store, session, &address);
    peer->session = (struct mrt_id){0, 0};
    if (connect(peer->fd, (struct sockaddr *)&address, sizeof address) < 0)
        return errno;
    peer->session = session;
    return 0;
}

/* False: nobody listens there. */
static bool send_wake(struct mrt_store *store, const struct mrt_sqlite_wake *wake)
{
    struct mrt_sqlite_peer *peer = peer_for(store, wake->session);
    int error = connect_to_peer(store, peer, wake->session);
    if (error == 0 && send(peer->fd, &wake->place, sizeof wake->place, MSG_NOSIGNAL) < 0)
        error = errno;
    if (error)
        peer->session = (struct mrt_id){0, 0};
    return error != ECONNREFUSED && error != ENOENT;
}

void mrt_sqlite_wake_all(struct mrt_store *store, mrt_time patience)
{
    for (size_t i = 0; i < store->wakes.count; i++) {
        struct mrt_sqlite_wake wake = store->wakes.items[i];
        if (mrt_sqlite_session_find(store, wake.session))
            mrt_sqlite_tell_place(store, &wake.place);
        else if (!send_wake(store, &wake) && mrt_sqlite_session_dead(store, wake.session))
            mrt_sqlite_bury(store, wake.session, patience); /* may add to the list */
    }
    store->wakes.count = 0;
    mrt_sqlite_tell_change(store);
}

/* Takes at most what one call can; what is left keeps the descriptor readable. */
static void drain_socket(struct mrt_store *store, struct mrt_sqlite_session *session)
{
    struct mrt_sqlite_place places[SOCKET_QUEUE];
    struct iovec parts[SOCKET_QUEUE];
    struct mmsghdr messages[SOCKET_QUEUE];
    memset(messages, 0, sizeof messages);
    for (int i = 0; i < SOCKET_QUEUE; i++) {
        parts[i] = (struct iovec){&places[i], sizeof places[i]};
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    int count = recvmmsg(session->socket.fd, messages, SOCKET_QUEUE, MSG_DONTWAIT, NULL);
    for (int i = 0; i < count; i++)
        if (messages[i].msg_len == sizeof places[i])
            mrt_sqlite_tell_place(store, &places[i]);
    if (count == SOCKET_QUEUE)
        mrt_sqlite_tell(store, MRT_WAKE, session->id, (struct mrt_id){0, 0});
}

/* ----------------------------------------------------------------- watches */

int mrt_sqlite_watch_file(struct mrt_store *store, const char *name, uint32_t events)
{
    char path[PATH_MAX];
    if (store->inotify_fd < 0) {
        store->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        if (store->inotify_fd < 0)
            return -1;
        if (!poll_for(store, store->inotify_fd, NULL)) {
            close(store->inotify_fd);
            store->inotify_fd = -1;
            return -1;
        }
    }
    if (snprintf(path, sizeof path, "%s/%s", store->file.sessions, name) >= (int)sizeof path)
        return -1;
    return inotify_add_watch(store->inotify_fd, path, events | IN_DONT_FOLLOW);
}

static bool arm(struct mrt_store *store, struct mrt_sqlite_watch *watch)
{
    char name[MRT_ID_TEXT_SIZE];
    mrt_id_format(watch->session, name);
    errno = 0;
    watch->wd = mrt_sqlite_watch_file(store, name, IN_CLOSE_WRITE | IN_DELETE_SELF);
    return watch->wd >= 0 || errno == ENOENT; /* the look that follows will find it dead */
}

static void drop(struct mrt_store *store, struct mrt_sqlite_watch *watch)
{
    if (watch->wd >= 0)
        inotify_rm_watch(store->inotify_fd, watch->wd);
    TAILQ_REMOVE(&store->watches, watch, link);
    free(watch);
}

bool mrt_sqlite_watch(struct mrt_store *store, struct mrt_id session)
{
    struct mrt_sqlite_watch *watch;
    if (mrt_id_none(session) || mrt_sqlite_session_find(store, session))
        return false; /* nobody's does not end; of our own it is no news */
    TAILQ_FOREACH (watch, &store->watches, link)
        if (mrt_id_equal(watch->session, session))
            return false;
    watch = calloc(1, sizeof *watch);
    if (!watch) {
        store->no_events = true;
        return true;
    }
    *watch = (struct mrt_sqlite_watch){.session = session, .wd = -1, .look_at = MRT_TIME_NEVER};
    TAILQ_INSERT_TAIL(&store->watches, watch, link);
    store->no_events = !arm(store, watch);
    if (watch->wd < 0)
        drop(store, watch);
    return true;
}

void mrt_sqlite_unwatch_all(struct mrt_store *store)
{
    struct mrt_sqlite_watch *watch;
    while ((watch = TAILQ_FIRST(&store->watches)))
        drop(store, watch);
    if (store->observed_wd >= 0)
        inotify_rm_watch(store->inotify_fd, store->observed_wd);
    store->observed_wd = -1;
}

static void suspect(struct mrt_sqlite_watch *watch, mrt_time now)
{
    watch->look_at = now;
    watch->looks = 0;
}

static void read_events(struct mrt_store *store, mrt_time now)
{
    _Alignas(struct inotify_event) char buffer[4096];
    struct mrt_sqlite_watch *watch;
    ssize_t length;
    bool changed = false;
    while ((length = read(store->inotify_fd, buffer, sizeof buffer)) > 0) {
        const struct inotify_event *event;
        for (char *at = buffer; at < buffer + length; at += sizeof *event + event->len) {
            event = (const struct inotify_event *)(const void *)at;
            if (event->wd == store->observed_wd || event->mask & IN_Q_OVERFLOW)
                changed = true;
            if (event->wd == store->observed_wd && event->mask & IN_IGNORED)
                store->observed_wd = -1;
            TAILQ_FOREACH (watch, &store->watches, link) {
                if (watch->wd != event->wd && !(event->mask & IN_Q_OVERFLOW))
                    continue;
                suspect(watch, now);
                if (event->mask & IN_IGNORED)
                    watch->wd = -1;
            }
        }
    }
    if (changed)
        mrt_sqlite_changed(store);
}

/* True: done with it. */
static bool look(struct mrt_store *store, struct mrt_sqlite_watch *watch, mrt_time now)
{
    if (mrt_sqlite_session_dead(store, watch->session)) {
        enum mrt_outcome outcome =
            mrt_sqlite_bury(store, watch->session, mrt_time_add(now, PROCESS_PATIENCE));
        watch->look_at = mrt_time_add(now, PROCESS_PATIENCE);
        return outcome != MRT_BUSY;
    }
    if (++watch->looks > SUSPECT_LOOKS) {
        watch->look_at = MRT_TIME_NEVER;
        return watch->wd < 0;
    }
    watch->look_at = mrt_time_add(now, SUSPECT_FIRST << (2 * (watch->looks - 1)));
    return false;
}

static void look_at_suspects(struct mrt_store *store, mrt_time now)
{
    struct mrt_sqlite_watch *watch, *next;
    TAILQ_FOREACH_SAFE (watch, &store->watches, link, next)
        if (watch->look_at <= now && look(store, watch, now))
            drop(store, watch);
}

mrt_time mrt_sqlite_next_look(const struct mrt_store *store)
{
    mrt_time at = MRT_TIME_NEVER;
    const struct mrt_sqlite_watch *watch;
    TAILQ_FOREACH (watch, &store->watches, link)
        at = mrt_time_min(at, watch->look_at);
    return at;
}

void mrt_sqlite_hear(struct mrt_store *store, mrt_time now)
{
    struct epoll_event events[8];
    int count = epoll_wait(store->epoll_fd, events, 8, 0);
    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr)
            drain_socket(store, events[i].data.ptr);
        else
            read_events(store, now);
    }
    if (store->broken)
        return; /* what has come is drained all the same, or the descriptor stays readable */
    look_at_suspects(store, now);
    mrt_sqlite_wake_all(store, mrt_time_add(now, PROCESS_PATIENCE));
}
