/* SPDX-License-Identifier: Apache-2.0 */
/* See queue.h. */
#include "store/nats/queue.h"

#include "core/rule.h"
#include "store/nats/answer.h"
#include "store/nats/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT (2 * MRT_SECOND) /* a subscription that nobody needs now */

/* ------------------------------------------------------------------ queues */

static void activate(struct mrt_nats_queue *queue)
{
    if (!queue->active)
        TAILQ_INSERT_TAIL(&queue->store->active, queue, link);
    queue->active = true;
}

static void deactivate(struct mrt_nats_queue *queue)
{
    if (queue->active)
        TAILQ_REMOVE(&queue->store->active, queue, link);
    queue->active = false;
}

static struct mrt_nats_queue *find_queue(const struct mrt_nats_store *store, const char *key)
{
    struct mrt_nats_queue *queue;
    HASH_FIND_STR(store->queues, key, queue);
    return queue;
}

static struct mrt_nats_queue *make_queue(struct mrt_nats_store *store, const char *key)
{
    size_t size = strlen(key) + 1;
    char token[MRT_NATS_TOKEN_SIZE];
    struct mrt_nats_queue *queue = calloc(1, sizeof *queue + size), *added = queue;
    if (!queue)
        return NULL;
    queue->store = store;
    queue->cell = *key == 'c';
    memcpy(queue->key, key, size);
    mrt_nats_token(key + 1, size - 2, token, sizeof token);
    queue->token = strdup(token);
    TAILQ_INIT(&queue->jobs);
    TAILQ_INIT(&queue->records);
    TAILQ_INIT(&queue->observers);
    if (queue->token)
        HASH_ADD_STR(store->queues, key, added);
    if (queue->token && added)
        return queue;
    free(queue->token);
    free(queue);
    return NULL;
}

static void stop_listening(struct mrt_nats_queue *queue)
{
    natsSubscription_Destroy(queue->ear);
    queue->ear = NULL;
}

static void free_queue(struct mrt_nats_queue *queue)
{
    struct mrt_nats_record *record;
    struct mrt_nats_observer *observer;
    stop_listening(queue);
    while ((record = TAILQ_FIRST(&queue->records)))
        mrt_nats_record_drop(queue, record);
    while ((observer = TAILQ_FIRST(&queue->observers))) {
        TAILQ_REMOVE(&queue->observers, observer, link);
        free(observer);
    }
    mrt_nats_jobs_free(&queue->jobs);
    deactivate(queue);
    HASH_DEL(queue->store->queues, queue);
    free(queue->token);
    free(queue);
}

/* Begins the first command, if none is under way. */
static void run(struct mrt_nats_queue *queue)
{
    struct mrt_nats_job *job;
    while (!queue->busy && (job = (struct mrt_nats_job *)TAILQ_FIRST(&queue->jobs))) {
        queue->busy = true;
        queue->store->begin(job, mrt_nats_session_find(queue->store, job->job.command.session));
    }
}

void mrt_nats_queue_submit(struct mrt_nats_store *store, struct mrt_nats_job *job)
{
    char key[MRT_FULL_NAME_SIZE + 1];
    const struct mrt_command *command = &job->job.command;
    bool cell = command->type == MRT_CELL_GET || command->type == MRT_CELL_SET;
    snprintf(key, sizeof key, "%c%s", cell ? 'c' : 'q', command->queue);
    struct mrt_nats_queue *queue = find_queue(store, key);
    if (!queue)
        queue = make_queue(store, key);
    if (!queue) {
        TAILQ_INSERT_TAIL(&store->jobs, &job->job, link);
        mrt_nats_fail(job, MORTISE_ENOMEM, "no memory for a queue");
        return;
    }
    job->queue = queue;
    activate(queue);
    TAILQ_INSERT_TAIL(&queue->jobs, &job->job, link);
    run(queue);
}

void mrt_nats_queue_leave(struct mrt_nats_queue *queue, struct mrt_nats_job *job)
{
    if (TAILQ_FIRST(&queue->jobs) == &job->job)
        queue->busy = false;
    TAILQ_REMOVE(&queue->jobs, &job->job, link);
    job->queue = NULL;
}

/* ----------------------------------------------------------------- tickets */

