/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The newest look at a store as a table: a line a lock, summed up from the tickets of its
 * queue, beside the results of earlier looks.
 */
#ifndef MRT_CLI_OBSERVE_TABLE_H
#define MRT_CLI_OBSERVE_TABLE_H

#include "cli/observe/watch.h"

/* WAIT: the longest wait first, and behind all waits the oldest holder. */
enum mrt_table_order {
    MRT_TABLE_WAIT,
    MRT_TABLE_WAITERS,
    MRT_TABLE_TIME,
    MRT_TABLE_NAME,
    MRT_TABLE_CHANGES,
    MRT_TABLE_ORDERS
};

/* Names of the orders, as options have them. */
extern const char *const mrt_table_orders[MRT_TABLE_ORDERS];
/* All orders, for help and errors. */
#define MRT_TABLE_ORDER_NAMES "wait, waiters, time, name or changes"

struct mrt_table_lock {
    const struct mrt_row *first; /* of its queue, mostly who holds it */
    const struct mrt_watch_lock *watched;
    mrt_time since; /* mrt_table_since of `first` */
    mrt_time
        waits; /* when the longest wait began; MRT_TIME_NEVER: nobody waits, or it is not known */
};

struct mrt_table {
    struct mrt_rows rows;
    struct mrt_table_lock *locks;
    size_t count;
    struct mrt_watch watch;
    mrt_time seen_at; /* of the newest look */
    int64_t seen_wall_ms;
};

/* `own_max`: of mrt_watch_init. */
void mrt_table_init(struct mrt_table *table, size_t own_max);
void mrt_table_fini(struct mrt_table *table);
/* Takes the rows of a look over. False: no memory, and the table is not complete. */
bool mrt_table_update(struct mrt_table *table, struct mrt_rows *rows, mrt_time now);
/* Sorts the locks, those first whose names or first owners contain `filter`; returns how many
 * contain it. */
size_t mrt_table_arrange(struct mrt_table *table, enum mrt_table_order order, const char *filter,
                         mrt_time now);
/* Since when the ticket of a row holds, or waits, by our clock: since the first look that saw it
   hold; else what the store says, which of a holder may be when it queued. MRT_TIME_NEVER: not
   known. */
mrt_time mrt_table_since(const struct mrt_table *table, const struct mrt_row *row);
/* How often a second another ticket was first, since it has been watched. */
double mrt_table_rate(const struct mrt_table_lock *lock, mrt_time now);

#endif
