/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ticket: one place in one queue of the store.
 *
 *   FREE -> NEW -> WAITING -> GRANTED -> LEAVING -> FREE
 *           any of them, when the session dies -> ORPHAN -> FREE
 *
 * Invariants:
 *  - At most one command of a ticket is under way. Further wishes are
 *    kept as state (LEAVING, look_again) and sent when the answer comes.
 *  - A ticket that may be in the store is not freed before its removal is proven
 *    or its session is dead. So an acquire that was given up leaves nothing.
 *  - The memory of a fetched command stays until it is answered (ORPHAN). Its identity does not:
 *    a ticket that was not adopted may be requested again in the next session.
 *  - GRANTED is final: an answer that says otherwise means that the ticket in the store is no
 *    longer ours, and the hold is lost.
 */
#include "core/ticket.h"

#include "base/assert.h"
#include "core/agenda.h"
#include "core/engine_internal.h"
#include "core/outbox.h"
#include "core/verify.h"

#include <stdlib.h>

/* Moves that may happen, a row for each state as a set of next states. */
static const unsigned moves[] = {
    [MRT_TICKET_FREE] = 1u << MRT_TICKET_NEW,
    [MRT_TICKET_NEW] = 1u << MRT_TICKET_WAITING | 1u << MRT_TICKET_LEAVING |
                       1u << MRT_TICKET_ORPHAN | 1u << MRT_TICKET_FREE,
    [MRT_TICKET_WAITING] = 1u << MRT_TICKET_GRANTED | 1u << MRT_TICKET_LEAVING |
                           1u << MRT_TICKET_ORPHAN | 1u << MRT_TICKET_FREE,
    [MRT_TICKET_GRANTED] =
        1u << MRT_TICKET_LEAVING | 1u << MRT_TICKET_ORPHAN | 1u << MRT_TICKET_FREE,
    [MRT_TICKET_LEAVING] = 1u << MRT_TICKET_ORPHAN | 1u << MRT_TICKET_FREE,
    [MRT_TICKET_ORPHAN] = 1u << MRT_TICKET_FREE,
};

void mrt_ticket_move(struct mrt_ticket *ticket, enum mrt_ticket_state state)
{
    MRT_ASSERT(moves[ticket->state] & 1u << state);
    ticket->state = state;
}

bool mrt_ticket_under_way(const struct mrt_ticket *ticket)
{
    return ticket->command.queued || ticket->command.outstanding;
}

void mrt_ticket_send(struct mrt_ticket *ticket, enum mrt_command_type type)
{
    struct mrt_engine *engine = ticket->queue->engine;
    MRT_ASSERT(engine->session.state == MRT_SESSION_LIVE && ticket->state != MRT_TICKET_ORPHAN);
    mrt_heap_clear(&engine->timers, &ticket->timer);
    ticket->command.session = engine->session.id;
    ticket->command.ticket = ticket->id;
    ticket->command.fence = ticket->fence;
    ticket->command.queue = ticket->queue->name;
    ticket->command.kind = ticket->queue->recipe.kind;
    ticket->command.capacity = ticket->queue->recipe.capacity;
    ticket->command.weight = ticket->weight;
    ticket->command.claim = ticket->queue->recipe.claim;
    ticket->command.adopt = ticket->adopts;
    ticket->command.last_fence = type == MRT_APPEND ? ticket->last_fence : 0;
    ticket->command.detached_id = ticket->detached_id;
    ticket->command.try_only = ticket->try_only;
    ticket->command.queue_max = engine->config.queue_max;
    ticket->command.watch_closely = ticket->watch_closely;
    ticket->command.linger = ticket->may_linger;
    ticket->command.delay = ticket->delay;
    ticket->command.delay_is_host = engine->config.delay_is_host;
    ticket->command.wants_place = mrt_queue_wants_place(ticket);
    ticket->command.expect_no_waiters = !ticket->waited && !ticket->others_behind;
    if (ticket->sent != ticket->value)
        free(ticket->sent);
    ticket->sent = ticket->value;
    ticket->command.value = ticket->value;
    ticket->command.value_size = ticket->value_size;
    mrt_engine_send(engine, &ticket->command, type);
}

