/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents of the database, and how it is opened or made.
 *
 * One table holds the tickets, in the order of (queue, number), and in its first row
 * the counter that numbers them, so that taking a ticket in a short queue writes one
 * page:
 *
 *   ('', 0): weight = last number given, capacity = the limit, id = boot id,
 *            since = version of this format
 *
 * A second table holds the cells (cell.c). A file of an earlier format gets what it lacks
 * when it is opened; programs of that time go on with it until they open it again.
 *
 * Fences. A commit is not synced to disk (synchronous=NORMAL), so a power cut may undo
 * the last ones and set the counter back. Numbers are therefore only given
 * below a limit, and the limit is raised by a block at a time in a transaction that is
 * synced (FULL). If the database is opened under another boot id than it was
 * last used under, every session in it is dead, and the counter goes on from the
 * limit. Tickets that belong to nobody (detach.c, delay.c) stay. None of this depends on a clock.
 *
 * Many processes may open a new file at the same time. Each first tries to read the counter. If
 * that fails it checks whether the file is empty, makes the table, and tries again. A file
 * that holds anything else belongs to another program, and is left as it is.
 */
#include "store/sqlite/schema.h"

#include "base/error.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define LONG_LIVED_FRAMES 1000
#define SHORT_LIVED_FRAMES 64
#define APPLICATION_ID "1836020340" /* the bytes "mort" as a number */
#define FORMAT 4
#define TEXT_OF(number) TEXT_OF_VALUE(number)
#define TEXT_OF_VALUE(number) #number
#define CREATE_CELLS                                                                     \
    "CREATE TABLE IF NOT EXISTS mortise_cell ("                                          \
    " name TEXT PRIMARY KEY NOT NULL, version INTEGER NOT NULL, fence INTEGER NOT NULL," \
    " writer BLOB NOT NULL, value BLOB) WITHOUT ROWID;"
#define NUMBER_MAX (INT64_C(1) << 46)

/* ----------------------------------------------------------------- counter */

struct counter {
    int64_t number, limit, format;
    struct mrt_id boot;
};

/* A database without the row is damaged: MRT_BROKEN. */
static enum mrt_outcome read_counter(struct mrt_sqlite_db *db, struct counter *counter)
{
    sqlite3_stmt *statement = mrt_sqlite_statement(db, MRT_SQLITE_COUNTER);
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
    sqlite3_stmt *statement = mrt_sqlite_statement(db, MRT_SQLITE_COUNT);
    if (!statement)
        return mrt_sqlite_outcome(db);
    *number = (uint64_t)counter.number + 1;
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)*number);
    return mrt_sqlite_run(db, MRT_SQLITE_COUNT);
}

static enum mrt_outcome raise_limit(struct mrt_sqlite_db *db, void *unused)
{
    (void)unused;
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
    return mrt_sqlite_write_durably(db, patience, raise_limit, NULL);
}

/* ---------------------------------------------------------------- boot id */

static struct mrt_id boot_id_for_tests;

void mrt_sqlite_set_boot_id(struct mrt_id id)
{
    boot_id_for_tests = id;
}

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

/* Each ticket with a delay stays for that long from now on, whether or not it held: the departure
   of tickets ahead may have been undone, and one left behind before has a time of the last boot. */
static enum mrt_outcome leave_behind(struct mrt_sqlite_db *db)
{
    sqlite3_stmt *statement = NULL;
    db->last_error = sqlite3_prepare_v2(db->handle,
                                        "UPDATE mortise_ticket SET session = zeroblob(16),"
                                        " linger = 0, until = ?1 + delay"
                                        " WHERE queue > '' AND delay > 0",
                                        -1, &statement, NULL);
    if (db->last_error == SQLITE_OK) {
        sqlite3_bind_int64(statement, 1, mrt_time_now());
        mrt_sqlite_step(db, statement);
    }
    sqlite3_finalize(statement);
    return mrt_sqlite_outcome(db);
}

