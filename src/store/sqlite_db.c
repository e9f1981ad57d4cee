/*
 * The connection to the database.
 *
 * One table holds the tickets, in the order of (queue, number), and in its first row
 * the counter that numbers them, so that taking a ticket in a short queue writes one
 * page:
 *
 *   ('', 0): weight = last number given, capacity = the limit, id = boot id,
 *            since = version of this format
 *
 * Busy. A write transaction begins with BEGIN IMMEDIATE: one that begins as a reader
 * and wants to write later is refused at once, whatever its patience, when somebody else
 * wrote in between. While another writes we yield three times, since a transaction takes
 * microseconds, then sleep 20 to 200 us at a time until the caller's patience ends.
 *
 * Fences. A commit is not synced to disk (synchronous=NORMAL), so a power cut may undo
 * the last ones and set the counter back. Numbers are therefore only given
 * below a limit, and the limit is raised by a block at a time in a transaction that is
 * synced (FULL). When the database is opened under another boot id than it was
 * last used under, every session in it is dead, and the counter goes on from the
 * limit. No clock has a say in it.
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
#include "base/assert.h"
#include "base/error.h"
#include "store/sqlite_internal.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define APPLICATION_ID "1836020339" /* "mort" + "is", as SQLite wants it: a number */
#define FORMAT "1"
#define LONG_LIVED_FRAMES 1000
#define SHORT_LIVED_FRAMES 64
#define NUMBER_MAX (INT64_C(1) << 46)

static const char *const texts[MRT_SQL_STATEMENTS] = {
    [MRT_SQL_BEGIN] = "BEGIN IMMEDIATE",
    [MRT_SQL_COMMIT] = "COMMIT",
    [MRT_SQL_ROLLBACK] = "ROLLBACK",
    [MRT_SQL_COUNTER] = "SELECT weight, capacity, id, since FROM mortise_ticket"
                        " WHERE queue = '' AND number = 0",
    /* Without RETURNING, which makes a temporary table each time: 30 us. */
    [MRT_SQL_COUNT] = "UPDATE mortise_ticket SET weight = ?1 WHERE queue = '' AND number = 0",
    [MRT_SQL_AHEAD] = "SELECT number, weight, session, id, kind, capacity FROM mortise_ticket"
                      " WHERE queue = ?1 AND number < ?2 ORDER BY number",
    [MRT_SQL_BEFORE] = "SELECT session FROM mortise_ticket"
                       " WHERE queue = ?1 AND number < ?2 ORDER BY number DESC LIMIT 1",
    [MRT_SQL_FROM] = "SELECT number, id FROM mortise_ticket"
                     " WHERE queue = ?1 AND number >= ?2 ORDER BY number LIMIT 2",
    [MRT_SQL_INSERT] = "INSERT INTO mortise_ticket"
                       " (queue, number, id, session, kind, capacity, weight, label, since)"
                       " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    [MRT_SQL_DELETE] = "DELETE FROM mortise_ticket WHERE queue = ?1 AND number = ?2 AND id = ?3",
    [MRT_SQL_OF_SESSION] = "SELECT queue, number, id, weight FROM mortise_ticket"
                           " WHERE session = ?1 AND (queue, number) > (?2, ?3)"
                           " ORDER BY queue, number LIMIT 1",
    [MRT_SQL_LIST] = "SELECT queue, number, session, kind, capacity, weight, label, since"
                     " FROM mortise_ticket WHERE queue >= ?1 AND queue > ''"
                     " ORDER BY queue, number",
};

static struct mrt_id boot_id_for_tests;

void mrt_sqlite_set_boot_id(struct mrt_id id)
{
    boot_id_for_tests = id;
}

/* ------------------------------------------------------------------ basics */

