/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tickets: the transactions on the queues, one each.
 *
 * The queue is the rows of its name in the order of their numbers. The store's one
 * counter gives out each number once. So a ticket's number is its place in the order and,
 * shifted, its fence as well; an empty queue leaves no row behind.
 *
 * Every view is read in one statement or one write transaction, and only core/rule.h
 * decides it. Reading stops once the weight counted shuts the ticket out.
 *
 * Watching: the granted tickets are always the first ones of a queue. The first waiter
 * watches all of them; every other waiter watches the ticket just ahead of
 * it. So for each ticket that another waits for, some waiter will find its session dead. A
 * departure that changes whom a waiter must watch wakes it to look (leave.c).
 */
#include "store/sqlite/queue.h"

#include "base/error.h"
#include "core/rule.h"
#include "store/kit/refusal.h"
#include "store/sqlite/death.h"
#include "store/sqlite/delay.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/session.h"
#include "store/sqlite/ticket.h"
#include "store/sqlite/watch.h"

#include <stdlib.h>
#include <string.h>

#define BURIAL_BUSY_RECHECK (20 * MRT_MILLISECOND)

/* ------------------------------------------------------------------ looking */

struct place {
    const char *queue;
    const char *kind; /* NULL: not to be compared */
    uint64_t number, weight, capacity;
};

struct look {
    uint64_t weight_ahead;
    bool granted, mismatch;
    mrt_time until; /* when the first of those goes that were left behind; 0: there is none */
    struct mrt_id linger_session,
        linger_ticket; /* of holders that want to hear that another waits */
};

/* Whether this queue is another kind of lock than we take it for. */
static bool differs(sqlite3_stmt *row, const struct place *place)
{
    const char *kind = (const char *)sqlite3_column_text(row, 4);
    uint64_t capacity = (uint64_t)sqlite3_column_int64(row, 5);
    if (!place->kind || (kind && strcmp(kind, place->kind) == 0 && capacity == place->capacity))
        return false;
    mrt_error(MORTISE_EMISMATCH, MRT_REFUSAL_MISMATCH, place->queue, kind ? kind : "?", capacity,
              place->kind, place->capacity);
    return true;
}

/* A ticket that lingers is the only holder, so it is the first row. The first waiter wakes it. */
static void note_linger(sqlite3_stmt *row, struct look *look)
{
    if (sqlite3_column_int(row, 6) == 0)
        return;
    look->linger_session = mrt_sqlite_column_id(row, 2);
    look->linger_ticket = mrt_sqlite_column_id(row, 3);
}

static void note_until(sqlite3_stmt *row, struct look *look)
{
    mrt_time until = sqlite3_column_int64(row, 7);
    if (until > 0 && (look->until == 0 || until < look->until))
        look->until = until;
}

static bool is_over(const struct look *look)
{
    return look->until > 0 && look->until <= mrt_time_now();
}

/* How long who waits may go without a look. */
static mrt_time recheck(const struct mrt_sqlite_store *store, const struct look *look)
{
    mrt_time longest = mrt_sqlite_recheck(store);
    if (look->until == 0)
        return longest;
    mrt_time left = look->until - mrt_time_now();
    return left < 1 ? 1 : mrt_time_min(longest, left);
}

/* Looks at the ticket just ahead of a place, and counts it alone. */
static enum mrt_outcome look_just_ahead(struct mrt_sqlite_store *store, const struct place *place,
                                        struct look *look)
{
    struct mrt_sqlite_db *db = &store->db;
    sqlite3_stmt *row = mrt_sqlite_statement(db, MRT_SQLITE_BEFORE);
    if (!row)
        return mrt_sqlite_outcome(db);
    mrt_sqlite_bind_place(row, place->queue, place->number);
    bool kept = true;
    *look = (struct look){0};
    store->blockers.count = 0;
    if (mrt_sqlite_step(db, row) == SQLITE_ROW) {
        look->mismatch = differs(row, place);
        note_linger(row, look);
        note_until(row, look);
        look->weight_ahead = (uint64_t)sqlite3_column_int64(row, 1);
        kept = mrt_sqlite_ids_add(&store->blockers, mrt_sqlite_column_id(row, 2));
    }
    sqlite3_reset(row);
    look->granted = !look->mismatch && look->weight_ahead == 0;
    return kept ? mrt_sqlite_outcome(db) : MRT_FULL;
}

