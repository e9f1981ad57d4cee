/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests outside of any session, waited for here: each has a connection of its own, made for
 * it. So a slow one keeps no renewal waiting on the store's connection.
 *
 * Threads: any, at any time: of the store only what stays as it was opened is read.
 */
#include "store/sql/list.h"
#include "store/sql/connection.h"
#include "store/sql/driver.h"
#include "store/sql/native/native.h"
#include "store/sql/outbox.h"
#include "store/sql/request.h"
#include "store/sql/send.h"
#include "store/sql/store.h"

#include "base/error.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool mrt_sql_asks_apart(const struct mrt_store *port)
{
    (void)port;
    return true;
}

static void hear_nothing(void *context, const struct mrt_event *event)
{
    (void)context, (void)event;
}

static void notice_nothing(void *context)
{
    (void)context;
}

int mrt_sql_find_hosts(const struct mrt_sql_address *address)
{
    int error = MORTISE_OK;
    struct mrt_resolver resolver;
    if (address->host_count == 0)
        return MORTISE_OK;
    mrt_resolver_init(&resolver, address->hosts, address->host_count, 0);
    struct mrt_addresses *found =
        mrt_resolver_wait(&resolver, address->hosts, address->host_count, address->connect);
    if (!found || found->count == 0)
        error = mrt_error(MORTISE_EUNREACHABLE, "%s: %.150s: %s", mrt_sql_product, address->shown,
                          mrt_resolver_fault(&resolver));
    mrt_resolver_forget(&resolver);
    free(found);
    return error;
}

/* The caller ends it by mrt_sql_fini, also after an error. */
static int open_asker(struct mrt_sql_store *asker, const struct mrt_sql_store *store)
{
    const struct mrt_store_options options = {
        .label = store->label, .log = store->log, .log_argument = store->log_argument};
    memset(asker, 0, sizeof *asker);
    if (store->form) {
        asker->steps = store->form->first;
        asker->hooks = store->form->hooks;
    }
    return mrt_sql_init(asker, store->uri, &options,
                        (struct mrt_sink){hear_nothing, notice_nothing, NULL});
}

/* The first attempt to connect decides: an operator sees at once that no server can be used. */
static void end_if_refused(struct mrt_sql_store *asker, struct mrt_sql_request *request)
{
    if (request->done || asker->was_ready || asker->failures == 0 || asker->error == MORTISE_OK)
        return;
    TAILQ_REMOVE(&asker->waiting, request, link);
    mrt_sql_fail(asker, request, asker->error, "%s", asker->fault);
}

/* Works until the request is done, at the latest when the connection's limits end it. The caller
 * then owns the request. Returns a code with its particulars. */
static int wait_for(struct mrt_sql_store *asker, struct mrt_sql_request *request)
{
    mrt_sql_begin(asker, request, mrt_time_now());
    mrt_sql_turn(asker, mrt_time_now());
    end_if_refused(asker, request);
    while (!request->done) {
        struct pollfd descriptor = {.fd = asker->epoll, .events = POLLIN};
        mrt_time left = mrt_sql_link_next(asker) - mrt_time_now();
        const struct timespec pause = {left > 0 ? left / MRT_SECOND : 0,
                                       left > 0 ? left % MRT_SECOND : 0};
        ppoll(&descriptor, 1, &pause, NULL);
        mrt_sql_turn(asker, mrt_time_now());
        end_if_refused(asker, request);
    }
    TAILQ_REMOVE(&asker->outbox, request, link);
    if (request->event.type == MRT_UNKNOWN)
        return mrt_error(MORTISE_EUNREACHABLE, "%s: %s", mrt_sql_product, request->detail);
    return request->event.type == MRT_FAILED
               ? mrt_error(request->event.error, "%s", request->detail)
               : MORTISE_OK;
}

static int carry_out(const struct mrt_sql_store *store, struct mrt_sql_request *request)
{
    struct mrt_sql_store asker;
    int error = open_asker(&asker, store);
    if (error == MORTISE_OK)
        error = wait_for(&asker, request);
    mrt_sql_fini(&asker);
    return error;
}

/* ------------------------------------------------------------------ list */

static const char *text_at(void *rows, int row, int column)
{
    const char *text = mrt_sql_rows_text(rows, row, column);
    return text ? text : "";
}

static uint64_t number_at(void *rows, int row, int column)
{
    return strtoull(text_at(rows, row, column), NULL, 10);
}

