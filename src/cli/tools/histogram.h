/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durations counted in buckets of a fixed relative width: 32 to a power of two,
 * so a quantile is exact to 3 %, and adding one costs a few nanoseconds. It is
 * plain memory, all zero when empty, and may be shared between processes; one
 * writer at a time.
 */
#ifndef MRT_CLI_TOOLS_HISTOGRAM_H
#define MRT_CLI_TOOLS_HISTOGRAM_H

#include <stdint.h>

#define MRT_HISTOGRAM_FINE 32
#define MRT_HISTOGRAM_BUCKETS (MRT_HISTOGRAM_FINE * 40) /* up to 2^44 ns: five hours */

struct mrt_histogram {
    uint64_t total;
    uint64_t largest;
    uint64_t buckets[MRT_HISTOGRAM_BUCKETS];
};

static inline uint32_t mrt_histogram_bucket(uint64_t value)
{
    if (value < MRT_HISTOGRAM_FINE)
        return (uint32_t)value;
    uint32_t power = 63 - (uint32_t)__builtin_clzll(value); /* at least 5 */
    uint32_t bucket =
        (power - 4) * MRT_HISTOGRAM_FINE + (uint32_t)(value >> (power - 5)) - MRT_HISTOGRAM_FINE;
    return bucket < MRT_HISTOGRAM_BUCKETS ? bucket : MRT_HISTOGRAM_BUCKETS - 1;
}

static inline void mrt_histogram_add(struct mrt_histogram *histogram, uint64_t value)
{
    histogram->buckets[mrt_histogram_bucket(value)]++;
    histogram->total++;
    if (value > histogram->largest)
        histogram->largest = value;
}

/* Adds all of `from` to `into`. */
void mrt_histogram_merge(struct mrt_histogram *into, const struct mrt_histogram *from);
/* The value that `quantile` (0 to 1) of all are no larger than, nearly; 0 if empty. */
double mrt_histogram_quantile(const struct mrt_histogram *histogram, double quantile);

#endif
