/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tickets that a dead session leaves behind for a while: rows that are nobody's, as detached ones
 * (detach.c), but with an `until` on the machine's clock. So a waiter finds them in the way as any
 * other ticket. The next reader after the delay removes the ticket: there is no timer. Nobody knows
 * when a process has died, so the time counts from its burial.
 *
 * Invariant: a row with a delay is on disk before its APPEND is answered. So it is there after a
 * power cut too, and begins its time anew then, on the clock of the new boot (schema.c). A delay
 * that protects processes of this host alone (an agent's clients) need not be: they end with it.
 */
#include "store/sqlite/delay.h"

#include "store/sqlite/leave.h"

/* In a transaction. *left: it holds, and stays. */
static enum mrt_outcome leave(struct mrt_sqlite_store *store, const char *queue, uint64_t number,
                              const struct mrt_id *id, bool *left)
{
    struct mrt_sqlite_db *db = &store->db;
    sqlite3_stmt *statement = mrt_sqlite_statement(db, MRT_SQLITE_LEAVE);
    if (!statement)
        return mrt_sqlite_outcome(db);
    mrt_sqlite_bind_place(statement, queue, number);
    mrt_sqlite_bind_id(statement, 3, id);
    sqlite3_bind_int64(statement, 4, mrt_time_now());
    enum mrt_outcome outcome = mrt_sqlite_run(db, MRT_SQLITE_LEAVE);
    *left = sqlite3_changes(db->handle) == 1;
    return outcome;
}

enum mrt_outcome mrt_sqlite_leave_behind(struct mrt_sqlite_store *store, struct mrt_id session,
                                         size_t *count)
{
    char queue[MRT_SQLITE_QUEUE_MAX] = "";
    uint64_t number = 0, weight;
    struct mrt_id id = {0, 0};
    *count = 0;
    for (;;) {
        bool left = false;
        enum mrt_outcome outcome =
            mrt_sqlite_next_of_session(store, session, 1, queue, &number, &id, &weight);
        if (outcome != MRT_DONE || number == 0)
            return outcome;
        outcome = leave(store, queue, number, &id, &left);
        if (outcome == MRT_DONE && left)
            outcome = mrt_sqlite_note_first_waiting(store, queue); /* it is to learn until when */
        if (outcome != MRT_DONE)
            return outcome;
        *count += left;
    }
}

enum mrt_outcome mrt_sqlite_delete_over(struct mrt_sqlite_store *store, const char *queue,
                                        bool *any)
{
    struct mrt_sqlite_db *db = &store->db;
    mrt_time now = mrt_time_now();
    for (;;) {
        sqlite3_stmt *row = mrt_sqlite_statement(db, MRT_SQLITE_OVER);
        if (!row)
            return mrt_sqlite_outcome(db);
        mrt_sqlite_bind_place(row, queue, (uint64_t)now);
        bool found = mrt_sqlite_step(db, row) == SQLITE_ROW;
        uint64_t number = found ? (uint64_t)sqlite3_column_int64(row, 0) : 0;
        struct mrt_id id = mrt_sqlite_column_id(row, 1);
        uint64_t weight = (uint64_t)sqlite3_column_int64(row, 2);
        store->observed_change |= found && sqlite3_column_int(row, 3) != 0;
        sqlite3_reset(row);
        enum mrt_outcome outcome = mrt_sqlite_outcome(db);
        if (outcome == MRT_DONE && found)
            outcome = mrt_sqlite_delete_row(store, queue, number, id, weight);
        if (outcome != MRT_DONE || !found)
            return outcome;
        *any = true;
    }
}

enum mrt_outcome mrt_sqlite_end_delays(struct mrt_sqlite_store *store, const char *queue,
                                       mrt_time patience)
{
    size_t before = store->wakes.count;
    bool any = false;
    enum mrt_outcome outcome = mrt_sqlite_begin(&store->db, patience);
    if (outcome != MRT_DONE)
        return outcome;
    outcome = mrt_sqlite_delete_over(store, queue, &any);
    return mrt_sqlite_end(store, outcome, before);
}
