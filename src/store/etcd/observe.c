/* SPDX-License-Identifier: Apache-2.0 */
/* OBSERVE: the first key of a queue and its value. The leader may be another program's, such as
   etcdctl elect. */
#include "store/etcd/command.h"
#include "store/etcd/queue.h"
#include "store/etcd/reply.h"

#include <stdlib.h>

static bool add_observer(struct mrt_etcd_job *job, const struct mrt_etcd_entry *leader)
{
    const struct mrt_command *command = &job->job.command;
    struct mrt_etcd_observer *observer;
    TAILQ_FOREACH (observer, &job->queue->observers, link)
        if (mrt_id_equal(observer->id, command->ticket))
            break;
    if (!observer) {
        observer = calloc(1, sizeof *observer);
        if (!observer)
            return false;
        TAILQ_INSERT_TAIL(&job->queue->observers, observer, link);
    }
    observer->session = command->session;
    observer->id = command->ticket;
    observer->created = leader ? leader->created : 0;
    observer->modified = leader ? leader->modified : 0;
    return true;
}

static void seen(void *argument, const struct mrt_rest_reply *reply)
{
    struct mrt_etcd_job *job = argument;
    struct mrt_etcd_view view;
    struct mrt_event *event = &job->job.event;
    if (!mrt_etcd_job_done(job, reply))
        return;
    if (!mrt_etcd_queue_read(job->queue, reply->json, mrt_etcd_revision(reply->json), &view)) {
        mrt_etcd_answer(job, MRT_UNKNOWN);
        return;
    }
    struct mrt_etcd_queue *queue = job->queue;
    const struct mrt_etcd_entry *leader = view.count > 0 ? &view.entries[0] : NULL;
    size_t size = !leader ? 0 : leader->ours ? leader->ticket.value_size : leader->value_size;
    size = size > MORTISE_VALUE_MAX ? MORTISE_VALUE_MAX : size;
    bool fine = mrt_job_set_value(&job->job, leader ? leader->value : "", size) &&
                (job->job.command.once || add_observer(job, leader));
    event->fence = leader ? mrt_etcd_fence(leader) : 0;
    event->recheck = MRT_ETCD_RECHECK_WAITS;
    mrt_etcd_answer(job, fine ? MRT_HOLDER : MRT_UNKNOWN);
    mrt_etcd_queue_take(queue, &view);
}

void mrt_etcd_observe(struct mrt_etcd_job *job)
{
    mrt_etcd_look(job, seen);
}
