/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutexes of client sessions that are handed on inside the agent: see mutex.c. Of agent/ only.
 */
#ifndef MRT_AGENT_MUTEX_H
#define MRT_AGENT_MUTEX_H

#include "agent/desk.h"
#include "io/driver.h"

/* A command behind the one that is not answered. */
struct mrt_desk_later {
    struct mrt_command command; /* without its texts, which none of these needs */
    STAILQ_ENTRY(mrt_desk_later) link;
};

struct mrt_operation;

struct mrt_desk_mutex {
    struct mrt_call call;     /* first: the acquire, then a look or a detaching */
    struct mrt_upcall upcall; /* the call has ended, or the hold has */
    struct mrt_agent *agent;
    struct mrt_desk_ticket *ticket;
    struct mrt_queue *queue;
    struct mrt_hold *hold; /* NULL: it has none */
    uint64_t generation;
    uint64_t number;          /* from MRT_WAITING_NUMBER on; no other one has it */
    mrt_time granted_at;      /* once it holds */
    int64_t since_wall_ms;    /* as lists have it, the same each time; 0: none has had it */
    uint64_t revokes;         /* requests of operators here to give it up */
    struct mrt_command asked; /* the command that is not answered; its serial is 0: there is none */
    STAILQ_HEAD(, mrt_desk_later) later;
    bool calls;      /* `call` is under way */
    bool has_failed; /* its acquire, after it had been answered */
    bool wants_place, watches;
    bool knows_others;  /* it was told that others wait behind it */
    struct mrt_id left; /* the ticket of the agent that it leaves */
    bool is_pending;    /* it is looked at in each turn */
    TAILQ_ENTRY(mrt_desk_mutex) link;
};

/* --------------------------------------------------------------------- mutex.c */

bool mrt_desk_is_mutex(const struct mrt_frame_command *frame);
/* Its session has ended; it is freed, with its ticket, once the store has nothing of it. */
void mrt_desk_mutex_leave(struct mrt_desk_mutex *mutex);
/* An operator has taken it away; it may be freed. */
void mrt_desk_mutex_break(struct mrt_desk_mutex *mutex);
/* An operator wants its holder to give it up. */
void mrt_desk_mutex_revoke(struct mrt_desk_mutex *mutex);
/* As mrt_desk_recall. */
void mrt_desk_mutex_recall(struct mrt_desk_mutex *mutex, bool answers);
/* An event of a ticket of the agent, which the engine takes next. */
void mrt_desk_mutex_seen(struct mrt_agent *agent, const struct mrt_event *event);
/* With its ticket; NULL: there is none. */
void mrt_desk_mutex_free(struct mrt_desk_mutex *mutex);

/* Of mutex_take.c only. NULL: no memory. */
struct mrt_desk_mutex *mrt_desk_mutex_new(struct mrt_desk_ticket *ticket, struct mrt_queue *queue);
/* Begins a call; it may be DONE at once, which mrt_desk_mutex_check finds: it may be freed then. */
struct mrt_waiter *mrt_desk_mutex_call(struct mrt_desk_mutex *mutex);
void mrt_desk_mutex_check(struct mrt_desk_mutex *mutex);
/* The state now: it is held, or waits. */
struct mrt_event mrt_desk_mutex_view(struct mrt_desk_mutex *mutex);
/* Tells the client, by the answer to its command if there is one. */
void mrt_desk_mutex_answer(struct mrt_desk_mutex *mutex, struct mrt_event event);
/* The client has it no longer, and is told so; it is freed. */
void mrt_desk_mutex_end(struct mrt_desk_mutex *mutex, enum mrt_event_type type, int error);
/* It was detached, or not, by this error; it is freed. */
void mrt_desk_mutex_detached(struct mrt_desk_mutex *mutex, int error);
/* Takes the next command from behind the one that was answered; false: there is none. */
bool mrt_desk_mutex_next(struct mrt_desk_mutex *mutex);
/* Whether it is looked at in each turn. */
void mrt_desk_mutex_wait(struct mrt_desk_mutex *mutex, bool is_pending);
/* Ends one that has left, once the store has nothing of it. */
void mrt_desk_mutex_finish(struct mrt_desk_mutex *mutex);

/* ---------------------------------------------------------------- mutex_take.c */

/* Takes the APPEND of a new ticket; false: it needs one of its own at the store, or memory. The
   ticket may be freed. */
bool mrt_desk_mutex_begin(struct mrt_desk_ticket *ticket, const struct mrt_frame_command *frame);
/* A later command of its client; it may be freed. False: no memory. */
bool mrt_desk_mutex_take(struct mrt_desk_mutex *mutex, const struct mrt_command *command);
/* How many wait for the mutex of this name in the agent, and not at the store. */
uint64_t mrt_desk_mutex_waiters(const struct mrt_agent *agent, const char *name);
/* Answers what has waited for the store. */
void mrt_desk_mutex_turn(struct mrt_agent *agent);

/* --------------------------------------------------------------------- ticket.c */

void mrt_desk_ticket_granted(struct mrt_desk_ticket *ticket);
/* A mutex that is adopted has as many fences as one that is handed on here, unless more of them
   have been used. */
void mrt_desk_ticket_trim(const struct mrt_agent *agent, const struct mrt_desk_ticket *ticket,
                          struct mrt_event *view);

/* ----------------------------------------------------------------- mutex_list.c */

/* Inserts those that a list asks for into its rows, in place of the agent's tickets. */
void mrt_desk_mutex_list(struct mrt_agent *agent, struct mrt_operation *operation);
/* Does a revoke or a break of one that has, or had, this number, and notes the error; false: it is
   for the store. */
bool mrt_desk_mutex_operate(struct mrt_agent *agent, struct mrt_operation *operation);

#endif
