/* SPDX-License-Identifier: Apache-2.0 */
/*
 * REFRESH, LIGHTEN, SET_VALUE, DETACH, and APPEND with `adopt`: the queue is read, and the ticket
 * is written, if need be, on condition that its key has not changed since. A detached ticket keeps
 * its key, without a lease, and has another identity in its value.
 */
#include "store/etcd/command.h"
#include "store/etcd/queue.h"
#include "store/etcd/reply.h"
#include "store/kit/refusal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void looked(void *argument, const struct mrt_rest_reply *reply);

void mrt_etcd_command_begin(struct mrt_etcd_job *job, struct mrt_etcd_session *session)
{
    const struct mrt_command *command = &job->job.command;
    size_t base = strlen(job->store->address.base);
    if (!session)
        mrt_etcd_refuse(job);
    else if (!job->queue->cell && strncmp(command->queue, job->store->address.base, base) == 0)
        mrt_etcd_fail(job, MORTISE_ENAME, "names that begin with %s are the store's own",
                      job->store->address.base);
    else if (command->type == MRT_APPEND && !command->adopt)
        mrt_etcd_append(job, session);
    else if (command->type == MRT_REMOVE)
        mrt_etcd_remove(job);
    else if (command->type == MRT_OBSERVE)
        mrt_etcd_observe(job);
    else if (job->queue->cell)
        mrt_etcd_cell(job);
    else
        mrt_etcd_change(job);
}

static void gone(struct mrt_etcd_job *job)
{
    struct mrt_etcd_record *record = mrt_etcd_record_find(job);
    if (record)
        mrt_etcd_record_drop(job->queue, record);
    mrt_etcd_answer(job, MRT_GONE);
}

void mrt_etcd_change(struct mrt_etcd_job *job)
{
    enum mrt_command_type type = job->job.command.type;
    bool known = mrt_etcd_record_find(job) || type == MRT_APPEND || type == MRT_DETACH;
    if (known)
        mrt_etcd_look(job, looked);
    else
        mrt_etcd_answer(job, MRT_GONE);
}

/* ------------------------------------------------------------------ writing */

/* Writes a ticket that was as `entry`; the reply has the queue in its second place. */
static void write_ticket(struct mrt_etcd_job *job, const struct mrt_etcd_entry *entry,
                         const struct mrt_etcd_ticket *ticket, const void *bytes, size_t size,
                         int64_t lease)
{
    char key[MRT_ETCD_NAME_SIZE], *value = malloc(size + MRT_ETCD_LINE_SIZE);
    struct mrt_rest_text text = {0};
    const struct mrt_etcd_session *session =
        mrt_etcd_session_find(job->store, job->job.command.session);
    if (!value || !session) {
        free(value);
        mrt_etcd_fail(job, MORTISE_ENOMEM, "no memory for a ticket");
        return;
    }
    if (size > 0)
        memcpy(value, bytes, size);
    size += mrt_etcd_ticket_format(ticket, value + size);
    mrt_etcd_key(job->queue, entry->name, key);
    mrt_etcd_txn_begin(job, session, &text);
    mrt_etcd_if(&text, key, "MOD", entry->modified);
    mrt_etcd_txn_then(&text);
    mrt_etcd_put(&text, key, value, size, lease);
    mrt_etcd_get_all(&text, job->queue->directory);
    mrt_etcd_txn_else(session, &text);
    mrt_etcd_get_all(&text, job->queue->directory);
    mrt_etcd_txn_send(job, &text, looked);
    free(value);
}

static void detached(struct mrt_etcd_job *job, const struct mrt_etcd_entry *entry,
                     struct mrt_etcd_view *view)
{
    struct mrt_etcd_record *record = mrt_etcd_record_find(job), passing = {0};
    struct mrt_etcd_queue *queue = job->queue;
    passing.capacity = entry->ticket.capacity;
    if (record)
        mrt_etcd_record_drop(queue, record);
    mrt_etcd_show(job, &passing, entry, view);
}

static void detach(struct mrt_etcd_job *job, const struct mrt_etcd_record *record,
                   struct mrt_etcd_view *view)
{
    const struct mrt_command *command = &job->job.command;
    const struct mrt_etcd_entry *done = mrt_etcd_view_find(view, command->detached_id, 0);
    const struct mrt_etcd_entry *own =
        record ? mrt_etcd_view_find(view, record->ticket, record->lease) : NULL;
    if (done) {
        detached(job, done, view);
    } else if (!own) {
        gone(job);
    } else {
        struct mrt_etcd_ticket ticket = own->ticket;
        ticket.id = command->detached_id;
        ticket.weight = command->weight < ticket.weight ? command->weight : ticket.weight;
        write_ticket(job, own, &ticket, own->value, own->ticket.value_size, 0);
    }
}

