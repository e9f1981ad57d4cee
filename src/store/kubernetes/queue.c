/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See queue.h. A line of the watch is read within libcurl's callback, where no call may be begun or
 * ended: so there the Lease is only noted, and events go to the outbox.
 *
 * A watch begins at a version, and thus shows each change since: at that of the newest answer. If
 * there is none, as of a Lease that is not there, or the server does not have the changes since, it
 * begins at the version of a list. One without a version begins whenever the server comes to it: it
 * would not show a deletion before that.
 */
#include "store/kubernetes/queue.h"

#include "base/backoff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAUSE (100 * MRT_MILLISECOND)
#define PAUSE_MAX (5 * MRT_SECOND)
#define KEPT (10 * MRT_SECOND) /* a lock, and its watch, that nobody needs now */
/* Each has a connection of its own. Tickets of more locks look again by themselves. */
#define WATCHES_MAX 256

/* ------------------------------------------------------------------ queues */

static struct mrt_k8s_queue *make_queue(struct mrt_k8s_store *store, const char *full)
{
    size_t size = strlen(full) + 1;
    struct mrt_k8s_queue *queue = calloc(1, sizeof *queue + size), *added = queue;
    if (!queue)
        return NULL;
    queue->store = store;
    queue->lease.unstated =
        store->address.lease < MRT_K8S_UNSTATED ? MRT_K8S_UNSTATED : store->address.lease;
    memcpy(queue->full, full, size);
    mrt_k8s_name(full, queue->name);
    TAILQ_INIT(&queue->jobs);
    TAILQ_INIT(&queue->tickets);
    TAILQ_INIT(&queue->observers);
    HASH_ADD_STR(store->by_name, full, added);
    if (!added) {
        free(queue);
        return NULL;
    }
    TAILQ_INSERT_TAIL(&store->queues, queue, link);
    return queue;
}

static void end_watch(struct mrt_k8s_queue *queue)
{
    if (!queue->watch)
        return;
    mrt_rest_cancel(queue->watch);
    queue->watch = NULL;
    queue->store->watches--;
}

static void free_queue(struct mrt_k8s_queue *queue)
{
    struct mrt_k8s_ticket *ticket;
    struct mrt_k8s_observer *observer;
    end_watch(queue);
    while ((ticket = TAILQ_FIRST(&queue->tickets)))
        mrt_k8s_ticket_drop(ticket);
    while ((observer = TAILQ_FIRST(&queue->observers)))
        mrt_k8s_observer_drop(queue, observer);
    json_object_put(queue->lease.json);
    mrt_jobs_free(&queue->jobs);
    TAILQ_REMOVE(&queue->store->queues, queue, link);
    HASH_DEL(queue->store->by_name, queue);
    free(queue);
}

void mrt_k8s_queues_free(struct mrt_k8s_store *store)
{
    struct mrt_k8s_queue *queue;
    while ((queue = TAILQ_FIRST(&store->queues)))
        free_queue(queue);
}

void mrt_k8s_queue_add(struct mrt_k8s_queue *queue, struct mrt_k8s_job *job)
{
    job->store = queue->store;
    job->queue = queue;
    queue->idle = 0;
    TAILQ_INSERT_TAIL(&queue->jobs, &job->job, link);
}

void mrt_k8s_queue_submit(struct mrt_k8s_store *store, struct mrt_k8s_job *job)
{
    struct mrt_k8s_queue *queue;
    const char *full = job->job.command.queue;
    HASH_FIND_STR(store->by_name, full, queue);
    if (!queue)
        queue = make_queue(store, full);
    if (queue) {
        mrt_k8s_queue_add(queue, job);
        return;
    }
    TAILQ_INSERT_TAIL(&store->jobs, &job->job, link);
    mrt_k8s_fail(job, MORTISE_ENOMEM, "no memory for a lock");
}

/* Begins the first command, if none is under way. */
static void run(struct mrt_k8s_queue *queue)
{
    struct mrt_k8s_job *job;
    while (!queue->busy && (job = (struct mrt_k8s_job *)TAILQ_FIRST(&queue->jobs))) {
        queue->busy = true;
        queue->store->begin(job);
    }
}

/* ----------------------------------------------------------------- answers */