static int wait_for_writer(void *argument, int count)
{
    const struct mrt_sqlite_db *db = argument;
    if (count < 3) {
        sched_yield();
        return 1;
    }
    mrt_time now = mrt_time_now();
    if (now >= db->patience)
        return 0;
    /* The clock's low digits keep many waiters out of step. */
    struct timespec pause = {0, 20 * MRT_MICROSECOND + now % (180 * MRT_MICROSECOND)};
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
    return db->last_error = sqlite3_step(statement);
}

/* Runs a statement that gives no rows. */
static enum mrt_outcome run(struct mrt_sqlite_db *db, enum mrt_statement which)
{
    sqlite3_stmt *statement = mrt_sqlite_statement(db, which);
    if (!statement)
        return mrt_sqlite_outcome(db);
    mrt_sqlite_step(db, statement);
    sqlite3_reset(statement);
    return mrt_sqlite_outcome(db);
}

/* The same for one that is not worth keeping. */
static enum mrt_outcome execute(struct mrt_sqlite_db *db, const char *text)
{
    db->last_error = sqlite3_exec(db->handle, text, NULL, NULL, NULL);
    return mrt_sqlite_outcome(db);
}

static enum mrt_outcome query_number(struct mrt_sqlite_db *db, const char *text, int64_t *number)
{
    sqlite3_stmt *statement = NULL;
    db->last_error = sqlite3_prepare_v2(db->handle, text, -1, &statement, NULL);
    if (db->last_error == SQLITE_OK && mrt_sqlite_step(db, statement) == SQLITE_ROW)
        *number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
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

/* ------------------------------------------------------------ transactions */

enum mrt_outcome mrt_sqlite_begin(struct mrt_sqlite_db *db, mrt_time patience)
{
    db->patience = patience;
    return run(db, MRT_SQL_BEGIN);
}

enum mrt_outcome mrt_sqlite_rollback(struct mrt_sqlite_db *db, enum mrt_outcome outcome)
{
    int error = db->last_error; /* what outcome came of */
    if (!sqlite3_get_autocommit(db->handle) && run(db, MRT_SQL_ROLLBACK) != MRT_DONE)
        outcome = MRT_BROKEN;
    else
        db->last_error = error;
    return outcome;
}

enum mrt_outcome mrt_sqlite_commit(struct mrt_sqlite_db *db)
{
    enum mrt_outcome outcome = run(db, MRT_SQL_COMMIT);
    return outcome == MRT_DONE ? MRT_DONE : mrt_sqlite_rollback(db, outcome);
}

/* A write transaction of fixed text that is on disk when it is done. */
static enum mrt_outcome write_durably(struct mrt_sqlite_db *db, mrt_time patience,
                                      enum mrt_outcome (*write)(struct mrt_sqlite_db *db))
{
    enum mrt_outcome outcome = execute(db, "PRAGMA synchronous = FULL");
    if (outcome == MRT_DONE)
        outcome = mrt_sqlite_begin(db, patience);
    if (outcome == MRT_DONE) {
        outcome = write(db);
        outcome = outcome == MRT_DONE ? mrt_sqlite_commit(db) : mrt_sqlite_rollback(db, outcome);
    }
    int error = db->last_error;
    enum mrt_outcome back = execute(db, "PRAGMA synchronous = NORMAL");
    if (outcome == MRT_DONE)
        return back;
    db->last_error = error;
    return outcome;
}

/* ----------------------------------------------------------------- counter */

struct counter {
    int64_t number, limit, format;
    struct mrt_id boot;
};

/* A database without the row is damaged: MRT_BROKEN. */
static enum mrt_outcome read_counter(struct mrt_sqlite_db *db, struct counter *counter)
{
    sqlite3_stmt *statement = mrt_sqlite_statement(db, MRT_SQL_COUNTER);
    if (!statement)
        return mrt_sqlite_outcome(db);
    int step = mrt_sqlite_step(db, statement);
    if (step == SQLITE_ROW) {
        counter->number = sqlite3_column_int64(statement, 0);
        counter->limit = sqlite3_column_int64(statement, 1);
        counter->boot = mrt_sqlite_column_id(statement, 2);
        counter->format = sqlite3_column_int64(statement, 3);
        if (counter->number < 0 || counter->limit > NUMBER_MAX)
            db->last_error = SQLITE_CORRUPT;
    } else if (step == SQLITE_DONE) {
        db->last_error = SQLITE_CORRUPT;
    }
    sqlite3_reset(statement);
    return mrt_sqlite_outcome(db);
}

enum mrt_outcome mrt_sqlite_next_number(struct mrt_sqlite_db *db, uint64_t *number)
{
    struct counter counter;
    enum mrt_outcome outcome = read_counter(db, &counter);
    if (outcome != MRT_DONE)
        return outcome;
    if (counter.number >= counter.limit) {
        *number = MRT_SQLITE_LIMIT;
        return MRT_DONE;
    }
    sqlite3_stmt *statement = mrt_sqlite_statement(db, MRT_SQL_COUNT);
    if (!statement)
        return mrt_sqlite_outcome(db);
    *number = (uint64_t)counter.number + 1;
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)*number);
    return run(db, MRT_SQL_COUNT);
}

