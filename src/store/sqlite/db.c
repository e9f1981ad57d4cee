/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection to the database: its statements, transactions and checkpoints.
 *
 * Busy. A write transaction begins with BEGIN IMMEDIATE: one that begins as a reader
 * and wants to write later is refused at once, whatever its patience, when somebody else
 * wrote in between. While another writes we yield for about the time of a transaction:
 * a client that slept instead would lose several turns to the other. Then we
 * sleep 20 to 200 us at a time until the caller's patience ends.
 *
 * Checkpoints. SQLite 3.7.0 to 3.51.2 can lose pages when a checkpoint overlaps a commit
 * that starts the log anew (the "WAL-reset" bug). The checkpoint modes that block writers
 * are no cure: they fall back to PASSIVE, silently, when they do not get the writer's
 * lock in time. So automatic checkpoints are off, none is done at close, and ours are
 * done inside a write transaction of our own, by a second connection: nobody can commit
 * meanwhile, and nobody else can be checkpointing.
 *
 * Any other result than "done", "busy" and "full" means that the file cannot be relied on.
 */
#include "store/sqlite/db.h"

#include <sched.h>
#include <string.h>
#include <time.h>

static const char *const texts[MRT_SQLITE_STATEMENTS] = {
    [MRT_SQLITE_BEGIN] = "BEGIN IMMEDIATE",
    [MRT_SQLITE_COMMIT] = "COMMIT",
    [MRT_SQLITE_ROLLBACK] = "ROLLBACK",
    [MRT_SQLITE_COUNTER] = "SELECT weight, capacity, id, since FROM mortise_ticket"
                           " WHERE queue = '' AND number = 0",
    /* Without RETURNING, which makes a temporary table each time: 30 us. */
    [MRT_SQLITE_COUNT] = "UPDATE mortise_ticket SET weight = ?1 WHERE queue = '' AND number = 0",
    [MRT_SQLITE_AHEAD] =
        "SELECT number, weight, session, id, kind, capacity, linger, until FROM mortise_ticket"
        " WHERE queue = ?1 AND number < ?2 ORDER BY number",
    [MRT_SQLITE_BEFORE] =
        "SELECT number, weight, session, id, kind, capacity, linger, until FROM mortise_ticket"
        " WHERE queue = ?1 AND number < ?2 ORDER BY number DESC LIMIT 1",
    [MRT_SQLITE_FROM] = "SELECT number, id, session, weight, revoked FROM mortise_ticket"
                        " WHERE queue = ?1 AND number >= ?2 ORDER BY number LIMIT 2",
    [MRT_SQLITE_PLACE] = "SELECT count(*) FROM mortise_ticket WHERE queue = ?1 AND number < ?2",
    [MRT_SQLITE_INSERT] =
        "INSERT INTO mortise_ticket"
        " (queue, number, id, session, kind, capacity, weight, label, since, value,"
        " linger, delay)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    [MRT_SQLITE_LIGHTEN] = "UPDATE mortise_ticket SET weight = ?4"
                           " WHERE queue = ?1 AND number = ?2 AND id = ?3 AND weight > ?4",
    [MRT_SQLITE_REVOKE] = "UPDATE mortise_ticket SET revoked = revoked + 1"
                          " WHERE queue = ?1 AND number BETWEEN ?2 AND ?3",
    [MRT_SQLITE_DELETE] = "DELETE FROM mortise_ticket WHERE queue = ?1 AND number = ?2 AND id = ?3",
    [MRT_SQLITE_SET_VALUE] = "UPDATE mortise_ticket SET value = ?4"
                             " WHERE queue = ?1 AND number = ?2 AND id = ?3",
    [MRT_SQLITE_FIRST] = "SELECT number, session, value FROM mortise_ticket"
                         " WHERE queue = ?1 AND number > 0 ORDER BY number LIMIT 1",
    [MRT_SQLITE_CELL] = "SELECT version, fence, writer, value FROM mortise_cell WHERE name = ?1",
    [MRT_SQLITE_CELL_WRITE] = "INSERT OR REPLACE INTO mortise_cell"
                              " (name, version, fence, writer, value) VALUES (?1, ?2, ?3, ?4, ?5)",
    [MRT_SQLITE_OF_SESSION] = "SELECT queue, number, id, weight, value IS NOT NULL"
                              " FROM mortise_ticket"
                              " WHERE session = ?1 AND (queue, number) > (?2, ?3) AND delay >= ?4"
                              " ORDER BY queue, number LIMIT 1",
    [MRT_SQLITE_DETACHED] = "SELECT number, kind, capacity, weight FROM mortise_ticket"
                            " WHERE queue = ?1 AND number > 0 AND session = ?2 AND id = ?3"
                            " AND until = 0",
    [MRT_SQLITE_MOVE] = "UPDATE mortise_ticket SET session = ?4, id = ?5, linger = ?8, delay = ?7"
                        " WHERE queue = ?1 AND number = ?2 AND id = ?3 AND session = ?6",
    [MRT_SQLITE_LEAVE] = "UPDATE mortise_ticket"
                         " SET session = zeroblob(16), linger = 0, until = ?4 + delay"
                         " WHERE queue = ?1 AND number = ?2 AND id = ?3 AND capacity >="
                         " (SELECT sum(weight) FROM mortise_ticket"
                         " WHERE queue = ?1 AND number <= ?2)",
    [MRT_SQLITE_OVER] = "SELECT number, id, weight, value IS NOT NULL FROM mortise_ticket"
                        " WHERE queue = ?1 AND number > 0 AND until BETWEEN 1 AND ?2 LIMIT 1",
    [MRT_SQLITE_LIST] =
        "SELECT queue, number, session, kind, capacity, weight, label, since, until,"
        " delay, id"
        " FROM mortise_ticket WHERE queue >= ?1 AND queue > ''"
        " ORDER BY queue, number",
};

