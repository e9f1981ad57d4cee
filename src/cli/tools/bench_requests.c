/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many requests and round trips an acquire and a release cost, on a lock that nobody else has.
 *
 * Each is followed by a pause, in which what it has sent without waiting arrives, and is counted
 * alone. A renewal of the session may fall among them, so of an odd number the middle one counts.
 *
 * The client has no thread: a process that has had one pays for locks in its C library ever after,
 * and so do its children, which are measured.
 */
#include "cli/tools/bench.h"

#include "base/time.h"

#include <poll.h>
#include <stdlib.h>

#define ROUNDS 9
#define PAUSE (10 * MRT_MILLISECOND)

static int by_value(const void *a, const void *b)
{
    const uint64_t *p = a, *q = b;
    return (*p > *q) - (*p < *q);
}

static uint64_t find_middle(uint64_t values[ROUNDS])
{
    qsort(values, ROUNDS, sizeof values[0], by_value);
    return values[ROUNDS / 2];
}

static int count(mortise_client *client, mortise_stats *stats)
{
    mrt_time until = mrt_time_add(mrt_time_now(), PAUSE);
    struct pollfd fd = {.fd = mortise_fd(client), .events = POLLIN};
    int64_t left_ms;
    while ((left_ms = mrt_time_left_ms(until, mrt_time_now())) > 0) {
        int next_ms = mortise_next_timeout_ms(client);
        poll(&fd, 1, next_ms >= 0 && next_ms < left_ms ? next_ms : (int)left_ms);
        mortise_process(client);
    }
    *stats = (mortise_stats){.size = sizeof *stats};
    return mortise_get_stats(client, stats);
}

int mrt_bench_count_requests(mortise_client *client, const char *name, struct mrt_bench_cost *cost)
{
    uint64_t counts[4][ROUNDS];
    mortise_stats before, held, after;
    mortise_lock *lock;
    int error = mortise_mutex_new(client, name, NULL, &lock);
    for (int i = -1; i < ROUNDS && !error; i++) { /* the first one opens the session */
        mortise_hold hold;
        error = count(client, &before);
        if (!error)
            error = mortise_acquire(lock, &hold);
        if (!error)
            error = count(client, &held);
        if (!error)
            error = mortise_release(hold);
        if (!error)
            error = count(client, &after);
        if (error || i < 0)
            continue;
        counts[0][i] = held.requests - before.requests;
        counts[1][i] = held.round_trips - before.round_trips;
        counts[2][i] = after.requests - held.requests;
        counts[3][i] = after.round_trips - held.round_trips;
    }
    if (error)
        return error;
    mortise_lock_free(lock);
    *cost = (struct mrt_bench_cost){find_middle(counts[0]), find_middle(counts[1]),
                                    find_middle(counts[2]), find_middle(counts[3])};
    return MORTISE_OK;
}
