/* SPDX-License-Identifier: Apache-2.0 */
/*
 * START, RENEW, STOP. A session is known to this client alone: a START finds out whether the server
 * answers and lets this client read Leases; a RENEW is the sum of its tickets' renewals, and a STOP
 * that of their removals.
 */
#include "store/kubernetes/command.h"
#include "store/kubernetes/queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mrt_k8s_session *mrt_k8s_session_find(const struct mrt_k8s_store *store, struct mrt_id id)
{
    struct mrt_k8s_session *session;
    TAILQ_FOREACH (session, &store->sessions, link)
        if (mrt_id_equal(session->id, id))
            return session;
    return NULL;
}

/* -------------------------------------------------------------------- START */

static void on_started(void *argument, const struct mrt_rest_reply *reply)
{
    struct mrt_k8s_job *job = argument;
    struct mrt_k8s_store *store = job->store;
    struct mrt_k8s_session *session = mrt_k8s_session_find(store, job->job.command.session);
    if (reply->outcome == MRT_REST_DONE && !mrt_k8s_is_list(reply->json)) {
        mrt_k8s_fail(job, MORTISE_EUNREACHABLE, "the answer is no list of Leases");
        return;
    }
    if (reply->outcome != MRT_REST_DONE) {
        bool unknown = reply->outcome == MRT_REST_UNKNOWN;
        bool absent = reply->error == MORTISE_ENOTHELD;
        mrt_k8s_fail(job,
                     unknown  ? MORTISE_EUNREACHABLE
                     : absent ? MORTISE_ESETUP
                              : reply->error,
                     "%s", reply->text);
        return;
    }
    if (!session && (session = calloc(1, sizeof *session))) {
        session->id = job->job.command.session;
        TAILQ_INSERT_TAIL(&store->sessions, session, link);
    }
    job->job.event.lease = store->address.lease;
    if (session)
        mrt_k8s_answer(job, MRT_STARTED);
    else
        mrt_k8s_fail(job, MORTISE_ENOMEM, "no memory for a session");
}

static void start(struct mrt_k8s_job *job)
{
    struct mrt_k8s_store *store = job->store;
    char target[MRT_K8S_TARGET_SIZE];
    mrt_k8s_target(&store->address, NULL, "limit=1", target);
    const struct mrt_rest_request request = {.method = "GET",
                                             .path = target,
                                             .limit = store->address.connect,
                                             .done = on_started,
                                             .argument = job};
    if (!mrt_rest_send(&store->wire.rest, &request, NULL))
        mrt_k8s_fail(job, MORTISE_ENOMEM, "no memory for a request");
}

/* ------------------------------------------------------------- RENEW and STOP */

typedef void each_ticket(struct mrt_k8s_ticket *ticket);

static void for_tickets(struct mrt_k8s_store *store, const struct mrt_k8s_session *session,
                        each_ticket *call)
{
    struct mrt_k8s_queue *queue;
    struct mrt_k8s_ticket *ticket, *next;
    TAILQ_FOREACH (queue, &store->queues, link)
        TAILQ_FOREACH_SAFE (ticket, &queue->tickets, link, next)
            if (ticket->session == session)
                call(ticket);
}

static void renew_held(struct mrt_k8s_ticket *ticket)
{
    if (ticket->held && !ticket->lost)
        mrt_k8s_ticket_renew(ticket);
}

static void renew(struct mrt_k8s_job *job, struct mrt_k8s_session *session)
{
    session->renewal = job;
    session->renewed = mrt_time_now();
    session->failed = false;
    session->detail[0] = '\0';
    for_tickets(job->store, session, renew_held);
}

/* A ticket leaves by a REMOVE of the store's own, behind the commands of its lock. */
static void remove_ticket(struct mrt_k8s_ticket *ticket)
{
    struct mrt_k8s_session *session = ticket->session;
    const struct mrt_command command = {
        .type = MRT_REMOVE, .session = session->id, .ticket = ticket->id};
    struct mrt_k8s_job *job = mrt_job_new(sizeof *job, &command);
    session->failed |= !job;
    if (!job)
        return;
    job->session = session;
    session->leaving++;
    mrt_k8s_queue_add(ticket->queue, job);
}

static void drop_observers(struct mrt_k8s_store *store, const struct mrt_k8s_session *session)
{
    struct mrt_k8s_queue *queue;
    struct mrt_k8s_observer *observer, *next;
    TAILQ_FOREACH (queue, &store->queues, link)
        TAILQ_FOREACH_SAFE (observer, &queue->observers, link, next)
            if (observer->session == session)
                mrt_k8s_observer_drop(queue, observer);
}

static void stop(struct mrt_k8s_job *job, struct mrt_k8s_session *session)
{
    session->stop = job;
    session->ended = true;
    session->failed = false;
    drop_observers(job->store, session);
    for_tickets(job->store, session, remove_ticket);
}

void mrt_k8s_session_submit(struct mrt_k8s_store *store, struct mrt_k8s_job *job)
{
    struct mrt_k8s_session *session = mrt_k8s_session_find(store, job->job.command.session);
    enum mrt_command_type type = job->job.command.type;
    job->store = store;
    TAILQ_INSERT_TAIL(&store->jobs, &job->job, link);
    if (type == MRT_START)
        start(job);
    else if (!session || (session->ended && type == MRT_RENEW))
        mrt_k8s_refuse(job);
    else if (session->stop || (session->renewal && type == MRT_RENEW))
        mrt_k8s_answer(job, MRT_UNKNOWN); /* it is repeated when the first has its answer */
    else if (type == MRT_RENEW)
        renew(job, session);
    else
        stop(job, session);
}

/* ------------------------------------------------------------------ answers */

/* A renewal that has ended as far as its tickets go. One that could not be told that it is lost is
   not to be believed any longer. */
static void answer_renewal(struct mrt_k8s_store *store, struct mrt_k8s_session *session)
{
    struct mrt_k8s_job *job = session->renewal;
    const struct mrt_k8s_queue *queue;
    const struct mrt_k8s_ticket *ticket;
    TAILQ_FOREACH (queue, &store->queues, link)
        TAILQ_FOREACH (ticket, &queue->tickets, link) {
            if (ticket->session == session && ticket->proves)
                return;
            session->failed |= ticket->session == session && ticket->lost && !ticket->told;
        }
    session->renewal = NULL;
    if (!session->failed) {
        mrt_k8s_answer(job, MRT_RENEWED);
        return;
    }
    mrt_job_set_detail(&job->job, "%s", session->detail);
    mrt_k8s_answer(job, MRT_UNKNOWN);
}

static void answer_stop(struct mrt_k8s_store *store, struct mrt_k8s_session *session)
{
    struct mrt_k8s_job *job = session->stop, *renewal = session->renewal;
    session->stop = NULL;
    if (session->failed) {
        mrt_k8s_answer(job, MRT_UNKNOWN);
        return;
    }
    if (renewal)
        mrt_k8s_refuse(renewal);
    TAILQ_REMOVE(&store->sessions, session, link);
    free(session);
    mrt_k8s_answer(job, MRT_STOPPED);
}

void mrt_k8s_sessions_tick(struct mrt_k8s_store *store)
{
    struct mrt_k8s_session *session, *next;
    TAILQ_FOREACH_SAFE (session, &store->sessions, link, next) {
        if (session->renewal)
            answer_renewal(store, session);
        if (session->stop && session->leaving == 0)
            answer_stop(store, session);
    }
}
