/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tickets of clients: see desk.h. A ticket is in the table from its APPEND until the store says
 * that it is not there, or that it belongs to nobody any more (DETACH), and no other APPEND of it
 * is under way. So whatever becomes of a client, what it has in the store is known, and is removed.
 *
 * A ticket with a delay that holds when its client dies is kept for the delay, by the agent: the
 * store would do the same only if the agent died.
 */
#include "agent/mutex.h"
#include "agent/peer.h"
#include "agent/rights.h"

#include "core/lend.h"
#include "core/rule.h"
#include "store/agent/frame.h"

#include <stdlib.h>
#include <string.h>

#define PAUSE (50 * MRT_MILLISECOND) /* before a removal is repeated */
#define DRIFT 32                     /* a clock may run fast by this part (core/session.c) */

struct mrt_desk_ticket *mrt_desk_find(const struct mrt_desk *desk, struct mrt_id id)
{
    struct mrt_desk_ticket *ticket;
    HASH_FIND(hh, desk->tickets, &id, sizeof id, ticket);
    return ticket;
}

struct mrt_desk_ticket *mrt_desk_ticket_new(struct mrt_desk_session *session,
                                            const struct mrt_frame_command *frame)
{
    const struct mrt_command *command = &frame->command;
    struct mrt_desk *desk = &session->agent->desk;
    struct mrt_desk_ticket *ticket = calloc(1, sizeof *ticket + frame->queue.size + 1);
    if (!ticket)
        return NULL;
    memcpy(ticket->queue, frame->queue.text, frame->queue.size);
    ticket->id = command->ticket;
    ticket->session = session;
    ticket->observes = command->type == MRT_OBSERVE;
    ticket->weight = command->weight;
    ticket->capacity = command->capacity;
    ticket->delay = command->delay;
    ticket->claim = command->claim;
    ticket->reads = mrt_desk_reads(frame);
    ticket->last_fence =
        command->adopt && mrt_desk_is_mutex(frame) ? command->last_fence : UINT64_MAX;
    ticket->timer.kind = MRT_DESK_TICKET;
    HASH_ADD(hh, desk->tickets, id, sizeof ticket->id, ticket);
    if (!ticket->hh.tbl) {
        free(ticket);
        return NULL;
    }
    TAILQ_INSERT_TAIL(&session->tickets, ticket, link);
    return ticket;
}

void mrt_desk_ticket_note(struct mrt_desk_ticket *ticket, const struct mrt_command *command)
{
    ticket->appends += command->type == MRT_APPEND;
    ticket->watches = command->watch_closely;
    ticket->lingers = command->linger;
}

void mrt_desk_ticket_limit(struct mrt_desk_ticket *ticket)
{
    mrt_time hold = ticket->user->limits->hold;
    if (hold > 0 && !ticket->is_leaving)
        mrt_heap_set(&ticket->session->agent->desk.timers, &ticket->timer,
                     mrt_time_add(mrt_time_now(), hold));
}

/* It is held from now on, of a user who has limits. */
static void settle(struct mrt_desk_ticket *ticket)
{
    mrt_usage_settle(ticket->usage);
    ticket->waits = false;
    mrt_desk_ticket_limit(ticket);
}

static void set_granted(struct mrt_desk_ticket *ticket, bool is_granted)
{
    if (ticket->session && ticket->is_granted != is_granted) {
        ticket->session->granted += is_granted ? 1 : (size_t)-1;
        ticket->session->agent->counters.grants += is_granted;
        if (is_granted && ticket->waits)
            settle(ticket);
    }
    ticket->is_granted = is_granted;
}

void mrt_desk_ticket_granted(struct mrt_desk_ticket *ticket)
{
    set_granted(ticket, true);
}

static void leave_session(struct mrt_desk_ticket *ticket)
{
    struct mrt_desk_session *session = ticket->session;
    if (!session)
        return;
    set_granted(ticket, false);
    TAILQ_REMOVE(&session->tickets, ticket, link);
    ticket->session = NULL;
    if (session->state == MRT_DESK_STOPPING && TAILQ_EMPTY(&session->tickets))
        mrt_desk_stopped(session);
}

static void unkeep(struct mrt_agent *agent, struct mrt_desk_ticket *ticket)
{
    if (ticket->is_kept)
        TAILQ_REMOVE(&agent->desk.kept, ticket, link);
    ticket->is_kept = false;
}

void mrt_desk_ticket_free(struct mrt_agent *agent, struct mrt_desk_ticket *ticket)
{
    mrt_heap_clear(&agent->desk.timers, &ticket->timer);
    HASH_DEL(agent->desk.tickets, ticket);
    unkeep(agent, ticket);
    mrt_desk_mutex_free(ticket->mutex);
    leave_session(ticket);
    if (ticket->usage)
        mrt_user_give_back(ticket->user, ticket->usage, ticket->waits);
    free(ticket);
}

mrt_time mrt_desk_recheck(const struct mrt_desk *desk, const char *queue, mrt_time told)
{
    const struct mrt_desk_ticket *ticket;
    mrt_time now = mrt_time_now();
    TAILQ_FOREACH (ticket, &desk->kept, link)
        if (strcmp(ticket->queue, queue) == 0 && ticket->timer.at > now)
            told = mrt_time_min(told, mrt_time_min(ticket->timer.at - now, ticket->delay));
    return told;
}

