/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise's exclusive lock, acquired and released for so long: bench_redis_claim SECONDS URL.
 * A release is waited for by the next acquire alone. Prints one JSON object.
 */
#include "../clock.h"
#include "mortise.h"

#include <stdlib.h>

#define TIMES_MAX 4000000

int main(int argc, char **argv)
{
    mortise_client *client;
    mortise_lock *lock;
    mortise_hold hold;
    if (argc != 3 || mortise_open(argv[2], NULL, &client) != MORTISE_OK ||
        mortise_exclusive_new(client, "claim", NULL, &lock) != MORTISE_OK)
        return 1;
    int64_t *times = calloc(TIMES_MAX, sizeof *times);
    int64_t begin = now_ns(), end = begin + (int64_t)(strtod(argv[1], NULL) * 1e9), done = begin;
    size_t cycles = 0;
    while (times && done < end && cycles < TIMES_MAX) {
        int64_t from = done;
        if (mortise_acquire(lock, &hold) != MORTISE_OK || mortise_release(hold) != MORTISE_OK)
            return 1;
        done = now_ns();
        times[cycles++] = done - from;
    }
    mortise_close(client);
    if (cycles == 0)
        return 1;
    print_cycles(times, cycles, begin, done);
    free(times);
    return 0;
}