/* Looks at all that are ahead, until they are more than the capacity. */
static enum mrt_outcome look_at_all_ahead(struct mrt_sqlite_store *store, const struct place *place,
                                          struct look *look)
{
    struct mrt_sqlite_db *db = &store->db;
    sqlite3_stmt *row = mrt_sqlite_statement(db, MRT_SQLITE_AHEAD);
    if (!row)
        return mrt_sqlite_outcome(db);
    *look = (struct look){0};
    store->blockers.count = 0;
    bool waiters = false, kept = true;
    mrt_sqlite_bind_place(row, place->queue, place->number);
    while (!waiters && !look->mismatch && kept && mrt_sqlite_step(db, row) == SQLITE_ROW) {
        look->mismatch = differs(row, place);
        note_until(row, look);
        look->weight_ahead =
            mrt_sqlite_add_weight(look->weight_ahead, (uint64_t)sqlite3_column_int64(row, 1));
        waiters = look->weight_ahead > place->capacity;
        kept = mrt_sqlite_ids_add(&store->blockers, mrt_sqlite_column_id(row, 2));
    }
    sqlite3_reset(row);
    if (!kept)
        return MRT_FULL;
    look->granted =
        !look->mismatch && mrt_rule_grants(look->weight_ahead, place->weight, place->capacity);
    if (!waiters || look->mismatch || mrt_sqlite_outcome(db) != MRT_DONE)
        return mrt_sqlite_outcome(db);
    struct look nearest;
    return look_just_ahead(store, place, &nearest);
}

/*
 * Looks at what is ahead of a place, and leaves the sessions whose death could matter in
 * store->blockers. A ticket that needs the whole capacity, behind another that does, looks no
 * further: whether that one holds or waits, it is the only one to watch.
 */
static enum mrt_outcome look_ahead(struct mrt_sqlite_store *store, const struct place *place,
                                   struct look *look)
{
    if (place->weight == place->capacity) {
        enum mrt_outcome outcome = look_just_ahead(store, place, look);
        if (outcome != MRT_DONE || look->granted || look->mismatch ||
            look->weight_ahead == place->capacity)
            return outcome;
    }
    return look_at_all_ahead(store, place, look);
}

/* --------------------------------------------------------------- appending */

/*
 * In a transaction: takes out those in the way who are dead. `all`: look at each,
 * not only at those whose end nobody here has been watching for.
 */
static enum mrt_outcome clear_the_way(struct mrt_sqlite_store *store, bool all, bool *cleared)
{
    size_t count;
    *cleared = false;
    for (size_t i = 0; i < store->blockers.count; i++) {
        struct mrt_id session = store->blockers.items[i];
        /* A ticket that will not wait needs no watch. */
        bool look_now = all || mrt_sqlite_watch(store, session);
        if (!look_now || !mrt_sqlite_session_dead(store, session))
            continue;
        enum mrt_outcome outcome = mrt_sqlite_delete_session(store, session, &count);
        if (outcome != MRT_DONE)
            return outcome;
        if (!mrt_sqlite_ids_add(&store->dead, session))
            return MRT_FULL;
        *cleared |= count > 0;
    }
    return MRT_DONE;
}

