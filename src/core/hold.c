/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds: slots that say which owner has a lock, how deep it is nested, and with which fence.
 *
 * Invariant: a slot's generation grows each time it is given back, so a pair of
 * slot and generation that was released never matches again. A hold with a
 * ticket is held as long as the session is valid; one without a ticket is lost,
 * and stays so until its owner has released it as often as it acquired it.
 * The news of a hold comes in this order: HELD (SUSPENDED HELD)* [SUSPENDED] [LOST]. Requests to
 * give it up are reported in between, at any time before LOST, as often as they were made or
 * less often. A request that arrives before a listener registers is kept until then.
 *
 * A hold with an end (`ends`, max_hold) is lost by the clock from that moment on, like a hold
 * whose lease has run out; the timer only reports the loss and removes the ticket. The end is that
 * of the first acquire: nested ones do not move it. In the last tenth the holder is asked to give
 * it up, as by an operator. Threads: as core/engine.h.
 */
#include "core/hold.h"

#include "base/assert.h"
#include "core/agenda.h"
#include "core/engine_internal.h"
#include "core/policy.h"
#include "core/ticket.h"
#include "core/verify.h"

#include <stdlib.h>
#include <string.h>

static struct mrt_hold *new_slot(const struct mrt_engine_config *config)
{
    size_t size = sizeof(struct mrt_hold) + config->hold_host_size;
    if (config->take_slot)
        return config->take_slot(size);
    struct mrt_hold *hold = calloc(1, size);
    if (hold)
        hold->generation = 1;
    return hold;
}

struct mrt_hold *mrt_hold_take(struct mrt_engine *engine)
{
    struct mrt_hold *hold = TAILQ_FIRST(&engine->free_holds);
    if (hold) {
        TAILQ_REMOVE(&engine->free_holds, hold, link);
        MRT_ASSERT(!hold->queue && !hold->ticket && !hold->telling);
        return hold;
    }
    hold = new_slot(&engine->config);
    if (!hold)
        return NULL;
    hold->engine = engine;
    hold->host = hold + 1;
    hold->timer.kind = MRT_TIMER_HOLD;
    return hold;
}

void mrt_hold_free(struct mrt_hold *hold)
{
    if (hold->engine->config.give_back_slot)
        hold->engine->config.give_back_slot(hold);
    else
        free(hold);
}

static void give_up_ticket(struct mrt_hold *hold)
{
    if (!hold->ticket)
        return;
    mrt_heap_clear(&hold->engine->timers, &hold->timer);
    MRT_ASSERT(hold->ticket->holds > 0);
    hold->ticket->holds--;
    hold->ticket = NULL;
    if (hold->queue->active == hold)
        hold->queue->active = NULL;
}

/* Drops an undelivered revoke request. */
static void hush(struct mrt_hold *hold)
{
    if (hold->revoke_queued)
        TAILQ_REMOVE(&hold->engine->asked, hold, asked_link);
    hold->revoke_queued = false;
}

void mrt_hold_put(struct mrt_hold *hold)
{
    struct mrt_engine *engine = hold->engine;
    if (hold->queue) {
        struct mrt_queue *queue = hold->queue;
        TAILQ_REMOVE(&queue->holds, hold, link);
        give_up_ticket(hold);
        hold->queue = NULL;
        mrt_queue_put(queue);
        hold->generation++;
    }
    if (hold->telling) {
        TAILQ_REMOVE(&engine->told, hold, told_link);
        hold->telling = false;
    }
    hush(hold);
    MRT_ASSERT(!hold->queue && !hold->ticket);
    TAILQ_INSERT_HEAD(&engine->free_holds, hold, link);
}

static void begin_hold(struct mrt_hold *hold, struct mrt_ticket *ticket, uint64_t owner,
                       uint64_t weight)
{
    struct mrt_queue *queue = ticket->queue;
    MRT_ASSERT(!hold->queue && !hold->ticket);
    hold->queue = queue;
    hold->ticket = ticket;
    hold->owner = owner;
    hold->weight = weight;
    hold->count = 1;
    hold->told = MORTISE_HELD;
    memset(hold->host, 0, queue->engine->config.hold_host_size);
    hold->wants_revokes = false;
    hold->revoke_requested = ticket->revoked > 0;
    hold->ends = MRT_TIME_NEVER;
    ticket->holds++;
    TAILQ_INSERT_TAIL(&queue->holds, hold, link);
    mrt_queue_reference(queue);
}

