/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pairing heap of timers, earliest first; equal ones in the order they came.
 * Nodes are embedded in what they time, so nothing here allocates.
 */
#ifndef MRT_BASE_HEAP_H
#define MRT_BASE_HEAP_H

#include "base/time.h"

#include <stdbool.h>

struct mrt_timer {
    mrt_time at;
    uint64_t order;
    struct mrt_timer *child, *sibling, *previous; /* previous: elder sibling, or the parent */
    int kind; /* the owner's, to recognise the structure around the timer */
    bool armed;
};

struct mrt_heap {
    struct mrt_timer *root;
    uint64_t order;
};

/* Arms a timer, or moves an armed one. */
void mrt_heap_set(struct mrt_heap *heap, struct mrt_timer *timer, mrt_time at);
/* Disarms; a timer that is not armed is left as it is. */
void mrt_heap_clear(struct mrt_heap *heap, struct mrt_timer *timer);
/* MRT_TIME_NEVER if empty. */
mrt_time mrt_heap_next(const struct mrt_heap *heap);
/* Takes out the earliest timer if it is due, else NULL. */
struct mrt_timer *mrt_heap_pop(struct mrt_heap *heap, mrt_time now);

#endif
