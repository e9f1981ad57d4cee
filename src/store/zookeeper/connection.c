/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session: one handle of the client library, driven by us.
 *
 * The library opens and closes its socket inside its own calls, often with the same
 * number again; so the socket is put into an epoll descriptor of the store, the one
 * thing the loop polls, and is put in anew whenever the connection is not
 * established. After every entry into the library `arm` asks it what to wait for.
 *
 * lease.c says which answers prove the session.
 *
 * The end. STOP closes politely, which frees the nodes at once: when the server has just
 * answered, for which a sync asks it if need be (close.c). A session that could not be
 * closed politely stays until the connection is back, and is closed then.
 *
 * Without a connection the servers' names are looked up anew, beside the loop.
 */
#include "store/zookeeper/connection.h"

#include "store/zookeeper/answer.h"
#include "store/zookeeper/close.h"
#include "store/zookeeper/lease.h"
#include "store/zookeeper/names.h"
#include "store/zookeeper/request.h"
#include "store/zookeeper/ticket/ticket.h"
#include "store/zookeeper/values/query.h"
#include "store/zookeeper/watch/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define HEARD_RECENTLY (50 * MRT_MILLISECOND)
#define PAUSE_MIN (10 * MRT_MILLISECOND)
#define TURNS_MAX 64 /* answers read in one call */

static mrt_zk_session_reply renew_answered, close_answered;
static const struct mrt_zk_step renew_step = {
    .send = mrt_zk_send_sync, .session_reply = renew_answered, .answer_may_wait = true};
/* The sync before a polite end. */
static const struct mrt_zk_step close_step = {.send = mrt_zk_send_sync,
                                              .session_reply = close_answered};

/* ------------------------------------------------------------------ answers */

static void answer_started(struct mrt_zk_session *session, struct mrt_job *job)
{
    char why[200];
    if (mrt_zk_lease_begin(session, &job->event, why, sizeof why)) {
        session->told = true;
        mrt_zk_answer(session->store, job, MRT_STARTED);
    } else {
        mrt_zk_fail_with(session->store, job, MORTISE_ENOTSUPPORTED, why);
        session->over = true;
    }
}

static void renewed(struct mrt_zk_session *session, struct mrt_job *job)
{
    job->event.proven = session->attached;
    mrt_zk_answer(session->store, job, MRT_RENEWED);
}

static void established(struct mrt_zk_session *session)
{
    const clientid_t *identity = zoo_client_id(session->handle);
    int timeout_ms = zoo_recv_timeout(session->handle);
    session->connected = true;
    session->failures = 0;
    session->heard = session->since = mrt_time_now();
    session->attached = session->began;
    mrt_resolver_forget(&session->store->resolver); /* the servers are where they were, or one is */
    if (session->server_id == 0) {
        session->server_id = identity->client_id;
        session->timeout_ms = timeout_ms;
    } else if (session->server_id != identity->client_id || timeout_ms < session->timeout_ms) {
        /* Another session than ours, or one that ends earlier than our lease. */
        mrt_zk_session_over(session, ZSESSIONEXPIRED);
        return;
    } else {
        mrt_zk_wake(session->store, (struct mrt_id){0, 0}); /* events may have been missed */
    }
    if (session->stopping)
        session->close_now = true;
    struct mrt_job *job = session->start;
    if (!job)
        return;
    session->start = NULL;
    /* Credentials are on their way; whether they are taken shows in a request behind them. */
    if (session->store->access.scheme[0])
        mrt_zk_session_renew(session, job);
    else
        answer_started(session, job);
}

static void on_session(zhandle_t *handle, int type, int state, const char *path, void *context)
{
    struct mrt_zk_session *session = mrt_zk_entered;
    (void)handle, (void)path, (void)context;
    if (type != ZOO_SESSION_EVENT || !session || session->over)
        return;
    if (state == ZOO_CONNECTED_STATE)
        established(session);
    else if (state == ZOO_EXPIRED_SESSION_STATE)
        mrt_zk_session_over(session, ZSESSIONEXPIRED);
    else if (state == ZOO_AUTH_FAILED_STATE)
        mrt_zk_session_over(session, ZAUTHFAILED);
    else
        session->connected = false; /* whatever other states there are */
}

