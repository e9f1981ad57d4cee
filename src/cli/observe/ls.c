/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise ls: who holds and who waits, as a table or as JSON.
 *
 * All entries are collected before the first is printed: a store that fails half
 * way gives an error and no half answer, and no store waits for a slow terminal.
 * Texts that others wrote into the store are data: control bytes are escaped.
 */
#include "cli/frame/cli.h"
#include "cli/frame/json.h"
#include "cli/observe/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { JSON = MRT_OPTION_OWN, NODE };

static const struct mrt_flag flags[] = {
    {JSON, "json", NULL,
     "print a JSON array of objects with name,\nkind, place, holder, fence, fence_text, "
     "since, label, host,\npid, weight, capacity, detached, delay_ms, node",
     NULL, 0},
    {NODE, "node", NULL,
     "show each ticket's node in ZooKeeper, with\nits sequence, in place of the label", NULL, 0},
};

const struct mrt_subcommand mrt_ls_subcommand = {
    .name = "ls",
    .summary = "show the holders and waiters of all locks",
    .operands = "[NAME]",
    .about = "Shows the holders (PLACE \"holds\") and the waiters (PLACE 1, 2, ...) of the lock\n"
             "NAME, or of all locks, each queue in order.\n",
    .flags = flags,
    .count = sizeof flags / sizeof flags[0],
    .function = mrt_cli_ls,
};

/* ------------------------------------------------------------------ text */

/* A name that is longer moves its own row, and no other. */
#define NAME_COLUMNS_MAX 48

static void escape_name(const char *name, char text[4 * MORTISE_NAME_MAX + 1])
{
    mrt_cli_escape(name, text, 4 * MORTISE_NAME_MAX + 1);
}

static int find_name_width(const struct mrt_rows *table)
{
    char name[4 * MORTISE_NAME_MAX + 1];
    size_t width = 4;
    for (size_t i = 0; i < table->count; i++) {
        escape_name(table->rows[i].name, name);
        size_t columns = mrt_cli_columns(name);
        width = columns > width && columns <= NAME_COLUMNS_MAX ? columns : width;
    }
    return (int)width;
}

static void print_row(const struct mrt_row *row, int width, bool nodes)
{
    char name[4 * MORTISE_NAME_MAX + 1], last[4 * MORTISE_NODE_SIZE];
    char place[16], mode[48], age[32];
    escape_name(row->name, name);
    mrt_cli_escape(nodes ? row->node : row->owner, last, sizeof(last));
    mrt_rows_describe_mode(row, mode);
    snprintf(place, sizeof(place), "%" PRIu32, row->place);
    mrt_cli_format_age(row->since_wall_ms, age, sizeof(age));
    int room = width - (int)mrt_cli_columns(name);
    printf("%s%*s  %-5s  %-5s  %20" PRIu64 "  %8s  %s\n", name, room > 0 ? room : 0, "",
           row->place == 0 ? "holds" : place, mode, row->fence, age, last);
}

static void print_text(const struct mrt_rows *table, bool nodes)
{
    int width = find_name_width(table);
    printf("%-*s  %-5s  %-5s  %20s  %8s  %s\n", width, "NAME", "PLACE", "MODE", "FENCE", "SINCE",
           nodes ? "NODE" : "LABEL");
    for (size_t i = 0; i < table->count; i++)
        print_row(&table->rows[i], width, nodes);
}

/* ------------------------------------------------------------------ JSON */

static void print_object(const struct mrt_row *row)
{
    printf("{\"name\": ");
    mrt_json_string(stdout, row->name);
    printf(", \"kind\": ");
    mrt_json_string(stdout, row->kind);
    printf(", ");
    mrt_rows_print_members(stdout, row);
    putchar('}');
}

static void print_json(const struct mrt_rows *table)
{
    putchar('[');
    for (size_t i = 0; i < table->count; i++) {
        printf(i ? ",\n " : "\n ");
        print_object(&table->rows[i]);
    }
    printf(table->count ? "\n]\n" : "]\n");
}

/* ------------------------------------------------------------------- ls */

int mrt_cli_ls(struct mrt_cli *cli, int argc, char **argv)
{
    struct mrt_rows table = {.rows = NULL};
    bool json = false, nodes = false;
    int option;
    while ((option = mrt_cli_option(cli, argc, argv)) != MRT_OPTION_END) {
        if (option == MRT_OPTION_STOP)
            return cli->exit_code;
        json |= option == JSON;
        nodes |= option == NODE;
    }
    const char *name = argv[optind];
    if (name && argv[optind + 1])
        return mrt_cli_fail(MRT_EXIT_USAGE, "ls takes one name; \"%.64s\" is too much",
                            argv[optind + 1]);
    int code = name ? mrt_cli_check_name(name) : 0;
    if (!code)
        code = mrt_rows_collect(cli, name, &table);
    if (!code && json)
        print_json(&table);
    else if (!code)
        print_text(&table, nodes);
    mrt_rows_free(&table);
    return code ? code : mrt_cli_end_output();
}
