/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of operators to a server, one at a time; see operator/connection.c. */
#ifndef MRT_STORE_ZOOKEEPER_OPERATOR_CONNECTION_H
#define MRT_STORE_ZOOKEEPER_OPERATOR_CONNECTION_H

#include "store/zookeeper/names.h"
#include "store/zookeeper/store.h"

enum mrt_zk_question {
    MRT_ZK_ASK_SYNC,
    MRT_ZK_ASK_NAMES,
    MRT_ZK_ASK_DATA,
    MRT_ZK_ASK_RIGHTS,
    MRT_ZK_ASK_REVOKE, /* writes a revoke request */
    MRT_ZK_ASK_DELETE,
    MRT_ZK_ASK_UNCLAIM /* deletes a claim, if nobody has claimed since `claims` was read */
};

struct mrt_zk_asker {
    struct mrt_store *store;
    zhandle_t *handle;
    mrt_time deadline;
    bool connected, answered;
    int error;                 /* errno of the newest attempt to connect that failed */
    unsigned servers, refused; /* how many there are; how many attempts were refused */
    int code;
    struct Stat stat; /* of the newest DATA */
    char data[512];
    bool open;      /* of the newest RIGHTS: anyone may make or delete what is in it */
    int32_t claims; /* of the newest directory with a claim: its version */
    zoo_op_result_t results[2];
    char **names; /* of the newest NAMES, until they are taken */
    int count;
};

/* A ticket's node in a directory. */
struct mrt_zk_row {
    struct mrt_zk_place place;
    const char *node;
};

/* A directory's children: all their names, and of them the tickets in the order of the queue,
   or its claim. */
struct mrt_zk_children {
    char **names;
    struct mrt_zk_row *rows;
    int count, row_count;
};

/* Connects. 0 or a MORTISE code; to be closed only if it is 0. */
int mrt_zk_asker_open(struct mrt_zk_asker *asker, struct mrt_store *store);
void mrt_zk_asker_close(struct mrt_zk_asker *asker);
/* Waits for the answer and returns the library's code. */
int mrt_zk_ask(struct mrt_zk_asker *asker, enum mrt_zk_question question, const char *path);
/* The caller frees it, whatever the code is. */
int mrt_zk_ask_children(struct mrt_zk_asker *asker, const char *path,
                        struct mrt_zk_children *children);
void mrt_zk_children_free(struct mrt_zk_children *children);

#endif
