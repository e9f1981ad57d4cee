/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters of a store's traffic with its server: requests, each of which is answered, and round
 * trips, which are times that it began to wait: requests that leave while others are under way
 * share one.
 *
 * Threads: one writes at a time, any may read; so a count costs a load and a store.
 */
#ifndef MRT_BASE_TRAFFIC_H
#define MRT_BASE_TRAFFIC_H

#include <stdatomic.h>
#include <stdint.h>

struct mrt_traffic {
    _Atomic uint64_t requests, round_trips;
    uint32_t under_way;
};

static inline void mrt_traffic_add(_Atomic uint64_t *count, uint64_t more)
{
    uint64_t before = atomic_load_explicit(count, memory_order_relaxed);
    atomic_store_explicit(count, before + more, memory_order_relaxed);
}

static inline void mrt_traffic_sent(struct mrt_traffic *traffic)
{
    mrt_traffic_add(&traffic->requests, 1);
    mrt_traffic_add(&traffic->round_trips, traffic->under_way++ == 0);
}

/* An answer, or that none will come. */
static inline void mrt_traffic_answered(struct mrt_traffic *traffic)
{
    traffic->under_way -= traffic->under_way > 0;
}

/* Adds the counts of another. */
static inline void mrt_traffic_sum(struct mrt_traffic *sum, const struct mrt_traffic *traffic)
{
    mrt_traffic_add(&sum->requests, atomic_load_explicit(&traffic->requests, memory_order_relaxed));
    mrt_traffic_add(&sum->round_trips,
                    atomic_load_explicit(&traffic->round_trips, memory_order_relaxed));
}

#endif