/* All sessions in the database died with an earlier boot; detached tickets stay. */
static enum mrt_outcome begin_boot(struct mrt_sqlite_db *db, void *unused)
{
    (void)unused;
    struct counter counter;
    struct mrt_id boot;
    enum mrt_outcome outcome = read_counter(db, &counter);
    if (outcome != MRT_DONE || !read_boot_id(&boot) || mrt_id_equal(counter.boot, boot))
        return outcome; /* somebody else has done it */
    outcome = leave_behind(db);
    if (outcome != MRT_DONE)
        return outcome;
    outcome = mrt_sqlite_execute(
        db, "DELETE FROM mortise_ticket WHERE queue > '' AND session <> zeroblob(16)");
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

static enum mrt_outcome query_number(struct mrt_sqlite_db *db, const char *text, int64_t *number)
{
    sqlite3_stmt *statement = NULL;
    db->last_error = sqlite3_prepare_v2(db->handle, text, -1, &statement, NULL);
    if (db->last_error == SQLITE_OK && mrt_sqlite_step(db, statement) == SQLITE_ROW)
        *number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return mrt_sqlite_outcome(db);
}

static enum mrt_outcome create_schema(struct mrt_sqlite_db *db, void *unused)
{
    (void)unused;
    /* id: 16 zero bytes, no machine's boot id; the first opener counts as a new boot. */
    return mrt_sqlite_execute(
        db, "CREATE TABLE IF NOT EXISTS mortise_ticket ("
            " queue TEXT NOT NULL, number INTEGER NOT NULL, id BLOB NOT NULL,"
            " session BLOB NOT NULL, kind TEXT NOT NULL, capacity INTEGER NOT NULL,"
            " weight INTEGER NOT NULL, label TEXT NOT NULL, since INTEGER NOT NULL,"
            " revoked INTEGER NOT NULL DEFAULT 0, value BLOB,"
            " linger INTEGER NOT NULL DEFAULT 0, delay INTEGER NOT NULL DEFAULT 0,"
            " until INTEGER NOT NULL DEFAULT 0,"
            " PRIMARY KEY (queue, number)) WITHOUT ROWID;" CREATE_CELLS
            "INSERT OR IGNORE INTO mortise_ticket"
            " (queue, number, id, session, kind, capacity, weight, label, since) VALUES"
            " ('', 0, zeroblob(16), zeroblob(16), 'counter', 0, 0, '', " TEXT_OF(
                FORMAT) ");"
                        "PRAGMA application_id = " APPLICATION_ID ";"
                        "PRAGMA user_version = " TEXT_OF(FORMAT) ";");
}

/* Columns that earlier formats had not: whether it is there, and making it. */
#define COLUMN(name, definition)                                                            \
    {                                                                                       \
        "SELECT count(*) FROM pragma_table_info('mortise_ticket') WHERE name = '" name "'", \
            "ALTER TABLE mortise_ticket ADD COLUMN " name " " definition                    \
    }
static const struct {
    const char *look, *add;
} newer[] = {
    COLUMN("revoked", "INTEGER NOT NULL DEFAULT 0"), COLUMN("value", "BLOB"),
    COLUMN("linger", "INTEGER NOT NULL DEFAULT 0"),  COLUMN("delay", "INTEGER NOT NULL DEFAULT 0"),
    COLUMN("until", "INTEGER NOT NULL DEFAULT 0"),
};

static enum mrt_outcome add_column(struct mrt_sqlite_db *db, const char *look, const char *add)
{
    int64_t there = 0;
    enum mrt_outcome outcome = query_number(db, look, &there);
    return outcome == MRT_DONE && there == 0 ? mrt_sqlite_execute(db, add) : outcome;
}

/* Gives a file of an earlier format what it lacks; no effect if somebody else has done so. */
static enum mrt_outcome upgrade(struct mrt_sqlite_db *db, void *unused)
{
    (void)unused;
    enum mrt_outcome outcome = mrt_sqlite_execute(db, CREATE_CELLS);
    for (size_t i = 0; i < sizeof newer / sizeof newer[0] && outcome == MRT_DONE; i++)
        outcome = add_column(db, newer[i].look, newer[i].add);
    if (outcome != MRT_DONE)
        return outcome;
    return mrt_sqlite_execute(db, "UPDATE mortise_ticket SET since = " TEXT_OF(
                                      FORMAT) " WHERE queue = '' AND number = 0;"
                                              "PRAGMA user_version = " TEXT_OF(FORMAT) ";");
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
        return mrt_error(MORTISE_EUNSAFE,
                         "%s is not a database of mortise: name a file that does not exist yet",
                         file->path);
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
        if (mrt_sqlite_statement(db, MRT_SQLITE_COUNTER))
            return 0;
        return mrt_error(MORTISE_EUNSAFE,
                         "%s is a database of another program, or of another version of mortise: "
                         "name a file that does not exist yet",
                         file->path);
    }
    if (outcome == MRT_DONE)
        outcome = mrt_sqlite_execute(db, "PRAGMA page_size = 1024");
    if (outcome == MRT_DONE)
        outcome = use_log(db, &logging);
    if (outcome == MRT_DONE && !logging)
        return mrt_error(MORTISE_ESTORE, "%s: cannot use write-ahead logging", file->path);
    if (outcome == MRT_DONE)
        outcome = mrt_sqlite_write_durably(db, patience, create_schema, NULL);
    if (outcome == MRT_BUSY)
        mrt_sqlite_wait(db, 3);
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
            mrt_sqlite_wait(db, 3);
            continue;
        }
        int error = create(db, file, patience);
        if (error)
            return error;
    }
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
    if (counter.format > FORMAT)
        return mrt_error(MORTISE_EUNSAFE,
                         "%s was made by a newer version of mortise: install that version",
                         file->path);
    if (counter.format < FORMAT &&
        mrt_sqlite_write_durably(db, patience, upgrade, NULL) != MRT_DONE)
        return explain(db, file);
    if (!read_boot_id(&boot))
        return mrt_error(MORTISE_ENOTSUPPORTED, "cannot read /proc/sys/kernel/random/boot_id");
    if (use_log(db, &logging) != MRT_DONE)
        return explain(db, file);
    if (!logging)
        return mrt_error(MORTISE_ESTORE, "%s: cannot use write-ahead logging", file->path);
    if (mrt_sqlite_execute(db, "PRAGMA synchronous = NORMAL") != MRT_DONE)
        return explain(db, file);
    if (!mrt_id_equal(boot, counter.boot) &&
        mrt_sqlite_write_durably(db, patience, begin_boot, NULL) != MRT_DONE)
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
    int error = mrt_sqlite_connect(db, file->path, &db->handle) == SQLITE_OK
                    ? prepare_to_work(db, file, patience)
                    : explain(db, file);
    if (error)
        mrt_sqlite_db_close(db);
    return error;
}
