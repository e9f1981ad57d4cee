/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of top: top.h says what each function promises. */
#include "cli/observe/top.h"

#include <inttypes.h>
#include <string.h>

#define MODE_COLUMNS 5
#define NUMBER_COLUMNS (6 + 6 + 7 + 7) /* from QUEUE to HELD */
#define FENCE_COLUMNS (1 + 19)
#define FENCE_FROM 100 /* a screen of so many columns has room for fences */
#define OWNER_COLUMNS_MIN 14
#define OWNER_COLUMNS 24 /* from so many on words are written out */
#define NAME_COLUMNS_MIN 12

/* The text, cut in its middle or filled up to so many columns; control bytes escaped. */
static void print_field(FILE *out, const char *text, int columns)
{
    char shown[4 * MRT_OWNER_TEXT_SIZE];
    mrt_cli_fit(text, columns > 1 ? (size_t)columns : 1, shown, sizeof shown);
    fprintf(out, "%s%*s", shown, columns - (int)mrt_cli_columns(shown), "");
}

/* The same at a line's end. */
static void print_last(FILE *out, const char *text, int columns)
{
    char shown[4 * MRT_OWNER_TEXT_SIZE];
    mrt_cli_fit(text, columns > 1 ? (size_t)columns : 1, shown, sizeof shown);
    fputs(shown, out);
}

static void format_age(mrt_time since, mrt_time now, char age[32])
{
    if (since == MRT_TIME_NEVER)
        snprintf(age, 32, "?");
    else
        mrt_cli_format_duration(now - since, age, 32);
}

/* ------------------------------------------------------------------ all locks */

void mrt_top_lay_out(struct mrt_top_layout *layout, const struct mrt_table_lock *locks,
                     size_t count)
{
    char name[4 * MORTISE_NAME_MAX + 1];
    layout->fence = layout->columns >= FENCE_FROM;
    int left = layout->columns - 1 - MODE_COLUMNS - NUMBER_COLUMNS - 2;
    left -= layout->fence ? FENCE_COLUMNS : 0;
    layout->name = (int)sizeof "NAME"; /* with its mark */
    for (size_t i = 0; i < count; i++) {
        mrt_cli_escape(locks[i].first->name, name, sizeof name);
        int columns = (int)mrt_cli_columns(name);
        layout->name = columns > layout->name ? columns : layout->name;
    }
    if (layout->name > left - OWNER_COLUMNS_MIN)
        layout->name = left - OWNER_COLUMNS_MIN;
    if (layout->name < NAME_COLUMNS_MIN)
        layout->name = NAME_COLUMNS_MIN;
    layout->owner = left - layout->name;
}

/* A heading at the right of so many columns, with a mark if the locks are sorted by it. */
static void print_number_title(FILE *out, const char *title, int columns, bool sorted)
{
    int blank = columns - (int)strlen(title) - sorted;
    fprintf(out, "%*s%s%s", blank, "", sorted ? "▾" : "", title);
}

static void print_heading(FILE *out, const struct mrt_top_layout *layout)
{
    print_field(out, layout->order == MRT_TABLE_NAME ? "NAME▾" : "NAME", layout->name);
    fprintf(out, " %-*s", MODE_COLUMNS, "MODE");
    print_number_title(out, "QUEUE", 6, layout->order == MRT_TABLE_WAITERS);
    print_number_title(out, "CHG/S", 6, layout->order == MRT_TABLE_CHANGES);
    print_number_title(out, "WAIT", 7, layout->order == MRT_TABLE_WAIT);
    print_number_title(out, "HELD", 7, layout->order == MRT_TABLE_TIME);
    if (layout->fence)
        fprintf(out, "%*s", FENCE_COLUMNS, "FENCE");
    fputs("  HOLDER", out);
}

void mrt_top_print_lock(FILE *out, const struct mrt_table_lock *lock,
                        const struct mrt_top_layout *layout, mrt_time now)
{
    char mode[48], held[32], waited[32], more[32] = "";
    if (!lock) {
        print_heading(out, layout);
        return;
    }
    uint32_t holders = lock->watched->holders, waiters = lock->watched->waiters;
    mrt_rows_describe_use(lock->first, lock->watched->used, mode);
    format_age(lock->since, now, held);
    format_age(lock->waits, now, waited);
    if (holders > 1)
        snprintf(more, sizeof more,
                 layout->owner < OWNER_COLUMNS ? " +%" PRIu32 : " and %" PRIu32 " more",
                 holders - 1);
    print_field(out, lock->first->name, layout->name);
    fprintf(out, " %-*s %5" PRIu32 " %5.1f %6s %6s", MODE_COLUMNS, mode, waiters,
            mrt_table_rate(lock, now), waiters ? waited : "-", holders ? held : "-");
    if (layout->fence)
        fprintf(out, "%*" PRIu64, FENCE_COLUMNS, lock->first->fence);
    fputs("  ", out);
    print_last(out, holders ? lock->first->owner : "", layout->owner - (int)strlen(more));
    fputs(more, out);
}

/* ------------------------------------------------------------------ one queue */

void mrt_top_print_row(FILE *out, const struct mrt_row *row, int columns, mrt_time since,
                       mrt_time now)
{
    char place[16], mode[48], age[32];
    if (!row) {
        fprintf(out, "%-6s %-9s %7s %19s  WHO", "PLACE", "MODE", "SINCE", "FENCE");
        return;
    }
    snprintf(place, sizeof place, "%" PRIu32, row->place);
    mrt_rows_describe_mode(row, mode);
    format_age(since, now, age);
    fprintf(out, "%-6s %-9s %7s %19" PRIu64 "  ", row->place == 0 ? "holds" : place, mode, age,
            row->fence);
    print_last(out, row->owner, columns - 6 - 1 - 9 - 1 - 7 - 1 - 19 - 2);
}

void mrt_top_print_past(FILE *out, const struct mrt_watch_past *past, int columns, mrt_time now)
{
    char held[32], ended[32];
    mrt_cli_format_duration(past->held, held, sizeof held);
    mrt_cli_format_duration(now - past->ended, ended, sizeof ended);
    fprintf(out, "%-6s %-9s %7s %19" PRIu64 "  ", "before", held, ended, past->fence);
    print_last(out, past->owner ? past->owner : "", columns - 6 - 1 - 9 - 1 - 7 - 1 - 19 - 2);
}
