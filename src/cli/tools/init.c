/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise init: makes what a store needs before its first use, or shows the statements to
 * somebody who may run them; of a store that needs nothing, also those that make a user.
 */
#include "base/error.h"
#include "base/uri.h"
#include "cli/frame/cli.h"
#include "store/stores.h"

#include <stdio.h>
#include <string.h>

enum { PRINT = MRT_OPTION_OWN, PRINT_ACL };

static const struct mrt_flag flags[] = {
    {PRINT, "print-sql", NULL, "print the statements instead, and contact\nno server", NULL,
     MRT_FLAG_ONCE},
    {PRINT_ACL, "print-acl", NULL,
     "print what gives the user of a Redis, etcd or\nKubernetes URL the rights of locks, and\n"
     "contact no server",
     NULL, MRT_FLAG_ONCE},
};

const struct mrt_subcommand mrt_init_subcommand = {
    .name = "init",
    .summary = "make what a store needs before its first use",
    .operands = "",
    .about = "Makes what the store needs before its first use: on PostgreSQL the schema, on\n"
             "MariaDB the database. Existing objects stay. Other stores need nothing.\n",
    .flags = flags,
    .count = sizeof flags / sizeof flags[0],
    .function = mrt_cli_init,
};

static void print(void *argument, const char *text)
{
    (void)argument;
    fputs(text, stdout);
}

static void note_text(void *argument, const char *text)
{
    bool *has_text = argument;
    *has_text |= *text != '\0';
}

/* Reports the result: a store without statements needs nothing. */
static int set_up(const char *url)
{
    bool needed = false;
    int error = mortise_init(url, note_text, &needed);
    if (!error && needed)
        error = mortise_init(url, NULL, NULL);
    if (error)
        return mrt_cli_fail_error(NULL, error);
    puts(needed ? "the store is set up" : "this store needs nothing before its first use");
    return mrt_cli_end_output();
}

static int print_rights(const char *url)
{
    struct mrt_uri uri;
    const struct mrt_store_ops *ops = NULL;
    mrt_error_clear();
    int error = mrt_uri_parse(mrt_uri_choose(url), &uri);
    if (!error)
        error = mrt_store_find(&uri, &ops);
    if (!error && !ops->print_rights)
        error =
            mrt_error(MORTISE_ENOTSUPPORTED,
                      "only Redis, etcd and Kubernetes have rights that are printed; --print-sql "
                      "shows what an SQL server needs");
    if (!error)
        error = ops->print_rights(&uri, print, NULL);
    explicit_bzero(&uri, sizeof uri);
    return error ? mrt_cli_fail_error(NULL, error) : mrt_cli_end_output();
}

int mrt_cli_init(struct mrt_cli *cli, int argc, char **argv)
{
    int option, prints = MRT_OPTION_END;
    while ((option = mrt_cli_option(cli, argc, argv)) != MRT_OPTION_END) {
        if (option == MRT_OPTION_STOP)
            return cli->exit_code;
        prints = option;
    }
    if (optind < argc)
        return mrt_cli_fail(MRT_EXIT_USAGE, "init takes no names; \"%.64s\" is too much",
                            argv[optind]);
    if (cli->url && !*cli->url)
        return mrt_cli_fail(MRT_EXIT_CONFIG, "%s is empty", cli->url_origin);
    if (prints == PRINT_ACL)
        return print_rights(cli->url);
    if (prints != PRINT)
        return set_up(cli->url);
    int error = mortise_init(cli->url, print, NULL);
    if (error)
        return mrt_cli_fail_error(NULL, error);
    return mrt_cli_end_output();
}
