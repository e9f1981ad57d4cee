/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs from their answer to its delivery. Answers are gathered in the outbox while a call works,
 * and are delivered at its end, when nothing of the store is under way.
 *
 * replicas=N: a grant, a renewal and a durable hold are answered when so many replicas have them
 * (WAIT). WAIT also covers whatever this client wrote before, so nothing else needs it. The
 * connection waits with it; so long as half of what a reply may take.
 */
#include "store/redis/internal.h"

#include "base/assert.h"
#include "store/redis/resume.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define ANSWER_MIN (250 * MRT_MILLISECOND)

struct mrt_redis_job *mrt_redis_job_add(struct mrt_redis_store *store, enum mrt_redis_work work,
                                        struct mrt_redis_job *next)
{
    struct mrt_redis_job *job = calloc(1, sizeof *job);
    if (!job)
        return NULL;
    job->work = work;
    job->whole = true;
    job->since = next ? next->since : mrt_time_now();
    if (next)
        TAILQ_INSERT_BEFORE(next, job, link);
    else
        TAILQ_INSERT_TAIL(&store->sent, job, link);
    return job;
}

static void free_job(struct mrt_redis_job *job)
{
    free(job->value);
    free(job);
}

void mrt_redis_jobs_free(struct mrt_redis_jobs *jobs)
{
    struct mrt_redis_job *job;
    while ((job = TAILQ_FIRST(jobs))) {
        TAILQ_REMOVE(jobs, job, link);
        free_job(job);
    }
}

mrt_time mrt_redis_answer_limit(const struct mrt_redis_store *store)
{
    mrt_time quarter = store->address.session / 4;
    return quarter > ANSWER_MIN ? quarter : ANSWER_MIN;
}

/* ----------------------------------------------------------------- answers */

static bool needs_copies(const struct mrt_redis_store *store, const struct mrt_redis_job *job)
{
    if (store->address.replicas == 0 || job->stage != MRT_REDIS_ASKED)
        return false;
    return job->event.type == MRT_RENEWED ||
           (job->event.type == MRT_VIEW &&
            (job->command.type == MRT_APPEND || job->command.type == MRT_DETACH ||
             (job->attempt > 0 && job->event.fence > 0)));
}

static void wait_for_copies(struct mrt_redis_store *store, struct mrt_redis_job *job)
{
    char count[24], limit[24];
    snprintf(count, sizeof count, "%llu", (unsigned long long)store->address.replicas);
    snprintf(limit, sizeof limit, "%lld",
             (long long)(mrt_redis_answer_limit(store) / 2 / MRT_MILLISECOND));
    job->stage = MRT_REDIS_COPYING;
    job->since = mrt_time_now();
    TAILQ_INSERT_TAIL(&store->sent, job, link);
    mrt_redis_wire_words(&store->wire, "WAIT", count, limit, NULL);
    mrt_redis_wire_flush(&store->wire); /* if it has broken, that shows when it is read */
}

void mrt_redis_answer(struct mrt_redis_store *store, struct mrt_redis_job *job,
                      enum mrt_event_type type)
{
    MRT_ASSERT(job->work == MRT_REDIS_COMMAND);
    job->event.type = type;
    bool needs = needs_copies(store, job);
    if (needs && store->wire.state == MRT_REDIS_OPEN) {
        wait_for_copies(store, job);
        return;
    }
    job->event.type = needs ? MRT_UNKNOWN : type;
    job->event.serial = job->command.serial;
    job->event.session = job->command.session;
    job->event.ticket = job->command.ticket;
    TAILQ_INSERT_TAIL(&store->outbox, job, link);
}

void mrt_redis_fail(struct mrt_redis_store *store, struct mrt_redis_job *job, int error,
                    const char *format, ...)
{
    va_list arguments;
    int prefix = snprintf(job->detail, sizeof job->detail, "Redis: ");
    va_start(arguments, format);
    vsnprintf(job->detail + prefix, sizeof job->detail - (size_t)prefix, format, arguments);
    va_end(arguments);
    job->event.error = error;
    bool perhaps = job->repeated && job->stage == MRT_REDIS_ASKED && error != MORTISE_ELOST;
    mrt_redis_answer(store, job, perhaps ? MRT_UNKNOWN : MRT_FAILED);
}

struct mrt_event *mrt_redis_tell(struct mrt_redis_store *store, enum mrt_event_type type,
                                 struct mrt_id session, struct mrt_id ticket)
{
    struct mrt_redis_job *job = calloc(1, sizeof *job);
    if (!job)
        return NULL; /* an event that no command asked for may be lost */
    job->event.type = type;
    job->event.session = session;
    job->event.ticket = ticket;
    TAILQ_INSERT_TAIL(&store->outbox, job, link);
    return &job->event;
}

void mrt_redis_deliver(struct mrt_redis_store *store)
{
    struct mrt_redis_job *job;
    while ((job = TAILQ_FIRST(&store->outbox))) {
        TAILQ_REMOVE(&store->outbox, job, link);
        job->event.detail = job->detail[0] ? job->detail : NULL;
        mrt_redis_resume_delivered(store, &job->command, &job->event);
        store->sink.deliver(store->sink.context, &job->event);
        free_job(job);
    }
    mrt_notes_say(&store->notes);
}
