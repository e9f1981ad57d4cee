/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server model, as server.c drives it. A model that a store in the client talks to by connections
 * needs no `apply`, and no `died`, because they end with the client; `kill` is left out where there
 * is nothing to forget.
 */
#ifndef SIM_SERVER_H
#define SIM_SERVER_H

#include "stream.h"

struct server_model {
    bool is_steady; /* its truth changes only in steps that set server_changed or owners_changed */
    const struct stream_server *streams; /* of a model whose clients send streams of bytes */
    void *(*new)(struct world *world);
    void (*populate)(struct world *world, void *server);
    void (*free)(void *server);
    void (*apply)(struct world *world, void *server, struct peer *peer,
                  const struct mrt_command *command);
    void (*died)(struct world *world, void *server, struct peer *peer);
    void (*kill)(struct world *world, void *server, struct peer *peer);
    bool (*break_ticket)(struct world *world, void *server, int queue, uint64_t fence);
    bool (*revoke)(struct world *world, void *server, int queue, uint64_t fence);
    void (*reboot)(struct world *world, void *server);
    /* One of its troubles, until then; of servers behind streams. */
    void (*befall)(struct world *world, void *server, int trouble, mrt_time until);
    void (*truth)(struct world *world, void *server, int queue, const struct peer *peer,
                  struct truth *truth);
    int (*left)(struct world *world, void *server);
    uint64_t (*cell)(void *server);
    /* Of agents: an event of their server's; whose a ticket is, NULL: nobody's. */
    void (*told)(struct world *world, void *server, const struct peer *peer,
                 const struct mrt_event *event);
    struct peer *(*owner)(void *server, int queue, uint64_t fence);
};

extern const struct server_model memory_model, sqlite_model, zookeeper_model, zk_library_model,
    redis_model, quorum_model, postgres_model, etcd_model, agent_model;

struct server {
    const struct server_model *model;
    void *state;
};

int server_queue_index(const struct world *world, const char *name);

#endif
