/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's events about a ticket: answers to its commands, and unsolicited ones.
 *
 * Invariants:
 *  - Only a VIEW grants, and only by the rule. An unsolicited VIEW may be old, so it ends no grant:
 *    a REFRESH follows. An answer ends a grant, if its command was sent after the grant.
 *  - A store that was wiped or restored may grant with a fence that is not larger than one that was
 *    given out here. Such a ticket is given to no waiter, and its waiter gets MORTISE_ESTALE.
 *    Holders of less than the whole capacity share, so for them only the fence of an exclusive
 * holder counts.
 *  - One command of a ticket is under way at a time: the next is sent when the
 *    answer to the one before has come.
 */
#include "core/ticket_answer.h"

#include "base/assert.h"
#include "core/agenda.h"
#include "core/engine_internal.h"
#include "core/hold.h"
#include "core/outbox.h"
#include "core/policy.h"
#include "core/queue.h"
#include "core/rule.h"
#include "core/ticket.h"
#include "core/verify.h"
#include "core/waiter.h"

static void gone(struct mrt_ticket *ticket, mrt_time now)
{
    MRT_ASSERT(mrt_ticket_in_queue(ticket));
    struct mrt_queue *queue = ticket->queue;
    mrt_queue_ticket_gone(ticket);
    mrt_queue_serve(queue, now);
}

void mrt_ticket_revoked(struct mrt_ticket *ticket, uint64_t number)
{
    struct mrt_hold *hold;
    if (number <= ticket->revoked)
        return;
    ticket->revoked = number;
    TAILQ_FOREACH (hold, &ticket->queue->holds, link)
        if (hold->ticket == ticket)
            mrt_hold_ask(hold);
}

/* Whether others wait behind it, by the newest knowledge. An unsolicited event may be older than
   that knowledge, or newer than the answer that is under way. A lingering holder that missed a
   newcomer would keep the lock. So for it an unsolicited "nobody waits" is ignored, and an
   unsolicited "somebody waits" is confirmed by a REFRESH. */
static bool has_others(struct mrt_ticket *ticket, const struct mrt_event *event)
{
    if (event->serial > 0 || !ticket->may_linger)
        return event->others_behind;
    if (event->others_behind && ticket->command.outstanding)
        mrt_ticket_look(ticket);
    return event->others_behind || ticket->others_behind;
}

/* Whether the store has forgotten the fences that this client has had of it. */
static bool goes_back(const struct mrt_ticket *ticket, const struct mrt_event *event)
{
    const struct mrt_queue *queue = ticket->queue;
    bool alone = ticket->weight == queue->recipe.capacity;
    return ticket->state == MRT_TICKET_WAITING && event->fence > 0 && !ticket->adopts &&
           event->fence <= (alone ? queue->floor : queue->floor_alone);
}

static void viewed(struct mrt_ticket *ticket, const struct mrt_event *event, mrt_time now)
{
    MRT_ASSERT(mrt_ticket_in_queue(ticket));
    struct mrt_queue *queue = ticket->queue;
    struct mrt_engine *engine = queue->engine;
    bool grants = mrt_rule_grants(event->weight_ahead, ticket->weight, queue->recipe.capacity);
    if (ticket->state == MRT_TICKET_GRANTED && !grants) {
        if (event->serial == 0 || event->serial <= ticket->granted_serial) {
            mrt_ticket_look(ticket); /* a view that old does not contradict the grant */
        } else {
            mrt_queue_ticket_overtaken(ticket);
            mrt_queue_serve(queue, now);
        }
        return;
    }
    if (ticket->state == MRT_TICKET_NEW) {
        ticket->revoked = 0; /* an earlier request may be for a ticket that was broken unseen */
        mrt_ticket_move(ticket, MRT_TICKET_WAITING);
    }
    mrt_ticket_revoked(ticket, event->revoked);
    if (ticket->try_only &&
        !grants) { /* clause (i) of the port forbids it; the ticket must not stay */
        mrt_queue_blocked(ticket);
        mrt_ticket_remove(ticket);
        mrt_queue_serve(queue, now);
        return;
    }
    if (grants && goes_back(ticket, event)) {
        ticket->fence = event->fence;
        if (event->serial <= queue->floor_serial) {
            mrt_ticket_look(ticket); /* a late view of a ticket that may have been broken since */
            return;
        }
        mrt_queue_refused(ticket, MORTISE_ESTALE, true);
        mrt_queue_serve(queue, now);
        return;
    }
    ticket->unreachable = false;
    if (!grants) {
        ticket->waited = true;
        mrt_queue_placed(ticket, event->place);
    }
    ticket->attempts = 0;
    ticket->fence = event->fence;
    ticket->fence_span = event->fence_span;
    ticket->number = event->number;
    ticket->others_behind = has_others(ticket, event);
    ticket->recheck = mrt_engine_recheck(engine, event->recheck);
    bool looks = ticket->recheck > 0;
    ticket->due = looks ? mrt_time_add(now, ticket->recheck) : MRT_TIME_NEVER;
    mrt_ticket_set_timer(ticket);
    if (ticket->state == MRT_TICKET_WAITING && grants) {
        mrt_ticket_move(ticket, MRT_TICKET_GRANTED);
        ticket->granted_serial = engine->serial;
        ticket->fresh = true;
        if (ticket->adopts)
            mrt_ticket_resume(ticket);
        queue->policy->granted(queue, now);
        mrt_queue_serve(queue, now);
    } else if (ticket->checking_others && !ticket->others_behind) {
        queue->turn_began = now;
        queue->turn_count = 0;
    }
    ticket->checking_others = false;
}

