/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of a queue: append.c, change.c, observe.c, cell.c. */
#ifndef MRT_STORE_ETCD_COMMAND_H
#define MRT_STORE_ETCD_COMMAND_H

#include "store/etcd/internal.h"

/* The store's `begin`. */
void mrt_etcd_command_begin(struct mrt_etcd_job *job, struct mrt_etcd_session *session);

/* APPEND and REMOVE; then the others. */
void mrt_etcd_append(struct mrt_etcd_job *job, struct mrt_etcd_session *session);
void mrt_etcd_remove(struct mrt_etcd_job *job);
void mrt_etcd_change(struct mrt_etcd_job *job);
void mrt_etcd_observe(struct mrt_etcd_job *job);
void mrt_etcd_cell(struct mrt_etcd_job *job);

/* Requests the queue's range; the reply goes to `next`. */
void mrt_etcd_look(struct mrt_etcd_job *job, mrt_rest_done *next);
/* Answers with what a view shows of a ticket, and the queue takes the view. */
void mrt_etcd_show(struct mrt_etcd_job *job, struct mrt_etcd_record *record,
                   const struct mrt_etcd_entry *entry, struct mrt_etcd_view *view);
/* The key of a name below the queue's. */
void mrt_etcd_key(const struct mrt_etcd_queue *queue, const char *name,
                  char key[MRT_ETCD_NAME_SIZE]);

#endif
