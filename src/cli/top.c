/*
 * mortise top: the locks of a store, live, and what an operator may do to them.
 *
 * The store is asked once an interval, and again after each key that may have changed
 * something. Two views: all locks, a line each; and the queue of one. Who has moved the mark finds
 * it on the same lock, or ticket, wherever that stands now. To revoke or to break names the fence
 * that is on the screen when the key is pressed, so nobody is hit who has come since. A store that
 * does not answer is said at the bottom; what was seen last stays. A signal ends it also while the
 * store is being asked.
 */
#include "cli/top.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ONCE = MRT_OPTION_OWN, INTERVAL, SORT, FILTER };

static const struct mrt_flag flags[] = {
    {ONCE, "once", NULL, "print the table once, as it is", NULL, MRT_FLAG_ONCE},
    {INTERVAL, "interval", "D", "look so often, at least 100ms", "1s", 0},
    {SORT, "sort", "ORDER", "waiters, time, name or changes", "waiters", 0},
    {FILTER, "filter", "TEXT", "only locks with this in name or holder", NULL, 0},
};

const struct mrt_subcommand mrt_top_subcommand = {
    .name = "top",
    .summary = "watch the locks, live",
    .operands = "",
    .about = "Shows all locks: how many wait, how often the holder has been seen to change, how\n"
             "long it has held, its fence and who it is.\n",
    .notes =
        "Keys: w, t, n, c sort by waiters, time, name, changes; / filters; up and down\n"
        "choose, also Page Up and Down, Home and End; Enter opens a lock's queue; r asks the\n"
        "holder to give it up, b takes it away, both after a question; q goes back, and ends.\n",
    .flags = flags,
    .count = sizeof flags / sizeof flags[0],
    .function = mrt_cli_top,
};

#define FILTER_MAX 64

struct top {
    mortise_client *client;
    mrt_time interval, next_look;
    struct mrt_table table;
    size_t shown; /* how many locks pass the filter */
    enum mrt_table_order order;
    char filter[FILTER_MAX];
    char opened[MORTISE_NAME_MAX + 1]; /* whose queue is open; "": none */
    size_t chosen, count;              /* line of the view, and how many it has */
    size_t room;                       /* how many lines of it are on the screen */
    bool marked;                       /* by hand: the line of `mark` and `mark_fence` */
    char mark[MORTISE_NAME_MAX + 1];
    uint64_t mark_fence;
    bool typing;                     /* the filter */
    int question;                    /* 'r' or 'b' is to be confirmed; 0: nothing */
    char name[MORTISE_NAME_MAX + 1]; /* whom that is about */
    uint64_t fence;
    char message[512];
    bool done;
};

/* -------------------------------------------------------------- the store */

static int look(struct top *top)
{
    struct mrt_rows rows = {.rows = NULL};
    mrt_screen_busy(true);
    int error = mrt_rows_read(top->client, NULL, &rows);
    mrt_screen_busy(false);
    if (!error && !mrt_table_update(&top->table, &rows, mrt_time_now()))
        error = MORTISE_ENOMEM;
    mrt_rows_free(&rows);
    top->next_look = mrt_time_add(mrt_time_now(), top->interval);
    return error;
}

static void say_error(struct top *top, int error)
{
    const char *detail = mortise_error_detail();
    snprintf(top->message, sizeof top->message, "%s", *detail ? detail : mortise_error_text(error));
}

static void act(struct top *top)
{
    bool breaks = top->question == 'b';
    mrt_screen_busy(true);
    int error = (breaks ? mortise_break : mortise_revoke)(top->client, top->name, top->fence);
    mrt_screen_busy(false);
    top->question = 0;
    top->next_look = 0;
    if (error)
        say_error(top, error);
    else
        snprintf(top->message, sizeof top->message, "%s", breaks ? "taken away" : "asked");
}

/* ----------------------------------------------------------------- views */

/* Goes over the rows that the lines of the view stand for, from `at` 0 on; NULL: no more. */
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

/* The row of that line; NULL: there is no such line. */
static const struct mrt_row *row_of(const struct top *top, size_t wanted)
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
        bool same =
            *top->opened ? row->fence == top->mark_fence : strcmp(row->name, top->mark) == 0;
        if (!top->marked || found || !same)
            continue;
        top->chosen = top->count;
        found = true;
    }
    if (top->chosen >= top->count)
        top->chosen = top->count > 0 ? top->count - 1 : 0;
}

