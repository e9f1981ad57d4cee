/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and codes of ZooKeeper, as plain functions without a session: what a path may
 * be, what the nodes of tickets are called and how they are ordered, and what each
 * error code of the client library says about its request.
 */
#ifndef MRT_STORE_ZOOKEEPER_NAMES_H
#define MRT_STORE_ZOOKEEPER_NAMES_H

#include "base/id.h"

#include <stdbool.h>
#include <stdint.h>

#define MRT_ZK_PATH_MAX 2048 /* longest path, with its NUL */
#define MRT_ZK_UUID_SIZE 37
#define MRT_ZK_NODE_PREFIX "_c_"
#define MRT_ZK_CELL_NAME "mortise-cell" /* of a cell's node, in the directory of its name */
#define MRT_ZK_NODE_SIZE 128
#define MRT_ZK_CLAIM_NODE "lock"              /* the one node of a lock that keeps no order */
#define MRT_ZK_CLAIM_DATA "exclusive "        /* and what its data begin with; the UUID follows */
#define MRT_ZK_MARKERS_NAME "mortise-markers" /* directory of markers, in the chroot */

/* 0, or `error` with particulars: whether ZooKeeper takes `path`, "/..." without a final "/". */
int mrt_zk_path_check(const char *path, int error);

/* The directory of the queue `name` into path. Without a namespace (`namespace` is "") a name is a
   path, and may begin with "/". Else a "/" that begins what is behind the namespace is written as
   "%2f", and where the name itself begins so, or with "%25", its "%" as "%25". 0 or
   MORTISE_ENAME. */
int mrt_zk_queue_path(const char *chroot, const char *namespace, const char *name,
                      char path[MRT_ZK_PATH_MAX]);
/* The name of the queue in a directory, which is given without the chroot and its "/". */
void mrt_zk_queue_name(const char *namespace, const char *below, char name[MRT_ZK_PATH_MAX]);

/* The program whose names the nodes of mutexes and read/write locks have. Programs of two layouts
   do not see each other's nodes, so a lock's directory is of one layout. */
enum mrt_zk_layout {
    MRT_ZK_CURATOR, /* ...-lock-N, ...-__READ__N, ...-__WRIT__N */
    MRT_ZK_KAZOO,   /* ...__lock__N, which is a writer too, and ...__rlock__N */
    MRT_ZK_RECIPE,  /* lock-N, and x-SESSION-N of others: ZooKeeper's own; mutexes alone */
    MRT_ZK_ARTICLE  /* HOST-R-N, HOST-W-N, read_N, write_N: known to be refused */
};

enum mrt_zk_family {
    MRT_ZK_FOREIGN, /* not a contender */
    MRT_ZK_MUTEX,
    MRT_ZK_READER,
    MRT_ZK_WRITER,
    MRT_ZK_SEMAPHORE, /* ...-permits-WofC-N: ours alone, in each layout; W of C permits */
    MRT_ZK_EXCLUSIVE  /* tickets without a place; their node's name alone does not tell */
};

/* The owner of a ticket. */
enum mrt_zk_hands {
    MRT_ZK_NEVER_DETACHED, /* its session's */
    MRT_ZK_DETACHED,       /* detached: a persistent node */
    MRT_ZK_ADOPTED         /* another session's than at first, or lighter than it was */
};

/* A ticket's kind and its place, as its node's name has them. */
struct mrt_zk_place {
    enum mrt_zk_family family;
    enum mrt_zk_layout layout; /* CURATOR of what is called alike in each */
    int32_t sequence;          /* of a node */
    uint64_t weight, capacity;
    enum mrt_zk_hands hands;
    int64_t czxid; /* czxid of the ticket's first node, once it has another node; else 0 */
};

/* A node's place in a lock; FOREIGN: it takes no part in one. */
struct mrt_zk_place mrt_zk_place_of(const char *node);
/* The same in a lock whose tickets are as `own`: kazoo's __lock__ is a writer beside readers. */
struct mrt_zk_place mrt_zk_place_beside(const char *node, const struct mrt_zk_place *own);
/* Of a ticket that has no node yet; FOREIGN: it cannot be kept there. */
struct mrt_zk_place mrt_zk_place_for(enum mrt_zk_layout layout, const char *kind, uint64_t capacity,
                                     uint64_t weight);
/* Whether the two places are of one kind of lock. */
bool mrt_zk_same_lock(const struct mrt_zk_place *a, const struct mrt_zk_place *b);
/* Whether the node's program does not see those of that layout. */
bool mrt_zk_misplaced(const struct mrt_zk_place *place, enum mrt_zk_layout layout);
/* The name of the kind of lock for people: "mutex", ... */
const char *mrt_zk_kind(enum mrt_zk_family family);
/* The layout's name in a URI; NULL: it cannot be chosen. */
const char *mrt_zk_layout_name(enum mrt_zk_layout layout);

/* The ticket's identity as nodes at such a place have it in their names, a UUID of version 8, which
   tells our nodes from others'; "": their names have none. */
void mrt_zk_uuid(struct mrt_id id, const struct mrt_zk_place *place, char text[MRT_ZK_UUID_SIZE]);
/* Whether a node's name has such a UUID, and its owner releases it by passing it on. */
bool mrt_zk_is_ours(const char *node);
/* The name of a ticket's node, before the server adds the sequence; and with it. */
void mrt_zk_node_head(const char *uuid, const struct mrt_zk_place *place,
                      char head[MRT_ZK_NODE_SIZE]);
void mrt_zk_node(const char *uuid, const struct mrt_zk_place *place, char node[MRT_ZK_NODE_SIZE]);

/* Whether `a` was created before `b`. The server's counter is signed and wraps, so
   they are compared as serial numbers are (RFC 1982). */
bool mrt_zk_before(int32_t a, int32_t b);

/* The outcome of a request, as its code has it. */
enum mrt_zk_outcome {
    MRT_ZK_DONE,
    MRT_ZK_NOT_DONE,    /* refused; nothing has happened */
    MRT_ZK_PERHAPS,     /* the request may have been executed */
    MRT_ZK_NO_NODE,     /* the path does not exist */
    MRT_ZK_SESSION_OVER /* the session, and all its nodes, are gone */
};
/* Codes of our own. */
#define MRT_ZK_FULL 1  /* too many wait already */
#define MRT_ZK_OTHER 2 /* another kind of lock */
#define MRT_ZK_BLOCKED 3
#define MRT_ZK_NO_HEIR 4    /* nothing to adopt */
#define MRT_ZK_OTHER_HEIR 5 /* not the same kind of hold */
#define MRT_ZK_MISPLACED 6  /* a node of another layout is there */
struct mrt_zk_code {
    int code;
    enum mrt_zk_outcome outcome;
    int error; /* the error of mortise.h if the request was not executed */
    const char *text;
};
/* Never NULL: a code not in the table is a refusal of the server. */
const struct mrt_zk_code *mrt_zk_code(int code);

#endif
