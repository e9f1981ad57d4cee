/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store agent:, one connection to the agent of this host. Of agent/ only.
 *   port.c      commands to the agent, events from it, and the end of the connection
 *   ops.c       the table of operations, by what the store behind the agent can do
 *   operator.c  lists, revokes and breaks, by connections of their own
 *   wire.c      a connection
 *   frame.c     commands and events as words
 */
#ifndef MRT_STORE_AGENT_INTERNAL_H
#define MRT_STORE_AGENT_INTERNAL_H

#include "core/uthash.h"
#include "store/agent/wire.h"

/* A ticket of the session. */
struct mrt_agent_ticket {
    struct mrt_id id;
    uint64_t weight, capacity;
    bool is_granted;
    UT_hash_handle hh;
};

/* A command that the agent has not answered. */
struct mrt_agent_asked {
    struct mrt_command command; /* without its texts */
    mrt_time sent;
    UT_hash_handle hh; /* by serial */
};

struct mrt_agent_store {
    struct mrt_sink sink;
    struct mrt_agent_address address;
    struct mrt_agent_greeting greeting; /* of the first connection: the others are to be alike */
    char *label;
    bool is_kept; /* by who has its descriptors: the session does not end with this process */
    int epoll;
    struct mrt_agent_wire wire;
    bool is_greeted;       /* the connection's greeting has come */
    struct mrt_id session; /* of the connection, or believed beyond its end */
    bool is_over;          /* the connection has ended, and the session is believed in */
    int error;             /* not 0: the agent is another one, for good */
    char why[256];         /* it, or the newest reason that the agent is not reached */
    mrt_time not_before;   /* no connection is tried earlier */
    struct mrt_agent_asked *asked;
    struct mrt_agent_ticket *tickets;
    size_t granted;
    struct mrt_traffic traffic;
};

/* port.c */
int mrt_agent_open(const struct mrt_uri *uri, const struct mrt_store_options *options,
                   struct mrt_sink sink, struct mrt_store **opened);
bool mrt_agent_submit(struct mrt_store *store, const struct mrt_command *command,
                      mrt_time patience);
void mrt_agent_process(struct mrt_store *store, mrt_time now);
void mrt_agent_close(struct mrt_store *store);
void mrt_agent_abandon(struct mrt_store *store);

/* operator.c */
int mrt_agent_list(struct mrt_store *store, const char *name, const char *prefix,
                   mrt_listed_callback callback, void *argument);
int mrt_agent_revoke(struct mrt_store *store, const char *name, uint64_t fence);
int mrt_agent_break(struct mrt_store *store, const char *name, uint64_t fence);
int mrt_agent_server(struct mrt_store *store, char *text, size_t size);

#endif
