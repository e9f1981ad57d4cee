/*
 * What is asked outside of any session and waited for here: one request on the client's own
 * connection. What else the server says meanwhile is kept for the next call of process.
 */
#include "store/sql_internal.h"

#include "base/error.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Works until the request is done, which it is by the limits of the connection at the latest;
   then it is the caller's. A code with its particulars. */
static int wait_for(struct mrt_store *store, struct mrt_sql_request *request)
{
    mrt_sql_begin(store, request, mrt_time_now());
    mrt_sql_turn(store, mrt_time_now());
    while (!request->done) {
        struct pollfd descriptor = {.fd = store->epoll, .events = POLLIN};
        mrt_time left = mrt_sql_link_next(store) - mrt_time_now();
        const struct timespec pause = {left > 0 ? left / MRT_SECOND : 0,
                                       left > 0 ? left % MRT_SECOND : 0};
        ppoll(&descriptor, 1, &pause, NULL);
        mrt_sql_turn(store, mrt_time_now());
    }
    TAILQ_REMOVE(&store->outbox, request, link);
    if (!TAILQ_EMPTY(&store->outbox))
        store->sink.notify(store->sink.context);
    if (request->event.type == MRT_UNKNOWN)
        return mrt_error(MORTISE_EUNREACHABLE, "%s: %s", mrt_sql_product, request->detail);
    return request->event.type == MRT_FAILED
               ? mrt_error(request->event.error, "%s", request->detail)
               : MORTISE_OK;
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
static void show(void *rows, mortise_entry_callback callback, void *argument)
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
        const mortise_entry entry = {
            .size = sizeof entry,
            .name = name,
            .kind = text_at(rows, i, MRT_LIST_KIND),
            .label = text_at(rows, i, MRT_LIST_LABEL),
            .detached = number_at(rows, i, MRT_LIST_DETACHED) != 0,
            .delay_ms = granted ? (int64_t)number_at(rows, i, MRT_LIST_DELAY) : 0,
            .fence = number_at(rows, i, MRT_LIST_NUMBER) << MRT_SQL_FENCE_BITS,
            .place = granted ? 0 : ++waiting,
            .weight = weight,
            .capacity = capacity,
            .since_wall_ms = (int64_t)number_at(rows, i, MRT_LIST_SINCE)};
        if (callback(argument, &entry) != 0)
            return;
    }
}

int mrt_sql_list(struct mrt_store *store, const char *name, const char *prefix,
                 mortise_entry_callback callback, void *argument)
{
    struct mrt_sql_request *request = mrt_sql_request_new(
        store->steps ? mrt_form_kind(store->steps, MRT_FORM_LIST) : MRT_SQL_DO_LIST);
    if (!request)
        return MORTISE_ENOMEM;
    request->name = name;
    request->prefix = name || !prefix ? "" : prefix;
    int error = wait_for(store, request);
    if (error == MORTISE_OK && request->rows)
        show(request->rows, callback, argument);
    mrt_sql_request_free(request);
    return error;
}

/* ------------------------------------------------------------------ the operator's */

/* Does it to the ticket of this fence, or to all that hold if it is 0. */
static int operate(struct mrt_store *store, enum mrt_sql_kind kind, const char *name,
                   uint64_t fence)
{
    if (fence % (UINT64_C(1) << MRT_SQL_FENCE_BITS) != 0)
        return MORTISE_ENOTHELD; /* it can be no ticket's own */
    struct mrt_sql_request *request = mrt_sql_request_new(kind);
    if (!request)
        return MORTISE_ENOMEM;
    request->command.queue = name;
    request->number = fence >> MRT_SQL_FENCE_BITS;
    int error = wait_for(store, request);
    if (error == MORTISE_OK && mrt_sql_number(request, 0) == 0)
        error = request->lost ? MORTISE_EUNKNOWN : MORTISE_ENOTHELD; /* by the first? */
    mrt_sql_request_free(request);
    return error;
}

int mrt_sql_revoke(struct mrt_store *store, const char *name, uint64_t fence)
{
    return operate(store, MRT_SQL_DO_REVOKE, name, fence);
}

int mrt_sql_break(struct mrt_store *store, const char *name, uint64_t fence)
{
    return fence == 0 ? MORTISE_ENOTHELD : operate(store, MRT_SQL_DO_BREAK, name, fence);
}
