/*
 * The port on SQL servers (doc/postgresql.md, doc/mariadb.md), through a client library that
 * does not block, on one connection a client.
 *
 * A session is a row with the time at which its lease ends; a ticket is a row with its session
 * and a number, which is its place and its fence. Commands become requests; a request that is
 * answered waits in the outbox until the port's own call delivers it.
 */
#include "store/sql/internal.h"

#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* ------------------------------------------------------------------ events */

void mrt_sql_answer(struct mrt_store *store, struct mrt_sql_request *request,
                    enum mrt_event_type type)
{
    request->event.type = type;
    request->event.serial = request->command.serial;
    request->event.session = request->command.session;
    request->event.ticket = request->command.ticket;
    request->done = true;
    mrt_sql_removal_answered(store, request, type);
    if (request->kind == MRT_SQL_DO_OBSERVE && type != MRT_HOLDER)
        mrt_sql_unobserve(store, request->command.ticket);
    TAILQ_INSERT_TAIL(&store->outbox, request, link);
}

void mrt_sql_fail(struct mrt_store *store, struct mrt_sql_request *request, int error,
                  const char *format, ...)
{
    va_list arguments;
    char detail[sizeof request->detail]; /* the old one may be among the arguments */
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    memcpy(request->detail, detail, sizeof detail);
    request->event.error = error;
    mrt_sql_answer(store, request, MRT_FAILED);
}

bool mrt_sql_tell(struct mrt_store *store, const struct mrt_event *event)
{
    struct mrt_sql_request *request = mrt_sql_request_new(MRT_SQL_DO_VIEW);
    if (!request)
        return false; /* a wake may be lost: who waits looks again after `recheck` */
    request->event = *event;
    TAILQ_INSERT_TAIL(&store->outbox, request, link);
    return true;
}

/* One of the store's own has no serial, and says nothing. */
static bool is_told(const struct mrt_sql_request *request)
{
    return request->event.serial != 0 || !request->done;
}

void mrt_sql_deliver(struct mrt_store *store)
{
    struct mrt_sql_request *request;
    while ((request = TAILQ_FIRST(&store->outbox))) {
        TAILQ_REMOVE(&store->outbox, request, link);
        request->event.detail = request->event.type == MRT_FAILED ? request->detail : NULL;
        if (is_told(request))
            store->sink.deliver(store->sink.context, &request->event);
        mrt_sql_request_free(request);
    }
}

void mrt_sql_say(const struct mrt_store *store, const char *text)
{
    char line[256];
    snprintf(line, sizeof line, "%s: %s", mrt_sql_product, text);
    if (store->log)
        store->log(store->log_argument, line);
}

/* ------------------------------------------------------------------ sessions */

struct mrt_sql_session *mrt_sql_find_session(struct mrt_store *store, struct mrt_id id)
{
    struct mrt_sql_session *session;
    TAILQ_FOREACH (session, &store->sessions, link)
        if (mrt_id_equal(session->id, id))
            return session;
    return NULL;
}

void mrt_sql_forget_session(struct mrt_store *store, struct mrt_sql_session *session)
{
    mrt_sql_unobserve_all(store, session);
    TAILQ_REMOVE(&store->sessions, session, link);
    free(session);
}

/* ------------------------------------------------------------------ the port */

static enum mrt_sql_kind kind_of(const struct mrt_command *command)
{
    static const enum mrt_sql_kind kinds[] = {
        [MRT_START] = MRT_SQL_DO_START,       [MRT_STOP] = MRT_SQL_DO_STOP,
        [MRT_RENEW] = MRT_SQL_DO_RENEW,       [MRT_APPEND] = MRT_SQL_DO_APPEND,
        [MRT_REFRESH] = MRT_SQL_DO_VIEW,      [MRT_LIGHTEN] = MRT_SQL_DO_LIGHTEN,
        [MRT_REMOVE] = MRT_SQL_DO_REMOVE,     [MRT_SET_VALUE] = MRT_SQL_DO_SET_VALUE,
        [MRT_OBSERVE] = MRT_SQL_DO_OBSERVE,   [MRT_CELL_GET] = MRT_SQL_DO_CELL_GET,
        [MRT_CELL_SET] = MRT_SQL_DO_CELL_SET, [MRT_DETACH] = MRT_SQL_DO_DETACH,
    };
    if (command->type == MRT_APPEND && command->adopt)
        return MRT_SQL_DO_ADOPT;
    if (command->type == MRT_STOP && command->died)
        return MRT_SQL_DO_DIE;
    if (command->type == MRT_REMOVE && command->expect_no_waiters && mrt_sql_removes_last)
        return MRT_SQL_DO_REMOVE_LAST;
    return kinds[command->type];
}

bool mrt_sql_submit(struct mrt_store *store, const struct mrt_command *command, mrt_time patience)
{
    (void)patience; /* nothing here waits */
    struct mrt_sql_request *request = mrt_sql_request_new(kind_of(command));
    if (!request)
        return false;
    mrt_time now = mrt_time_now();
    request->command = *command;
    struct mrt_sql_session *session = mrt_sql_find_session(store, command->session);
    if (command->type == MRT_STOP && session)
        mrt_sql_forget_session(store, session); /* not to be taken up on another connection */
    if (command->type == MRT_REMOVE)
        mrt_sql_note_unflushed(store, request);
    if (command->type == MRT_OBSERVE && session && !command->once)
        mrt_sql_observe(store, command, now);
    mrt_sql_begin(store, request, now);
    mrt_sql_process(store, now);
    return true;
}

