/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise top: the locks of a store, live, and the operator's calls on them.
 *
 * The list is read once an interval, and again after each key that may have changed
 * something. Two views: all locks, a line each; and the queue of one. When the user has moved the
 * mark, it stays on the same lock or ticket, wherever that is now. To revoke or to break uses the
 * fence that is on the screen when the key is pressed, so a holder that has come since is safe. A
 * fault of the store is shown at the bottom; the newest list stays. A signal ends top even while it
 * waits for the store.
 */
#include "cli/observe/top.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ONCE = MRT_OPTION_OWN, INTERVAL, SORT, FILTER };

static const struct mrt_flag flags[] = {
    {ONCE, "once", NULL, "print the table once, and end", NULL, MRT_FLAG_ONCE},
    {INTERVAL, "interval", "D", "the time between two reads of the store,\nat least 100ms", "1s",
     0},
    {SORT, "sort", "wait|waiters|time|name|changes", "the order of the locks", "wait", 0},
    {FILTER, "filter", "TEXT", "only locks with TEXT in name or holder", NULL, 0},
};

const struct mrt_subcommand mrt_top_subcommand = {
    .name = "top",
    .summary = "watch the locks, live",
    .operands = "",
    .about =
        "Shows all locks, live: the number of waiters, the longest wait, how many changes of\n"
        "the holder were seen in a second (at least), the holder, and how long it has held.\n"
        "A wide screen shows the fence too. With --url agent: a line has the agent's counts.\n",
    .notes =
        "Keys: ? shows them. l, w, t, n, c sort by longest wait, waiters, time, name, changes.\n"
        "/ filters. Up, down, Page Up, Page Down, Home and End choose a lock; Enter shows its\n"
        "queue. r revokes and b breaks, after a question. q and Escape go back, clear the\n"
        "filter, and end. The variable NO_COLOR turns colours off.\n",
    .flags = flags,
    .count = sizeof flags / sizeof flags[0],
    .function = mrt_cli_top,
};

/* -------------------------------------------------------------- the store */

static int read_rows(struct top *top)
{
    struct mrt_rows rows = {.rows = NULL};
    mrt_screen_busy(true);
    top->agent_up = *top->agent && mrt_counted_read(top->agent, &top->counted);
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

/* ------------------------------------------------------------------ keys */

static void pose_question(struct top *top, int key)
{
    const struct mrt_row *row = mrt_top_row(top, top->chosen);
    if (!row)
        return;
    top->question = key;
    top->fence = row->fence;
    snprintf(top->name, sizeof top->name, "%s", row->name);
}

/* Moves the mark to that line, if it exists. */
static void choose(struct top *top, size_t line)
{
    const struct mrt_row *row = mrt_top_row(top, line);
    if (!row)
        return;
    top->chosen = line;
    top->marked = true;
    snprintf(top->mark, sizeof top->mark, "%s", row->name);
    top->mark_id = row->id;
}

static void open_queue(struct top *top)
{
    const struct mrt_row *row = mrt_top_row(top, top->chosen);
    if (*top->opened || !row)
        return;
    snprintf(top->opened, sizeof top->opened, "%s", row->name);
    choose(top, 0);
    top->marked = false;
}

/* To all locks from the filtered ones, or to the lock whose queue was open. */
static void go_back(struct top *top)
{
    if (!*top->opened) {
        top->done = !*top->filter;
        top->filter[0] = '\0';
        return;
    }
    snprintf(top->mark, sizeof top->mark, "%s", top->opened);
    top->marked = true;
    top->opened[0] = '\0';
}

/* False: the key has no such meaning. */
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
    if (key == MRT_KEY_ESCAPE)
        top->filter[0] = '\0';
    else if ((key == 0x7f || key == 0x08) && length > 0)
        top->filter[length - 1] = '\0';
    else if (key >= ' ' && key < 0x100 && key != 0x7f && length + 1 < sizeof top->filter)
        top->filter[length] = (char)key, top->filter[length + 1] = '\0';
    top->chosen = 0;
    top->marked = false;
}

static void command(struct top *top, int key)
{
    static const char orders[MRT_TABLE_ORDERS + 1] = "lwtnc";
    const char *order = key < 0x80 ? strchr(orders, key) : NULL;
    if (order)
        top->order = (enum mrt_table_order)(order - orders);
    else if (move(top, key))
        return;
    else if (key == '\n' || key == '\r')
        open_queue(top);
    else if (key == 'q' || key == MRT_KEY_ESCAPE)
        go_back(top);
    else if (key == '?')
        top->helping = true;
    else if (key == '/')
        top->typing = !*top->opened;
    else if (key == 'r' || key == 'b')
        pose_question(top, key);
}

static void take_key(struct top *top, int key)
{
    if (key == MRT_KEY_NONE)
        return;
    top->message[0] = '\0';
    if (top->helping)
        top->helping = false;
    else if (top->question && key == 'y')
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
            int error = read_rows(top);
            if (error)
                say_error(top, error);
        }
        mrt_top_draw(top);
        take_key(top, mrt_screen_key(top->next_look));
    }
    mrt_screen_end();
    return mrt_screen_signal() ? MRT_EXIT_SIGNAL + mrt_screen_signal() : MRT_EXIT_OK;
}

/* ------------------------------------------------------------------- top */

static int print_once(struct top *top)
{
    mrt_top_print(top, stdout);
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
    for (size_t i = 0; i < MRT_TABLE_ORDERS; i++)
        if (strcmp(optarg, mrt_table_orders[i]) == 0) {
            top->order = (enum mrt_table_order)i;
            return 0;
        }
    return mrt_cli_fail_value(cli, MRT_TABLE_ORDER_NAMES);
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
    if (!mrt_counted_socket(cli->url, top.agent, sizeof top.agent))
        top.agent[0] = '\0';
    int error = read_rows(&top);
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
