/*
 * The engine: one client's sessions, tickets, waiters and holds as a step
 * function. It is given calls, events and the time, and leaves effects in lists;
 * it has no thread, socket, clock or random number of its own, and what ships is
 * what the simulator drives.
 *
 * Effects, to be fetched after every call:
 *   mrt_engine_next_command  what to submit to the store
 *   mrt_engine_next_settled  waiters that are DONE or WOKEN
 *   mrt_engine_next_told     holds whose state changed
 *   mrt_engine_next_asked    holds that somebody asks to give up
 *   mrt_engine_next_placed   waiters that are queued, or whose place has changed
 *   mrt_engine_next_observed observers that have something new to tell
 *   mrt_engine_next_contact  whether the store has fallen silent, or answers again
 *   mrt_engine_next_time     when to call mrt_engine_tick
 *
 * Threads: none. The caller serialises everything on one engine.
 * Memory: waiters are the caller's; holds are slots of the engine that are used
 * again but stay until mrt_engine_free, so a stale mrt_hold pointer may
 * always be looked at, and its generation tells that it is stale.
 */
#ifndef MRT_CORE_ENGINE_H
#define MRT_CORE_ENGINE_H

#include "base/heap.h"
#include "base/id.h"
#include "core/store.h"

#include <stdbool.h>
#include <stdint.h>

struct mrt_engine;
struct mrt_queue;   /* the local tier of one lock: engine_internal.h */
struct mrt_ticket;  /* its place in the store's queue: engine_internal.h */
struct mrt_request; /* request.c */

/* A recipe, as data: how a lock uses its queue. */
struct mrt_recipe {
    const char *kind;  /* stored with the tickets; kinds do not mix on one name */
    uint64_t capacity; /* of the queue */
    bool reentrant;    /* the owner of a hold may acquire again, as much or less */
    bool shared;       /* several may hold: each acquire has a ticket of its own */
    bool claim;        /* no order is promised among clients: a store need not keep one */
};

#define MRT_MARGIN_MIN (10 * MRT_MILLISECOND) /* the library's margin_min */

struct mrt_engine_config {
    struct mrt_id seed;    /* 128 bits of entropy; all identities derive from it */
    bool strict;           /* local order is strict FIFO */
    mrt_time fair_after;   /* eventually fair: handed over directly after waiting so long */
    mrt_time budget;       /* how long a turn lasts while others wait; 0: no hand-over at all */
    uint32_t budget_count; /* and how many grants it has */
    uint64_t queue_max;    /* how many tickets may wait in a queue; 0: any number */
    uint64_t tickets_max;  /* how many this client may have at a time; 0: any number */
    void *host;            /* for mrt_engine_host */
    mrt_time margin_min;   /* a lease ends earlier by this, or by 3 %, whichever is more */
    mrt_time recheck;      /* look again after so long, where a store says longer; 0: as it says */
    /* The pause after a failure is doubled from the one to the other; 0: 10 ms, 1 s. */
    mrt_time pause_min, pause_max;
    uint32_t attempts_max; /* how often what was refused is repeated; 0: 10 */
    mrt_time give_up;      /* an acquire waits so long for a store that is silent; 0: for ever */
    mrt_time notice;       /* mrt_engine_next_contact tells of a silence of this length; 0: never */
};

enum mrt_waiter_state {
    MRT_WAITER_WAITING,
    MRT_WAITER_WOKEN, /* told to come and compete: mrt_engine_retry */
    MRT_WAITER_DONE   /* error, hold */
};

/* An acquire under way. Zero it, fill the upper part, and keep it in place until DONE. */
struct mrt_waiter {
    uint64_t owner;    /* 0: nobody's, never nested */
    uint64_t weight;   /* how much of the capacity it asks for; 0: 1 */
    mrt_time deadline; /* MRT_TIME_NEVER: the caller keeps time, by mrt_engine_cancel */
    bool try_only;
    bool expect_free;  /* try_only: it is likely to be granted at once */
    bool competes;     /* may be WOKEN; else it is handed the lock directly */
    mrt_time hold_max; /* how long the hold lasts at most; 0: for ever */
    bool wants_place;  /* wants to hear of its place: mrt_engine_next_placed */
    const void *value; /* of its ticket, if the recipe is shared; NULL: none. Kept until DONE */
    size_t value_size;
    struct mrt_id adopts; /* of mrt_engine_adopt: the ticket */
    uint64_t last_fence;  /* and that of its last hold */

