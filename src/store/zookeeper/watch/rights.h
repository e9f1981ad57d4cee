/* SPDX-License-Identifier: Apache-2.0 */
/* The rights to make markers, as far as a session knows. */
#ifndef MRT_STORE_ZOOKEEPER_WATCH_RIGHTS_H
#define MRT_STORE_ZOOKEEPER_WATCH_RIGHTS_H

#include <stdbool.h>

#define MRT_ZK_RIGHTS_MAX 1024

struct mrt_zk_session;
struct mrt_zk_ticket;

enum mrt_zk_markers {
    MRT_ZK_MARKERS_UNKNOWN, /* no marker is believed */
    MRT_ZK_MARKERS_OURS,    /* only of clients with the same rights to the locks */
    MRT_ZK_MARKERS_OPEN     /* to others too: none is believed */
};

struct mrt_zk_rights {
    enum mrt_zk_markers markers;
    bool asked;
    char own[MRT_ZK_RIGHTS_MAX]; /* of identities to a node of this session, in lines */
};

/* Reads them, unless they are known; the ticket has a node. */
void mrt_zk_rights_read(struct mrt_zk_session *session, const struct mrt_zk_ticket *ticket);

#endif
