/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The port on SQL servers (doc/postgresql.md, doc/mariadb.md), through a client library that
 * does not block, on one connection a client.
 *
 * A session is a row with the time at which its lease ends; a ticket is a row with its session
 * and a number, which is its place and its fence. Commands become requests; a request that is
 * answered waits in the outbox until the port's own call delivers it.
 */
#include "store/sql/store.h"
#include "store/sql/connection.h"
#include "store/sql/driver.h"
#include "store/sql/flush.h"
#include "store/sql/observers.h"
#include "store/sql/request.h"
#include "store/sql/send.h"
#include "store/sql/session.h"

#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* One of the store's own has no serial, and says nothing. */
static bool is_told(const struct mrt_sql_request *request)
{
    return request->event.serial != 0 || !request->done;
}

void mrt_sql_deliver(struct mrt_sql_store *store)
{
    struct mrt_sql_request *request;
    while ((request = TAILQ_FIRST(&store->outbox))) {
        TAILQ_REMOVE(&store->outbox, request, link);
        request->event.detail = request->event.type == MRT_FAILED ? request->detail : NULL;
        if (request->kind == MRT_SQL_DO_OBSERVE && request->done &&
            request->event.type != MRT_HOLDER)
            mrt_sql_unobserve(store, request->command.ticket);
        if (is_told(request))
            store->sink.deliver(store->sink.context, &request->event);
        mrt_sql_request_free(request);
    }
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

bool mrt_sql_submit(struct mrt_store *port, const struct mrt_command *command, mrt_time patience)
{
    struct mrt_sql_store *store = mrt_sql_of(port);
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
    mrt_sql_process(port, now);
    return true;
}

bool mrt_sql_answers_may_wait(const struct mrt_store *port)
{
    const struct mrt_sql_store *store = mrt_sql_const_of(port);
    const struct mrt_sql_request *request;
    if (store->broken || !TAILQ_EMPTY(&store->waiting) || !TAILQ_EMPTY(&store->resting) ||
        store->mask & EPOLLOUT || (store->state != MRT_SQL_READY && store->state != MRT_SQL_IDLE))
        return false;
    TAILQ_FOREACH (request, &store->sent, link)
        if (request->sent == 0 || !mrt_sql_goes_through(request))
            return false;
    return true;
}

void mrt_sql_process(struct mrt_store *port, mrt_time now)
{
    struct mrt_sql_store *store = mrt_sql_of(port);
    mrt_sql_turn(store, now);
    mrt_sql_observers_due(store, now);
    mrt_sql_deliver(store);
}

int mrt_sql_fd(struct mrt_store *port)
{
    struct mrt_sql_store *store = mrt_sql_of(port);
    return store->epoll;
}

mrt_time mrt_sql_next(struct mrt_store *port)
{
    struct mrt_sql_store *store = mrt_sql_of(port);
    return mrt_time_min(mrt_sql_link_next(store), mrt_sql_observers_next(store));
}

const char *mrt_sql_address(const struct mrt_store *port)
{
    const struct mrt_sql_store *store = mrt_sql_const_of(port);
    return store->address.shown;
}

mrt_time mrt_sql_lease(const struct mrt_store *port)
{
    const struct mrt_sql_store *store = mrt_sql_const_of(port);
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

void mrt_sql_fini(struct mrt_sql_store *store)
{
    struct mrt_sql_session *session;
    mrt_sql_driver_free(store);
    mrt_resolver_forget(&store->resolver);
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

void mrt_sql_close(struct mrt_store *port)
{
    struct mrt_sql_store *store = mrt_sql_of(port);
    mrt_sql_fini(store);
    free(store);
}

void mrt_sql_leave(struct mrt_sql_store *store)
{
    int socket = mrt_sql_driver_leave(store);
    if (socket >= 0)
        close(socket);
    close(store->epoll);
    if (store->uri)
        explicit_bzero(store->uri, sizeof *store->uri);
}

void mrt_sql_abandon(struct mrt_store *port)
{
    struct mrt_sql_store *store = mrt_sql_of(port);
    mrt_sql_leave(store);
    free(store);
}

int mrt_sql_init(struct mrt_sql_store *store, const struct mrt_uri *uri,
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
    mrt_resolver_init(&store->resolver, store->address.hosts, store->address.host_count, 0);
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

int mrt_sql_new(const struct mrt_uri *uri, const struct mrt_store_options *options,
                struct mrt_sink sink, struct mrt_sql_store **made)
{
    struct mrt_sql_store *store = calloc(1, sizeof *store);
    if (!store)
        return MORTISE_ENOMEM;
    int error = mrt_sql_init(store, uri, options, sink);
    store->uri = copy_uri(uri);
    if (error == MORTISE_OK && !store->uri)
        error = MORTISE_ENOMEM;
    if (error != MORTISE_OK) {
        mrt_sql_close((struct mrt_store *)store);
        return error;
    }
    *made = store;
    return MORTISE_OK;
}

int mrt_sql_open(const struct mrt_uri *uri, const struct mrt_store_options *options,
                 struct mrt_sink sink, struct mrt_store **opened)
{
    return mrt_sql_new(uri, options, sink, (struct mrt_sql_store **)opened);
}

void mrt_sql_adapt(const struct mrt_store *port, mortise_capabilities *capabilities)
{
    const struct mrt_sql_store *store = mrt_sql_const_of(port);
    if (store->pooled)
        capabilities->notify = capabilities->linger = 0;
}

void mrt_sql_traffic(const struct mrt_store *port, struct mrt_traffic *sum)
{
    const struct mrt_sql_store *store = mrt_sql_const_of(port);
    mrt_traffic_sum(sum, store->traffic);
}
