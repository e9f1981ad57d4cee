/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the rows of a list: all entries before the first is printed, so a store that
 * fails half way gives an error and no half answer, and no store waits for a slow terminal.
 */
#ifndef MRT_CLI_OBSERVE_ROWS_H
#define MRT_CLI_OBSERVE_ROWS_H

#include "cli/frame/cli.h"

#include <stdio.h>

struct mrt_row {
    char *name, *kind, *label, *host, *node;
    char owner[MRT_OWNER_TEXT_SIZE]; /* label and process */
    uint64_t fence, id, weight, capacity;
    uint32_t place;
    int64_t since_wall_ms, pid;
    bool detached;
    int64_t delay_ms; /* its holder has died; the delay that is left */
};

struct mrt_rows {
    struct mrt_row *rows;
    size_t count, room;
    bool failed; /* no memory */
};

/* Adds holders and waiters of the lock `name`, NULL: of all, as an open client lists them; 0, or
   the library's error. */
int mrt_rows_read(mortise_client *client, const char *name, struct mrt_rows *rows);
/* The same; 0, or the exit code with the error line written. */
int mrt_rows_list(mortise_client *client, const char *name, struct mrt_rows *rows);
/* The same with a client of its own. */
int mrt_rows_collect(const struct mrt_cli *cli, const char *name, struct mrt_rows *rows);
void mrt_rows_free(struct mrt_rows *rows);
/* The mode of a ticket: reading, writing, permits of all permits; "" for a lock with one holder. */
void mrt_rows_describe_mode(const struct mrt_row *row, char mode[48]);
/* The mode of a lock with this first row and `used` permits held. */
void mrt_rows_describe_use(const struct mrt_row *row, uint64_t used, char mode[48]);
/* The members of a JSON object that every list has, without braces. */
void mrt_rows_print_members(FILE *out, const struct mrt_row *row);

#endif
