/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the simulated ensemble: zk_ensemble.c, zk_session.c and zk_ambush.c. */
#ifndef SIM_ZK_INTERNAL_H
#define SIM_ZK_INTERNAL_H

#include "zk_ensemble.h"

#define OUTSIDER 1 /* the session of other programs, which never ends */

struct zk_session {
    struct zk_session *next;
    int64_t id;
    int timeout_ms;
    bool alive;
    uint64_t owner; /* the connection it was last opened on */
    mrt_time expires;
    bool touched[ZK_SERVERS_MAX]; /* heard by a follower that has not told the leader */
    struct peer *peer;
};

enum zk_stage { ZK_OPENING, ZK_IDLE, ZK_FORWARDING, ZK_WAITING };

struct zk_connection {
    struct task step; /* first */
    struct zk_connection *next;
    struct zk_ensemble *ensemble;
    uint64_t id;
    int server;
    int64_t session;
    int timeout_ms;
    struct peer *peer;
    struct zk_listener listener;
    bool hung_up, closed; /* by the client, by the server */
    bool running;         /* in zk_step */
    bool ignored;         /* another attempt of the session is answered in its place */
    bool rested;          /* the read that is next has been put off */
    bool doomed;          /* its session has ended, but an answer is on its way */
    enum zk_stage stage;
    int64_t await; /* WAITING for the server to have applied this */
    struct zk_answer pending;
    struct zk_request *first, **last;
    struct zk_watch *watches;
};

struct zk_server {
    struct task catch_up; /* first */
    struct task report;   /* a message to the leader: the sessions that were heard */
    bool overdue;         /* it could not be told when it was due */
    struct zk_ensemble *ensemble;
    int64_t applied;
    int change_count;
    mrt_time frozen_until, severed_until, down_until;
};

struct zk_ensemble {
    struct task trouble; /* first */
    struct task still, tick, reap, outsider;
    bool leaderless; /* a new leader takes every session for alive */
    struct world *world;
    struct zk_tree tree;
    int server_count;
    struct zk_server servers[ZK_SERVERS_MAX];
    struct zk_connection *connections;
    uint64_t connection_number;
    struct zk_session *sessions;
    int64_t session_number;
    struct peer outsiders; /* whom other programs' nodes belong to */
};

bool zk_stands_still(const struct zk_ensemble *ensemble, int server);
bool zk_cut_off(const struct zk_ensemble *ensemble, int server);
bool zk_is_down(const struct zk_ensemble *ensemble, int server);
mrt_time zk_better_at(const struct zk_ensemble *ensemble, int server);
void zk_committed(struct zk_ensemble *ensemble);
void zk_step(struct world *world, struct task *task);
void zk_trouble(struct world *world, struct task *task);
void zk_sweep(struct zk_ensemble *ensemble);

void zk_sessions_begin(struct zk_ensemble *ensemble);
void zk_sessions_free(struct zk_ensemble *ensemble);
struct zk_session *zk_session_find(struct zk_ensemble *ensemble, int64_t id);
/* A connection's session, a new one or its own; ZSESSIONEXPIRED: it has ended. */
int zk_session_open(struct zk_ensemble *ensemble, struct zk_connection *connection);
void zk_session_end(struct zk_ensemble *ensemble, struct zk_session *session);
void zk_touch(struct zk_ensemble *ensemble, int server, int64_t session);
/* Messages between a server and the leader come behind those due before. */
void zk_tell_overdue(struct zk_ensemble *ensemble, int server);
void zk_forget_touches(struct zk_ensemble *ensemble, int server);
/* The ticket that came next after `last`, by the creation of its first node. */
struct zk_node *zk_next_ticket(const struct zk_node *parent, int64_t last);
/* By chance an operator deletes the node of a waiter for the node that the request deletes. */
void zk_ambush(struct zk_ensemble *ensemble, const struct zk_request *request);
/* Perhaps a node of the same name, of another session. */
void zk_impostor(struct zk_ensemble *ensemble, const struct zk_part *part);

#endif
