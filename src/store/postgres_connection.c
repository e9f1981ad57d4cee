/*
 * The connection:
 *
 *   IDLE -> CONNECTING -> CHECKING -> READY
 *     ^---------'------------'----------'     (after a pause)
 *
 * It is wanted while there is a session or a request. libpq opens and changes its socket
 * inside its own calls, so the socket is put into an epoll descriptor of the store, the one
 * thing the loop polls, anew after each call that may have changed it.
 *
 * CHECKING asks one question before anything else is sent: whether this server can be written to,
 * is set up, and is talked to directly. A pooler that gives each transaction another server process
 * would leave LISTEN, and everything else that a session is, behind; it shows by
 * telling another process number than the server does.
 *
 * What has not been answered for half a lease is not waited for any more: the connection is
 * dropped, in time for the session to be renewed on another.
 */
#include "store/postgres_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#define PAUSE_MIN (20 * MRT_MILLISECOND)
#define PAUSE_DOUBLINGS 5

/* ------------------------------------------------------------------ the socket */

static void watch(struct mrt_store *store, uint32_t events)
{
    int socket = PQsocket(store->connection);
    struct epoll_event event = {.events = events, .data.fd = socket};
    if (socket < 0 || (socket == store->socket && events == store->mask))
        return;
    if (epoll_ctl(store->epoll, EPOLL_CTL_ADD, socket, &event) < 0 && errno == EEXIST)
        epoll_ctl(store->epoll, EPOLL_CTL_MOD, socket, &event);
    store->socket = socket;
    store->mask = events;
}

static uint32_t ready(const struct mrt_store *store)
{
    struct epoll_event event;
    return epoll_wait(store->epoll, &event, 1, 0) == 1 ? event.events : 0;
}

/* ------------------------------------------------------------------ its end */

void mrt_pg_reject(struct mrt_store *store, int error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(store->fault, sizeof store->fault, format, arguments);
    va_end(arguments);
    store->error = error;
    store->broken = true;
}

/* Who waits for a first session is told what is wrong, if waiting will not mend it. */
static void fail_starts(struct mrt_store *store)
{
    struct mrt_pg_request *request, *next;
    if (store->error == MORTISE_OK || mortise_error_kind_of(store->error) == MORTISE_KIND_RETRY)
        return; /* it broke, or may be had later */
    for (request = TAILQ_FIRST(&store->waiting); request; request = next) {
        next = TAILQ_NEXT(request, link);
        if (request->kind != MRT_PG_DO_START && request->kind != MRT_PG_DO_LIST)
            continue;
        TAILQ_REMOVE(&store->waiting, request, link);
        mrt_pg_fail(store, request, store->error, "%s", store->fault);
    }
}

void mrt_pg_drop(struct mrt_store *store, mrt_time now)
{
    struct mrt_pg_request *request;
    if (store->socket >= 0)
        epoll_ctl(store->epoll, EPOLL_CTL_DEL, store->socket, NULL);
    PQfinish(store->connection);
    store->connection = NULL;
    store->socket = -1;
    store->mask = 0;
    store->state = MRT_PG_IDLE;
    store->broken = false;
    mrt_time pause =
        PAUSE_MIN << (store->failures < PAUSE_DOUBLINGS ? store->failures : PAUSE_DOUBLINGS);
    store->until = now + (store->failures > 0 ? pause : 0);
    store->failures++;
    while ((request = TAILQ_FIRST(&store->sent))) {
        TAILQ_REMOVE(&store->sent, request, link);
        mrt_pg_finish_lost(store, request);
    }
    fail_starts(store);
}

/* ------------------------------------------------------------------ its beginning */

static bool is_wanted(const struct mrt_store *store)
{
    return !TAILQ_EMPTY(&store->waiting) || !TAILQ_EMPTY(&store->sessions);
}

static void reject_as_libpq_says(struct mrt_store *store)
{
    char sqlstate[6], line[256];
    const char *message = PQerrorMessage(store->connection);
    mrt_pg_code_in(message, sqlstate);
    mrt_pg_first_line(message, line, sizeof line);
    int error = sqlstate[0] ? mrt_pg_code(sqlstate)->error : MORTISE_EUNREACHABLE;
    if (strstr(message, "read-only") && !store->was_ready && !sqlstate[0])
        error = MORTISE_ENOTSUPPORTED; /* from libpq, of target_session_attrs=read-write */
    if (error == MORTISE_ESTORE)
        error = MORTISE_EUNREACHABLE;
    mrt_pg_reject(store, error, "PostgreSQL: %.220s", line);
}

void mrt_pg_ignore_notice(void *context, const PGresult *result)
{
    (void)context, (void)result;
}

static void connect_now(struct mrt_store *store, mrt_time now)
{
    store->connection =
        PQconnectStartParams(store->address.words, (const char *const *)store->address.values, 1);
    store->state = MRT_PG_CONNECTING;
    store->until = mrt_time_add(now, store->address.connect);
    store->epoch++;
    memset(store->prepared, 0, sizeof store->prepared);
    if (!store->connection) {
        mrt_pg_reject(store, MORTISE_ENOMEM, "no memory for a connection");
        return;
    }
    PQsetErrorVerbosity(store->connection, PQERRORS_VERBOSE);
    PQsetNoticeReceiver(store->connection, mrt_pg_ignore_notice, NULL);
    if (PQstatus(store->connection) == CONNECTION_BAD)
        reject_as_libpq_says(store);
    else
        watch(store, EPOLLOUT);
}