/* The lock's next command may begin. True: the job was a part of a STOP, and is freed. */
static bool leave(struct mrt_k8s_job *job, bool done)
{
    struct mrt_k8s_queue *queue = job->queue;
    struct mrt_k8s_session *session = job->session;
    TAILQ_REMOVE(queue ? &queue->jobs : &job->store->jobs, &job->job, link);
    if (queue)
        queue->busy = false;
    if (job->job.command.serial)
        return false;
    session->leaving--;
    session->failed |= !done;
    mrt_job_free(&job->job);
    return true;
}

void mrt_k8s_answer(struct mrt_k8s_job *job, enum mrt_event_type type)
{
    struct mrt_k8s_store *store = job->store;
    if (!leave(job, type != MRT_UNKNOWN))
        mrt_outbox_answer(&store->outbox, &job->job, type);
}

void mrt_k8s_fail(struct mrt_k8s_job *job, int error, const char *format, ...)
{
    struct mrt_k8s_store *store = job->store;
    va_list arguments;
    va_start(arguments, format);
    mrt_job_set_detail_list(&job->job, "Kubernetes: ", format, arguments);
    va_end(arguments);
    if (!leave(job, false))
        mrt_outbox_fail(&store->outbox, &job->job, error);
}

void mrt_k8s_refuse(struct mrt_k8s_job *job)
{
    struct mrt_k8s_store *store = job->store;
    if (!leave(job, true))
        mrt_outbox_refuse(&store->outbox, &job->job);
}

/* ----------------------------------------------------------------- tickets */

struct mrt_k8s_ticket *mrt_k8s_ticket_find(const struct mrt_k8s_job *job)
{
    const struct mrt_command *command = &job->job.command;
    struct mrt_k8s_ticket *ticket;
    TAILQ_FOREACH (ticket, &job->queue->tickets, link)
        if (mrt_id_equal(ticket->id, command->ticket) &&
            mrt_id_equal(ticket->session->id, command->session))
            return ticket;
    return NULL;
}

void mrt_k8s_ticket_drop(struct mrt_k8s_ticket *ticket)
{
    if (ticket->renewal)
        mrt_rest_cancel(ticket->renewal);
    TAILQ_REMOVE(&ticket->queue->tickets, ticket, link);
    free(ticket->value);
    free(ticket);
}

void mrt_k8s_observer_drop(struct mrt_k8s_queue *queue, struct mrt_k8s_observer *observer)
{
    TAILQ_REMOVE(&queue->observers, observer, link);
    free(observer->value);
    free(observer);
}

/* ------------------------------------------------------------------ news */

bool mrt_k8s_queue_is_free(const struct mrt_k8s_queue *queue, mrt_time now)
{
    return mrt_k8s_lease_end(&queue->lease) <= now;
}

uint64_t mrt_k8s_queue_leader(const struct mrt_k8s_queue *queue, mrt_time now, const char **value)
{
    struct json_object *json = queue->lease.json;
    *value = mrt_k8s_note(json, "value");
    return mrt_k8s_queue_is_free(queue, now) ? 0 : mrt_k8s_fence(json);
}

static bool send_event(struct mrt_k8s_queue *queue, enum mrt_event_type type, struct mrt_id session,
                       struct mrt_id ticket, uint64_t revoked)
{
    const struct mrt_event event = {
        .type = type, .session = session, .ticket = ticket, .revoked = revoked};
    return mrt_outbox_add(&queue->store->outbox, event);
}

static void wake(struct mrt_k8s_ticket *ticket)
{
    if (!ticket->told)
        ticket->told = send_event(ticket->queue, MRT_WAKE, ticket->session->id, ticket->id, 0);
}

/* Wakes the ticket if the Lease, as it is known, concerns it. */
static void compare_ticket(struct mrt_k8s_ticket *ticket, mrt_time now)
{
    struct mrt_k8s_queue *queue = ticket->queue;
    struct json_object *json = queue->lease.json;
    if (!ticket->held || ticket->lost) {
        if (ticket->lost || mrt_k8s_queue_is_free(queue, now))
            wake(ticket);
    } else if (!mrt_k8s_is_holder(json, ticket->id)) {
        wake(ticket);
    } else if (ticket->watch_closely && mrt_k8s_revoked(json) > ticket->revoked) {
        uint64_t revoked = mrt_k8s_revoked(json);
        if (send_event(queue, MRT_REVOKED, ticket->session->id, ticket->id, revoked))
            ticket->revoked = revoked;
    }
}

