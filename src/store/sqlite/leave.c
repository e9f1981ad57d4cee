/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tickets leave: released, or at the end of their session. Tickets of a dead session: death.c.
 *
 * A transaction that removes a ticket also finds the tickets that can be granted now and could not
 * before, and notes them in store->wakes. It also notes waiters that must watch another session
 * now: the next after one that gave up waiting, and a waiter that has become the first where
 * several hold, because it watched only the last of them before. The caller wakes them after
 * the commit.
 */
#include "store/sqlite/leave.h"

#include "core/rule.h"
#include "store/sqlite/ticket.h"

#include <string.h>

/* A departure: a ticket, or some of its weight. */
struct departure {
    const char *queue;
    uint64_t number, weight;
};

/* The state of a walk over a queue from its head. */
struct pass {
    uint64_t ahead;
    size_t holders, granted; /* tickets that hold now; of these, granted by this departure */
    bool waited;             /* the departed ticket did not hold */
    bool behind;             /* the row is one that was behind */
    bool ended;              /* the row is the first that waits */
    struct mrt_sqlite_wake *before;
};

static void pass_row(struct mrt_sqlite_store *store, const struct departure *gone,
                     sqlite3_stmt *row, struct pass *pass)
{
    uint64_t weight = (uint64_t)sqlite3_column_int64(row, 1);
    uint64_t capacity = (uint64_t)sqlite3_column_int64(row, 5);
    bool first_behind = !pass->behind;
    pass->behind = (uint64_t)sqlite3_column_int64(row, 0) > gone->number;
    pass->ended = !mrt_rule_grants(pass->ahead, weight, capacity);
    if (pass->behind && first_behind)
        pass->waited = !mrt_rule_grants(pass->ahead, gone->weight, capacity);
    if (pass->before)
        pass->before->place.others_behind = 1;
    pass->before = NULL;
    if (pass->ended)
        return;
    uint64_t was_ahead = mrt_sqlite_add_weight(pass->ahead, gone->weight);
    if (pass->behind && !mrt_rule_grants(was_ahead, weight, capacity)) {
        pass->before = mrt_sqlite_wake_later(store, mrt_sqlite_column_id(row, 2),
                                             mrt_sqlite_column_id(row, 3), pass->ahead);
        pass->granted++;
    }
    pass->ahead = mrt_sqlite_add_weight(pass->ahead, weight);
    pass->holders++;
}

/* Whether the first that waits, which was behind, watches others than it should. */
static bool watches_wrongly(const struct pass *pass)
{
    if (pass->granted == 0)
        return pass->waited;  /* it was behind the one that has gone */
    return pass->holders > 1; /* it was no first one, so it watches but the last of them */
}

/* Notes the one just behind a place. */
static enum mrt_outcome note_next(struct mrt_sqlite_store *store, const struct departure *gone)
{
    struct mrt_sqlite_db *db = &store->db;
    sqlite3_stmt *row = mrt_sqlite_statement(db, MRT_SQLITE_FROM);
    if (!row)
        return mrt_sqlite_outcome(db);
    mrt_sqlite_bind_place(row, gone->queue, gone->number + 1);
    if (mrt_sqlite_step(db, row) == SQLITE_ROW)
        mrt_sqlite_wake_later(store, mrt_sqlite_column_id(row, 2), mrt_sqlite_column_id(row, 1),
                              MRT_SQLITE_LOOK);
    sqlite3_reset(row);
    return mrt_sqlite_outcome(db);
}

/*
 * Notes for waking who can be granted now, and could not before; and the one who has
 * somebody else to watch now.
 */
static enum mrt_outcome note_successors(struct mrt_sqlite_store *store,
                                        const struct departure *gone)
{
    struct mrt_sqlite_db *db = &store->db;
    struct pass pass = {0};
    sqlite3_stmt *row = mrt_sqlite_statement(db, MRT_SQLITE_AHEAD);
    if (!row)
        return mrt_sqlite_outcome(db);
    mrt_sqlite_bind_place(row, gone->queue, MRT_SQLITE_END);
    while (!pass.ended && mrt_sqlite_step(db, row) == SQLITE_ROW)
        pass_row(store, gone, row, &pass);
    if (pass.ended && pass.behind && watches_wrongly(&pass))
        mrt_sqlite_wake_row(store, row);
    sqlite3_reset(row);
    if (pass.ended && !pass.behind && mrt_sqlite_outcome(db) == MRT_DONE)
        return note_next(store, gone);
    return mrt_sqlite_outcome(db);
}