/* How many wait in the queue. */
static enum mrt_outcome count_waiting(struct mrt_sqlite_store *store, const struct place *place,
                                      uint64_t *waiting)
{
    struct mrt_sqlite_db *db = &store->db;
    sqlite3_stmt *row = mrt_sqlite_statement(db, MRT_SQLITE_AHEAD);
    if (!row)
        return mrt_sqlite_outcome(db);
    uint64_t ahead = 0;
    *waiting = 0;
    mrt_sqlite_bind_place(row, place->queue, place->number);
    while (mrt_sqlite_step(db, row) == SQLITE_ROW) {
        uint64_t weight = (uint64_t)sqlite3_column_int64(row, 1);
        if (*waiting > 0 || !mrt_rule_grants(ahead, weight, place->capacity))
            ++*waiting;
        ahead = mrt_sqlite_add_weight(ahead, weight);
    }
    sqlite3_reset(row);
    return mrt_sqlite_outcome(db);
}

static enum mrt_outcome insert(struct mrt_sqlite_store *store,
                               const struct mrt_sqlite_ticket *ticket,
                               const struct mrt_command *command)
{
    struct mrt_sqlite_db *db = &store->db;
    sqlite3_stmt *statement = mrt_sqlite_statement(db, MRT_SQLITE_INSERT);
    if (!statement)
        return mrt_sqlite_outcome(db);
    mrt_sqlite_bind_place(statement, ticket->queue, ticket->number);
    mrt_sqlite_bind_id(statement, 3, &ticket->id);
    mrt_sqlite_bind_id(statement, 4, &ticket->session->id);
    sqlite3_bind_text(statement, 5, command->kind, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 6, (sqlite3_int64)ticket->capacity);
    sqlite3_bind_int64(statement, 7, (sqlite3_int64)ticket->weight);
    sqlite3_bind_text(statement, 8, store->label, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 9, mrt_time_wall_ms());
    sqlite3_bind_blob(statement, 10, command->value, (int)command->value_size, SQLITE_STATIC);
    sqlite3_bind_int(statement, 11, command->linger);
    sqlite3_bind_int64(statement, 12, command->delay);
    store->observed_change |= ticket->valued;
    return mrt_sqlite_run(db, MRT_SQLITE_INSERT);
}

/* In a transaction: finds out whether the ticket may stand, and writes it. */
static enum mrt_outcome enter(struct mrt_sqlite_store *store, struct mrt_sqlite_ticket *ticket,
                              const struct mrt_command *command, enum mrt_verdict *verdict,
                              struct look *look)
{
    const struct place place = {command->queue, command->kind, MRT_SQLITE_END, command->weight,
                                command->capacity};
    bool cleared = true;
    while (cleared) {
        enum mrt_outcome outcome = look_ahead(store, &place, look);
        if (outcome != MRT_DONE || look->granted)
            cleared = false;
        else
            outcome = clear_the_way(store, look->mismatch || command->try_only, &cleared);
        if (outcome == MRT_DONE && !look->granted && is_over(look))
            outcome = mrt_sqlite_delete_over(store, command->queue, &cleared);
        if (outcome != MRT_DONE)
            return outcome;
    }
    *verdict = look->mismatch                        ? MRT_MISMATCH
               : command->try_only && !look->granted ? MRT_NO_ROOM
                                                     : MRT_IN_QUEUE;
    uint64_t waiting = 0;
    enum mrt_outcome outcome = MRT_DONE;
    if (*verdict == MRT_IN_QUEUE && command->queue_max > 0 && !look->granted)
        outcome = count_waiting(store, &place, &waiting);
    if (waiting > 0 && waiting >= command->queue_max)
        *verdict = MRT_CROWDED;
    if (*verdict != MRT_IN_QUEUE || outcome != MRT_DONE)
        return outcome;
    outcome = mrt_sqlite_next_number(&store->db, &ticket->number);
    if (outcome != MRT_DONE || ticket->number == MRT_SQLITE_LIMIT)
        return outcome;
    if (!look->granted || command->linger)
        mrt_sqlite_listen(store, ticket->session); /* before anybody can send to it */
    mrt_sqlite_wake_later(store, look->linger_session, look->linger_ticket, MRT_SQLITE_LOOK);
    return insert(store, ticket, command);
}

