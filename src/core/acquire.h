/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acquires: acquire.c.
 */
#ifndef MRT_CORE_ACQUIRE_H
#define MRT_CORE_ACQUIRE_H

#include "core/hold.h"
#include "core/waiter.h"

struct mrt_queue;

/* Acquires again, without a look at the clock, if `owner` has the lock by a hold that no
   clock can end and may nest; else NULL: call mrt_engine_acquire. */
struct mrt_hold *mrt_engine_nest(struct mrt_queue *queue, uint64_t owner);
/* Changes the value of the ticket by which an acquire waits; it is copied. The store is told as
   often as it takes. 0, MORTISE_ENOMEM. */
int mrt_waiter_set_value(struct mrt_waiter *waiter, const void *value, size_t size);

/* ---------------------------------------------------- of core only */

/* The calls of the same names (calls.h), after the lease has been checked. */
void mrt_waiter_acquire(struct mrt_waiter *waiter, mrt_time now);
void mrt_waiter_retry(struct mrt_waiter *waiter, mrt_time now);
void mrt_waiter_cancel(struct mrt_waiter *waiter, int error, mrt_time now);

#endif
