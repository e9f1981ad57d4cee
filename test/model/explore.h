/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exhaustive explorer of the engine that ships: all that a few clients of one lock can do,
 * in every order, over the memory store's server and a link that may lose a reply.
 *
 *   explore.c          the instances, the seeded defects, what is printed
 *   explore_search.c   depth first through all states; going back; the states seen
 *   explore_memory.c   the arena that a whole world lives in
 *   explore_world.c    clients with real engines, their threads, the link
 *   explore_action.c   what can happen next in a state, and doing it
 *   explore_detach.c   locks that are left to nobody, and adopted
 *   explore_delay.c    locks that stay for a while when their holder has died
 *   explore_check.c    what must be true in every state
 *   explore_settle.c   what must be true of how it can end, from every state
 *   explore_state.c    the hash that tells whether a state, or one alike, was seen
 *   explore_hash.c     what that is made of
 *   explore_seen.c     sets of states
 *   explore_compare.c  whether states that are taken for one are alike
 *
 * All that a world is made of, engines and server too, is allocated in one arena. So a state
 * is its bytes: they are put back to try another way on, and the engines need no notion of it.
 *
 * An instance says how many clients, threads and turns there are, and how many of each fault
 * one run may have. Within that every order of these is tried: a thread begins an acquire (of
 * each weight, waiting or as a try), takes up the lock it was woken for, nests, goes from
 * writing to reading, leaves a lock to nobody, adopts it, gives up, releases; the server takes a
 * client's next command; a client hears an answer or a wake, or never hears the wake; a timer
 * fires; a command or its reply is lost, or it is given up while it is on its way; the store ends a
 * session; a client crashes, and the server learns of it.
 *
 * Time. Without leases no two clocks are compared, so each client has its own, and it
 * goes on only as far as its own next timer, whenever that is chosen. With leases there is one
 * clock; it goes from one instant that matters to the next, `instants` times in all: where a sign
 * of life is due, where a lease is over for its client, where for the server, where a delay after
 * a crash is. A party that has something to do then may do it late. Without leases a delay ends
 * whenever that is chosen.
 *
 * Threads: none.
 */
#ifndef EXPLORE_H
#define EXPLORE_H

#include "core/engine_internal.h"
#include "core/recipe.h"
#include "store/memory/server.h"

#include <stdio.h>

#define CLIENTS_MAX 3
#define THREADS_MAX 2 /* of one client */
#define GRIPS_MAX 2   /* of one thread: a writer's that also reads */
#define CHANNEL_MAX 8
#define SESSIONS_MAX 8
#define CLAIMS_MAX 4
#define SILENT UINT64_MAX /* serial of a command whose answer nobody hears */
#define LEASE 60
#define FENCE_SPAN 100

struct instance {
    const char *name;
    const struct mrt_recipe *recipe;
    int clients, threads, turns; /* threads of the first client; the others have one */
    bool tries, nests;           /* threads also try; threads also acquire what they have */
    bool claims;                 /* the store keeps no queue for it */
    int adoptions;               /* threads also detach; so many adopt in one run */
    bool lingers;                /* a client keeps the lock until another wants it */
    bool delays;                 /* the last thread of each asks for a delay after a crash */
    bool at_once;                /* commands reach the server at once, only answers are late */
    int losses, kills, cancels, crashes; /* how many of each fault in one run */
    int faults;                          /* and of all kinds together */
    int instants;                        /* with leases; 0: without */
    bool full;                           /* only in make model */
    bool compared;                       /* by `explore --compare` without a word */
};

/* A hold that a thread has. */
struct grip {
    struct mrt_hold *hold; /* NULL: none */
    uint64_t generation;
    bool seen_lost, told_lost;
    mrt_time valid_until; /* as last seen, if there are delays */
};

enum thread_state { THREAD_IDLE, THREAD_WAITING, THREAD_WOKEN, THREAD_HELD };

struct thread {
    enum thread_state state;
    int turns;      /* to come */
    bool cancelled; /* its acquire */
    bool nested;    /* has done so in this turn */
    bool detaching, adopting;
    struct mrt_waiter waiter;
    struct grip grips[GRIPS_MAX];
};

struct session_record {
    struct mrt_id id; /* none: free */
    mrt_time expires;
    uint64_t number; /* of all, in their order */
};

