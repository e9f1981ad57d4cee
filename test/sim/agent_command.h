/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients of an agent's commands (LOCK, UNLOCK, HELD, ...), as a client of Redis is one: processes
 * beside the clients with the library (client.c). Each has one or two connections, and on each a
 * dialogue: it takes locks, one or two at a time, the second one of a larger number; it waits,
 * cancels, repeats HELD, and gives back. Its process may stand still or die, also within a command;
 * it may close a connection, or send what is no command.
 *
 *   agent_command.c   processes: their lives, and the phases of a run
 *   agent_dialogue.c  what a connection says next
 *   agent_reply.c     commands as bytes, and what follows from the replies
 *   agent_promise.c   the invariants
 *   agent_turn.c      those of the agents' tickets at the server
 *   agent_policy.c    users, and the policy that they have
 *
 * The belief of such a client. If HELD has replied a time, it holds for so long, counted from
 * when it sent HELD, whatever befalls agent and store: unless it has given the lock back or closed
 * the connection, or an operator has broken its ticket. Where no session can end, it holds from the
 * reply to LOCK until it sends UNLOCK.
 */
#ifndef SIM_AGENT_COMMAND_H
#define SIM_AGENT_COMMAND_H

#include "agent_host.h"
#include "server.h"

#define RESP_CLIENTS_MAX 4
#define DIALOGUES_MAX 2
#define ASKED_MAX 16
#define RESP_HOLDS_MAX 2
#define RESP_INDEX (CLIENTS_MAX + AGENTS_MAX) /* of the first one, as a client */
#define TAKES_MAX 64
#define INBOX_SIZE 65536
#define POLICIES_MAX 64

enum verb {
    VERB_LOCK,
    VERB_UNLOCK,
    VERB_HELD,
    VERB_EXTEND,
    VERB_CANCEL,
    VERB_QUIT,
    VERB_PING,
    VERB_LIST,
    VERB_INFO
};

/* A command that is not answered. */
struct asked {
    enum verb verb;
    int queue;
    uint64_t fence, weight;
    int64_t ms;               /* the timeout of a LOCK; what EXTEND wants; the number of a PING */
    int64_t longest_ms;       /* of a LOCK with TTL; 0: without */
    bool reads;               /* of a read/write lock */
    bool again;               /* a LOCK of a name that this connection has */
    mrt_time sent;            /* on its client's clock */
    mrt_time since;           /* in true time */
    uint64_t ends;            /* so many bytes of the connection, with it */
    uint64_t order;           /* when the agent read it; 0: that is not known */
    const struct peer *agent; /* which agent read it, in which life, by which policy */
    int policy;
    uint64_t expected;    /* of a LOCK: the ticket that its agent keeps; 0: none */
    uint64_t contentions; /* of the lock, until then */
};

/* A lock that a LOCK has got. */
struct resp_hold {
    bool is_there;
    int queue;
    uint64_t fence, weight, order; /* of its LOCK */
    const struct peer *agent;
    mrt_time granted, got;      /* the reply came, in true time, and on its client's clock */
    mrt_time until;             /* HELD has promised, on its client's clock */
    mrt_time at_least, at_most; /* it ends by its own time between these; MRT_TIME_NEVER: it does
                                   not */
    bool is_given_back;         /* UNLOCK was sent */
    bool is_doubted;            /* another LOCK was sent, which takes its place if it is lost */
};

struct dialogue {
    struct task step; /* first */
    struct resp_client *client;
    int index, fd; /* -1: not connected */
    int64_t operations;
    struct stream *stream;
    bool has_ended;   /* the agent has closed its side, or has died */
    bool has_babbled; /* the agent is to end it */
    bool has_quit, has_reply;
    bool was_cancelled; /* the newest LOCK that was refused */
    mrt_time hold_until;
    struct asked asked[ASKED_MAX]; /* in their order */
    int asked_count;
    mrt_time first_since; /* the first of them is the first */
    struct resp_hold holds[RESP_HOLDS_MAX];
    uint64_t sent; /* bytes */
    char inbox[INBOX_SIZE];
    size_t used;
};

struct resp_client {
    struct client client; /* first: its clock and its process */
    bool runs;
    int epoll, count; /* of connections */
    struct dialogue dialogues[DIALOGUES_MAX];
};

/* A LOCK that has its fence. */
struct take {
    const struct peer *agent;
    int queue;
    uint64_t order, fence;
};

