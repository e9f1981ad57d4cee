/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to the database: statements and transactions. */
#ifndef MRT_STORE_SQLITE_DB_H
#define MRT_STORE_SQLITE_DB_H

#include "base/id.h"
#include "base/time.h"
#include "base/traffic.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

enum mrt_statement {
    MRT_SQLITE_BEGIN,
    MRT_SQLITE_COMMIT,
    MRT_SQLITE_ROLLBACK,
    MRT_SQLITE_COUNTER, /* -> counter, limit, boot id */
    MRT_SQLITE_COUNT,   /* the number given last */
    MRT_SQLITE_AHEAD, /* queue, number -> number, weight, session, id, kind, capacity, linger, until
                       */
    MRT_SQLITE_BEFORE, /* queue, number -> the same of the ticket just ahead */
    MRT_SQLITE_FROM,   /* queue, number -> number, id, session, weight, revoked: it and the next */
    MRT_SQLITE_PLACE,  /* queue, number -> how many are ahead */
    MRT_SQLITE_INSERT,
    MRT_SQLITE_LIGHTEN,
    MRT_SQLITE_REVOKE,     /* queue, number, number: these and all between */
    MRT_SQLITE_DELETE,     /* queue, number, id */
    MRT_SQLITE_SET_VALUE,  /* queue, number, id, value */
    MRT_SQLITE_FIRST,      /* queue -> number, session, value */
    MRT_SQLITE_CELL,       /* name -> version, fence, writer, value */
    MRT_SQLITE_CELL_WRITE, /* the same, and name first */
    MRT_SQLITE_OF_SESSION, /* session, queue, number, least delay -> queue, number, id, weight,
                           valued: the next */
    MRT_SQLITE_DETACHED,   /* queue, no session, id -> number, kind, capacity, weight */
    MRT_SQLITE_MOVE,       /* queue, number, id; session and id from now on; session so far; delay,
                           linger from now on */
    MRT_SQLITE_LEAVE,      /* queue, number, id, now: it is nobody's from now on, if it holds */
    MRT_SQLITE_OVER, /* queue, now -> number, id, weight, valued: one that has stayed enough */
    MRT_SQLITE_LIST, /* queue -> all from there on, in order */
    MRT_SQLITE_STATEMENTS
};

struct mrt_sqlite_db {
    sqlite3 *handle;
    sqlite3 *checkpointer; /* a second connection, opened when first needed */
    sqlite3_stmt *statements[MRT_SQLITE_STATEMENTS];
    mrt_time patience; /* until when to wait for another writer */
    int frames;        /* in the write-ahead log after the commit just done; 0: none done */
    int checkpoint_at; /* do it when there are so many */
    int checkpoint_step;
    int last_error;
    struct mrt_traffic traffic;            /* statements, and transactions for round trips */
    void (*checkpointing)(void *argument); /* for tests: called just before one */
    void *checkpointing_argument;
};

/* The outcome of a transaction. */
enum mrt_outcome {
    MRT_DONE,
    MRT_BUSY,   /* the patience has run out; nothing done */
    MRT_FULL,   /* no space or no memory; nothing done */
    MRT_BROKEN, /* an I/O error, damage, a change by others: nothing here can be relied on */
};

void mrt_sqlite_db_close(struct mrt_sqlite_db *db);

/* One more connection to the file, set up as ours are; an SQLite result. */
int mrt_sqlite_connect(struct mrt_sqlite_db *db, const char *path, sqlite3 **handle);
/* SQLite's busy handler; 0: patience is over. */
int mrt_sqlite_wait(void *db, int count);
/* Runs a cached statement that gives no rows; a text that is not worth caching. */
enum mrt_outcome mrt_sqlite_run(struct mrt_sqlite_db *db, enum mrt_statement which);
enum mrt_outcome mrt_sqlite_execute(struct mrt_sqlite_db *db, const char *text);
/* A write transaction that is on disk when it is done. */
enum mrt_outcome mrt_sqlite_write_durably(struct mrt_sqlite_db *db, mrt_time patience,
                                          enum mrt_outcome (*write)(struct mrt_sqlite_db *db,
                                                                    void *argument),
                                          void *argument);

/* Whether a commit is on disk when it is done. */
enum mrt_outcome mrt_sqlite_sync(struct mrt_sqlite_db *db, bool on);

/* A write transaction: begin, then commit or roll back. */
enum mrt_outcome mrt_sqlite_begin(struct mrt_sqlite_db *db, mrt_time patience);
enum mrt_outcome mrt_sqlite_commit(struct mrt_sqlite_db *db);
/* Rolls the transaction back, and passes `outcome` on. */
enum mrt_outcome mrt_sqlite_rollback(struct mrt_sqlite_db *db, enum mrt_outcome outcome);
/* Commits if `outcome` is DONE, and else rolls back. */
enum mrt_outcome mrt_sqlite_conclude(struct mrt_sqlite_db *db, enum mrt_outcome outcome);

/* A cached statement, NULL if it cannot be prepared (last_error says why). */
sqlite3_stmt *mrt_sqlite_statement(struct mrt_sqlite_db *db, enum mrt_statement which);
/* One step: SQLITE_ROW, SQLITE_DONE, or another, which last_error keeps. */
int mrt_sqlite_step(struct mrt_sqlite_db *db, sqlite3_stmt *statement);
/* The outcome that last_error stands for. */
enum mrt_outcome mrt_sqlite_outcome(const struct mrt_sqlite_db *db);

/* The id must stay until the statement has been reset. */
void mrt_sqlite_bind_id(sqlite3_stmt *statement, int index, const struct mrt_id *id);
/* Binds the first two parameters; `queue` must stay until the statement has been reset. */
void mrt_sqlite_bind_place(sqlite3_stmt *statement, const char *queue, uint64_t number);
struct mrt_id mrt_sqlite_column_id(sqlite3_stmt *statement, int index);

/* Outside of any transaction: copies the log back if it has grown long. */
void mrt_sqlite_tend(struct mrt_sqlite_db *db);

#endif
