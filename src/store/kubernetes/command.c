/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The aims of commands (internal.h has the rule). At each step the Lease is known, and
 * either the command is answered, or a write is sent, whose answer leads to the next step.
 *
 * A watch may have shown something old, so a command that is to say more than "wait" begins with a
 * read, unless the lock seems free: then it is written, and a server that knows better refuses.
 */
#include "store/kubernetes/command.h"

#include "store/kit/refusal.h"

#include <stdlib.h>
#include <string.h>

/* A client that acquires so soon after its release reads before it writes: by the time that this
   takes, another that waits, and has been woken, is ahead of it. */
#define GIVES_WAY (100 * MRT_MILLISECOND)

/* ------------------------------------------------------------------ answers */

static void show(struct mrt_k8s_job *job, struct mrt_k8s_ticket *ticket, bool granted)
{
    struct mrt_event *event = &job->job.event;
    struct json_object *json = job->queue->lease.json;
    const struct mrt_command *command = &job->job.command;
    if (command->type != MRT_SET_VALUE)
        ticket->watch_closely = command->watch_closely;
    ticket->held = granted;
    ticket->told = false;
    if (granted)
        ticket->revoked = mrt_k8s_revoked(json);
    event->fence = granted ? mrt_k8s_fence(json) : 0;
    event->fence_span = 1;
    event->weight_ahead = granted ? 0 : 1;
    event->others_behind = granted;                               /* nobody knows */
    event->recheck = granted ? 0 : job->store->address.lease / 3; /* renewals look */
    event->revoked = granted ? ticket->revoked : 0;
    mrt_k8s_answer(job, MRT_VIEW);
}

static void drop(struct mrt_k8s_job *job, struct mrt_k8s_ticket *ticket, enum mrt_event_type type)
{
    if (ticket)
        mrt_k8s_ticket_drop(ticket);
    mrt_k8s_answer(job, type);
}

/* A refusal follows: the ticket of an APPEND goes with it. */
static void put_down(struct mrt_k8s_job *job, struct mrt_k8s_ticket *ticket)
{
    if (ticket)
        ticket->told = false;
    if (ticket && job->fresh)
        mrt_k8s_ticket_drop(ticket);
}

/* ------------------------------------------------------------------ granting */

/* Another lock's Lease, by its annotation, or one of another kind. True: the job is answered. */
static bool is_mismatch(struct mrt_k8s_job *job, struct mrt_k8s_ticket *ticket)
{
    struct json_object *json = job->queue->lease.json;
    const char *kind = mrt_k8s_note(json, "kind"), *full = mrt_k8s_full_name(json);
    bool other = json && strcmp(full, job->queue->full) != 0 && strcmp(full, job->queue->name) != 0;
    bool mixed = job->fresh && ticket && *kind && strcmp(kind, ticket->kind) != 0 &&
                 !mrt_k8s_queue_is_free(job->queue, mrt_time_now());
    if (!other && !mixed)
        return false;
    put_down(job, ticket);
    if (other)
        mrt_k8s_fail(job, MORTISE_EMISMATCH, "the Lease %.80s is of another lock, %.80s",
                     job->queue->name, full);
    else
        mrt_k8s_fail(job, MORTISE_EMISMATCH, MRT_REFUSAL_MISMATCH, job->queue->full, kind,
                     UINT64_C(1), job->job.command.kind ? job->job.command.kind : "lock",
                     UINT64_C(1));
    return true;
}

/* The Lease is the ticket's, who may be told if it was written since the newest RENEW began. */
static void step_owned(struct mrt_k8s_job *job, struct mrt_k8s_ticket *ticket)
{
    struct mrt_k8s_holding holding = mrt_k8s_holding_of(ticket);
    bool proven = ticket->sent > 0 && ticket->sent >= ticket->session->renewed;
    if (proven && (ticket->valued || job->job.command.type != MRT_SET_VALUE)) {
        show(job, ticket, true);
        return;
    }
    mrt_k8s_write(job, mrt_k8s_renewed(job->queue->lease.json, &holding));
}

