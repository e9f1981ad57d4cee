/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to the agent, what it has asked, and the locks it has or waits for. Of agent/ only.
 *
 * Answers leave in the order of the commands. While a LOCK waits, the commands behind it are read
 * on: UNLOCK and HELD of other names, CANCEL and QUIT take effect at once, the rest in its turn; up
 * to MRT_PEER_PENDING_MAX of them are kept, then reading pauses.
 */
#ifndef MRT_AGENT_PEER_H
#define MRT_AGENT_PEER_H

#include "agent/desk.h"
#include "agent/user.h"
#include "agent/worker.h"
#include "base/name.h"
#include "base/reply.h"
#include "base/resp.h"
#include "core/uthash.h"
#include "io/driver.h"

#include <sys/types.h>

#define MRT_PEER_PENDING_MAX 64
#define MRT_PEER_LOCKS_MAX 1000
#define MRT_LABEL_SIZE 64

struct mrt_agent;

/* A command behind a LOCK that waits: its reply, or itself if its turn has not come. */
struct mrt_pending {
    struct mrt_reply reply;
    char *frame; /* NULL: `reply` is its reply */
    size_t frame_size;
    mrt_time received;
    STAILQ_ENTRY(mrt_pending) link;
};

enum mrt_peer_state {
    MRT_PEER_OPEN,
    MRT_PEER_ENDED, /* by the agent: its locks stay until it has closed, or `forget_at` */
    MRT_PEER_GONE   /* to be freed at the end of the turn */
};

struct mrt_peer {
    struct mrt_agent *agent;
    enum mrt_peer_state state;
    bool is_process; /* of BIND PROCESS: `fd` is a pidfd (process.c) */
    mrt_time since;  /* when it connected, or the process began */
    int fd;
    int process_fd;   /* a pidfd of who connected, with whom it ends; -1: none */
    uint32_t watched; /* the events registered with epoll */
    pid_t pid;
    struct mrt_user *user;
    struct mrt_access_rules rules; /* of a user who has limits */
    char space[16];                /* what stands before his names: "", or his number and "/" */
    size_t counted;                /* its part of the user's bytes */
    char *part; /* the beginning of a command whose rest has not come; NULL: none */
    size_t part_size;
    struct mrt_reply output;
    bool flushing; /* it is in the list of those that have output */
    bool quits;    /* it is closed once all output is sent */
    bool ends;     /* the agent ends it in this turn */
    mrt_time forget_at;
    struct mrt_lock *locks;           /* by name */
    struct mrt_lock *waiting;         /* the LOCK whose reply is the next; NULL: none */
    struct mrt_desk_session *session; /* after MORTISE 1: it speaks the store's port (desk.h) */
    struct mrt_operation *operation;  /* under way; NULL: none */
    STAILQ_HEAD(, mrt_pending) pending;
    size_t pending_count;
    TAILQ_ENTRY(mrt_peer) link, flush_link;
    UT_hash_handle by_pid; /* of processes */
};
TAILQ_HEAD(mrt_peer_list, mrt_peer);

/* Times, counted by powers of two of microseconds: exact counts, and the exact sum. */
#define MRT_TIMES 40
struct mrt_times {
    uint64_t counts[MRT_TIMES]; /* [i]: less than 2 to the i */
    uint64_t count, sum_us;
};

/* Writes the reply to a question from its answer. */
typedef void mrt_question_reply(const struct mrt_answer *answer, struct mrt_reply *reply);

/* A lock that a connection has, or waits for; or a question that it waits for (ask.c). */
struct mrt_lock {
    struct mrt_call call; /* first: the acquire */
    struct mrt_upcall upcall;
    struct mrt_peer *peer;
    struct mrt_queue *queue;
    struct mrt_hold *hold; /* NULL: it waits */
    struct mrt_usage *usage;
    uint64_t generation;
    mrt_time since; /* when it began to wait, then to hold */
    bool binds;     /* once it is held, it is its process's */
    void *value;    /* of a candidate; NULL: none */
    char label[MRT_LABEL_SIZE];
    mrt_question_reply *reply; /* of a question */
    struct mrt_answer *answer; /* NULL: it is a lock */
    UT_hash_handle hh;         /* by the queue's name */
};

