/* SPDX-License-Identifier: Apache-2.0 */
/* How often each of the processes that contended had the lock, as members of a JSON object. */
#ifndef BENCH_SHARES_H
#define BENCH_SHARES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Memory of zeroes that forked processes share; ends the program if there is none. */
static inline void *shared_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        exit(1);
    return memory;
}

static inline void print_shares(const int64_t *counts, const int64_t *changes, int processes,
                                double seconds)
{
    int64_t total = 0, changed = 0, least = INT64_MAX, most = 0;
    for (int i = 0; i < processes; i++) {
        total += counts[i];
        changed += changes[i];
        least = counts[i] < least ? counts[i] : least;
        most = counts[i] > most ? counts[i] : most;
    }
    double mean = (double)(total > 0 ? total : 1) / processes;
    printf("\"acquisitions_per_s\": %.1f, \"handovers_per_s\": %.1f, \"share_min\": %.4f, "
           "\"share_max\": %.4f",
           (double)total / seconds, (double)changed / seconds, (double)least / mean,
           (double)most / mean);
}

#endif
