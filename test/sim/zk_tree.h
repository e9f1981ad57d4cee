/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ZooKeeper's tree of nodes, as all its servers know it: each change has a number
 * (zxid), and a server that has applied the changes up to one of them sees the tree as it was
 * then. So a deleted node stays until every server has seen its end, and data that were changed
 * until every server has seen the change.
 *
 * Properties of the real one that matter here: the counter of sequential nodes is the parent's, 32
 * bits and signed, and starts again when the parent is made anew; a multi happens as a whole, under
 * one number; the end of a session deletes its ephemerals under one number; a container goes once
 * it has had children and has none.
 */
#ifndef SIM_ZK_TREE_H
#define SIM_ZK_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <zookeeper/zookeeper.h>

#define ZK_PATH_SIZE 160
#define ZK_NAME_SIZE 96
#define ZK_DATA_SIZE 64 /* what is longer is cut off */
#define ZK_PARTS_MAX 8

struct zk_data {
    int length;
    char bytes[ZK_DATA_SIZE];
};

enum zk_type {
    ZK_CREATE,
    ZK_DELETE,
    ZK_SET,
    ZK_CHECK,
    ZK_MULTI,
    ZK_CLOSE,
    ZK_SYNC, /* up to here: what the leader has to do with */
    ZK_GET,
    ZK_EXISTS,
    ZK_LIST,
    ZK_SET_WATCHES,
    ZK_DROP_WATCHES,
    ZK_PING
};

struct zk_part { /* of a multi, or the whole of any other request */
    enum zk_type type;
    char path[ZK_PATH_SIZE];
    bool ephemeral, sequential, container;
    int32_t version;     /* -1: any */
    struct zk_data data; /* SET, CREATE */
};

struct zk_watch {
    struct zk_watch *next;
    bool children;
    bool exists; /* set on a node that was not there; matters when set again */
    char path[ZK_PATH_SIZE];
};

struct zk_request {
    struct zk_request *next;
    struct zk_part part;
    bool watch;
    uint64_t tag; /* the asker's */
    int part_count;
    struct zk_part parts[ZK_PARTS_MAX]; /* MULTI */
    int64_t seen;                       /* SET_WATCHES */
    struct zk_watch *watches;
};

struct zk_answer {
    enum zk_type type;
    uint64_t tag;
    int code;
    int64_t zxid; /* the newest that the server has applied */
    char path[ZK_PATH_SIZE];
    struct zk_data data;
    struct Stat stat;
    char (*names)[ZK_NAME_SIZE];
    int name_count;
    int part_codes[ZK_PARTS_MAX];
};

/* A node's data before a change. */
struct zk_past {
    struct zk_past *older;
    int64_t mzxid;
    int32_t version;
    struct zk_data data;
};

struct zk_node {
    struct zk_node *next, *children, *parent; /* next: older sibling */
    int64_t czxid, mzxid, pzxid, dzxid;       /* dzxid: 0 while it is there */
    int64_t origin;    /* czxid of the node whose place it has taken, or its own */
    int64_t forgotten; /* newest end of a child that is not kept any more */
    int64_t owner;
    uint64_t weight; /* zk_weight of its name */
    uint32_t counter;
    int32_t version;
    int32_t child_count;
    bool container, had_children;
    int64_t found_empty; /* since that change */
    char name[ZK_NAME_SIZE];
    struct zk_data data;
    struct zk_past *past; /* as long as a server may not have applied the change */
};

/* A change, as servers apply it. */
struct zk_change {
    int64_t zxid;
    int type; /* ZOO_CREATED_EVENT and so on; ZOO_SESSION_EVENT: `session` is closed */
    int64_t session;
    char path[ZK_PATH_SIZE];
};

struct zk_tree {
    struct zk_node root;
    int64_t zxid; /* newest */
    struct zk_change *changes;
    int change_count, change_room;
    int64_t applied_by_all; /* what was deleted before can be forgotten */
    uint32_t first_sequence;
    bool reaps_late; /* a container only once it was found empty before */
};

void zk_tree_init(struct zk_tree *tree, uint32_t first_sequence);
void zk_tree_fini(struct zk_tree *tree);
/* As it was at `zxid`; NULL: not there. */
struct zk_node *zk_tree_find(struct zk_tree *tree, const char *path, int64_t zxid);
/* As a server shows it that has applied the changes up to `zxid`. */
void zk_stat_of(const struct zk_node *node, int64_t zxid, struct Stat *stat);
bool zk_node_visible(const struct zk_node *node, int64_t zxid);
/* Does a write, or nothing and says why. */
void zk_tree_write(struct zk_tree *tree, int64_t session, const struct zk_request *request,
                   struct zk_answer *answer);
void zk_tree_read(struct zk_tree *tree, const struct zk_request *request, int64_t zxid,
                  struct zk_answer *answer);
void zk_tree_end_session(struct zk_tree *tree, int64_t session);
/* Deletes containers that are due; how many. */
int zk_tree_reap(struct zk_tree *tree);
struct zk_data zk_data_of(const void *bytes, int length);
/* The weight of a ticket's node, by its name; 0: it is none. (zk_session.c) */
uint64_t zk_weight(const char *name);

#endif