/* Ends the transaction of `enter`: tickets that it removed stay removed even if none was added. */
static enum mrt_outcome end_append(struct mrt_sqlite_store *store, enum mrt_outcome outcome,
                                   bool changed)
{
    if (outcome == MRT_DONE && changed)
        outcome = mrt_sqlite_commit(&store->db);
    else
        outcome = mrt_sqlite_rollback(&store->db, outcome);
    if (outcome == MRT_DONE && changed)
        for (size_t i = 0; i < store->dead.count; i++)
            mrt_sqlite_session_unlink(store, store->dead.items[i]);
    else
        store->wakes.count = 0;
    store->dead.count = 0;
    return outcome;
}

static enum mrt_outcome append_once(struct mrt_sqlite_store *store,
                                    struct mrt_sqlite_ticket *ticket,
                                    const struct mrt_command *command, mrt_time patience,
                                    enum mrt_verdict *verdict, struct look *look)
{
    enum mrt_outcome outcome = mrt_sqlite_begin(&store->db, patience);
    if (outcome != MRT_DONE)
        return outcome;
    outcome = enter(store, ticket, command, verdict, look);
    bool entered = *verdict == MRT_IN_QUEUE && ticket->number != MRT_SQLITE_LIMIT;
    return end_append(store, outcome, entered || store->dead.count > 0);
}

enum mrt_outcome mrt_sqlite_append(struct mrt_sqlite_store *store,
                                   struct mrt_sqlite_session *session,
                                   const struct mrt_command *command, mrt_time patience,
                                   enum mrt_verdict *verdict, struct mrt_sqlite_view *view)
{
    struct look look;
    enum mrt_outcome outcome;
    struct mrt_sqlite_ticket *ticket = mrt_sqlite_ticket_new(session, command);
    if (!ticket)
        return MRT_FULL;
    *verdict = MRT_ABSENT;
    bool is_durable = command->delay > 0 && !command->delay_is_host;
    outcome = is_durable ? mrt_sqlite_sync(&store->db, true) : MRT_DONE;
    while (outcome == MRT_DONE) {
        outcome = append_once(store, ticket, command, patience, verdict, &look);
        if (outcome != MRT_DONE || ticket->number != MRT_SQLITE_LIMIT)
            break;
        outcome = mrt_sqlite_extend(&store->db, patience);
        if (outcome == MRT_DONE && is_durable)
            outcome = mrt_sqlite_sync(&store->db, true); /* extend has ended it */
    }
    int error = store->db.last_error;
    if (is_durable && mrt_sqlite_sync(&store->db, false) != MRT_DONE)
        store->fault = true;
    store->db.last_error = error;
    if (outcome != MRT_DONE || *verdict != MRT_IN_QUEUE) {
        free(ticket);
        return outcome;
    }
    mrt_sqlite_ticket_enter(store, ticket);
    *view = (struct mrt_sqlite_view){.fence = ticket->number << MRT_SQLITE_FENCE_BITS,
                                     .weight_ahead = look.weight_ahead,
                                     .recheck = look.granted ? MRT_SECOND : recheck(store, &look)};
    return MRT_DONE;
}

/* -------------------------------------------------------------- refreshing */

