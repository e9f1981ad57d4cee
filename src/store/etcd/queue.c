/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See queue.h. A line of the watch is read within libcurl's callback, where no call may be begun or
 * ended: so the watch is only marked there, and mended by the next tick.
 */
#include "store/etcd/queue.h"

#include "base/assert.h"
#include "base/backoff.h"
#include "store/etcd/reply.h"
#include "store/etcd/spare.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAUSE (100 * MRT_MILLISECOND)
#define PAUSE_MAX (5 * MRT_SECOND)
#define KEPT (2 * MRT_SECOND) /* a watch that nobody needs now */
/* Each has a connection of its own. Tickets of more queues look again after MRT_ETCD_RECHECK_WAITS.
 */
#define WATCHES_MAX 256

/* ------------------------------------------------------------------ queues */

static void activate(struct mrt_etcd_queue *queue)
{
    if (!queue->active)
        TAILQ_INSERT_TAIL(&queue->store->active, queue, link);
    queue->active = true;
}

static void deactivate(struct mrt_etcd_queue *queue)
{
    if (queue->active)
        TAILQ_REMOVE(&queue->store->active, queue, link);
    queue->active = false;
}

static struct mrt_etcd_queue *find_queue(const struct mrt_etcd_store *store, const char *directory)
{
    struct mrt_etcd_queue *queue;
    HASH_FIND_STR(store->queues, directory, queue);
    return queue;
}

static struct mrt_etcd_queue *make_queue(struct mrt_etcd_store *store, bool cell,
                                         const char *directory)
{
    size_t size = strlen(directory) + 1;
    struct mrt_etcd_queue *queue = calloc(1, sizeof *queue + size), *added = queue;
    if (!queue)
        return NULL;
    queue->store = store;
    queue->cell = cell;
    memcpy(queue->directory, directory, size);
    TAILQ_INIT(&queue->jobs);
    TAILQ_INIT(&queue->records);
    TAILQ_INIT(&queue->observers);
    HASH_ADD_STR(store->queues, directory, added);
    if (!added) {
        free(queue);
        return NULL;
    }
    return queue;
}

static void end_watch(struct mrt_etcd_queue *queue)
{
    if (!queue->watch)
        return;
    mrt_rest_cancel(queue->watch);
    queue->watch = NULL;
    queue->store->watches--;
}

static void free_queue(struct mrt_etcd_queue *queue)
{
    struct mrt_etcd_record *record;
    struct mrt_etcd_observer *observer;
    end_watch(queue);
    while ((record = TAILQ_FIRST(&queue->records)))
        mrt_etcd_record_drop(queue, record);
    while ((observer = TAILQ_FIRST(&queue->observers))) {
        TAILQ_REMOVE(&queue->observers, observer, link);
        free(observer);
    }
    mrt_etcd_view_free(&queue->view);
    mrt_jobs_free(&queue->jobs);
    deactivate(queue);
    HASH_DEL(queue->store->queues, queue);
    free(queue);
}

/* Begins the first command, if none is under way and its session is not in doubt. */
static void run(struct mrt_etcd_queue *queue)
{
    struct mrt_etcd_job *job;
    while (!queue->busy && (job = (struct mrt_etcd_job *)TAILQ_FIRST(&queue->jobs))) {
        struct mrt_etcd_session *session =
            mrt_etcd_session_find(queue->store, job->job.command.session);
        if (session && session->doubtful) {
            mrt_etcd_session_settle(queue->store, session);
            return;
        }
        queue->busy = true;
        queue->store->begin(job, session);
    }
}

