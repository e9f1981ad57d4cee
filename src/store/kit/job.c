/* SPDX-License-Identifier: Apache-2.0 */
/* See job.h. */
#include "store/kit/job.h"

#include "base/assert.h"
#include "store/kit/refusal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- a job */

void *mrt_job_new(size_t size, const struct mrt_command *command)
{
    MRT_ASSERT(size >= sizeof(struct mrt_job));
    struct mrt_job *job = calloc(1, size);
    if (job && command)
        job->command = *command;
    return job;
}

void mrt_job_free(struct mrt_job *job)
{
    if (job)
        free(job->value);
    free(job);
}

void mrt_jobs_free(struct mrt_jobs *jobs)
{
    struct mrt_job *job;
    while ((job = TAILQ_FIRST(jobs))) {
        TAILQ_REMOVE(jobs, job, link);
        mrt_job_free(job);
    }
}

bool mrt_job_set_value(struct mrt_job *job, const void *bytes, size_t size)
{
    void *copy = malloc(size + 1); /* a value of no bytes is a value, too */
    free(job->value);
    job->event.value = job->value = copy;
    job->event.value_size = copy ? size : 0;
    if (copy && size > 0)
        memcpy(copy, bytes, size);
    return copy;
}

bool mrt_job_set_event(struct mrt_job *job, const struct mrt_event *event)
{
    job->event = *event;
    job->event.detail = NULL;
    snprintf(job->detail, sizeof job->detail, "%s", event->detail ? event->detail : "");
    return !event->value || mrt_job_set_value(job, event->value, event->value_size);
}

void mrt_job_set_detail_list(struct mrt_job *job, const char *prefix, const char *format,
                             va_list list)
{
    char text[MRT_JOB_DETAIL_SIZE];
    vsnprintf(text, sizeof text, format, list);
    int length = snprintf(job->detail, sizeof job->detail, "%s", prefix);
    MRT_ASSERT(length >= 0 && (size_t)length < sizeof job->detail);
    snprintf(job->detail + length, sizeof job->detail - (size_t)length, "%s", text);
}

void mrt_job_set_detail(struct mrt_job *job, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    mrt_job_set_detail_list(job, "", format, list);
    va_end(list);
}

void mrt_job_deliver(struct mrt_job *job, const struct mrt_sink *sink)
{
    enum mrt_event_type type = job->event.type;
    bool fails = type == MRT_FAILED || type == MRT_UNKNOWN || type == MRT_SESSION_LOST;
    job->event.detail = fails && job->detail[0] ? job->detail : NULL;
    sink->deliver(sink->context, &job->event);
}

/* -------------------------------------------------------------- the outbox */

void mrt_outbox_init(struct mrt_outbox *outbox, struct mrt_sink sink)
{
    TAILQ_INIT(&outbox->jobs);
    outbox->sink = sink;
}

void mrt_outbox_free(struct mrt_outbox *outbox)
{
    mrt_jobs_free(&outbox->jobs);
}

void mrt_outbox_answer(struct mrt_outbox *outbox, struct mrt_job *job, enum mrt_event_type type)
{
    job->event.type = type;
    job->event.serial = job->command.serial;
    job->event.session = job->command.session;
    job->event.ticket = job->command.ticket;
    TAILQ_INSERT_TAIL(&outbox->jobs, job, link);
}

void mrt_outbox_fail(struct mrt_outbox *outbox, struct mrt_job *job, int error)
{
    MRT_ASSERT(error != MORTISE_OK);
    job->event.error = error;
    mrt_outbox_answer(outbox, job, MRT_FAILED);
}

void mrt_outbox_refuse(struct mrt_outbox *outbox, struct mrt_job *job)
{
    const struct mrt_event event = mrt_answer_ended(&job->command);
    mrt_job_set_event(job, &event);
    TAILQ_INSERT_TAIL(&outbox->jobs, job, link);
}

bool mrt_outbox_add(struct mrt_outbox *outbox, struct mrt_event event)
{
    struct mrt_job *job = mrt_job_new(sizeof *job, NULL);
    if (!job || !mrt_job_set_event(job, &event)) {
        mrt_job_free(job);
        return false;
    }
    TAILQ_INSERT_TAIL(&outbox->jobs, job, link);
    return true;
}

void mrt_jobs_deliver(struct mrt_jobs *jobs, const struct mrt_sink *sink)
{
    struct mrt_job *job;
    while ((job = TAILQ_FIRST(jobs))) {
        TAILQ_REMOVE(jobs, job, link);
        mrt_job_deliver(job, sink);
        mrt_job_free(job);
    }
}

void mrt_outbox_deliver(struct mrt_outbox *outbox)
{
    mrt_jobs_deliver(&outbox->jobs, &outbox->sink);
}
