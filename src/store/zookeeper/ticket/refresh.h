/* SPDX-License-Identifier: Apache-2.0 */
/* REFRESH, and the list that shows a ticket's view. */
#ifndef MRT_STORE_ZOOKEEPER_TICKET_REFRESH_H
#define MRT_STORE_ZOOKEEPER_TICKET_REFRESH_H

#include "store/zookeeper/ticket/record.h"

void mrt_zk_refresh_begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);
/* Lists the children for the view, which answers the command; behind a sync, or a barrier, if the
 * list must not be old. */
void mrt_zk_refresh(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, bool fresh);
/* The step of that list: one that sets a watch, if the ticket may have to wait for any child. */
const struct mrt_zk_step *mrt_zk_refresh_step(const struct mrt_zk_session *session,
                                              const struct mrt_zk_ticket *ticket);

#endif
