/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets that may not stand after their first view. */
#ifndef MRT_STORE_ZOOKEEPER_TICKET_REFUSE_H
#define MRT_STORE_ZOOKEEPER_TICKET_REFUSE_H

#include "store/zookeeper/ticket/view.h"

/* Why the ticket may not stand; ZOK: it may. */
int mrt_zk_refusal(const struct mrt_zk_ticket *ticket, const struct mrt_command *command,
                   const struct mrt_zk_view *view, const struct String_vector *names);
/* Deletes its node, and then answers with that code. */
void mrt_zk_undo(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int refusal);

#endif
