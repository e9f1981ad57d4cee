/* SPDX-License-Identifier: Apache-2.0 */
/*
 * APPEND publishes the ticket, on condition that its subject has no message, and walks to it. A
 * ticket that may not stay (another kind, a full queue) is removed again before the answer. A try
 * that does not expect the lock to be free walks first.
 *
 * A ticket is removed by "gone" in its place, on condition that it is still there; that message is
 * then deleted. If a publish of the ticket may still arrive (its outcome was unknown), "gone
 * SESSION" stays, so that the late one finds its subject taken, and so does the record, by which
 * STOP removes it: from then on a ticket that comes late is a dead session's.
 */
#include "core/rule.h"
#include "store/kit/refusal.h"
#include "store/nats/answer.h"
#include "store/nats/api.h"
#include "store/nats/command.h"
#include "store/nats/queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AGAIN (300 * MRT_MILLISECOND) /* until a former leader has heard of the newer one */

static void publish_ticket(struct mrt_nats_job *job);
static void settled(struct mrt_nats_walk *walk, const struct mrt_nats_reply *failure);

/* ------------------------------------------- a ticket that may not stay, or come */

/* A ticket has left. */
static void let_go(struct mrt_nats_queue *queue, struct mrt_nats_record *record)
{
    if (!record->doubtful) {
        mrt_nats_record_drop(queue, record);
        return;
    }
    record->seen = record->granted = false; /* STOP finds it */
    record->attribute = 0;
}

/* Answers it, with the error that the event has; 0: BLOCKED. */
static void answer_refusal(struct mrt_nats_job *job)
{
    struct mrt_nats_record *record = mrt_nats_record_find(job);
    int error = job->job.event.error;
    if (record && !record->doomed)
        let_go(job->queue, record);
    if (error == MORTISE_OK)
        mrt_nats_answer(job, MRT_BLOCKED);
    else
        mrt_nats_fail(job, error, "%s", job->job.detail);
}

/* "gone" in the place of a ticket, if there is still what was known there: a removal that arrives
   late takes no later ticket. */
static void send_removal(struct mrt_nats_job *job, const struct mrt_nats_record *record,
                         mrt_nats_done *next)
{
    char subject[MRT_NATS_SUBJECT_SIZE], text[64] = MRT_NATS_GONE;
    if (record->doubtful) {
        char session[MRT_ID_TEXT_SIZE];
        mrt_id_format(record->session, session);
        snprintf(text, sizeof text, MRT_NATS_GONE " %s", session);
    }
    mrt_nats_subject(&job->store->address, 'q', job->queue->token, record->name, subject);
    if (!mrt_nats_publish(&job->store->wire, subject, (int64_t)record->sequence, text, strlen(text),
                          job->store->address.connect, next, job))
        mrt_nats_no_memory(job);
}

/* There is something else, and that may be the ticket, which has come late: it is removed. */
static bool removes_again(struct mrt_nats_job *job, struct mrt_nats_record *record,
                          const struct mrt_nats_reply *reply, mrt_nats_done *next)
{
    if (!record || !record->doubtful || reply->code != MRT_NATS_WRONG_SEQUENCE ||
        job->left++ >= MRT_NATS_TRIES_MAX)
        return false;
    record->sequence = reply->sequence;
    send_removal(job, record, next);
    return true;
}

/* The ticket has left. The message in its place (0: there is none) is deleted, unless it has to
   stay. */
static void clean_up(struct mrt_nats_job *job, struct mrt_nats_record *record, uint64_t sequence)
{
    struct mrt_nats_wire *wire = &job->store->wire;
    const char *stream = job->store->address.tickets;
    mrt_nats_wake(wire, job->queue->token, '-', record->sequence);
    if (!record->doubtful && sequence > 0)
        mrt_nats_delete(wire, stream, sequence);
    if (record->attribute > 0)
        mrt_nats_delete(wire, stream, record->attribute);
    record->sequence = sequence;
}

