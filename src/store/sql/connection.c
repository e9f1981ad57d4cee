/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection:
 *
 *   IDLE -> CONNECTING -> CHECKING -> READY
 *     ^---------'------------'----------'     (after a pause)
 *
 * A connection is kept while there is a session or a request. Client libraries open and change
 * their socket inside their own calls. So the socket is put into an epoll descriptor of the store,
 * the only descriptor that the loop polls, again after each call that may have changed it.
 *
 * CONNECTING begins by resolving the host's name, beside the loop. The client libraries resolve it
 * once more and block meanwhile, so they are not called before a name server has answered.
 *
 * CHECKING sends one request before any other: whether this server can be written to, is set up,
 * and is reached without a pooler between.
 *
 * A connection on which a request stays unanswered for half a lease is dropped, in time for the
 * session to be renewed on another.
 */
#include "store/sql/connection.h"
#include "base/assert.h"
#include "store/sql/answer.h"
#include "store/sql/driver.h"
#include "store/sql/fault.h"
#include "store/sql/flush.h"
#include "store/sql/observers.h"
#include "store/sql/outbox.h"
#include "store/sql/request.h"
#include "store/sql/retry.h"
#include "store/sql/send.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define PAUSE_MIN (20 * MRT_MILLISECOND)
#define PAUSE_DOUBLINGS 5

/* ------------------------------------------------------------------ the socket */

void mrt_sql_watch(struct mrt_sql_store *store, int socket, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = socket};
    if (socket < 0 || (socket == store->socket && events == store->mask))
        return;
    if (epoll_ctl(store->epoll, EPOLL_CTL_ADD, socket, &event) < 0 && errno == EEXIST)
        epoll_ctl(store->epoll, EPOLL_CTL_MOD, socket, &event);
    store->socket = socket;
    store->mask = events;
}

uint32_t mrt_sql_ready(const struct mrt_sql_store *store)
{
    struct epoll_event event;
    return epoll_wait(store->epoll, &event, 1, 0) == 1 ? event.events : 0;
}

/* ------------------------------------------------------------------ its end */

/* Fails the requests that wait for a first session, if waiting will not mend the fault, and those
   of operators, which block in a call of this store. */
static void fail_starts(struct mrt_sql_store *store, bool was_ready)
{
    struct mrt_sql_request *request, *next;
    if (store->error == MORTISE_OK)
        return;                      /* it broke */
    if (!store->steps && !was_ready) /* a form's store reports for its connections */
        mrt_sql_tell_fault(store, store);
    if (mortise_error_kind_of(store->error) == MORTISE_KIND_RETRY)
        return; /* a later attempt may succeed */
    TAILQ_FOREACH_SAFE (request, &store->waiting, link, next)
        if (request->kind == MRT_SQL_DO_START || request->kind >= MRT_SQL_DO_LIST) {
            TAILQ_REMOVE(&store->waiting, request, link);
            mrt_sql_fail(store, request, store->error, "%s", store->fault);
        }
}

static enum mrt_sql_kind setup_of(const struct mrt_sql_store *store)
{
    return store->steps ? mrt_native_kind(store->steps, MRT_NATIVE_SETUP) : MRT_SQL_DO_SETUP;
}

/* Requests that have not been sent go first on the next connection, before newer ones. */
static void keep_unsent(struct mrt_sql_store *store)
{
    struct mrt_sql_request *request;
    while ((request = TAILQ_LAST(&store->sent, mrt_sql_requests)) && request->sent == 0 &&
           request->kind != setup_of(store) && request->kind != MRT_SQL_DO_RESUME) {
        TAILQ_REMOVE(&store->sent, request, link);
        TAILQ_INSERT_HEAD(&store->waiting, request, link);
    }
}

