/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise status: one lock, for people and for programs: who holds it, with which fence and
 * for how long, and who waits.
 */
#include "cli/frame/cli.h"
#include "cli/frame/json.h"
#include "cli/observe/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { JSON = MRT_OPTION_OWN };

static const struct mrt_flag flags[] = {
    {JSON, "json", NULL, "print a JSON object with name, state, kind,\nholders, waiters", NULL, 0},
};

const struct mrt_subcommand mrt_status_subcommand = {
    .name = "status",
    .summary = "show one lock",
    .operands = "NAME",
    .about =
        "Shows the holders and the waiters of the lock NAME. Ends with 0, also if the lock is\n"
        "free.\n",
    .flags = flags,
    .count = sizeof flags / sizeof flags[0],
    .function = mrt_cli_status,
};

static bool is_held(const struct mrt_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        if (rows->rows[i].place == 0)
            return true;
    return false;
}

static void print_row(const struct mrt_row *row)
{
    char owner[4 * MRT_OWNER_TEXT_SIZE], mode[48], age[32], place[16];
    mrt_cli_escape(row->owner, owner, sizeof owner);
    mrt_rows_describe_mode(row, mode);
    mrt_cli_format_age(row->since_wall_ms, age, sizeof age);
    snprintf(place, sizeof place, "%" PRIu32, row->place);
    printf("  %-5s  %s%sfence %" PRIu64 "  for %s  %s\n", row->place == 0 ? "holds" : place, mode,
           *mode ? "  " : "", row->fence, age, owner);
}

/* The weight of all holders. */
static uint64_t used(const struct mrt_rows *rows)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < rows->count; i++)
        sum += rows->rows[i].place == 0 ? rows->rows[i].weight : 0;
    return sum;
}

static void print_text(const char *name, const struct mrt_rows *rows)
{
    char kind[256], mode[48];
    if (rows->count == 0) {
        printf("%s: free\n", name);
    } else {
        mrt_cli_escape(rows->rows[0].kind, kind,
                       sizeof kind); /* another program may have written it */
        printf("%s: %s, %s", name, is_held(rows) ? "held" : "free", kind);
        mrt_rows_describe_use(&rows->rows[0], used(rows), mode);
        if (strchr(mode, '/'))
            printf(", %s used", mode);
        putchar('\n');
    }
    for (size_t i = 0; i < rows->count; i++)
        print_row(&rows->rows[i]);
}

static void print_list(const char *title, const struct mrt_rows *rows, bool holders)
{
    const char *separator = "";
    printf(", \"%s\": [", title);
    for (size_t i = 0; i < rows->count; i++) {
        if ((rows->rows[i].place == 0) != holders)
            continue;
        printf("%s{", separator);
        mrt_rows_print_members(stdout, &rows->rows[i]);
        putchar('}');
        separator = ", ";
    }
    putchar(']');
}

static void print_json(const char *name, const struct mrt_rows *rows)
{
    printf("{\"name\": ");
    mrt_json_string(stdout, name);
    printf(", \"state\": \"%s\", \"kind\": ", is_held(rows) ? "held" : "free");
    if (rows->count > 0)
        mrt_json_string(stdout, rows->rows[0].kind);
    else
        printf("null");
    print_list("holders", rows, true);
    print_list("waiters", rows, false);
    printf("}\n");
}

int mrt_cli_status(struct mrt_cli *cli, int argc, char **argv)
{
    struct mrt_rows rows = {.rows = NULL};
    bool json = false;
    int option;
    while ((option = mrt_cli_option(cli, argc, argv)) != MRT_OPTION_END) {
        if (option == MRT_OPTION_STOP)
            return cli->exit_code;
        json = true;
    }
    if (argc - optind != 1)
        return mrt_cli_fail(MRT_EXIT_USAGE, "status takes one name; see --help");
    const char *name = argv[optind];
    int code = mrt_cli_check_name(name);
    if (!code)
        code = mrt_rows_collect(cli, name, &rows);
    if (!code)
        (json ? print_json : print_text)(name, &rows);
    mrt_rows_free(&rows);
    return code ? code : mrt_cli_end_output();
}
