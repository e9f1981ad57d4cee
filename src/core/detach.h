/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tickets that outlive their session: detach.c.
 */
#ifndef MRT_CORE_DETACH_H
#define MRT_CORE_DETACH_H

#include "core/hold.h"
#include "core/waiter.h"

/* The calls of the same names (calls.h), after the lease has been checked. */
int mrt_detach_begin(struct mrt_hold *hold, struct mrt_id detached_id, struct mrt_waiter *waiter,
                     mrt_time now);
void mrt_adopt_begin(struct mrt_waiter *waiter, mrt_time now);

#endif
