/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that concern no ticket, until they are answered; an OBSERVE until its CHANGED. */
#ifndef MRT_STORE_ZOOKEEPER_VALUES_QUERY_H
#define MRT_STORE_ZOOKEEPER_VALUES_QUERY_H

#include "store/zookeeper/request.h"

struct mrt_zk_query {
    uint64_t number; /* of its requests and its watches */
    struct mrt_id id;
    struct mrt_job *job; /* NULL: answered */
    bool changed;        /* an event came before the answer */
    unsigned tries;
    uint64_t fence;  /* CELL_SET: the largest fence, which it writes */
    int32_t version; /* CELL_SET: version of the node as it was read */
    bool unread;     /* CELL_SET: and that was before the command came */
    UT_hash_handle hh;
    char path[MRT_ZK_PATH_MAX + 32];  /* of the queue's directory, or of the cell */
    char node[MRT_ZK_PATH_MAX + 300]; /* OBSERVE: the node that is watched */
};

/* The query of this command, at `path`, the queue's directory or the cell's, for the caller to
   begin; NULL: the command is answered. */
struct mrt_zk_query *mrt_zk_query_new(struct mrt_zk_session *session, struct mrt_job *job,
                                      const char *path);
void mrt_zk_query_answer(struct mrt_zk_session *session, struct mrt_zk_query *query,
                         enum mrt_event_type type);
void mrt_zk_query_answer_code(struct mrt_zk_session *session, struct mrt_zk_query *query, int code);
/* FAILED with an error of mortise's. */
void mrt_zk_query_refuse(struct mrt_zk_session *session, struct mrt_zk_query *query, int error);
/* Keeps the value for the answer; false: no memory, and it is answered. */
bool mrt_zk_query_keep(struct mrt_zk_session *session, struct mrt_zk_query *query, const char *data,
                       int length);
/* Sends a step; if it cannot be sent, ends the command. */
void mrt_zk_query_send(struct mrt_zk_session *session, struct mrt_zk_query *query,
                       const struct mrt_zk_step *step, const char *path);
/* Makes the server catch up. False: the request cannot be sent. */
bool mrt_zk_query_sync(struct mrt_zk_session *session, const struct mrt_zk_query *query);
/* An event of one of its watches. The library calls it. */
void mrt_zk_query_event(zhandle_t *handle, int type, int state, const char *path, void *context);
/* Notes that the connection has ended, and its watches with it. */
void mrt_zk_queries_forget(struct mrt_zk_session *session);
/* Answers all, and frees them. */
void mrt_zk_queries_end(struct mrt_zk_session *session);

#endif
