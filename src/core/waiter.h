/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A waiter, and its place in a queue: waiter.c.
 */
#ifndef MRT_CORE_WAITER_H
#define MRT_CORE_WAITER_H

#include "base/heap.h"
#include "base/id.h"
#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mrt_engine;
struct mrt_hold;
struct mrt_queue;
struct mrt_request;
struct mrt_ticket;

enum mrt_waiter_state {
    MRT_WAITER_WAITING,
    MRT_WAITER_WOKEN, /* woken to compete for the lock: mrt_engine_retry */
    MRT_WAITER_DONE   /* error, hold */
};

/* An acquire under way. Zero it, fill the upper part, and keep it in place until DONE. */
struct mrt_waiter {
    uint64_t owner;    /* 0: no owner, never nested */
    uint64_t weight;   /* the capacity that it requests; 0: 1 */
    mrt_time deadline; /* MRT_TIME_NEVER: the caller keeps time, by mrt_engine_cancel */
    bool try_only;
    bool expect_free;  /* try_only: it is likely to be granted at once */
    bool competes;     /* may be WOKEN; else it is handed the lock directly */
    bool takes_share;  /* not shared: its hold takes as many fences as leave each grant of a turn as
                          many; else one */
    mrt_time hold_max; /* how long the hold lasts at most; 0: for ever */
    bool wants_place;  /* wants to hear of its place: mrt_engine_next_placed */
    const void *value; /* of its ticket, if the recipe is shared; NULL: none. Kept until DONE */
    size_t value_size;
    struct mrt_id adopts; /* of mrt_engine_adopt: the ticket */
    uint64_t last_fence;  /* and that of its last hold */

    enum mrt_waiter_state state;
    int error;
    uint64_t limit; /* EFULL: as many tickets as this engine may have; 0: the store's queue is */
    struct mrt_hold *hold;

    /* Of the hold; earlier, of the hold by the ticket whose first fence is `fence_of`. */
    uint64_t fence, fence_span, fence_of;

    /* The engine's own. */
    struct mrt_engine *engine;
    struct mrt_queue *queue;
    struct mrt_ticket *ticket;   /* of a shared recipe, and of an adopter: its own, once appended */
    struct mrt_ticket *verifies; /* of mrt_engine_verify */
    struct mrt_request *request; /* of mrt_engine_request */
    uint64_t after;              /* verify: only a look sent after this serial counts */
    mrt_time since;              /* its caller waits: never after it was passed to the engine */
    struct mrt_timer timer;
    TAILQ_ENTRY(mrt_waiter) link; /* of the queue, or of the ticket it verifies */
    TAILQ_ENTRY(mrt_waiter) settled_link;
    bool settled;
    uint64_t place; /* how many tickets are ahead in the store; 0: not known */
    bool placing;   /* a change of its place has not been delivered yet */
    TAILQ_ENTRY(mrt_waiter) placed_link;
};

TAILQ_HEAD(mrt_waiter_list, mrt_waiter);

/* Whether it waits for the store, and not for a holder in this process. */
bool mrt_waiter_asks(const struct mrt_waiter *waiter);
/* Puts a waiter that was DONE immediately into the settled list all the same. */
void mrt_engine_settle(struct mrt_engine *engine, struct mrt_waiter *waiter);
/* NULL: none is left. */
struct mrt_waiter *mrt_engine_next_settled(struct mrt_engine *engine);
struct mrt_waiter *mrt_engine_next_placed(struct mrt_engine *engine);

/* ---------------------------------------------------- of core only */

/* Gives it the next fences of a ticket that has some left. */
void mrt_waiter_take_fences(struct mrt_waiter *waiter, struct mrt_ticket *ticket);
/* Whether it has some of this ticket. */
bool mrt_waiter_has_fence(const struct mrt_waiter *waiter, const struct mrt_ticket *ticket);

/* Begins a waiter for a lock. */
void mrt_waiter_begin(struct mrt_waiter *waiter, struct mrt_engine *engine, struct mrt_queue *queue,
                      mrt_time now);
/* Ends a waiter that has been taken out of its list. */
void mrt_waiter_end(struct mrt_waiter *waiter, int error);
/* Puts a waiter into the queue, behind or before all others. */
void mrt_queue_enter(struct mrt_queue *queue, struct mrt_waiter *waiter, bool first);
/* Removes it from the queue, and stops its timer. */
void mrt_queue_unlink_waiter(struct mrt_waiter *waiter);
/* The ticket stands for this waiter only. */
void mrt_queue_attach_waiter(struct mrt_ticket *ticket, struct mrt_waiter *waiter);
/* From now on the ticket stands for no waiter; returns the one it had, or NULL. */
struct mrt_waiter *mrt_queue_detach_waiter(struct mrt_ticket *ticket);
/* Notes the waiter's place in the store's queue; it is news if it changes and the waiter cares. */
void mrt_waiter_place(struct mrt_waiter *waiter, uint64_t place);
/* Drops an undelivered change of its place. */
void mrt_waiter_unplace(struct mrt_waiter *waiter);
/* Whether a waiter of this ticket wants its place, and the place. */
bool mrt_queue_wants_place(const struct mrt_ticket *ticket);
void mrt_queue_placed(struct mrt_ticket *ticket, uint64_t place);

#endif
