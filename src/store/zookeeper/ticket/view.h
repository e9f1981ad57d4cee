/* SPDX-License-Identifier: Apache-2.0 */
/* A ticket's view, from the names of its directory's children. */
#ifndef MRT_STORE_ZOOKEEPER_TICKET_VIEW_H
#define MRT_STORE_ZOOKEEPER_TICKET_VIEW_H

#include "store/zookeeper/ticket/record.h"

struct mrt_zk_view {
    uint64_t ahead;         /* weight */
    uint64_t before, after; /* the part before, and the part after, the node waited for */
    uint64_t count;         /* of tickets ahead */
    bool behind;
    bool claim;                /* a child has the name of a claim */
    struct mrt_zk_place other; /* a ticket of another kind of lock; FOREIGN: there is none */
    int own;                   /* index of its own node; -1: it is not there */
    int misplaced;             /* of a node of another layout; -1: there is none */
    int blocker;               /* index of the node waited for; -1: any child */
};

struct mrt_zk_view mrt_zk_view_of(struct mrt_store *store, const struct mrt_zk_ticket *ticket,
                                  const struct String_vector *names);
/* Whether at least so many tickets wait ahead of this one. */
bool mrt_zk_crowded(const struct mrt_zk_ticket *ticket, const struct mrt_zk_view *view,
                    const struct String_vector *names, uint64_t most);
/* The particulars of MRT_ZK_MISPLACED, for the command's answer. */
void mrt_zk_keep_misplaced(const struct mrt_store *store, struct mrt_job *job, const char *node);
/* The transaction that is a ticket's fence: that of its first node. */
int64_t mrt_zk_first_czxid(const struct mrt_zk_place *place, const struct Stat *stat);

#endif