    enum mrt_waiter_state state;
    int error;
    struct mrt_hold *hold;

    /* The engine's own. */
    struct mrt_engine *engine;
    struct mrt_queue *queue;
    struct mrt_ticket *ticket;   /* of a shared recipe, and who adopts: its own, once appended */
    struct mrt_ticket *verifies; /* of mrt_engine_verify */
    struct mrt_request *request; /* of mrt_engine_request */
    uint64_t after;              /* verify: only a look sent after this serial counts */
    mrt_time since;
    struct mrt_timer timer;
    TAILQ_ENTRY(mrt_waiter) link; /* of the queue, or of the ticket it verifies */
    TAILQ_ENTRY(mrt_waiter) settled_link;
    bool settled;
    uint64_t place; /* how many tickets are ahead in the store; 0: not known */
    bool placing;   /* and that is to be told */
    TAILQ_ENTRY(mrt_waiter) placed_link;
};

/* A hold's slot. */
struct mrt_hold {
    struct mrt_engine *engine; /* never changes */
    uint64_t generation;       /* grows when the slot is given back */
    struct mrt_queue *queue;   /* NULL: free */
    struct mrt_ticket *ticket; /* NULL: lost */
    uint64_t owner;
    uint64_t weight;
    uint64_t fence;
    uint32_t count;
    mrt_time ends;      /* by itself; MRT_TIME_NEVER: it does not */
    mortise_state told; /* newest state put into the told list */
    bool telling;
    bool wants_revokes;         /* it wants to hear of requests to give it up */
    bool revoke_requested;      /* there is one that it has not heard of */
    bool revoke_queued;         /* and is in the list of those to be told */
    TAILQ_ENTRY(mrt_hold) link; /* of the queue, or of the free slots */
    TAILQ_ENTRY(mrt_hold) told_link, asked_link;
    struct mrt_timer timer; /* of its end */
    /* The host's own; cleared when the slot is given out. */
    struct mrt_upcall *upcall;
    mortise_state_callback callback;
    void *argument;
    mortise_revoke_callback revoke_callback;
    void *revoke_argument;
    int lost_fd; /* -1: none */
};

/* 0 or MORTISE_ENOMEM. */
int mrt_engine_new(const struct mrt_engine_config *config, struct mrt_engine **engine);
/* Frees everything, whatever its state. */
void mrt_engine_free(struct mrt_engine *engine);

void *mrt_engine_host(const struct mrt_engine *engine);

/* The local tier of `name`, made at first use; give it back with mrt_queue_put.
   0, MORTISE_ENOMEM, or MORTISE_EMISMATCH if it is in use with another recipe: then
   *queue is that one, not taken. */
int mrt_engine_queue(struct mrt_engine *engine, const char *name, const struct mrt_recipe *recipe,
                     struct mrt_queue **queue);
void mrt_queue_put(struct mrt_queue *queue);
/* Of a queue that is not shared: a ticket that nobody here wants is kept for so long, or until
   another client queues behind it. Counts for tickets that are queued from then on. */
void mrt_queue_linger(struct mrt_queue *queue, mrt_time longest);
/* Its tickets stay in the store for so long, at least, if the session dies while they hold. */
void mrt_queue_delay(struct mrt_queue *queue, mrt_time delay, mrt_time now);
const char *mrt_queue_name(const struct mrt_queue *queue);
const struct mrt_recipe *mrt_queue_recipe(const struct mrt_queue *queue);

/* Begins an acquire; it may be DONE on return (then it is not in the settled list). */
void mrt_engine_acquire(struct mrt_engine *engine, struct mrt_queue *queue,
                        struct mrt_waiter *waiter, mrt_time now);
/* Acquires again, without a look at the clock, if `owner` has the lock by a hold that no
   clock can end and may nest; else NULL, and mrt_engine_acquire is to be called. */
struct mrt_hold *mrt_engine_nest(struct mrt_queue *queue, uint64_t owner);
/* Whether mrt_engine_release would only take one count of several off such a hold: then
   it does not look at `now`. */
