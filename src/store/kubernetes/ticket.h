/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of a command: the Lease is read, and written, until it is as the command wants it.
 * command.c has the command's aim at each step; the Lease is in job->queue->lease.
 */
#ifndef MRT_STORE_KUBERNETES_TICKET_H
#define MRT_STORE_KUBERNETES_TICKET_H

#include "store/kubernetes/queue.h"

/* command.c: the next step of a job; the Lease is known. */
typedef void mrt_k8s_step(struct mrt_k8s_job *job, struct mrt_k8s_ticket *ticket);

/* Reads the Lease if it is not known, then calls the job's next step. */
void mrt_k8s_go_on(struct mrt_k8s_job *job);
/* Writes it, then the same. Takes the object, NULL: no memory. */
void mrt_k8s_write(struct mrt_k8s_job *job, struct json_object *json);
/* A ticket's part of what is written now. */
struct mrt_k8s_holding mrt_k8s_holding_of(struct mrt_k8s_ticket *ticket);

/* The ticket that an APPEND makes; NULL: no memory. */
struct mrt_k8s_ticket *mrt_k8s_ticket_make(struct mrt_k8s_job *job,
                                           struct mrt_k8s_session *session);
/* Gives the ticket a copy of the command's value; false: no memory. */
bool mrt_k8s_ticket_set_value(struct mrt_k8s_ticket *ticket, const struct mrt_command *command);

/* A RENEW has come: writes the ticket's Lease. */
void mrt_k8s_ticket_renew(struct mrt_k8s_ticket *ticket);

#endif
