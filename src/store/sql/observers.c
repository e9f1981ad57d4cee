/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that observe a queue whose tickets have values. They leave nothing in the database.
 *
 * Where the server notifies, all that observe anything in this schema hear of a queue in which a
 * ticket with a value was inserted, deleted or changed. LISTEN is sent before the first look, so
 * nothing falls in between. For all else there is a time by which an observer is told to look
 * again: the end of the first ticket's lease, if that is not renewed, and a short while where
 * nobody notifies.
 */
#include "store/sql/observers.h"
#include "store/sql/driver.h"
#include "store/sql/outbox.h"
#include "store/sql/send.h"

#include <stdlib.h>
#include <string.h>

struct mrt_sql_observer *mrt_sql_observer_of(struct mrt_sql_store *store, struct mrt_id id)
{
    struct mrt_sql_observer *observer;
    TAILQ_FOREACH (observer, &store->observers, link)
        if (mrt_id_equal(observer->id, id))
            return observer;
    return NULL;
}

static void forget(struct mrt_sql_store *store, struct mrt_sql_observer *observer)
{
    TAILQ_REMOVE(&store->observers, observer, link);
    free(observer);
}

void mrt_sql_observe(struct mrt_sql_store *store, const struct mrt_command *command, mrt_time now)
{
    struct mrt_sql_observer *observer = mrt_sql_observer_of(store, command->ticket);
    size_t size = strlen(command->queue) + 1;
    if (!observer) {
        observer = calloc(1, sizeof *observer + size);
        if (!observer)
            return; /* it looks again after `recheck` */
        observer->session = command->session;
        observer->id = command->ticket;
        memcpy(observer->queue, command->queue, size);
        TAILQ_INSERT_TAIL(&store->observers, observer, link);
    }
    observer->looking = true;
    observer->changed = false;
    observer->due = MRT_TIME_NEVER;
    mrt_sql_listen(store, now);
}

void mrt_sql_listen(struct mrt_sql_store *store, mrt_time now)
{
    const struct mrt_command none = {0};
    if (!mrt_sql_is_notified(store) || store->listens || store->state != MRT_SQL_READY ||
        TAILQ_EMPTY(&store->observers))
        return;
    store->listens = true;
    mrt_sql_begin_own(store, MRT_SQL_DO_LISTEN, &none, now);
}

void mrt_sql_unobserve(struct mrt_sql_store *store, struct mrt_id id)
{
    struct mrt_sql_observer *observer = mrt_sql_observer_of(store, id);
    if (observer)
        forget(store, observer);
}

void mrt_sql_unobserve_all(struct mrt_sql_store *store, const struct mrt_sql_session *session)
{
    struct mrt_sql_observer *observer, *next;
    TAILQ_FOREACH_SAFE (observer, &store->observers, link, next)
        if (mrt_id_equal(observer->session, session->id))
            forget(store, observer);
}

/* Each is told once; it asks anew if it wants to know more. */
static void tell(struct mrt_sql_store *store, struct mrt_sql_observer *observer)
{
    const struct mrt_event event = {
        .type = MRT_CHANGED, .session = observer->session, .ticket = observer->id};
    mrt_sql_tell(store, &event);
    forget(store, observer);
}

void mrt_sql_observed_changed(struct mrt_sql_store *store, const char *queue)
{
    struct mrt_sql_observer *observer, *next;
    TAILQ_FOREACH_SAFE (observer, &store->observers, link, next)
        if (strcmp(observer->queue, queue) == 0) {
            observer->changed = true;
            if (!observer->looking)
                tell(store, observer);
        }
}

void mrt_sql_observers_due(struct mrt_sql_store *store, mrt_time now)
{
    struct mrt_sql_observer *observer, *next;
    TAILQ_FOREACH_SAFE (observer, &store->observers, link, next)
        if (!observer->looking && observer->due <= now)
            tell(store, observer);
}

mrt_time mrt_sql_observers_next(const struct mrt_sql_store *store)
{
    const struct mrt_sql_observer *observer;
    mrt_time next = MRT_TIME_NEVER;
    TAILQ_FOREACH (observer, &store->observers, link)
        if (!observer->looking)
            next = mrt_time_min(next, observer->due);
    return next;
}