bool mrt_hold_nested(const struct mrt_hold *hold, uint64_t generation);
/* Whether it waits for the store, and not for who has the lock in this process. */
bool mrt_waiter_asks(const struct mrt_waiter *waiter);
/* A WOKEN waiter competes: DONE with the lock, or WAITING again at its place. */
void mrt_engine_retry(struct mrt_engine *engine, struct mrt_waiter *waiter, mrt_time now);
/* Ends an acquire with `error`; no effect on one that is DONE. It is DONE on return.
   MORTISE_ETIMEOUT becomes MORTISE_EDISCONNECTED if it is the store that has not answered. */
void mrt_engine_cancel(struct mrt_engine *engine, struct mrt_waiter *waiter, int error,
                       mrt_time now);
/* 0, MORTISE_ELOST, MORTISE_ENOTHELD, MORTISE_ENOTOWNER. `owner` 0: whoever has it. */
int mrt_engine_release(struct mrt_engine *engine, struct mrt_hold *hold, uint64_t generation,
                       uint64_t owner, mrt_time now);
/* Makes a hold lighter, as a writer's that goes on reading: it keeps its place and its fence.
   0, MORTISE_ELOST, MORTISE_ENOTHELD, MORTISE_ENOTOWNER, or MORTISE_EINVALID if it is not
   heavier than that. */
int mrt_engine_lighten(struct mrt_engine *engine, struct mrt_hold *hold, uint64_t generation,
                       uint64_t owner, uint64_t weight, mrt_time now);
/* Ends a hold whose ticket goes on without it, and without the session, as `detached_id`. `waiter`
   is DONE when the store has said so, or with MORTISE_ELOST, or MORTISE_EUNKNOWN if the session has
   ended and nobody can tell; cancel it as an acquire. The same, and `waiter` not used:
   MORTISE_ENOTHELD, MORTISE_ENOTOWNER, MORTISE_ELOST; MORTISE_EINVALID: held more than once. */
int mrt_engine_detach(struct mrt_engine *engine, struct mrt_hold *hold, uint64_t generation,
                      uint64_t owner, struct mrt_id detached_id, struct mrt_waiter *waiter,
                      mrt_time now);
/* Begins to acquire by the ticket `adopts`, which was detached: MORTISE_ENOTHELD if there is none,
   MORTISE_EBUSY if this engine is at it already. Given up, the ticket is left as it was. Else as
   mrt_engine_acquire; nobody is nested. */
void mrt_engine_adopt(struct mrt_engine *engine, struct mrt_queue *queue, struct mrt_waiter *waiter,
                      mrt_time now);
/* Calls `visit` with each slot that somebody has had, in use or not. */
void mrt_engine_each_hold(struct mrt_engine *engine, void (*visit)(struct mrt_hold *hold));
/* Whether this is a hold that has not been released: then its fields may be read. */
bool mrt_hold_live(const struct mrt_hold *hold, uint64_t generation);
/* The ticket of a hold that is not lost, and its number in the store; 0: it has none. */
struct mrt_id mrt_hold_ticket(const struct mrt_hold *hold, uint64_t *number);
/* How much of a lease is left at least while the store answers at once. */
mrt_time mrt_lease_left(mrt_time lease, mrt_time proof_lag);
/* State at this instant. */
mortise_state mrt_hold_state(const struct mrt_hold *hold, mrt_time now);
/* Until when it is held without another sign of the store; 0: lost. */
mrt_time mrt_hold_valid_until(const struct mrt_hold *hold);
/* Asks the store whether the hold is there; `waiter` is DONE with 0 or
   MORTISE_ELOST. Cancel it as an acquire. */
void mrt_engine_verify(struct mrt_engine *engine, struct mrt_hold *hold, struct mrt_waiter *waiter,
                       mrt_time now);

/* The store is to tell at once of what others do to the hold's ticket. */
void mrt_engine_attend(struct mrt_hold *hold);
/* The same, and requests to give it up are told from now on, one that has come before included;
   or no more. */
void mrt_engine_listen(struct mrt_hold *hold, bool wants_revokes);
/* Changes the value of the ticket by which an acquire waits, or that a hold has; it is
   copied. The store is told as often as it takes. 0, MORTISE_ENOMEM; of a hold also
   MORTISE_ENOTHELD, MORTISE_ELOST. */
