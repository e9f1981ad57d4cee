/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue of this store's interest: its commands, one at a time and in order, its tickets of this
 * store, and its observers.
 *
 * While a ticket waits, or a holder or an observer is to hear of changes, the store listens to the
 * queue's subject of wakes. A client that removes or changes a ticket publishes there once that has
 * been acknowledged; so does one that queues behind another. Such a message is in no stream and may
 * be lost; a ticket is woken by it if, by what is known to be ahead, it may hold. It never grants:
 * the REFRESH that follows does. With a new connection all look again.
 */
#ifndef MRT_STORE_NATS_QUEUE_H
#define MRT_STORE_NATS_QUEUE_H

#include "store/nats/internal.h"

/* Takes the job, and begins it when those before it have been answered. */
void mrt_nats_queue_submit(struct mrt_nats_store *store, struct mrt_nats_job *job);
/* The job is taken out, to be answered. */
void mrt_nats_queue_leave(struct mrt_nats_queue *queue, struct mrt_nats_job *job);
/* Begins commands that waited, and listens where that is needed. */
void mrt_nats_queues_tick(struct mrt_nats_store *store, mrt_time now);
mrt_time mrt_nats_queues_next(const struct mrt_nats_store *store);
/* Reads wakes that have come. */
void mrt_nats_queues_hear(struct mrt_nats_store *store);
/* Tickets and observers of a session that has ended. */
void mrt_nats_queues_forget(struct mrt_nats_store *store, struct mrt_id session);
void mrt_nats_queues_free(struct mrt_nats_store *store);
/* Begins to listen. True: it did not before, so that what was read may be old. */
bool mrt_nats_queue_listen(struct mrt_nats_queue *queue);

/* The ticket of the job's session; NULL: it is not known. */
struct mrt_nats_record *mrt_nats_record_find(const struct mrt_nats_job *job);
/* Makes it, unless it is there; NULL: no memory. */
struct mrt_nats_record *mrt_nats_record_make(struct mrt_nats_job *job);
void mrt_nats_record_drop(struct mrt_nats_queue *queue, struct mrt_nats_record *record);
/* A ticket ahead has left. Whether the record's own may hold now, by what is known. */
bool mrt_nats_record_strike(struct mrt_nats_record *record, uint64_t sequence);

#endif
