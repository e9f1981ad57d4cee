/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Observers of elections. A queue whose tickets have values has a channel, on which each script
 * that changes its first ticket, or that ticket's value, publishes; other queues pay nothing.
 *
 * Messages published before the subscription is confirmed are lost. So an OBSERVE is kept until
 * then, and sent afterwards (push.c). Without a subscription the OBSERVE is sent immediately, and
 * the next follows after `recheck`.
 *
 * An observer is notified once. Its next OBSERVE renews it; if none has come by the next change,
 * the client unsubscribes from the channel. An older message that arrives after the channel was
 * subscribed to again is ignored: the OBSERVE that waits for the subscription reads a later state.
 */
#include "store/redis/observe.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ channels */

struct mrt_redis_watch *mrt_redis_watch_find(const struct mrt_redis_store *store, const char *queue)
{
    struct mrt_redis_watch *watch;
    TAILQ_FOREACH (watch, &store->watches, link)
        if (strcmp(watch->queue, queue) == 0)
            break;
    return watch;
}

struct mrt_redis_watch *mrt_redis_watch_add(struct mrt_redis_store *store, const char *queue)
{
    size_t size = strlen(queue) + 1;
    struct mrt_redis_watch *watch = calloc(1, sizeof *watch + size);
    if (!watch)
        return NULL;
    memcpy(watch->queue, queue, size);
    TAILQ_INSERT_TAIL(&store->watches, watch, link);
    return watch;
}

void mrt_redis_watch_free(struct mrt_redis_store *store, struct mrt_redis_watch *watch)
{
    TAILQ_REMOVE(&store->watches, watch, link);
    free(watch);
}

/* ------------------------------------------------------------------ observers */

static struct mrt_redis_observer *find_observer(const struct mrt_redis_store *store,
                                                struct mrt_id id)
{
    struct mrt_redis_observer *observer;
    TAILQ_FOREACH (observer, &store->observers, link)
        if (mrt_id_equal(observer->id, id))
            break;
    return observer;
}

bool mrt_redis_observer_add(struct mrt_redis_store *store, const struct mrt_command *command)
{
    size_t size = strlen(command->queue) + 1;
    if (find_observer(store, command->ticket))
        return true;
    struct mrt_redis_observer *observer = calloc(1, sizeof *observer + size);
    if (!observer)
        return false;
    observer->session = command->session;
    observer->id = command->ticket;
    memcpy(observer->queue, command->queue, size);
    TAILQ_INSERT_TAIL(&store->observers, observer, link);
    return true;
}

static void free_observer(struct mrt_redis_store *store, struct mrt_redis_observer *observer)
{
    TAILQ_REMOVE(&store->observers, observer, link);
    free(observer);
}

unsigned mrt_redis_observers_tell(struct mrt_redis_store *store, const char *queue)
{
    struct mrt_redis_observer *observer, *next;
    unsigned count = 0;
    TAILQ_FOREACH_SAFE (observer, &store->observers, link, next) {
        if (queue && strcmp(observer->queue, queue) != 0)
            continue;
        mrt_redis_tell(store, MRT_CHANGED, observer->session, observer->id);
        free_observer(store, observer);
        count++;
    }
    return count;
}

void mrt_redis_observers_forget(struct mrt_redis_store *store, struct mrt_id session)
{
    struct mrt_redis_observer *observer, *next;
    TAILQ_FOREACH_SAFE (observer, &store->observers, link, next)
        if (mrt_id_equal(observer->session, session))
            free_observer(store, observer);
}

void mrt_redis_observe_free(struct mrt_redis_store *store)
{
    while (!TAILQ_EMPTY(&store->observers))
        free_observer(store, TAILQ_FIRST(&store->observers));
    while (!TAILQ_EMPTY(&store->watches))
        mrt_redis_watch_free(store, TAILQ_FIRST(&store->watches));
}

void mrt_redis_observe_release(struct mrt_redis_store *store, const char *queue)
{
    struct mrt_redis_job *job, *next;
    TAILQ_FOREACH_SAFE (job, &store->held, link, next) {
        if (job->command.type != MRT_OBSERVE || (queue && strcmp(job->command.queue, queue) != 0))
            continue;
        job->deaf = !queue;
        job->since = mrt_time_now();
        TAILQ_REMOVE(&store->held, job, link);
        TAILQ_INSERT_TAIL(&store->waiting, job, link);
    }
}
