/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A waiter: one call of the program that waits, for a lock or for an answer of the store.
 *
 * Invariants:
 *  - A waiter that is DONE is in no list but `settled`, and its timer is off: its memory is its
 *    caller's again once mrt_engine_next_settled has returned it.
 *  - A waiter and the ticket that stands for it alone point to each other, or neither does.
 *  - A waiter that is in a queue refers to it, so the queue is not freed.
 * Threads: as core/engine.h.
 */
#include "core/waiter.h"

#include "base/assert.h"
#include "core/engine_internal.h"

void mrt_waiter_begin(struct mrt_waiter *waiter, struct mrt_engine *engine, struct mrt_queue *queue,
                      mrt_time now)
{
    waiter->state = MRT_WAITER_WAITING;
    waiter->error = MORTISE_OK;
    waiter->hold = NULL;
    waiter->fence_of = 0;
    waiter->engine = engine;
    waiter->queue = queue;
    waiter->since = now;
    waiter->weight = waiter->weight ? waiter->weight : 1;
}

void mrt_engine_settle(struct mrt_engine *engine, struct mrt_waiter *waiter)
{
    if (waiter->settled)
        return;
    waiter->settled = true;
    TAILQ_INSERT_TAIL(&engine->settled, waiter, settled_link);
}

struct mrt_waiter *mrt_engine_next_settled(struct mrt_engine *engine)
{
    struct mrt_waiter *waiter = TAILQ_FIRST(&engine->settled);
    if (waiter) {
        TAILQ_REMOVE(&engine->settled, waiter, settled_link);
        waiter->settled = false;
    }
    return waiter;
}

void mrt_waiter_end(struct mrt_waiter *waiter, int error)
{
    MRT_ASSERT(waiter->state != MRT_WAITER_DONE && !waiter->ticket);
    waiter->state = MRT_WAITER_DONE;
    waiter->error = error;
    mrt_waiter_unplace(waiter);
    mrt_heap_clear(&waiter->engine->timers, &waiter->timer);
    mrt_engine_settle(waiter->engine, waiter);
}

bool mrt_waiter_asks(const struct mrt_waiter *waiter)
{
    return waiter->verifies || waiter->request || !waiter->queue->active;
}

/* ------------------------------------------------------------ in a queue */

void mrt_queue_enter(struct mrt_queue *queue, struct mrt_waiter *waiter, bool first)
{
    MRT_ASSERT(waiter->queue == queue && waiter->hold);
    if (first)
        TAILQ_INSERT_HEAD(&queue->waiters, waiter, link);
    else
        TAILQ_INSERT_TAIL(&queue->waiters, waiter, link);
    mrt_queue_reference(queue);
    waiter->timer.kind = MRT_TIMER_WAITER;
    if (waiter->deadline != MRT_TIME_NEVER)
        mrt_heap_set(&queue->engine->timers, &waiter->timer, waiter->deadline);
}

void mrt_queue_unlink_waiter(struct mrt_waiter *waiter)
{
    struct mrt_queue *queue = waiter->queue;
    MRT_ASSERT(waiter->state != MRT_WAITER_DONE);
    TAILQ_REMOVE(&queue->waiters, waiter, link);
    mrt_heap_clear(&queue->engine->timers, &waiter->timer);
    mrt_queue_put(queue);
}

void mrt_queue_attach_waiter(struct mrt_ticket *ticket, struct mrt_waiter *waiter)
{
    MRT_ASSERT(!ticket->waiter && !waiter->ticket);
    ticket->waiter = waiter;
    waiter->ticket = ticket;
}

struct mrt_waiter *mrt_queue_detach_waiter(struct mrt_ticket *ticket)
{
    struct mrt_waiter *waiter = ticket->waiter;
    MRT_ASSERT(!waiter || waiter->ticket == ticket);
    if (waiter)
        waiter->ticket = NULL;
    ticket->waiter = NULL;
    return waiter;
}

/* ------------------------------------------------------------- its place */

void mrt_waiter_unplace(struct mrt_waiter *waiter)
{
    if (waiter->placing)
        TAILQ_REMOVE(&waiter->engine->placed, waiter, placed_link);
    waiter->placing = false;
}

void mrt_waiter_place(struct mrt_waiter *waiter, uint64_t place)
{
    MRT_ASSERT(waiter->state != MRT_WAITER_DONE);
    if (!waiter->wants_place || place == 0 || place == waiter->place)
        return;
    waiter->place = place;
    if (!waiter->placing)
        TAILQ_INSERT_TAIL(&waiter->engine->placed, waiter, placed_link);
    waiter->placing = true;
}

struct mrt_waiter *mrt_engine_next_placed(struct mrt_engine *engine)
{
    struct mrt_waiter *waiter = TAILQ_FIRST(&engine->placed);
    if (waiter)
        mrt_waiter_unplace(waiter);
    return waiter;
}

bool mrt_queue_wants_place(const struct mrt_ticket *ticket)
{
    const struct mrt_waiter *waiter;
    if (ticket->queue->recipe.shared)
        return ticket->waiter && ticket->waiter->wants_place;
    TAILQ_FOREACH (waiter, &ticket->queue->waiters, link)
        if (waiter->wants_place)
            return true;
    return false;
}

void mrt_queue_placed(struct mrt_ticket *ticket, uint64_t place)
{
    struct mrt_waiter *waiter;
    if (ticket->waiter)
        mrt_waiter_place(ticket->waiter, place);
    else
        TAILQ_FOREACH (waiter, &ticket->queue->waiters, link)
            mrt_waiter_place(waiter, place);
}