/* No later ticket may have a smaller fence (ticket_answer.c). */
static void note_fence(const struct mrt_ticket *ticket, uint64_t fence)
{
    struct mrt_queue *queue = ticket->queue;
    if (fence > queue->floor)
        queue->floor = fence;
    if (ticket->weight == queue->recipe.capacity)
        queue->floor_alone = queue->floor;
    queue->floor_serial = queue->engine->serial;
    MRT_ASSERT(queue->floor_alone <= queue->floor);
}

void mrt_hold_limit(struct mrt_hold *hold, mrt_time longest, mrt_time now)
{
    if (longest <= 0)
        return;
    hold->ends = mrt_time_add(now, longest);
    mrt_heap_set(&hold->engine->timers, &hold->timer, hold->ends - longest / 10);
}

void mrt_waiter_take_fences(struct mrt_waiter *waiter, struct mrt_ticket *ticket)
{
    uint64_t left = ticket->fence_span - ticket->used, share = 1;
    MRT_ASSERT(ticket->used < ticket->fence_span);
    if (waiter->takes_share)
        share = mrt_engine_share(ticket->queue->engine, ticket->fence_span);
    waiter->fence = ticket->fence ? ticket->fence + ticket->used : 0;
    waiter->fence_span = share < left ? share : left;
    waiter->fence_of = ticket->fence;
    ticket->used += waiter->fence_span;
}

bool mrt_waiter_has_fence(const struct mrt_waiter *waiter, const struct mrt_ticket *ticket)
{
    return waiter->fence_of > 0 && waiter->fence_of == ticket->fence;
}

uint64_t mrt_engine_share(const struct mrt_engine *engine, uint64_t fence_span)
{
    uint32_t grants = engine->config.budget_count;
    uint64_t share = grants > 0 ? fence_span / grants : 0;
    return share > 0 ? share : 1;
}

void mrt_hold_begin(struct mrt_waiter *waiter, struct mrt_ticket *ticket, mrt_time now)
{
    struct mrt_hold *hold = waiter->hold;
    MRT_ASSERT(ticket->holds == 0 && !ticket->queue->active);
    if (!mrt_waiter_has_fence(waiter, ticket))
        mrt_waiter_take_fences(waiter, ticket);
    begin_hold(hold, ticket, waiter->owner, waiter->weight);
    mrt_hold_limit(hold, waiter->hold_max, now);
    hold->fence = waiter->fence;
    hold->fence_span = waiter->fence_span;
    note_fence(ticket, hold->fence ? hold->fence + hold->fence_span - 1 : 0);
    ticket->fresh = ticket->adopts = false;
    ticket->lingers = 0;
    if (!ticket->queue->recipe.shared)
        ticket->queue->active = hold;
}

void mrt_hold_join(struct mrt_hold *hold, const struct mrt_hold *first, uint64_t weight)
{
    MRT_ASSERT(first->ticket && weight < first->weight);
    begin_hold(hold, first->ticket, first->owner, weight);
    hold->fence = first->fence;
    hold->fence_span = first->fence_span;
    hold->ends = first->ends;
    if (hold->ends != MRT_TIME_NEVER)
        mrt_heap_set(&hold->engine->timers, &hold->timer, hold->ends);
}

void mrt_hold_tell(struct mrt_hold *hold, mortise_state state)
{
    MRT_ASSERT(hold->queue && hold->count > 0);
    struct mrt_engine *engine = hold->engine;
    if (hold->told == state || hold->told == MORTISE_LOST)
        return;
    hold->told = state;
    if (!hold->telling)
        TAILQ_INSERT_TAIL(&engine->told, hold, told_link);
    hold->telling = true;
}

struct mrt_hold *mrt_engine_next_told(struct mrt_engine *engine)
{
    struct mrt_hold *hold = TAILQ_FIRST(&engine->told);
    if (hold) {
        MRT_ASSERT(hold->queue && hold->telling);
        TAILQ_REMOVE(&engine->told, hold, told_link);
        hold->telling = false;
    }
    return hold;
}

/* Puts it into the list of holds to report, if it wants reports and is not there. */
static void queue_revoke(struct mrt_hold *hold)
{
    if (!hold->wants_revokes || !hold->revoke_requested || hold->revoke_queued)
        return;
    MRT_ASSERT(hold->ticket);
    hold->revoke_queued = true;
    TAILQ_INSERT_TAIL(&hold->engine->asked, hold, asked_link);
}