bool mrt_sql_removes(const struct mrt_sql_request *request)
{
    return request->kind == MRT_SQL_DO_REMOVE || request->kind == MRT_SQL_DO_REMOVE_LAST ||
           request->kind == MRT_SQL_DO_REMOVE_WITHOUT_NOTIFY;
}

bool mrt_sql_goes_through(const struct mrt_sql_request *request)
{
    return mrt_sql_removes(request) || request->kind == MRT_SQL_DO_RENEW ||
           request->kind == mrt_native_kind(MRT_SQL_DO_NAMED, MRT_NATIVE_LEAVE) ||
           request->kind == mrt_native_kind(MRT_SQL_DO_ROW, MRT_NATIVE_LEAVE);
}

bool mrt_sql_answers_may_wait(const struct mrt_store *store)
{
    const struct mrt_sql_request *request;
    if (store->broken || !TAILQ_EMPTY(&store->waiting) || !TAILQ_EMPTY(&store->resting) ||
        store->mask & EPOLLOUT || (store->state != MRT_SQL_READY && store->state != MRT_SQL_IDLE))
        return false;
    TAILQ_FOREACH (request, &store->sent, link)
        if (request->sent == 0 || !mrt_sql_goes_through(request))
            return false;
    return true;
}

void mrt_sql_process(struct mrt_store *store, mrt_time now)
{
    mrt_sql_turn(store, now);
    mrt_sql_observers_due(store, now);
    mrt_sql_deliver(store);
}

int mrt_sql_fd(struct mrt_store *store)
{
    return store->epoll;
}

mrt_time mrt_sql_next(struct mrt_store *store)
{
    return mrt_time_min(mrt_sql_link_next(store), mrt_sql_observers_next(store));
}

const char *mrt_sql_address(const struct mrt_store *store)
{
    return store->address.shown;
}

mrt_time mrt_sql_lease(const struct mrt_store *store)
{
    return store->address.lease;
}

/* ------------------------------------------------------------------ open, close */

static void free_requests(struct mrt_sql_requests *requests)
{
    struct mrt_sql_request *request;
    while ((request = TAILQ_FIRST(requests))) {
        TAILQ_REMOVE(requests, request, link);
        mrt_sql_request_free(request);
    }
}

void mrt_sql_fini(struct mrt_store *store)
{
    struct mrt_sql_session *session;
    mrt_sql_driver_free(store);
    free_requests(&store->waiting);
    free_requests(&store->resting);
    free_requests(&store->sent);
    free_requests(&store->outbox);
    mrt_sql_removals_free(store);
    while ((session = TAILQ_FIRST(&store->sessions)))
        mrt_sql_forget_session(store, session);
    if (store->epoll >= 0)
        close(store->epoll);
    if (store->uri)
        explicit_bzero(store->uri, sizeof *store->uri); /* a password may be in it */
    free(store->uri);
}

void mrt_sql_close(struct mrt_store *store)
{
    mrt_sql_fini(store);
    free(store);
}

void mrt_sql_abandon(struct mrt_store *store)
{
    mrt_sql_driver_abandon(store);
    mrt_sql_close(store);
}

int mrt_sql_init(struct mrt_store *store, const struct mrt_uri *uri,
                 const struct mrt_store_options *options, struct mrt_sink sink)
{
    TAILQ_INIT(&store->sessions);
    TAILQ_INIT(&store->observers);
    TAILQ_INIT(&store->removals);
    TAILQ_INIT(&store->waiting);
    TAILQ_INIT(&store->resting);
    TAILQ_INIT(&store->sent);
    TAILQ_INIT(&store->outbox);
    store->sink = sink;
    store->traffic = &store->own_traffic;
    store->socket = -1;
    store->log = options->log;
    store->log_argument = options->log_argument;
    snprintf(store->label, sizeof store->label, "%s", options->label ? options->label : "");
    int error = mrt_sql_driver_open(store, uri);
    store->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (error == MORTISE_OK && store->epoll < 0)
        error = mrt_error(MORTISE_ENOMEM, "no descriptor left for %s", mrt_sql_product);
    return error;
}

/* Its parts point into itself. */
static struct mrt_uri *copy_uri(const struct mrt_uri *uri)
{
    struct mrt_uri *copy = malloc(sizeof *copy);
    if (!copy)
        return NULL;
    *copy = *uri;
    copy->scheme = copy->text + (uri->scheme - uri->text);
    copy->rest = copy->text + (uri->rest - uri->text);
    for (size_t i = 0; i < uri->count; i++) {
        copy->parameters[i].key = copy->text + (uri->parameters[i].key - uri->text);
        copy->parameters[i].value = copy->text + (uri->parameters[i].value - uri->text);
    }
    return copy;
}

int mrt_sql_open(const struct mrt_uri *uri, const struct mrt_store_options *options,
                 struct mrt_sink sink, struct mrt_store **opened)
{
    struct mrt_store *store = calloc(1, sizeof *store);
    if (!store)
        return MORTISE_ENOMEM;
    int error = mrt_sql_init(store, uri, options, sink);
    store->uri = copy_uri(uri);
    if (error == MORTISE_OK && !store->uri)
        error = MORTISE_ENOMEM;
    if (error != MORTISE_OK) {
        mrt_sql_close(store);
        return error;
    }
    *opened = store;
    return MORTISE_OK;
}

void mrt_sql_traffic(const struct mrt_store *store, struct mrt_traffic *sum)
{
    mrt_traffic_sum(sum, store->traffic);
}
