/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See ticket.h. A write is conditional on the version that was read, so of several at the same time
 * one is done. One whose outcome is unknown is followed by a read, which shows the ticket's
 * identity if it was done. It may still be under way then: the ticket stays `doubtful`.
 *
 * Renewals go beside the commands of their lock: where both write, the later reads and writes anew.
 */
#include "store/kubernetes/ticket.h"

#include "store/kubernetes/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------- tickets */

bool mrt_k8s_ticket_set_value(struct mrt_k8s_ticket *ticket, const struct mrt_command *command)
{
    void *value = command->value ? malloc(command->value_size + 1) : NULL;
    if (command->value && !value)
        return false;
    if (value && command->value_size > 0)
        memcpy(value, command->value, command->value_size);
    free(ticket->value);
    ticket->value = value;
    ticket->value_size = command->value_size;
    ticket->valued = false;
    return true;
}

struct mrt_k8s_ticket *mrt_k8s_ticket_make(struct mrt_k8s_job *job, struct mrt_k8s_session *session)
{
    const struct mrt_command *command = &job->job.command;
    struct mrt_k8s_ticket *ticket = calloc(1, sizeof *ticket);
    if (!ticket || !mrt_k8s_ticket_set_value(ticket, command)) {
        free(ticket);
        return NULL;
    }
    ticket->queue = job->queue;
    ticket->session = session;
    ticket->id = command->ticket;
    snprintf(ticket->kind, sizeof ticket->kind, "%s", command->kind);
    TAILQ_INSERT_TAIL(&job->queue->tickets, ticket, link);
    job->fresh = true;
    return ticket;
}

struct mrt_k8s_holding mrt_k8s_holding_of(struct mrt_k8s_ticket *ticket)
{
    const struct mrt_k8s_store *store = ticket->queue->store;
    return (struct mrt_k8s_holding){.ticket = ticket->id,
                                    .full = ticket->queue->full,
                                    .kind = ticket->kind,
                                    .owner = store->owner,
                                    .value = ticket->value,
                                    .value_size = ticket->value_size,
                                    .seconds = store->address.lease / MRT_SECOND,
                                    .time = mrt_k8s_rising_time(&ticket->ahead)};
}

/* ----------------------------------------------------------------- requests */

static struct mrt_rest_call *send_read(struct mrt_k8s_queue *queue, bool urgent,
                                       mrt_rest_done *done, void *argument)
{
    char target[MRT_K8S_TARGET_SIZE];
    mrt_k8s_target(&queue->store->address, queue->name, "", target);
    const struct mrt_rest_request request = {.method = "GET",
                                             .path = target,
                                             .limit = mrt_k8s_limit(queue->store),
                                             .urgent = urgent,
                                             .done = done,
                                             .argument = argument};
    return mrt_rest_send(&queue->store->wire.rest, &request, NULL);
}

static struct mrt_rest_call *send_write(struct mrt_k8s_queue *queue, struct json_object *json,
                                        bool urgent, mrt_rest_done *done, void *argument)
{
    char target[MRT_K8S_TARGET_SIZE];
    struct mrt_rest_text text = {0};
    bool there = *mrt_k8s_version(json);
    if (!json)
        return NULL;
    mrt_k8s_target(&queue->store->address, there ? queue->name : NULL, "", target);
    mrt_rest_add(&text, "%s", json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN));
    const struct mrt_rest_request request = {.method = there ? "PUT" : "POST",
                                             .path = target,
                                             .limit = mrt_k8s_limit(queue->store),
                                             .urgent = urgent,
                                             .once = true,
                                             .done = done,
                                             .argument = argument};
    return mrt_rest_send(&queue->store->wire.rest, &request, &text);
}

/* The reply, or an unknown outcome in its place: a proxy may have answered something else. */
static const struct mrt_rest_reply *sift(const struct mrt_k8s_queue *queue,
                                         const struct mrt_rest_reply *reply)
{
    static const struct mrt_rest_reply foreign = {
        .outcome = MRT_REST_UNKNOWN, .error = MORTISE_ESTORE, .text = "the answer is no Lease"};
    bool is_foreign =
        reply->outcome == MRT_REST_DONE && !mrt_k8s_is_lease(reply->json, queue->name);
    return is_foreign ? &foreign : reply;
}

