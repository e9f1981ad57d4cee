/*
 * The PostgreSQL store: the port on rows with a lease (doc/postgresql.md), through libpq without
 * blocking and in pipeline mode, on one connection a client.
 *
 * A session is a row with the time at which its lease ends; a ticket is a row with its
 * session and a number out of one sequence, which is its place and its fence. An acquire is
 * one transaction of two statements: lock the queue's row and take a number; then put the ticket
 * in and read what is ahead. A release works out who may run now and tells exactly
 * those, by NOTIFY, which the server delivers when the release is committed. What is told is
 * the place itself: weight ahead only falls, so it stays true, and nobody need ask again.
 */
#include "store/postgres_internal.h"

#include "base/error.h"
#include "store/module_glue.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* ------------------------------------------------------------------ events */

void mrt_pg_answer(struct mrt_store *store, struct mrt_pg_request *request,
                   enum mrt_event_type type)
{
    request->event.type = type;
    request->event.serial = request->command.serial;
    request->event.session = request->command.session;
    request->event.ticket = request->command.ticket;
    request->done = true;
    TAILQ_INSERT_TAIL(&store->outbox, request, link);
}

void mrt_pg_fail(struct mrt_store *store, struct mrt_pg_request *request, int error,
                 const char *format, ...)
{
    va_list arguments;
    char detail[sizeof request->detail]; /* the old one may be among the arguments */
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    memcpy(request->detail, detail, sizeof detail);
    request->event.error = error;
    mrt_pg_answer(store, request, MRT_FAILED);
}

void mrt_pg_tell(struct mrt_store *store, const struct mrt_event *event)
{
    struct mrt_pg_request *request = mrt_pg_request_new(MRT_PG_DO_VIEW);
    if (!request)
        return; /* a wake may be lost: the ticket is looked at again after `recheck` */
    request->event = *event;
    TAILQ_INSERT_TAIL(&store->outbox, request, link);
}

static bool is_told(const struct mrt_pg_request *request)
{
    return request->kind != MRT_PG_DO_LIST &&
           (request->event.serial != 0 || request->event.type == MRT_VIEW ||
            request->event.type == MRT_WAKE || request->event.type == MRT_SESSION_LOST);
}

static void deliver_all(struct mrt_store *store)
{
    struct mrt_pg_request *request;
    while ((request = TAILQ_FIRST(&store->outbox))) {
        TAILQ_REMOVE(&store->outbox, request, link);
        request->event.detail = request->event.type == MRT_FAILED ? request->detail : NULL;
        if (is_told(request))
            store->sink.deliver(store->sink.context, &request->event);
        if (request->kind != MRT_PG_DO_LIST) /* that is its caller's */
            mrt_pg_request_free(request);
    }
}

/* ------------------------------------------------------------------ sessions */

struct mrt_pg_session *mrt_pg_find_session(struct mrt_store *store, struct mrt_id id)
{
    struct mrt_pg_session *session;
    TAILQ_FOREACH (session, &store->sessions, link)
        if (mrt_id_equal(session->id, id))
            return session;
    return NULL;
}

void mrt_pg_forget_session(struct mrt_store *store, struct mrt_pg_session *session)
{
    TAILQ_REMOVE(&store->sessions, session, link);
    free(session);
}

/* ------------------------------------------------------------------ the port */

static bool pg_submit(struct mrt_store *store, const struct mrt_command *command, mrt_time patience)
{
    static const enum mrt_pg_kind kinds[] = {
        [MRT_START] = MRT_PG_DO_START,   [MRT_STOP] = MRT_PG_DO_STOP,
        [MRT_RENEW] = MRT_PG_DO_RENEW,   [MRT_APPEND] = MRT_PG_DO_APPEND,
        [MRT_REFRESH] = MRT_PG_DO_VIEW,  [MRT_LIGHTEN] = MRT_PG_DO_LIGHTEN,
        [MRT_REMOVE] = MRT_PG_DO_REMOVE,
    };
    (void)patience; /* nothing here waits */
    struct mrt_pg_request *request = mrt_pg_request_new(kinds[command->type]);
    if (!request)
        return false;
    mrt_time now = mrt_time_now();
    request->command = *command;
    struct mrt_pg_session *session = mrt_pg_find_session(store, command->session);
    if (command->type == MRT_STOP && session)
        mrt_pg_forget_session(store, session); /* not to be taken up on another connection */
    mrt_pg_submit(store, request, now);
    mrt_pg_turn(store, now);
    deliver_all(store);
    return true;
}