static void taken_out(void *argument, const struct mrt_nats_reply *reply)
{
    struct mrt_nats_job *job = argument;
    struct mrt_nats_record *record = mrt_nats_record_find(job);
    if (removes_again(job, record, reply, taken_out))
        return;
    bool done = reply->outcome == MRT_NATS_DONE;
    if (!record || (!done && reply->code != MRT_NATS_WRONG_SEQUENCE)) {
        if (record)
            record->doomed = true; /* the same APPEND does not find it */
        mrt_nats_answer(job, MRT_UNKNOWN);
        return;
    }
    if (done)
        clean_up(job, record, reply->sequence);
    record->doomed = false;
    answer_refusal(job);
}

static void turn_away(struct mrt_nats_job *job, bool inside, int error)
{
    struct mrt_nats_record *record = mrt_nats_record_find(job);
    job->job.event.error = error;
    if (inside && record)
        send_removal(job, record, taken_out);
    else
        answer_refusal(job);
}

static bool is_other_kind(const struct mrt_nats_ticket *kind, const struct mrt_command *command)
{
    return kind && (kind->capacity != command->capacity || strcmp(kind->kind, command->kind) != 0);
}

static void turn_away_kind(struct mrt_nats_job *job, bool inside,
                           const struct mrt_nats_ticket *kind)
{
    const struct mrt_command *command = &job->job.command;
    mrt_job_set_detail(&job->job, MRT_REFUSAL_MISMATCH, command->queue, kind->kind, kind->capacity,
                       command->kind, command->capacity);
    turn_away(job, inside, MORTISE_EMISMATCH);
}

/* How many tickets wait ahead of the own one. */
static uint64_t count_waiting(const struct mrt_nats_walk *walk, uint64_t capacity)
{
    uint64_t waiting = 0;
    for (size_t i = 0; i + walk->has_own < walk->count; i++)
        if (waiting > 0 || !mrt_nats_holds(walk, &walk->entries[i], capacity))
            waiting++;
    return waiting;
}

/* ------------------------------------------------------------------ APPEND */

/* One that stops takes no ticket, which would stay behind. */
static bool is_session_there(struct mrt_nats_job *job)
{
    const struct mrt_nats_session *session =
        mrt_nats_session_find(job->store, job->job.command.session);
    if (session && !session->stops)
        return true;
    mrt_nats_refuse(job);
    return false;
}

static void settle(struct mrt_nats_job *job, struct mrt_nats_record *record)
{
    const struct mrt_command *command = &job->job.command;
    const struct mrt_nats_walk *walk = &job->walk;
    const struct mrt_nats_ticket *kind = mrt_nats_walk_kind(walk);
    uint64_t ahead = mrt_nats_weight_ahead(walk, mrt_nats_own(job), command->capacity);
    bool granted = !walk->cut && mrt_rule_grants(ahead, command->weight, command->capacity);
    if (is_other_kind(kind, command)) {
        turn_away_kind(job, true, kind);
    } else if (command->try_only && !granted) {
        turn_away(job, true, MORTISE_OK);
    } else if (job->fresh && command->queue_max > 0 && !granted &&
               count_waiting(walk, command->capacity) >= command->queue_max) {
        mrt_job_set_detail(&job->job, MRT_REFUSAL_FULL, command->queue_max, command->queue);
        turn_away(job, true, MORTISE_EFULL);
    } else {
        mrt_nats_show(job, record);
    }
}

static void walk_again(struct mrt_nats_job *job)
{
    const struct mrt_nats_record *record = mrt_nats_record_find(job);
    if (record)
        mrt_nats_walk_begin(mrt_nats_walk_to(job, record, settled));
    else
        mrt_nats_answer(job, MRT_UNKNOWN);
}

/* The walk to the own ticket has ended. */
static void settled(struct mrt_nats_walk *walk, const struct mrt_nats_reply *failure)
{
    struct mrt_nats_job *job = walk->argument;
    struct mrt_nats_record *record = mrt_nats_record_find(job);
    if (failure)
        mrt_nats_job_failed(job, failure);
    else if (!record)
        mrt_nats_refuse(job);
    else if (!is_session_there(job))
        return;
    else if (walk->has_own || (walk->cut && !walk->lacks_own))
        settle(job, record);
    else if (++job->tries <= MRT_NATS_TRIES_MAX && job->store->replicas != 1)
        mrt_nats_job_pause(job, AGAIN, walk_again);
    else /* it was taken out, or broken, meanwhile */
        mrt_nats_answer(job, MRT_UNKNOWN);
}