static enum mrt_outcome raise_limit(struct mrt_sqlite_db *db)
{
    struct counter counter;
    enum mrt_outcome outcome = read_counter(db, &counter);
    if (outcome != MRT_DONE || counter.number < counter.limit)
        return outcome; /* somebody else has raised it */
    sqlite3_stmt *statement = NULL;
    db->last_error = sqlite3_prepare_v2(db->handle,
                                        "UPDATE mortise_ticket SET capacity = capacity + ?1"
                                        " WHERE queue = '' AND number = 0",
                                        -1, &statement, NULL);
    if (db->last_error == SQLITE_OK) {
        sqlite3_bind_int64(statement, 1, MRT_SQLITE_BLOCK);
        mrt_sqlite_step(db, statement);
    }
    sqlite3_finalize(statement);
    return mrt_sqlite_outcome(db);
}

enum mrt_outcome mrt_sqlite_extend(struct mrt_sqlite_db *db, mrt_time patience)
{
    return write_durably(db, patience, raise_limit);
}

/* ---------------------------------------------------------------- boot id */

static bool read_boot_id(struct mrt_id *id)
{
    char text[64], digits[MRT_ID_TEXT_SIZE];
    size_t count = 0;
    *id = boot_id_for_tests;
    if (!mrt_id_none(*id))
        return true;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, text, sizeof text);
    close(fd);
    for (ssize_t i = 0; i < length && count < sizeof digits - 1; i++)
        if (text[i] != '-' && text[i] != '\n')
            digits[count++] = text[i];
    digits[count] = '\0';
    return count == sizeof digits - 1 && mrt_id_parse(digits, id);
}

/* Everybody in the database died with an earlier boot. */
static enum mrt_outcome begin_boot(struct mrt_sqlite_db *db)
{
    struct counter counter;
    struct mrt_id boot;
    enum mrt_outcome outcome = read_counter(db, &counter);
    if (outcome != MRT_DONE || !read_boot_id(&boot) || mrt_id_equal(counter.boot, boot))
        return outcome; /* somebody else has done it */
    outcome = execute(db, "DELETE FROM mortise_ticket WHERE queue > ''");
    if (outcome != MRT_DONE)
        return outcome;
    sqlite3_stmt *statement = NULL;
    db->last_error = sqlite3_prepare_v2(
        db->handle,
        "UPDATE mortise_ticket SET weight = capacity, capacity = capacity + ?1, id = ?2"
        " WHERE queue = '' AND number = 0",
        -1, &statement, NULL);
    if (db->last_error == SQLITE_OK) {
        sqlite3_bind_int64(statement, 1, MRT_SQLITE_BLOCK);
        mrt_sqlite_bind_id(statement, 2, &boot);
        mrt_sqlite_step(db, statement);
    }
    sqlite3_finalize(statement);
    return mrt_sqlite_outcome(db);
}