/* The connection is there; it is asked what it is. */
static void check_it(struct mrt_store *store, mrt_time now)
{
    struct mrt_pg_request *request = mrt_pg_request_new(MRT_PG_DO_SETUP);
    if (!request || PQsetnonblocking(store->connection, 1) != 0 ||
        !PQenterPipelineMode(store->connection)) {
        mrt_pg_request_free(request);
        mrt_pg_reject(store, MORTISE_ENOMEM, "no memory for a connection");
        return;
    }
    PQsetErrorVerbosity(store->connection, PQERRORS_DEFAULT);
    store->state = MRT_PG_CHECKING;
    mrt_pg_send(store, request, now);
}

static void go_on_connecting(struct mrt_store *store, mrt_time now)
{
    if (!ready(store))
        return;
    store->mask = 0; /* libpq may have another socket by now, of the same number */
    PostgresPollingStatusType wants = PQconnectPoll(store->connection);
    if (wants == PGRES_POLLING_OK)
        check_it(store, now);
    else if (wants == PGRES_POLLING_FAILED)
        reject_as_libpq_says(store);
    else
        watch(store, wants == PGRES_POLLING_READING ? EPOLLIN : EPOLLOUT);
}

void mrt_pg_connected(struct mrt_store *store)
{
    store->state = MRT_PG_READY;
    store->was_ready = true;
    store->failures = 0;
    store->error = MORTISE_OK;
}

/* ------------------------------------------------------------------ turns */

/* Half of the lease, and long enough for a busy server. */
static mrt_time answer_limit(const struct mrt_store *store)
{
    mrt_time half = store->address.lease / 2;
    return half > MRT_SECOND ? half : MRT_SECOND;
}

/* Until when something must have come over the connection; for ever if nothing is awaited. */
static mrt_time limit(const struct mrt_store *store)
{
    const struct mrt_pg_request *oldest = TAILQ_FIRST(&store->sent);
    if (store->state == MRT_PG_CONNECTING || store->state == MRT_PG_CHECKING)
        return store->until;
    return oldest ? mrt_time_add(oldest->sent, answer_limit(store)) : MRT_TIME_NEVER;
}

static void resume_sessions(struct mrt_store *store, mrt_time now)
{
    struct mrt_pg_session *session;
    TAILQ_FOREACH (session, &store->sessions, link) {
        struct mrt_pg_request *request = mrt_pg_request_new(MRT_PG_DO_RESUME);
        if (!request) {
            mrt_pg_reject(store, MORTISE_ENOMEM, "no memory for a request");
            return;
        }
        request->command.session = session->id;
        mrt_pg_send(store, request, now);
    }
}

static void send_waiting(struct mrt_store *store, mrt_time now)
{
    struct mrt_pg_request *request;
    while ((request = TAILQ_FIRST(&store->waiting)) && !store->broken) {
        TAILQ_REMOVE(&store->waiting, request, link);
        mrt_pg_send(store, request, now);
    }
}

/* Those who have waited for a connection for too long. */
static void expire_waiting(struct mrt_store *store, mrt_time now)
{
    struct mrt_pg_request *request;
    while ((request = TAILQ_FIRST(&store->waiting)) &&
           now >= mrt_time_add(request->begun, store->address.connect)) {
        TAILQ_REMOVE(&store->waiting, request, link);
        mrt_pg_fail(store, request, MORTISE_EUNREACHABLE, "%s",
                    store->fault[0] ? store->fault : store->address.shown);
    }
}

static void use(struct mrt_store *store, mrt_time now)
{
    bool was_checking = store->state == MRT_PG_CHECKING;
    mrt_pg_read(store, now);
    if (store->state == MRT_PG_READY && was_checking && !store->broken) {
        resume_sessions(store, now);
        send_waiting(store, now);
    }
    int unsent = store->broken ? 0 : PQflush(store->connection);
    if (unsent < 0)
        store->broken = true;
    else if (!store->broken)
        watch(store, unsent ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void mrt_pg_turn(struct mrt_store *store, mrt_time now)
{
    if (store->state == MRT_PG_IDLE && is_wanted(store) && now >= store->until)
        connect_now(store, now);
    if (store->state == MRT_PG_CONNECTING && !store->broken)
        go_on_connecting(store, now);
    if (store->state >= MRT_PG_CHECKING && !store->broken)
        use(store, now);
    if (store->state != MRT_PG_IDLE && !store->broken && now >= limit(store))
        mrt_pg_reject(store, MORTISE_EUNREACHABLE, "PostgreSQL does not answer: %.200s",
                      store->address.shown);
    if (store->broken)
        mrt_pg_drop(store, now);
    expire_waiting(store, now);
}

mrt_time mrt_pg_next(const struct mrt_store *store)
{
    const struct mrt_pg_request *oldest = TAILQ_FIRST(&store->waiting);
    mrt_time next = oldest ? mrt_time_add(oldest->begun, store->address.connect) : MRT_TIME_NEVER;
    if (store->state == MRT_PG_IDLE)
        return is_wanted(store) ? mrt_time_min(next, store->until) : next;
    return mrt_time_min(next, limit(store));
}