/* Rows are in order of queue and number. */
static void show(void *rows, mrt_listed_callback callback, void *argument)
{
    char queue[MORTISE_NAME_MAX + MORTISE_NAME_MAX + 2] = "";
    uint64_t upto = 0;
    uint32_t waiting = 0;
    for (int i = 0; i < mrt_sql_rows_count(rows); i++) {
        const char *name = text_at(rows, i, MRT_LIST_QUEUE);
        if (strcmp(queue, name) != 0)
            upto = waiting = 0;
        snprintf(queue, sizeof queue, "%s", name);
        uint64_t weight = number_at(rows, i, MRT_LIST_WEIGHT),
                 capacity = number_at(rows, i, MRT_LIST_CAPACITY);
        upto += weight;
        bool granted = upto <= capacity;
        const struct mrt_listed listed = {
            .entry = {.size = sizeof(mortise_entry),
                      .name = name,
                      .kind = text_at(rows, i, MRT_LIST_KIND),
                      .label = text_at(rows, i, MRT_LIST_LABEL),
                      .detached = number_at(rows, i, MRT_LIST_DETACHED) != 0,
                      .delay_ms = granted ? (int64_t)number_at(rows, i, MRT_LIST_DELAY) : 0,
                      .fence = number_at(rows, i, MRT_LIST_NUMBER) << MRT_SQL_FENCE_BITS,
                      .place = granted ? 0 : ++waiting,
                      .weight = weight,
                      .capacity = capacity,
                      .since_wall_ms = (int64_t)number_at(rows, i, MRT_LIST_SINCE)},
            .claim = text_at(rows, i, MRT_LIST_CLAIM)};
        if (callback(argument, &listed) != 0)
            return;
    }
}

int mrt_sql_list(struct mrt_store *port, const char *name, const char *prefix,
                 mrt_listed_callback callback, void *argument)
{
    struct mrt_sql_store *store = mrt_sql_of(port);
    struct mrt_sql_request *request = mrt_sql_request_new(
        store->form ? mrt_native_kind(store->form->first, MRT_NATIVE_LIST) : MRT_SQL_DO_LIST);
    if (!request)
        return MORTISE_ENOMEM;
    request->name = name;
    request->prefix = name || !prefix ? "" : prefix;
    int error = carry_out(store, request);
    if (error == MORTISE_OK && request->rows)
        show(request->rows, callback, argument);
    mrt_sql_request_free(request);
    return error;
}

/* ------------------------------------------------------------------ server */

int mrt_sql_tell_version(const struct mrt_sql_store *store,
                         const char *(*version_of)(const struct mrt_sql_store *asker), char *text,
                         size_t size)
{
    struct mrt_sql_store asker;
    struct mrt_sql_request *request = mrt_sql_request_new(MRT_SQL_DO_LIST);
    if (!request)
        return MORTISE_ENOMEM;
    request->name = "-"; /* a queue that is empty */
    request->prefix = "";
    int error = open_asker(&asker, store);
    if (error == MORTISE_OK)
        error = wait_for(&asker, request);
    const char *version = error == MORTISE_OK ? version_of(&asker) : NULL;
    if (version)
        snprintf(text, size, "%s %s", mrt_sql_product, version);
    else if (error == MORTISE_OK)
        error = mrt_error(MORTISE_EUNREACHABLE, "%s: the connection was lost", mrt_sql_product);
    mrt_sql_request_free(request);
    mrt_sql_fini(&asker);
    return error;
}

/* ------------------------------------------------------------------ the operator's */

/* Does it to the ticket of this fence, or to all that hold if it is 0. */
static int operate(struct mrt_sql_store *store, enum mrt_sql_kind kind, const char *name,
                   uint64_t fence)
{
    if (fence % (UINT64_C(1) << MRT_SQL_FENCE_BITS) != 0)
        return MORTISE_ENOTHELD; /* it can be no ticket's own */
    struct mrt_sql_request *request = mrt_sql_request_new(kind);
    if (!request)
        return MORTISE_ENOMEM;
    request->command.queue = name;
    request->number = fence >> MRT_SQL_FENCE_BITS;
    int error = carry_out(store, request);
    if (error == MORTISE_OK && mrt_sql_number(request, 0) == 0)
        error = MORTISE_ENOTHELD;
    if (error != MORTISE_OK && (request->lost || request->event.type == MRT_UNKNOWN))
        error = mrt_error(MORTISE_EUNKNOWN, "%s: no answer: it may have been done",
                          mrt_sql_product); /* by the first? */
    mrt_sql_request_free(request);
    return error;
}

int mrt_sql_revoke(struct mrt_store *port, const char *name, uint64_t fence)
{
    struct mrt_sql_store *store = mrt_sql_of(port);
    return operate(store, MRT_SQL_DO_REVOKE, name, fence);
}

int mrt_sql_break(struct mrt_store *port, const char *name, uint64_t fence)
{
    struct mrt_sql_store *store = mrt_sql_of(port);
    return fence == 0 ? MORTISE_ENOTHELD : operate(store, MRT_SQL_DO_BREAK, name, fence);
}