static void pg_process(struct mrt_store *store, mrt_time now)
{
    mrt_pg_turn(store, now);
    deliver_all(store);
}

static int pg_fd(struct mrt_store *store)
{
    return store->epoll;
}

static mrt_time pg_next(struct mrt_store *store)
{
    return mrt_pg_next(store);
}

static const char *pg_address(const struct mrt_store *store)
{
    return store->address.shown;
}

static mrt_time pg_lease(const struct mrt_store *store)
{
    return store->address.lease;
}

/* ------------------------------------------------------------------ open, close */

static void free_requests(struct mrt_pg_requests *requests)
{
    struct mrt_pg_request *request;
    while ((request = TAILQ_FIRST(requests))) {
        TAILQ_REMOVE(requests, request, link);
        mrt_pg_request_free(request);
    }
}

static void pg_close(struct mrt_store *store)
{
    struct mrt_pg_session *session;
    PQfinish(store->connection);
    free_requests(&store->waiting);
    free_requests(&store->sent);
    free_requests(&store->outbox);
    while ((session = TAILQ_FIRST(&store->sessions)))
        mrt_pg_forget_session(store, session);
    if (store->epoll >= 0)
        close(store->epoll);
    mrt_pg_address_free(&store->address);
    free(store);
}

/* In a forked child: the socket's number is made to lead nowhere, so that libpq can free its
   memory without a byte reaching the parent's server. */
static void pg_abandon(struct mrt_store *store)
{
    int socket = store->connection ? PQsocket(store->connection) : -1;
    int nowhere = socket < 0 ? -1 : open("/dev/null", O_RDWR | O_CLOEXEC);
    if (socket >= 0 && (nowhere < 0 || dup2(nowhere, socket) < 0))
        store->connection = NULL; /* better lost than closed */
    if (nowhere >= 0)
        close(nowhere);
    pg_close(store);
}

static int pg_open(const struct mrt_uri *uri, const struct mrt_store_options *options,
                   struct mrt_sink sink, struct mrt_store **opened)
{
    struct mrt_store *store = calloc(1, sizeof *store);
    if (!store)
        return MORTISE_ENOMEM;
    TAILQ_INIT(&store->sessions);
    TAILQ_INIT(&store->waiting);
    TAILQ_INIT(&store->sent);
    TAILQ_INIT(&store->outbox);
    store->sink = sink;
    store->socket = -1;
    store->log = options->log;
    store->log_argument = options->log_argument;
    snprintf(store->label, sizeof store->label, "%s", options->label ? options->label : "");
    int error = mrt_pg_uri_parse(uri, &store->address);
    store->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (error == MORTISE_OK && store->epoll < 0)
        error = mrt_error(MORTISE_ENOMEM, "no descriptor left for PostgreSQL");
    if (error != MORTISE_OK) {
        pg_close(store);
        return error;
    }
    *opened = store;
    return MORTISE_OK;
}

static const struct mrt_store_ops postgres_store = {
    .scheme = "postgresql",
    .any_thread = true,
    .capabilities = {.size = sizeof(mortise_capabilities),
                     .fair = 1,
                     .fence = 1,
                     .notify = 1,
                     .across_hosts = 1,
                     .survives_failover = 0,
                     .durable_fence = 1,
                     .lease_ms = 10000},
    .open = pg_open,
    .init = mrt_pg_init,
    .submit = pg_submit,
    .fd = pg_fd,
    .next = pg_next,
    .process = pg_process,
    .list = mrt_pg_list,
    .lease = pg_lease,
    .address = pg_address,
    .close = pg_close,
    .abandon = pg_abandon,
};

__attribute__((visibility("default"))) mrt_module_entry mortise_store_module;

const struct mrt_store_ops *mortise_store_module(const struct mrt_module_host *host)
{
    return mrt_module_greet(host) ? &postgres_store : NULL;
}