struct mrt_nats_record *mrt_nats_record_find(const struct mrt_nats_job *job)
{
    const struct mrt_command *command = &job->job.command;
    struct mrt_nats_record *record;
    TAILQ_FOREACH (record, &job->queue->records, link)
        if (mrt_id_equal(record->ticket, command->ticket) &&
            mrt_id_equal(record->session, command->session))
            return record;
    return NULL;
}

struct mrt_nats_record *mrt_nats_record_make(struct mrt_nats_job *job)
{
    struct mrt_nats_record *record = mrt_nats_record_find(job);
    if (record)
        return record;
    record = calloc(1, sizeof *record);
    if (!record)
        return NULL;
    record->session = job->job.command.session;
    record->ticket = job->job.command.ticket;
    mrt_id_format(record->ticket, record->name);
    TAILQ_INSERT_TAIL(&job->queue->records, record, link);
    return record;
}

void mrt_nats_record_drop(struct mrt_nats_queue *queue, struct mrt_nats_record *record)
{
    TAILQ_REMOVE(&queue->records, record, link);
    free(record->ahead);
    free(record);
}

static void forget_in(struct mrt_nats_queue *queue, struct mrt_id session)
{
    struct mrt_nats_record *record = TAILQ_FIRST(&queue->records), *other;
    struct mrt_nats_observer *observer = TAILQ_FIRST(&queue->observers), *after;
    activate(queue);
    for (; record; record = other) {
        other = TAILQ_NEXT(record, link);
        if (mrt_id_equal(record->session, session))
            mrt_nats_record_drop(queue, record);
    }
    for (; observer; observer = after) {
        after = TAILQ_NEXT(observer, link);
        if (!mrt_id_equal(observer->session, session))
            continue;
        TAILQ_REMOVE(&queue->observers, observer, link);
        free(observer);
    }
}

void mrt_nats_queues_forget(struct mrt_nats_store *store, struct mrt_id session)
{
    struct mrt_nats_queue *queue, *next;
    HASH_ITER (hh, store->queues, queue, next)
        forget_in(queue, session);
}

/* ------------------------------------------------------------------- wakes */

static void wake(struct mrt_nats_queue *queue, struct mrt_nats_record *record)
{
    const struct mrt_event event = {
        .type = MRT_WAKE, .session = record->session, .ticket = record->ticket};
    record->wakes++;
    if (record->seen && !record->told)
        record->told = mrt_outbox_add(&queue->store->outbox, event);
}

static void tell_observers(struct mrt_nats_queue *queue)
{
    struct mrt_nats_observer *observer;
    while ((observer = TAILQ_FIRST(&queue->observers))) {
        const struct mrt_event event = {
            .type = MRT_CHANGED, .session = observer->session, .ticket = observer->id};
        mrt_outbox_add(&queue->store->outbox, event);
        TAILQ_REMOVE(&queue->observers, observer, link);
        free(observer);
    }
}

/* Nobody knows what happened: all look. */
static void wake_all(struct mrt_nats_queue *queue)
{
    struct mrt_nats_record *record;
    TAILQ_FOREACH (record, &queue->records, link)
        wake(queue, record);
    tell_observers(queue);
}

bool mrt_nats_record_strike(struct mrt_nats_record *record, uint64_t sequence)
{
    uint64_t sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < record->ahead_count; i++)
        if (record->ahead[i].sequence != sequence) {
            if (__builtin_add_overflow(sum, record->ahead[i].weight, &sum))
                sum = UINT64_MAX;
            record->ahead[count++] = record->ahead[i];
        }
    record->ahead_count = count;
    return mrt_rule_grants(sum, record->weight, record->capacity);
}

static void hear_record(struct mrt_nats_queue *queue, struct mrt_nats_record *record, char sign,
                        uint64_t sequence)
{
    bool waits = !record->granted, own = sequence == record->sequence;
    if (sign == '-')
        record->left[record->heard++ % MRT_NATS_LEFT_MAX] = sequence;
    if (sign == '-'   ? own || (waits && mrt_nats_record_strike(record, sequence))
        : sign == '+' ? record->granted && record->linger && !record->others_behind &&
                            sequence > record->sequence
                      : waits || (own && record->watch_closely))
        wake(queue, record);
}

