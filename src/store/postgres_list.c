/*
 * mortise_list: one query on the client's own connection, waited for here. What else the
 * server says meanwhile is kept for the next call of process.
 */
#include "store/postgres_internal.h"

#include "base/error.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER, WEIGHT, CAPACITY, SINCE, QUEUE, KIND, LABEL };

static uint64_t number_at(const PGresult *rows, int row, int column)
{
    return strtoull(PQgetvalue(rows, row, column), NULL, 10);
}

/* Rows are in order of queue and number. */
static void show(const PGresult *rows, mortise_entry_callback callback, void *argument)
{
    const char *queue = NULL;
    uint64_t upto = 0;
    uint32_t waiting = 0;
    for (int i = 0; i < PQntuples(rows); i++) {
        const char *name = PQgetvalue(rows, i, QUEUE);
        if (!queue || strcmp(queue, name) != 0) {
            queue = name;
            upto = 0;
            waiting = 0;
        }
        uint64_t weight = number_at(rows, i, WEIGHT), capacity = number_at(rows, i, CAPACITY);
        upto += weight;
        bool granted = upto <= capacity;
        const mortise_entry entry = {.size = sizeof entry,
                                     .name = name,
                                     .kind = PQgetvalue(rows, i, KIND),
                                     .label = PQgetvalue(rows, i, LABEL),
                                     .fence = number_at(rows, i, NUMBER) << MRT_SQL_FENCE_BITS,
                                     .place = granted ? 0 : ++waiting,
                                     .weight = weight,
                                     .capacity = capacity,
                                     .since_wall_ms = (int64_t)number_at(rows, i, SINCE)};
        if (callback(argument, &entry) != 0)
            return;
    }
}

/* Works until the request is done, which it is by the limits of the connection at the latest. */
static void wait_for(struct mrt_store *store, const struct mrt_pg_request *request)
{
    mrt_pg_turn(store, mrt_time_now());
    while (!request->done) {
        struct pollfd descriptor = {.fd = store->epoll, .events = POLLIN};
        mrt_time left = mrt_pg_next(store) - mrt_time_now();
        const struct timespec pause = {left > 0 ? left / MRT_SECOND : 0,
                                       left > 0 ? left % MRT_SECOND : 0};
        ppoll(&descriptor, 1, &pause, NULL);
        mrt_pg_turn(store, mrt_time_now());
    }
}

int mrt_pg_list(struct mrt_store *store, const char *name, const char *prefix,
                mortise_entry_callback callback, void *argument)
{
    struct mrt_pg_request *request = mrt_pg_request_new(MRT_PG_DO_LIST);
    if (!request)
        return MORTISE_ENOMEM;
    request->name = name;
    request->prefix = name || !prefix ? "" : prefix;
    mrt_pg_submit(store, request, mrt_time_now());
    wait_for(store, request);
    TAILQ_REMOVE(&store->outbox, request, link);
    int error = request->event.type == MRT_FAILED
                    ? mrt_error(request->event.error, "%s", request->detail)
                    : MORTISE_OK;
    if (error == MORTISE_OK && request->rows)
        show(request->rows, callback, argument);
    mrt_pg_request_free(request);
    if (!TAILQ_EMPTY(&store->outbox))
        store->sink.notify(store->sink.context);
    return error;
}
