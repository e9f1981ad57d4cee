/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The locks of a store. The commands of one are carried out one after another, as clause (e) of the
 * port requires. While somebody waits or observes, and while a holder wants to know of requests,
 * the Lease is watched; what the watch tells wakes those whom it concerns.
 */
#ifndef MRT_STORE_KUBERNETES_QUEUE_H
#define MRT_STORE_KUBERNETES_QUEUE_H

#include "store/kubernetes/internal.h"

/* Takes the job. */
void mrt_k8s_queue_submit(struct mrt_k8s_store *store, struct mrt_k8s_job *job);
/* Adds a job of the store's own. */
void mrt_k8s_queue_add(struct mrt_k8s_queue *queue, struct mrt_k8s_job *job);

/* Answers; a job of a STOP is its session's, and is freed. No line uses the job afterwards. */
void mrt_k8s_answer(struct mrt_k8s_job *job, enum mrt_event_type type);
__attribute__((format(printf, 3, 4))) void mrt_k8s_fail(struct mrt_k8s_job *job, int error,
                                                        const char *format, ...);
void mrt_k8s_refuse(struct mrt_k8s_job *job);

struct mrt_k8s_session *mrt_k8s_session_find(const struct mrt_k8s_store *store, struct mrt_id id);
/* The ticket of the job's command; NULL: there is none. */
struct mrt_k8s_ticket *mrt_k8s_ticket_find(const struct mrt_k8s_job *job);
void mrt_k8s_ticket_drop(struct mrt_k8s_ticket *ticket);
void mrt_k8s_observer_drop(struct mrt_k8s_queue *queue, struct mrt_k8s_observer *observer);

/* The Lease is so: NULL: there is none. Wakes whom it concerns. */
void mrt_k8s_queue_set(struct mrt_k8s_queue *queue, struct json_object *json);
/* Whether the lock may be taken, as far as is known. */
bool mrt_k8s_queue_is_free(const struct mrt_k8s_queue *queue, mrt_time now);
/* The leader's fence, 0: nobody leads; and its value as it stands in the Lease. */
uint64_t mrt_k8s_queue_leader(const struct mrt_k8s_queue *queue, mrt_time now, const char **value);

/* Begins jobs and watches, wakes those whose time has come, and frees what nobody needs. */
void mrt_k8s_queues_tick(struct mrt_k8s_store *store, mrt_time now);
mrt_time mrt_k8s_queues_next(const struct mrt_k8s_store *store);
void mrt_k8s_queues_free(struct mrt_k8s_store *store);

#endif
