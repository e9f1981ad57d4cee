/*
 * The parts of `mortise top`.
 *   top.c         options, keys and what they do
 *   top_table.c   locks out of what the store lists, their order and how they change
 *   top_screen.c  the terminal
 * One thread; the client has none of its own.
 */
#ifndef MRT_CLI_TOP_H
#define MRT_CLI_TOP_H

#include "cli/rows.h"

#include <stdio.h>

enum mrt_top_order { MRT_TOP_WAITERS, MRT_TOP_TIME, MRT_TOP_NAME, MRT_TOP_CHANGES };

/* A lock as a line of the table. */
struct mrt_top_lock {
    const struct mrt_row *first; /* the first of its queue, mostly who holds it */
    uint32_t holders, waiters;
    uint64_t changes; /* how often another fence was first, since it has been watched */
    mrt_time watched_since;
};

struct mrt_top_table {
    struct mrt_rows rows;
    struct mrt_top_lock *locks;
    size_t count;
};

/* Takes the rows over and sums them up; what the table had is compared with, and freed. False:
   no memory, the table is empty. */
bool mrt_top_update(struct mrt_top_table *table, struct mrt_rows *rows, mrt_time now);
/* In order, those first whose names or owners contain `filter`; their number. */
size_t mrt_top_arrange(struct mrt_top_table *table, enum mrt_top_order order, const char *filter,
                       mrt_time now);
void mrt_top_free(struct mrt_top_table *table);

/* Lines without their ends; NULL: the heading. */
void mrt_top_print_lock(FILE *out, const struct mrt_top_lock *lock, mrt_time now);
void mrt_top_print_row(FILE *out, const struct mrt_row *row);

/* ----------------------------------------------------------- top_screen.c */

enum { MRT_KEY_NONE = 0, MRT_KEY_UP = 0x100, MRT_KEY_DOWN, MRT_KEY_ESCAPE };

/* Takes the terminal of standard input and output over; false: there is none. */
bool mrt_screen_begin(void);
/* Gives it back as it was. */
void mrt_screen_end(void);
void mrt_screen_size(int *lines, int *columns);
/* Shows the text, whose lines are cut at the right, and marks line `marked` (-1: none). */
void mrt_screen_show(const char *text, int marked);
/* Sleeps until a key, a signal or `until`: the key. */
int mrt_screen_key(mrt_time until);
/* The signal that is to end us; 0: none has come. */
int mrt_screen_signal(void);

#endif
