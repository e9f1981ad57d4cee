/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue that is not shared, for a host that lends its lock to others: lend.c.
 */
#ifndef MRT_CORE_LEND_H
#define MRT_CORE_LEND_H

#include "core/hold.h"
#include "core/waiter.h"

#include <stdbool.h>
#include <stdint.h>

struct mrt_engine;
struct mrt_queue;

/* Its ticket, and the first number of that; none: there is none, or it is not in the store's queue
   as far as is known. */
struct mrt_id mrt_queue_ticket(const struct mrt_queue *queue, uint64_t *fence);
/* The ticket that a change of the queue may remove; none: there is none. */
struct mrt_id mrt_queue_any_ticket(const struct mrt_queue *queue);
/* Whether its ticket waits in the store, as far as is known. */
bool mrt_queue_waits(const struct mrt_queue *queue);
/* Whether it is being removed: it may still be in the store. */
bool mrt_engine_is_leaving(struct mrt_engine *engine, struct mrt_id ticket);
/* The hold of a ticket; NULL: it has none. */
struct mrt_hold *mrt_engine_holder(struct mrt_engine *engine, struct mrt_id ticket);
/* The hold of the queue; NULL: there is none. */
struct mrt_hold *mrt_queue_holder(const struct mrt_queue *queue);
/* The first fence of the hold that a waiter in its queue will have by the present ticket: it and
   those ahead of it get them now, in their order. 0: the ticket is not granted, or has none left.
   Nobody may overtake them afterwards: the engine is strict. */
uint64_t mrt_waiter_reserve(struct mrt_waiter *waiter);
/* How many of this host are ahead of a waiter. */
uint64_t mrt_waiter_ahead(const struct mrt_waiter *waiter);
/* The next waiter behind this one, or behind the hold if it is none; NULL: there is none. */
struct mrt_waiter *mrt_queue_next_waiter(const struct mrt_queue *queue,
                                         const struct mrt_waiter *waiter);
/* Whether others are known to wait behind a hold, here or at the store. */
bool mrt_hold_has_others(const struct mrt_hold *hold);
/* The number of the newest request to give its ticket up; 0: none. */
uint64_t mrt_hold_revoked(const struct mrt_hold *hold);

#endif