void mrt_hold_ask(struct mrt_hold *hold)
{
    hold->revoke_requested = true;
    queue_revoke(hold);
}

void mrt_engine_attend(struct mrt_hold *hold)
{
    if (hold->ticket)
        mrt_ticket_attend(hold->ticket);
}

void mrt_engine_listen(struct mrt_hold *hold, bool wants_revokes)
{
    hold->wants_revokes = wants_revokes && hold->ticket;
    if (hold->wants_revokes)
        queue_revoke(hold);
    else
        hush(hold);
    mrt_engine_attend(hold);
}

struct mrt_hold *mrt_engine_next_asked(struct mrt_engine *engine)
{
    struct mrt_hold *hold = TAILQ_FIRST(&engine->asked);
    if (hold) {
        MRT_ASSERT(hold->ticket); /* a lost hold has left the list */
        hush(hold);
        hold->revoke_requested = false;
    }
    return hold;
}

void mrt_hold_lose(struct mrt_hold *hold)
{
    give_up_ticket(hold);
    hush(hold);
    MRT_ASSERT(!hold->revoke_queued && hold->queue->active != hold);
    hold->engine->counters.losses++;
    mrt_hold_tell(hold, MORTISE_LOST);
}

static void expire(struct mrt_hold *hold, mrt_time now)
{
    struct mrt_queue *queue = hold->queue;
    struct mrt_ticket *ticket = hold->ticket;
    mrt_hold_lose(hold);
    if (ticket->holds == 0)
        mrt_ticket_end_verifiers(ticket, MORTISE_ELOST);
    queue->policy->released(ticket);
    mrt_queue_serve(queue, now);
}

void mrt_hold_check(struct mrt_hold *hold, mrt_time now)
{
    if (hold->ticket && now >= hold->ends)
        expire(hold, now);
    MRT_ASSERT(!hold->ticket || now < hold->ends);
}

void mrt_hold_timer(struct mrt_hold *hold, mrt_time now)
{
    mrt_hold_check(hold, now);
    if (!hold->ticket)
        return;
    mrt_hold_ask(hold);
    mrt_heap_set(&hold->engine->timers, &hold->timer, hold->ends);
}
struct mrt_hold *mrt_hold_of(struct mrt_queue *queue, uint64_t owner, uint64_t weight)
{
    struct mrt_hold *hold, *found = NULL;
    TAILQ_FOREACH (hold, &queue->holds, link)
        if (hold->owner == owner && (!found || hold->weight == weight))
            found = hold;
    return found;
}

void mrt_engine_each_hold(struct mrt_engine *engine, void (*visit)(struct mrt_hold *hold))
{
    struct mrt_queue *queue;
    struct mrt_hold *hold, *next;
    TAILQ_FOREACH (queue, &engine->queues, link)
        TAILQ_FOREACH_SAFE (hold, &queue->holds, link, next)
            visit(hold);
    TAILQ_FOREACH_SAFE (hold, &engine->free_holds, link, next)
        visit(hold);
}

bool mrt_hold_live(const struct mrt_hold *hold, uint64_t generation)
{
    return hold->queue && hold->generation == generation;
}

mrt_time mrt_hold_valid_until(const struct mrt_hold *hold)
{
    return hold->ticket ? mrt_time_min(hold->engine->session.valid_until, hold->ends) : 0;
}

mortise_state mrt_hold_state(const struct mrt_hold *hold, mrt_time now)
{
    if (now >= mrt_hold_valid_until(hold))
        return MORTISE_LOST;
    return hold->engine->session.suspended ? MORTISE_SUSPENDED : MORTISE_HELD;
}

bool mrt_hold_nested(const struct mrt_hold *hold, uint64_t generation)
{
    return mrt_hold_live(hold, generation) && hold->count > 1 &&
           mrt_hold_valid_until(hold) == MRT_TIME_NEVER;
}

struct mrt_id mrt_hold_ticket(const struct mrt_hold *hold, uint64_t *number)
{
    const struct mrt_ticket *ticket = hold->ticket;
    MRT_ASSERT(ticket->fence_span > 0);
    *number = ticket->number ? ticket->number : ticket->fence / ticket->fence_span;
    return hold->ticket->id;
}