void mrt_etcd_queue_submit(struct mrt_etcd_store *store, struct mrt_etcd_job *job)
{
    char directory[MRT_ETCD_NAME_SIZE];
    const struct mrt_command *command = &job->job.command;
    bool cell = command->type == MRT_CELL_GET || command->type == MRT_CELL_SET;
    snprintf(directory, sizeof directory, cell ? "%sc/%s" : "%.0s%s/", store->address.base,
             command->queue);
    struct mrt_etcd_queue *queue = find_queue(store, directory);
    if (!queue)
        queue = make_queue(store, cell, directory);
    if (!queue) {
        TAILQ_INSERT_TAIL(&store->jobs, &job->job, link);
        mrt_etcd_fail(job, MORTISE_ENOMEM, "no memory for a queue");
        return;
    }
    job->queue = queue;
    activate(queue);
    TAILQ_INSERT_TAIL(&queue->jobs, &job->job, link);
    run(queue);
}

void mrt_etcd_queue_leave(struct mrt_etcd_queue *queue, struct mrt_etcd_job *job)
{
    if (TAILQ_FIRST(&queue->jobs) == &job->job)
        queue->busy = false;
    TAILQ_REMOVE(&queue->jobs, &job->job, link);
    job->queue = NULL;
}

void mrt_etcd_queues_resume(struct mrt_etcd_store *store)
{
    struct mrt_etcd_queue *queue;
    TAILQ_FOREACH (queue, &store->active, link)
        run(queue);
}

void mrt_etcd_queues_fail(struct mrt_etcd_store *store, struct mrt_id session,
                          const struct mrt_rest_reply *reply)
{
    struct mrt_etcd_queue *queue;
    TAILQ_FOREACH (queue, &store->active, link) {
        struct mrt_etcd_job *job = (struct mrt_etcd_job *)TAILQ_FIRST(&queue->jobs);
        if (job && !queue->busy && mrt_id_equal(job->job.command.session, session))
            mrt_etcd_job_done(job, reply);
    }
}

/* ----------------------------------------------------------------- tickets */

struct mrt_etcd_record *mrt_etcd_record_find(const struct mrt_etcd_job *job)
{
    const struct mrt_command *command = &job->job.command;
    struct mrt_etcd_record *record;
    TAILQ_FOREACH (record, &job->queue->records, link)
        if (mrt_id_equal(record->ticket, command->ticket) &&
            mrt_id_equal(record->session, command->session))
            return record;
    return NULL;
}

struct mrt_etcd_record *mrt_etcd_record_make(struct mrt_etcd_job *job,
                                             const struct mrt_etcd_session *session)
{
    struct mrt_etcd_record *record = mrt_etcd_record_find(job);
    if (record)
        return record;
    record = calloc(1, sizeof *record);
    if (!record)
        return NULL;
    record->session = session->id;
    record->lease = session->lease;
    record->ticket = job->job.command.ticket;
    record->named = !job->job.command.adopt;
    if (!record->named || !mrt_etcd_spare_take(job->queue, record->name))
        mrt_id_format(record->ticket, record->name);
    TAILQ_INSERT_TAIL(&job->queue->records, record, link);
    return record;
}

void mrt_etcd_record_drop(struct mrt_etcd_queue *queue, struct mrt_etcd_record *record)
{
    TAILQ_REMOVE(&queue->records, record, link);
    free(record);
}

void mrt_etcd_queues_forget(struct mrt_etcd_store *store, struct mrt_id session)
{
    struct mrt_etcd_queue *queue, *next;
    HASH_ITER (hh, store->queues, queue, next) {
        struct mrt_etcd_record *record = TAILQ_FIRST(&queue->records), *other;
        activate(queue);
        for (; record; record = other) {
            other = TAILQ_NEXT(record, link);
            if (mrt_id_equal(record->session, session))
                mrt_etcd_record_drop(queue, record);
        }
        struct mrt_etcd_observer *observer = TAILQ_FIRST(&queue->observers), *after;
        for (; observer; observer = after) {
            after = TAILQ_NEXT(observer, link);
            if (!mrt_id_equal(observer->session, session))
                continue;
            TAILQ_REMOVE(&queue->observers, observer, link);
            free(observer);
        }
    }
}

/* ------------------------------------------------------------------- wakes */

static void wake(struct mrt_etcd_queue *queue, struct mrt_etcd_record *record)
{
    const struct mrt_event event = {
        .type = MRT_WAKE, .session = record->session, .ticket = record->ticket};
    record->told = mrt_outbox_add(&queue->store->outbox, event);
}

