/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts that the steps of all commands have in common. A ticket does one command at a time;
 * each step is one or more requests sent back to back, and the next step follows from the answers.
 *
 *   APPEND   in ticket/append.c; of what is detached, in ticket/detach.c
 *   REFRESH  in ticket/refresh.c
 *   LIGHTEN, SET_VALUE  in ticket/data.c
 *   DETACH   in ticket/detach.c
 *   REMOVE   in ticket/remove.c
 *   all of a claim      in ticket/claim.c
 *
 * When a command ends, or takes another course, `attempt` grows: answers to requests of
 * before are dropped.
 *
 * Invariant: a ticket without a command under way has a node, may have one, or waits as a claim.
 *
 * Threads: as the port's own calls, under mrt_zk_library.
 */
#include "store/zookeeper/ticket/ticket.h"

#include "base/assert.h"
#include "store/kit/refusal.h"
#include "store/zookeeper/answer.h"
#include "store/zookeeper/watch/watch.h"

#include <stdlib.h>

static mrt_zk_ticket_reply synced, barred, checked;
static const struct mrt_zk_step sync_step = {.send = mrt_zk_send_sync, .ticket_reply = synced};

/* It is always refused: no data are ever of that version. */
static mrt_zk_payload carry_barrier;
static const struct mrt_zk_step barrier_step = {
    .send = mrt_zk_send_delete, .payload = carry_barrier, .ticket_reply = barred};
/* Whether its node is the one that was made. */
static const struct mrt_zk_step check_step = {.send = mrt_zk_send_exists, .ticket_reply = checked};

/* ------------------------------------------------------------------ the end */

static void free_ticket(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    mrt_zk_unwait(ticket);
    mrt_zk_disown(session, ticket);
    MRT_ASSERT(TAILQ_EMPTY(&ticket->jobs));
    HASH_DEL(session->tickets, ticket);
    free(ticket->suspects);
    free(ticket);
}

static struct mrt_job *end_job(struct mrt_zk_ticket *ticket)
{
    struct mrt_job *job = TAILQ_FIRST(&ticket->jobs);
    MRT_ASSERT(job);
    TAILQ_REMOVE(&ticket->jobs, job, link);
    ticket->attempt++;
    ticket->recovering = false;
    return job;
}

static void next_job(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    if (!TAILQ_EMPTY(&ticket->jobs))
        ticket->begin(session, ticket);
    else if (!ticket->created && !ticket->outcome_unknown && !ticket->waits)
        free_ticket(session, ticket);
}

void mrt_zk_ticket_answer(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                          enum mrt_event_type type)
{
    mrt_zk_answer(session->store, end_job(ticket), type);
    next_job(session, ticket);
}

void mrt_zk_ticket_answer_code(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                               int code)
{
    mrt_zk_answer_code(session->store, end_job(ticket), code);
    next_job(session, ticket);
}

/* In the words of every store; a code of the server's has its own. */
static void describe_refusal(const struct mrt_zk_ticket *ticket, struct mrt_job *job, int code)
{
    const struct mrt_zk_place *own = &ticket->place, *other = &ticket->other;
    const struct mrt_command *command = &job->command;
    if (code == MRT_ZK_OTHER && other->family != MRT_ZK_FOREIGN)
        mrt_job_set_detail(job, MRT_REFUSAL_MISMATCH, command->queue, mrt_zk_kind(other->family),
                           other->capacity, mrt_zk_kind(own->family), own->capacity);
    else if (code == MRT_ZK_FULL)
        mrt_job_set_detail(job, MRT_REFUSAL_FULL, command->queue_max, command->queue);
    else if (code == MRT_ZK_NO_HEIR)
        mrt_job_set_detail(job, MRT_REFUSAL_NOT_DETACHED, command->queue);
    else if (code == MRT_ZK_OTHER_HEIR)
        mrt_job_set_detail(job, MRT_REFUSAL_ADOPT);
}

void mrt_zk_ticket_fail(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int code)
{
    const struct mrt_zk_code *why = mrt_zk_code(code);
    struct mrt_job *job = end_job(ticket);
    if (code != MRT_ZK_MISPLACED) /* its detail is kept already */
        describe_refusal(ticket, job, code);
    if (job->detail[0])
        mrt_zk_fail(session->store, job, why->error);
    else
        mrt_zk_fail_with(session->store, job, why->error, why->text);
    next_job(session, ticket);
}