static void take(struct mrt_k8s_job *job, struct mrt_k8s_ticket *ticket)
{
    struct mrt_k8s_queue *queue = job->queue;
    struct json_object *json = queue->lease.json;
    struct mrt_k8s_holding holding = mrt_k8s_holding_of(ticket);
    if (!mrt_k8s_is_used_up(json)) {
        mrt_k8s_write(job, mrt_k8s_taken(json, queue->name, queue->lease.floor, &holding));
        return;
    }
    put_down(job, ticket);
    mrt_k8s_fail(job, MORTISE_ESTORE,
                 "the Lease %.80s has the largest leaseTransitions there is, so the next holder "
                 "has no fence: delete it when nothing compares its fences",
                 queue->name);
}

/* A Lease that the API server gives away. True: the job is answered. */
static bool is_coordinated(struct mrt_k8s_job *job, struct mrt_k8s_ticket *ticket)
{
    const char *strategy = mrt_k8s_strategy(job->queue->lease.json);
    if (!*strategy)
        return false;
    put_down(job, ticket);
    mrt_k8s_fail(job, MORTISE_EMISMATCH,
                 "the Lease %.80s has the strategy %.40s: the API server's coordinator chooses its "
                 "holder, and mortise is no candidate there: use another name",
                 job->queue->name, strategy);
    return true;
}

static void step_wanting(struct mrt_k8s_job *job, struct mrt_k8s_ticket *ticket)
{
    struct mrt_k8s_queue *queue = job->queue;
    const struct mrt_command *command = &job->job.command;
    if (mrt_k8s_is_holder(queue->lease.json, ticket->id)) {
        step_owned(job, ticket);
    } else if (ticket->held) {
        drop(job, ticket, MRT_GONE);
    } else if (is_mismatch(job, ticket) || is_coordinated(job, ticket)) {
        return;
    } else if (mrt_k8s_queue_is_free(queue, mrt_time_now())) {
        take(job, ticket);
    } else if (command->type == MRT_APPEND && command->try_only) {
        drop(job, ticket, MRT_BLOCKED); /* a write before that would be refused now */
    } else {
        show(job, ticket, false);
    }
}

/* ------------------------------------------------------------------ leaving */

/* A write of this ticket that may still be under way is refused once the Lease has been written
   anew, or is there: in the place of one that it may still create, an empty one is created. */
static void step_leaving(struct mrt_k8s_job *job, struct mrt_k8s_ticket *ticket)
{
    struct mrt_k8s_queue *queue = job->queue;
    struct json_object *json = queue->lease.json;
    bool outstanding = ticket && ticket->doubtful && !*mrt_k8s_holder(json);
    if (!ticket) {
        mrt_k8s_answer(job, MRT_REMOVED);
    } else if (outstanding || mrt_k8s_is_holder(json, ticket->id)) {
        queue->released = mrt_time_now();
        mrt_k8s_write(job, json ? mrt_k8s_released(json)
                                : mrt_k8s_empty(queue->name, queue->lease.floor));
    } else {
        drop(job, ticket, MRT_REMOVED);
    }
}

/* ------------------------------------------------------------------ observing */

static bool add_observer(struct mrt_k8s_job *job, struct mrt_k8s_session *session, uint64_t fence,
                         const char *value)
{
    struct mrt_k8s_queue *queue = job->queue;
    struct mrt_k8s_observer *observer;
    TAILQ_FOREACH (observer, &queue->observers, link)
        if (mrt_id_equal(observer->id, job->job.command.ticket))
            break;
    if (observer)
        mrt_k8s_observer_drop(queue, observer);
    observer = calloc(1, sizeof *observer);
    char *copy = strdup(value);
    if (!observer || !copy) {
        free(observer);
        free(copy);
        return false;
    }
    *observer = (struct mrt_k8s_observer){
        .session = session, .id = job->job.command.ticket, .fence = fence, .value = copy};
    TAILQ_INSERT_TAIL(&queue->observers, observer, link);
    return true;
}

