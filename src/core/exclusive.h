/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy of a lock with one holder at a time: exclusive.c.
 */
#ifndef MRT_CORE_EXCLUSIVE_H
#define MRT_CORE_EXCLUSIVE_H

#include "core/policy.h"
#include "core/waiter.h"

extern const struct mrt_policy mrt_exclusive_policy;

/* Grants the lock to a newcomer, if this client has it, it is free, and the order allows it. */
bool mrt_exclusive_take(struct mrt_waiter *waiter, mrt_time now);
/* Grants the lock to a waiter that was woken for it, if it is still free, and removes the waiter
 * from the queue. */
bool mrt_exclusive_retake(struct mrt_waiter *waiter, mrt_time now);

#endif