static void hear(struct mrt_nats_queue *queue, const char *text, size_t size)
{
    struct mrt_nats_record *record;
    char copy[32] = "";
    if (size > 0 && size < sizeof copy)
        memcpy(copy, text, size);
    uint64_t sequence = *copy ? strtoull(copy + 1, NULL, 10) : 0;
    if (sequence == 0) {
        wake_all(queue);
        return;
    }
    TAILQ_FOREACH (record, &queue->records, link)
        hear_record(queue, record, *copy, sequence);
    tell_observers(queue);
}

void mrt_nats_queues_hear(struct mrt_nats_store *store)
{
    struct mrt_nats_queue *queue;
    natsMsg *message = NULL;
    TAILQ_FOREACH (queue, &store->active, link)
        while (queue->ear && natsSubscription_NextMsg(&message, queue->ear, 0) == NATS_OK) {
            hear(queue, natsMsg_GetData(message), (size_t)natsMsg_GetDataLength(message));
            natsMsg_Destroy(message);
        }
}

/* --------------------------------------------------------------- listening */

static bool is_needed(const struct mrt_nats_queue *queue)
{
    const struct mrt_nats_record *record;
    TAILQ_FOREACH (record, &queue->records, link)
        if (record->seen && (!record->granted || record->watch_closely || record->linger))
            return true;
    return !TAILQ_EMPTY(&queue->observers);
}

static bool is_listening(const struct mrt_nats_queue *queue)
{
    return queue->ear && queue->store->wire.link &&
           queue->generation == queue->store->wire.generation;
}

bool mrt_nats_queue_listen(struct mrt_nats_queue *queue)
{
    char subject[MRT_NATS_SUBJECT_SIZE];
    struct mrt_nats_wire *wire = &queue->store->wire;
    if (is_listening(queue))
        return false;
    queue->deaf |= queue->ear != NULL;
    stop_listening(queue);
    mrt_nats_subject(wire->address, 'w', queue->token, "", subject);
    queue->ear = mrt_nats_listen(wire, subject);
    queue->generation = wire->generation;
    queue->unneeded = 0;
    return queue->ear;
}

/* When an observer is told in any case. */
static mrt_time observed_until(const struct mrt_nats_queue *queue)
{
    mrt_time until = MRT_TIME_NEVER;
    const struct mrt_nats_observer *observer;
    TAILQ_FOREACH (observer, &queue->observers, link)
        until = mrt_time_min(until, observer->until);
    return until;
}

static void tend_ear(struct mrt_nats_queue *queue, mrt_time now)
{
    if (is_needed(queue)) {
        queue->unneeded = 0;
        if (mrt_nats_queue_listen(queue) || (queue->deaf && is_listening(queue))) {
            queue->deaf = false;
            wake_all(queue);
        }
    } else if (queue->ear && queue->unneeded == 0) {
        queue->unneeded = now;
    } else if (queue->ear && now >= queue->unneeded + KEPT) {
        stop_listening(queue);
    }
}

/* Ends what has nothing to do; without a ticket it is forgotten. */
static void rest(struct mrt_nats_queue *queue)
{
    if (queue->ear || !TAILQ_EMPTY(&queue->jobs) || is_needed(queue))
        return;
    if (TAILQ_EMPTY(&queue->records))
        free_queue(queue);
    else
        deactivate(queue);
}

void mrt_nats_queues_tick(struct mrt_nats_store *store, mrt_time now)
{
    struct mrt_nats_queue *queue = TAILQ_FIRST(&store->active), *after;
    for (; queue; queue = after) {
        run(queue);
        if (observed_until(queue) <= now)
            tell_observers(queue);
        if (!queue->cell)
            tend_ear(queue, now);
        after = TAILQ_NEXT(queue, link);
        rest(queue);
    }
}

mrt_time mrt_nats_queues_next(const struct mrt_nats_store *store)
{
    mrt_time next = MRT_TIME_NEVER;
    const struct mrt_nats_queue *queue;
    const struct mrt_nats_job *job;
    TAILQ_FOREACH (queue, &store->active, link) {
        next = mrt_time_min(next, observed_until(queue));
        if (queue->ear && queue->unneeded > 0)
            next = mrt_time_min(next, queue->unneeded + KEPT);
    }
    TAILQ_FOREACH (job, &store->pauses, pause)
        next = mrt_time_min(next, job->again);
    return next;
}

void mrt_nats_queues_free(struct mrt_nats_store *store)
{
    struct mrt_nats_queue *queue, *next;
    HASH_ITER (hh, store->queues, queue, next)
        free_queue(queue);
}