int mrt_waiter_set_value(struct mrt_waiter *waiter, const void *value, size_t size);
int mrt_hold_set_value(struct mrt_hold *hold, uint64_t generation, const void *value, size_t size,
                       mrt_time now);

/* What a request that concerns no ticket brings. */
struct mrt_answer {
    uint64_t version; /* CELL_GET, CELL_SET */
    uint64_t fence;   /* OBSERVE, CELL_GET */
    size_t value_size;
    unsigned char value[MORTISE_VALUE_MAX];
};
/* Asks the store: `wanted` is an OBSERVE (once), a CELL_GET or a CELL_SET with its name, and
   value, version and fence if it has them; all is copied. `waiter` is DONE when *answer is
   filled, or with an error; a CELL_SET that may have been done, with MORTISE_EUNKNOWN.
   Cancel it as an acquire. */
void mrt_engine_request(struct mrt_engine *engine, const struct mrt_command *wanted,
                        struct mrt_answer *answer, struct mrt_waiter *waiter, mrt_time now);

/* Follows who is first in a queue, for as long as it is not ended. NULL: no memory. */
struct mrt_request *mrt_engine_observe(struct mrt_engine *engine, const char *queue, void *host);
void mrt_observer_end(struct mrt_request *observer);
void *mrt_observer_host(const struct mrt_request *observer);
/* The newest that is known; fence 0: nobody. */
const struct mrt_answer *mrt_observer_holder(const struct mrt_request *observer);
struct mrt_request *mrt_engine_next_observed(struct mrt_engine *engine);

/* What a store says. */
void mrt_engine_event(struct mrt_engine *engine, const struct mrt_event *event, mrt_time now);
/* Time passes: due timers act. */
void mrt_engine_tick(struct mrt_engine *engine, mrt_time now);

/* Ends all waiters with MORTISE_ECLOSED and all holds, gives the tickets back and
   stops the session. mrt_engine_closed tells when the store has confirmed. */
void mrt_engine_close(struct mrt_engine *engine, mrt_time now);
bool mrt_engine_closed(const struct mrt_engine *engine);
/* Of an engine that has been closed: whether others may wait for what it gives back. If not, all
   that a store can still have is a session without tickets, which its lease ends. */
bool mrt_engine_owes(const struct mrt_engine *engine);

/* Effects; NULL when there is no more. `now` dates a proof of life, so fetch a command
   only when it is about to be submitted. */
struct mrt_command *mrt_engine_next_command(struct mrt_engine *engine, mrt_time now);
/* Whether next_command has something to do. */
bool mrt_engine_has_command(const struct mrt_engine *engine);
/* A command that the store did not take: it is the next again, or is given up if nobody wants it
   any more. */
void mrt_engine_unsubmit(struct mrt_engine *engine, struct mrt_command *command, mrt_time now);
/* Puts a waiter that was DONE at once into the settled list all the same. */
void mrt_engine_settle(struct mrt_engine *engine, struct mrt_waiter *waiter);
struct mrt_waiter *mrt_engine_next_settled(struct mrt_engine *engine);
struct mrt_hold *mrt_engine_next_told(struct mrt_engine *engine);
struct mrt_hold *mrt_engine_next_asked(struct mrt_engine *engine);
struct mrt_waiter *mrt_engine_next_placed(struct mrt_engine *engine);
/* Whether next_contact has something new to tell. */
bool mrt_engine_has_contact(const struct mrt_engine *engine);
/* `away`: the store has been silent for config.notice, and is still. False: that is nothing new. */
bool mrt_engine_next_contact(struct mrt_engine *engine, bool *away);
/* Whether there is no session, or one that the store has not answered for so long that it is in
   doubt. */
bool mrt_engine_is_unreachable(const struct mrt_engine *engine);
/* Whether next_told, next_asked or next_placed has something. */
bool mrt_engine_has_told(const struct mrt_engine *engine);
mrt_time mrt_engine_next_time(const struct mrt_engine *engine);

struct mrt_engine_counters {
    uint64_t acquisitions, nested, handovers, commands, losses;
};
const struct mrt_engine_counters *mrt_engine_counters(const struct mrt_engine *engine);

#endif
