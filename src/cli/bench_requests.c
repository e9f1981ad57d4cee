/*
 * How many requests and round trips an acquire and a release cost, on a lock that nobody else has.
 *
 * Each is followed by a pause, in which what it has sent without waiting arrives, and is counted
 * alone. A renewal of the session may fall among them, so of an odd number the middle one counts.
 */
#include "cli/bench.h"

#include <stdlib.h>
#include <time.h>

#define ROUNDS 9
#define PAUSE_NS 10000000

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
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    nanosleep(&pause, NULL);
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
