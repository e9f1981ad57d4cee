/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy of a lock that one holds at a time: which waiter of this process has it next.
 *
 * Threads of a client compete here, and only one ticket stands for all of them in
 * the store. The tier holds the store's ticket as long as its turn lasts and
 * hands the lock on without a request.
 *
 * Order. Waiters stand in the order they came. Strict: the head is handed the
 * lock, always. Otherwise it is eventually fair: a release leaves the lock free and
 * wakes the head, a running thread may take it first, and the head is handed it
 * directly once it has waited `fair_after`. At most one waiter is WOKEN at a
 * time; it stays the head until it gets the lock or gives up.
 *
 * Turn. A ticket's turn lasts while budget and budget_count last; beyond them only
 * as long as nobody is known to wait behind it. That is learnt when the ticket is
 * granted, and by a REFRESH each time the budget is spent, while the threads go on. A request to
 * give the ticket up ends its turn with the hold under way. When it is over
 * the ticket is removed and the next one goes to the back.
 *
 * Linger. If the program asks for it, a ticket that nobody here wants any more is kept for a
 * while, and acquired again without a request, until somebody else queues: the store reports that
 * immediately, so no budget has to be checked. The store reports newcomers only to a ticket whose
 * APPEND asked for that. A ticket queued earlier has ordinary turns.
 *
 * Delay. A waiter that wants a delay after a crash is only served by a ticket that was queued with
 * one. A ticket without it ends its turns once such a waiter comes.
 *
 * Invariant: a free, granted ticket has a waiter that was woken for it, or lingers, or is
 * being removed: no lock is kept without a reason.
 * Threads: as core/engine.h.
 */
#include "core/exclusive.h"

#include "base/assert.h"
#include "core/engine_internal.h"
#include "core/hold.h"
#include "core/outbox.h"
#include "core/policy.h"
#include "core/queue.h"
#include "core/session.h"
#include "core/ticket.h"
#include "core/waiter.h"

/* Whether the ticket has a fence for the next hold. */
static bool has_fence(const struct mrt_queue *queue)
{
    const struct mrt_waiter *head = TAILQ_FIRST(&queue->waiters);
    MRT_ASSERT(head || queue->ticket->lingers > 0); /* which only a ticket with fences does */
    return queue->ticket->used < queue->ticket->fence_span ||
           mrt_waiter_has_fence(head, queue->ticket);
}

/* Whether the ticket may be used once more. */
static bool turn_lasts(struct mrt_queue *queue, mrt_time now)
{
    MRT_ASSERT(queue->ticket->state == MRT_TICKET_GRANTED && !queue->active);
    const struct mrt_engine_config *config = &queue->engine->config;
    struct mrt_ticket *ticket = queue->ticket;
    if (ticket->delay < queue->delay)
        return false;
    if (ticket->fresh)
        return true;
    if (config->budget == 0 || ticket->revoked > 0 || !has_fence(queue))
        return false;
    bool spent = now - queue->turn_began >= config->budget;
    if (!spent && queue->turn_count < config->budget_count)
        return true;
    if (ticket->others_behind)
        return false;
    if (spent && !ticket->checking_others && !ticket->may_linger) {
        ticket->checking_others = true;
        mrt_ticket_look(ticket);
    }
    return true;
}

/* Whether this client has the ticket, the lock is free, and may be acquired now. */
static bool may_take(struct mrt_queue *queue, mrt_time now)
{
    MRT_ASSERT(!queue->ticket || !queue->recipe.shared);
    struct mrt_ticket *ticket = queue->ticket;
    return ticket && ticket->state == MRT_TICKET_GRANTED && !queue->active &&
           now < queue->engine->session.valid_until && turn_lasts(queue, now);
}

static void grant(struct mrt_queue *queue, struct mrt_waiter *waiter, mrt_time now)
{
    struct mrt_engine *engine = queue->engine;
    MRT_ASSERT(queue->ticket);
    engine->counters.acquisitions++;
    if (!queue->ticket->fresh)
        engine->counters.handovers++;
    queue->turn_count++;
    mrt_queue_detach_waiter(queue->ticket);
    mrt_hold_begin(waiter, queue->ticket, now);
    MRT_ASSERT(queue->active == waiter->hold);
    /* A try, which can only be the first waiter, waits for the store and for no holder in this
     * client. */
    struct mrt_waiter *next = TAILQ_FIRST(&queue->waiters);
    if (next && next->try_only)
        mrt_queue_fail(next, MORTISE_EBUSY);
}