/* Reads the ticket's own row and what is around it, as of one moment. */
static enum mrt_outcome look_around(struct mrt_sqlite_store *store,
                                    const struct mrt_sqlite_ticket *ticket, bool *present,
                                    struct mrt_sqlite_view *view, struct look *look)
{
    struct mrt_sqlite_db *db = &store->db;
    const struct place place = {ticket->queue, NULL, ticket->number, ticket->weight,
                                ticket->capacity};
    sqlite3_stmt *row = mrt_sqlite_statement(db, MRT_SQLITE_FROM);
    if (!row)
        return mrt_sqlite_outcome(db);
    *present = view->others_behind = false;
    mrt_sqlite_bind_place(row, ticket->queue, ticket->number);
    if (mrt_sqlite_step(db, row) == SQLITE_ROW) {
        *present = (uint64_t)sqlite3_column_int64(row, 0) == ticket->number &&
                   mrt_id_equal(mrt_sqlite_column_id(row, 1), ticket->id);
        view->revoked = (uint64_t)sqlite3_column_int64(row, 4);
        view->others_behind = mrt_sqlite_step(db, row) == SQLITE_ROW;
    }
    /* One row is a look at the end; the statement stays open for the same snapshot. */
    enum mrt_outcome outcome = mrt_sqlite_outcome(db);
    if (outcome == MRT_DONE && *present)
        outcome = look_ahead(store, &place, look);
    int error = db->last_error;
    sqlite3_reset(row);
    db->last_error = error;
    return outcome;
}

/* Removes sessions that are found dead; *again: the view is out of date. */
static enum mrt_outcome bury_blockers(struct mrt_sqlite_store *store, mrt_time patience,
                                      bool *again, bool *busy)
{
    *again = false;
    for (size_t i = 0; i < store->blockers.count; i++) {
        struct mrt_id session = store->blockers.items[i];
        mrt_sqlite_watch(store, session);
        if (!mrt_sqlite_session_dead(store, session))
            continue;
        enum mrt_outcome outcome = mrt_sqlite_bury(store, session, patience);
        if (outcome == MRT_BROKEN)
            return outcome;
        if (outcome == MRT_DONE)
            *again = true;
        else
            *busy = true;
    }
    return MRT_DONE;
}

enum mrt_outcome mrt_sqlite_refresh(struct mrt_sqlite_store *store,
                                    struct mrt_sqlite_ticket *ticket, bool watch_closely,
                                    mrt_time patience, enum mrt_verdict *verdict,
                                    struct mrt_sqlite_view *view)
{
    struct look look = {0};
    bool present = false, again = true, busy = false;
    store->db.patience = patience;
    if (watch_closely)
        mrt_sqlite_listen(store, ticket->session); /* before it looks: nothing falls in between */
    while (again) {
        enum mrt_outcome outcome = look_around(store, ticket, &present, view, &look);
        again = false;
        if (outcome == MRT_DONE && present && !look.granted) {
            mrt_sqlite_listen(store, ticket->session);
            outcome = bury_blockers(store, patience, &again, &busy);
            if (outcome == MRT_DONE && is_over(&look)) {
                enum mrt_outcome ended = mrt_sqlite_end_delays(store, ticket->queue, patience);
                again |= ended == MRT_DONE;
                busy |= ended == MRT_BUSY || ended == MRT_FULL;
                outcome = ended == MRT_BROKEN ? ended : outcome;
            }
        }
        if (outcome != MRT_DONE)
            return outcome;
    }
    *verdict = present ? MRT_IN_QUEUE : MRT_ABSENT;
    if (!present)
        return MRT_DONE;
    view->fence = ticket->number << MRT_SQLITE_FENCE_BITS;
    view->weight_ahead = look.weight_ahead;
    view->recheck = look.granted ? MRT_SECOND : busy ? BURIAL_BUSY_RECHECK : recheck(store, &look);
    return MRT_DONE;
}

uint64_t mrt_sqlite_place(struct mrt_sqlite_store *store, const struct mrt_sqlite_ticket *ticket)
{
    uint64_t place = 0;
    sqlite3_stmt *row = mrt_sqlite_statement(&store->db, MRT_SQLITE_PLACE);
    if (!row)
        return 0;
    mrt_sqlite_bind_place(row, ticket->queue, ticket->number);
    if (mrt_sqlite_step(&store->db, row) == SQLITE_ROW)
        place = (uint64_t)sqlite3_column_int64(row, 0);
    sqlite3_reset(row);
    return place;
}
