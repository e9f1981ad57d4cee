/* SPDX-License-Identifier: Apache-2.0 */
/* The store's events for the engine: answers to commands, and events that answer none. All of them
   go into the outbox, which the port delivers once no lock is held. */
#ifndef MRT_STORE_ZOOKEEPER_ANSWER_H
#define MRT_STORE_ZOOKEEPER_ANSWER_H

#include "store/kit/job.h"

struct mrt_store;

void mrt_zk_answer(struct mrt_store *store, struct mrt_job *job, enum mrt_event_type type);
/* FAILED or UNKNOWN, as the code of the library says. */
void mrt_zk_answer_code(struct mrt_store *store, struct mrt_job *job, int code);
/* FAILED, with the job's detail as it is. */
void mrt_zk_fail(struct mrt_store *store, struct mrt_job *job, int error);
/* FAILED, with this text about the command's lock, or about the server if it has none. */
void mrt_zk_fail_with(struct mrt_store *store, struct mrt_job *job, int error, const char *text);
/* FAILED, of no session. An unasked event may be lost for lack of memory: the engine lists again
   after `recheck`. */
void mrt_zk_report_unreachable(struct mrt_store *store, const char *why);
/* An event of the session for this ticket, or for all its tickets if `id` is none. */
void mrt_zk_report(struct mrt_store *store, enum mrt_event_type type, struct mrt_id id);
void mrt_zk_wake(struct mrt_store *store, struct mrt_id id);
/* REVOKED, by the request of this number. */
void mrt_zk_report_revoked(struct mrt_store *store, struct mrt_id id, int64_t request);

#endif
