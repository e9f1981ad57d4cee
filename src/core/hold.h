/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds: hold.c. A slot may be looked at until mrt_engine_free; its generation tells whether it is
 * still the same hold.
 */
#ifndef MRT_CORE_HOLD_H
#define MRT_CORE_HOLD_H

#include "base/heap.h"
#include "base/id.h"
#include "base/list.h"
#include "mortise.h"

#include <stdbool.h>
#include <stdint.h>

struct mrt_engine;
struct mrt_queue;
struct mrt_ticket;
struct mrt_waiter;

/* A hold's slot. */
struct mrt_hold {
    struct mrt_engine *engine; /* never changes */
    uint64_t generation;       /* grows when the slot is given back */
    struct mrt_queue *queue;   /* NULL: free */
    struct mrt_ticket *ticket; /* NULL: lost */
    uint64_t owner;
    uint64_t weight;
    uint64_t fence, fence_span; /* its first number, and how many it has */
    uint32_t count;
    mrt_time ends;      /* when it ends by itself; MRT_TIME_NEVER: it does not */
    mortise_state told; /* newest state put into the told list */
    bool telling;
    bool wants_revokes;         /* it wants revoke requests */
    bool revoke_requested;      /* a revoke request was not delivered yet */
    bool revoke_queued;         /* it is in the list of holds with a revoke request */
    TAILQ_ENTRY(mrt_hold) link; /* of the queue, or of the free slots */
    TAILQ_ENTRY(mrt_hold) told_link, asked_link;
    struct mrt_timer timer; /* of its end */
    void *host; /* config.hold_host_size bytes of the host's own; zeroed when a hold begins */
};

TAILQ_HEAD(mrt_hold_list, mrt_hold);

/* Whether this is a hold that has not been released: then its fields may be read. */
bool mrt_hold_live(const struct mrt_hold *hold, uint64_t generation);
/* Whether mrt_engine_release would only take one count of several off such a hold: then
   it does not look at `now`. */
bool mrt_hold_nested(const struct mrt_hold *hold, uint64_t generation);
/* State at this instant. */
mortise_state mrt_hold_state(const struct mrt_hold *hold, mrt_time now);
/* Until when it is held without another sign of the store; 0: lost. */
mrt_time mrt_hold_valid_until(const struct mrt_hold *hold);
/* The ticket of a hold that is not lost, and its number in the store; 0: it has none. */
struct mrt_id mrt_hold_ticket(const struct mrt_hold *hold, uint64_t *number);
/* From now on the store reports immediately what others do to the hold's ticket. */
void mrt_engine_attend(struct mrt_hold *hold);
/* The same. And revoke requests are reported from now on, an earlier one included; or no longer. */
void mrt_engine_listen(struct mrt_hold *hold, bool wants_revokes);
/* Calls `visit` with each slot that has been used, now in use or not. */
void mrt_engine_each_hold(struct mrt_engine *engine, void (*visit)(struct mrt_hold *hold));
/* NULL: none is left. */
struct mrt_hold *mrt_engine_next_told(struct mrt_engine *engine);
struct mrt_hold *mrt_engine_next_asked(struct mrt_engine *engine);

/* How many fences a hold has of a ticket with so many, if its waiter takes a share. */
uint64_t mrt_engine_share(const struct mrt_engine *engine, uint64_t fence_span);

/* ---------------------------------------------------- of core only */

struct mrt_hold *mrt_hold_take(struct mrt_engine *engine);
/* With its engine. */
void mrt_hold_free(struct mrt_hold *hold);
void mrt_hold_put(struct mrt_hold *hold);
/* Begins a hold by the ticket that its waiter was given. */
void mrt_hold_begin(struct mrt_waiter *waiter, struct mrt_ticket *ticket, mrt_time now);
/* Limits it to so long from now; 0: no change. */
void mrt_hold_limit(struct mrt_hold *hold, mrt_time longest, mrt_time now);
/* Begins a second hold, of less weight, on the ticket of the first. */
void mrt_hold_join(struct mrt_hold *hold, const struct mrt_hold *first, uint64_t weight);
void mrt_hold_lose(struct mrt_hold *hold);
void mrt_hold_tell(struct mrt_hold *hold, mortise_state state);
/* An operator requests it. */
void mrt_hold_ask(struct mrt_hold *hold);
/* The hold of an owner; if there are two, the one of this weight. */
struct mrt_hold *mrt_hold_of(struct mrt_queue *queue, uint64_t owner, uint64_t weight);
/* Loses it if its time is over. */
void mrt_hold_check(struct mrt_hold *hold, mrt_time now);
void mrt_hold_timer(struct mrt_hold *hold, mrt_time now);

#endif
