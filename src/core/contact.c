/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contact: since when the store owes an answer, when the program is told of that, and when acquires
 * that wait for the store give up.
 *
 * `silent_since` is when the oldest command was fetched since which no answer has come; 0:
 * none. An answer that the store made itself, because it could not reach its server (UNKNOWN, or
 * FAILED with MORTISE_EUNREACHABLE), does not count. Nor does STOPPED end a silence that was
 * reported: a store needs no server to end a session that has not begun. So silence only follows a
 * command, and a server that gets few commands does not count as unreachable.
 *
 * An acquire that waits for the store gives up when it has waited, and the store has been silent,
 * for config.give_up; one that waits for a holder in this process goes on. A silence of
 * config.notice is reported once, and so is its end. The timer is armed at most once in the shorter
 * of the two times, so a store that answers costs only two writes of a number for each command.
 *
 * An unsolicited event says that no server could be reached. A silence may end by itself, so such
 * an event only ends an acquire that does not wait, and a look at a leader.
 */
#include "core/contact.h"

#include "base/assert.h"
#include "core/acquire.h"
#include "core/engine_internal.h"
#include "core/request.h"

/* How long a silence may last before the engine acts; MRT_TIME_NEVER: for ever. */
static mrt_time shortest(const struct mrt_engine *engine)
{
    MRT_ASSERT(engine->config.give_up >= 0 && engine->config.notice >= 0);
    const struct mrt_engine_config *config = &engine->config;
    mrt_time give_up = config->give_up > 0 ? config->give_up : MRT_TIME_NEVER;
    return config->notice > 0 ? mrt_time_min(config->notice, give_up) : give_up;
}

static mrt_time due(const struct mrt_engine *engine, const struct mrt_waiter *waiter)
{
    MRT_ASSERT(engine->silent_since > 0);
    mrt_time since = waiter->since > engine->silent_since ? waiter->since : engine->silent_since;
    return mrt_time_add(since, engine->config.give_up);
}

static void arm(struct mrt_engine *engine, mrt_time at)
{
    if (!engine->contact.armed)
        mrt_heap_set(&engine->timers, &engine->contact, at);
}

void mrt_contact_asked(struct mrt_engine *engine, mrt_time now)
{
    mrt_time wait = shortest(engine);
    if (wait == MRT_TIME_NEVER)
        return;
    if (engine->silent_since == 0)
        engine->silent_since = now;
    arm(engine, mrt_time_add(now, wait));
    MRT_ASSERT(engine->contact.armed);
}

bool mrt_engine_has_contact(const struct mrt_engine *engine)
{
    return engine->away != engine->away_told;
}

bool mrt_engine_next_contact(struct mrt_engine *engine, bool *away)
{
    bool changed = mrt_engine_has_contact(engine);
    *away = engine->away_told = engine->away;
    MRT_ASSERT(!mrt_engine_has_contact(engine));
    return changed;
}

void mrt_contact_answered(struct mrt_engine *engine, const struct mrt_event *event, mrt_time now)
{
    MRT_ASSERT(event->serial > 0);
    bool silent = event->type == MRT_UNKNOWN ||
                  (event->type == MRT_FAILED && event->error == MORTISE_EUNREACHABLE);
    if (silent || (engine->away && event->type == MRT_STOPPED))
        return;
    engine->silent_since = TAILQ_EMPTY(&engine->outstanding) ? 0 : now;
    engine->away = false;
}

/* The next acquire of the queue whose time to give up has come; *next: the time of the first of the
 * others. */
static struct mrt_waiter *find_due(const struct mrt_queue *queue, mrt_time now, mrt_time *next)
{
    struct mrt_waiter *waiter;
    if (queue->active)
        return NULL; /* a holder here passes it to the next waiter without the store */
    TAILQ_FOREACH (waiter, &queue->waiters, link) {
        mrt_time at = due(queue->engine, waiter);
        if (at <= now)
            return waiter;
        *next = mrt_time_min(*next, at);
    }
    return NULL;
}

static mrt_time give_up_due(struct mrt_engine *engine, mrt_time now)
{
    struct mrt_queue *queue, *following; /* a queue that nothing refers to leaves the list */
    struct mrt_waiter *waiter;
    if (engine->config.give_up == 0)
        return MRT_TIME_NEVER;
    mrt_time next = mrt_time_add(now, engine->config.give_up); /* for later commands */
    TAILQ_FOREACH_SAFE (queue, &engine->queues, link, following)
        while ((waiter = find_due(queue, now, &next)))
            mrt_waiter_cancel(waiter, MORTISE_EDISCONNECTED, now);
    return next;
}

void mrt_contact_timer(struct mrt_engine *engine, mrt_time now)
{
    MRT_ASSERT(!engine->contact.armed);
    if (engine->silent_since == 0)
        return;
    mrt_time next = give_up_due(engine, now);
    if (engine->config.notice > 0 && !engine->away) {
        mrt_time at = mrt_time_add(engine->silent_since, engine->config.notice);
        if (at > now)
            next = mrt_time_min(next, at);
        else
            engine->away = true;
    }
    if (next != MRT_TIME_NEVER)
        arm(engine, next);
}

static struct mrt_waiter *find_try(const struct mrt_queue *queue)
{
    struct mrt_waiter *waiter;
    TAILQ_FOREACH (waiter, &queue->waiters, link)
        if (waiter->try_only)
            return waiter;
    return NULL;
}

void mrt_contact_refused(struct mrt_engine *engine, mrt_time now)
{
    struct mrt_queue *queue, *following;
    struct mrt_waiter *waiter;
    TAILQ_FOREACH_SAFE (queue, &engine->queues, link, following)
        while ((waiter = find_try(queue)))
            mrt_waiter_cancel(waiter, MORTISE_EDISCONNECTED, now);
    mrt_requests_refused(engine);
}
