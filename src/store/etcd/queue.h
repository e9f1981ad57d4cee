/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue of this store's interest: its commands, one at a time and in order, its tickets of this
 * store, its observers, and the newest view of it.
 *
 * While a ticket waits, or a holder or an observer is to hear of changes, one watch of all keys
 * below the name runs from the revision of the view. Its events change the view, and a ticket is
 * woken if it may hold by that, or if what its holder wants to hear of has changed. An event never
 * grants: the REFRESH that follows does.
 */
#ifndef MRT_STORE_ETCD_QUEUE_H
#define MRT_STORE_ETCD_QUEUE_H

#include "store/etcd/internal.h"

/* Takes the job, and begins it when those before it have been answered. */
void mrt_etcd_queue_submit(struct mrt_etcd_store *store, struct mrt_etcd_job *job);
/* The job is taken out, to be answered. */
void mrt_etcd_queue_leave(struct mrt_etcd_queue *queue, struct mrt_etcd_job *job);
/* Begins commands that waited, and watches that are needed. */
void mrt_etcd_queues_tick(struct mrt_etcd_store *store, mrt_time now);
mrt_time mrt_etcd_queues_next(const struct mrt_etcd_store *store);
void mrt_etcd_queues_resume(struct mrt_etcd_store *store);
/* The commands of a session that have not begun are answered so. */
void mrt_etcd_queues_fail(struct mrt_etcd_store *store, struct mrt_id session,
                          const struct mrt_rest_reply *reply);
/* Tickets and observers of a session that has ended. */
void mrt_etcd_queues_forget(struct mrt_etcd_store *store, struct mrt_id session);
void mrt_etcd_queues_free(struct mrt_etcd_store *store);

/* The ticket of the job's session; NULL: it is not known. */
struct mrt_etcd_record *mrt_etcd_record_find(const struct mrt_etcd_job *job);
/* Makes it, unless it is there; NULL: no memory. */
struct mrt_etcd_record *mrt_etcd_record_make(struct mrt_etcd_job *job,
                                             const struct mrt_etcd_session *session);
void mrt_etcd_record_drop(struct mrt_etcd_queue *queue, struct mrt_etcd_record *record);

/* A view has been read; the queue takes it if it is newer than its own. False: it cannot be read.
 */
bool mrt_etcd_queue_read(struct mrt_etcd_queue *queue, struct json_object *range, int64_t revision,
                         struct mrt_etcd_view *view);
/* The queue's view becomes this one, unless it is older. */
void mrt_etcd_queue_take(struct mrt_etcd_queue *queue, struct mrt_etcd_view *view);

#endif
