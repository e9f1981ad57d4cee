/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of an engine that name a time: calls.c.
 */
#ifndef MRT_CORE_CALLS_H
#define MRT_CORE_CALLS_H

#include "base/id.h"
#include "core/hold.h"
#include "core/recipe.h"
#include "core/request.h"
#include "core/waiter.h"

struct mrt_engine;
struct mrt_queue;

/* The local tier of `name`, made at first use; give it back with mrt_queue_put.
   0, MORTISE_ENOMEM, or MORTISE_EMISMATCH if it is in use with another recipe: then
   *queue is that one, not taken. */
int mrt_engine_queue(struct mrt_engine *engine, const char *name, const struct mrt_recipe *recipe,
                     struct mrt_queue **queue);
/* Of a queue that is not shared: a ticket that nobody here wants is kept for so long, or until
   another client queues behind it. Applies to tickets that are queued from then on. */
void mrt_queue_linger(struct mrt_queue *queue, mrt_time longest);
/* Its tickets stay in the store for so long, at least, if the session dies while they hold. */
void mrt_queue_delay(struct mrt_queue *queue, mrt_time delay, mrt_time now);
const char *mrt_queue_name(const struct mrt_queue *queue);
const struct mrt_recipe *mrt_queue_recipe(const struct mrt_queue *queue);

/* Begins an acquire; it may be DONE on return (then it is not in the settled list). */
void mrt_engine_acquire(struct mrt_engine *engine, struct mrt_queue *queue,
                        struct mrt_waiter *waiter, mrt_time now);
/* A WOKEN waiter competes: DONE with the lock, or WAITING again at its place. */
void mrt_engine_retry(struct mrt_engine *engine, struct mrt_waiter *waiter, mrt_time now);
/* Ends an acquire with `error`; no effect on one that is DONE. It is DONE on return.
   MORTISE_ETIMEOUT becomes MORTISE_EDISCONNECTED if it is the store that has not answered. */
void mrt_engine_cancel(struct mrt_engine *engine, struct mrt_waiter *waiter, int error,
                       mrt_time now);
/* Begins to acquire by the ticket `adopts`, which was detached: MORTISE_ENOTHELD if there is none,
   MORTISE_EBUSY if this engine is adopting it already. If the waiter gives up, the ticket stays as
   it was. Else as mrt_engine_acquire; nobody is nested. */
void mrt_engine_adopt(struct mrt_engine *engine, struct mrt_queue *queue, struct mrt_waiter *waiter,
                      mrt_time now);

/* 0, MORTISE_ELOST, MORTISE_ENOTHELD, MORTISE_ENOTOWNER. `owner` 0: any owner. */
int mrt_engine_release(struct mrt_engine *engine, struct mrt_hold *hold, uint64_t generation,
                       uint64_t owner, mrt_time now);
/* Makes a hold lighter, as a writer's that goes on reading: it keeps its place and its fence.
   0, MORTISE_ELOST, MORTISE_ENOTHELD, MORTISE_ENOTOWNER, or MORTISE_EINVALID if it is not
   heavier than that. */
int mrt_engine_lighten(struct mrt_engine *engine, struct mrt_hold *hold, uint64_t generation,
                       uint64_t owner, uint64_t weight, mrt_time now);
/* Changes the value of the ticket that a hold has; it is copied. The store is told as often as it
   takes. 0, MORTISE_ENOMEM, MORTISE_ENOTHELD, MORTISE_ELOST. */
int mrt_hold_set_value(struct mrt_hold *hold, uint64_t generation, const void *value, size_t size,
                       mrt_time now);
/* Sets the end of a hold anew: it lasts at most so long from now. 0, MORTISE_ENOTHELD,
   MORTISE_ELOST. */
int mrt_hold_extend(struct mrt_hold *hold, uint64_t generation, mrt_time longest, mrt_time now);
/* Ends a hold whose ticket goes on without it, and without the session, as `detached_id`. `waiter`
   is DONE when the store has said so, or with MORTISE_ELOST, or MORTISE_EUNKNOWN if the session has
   ended and nobody can tell; cancel it as an acquire. The same, and `waiter` not used:
   MORTISE_ENOTHELD, MORTISE_ENOTOWNER, MORTISE_ELOST; MORTISE_EINVALID: held more than once. */
int mrt_engine_detach(struct mrt_engine *engine, struct mrt_hold *hold, uint64_t generation,
                      uint64_t owner, struct mrt_id detached_id, struct mrt_waiter *waiter,
                      mrt_time now);
/* Asks the store whether the hold is there; `waiter` is DONE with 0 or
   MORTISE_ELOST. Cancel it as an acquire. */
void mrt_engine_verify(struct mrt_engine *engine, struct mrt_hold *hold, struct mrt_waiter *waiter,
                       mrt_time now);

/* Asks the store: `wanted` is an OBSERVE (once), a CELL_GET or a CELL_SET with its name, and
   value, version and fence if it has them; all is copied. `waiter` is DONE when *answer is
   filled, or with an error; a CELL_SET that may have been done, with MORTISE_EUNKNOWN.
   Cancel it as an acquire. */
void mrt_engine_request(struct mrt_engine *engine, const struct mrt_command *wanted,
                        struct mrt_answer *answer, struct mrt_waiter *waiter, mrt_time now);

#endif
