/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acquires: how one begins, is tried again when it was woken, and is given up.
 *
 * Invariant: an acquire that is not DONE is in its queue, with the slot of its hold taken, so that
 * a grant cannot fail for want of memory; one that fails gives the slot back.
 * Threads: as core/engine.h.
 */
#include "core/acquire.h"

#include "base/assert.h"
#include "core/agenda.h"
#include "core/engine_internal.h"
#include "core/exclusive.h"
#include "core/hold.h"
#include "core/queue.h"
#include "core/request.h"
#include "core/session.h"
#include "core/ticket.h"
#include "core/waiter.h"

/* Acquires again in a hold of the same owner, with the same weight or less. */
static void nest(struct mrt_engine *engine, struct mrt_waiter *waiter, struct mrt_hold *hold)
{
    MRT_ASSERT(hold->queue == waiter->queue && hold->count > 0);
    bool heavier = waiter->weight > hold->weight;
    waiter->state = MRT_WAITER_DONE;
    if (!hold->ticket) {
        waiter->error = MORTISE_ELOST;
    } else if (!waiter->queue->recipe.reentrant || heavier) {
        waiter->error = MORTISE_EDEADLOCK;
    } else if (waiter->weight == hold->weight) {
        hold->count++;
        waiter->hold = hold;
    } else if ((waiter->hold = mrt_hold_take(engine))) {
        mrt_hold_join(waiter->hold, hold, waiter->weight);
    } else {
        waiter->error = MORTISE_ENOMEM;
    }
    if (waiter->error == MORTISE_OK)
        engine->counters.nested++;
}

struct mrt_hold *mrt_engine_nest(struct mrt_queue *queue, uint64_t owner)
{
    struct mrt_hold *hold = queue->active;
    if (!hold || !owner || hold->owner != owner || !queue->recipe.reentrant ||
        mrt_hold_valid_until(hold) != MRT_TIME_NEVER)
        return NULL;
    MRT_ASSERT(hold->ticket == queue->ticket && hold->count > 0);
    hold->count++;
    queue->engine->counters.nested++;
    return hold;
}

/* tickets_max, if the client has as many tickets and an acquire here needs another; else 0. */
static uint64_t reached_limit(const struct mrt_engine *engine, const struct mrt_queue *queue)
{
    MRT_ASSERT(!queue->ticket || !queue->recipe.shared);
    uint64_t max = engine->config.tickets_max;
    bool needs_another = queue->recipe.shared || !queue->ticket;
    return needs_another && HASH_COUNT(engine->tickets_by_id) >= max ? max : 0;
}

void mrt_waiter_acquire(struct mrt_waiter *waiter, mrt_time now)
{
    MRT_ASSERT(waiter->state == MRT_WAITER_WAITING && !waiter->hold);
    struct mrt_engine *engine = waiter->engine;
    struct mrt_queue *queue = waiter->queue;
    struct mrt_hold *own = waiter->owner ? mrt_hold_of(queue, waiter->owner, waiter->weight) : NULL;
    if (own)
        mrt_hold_check(own, now);
    if (engine->closing)
        waiter->error = MORTISE_ECLOSED;
    else if (own)
        nest(engine, waiter, own);
    else if ((waiter->limit = reached_limit(engine, queue)) > 0)
        waiter->error = MORTISE_EFULL;
    else if (!(waiter->hold = mrt_hold_take(engine)))
        waiter->error = MORTISE_ENOMEM;
    if (waiter->error != MORTISE_OK || own) {
        waiter->state = MRT_WAITER_DONE;
        return;
    }
    bool others = queue->ticket || !TAILQ_EMPTY(&queue->waiters);
    if (mrt_exclusive_take(waiter, now)) {
        waiter->state = MRT_WAITER_DONE;
    } else if (waiter->try_only && others && !queue->recipe.shared) {
        mrt_hold_put(waiter->hold);
        waiter->hold = NULL;
        waiter->error = MORTISE_EBUSY;
        waiter->state = MRT_WAITER_DONE;
    } else {
        mrt_queue_enter(queue, waiter, false);
        mrt_queue_serve(queue, now);
    }
}

void mrt_waiter_retry(struct mrt_waiter *waiter, mrt_time now)
{
    MRT_ASSERT(waiter->state == MRT_WAITER_WAITING && waiter->hold);
    if (mrt_exclusive_retake(waiter, now))
        waiter->state = MRT_WAITER_DONE;
    else
        mrt_queue_serve(waiter->queue, now);
}

int mrt_waiter_set_value(struct mrt_waiter *waiter, const void *value, size_t size)
{
    MRT_ASSERT(!waiter->ticket || waiter->ticket->waiter == waiter);
    waiter->value = value;
    waiter->value_size = size;
    return waiter->ticket ? mrt_ticket_set_value(waiter->ticket, value, size) : MORTISE_OK;
}

/* Whether an acquire has failed because the store does not answer: a try waits for nothing else. */
static bool is_adrift(const struct mrt_waiter *waiter)
{
    const struct mrt_ticket *ticket = waiter->ticket ? waiter->ticket : waiter->queue->ticket;
    return waiter->try_only || mrt_session_unreachable(waiter->engine) ||
           (ticket && ticket->unreachable);
}

void mrt_waiter_cancel(struct mrt_waiter *waiter, int error, mrt_time now)
{
    if (waiter->state == MRT_WAITER_DONE)
        return;
    if (waiter->request) {
        mrt_request_cancel(waiter, error);
        return;
    }
    if (waiter->verifies) {
        TAILQ_REMOVE(&waiter->verifies->verifiers, waiter, link);
        mrt_waiter_end(waiter, error);
        return;
    }
    MRT_ASSERT(waiter->hold); /* its slot, since it began */
    struct mrt_queue *queue = waiter->queue;
    if (error == MORTISE_ETIMEOUT && is_adrift(waiter))
        error = MORTISE_EDISCONNECTED;
    mrt_queue_fail(waiter, error);
    mrt_queue_serve(queue, now);
}
