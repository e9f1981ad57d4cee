/* SPDX-License-Identifier: Apache-2.0 */
/*
 * APPEND is one transaction: the key is put, unless it is there, and the queue is read. A ticket
 * that may not stay (another kind, a full queue) is taken out again before the answer.
 *
 * A try puts its key only if nobody is in the queue. If somebody is, the view says whether the
 * ticket would be granted; then it is put on condition that nothing has come since that view.
 *
 * An APPEND with `adopt` is in change.c.
 */
#include "base/assert.h"
#include "core/rule.h"
#include "store/etcd/command.h"
#include "store/etcd/queue.h"
#include "store/etcd/reply.h"
#include "store/etcd/spare.h"
#include "store/kit/refusal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum stage {
    PUT,      /* at the end, whoever is ahead */
    TRY_FREE, /* only if the queue is empty */
    TRY_SINCE /* only if nothing has come since a view that grants */
};

void mrt_etcd_key(const struct mrt_etcd_queue *queue, const char *name,
                  char key[MRT_ETCD_NAME_SIZE])
{
    snprintf(key, MRT_ETCD_NAME_SIZE, "%s%s", queue->directory, name);
}

void mrt_etcd_look(struct mrt_etcd_job *job, mrt_rest_done *next)
{
    struct mrt_rest_text text = {0};
    mrt_etcd_range(&text, job->queue->directory);
    mrt_etcd_job_send(job, "kv/range", &text, job->store->address.connect, next);
}

void mrt_etcd_show(struct mrt_etcd_job *job, struct mrt_etcd_record *record,
                   const struct mrt_etcd_entry *entry, struct mrt_etcd_view *view)
{
    const struct mrt_command *command = &job->job.command;
    struct mrt_event *event = &job->job.event;
    struct mrt_etcd_queue *queue = job->queue;
    if (command->type == MRT_APPEND) {
        record->capacity = command->capacity;
        record->linger = command->linger;
    }
    if (command->type == MRT_APPEND || command->type == MRT_REFRESH || command->type == MRT_LIGHTEN)
        record->watch_closely = command->watch_closely;
    record->seen = true;
    record->told = false;
    record->created = entry->created;
    snprintf(record->name, sizeof record->name, "%s", entry->name);
    record->granted = mrt_etcd_grants(view, entry, record->capacity);
    record->others_behind = entry != &view->entries[view->count - 1];
    record->revoked = entry->ticket.revoked;
    event->fence = mrt_etcd_fence(entry);
    event->fence_span = UINT64_C(1) << MRT_ETCD_FENCE_BITS;
    event->weight_ahead = mrt_etcd_weight_ahead(view, entry, record->capacity);
    event->others_behind = record->others_behind;
    event->recheck = record->granted ? MRT_ETCD_RECHECK_HELD : MRT_ETCD_RECHECK_WAITS;
    event->place = record->granted ? 0 : mrt_etcd_place(view, entry);
    event->revoked = record->revoked;
    mrt_etcd_answer(job, MRT_VIEW);
    mrt_etcd_queue_take(queue, view);
}

/* ------------------------------------------------------------------ APPEND */

static void appended(void *argument, const struct mrt_rest_reply *reply);

/* The value of a new ticket's key; to be freed. NULL: no memory. */
static char *make_value(const struct mrt_etcd_job *job, size_t *size)
{
    const struct mrt_command *command = &job->job.command;
    struct mrt_etcd_ticket ticket = {.capacity = command->capacity,
                                     .weight = command->weight,
                                     .since = mrt_time_wall_ms(),
                                     .id = command->ticket};
    char *value = malloc(command->value_size + MRT_ETCD_LINE_SIZE);
    if (!value)
        return NULL;
    snprintf(ticket.kind, sizeof ticket.kind, "%s", command->kind);
    snprintf(ticket.label, sizeof ticket.label, "%s", job->store->label);
    if (command->value_size > 0)
        memcpy(value, command->value, command->value_size);
    *size = command->value_size + mrt_etcd_ticket_format(&ticket, value + command->value_size);
    return value;
}