/* ------------------------------------------------------------------ basics */

#define YIELDS 40 /* about as long as a transaction takes */

int mrt_sqlite_wait(void *argument, int count)
{
    const struct mrt_sqlite_db *db = argument;
    if (count < YIELDS) {
        sched_yield();
        return 1;
    }
    mrt_time now = mrt_time_now();
    if (now >= db->patience)
        return 0;
    /* After some milliseconds leave the processors to the writer, or a crowd starves it. */
    int slept = count - YIELDS;
    int doublings = slept < 50 ? 0 : slept < 130 ? (slept - 50) / 16 : 5;
    /* The clock's low digits keep many waiters out of step. */
    struct timespec pause = {0, 20 * MRT_MICROSECOND + now % (180 * MRT_MICROSECOND << doublings)};
    nanosleep(&pause, NULL);
    return 1;
}

static int note_commit(void *argument, sqlite3 *handle, const char *name, int frames)
{
    struct mrt_sqlite_db *db = argument;
    (void)handle;
    (void)name;
    db->frames = frames;
    return SQLITE_OK;
}

enum mrt_outcome mrt_sqlite_outcome(const struct mrt_sqlite_db *db)
{
    switch (db->last_error & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return MRT_DONE;
    case SQLITE_BUSY: /* also _SNAPSHOT and _RECOVERY */
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL: /* lost a race for the log's index too often */
        return MRT_BUSY;
    case SQLITE_FULL:
    case SQLITE_NOMEM:
        return MRT_FULL;
    default:
        return MRT_BROKEN;
    }
}

sqlite3_stmt *mrt_sqlite_statement(struct mrt_sqlite_db *db, enum mrt_statement which)
{
    if (!db->statements[which])
        db->last_error = sqlite3_prepare_v3(db->handle, texts[which], -1, SQLITE_PREPARE_PERSISTENT,
                                            &db->statements[which], NULL);
    return db->statements[which];
}

int mrt_sqlite_step(struct mrt_sqlite_db *db, sqlite3_stmt *statement)
{
    if (!sqlite3_stmt_busy(statement)) { /* it begins, and is no further row */
        mrt_traffic_add(&db->traffic.requests, 1);
        mrt_traffic_add(&db->traffic.round_trips, sqlite3_get_autocommit(db->handle) != 0);
    }
    return db->last_error = sqlite3_step(statement);
}

enum mrt_outcome mrt_sqlite_run(struct mrt_sqlite_db *db, enum mrt_statement which)
{
    sqlite3_stmt *statement = mrt_sqlite_statement(db, which);
    if (!statement)
        return mrt_sqlite_outcome(db);
    mrt_sqlite_step(db, statement);
    sqlite3_reset(statement);
    return mrt_sqlite_outcome(db);
}

enum mrt_outcome mrt_sqlite_execute(struct mrt_sqlite_db *db, const char *text)
{
    db->last_error = sqlite3_exec(db->handle, text, NULL, NULL, NULL);
    return mrt_sqlite_outcome(db);
}

void mrt_sqlite_bind_id(sqlite3_stmt *statement, int index, const struct mrt_id *id)
{
    sqlite3_bind_blob(statement, index, id, sizeof *id, SQLITE_STATIC);
}

struct mrt_id mrt_sqlite_column_id(sqlite3_stmt *statement, int index)
{
    struct mrt_id id = {0, 0};
    const void *bytes = sqlite3_column_blob(statement, index);
    if (bytes && sqlite3_column_bytes(statement, index) == (int)sizeof id)
        memcpy(&id, bytes, sizeof id);
    return id;
}

void mrt_sqlite_bind_place(sqlite3_stmt *statement, const char *queue, uint64_t number)
{
    sqlite3_bind_text(statement, 1, queue, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, (sqlite3_int64)number);
}

