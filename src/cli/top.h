/*
 * The parts of `mortise top`.
 *   top.c         options, keys and what they do
 *   top_lines.c   a lock, or a ticket, as a line
 *   top_screen.c  the terminal
 * One thread; the client has none of its own.
 */
#ifndef MRT_CLI_TOP_H
#define MRT_CLI_TOP_H

#include "cli/table.h"

#include <stdio.h>

/* Lines without their ends; NULL: the heading. */
void mrt_top_print_lock(FILE *out, const struct mrt_table_lock *lock, mrt_time now);
void mrt_top_print_row(FILE *out, const struct mrt_row *row, mrt_time since, mrt_time now);

/* ----------------------------------------------------------- top_screen.c */

enum {
    MRT_KEY_NONE = 0,
    MRT_KEY_UP = 0x100,
    MRT_KEY_DOWN,
    MRT_KEY_PAGE_UP,
    MRT_KEY_PAGE_DOWN,
    MRT_KEY_HOME,
    MRT_KEY_END,
    MRT_KEY_OTHER,
    MRT_KEY_ESCAPE
};

/* Takes the terminal of standard input and output over; false: there is none. */
bool mrt_screen_begin(void);
/* Gives it back as it was. */
void mrt_screen_end(void);
void mrt_screen_size(int *lines, int *columns);
/* Shows the text, whose lines are cut at the right, and marks line `marked` (-1: none). */
void mrt_screen_show(const char *text, int marked);
/* Sleeps until a key, a signal or `until`: the key. */
int mrt_screen_key(mrt_time until);
/* Whether we may be kept waiting, with nothing to lose: a signal then ends the process itself. */
void mrt_screen_busy(bool busy);
/* The signal that is to end us; 0: none has come. */
int mrt_screen_signal(void);

#endif
