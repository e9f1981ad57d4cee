/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to an agent: wire.c. The socket never blocks; calls with a deadline poll.
 */
#ifndef MRT_STORE_AGENT_WIRE_H
#define MRT_STORE_AGENT_WIRE_H

#include "base/name.h"
#include "base/reply.h"
#include "base/resp.h"
#include "core/store.h"

#include <sys/un.h>

#define MRT_AGENT_HOST_SOCKET "/run/mortise/agent.sock"
#define MRT_AGENT_INPUT_SIZE (4 * MRT_RESP_SIZE_MAX)

/* Where an agent is, and whom to believe there: of a URI. */
struct mrt_agent_address {
    char path[sizeof((struct sockaddr_un *)0)->sun_path];
    uint64_t uid; /* that the agent may have, beside root and this process's own */
};

/* The abilities of the store behind an agent, as letters of its greeting. */
enum {
    MRT_AGENT_FAIR = 'f',
    MRT_AGENT_EXCLUSIVE_FAIR = 'e',
    MRT_AGENT_FENCE = 'n',
    MRT_AGENT_NOTIFY = 'w',
    MRT_AGENT_ACROSS_HOSTS = 'h',
    MRT_AGENT_SURVIVES_FAILOVER = 's',
    MRT_AGENT_DURABLE_FENCE = 'd',
    MRT_AGENT_DETACH = 't',
    MRT_AGENT_LINGER = 'l',
    MRT_AGENT_LOCK_DELAY = 'k',
    MRT_AGENT_VALUES = 'v',
    MRT_AGENT_CELLS = 'c',
    MRT_AGENT_CLAIMS_END = 'x'
};
/* The abilities of an agent itself, in the word behind those, which older agents leave out. */
#define MRT_AGENT_SEES_PROCESS 'e'

/* The greeting of an agent. */
struct mrt_agent_greeting {
    struct mrt_id instance;
    char store[512]; /* its address */
    char prefix[MRT_NAMESPACE_MAX + 2];
    mrt_time lease, lag;
    char can[32];      /* those letters */
    bool sees_process; /* a START may say `with_process` */
};

struct mrt_agent_wire {
    int fd;    /* -1: none */
    int epoll; /* that watches fd; -1: none does */
    uint32_t events;
    struct mrt_reply output;
    char input[MRT_AGENT_INPUT_SIZE];
    size_t size, used; /* of the input: what is there, and what has been read of it */
};

/* The socket of this user's agent. false: XDG_RUNTIME_DIR names no
   place, or one too long. */
bool mrt_agent_user_socket(char *path, size_t size);
/* The path of a URI: agent:, agent:user, agent:///path. 0 or MORTISE_EURI. */
int mrt_agent_address_read(const struct mrt_uri *uri, struct mrt_agent_address *address);
/* Connects, and sends MORTISE 1 with the label; until then it tries again if too many others do so
   at the same time. 0; MORTISE_EUNREACHABLE, or MORTISE_EUNSAFE if the agent is another user's,
   with particulars. */
int mrt_agent_wire_open(struct mrt_agent_wire *wire, const struct mrt_agent_address *address,
                        const char *label, int epoll, mrt_time until);
void mrt_agent_wire_close(struct mrt_agent_wire *wire);
/* Sends what the socket takes, and has the rest watched; false: the connection is broken. */
bool mrt_agent_wire_flush(struct mrt_agent_wire *wire);
/* Reads what has come, once; false: the connection has ended. *more: there may be more. */
bool mrt_agent_wire_receive(struct mrt_agent_wire *wire, bool *more);
/* The next frame of the input; false: none is whole. *wrong: not NULL if it is no frame. */
bool mrt_agent_wire_next(struct mrt_agent_wire *wire, struct mrt_resp_command *frame,
                         const char **wrong);
/* The same, waiting for it. 0 or MORTISE_EUNREACHABLE with particulars. */
int mrt_agent_wire_wait(struct mrt_agent_wire *wire, mrt_time until,
                        struct mrt_resp_command *frame);
/* Reads the greeting. 0; or what the agent refuses, with particulars. */
int mrt_agent_greeting_read(const struct mrt_resp_command *frame,
                            struct mrt_agent_greeting *greeting);
/* Opens, and waits for the greeting. */
int mrt_agent_wire_greet(struct mrt_agent_wire *wire, const struct mrt_agent_address *address,
                         const char *label, mrt_time until, struct mrt_agent_greeting *greeting);

#endif