struct client {
    struct mrt_engine *engine; /* NULL: crashed */
    struct mrt_queue *queue;
    bool crashed, noticed; /* noticed: the server knows */
    bool closing;
    mrt_time now; /* without leases: its own clock */
    struct thread threads[THREADS_MAX];
    struct mrt_command down[CHANNEL_MAX]; /* on its way to the server, in order */
    int down_count;
    struct mrt_event up[CHANNEL_MAX]; /* answers, in order */
    int up_count;
    struct mrt_event hints[CHANNEL_MAX]; /* wakes, in the order they were made */
    int hint_count;
    struct session_record sessions[SESSIONS_MAX];
};

struct claim {
    struct mrt_command command; /* ticket none: free */
    struct client *client;
};

/* The lock that somebody has left to nobody, as far as the clients know. */
enum left_state {
    LEFT_NONE,
    LEFT_ASKED,    /* it is under way */
    LEFT_SURE,     /* the store has said so */
    LEFT_GIVEN_UP, /* who adopted it has given up */
    LEFT_UNSURE    /* nobody can tell */
};
struct left {
    enum left_state state;
    uint64_t number; /* of its identity */
    uint64_t weight, fence;
};

/* Somebody has died who held so much. */
struct grave {
    mrt_time until; /* nobody is to have it before */
    uint64_t weight;
};
#define GRAVES_MAX 4

struct world {
    const struct instance *instance;
    struct mrt_memory_server *server;
    struct mrt_memory_sink sink;
    mrt_time now;
    bool at_once; /* commands reach the server at once, only answers are late */
    int losses, kills, cancels, crashes, faults, instants; /* left */
    bool settling;                                         /* no faults, no new turns, no wakes */
    uint64_t last_fence, last_alone;
    uint64_t sessions; /* begun */
    struct left left;
    int adoptions; /* left */
    struct grave graves[GRAVES_MAX];
    struct client clients[CLIENTS_MAX];
    struct claim claims[CLAIMS_MAX];
};

/* ---- explore_memory.c */

/* Lets allocations come from an empty arena. */
void memory_open(void);
/* The bytes of a state: those below memory_size; a multiple of MEMORY_BLOCK. */
#define MEMORY_BLOCK 64
unsigned char *memory_bytes(void);
/* The highest there has been since memory_open. */
size_t memory_size(void);
/* For what is not part of a state; never given back, zero until it is used. */
void *memory_outside(size_t size);

/* ---- explore_world.c */

struct world *world_new(const struct instance *instance);
mrt_time world_now(const struct world *world, const struct client *client);
int world_index(const struct world *world, const struct client *client);
/* The faults that a run may still have, as a set; none is left if their sum is 0. */
unsigned world_faults(const struct world *world);
int world_threads(const struct world *world, const struct client *client);
/* The weights that an acquire may ask for: `choice` from 0; 0: there is no such. */
uint64_t world_weight(const struct world *world, int choice);
uint64_t world_owner(const struct world *world, int thread);
/* Fetches what the engine wants; after every call of it. */
void world_pump(struct world *world, struct client *client);
void world_event(struct world *world, struct client *client, const struct mrt_event *event);
/* The server takes the oldest command that a client has sent. */
void world_apply(struct world *world, struct client *client);
/* It never arrives. */
void world_drop(struct client *client);
/* The client hears its oldest answer. */
void world_hear(struct world *world, struct client *client);
void world_tick(struct world *world, struct client *client);
void world_expire(struct world *world);
/* A client is gone; then the server learns of it. */
void world_crash(struct world *world, struct client *client);
void world_notice(struct world *world, struct client *client);
/* The session that a client has at the server; none if there is none. */
struct mrt_id world_session(const struct world *world, const struct client *client);
void world_kill(struct world *world, struct client *client);
/* When the next instant is that matters to anybody; MRT_TIME_NEVER: there is none. */
mrt_time world_next(const struct world *world);

/* ---- explore_action.c */

enum action_kind {
    ACTION_ACQUIRE, /* variant: the weight, + 2 for a try */
    ACTION_AGAIN,   /* acquires what it has; variant: the weight */
    ACTION_LIGHTEN,
    ACTION_RETRY,
    ACTION_RELEASE, /* variant: the grip */
    ACTION_CANCEL,
    ACTION_DETACH,
    ACTION_ADOPT,
    ACTION_APPLY,
    ACTION_HEAR,
    ACTION_HINT, /* variant: which */
    ACTION_TICK,
    ACTION_INSTANT,
    ACTION_EXPIRE,
    ACTION_OVER,
    ACTION_LOSE, /* variant: the command, the reply, or given up early */
    ACTION_KILL,
    ACTION_CRASH,
    ACTION_NOTICE
};

struct action {
    uint8_t kind, client, thread, variant;
};