/* A ticket by which an agent has a mutex for clients of its commands. */
struct resp_turn {
    const struct agent_host *holder; /* NULL: none has the lock so */
    uint64_t fence, span;
    bool is_had;              /* a client had it after the last step */
    bool was_contended;       /* others have waited behind it */
    mrt_time idle_since;      /* no client has it */
    mrt_time contended_since; /* others wait at the server; MRT_TIME_NEVER: none does */
    mrt_time overdue_since;   /* the first grant beyond the budget */
};

/* The rules of a user. */
struct user_policy {
    bool acquires, shares, first_alone; /* of the first lock alone */
    int64_t connections, tickets, names, waiters;
    int64_t hold_ms; /* 0: a hold has no limit */
};

struct policy {
    struct user_policy users[USERS_MAX];
};

struct resp_world {
    struct world *world;
    int count;
    uint64_t order, number;
    mrt_time calm_since; /* no session has been able to end */
    struct take takes[TAKES_MAX];
    size_t take_count;
    struct resp_turn turns[QUEUES_MAX];
    uint64_t contentions[QUEUES_MAX]; /* steps in which others waited at the server */
    mrt_time limit; /* of what is to be done immediately; MRT_TIME_NEVER: there is none now */
    int file;       /* of the policy; -1: there is none */
    char path[32];
    struct task policy;
    int64_t policy_every_us;
    struct policy policies[POLICIES_MAX];
    int policy_count;
    struct resp_client clients[RESP_CLIENTS_MAX];
};

/* agent_command.c */
/* Before there is an agent. */
void resp_begin(struct world *world);
void resp_populate(struct world *world);
void resp_heal(struct world *world);
void resp_close(struct world *world);
void resp_fini(struct world *world);
bool resp_idle(const struct world *world);
/* Fails for one that is not. */
void resp_complain(const struct world *world);
/* An agent's process has gone. */
void resp_end_streams(struct world *world, int agent);

/* agent_dialogue.c */
/* Plans its next step after at most so long. */
void dialogue_step_in(struct dialogue *dialogue, int64_t limit_us);
void dialogue_begin(struct dialogue *dialogue, int64_t operations);
bool dialogue_idle(const struct dialogue *dialogue);
/* Its connection is no more. */
void dialogue_forget(struct dialogue *dialogue);
/* Sends the beginning of a command: its process is about to die. */
void dialogue_break_off(struct dialogue *dialogue);
/* All that has come is read. */
void dialogue_continue(struct dialogue *dialogue);
/* Whether such a command is not answered. */
bool dialogue_has_asked(const struct dialogue *dialogue, enum verb verb);
struct resp_hold *dialogue_hold(struct dialogue *dialogue, int queue);

/* agent_reply.c */
/* Sends a command of these words; the last one is NULL. */
void dialogue_say(struct dialogue *dialogue, struct asked asked, const char *const *words);
void dialogue_send(struct dialogue *dialogue, const char *bytes, size_t size);
void dialogue_read(struct dialogue *dialogue);

/* agent_promise.c */
/* The weight of a lock that clients by the commands may believe to hold. */
uint64_t resp_weight(struct world *world, int queue);
/* An agent has read so much of a connection. */
void resp_taken(const struct stream *stream, uint64_t bytes);
void resp_granted(struct dialogue *dialogue, const struct asked *asked, uint64_t fence);
void resp_promised(struct dialogue *dialogue, const struct asked *asked, int64_t ms);
/* Whether a command may be answered so. */
void resp_check_error(struct dialogue *dialogue, const struct asked *asked, const char *line);

/* agent_policy.c */
void policy_begin(struct world *world);
void policy_end(struct resp_world *resp);
/* Whether a LOCK is against the policy by which the agent has read it, if that is known. */
bool policy_refuses(const struct dialogue *dialogue, const struct asked *asked);
/* How long the hold of a LOCK lasts at most; 0: for ever. */
mrt_time policy_longest(const struct dialogue *dialogue, const struct asked *asked);
/* Whether an EXTEND by which a hold lasts so long, from now, is within the policy. */
bool policy_extends(const struct dialogue *dialogue, const struct asked *asked,
                    const struct resp_hold *hold, int64_t ms);
void policy_check_granted(const struct dialogue *dialogue, const struct asked *asked);

/* agent_turn.c */
/* After each step. `calm`: there is no fault, and what has to be done is done within the limit. */
void resp_check(struct world *world, int queue, bool calm, mrt_time limit);
/* The ticket that an agent keeps, and a LOCK that is sent now has to get; 0: none. */
uint64_t resp_expected(const struct world *world, const struct agent_host *agent, int queue);
void resp_check_turn(struct dialogue *dialogue, const struct asked *asked, uint64_t fence);

__attribute__((format(printf, 3, 4))) _Noreturn void resp_fail(const struct dialogue *dialogue,
                                                               int queue, const char *format, ...);

#endif