enum mrt_outcome mrt_sqlite_delete_row(struct mrt_sqlite_store *store, const char *queue,
                                       uint64_t number, struct mrt_id id, uint64_t weight)
{
    struct mrt_sqlite_db *db = &store->db;
    sqlite3_stmt *statement = mrt_sqlite_statement(db, MRT_SQLITE_DELETE);
    if (!statement)
        return mrt_sqlite_outcome(db);
    mrt_sqlite_bind_place(statement, queue, number);
    mrt_sqlite_bind_id(statement, 3, &id);
    enum mrt_outcome outcome = mrt_sqlite_run(db, MRT_SQLITE_DELETE);
    if (outcome != MRT_DONE || sqlite3_changes(db->handle) == 0)
        return outcome; /* somebody else has taken it out, and told */
    return note_successors(store, &(struct departure){queue, number, weight});
}

/* Ends a transaction. If it failed its wakes are dropped, because a wake would be a grant. */
enum mrt_outcome mrt_sqlite_end(struct mrt_sqlite_store *store, enum mrt_outcome outcome,
                                size_t noted_before)
{
    outcome = mrt_sqlite_conclude(&store->db, outcome);
    if (outcome != MRT_DONE)
        store->wakes.count = noted_before;
    return outcome;
}

enum mrt_outcome mrt_sqlite_remove(struct mrt_sqlite_store *store, struct mrt_sqlite_ticket *ticket,
                                   mrt_time patience)
{
    size_t before = store->wakes.count;
    enum mrt_outcome outcome = mrt_sqlite_begin(&store->db, patience);
    if (outcome != MRT_DONE)
        return outcome;
    outcome =
        mrt_sqlite_delete_row(store, ticket->queue, ticket->number, ticket->id, ticket->weight);
    store->observed_change |= ticket->valued;
    outcome = mrt_sqlite_end(store, outcome, before);
    if (outcome == MRT_DONE)
        mrt_sqlite_ticket_free(store, ticket);
    return outcome;
}

/* In a transaction: finds the ticket, takes it out, and notes who had it. */
static enum mrt_outcome break_row(struct mrt_sqlite_store *store, const char *queue,
                                  uint64_t number, bool *found)
{
    struct mrt_sqlite_db *db = &store->db;
    struct mrt_id id = {0, 0}, session = {0, 0};
    uint64_t weight = 0;
    sqlite3_stmt *row = mrt_sqlite_statement(db, MRT_SQLITE_FROM);
    if (!row)
        return mrt_sqlite_outcome(db);
    mrt_sqlite_bind_place(row, queue, number);
    if (mrt_sqlite_step(db, row) == SQLITE_ROW &&
        (uint64_t)sqlite3_column_int64(row, 0) == number) {
        *found = true;
        id = mrt_sqlite_column_id(row, 1);
        session = mrt_sqlite_column_id(row, 2);
        weight = (uint64_t)sqlite3_column_int64(row, 3);
    }
    sqlite3_reset(row);
    enum mrt_outcome outcome = mrt_sqlite_outcome(db);
    if (outcome != MRT_DONE || !*found)
        return outcome;
    mrt_sqlite_wake_later(store, session, id, MRT_SQLITE_LOOK);
    return mrt_sqlite_delete_row(store, queue, number, id, weight);
}

enum mrt_outcome mrt_sqlite_break_number(struct mrt_sqlite_store *store, const char *queue,
                                         uint64_t number, mrt_time patience, bool *found)
{
    size_t before = store->wakes.count;
    *found = false;
    store->observed_change = true; /* it may have a value */
    enum mrt_outcome outcome = mrt_sqlite_begin(&store->db, patience);
    return outcome == MRT_DONE
               ? mrt_sqlite_end(store, break_row(store, queue, number, found), before)
               : outcome;
}

/* In a transaction. */
static enum mrt_outcome lighten_row(struct mrt_sqlite_store *store,
                                    const struct mrt_sqlite_ticket *ticket, uint64_t weight)
{
    struct mrt_sqlite_db *db = &store->db;
    sqlite3_stmt *statement = mrt_sqlite_statement(db, MRT_SQLITE_LIGHTEN);
    if (!statement)
        return mrt_sqlite_outcome(db);
    mrt_sqlite_bind_place(statement, ticket->queue, ticket->number);
    mrt_sqlite_bind_id(statement, 3, &ticket->id);
    sqlite3_bind_int64(statement, 4, (sqlite3_int64)weight);
    enum mrt_outcome outcome = mrt_sqlite_run(db, MRT_SQLITE_LIGHTEN);
    if (outcome != MRT_DONE || sqlite3_changes(db->handle) == 0)
        return outcome;
    return note_successors(
        store, &(struct departure){ticket->queue, ticket->number, ticket->weight - weight});
}