/* ------------------------------------------------------------------ schema */

static enum mrt_outcome create_schema(struct mrt_sqlite_db *db)
{
    /* id: 16 zero bytes, no machine's boot id; the first opener counts as a new boot. */
    return execute(db, "CREATE TABLE IF NOT EXISTS mortise_ticket ("
                       " queue TEXT NOT NULL, number INTEGER NOT NULL, id BLOB NOT NULL,"
                       " session BLOB NOT NULL, kind TEXT NOT NULL, capacity INTEGER NOT NULL,"
                       " weight INTEGER NOT NULL, label TEXT NOT NULL, since INTEGER NOT NULL,"
                       " PRIMARY KEY (queue, number)) WITHOUT ROWID;"
                       "INSERT OR IGNORE INTO mortise_ticket VALUES"
                       " ('', 0, zeroblob(16), zeroblob(16), 'counter', 0, 0, '', " FORMAT ");"
                       "PRAGMA application_id = " APPLICATION_ID ";"
                       "PRAGMA user_version = " FORMAT ";");
}

/* Whether this is an empty database, to be made ours. */
static enum mrt_outcome look_for_strangers(struct mrt_sqlite_db *db, bool *empty)
{
    int64_t application = 0, version = 0, tables = 0;
    enum mrt_outcome outcome = query_number(db, "PRAGMA application_id", &application);
    if (outcome == MRT_DONE)
        outcome = query_number(db, "PRAGMA user_version", &version);
    if (outcome == MRT_DONE)
        outcome = query_number(db, "SELECT count(*) FROM sqlite_schema", &tables);
    *empty = application == 0 && version == 0 && tables == 0;
    return outcome;
}

static enum mrt_outcome use_log(struct mrt_sqlite_db *db, bool *logging)
{
    sqlite3_stmt *statement = NULL;
    *logging = false;
    db->last_error =
        sqlite3_prepare_v2(db->handle, "PRAGMA journal_mode = WAL", -1, &statement, NULL);
    if (db->last_error == SQLITE_OK && mrt_sqlite_step(db, statement) == SQLITE_ROW) {
        const char *mode = (const char *)sqlite3_column_text(statement, 0);
        *logging = mode && strcmp(mode, "wal") == 0;
    }
    sqlite3_finalize(statement);
    return mrt_sqlite_outcome(db);
}

static int explain(const struct mrt_sqlite_db *db, const struct mrt_sqlite_file *file)
{
    switch (db->last_error & 0xff) {
    case SQLITE_NOTADB:
        return mrt_error(MORTISE_EUNSAFE, "%s is not a database of mortise", file->path);
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
        return mrt_error(MORTISE_EPERMISSION, "%s: %s", file->path, sqlite3_errstr(db->last_error));
    case SQLITE_NOMEM:
        return MORTISE_ENOMEM;
    default:
        return mrt_error(mrt_sqlite_outcome(db) == MRT_BUSY ? MORTISE_EUNREACHABLE : MORTISE_ESTORE,
                         "%s: %s", file->path, sqlite3_errstr(db->last_error));
    }
}

/* One attempt to make the tables. 0, also if others were at it; or a code. */
static int create(struct mrt_sqlite_db *db, const struct mrt_sqlite_file *file, mrt_time patience)
{
    bool empty = false, logging = false;
    enum mrt_outcome outcome = look_for_strangers(db, &empty);
    if (outcome == MRT_DONE && !empty) {
        /* Unless somebody has made it just now. */
        if (mrt_sqlite_statement(db, MRT_SQL_COUNTER))
            return 0;
        return mrt_error(MORTISE_EUNSAFE, "%s is a database of some other program, or version",
                         file->path);
    }
    if (outcome == MRT_DONE)
        outcome = execute(db, "PRAGMA page_size = 1024");
    if (outcome == MRT_DONE)
        outcome = use_log(db, &logging);
    if (outcome == MRT_DONE && !logging)
        return mrt_error(MORTISE_ESTORE, "%s: cannot use write-ahead logging", file->path);
    if (outcome == MRT_DONE)
        outcome = write_durably(db, patience, create_schema);
    if (outcome == MRT_BUSY)
        wait_for_writer(db, 3);
    if (outcome == MRT_FULL || outcome == MRT_BROKEN)
        return explain(db, file);
    return 0;
}

