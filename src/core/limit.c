/*
 * Holds that end by themselves after a time (max_hold), however well their holder is.
 *
 * Invariant: such a hold is lost by the clock alone, from the moment `ends` on, as one whose
 * lease has run out; the timer only tells of it and gives the ticket back. The end is that of
 * the first acquire: nested ones do not move it. In the last tenth its holder is asked to give
 * it up, as by an operator.
 */
#include "core/engine_internal.h"

void mrt_hold_limit(struct mrt_hold *hold, mrt_time longest, mrt_time now)
{
    if (longest <= 0)
        return;
    hold->ends = mrt_time_add(now, longest);
    mrt_heap_set(&hold->engine->timers, &hold->timer, hold->ends - longest / 10);
}

static void expire(struct mrt_hold *hold, mrt_time now)
{
    struct mrt_queue *queue = hold->queue;
    struct mrt_ticket *ticket = hold->ticket;
    mrt_hold_lose(hold);
    if (ticket->holds == 0)
        mrt_ticket_end_verifiers(ticket, MORTISE_ELOST);
    if (queue->recipe.shared)
        mrt_shared_released(ticket);
    mrt_queue_serve(queue, now);
}

void mrt_hold_check(struct mrt_hold *hold, mrt_time now)
{
    if (hold->ticket && now >= hold->ends)
        expire(hold, now);
}

void mrt_hold_timer(struct mrt_hold *hold, mrt_time now)
{
    mrt_hold_check(hold, now);
    if (!hold->ticket)
        return;
    mrt_hold_ask(hold);
    mrt_heap_set(&hold->engine->timers, &hold->timer, hold->ends);
}
