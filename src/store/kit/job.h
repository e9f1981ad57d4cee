/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job: a command that a store has taken, and then the event that answers it. The job holds the
 * answer's memory from the beginning, so an answer cannot fail for lack of memory. A store whose
 * jobs have more than this puts it behind a struct mrt_job that is the first member.
 *
 * The outbox: answers and unasked events, in order, until the store's entry (submit, process)
 * delivers them, without a lock and with nothing under way.
 *
 * A job is in one list at a time, or in none: its owner is that list. The outbox frees what it has
 * delivered.
 *
 * Threads: a job and an outbox are their store's.
 */
#ifndef MRT_STORE_KIT_JOB_H
#define MRT_STORE_KIT_JOB_H

#include "base/list.h"
#include "core/store.h"

#include <stdarg.h>

#define MRT_JOB_DETAIL_SIZE 256

struct mrt_job {
    TAILQ_ENTRY(mrt_job) link; /* of the outbox, or of a list of the store's */
    struct mrt_command command;
    struct mrt_event event;
    char detail[MRT_JOB_DETAIL_SIZE]; /* the event's; "": none */
    void *value;                      /* the event's, or NULL */
};
TAILQ_HEAD(mrt_jobs, mrt_job);

struct mrt_outbox {
    struct mrt_jobs jobs;
    struct mrt_sink sink;
};

/* The event of this type that answers a command. */
static inline struct mrt_event mrt_answer_to(const struct mrt_command *command,
                                             enum mrt_event_type type)
{
    return (struct mrt_event){.type = type,
                              .serial = command->serial,
                              .session = command->session,
                              .ticket = command->ticket};
}

/* Delivers an event at once; for stores that do everything within their entries. */
static inline void mrt_sink_deliver(const struct mrt_sink *sink, struct mrt_event event)
{
    sink->deliver(sink->context, &event);
}

/* A job of `size` bytes, all zero but for a copy of the command (NULL: none); NULL: no memory. */
void *mrt_job_new(size_t size, const struct mrt_command *command);
void mrt_job_free(struct mrt_job *job);
void mrt_jobs_free(struct mrt_jobs *jobs);

/* Gives the job's event a copy of these bytes as its value; false: no memory. */
bool mrt_job_set_value(struct mrt_job *job, const void *bytes, size_t size);
/* Makes this the job's event, with copies of its detail and its value; false: no memory for the
   value, and the event has none. */
bool mrt_job_set_event(struct mrt_job *job, const struct mrt_event *event);
/* Writes the detail of the job's event, behind `prefix`. The old detail may be an argument. */
__attribute__((format(printf, 2, 3))) void mrt_job_set_detail(struct mrt_job *job,
                                                              const char *format, ...);
__attribute__((format(printf, 3, 0))) void
mrt_job_set_detail_list(struct mrt_job *job, const char *prefix, const char *format, va_list list);

/* Delivers the job's event; the caller still owns the job. */
void mrt_job_deliver(struct mrt_job *job, const struct mrt_sink *sink);

void mrt_outbox_init(struct mrt_outbox *outbox, struct mrt_sink sink);
/* Frees events that have not been delivered. */
void mrt_outbox_free(struct mrt_outbox *outbox);
/* Answers the job's command with its event, which becomes one of this type. */
void mrt_outbox_answer(struct mrt_outbox *outbox, struct mrt_job *job, enum mrt_event_type type);
/* Answers it with FAILED, with this code and the job's detail. */
void mrt_outbox_fail(struct mrt_outbox *outbox, struct mrt_job *job, int error);
/* Answers it as the port requires for a session that has ended (refusal.h). */
void mrt_outbox_refuse(struct mrt_outbox *outbox, struct mrt_job *job);
/* Adds an event that answers no command. False: no memory; an unasked event may be lost. */
bool mrt_outbox_add(struct mrt_outbox *outbox, struct mrt_event event);
/* Delivers and frees everything, in order. */
void mrt_outbox_deliver(struct mrt_outbox *outbox);
/* The same of a list that was taken out of an outbox, under a lock that is not held now. */
void mrt_jobs_deliver(struct mrt_jobs *jobs, const struct mrt_sink *sink);

#endif
