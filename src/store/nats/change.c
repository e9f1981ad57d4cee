/* SPDX-License-Identifier: Apache-2.0 */
/*
 * REFRESH, LIGHTEN, SET_VALUE, DETACH, and APPEND with `adopt`. A walk reads the ticket; if it has
 * to be changed, the whole of it is published to its other subject, on condition that nothing has
 * changed there since. Its place stays as it is. A detached ticket has no session, and another
 * identity.
 */
#include "store/kit/refusal.h"
#include "store/nats/answer.h"
#include "store/nats/api.h"
#include "store/nats/command.h"
#include "store/nats/queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AGAIN (300 * MRT_MILLISECOND) /* until a former leader has heard of the newer one */
#define MISSED_MAX 4

static void walked(struct mrt_nats_walk *walk, const struct mrt_nats_reply *failure);
static void searched(struct mrt_nats_walk *walk, const struct mrt_nats_reply *failure);

void mrt_nats_command_begin(struct mrt_nats_job *job, struct mrt_nats_session *session)
{
    const struct mrt_command *command = &job->job.command;
    if (!session)
        mrt_nats_refuse(job);
    else if (command->type == MRT_APPEND && !command->adopt)
        mrt_nats_append(job);
    else if (command->type == MRT_REMOVE)
        mrt_nats_remove(job);
    else if (command->type == MRT_OBSERVE)
        mrt_nats_observe(job);
    else if (job->queue->cell)
        mrt_nats_cell(job);
    else
        mrt_nats_change(job);
}

static void gone(struct mrt_nats_job *job)
{
    struct mrt_nats_record *record = mrt_nats_record_find(job);
    if (record && record->sequence > 0)
        mrt_nats_delete(&job->store->wire, job->store->address.tickets, record->sequence);
    if (record)
        mrt_nats_record_drop(job->queue, record);
    mrt_nats_answer(job, MRT_GONE);
}

/* -------------------------------------------------------------- the own one */

static void walk_to_own(struct mrt_nats_job *job)
{
    struct mrt_nats_record *record = mrt_nats_record_find(job);
    if (!record) {
        mrt_nats_answer(job, MRT_GONE);
        return;
    }
    struct mrt_nats_walk *walk = mrt_nats_walk_to(job, record, walked);
    walk->behind = true;
    if (job->job.command.type == MRT_REFRESH && !record->granted && record->ahead_count > 0) {
        size_t size = record->ahead_count * sizeof *record->ahead;
        walk->known = malloc(size); /* the record may go, and others leave, during the walk */
        if (walk->known)
            memcpy(walk->known, record->ahead, size);
        walk->known_count = walk->known ? record->ahead_count : 0;
    }
    mrt_nats_walk_begin(walk);
}

/* Looks through the whole queue for a ticket that is detached. */
static void search(struct mrt_nats_job *job)
{
    struct mrt_nats_walk *walk = mrt_nats_job_walk(job, searched);
    walk->changes = true;
    mrt_nats_walk_begin(walk);
}

void mrt_nats_change(struct mrt_nats_job *job)
{
    enum mrt_command_type type = job->job.command.type;
    const struct mrt_nats_record *record = mrt_nats_record_find(job);
    if (record && record->sequence > 0 && type != MRT_APPEND)
        walk_to_own(job);
    else if (type == MRT_APPEND || type == MRT_DETACH)
        search(job);
    else
        mrt_nats_answer(job, MRT_GONE);
}

/* ------------------------------------------------------------------ writing */

static void written(void *argument, const struct mrt_nats_reply *reply)
{
    struct mrt_nats_job *job = argument;
    struct mrt_nats_record *record = mrt_nats_record_find(job);
    bool done = reply->outcome == MRT_NATS_DONE;
    if (!done && reply->code != MRT_NATS_WRONG_SEQUENCE) {
        job->unknown |= reply->outcome == MRT_NATS_UNKNOWN;
        mrt_nats_job_failed(job, reply);
        return;
    }
    if (!record) {
        mrt_nats_refuse(job);
        return;
    }
    if (!done && job->job.command.type == MRT_APPEND && ++job->tries <= MRT_NATS_TRIES_MAX) {
        mrt_nats_record_drop(job->queue, record);
        search(job); /* another has adopted it, or changed it */
        return;
    }
    record->unowned &= !done || job->job.command.type == MRT_DETACH;
    job->unknown |= done;
    if (done)
        mrt_nats_wake(&job->store->wire, job->queue->token, '*', record->sequence);
    if (done)
        job->fresh = true; /* the change has been made; what is left is the view */
    if (done || ++job->tries <= MRT_NATS_TRIES_MAX)
        walk_to_own(job);
    else
        mrt_nats_answer(job, MRT_UNKNOWN);
}

/* Writes a ticket whose change was as `entry` has it. */
static void write_ticket(struct mrt_nats_job *job, const struct mrt_nats_entry *entry,
                         const struct mrt_nats_ticket *ticket, const void *value, size_t size)
{
    char subject[MRT_NATS_SUBJECT_SIZE];
    char *bytes = malloc(MRT_NATS_LINE_SIZE + size);
    if (!bytes) {
        mrt_nats_no_memory(job);
        return;
    }
    size_t length = mrt_nats_ticket_format(ticket, bytes);
    if (size > 0)
        memcpy(bytes + length, value, size);
    mrt_nats_subject(&job->store->address, 'a', job->queue->token, entry->name, subject);
    if (!mrt_nats_publish(&job->store->wire, subject, (int64_t)entry->attribute, bytes,
                          length + size, job->store->address.connect, written, job))
        mrt_nats_no_memory(job);
    free(bytes);
}