static void send_append(struct mrt_etcd_job *job, const struct mrt_etcd_session *session)
{
    size_t size = 0;
    char key[MRT_ETCD_NAME_SIZE];
    struct mrt_rest_text text = {0};
    const char *directory = job->queue->directory;
    struct mrt_etcd_record *record = mrt_etcd_record_find(job);
    char *value = make_value(job, &size);
    if (!value || !record) {
        free(value);
        mrt_etcd_fail(job, MORTISE_ENOMEM, "no memory for a ticket");
        return;
    }
    record->created = 0; /* the key may be made anew: an operator may have broken the ticket */
    mrt_etcd_key(job->queue, record->name, key);
    mrt_etcd_txn_begin(job, session, &text);
    mrt_etcd_if(&text, key, "CREATE", 0);
    if (job->stage == TRY_FREE)
        mrt_etcd_if_all(&text, directory, "CREATE", "EQUAL", 0);
    else if (job->stage == TRY_SINCE)
        mrt_etcd_if_all(&text, directory, "MOD", "LESS", job->revision + 1);
    mrt_etcd_txn_then(&text);
    mrt_etcd_put(&text, key, value, size, session->lease);
    mrt_etcd_get_all(&text, directory);
    mrt_etcd_txn_else(session, &text);
    mrt_etcd_get_all(&text, directory);
    mrt_etcd_txn_send(job, &text, appended);
    free(value);
}

void mrt_etcd_append(struct mrt_etcd_job *job, struct mrt_etcd_session *session)
{
    if (!mrt_etcd_record_make(job, session)) {
        mrt_etcd_fail(job, MORTISE_ENOMEM, "no memory for a ticket");
        return;
    }
    job->stage = job->job.command.try_only ? TRY_FREE : PUT;
    send_append(job, session);
}

/* ------------------------------------------- a ticket that may not stay, or come */

/* Answers it, with the error that the event has; 0: BLOCKED. */
static void answer_refusal(struct mrt_etcd_job *job)
{
    struct mrt_etcd_record *record = mrt_etcd_record_find(job);
    int error = job->job.event.error;
    if (record)
        mrt_etcd_record_drop(job->queue, record);
    if (error == MORTISE_OK)
        mrt_etcd_answer(job, MRT_BLOCKED);
    else
        mrt_etcd_fail(job, error, "%s", job->job.detail);
}

/* The conditions of a removal held, and it was done. */
static bool is_done(const struct mrt_rest_reply *reply)
{
    return reply->outcome == MRT_REST_DONE &&
           json_object_get_boolean(mrt_rest_member(reply->json, "succeeded"));
}

static void taken_out(void *argument, const struct mrt_rest_reply *reply)
{
    struct mrt_etcd_job *job = argument;
    if (is_done(reply))
        answer_refusal(job);
    else
        mrt_etcd_answer(job,
                        MRT_UNKNOWN); /* it may stand: a REMOVE, or the same again, settles it */
}

/* Deletes the ticket's key if it has the session's lease and the ticket's create_revision, and only
   while `session` is as it was: the same APPEND may come again, and be granted before this arrives.
   NULL: no APPEND follows. */
static void send_removal(struct mrt_etcd_job *job, const struct mrt_etcd_record *record,
                         const struct mrt_etcd_session *session, mrt_rest_done *next)
{
    char key[MRT_ETCD_NAME_SIZE];
    struct mrt_rest_text text = {0};
    mrt_etcd_key(job->queue, record->name, key);
    if (session)
        mrt_etcd_txn_begin(job, session, &text);
    else
        mrt_rest_add(&text, "{\"compare\":[");
    mrt_etcd_if(&text, key, "LEASE", record->lease);
    if (record->created > 0)
        mrt_etcd_if(&text, key, "CREATE", record->created);
    mrt_etcd_txn_then(&text);
    mrt_etcd_delete(&text, key);
    mrt_etcd_txn_send(job, &text, next);
}

/* `inside`: the ticket is in the queue. */
static void turn_away(struct mrt_etcd_job *job, bool inside, int error)
{
    const struct mrt_etcd_record *record = mrt_etcd_record_find(job);
    const struct mrt_etcd_session *session =
        mrt_etcd_session_find(job->store, job->job.command.session);
    job->job.event.error = error;
    if (inside && record)
        send_removal(job, record, session, taken_out);
    else
        answer_refusal(job);
}

static bool is_other_kind(const struct mrt_etcd_ticket *kind, const struct mrt_command *command)
{
    return kind && (kind->capacity != command->capacity || strcmp(kind->kind, command->kind) != 0);
}

static void turn_away_kind(struct mrt_etcd_job *job, bool inside,
                           const struct mrt_etcd_ticket *kind)
{
    const struct mrt_command *command = &job->job.command;
    mrt_job_set_detail(&job->job, MRT_REFUSAL_MISMATCH, command->queue, kind->kind, kind->capacity,
                       command->kind, command->capacity);
    turn_away(job, inside, MORTISE_EMISMATCH);
}