/* ------------------------------------------------------------ transactions */

enum mrt_outcome mrt_sqlite_begin(struct mrt_sqlite_db *db, mrt_time patience)
{
    db->patience = patience;
    return mrt_sqlite_run(db, MRT_SQLITE_BEGIN);
}

enum mrt_outcome mrt_sqlite_rollback(struct mrt_sqlite_db *db, enum mrt_outcome outcome)
{
    int error = db->last_error; /* the source of `outcome` */
    if (!sqlite3_get_autocommit(db->handle) && mrt_sqlite_run(db, MRT_SQLITE_ROLLBACK) != MRT_DONE)
        outcome = MRT_BROKEN;
    else
        db->last_error = error;
    return outcome;
}

enum mrt_outcome mrt_sqlite_commit(struct mrt_sqlite_db *db)
{
    enum mrt_outcome outcome = mrt_sqlite_run(db, MRT_SQLITE_COMMIT);
    return outcome == MRT_DONE ? MRT_DONE : mrt_sqlite_rollback(db, outcome);
}

enum mrt_outcome mrt_sqlite_conclude(struct mrt_sqlite_db *db, enum mrt_outcome outcome)
{
    return outcome == MRT_DONE ? mrt_sqlite_commit(db) : mrt_sqlite_rollback(db, outcome);
}

enum mrt_outcome mrt_sqlite_sync(struct mrt_sqlite_db *db, bool on)
{
    return mrt_sqlite_execute(db, on ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
}

enum mrt_outcome mrt_sqlite_write_durably(struct mrt_sqlite_db *db, mrt_time patience,
                                          enum mrt_outcome (*write)(struct mrt_sqlite_db *db,
                                                                    void *argument),
                                          void *argument)
{
    enum mrt_outcome outcome = mrt_sqlite_sync(db, true);
    if (outcome == MRT_DONE)
        outcome = mrt_sqlite_begin(db, patience);
    if (outcome == MRT_DONE)
        outcome = mrt_sqlite_conclude(db, write(db, argument));
    int error = db->last_error;
    enum mrt_outcome back = mrt_sqlite_sync(db, false);
    if (outcome == MRT_DONE)
        return back;
    db->last_error = error;
    return outcome;
}

/* -------------------------------------------------------------------- open */

int mrt_sqlite_connect(struct mrt_sqlite_db *db, const char *path, sqlite3 **handle)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW |
                      SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE;
    db->last_error = sqlite3_open_v2(path, handle, flags, NULL);
    if (db->last_error == SQLITE_OK)
        db->last_error = sqlite3_db_config(*handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (db->last_error == SQLITE_OK) {
        sqlite3_busy_handler(*handle, mrt_sqlite_wait, db);
        /* This also takes the place of the automatic checkpoints. */
        sqlite3_wal_hook(*handle, note_commit, db);
    }
    return db->last_error;
}

void mrt_sqlite_db_close(struct mrt_sqlite_db *db)
{
    for (size_t i = 0; i < MRT_SQLITE_STATEMENTS; i++)
        sqlite3_finalize(db->statements[i]);
    sqlite3_close(db->checkpointer);
    sqlite3_close(db->handle);
    memset(db, 0, sizeof *db);
}

/* -------------------------------------------------------------- checkpoint */

/* Makes the connection that checkpoints; one knows of the log once it has read. */
static bool open_checkpointer(struct mrt_sqlite_db *db)
{
    sqlite3 *handle = NULL;
    const char *path = sqlite3_db_filename(db->handle, "main");
    if (path && mrt_sqlite_connect(db, path, &handle) == SQLITE_OK &&
        sqlite3_exec(handle, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL) == SQLITE_OK) {
        db->checkpointer = handle;
        return true;
    }
    sqlite3_close(handle);
    return false;
}

void mrt_sqlite_tend(struct mrt_sqlite_db *db)
{
    int total = 0, copied = 0, frames = db->frames;
    if (frames > 0 && frames < db->checkpoint_step)
        db->checkpoint_at = db->checkpoint_step; /* the log has been started anew */
    if (frames < db->checkpoint_at)
        return;
    if (!db->checkpointer && !open_checkpointer(db))
        return;
    if (mrt_sqlite_begin(db, 0) != MRT_DONE)
        return; /* another time */
    if (db->checkpointing)
        db->checkpointing(db->checkpointing_argument);
    int result = sqlite3_wal_checkpoint_v2(db->checkpointer, NULL, SQLITE_CHECKPOINT_PASSIVE,
                                           &total, &copied);
    mrt_sqlite_rollback(db, MRT_DONE);
    /* A reader that has stopped holds the log back; do not sync for nothing at each commit. */
    bool complete = result == SQLITE_OK && total == copied;
    db->checkpoint_at = complete ? db->checkpoint_step : frames + db->checkpoint_step;
}
