/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts with an agent: the agent as it ships (src/agent, with the driver and the engine below it)
 * on a stack of its own, and its clients with the store agent: as that ships.
 *
 *   agent_process.c  an agent's lives: its loop, its death, its end by a signal; system calls
 *   agent_socket.c   its side of the streams that its clients write to
 *   agent_store.c    the store that it has: port commands on the link (link.c)
 *   server_agent.c   the server of that store, the memory store's; and whose each ticket is
 *
 * An agent's loop runs until it waits, and goes on by a task of the world. Where the code of a
 * process would wait for nothing but time, the world's time passes.
 *
 * A dead process has memory to free. So the loop of one that has died runs to its end, in a time of
 * its own, in which nothing that it does reaches anybody.
 *
 * A local socket loses nothing and ends only if a side closes it or dies. So a cut holds bytes up.
 *
 * Not simulated: worker.c (operator calls are a thread's), socket.c (paths in the file system).
 */
#ifndef SIM_AGENT_HOST_H
#define SIM_AGENT_HOST_H

#include "base/list.h"
#include "fiber.h"
#include "host.h"
#include "server.h"

struct mrt_agent;
struct mrt_worker;

#define AGENTS_MAX 2
#define USERS_MAX 3
#define AGENT_STACK (256 * 1024)

/* The agent's side of a stream. */
struct agent_socket {
    struct host_socket socket; /* first */
    struct agent_host *agent;
    struct stream *stream; /* NULL: the other side has closed, or the agent has died */
    bool ended, accepted;
    char *inbox;
    size_t used, room;
    uint64_t taken; /* by the agent, of all bytes */
    TAILQ_ENTRY(agent_socket) link;
};
TAILQ_HEAD(agent_sockets, agent_socket);

/* An event for the agent, which its store has not delivered. */
struct agent_told {
    struct mrt_event event;
    uint64_t value;
    STAILQ_ENTRY(agent_told) link;
};

struct agent_host {
    struct client client; /* first: the agent as a client of its store, and the host's clock */
    struct host host;
    int number;
    struct mrt_driver *driver; /* of the agent that runs; NULL: its store is not open */
    struct fiber fiber;
    bool runs;
    bool dead;          /* and nothing that it does reaches anybody */
    int dead_turns;     /* since then */
    bool ends, is_told; /* a signal has been sent, and not been read */
    mrt_time wakes_at;  /* by its clock, from its wait */
    struct task turn, crash, pause, cut, signal, restart;
    struct host_socket listener, stop, renew, store, operations, other;
    struct mrt_worker *worker;      /* which has none but what it has done */
    bool is_renewed;                /* a signal has been sent, to read the policy again */
    bool closes;                    /* its store: it reads no signal any more */
    int policy, policy_read;        /* the number of the one it has; 0: none */
    int policy_checked;             /* which it had when its connections were counted */
    int64_t connections[USERS_MAX]; /* of each user */
    struct agent_sockets sockets;
    STAILQ_HEAD(, agent_told) told;
    char stack[AGENT_STACK];
};

/* agent_process.c */
void agent_boot(struct world *world, struct agent_host *agent, int number);
/* At the end of a run. */
void agent_free(struct agent_host *agent);
/* Something may be read. */
void agent_ready(struct agent_host *agent);
/* Runs it immediately, if it can run; for a client that waits. */
void agent_run(struct agent_host *agent);
/* Arms its disasters as the profile is now. */
void agent_arm(struct agent_host *agent);
/* Ends it by a signal; it does not come back. */
void agent_end(struct agent_host *agent);
/* Its loop has nothing to read until then, by its clock. */
void agent_sleep(struct agent_host *agent, mrt_time until);

/* agent_socket.c */
extern const struct stream_server agent_streams;
/* The connections of an agent that has ended, or died. */
void agent_disconnect(struct agent_host *agent);
/* Lets a client that opens its store have its answers immediately; false: nothing comes. */
bool agent_hurry(struct stream *stream);

/* agent_store.c */
int agent_store_find(const struct mrt_uri *uri, const struct mrt_store_ops **ops);
void agent_store_event(struct world *world, struct agent_host *agent,
                       const struct mrt_event *event);
void agent_store_forget(struct agent_host *agent);

/* server_agent.c */
struct agent_host *agent_of(const struct world *world, int number);
/* The agent of a client's host. */
struct agent_host *agent_for(const struct client *client);
/* A client has sent a command. */
void agent_note(struct world *world, const struct client *client,
                const struct mrt_command *command);
/* An agent submits a command to its store. */
void agent_submits(struct world *world, const struct agent_host *agent,
                   const struct mrt_command *command);
/* Whether an agent's ticket with this fence is kept for a while when nobody wants it: it was
   appended for a LOCK, a LOCK has had it, and fences are left. */
bool agent_keeps(const struct world *world, const struct agent_host *agent, int queue,
                 uint64_t fence);
/* A LOCK has this fence. */
void agent_locked(struct world *world, int queue, uint64_t fence);
/* A client is told so. */
void agent_told(struct world *world, const struct mrt_event *event);
void agents_heal(struct world *world);
void agents_end(struct world *world);
bool agents_ended(const struct world *world);
/* Whether they keep nothing for their clients, who have closed. */
bool agents_rest(const struct world *world);

/* agent_policy.c */
/* The number of the user whose process a client is; 0: the agent's own. */
int64_t resp_user(const struct client *client);
/* NULL: there is none. */
const char *policy_path(const struct world *world);
void policy_read_at_start(struct agent_host *agent);
uint32_t policy_worker_state(const struct agent_host *agent);
/* Whether no user has anything of it. */
bool policy_rests(const struct mrt_agent *agent);
/* After a turn of the agent. */
void policy_check_connections(struct agent_host *agent);

extern const struct host_kind agent_host_kind;

#endif