static void renew_answered(struct mrt_zk_session *session, const struct mrt_zk_reply *reply)
{
    struct mrt_job *job = session->renew;
    int code = reply->code;
    if (code == ZOK)
        session->attempts = 0;
    if (!job)
        return;
    session->renew = NULL;
    if (code == ZOK && job->command.type == MRT_START)
        answer_started(session, job);
    else if (code == ZOK)
        renewed(session, job);
    else
        mrt_zk_answer_code(session->store, job, code);
}

static void not_closed(struct mrt_zk_session *session)
{
    struct mrt_job *job = session->stop;
    session->stop = NULL;
    if (job)
        mrt_zk_answer(session->store, job, MRT_UNKNOWN);
}

static void close_answered(struct mrt_zk_session *session, const struct mrt_zk_reply *reply)
{
    if (reply->code != ZOK) {
        not_closed(session);
        return;
    }
    session->attempts = 0;
    session->close_now = true;
}

/* ---------------------------------------------------------------- the socket */

static void poll_socket(struct mrt_zk_session *session, int socket, int interest)
{
    int epoll = session->store->epoll;
    if (socket == session->socket && interest == session->mask &&
        zoo_state(session->handle) == ZOO_CONNECTED_STATE)
        return;
    struct epoll_event event = {.data.fd = socket};
    event.events = (interest & ZOOKEEPER_READ ? (uint32_t)EPOLLIN : 0) |
                   (interest & ZOOKEEPER_WRITE ? (uint32_t)EPOLLOUT : 0);
    if (socket != session->socket)
        fcntl(socket, F_SETFD, FD_CLOEXEC); /* the library leaves it open to children */
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event) < 0 && errno == EEXIST)
        epoll_ctl(epoll, EPOLL_CTL_MOD, socket, &event);
    session->socket = socket;
    session->mask = interest;
}

static void forget_socket(struct mrt_zk_session *session)
{
    session->socket = -1;
    session->mask = 0;
}

/*
 * When a request cannot be sent the library closes its socket without reporting it. Requests
 * under way are never answered, and a request sent in part goes on in the middle on the next
 * connection. The session gets no event, so it still counts as connected while the library's state
 * differs: that reveals the fault. The next connection is broken off, because then the library
 * clears everything up.
 */
static void notice_silent_close(struct mrt_zk_session *session)
{
    if (!session->connected || zoo_state(session->handle) == ZOO_CONNECTED_STATE)
        return;
    session->connected = false;
    session->tainted = true;
    forget_socket(session);
}

static bool is_connecting(const struct mrt_zk_session *session)
{
    int state = zoo_state(session->handle);
    return state == ZOO_CONNECTING_STATE || state == ZOO_ASSOCIATING_STATE;
}

/* The library begins to connect in here, and nowhere else. */
static int interest_of(struct mrt_zk_session *session, int *socket, int *interest,
                       struct timeval *wait)
{
    mrt_time now = mrt_time_now();
    bool was_connecting = is_connecting(session);
    int code = zookeeper_interest(session->handle, socket, interest, wait);
    if (!was_connecting && is_connecting(session)) {
        session->began = now;
        session->attempts++;
    }
    return code;
}

/* Has the descriptor wake when the library wants to be called next. */
static void arm(struct mrt_zk_session *session)
{
    int socket = -1, interest = 0;
    struct timeval wait = {0, 0};
    if (session->over) {
        forget_socket(session);
        session->store->next = MRT_TIME_NEVER;
        return;
    }
    notice_silent_close(session);
    if (!session->connected) {
        mrt_zk_watches_forget(session);
        mrt_zk_queries_forget(session);
    }
    int code = interest_of(session, &socket, &interest, &wait);
    mrt_zk_session_send_gathered(session, socket);
    if (session->tainted && code == ZOK && socket >= 0) {
        shutdown(socket, SHUT_RDWR);
        session->tainted = false;
    }
    mrt_time pause = wait.tv_sec * MRT_SECOND + wait.tv_usec * MRT_MICROSECOND;
    if (code == ZOK && socket >= 0) {
        poll_socket(session, socket, interest);
    } else {
        forget_socket(session);
        mrt_time least = PAUSE_MIN << (session->failures < 4 ? session->failures : 4);
        session->failures++;
        pause = pause > least ? pause : least;
    }
    if (is_unrecoverable(session->handle))
        mrt_zk_session_over(session, is_unrecoverable(session->handle));
    session->store->next =
        mrt_time_min(mrt_time_add(mrt_time_now(), pause), mrt_zk_given_up_at(session));
    if (session->start)
        session->store->next = mrt_time_min(session->store->next, session->deadline);
}

