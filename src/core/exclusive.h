/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy of a lock that one holds at a time: exclusive.c.
 */
#ifndef MRT_CORE_EXCLUSIVE_H
#define MRT_CORE_EXCLUSIVE_H

#include "core/policy.h"
#include "core/waiter.h"

extern const struct mrt_policy mrt_exclusive_policy;

/* Grants the lock to a newcomer, if it is here and free, and the order allows it. */
bool mrt_exclusive_take(struct mrt_waiter *waiter, mrt_time now);
/* Grants it to a waiter that was woken for it, if it is free still, and takes it out. */
bool mrt_exclusive_retake(struct mrt_waiter *waiter, mrt_time now);

#endif
