/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run: a few clients on one memory server, threads that do a few things each with a few locks,
 * all drawn from the seed, and what must be true of it (check.c).
 *
 *   world.c   draws the run, opens the clients, starts the actors, and closes
 *   actor.c   what a thread does: acquires, holds and gives back, in all ways that block
 *   async.c   asynchronous acquires, with callbacks that free, cancel and acquire again
 *   operate.c listing, breaking, revoking; elections; a cell
 *   check.c   the invariants
 */
#ifndef SCHED_WORLD_H
#define SCHED_WORLD_H

#include "mortise.h"
#include "schedule.h"
#include "store.h"

#define CLIENTS_MAX 3
#define LOCKS_MAX 8
#define ACTORS_MAX 8
#define SIDES 2
#define LEADERSHIP (LOCKS_MAX - 1) /* the lock that an election is */

enum lock_kind { MUTEX, SEMAPHORE, READ_WRITE, SEMAPHORE_MUTEX, EXCLUSIVE, LOCK_KINDS };

struct lock {
    char name[24];
    enum lock_kind kind;
    uint64_t capacity;
};

struct client {
    mortise_client *handle; /* NULL: closed */
    char name[24];
    bool foreign; /* one thread alone calls it, and runs it */
    bool later;   /* its store answers later */
    int64_t timeout_ms;
    mortise_lock *handles[LOCKS_MAX][SIDES]; /* shared by its actors; the second one writes */
};

struct actor {
    int index, thread;
    char name[24];
    struct client *client;
    struct random random;
    int steps;      /* how much it does */
    bool in_a_rush; /* no time between what it does, and none in it */
    bool done;      /* it has done all of it */
    bool last;      /* waits for what only mortise_close ends */
};

struct world {
    struct lock locks[LOCKS_MAX];
    int lock_count;
    struct client clients[CLIENTS_MAX];
    int client_count;
    struct actor actors[ACTORS_MAX];
    int actor_count;
    mrt_time lease;                    /* 0: none */
    mrt_time latency;                  /* of a call of the store, at most */
    bool closing;                      /* clients are being closed: calls end with ECLOSED */
    bool breaks;                       /* tickets are broken */
    uint64_t counted, perhaps_counted; /* in the cell */
    int gathering; /* so many calls for several locks have some already, or may */
};
extern struct world world;

void world_run(uint64_t seed, enum sched_trace trace);

/* The body of an actor's thread; `argument` is the actor. */
void *actor_run(void *argument);
/* A duration of at most so many milliseconds, often short. */
mrt_time actor_draw_time(struct actor *actor, int64_t most_ms);
mortise_lock *actor_draw_handle(struct actor *actor, int lock, uint64_t *weight);
/* Lets time pass for an actor, and runs its client if nobody else does. */
void actor_rest(struct actor *actor, mrt_time length);
/* Waits until `ready`; the client goes on. */
void actor_await(struct actor *actor, const char *what, bool (*ready)(const void *subject),
                 const void *subject);
void async_act(struct actor *actor);
void operate_list(struct actor *actor);
void operate_election(struct actor *actor);
void operate_cell(struct actor *actor);
/* No count was lost, and none added. */
void operate_check_cell(mortise_client *client);

#endif
