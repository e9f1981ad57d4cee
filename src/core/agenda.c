/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queues of an engine: which are in use, and the call that serves one by its policy.
 *
 * Invariant: a queue with references is in `queues`; one without has neither waiters, holds nor
 * tickets and is in `unused`. It is freed only between calls (mrt_engine_next_command), so a
 * pointer to a queue stays valid during a call whatever the call ends.
 * Threads: as core/engine.h.
 */
#include "core/agenda.h"

#include "base/assert.h"
#include "core/engine_internal.h"
#include "core/policy.h"

#include <stdlib.h>

void mrt_queue_reference(struct mrt_queue *queue)
{
    if (queue->references++ > 0)
        return;
    struct mrt_engine *engine = queue->engine;
    TAILQ_REMOVE(&engine->unused, queue, link);
    TAILQ_INSERT_TAIL(&engine->queues, queue, link);
}

void mrt_queue_put(struct mrt_queue *queue)
{
    MRT_ASSERT(queue->references > 0);
    if (--queue->references > 0)
        return;
    struct mrt_engine *engine = queue->engine;
    TAILQ_REMOVE(&engine->queues, queue, link);
    TAILQ_INSERT_TAIL(&engine->unused, queue, link);
}

void mrt_queue_free(struct mrt_queue *queue)
{
    MRT_ASSERT(queue->references == 0 && TAILQ_EMPTY(&queue->tickets));
    struct mrt_engine *engine = queue->engine;
    TAILQ_REMOVE(&engine->unused, queue, link);
    HASH_DEL(engine->queues_by_name, queue);
    free(queue);
}

void mrt_queue_serve(struct mrt_queue *queue, mrt_time now)
{
    MRT_ASSERT(!queue->active || queue->active->ticket == queue->ticket);
    queue->policy->serve(queue, now);
}
