/* SPDX-License-Identifier: Apache-2.0 */
/* Marks of a semaphore's tickets. */
#ifndef MRT_STORE_ZOOKEEPER_TICKET_SEMAPHORE_H
#define MRT_STORE_ZOOKEEPER_TICKET_SEMAPHORE_H

#include "store/zookeeper/ticket/record.h"

struct mrt_zk_watch;

/* Whether a ticket at this place marks its node when it is granted. */
bool mrt_zk_marks(const struct mrt_zk_place *place);
/* Whether others may wait for the ticket's mark, now that it is granted. */
bool mrt_zk_mark_due(const struct mrt_zk_ticket *ticket, const struct Stat *directory);
/* Marks its node if that is due. */
void mrt_zk_mark(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);
/* Takes this reply as the state of the node waited for. */
void mrt_zk_mark_seen(struct mrt_zk_session *session, struct mrt_zk_watch *watch,
                      const struct Stat *node);

#endif