static void walk_to_own(struct mrt_nats_job *job, struct mrt_nats_record *record, uint64_t sequence)
{
    struct mrt_nats_walk *walk;
    record->sequence = sequence;
    record->checked = 0;
    walk = mrt_nats_walk_to(job, record, settled);
    walk->fresh = job->fresh;
    mrt_nats_walk_begin(walk);
}

/* The message in the ticket's place: the ticket, or "gone". */
static void got_own(void *argument, const struct mrt_nats_reply *reply)
{
    struct mrt_nats_job *job = argument;
    struct mrt_nats_record *record = mrt_nats_record_find(job);
    struct mrt_nats_message message;
    bool for_good;
    if (!mrt_nats_message_read(reply, &message)) {
        mrt_nats_job_failed(job, reply);
        return;
    }
    bool gone = mrt_nats_is_gone(&message, &for_good);
    uint64_t sequence = message.sequence;
    mrt_nats_message_free(&message);
    if (!record) {
        mrt_nats_refuse(job);
    } else if (sequence > 0 && !gone) {
        walk_to_own(job, record, sequence);
    } else if (++job->tries <= MRT_NATS_TRIES_MAX) {
        record->doubtful |= gone && !for_good;
        job->sequence = sequence;
        publish_ticket(job);
    } else {
        mrt_nats_answer(job, MRT_UNKNOWN);
    }
}

static void published(void *argument, const struct mrt_nats_reply *reply)
{
    struct mrt_nats_job *job = argument;
    char subject[MRT_NATS_SUBJECT_SIZE];
    struct mrt_nats_record *record = mrt_nats_record_find(job);
    if (!record) {
        mrt_nats_refuse(job);
        return;
    }
    if (reply->outcome == MRT_NATS_DONE) {
        job->fresh = true;
        walk_to_own(job, record, reply->sequence);
        return;
    }
    if (reply->code != MRT_NATS_WRONG_SEQUENCE) {
        record->doubtful |= reply->outcome == MRT_NATS_UNKNOWN;
        job->unknown = record->doubtful;
        mrt_nats_job_failed(job, reply);
        return;
    }
    mrt_nats_subject(&job->store->address, 'q', job->queue->token, record->name, subject);
    if (!mrt_nats_get_last(&job->store->wire, job->store->address.tickets, subject, got_own, job))
        mrt_nats_no_memory(job);
}

static void publish_ticket(struct mrt_nats_job *job)
{
    const struct mrt_command *command = &job->job.command;
    const struct mrt_nats_record *record = mrt_nats_record_find(job);
    char subject[MRT_NATS_SUBJECT_SIZE];
    struct mrt_nats_ticket ticket = {.capacity = command->capacity,
                                     .weight = command->weight,
                                     .since = mrt_time_wall_ms(),
                                     .id = command->ticket,
                                     .session = command->session,
                                     .lease =
                                         (uint64_t)(job->store->address.lease / MRT_MILLISECOND)};
    if (!is_session_there(job))
        return;
    char *bytes = malloc(MRT_NATS_LINE_SIZE + command->value_size);
    if (!bytes || !record) {
        free(bytes);
        mrt_nats_no_memory(job);
        return;
    }
    snprintf(ticket.kind, sizeof ticket.kind, "%s", command->kind);
    snprintf(ticket.label, sizeof ticket.label, "%s", job->store->label);
    size_t size = mrt_nats_ticket_format(&ticket, bytes);
    if (command->value_size > 0)
        memcpy(bytes + size, command->value, command->value_size);
    job->unknown = true;
    mrt_nats_subject(&job->store->address, 'q', job->queue->token, record->name, subject);
    if (!mrt_nats_publish(&job->store->wire, subject, (int64_t)job->sequence, bytes,
                          size + command->value_size, job->store->address.connect, published, job))
        mrt_nats_no_memory(job);
    free(bytes);
}

