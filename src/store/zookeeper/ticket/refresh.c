/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The view: a list of the children, and what follows from it. A ticket that is granted is marked or
 * watched as its command wants it; one that waits watches what it waits for; one that may not
 * stand is taken back.
 *
 *   REFRESH  list; sync + list if it was granted, because that must not be an old answer
 *
 * Every command that leaves the ticket in its queue ends with this list.
 *
 * Invariant: a view is reported only with the ticket's own node in the list.
 *
 * Threads: as the port's own calls, under mrt_zk_library.
 */
#include "store/zookeeper/ticket/refresh.h"

#include "base/assert.h"
#include "store/zookeeper/ticket/claim.h"
#include "store/zookeeper/ticket/refuse.h"
#include "store/zookeeper/ticket/semaphore.h"
#include "store/zookeeper/ticket/ticket.h"
#include "store/zookeeper/watch/pass.h"
#include "store/zookeeper/watch/watch.h"

static mrt_zk_ticket_reply viewed;
static const struct mrt_zk_step view_step = {.send = mrt_zk_send_list, .ticket_reply = viewed};
/* Lists, and watches the directory. */
static const struct mrt_zk_step watched_view_step = {.send = mrt_zk_send_list,
                                                     .event = mrt_zk_watch_event,
                                                     .watch = mrt_zk_watch_children,
                                                     .number_reply = mrt_zk_watch_answered,
                                                     .ticket_reply = viewed};

/* ------------------------------------------------------------------ the list */

const struct mrt_zk_step *mrt_zk_refresh_step(const struct mrt_zk_session *session,
                                              const struct mrt_zk_ticket *ticket)
{
    bool semaphore = ticket->place.family == MRT_ZK_SEMAPHORE && ticket->waited;
    bool watched = !ticket->held && (semaphore || mrt_zk_ticket_herds(session, ticket));
    return watched || ticket->lingers ? &watched_view_step : &view_step;
}

void mrt_zk_refresh(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, bool fresh)
{
    mrt_zk_ticket_list(session, ticket, mrt_zk_refresh_step(session, ticket), fresh);
}

void mrt_zk_refresh_begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    if (!ticket->created) {
        mrt_zk_ticket_gone(session, ticket);
        return;
    }
    if (mrt_zk_ticket_command(ticket)->watch_closely)
        mrt_zk_attend(session, ticket);
    mrt_zk_refresh(session, ticket, ticket->held);
}

/* ------------------------------------------------------------------ the view */

/* Sets the watches that the view calls for. False: the queue must be listed again first, with a
 * watch. */
static bool wait(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                 const struct mrt_zk_view *view, const struct mrt_zk_reply *reply)
{
    ticket->waited = true;
    ticket->before = view->before;
    ticket->after = view->after;
    if (view->blocker < 0 || mrt_zk_ticket_herds(session, ticket))
        return mrt_zk_wait_children(session, ticket);
    mrt_zk_wait(session, ticket, reply->names->data[view->blocker]);
    return true;
}

/* Acts on the view, and reports it. */
static void take_view(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                      const struct mrt_zk_view *view, const struct mrt_zk_reply *reply)
{
    MRT_ASSERT(ticket->created && view->own >= 0);
    ticket->behind = view->behind;
    ticket->ahead = view->count;
    if (mrt_zk_ticket_fits(ticket, view->ahead)) {
        ticket->mark_due |= mrt_zk_mark_due(ticket, reply->stat);
        mrt_zk_mark(session, ticket);
        mrt_zk_unwait(ticket);
        if (ticket->lingers && !view->behind && !mrt_zk_wait_children(session, ticket)) {
            mrt_zk_refresh(session, ticket, false);
            return;
        }
    } else if (!wait(session, ticket, view, reply)) {
        mrt_zk_refresh(session, ticket, false);
        return;
    }
    mrt_zk_ticket_show(session, ticket, view->ahead);
}

static void list_again(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    mrt_zk_refresh(session, ticket, false);
}

static void viewed(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                   const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    struct mrt_job *job = TAILQ_FIRST(&ticket->jobs);
    if (outcome == MRT_ZK_NOT_DONE && job->command.type == MRT_APPEND && !job->command.adopt) {
        mrt_zk_undo(session, ticket, reply->code);
        return;
    }
    if (outcome != MRT_ZK_DONE && outcome != MRT_ZK_NO_NODE) {
        mrt_zk_ticket_answer_code(session, ticket, reply->code);
        return;
    }
    struct mrt_zk_view view = {.own = -1, .misplaced = -1};
    if (outcome == MRT_ZK_DONE)
        view = mrt_zk_view_of(session->store, ticket, reply->names);
    if (view.own >= 0 && mrt_zk_claim_check(session, ticket, &view, false, list_again))
        return;
    int refusal = view.own < 0 ? ZOK : mrt_zk_refusal(ticket, &job->command, &view, reply->names);
    if (view.own < 0) {
        mrt_zk_ticket_gone(session, ticket);
    } else if (refusal != ZOK) {
        ticket->other = view.other;
        if (refusal == MRT_ZK_MISPLACED)
            mrt_zk_keep_misplaced(session->store, job, reply->names->data[view.misplaced]);
        mrt_zk_undo(session, ticket, refusal);
    } else if (mrt_zk_ticket_keep(ticket, reply->names->data[view.own])) {
        take_view(session, ticket, &view, reply);
    } else {
        mrt_zk_ticket_gone(session, ticket);
    }
}
