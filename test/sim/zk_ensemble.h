/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ZooKeeper ensemble in virtual time. Server 0 leads. It shares with the real one:
 *
 *  - The requests of a connection are answered in order. Reads are answered from what
 *    that server has applied; writes and syncs go by the leader, and are answered when the
 *    server has applied all that was committed until then.
 *  - A follower lags. It may be cut off from the leader for a while: it goes on answering
 *    reads and pings. Any server may stand still, or break down and lose its connections. One that
 *    stood still may answer an attempt to attach a session that was given up meanwhile, and not the
 *    one that came after it.
 *  - Watches are one-shot and belong to a connection: an event goes out before
 *    any answer that shows the change. At a reconnect they are set again, and those that
 *    something has happened to meanwhile go off.
 *  - A session belongs to the connection it was last opened on; what an older one still
 *    asks of the leader is refused. It ends when the leader has heard nothing of it for its
 *    time-out, at the next tick. A follower tells the leader each half tick whom it has heard;
 *    what it has not told yet dies with it. The leader asks for that on the one connection that
 *    answers to writes and syncs come by: what was due while they were cut off comes before these.
 *  - A request on its way when its connection ends may be done or not.
 *
 * Besides clients there are outsiders: other programs' nodes in the locks' directories.
 */
#ifndef SIM_ZK_ENSEMBLE_H
#define SIM_ZK_ENSEMBLE_H

#include "world.h"
#include "zk_tree.h"

#define ZK_SERVERS_MAX 3
#define ZK_CHROOT "/apps/mortise"
#define ZK_CLAIM "lock" /* the node of a lock that keeps no order */

struct zk_ensemble;
struct zk_connection;

struct zk_listener {
    /* `code`: ZOK, ZSESSIONEXPIRED, or ZCONNECTIONLOSS if the server refuses. */
    void (*opened)(void *context, int code, int64_t session, int timeout_ms);
    void (*answered)(void *context, const struct zk_answer *answer);
    void (*happened)(void *context, int type, const char *path);
    void (*closed)(void *context); /* by the server */
    void *context;
};

struct zk_ensemble *zk_new(struct world *world);
void zk_free(struct zk_ensemble *ensemble);
/* A world's. */
struct zk_ensemble *zk_ensemble_of(struct world *world);
int zk_servers(const struct zk_ensemble *ensemble);
/* Opens session `id`, 0 for a new one, of which the client has seen changes up to `seen`. */
struct zk_connection *zk_open(struct zk_ensemble *ensemble, int server, int64_t id, int timeout_ms,
                              int64_t seen, struct peer *peer, struct zk_listener listener);
/* Takes the request, allocated with zk_request_new. */
void zk_send(struct zk_connection *connection, struct zk_request *request);
/* The client's end is gone; nothing is told any more. Earlier requests are done if it was closed in
 * order; else all of them, or those that the leader has received. */
void zk_hang_up(struct zk_connection *connection, bool orderly);

struct zk_request *zk_request_new(enum zk_type type, const char *path);
void zk_request_free(struct zk_request *request);

/* For server.c's sake. */
void zk_truth(struct zk_ensemble *ensemble, int queue, const struct peer *peer,
              struct truth *truth);
/* Of the ticket of this fence, if it is the first. */
bool zk_break(struct zk_ensemble *ensemble, int queue, uint64_t fence);
/* Writes into its node as Curator's Revoker does; 0: whatever fence it has. */
bool zk_revoke(struct zk_ensemble *ensemble, int queue, uint64_t fence);
/* The value of the cell "cell". */
uint64_t zk_cell(struct zk_ensemble *ensemble);
int zk_left(struct zk_ensemble *ensemble);

#endif
