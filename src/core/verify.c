/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verifying a hold at the store. The next look that is sent after a verification answers it,
 * whatever caused the look; so many verifications cost one look. A call that detaches a ticket
 * waits here too.
 *
 * Invariant: a ticket that is free has no verifiers: whatever ends it answers them first.
 * Threads: as core/engine.h.
 */
#include "core/verify.h"

#include "base/assert.h"
#include "core/engine_internal.h"

void mrt_ticket_verify(struct mrt_ticket *ticket, struct mrt_waiter *waiter)
{
    MRT_ASSERT(ticket->state == MRT_TICKET_GRANTED || ticket->state == MRT_TICKET_LEAVING);
    waiter->verifies = ticket;
    TAILQ_INSERT_TAIL(&ticket->verifiers, waiter, link);
    waiter->timer.kind = MRT_TIMER_WAITER;
    if (waiter->deadline != MRT_TIME_NEVER)
        mrt_heap_set(&ticket->queue->engine->timers, &waiter->timer, waiter->deadline);
}

void mrt_ticket_end_verifiers(struct mrt_ticket *ticket, int error)
{
    struct mrt_waiter *waiter;
    while ((waiter = TAILQ_FIRST(&ticket->verifiers))) {
        MRT_ASSERT(waiter->verifies == ticket);
        TAILQ_REMOVE(&ticket->verifiers, waiter, link);
        mrt_waiter_end(waiter, error);
    }
}

void mrt_ticket_verified(struct mrt_ticket *ticket, uint64_t asked)
{
    struct mrt_waiter *waiter, *next;
    TAILQ_FOREACH_SAFE (waiter, &ticket->verifiers, link, next) {
        if (waiter->after >= asked)
            continue;
        MRT_ASSERT(waiter->verifies == ticket);
        TAILQ_REMOVE(&ticket->verifiers, waiter, link);
        mrt_waiter_end(waiter, MORTISE_OK);
    }
}