/* The library says no more than what it leaves in errno, and leaves anything there when a server
   has just ended the connection. */
const char *mrt_zk_trouble(int error)
{
    bool known = error == ECONNREFUSED || error == ETIMEDOUT || error == EHOSTUNREACH ||
                 error == ENETUNREACH;
    return known ? strerror(error) : "the server ended the connection";
}

/* Once each of the servers has been tried in vain. */
static void report_unreachable(const struct mrt_zk_session *session, int error)
{
    char why[256];
    if (session->connected || session->over || !mrt_zk_has_tried_all(session))
        return;
    snprintf(why, sizeof why, "%.180s: %s", session->store->address.shown, mrt_zk_trouble(error));
    mrt_zk_report_unreachable(session->store, why);
}

/* Reads the answers that have come before the server is found silent. */
static void process(struct mrt_zk_session *session, mrt_time now)
{
    struct epoll_event ready[4];
    notice_silent_close(session);
    int count = epoll_wait(session->store->epoll, ready, 4, 0), events = 0;
    for (int i = 0; i < count; i++)
        if (ready[i].data.fd == session->socket) {
            bool broken = ready[i].events & (EPOLLERR | EPOLLHUP);
            events |= ready[i].events & EPOLLIN || broken ? ZOOKEEPER_READ : 0;
            events |= ready[i].events & EPOLLOUT || broken ? ZOOKEEPER_WRITE : 0;
        }
    int code = ZOK;
    errno = 0;
    for (int turn = 0; events && code == ZOK && turn < TURNS_MAX && !session->over; turn++)
        code = zookeeper_process(session->handle, events);
    int error = errno;
    bool silent = (!events || code == ZNOTHING) && now >= mrt_zk_given_up_at(session);
    if (silent) { /* and that at once: the next request would find a socket that takes nothing */
        shutdown(session->socket, SHUT_RDWR);
        code = zookeeper_process(session->handle, ZOOKEEPER_READ | ZOOKEEPER_WRITE);
        error = ETIMEDOUT;
    }
    if (silent || (code != ZOK && code != ZNOTHING)) {
        forget_socket(session);
        report_unreachable(session, error);
    }
}

/* Makes the session use the servers that their names resolve to now. Its handle stays, because a
   new handle would be a new session. */
static void move(struct mrt_zk_session *session, struct mrt_addresses *found)
{
    struct mrt_store *store = session->store;
    char servers[MRT_ZK_SERVERS_SIZE];
    mrt_zk_write_servers(found, servers);
    if (strcmp(servers, store->servers) == 0 || zoo_set_servers(session->handle, servers) != ZOK)
        return;
    memcpy(store->servers, servers, sizeof servers);
    forget_socket(session);
}

/* Hosts may have moved while there is no connection. */
static void follow_names(struct mrt_zk_session *session, mrt_time now)
{
    struct mrt_store *store = session->store;
    if (session->connected || session->over)
        return;
    struct mrt_addresses *found = mrt_resolver_take(&store->resolver);
    if (found)
        move(session, found);
    free(found);
    mrt_resolver_begin(&store->resolver, store->address.hosts, store->address.host_count, now);
}

void mrt_zk_session_turn(struct mrt_zk_session *session, mrt_time now)
{
    mrt_zk_entered = session;
    process(session, now);
    follow_names(session, now);
    arm(session);
    if (!session->connected && !session->over)
        session->store->next =
            mrt_time_min(session->store->next, mrt_resolver_next(&session->store->resolver, now));
    mrt_zk_entered = NULL;
    if (session->start && !session->over && now >= session->deadline) {
        char why[256];
        struct mrt_job *job = session->start;
        session->start = NULL;
        snprintf(why, sizeof why, "%.180s: %s", session->store->address.shown, strerror(ETIMEDOUT));
        mrt_zk_fail_with(session->store, job, MORTISE_EUNREACHABLE, why);
        mrt_zk_report_unreachable(session->store, why);
        session->over = true;
    }
}

