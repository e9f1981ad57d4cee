/*
 * Who observes elections. A queue whose tickets have values has a channel, on which each script
 * that changes its first ticket, or that ticket's value, says so; nobody pays for it who does
 * not observe.
 *
 * What is told before anybody listens is lost. So an OBSERVE is sent when the subscription to its
 * queue's channel stands, and held until then. Where it cannot be had the look is sent at once,
 * and the next follows after `recheck`.
 *
 * An observer is told once. Its next OBSERVE, if one comes, makes it anew; if none has come by the
 * next change, the channel is left. What was told before that may still come when the channel has
 * been asked for again: it is of no account, since who waits for the channel is yet to look.
 */
#include "store/redis/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ channels */

static void put_watch(struct mrt_redis_store *store, const char *command,
                      const struct mrt_redis_watch *watch)
{
    char channel[MRT_REDIS_CHANNEL_MAX];
    snprintf(channel, sizeof channel, "%se:%s", store->address.base, watch->queue);
    mrt_redis_push_put(store, command, channel);
}

static struct mrt_redis_watch *find_watch(const struct mrt_redis_store *store, const char *queue)
{
    struct mrt_redis_watch *watch;
    TAILQ_FOREACH (watch, &store->watches, link)
        if (strcmp(watch->queue, queue) == 0)
            break;
    return watch;
}

/* The connection for pushes is there, or on its way. */
static struct mrt_redis_watch *make_watch(struct mrt_redis_store *store, const char *queue)
{
    size_t size = strlen(queue) + 1;
    struct mrt_redis_watch *watch = calloc(1, sizeof *watch + size);
    if (!watch)
        return NULL;
    memcpy(watch->queue, queue, size);
    TAILQ_INSERT_TAIL(&store->watches, watch, link);
    put_watch(store, "SUBSCRIBE", watch);
    mrt_redis_wire_flush(&store->push); /* if it has broken, that shows when it is read */
    return watch;
}

static void free_watch(struct mrt_redis_store *store, struct mrt_redis_watch *watch)
{
    TAILQ_REMOVE(&store->watches, watch, link);
    free(watch);
}

void mrt_redis_observe_begin(struct mrt_redis_store *store)
{
    const struct mrt_redis_watch *watch;
    TAILQ_FOREACH (watch, &store->watches, link)
        put_watch(store, "SUBSCRIBE", watch);
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

static bool make_observer(struct mrt_redis_store *store, const struct mrt_command *command)
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

/* Tells those of a queue, of all if NULL; how many there were. */
static unsigned tell(struct mrt_redis_store *store, const char *queue)
{
    struct mrt_redis_observer *observer, *next;
    unsigned count = 0;
    TAILQ_FOREACH_SAFE (observer, &store->observers, link, next) {
        if (queue && strcmp(observer->queue, queue) != 0)
            continue;
        struct mrt_event *event = mrt_redis_tell(store, MRT_CHANGED, observer->session);
        if (event)
            event->ticket = observer->id;
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

void mrt_redis_observers_free(struct mrt_redis_store *store)
{
    while (!TAILQ_EMPTY(&store->observers))
        free_observer(store, TAILQ_FIRST(&store->observers));
    while (!TAILQ_EMPTY(&store->watches))
        free_watch(store, TAILQ_FIRST(&store->watches));
}

/* ------------------------------------------------------------------ looking */

bool mrt_redis_observe_hold(struct mrt_redis_store *store, struct mrt_redis_job *job, mrt_time now)
{
    const struct mrt_command *command = &job->command;
    if (command->type != MRT_OBSERVE || command->once || job->deaf)
        return false;
    if (!mrt_redis_push_want(store, now))
        return false;
    const struct mrt_redis_watch *watch = find_watch(store, command->queue);
    if (!watch)
        watch = make_watch(store, command->queue);
    if (!watch || !make_observer(store, command))
        return false;
    if (watch->stands)
        return false;
    job->since = now;
    TAILQ_INSERT_TAIL(&store->held, job, link);
    return true;
}

/* Those that were held for it, or for all that was listened for, are sent. */
static void release(struct mrt_redis_store *store, const char *queue)
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

bool mrt_redis_observe_told(struct mrt_redis_store *store, const char *channel, bool message)
{
    size_t length = strlen(store->address.base);
    if (strncmp(channel, store->address.base, length) != 0 ||
        strncmp(channel + length, "e:", 2) != 0)
        return false;
    struct mrt_redis_watch *watch = find_watch(store, channel + length + 2);
    if (watch && !message) {
        watch->stands = true;
        release(store, watch->queue);
    } else if (watch && watch->stands && tell(store, watch->queue) == 0) {
        put_watch(store, "UNSUBSCRIBE", watch);
        free_watch(store, watch);
    }
    return true;
}

void mrt_redis_observe_end(struct mrt_redis_store *store)
{
    release(store, NULL);
    tell(store, NULL); /* what has changed since was not heard */
    while (!TAILQ_EMPTY(&store->watches))
        free_watch(store, TAILQ_FIRST(&store->watches));
}