/* How many tickets wait, beside this one. */
static uint64_t count_waiting(const struct mrt_etcd_view *view, const struct mrt_etcd_entry *own,
                              uint64_t capacity)
{
    uint64_t waiting = 0;
    for (size_t i = 0; i < view->count; i++)
        if (&view->entries[i] != own &&
            (waiting > 0 || !mrt_etcd_grants(view, &view->entries[i], capacity)))
            waiting++;
    return waiting;
}

/* The ticket is in the queue; `fresh`: this transaction has put it there. */
static void settle_inside(struct mrt_etcd_job *job, struct mrt_etcd_record *record,
                          struct mrt_etcd_view *view, const struct mrt_etcd_entry *own, bool fresh)
{
    const struct mrt_command *command = &job->job.command;
    const struct mrt_etcd_ticket *kind = mrt_etcd_view_kind(view, own);
    bool granted = mrt_etcd_grants(view, own, command->capacity);
    if (is_other_kind(kind, command)) {
        turn_away_kind(job, true, kind);
    } else if (command->try_only && !granted) {
        turn_away(job, true, MORTISE_OK);
    } else if (fresh && command->queue_max > 0 && !granted &&
               count_waiting(view, own, command->capacity) >= command->queue_max) {
        mrt_job_set_detail(&job->job, MRT_REFUSAL_FULL, command->queue_max, command->queue);
        turn_away(job, true, MORTISE_EFULL);
    } else {
        mrt_etcd_show(job, record, own, view);
    }
}

/* A try that somebody may be ahead of. */
static void settle_outside(struct mrt_etcd_job *job, const struct mrt_etcd_view *view)
{
    const struct mrt_command *command = &job->job.command;
    const struct mrt_etcd_ticket *kind = mrt_etcd_view_kind(view, NULL);
    uint64_t ahead = mrt_etcd_weight_ahead(view, NULL, command->capacity);
    const struct mrt_etcd_session *session = mrt_etcd_session_find(job->store, command->session);
    if (is_other_kind(kind, command)) {
        turn_away_kind(job, false, kind);
    } else if (!mrt_rule_grants(ahead, command->weight, command->capacity)) {
        turn_away(job, false, MORTISE_OK);
    } else if (session) {
        job->stage = ++job->tries < MRT_ETCD_TRIES_MAX ? TRY_SINCE : PUT;
        job->revision = view->revision;
        send_append(job, session);
    } else {
        mrt_etcd_refuse(job);
    }
}

static void appended(void *argument, const struct mrt_rest_reply *reply)
{
    struct mrt_etcd_job *job = argument;
    struct mrt_etcd_view view;
    enum mrt_etcd_verdict verdict = mrt_etcd_txn_verdict(job, reply);
    const struct mrt_command *command = &job->job.command;
    if (verdict == MRT_ETCD_ANSWERED)
        return;
    struct mrt_etcd_record *record = mrt_etcd_record_find(job);
    if (verdict == MRT_ETCD_AGAIN) {
        send_append(job, mrt_etcd_session_find(job->store, command->session));
        return;
    }
    bool fresh = verdict == MRT_ETCD_SUCCEEDED;
    if (!record || !mrt_etcd_queue_read(job->queue, mrt_etcd_txn_range(reply, 1),
                                        mrt_etcd_revision(reply->json), &view)) {
        mrt_etcd_answer(job, MRT_UNKNOWN);
        return;
    }
    const struct mrt_etcd_entry *own = mrt_etcd_view_find(&view, record->ticket, record->lease);
    if (own)
        settle_inside(job, record, &view, own, fresh);
    else if (job->stage != PUT)
        settle_outside(job, &view);
    else
        mrt_etcd_answer(job, MRT_UNKNOWN); /* another has its key */
    mrt_etcd_view_free(&view);
}

/* ------------------------------------------------------------------ REMOVE */

static void removed(void *argument, const struct mrt_rest_reply *reply)
{
    struct mrt_etcd_job *job = argument;
    struct mrt_etcd_record *record = mrt_etcd_record_find(job);
    /* Then nothing that was sent for the ticket's key has an effect any more (spare.h). */
    if (record && record->named && record->created > 0 && is_done(reply))
        mrt_etcd_spare_keep(job->queue, record);
    if (!mrt_etcd_job_done(job, reply))
        return;
    if (record)
        mrt_etcd_record_drop(job->queue, record);
    mrt_etcd_answer(job, MRT_REMOVED);
}

void mrt_etcd_remove(struct mrt_etcd_job *job)
{
    const struct mrt_etcd_record *record = mrt_etcd_record_find(job);
    if (record)
        send_removal(job, record, NULL, removed);
    else
        mrt_etcd_answer(job, MRT_REMOVED); /* this session has put no such ticket */
}