/* ---------------------------------------------------------------- beginning */

/* The library would print; its messages say nothing that its codes do not. */
static void swallow(const char *message)
{
    (void)message;
}

zhandle_t *mrt_zk_handle(const struct mrt_store *store, const char *servers, watcher_fn watcher)
{
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    zhandle_t *handle =
        zookeeper_init2(servers, watcher, (int)(store->address.session / MRT_MILLISECOND), NULL,
                        NULL, ZOO_NO_LOG_CLIENTENV, swallow);
    if (!handle)
        return NULL;
    zoo_set_servers_resolution_delay(handle, -1);
    if (mrt_zk_access_present(&store->access, handle))
        return handle;
    zookeeper_close(handle);
    return NULL;
}

bool mrt_zk_session_start(struct mrt_store *store, struct mrt_job *job, mrt_time now)
{
    struct mrt_zk_session *session = calloc(1, sizeof *session);
    if (!session)
        return false;
    session->closing = mrt_zk_close_prepare();
    if (!session->closing) {
        free(session);
        return false;
    }
    session->store = store;
    session->id = job->command.session;
    session->deadline = mrt_time_add(now, store->address.connect);
    TAILQ_INIT(&session->requests);
    forget_socket(session);
    session->handle = mrt_zk_handle(store, store->servers, on_session);
    if (!session->handle) {
        mrt_zk_close_let_go(session->closing);
        free(session);
        return false;
    }
    if (store->access.open_by_default)
        mrt_note(&store->notes, MRT_ZK_NOTE_OPEN,
                 "no credentials: anyone who reaches the server may break these locks "
                 "(acl=open says that this is meant)");
    session->start = job;
    store->session = session;
    return true;
}

void mrt_zk_session_renew(struct mrt_zk_session *session, struct mrt_job *job)
{
    const char *path = session->store->address.chroot;
    if (session->renew) {
        mrt_zk_answer(session->store, job, MRT_UNKNOWN); /* one at a time */
        return;
    }
    session->renew = job;
    session->asked = mrt_time_now();
    int code = mrt_zk_send(session, &renew_step, NULL, 0, *path ? path : "/");
    if (code == ZOK)
        return;
    session->renew = NULL;
    if (mrt_zk_code(code)->outcome == MRT_ZK_SESSION_OVER)
        mrt_zk_session_over(session, code);
    mrt_zk_answer_code(session->store, job, code);
}

/* ---------------------------------------------------------------- the end */

void mrt_zk_session_stop(struct mrt_zk_session *session, struct mrt_job *job, mrt_time now)
{
    session->stopping = true;
    if (session->over) {
        session->stop = job;
        session->close_now = true;
    } else if (!session->connected || session->stop) {
        mrt_zk_answer(session->store, job, MRT_UNKNOWN);
    } else {
        session->stop = job;
        session->asked = now;
        if (now < session->heard + HEARD_RECENTLY)
            session->close_now = true;
        else if (mrt_zk_send(session, &close_step, NULL, 0, "/") != ZOK)
            not_closed(session);
    }
}

static void answer_if(struct mrt_zk_session *session, struct mrt_job **slot,
                      enum mrt_event_type type)
{
    struct mrt_job *job = *slot;
    *slot = NULL;
    if (job)
        mrt_zk_answer(session->store, job, type);
}

void mrt_zk_session_clear(struct mrt_zk_session *session)
{
    struct mrt_zk_ticket *ticket, *next;
    if (session->over && session->start) {
        struct mrt_job *job = session->start;
        session->start = NULL;
        mrt_zk_fail_with(session->store, job, session->over_error, "the session was refused");
    }
    answer_if(session, &session->start, MRT_UNKNOWN);
    answer_if(session, &session->renew, MRT_UNKNOWN);
    HASH_ITER (hh, session->tickets, ticket, next)
        mrt_zk_ticket_end(session, ticket);
    mrt_zk_queries_end(session);
    mrt_zk_watches_free(session);
    mrt_zk_requests_free(session);
}

void mrt_zk_session_free(struct mrt_zk_session *session)
{
    free(session);
}