/* Prints lines from `first` on, `room` at most. */
static void print_locks(const struct top *top, FILE *out, size_t first, size_t room)
{
    mrt_time now = mrt_time_now();
    mrt_top_print_lock(out, NULL, now);
    for (size_t i = first; i < top->shown && i < first + room; i++) {
        putc('\n', out);
        mrt_top_print_lock(out, &top->table.locks[i], now);
    }
}

static void print_queue(const struct top *top, FILE *out, size_t first, size_t room)
{
    const struct mrt_row *row;
    size_t at = 0;
    mrt_time now = mrt_time_now();
    mrt_top_print_row(out, NULL, now, now);
    for (size_t line = 0; line < first + room && (row = next_row(top, &at)); line++) {
        if (line < first)
            continue;
        putc('\n', out);
        mrt_top_print_row(out, row, mrt_table_since(&top->table, row), now);
    }
}

static void print_head(const struct top *top, FILE *out)
{
    char name[4 * MORTISE_NAME_MAX + 1], filter[4 * FILTER_MAX];
    mrt_cli_escape(top->opened, name, sizeof name);
    mrt_cli_escape(top->filter, filter, sizeof filter);
    if (*name)
        fprintf(out, "%s\n", name);
    else
        fprintf(out, "%s%s%s%zu locks, %" PRIu32 " held, %" PRIu32 " waiting at %s\n",
                *filter || top->typing ? "with " : "", filter, *filter || top->typing ? "; " : "",
                top->table.count, top->table.watch.held, top->table.watch.waiters,
                mortise_url(top->client));
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
        fprintf(out, "\nFilter; Enter or Escape ends");
    else if (*message)
        fprintf(out, "\n%s", message);
    else
        fprintf(out, "\nw t n c sort  / filter  Enter queue  r revoke  b break  q %s",
                *top->opened ? "back" : "quit");
}

static void draw(struct top *top)
{
    char *text = NULL;
    size_t size = 0;
    int lines, columns;
    mrt_screen_size(&lines, &columns);
    size_t room = lines > 4 ? (size_t)lines - 4 : 1; /* head, heading, foot */
    top->room = room;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    top->shown = mrt_table_arrange(&top->table, top->order, top->filter, mrt_time_now());
    follow_mark(top);
    size_t first = top->chosen >= room ? top->chosen - room + 1 : 0;
    print_head(top, out);
    (*top->opened ? print_queue : print_locks)(top, out, first, room);
    print_foot(top, out);
    if (fclose(out) == 0)
        mrt_screen_show(text, top->chosen < top->count ? (int)(2 + top->chosen - first) : -1);
    free(text);
}

/* ------------------------------------------------------------------ keys */

static void ask(struct top *top, int key)
{
    const struct mrt_row *row = row_of(top, top->chosen);
    if (!row)
        return;
    top->question = key;
    top->fence = row->fence;
    snprintf(top->name, sizeof top->name, "%s", row->name);
}

/* Moves the mark there, if there is such a line. */
static void choose(struct top *top, size_t line)
{
    const struct mrt_row *row = row_of(top, line);
    if (!row)
        return;
    top->chosen = line;
    top->marked = true;
    snprintf(top->mark, sizeof top->mark, "%s", row->name);
    top->mark_fence = row->fence;
}

static void open_queue(struct top *top)
{
    const struct mrt_row *row = row_of(top, top->chosen);
    if (*top->opened || !row)
        return;
    snprintf(top->opened, sizeof top->opened, "%s", row->name);
    choose(top, 0);
    top->marked = false;
}

/* To the lock whose queue was open. */
static void go_back(struct top *top)
{
    top->done = !*top->opened;
    snprintf(top->mark, sizeof top->mark, "%s", top->opened);
    top->marked = true;
    top->opened[0] = '\0';
}

/* False: it is no such key. */
static bool move(struct top *top, int key)
{
    size_t page = top->room > 1 ? top->room - 1 : 1, last = top->count > 0 ? top->count - 1 : 0;
    if (key == MRT_KEY_UP || key == 'k')
        choose(top, top->chosen - (top->chosen > 0));
    else if (key == MRT_KEY_DOWN || key == 'j')
        choose(top, top->chosen + 1);
    else if (key == MRT_KEY_PAGE_UP)
        choose(top, top->chosen > page ? top->chosen - page : 0);
    else if (key == MRT_KEY_PAGE_DOWN)
        choose(top, top->chosen + page < last ? top->chosen + page : last);
    else if (key == MRT_KEY_HOME || key == 'g')
        choose(top, 0);
    else if (key == MRT_KEY_END || key == 'G')
        choose(top, last);
    else
        return false;
    return true;
}

