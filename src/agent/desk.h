/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The desk: the store's port for programs with the library (src/store/agent), over the agent's own
 * session. A connection that has said MORTISE 1 is a client session; its tickets are mostly tickets
 * of the agent's store session, with the same identities; commands and events are passed through.
 *
 *   session.c   client sessions: their beginning, proof of life, and end
 *   take.c      their frames: which are refused, and who does the others
 *   desk.c      commands on their way to the store, and what the store says
 *   ticket.c    tickets, and those that outlive their client session
 *   mutex.c     mutexes, which are handed on here, behind one ticket of the agent; mutex_take.c
 *   rights.c    what a policy lets a user do
 *   operate.c   lists, revokes and breaks; worker.c makes those calls
 *
 * The rules, each with its reason.
 *  1. A ticket is given up early by the client's own word (STOP, REMOVE, the end of its stream)
 * alone. A client session that the agent ends keeps its tickets as agent.h says.
 *  2. A client session is bound to the store session in which it was begun, and ends with it,
 * before any further frame is read. STARTED and RENEWED tell how old the store session's proof is
 * at that moment; the client dates it from when it had asked (src/store/agent/port.c), so its hold
 *     ends no later than this session's. A store session that is lost before its lease is over is
 *     not ended at the store until a client can trust it no longer (trusted_for of core/engine.h).
 *  3. A store without leases frees the agent's tickets when the agent dies. There each ticket is
 *     appended with a delay of the lease that clients are told, before its own. Alone it waits for
 *     no disk: clients end with the host.
 *  4. A client that has not asked for a lease is dead, or can believe no longer.
 *  5. A user of the policy may do what a rule says, with tickets of his own connection alone: the
 *     agent believes his commands only the identity of a ticket (rights.h).
 *
 * Invariant: a client's ticket is found by that client's session alone. Threads: the agent's.
 */
#ifndef MRT_AGENT_DESK_H
#define MRT_AGENT_DESK_H

#include "base/heap.h"
#include "base/list.h"
#include "base/owner.h"
#include "base/resp.h"
#include "core/engine.h"
#include "core/uthash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mrt_agent;
struct mrt_driver;
struct mrt_peer;
struct mrt_frame_command;
struct mrt_usage;
struct mrt_user;

enum mrt_desk_timer { MRT_DESK_SESSION, MRT_DESK_TICKET };

/* A ticket of a client, or what it observes. */
struct mrt_desk_ticket {
    struct mrt_id id;
    struct mrt_desk_session *session; /* NULL: its client has gone, and it is to go */
    bool observes;                    /* it is no ticket, but an OBSERVE that wants to be woken */
    bool is_asked;                    /* its OBSERVE is not answered */
    bool is_granted;
    bool may_be_there; /* an answer has left it open, or said that it is in the store */
    bool is_leaving;   /* its removal is requested by the agent */
    bool is_kept;      /* by its delay, until the timer */
    unsigned appends;  /* APPENDs that are not answered: it may be there after each of them */
    uint64_t weight, capacity, fence;
    mrt_time delay;
    bool claim, reads;            /* as its APPEND said: without an order; a reader's */
    bool watches, lingers;        /* as its newest command said */
    struct mrt_user *user;        /* who has limits; NULL: none */
    struct mrt_usage *usage;      /* what it counts for, of this user */
    bool waits;                   /* it counts as a waiter there */
    bool is_looked_at;            /* by the agent, whose REFRESH is not answered */
    struct mrt_desk_mutex *mutex; /* NULL: it is a ticket of the store */
    uint64_t last_fence;          /* of a mutex that it adopts; UINT64_MAX: it adopts none */
    struct mrt_timer timer;
    TAILQ_ENTRY(mrt_desk_ticket) link; /* of its session, or of those that are kept */
    UT_hash_handle hh;                 /* by id */
    char queue[];
};
TAILQ_HEAD(mrt_desk_tickets, mrt_desk_ticket);
TAILQ_HEAD(mrt_desk_mutexes, mrt_desk_mutex);

enum mrt_desk_state {
    MRT_DESK_NONE,
    MRT_DESK_STARTING, /* the store session is not there yet */
    MRT_DESK_LIVE,
    MRT_DESK_STOPPING /* its tickets are being removed */
};

/* The session of a connection: peer->session. */
struct mrt_desk_session {
    struct mrt_agent *agent;
    struct mrt_peer *peer;
    enum mrt_desk_state state;
    struct mrt_id id;
    uint64_t asked; /* serial of the START or STOP that is not answered */
    struct mrt_timer timer;
    struct mrt_desk_tickets tickets;
    size_t granted;
    size_t commands, bytes;     /* that are not answered, and their memory */
    char owner[MRT_OWNER_SIZE]; /* as lists show it */
    TAILQ_ENTRY(mrt_desk_session) link;
};
TAILQ_HEAD(mrt_desk_sessions, mrt_desk_session);

