/* SPDX-License-Identifier: Apache-2.0 */
/* The views of top: top.h says what each function promises. */
#include "cli/observe/top.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Goes over the rows that the lines of the view stand for, from `at` 0 on; NULL: the end. */
static const struct mrt_row *next_row(const struct top *top, size_t *at)
{
    if (!*top->opened)
        return *at < top->shown ? top->table.locks[(*at)++].first : NULL;
    while (*at < top->table.rows.count) {
        const struct mrt_row *row = &top->table.rows.rows[(*at)++];
        if (strcmp(row->name, top->opened) == 0)
            return row;
    }
    return NULL;
}

const struct mrt_row *mrt_top_row(const struct top *top, size_t wanted)
{
    size_t at = 0;
    const struct mrt_row *row = next_row(top, &at);
    for (size_t line = 0; row && line < wanted; line++)
        row = next_row(top, &at);
    return row;
}

/* Finds the mark where it is now; what is no longer there gives its line to the next. */
static void follow_mark(struct top *top)
{
    const struct mrt_row *row;
    size_t at = 0;
    bool found = false;
    for (top->count = 0; (row = next_row(top, &at)); top->count++) {
        bool same = *top->opened ? row->id == top->mark_id : strcmp(row->name, top->mark) == 0;
        if (!top->marked || found || !same)
            continue;
        top->chosen = top->count;
        found = true;
    }
    if (top->chosen >= top->count)
        top->chosen = top->count > 0 ? top->count - 1 : 0;
}

/* Prints lines from `first` on, `room` at most. */
static void print_locks(const struct top *top, FILE *out, size_t first, size_t room, int columns,
                        bool on_screen)
{
    struct mrt_top_layout layout = {.columns = columns, .order = top->order};
    mrt_time now = mrt_time_now();
    mrt_top_lay_out(&layout, top->table.locks, top->shown);
    if (on_screen)
        putc(MRT_SCREEN_HEAD, out);
    mrt_top_print_lock(out, NULL, &layout, now);
    for (size_t i = first; i < top->shown && i < first + room; i++) {
        putc('\n', out);
        if (on_screen && top->table.locks[i].watched->waiters > 0)
            putc(MRT_SCREEN_BUSY, out);
        mrt_top_print_lock(out, &top->table.locks[i], &layout, now);
    }
}

void mrt_top_print(struct top *top, FILE *out)
{
    int lines, columns = MRT_TOP_COLUMNS_MAX;
    if (isatty(STDOUT_FILENO))
        mrt_screen_size(&lines, &columns);
    top->shown = mrt_table_arrange(&top->table, top->order, top->filter, mrt_time_now());
    print_locks(top, out, 0, top->shown, columns, false);
    putc('\n', out);
}

/* Prints the earlier holders of the lock, below its queue. */
static void print_past(const struct top *top, FILE *out, size_t room, int columns)
{
    const struct mrt_watch_lock *lock = mrt_watch_find(&top->table.watch, top->opened);
    const struct mrt_watch_past *past;
    mrt_time now = mrt_time_now();
    if (room < 3 || !mrt_watch_past(lock, 0))
        return;
    fprintf(out, "\n\n%c%-6s %-9s %7s %18s  WHO", MRT_SCREEN_HEAD, "", "HELD", "AGO", "FENCE");
    for (uint64_t back = 0; back + 2 < room && (past = mrt_watch_past(lock, back)); back++) {
        putc('\n', out);
        mrt_top_print_past(out, past, columns, now);
    }
}

static void print_queue(const struct top *top, FILE *out, size_t first, size_t room, int columns)
{
    const struct mrt_row *row;
    size_t at = 0, line = 0;
    mrt_time now = mrt_time_now();
    putc(MRT_SCREEN_HEAD, out);
    mrt_top_print_row(out, NULL, columns, now, now);
    for (; line < first + room && (row = next_row(top, &at)); line++) {
        if (line < first)
            continue;
        putc('\n', out);
        mrt_top_print_row(out, row, columns, mrt_table_since(&top->table, row), now);
    }
    print_past(top, out, first + room - line, columns);
}

/* How many lines are above the heading: one more if the agent counts. */
static size_t head_lines(const struct top *top)
{
    return top->agent_up && !*top->opened ? 2 : 1;
}

