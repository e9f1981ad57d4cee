/*
 * Holds: slots that say who has a lock, how deep, and with which fence.
 *
 * Invariant: a slot's generation grows each time it is given back, so a pair of
 * slot and generation that was released never matches again. A hold with a
 * ticket is held as long as the session is valid; one without a ticket is lost,
 * and stays so until its owner has released it as often as he acquired it.
 * What is told of a hold is a word of: HELD (SUSPENDED HELD)* [SUSPENDED] [LOST].
 */
#include "base/assert.h"
#include "core/defect.h"
#include "core/parts.h"

#include <stdlib.h>

struct mrt_hold *mrt_hold_take(struct mrt_engine *engine)
{
    struct mrt_hold *hold = TAILQ_FIRST(&engine->free_holds);
    if (hold) {
        TAILQ_REMOVE(&engine->free_holds, hold, link);
        return hold;
    }
    hold = calloc(1, sizeof *hold);
    if (!hold)
        return NULL;
    hold->engine = engine;
    hold->generation = 1;
    hold->lost_fd = -1;
    return hold;
}

void mrt_hold_put(struct mrt_hold *hold)
{
    struct mrt_engine *engine = hold->engine;
    if (hold->queue) {
        struct mrt_queue *queue = hold->queue;
        TAILQ_REMOVE(&queue->holds, hold, link);
        hold->queue = NULL;
        mrt_queue_put(queue);
        hold->generation++;
    }
    if (hold->telling) {
        TAILQ_REMOVE(&engine->told, hold, told_link);
        hold->telling = false;
    }
    hold->ticket = NULL;
    TAILQ_INSERT_HEAD(&engine->free_holds, hold, link);
}

void mrt_hold_begin(struct mrt_hold *hold, struct mrt_ticket *ticket, uint64_t owner)
{
    struct mrt_queue *queue = ticket->queue;
    MRT_ASSERT(!hold->queue && !ticket->hold && !queue->active);
    MRT_ASSERT(ticket->used < ticket->fence_span || MRT_DEFECT(SPAN_OVERRUN));
    hold->queue = queue;
    hold->ticket = ticket;
    hold->owner = owner;
    hold->count = 1;
    hold->fence = ticket->fence + ticket->used++;
    if (MRT_DEFECT(FENCE_REPEATS))
        hold->fence = ticket->fence;
    hold->told = MORTISE_HELD;
    hold->callback = NULL;
    hold->argument = NULL;
    ticket->hold = hold;
    queue->active = hold;
    TAILQ_INSERT_TAIL(&queue->holds, hold, link);
    mrt_queue_reference(queue);
}

void mrt_hold_tell(struct mrt_hold *hold, mortise_state state)
{
    struct mrt_engine *engine = hold->engine;
    if ((hold->told == state && !MRT_DEFECT(TOLD_TWICE)) || hold->told == MORTISE_LOST)
        return;
    hold->told = state;
    if (!hold->telling)
        TAILQ_INSERT_TAIL(&engine->told, hold, told_link);
    hold->telling = true;
}

void mrt_hold_lose(struct mrt_hold *hold)
{
    MRT_ASSERT(hold->ticket && hold->queue->active == hold);
    hold->ticket->hold = NULL;
    hold->ticket = NULL;
    hold->queue->active = NULL;
    hold->engine->counters.losses++;
    if (!MRT_DEFECT(LOSS_NOT_TOLD))
        mrt_hold_tell(hold, MORTISE_LOST);
}

struct mrt_hold *mrt_hold_of(struct mrt_queue *queue, uint64_t owner)
{
    struct mrt_hold *hold;
    TAILQ_FOREACH (hold, &queue->holds, link)
        if (hold->owner == owner)
            return hold;
    return NULL;
}

struct mrt_hold *mrt_engine_next_hold(struct mrt_engine *engine, struct mrt_hold *previous)
{
    return previous ? TAILQ_NEXT(previous, link) : TAILQ_FIRST(&engine->free_holds);
}

bool mrt_hold_live(const struct mrt_hold *hold, uint64_t generation)
{
    if (MRT_DEFECT(STALE_RELEASE))
        return hold->queue;
    return hold->queue && hold->generation == generation;
}

mrt_time mrt_hold_valid_until(const struct mrt_hold *hold)
{
    return hold->ticket ? hold->engine->session.valid_until : 0;
}

mortise_state mrt_hold_state(const struct mrt_hold *hold, mrt_time now)
{
    if (now >= mrt_hold_valid_until(hold) && !(MRT_DEFECT(HELD_REMEMBERED) && hold->ticket))
        return MORTISE_LOST;
    return hold->engine->session.suspended ? MORTISE_SUSPENDED : MORTISE_HELD;
}

bool mrt_hold_nested(const struct mrt_hold *hold, uint64_t generation)
{
    return mrt_hold_live(hold, generation) && hold->count > 1 &&
           mrt_hold_valid_until(hold) == MRT_TIME_NEVER;
}

int mrt_engine_release(struct mrt_engine *engine, struct mrt_hold *hold, uint64_t generation,
                       uint64_t owner, mrt_time now)
{
    if (!mrt_hold_live(hold, generation))
        return MORTISE_ENOTHELD;
    if (owner && hold->owner && hold->owner != owner)
        return MORTISE_ENOTOWNER;
    mrt_session_check(engine, now);
    MRT_ASSERT(hold->count > 0);
    bool last = --hold->count == 0;
    if (!hold->ticket) {
        if (last)
            mrt_hold_put(hold);
        return MORTISE_ELOST;
    }
    if (!last && !MRT_DEFECT(NESTED_RELEASE))
        return MORTISE_OK;
    struct mrt_queue *queue = hold->queue;
    queue->active = NULL;
    hold->ticket->hold = NULL;
    mrt_hold_put(hold);
    mrt_queue_serve(queue, now);
    return MORTISE_OK;
}
