/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of the columns of answers. The code that reads them and the statements of every dialect
 * use it, by these macros, so a new column is added everywhere or nothing compiles. Times left are
 * in microseconds.
 */
#ifndef MRT_STORE_SQL_COLUMNS_H
#define MRT_STORE_SQL_COLUMNS_H

enum {
    MRT_APPEND_NUMBER, /* put in by this request */
    MRT_APPEND_OLD,    /* put in by an earlier one */
    MRT_APPEND_AHEAD,
    MRT_APPEND_LEFT,
    MRT_APPEND_SESSION,  /* the session is there, of this epoch */
    MRT_APPEND_CAPACITY, /* that differs, and the kind that it is of */
    MRT_APPEND_KIND,
    MRT_APPEND_PLACE,
    MRT_APPEND_QUEUE /* 0: the queue's row must be made first */
};
#define MRT_APPEND_ROW(number, old, ahead, left, session, capacity, kind, place, queue)      \
    number ", " old ", " ahead ", " left ", " session ", " capacity ", " kind ", " place "," \
           " " queue

enum {
    MRT_VIEW_NUMBER,
    MRT_VIEW_AHEAD,
    MRT_VIEW_LEFT,
    MRT_VIEW_BEHIND,
    MRT_VIEW_ASKED,
    MRT_VIEW_PLACE,
    MRT_VIEW_AGE /* where nobody is told; else 0 */
};
#define MRT_VIEW_ROW(number, ahead, left, behind, asked, place, age) \
    number ", " ahead ", " left ", " behind ", " asked ", " place ", " age

/* Only where REMOVE has a row. */
enum {
    MRT_REMOVE_GONE,
    MRT_REMOVE_TOLD,
    MRT_REMOVE_SHOWN,
    MRT_REMOVE_UNFLUSHED /* its commit does not wait for the disk */
};
#define MRT_REMOVE_ROW(gone, told, shown, unflushed) gone ", " told ", " shown ", " unflushed

enum { MRT_HOLDER_NUMBER, MRT_HOLDER_LEFT, MRT_HOLDER_VALUE };
#define MRT_HOLDER_ROW(number, left, value) number ", " left ", " value

enum {
    MRT_CELL_SESSION, /* is there */
    MRT_CELL_VERSION,
    MRT_CELL_FENCE,
    MRT_CELL_OWN, /* the newest write is this one */
    MRT_CELL_VALUE
};
#define MRT_CELL_ROW(session, version, fence, own, value) \
    session ", " version ", " fence ", " own ", " value

enum {
    MRT_MOVED_NUMBER,  /* of the ticket, if it is where it was to go */
    MRT_MOVED_BY_THIS, /* by this request */
    MRT_MOVED_SESSION, /* is there */
    MRT_MOVED_OTHER    /* ADOPT: one of this name is of another kind, capacity or weight */
};
#define MRT_MOVED_ROW(number, by_this, session, other) number ", " by_this ", " session ", " other

enum {
    MRT_LIST_NUMBER,
    MRT_LIST_WEIGHT,
    MRT_LIST_CAPACITY,
    MRT_LIST_SINCE, /* ms of 1970 */
    MRT_LIST_QUEUE,
    MRT_LIST_KIND,
    MRT_LIST_LABEL,
    MRT_LIST_DETACHED,
    MRT_LIST_DELAY, /* ms */
    MRT_LIST_CLAIM  /* as mrt_claim_format has it */
};
#define MRT_LIST_ROW(number, weight, capacity, since, queue, kind, label, detached, delay, claim) \
    number ", " weight ", " capacity ", " since ", " queue ", " kind ", " label ", " detached     \
           ", " delay ", " claim

#endif