static void answered_view(struct mrt_ticket *ticket, const struct mrt_event *event, mrt_time now)
{
    MRT_ASSERT(!mrt_ticket_under_way(ticket));
    uint64_t asked = ticket->command.serial;
    if (ticket->command.type == MRT_LIGHTEN && ticket->command.weight == ticket->weight)
        ticket->lightening = false;
    if (ticket->command.type == MRT_SET_VALUE && ticket->sent == ticket->value)
        ticket->revaluing = false;
    viewed(ticket, event, now);
    if (mrt_ticket_in_queue(ticket))
        mrt_ticket_verified(ticket, asked);
    if (mrt_ticket_in_queue(ticket) && (ticket->look_again || !TAILQ_EMPTY(&ticket->verifiers))) {
        ticket->look_again = false;
        mrt_ticket_look(ticket);
    }
    if (mrt_ticket_in_queue(ticket) && ticket->lightening && !mrt_ticket_under_way(ticket))
        mrt_ticket_send(ticket, MRT_LIGHTEN);
    if (mrt_ticket_in_queue(ticket) && ticket->revaluing && !mrt_ticket_under_way(ticket))
        mrt_ticket_send(ticket, MRT_SET_VALUE);
}

/* Whether a failed APPEND, and those before it, have put nothing into the store. A ticket that is
   not there to be adopted has not been adopted by an earlier attempt either. */
static bool was_not_done(const struct mrt_ticket *ticket, const struct mrt_event *event)
{
    MRT_ASSERT(ticket->command.type == MRT_APPEND);
    return !ticket->outcome_unknown || (ticket->adopts && event->error == MORTISE_ENOTHELD);
}

/* Whether a failed APPEND is the last one. A passing fault is tried again. A lasting refusal is
 * reported immediately, even if an earlier attempt may have been executed. An unreachable store is
 * waited for as a missing session is: until contact.c or the deadline ends the wait, not a count.
 */
static bool is_refused(const struct mrt_ticket *ticket, const struct mrt_event *event)
{
    bool for_good =
        event->error == MORTISE_EFULL || mortise_error_kind_of(event->error) != MORTISE_KIND_RETRY;
    bool is_away = event->error == MORTISE_EUNREACHABLE;
    bool too_often = ticket->attempts >= ticket->queue->engine->config.attempts_max;
    bool given_up = ticket->try_only || (too_often && !is_away);
    return ticket->state == MRT_TICKET_NEW && (for_good || (given_up && !ticket->outcome_unknown));
}

