/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a waiter hears that its turn may have come.
 *
 * A departure in order: the session that removes a ticket sends a datagram to each session that has
 * become grantable, after the commit: the ticket, and the weight ahead of it as the transaction saw
 * it. Weight ahead only falls, so what was true then holds whenever it is read, and the waiter need
 * not read the database again: a third of a hand-over's cost. The sender has the rights to write
 * the database as well, so this trusts nobody more. A full socket may have lost the words to other
 * tickets: after a full one, all look for themselves. A refused one tells that the peer is dead. A
 * weight that grants nothing tells the ticket to look whom to watch now.
 *
 * A death: the waiter watches the session file of the ticket just ahead for being
 * closed or removed (watch.c; the first waiter: of all who hold). The event can come a moment
 * before the lock is gone, so a session that still looks alive after one stays under suspicion
 * and is looked at again, three times.
 */
#include "store/sqlite/wake.h"

#include "core/rule.h"
#include "store/kit/job.h"
#include "store/sqlite/death.h"
#include "store/sqlite/observe.h"
#include "store/sqlite/session.h"
#include "store/sqlite/ticket.h"
#include "store/sqlite/watch.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The kernel's default for datagrams that one socket holds. */
#define SOCKET_QUEUE 10
#define SUSPECT_FIRST MRT_MILLISECOND
#define SUSPECT_LOOKS 3
#define PROCESS_PATIENCE (5 * MRT_MILLISECOND)

/* ----------------------------------------------------------------- sockets */

/* The place that a session's socket has; where no descriptor is left for one, any other. */
static struct mrt_sqlite_peer *peer_for(struct mrt_sqlite_store *store, struct mrt_id session)
{
    struct mrt_sqlite_peer *peer = &store->peers[session.low % MRT_SQLITE_PEERS];
    if (peer->fd < 0)
        peer->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    for (size_t i = 0; peer->fd < 0 && i < MRT_SQLITE_PEERS; i++)
        peer = &store->peers[i];
    return peer;
}

/* Connects this place's socket to a session. 0 or an errno. */
static int connect_to_peer(struct mrt_sqlite_store *store, struct mrt_sqlite_peer *peer,
                           struct mrt_id session)
{
    struct sockaddr_un address;
    if (mrt_id_equal(peer->session, session))
        return 0;
    if (peer->fd < 0)
        return EMFILE;
    mrt_sqlite_session_address(store, session, &address);
    peer->session = (struct mrt_id){0, 0};
    if (connect(peer->fd, (struct sockaddr *)&address, sizeof address) < 0)
        return errno;
    peer->session = session;
    return 0;
}

/* False: nobody listens there. */
static bool send_wake(struct mrt_sqlite_store *store, const struct mrt_sqlite_wake *wake)
{
    struct mrt_sqlite_peer *peer = peer_for(store, wake->session);
    int error = connect_to_peer(store, peer, wake->session);
    if (error == 0 && send(peer->fd, &wake->place, sizeof wake->place, MSG_NOSIGNAL) < 0)
        error = errno;
    if (error)
        peer->session = (struct mrt_id){0, 0};
    return error != ECONNREFUSED && error != ENOENT;
}

/* Tells a ticket here of its place, as read when it came to be so. */
static void tell_place(struct mrt_sqlite_store *store, const struct mrt_sqlite_place *place)
{
    const struct mrt_sqlite_ticket *ticket = mrt_sqlite_ticket_find(store, place->ticket);
    if (!ticket)
        return; /* it has gone meanwhile */
    if (!mrt_rule_grants(place->weight_ahead, ticket->weight, ticket->capacity)) {
        mrt_sink_deliver(&store->sink, (struct mrt_event){.type = MRT_WAKE,
                                                          .session = ticket->session->id,
                                                          .ticket = ticket->id});
        return;
    }
    mrt_sink_deliver(&store->sink,
                     (struct mrt_event){.type = MRT_VIEW,
                                        .session = ticket->session->id,
                                        .ticket = ticket->id,
                                        .fence = ticket->number << MRT_SQLITE_FENCE_BITS,
                                        .fence_span = UINT64_C(1) << MRT_SQLITE_FENCE_BITS,
                                        .weight_ahead = place->weight_ahead,
                                        .others_behind = place->others_behind != 0,
                                        .recheck = MRT_SECOND});
}

void mrt_sqlite_wake_all(struct mrt_sqlite_store *store, mrt_time patience)
{
    for (size_t i = 0; i < store->wakes.count; i++) {
        struct mrt_sqlite_wake wake = store->wakes.items[i];
        if (mrt_sqlite_session_find(store, wake.session))
            tell_place(store, &wake.place);
        else if (!send_wake(store, &wake) && mrt_sqlite_session_dead(store, wake.session))
            mrt_sqlite_bury(store, wake.session, patience); /* may add to the list */
    }
    store->wakes.count = 0;
    mrt_sqlite_tell_change(store);
}

/* Reads at most one call's worth; the rest keeps the descriptor readable. */
static void drain_socket(struct mrt_sqlite_store *store, struct mrt_sqlite_session *session)
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
            tell_place(store, &places[i]);
    if (count == SOCKET_QUEUE)
        mrt_sink_deliver(&store->sink,
                         (struct mrt_event){.type = MRT_WAKE, .session = session->id});
}

/* ----------------------------------------------------------------- watches */

static void suspect(struct mrt_sqlite_watch *watch, mrt_time now)
{
    watch->look_at = now;
    watch->looks = 0;
}

static void read_events(struct mrt_sqlite_store *store, mrt_time now)
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

/* Looks at a session under suspicion; true: it need not be watched any more. */
static bool look_at_suspect(struct mrt_sqlite_store *store, struct mrt_sqlite_watch *watch,
                            mrt_time now)
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

static void look_at_suspects(struct mrt_sqlite_store *store, mrt_time now)
{
    struct mrt_sqlite_watch *watch, *next;
    TAILQ_FOREACH_SAFE (watch, &store->watches, link, next)
        if (watch->look_at <= now && look_at_suspect(store, watch, now))
            mrt_sqlite_unwatch(store, watch);
}

mrt_time mrt_sqlite_next_look(const struct mrt_sqlite_store *store)
{
    mrt_time at = MRT_TIME_NEVER;
    const struct mrt_sqlite_watch *watch;
    TAILQ_FOREACH (watch, &store->watches, link)
        at = mrt_time_min(at, watch->look_at);
    return at;
}

void mrt_sqlite_hear(struct mrt_sqlite_store *store, mrt_time now)
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
