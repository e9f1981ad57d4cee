/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a resource checks fences: what a holder that was overtaken writes too late is refused,
 * though he does not know yet that he was. Three resources: a file, a table of SQL, and a
 * cell of mortise.
 *
 *   cc fenced.c $(pkg-config --cflags --libs mortise sqlite3) -o fenced
 *   ./fenced DIRECTORY
 *
 * The rule is the same everywhere: remember the largest fence seen, and in one step compare,
 * refuse a smaller one, and write. Where that is not one step, two writers may pass the
 * comparison and then write in the wrong order.
 */
#include <fcntl.h>
#include <mortise.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

/* ------------------------------------------------------------------ a file */

/* The file begins with the fence it was last written with. Its own short lock makes comparing
   and writing one step; the fence is what makes the order right. */
static int file_write(const char *path, uint64_t fence, const char *text)
{
    char content[256] = "";
    int refused = 1;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_EX) == 0 && read(fd, content, sizeof content - 1) >= 0 &&
        strtoull(content, NULL, 10) <= fence) {
        int length =
            snprintf(content, sizeof content, "%llu\n%s\n", (unsigned long long)fence, text);
        refused = ftruncate(fd, 0) != 0 || pwrite(fd, content, (size_t)length, 0) != length;
    }
    close(fd);
    return refused;
}

/* ----------------------------------------------------------- a table of SQL */

/* One statement compares and writes, so it needs no transaction around it. The same clause
   works in any table and any SQL database: add a column `fence`, 0 to begin with. */
static const char schema[] = "CREATE TABLE IF NOT EXISTS account ("
                             " id INTEGER PRIMARY KEY, balance INTEGER NOT NULL,"
                             " fence INTEGER NOT NULL DEFAULT 0,"
                             " version INTEGER NOT NULL DEFAULT 0);"
                             "INSERT OR IGNORE INTO account (id, balance) VALUES (1, 100);";
static const char guarded[] = "UPDATE account SET balance = ?1, fence = ?2"
                              " WHERE id = 1 AND fence <= ?2";
/* And without any lock, by a version: read balance and version, and write if nobody else has.
   No row changed: somebody has; read again. */
static const char compared[] = "UPDATE account SET balance = ?1, version = version + 1"
                               " WHERE id = 1 AND version = ?2";

/* 0: one row was changed; 1: none, so it was refused. */
static int table_write(sqlite3 *database, const char *statement, int balance, uint64_t number)
{
    sqlite3_stmt *prepared = NULL;
    int refused = -1;
    if (sqlite3_prepare_v2(database, statement, -1, &prepared, NULL) == SQLITE_OK) {
        sqlite3_bind_int(prepared, 1, balance);
        sqlite3_bind_int64(prepared, 2, (sqlite3_int64)number);
        if (sqlite3_step(prepared) == SQLITE_DONE)
            refused = sqlite3_changes(database) != 1;
    }
    sqlite3_finalize(prepared);
    return refused;
}

/* ------------------------------------------------------------------ the story */

/* The fence of a turn with the lock. */
static uint64_t take_turn(mortise_client *client)
{
    mortise_lock *lock;
    mortise_hold hold;
    uint64_t fence = 0;
    if (mortise_mutex_new(client, "account", NULL, &lock) != MORTISE_OK)
        return 0;
    if (mortise_acquire_for(lock, 5000, &hold) == MORTISE_OK) {
        fence = mortise_hold_fence(hold);
        mortise_release(hold);
    }
    mortise_lock_free(lock);
    return fence;
}

static int report(const char *what, int result, int expected)
{
    printf("%-40s %s\n", what, result == 0 ? "written" : result == 1 ? "refused" : "failed");
    return result != expected;
}

static int show_file(const char *directory, uint64_t early, uint64_t late)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/balance", directory);
    return report("file, by the newer holder", file_write(path, late, "150"), 0) +
           report("file, by the one it has overtaken", file_write(path, early, "90"), 1);
}

static int show_table(const char *directory, uint64_t early, uint64_t late)
{
    char path[4096];
    sqlite3 *database = NULL;
    snprintf(path, sizeof path, "%s/account.db", directory);
    if (sqlite3_open(path, &database) != SQLITE_OK ||
        sqlite3_exec(database, schema, NULL, NULL, NULL) != SQLITE_OK) {
        sqlite3_close(database);
        return report("table", -1, 0);
    }
    int wrong =
        report("table, by the newer holder", table_write(database, guarded, 150, late), 0) +
        report("table, by the one it has overtaken", table_write(database, guarded, 90, early), 1) +
        report("table, at the version that was read", table_write(database, compared, 160, 0), 0) +
        report("table, at a version that is no more", table_write(database, compared, 95, 0), 1);
    sqlite3_close(database);
    return wrong;
}

static int show_cell(mortise_client *client, uint64_t early, uint64_t late)
{
    mortise_cell cell;
    int error = mortise_cell_get(client, "account", &cell);
    if (error == MORTISE_OK)
        error = mortise_cell_cas(client, "account", cell.version, "150", 3, late, &cell.version);
    int wrong = report("cell, by the newer holder", error, 0);
    error = mortise_cell_cas(client, "account", cell.version, "90", 2, early, NULL);
    return wrong + report("cell, by the one it has overtaken", error == MORTISE_ESTALE, 1);
}

int main(int argc, char **argv)
{
    mortise_client *client;
    char url[4096];
    if (argc != 2) {
        fprintf(stderr, "usage: fenced DIRECTORY\n");
        return 64;
    }
    snprintf(url, sizeof url, "sqlite:%s/locks.db", argv[1]);
    int error = mortise_open(url, NULL, &client);
    if (error) {
        fprintf(stderr, "%s: %s\n", mortise_error_text(error), mortise_error_detail());
        return 1;
    }
    uint64_t early = take_turn(client), late = take_turn(client);
    int wrong = early == 0 || late <= early;
    wrong += show_file(argv[1], early, late);
    wrong += show_table(argv[1], early, late);
    wrong += show_cell(client, early, late);
    mortise_close(client);
    return wrong != 0;
}