/* `id`: of an existing ticket; none: draw a new one. */
static struct mrt_ticket *take(struct mrt_engine *engine, struct mrt_id id)
{
    struct mrt_ticket *ticket = TAILQ_FIRST(&engine->free_tickets);
    if (ticket) {
        TAILQ_REMOVE(&engine->free_tickets, ticket, link);
        MRT_ASSERT(ticket->state == MRT_TICKET_FREE && !ticket->value);
        memset(ticket, 0, sizeof *ticket);
    } else {
        ticket = calloc(1, sizeof *ticket);
        if (!ticket)
            return NULL;
    }
    ticket->timer.kind = MRT_TIMER_TICKET;
    TAILQ_INIT(&ticket->verifiers);
    ticket->id = mrt_id_none(id) ? mrt_engine_identity(engine) : id;
    HASH_ADD(hh, engine->tickets_by_id, id, sizeof ticket->id, ticket);
    if (!ticket->hh.tbl) {
        TAILQ_INSERT_HEAD(&engine->free_tickets, ticket, link);
        return NULL;
    }
    return ticket;
}

/* Copies a value, also an empty one; NULL: no memory. */
static void *copy_of(const void *value, size_t size)
{
    void *copy = malloc(size + 1);
    if (copy && size > 0)
        memcpy(copy, value, size);
    return copy;
}

static void forget_value(struct mrt_ticket *ticket)
{
    if (ticket->sent != ticket->value)
        free(ticket->sent);
    free(ticket->value);
    ticket->value = ticket->sent = NULL;
}

void mrt_ticket_free(struct mrt_ticket *ticket)
{
    forget_value(ticket);
    free(ticket);
}

bool mrt_ticket_in_queue(const struct mrt_ticket *ticket)
{
    return ticket->state == MRT_TICKET_NEW || ticket->state == MRT_TICKET_WAITING ||
           ticket->state == MRT_TICKET_GRANTED;
}

/* Removes it from its list: that of its queue, or of the loose tickets. */
static void unlist(struct mrt_ticket *ticket)
{
    MRT_ASSERT(ticket->state != MRT_TICKET_FREE);
    struct mrt_queue *queue = ticket->queue;
    if (!mrt_ticket_in_queue(ticket)) {
        TAILQ_REMOVE(&queue->engine->loose_tickets, ticket, link);
        return;
    }
    TAILQ_REMOVE(&queue->tickets, ticket, link);
    if (queue->ticket == ticket)
        queue->ticket = NULL;
}

void mrt_ticket_put(struct mrt_ticket *ticket)
{
    struct mrt_queue *queue = ticket->queue;
    struct mrt_engine *engine = queue->engine;
    MRT_ASSERT(!mrt_ticket_under_way(ticket) && ticket->holds == 0 && !ticket->waiter);
    unlist(ticket);
    if (ticket->state != MRT_TICKET_ORPHAN)
        HASH_DEL(engine->tickets_by_id, ticket);
    mrt_ticket_move(ticket, MRT_TICKET_FREE);
    mrt_heap_clear(&engine->timers, &ticket->timer);
    forget_value(ticket);
    TAILQ_INSERT_HEAD(&engine->free_tickets, ticket, link);
    mrt_queue_put(queue);
}

/* Removes a ticket from its queue; it lives on as `state`, because its command is under way. */
static void loosen(struct mrt_ticket *ticket, enum mrt_ticket_state state)
{
    MRT_ASSERT(ticket->holds == 0 && !ticket->waiter);
    unlist(ticket);
    if (state == MRT_TICKET_ORPHAN)
        HASH_DEL(ticket->queue->engine->tickets_by_id, ticket);
    mrt_ticket_move(ticket, state);
    TAILQ_INSERT_TAIL(&ticket->queue->engine->loose_tickets, ticket, link);
}

struct mrt_ticket *mrt_engine_ticket(struct mrt_engine *engine, struct mrt_id id)
{
    struct mrt_ticket *ticket;
    HASH_FIND(hh, engine->tickets_by_id, &id, sizeof id, ticket);
    return ticket;
}