static void compare(struct mrt_k8s_queue *queue, mrt_time now)
{
    struct mrt_k8s_ticket *ticket;
    struct mrt_k8s_observer *observer, *next;
    const char *value;
    uint64_t fence = mrt_k8s_queue_leader(queue, now, &value);
    if (!queue->lease.known)
        return;
    TAILQ_FOREACH (ticket, &queue->tickets, link)
        compare_ticket(ticket, now);
    TAILQ_FOREACH_SAFE (observer, &queue->observers, link, next)
        if ((observer->fence != fence || strcmp(observer->value, value) != 0) &&
            send_event(queue, MRT_CHANGED, observer->session->id, observer->id, 0))
            mrt_k8s_observer_drop(queue, observer);
}

/* Whether a later state of this lock is known: a watch and an answer may overtake each other. The
   versions of all Leases are one row of numbers, so those of an object that was deleted are smaller
   than those of the next by its name. */
static bool is_old(const struct mrt_k8s_queue *queue, struct json_object *json)
{
    struct json_object *known = queue->lease.json;
    struct json_object *old = mrt_rest_member(known, "metadata");
    struct json_object *new = mrt_rest_member(json, "metadata");
    return !queue->refuted &&
           mrt_rest_number(new, "resourceVersion") < mrt_rest_number(old, "resourceVersion");
}

void mrt_k8s_queue_set(struct mrt_k8s_queue *queue, struct json_object *json)
{
    mrt_time now = mrt_time_now();
    if (json && is_old(queue, json)) {
        queue->lease.known = true;
        return;
    }
    queue->refuted = false; /* its versions may have gone back: a server was restored */
    mrt_k8s_lease_set(&queue->lease, json, now);
    snprintf(queue->version, sizeof queue->version, "%s", mrt_k8s_version(json));
    compare(queue, now);
}

/* Nobody knows what has happened. */
static void wake_all(struct mrt_k8s_queue *queue)
{
    struct mrt_k8s_ticket *ticket;
    struct mrt_k8s_observer *observer, *next;
    TAILQ_FOREACH (ticket, &queue->tickets, link)
        wake(ticket);
    TAILQ_FOREACH_SAFE (observer, &queue->observers, link, next)
        if (send_event(queue, MRT_CHANGED, observer->session->id, observer->id, 0))
            mrt_k8s_observer_drop(queue, observer);
}

/* ------------------------------------------------------------------ the watch */

static void on_line(void *argument, const struct mrt_rest_reply *reply)
{
    struct mrt_k8s_queue *queue = argument;
    const char *type = mrt_rest_string(reply->json, "type");
    struct json_object *object = mrt_rest_member(reply->json, "object");
    if (queue->broken)
        return;
    if (strcmp(type, "ERROR") == 0) {
        queue->broken = true; /* the version is too old, or the server has no more */
        return;
    }
    if (strcmp(type, "BOOKMARK") != 0 && !mrt_k8s_is_lease(object, queue->name)) {
        queue->broken = true;
        return;
    }
    queue->failures = 0;
    if (strcmp(type, "BOOKMARK") == 0)
        snprintf(queue->version, sizeof queue->version, "%s", mrt_k8s_version(object));
    else if (strcmp(type, "DELETED") != 0)
        mrt_k8s_queue_set(queue, object);
    else if (!is_old(queue, object))
        mrt_k8s_queue_set(queue, NULL);
}

/* The watch does not begin again at once. */
static void pause_watch(struct mrt_k8s_queue *queue)
{
    mrt_time pause = mrt_backoff(PAUSE, PAUSE_MAX, queue->failures++);
    queue->again = mrt_time_now() + mrt_backoff_spread(pause, queue->store->chance);
}

/* A server ends each watch after some minutes. */
static void on_end(void *argument, const struct mrt_rest_reply *reply)
{
    struct mrt_k8s_queue *queue = argument;
    queue->watch = NULL;
    queue->store->watches--;
    queue->broken |= reply->outcome != MRT_REST_DONE;
    if (reply->outcome == MRT_REST_REFUSED)
        mrt_note(&queue->store->notes, MRT_K8S_NOTE_WATCH, "no watch: %s", reply->text);
    pause_watch(queue);
}

static bool is_watched(const struct mrt_k8s_queue *queue)
{
    const struct mrt_k8s_ticket *ticket;
    TAILQ_FOREACH (ticket, &queue->tickets, link)
        if (!ticket->held || ticket->watch_closely)
            return true;
    return !TAILQ_EMPTY(&queue->observers);
}

