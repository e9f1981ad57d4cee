/* SPDX-License-Identifier: Apache-2.0 */
/* See answer.h. A job that is answered is its outbox's: no line here uses it afterwards. */
#include "store/nats/answer.h"

#include "store/nats/queue.h"

#include <stdlib.h>

void mrt_nats_job_clear(struct mrt_nats_job *job)
{
    if (job->again > 0)
        TAILQ_REMOVE(&job->store->pauses, job, pause);
    job->again = 0;
    mrt_nats_walk_free(&job->walk);
    free(job->session);
    job->session = NULL;
}

void mrt_nats_jobs_free(struct mrt_jobs *jobs)
{
    struct mrt_job *job;
    TAILQ_FOREACH (job, jobs, link)
        mrt_nats_job_clear((struct mrt_nats_job *)job);
    mrt_jobs_free(jobs);
}

/* The queue's next command may begin. */
static void leave(struct mrt_nats_job *job)
{
    mrt_nats_job_clear(job);
    if (job->queue)
        mrt_nats_queue_leave(job->queue, job);
    else
        TAILQ_REMOVE(&job->store->jobs, &job->job, link);
}

void mrt_nats_answer(struct mrt_nats_job *job, enum mrt_event_type type)
{
    leave(job);
    mrt_outbox_answer(&job->store->outbox, &job->job, type);
}

void mrt_nats_fail(struct mrt_nats_job *job, int error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    mrt_job_set_detail_list(&job->job, "NATS: ", format, arguments);
    va_end(arguments);
    leave(job);
    mrt_outbox_fail(&job->store->outbox, &job->job, error);
}

void mrt_nats_refuse(struct mrt_nats_job *job)
{
    leave(job);
    mrt_outbox_refuse(&job->store->outbox, &job->job);
}

void mrt_nats_no_memory(struct mrt_nats_job *job)
{
    static const struct mrt_nats_reply reply = {
        .outcome = MRT_NATS_REFUSED, .error = MORTISE_ENOMEM, .text = "no memory for a request"};
    mrt_nats_job_failed(job, &reply);
}

void mrt_nats_job_failed(struct mrt_nats_job *job, const struct mrt_nats_reply *reply)
{
    const char *text = reply->text ? reply->text : "the answer is malformed";
    bool refused = reply->outcome == MRT_NATS_REFUSED || reply->outcome == MRT_NATS_AWAY;
    if (refused && !job->unknown) {
        mrt_nats_fail(job, reply->error, "%s", text);
        return;
    }
    mrt_job_set_detail(&job->job, "NATS: %s", text);
    mrt_note(&job->store->notes, MRT_NATS_NOTE_REPLY, "%s", text);
    mrt_nats_answer(job, MRT_UNKNOWN);
}

/* ------------------------------------------------------------------- pauses */

void mrt_nats_job_pause(struct mrt_nats_job *job, mrt_time pause,
                        void (*resume)(struct mrt_nats_job *job))
{
    job->again = mrt_time_add(mrt_time_now(), pause);
    job->resume = resume;
    TAILQ_INSERT_TAIL(&job->store->pauses, job, pause);
}

void mrt_nats_pauses_tick(struct mrt_nats_store *store, mrt_time now)
{
    struct mrt_nats_job *job = TAILQ_FIRST(&store->pauses), *after;
    for (; job; job = after) {
        after = TAILQ_NEXT(job, pause);
        if (job->again > now)
            continue;
        TAILQ_REMOVE(&store->pauses, job, pause);
        job->again = 0;
        job->resume(job);
        after = TAILQ_FIRST(&store->pauses);
    }
}

struct mrt_nats_walk *mrt_nats_job_walk(struct mrt_nats_job *job,
                                        void (*done)(struct mrt_nats_walk *walk,
                                                     const struct mrt_nats_reply *failure))
{
    mrt_nats_walk_free(&job->walk);
    job->walk = (struct mrt_nats_walk){.wire = &job->store->wire,
                                       .token = job->queue->token,
                                       .self = job->job.command.session,
                                       .knows = mrt_nats_session_knows,
                                       .judge_again = MRT_TIME_NEVER,
                                       .done = done,
                                       .argument = job};
    return &job->walk;
}