struct mrt_ticket *mrt_ticket_append(struct mrt_queue *queue, const struct mrt_waiter *waiter)
{
    void *value = waiter->value ? copy_of(waiter->value, waiter->value_size) : NULL;
    struct mrt_ticket *ticket =
        value || !waiter->value ? take(queue->engine, waiter->adopts) : NULL;
    if (!ticket) {
        free(value);
        return NULL;
    }
    ticket->value = value;
    ticket->value_size = waiter->value_size;
    ticket->queue = queue;
    mrt_queue_reference(queue);
    mrt_ticket_move(ticket, MRT_TICKET_NEW);
    TAILQ_INSERT_TAIL(&queue->tickets, ticket, link);
    ticket->weight = waiter->weight;
    ticket->try_only = waiter->try_only;
    ticket->command.expect_free = waiter->expect_free;
    ticket->delay = queue->delay;
    ticket->may_linger = queue->linger > 0;
    ticket->adopts = !mrt_id_none(waiter->adopts);
    ticket->last_fence = waiter->last_fence;
    mrt_ticket_send(ticket, MRT_APPEND);
    MRT_ASSERT(mrt_engine_ticket(queue->engine, ticket->id) == ticket);
    return ticket;
}

void mrt_ticket_resume(struct mrt_ticket *ticket)
{
    uint64_t used = ticket->last_fence - ticket->fence + 1;
    if (ticket->last_fence < ticket->fence)
        used = 0;
    ticket->used = used < ticket->fence_span ? used : ticket->fence_span - 1;
    MRT_ASSERT(ticket->used < ticket->fence_span);
}

void mrt_ticket_look(struct mrt_ticket *ticket)
{
    bool entered = ticket->state == MRT_TICKET_WAITING || ticket->state == MRT_TICKET_GRANTED;
    if (ticket->command.outstanding)
        ticket->look_again = true; /* also while NEW: the wake may overtake the answer */
    else if (entered && !ticket->command.queued)
        mrt_ticket_send(ticket, MRT_REFRESH);
}

void mrt_ticket_attend(struct mrt_ticket *ticket)
{
    if (ticket->watch_closely)
        return;
    ticket->watch_closely = true;
    if (ticket->command.queued)
        ticket->command.watch_closely = true;
    else
        mrt_ticket_look(ticket);
}

void mrt_ticket_lighten(struct mrt_ticket *ticket, uint64_t weight)
{
    MRT_ASSERT(ticket->state == MRT_TICKET_GRANTED);
    if (weight >= ticket->weight)
        return;
    ticket->weight = weight;
    ticket->lightening = true;
    if (!mrt_ticket_under_way(ticket))
        mrt_ticket_send(ticket, MRT_LIGHTEN);
}

int mrt_ticket_set_value(struct mrt_ticket *ticket, const void *value, size_t size)
{
    void *copy = copy_of(value, size);
    if (!copy)
        return MORTISE_ENOMEM;
    if (ticket->value != ticket->sent)
        free(ticket->value);
    ticket->value = copy;
    ticket->value_size = size;
    ticket->revaluing = true;
    if (!mrt_ticket_under_way(ticket) && ticket->state != MRT_TICKET_NEW)
        mrt_ticket_send(ticket, MRT_SET_VALUE);
    return MORTISE_OK;
}

enum mrt_command_type mrt_ticket_way_out(const struct mrt_ticket *ticket)
{
    MRT_ASSERT(ticket->state == MRT_TICKET_LEAVING);
    return mrt_id_none(ticket->detached_id) ? MRT_REMOVE : MRT_DETACH;
}

void mrt_ticket_remove(struct mrt_ticket *ticket)
{
    MRT_ASSERT(ticket->holds == 0);
    if (ticket->adopts)
        ticket->detached_id = ticket->id; /* no hold had it yet: it becomes detached again */
    struct mrt_engine *engine = ticket->queue->engine;
    ticket->lingers = 0; /* its timer is that of the removal now */
    mrt_ticket_end_verifiers(ticket, MORTISE_ENOTHELD);
    bool never_sent = ticket->state == MRT_TICKET_NEW && !ticket->outcome_unknown;
    if (mrt_engine_unsend(engine, &ticket->command) || !mrt_ticket_under_way(ticket)) {
        mrt_heap_clear(&engine->timers, &ticket->timer);
        if (never_sent) {
            mrt_ticket_put(ticket);
            return;
        }
        loosen(ticket, MRT_TICKET_LEAVING);
        mrt_ticket_send(ticket, mrt_ticket_way_out(ticket));
        return;
    }
    MRT_ASSERT(ticket->command.type != MRT_REMOVE);
    loosen(ticket, MRT_TICKET_LEAVING);
    ticket->remove_pending = true;
    ticket->queue->removals_pending++;
}

