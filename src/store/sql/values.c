/*
 * Who observes a queue whose tickets have values, and cells.
 *
 * Observers leave nothing in the database. Where the server notifies, all that observe anything in
 * this schema hear of a queue in which a ticket with a value was put in, taken out or changed: it
 * is listened for before the first look, so nothing falls in between. For all else there is a
 * time by which an observer is told to look again: the end of the first ticket's lease, if that is
 * not renewed, and a short while where nobody notifies.
 *
 * A cell's row stays when the cell is deleted (value NULL), so that its version and the largest
 * fence it has seen never fall. A write is one conditional statement; what the row says
 * then, by the identity of its last writer, is the answer.
 */
#include "store/sql/internal.h"

#include <stdlib.h>
#include <string.h>

#define POLL (200 * MRT_MILLISECOND) /* where nobody notifies */

/* ------------------------------------------------------------------ observers */

static struct mrt_sql_observer *find(struct mrt_store *store, struct mrt_id id)
{
    struct mrt_sql_observer *observer;
    TAILQ_FOREACH (observer, &store->observers, link)
        if (mrt_id_equal(observer->id, id))
            return observer;
    return NULL;
}

static void forget(struct mrt_store *store, struct mrt_sql_observer *observer)
{
    TAILQ_REMOVE(&store->observers, observer, link);
    free(observer);
}

void mrt_sql_observe(struct mrt_store *store, const struct mrt_command *command, mrt_time now)
{
    struct mrt_sql_observer *observer = find(store, command->ticket);
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

void mrt_sql_listen(struct mrt_store *store, mrt_time now)
{
    const struct mrt_command none = {0};
    if (!mrt_sql_notifies || store->listens || store->state != MRT_SQL_READY ||
        TAILQ_EMPTY(&store->observers))
        return;
    store->listens = true;
    mrt_sql_begin_own(store, MRT_SQL_DO_LISTEN, &none, now);
}

void mrt_sql_unobserve(struct mrt_store *store, struct mrt_id id)
{
    struct mrt_sql_observer *observer = find(store, id);
    if (observer)
        forget(store, observer);
}

void mrt_sql_unobserve_all(struct mrt_store *store, const struct mrt_sql_session *session)
{
    struct mrt_sql_observer *observer, *next;
    TAILQ_FOREACH_SAFE (observer, &store->observers, link, next)
        if (mrt_id_equal(observer->session, session->id))
            forget(store, observer);
}

/* Each is told once; it asks anew if it wants to know more. */
static void tell(struct mrt_store *store, struct mrt_sql_observer *observer)
{
    const struct mrt_event event = {
        .type = MRT_CHANGED, .session = observer->session, .ticket = observer->id};
    mrt_sql_tell(store, &event);
    forget(store, observer);
}

void mrt_sql_observed_changed(struct mrt_store *store, const char *queue)
{
    struct mrt_sql_observer *observer, *next;
    TAILQ_FOREACH_SAFE (observer, &store->observers, link, next)
        if (strcmp(observer->queue, queue) == 0) {
            observer->changed = true;
            if (!observer->looking)
                tell(store, observer);
        }
}

void mrt_sql_observers_due(struct mrt_store *store, mrt_time now)
{
    struct mrt_sql_observer *observer, *next;
    TAILQ_FOREACH_SAFE (observer, &store->observers, link, next)
        if (!observer->looking && observer->due <= now)
            tell(store, observer);
}

mrt_time mrt_sql_observers_next(const struct mrt_store *store)
{
    const struct mrt_sql_observer *observer;
    mrt_time next = MRT_TIME_NEVER;
    TAILQ_FOREACH (observer, &store->observers, link)
        if (!observer->looking)
            next = mrt_time_min(next, observer->due);
    return next;
}

void mrt_sql_finish_observe(struct mrt_store *store, struct mrt_sql_request *request, mrt_time now)
{
    struct mrt_sql_observer *observer = find(store, request->command.ticket);
    mrt_time left = mrt_sql_lease_left(store, request, MRT_HOLDER_LEFT);
    if (mrt_sql_reaps(store, request, MRT_HOLDER_LEFT, MRT_SQL_DO_OBSERVE, now))
        return;
    if (mrt_sql_has_row(request) && !mrt_sql_take_value(request, MRT_HOLDER_VALUE)) {
        mrt_sql_answer(store, request, MRT_UNKNOWN);
        return;
    }
    request->event.fence = (uint64_t)mrt_sql_number(request, MRT_HOLDER_NUMBER)
                           << MRT_SQL_FENCE_BITS;
    request->event.recheck = left > 0 ? left : MRT_SQL_RECHECK_MAX;
    mrt_time wait =
        mrt_sql_notifies ? request->event.recheck : mrt_time_min(POLL, request->event.recheck);
    mrt_sql_answer(store, request, MRT_HOLDER);
    if (!observer)
        return;
    observer->looking = false;
    observer->due = observer->changed ? now : mrt_time_add(now, wait);
}

/* ------------------------------------------------------------------ cells */

void mrt_sql_finish_cell(struct mrt_store *store, struct mrt_sql_request *request, mrt_time now)
{
    const struct mrt_command *command = &request->command;
    uint64_t version = (uint64_t)mrt_sql_number(request, MRT_CELL_VERSION);
    uint64_t fence = (uint64_t)mrt_sql_number(request, MRT_CELL_FENCE);
    bool set = command->type == MRT_CELL_SET, own = mrt_sql_number(request, MRT_CELL_OWN);
    if (!mrt_sql_number(request, MRT_CELL_SESSION)) {
        mrt_sql_session_ended(store, request);
    } else if (set && mrt_sql_is_null(request, MRT_CELL_VERSION) && command->version == 0) {
        mrt_sql_make(store, request, MRT_SQL_DO_MAKE_CELL, now);
    } else if (set && !own) {
        mrt_sql_fail(store, request,
                     command->fence > 0 && command->fence < fence ? MORTISE_ESTALE
                                                                  : MORTISE_ECONFLICT,
                     "%.100s has been written to by another", command->queue);
    } else if (!set && !mrt_sql_is_null(request, MRT_CELL_VALUE) &&
               !mrt_sql_take_value(request, MRT_CELL_VALUE)) {
        mrt_sql_answer(store, request, MRT_UNKNOWN);
    } else {
        request->event.version = mrt_sql_is_null(request, MRT_CELL_VALUE) ? 0 : version;
        request->event.fence = fence;
        mrt_sql_answer(store, request, MRT_CELL);
    }
}