enum mrt_outcome mrt_sqlite_lighten(struct mrt_sqlite_store *store,
                                    struct mrt_sqlite_ticket *ticket, uint64_t weight,
                                    mrt_time patience)
{
    size_t before = store->wakes.count;
    if (weight >= ticket->weight)
        return MRT_DONE;
    enum mrt_outcome outcome = mrt_sqlite_begin(&store->db, patience);
    if (outcome != MRT_DONE)
        return outcome;
    outcome = mrt_sqlite_end(store, lighten_row(store, ticket, weight), before);
    if (outcome == MRT_DONE)
        ticket->weight = weight;
    return outcome;
}

enum mrt_outcome mrt_sqlite_remove_all(struct mrt_sqlite_store *store,
                                       struct mrt_sqlite_session *session, mrt_time patience)
{
    struct mrt_sqlite_ticket *ticket;
    size_t before = store->wakes.count;
    if (TAILQ_EMPTY(&session->tickets))
        return MRT_DONE;
    enum mrt_outcome outcome = mrt_sqlite_begin(&store->db, patience);
    if (outcome != MRT_DONE)
        return outcome;
    TAILQ_FOREACH (ticket, &session->tickets, link) {
        outcome =
            mrt_sqlite_delete_row(store, ticket->queue, ticket->number, ticket->id, ticket->weight);
        store->observed_change |= ticket->valued;
        if (outcome != MRT_DONE)
            break;
    }
    return mrt_sqlite_end(store, outcome, before);
}

enum mrt_outcome mrt_sqlite_next_of_session(struct mrt_sqlite_store *store, struct mrt_id session,
                                            mrt_time delay, char queue[MRT_SQLITE_QUEUE_MAX],
                                            uint64_t *number, struct mrt_id *id, uint64_t *weight)
{
    struct mrt_sqlite_db *db = &store->db;
    sqlite3_stmt *row = mrt_sqlite_statement(db, MRT_SQLITE_OF_SESSION);
    if (!row)
        return mrt_sqlite_outcome(db);
    mrt_sqlite_bind_id(row, 1, &session);
    sqlite3_bind_text(row, 2, queue, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(row, 3, (sqlite3_int64)*number);
    sqlite3_bind_int64(row, 4, delay);
    *number = 0;
    if (mrt_sqlite_step(db, row) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(row, 0);
        size_t size = name ? strlen(name) + 1 : 0;
        if (size > 0 && size <= MRT_SQLITE_QUEUE_MAX) {
            memcpy(queue, name, size);
            *number = (uint64_t)sqlite3_column_int64(row, 1);
            *id = mrt_sqlite_column_id(row, 2);
            *weight = (uint64_t)sqlite3_column_int64(row, 3);
            store->observed_change |= sqlite3_column_int(row, 4) != 0;
        } else {
            db->last_error = name ? SQLITE_CORRUPT : SQLITE_NOMEM;
        }
    }
    sqlite3_reset(row);
    return mrt_sqlite_outcome(db);
}

bool mrt_sqlite_step_holder(struct mrt_sqlite_db *db, sqlite3_stmt *row, uint64_t *ahead)
{
    if (mrt_sqlite_step(db, row) != SQLITE_ROW)
        return false;
    uint64_t weight = (uint64_t)sqlite3_column_int64(row, 1);
    if (!mrt_rule_grants(*ahead, weight, (uint64_t)sqlite3_column_int64(row, 5)))
        return false;
    *ahead = mrt_sqlite_add_weight(*ahead, weight);
    return true;
}

void mrt_sqlite_wake_row(struct mrt_sqlite_store *store, sqlite3_stmt *row)
{
    mrt_sqlite_wake_later(store, mrt_sqlite_column_id(row, 2), mrt_sqlite_column_id(row, 3),
                          MRT_SQLITE_LOOK);
}

enum mrt_outcome mrt_sqlite_note_first_waiting(struct mrt_sqlite_store *store, const char *queue)
{
    struct mrt_sqlite_db *db = &store->db;
    uint64_t ahead = 0;
    sqlite3_stmt *row = mrt_sqlite_statement(db, MRT_SQLITE_AHEAD);
    if (!row)
        return mrt_sqlite_outcome(db);
    mrt_sqlite_bind_place(row, queue, MRT_SQLITE_END);
    while (mrt_sqlite_step_holder(db, row, &ahead))
        continue;
    if (sqlite3_data_count(row) > 0)
        mrt_sqlite_wake_row(store, row);
    sqlite3_reset(row);
    return mrt_sqlite_outcome(db);
}
