/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests: the steps of which all commands consist, and how one is sent and answered.
 *
 * A step is one row, in the file that it belongs to: the call of the library that sends it, what
 * that call carries, and what follows from the reply. So the lowest file knows no step, and a new
 * one is a row beside the function that needs it.
 *
 * Memory: the library is given a number to hand back, never a pointer. A reply's number is looked
 * up in the session that the thread has entered; a number that is not there is nobody's.
 */
#ifndef MRT_STORE_ZOOKEEPER_REQUEST_H
#define MRT_STORE_ZOOKEEPER_REQUEST_H

#include "base/assert.h"
#include "store/zookeeper/session.h"

struct mrt_zk_query;
struct mrt_zk_ticket;

struct mrt_zk_reply {
    int code;
    const char *text; /* with `length`: what a node holds */
    int length;
    const struct Stat *stat;
    const struct String_vector *names;
    const struct ACL_vector *rights;
};

#define MRT_ZK_CELL_MAX (MORTISE_VALUE_MAX + 64)
#define MRT_ZK_PARTS_MAX 3 /* of a multi */

/* A request while it is sent. */
struct mrt_zk_outgoing {
    struct mrt_zk_session *session;
    const struct mrt_zk_step *step;
    const struct mrt_zk_ticket *ticket; /* of a ticket's step that has one */
    const struct mrt_zk_query *query;   /* of a query's step */
    const char *path;
    uint64_t id;    /* comes back with the reply */
    uint64_t watch; /* number of its watch, which its events carry; 0: it sets none */
    /* The content. */
    const char *data;
    int length;
    int32_t version; /* that the node must have; -1: any */
    int mode;        /* of a node that is created */
    const struct ACL_vector *rights;
    int part_count;
    zoo_op_t parts[MRT_ZK_PARTS_MAX];
    /* Room for what the above point to. */
    char other[MRT_ZK_NODE_PATH];
    char text[MRT_ZK_CELL_MAX];
};

typedef int mrt_zk_sender(const struct mrt_zk_outgoing *request);
typedef void mrt_zk_payload(struct mrt_zk_outgoing *request);
typedef void mrt_zk_session_reply(struct mrt_zk_session *session, const struct mrt_zk_reply *reply);
typedef void mrt_zk_number_reply(struct mrt_zk_session *session, uint64_t number,
                                 const struct mrt_zk_reply *reply);
typedef void mrt_zk_query_reply(struct mrt_zk_session *session, struct mrt_zk_query *query,
                                const struct mrt_zk_reply *reply);
typedef void mrt_zk_ticket_reply(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                                 const struct mrt_zk_reply *reply);

/* A step. Its replies are all called that are not NULL, in this order. */
struct mrt_zk_step {
    mrt_zk_sender *send;
    mrt_zk_payload *payload; /* NULL: the path says all */
    /* Of a step that sets a watch: the ticket that gets its events; and, unless the sender has
       given one, a number for it, 0 if there is a watch already. False: no memory, and nothing is
       sent. */
    watcher_fn event;
    bool (*watch)(struct mrt_zk_session *session, const char *path, uint64_t *number);
    mrt_zk_session_reply *session_reply;
    /* Called with the number of its watch; with `watch` also if the request could not be sent. */
    mrt_zk_number_reply *number_reply;
    mrt_zk_query_reply *query_reply;   /* if the query is still under way */
    mrt_zk_ticket_reply *ticket_reply; /* if the ticket is still at this attempt */
    bool any_attempt;                  /* or at another */
    bool answer_may_wait;              /* nothing waits for its answer */
};

struct mrt_zk_request {
    TAILQ_ENTRY(mrt_zk_request) link; /* in the order they were sent */
    const struct mrt_zk_step *step;
    uint64_t id;
    struct mrt_id ticket;
    uint64_t attempt;
    uint64_t watch;
};

/* Sends a step, for `ticket` (may be NULL), or for the watch or query with that number (or 0).
   Returns the library's code: ZOK if the step was sent. */
int mrt_zk_send(struct mrt_zk_session *session, const struct mrt_zk_step *step,
                const struct mrt_zk_ticket *ticket, uint64_t number, const char *path);
void mrt_zk_requests_free(struct mrt_zk_session *session);
/* The session that an event of a watch is for; NULL: it is an event of the session, which comes to
   every watcher. */
struct mrt_zk_session *mrt_zk_event_session(int type, const char *path);

/* The next part of a multi, to be set by one of the library's functions. */
static inline zoo_op_t *mrt_zk_next_part(struct mrt_zk_outgoing *request)
{
    MRT_ASSERT(request->part_count < MRT_ZK_PARTS_MAX);
    return &request->parts[request->part_count++];
}

/* The calls of the library. The first three set a watch where the request has a number for it. */
mrt_zk_sender mrt_zk_send_exists, mrt_zk_send_get, mrt_zk_send_list;
mrt_zk_sender mrt_zk_send_sync, mrt_zk_send_rights, mrt_zk_send_set, mrt_zk_send_delete;
mrt_zk_sender mrt_zk_send_create, mrt_zk_send_create_stat, mrt_zk_send_multi;
/* Takes the watches on a node's data away. */
mrt_zk_sender mrt_zk_send_unwatch;

#endif