/* Wakes a ticket for which the view differs from what its newest VIEW said. */
static void compare_ticket(struct mrt_etcd_queue *queue, struct mrt_etcd_record *record)
{
    const struct mrt_etcd_view *view = &queue->view;
    if (!record->seen || record->told)
        return;
    const struct mrt_etcd_entry *entry = mrt_etcd_view_find(view, record->ticket, record->lease);
    bool behind = entry && entry != &view->entries[view->count - 1];
    if (!entry)
        wake(queue, record);
    else if (!record->granted && mrt_etcd_grants(view, entry, record->capacity))
        wake(queue, record);
    else if (record->watch_closely && entry->ticket.revoked > record->revoked)
        wake(queue, record);
    else if (record->linger && behind && !record->others_behind)
        wake(queue, record);
}

static void compare_observer(struct mrt_etcd_queue *queue, struct mrt_etcd_observer *observer)
{
    const struct mrt_etcd_view *view = &queue->view;
    int64_t created = view->count > 0 ? view->entries[0].created : 0;
    int64_t modified = view->count > 0 ? view->entries[0].modified : 0;
    if (created == observer->created && modified == observer->modified)
        return;
    const struct mrt_event event = {
        .type = MRT_CHANGED, .session = observer->session, .ticket = observer->id};
    mrt_outbox_add(&queue->store->outbox, event);
    TAILQ_REMOVE(&queue->observers, observer, link);
    free(observer);
}

static void compare(struct mrt_etcd_queue *queue)
{
    struct mrt_etcd_record *record;
    struct mrt_etcd_observer *observer = TAILQ_FIRST(&queue->observers), *after;
    TAILQ_FOREACH (record, &queue->records, link)
        compare_ticket(queue, record);
    for (; observer; observer = after) {
        after = TAILQ_NEXT(observer, link);
        compare_observer(queue, observer);
    }
}

bool mrt_etcd_queue_read(struct mrt_etcd_queue *queue, struct json_object *range, int64_t revision,
                         struct mrt_etcd_view *view)
{
    return mrt_etcd_view_read(view, range, revision, queue->directory);
}

void mrt_etcd_queue_take(struct mrt_etcd_queue *queue, struct mrt_etcd_view *view)
{
    if (view->revision >= queue->view.revision) {
        struct mrt_etcd_view old = queue->view;
        queue->view = *view;
        *view = old;
    }
    mrt_etcd_view_free(view);
    compare(queue);
}

/* ------------------------------------------------------------------- watch */

/* Everybody has to look: what happened since the view is not known. */
static void wake_all(struct mrt_etcd_queue *queue)
{
    struct mrt_etcd_record *record;
    struct mrt_etcd_observer *observer;
    TAILQ_FOREACH (record, &queue->records, link)
        if (record->seen)
            wake(queue, record);
    TAILQ_FOREACH (observer, &queue->observers, link) {
        observer->modified = -1;
        observer->created = -1;
    }
    compare(queue);
    mrt_etcd_view_free(&queue->view);
}

static void on_line(void *argument, const struct mrt_rest_reply *reply)
{
    struct mrt_etcd_queue *queue = argument;
    struct json_object *events = mrt_rest_member(reply->json, "events");
    int64_t revision = 0; /* of the events; the header's may be newer than events to come */
    size_t count =
        json_object_is_type(events, json_type_array) ? json_object_array_length(events) : 0;
    if (queue->broken)
        return;
    if (mrt_rest_member(reply->json, "canceled")) {
        queue->broken = true; /* compacted, or refused */
        return;
    }
    queue->failures = count > 0 ? 0 : queue->failures;
    for (size_t i = 0; i < count; i++) {
        struct json_object *event = json_object_array_get_idx(events, i);
        int64_t modified = mrt_rest_number(mrt_rest_member(event, "kv"), "mod_revision");
        revision = modified > revision ? modified : revision;
        if (!mrt_etcd_view_change(&queue->view, event, queue->directory))
            queue->broken = true;
    }
    if (revision > queue->view.revision && !queue->broken) {
        queue->view.revision = revision;
        compare(queue);
    }
}

