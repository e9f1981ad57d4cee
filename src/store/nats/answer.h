/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of commands: they are answered, may pause, and end by a reply that is no answer.
 */
#ifndef MRT_STORE_NATS_ANSWER_H
#define MRT_STORE_NATS_ANSWER_H

#include "store/nats/internal.h"

/* Answers of a job of a queue, which then goes on with its next. */
void mrt_nats_answer(struct mrt_nats_job *job, enum mrt_event_type type);
__attribute__((format(printf, 3, 4))) void mrt_nats_fail(struct mrt_nats_job *job, int error,
                                                         const char *format, ...);
void mrt_nats_refuse(struct mrt_nats_job *job);
/* Answers a job whose request was not done, or whose reply cannot be used. UNKNOWN if the job has
   published already (`unknown`). */
void mrt_nats_job_failed(struct mrt_nats_job *job, const struct mrt_nats_reply *reply);
void mrt_nats_no_memory(struct mrt_nats_job *job);
/* Goes on later. */
void mrt_nats_job_pause(struct mrt_nats_job *job, mrt_time pause,
                        void (*resume)(struct mrt_nats_job *job));
void mrt_nats_pauses_tick(struct mrt_nats_store *store, mrt_time now);
/* Frees what a job has beside itself. */
void mrt_nats_job_clear(struct mrt_nats_job *job);
void mrt_nats_jobs_free(struct mrt_jobs *jobs);

/* A walk of the job's queue, which ends by `done` with the job as argument. */
struct mrt_nats_walk *mrt_nats_job_walk(struct mrt_nats_job *job,
                                        void (*done)(struct mrt_nats_walk *walk,
                                                     const struct mrt_nats_reply *failure));

#endif