void mrt_ticket_is_sent(struct mrt_ticket *ticket)
{
    MRT_ASSERT(!ticket->remove_pending || ticket->queue->removals_pending > 0);
    if (ticket->remove_pending)
        ticket->queue->removals_pending--;
    ticket->remove_pending = false;
}

void mrt_ticket_drop(struct mrt_ticket *ticket)
{
    struct mrt_engine *engine = ticket->queue->engine;
    MRT_ASSERT(ticket->holds == 0);
    bool outcome_unknown = ticket->command.type == MRT_DETACH &&
                           (ticket->command.outstanding || ticket->outcome_unknown);
    mrt_engine_unsend(engine, &ticket->command);
    mrt_ticket_end_verifiers(ticket, outcome_unknown ? MORTISE_EUNKNOWN : MORTISE_ELOST);
    mrt_heap_clear(&engine->timers, &ticket->timer);
    mrt_ticket_is_sent(ticket);
    if (ticket->command.outstanding) {
        loosen(ticket, MRT_TICKET_ORPHAN);
        return;
    }
    mrt_ticket_put(ticket);
}

void mrt_ticket_set_timer(struct mrt_ticket *ticket)
{
    mrt_time at = ticket->due;
    if (ticket->lingers > 0)
        at = mrt_time_min(at, ticket->lingers);
    if (at != MRT_TIME_NEVER)
        mrt_heap_set(&ticket->queue->engine->timers, &ticket->timer, at);
}

void mrt_ticket_linger(struct mrt_ticket *ticket, mrt_time until)
{
    MRT_ASSERT(ticket->state == MRT_TICKET_GRANTED && ticket->holds == 0);
    ticket->lingers = until;
    if (!mrt_ticket_under_way(ticket))
        mrt_ticket_set_timer(ticket);
}

void mrt_ticket_again_later(struct mrt_ticket *ticket, mrt_time now)
{
    MRT_ASSERT(!mrt_ticket_under_way(ticket));
    struct mrt_engine *engine = ticket->queue->engine;
    mrt_time pause = mrt_engine_pause(engine, ticket->attempts++);
    ticket->due = mrt_time_add(now, pause);
    mrt_ticket_set_timer(ticket);
}

void mrt_ticket_timer(struct mrt_ticket *ticket, mrt_time now)
{
    MRT_ASSERT(ticket->state != MRT_TICKET_FREE && ticket->state != MRT_TICKET_ORPHAN);
    if (ticket->lingers > 0 && now >= ticket->lingers) {
        mrt_queue_serve(ticket->queue, now);
        return;
    }
    if (mrt_ticket_under_way(ticket))
        return;
    if (now < ticket->due) {
        mrt_ticket_set_timer(ticket); /* the timer was set for lingering, which has ended */
        return;
    }
    switch (ticket->state) {
    case MRT_TICKET_NEW:
        mrt_ticket_send(ticket, MRT_APPEND);
        break;
    case MRT_TICKET_LEAVING:
        mrt_ticket_send(ticket, mrt_ticket_way_out(ticket));
        break;
    default:
        mrt_ticket_send(ticket, ticket->lightening  ? MRT_LIGHTEN
                                : ticket->revaluing ? MRT_SET_VALUE
                                                    : MRT_REFRESH);
    }
}

void mrt_ticket_unsubmitted(struct mrt_ticket *ticket, mrt_time now)
{
    MRT_ASSERT(ticket->command.queued && !ticket->command.outstanding);
    struct mrt_queue *queue = ticket->queue;
    if (ticket->state == MRT_TICKET_ORPHAN) {
        mrt_engine_unsend(queue->engine, &ticket->command);
        mrt_ticket_put(ticket);
    } else if (ticket->state == MRT_TICKET_LEAVING &&
               ticket->command.type != mrt_ticket_way_out(ticket)) {
        mrt_engine_unsend(queue->engine, &ticket->command);
        mrt_ticket_is_sent(ticket);
        if (ticket->command.type == MRT_APPEND && !ticket->outcome_unknown)
            mrt_ticket_put(ticket);
        else
            mrt_ticket_send(ticket, mrt_ticket_way_out(ticket));
        mrt_queue_serve(queue, now); /* a next ticket may have waited for this one's removal */
    }
}
