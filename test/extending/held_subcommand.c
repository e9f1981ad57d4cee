/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An example of a subcommand: held NAME ends with 0 if somebody holds the lock, and with 1 if
 * nobody does. It prints nothing. doc/extending.md.
 */
#include "extending/held_subcommand.h"

#include "cli/frame/cli.h"

static int cli_held(struct mrt_cli *cli, int argc, char **argv);

const struct mrt_subcommand example_held_subcommand = {
    .name = "held",
    .summary = "say by the exit code whether a lock is held",
    .operands = "NAME",
    .about = "Ends with 0 if somebody holds the lock NAME, and with 1 if nobody does.\n",
    .function = cli_held,
};

static int count_holders(void *argument, const mortise_entry *entry)
{
    unsigned *holders = argument;
    *holders += entry->place == 0;
    return 0;
}

static int cli_held(struct mrt_cli *cli, int argc, char **argv)
{
    unsigned holders = 0;
    mortise_client *client;
    while (mrt_cli_option(cli, argc, argv) != MRT_OPTION_END)
        return cli->exit_code; /* there are common options only: MRT_OPTION_STOP */
    if (argc - optind != 1)
        return mrt_cli_fail(MRT_EXIT_USAGE, "held takes one NAME; see mortise held --help");
    const char *name = argv[optind];
    int code = mrt_cli_check_name(name);
    if (code == MRT_EXIT_OK)
        code = mrt_cli_open(cli, 0, &client);
    if (code != MRT_EXIT_OK)
        return code;
    int error = mortise_list(client, name, count_holders, &holders);
    code = error ? mrt_cli_fail_error(name, error) : holders > 0 ? MRT_EXIT_OK : MRT_EXIT_FAILED;
    mortise_close(client);
    return code;
}