/* Changes the ticket as the command says. */
static void change_own(struct mrt_nats_job *job, struct mrt_nats_record *record,
                       const struct mrt_nats_entry *own)
{
    const struct mrt_command *command = &job->job.command;
    struct mrt_nats_ticket ticket = own->ticket;
    bool sets = command->type == MRT_SET_VALUE, detaches = command->type == MRT_DETACH;
    const void *value = sets ? command->value : own->value;
    size_t size = sets ? command->value_size : own->value_size;
    bool same = size == own->value_size && (size == 0 || memcmp(value, own->value, size) == 0);
    if ((command->type == MRT_LIGHTEN || detaches) && command->weight < ticket.weight) {
        ticket.weight = command->weight;
        same = false;
    }
    if (detaches && !mrt_id_none(ticket.session)) {
        ticket.session = (struct mrt_id){0, 0};
        ticket.id = command->detached_id;
        same = false;
    }
    if (same || job->fresh) {
        mrt_nats_show(job, record);
        return;
    }
    record->unowned |= detaches;
    write_ticket(job, own, &ticket, value, size);
}

static void walked(struct mrt_nats_walk *walk, const struct mrt_nats_reply *failure)
{
    struct mrt_nats_job *job = walk->argument;
    struct mrt_nats_record *record = mrt_nats_record_find(job);
    const struct mrt_nats_entry *own = mrt_nats_own(job);
    bool refreshes = job->job.command.type == MRT_REFRESH;
    if (failure)
        mrt_nats_job_failed(job, failure);
    else if (!record || !mrt_nats_session_find(job->store, job->job.command.session))
        mrt_nats_refuse(job);
    else if (own && own->ours && !refreshes)
        change_own(job, record, own);
    else if ((own && own->ours) || (walk->cut && !walk->lacks_own && refreshes))
        mrt_nats_show(job, record);
    else if (job->store->replicas != 1 && job->left++ < MISSED_MAX)
        mrt_nats_job_pause(job, AGAIN, walk_to_own);
    else
        gone(job);
}

/* ----------------------------------------------------------- detached ones */

/* The ticket of this identity, nobody's or this session's. */
static const struct mrt_nats_entry *find_entry(const struct mrt_nats_job *job, struct mrt_id id,
                                               struct mrt_id session)
{
    for (size_t i = 0; i < job->walk.count; i++) {
        const struct mrt_nats_entry *entry = &job->walk.entries[i];
        if (entry->ours && mrt_id_equal(entry->ticket.id, id) &&
            mrt_id_equal(entry->ticket.session, session))
            return entry;
    }
    return NULL;
}

/* The command's ticket is the one of this entry. */
static struct mrt_nats_record *make_record(struct mrt_nats_job *job,
                                           const struct mrt_nats_entry *entry)
{
    struct mrt_nats_record *record = mrt_nats_record_make(job);
    if (!record)
        return NULL;
    memcpy(record->name, entry->name, sizeof record->name);
    record->sequence = entry->sequence;
    record->capacity = entry->ticket.capacity;
    record->weight = entry->ticket.weight;
    return record;
}

static void adopt(struct mrt_nats_job *job, const struct mrt_nats_entry *entry)
{
    const struct mrt_command *command = &job->job.command;
    struct mrt_nats_ticket ticket = entry->ticket;
    if (ticket.capacity != command->capacity || ticket.weight != command->weight ||
        strcmp(ticket.kind, command->kind) != 0) {
        mrt_nats_fail(job, MORTISE_EMISMATCH, MRT_REFUSAL_ADOPT);
        return;
    }
    struct mrt_nats_record *record = make_record(job, entry);
    if (!record) {
        mrt_nats_no_memory(job);
        return;
    }
    record->unowned = true;
    ticket.session = command->session;
    ticket.lease = (uint64_t)(job->store->address.lease / MRT_MILLISECOND);
    snprintf(ticket.label, sizeof ticket.label, "%s", job->store->label);
    write_ticket(job, entry, &ticket, entry->value, entry->value_size);
}

static void searched(struct mrt_nats_walk *walk, const struct mrt_nats_reply *failure)
{
    static const struct mrt_id nobody = {0, 0};
    struct mrt_nats_job *job = walk->argument;
    const struct mrt_command *command = &job->job.command;
    bool adopts = command->type == MRT_APPEND;
    if (failure) {
        mrt_nats_job_failed(job, failure);
        return;
    }
    if (!mrt_nats_session_find(job->store, command->session)) {
        mrt_nats_refuse(job);
        return;
    }
    const struct mrt_nats_entry *detached =
        find_entry(job, adopts ? command->ticket : command->detached_id, nobody);
    const struct mrt_nats_entry *done =
        adopts ? find_entry(job, command->ticket, command->session) : detached;
    if (done) {
        struct mrt_nats_record *record = make_record(job, done);
        job->fresh = true;
        if (record) {
            record->unowned = false;
            walk_to_own(job);
        } else {
            mrt_nats_no_memory(job);
        }
    } else if (detached) {
        adopt(job, detached);
    } else if (adopts) {
        mrt_nats_fail(job, MORTISE_ENOTHELD, MRT_REFUSAL_NOT_DETACHED, command->queue);
    } else {
        mrt_nats_answer(job, MRT_GONE);
    }
}
