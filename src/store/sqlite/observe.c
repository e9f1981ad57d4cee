/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first ticket of a queue whose tickets have values, and news of its change.
 *
 * Observers leave nothing in the database, so they cost other locks nothing. Beside the
 * session files is one more file, made by the first observer. A client that has added, removed
 * or changed a ticket with a value touches that file after the commit, and file events tell
 * all observers in this database. The file is watched before the queue is
 * read, so no change is missed in between. Observers then read for themselves; elections change
 * rarely. A death makes no commit: an observer watches the session that it has seen, and buries it.
 *
 * In any case an observer looks again once a second, or ten times where file events are refused.
 */
#include "store/sqlite/observe.h"

#include "store/kit/job.h"
#include "store/sqlite/death.h"
#include "store/sqlite/session.h"
#include "store/sqlite/ticket.h"
#include "store/sqlite/watch.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#define OBSERVED "observed"

/* ------------------------------------------------------------------ telling */

void mrt_sqlite_tell_change(struct mrt_sqlite_store *store)
{
    if (!store->observed_change)
        return;
    store->observed_change = false;
    /* If it does not exist nobody observes. */
    utimensat(store->file.sessions_fd, OBSERVED, NULL, AT_SYMLINK_NOFOLLOW);
}

/* Each is told once; it asks anew if it wants to know more. */
void mrt_sqlite_changed(struct mrt_sqlite_store *store)
{
    struct mrt_sqlite_observer *observer;
    TAILQ_HEAD(, mrt_sqlite_observer) told = TAILQ_HEAD_INITIALIZER(told);
    TAILQ_CONCAT(&told, &store->observers, link);
    while ((observer = TAILQ_FIRST(&told))) {
        TAILQ_REMOVE(&told, observer, link);
        mrt_sink_deliver(&store->sink, (struct mrt_event){.type = MRT_CHANGED,
                                                          .session = observer->session,
                                                          .ticket = observer->id});
        free(observer);
    }
}

/* If memory or file events are lacking, the observer finds changes by looking again. */
static void listen_for_changes(struct mrt_sqlite_store *store, const struct mrt_command *command)
{
    struct mrt_sqlite_observer *observer;
    if (store->observed_wd < 0) {
        mknodat(store->file.sessions_fd, OBSERVED, S_IFREG | 0600, 0);
        store->observed_wd = mrt_sqlite_watch_file(store, OBSERVED, IN_ATTRIB | IN_DELETE_SELF);
        store->no_events |= store->observed_wd < 0;
    }
    TAILQ_FOREACH (observer, &store->observers, link)
        if (mrt_id_equal(observer->id, command->ticket))
            return;
    observer = calloc(1, sizeof *observer);
    if (!observer)
        return;
    observer->session = command->session;
    observer->id = command->ticket;
    TAILQ_INSERT_TAIL(&store->observers, observer, link);
}

/* ------------------------------------------------------------------ looking */

/* The first ticket; number 0: there is none. */
static enum mrt_outcome read_first(struct mrt_sqlite_store *store, const char *queue,
                                   uint64_t *number, struct mrt_id *session,
                                   struct mrt_event *answer)
{
    struct mrt_sqlite_db *db = &store->db;
    sqlite3_stmt *row = mrt_sqlite_statement(db, MRT_SQLITE_FIRST);
    if (!row)
        return mrt_sqlite_outcome(db);
    *number = 0;
    sqlite3_bind_text(row, 1, queue, -1, SQLITE_STATIC);
    if (mrt_sqlite_step(db, row) == SQLITE_ROW) {
        *number = (uint64_t)sqlite3_column_int64(row, 0);
        *session = mrt_sqlite_column_id(row, 1);
        mrt_sqlite_take_value(store, row, 2, answer);
    }
    sqlite3_reset(row);
    return mrt_sqlite_outcome(db);
}

enum mrt_outcome mrt_sqlite_observe(struct mrt_sqlite_store *store,
                                    const struct mrt_command *command, mrt_time patience,
                                    struct mrt_event *answer)
{
    uint64_t number = 0;
    struct mrt_id session;
    enum mrt_outcome outcome = MRT_DONE;
    store->db.patience = patience;
    if (!command->once)
        listen_for_changes(store, command);
    while (outcome == MRT_DONE) {
        outcome = read_first(store, command->queue, &number, &session, answer);
        if (outcome != MRT_DONE || number == 0)
            break;
        if (!command->once)
            mrt_sqlite_watch(store, session);
        if (!mrt_sqlite_session_dead(store, session))
            break;
        outcome = mrt_sqlite_bury(store, session, patience);
    }
    answer->fence = number << MRT_SQLITE_FENCE_BITS;
    answer->recheck = mrt_sqlite_recheck(store);
    return outcome;
}

enum mrt_outcome mrt_sqlite_set_value(struct mrt_sqlite_store *store,
                                      const struct mrt_sqlite_ticket *ticket, const void *value,
                                      size_t size, mrt_time patience)
{
    struct mrt_sqlite_db *db = &store->db;
    sqlite3_stmt *statement = mrt_sqlite_statement(db, MRT_SQLITE_SET_VALUE);
    if (!statement)
        return mrt_sqlite_outcome(db);
    enum mrt_outcome outcome = mrt_sqlite_begin(db, patience);
    if (outcome != MRT_DONE)
        return outcome;
    mrt_sqlite_bind_place(statement, ticket->queue, ticket->number);
    mrt_sqlite_bind_id(statement, 3, &ticket->id);
    sqlite3_bind_blob(statement, 4, value, (int)size, SQLITE_STATIC);
    outcome = mrt_sqlite_conclude(db, mrt_sqlite_run(db, MRT_SQLITE_SET_VALUE));
    store->observed_change |= outcome == MRT_DONE;
    return outcome;
}
