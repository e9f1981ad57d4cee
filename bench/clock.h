/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of the measurements, and medians of what was measured. */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int compare_ns(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Sorts; microseconds. */
static inline double median_us(int64_t *ns, size_t count)
{
    qsort(ns, count, sizeof *ns, compare_ns);
    return (double)ns[count / 2] / 1000;
}

/* Prints the rate and the median of cycles that took these times, at least one, from `begin` to
   `end`. Sorts. */
static inline void print_cycles(int64_t *times, size_t count, int64_t begin, int64_t end)
{
    printf("{\"acquisitions_per_s\": %.1f, \"cycle_us\": %.2f}\n",
           (double)count / ((double)(end - begin) / 1e9), median_us(times, count));
}

#endif