void mrt_sql_drop(struct mrt_sql_store *store, mrt_time now)
{
    struct mrt_sql_request *request;
    bool was_ready = store->state == MRT_SQL_READY; /* then the next attempt may find a server */
    if (store->socket >= 0)
        epoll_ctl(store->epoll, EPOLL_CTL_DEL, store->socket, NULL);
    mrt_sql_driver_disconnect(store);
    store->socket = -1;
    store->mask = 0;
    store->state = MRT_SQL_IDLE;
    store->broken = store->listens = store->is_looking = false;
    mrt_time pause =
        PAUSE_MIN << (store->failures < PAUSE_DOUBLINGS ? store->failures : PAUSE_DOUBLINGS);
    store->until = now + (store->failures > 0 ? pause : 0);
    store->failures++;
    mrt_sql_connection_lost(store);
    mrt_sql_rest_no_more(store);
    keep_unsent(store);
    while ((request = TAILQ_FIRST(&store->sent))) {
        TAILQ_REMOVE(&store->sent, request, link);
        if (request->sent)
            mrt_traffic_answered(store->traffic);
        mrt_sql_finish_lost(store, request);
    }
    fail_starts(store, was_ready);
}

/* ------------------------------------------------------------------ its beginning */

static bool is_wanted(const struct mrt_sql_store *store)
{
    return !TAILQ_EMPTY(&store->waiting) || !TAILQ_EMPTY(&store->sessions);
}

static void connect_now(struct mrt_sql_store *store, mrt_time now)
{
    MRT_ASSERT(store->state == MRT_SQL_IDLE && store->socket < 0);
    MRT_ASSERT(TAILQ_EMPTY(&store->sent)); /* nothing of an old connection is left */
    store->state = MRT_SQL_CONNECTING;
    store->until = mrt_time_add(now, store->address.connect);
    store->epoch++;
    mrt_resolver_begin(&store->resolver, store->address.hosts, store->address.host_count, now);
    store->is_looking = store->resolver.under_way || store->resolver.fault;
    if (!store->is_looking)
        mrt_sql_driver_connect(store);
}

/* Connects once the host's name has been found. */
static void go_on(struct mrt_sql_store *store, mrt_time now)
{
    if (!store->is_looking) {
        mrt_sql_driver_go_on(store, now);
        return;
    }
    if (mrt_resolver_is_busy(&store->resolver))
        return;
    struct mrt_addresses *found = mrt_resolver_take(&store->resolver);
    store->is_looking = false;
    if (found)
        mrt_sql_driver_connect(store);
    else
        mrt_sql_reject(store, MORTISE_EUNREACHABLE, "%s: %.150s: %s", mrt_sql_product,
                       store->address.shown, mrt_resolver_fault(&store->resolver));
    free(found);
}

void mrt_sql_check(struct mrt_sql_store *store, mrt_time now)
{
    struct mrt_sql_request *request = mrt_sql_request_new(setup_of(store));
    if (!request) {
        mrt_sql_reject(store, MORTISE_ENOMEM, "no memory for a connection");
        return;
    }
    MRT_ASSERT(store->state == MRT_SQL_CONNECTING);
    store->state = MRT_SQL_CHECKING;
    mrt_sql_send(store, request, now);
}

void mrt_sql_connected(struct mrt_sql_store *store)
{
    struct mrt_sql_observer *observer;
    MRT_ASSERT(store->state == MRT_SQL_CHECKING);
    store->state = MRT_SQL_READY;
    store->was_ready = true;
    store->failures = 0;
    store->error = MORTISE_OK;
    TAILQ_FOREACH (observer, &store->observers, link)
        observer->due = 0; /* events in between have not been heard */
}

/* ------------------------------------------------------------------ turns */

/* Half of the lease, and long enough for a busy server; and as long as the server may let it wait.
 */
static mrt_time answer_limit(const struct mrt_sql_store *store,
                             const struct mrt_sql_request *request)
{
    mrt_time half = store->address.lease / 2;
    bool waits = store->steps && request->kind == mrt_native_kind(store->steps, MRT_NATIVE_WAIT);
    return (half > MRT_SECOND ? half : MRT_SECOND) + (waits ? mrt_sql_wait_limit(store) : 0);
}