/* A try has seen who is ahead. */
static void looked(struct mrt_nats_walk *walk, const struct mrt_nats_reply *failure)
{
    struct mrt_nats_job *job = walk->argument;
    const struct mrt_command *command = &job->job.command;
    const struct mrt_nats_ticket *kind = mrt_nats_walk_kind(walk);
    if (failure)
        mrt_nats_job_failed(job, failure);
    else if (!is_session_there(job))
        return;
    else if (is_other_kind(kind, command))
        turn_away_kind(job, false, kind);
    else if (!mrt_rule_grants(mrt_nats_weight_ahead(walk, NULL, command->capacity), command->weight,
                              command->capacity))
        turn_away(job, false, MORTISE_OK);
    else
        publish_ticket(job);
}

static void begin_append(struct mrt_nats_job *job, const struct mrt_nats_record *record)
{
    const struct mrt_command *command = &job->job.command;
    if (!command->try_only || command->expect_free || record->sequence > 0 || record->doubtful) {
        publish_ticket(job);
        return;
    }
    struct mrt_nats_walk *walk = mrt_nats_job_walk(job, looked);
    walk->weight = command->weight;
    walk->capacity = command->capacity;
    walk->stops = walk->buries = true;
    mrt_nats_walk_begin(walk);
}

/* The ticket that an earlier attempt was to remove is gone for certain. */
static void undone(void *argument, const struct mrt_nats_reply *reply)
{
    struct mrt_nats_job *job = argument;
    struct mrt_nats_record *record = mrt_nats_record_find(job);
    if (!record) {
        mrt_nats_refuse(job);
        return;
    }
    if (removes_again(job, record, reply, undone))
        return;
    if (reply->outcome != MRT_NATS_DONE && reply->code != MRT_NATS_WRONG_SEQUENCE) {
        mrt_nats_job_failed(job, reply);
        return;
    }
    if (reply->outcome == MRT_NATS_DONE)
        clean_up(job, record, reply->sequence);
    record->doomed = false;
    begin_append(job, record);
}

void mrt_nats_append(struct mrt_nats_job *job)
{
    struct mrt_nats_record *record = mrt_nats_record_make(job);
    if (!record) {
        mrt_nats_no_memory(job);
        return;
    }
    record->capacity = job->job.command.capacity;
    record->weight = job->job.command.weight;
    job->unknown = record->doubtful;
    if (record->doomed)
        send_removal(job, record, undone);
    else
        begin_append(job, record);
}

/* ------------------------------------------------------------------ REMOVE */

static void removed(void *argument, const struct mrt_nats_reply *reply)
{
    struct mrt_nats_job *job = argument;
    struct mrt_nats_record *record = mrt_nats_record_find(job);
    if (removes_again(job, record, reply, removed))
        return;
    if (reply->outcome != MRT_NATS_DONE && reply->code != MRT_NATS_WRONG_SEQUENCE) {
        mrt_nats_job_failed(job, reply);
        return;
    }
    if (record) /* perhaps by an earlier removal, whose answer was lost */
        clean_up(job, record, reply->sequence);
    if (record)
        let_go(job->queue, record);
    mrt_nats_answer(job, MRT_REMOVED);
}

/* A ticket that this session may not have adopted. */
static void checked(struct mrt_nats_walk *walk, const struct mrt_nats_reply *failure)
{
    struct mrt_nats_job *job = walk->argument;
    struct mrt_nats_record *record = mrt_nats_record_find(job);
    const struct mrt_nats_entry *own = mrt_nats_own(job);
    if (failure) {
        mrt_nats_job_failed(job, failure);
    } else if (record && own && own->ours &&
               mrt_id_equal(own->ticket.session, job->job.command.session)) {
        send_removal(job, record, removed);
    } else {
        if (record)
            mrt_nats_record_drop(job->queue, record);
        mrt_nats_answer(job, MRT_REMOVED);
    }
}

void mrt_nats_remove(struct mrt_nats_job *job)
{
    const struct mrt_nats_record *record = mrt_nats_record_find(job);
    if (record && record->unowned)
        mrt_nats_walk_begin(mrt_nats_walk_to(job, record, checked));
    else if (record && (record->sequence > 0 || record->doubtful))
        send_removal(job, record, removed);
    else
        mrt_nats_answer(job, MRT_REMOVED); /* this session has put no such ticket */
}