/* Notes the Lease that a read has found, or that there is none; false: the read has failed. */
static bool take_read(struct mrt_k8s_queue *queue, const struct mrt_rest_reply *reply)
{
    if (reply->outcome == MRT_REST_DONE)
        mrt_k8s_queue_set(queue, reply->json);
    else if (reply->outcome == MRT_REST_REFUSED && reply->error == MORTISE_ENOTHELD)
        mrt_k8s_queue_set(queue, NULL);
    else
        return false;
    return true;
}

/* Whether a write came too late: the Lease has been changed, or is not there any more. */
static bool is_late(const struct mrt_rest_reply *reply)
{
    return reply->outcome == MRT_REST_REFUSED &&
           (reply->error == MORTISE_ECONFLICT || reply->error == MORTISE_ENOTHELD);
}

/* A write has not been done, or nobody knows: the Lease is read before the next. */
static void doubt_known(struct mrt_k8s_queue *queue, const struct mrt_rest_reply *reply)
{
    queue->lease.known = false;
    queue->refuted |= is_late(reply);
}

/* ----------------------------------------------------------- steps of a command */

/* The job cannot go on. FAILED only if nothing was done. */
static void give_up(struct mrt_k8s_job *job, const struct mrt_rest_reply *reply)
{
    struct mrt_k8s_ticket *ticket = mrt_k8s_ticket_find(job);
    bool refused = reply->outcome == MRT_REST_REFUSED || reply->outcome == MRT_REST_AWAY;
    if (refused && !job->doubt) {
        if (job->fresh && ticket)
            mrt_k8s_ticket_drop(ticket);
        else if (ticket)
            ticket->told = false;
        /* There is no namespace, or no such interface. */
        mrt_k8s_fail(job, reply->error == MORTISE_ENOTHELD ? MORTISE_ESETUP : reply->error, "%s",
                     reply->text);
        return;
    }
    if (ticket)
        ticket->told = false;
    mrt_job_set_detail(&job->job, "Kubernetes: %s", reply->text);
    mrt_note(&job->store->notes, MRT_K8S_NOTE_REPLY, "%s", reply->text);
    mrt_k8s_answer(job, MRT_UNKNOWN);
}

static void no_memory(struct mrt_k8s_job *job)
{
    const struct mrt_rest_reply reply = {
        .outcome = MRT_REST_REFUSED, .error = MORTISE_ENOMEM, .text = "no memory for a request"};
    give_up(job, &reply);
}

static void on_read(void *argument, const struct mrt_rest_reply *answer)
{
    struct mrt_k8s_job *job = argument;
    const struct mrt_rest_reply *reply = sift(job->queue, answer);
    if (take_read(job->queue, reply))
        mrt_k8s_go_on(job);
    else
        give_up(job, reply);
}

void mrt_k8s_go_on(struct mrt_k8s_job *job)
{
    struct mrt_k8s_queue *queue = job->queue;
    if (queue->lease.known)
        mrt_k8s_command_step(job, mrt_k8s_ticket_find(job));
    else if (!send_read(queue, job->job.command.type == MRT_REMOVE, on_read, job))
        no_memory(job);
}

static void on_written(void *argument, const struct mrt_rest_reply *answer)
{
    struct mrt_k8s_job *job = argument;
    struct mrt_k8s_queue *queue = job->queue;
    const struct mrt_rest_reply *reply = sift(queue, answer);
    struct mrt_k8s_ticket *ticket = mrt_k8s_ticket_find(job);
    bool created = !queue->lease.json && reply->error == MORTISE_ENOTHELD;
    bool unknown = reply->outcome == MRT_REST_UNKNOWN;
    if (reply->outcome == MRT_REST_DONE) {
        mrt_k8s_queue_set(queue, reply->json);
        if (ticket)
            ticket->doubtful = false; /* those before are refused from now on */
        if (ticket && mrt_k8s_is_holder(reply->json, ticket->id)) {
            ticket->sent = job->sent;
            ticket->valued = true;
        }
        mrt_k8s_go_on(job);
        return;
    }
    job->doubt |= unknown;
    if (ticket)
        ticket->doubtful |= unknown;
    doubt_known(queue, reply);
    if (unknown || (is_late(reply) && !created))
        mrt_k8s_go_on(job);
    else
        give_up(job, reply);
}