void mrt_desk_ticket_trim(const struct mrt_agent *agent, const struct mrt_desk_ticket *ticket,
                          struct mrt_event *view)
{
    uint64_t share = mrt_engine_share(agent->driver.engine, view->fence_span);
    uint64_t last = ticket->last_fence > view->fence ? ticket->last_fence - view->fence : 0;
    if (view->type == MRT_VIEW && last < share - 1)
        view->fence_span = share;
}

/* Requests its removal, or does so later. */
static void request_removal(struct mrt_agent *agent, struct mrt_desk_ticket *ticket)
{
    ticket->is_leaving = true;
    unkeep(agent, ticket);
    if (!mrt_desk_remove(agent, ticket))
        mrt_heap_set(&agent->desk.timers, &ticket->timer, mrt_time_now() + PAUSE);
}

/* Those who wait behind a ticket are to look how long it stays. */
static void wake_others(struct mrt_agent *agent, const struct mrt_desk_ticket *kept)
{
    const struct mrt_desk_ticket *ticket, *next;
    HASH_ITER (hh, agent->desk.tickets, ticket, next)
        if (ticket->session && ticket->session->state == MRT_DESK_LIVE && !ticket->is_granted &&
            strcmp(ticket->queue, kept->queue) == 0) {
            const struct mrt_event wake = {.type = MRT_WAKE, .ticket = ticket->id};
            mrt_desk_answer(ticket->session, &wake);
        }
}

void mrt_desk_ticket_leave(struct mrt_agent *agent, struct mrt_desk_ticket *ticket, bool died)
{
    bool is_kept = died && ticket->is_granted && ticket->delay > 0;
    mrt_heap_clear(&agent->desk.timers, &ticket->timer);
    if (ticket->observes) {
        mrt_desk_ticket_free(agent, ticket);
        return;
    }
    if (is_kept || ticket->session->state != MRT_DESK_STOPPING)
        leave_session(ticket);
    if (ticket->mutex) {
        mrt_desk_mutex_leave(ticket->mutex);
    } else if (is_kept) {
        ticket->is_kept = true;
        TAILQ_INSERT_TAIL(&agent->desk.kept, ticket, link);
        mrt_heap_set(&agent->desk.timers, &ticket->timer,
                     mrt_time_add(mrt_time_now(), ticket->delay + ticket->delay / DRIFT));
        wake_others(agent, ticket);
    } else {
        request_removal(agent, ticket);
    }
}

void mrt_desk_ticket_timer(struct mrt_agent *agent, struct mrt_desk_ticket *ticket)
{
    if (!ticket->session || ticket->is_leaving) {
        request_removal(agent, ticket);
    } else if (ticket->is_granted) {
        mrt_desk_overstay(ticket->session);
    } else { /* its turn may have come, and its client does not look */
        if (!ticket->is_looked_at)
            ticket->is_looked_at = mrt_desk_look(agent, ticket);
        mrt_desk_ticket_limit(ticket);
    }
}

/* Whether the store, or what was asked of it, says that the client has it no longer. */
static bool has_gone(const struct mrt_desk_ticket *ticket, const struct mrt_event *event,
                     const struct mrt_desk_command *asked)
{
    enum mrt_command_type type = asked ? asked->command.type : MRT_REFRESH;
    switch (event->type) {
    case MRT_REMOVED:
    case MRT_GONE:
    case MRT_BLOCKED:
        return true;
    case MRT_VIEW:
        return type == MRT_DETACH;
    case MRT_FAILED: /* it was never there, unless an earlier APPEND may have been done */
        return type == MRT_APPEND && !ticket->may_be_there;
    default:
        return false;
    }
}

void mrt_desk_ticket_follow(struct mrt_agent *agent, struct mrt_desk_ticket *ticket,
                            const struct mrt_event *event, const struct mrt_desk_command *asked)
{
    if (ticket->observes) {
        ticket->is_asked &= !asked;
        return;
    }
    bool is_own = asked && asked->is_own;
    ticket->is_looked_at &= !asked || asked->command.type != MRT_REFRESH;
    if (asked && asked->command.type == MRT_APPEND && ticket->appends > 0)
        ticket->appends--;
    if (has_gone(ticket, event, asked)) {
        if (is_own || (!ticket->is_leaving && ticket->appends == 0))
            mrt_desk_ticket_free(agent, ticket);
        return;
    }
    if (event->type == MRT_UNKNOWN || event->type == MRT_VIEW)
        ticket->may_be_there = true;
    if (is_own) {
        mrt_heap_set(&agent->desk.timers, &ticket->timer, mrt_time_now() + PAUSE);
        return;
    }
    if (event->type != MRT_VIEW)
        return;
    ticket->fence = event->fence;
    if (asked && asked->command.type == MRT_LIGHTEN)
        ticket->weight = asked->command.weight;
    if (mrt_rule_grants(event->weight_ahead, ticket->weight, ticket->capacity))
        set_granted(ticket, true);
}
