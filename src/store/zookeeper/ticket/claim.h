/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets of a lock that promises no order. */
#ifndef MRT_STORE_ZOOKEEPER_TICKET_CLAIM_H
#define MRT_STORE_ZOOKEEPER_TICKET_CLAIM_H

#include "store/zookeeper/ticket/view.h"

void mrt_zk_claim_begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);
/* Whether a node with the name of a claim is a claim: it may be a directory. */
bool mrt_zk_is_claim(const struct Stat *stat);
/* Of a ticket with a place in an order: checks whether the child that the view shows is a claim.
   If it is, the ticket is refused; else `list_again` goes on. False: the view shows none. */
bool mrt_zk_claim_check(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                        const struct mrt_zk_view *view, bool probing,
                        void (*list_again)(struct mrt_zk_session *session,
                                           struct mrt_zk_ticket *ticket));

#endif
