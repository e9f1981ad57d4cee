/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of a queue: append.c, change.c, observe.c, cell.c. */
#ifndef MRT_STORE_NATS_COMMAND_H
#define MRT_STORE_NATS_COMMAND_H

#include "store/nats/internal.h"

/* The store's `begin`. */
void mrt_nats_command_begin(struct mrt_nats_job *job, struct mrt_nats_session *session);

void mrt_nats_append(struct mrt_nats_job *job);
void mrt_nats_remove(struct mrt_nats_job *job);
/* REFRESH, LIGHTEN, SET_VALUE, DETACH, and APPEND with `adopt`. */
void mrt_nats_change(struct mrt_nats_job *job);
void mrt_nats_observe(struct mrt_nats_job *job);
void mrt_nats_cell(struct mrt_nats_job *job);

/* Answers with what the job's walk shows of its ticket, or has the queue listened to and walks once
   more if the ticket has to wait. */
void mrt_nats_show(struct mrt_nats_job *job, struct mrt_nats_record *record);
/* A walk that ends at the record's ticket. */
struct mrt_nats_walk *
mrt_nats_walk_to(struct mrt_nats_job *job, const struct mrt_nats_record *record,
                 void (*done)(struct mrt_nats_walk *walk, const struct mrt_nats_reply *failure));
/* The own ticket in the job's walk; NULL: it is not there. */
const struct mrt_nats_entry *mrt_nats_own(const struct mrt_nats_job *job);

#endif
