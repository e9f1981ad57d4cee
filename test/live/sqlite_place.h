/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory of a test's own for a database, and helpers that are whole processes:
 * SQLite must not be carried over a fork, so a helper is the test program started anew
 * with "child ROLE URI [MORE]" as its arguments.
 */
#ifndef TEST_SQLITE_PLACE_H
#define TEST_SQLITE_PLACE_H

#include "conform/port_client.h"

#include <sys/types.h>

struct place {
    char directory[64];
    char path[96]; /* of the database */
    char uri[128];
};

/* cmocka's set-up and tear-down; *state is the place. */
int place_make(void **state);
int place_remove(void **state);
/* Removes a directory and all in it. */
void remove_tree(const char *directory);
/* Makes the files in it look many years old. */
void age_tree(const char *directory);

struct helper {
    pid_t pid;
    int out; /* what it prints */
};

void helper_start(struct helper *helper, const char *role, const char *uri, const char *more);
/* Waits for a line of its output. */
void helper_expect(struct helper *helper, const char *line);
/* Reads one line, without its end. */
void helper_read(struct helper *helper, char *line, size_t size);
void helper_kill(struct helper *helper);
/* Waits for its end, which must be a good one. */
void helper_finish(struct helper *helper);
/* In a helper: prints a line at once. */
void helper_say(const char *line);
/* In a helper: waits to be killed. */
_Noreturn void helper_sleep(void);

/* The database's integrity check, by sqlite itself. */
void check_integrity(const char *path);
/* The first column of the first row of a query, by a connection of its own. */
int64_t query(const char *path, const char *text);
void rest(mrt_time time);

#endif