static void answered_in_queue(struct mrt_ticket *ticket, const struct mrt_event *event,
                              mrt_time now)
{
    struct mrt_queue *queue = ticket->queue;
    switch (event->type) {
    case MRT_VIEW:
        answered_view(ticket, event, now);
        break;
    case MRT_BLOCKED:
        mrt_queue_blocked(ticket);
        mrt_queue_ticket_gone(ticket);
        mrt_queue_serve(queue, now);
        break;
    case MRT_FAILED:
        if (is_refused(ticket, event)) {
            mrt_queue_refused(ticket, event->error, !was_not_done(ticket, event));
            mrt_queue_serve(queue, now);
            break;
        }
        ticket->unreachable = event->error == MORTISE_EUNREACHABLE;
        mrt_ticket_again_later(ticket, now);
        break;
    case MRT_UNKNOWN:
        ticket->outcome_unknown = true;
        ticket->unreachable = true;
        mrt_ticket_again_later(ticket, now);
        break;
    default:
        gone(ticket, now);
    }
    if (mrt_ticket_in_queue(ticket))
        mrt_queue_serve(queue, now);
}

/* Takes the answer to a DETACH. True: the ticket has left this client. */
static bool answered_detach(struct mrt_ticket *ticket, const struct mrt_event *event)
{
    MRT_ASSERT(ticket->command.type == MRT_DETACH);
    bool refused = event->type == MRT_FAILED && !ticket->outcome_unknown && !ticket->adopts &&
                   mortise_error_kind_of(event->error) != MORTISE_KIND_RETRY;
    bool done = event->type == MRT_VIEW;
    if (done)
        mrt_ticket_end_verifiers(ticket, MORTISE_OK);
    if (done || event->type == MRT_GONE)
        return true;
    ticket->outcome_unknown |= event->type == MRT_UNKNOWN;
    if (refused) {
        mrt_ticket_end_verifiers(ticket, event->error);
        ticket->detached_id = (struct mrt_id){0, 0};
    }
    return false;
}

/* An answer for a ticket that will be removed, or whose REMOVE has been sent. */
static void answered_leaving(struct mrt_ticket *ticket, const struct mrt_event *event, mrt_time now)
{
    MRT_ASSERT(ticket->holds == 0 && !ticket->waiter);
    struct mrt_queue *queue = ticket->queue;
    enum mrt_command_type asked = ticket->command.type;
    bool absent = event->type == MRT_REMOVED || event->type == MRT_GONE ||
                  event->type == MRT_BLOCKED ||
                  (asked == MRT_APPEND && event->type == MRT_FAILED && was_not_done(ticket, event));
    mrt_ticket_is_sent(ticket);
    if (asked == MRT_DETACH)
        absent = answered_detach(ticket, event);
    if (absent) {
        mrt_ticket_end_verifiers(ticket, MORTISE_ELOST);
        mrt_ticket_put(ticket);
    } else if (asked != mrt_ticket_way_out(ticket)) {
        if (event->type == MRT_VIEW)
            ticket->fence = event->fence;
        mrt_ticket_send(ticket, mrt_ticket_way_out(ticket));
    } else {
        mrt_ticket_again_later(ticket, now);
    }
    mrt_queue_serve(queue, now); /* a next ticket may have waited for this one's removal */
}

/* A view that was not asked for; it may end the ticket. */
static void seen(struct mrt_ticket *ticket, const struct mrt_event *event, mrt_time now)
{
    struct mrt_queue *queue = ticket->queue;
    viewed(ticket, event, now);
    if (queue->linger > 0)
        mrt_queue_serve(queue, now); /* another client may want it */
}

/* Whether an unsolicited view is too old: of an earlier ticket of this identity, which was removed
 * (unseen, or for want of copies) and appended again behind others. */
static bool is_of_another(const struct mrt_ticket *ticket, const struct mrt_event *event)
{
    return !event->in_order && event->fence != ticket->fence;
}

void mrt_ticket_told(struct mrt_ticket *ticket, const struct mrt_event *event, mrt_time now)
{
    bool entered = ticket->state == MRT_TICKET_WAITING || ticket->state == MRT_TICKET_GRANTED;
    if (entered && !is_of_another(ticket, event))
        seen(ticket, event, now);
    else
        mrt_ticket_look(ticket); /* or it has overtaken the answer that precedes it */
}

void mrt_ticket_answer(struct mrt_ticket *ticket, const struct mrt_event *event, mrt_time now)
{
    MRT_ASSERT(!mrt_ticket_under_way(ticket));
    switch (ticket->state) {
    case MRT_TICKET_ORPHAN:
        mrt_ticket_put(ticket);
        break;
    case MRT_TICKET_LEAVING:
        answered_leaving(ticket, event, now);
        break;
    default:
        MRT_ASSERT(mrt_ticket_in_queue(ticket));
        answered_in_queue(ticket, event, now);
    }
}
