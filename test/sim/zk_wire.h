/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections between the client library's fake and the ensemble: bytes in order, late, and
 * what befalls them. A cut either resets a connection (what was on its way to the
 * client is lost, what was on its way to the server arrives or not), or stalls it, so that
 * only silence tells.
 */
#ifndef SIM_ZK_WIRE_H
#define SIM_ZK_WIRE_H

#include "host.h"
#include "zk_ensemble.h"

enum zk_packet_kind { ZK_PACKET_OPENED, ZK_PACKET_ANSWER, ZK_PACKET_EVENT };

struct zk_packet {
    struct task task; /* first */
    struct zk_packet *next;
    struct zk_wire *wire;
    void (*arrive)(struct world *world, struct zk_packet *packet);
    enum zk_packet_kind kind;
    struct zk_request *request; /* to the server */
    struct zk_answer answer;
    int code, timeout_ms, type;
    int64_t session, seen;
    char path[ZK_PATH_SIZE];
};

struct zk_wire {
    struct host_socket socket; /* first */
    struct zk_wire *next;      /* of the client's */
    struct client *client;
    struct zk_connection *connection;
    int server;
    mrt_time up, down;                   /* nothing may arrive before */
    bool deaf;                           /* the server cannot make sense of what it gets */
    bool refused, broken, ended, closed; /* ended: by the server, behind what it has sent */
    bool shut;                           /* by the client, which can send nothing more */
    struct zk_packet *travelling;
    struct zk_packet *first, **last; /* arrived at the client, not read */
};

struct zk_wire *zk_wire_open(struct world *world, struct client *client, int server);
void zk_wire_handshake(struct zk_wire *wire, int64_t session, int timeout_ms, int64_t seen);
void zk_wire_send(struct zk_wire *wire, struct zk_request *request);
/* The next packet, to be given back with zk_packet_free; NULL: none. */
struct zk_packet *zk_wire_read(struct zk_wire *wire);
void zk_packet_free(struct zk_packet *packet);
bool zk_wire_readable(const struct zk_wire *wire);

/* The client's net goes down; and at the end of a run. */
void zk_wires_cut(struct world *world, struct client *client);
void zk_wires_free(struct client *client);

#endif
