/* SPDX-License-Identifier: Apache-2.0 */
/* The table of locks: table.h says what each function promises. */
#include "cli/observe/table.h"

#include <stdlib.h>
#include <string.h>

const char *const mrt_table_orders[MRT_TABLE_ORDERS] = {"wait", "waiters", "time", "name",
                                                        "changes"};

void mrt_table_init(struct mrt_table *table, size_t own_max)
{
    *table = (struct mrt_table){.locks = NULL};
    mrt_watch_init(&table->watch, own_max);
}

static void forget_rows(struct mrt_table *table)
{
    free(table->locks);
    mrt_rows_free(&table->rows);
    table->locks = NULL;
    table->count = 0;
}

void mrt_table_fini(struct mrt_table *table)
{
    forget_rows(table);
    mrt_watch_fini(&table->watch);
}

/* An instant of the store's or another host's clock, milliseconds since 1970; 0: not known. */
static mrt_time by_our_clock(const struct mrt_table *table, int64_t wall_ms)
{
    int64_t age_ms = table->seen_wall_ms - wall_ms;
    if (wall_ms == 0)
        return MRT_TIME_NEVER;
    return table->seen_at - mrt_time_from_ms(age_ms > 0 ? age_ms : 0); /* clocks of hosts differ */
}

bool mrt_table_update(struct mrt_table *table, struct mrt_rows *rows, mrt_time now)
{
    bool complete = mrt_watch_look(&table->watch, rows, now);
    forget_rows(table);
    table->seen_at = now;
    table->seen_wall_ms = mrt_cli_wall_ms();
    table->rows = *rows;
    *rows = (struct mrt_rows){.rows = NULL};
    table->locks = calloc(table->rows.count + 1, sizeof *table->locks);
    if (!table->locks)
        return false;
    for (size_t i = 0; i < table->rows.count; i++) {
        const struct mrt_row *row = &table->rows.rows[i];
        struct mrt_watch_lock *watched = mrt_watch_find(&table->watch, row->name);
        if (watched && watched->first == i)
            table->locks[table->count++] =
                (struct mrt_table_lock){row, watched, mrt_table_since(table, row),
                                        by_our_clock(table, watched->waiting_since_ms)};
    }
    return complete;
}

mrt_time mrt_table_since(const struct mrt_table *table, const struct mrt_row *row)
{
    const struct mrt_watch_lock *lock = mrt_watch_find(&table->watch, row->name);
    const struct mrt_watch_ticket *ticket = mrt_watch_ticket(lock, row->id);
    if (ticket && ticket->phase == MRT_WATCH_HOLDS && ticket->since_known)
        return ticket->since;
    return by_our_clock(table, row->since_wall_ms);
}

double mrt_table_rate(const struct mrt_table_lock *lock, mrt_time now)
{
    mrt_time watched = now - lock->watched->watched_since;
    return watched > 0
               ? (double)lock->watched->counts.changes * (double)MRT_SECOND / (double)watched
               : 0;
}

struct order {
    enum mrt_table_order order;
    const char *filter;
    mrt_time now;
};

static bool is_wanted(const struct mrt_table_lock *lock, const char *filter)
{
    return strstr(lock->first->name, filter) || strstr(lock->first->owner, filter);
}

static int compare(const void *a, const void *b, void *argument)
{
    const struct mrt_table_lock *p = a, *q = b;
    const struct order *order = argument;
    int difference = is_wanted(q, order->filter) - is_wanted(p, order->filter);
    if (!difference && order->order == MRT_TABLE_WAIT)
        difference = (p->waits > q->waits) - (p->waits < q->waits);
    if (!difference && order->order == MRT_TABLE_WAITERS)
        difference = (q->watched->waiters > p->watched->waiters) -
                     (q->watched->waiters < p->watched->waiters);
    if (!difference && (order->order == MRT_TABLE_TIME || order->order == MRT_TABLE_WAIT))
        difference = (p->since > q->since) - (p->since < q->since);
    if (!difference && order->order == MRT_TABLE_CHANGES)
        difference = (mrt_table_rate(q, order->now) > mrt_table_rate(p, order->now)) -
                     (mrt_table_rate(q, order->now) < mrt_table_rate(p, order->now));
    return difference ? difference : strcmp(p->first->name, q->first->name);
}

size_t mrt_table_arrange(struct mrt_table *table, enum mrt_table_order order, const char *filter,
                         mrt_time now)
{
    struct order wanted = {order, filter, now};
    size_t count = 0;
    qsort_r(table->locks, table->count, sizeof table->locks[0], compare, &wanted);
    while (count < table->count && is_wanted(&table->locks[count], filter))
        count++;
    return count;
}