/* The watch does not begin again at once. */
static void pause_watch(struct mrt_etcd_queue *queue)
{
    mrt_time pause = mrt_backoff(PAUSE, PAUSE_MAX, queue->failures++);
    queue->again = mrt_time_now() + mrt_backoff_spread(pause, queue->store->chance);
}

static void on_end(void *argument, const struct mrt_rest_reply *reply)
{
    struct mrt_etcd_queue *queue = argument;
    (void)reply;
    queue->watch = NULL;
    queue->store->watches--;
    pause_watch(queue);
}

static bool is_needed(const struct mrt_etcd_queue *queue)
{
    const struct mrt_etcd_record *record;
    TAILQ_FOREACH (record, &queue->records, link)
        if (record->seen && (!record->granted || record->watch_closely || record->linger))
            return true;
    return !TAILQ_EMPTY(&queue->observers);
}

/* Begins the watch from the view on. */
static void begin_watch(struct mrt_etcd_queue *queue)
{
    struct mrt_rest_text text = {0};
    mrt_rest_add(&text, "{\"create_request\":{");
    mrt_etcd_add_prefix(&text, queue->directory);
    mrt_rest_add(&text, ",\"start_revision\":\"%" PRId64 "\"}}", queue->view.revision + 1);
    queue->watch = mrt_etcd_stream(&queue->store->wire, "watch", &text, on_line, on_end, queue);
    queue->store->watches += queue->watch != NULL;
    if (!queue->watch)
        queue->again = mrt_time_now() + PAUSE_MAX;
}

static void tend_watch(struct mrt_etcd_queue *queue, mrt_time now)
{
    if (queue->broken) {
        end_watch(queue);
        pause_watch(queue);
        wake_all(queue);
        queue->broken = false;
    }
    if (is_needed(queue)) {
        queue->unneeded = 0;
        if (!queue->watch && queue->view.revision > 0 && now >= queue->again &&
            queue->store->watches < WATCHES_MAX)
            begin_watch(queue);
    } else if (queue->watch && queue->unneeded == 0) {
        queue->unneeded = now;
    } else if (queue->watch && now >= queue->unneeded + KEPT) {
        end_watch(queue);
    }
}

/* Ends what has nothing to do; without a ticket it is forgotten. */
static void rest(struct mrt_etcd_queue *queue)
{
    if (queue->watch || !TAILQ_EMPTY(&queue->jobs) || is_needed(queue))
        return;
    if (TAILQ_EMPTY(&queue->records))
        free_queue(queue);
    else
        deactivate(queue);
}

void mrt_etcd_queues_tick(struct mrt_etcd_store *store, mrt_time now)
{
    struct mrt_etcd_queue *queue = TAILQ_FIRST(&store->active), *after;
    for (; queue; queue = after) {
        run(queue);
        if (!queue->cell)
            tend_watch(queue, now);
        after = TAILQ_NEXT(queue, link);
        rest(queue);
    }
}

mrt_time mrt_etcd_queues_next(const struct mrt_etcd_store *store)
{
    mrt_time next = MRT_TIME_NEVER;
    const struct mrt_etcd_queue *queue;
    TAILQ_FOREACH (queue, &store->active, link) {
        if (queue->watch && queue->unneeded > 0)
            next = mrt_time_min(next, queue->unneeded + KEPT);
        else if (!queue->watch && !queue->cell && queue->view.revision > 0 &&
                 store->watches < WATCHES_MAX && is_needed(queue))
            next = mrt_time_min(next, queue->again);
        if (queue->broken)
            next = 0;
    }
    return next;
}

void mrt_etcd_queues_free(struct mrt_etcd_store *store)
{
    struct mrt_etcd_queue *queue, *next;
    HASH_ITER (hh, store->queues, queue, next)
        free_queue(queue);
}
