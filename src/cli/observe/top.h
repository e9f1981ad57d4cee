/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of `mortise top`.
 *   top.c         options, keys and what they do
 *   top_view.c    what is shown, and which line is chosen
 *   top_lines.c   a lock, or a ticket, as a line
 *   top_screen.c  the terminal
 * One thread; the client has none of its own.
 */
#ifndef MRT_CLI_OBSERVE_TOP_H
#define MRT_CLI_OBSERVE_TOP_H

#include "cli/agent/counts.h"
#include "cli/observe/table.h"

#include <stdio.h>

#define MRT_TOP_FILTER_MAX 64

struct top {
    mortise_client *client;
    mrt_time interval, next_look;
    struct mrt_table table;
    char agent[256]; /* socket of the agent that the store is asked through; "": none */
    struct mrt_counted counted;
    bool agent_up; /* it has counted */
    size_t shown;  /* how many locks pass the filter */
    enum mrt_table_order order;
    char filter[MRT_TOP_FILTER_MAX];
    char opened[MORTISE_NAME_MAX + 1]; /* whose queue is open; "": none */
    size_t chosen, count;              /* line of the view, and how many it has */
    size_t room;                       /* how many lines of it are on the screen */
    bool marked;                       /* by hand: the line of `mark` and `mark_id` */
    char mark[MORTISE_NAME_MAX + 1];
    uint64_t mark_id;
    bool typing;                     /* the filter */
    bool helping;                    /* the keys are shown */
    int question;                    /* 'r' or 'b' waits for a confirmation; 0: nothing */
    char name[MORTISE_NAME_MAX + 1]; /* the lock of that question */
    uint64_t fence;
    char message[512];
    bool done;
};

/* ------------------------------------------------------------- top_view.c */

/* The row that line `wanted` of the view shows; NULL: there is no such line. */
const struct mrt_row *mrt_top_row(const struct top *top, size_t wanted);
/* All locks that pass the filter, once. */
void mrt_top_print(struct top *top, FILE *out);
void mrt_top_draw(struct top *top);

/* ------------------------------------------------------------ top_lines.c */

#define MRT_TOP_COLUMNS_MAX 1000

/* The widths of the columns: names are not cut if there is room for the holder beside them. */
struct mrt_top_layout {
    int columns, name, owner;
    bool fence;
    enum mrt_table_order order; /* whose column is marked */
};

/* From `columns`, for these locks. */
void mrt_top_lay_out(struct mrt_top_layout *layout, const struct mrt_table_lock *locks,
                     size_t count);
/* Lines without their ends; NULL: the heading. */
void mrt_top_print_lock(FILE *out, const struct mrt_table_lock *lock,
                        const struct mrt_top_layout *layout, mrt_time now);
void mrt_top_print_row(FILE *out, const struct mrt_row *row, int columns, mrt_time since,
                       mrt_time now);
/* A previous holder: how long it held, at least, and how long ago that ended. */
void mrt_top_print_past(FILE *out, const struct mrt_watch_past *past, int columns, mrt_time now);

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
/* Shows the text, whose lines are cut at the right, and marks line `marked` (-1: none). A line
   that begins with MRT_SCREEN_BUSY has that colour if there are colours. */
#define MRT_SCREEN_HEAD '\1'
#define MRT_SCREEN_BUSY '\2'
void mrt_screen_show(const char *text, int marked, bool colours);
/* Sleeps until a key, a signal or `until`: the key. */
int mrt_screen_key(mrt_time until);
/* Sets whether a call may block: a signal then ends the process immediately. */
void mrt_screen_busy(bool busy);
/* The signal that is to end us; 0: none has come. */
int mrt_screen_signal(void);

#endif