void mrt_zk_ticket_gone(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    mrt_zk_unwait(ticket);
    mrt_zk_disown(session, ticket);
    ticket->created = ticket->outcome_unknown = ticket->held = false;
    mrt_zk_ticket_answer(session, ticket, MRT_GONE);
}

void mrt_zk_ticket_show(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                        uint64_t ahead)
{
    struct mrt_job *job = end_job(ticket);
    mrt_zk_ticket_describe(ticket, &job->event, ahead);
    mrt_zk_answer(session->store, job, MRT_VIEW);
    next_job(session, ticket);
}

void mrt_zk_ticket_end(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    while (!TAILQ_EMPTY(&ticket->jobs)) {
        struct mrt_job *job = end_job(ticket);
        if (job->command.type == MRT_REFRESH || job->command.type == MRT_SET_VALUE)
            mrt_zk_answer(session->store, job, MRT_GONE);
        else if (job->command.type == MRT_REMOVE)
            mrt_zk_answer(session->store, job, session->over ? MRT_REMOVED : MRT_UNKNOWN);
        else
            mrt_zk_answer(session->store, job, MRT_UNKNOWN);
    }
    free_ticket(session, ticket);
}

void mrt_zk_note_no_delete(struct mrt_zk_session *session, const struct mrt_zk_ticket *ticket,
                           int code)
{
    if (code == ZNOAUTH)
        mrt_note(&session->store->notes, MRT_ZK_NOTE_NO_DELETE,
                 "the ACL of %.150s lets us create but not delete: what is acquired there stays "
                 "taken until the client is closed",
                 ticket->path);
}

/* ----------------------------------------------------------------- requests */

bool mrt_zk_ticket_send(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                        const struct mrt_zk_step *step, const char *path)
{
    int code = mrt_zk_send(session, step, ticket, 0, path);
    if (code == ZOK)
        return true;
    if (mrt_zk_code(code)->outcome == MRT_ZK_SESSION_OVER)
        mrt_zk_session_over(session, code);
    mrt_zk_ticket_answer_code(session, ticket, code);
    return false;
}

bool mrt_zk_ticket_send_node(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                             const struct mrt_zk_step *step, const char *node)
{
    char path[MRT_ZK_PATH_MAX + 256];
    snprintf(path, sizeof path, "%s/%s", ticket->path, node);
    return mrt_zk_ticket_send(session, ticket, step, path);
}

bool mrt_zk_ticket_catch_up(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket)
{
    const struct mrt_zk_step *step = ticket->outcome_unknown ? &barrier_step : &sync_step;
    return mrt_zk_ticket_send(session, ticket, step, ticket->path);
}

void mrt_zk_ticket_list(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                        const struct mrt_zk_step *step, bool fresh)
{
    ticket->attempt++;
    if (fresh && !mrt_zk_ticket_catch_up(session, ticket))
        return;
    if (ticket->created && (!ticket->uuid[0] || (fresh && ticket->held)) &&
        !mrt_zk_ticket_send_node(session, ticket, &check_step, ticket->node))
        return; /* another's may be called so by now, if ours was deleted */
    mrt_zk_ticket_send(session, ticket, step, ticket->path);
}

/* ------------------------------------------------------------------ answers */

static void synced(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                   const struct mrt_zk_reply *reply)
{
    if (reply->code != ZOK) /* the list behind it proves nothing */
        mrt_zk_ticket_answer(session, ticket, MRT_UNKNOWN);
}

static void carry_barrier(struct mrt_zk_outgoing *request)
{
    request->version = INT32_MAX;
}

static void barred(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                   const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    if (outcome == MRT_ZK_PERHAPS || outcome == MRT_ZK_SESSION_OVER)
        mrt_zk_ticket_answer(session, ticket, MRT_UNKNOWN);
}

/* One with a UUID may have another node by now, of its session; that is in the list. */
static bool is_still(const struct mrt_zk_session *session, const struct mrt_zk_ticket *ticket,
                     const struct mrt_zk_reply *reply)
{
    if (ticket->uuid[0])
        return reply->code != ZOK || reply->stat->ephemeralOwner == session->server_id;
    return reply->code != ZNONODE && (reply->code != ZOK || reply->stat->czxid == ticket->czxid);
}

/* Any other failure of it is the list's behind it, too. */
static void checked(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                    const struct mrt_zk_reply *reply)
{
    ticket->created = is_still(session, ticket, reply);
}