static void step_observing(struct mrt_k8s_job *job)
{
    struct mrt_k8s_queue *queue = job->queue;
    const struct mrt_command *command = &job->job.command;
    struct mrt_k8s_session *session = mrt_k8s_session_find(job->store, command->session);
    const char *noted;
    size_t size = 0;
    if (is_mismatch(job, NULL))
        return;
    uint64_t fence = mrt_k8s_queue_leader(queue, mrt_time_now(), &noted);
    char *value = fence ? mrt_k8s_value(queue->lease.json, &size) : NULL;
    size = size > MORTISE_VALUE_MAX ? MORTISE_VALUE_MAX : size;
    bool fine = mrt_job_set_value(&job->job, value ? value : "", value ? size : 0) &&
                (command->once || !session || add_observer(job, session, fence, noted));
    free(value);
    job->job.event.fence = fence;
    job->job.event.recheck = job->store->address.lease / 3;
    mrt_k8s_answer(job, fine ? MRT_HOLDER : MRT_UNKNOWN);
}

/* ------------------------------------------------------------------ commands */

void mrt_k8s_command_step(struct mrt_k8s_job *job, struct mrt_k8s_ticket *ticket)
{
    if (job->job.command.type == MRT_OBSERVE)
        step_observing(job);
    else if (job->job.command.type == MRT_REMOVE)
        step_leaving(job, ticket);
    else
        step_wanting(job, ticket);
}

/* The text of what a Lease cannot do; NULL: it can. */
static const char *lacking(const struct mrt_command *command)
{
    if (command->type == MRT_CELL_GET || command->type == MRT_CELL_SET)
        return "cells are not supported: a Lease has no room for them";
    if (command->type == MRT_DETACH || command->adopt)
        return "a Lease ends with its holder: it cannot be detached";
    if (command->type == MRT_APPEND && (command->capacity != 1 || command->weight != 1))
        return "a Lease has one holder: only mutexes, exclusive locks and elections are supported";
    return command->type == MRT_APPEND && command->delay > 0
               ? "a lock_delay is not supported: the server ends nothing"
               : NULL;
}

/* A command of a ticket; the first step. */
static void begin_ticket(struct mrt_k8s_job *job, struct mrt_k8s_session *session)
{
    const struct mrt_command *command = &job->job.command;
    struct mrt_k8s_queue *queue = job->queue;
    struct mrt_k8s_ticket *ticket = mrt_k8s_ticket_find(job);
    if (!ticket && command->type == MRT_APPEND) {
        ticket = mrt_k8s_ticket_make(job, session);
        if (!ticket) {
            mrt_k8s_fail(job, MORTISE_ENOMEM, "no memory for a ticket");
            return;
        }
    } else if (!ticket || ticket->lost) {
        drop(job, ticket, MRT_GONE);
        return;
    }
    if (command->type == MRT_SET_VALUE && !mrt_k8s_ticket_set_value(ticket, command)) {
        mrt_k8s_fail(job, MORTISE_ENOMEM, "no memory for a value");
        return;
    }
    ticket->told = true; /* the command looks */
    mrt_time now = mrt_time_now();
    bool takes = !ticket->held && mrt_k8s_queue_is_free(queue, now) &&
                 now >= mrt_time_add(queue->released, GIVES_WAY);
    queue->lease.known = queue->lease.known && (takes || command->type == MRT_SET_VALUE);
    mrt_k8s_go_on(job);
}

static void begin_removal(struct mrt_k8s_job *job)
{
    struct mrt_k8s_ticket *ticket = mrt_k8s_ticket_find(job);
    struct mrt_k8s_lease *lease = &job->queue->lease;
    if (ticket && !ticket->lost && (ticket->held || ticket->doubtful || ticket->sent > 0)) {
        ticket->told = true;
        lease->known &= !ticket->doubtful && mrt_k8s_is_holder(lease->json, ticket->id);
        mrt_k8s_go_on(job);
    } else {
        drop(job, ticket, MRT_REMOVED);
    }
}

void mrt_k8s_command_begin(struct mrt_k8s_job *job)
{
    const struct mrt_command *command = &job->job.command;
    struct mrt_k8s_session *session = mrt_k8s_session_find(job->store, command->session);
    const char *lack = lacking(command);
    if (!session || (session->ended && command->serial)) {
        mrt_k8s_refuse(job);
    } else if (lack) {
        mrt_k8s_fail(job, MORTISE_ENOTSUPPORTED, "%s", lack);
    } else if (command->type == MRT_REMOVE) {
        begin_removal(job);
    } else if (command->type == MRT_OBSERVE) {
        job->queue->lease.known = false;
        mrt_k8s_go_on(job);
    } else {
        begin_ticket(job, session);
    }
}
