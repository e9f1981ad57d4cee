/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ticket: one place in one queue of the store: ticket.c.
 */
#ifndef MRT_CORE_TICKET_H
#define MRT_CORE_TICKET_H

#include "base/heap.h"
#include "base/id.h"
#include "base/list.h"
#include "core/store.h"
#include "core/uthash.h"
#include "core/waiter.h"

#include <stdbool.h>
#include <stdint.h>

struct mrt_engine;
struct mrt_queue;

enum mrt_ticket_state {
    MRT_TICKET_FREE,
    MRT_TICKET_NEW,     /* APPEND is not answered */
    MRT_TICKET_WAITING, /* queued, tickets ahead */
    MRT_TICKET_GRANTED,
    MRT_TICKET_LEAVING, /* being removed */
    MRT_TICKET_ORPHAN   /* its session is gone; an answer is still to come */
};

struct mrt_ticket {
    enum mrt_ticket_state state;
    struct mrt_id id;
    struct mrt_queue *queue;
    uint64_t weight;
    uint32_t holds; /* GRANTED: how many holds it has */
    struct mrt_waiter
        *waiter; /* the only waiter that it waits for: of a shared recipe, or if it adopts */
    uint64_t fence, fence_span;
    uint64_t granted_serial; /* serial of the newest command when it was granted */
    uint64_t number;         /* of the ticket whose fences it has a part of; 0: they are its own */
    uint64_t used;           /* fences handed out, or reserved */
    mrt_time delay;          /* how long it stays in the store if the session dies */
    bool fresh;              /* GRANTED: it has had no hold yet */
    bool adopts;             /* it was detached, and has not become a hold yet */
    uint64_t last_fence;     /* adopts: fence of its last hold */
    struct mrt_id detached_id; /* LEAVING: its identity once detached; none: it is removed */
    bool try_only;
    bool waited; /* others were ahead */
    bool others_behind;
    bool may_linger;      /* the store was requested to report clients that queue behind it */
    bool outcome_unknown; /* an APPEND of unknown outcome: it may be in the store */
    bool look_again;      /* REFRESH once the outstanding command is answered */
    bool remove_pending;  /* LEAVING: its REMOVE waits for the answer to an earlier command */
    bool lightening;      /* the store does not know its lower weight yet */
    bool revaluing;       /* the store does not know its new value yet */
    bool unreachable;     /* the newest command failed for want of a connection */
    bool checking_others; /* a REFRESH sent to learn whether others wait */
    bool watch_closely;   /* a hold wants reports of what others do to it immediately */
    uint64_t revoked;     /* the number of the newest known request to give it up; 0: none */
    uint32_t attempts;
    mrt_time recheck;
    mrt_time lingers;       /* GRANTED without a hold: kept until then; 0: it is not */
    mrt_time due;           /* a look, or a command that is repeated */
    struct mrt_timer timer; /* the earlier of the two */
    struct mrt_command command;
    void *value, *sent; /* its value, and that of `command`, mostly the same */
    size_t value_size;
    struct mrt_waiter_list verifiers;
    TAILQ_ENTRY(mrt_ticket) link; /* of its queue, the free tickets, or the loose ones */
    UT_hash_handle hh;            /* by id, unless it is an ORPHAN */
};

/* NULL: it is not there. */
struct mrt_ticket *mrt_engine_ticket(struct mrt_engine *engine, struct mrt_id id);
struct mrt_ticket *mrt_ticket_append(struct mrt_queue *queue, const struct mrt_waiter *waiter);
/* 0 or MORTISE_ENOMEM. */
int mrt_ticket_set_value(struct mrt_ticket *ticket, const void *value, size_t size);
void mrt_ticket_free(struct mrt_ticket *ticket);
void mrt_ticket_look(struct mrt_ticket *ticket);
/* Lowers the weight of a granted ticket; no effect if it is not lower. */
void mrt_ticket_lighten(struct mrt_ticket *ticket, uint64_t weight);
void mrt_ticket_remove(struct mrt_ticket *ticket);
/* Ends it with its session. */
void mrt_ticket_drop(struct mrt_ticket *ticket);
/* From now on the store reports immediately what others do to it. */
void mrt_ticket_attend(struct mrt_ticket *ticket);
/* Keeps a granted ticket that nobody here has or wants. */
void mrt_ticket_linger(struct mrt_ticket *ticket, mrt_time until);
void mrt_ticket_timer(struct mrt_ticket *ticket, mrt_time now);
void mrt_ticket_unsubmitted(struct mrt_ticket *ticket, mrt_time now);
void mrt_ticket_move(struct mrt_ticket *ticket, enum mrt_ticket_state state);
/* Whether it is NEW, WAITING or GRANTED. */
bool mrt_ticket_in_queue(const struct mrt_ticket *ticket);
/* Whether it has a command that was not answered, or not even fetched. */
bool mrt_ticket_under_way(const struct mrt_ticket *ticket);
void mrt_ticket_send(struct mrt_ticket *ticket, enum mrt_command_type type);
/* The command by which it leaves: REMOVE, or DETACH. */
enum mrt_command_type mrt_ticket_way_out(const struct mrt_ticket *ticket);
/* The command that the queue's next ticket had to wait for has been sent, or is not needed. */
void mrt_ticket_is_sent(struct mrt_ticket *ticket);
/* Sets the timer for the next command, or for the end of lingering. */
void mrt_ticket_set_timer(struct mrt_ticket *ticket);
/* Sends the removal, or the command that failed, after a pause. */
void mrt_ticket_again_later(struct mrt_ticket *ticket, mrt_time now);
/* Returns it to the free tickets. */
void mrt_ticket_put(struct mrt_ticket *ticket);
/* Makes the ticket ready to be granted to its adopter. */
void mrt_ticket_resume(struct mrt_ticket *ticket);

#endif