/* A command on its way to the store. Its texts stand behind it. */
struct mrt_desk_command {
    struct mrt_command command;
    struct mrt_desk_session *session; /* NULL: nobody waits for the answer */
    uint64_t serial;                  /* of the client's command */
    bool is_own;                      /* the agent's own removal */
    size_t size;                      /* in memory */
    UT_hash_handle hh;                /* by the command's serial */
    STAILQ_ENTRY(mrt_desk_command) link;
    char texts[];
};
STAILQ_HEAD(mrt_desk_commands, mrt_desk_command);

struct mrt_desk {
    struct mrt_id instance; /* of this agent */
    bool lives;             /* there is a store session, and client sessions are bound to it */
    struct mrt_engine_life life;
    mrt_time trusted_until;   /* a client may trust the store session that was lost */
    mrt_time busy_until;      /* the store took no command: the next is tried then */
    uint64_t serial, mutexes; /* the newest */
    struct mrt_heap timers;
    struct mrt_desk_sessions sessions;
    struct mrt_desk_ticket *tickets;
    struct mrt_desk_tickets kept;
    struct mrt_desk_mutexes pending;           /* that wait for the agent's ticket, to be told */
    struct mrt_desk_command *commands;         /* all that are not answered */
    struct mrt_desk_commands outbox, answered; /* not submitted yet; to be freed */
};

void mrt_desk_init(struct mrt_desk *desk);
void mrt_desk_free(struct mrt_desk *desk);

/* -------------------------------------------------------------------- session.c */

/* MORTISE 1 label: false: no memory. */
bool mrt_desk_greet(struct mrt_peer *peer, const struct mrt_resp_word *label);
/* The client has gone. */
void mrt_desk_close(struct mrt_peer *peer);
/* Whether the connection may believe that it holds something. */
bool mrt_desk_holds(const struct mrt_peer *peer);
/* Whether a user with limits has so many commands under way that the next one is not read. */
bool mrt_desk_is_busy(const struct mrt_peer *peer);
/* A hold has lasted as long as the policy lets it: its session ends. */
void mrt_desk_overstay(struct mrt_desk_session *session);
/* Compares the store session with that of the client sessions, and ends those that have lost
   theirs. */
void mrt_desk_check(struct mrt_agent *agent, mrt_time now);
void mrt_desk_answer(struct mrt_desk_session *session, const struct mrt_event *event);
void mrt_desk_stopped(struct mrt_desk_session *session);

/* ----------------------------------------------------------------------- desk.c */

/* Timers, and what there is for the store. */
void mrt_desk_turn(struct mrt_agent *agent);
/* When the next turn is due. */
mrt_time mrt_desk_next(const struct mrt_desk *desk);
/* Whether something is left to be given back to the store. */
bool mrt_desk_owes(const struct mrt_desk *desk);
/* The driver's tap. */
bool mrt_desk_tap(struct mrt_driver *driver, const struct mrt_event *event);
/* Passes a command on; false: no memory. */
bool mrt_desk_pass(struct mrt_desk_session *session, const struct mrt_frame_command *frame);
/* Sends the agent's own REMOVE of a ticket; false: no memory. */
bool mrt_desk_remove(struct mrt_agent *agent, const struct mrt_desk_ticket *ticket);
/* Looks at a ticket for the agent itself; false: no memory. */
bool mrt_desk_look(struct mrt_agent *agent, const struct mrt_desk_ticket *ticket);
/* No answer goes to a session that is freed, or was lost: then each command is answered as one of
   a session that has ended. */
void mrt_desk_recall(struct mrt_desk_session *session, bool answers);
/* The store session has ended, and what was to be sent in it. */
void mrt_desk_drop_outbox(struct mrt_desk *desk);

/* --------------------------------------------------------------------- ticket.c */

struct mrt_desk_ticket *mrt_desk_find(const struct mrt_desk *desk, struct mrt_id id);
/* NULL: no memory. */
struct mrt_desk_ticket *mrt_desk_ticket_new(struct mrt_desk_session *session,
                                            const struct mrt_frame_command *frame);
void mrt_desk_ticket_free(struct mrt_agent *agent, struct mrt_desk_ticket *ticket);
/* Notes a command of it that was passed on. */
void mrt_desk_ticket_note(struct mrt_desk_ticket *ticket, const struct mrt_command *command);
/* Sets the timer by which the user's limit of holds is kept, if he has one. */
void mrt_desk_ticket_limit(struct mrt_desk_ticket *ticket);
/* Follows what the store says of it; it may be freed. `asked`: the command that is answered. */
void mrt_desk_ticket_follow(struct mrt_agent *agent, struct mrt_desk_ticket *ticket,
                            const struct mrt_event *event, const struct mrt_desk_command *asked);
/* When a ticket of this queue is to be looked at again, by the store and by the delays here. */
mrt_time mrt_desk_recheck(const struct mrt_desk *desk, const char *queue, mrt_time told);
/* Its session has ended. */
void mrt_desk_ticket_leave(struct mrt_agent *agent, struct mrt_desk_ticket *ticket, bool died);
void mrt_desk_ticket_timer(struct mrt_agent *agent, struct mrt_desk_ticket *ticket);

#endif
