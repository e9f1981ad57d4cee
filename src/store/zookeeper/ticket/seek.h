/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of an earlier create, of unknown outcome. */
#ifndef MRT_STORE_ZOOKEEPER_TICKET_SEEK_H
#define MRT_STORE_ZOOKEEPER_TICKET_SEEK_H

#include "store/zookeeper/ticket/record.h"

/* A command that seeks nodes, and its steps for each node. */
struct mrt_zk_seeker {
    bool known_too; /* the node that the ticket is known to have, too */
    /* One was found; false: the command has ended. */
    bool (*found)(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, const char *node,
                  const struct Stat *stat);
    /* All have been looked at. */
    void (*end)(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);
};

/* Seeks the ticket's nodes among these names. */
void mrt_zk_seek(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                 const struct mrt_zk_seeker *seeker, const struct String_vector *names);

#endif
