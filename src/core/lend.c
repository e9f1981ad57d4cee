/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The view that a host has of a queue whose lock it lends to others: the host agent, to programs.
 * Nothing here changes anything, but that waiters get their fences early if somebody wants to know
 * them. That is done once the ticket is granted: while it waits at the store, those who come and go
 * here would use up its fences before it has any turn.
 *
 * Threads: as core/engine.h.
 */
#include "core/lend.h"

#include "base/assert.h"
#include "core/engine_internal.h"
#include "core/queue.h"
#include "core/ticket.h"

static const struct mrt_id none;

struct mrt_id mrt_queue_ticket(const struct mrt_queue *queue, uint64_t *fence)
{
    const struct mrt_ticket *ticket = queue->ticket;
    MRT_ASSERT(!queue->recipe.shared);
    if (!ticket || ticket->state == MRT_TICKET_NEW)
        return none;
    *fence = ticket->fence;
    return ticket->id;
}

struct mrt_id mrt_queue_any_ticket(const struct mrt_queue *queue)
{
    return queue->ticket ? queue->ticket->id : none;
}

bool mrt_queue_waits(const struct mrt_queue *queue)
{
    return queue->ticket && queue->ticket->state == MRT_TICKET_WAITING;
}

struct mrt_hold *mrt_queue_holder(const struct mrt_queue *queue)
{
    return queue->active;
}

uint64_t mrt_waiter_reserve(struct mrt_waiter *waiter)
{
    struct mrt_ticket *ticket = waiter->queue->ticket;
    struct mrt_waiter *next;
    if (waiter->state == MRT_WAITER_DONE || !ticket || ticket->state != MRT_TICKET_GRANTED ||
        ticket->fresh || ticket->fence == 0)
        return 0;
    next = TAILQ_PREV(waiter, mrt_waiter_list, link);
    bool follows = !next || mrt_waiter_has_fence(next, ticket);
    for (next = follows ? waiter : TAILQ_FIRST(&waiter->queue->waiters);
         ticket->used < ticket->fence_span; next = TAILQ_NEXT(next, link)) {
        if (!mrt_waiter_has_fence(next, ticket))
            mrt_waiter_take_fences(next, ticket);
        if (next == waiter)
            break;
    }
    return mrt_waiter_has_fence(waiter, ticket) ? waiter->fence : 0;
}

bool mrt_engine_is_leaving(struct mrt_engine *engine, struct mrt_id id)
{
    const struct mrt_ticket *ticket = mrt_engine_ticket(engine, id);
    return ticket && ticket->state == MRT_TICKET_LEAVING;
}

struct mrt_hold *mrt_engine_holder(struct mrt_engine *engine, struct mrt_id id)
{
    const struct mrt_ticket *ticket = mrt_engine_ticket(engine, id);
    return ticket && ticket->holds > 0 ? ticket->queue->active : NULL;
}

uint64_t mrt_waiter_ahead(const struct mrt_waiter *waiter)
{
    const struct mrt_queue *queue = waiter->queue;
    const struct mrt_waiter *other;
    uint64_t ahead = queue->active != NULL;
    TAILQ_FOREACH (other, &queue->waiters, link) {
        if (other == waiter)
            break;
        ahead++;
    }
    return ahead;
}

struct mrt_waiter *mrt_queue_next_waiter(const struct mrt_queue *queue,
                                         const struct mrt_waiter *waiter)
{
    return waiter ? TAILQ_NEXT(waiter, link) : TAILQ_FIRST(&queue->waiters);
}

bool mrt_hold_has_others(const struct mrt_hold *hold)
{
    return !TAILQ_EMPTY(&hold->queue->waiters) || (hold->ticket && hold->ticket->others_behind);
}

uint64_t mrt_hold_revoked(const struct mrt_hold *hold)
{
    return hold->ticket ? hold->ticket->revoked : 0;
}
