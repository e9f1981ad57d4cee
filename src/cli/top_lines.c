/* The lines of top: top.h says what each function promises. */
#include "cli/top.h"

#include <inttypes.h>

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

static void format_age(mrt_time since, mrt_time now, char age[32])
{
    if (since == MRT_TIME_NEVER)
        snprintf(age, 32, "?");
    else
        mrt_cli_format_duration(now - since, age, 32);
}

void mrt_top_print_lock(FILE *out, const struct mrt_table_lock *lock, mrt_time now)
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
    format_age(lock->since, now, age);
    mrt_cli_escape(lock->watched->holders ? first->owner : "", owner, sizeof owner);
    print_field(out, first->name, 20);
    print_field(out, mode, 5);
    fprintf(out, "%5" PRIu32 " %5.1f %6s %10" PRIu64 "  %s", lock->watched->waiters,
            mrt_table_rate(lock, now), lock->watched->holders ? age : "-", first->fence, owner);
    if (lock->watched->holders > 1)
        fprintf(out, " and %" PRIu32 " more", lock->watched->holders - 1);
}

void mrt_top_print_row(FILE *out, const struct mrt_row *row, mrt_time since, mrt_time now)
{
    char place[16], mode[48], age[32], owner[4 * MRT_OWNER_TEXT_SIZE];
    if (!row) {
        fprintf(out, "%-6s %-9s %7s %10s  WHO", "PLACE", "MODE", "SINCE", "FENCE");
        return;
    }
    snprintf(place, sizeof place, "%" PRIu32, row->place);
    mrt_rows_describe_mode(row, mode);
    format_age(since, now, age);
    mrt_cli_escape(row->owner, owner, sizeof owner);
    fprintf(out, "%-6s %-9s %7s %10" PRIu64 "  %s", row->place == 0 ? "holds" : place, mode, age,
            row->fence, owner);
}
