/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ends of a queue's waiters and tickets, whatever its policy.
 *
 * The store's answers reach a queue here: a ticket is gone, overtaken, blocked or refused. So does
 * the end of a waiter without the lock. Which waiter is next is the policy's (core/policy.h).
 *
 * Invariant: a waiter that fails leaves no ticket of its own behind, and a hold whose ticket goes
 * is lost.
 * Threads: as core/engine.h.
 */
#include "core/queue.h"

#include "base/assert.h"
#include "core/engine_internal.h"
#include "core/hold.h"
#include "core/ticket.h"
#include "core/verify.h"
#include "core/waiter.h"

void mrt_queue_fail(struct mrt_waiter *waiter, int error)
{
    MRT_ASSERT(waiter->hold && waiter->state != MRT_WAITER_DONE);
    struct mrt_ticket *ticket = waiter->ticket;
    mrt_queue_unlink_waiter(waiter);
    mrt_hold_put(waiter->hold);
    waiter->hold = NULL;
    if (ticket) {
        mrt_queue_detach_waiter(ticket);
        mrt_ticket_remove(ticket);
    }
    mrt_waiter_end(waiter, error);
}

void mrt_queue_fail_all(struct mrt_queue *queue, int error)
{
    struct mrt_waiter *waiter;
    while ((waiter = TAILQ_FIRST(&queue->waiters)))
        mrt_queue_fail(waiter, error);
}

void mrt_queue_refused(struct mrt_ticket *ticket, int error, bool outcome_unknown)
{
    struct mrt_queue *queue = ticket->queue;
    struct mrt_waiter *own = mrt_queue_detach_waiter(ticket);
    bool was_try = ticket->try_only;
    struct mrt_waiter *head = TAILQ_FIRST(&queue->waiters);
    MRT_ASSERT(head); /* a ticket without a waiter is removed immediately */
    if (outcome_unknown)
        mrt_ticket_remove(ticket);
    else
        mrt_ticket_drop(ticket);
    if (own)
        mrt_queue_fail(own, error);
    else if (head->try_only == was_try) /* else the waiter that it was requested for has given up */
        mrt_queue_fail(head, error);
}

void mrt_queue_blocked(struct mrt_ticket *ticket)
{
    struct mrt_waiter *waiter = mrt_queue_detach_waiter(ticket), *next;
    if (waiter) {
        mrt_queue_fail(waiter, MORTISE_EBUSY);
        return;
    }
    TAILQ_FOREACH_SAFE (waiter, &ticket->queue->waiters, link, next)
        if (waiter->try_only)
            mrt_queue_fail(waiter, MORTISE_EBUSY);
}

static void lose_holds(struct mrt_ticket *ticket)
{
    struct mrt_hold *hold;
    TAILQ_FOREACH (hold, &ticket->queue->holds, link)
        if (hold->ticket == ticket)
            mrt_hold_lose(hold);
    MRT_ASSERT(ticket->holds == 0);
}

void mrt_queue_ticket_gone(struct mrt_ticket *ticket)
{
    MRT_ASSERT(mrt_ticket_in_queue(ticket));
    lose_holds(ticket);
    mrt_queue_detach_waiter(ticket);
    mrt_ticket_drop(ticket);
}

void mrt_queue_ticket_overtaken(struct mrt_ticket *ticket)
{
    MRT_ASSERT(ticket->state == MRT_TICKET_GRANTED);
    lose_holds(ticket);
    mrt_ticket_end_verifiers(ticket, MORTISE_ELOST);
    mrt_ticket_remove(ticket);
}
