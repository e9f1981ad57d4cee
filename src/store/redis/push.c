/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection on which the server publishes. It is a second one because hiredis 0.14 knows no
 * pushes between replies. It is made when a ticket of this client has to wait for the first time,
 * so an uncontended lock costs one connection. It is made again when a ticket waits without it.
 *
 * Messages published before the subscription is confirmed are lost. So the answer that a ticket
 * has to wait is kept until then, and the ticket is refreshed once more. The same is done if the
 * ticket's refresh was sent before and answered later, because the two connections have no common
 * order. If the subscription fails, the answer is delivered. When it breaks later, all tickets are
 * refreshed. Besides, each waiter refreshes by itself from time to time.
 */
#include "store/redis/push.h"

#include "base/assert.h"
#include "store/redis/claim.h"
#include "store/redis/observe.h"
#include "store/redis/script.h"
#include "store/redis/seek.h"

#define PAUSE (100 * MRT_MILLISECOND)
#define CONNECT_MAX MRT_SECOND /* a client waits for it that could look by itself */

void mrt_redis_wake_all(struct mrt_redis_store *store)
{
    const struct mrt_redis_session *session;
    TAILQ_FOREACH (session, &store->sessions, link)
        mrt_redis_tell(store, MRT_WAKE, session->id, (struct mrt_id){0, 0});
}

void mrt_redis_push_close(struct mrt_redis_store *store, mrt_time now)
{
    struct mrt_redis_job *job;
    bool was_subscribed = store->push_subscribed;
    mrt_redis_wire_close(&store->push);
    store->push_subscribed = false;
    store->push_again = mrt_time_add(now, PAUSE);
    mrt_redis_observe_release(store, NULL);
    mrt_redis_observers_tell(store, NULL); /* changes since then are not known */
    mrt_redis_observe_free(store);
    while ((job = TAILQ_FIRST(&store->held))) {
        TAILQ_REMOVE(&store->held, job, link);
        mrt_redis_answer(store, job, MRT_VIEW);
    }
    if (was_subscribed)
        mrt_redis_wake_all(store);
}

void mrt_redis_push_put(struct mrt_redis_store *store, const char *command, const char *kind,
                        const char *name)
{
    char channel[MRT_REDIS_KEY_MAX];
    mrt_redis_key(store, kind, name, channel);
    mrt_redis_wire_words(&store->push, command, channel, NULL);
}

static void connect_push(struct mrt_redis_store *store, mrt_time now)
{
    const char *name;
    const struct mrt_address *server = mrt_redis_seek_current(store, &name);
    MRT_ASSERT(store->push.state == MRT_REDIS_CLOSED && !store->push_subscribed);
    if (!server || !mrt_redis_wire_open(&store->push, server, name, store->epoll)) {
        mrt_redis_push_close(store, now);
        return;
    }
    store->push_deadline = mrt_time_add(now, mrt_time_min(store->address.connect, CONNECT_MAX));
    store->push_logins = mrt_redis_wire_login(&store->push, &store->address, store->secret);
    mrt_redis_wire_words(&store->push, "SUBSCRIBE", store->channel, NULL);
    const struct mrt_redis_claim *claim;
    TAILQ_FOREACH (claim, &store->claims, link)
        if (claim->waits)
            mrt_redis_push_put(store, "SUBSCRIBE", "w:", claim->key);
    const struct mrt_redis_watch *watch;
    TAILQ_FOREACH (watch, &store->watches, link)
        mrt_redis_push_put(store, "SUBSCRIBE", "e:", watch->queue);
    if (!mrt_redis_wire_flush(&store->push))
        mrt_redis_push_close(store, now);
}

/* Whether the connection is there, or is being made. */
static bool have_push(struct mrt_redis_store *store, mrt_time now)
{
    if (store->push.state == MRT_REDIS_CLOSED && now >= store->push_again)
        connect_push(store, now);
    return store->push.state != MRT_REDIS_CLOSED;
}

void mrt_redis_push_listen(struct mrt_redis_store *store, const char *key, mrt_time now)
{
    if (store->push.state == MRT_REDIS_CLOSED) {
        have_push(store, now); /* which subscribes for all claims that wait */
        return;
    }
    mrt_redis_push_put(store, "SUBSCRIBE", "w:", key);
    if (!mrt_redis_wire_flush(&store->push))
        mrt_redis_push_close(store, now);
}

void mrt_redis_push_ignore(struct mrt_redis_store *store, const char *key)
{
    if (store->push.state == MRT_REDIS_CLOSED)
        return;
    mrt_redis_push_put(store, "UNSUBSCRIBE", "w:", key);
    mrt_redis_wire_flush(&store->push); /* if it has broken, that shows when it is read */
}

/* ------------------------------------------------------------------- waiting */

/* A look at a ticket that is there: whatever this one fails for, the ticket stays. */
static void repeat(struct mrt_redis_store *store, struct mrt_redis_job *job)
{
    job->repeated = true;
    TAILQ_INSERT_TAIL(&store->waiting, job, link);
}

bool mrt_redis_push_hold(struct mrt_redis_store *store, struct mrt_redis_job *job, mrt_time now)
{
    if (store->push_subscribed && job->since > store->push_since)
        return false;
    if (store->push_subscribed) {
        repeat(store, job);
        return true;
    }
    job->event.recheck = mrt_time_min(job->event.recheck, MRT_REDIS_RECHECK_MAX); /* deaf yet */
    if (!have_push(store, now))
        return false;
    job->since = now;
    TAILQ_INSERT_TAIL(&store->held, job, link);
    return true;
}

bool mrt_redis_push_hold_observe(struct mrt_redis_store *store, struct mrt_redis_job *job,
                                 mrt_time now)
{
    const struct mrt_command *command = &job->command;
    if (command->type != MRT_OBSERVE || command->once || job->deaf || !have_push(store, now))
        return false;
    const struct mrt_redis_watch *watch = mrt_redis_watch_find(store, command->queue);
    if (!watch && (watch = mrt_redis_watch_add(store, command->queue))) {
        mrt_redis_push_put(store, "SUBSCRIBE", "e:", watch->queue);
        mrt_redis_wire_flush(&store->push); /* if it has broken, that shows when it is read */
    }
    if (!watch || !mrt_redis_observer_add(store, command) || watch->stands)
        return false;
    job->since = now;
    TAILQ_INSERT_TAIL(&store->held, job, link);
    return true;
}

/* An OBSERVE waits for its queue's channel, which may have been subscribed to later. */
void mrt_redis_push_subscribed(struct mrt_redis_store *store, mrt_time now)
{
    struct mrt_redis_job *job, *next;
    store->push_subscribed = true;
    store->push_since = now;
    TAILQ_FOREACH_SAFE (job, &store->held, link, next) {
        if (job->command.type == MRT_OBSERVE)
            continue;
        TAILQ_REMOVE(&store->held, job, link);
        repeat(store, job);
    }
}

mrt_time mrt_redis_push_next(const struct mrt_redis_store *store)
{
    const struct mrt_redis_job *job = TAILQ_FIRST(&store->held);
    MRT_ASSERT(!job || store->push.state != MRT_REDIS_CLOSED);
    if (store->push.state == MRT_REDIS_CLOSED)
        return MRT_TIME_NEVER;
    if (!store->push_subscribed)
        return store->push_deadline;
    return job ? mrt_time_add(job->since, CONNECT_MAX) : MRT_TIME_NEVER;
}

void mrt_redis_push_tick(struct mrt_redis_store *store, mrt_time now)
{
    if (now >= mrt_redis_push_next(store))
        mrt_redis_push_close(store, now);
}
