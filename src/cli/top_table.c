/*
 * What top shows: one line a lock, summed up from the entries of its queue.
 *
 * Changes of holder are counted as they are seen: another fence is first in the queue than at
 * the last look. What comes and goes between two looks is not seen, so it is the least.
 */
#include "cli/top.h"

#include "base/assert.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static struct mrt_top_lock *find(const struct mrt_top_table *table, const char *name)
{
    for (size_t i = table->count; i > 0; i--) {
        struct mrt_top_lock *lock = &table->locks[i - 1];
        MRT_ASSERT(lock->first); /* each begins with a row */
        if (strcmp(lock->first->name, name) == 0)
            return lock;
    }
    return NULL;
}

static void begin_lock(struct mrt_top_table *table, const struct mrt_row *row,
                       const struct mrt_top_table *before, mrt_time now)
{
    struct mrt_top_lock *lock = &table->locks[table->count++];
    const struct mrt_top_lock *old = find(before, row->name);
    *lock = (struct mrt_top_lock){.first = row, .watched_since = now};
    if (!old)
        return;
    lock->watched_since = old->watched_since;
    lock->changes = old->changes + (old->first->fence != row->fence);
}

bool mrt_top_update(struct mrt_top_table *table, struct mrt_rows *rows, mrt_time now)
{
    struct mrt_top_table before = *table;
    *table = (struct mrt_top_table){.rows = *rows};
    *rows = (struct mrt_rows){.rows = NULL};
    table->locks = calloc(table->rows.count + 1, sizeof *table->locks);
    for (size_t i = 0; table->locks && i < table->rows.count; i++) {
        const struct mrt_row *row = &table->rows.rows[i];
        struct mrt_top_lock *lock = find(table, row->name);
        if (!lock) {
            begin_lock(table, row, &before, now);
            lock = &table->locks[table->count - 1];
        }
        lock->holders += row->place == 0;
        lock->waiters += row->place != 0;
    }
    mrt_top_free(&before);
    return table->locks != NULL;
}

void mrt_top_free(struct mrt_top_table *table)
{
    free(table->locks);
    mrt_rows_free(&table->rows);
    *table = (struct mrt_top_table){.locks = NULL};
}

static double rate(const struct mrt_top_lock *lock, mrt_time now)
{
    mrt_time watched = now - lock->watched_since;
    return watched > 0 ? (double)lock->changes * (double)MRT_SECOND / (double)watched : 0;
}

struct order {
    enum mrt_top_order order;
    const char *filter;
    mrt_time now;
};

static bool is_wanted(const struct mrt_top_lock *lock, const char *filter)
{
    return strstr(lock->first->name, filter) || strstr(lock->first->owner, filter);
}

static int compare(const void *a, const void *b, void *argument)
{
    const struct mrt_top_lock *p = a, *q = b;
    const struct order *order = argument;
    int difference = is_wanted(q, order->filter) - is_wanted(p, order->filter);
    if (!difference && order->order == MRT_TOP_WAITERS)
        difference = (q->waiters > p->waiters) - (q->waiters < p->waiters);
    if (!difference && order->order == MRT_TOP_TIME)
        difference = (p->first->since_wall_ms > q->first->since_wall_ms) -
                     (p->first->since_wall_ms < q->first->since_wall_ms);
    if (!difference && order->order == MRT_TOP_CHANGES)
        difference = (rate(q, order->now) > rate(p, order->now)) -
                     (rate(q, order->now) < rate(p, order->now));
    return difference ? difference : strcmp(p->first->name, q->first->name);
}

size_t mrt_top_arrange(struct mrt_top_table *table, enum mrt_top_order order, const char *filter,
                       mrt_time now)
{
    struct order wanted = {order, filter, now};
    size_t count = 0;
    qsort_r(table->locks, table->count, sizeof table->locks[0], compare, &wanted);
    while (count < table->count && is_wanted(&table->locks[count], filter))
        count++;
    return count;
}

/* ------------------------------------------------------------------ lines */

/* The text, filled up or cut to so many columns, one a character; control bytes escaped. */
static void print_field(FILE *out, const char *text, int columns)
{
    char shown[4 * MRT_OWNER_TEXT_SIZE];
    mrt_cli_escape(text, shown, sizeof shown);
    for (const char *c = shown; *c; c++) {
        if (((unsigned char)*c & 0xc0) != 0x80 && columns-- == 0)
            break;
        putc(*c, out);
    }
    fprintf(out, "%*s ", columns > 0 ? columns : 0, "");
}

void mrt_top_print_lock(FILE *out, const struct mrt_top_lock *lock, mrt_time now)
{
    char mode[48], age[32], owner[4 * MRT_OWNER_TEXT_SIZE];
    if (!lock) {
        print_field(out, "NAME", 20);
        print_field(out, "MODE", 5);
        fprintf(out, "%5s %5s %6s %10s  HOLDER", "QUEUE", "CHG/S", "HELD", "FENCE");
        return;
    }
    const struct mrt_row *first = lock->first;
    mrt_rows_describe_mode(first, mode);
    mrt_cli_format_age(first->since_wall_ms, age, sizeof age);
    mrt_cli_escape(lock->holders ? first->owner : "", owner, sizeof owner);
    print_field(out, first->name, 20);
    print_field(out, mode, 5);
    fprintf(out, "%5" PRIu32 " %5.1f %6s %10" PRIu64 "  %s", lock->waiters, rate(lock, now),
            lock->holders ? age : "-", first->fence, owner);
    if (lock->holders > 1)
        fprintf(out, " and %" PRIu32 " more", lock->holders - 1);
}

void mrt_top_print_row(FILE *out, const struct mrt_row *row)
{
    char place[16], mode[48], age[32], owner[4 * MRT_OWNER_TEXT_SIZE];
    if (!row) {
        fprintf(out, "%-6s %-9s %7s %10s  WHO", "PLACE", "MODE", "SINCE", "FENCE");
        return;
    }
    snprintf(place, sizeof place, "%" PRIu32, row->place);
    mrt_rows_describe_mode(row, mode);
    mrt_cli_format_age(row->since_wall_ms, age, sizeof age);
    mrt_cli_escape(row->owner, owner, sizeof owner);
    fprintf(out, "%-6s %-9s %7s %10" PRIu64 "  %s", row->place == 0 ? "holds" : place, mode, age,
            row->fence, owner);
}