/* A command that has written so often is repeated later. */
void mrt_k8s_write(struct mrt_k8s_job *job, struct json_object *json)
{
    static const struct mrt_rest_reply often = {.outcome = MRT_REST_UNKNOWN,
                                                .text = "no write has come through"};
    job->sent = mrt_time_now();
    if (++job->tries > MRT_K8S_TRIES_MAX)
        give_up(job, &often);
    else if (!send_write(job->queue, json, job->job.command.type == MRT_REMOVE, on_written, job))
        no_memory(job);
    json_object_put(json);
}

/* ----------------------------------------------------------------- renewals */

static void renew(struct mrt_k8s_ticket *ticket);

static void note_failure(struct mrt_k8s_ticket *ticket, const struct mrt_rest_reply *reply)
{
    struct mrt_k8s_session *session = ticket->session;
    ticket->proves = false;
    session->failed = true;
    snprintf(session->detail, sizeof session->detail, "Kubernetes: %.200s", reply->text);
}

static void on_renewal_read(void *argument, const struct mrt_rest_reply *answer)
{
    struct mrt_k8s_ticket *ticket = argument;
    const struct mrt_rest_reply *reply = sift(ticket->queue, answer);
    ticket->renewal = NULL;
    if (!take_read(ticket->queue, reply)) {
        note_failure(ticket, reply);
    } else if (mrt_k8s_is_holder(ticket->queue->lease.json, ticket->id)) {
        renew(ticket);
    } else { /* the read has woken it */
        ticket->lost = true;
        ticket->proves = false;
    }
}

static void on_renewed(void *argument, const struct mrt_rest_reply *answer)
{
    static const struct mrt_rest_reply others = {.outcome = MRT_REST_UNKNOWN,
                                                 .text = "the answers name another holder"};
    struct mrt_k8s_ticket *ticket = argument;
    const struct mrt_rest_reply *reply = sift(ticket->queue, answer);
    ticket->renewal = NULL;
    bool done = reply->outcome == MRT_REST_DONE;
    if (done && mrt_k8s_is_holder(reply->json, ticket->id)) {
        ticket->sent = ticket->renewing;
        ticket->proves = false;
        mrt_k8s_queue_set(ticket->queue, reply->json);
        return;
    }
    doubt_known(ticket->queue, reply);
    if ((done || reply->outcome == MRT_REST_UNKNOWN || is_late(reply)) &&
        ++ticket->renewals < MRT_K8S_TRIES_MAX)
        renew(ticket);
    else
        note_failure(ticket, done ? &others : reply);
}

/* The Lease may be another by now: then the server refuses the write, and the Lease is read. */
static void renew(struct mrt_k8s_ticket *ticket)
{
    static const struct mrt_rest_reply lacking = {
        .outcome = MRT_REST_REFUSED, .error = MORTISE_ENOMEM, .text = "no memory for a renewal"};
    struct mrt_k8s_queue *queue = ticket->queue;
    struct mrt_k8s_holding holding = mrt_k8s_holding_of(ticket);
    if (queue->lease.known && mrt_k8s_is_holder(queue->lease.json, ticket->id)) {
        struct json_object *json = mrt_k8s_renewed(queue->lease.json, &holding);
        ticket->renewing = mrt_time_now();
        ticket->renewal = send_write(queue, json, true, on_renewed, ticket);
        json_object_put(json);
    } else {
        ticket->renewal = send_read(queue, true, on_renewal_read, ticket);
    }
    if (!ticket->renewal)
        note_failure(ticket, &lacking);
}

void mrt_k8s_ticket_renew(struct mrt_k8s_ticket *ticket)
{
    ticket->proves = true;
    ticket->renewals = 0;
    if (ticket->renewal) /* of an earlier RENEW, which has been answered */
        mrt_rest_cancel(ticket->renewal);
    renew(ticket);
}