/* A list of this Lease alone: its version is the server's. An own write may be newer. */
static void on_listed(void *argument, const struct mrt_rest_reply *reply)
{
    struct mrt_k8s_queue *queue = argument;
    const char *version = mrt_k8s_version(reply->json);
    if (reply->outcome != MRT_REST_DONE || !*version || !mrt_k8s_is_list(reply->json)) {
        on_end(argument, reply);
        return;
    }
    queue->watch = NULL;
    queue->store->watches--;
    queue->anew = false;
    if (!is_old(queue, reply->json))
        mrt_k8s_queue_set(queue, mrt_k8s_item(reply->json, queue->name));
    snprintf(queue->version, sizeof queue->version, "%s", version);
}

static void begin_watch(struct mrt_k8s_queue *queue)
{
    struct mrt_k8s_store *store = queue->store;
    char query[512], target[MRT_K8S_TARGET_SIZE];
    bool from = *queue->version && !queue->anew;
    snprintf(query, sizeof query, "fieldSelector=metadata.name%%3D%s%s%s", queue->name,
             from ? "&watch=1&allowWatchBookmarks=true&resourceVersion=" : "",
             from ? queue->version : "");
    mrt_k8s_target(&store->address, NULL, query, target);
    const struct mrt_rest_request request = {.method = "GET",
                                             .path = target,
                                             .limit = mrt_k8s_limit(store),
                                             .urgent = true,
                                             .line = from ? on_line : NULL,
                                             .done = from ? on_end : on_listed,
                                             .argument = queue};
    queue->watch = mrt_rest_send(&store->wire.rest, &request, NULL);
    store->watches += queue->watch != NULL;
    if (!queue->watch)
        queue->again = mrt_time_now() + PAUSE_MAX;
}

/* A command that is under way will soon know a version: that saves the list. */
static bool may_begin_watch(const struct mrt_k8s_queue *queue)
{
    if (!*queue->version && queue->busy)
        return false;
    return !queue->watch && queue->lease.known && queue->store->watches < WATCHES_MAX;
}

static void tend_watch(struct mrt_k8s_queue *queue, mrt_time now)
{
    if (queue->broken) {
        if (queue->watch)
            pause_watch(queue);
        end_watch(queue);
        queue->anew = true;
        queue->broken = false;
        wake_all(queue);
    }
    if (is_watched(queue) && may_begin_watch(queue) && now >= queue->again)
        begin_watch(queue);
}

/* ------------------------------------------------------------------ ticks */

/* The record is over, by this client's clock. */
static void tend_record(struct mrt_k8s_queue *queue, mrt_time now)
{
    if (is_watched(queue) && mrt_k8s_queue_is_free(queue, now))
        compare(queue, now);
}

/* Ends what nobody needs. */
static void rest(struct mrt_k8s_queue *queue, mrt_time now)
{
    if (!TAILQ_EMPTY(&queue->jobs) || is_watched(queue)) {
        queue->idle = 0;
    } else if (queue->idle == 0) {
        queue->idle = now;
    } else if (now >= queue->idle + KEPT) {
        end_watch(queue);
        if (TAILQ_EMPTY(&queue->tickets))
            free_queue(queue);
    }
}

void mrt_k8s_queues_tick(struct mrt_k8s_store *store, mrt_time now)
{
    struct mrt_k8s_queue *queue, *next;
    TAILQ_FOREACH_SAFE (queue, &store->queues, link, next) {
        run(queue);
        tend_watch(queue, now);
        tend_record(queue, now);
        rest(queue, now);
    }
}

mrt_time mrt_k8s_queues_next(const struct mrt_k8s_store *store)
{
    mrt_time next = MRT_TIME_NEVER, now = mrt_time_now();
    const struct mrt_k8s_queue *queue;
    TAILQ_FOREACH (queue, &store->queues, link) {
        mrt_time end = mrt_k8s_lease_end(&queue->lease);
        if (queue->broken)
            return 0;
        if (queue->idle > 0 && (queue->watch || TAILQ_EMPTY(&queue->tickets)))
            next = mrt_time_min(next, queue->idle + KEPT);
        if (is_watched(queue) && may_begin_watch(queue))
            next = mrt_time_min(next, queue->again);
        if (is_watched(queue) && end > now)
            next = mrt_time_min(next, end);
    }
    return next;
}