static void adopt(struct mrt_etcd_job *job, struct mrt_etcd_view *view)
{
    const struct mrt_command *command = &job->job.command;
    const struct mrt_etcd_session *session = mrt_etcd_session_find(job->store, command->session);
    const struct mrt_etcd_entry *entry = mrt_etcd_view_find(view, command->ticket, session->lease);
    if (entry) {
        struct mrt_etcd_record *record = mrt_etcd_record_make(job, session);
        if (record)
            mrt_etcd_show(job, record, entry, view);
        else
            mrt_etcd_fail(job, MORTISE_ENOMEM, "no memory for a ticket");
        return;
    }
    entry = mrt_etcd_view_find(view, command->ticket, 0);
    if (!entry) {
        mrt_etcd_fail(job, MORTISE_ENOTHELD, MRT_REFUSAL_NOT_DETACHED, command->queue);
    } else if (entry->ticket.capacity != command->capacity ||
               entry->ticket.weight != command->weight ||
               strcmp(entry->ticket.kind, command->kind) != 0) {
        mrt_etcd_fail(job, MORTISE_EMISMATCH, MRT_REFUSAL_ADOPT);
    } else {
        struct mrt_etcd_ticket ticket = entry->ticket;
        snprintf(ticket.label, sizeof ticket.label, "%s", job->store->label);
        write_ticket(job, entry, &ticket, entry->value, entry->ticket.value_size, session->lease);
    }
}

/* The ticket is the session's own. */
static void change_own(struct mrt_etcd_job *job, struct mrt_etcd_record *record,
                       const struct mrt_etcd_entry *own, struct mrt_etcd_view *view)
{
    const struct mrt_command *command = &job->job.command;
    struct mrt_etcd_ticket ticket = own->ticket;
    bool sets = command->type == MRT_SET_VALUE, lightens = command->type == MRT_LIGHTEN;
    const void *bytes = sets ? command->value : own->value;
    size_t size = sets ? command->value_size : own->ticket.value_size;
    bool same =
        size == own->ticket.value_size && (size == 0 || memcmp(bytes, own->value, size) == 0);
    if (lightens && command->weight < ticket.weight) {
        ticket.weight = command->weight;
        same = false;
    }
    if (same)
        mrt_etcd_show(job, record, own, view);
    else
        write_ticket(job, own, &ticket, bytes, size, own->lease);
}

static void look_at(struct mrt_etcd_job *job, struct mrt_etcd_view *view)
{
    struct mrt_etcd_record *record = mrt_etcd_record_find(job);
    const struct mrt_etcd_entry *own;
    if (job->job.command.type == MRT_DETACH) {
        detach(job, record, view);
    } else if (job->job.command.type == MRT_APPEND) {
        adopt(job, view);
    } else {
        own = record ? mrt_etcd_view_find(view, record->ticket, record->lease) : NULL;
        if (own)
            change_own(job, record, own, view);
        else
            gone(job);
    }
}

/* The queue has been read, alone or behind a change; if the change was made, it shows. */
static void looked(void *argument, const struct mrt_rest_reply *reply)
{
    struct mrt_etcd_job *job = argument;
    struct mrt_etcd_view view;
    struct json_object *range = reply->json;
    bool changes = mrt_rest_member(reply->json, "responses");
    if (changes) {
        enum mrt_etcd_verdict verdict = mrt_etcd_txn_verdict(job, reply);
        if (verdict == MRT_ETCD_ANSWERED)
            return;
        range = mrt_etcd_txn_range(reply, 1);
        if (verdict != MRT_ETCD_SUCCEEDED && ++job->tries > MRT_ETCD_TRIES_MAX) {
            mrt_etcd_answer(job, MRT_UNKNOWN);
            return;
        }
    } else if (!mrt_etcd_job_done(job, reply)) {
        return;
    }
    if (!mrt_etcd_session_find(job->store, job->job.command.session)) {
        mrt_etcd_refuse(job);
        return;
    }
    if (!mrt_etcd_queue_read(job->queue, range, mrt_etcd_revision(reply->json), &view)) {
        mrt_etcd_answer(job, MRT_UNKNOWN);
        return;
    }
    look_at(job, &view);
    mrt_etcd_view_free(&view);
}
