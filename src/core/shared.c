/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy of what several may hold at once: semaphores, read/write locks.
 *
 * Each waiter has a ticket of its own, appended in the order they came, so the store's
 * one order is the order of this process too, and nothing is decided here. A ticket that
 * is granted becomes its waiter's hold; with its last hold it is removed.
 *
 * A writer that also reads has two holds in one ticket. When the writing one goes first
 * the ticket becomes as light as the other: it keeps its place, so a writer that queues
 * behind does not come in between.
 * Threads: as core/engine.h.
 */
#include "core/shared.h"

#include "base/assert.h"
#include "core/engine_internal.h"
#include "core/hold.h"
#include "core/policy.h"
#include "core/queue.h"
#include "core/session.h"
#include "core/ticket.h"
#include "core/waiter.h"

static void grant(struct mrt_waiter *waiter, mrt_time now)
{
    struct mrt_ticket *ticket = waiter->ticket;
    /* A ticket gets its hold in the step that grants it, and each step checks the lease first. */
    MRT_ASSERT(now < waiter->queue->engine->session.valid_until);
    mrt_queue_detach_waiter(ticket);
    mrt_queue_unlink_waiter(waiter);
    waiter->queue->engine->counters.acquisitions++;
    mrt_hold_begin(waiter, ticket, now);
    mrt_waiter_end(waiter, MORTISE_OK);
}

static void ask_for_ticket(struct mrt_waiter *waiter)
{
    MRT_ASSERT(!waiter->ticket);
    struct mrt_ticket *ticket = mrt_ticket_append(waiter->queue, waiter);
    if (!ticket) {
        mrt_queue_fail(waiter, MORTISE_ENOMEM);
        return;
    }
    mrt_queue_attach_waiter(ticket, waiter);
    ticket->command.wants_place = waiter->wants_place; /* the command is still in the outbox */
}

static void serve(struct mrt_queue *queue, mrt_time now)
{
    MRT_ASSERT(!queue->ticket && !queue->active);
    struct mrt_engine *engine = queue->engine;
    struct mrt_waiter *waiter, *next;
    TAILQ_FOREACH_SAFE (waiter, &queue->waiters, link, next) {
        if (!waiter->ticket && engine->session.state != MRT_SESSION_LIVE)
            mrt_session_need(engine);
        else if (!waiter->ticket &&
                 queue->removals_pending == 0) /* else it might wait for our own last ticket */
            ask_for_ticket(waiter);
        else if (waiter->ticket && waiter->ticket->state == MRT_TICKET_GRANTED)
            grant(waiter, now);
    }
}

/* There are no turns. */
static void granted(struct mrt_queue *queue, mrt_time now)
{
    (void)now;
    MRT_ASSERT(!queue->active);
}

/* A hold of the ticket has gone or become lighter. */
static void released(struct mrt_ticket *ticket)
{
    const struct mrt_hold *hold;
    uint64_t heaviest = 0;
    TAILQ_FOREACH (hold, &ticket->queue->holds, link)
        if (hold->ticket == ticket && hold->weight > heaviest)
            heaviest = hold->weight;
    MRT_ASSERT(heaviest <= ticket->weight);
    if (heaviest == 0)
        mrt_ticket_remove(ticket);
    else
        mrt_ticket_lighten(ticket, heaviest);
}

const struct mrt_policy mrt_shared_policy = {serve, granted, released};
