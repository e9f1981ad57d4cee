/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells: one row each, which stays when the cell is deleted (value NULL), so that its version
 * and the largest fence it has seen never fall. A write is one transaction. As with
 * tickets, a commit is not synced: a power cut may take the newest ones back, in order.
 */
#include "store/sqlite/observe.h"

#include "store/sqlite/ticket.h"

struct cell {
    uint64_t version, fence;
    struct mrt_id writer;
    bool present;
};

/* The value goes into the answer. */
static enum mrt_outcome read_cell(struct mrt_sqlite_store *store, const char *name,
                                  struct cell *cell, struct mrt_event *answer)
{
    struct mrt_sqlite_db *db = &store->db;
    sqlite3_stmt *row = mrt_sqlite_statement(db, MRT_SQLITE_CELL);
    if (!row)
        return mrt_sqlite_outcome(db);
    *cell = (struct cell){0};
    answer->value = store->value; /* of no bytes, if there is no cell */
    sqlite3_bind_text(row, 1, name, -1, SQLITE_STATIC);
    if (mrt_sqlite_step(db, row) == SQLITE_ROW) {
        cell->version = (uint64_t)sqlite3_column_int64(row, 0);
        cell->fence = (uint64_t)sqlite3_column_int64(row, 1);
        cell->writer = mrt_sqlite_column_id(row, 2);
        cell->present = sqlite3_column_type(row, 3) != SQLITE_NULL;
        mrt_sqlite_take_value(store, row, 3, answer);
    }
    sqlite3_reset(row);
    answer->version = cell->present ? cell->version : 0;
    answer->fence = cell->fence;
    return mrt_sqlite_outcome(db);
}

static enum mrt_outcome write_cell(struct mrt_sqlite_store *store,
                                   const struct mrt_command *command, const struct cell *cell)
{
    struct mrt_sqlite_db *db = &store->db;
    sqlite3_stmt *statement = mrt_sqlite_statement(db, MRT_SQLITE_CELL_WRITE);
    if (!statement)
        return mrt_sqlite_outcome(db);
    sqlite3_bind_text(statement, 1, command->queue, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, (sqlite3_int64)cell->version);
    sqlite3_bind_int64(statement, 3, (sqlite3_int64)cell->fence);
    mrt_sqlite_bind_id(statement, 4, &cell->writer);
    sqlite3_bind_blob(statement, 5, command->value, (int)command->value_size, SQLITE_STATIC);
    return mrt_sqlite_run(db, MRT_SQLITE_CELL_WRITE);
}

/* In a transaction. */
static enum mrt_outcome set(struct mrt_sqlite_store *store, const struct mrt_command *command,
                            struct mrt_event *answer)
{
    struct cell cell;
    enum mrt_outcome outcome = read_cell(store, command->queue, &cell, answer);
    if (outcome != MRT_DONE || mrt_id_equal(cell.writer, command->ticket))
        return outcome; /* in the second case it has been done before */
    if (command->fence > 0 && command->fence < cell.fence)
        answer->error = MORTISE_ESTALE;
    else if (command->version != answer->version)
        answer->error = MORTISE_ECONFLICT;
    if (answer->error != MORTISE_OK) {
        answer->type = MRT_FAILED;
        return MRT_DONE;
    }
    cell.version++;
    cell.fence = cell.fence > command->fence ? cell.fence : command->fence;
    cell.writer = command->ticket;
    answer->version = command->value ? cell.version : 0;
    answer->fence = cell.fence;
    return write_cell(store, command, &cell);
}

enum mrt_outcome mrt_sqlite_cell(struct mrt_sqlite_store *store, const struct mrt_command *command,
                                 mrt_time patience, struct mrt_event *answer)
{
    struct cell cell;
    struct mrt_sqlite_db *db = &store->db;
    answer->type = MRT_CELL;
    db->patience = patience;
    if (command->type == MRT_CELL_GET)
        return read_cell(store, command->queue, &cell, answer);
    enum mrt_outcome outcome = mrt_sqlite_begin(db, patience);
    if (outcome != MRT_DONE)
        return outcome;
    return mrt_sqlite_conclude(db, set(store, command, answer));
}