/* Until when something must have come over the connection; for ever if nothing is awaited. */
static mrt_time limit(const struct mrt_sql_store *store)
{
    const struct mrt_sql_request *oldest = TAILQ_FIRST(&store->sent);
    if (store->state == MRT_SQL_CONNECTING || store->state == MRT_SQL_CHECKING)
        return store->until;
    return oldest && oldest->sent ? mrt_time_add(oldest->sent, answer_limit(store, oldest))
                                  : MRT_TIME_NEVER;
}

static void resume_sessions(struct mrt_sql_store *store, mrt_time now)
{
    struct mrt_sql_session *session;
    TAILQ_FOREACH (session, &store->sessions, link) {
        struct mrt_sql_request *request = mrt_sql_request_new(MRT_SQL_DO_RESUME);
        if (!request) {
            mrt_sql_reject(store, MORTISE_ENOMEM, "no memory for a request");
            return;
        }
        request->command.session = session->id;
        mrt_sql_send(store, request, now);
    }
}

static void send_waiting(struct mrt_sql_store *store, mrt_time now)
{
    struct mrt_sql_request *request;
    while ((request = TAILQ_FIRST(&store->waiting)) && !store->broken) {
        TAILQ_REMOVE(&store->waiting, request, link);
        mrt_sql_send(store, request, now);
    }
}

/* Ends jobs that have waited for a connection for too long. */
static void expire_waiting(struct mrt_sql_store *store, mrt_time now)
{
    struct mrt_sql_request *request;
    while ((request = TAILQ_FIRST(&store->waiting)) &&
           now >= mrt_time_add(request->begun, store->address.connect)) {
        TAILQ_REMOVE(&store->waiting, request, link);
        mrt_sql_fail(store, request, MORTISE_EUNREACHABLE, "%s",
                     store->fault[0] ? store->fault : store->address.shown);
    }
}

static void use(struct mrt_sql_store *store, mrt_time now)
{
    bool was_checking = store->state == MRT_SQL_CHECKING;
    mrt_sql_driver_turn(store, now);
    if (store->state != MRT_SQL_READY || !was_checking || store->broken)
        return;
    resume_sessions(store, now);
    mrt_sql_remove_again(store, now);
    mrt_sql_listen(store, now);
    send_waiting(store, now);
    if (!store->broken)
        mrt_sql_driver_turn(store, now);
}

void mrt_sql_turn(struct mrt_sql_store *store, mrt_time now)
{
    if (store->state == MRT_SQL_IDLE && is_wanted(store) && now >= store->until)
        connect_now(store, now);
    mrt_sql_rested(store, now);
    if (store->state == MRT_SQL_CONNECTING && !store->broken)
        go_on(store, now);
    if (store->state >= MRT_SQL_CHECKING && !store->broken)
        use(store, now);
    if (store->state != MRT_SQL_IDLE && !store->broken && now >= limit(store))
        mrt_sql_reject(store, MORTISE_EUNREACHABLE, "%s does not answer: %.150s%s%s",
                       mrt_sql_product, store->address.shown, store->is_looking ? ": " : "",
                       store->is_looking ? mrt_resolver_fault(&store->resolver) : "");
    if (store->broken)
        mrt_sql_drop(store, now);
    expire_waiting(store, now);
}

mrt_time mrt_sql_link_next(const struct mrt_sql_store *store)
{
    const struct mrt_sql_request *oldest = TAILQ_FIRST(&store->waiting);
    mrt_time next = oldest ? mrt_time_add(oldest->begun, store->address.connect) : MRT_TIME_NEVER;
    next = mrt_time_min(next, mrt_sql_rest_next(store));
    if (store->state == MRT_SQL_IDLE)
        return is_wanted(store) ? mrt_time_min(next, store->until) : next;
    if (store->is_looking)
        next = mrt_time_min(next, mrt_resolver_next(&store->resolver, mrt_time_now()));
    return mrt_time_min(next, limit(store));
}
