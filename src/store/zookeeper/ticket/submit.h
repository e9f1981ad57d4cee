/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of tickets, as they come from the port. */
#ifndef MRT_STORE_ZOOKEEPER_TICKET_SUBMIT_H
#define MRT_STORE_ZOOKEEPER_TICKET_SUBMIT_H

#include "store/zookeeper/session.h"

/* `path` is the queue's directory. */
void mrt_zk_ticket_submit(struct mrt_zk_session *session, struct mrt_job *job, const char *path);

#endif
