/* SPDX-License-Identifier: Apache-2.0 */
/* Merging and reading histograms; adding is in the header, to be inlined. */
#include "cli/tools/histogram.h"

#include <stddef.h>

void mrt_histogram_merge(struct mrt_histogram *into, const struct mrt_histogram *from)
{
    for (size_t i = 0; i < MRT_HISTOGRAM_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
    into->total += from->total;
    if (from->largest > into->largest)
        into->largest = from->largest;
}

/* The middle of a bucket. */
static double middle(size_t bucket)
{
    if (bucket < 2 * MRT_HISTOGRAM_FINE)
        return (double)bucket;
    size_t power = bucket / MRT_HISTOGRAM_FINE - 1;
    uint64_t low = (uint64_t)(bucket % MRT_HISTOGRAM_FINE + MRT_HISTOGRAM_FINE) << power;
    return (double)low + (double)(UINT64_C(1) << power) / 2;
}

double mrt_histogram_quantile(const struct mrt_histogram *histogram, double quantile)
{
    uint64_t seen = 0;
    for (size_t i = 0; i < MRT_HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen > 0 && (double)seen >= quantile * (double)histogram->total)
            return middle(i);
    }
    return 0;
}