struct mrt_agent {
    struct mrt_driver driver;
    struct mrt_desk desk;
    struct mrt_worker worker;
    int listener, epoll;
    uid_t uid;                  /* its own */
    uid_t no_user;              /* of users that this system does not know */
    gid_t no_group;             /* and of groups */
    struct mrt_access *access;  /* NULL: its own user and root alone are served */
    struct mrt_user *users;     /* by uid */
    char owner[MRT_OWNER_SIZE]; /* of its own tickets, as lists of the store show it */
    void (*log)(void *argument, const char *text);
    void *log_argument;
    mrt_time lease; /* how long a client may believe that it holds, after its connection ended */
    bool has_lease; /* the store has one: it keeps the locks of an agent that has died */
    char prefix[MRT_NAMESPACE_MAX + 2];               /* the namespace and "/" */
    struct mrt_peer *processes;                       /* by pid */
    struct mrt_peer_list peers, ended, flushes, gone; /* `ended` in the order of forget_at */
    size_t peer_count, watch_count, peers_max;        /* watched: `process_fd` */
    bool pauses;      /* no connection is accepted: no descriptor or memory is left */
    bool resumes;     /* one has been closed since */
    bool has_dropped; /* a lock, and the engine has not had its turn since */
    bool drains;
    mrt_time drain_until;
    struct mrt_times waits, holds; /* from LOCK to its grant, and from there to its end */
    struct {
        uint64_t connections, refused, commands, grants, ended;
    } counters;
};

/* Puts the peer into the list of those that have output. */
static inline void mrt_peer_has_output(struct mrt_peer *peer)
{
    if (peer->flushing || peer->state != MRT_PEER_OPEN)
        return;
    peer->flushing = true;
    TAILQ_INSERT_TAIL(&peer->agent->flushes, peer, flush_link);
}

/* ----------------------------------------------------------------- agent.c */

void mrt_agent_init(struct mrt_agent *agent);
/* After the events of a turn: runs the timers that are due and the engine, and sends the replies of
   both. The driver's mutex is held. */
void mrt_agent_finish_turn(struct mrt_agent *agent);

/* ----------------------------------------------------------------- admit.c */

/* How many connections the process has descriptors for. */
size_t mrt_peers_count_room(void);
/* Whether there is one more descriptor for this user's connections and processes. */
bool mrt_peers_have_room(const struct mrt_agent *agent, const struct mrt_user *user);
/* Begins to read the policy again. */
void mrt_policy_renew(struct mrt_agent *agent, const char *path);
/* Gives the rules and limits that were read to the connections there are. If the policy is wrong,
   a line in the log says why, and nothing changes. */
void mrt_policy_take(struct mrt_agent *agent, struct mrt_operation *operation);

/* --------------------------------------------------------------- operate.c */

/* Begins an operator call, or says why not; false: the words are none. */
bool mrt_desk_operate(struct mrt_peer *peer, const struct mrt_resp_command *words);
/* The worker has finished some. */
void mrt_desk_operated(struct mrt_agent *agent);
/* Writes what there is room for. */
void mrt_desk_write_rows(struct mrt_peer *peer);
/* The client has gone. */
void mrt_desk_forget_operation(struct mrt_peer *peer);

/* ------------------------------------------------------------------ peer.c */

/* Takes a connection that was accepted, or closes it. */
void mrt_peer_accept(struct mrt_agent *agent, int fd);
/* One that is watched for these events, and has to join; NULL: no memory, or no descriptor. */
struct mrt_peer *mrt_peer_new(struct mrt_agent *agent, int fd, uint32_t events);
/* From now on it is one of the agent's. */
void mrt_peer_join(struct mrt_peer *peer);
/* Reads what has come, or finds that the client has gone. `tag`: the peer, as epoll has it, or
   mrt_process_tag. */
void mrt_peer_event(void *tag, uint32_t events);
/* Runs the commands behind a LOCK that has its reply, and sends the replies. */
void mrt_peer_flush(struct mrt_peer *peer);
/* Ends it for a reason of the agent's; its locks stay as agent.h says. */
void mrt_peer_end(struct mrt_peer *peer);
/* It has closed: releases all that it has. */
void mrt_peer_close(struct mrt_peer *peer);
/* Frees one that is GONE. */
void mrt_peer_free(struct mrt_peer *peer);

/* -------------------------------------------------------------- commands.c */

/* Runs a command and writes its reply, unless it is a LOCK that waits. */
void mrt_command_run(struct mrt_peer *peer, const struct mrt_resp_command *command,
                     mrt_time received, struct mrt_reply *reply);
/* Whether it takes effect at once, before the LOCK that it stands behind, of another name. */
bool mrt_command_overtakes(const struct mrt_peer *peer, const struct mrt_resp_command *command);

#endif
