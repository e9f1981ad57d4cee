/* SPDX-License-Identifier: Apache-2.0 */
/* VIEW: what a walk shows of a session's ticket, and what the ticket's record keeps of it, with
   which wakes are compared. */
#include "base/assert.h"
#include "core/rule.h"
#include "store/nats/answer.h"
#include "store/nats/api.h"
#include "store/nats/command.h"
#include "store/nats/queue.h"

#include <stdlib.h>

const struct mrt_nats_entry *mrt_nats_own(const struct mrt_nats_job *job)
{
    return job->walk.has_own ? &job->walk.entries[job->walk.count - 1] : NULL;
}

struct mrt_nats_walk *
mrt_nats_walk_to(struct mrt_nats_job *job, const struct mrt_nats_record *record,
                 void (*done)(struct mrt_nats_walk *walk, const struct mrt_nats_reply *failure))
{
    struct mrt_nats_walk *walk = mrt_nats_job_walk(job, done);
    mrt_time now = mrt_time_now();
    job->wakes = record->wakes;
    job->heard = record->heard;
    walk->own = record->sequence;
    walk->weight = record->weight;
    walk->capacity = record->capacity;
    walk->buries = record->checked == 0 || now >= record->check_again;
    return walk;
}

/* Wakes are compared with the tickets that the walk has found ahead. Of a quick walk that is the
   first alone: what was known behind it is there still, as far as is known. */
static bool note_ahead(struct mrt_nats_record *record, const struct mrt_nats_walk *walk)
{
    size_t count = walk->count - walk->has_own, known = walk->quick ? record->ahead_count : 0;
    struct mrt_nats_ahead *ahead = calloc(count + known + 1, sizeof *ahead);
    if (!ahead)
        return false;
    for (size_t i = 0; i < count; i++)
        ahead[i] = (struct mrt_nats_ahead){walk->entries[i].sequence,
                                           mrt_nats_weight(&walk->entries[i], record->capacity)};
    for (size_t i = 0; i < known; i++)
        if (record->ahead[i].sequence > walk->entries[0].sequence)
            ahead[count++] = record->ahead[i];
    free(record->ahead);
    record->ahead = ahead;
    record->ahead_count = count;
    return true;
}

static uint64_t sum_ahead(const struct mrt_nats_record *record)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < record->ahead_count; i++)
        if (__builtin_add_overflow(sum, record->ahead[i].weight, &sum))
            return UINT64_MAX;
    return sum;
}

static mrt_time recheck_of(const struct mrt_nats_record *record, const struct mrt_nats_walk *walk)
{
    if (record->granted)
        return MRT_NATS_RECHECK_HELD;
    bool all_ahead_hold = sum_ahead(record) <= record->capacity;
    mrt_time recheck =
        all_ahead_hold || walk->any_doomed ? MRT_NATS_RECHECK_NEXT : MRT_NATS_RECHECK_WAITS;
    mrt_time now = mrt_time_now(), left = walk->judge_again > now ? walk->judge_again - now : 0;
    return mrt_time_min(recheck, left + MRT_NATS_RECHECK_LEAST);
}

static void fill_view(struct mrt_nats_job *job, struct mrt_nats_record *record)
{
    const struct mrt_command *command = &job->job.command;
    struct mrt_event *event = &job->job.event;
    const struct mrt_nats_entry *own = mrt_nats_own(job);
    if (command->type == MRT_APPEND)
        record->linger = command->linger;
    if (command->type == MRT_APPEND || command->type == MRT_REFRESH || command->type == MRT_LIGHTEN)
        record->watch_closely = command->watch_closely;
    if (own && own->ours) {
        record->weight = own->ticket.weight;
        record->revoked = own->ticket.revoked;
        record->attribute = own->attribute;
    }
    record->seen = true;
    record->told = false;
    record->granted =
        !job->walk.cut && mrt_rule_grants(sum_ahead(record), record->weight, record->capacity);
    record->others_behind = job->walk.others_behind;
    event->fence = mrt_nats_fence(record->sequence);
    event->fence_span = UINT64_C(1) << MRT_NATS_FENCE_BITS;
    event->weight_ahead = sum_ahead(record);
    MRT_ASSERT(record->granted ||
               !mrt_rule_grants(event->weight_ahead, record->weight, record->capacity));
    event->others_behind = record->others_behind;
    event->recheck = recheck_of(record, &job->walk);
    if (job->walk.buries) {
        record->checked = mrt_time_now();
        record->check_again = record->checked + event->recheck * 9 / 10;
    }
    event->place = record->granted || (job->walk.cut && !job->walk.quick) ? 0 : record->ahead_count;
    event->revoked = record->revoked;
}

/* Those that linger, or observe, hear that somebody has come. */
static void announce(struct mrt_nats_job *job, const struct mrt_nats_record *record)
{
    if (job->fresh && (!record->granted || job->job.command.value))
        mrt_nats_wake(&job->store->wire, job->queue->token, '+', record->sequence);
}

/* The walk may have read a ticket before it left, and wakes are compared with what it found: so
   what was heard of during the walk is struck. Whether the own one may hold by that. */
static bool strike_heard(struct mrt_nats_record *record, unsigned from)
{
    bool may_hold = false;
    if (record->heard - from > MRT_NATS_LEFT_MAX) { /* some of it is not known any longer */
        record->ahead_count = 0;
        return true;
    }
    for (; from != record->heard; from++)
        may_hold = mrt_nats_record_strike(record, record->left[from % MRT_NATS_LEFT_MAX]);
    return may_hold;
}

/* Answers; a wake that came during the walk follows. */
static void answer_view(struct mrt_nats_job *job, struct mrt_nats_record *record)
{
    struct mrt_nats_store *store = job->store;
    const struct mrt_event event = {
        .type = MRT_WAKE, .session = record->session, .ticket = record->ticket};
    bool struck = strike_heard(record, job->heard);
    bool missed = !record->granted && (struck || record->wakes != job->wakes);
    record->told |= missed;
    mrt_nats_answer(job, MRT_VIEW);
    if (missed)
        mrt_outbox_add(&store->outbox, event);
}

void mrt_nats_show(struct mrt_nats_job *job, struct mrt_nats_record *record)
{
    if (!note_ahead(record, &job->walk)) {
        mrt_nats_no_memory(job);
        return;
    }
    fill_view(job, record);
    if (!record->granted && !job->listened && mrt_nats_queue_listen(job->queue)) {
        job->listened = true; /* what left since has woken nobody */
        record->told = true;
        mrt_nats_walk_begin(mrt_nats_walk_to(job, record, job->walk.done));
        return;
    }
    announce(job, record);
    if (job->job.command.type != MRT_DETACH) {
        answer_view(job, record);
        return;
    }
    mrt_nats_record_drop(job->queue, record); /* it is nobody's now */
    mrt_nats_answer(job, MRT_VIEW);
}
