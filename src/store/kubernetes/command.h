/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of a lock. */
#ifndef MRT_STORE_KUBERNETES_COMMAND_H
#define MRT_STORE_KUBERNETES_COMMAND_H

#include "store/kubernetes/ticket.h"

/* Begins a command whose turn it is. */
void mrt_k8s_command_begin(struct mrt_k8s_job *job);
/* Its next step: the Lease is known. `ticket` NULL: it has none. */
void mrt_k8s_command_step(struct mrt_k8s_job *job, struct mrt_k8s_ticket *ticket);

#endif
