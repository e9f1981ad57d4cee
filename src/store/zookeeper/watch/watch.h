/* SPDX-License-Identifier: Apache-2.0 */
/* Watches, and what the tickets of a session wait for. */
#ifndef MRT_STORE_ZOOKEEPER_WATCH_WATCH_H
#define MRT_STORE_ZOOKEEPER_WATCH_WATCH_H

#include "store/zookeeper/ticket/record.h"

enum mrt_zk_watches {
    MRT_ZK_WATCHES_NODE,    /* its end */
    MRT_ZK_WATCHES_MARK,    /* and its change */
    MRT_ZK_WATCHES_CHILDREN /* of a lock's directory */
};

/* A node and its marker, or a directory, that tickets of this session wait for. One a path,
   however many wait; it stays until its event comes, also if nobody waits any more, or until
   the connection ends. */
struct mrt_zk_watch {
    uint64_t id;
    enum mrt_zk_watches kind;
    bool set;    /* the server has confirmed it */
    bool marker; /* its marker is watched too */
    TAILQ_HEAD(, mrt_zk_ticket) tickets;
    UT_hash_handle hh; /* by path */
    UT_hash_handle by_id;
    char path[];
};

/* The ticket waits for `node`, as the view of `before` and `after` has it. */
void mrt_zk_wait(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, const char *node);
/* The ticket waits for any child to come or go. False: no watch is known to be set. */
bool mrt_zk_wait_children(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);
/* The ticket does not wait any longer, and no event grants it. */
void mrt_zk_unwait(struct mrt_zk_ticket *ticket);
/* Also stops watching the ticket's own node. */
void mrt_zk_disown(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);
/* Sets a watch on its own node, to see what others do to it. */
void mrt_zk_attend(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);
/* The same once more, after a change; `path` is the node's. */
void mrt_zk_attend_again(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                         const char *path);
/* Number of a new watch, for a list to set; 0: there is one already. False: no memory. */
bool mrt_zk_watch_children(struct mrt_zk_session *session, const char *path, uint64_t *number);
/* Sets the watch of a node once more, after a change. False: that cannot be sent. */
bool mrt_zk_watch_again(struct mrt_zk_session *session, struct mrt_zk_watch *watch);
/* Its node is gone, or cannot be watched: the tickets that still wait for it are woken. */
void mrt_zk_watch_drop(struct mrt_zk_session *session, struct mrt_zk_watch *watch);
/* Frees it; the tickets that wait for it are not woken. */
void mrt_zk_watch_free(struct mrt_zk_session *session, struct mrt_zk_watch *watch);
/* Removes the watches from the library too, before it has another connection. */
void mrt_zk_watches_forget(struct mrt_zk_session *session);
void mrt_zk_watches_free(struct mrt_zk_session *session);
/* The path of the marker of the node at `path`. */
void mrt_zk_marker_path(const struct mrt_store *store, const char *path, char *marker, size_t size);

#endif
