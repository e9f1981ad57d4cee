/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue: the local tier of one lock, and what happens to its waiters and tickets: queue.c.
 */
#ifndef MRT_CORE_QUEUE_H
#define MRT_CORE_QUEUE_H

#include "base/list.h"
#include "core/hold.h"
#include "core/recipe.h"
#include "core/uthash.h"
#include "core/waiter.h"

#include <stdbool.h>
#include <stdint.h>

struct mrt_engine;
struct mrt_policy;
struct mrt_ticket;

TAILQ_HEAD(mrt_ticket_list, mrt_ticket);

struct mrt_queue {
    struct mrt_engine *engine;
    struct mrt_recipe recipe;
    const struct mrt_policy *policy;
    uint32_t references; /* handles, waiters, holds and tickets */
    struct mrt_waiter_list waiters;
    struct mrt_hold_list holds;     /* also the lost ones, until they are released */
    struct mrt_ticket_list tickets; /* NEW, WAITING or GRANTED */
    struct mrt_hold *active;        /* not shared: the hold of the ticket */
    struct mrt_ticket *ticket;      /* not shared: the only one */
    uint32_t removals_pending; /* tickets that will be removed and whose REMOVE has not been sent */
    mrt_time linger;           /* how long a ticket without waiters is kept; 0: it is removed */
    mrt_time delay;            /* of its tickets */
    uint64_t floor, floor_alone; /* largest fences of holds: of any hold, and of a hold with the
                                    whole capacity */
    uint64_t floor_serial;       /* a command up to this one may have been answered before them */
    mrt_time turn_began;
    uint64_t turn_count;
    TAILQ_ENTRY(mrt_queue) link; /* of the queues, or of the unused ones */
    UT_hash_handle hh;           /* by name */
    char name[];
};

TAILQ_HEAD(mrt_queue_list, mrt_queue);

/* The store has removed the ticket: its holders have lost the lock. */
void mrt_queue_ticket_gone(struct mrt_ticket *ticket);
/* The store shows tickets ahead of a granted one: the ticket is lost, and removed. */
void mrt_queue_ticket_overtaken(struct mrt_ticket *ticket);
/* A try has failed; the ticket is still there. */
void mrt_queue_blocked(struct mrt_ticket *ticket);
/* Fails the waiter for which the ticket was requested, and drops the ticket; removes it, if it may
   be in the store. */
void mrt_queue_refused(struct mrt_ticket *ticket, int error, bool outcome_unknown);
/* Ends a waiter without the lock, and removes its ticket. */
void mrt_queue_fail(struct mrt_waiter *waiter, int error);
void mrt_queue_fail_all(struct mrt_queue *queue, int error);

#endif
