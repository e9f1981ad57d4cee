/* SPDX-License-Identifier: Apache-2.0 */
/* OBSERVE: the first ticket of a queue and its value. The store listens first, then reads. */
#include "store/nats/answer.h"
#include "store/nats/command.h"
#include "store/nats/queue.h"

#include <stdlib.h>

static bool add_observer(struct mrt_nats_job *job)
{
    const struct mrt_command *command = &job->job.command;
    struct mrt_nats_observer *observer;
    TAILQ_FOREACH (observer, &job->queue->observers, link)
        if (mrt_id_equal(observer->id, command->ticket))
            return true;
    observer = calloc(1, sizeof *observer);
    if (!observer)
        return false;
    observer->until = mrt_time_add(mrt_time_now(), MRT_NATS_RECHECK_OBSERVED);
    observer->session = command->session;
    observer->id = command->ticket;
    TAILQ_INSERT_TAIL(&job->queue->observers, observer, link);
    return true;
}

static void seen(struct mrt_nats_walk *walk, const struct mrt_nats_reply *failure)
{
    struct mrt_nats_job *job = walk->argument;
    struct mrt_event *event = &job->job.event;
    const struct mrt_nats_entry *leader = walk->count > 0 ? &walk->entries[0] : NULL;
    if (failure) {
        mrt_nats_job_failed(job, failure);
        return;
    }
    size_t size = leader ? leader->value_size : 0;
    size = size > MORTISE_VALUE_MAX ? MORTISE_VALUE_MAX : size;
    bool fine = mrt_job_set_value(&job->job, size > 0 ? leader->value : "", size);
    event->fence = leader ? mrt_nats_fence(leader->sequence) : 0;
    event->recheck = MRT_NATS_RECHECK_OBSERVED;
    mrt_nats_answer(job, fine ? MRT_HOLDER : MRT_UNKNOWN);
}

void mrt_nats_observe(struct mrt_nats_job *job)
{
    if (!job->job.command.once) {
        if (!add_observer(job)) {
            mrt_nats_no_memory(job);
            return;
        }
        mrt_nats_queue_listen(job->queue);
    }
    struct mrt_nats_walk *walk = mrt_nats_job_walk(job, seen);
    walk->stops = walk->changes = walk->buries = true;
    walk->weight = UINT64_MAX; /* the first is in the way */
    mrt_nats_walk_begin(walk);
}