static void type(struct top *top, int key)
{
    size_t length = strlen(top->filter);
    if (key == '\n' || key == '\r' || key == MRT_KEY_ESCAPE)
        top->typing = false;
    else if ((key == 0x7f || key == 0x08) && length > 0)
        top->filter[length - 1] = '\0';
    else if (key >= ' ' && key < 0x100 && key != 0x7f && length + 1 < sizeof top->filter)
        top->filter[length] = (char)key, top->filter[length + 1] = '\0';
    top->chosen = 0;
    top->marked = false;
}

static void command(struct top *top, int key)
{
    static const char orders[] = "wtnc";
    const char *order = key < 0x80 ? strchr(orders, key) : NULL;
    if (order)
        top->order = (enum mrt_table_order)(order - orders);
    else if (move(top, key))
        return;
    else if (key == '\n' || key == '\r')
        open_queue(top);
    else if (key == 'q' || key == MRT_KEY_ESCAPE)
        go_back(top);
    else if (key == '/')
        top->typing = !*top->opened;
    else if (key == 'r' || key == 'b')
        ask(top, key);
}

static void take_key(struct top *top, int key)
{
    if (key == MRT_KEY_NONE)
        return;
    top->message[0] = '\0';
    if (top->question && key == 'y')
        act(top);
    else if (top->question)
        top->question = 0;
    else if (top->typing)
        type(top, key);
    else
        command(top, key);
}

static int watch(struct top *top)
{
    while (!top->done && !mrt_screen_signal()) {
        mortise_process(top->client);
        if (mrt_time_now() >= top->next_look) {
            int error = look(top);
            if (error)
                say_error(top, error);
        }
        draw(top);
        take_key(top, mrt_screen_key(top->next_look));
    }
    mrt_screen_end();
    return mrt_screen_signal() ? MRT_EXIT_SIGNAL + mrt_screen_signal() : MRT_EXIT_OK;
}

/* ------------------------------------------------------------------- top */

static int print_once(struct top *top)
{
    top->shown = mrt_table_arrange(&top->table, top->order, top->filter, mrt_time_now());
    print_locks(top, stdout, 0, top->shown);
    putchar('\n');
    return mrt_cli_end_output();
}

/* 0 or an exit code. */
static int take_option(struct mrt_cli *cli, int option, struct top *top, bool *once)
{
    if (option == INTERVAL &&
        (!mrt_cli_duration(optarg, &top->interval) || top->interval < 100 * MRT_MILLISECOND))
        return mrt_cli_fail_value(cli, "a duration of 100ms or more");
    if (option == FILTER)
        snprintf(top->filter, sizeof top->filter, "%s", optarg);
    *once |= option == ONCE;
    if (option != SORT)
        return 0;
    for (size_t i = 0; i < 4; i++)
        if (strcmp(optarg, mrt_table_orders[i]) == 0) {
            top->order = (enum mrt_table_order)i;
            return 0;
        }
    return mrt_cli_fail_value(cli, "waiters, time, name or changes");
}

int mrt_cli_top(struct mrt_cli *cli, int argc, char **argv)
{
    struct top top = {.interval = MRT_SECOND};
    bool once = false;
    int option, code = 0;
    mrt_table_init(&top.table, 0);
    while (!code && (option = mrt_cli_option(cli, argc, argv)) != MRT_OPTION_END) {
        if (option == MRT_OPTION_STOP)
            return cli->exit_code;
        code = take_option(cli, option, &top, &once);
    }
    if (code)
        return code;
    if (optind < argc)
        return mrt_cli_fail(MRT_EXIT_USAGE, "top takes no names; \"%.64s\" is too much",
                            argv[optind]);
    code = mrt_cli_open(cli, MORTISE_FOREIGN_LOOP, &top.client);
    if (code)
        return code;
    int error = look(&top);
    if (error)
        code = mrt_cli_fail_error(NULL, error);
    else if (once)
        code = print_once(&top);
    else if (!mrt_screen_begin())
        code = mrt_cli_fail(MRT_EXIT_USAGE, "top needs a terminal; --once prints the table");
    else
        code = watch(&top);
    mrt_table_fini(&top.table);
    mortise_close(top.client); /* nothing was held */
    return code;
}