static bool must_be_handed(const struct mrt_engine *engine, const struct mrt_waiter *head,
                           mrt_time now)
{
    if (engine->config.strict || !head->competes)
        return true;
    return now - head->since >= engine->config.fair_after;
}

/* This client has the free lock, and a waiter: hand the lock over, or wake the head. */
static void pass_on(struct mrt_queue *queue, struct mrt_waiter *head, mrt_time now)
{
    MRT_ASSERT(head == TAILQ_FIRST(&queue->waiters) && !queue->active);
    if (must_be_handed(queue->engine, head, now)) {
        mrt_queue_unlink_waiter(head);
        grant(queue, head, now);
        mrt_waiter_end(head, MORTISE_OK);
    } else if (head->state == MRT_WAITER_WAITING) {
        head->state = MRT_WAITER_WOKEN;
        mrt_engine_settle(queue->engine, head);
    }
}

static void ask_for_ticket(struct mrt_queue *queue)
{
    MRT_ASSERT(!queue->ticket);
    struct mrt_engine *engine = queue->engine;
    if (engine->session.state != MRT_SESSION_LIVE) {
        mrt_session_need(engine);
        return;
    }
    if (queue->removals_pending > 0)
        return; /* the new ticket would queue behind our own last one */
    struct mrt_waiter *head;
    while ((head = TAILQ_FIRST(&queue->waiters))) {
        queue->ticket = mrt_ticket_append(queue, head);
        if (queue->ticket && queue->ticket->adopts)
            mrt_queue_attach_waiter(queue->ticket, head);
        if (queue->ticket)
            return;
        mrt_queue_fail(head, MORTISE_ENOMEM);
    }
}

/* Whether a ticket without holder and waiter is kept all the same. */
static bool lingers(struct mrt_queue *queue, mrt_time now)
{
    MRT_ASSERT(queue->ticket->holds == 0);
    struct mrt_ticket *ticket = queue->ticket;
    bool over = ticket->others_behind || ticket->revoked > 0 ||
                ticket->used >= ticket->fence_span || ticket->delay < queue->delay;
    if (!ticket->may_linger || queue->engine->config.budget == 0 ||
        ticket->state != MRT_TICKET_GRANTED || ticket->fresh || over ||
        (ticket->lingers > 0 && now >= ticket->lingers))
        return false;
    if (ticket->lingers == 0)
        mrt_ticket_linger(ticket, mrt_time_add(now, queue->linger));
    return true;
}

static void serve(struct mrt_queue *queue, mrt_time now)
{
    MRT_ASSERT(!queue->recipe.shared);
    struct mrt_waiter *head = TAILQ_FIRST(&queue->waiters);
    if (queue->active)
        return;
    if (queue->ticket &&
        (head ? queue->ticket->state == MRT_TICKET_GRANTED && !turn_lasts(queue, now)
              : !lingers(queue, now)))
        mrt_ticket_remove(queue->ticket);
    if (!head)
        return;
    if (!queue->ticket)
        ask_for_ticket(queue);
    else if (may_take(queue, now))
        pass_on(queue, head, now);
}

/* A turn begins. */
static void granted(struct mrt_queue *queue, mrt_time now)
{
    MRT_ASSERT(queue->ticket && queue->ticket->fresh);
    queue->turn_began = now;
    queue->turn_count = 0;
}

/* The next serve removes the ticket, or hands it on. */
static void released(struct mrt_ticket *ticket)
{
    MRT_ASSERT(!ticket->queue->active);
}

const struct mrt_policy mrt_exclusive_policy = {serve, granted, released};

/* ------------------------------------------------------------- competing */

/* Whether a newcomer may have the free lock before the waiters. */
static bool may_barge(const struct mrt_queue *queue, mrt_time now)
{
    const struct mrt_waiter *head = TAILQ_FIRST(&queue->waiters);
    MRT_ASSERT(head || queue->ticket->lingers > 0); /* or a waiter was woken for it */
    return !head || !must_be_handed(queue->engine, head, now);
}

bool mrt_exclusive_take(struct mrt_waiter *waiter, mrt_time now)
{
    struct mrt_queue *queue = waiter->queue;
    if (!may_take(queue, now) || !may_barge(queue, now))
        return false;
    grant(queue, waiter, now);
    return true;
}

bool mrt_exclusive_retake(struct mrt_waiter *waiter, mrt_time now)
{
    if (!may_take(waiter->queue, now))
        return false;
    MRT_ASSERT(waiter == TAILQ_FIRST(&waiter->queue->waiters));
    mrt_queue_unlink_waiter(waiter);
    mrt_waiter_unplace(waiter); /* the caller may reuse its memory from now on */
    grant(waiter->queue, waiter, now);
    return true;
}
