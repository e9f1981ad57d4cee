/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of SQLite itself for the least that an embedded lock must write: one transaction that
 * inserts a row, one that deletes it, with the settings of the embedded store. Beside it the same
 * two transactions empty.
 *
 *   bench_sqlite_floor FILE SECONDS
 */
#include "clock.h"

#include <sqlite3.h>
#include <stdio.h>

enum { BEGIN, COMMIT, INSERT, DELETE, STATEMENTS };

struct floor {
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENTS];
};

static const char settings[] =
    "PRAGMA page_size=1024; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
    "CREATE TABLE ticket(queue TEXT, number INTEGER, session BLOB, id BLOB, weight INTEGER,"
    " PRIMARY KEY(queue, number)) WITHOUT ROWID;";

static const char *const texts[] = {
    "BEGIN IMMEDIATE",
    "COMMIT",
    "INSERT INTO ticket VALUES('bench', ?1, zeroblob(16), zeroblob(16), 1)",
    "DELETE FROM ticket WHERE queue = 'bench' AND number = ?1",
};

static int open_floor(struct floor *floor, const char *path)
{
    if (sqlite3_open(path, &floor->db) != SQLITE_OK ||
        sqlite3_exec(floor->db, settings, NULL, NULL, NULL) != SQLITE_OK)
        return -1;
    for (int i = 0; i < STATEMENTS; i++)
        if (sqlite3_prepare_v3(floor->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &floor->statements[i], NULL) != SQLITE_OK)
            return -1;
    return 0;
}

static int step(struct floor *floor, int which)
{
    int code = sqlite3_step(floor->statements[which]);
    sqlite3_reset(floor->statements[which]);
    return code == SQLITE_DONE ? 0 : -1;
}

/* One transaction; `which` is what it does, or COMMIT for nothing. */
static int transact(struct floor *floor, int which, int64_t number)
{
    if (step(floor, BEGIN) < 0)
        return -1;
    if (which != COMMIT) {
        sqlite3_bind_int64(floor->statements[which], 1, number);
        if (step(floor, which) < 0)
            return -1;
    }
    return step(floor, COMMIT);
}

/* Microseconds of a pair of transactions, on average; negative if one failed. */
static double time_pairs(struct floor *floor, int first, int second, double seconds)
{
    int64_t begin = now_ns(), now = begin, pairs = 0;
    for (; now < begin + (int64_t)(seconds * 1e9); pairs++) {
        if (transact(floor, first, pairs) < 0 || transact(floor, second, pairs) < 0)
            return -1;
        now = now_ns();
    }
    return (double)(now - begin) / 1000 / (double)pairs;
}

int main(int argc, char **argv)
{
    struct floor floor = {0};
    if (argc != 3)
        return 64;
    double seconds = strtod(argv[2], NULL);
    if (open_floor(&floor, argv[1]) < 0) {
        fprintf(stderr, "bench_sqlite_floor: %s\n", sqlite3_errmsg(floor.db));
        return 1;
    }
    double write = time_pairs(&floor, INSERT, DELETE, seconds);
    double empty = time_pairs(&floor, COMMIT, COMMIT, seconds);
    printf("{\"write_us\": %.2f, \"empty_us\": %.2f}\n", write, empty);
    return write < 0 || empty < 0;
}
