/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fake of the ZooKeeper store behind the port, shared by its two files:
 *   server_zookeeper.c  sessions, connections, and tickets in an order
 *   server_zk_claim.c   tickets that are claims
 */
#ifndef SIM_ZK_PORT_H
#define SIM_ZK_PORT_H

#include "server.h"
#include "zk_ensemble.h"

struct ticket {
    struct ticket *next;
    struct mrt_id id;
    int queue;
    bool created, outcome_unknown, watching;
    int64_t czxid;
    int32_t version; /* of a claim: of its directory, as last read */
    char path[ZK_PATH_SIZE];
};

struct session {
    struct task reopen; /* first */
    struct session *next;
    struct port *port;
    struct mrt_id id;
    struct peer *peer;
    struct zk_connection *connection;
    int64_t server_id, seen;
    int timeout_ms; /* as granted */
    bool open, over, ending;
    struct ticket *tickets;
    struct work *first, **last; /* under way, as sent */
};

/* A request of a command. */
struct work {
    struct work *next;
    struct mrt_command command;
    struct ticket *ticket;
    enum zk_type type;
    bool find; /* a list to find a node that may be there */
    bool undo, watch, parent;
    bool aside;              /* an answer to it does not end the command */
    char name[ZK_NAME_SIZE]; /* of the node that EXISTS asks about */
};

struct port {
    struct world *world;
    struct zk_ensemble *ensemble;
    struct session *sessions;
};

void zk_port_tell(struct session *session, const struct mrt_command *command,
                  enum mrt_event_type type, int error);
struct work *zk_port_ask(struct session *session, const struct mrt_command *command,
                         struct ticket *ticket, struct zk_request *request);
void zk_port_ask_parents(struct session *session, const struct mrt_command *command,
                         struct ticket *ticket);
void zk_port_watch(struct session *session, const struct work *work, const char *name);
/* The path of a child of the ticket's directory; "": of the directory. */
const char *zk_port_path(const struct session *session, const struct ticket *ticket,
                         const char *name, char path[ZK_PATH_SIZE]);

/* server_zk_claim.c */
void zk_port_claim(struct session *session, const struct mrt_command *command,
                   struct ticket *ticket);
void zk_port_claim_answer(struct session *session, const struct work *work,
                          const struct zk_answer *answer);

#endif
