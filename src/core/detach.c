/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tickets that outlive their session: detaching and adopting.
 *
 * A hold is ended and its ticket left in the store, as nobody's, under a new identity that only the
 * detaching client knows. A client that has it makes the ticket its session's, and holds the lock
 * again. While it is nobody's no clock and no client's death ends it.
 *
 *   GRANTED -> LEAVING by DETACH, and its hold is at its end    (ticket.c repeats it)
 *   NEW by APPEND with `adopt` -> GRANTED -> (a hold as any)
 *
 * Invariants:
 *  - The hold ends when the detaching begins, so nothing is held by two.
 *  - A waiter that stops adopting leaves the ticket without a holder, whatever the store has done:
 * the engine removes only tickets that were held here.
 *  - Fences go on from the last hold's: where the ticket has no higher one, with the same.
 */
#include "core/detach.h"

#include "base/assert.h"
#include "core/agenda.h"
#include "core/engine_internal.h"
#include "core/hold.h"
#include "core/ticket.h"
#include "core/verify.h"
#include "core/waiter.h"

int mrt_detach_begin(struct mrt_hold *hold, struct mrt_id detached_id, struct mrt_waiter *waiter,
                     mrt_time now)
{
    if (!hold->ticket)
        return MORTISE_ELOST;
    if (hold->count > 1 || hold->ticket->holds > 1)
        return MORTISE_EINVALID;
    struct mrt_queue *queue = hold->queue;
    struct mrt_ticket *ticket = hold->ticket;
    mrt_waiter_begin(waiter, queue->engine, queue, now);
    mrt_hold_put(hold);
    MRT_ASSERT(ticket->state == MRT_TICKET_GRANTED && ticket->holds == 0);
    ticket->detached_id = detached_id;
    ticket->outcome_unknown = false;
    mrt_ticket_remove(ticket);
    mrt_ticket_verify(ticket, waiter);
    mrt_queue_serve(queue, now);
    return MORTISE_OK;
}

/* Whether this engine has adopted, or is adopting, the ticket that the waiter wants. */
static int look_here(struct mrt_queue *queue, const struct mrt_waiter *waiter)
{
    const struct mrt_ticket *known = mrt_engine_ticket(queue->engine, waiter->adopts);
    const struct mrt_waiter *other;
    TAILQ_FOREACH (other, &queue->waiters, link) {
        bool same = mrt_id_equal(other->adopts, waiter->adopts);
        if (same || (!mrt_id_none(other->adopts) && !queue->recipe.shared))
            return MORTISE_EBUSY; /* one of two tickets is gone, and it is unknown which */
    }
    if (known) /* adopted, perhaps being removed by now, or about to be adopted */
        return known->adopts ? MORTISE_EBUSY : MORTISE_ENOTHELD;
    bool held_here =
        !queue->recipe.shared && queue->ticket && queue->ticket->state == MRT_TICKET_GRANTED;
    return held_here ? MORTISE_ENOTHELD : MORTISE_OK;
}

void mrt_adopt_begin(struct mrt_waiter *waiter, mrt_time now)
{
    struct mrt_engine *engine = waiter->engine;
    struct mrt_queue *queue = waiter->queue;
    MRT_ASSERT(!mrt_id_none(waiter->adopts) && !waiter->try_only && !waiter->competes);
    waiter->error = engine->closing ? MORTISE_ECLOSED : look_here(queue, waiter);
    if (waiter->error == MORTISE_OK && !(waiter->hold = mrt_hold_take(engine)))
        waiter->error = MORTISE_ENOMEM;
    if (waiter->error != MORTISE_OK) {
        waiter->state = MRT_WAITER_DONE;
        return;
    }
    mrt_queue_enter(queue, waiter, true);
    if (!queue->recipe.shared && queue->ticket)
        mrt_ticket_remove(queue->ticket); /* it waits for the adoption */
    mrt_queue_serve(queue, now);
}
