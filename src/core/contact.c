/*
 * Contact: since when the store owes an answer, and when those who wait for it give up.
 *
 * `silent_since` is when the oldest command was fetched that nothing has been answered since; 0:
 * none. An answer that the store made up, as it could not reach its server (UNKNOWN, or FAILED with
 * MORTISE_EUNREACHABLE), is none. So silence is only what followed a question, and a server that
 * is asked seldom is not taken for one that is away.
 *
 * An acquire that waits for the store gives up when it has waited, and the store been silent, for
 * config.give_up; one that waits for a holder in this process goes on. The timer is armed at most
 * once in that time, so a store that answers costs two stores of a number for each command.
 */
#include "core/parts.h"

static mrt_time due(const struct mrt_engine *engine, const struct mrt_waiter *waiter)
{
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
    if (engine->config.give_up == 0)
        return;
    if (engine->silent_since == 0)
        engine->silent_since = now;
    arm(engine, mrt_time_add(now, engine->config.give_up));
}

void mrt_contact_answered(struct mrt_engine *engine, const struct mrt_event *event, mrt_time now)
{
    bool silent = event->type == MRT_UNKNOWN ||
                  (event->type == MRT_FAILED && event->error == MORTISE_EUNREACHABLE);
    if (!silent)
        engine->silent_since = TAILQ_EMPTY(&engine->outstanding) ? 0 : now;
}

/* The next acquire of the queue that is to give up by now; *next: when the first of the others. */
static struct mrt_waiter *find_due(const struct mrt_queue *queue, mrt_time now, mrt_time *next)
{
    struct mrt_waiter *waiter;
    if (queue->active)
        return NULL; /* somebody here has it, and gives it to the next without the store */
    TAILQ_FOREACH (waiter, &queue->waiters, link) {
        mrt_time at = due(queue->engine, waiter);
        if (at <= now)
            return waiter;
        *next = mrt_time_min(*next, at);
    }
    return NULL;
}

void mrt_contact_timer(struct mrt_engine *engine, mrt_time now)
{
    struct mrt_queue *queue, *following; /* a queue that nothing refers to leaves the list */
    struct mrt_waiter *waiter;
    mrt_time next = mrt_time_add(now, engine->config.give_up); /* for those to come */
    if (engine->silent_since == 0)
        return;
    TAILQ_FOREACH_SAFE(queue, &engine->queues, link, following)
    while ((waiter = find_due(queue, now, &next)))
        mrt_engine_cancel(engine, waiter, MORTISE_EDISCONNECTED, now);
    arm(engine, next);
}