static void print_agent(const struct top *top, FILE *out)
{
    const struct mrt_counted *counted = &top->counted;
    fprintf(out,
            "agent: %" PRIu64 " clients, %" PRIu64 " sessions, %" PRIu64 " tickets, %" PRIu64
            " held; %" PRIu64 " grants, %" PRIu64 " refused, %" PRIu64 " ended\n",
            counted->clients, counted->sessions, counted->tickets, counted->holders,
            counted->grants, counted->refused, counted->ended);
}

static void print_head(const struct top *top, FILE *out)
{
    char name[4 * MORTISE_NAME_MAX + 1], filter[4 * MRT_TOP_FILTER_MAX];
    mrt_cli_escape(top->opened, name, sizeof name);
    mrt_cli_escape(top->filter, filter, sizeof filter);
    if (*name) {
        fprintf(out, "%s\n", name);
        return;
    }
    if (*filter || top->typing)
        fprintf(out, "%zu of ", top->shown);
    fprintf(out, "%zu locks", top->table.count);
    if (*filter || top->typing)
        fprintf(out, " with %s%s", filter, top->typing ? "_" : "");
    fprintf(out, ", %" PRIu32 " held, %" PRIu32 " waiting at %s\n", top->table.watch.held,
            top->table.watch.waiters, mortise_url(top->client));
    if (head_lines(top) > 1)
        print_agent(top, out);
}

static void print_foot(const struct top *top, FILE *out)
{
    char name[4 * MORTISE_NAME_MAX + 1], message[1024];
    mrt_cli_escape(top->name, name, sizeof name);
    mrt_cli_escape(top->message, message, sizeof message);
    if (top->question)
        fprintf(out, "\n%s %s, fence %" PRIu64 "? y/n",
                top->question == 'b' ? "Break" : "Ask to give up", name, top->fence);
    else if (top->typing)
        fprintf(out, "\nFilter; Enter keeps it, Escape clears it");
    else if (*message)
        fprintf(out, "\n%s", message);
    else
        fprintf(out, "\n? help  l w t n c sort  / filter  Enter queue  r revoke  b break  q %s",
                *top->opened   ? "back"
                : *top->filter ? "all"
                               : "quit");
}

/* Whether to use colours: not with NO_COLOR (no-color.org), nor on a terminal without them. */
static bool has_colours(void)
{
    const char *none = secure_getenv("NO_COLOR"), *terminal = secure_getenv("TERM");
    return !(none && *none) && terminal && strcmp(terminal, "dumb") != 0;
}

static void print_help(FILE *out)
{
    fputs("Keys\n\n"
          "  l  longest wait first, and behind all waits the oldest holder\n"
          "  w  most waiters first           t  oldest holder first\n"
          "  n  by name                      c  most changes of the holder first\n"
          "  /  only locks with a text in name or holder; Enter keeps it, Escape clears it\n"
          "  Up Down PgUp PgDn Home End, j k g G   choose a line\n"
          "  Enter   the queue of a lock, with fences, and who held it before\n"
          "  r  ask the holder to give the lock up        } after a question that names\n"
          "  b  take the lock, or a place in the queue    } lock and fence; y is yes\n"
          "  q  Escape   back, clear the filter, end\n\n"
          "Columns\n\n"
          "  MODE    read or write; of permits how many are held of how many\n"
          "  QUEUE   how many wait           WAIT   the longest of their waits so far\n"
          "  CHG/S   changes of the holder a second, those that were seen: at least so many\n"
          "  HELD    for how long the first holder has held\n\n"
          "Any key goes back",
          out);
}

void mrt_top_draw(struct top *top)
{
    char *text = NULL;
    size_t size = 0;
    int lines, columns;
    mrt_screen_size(&lines, &columns);
    size_t above = head_lines(top) + 1, around = above + 2; /* head, heading; foot */
    size_t room = (size_t)lines > around ? (size_t)lines - around : 1;
    top->room = room;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    top->shown = mrt_table_arrange(&top->table, top->order, top->filter, mrt_time_now());
    follow_mark(top);
    size_t first = top->chosen >= room ? top->chosen - room + 1 : 0;
    if (top->helping) {
        print_help(out);
    } else {
        print_head(top, out);
        if (*top->opened)
            print_queue(top, out, first, room, columns);
        else
            print_locks(top, out, first, room, columns, true);
        print_foot(top, out);
    }
    bool marks = !top->helping && top->chosen < top->count;
    if (fclose(out) == 0)
        mrt_screen_show(text, marks ? (int)(above + top->chosen - first) : -1, has_colours());
    free(text);
}