#define ACTIONS_MAX 64
/* The possible actions; how many. */
int action_list(struct world *world, struct action actions[ACTIONS_MAX]);
void action_do(struct world *world, struct action action);
/* Prints what is about to happen. */
void action_print(const struct world *world, struct action action, FILE *file);
void thread_release(struct world *world, struct client *client, struct thread *thread, int grip);
void thread_retry(struct world *world, struct client *client, struct thread *thread);
/* Its waiter is DONE, or WOKEN. */
void thread_settled(struct world *world, struct client *client, struct thread *thread);

void thread_follow(struct world *world, struct client *client, struct thread *thread);

/* ---- explore_detach.c */

bool left_may_detach(const struct world *world, const struct thread *thread);
bool left_may_adopt(const struct world *world, const struct thread *thread);
void left_detach(struct world *world, struct client *client, struct thread *thread);
void left_adopt(struct world *world, struct client *client, struct thread *thread);
/* The outcome; true if the thread has the lock now. */
bool left_settled(struct world *world, struct thread *thread, int error);
/* A thread has crashed. */
void left_crashed(struct world *world, const struct thread *thread);
/* Its identity; none if there is nothing. */
struct mrt_id left_id(const struct world *world);
/* The part of the capacity that is surely nobody's. */
uint64_t left_weight(const struct world *world);
/* Nothing is on its way: an operator breaks what is nobody's. Whether there was anything. */
bool left_break(struct world *world);

/* ---- explore_delay.c */

/* Before a thread acquires. */
void delay_ask(const struct world *world, struct client *client, const struct thread *thread);
/* After each step: who has lost what he held is dead to the others. */
void delay_note(struct world *world, const struct client *client, const struct thread *thread,
                struct grip *grip);
void delay_crashed(struct world *world, const struct client *client, const struct thread *thread);
/* The part of the capacity that nobody may have now. */
uint64_t delay_weight(const struct world *world);
/* Without leases: the first delay at the server ends; whether there was one. */
bool delay_may_end(const struct world *world);
bool delay_end(struct world *world);
/* A waiter leaves nothing behind. */
void delay_check(const struct world *world);

/* ---- explore_check.c */

/* Ends the search: what was found is in the shared result. */
__attribute__((format(printf, 2, 3))) _Noreturn void check_fail(const struct world *world,
                                                                const char *format, ...);
void check_world(struct world *world);
void check_granted(struct world *world, const struct client *client, const struct mrt_hold *hold);
void check_ticked(const struct world *world, const struct client *client);

/* ---- explore_settle.c */

/* Lets everybody who waits be served, without a fault and without a wake; then all close.
   Leaves the world as it is then. */
void settle(struct world *world);

/* ---- explore_state.c */

struct state_hash {
    uint64_t low, high;
};
enum precision {
    PRECISION_WHOLE, /* all that may matter, client by client */
    PRECISION_ALIKE, /* states from which the same follows are one; faults left are left out */
    PRECISION_END    /* and what does not matter for how it ends */
};
struct state_hash state_hash(const struct world *world, enum precision wanted);

/* ---- explore_seen.c */

#define FAULT_SETS 16
struct seen *seen_new(int bits); /* with room for nearly 2 to the power of `bits` */
/* Whether it is new with this set of faults left; then it is not any more. */
bool seen_add(struct seen *seen, struct state_hash hash, unsigned faults);
uint64_t seen_count(const struct seen *seen);
/* Whether it was added by this before, and not been forgotten; it is added. */
bool seen_lately(struct seen *seen, struct state_hash hash);

/* ---- explore_compare.c */

void compare_open(void);
/* Two states with this value are the same to the search. */
uint64_t compare_class(const struct world *world);
/* From a state of this class those are reached; in any order, and put in order. */
void compare_note(uint64_t name, uint64_t *next, uint32_t count);

/* ---- explore_search.c */

enum search_how {
    SEARCH_ALIKE,    /* states that are alike are one */
    SEARCH_STATES,   /* each as it is, and from each how it ends */
    SEARCH_COMPARING /* the same, and whether those that are alike go on alike */
};
struct result {
    uint64_t states; /* that are not alike */
    uint64_t visits; /* of states with faults left, or of each as it is */
    uint64_t steps, depth;
    bool failed, ended;
    char failure[200];
};
/* Goes through the states of an instance. `trace`: where to print the way to a failure. */
void search(const struct instance *instance, enum search_how how, struct result *result,
            FILE *trace);
_Noreturn void search_fail(const char *failure);

#endif