/* Tries for as long as there is patience: many may open a new file at once. */
static int find_or_create(struct mrt_sqlite_db *db, const struct mrt_sqlite_file *file,
                          mrt_time patience, struct counter *counter)
{
    for (;;) {
        enum mrt_outcome outcome = read_counter(db, counter);
        if (outcome == MRT_DONE)
            return 0;
        if (outcome != MRT_BUSY && db->last_error != SQLITE_ERROR)
            return explain(db, file);
        if (mrt_time_now() >= patience) {
            db->last_error = SQLITE_BUSY;
            return explain(db, file);
        }
        if (outcome == MRT_BUSY) {
            wait_for_writer(db, 3);
            continue;
        }
        int error = create(db, file, patience);
        if (error)
            return error;
    }
}

/* -------------------------------------------------------------------- open */

static int connect_to(struct mrt_sqlite_db *db, const char *path, sqlite3 **handle)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW |
                      SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE;
    db->last_error = sqlite3_open_v2(path, handle, flags, NULL);
    if (db->last_error == SQLITE_OK)
        db->last_error = sqlite3_db_config(*handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (db->last_error == SQLITE_OK) {
        sqlite3_busy_handler(*handle, wait_for_writer, db);
        /* This also takes the place of the automatic checkpoints. */
        sqlite3_wal_hook(*handle, note_commit, db);
    }
    return db->last_error;
}

static int prepare_to_work(struct mrt_sqlite_db *db, const struct mrt_sqlite_file *file,
                           mrt_time patience)
{
    struct counter counter;
    struct mrt_id boot;
    bool logging = false;
    int error = find_or_create(db, file, patience, &counter);
    if (error)
        return error;
    if (counter.format != FORMAT[0] - '0')
        return mrt_error(MORTISE_EUNSAFE, "%s was made by another version of mortise", file->path);
    if (!read_boot_id(&boot))
        return mrt_error(MORTISE_ENOTSUPPORTED, "cannot read /proc/sys/kernel/random/boot_id");
    if (use_log(db, &logging) != MRT_DONE)
        return explain(db, file);
    if (!logging)
        return mrt_error(MORTISE_ESTORE, "%s: cannot use write-ahead logging", file->path);
    if (execute(db, "PRAGMA synchronous = NORMAL") != MRT_DONE)
        return explain(db, file);
    if (!mrt_id_equal(boot, counter.boot) && write_durably(db, patience, begin_boot) != MRT_DONE)
        return explain(db, file);
    return 0;
}

int mrt_sqlite_db_open(struct mrt_sqlite_db *db, const struct mrt_sqlite_file *file,
                       bool short_lived, mrt_time patience)
{
    memset(db, 0, sizeof *db);
    db->patience = patience;
    db->checkpoint_step = short_lived ? SHORT_LIVED_FRAMES : LONG_LIVED_FRAMES;
    db->checkpoint_at = db->checkpoint_step;
    int error = connect_to(db, file->path, &db->handle) == SQLITE_OK
                    ? prepare_to_work(db, file, patience)
                    : explain(db, file);
    if (error)
        mrt_sqlite_db_close(db);
    return error;
}

void mrt_sqlite_db_close(struct mrt_sqlite_db *db)
{
    for (size_t i = 0; i < MRT_SQL_STATEMENTS; i++)
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
    if (path && connect_to(db, path, &handle) == SQLITE_OK &&
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
