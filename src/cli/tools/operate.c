/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise revoke and mortise break: what an operator does to a lock that others hold.
 *
 * A fence says whom it hits, so that nobody is who has come since the operator looked. It is
 * read from the command line alone: MORTISE_FENCE is that of an outer run's own lock.
 */
#include "cli/frame/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

enum { FENCE = MRT_OPTION_OWN };

static const struct mrt_flag revoke_flags[] = {
    {FENCE, "fence", "N", "only the holder with this fence", "all holders", MRT_FLAG_ONCE},
};

const struct mrt_subcommand mrt_revoke_subcommand = {
    .name = "revoke",
    .summary = "request that the holder releases a lock",
    .operands = "NAME",
    .about =
        "Requests that the holder of the lock NAME releases it, and does not wait. The holder\n"
        "may decline. Ends with 1 if nobody holds the lock.\n",
    .flags = revoke_flags,
    .count = 1,
    .function = mrt_cli_revoke,
};

static const struct mrt_flag break_flags[] = {
    {FENCE, "fence", "N", "the fence, as ls and status show it;\nrequired", NULL, MRT_FLAG_ONCE},
};

const struct mrt_subcommand mrt_break_subcommand = {
    .name = "break",
    .summary = "remove a holder or a waiter from a lock",
    .operands = "NAME --fence N",
    .about =
        "Removes the holder or waiter with this fence from the queue of the lock NAME. The next\n"
        "waiter is granted the lock immediately, although the old holder may not know yet. Ends\n"
        "with 1 if no ticket has this fence.\n",
    .flags = break_flags,
    .count = 1,
    .function = mrt_cli_break,
};

static bool read_fence(const char *text, uint64_t *fence)
{
    char *end;
    errno = 0;
    *fence = *text >= '1' && *text <= '9' ? strtoull(text, &end, 10) : 0;
    return *fence > 0 && errno == 0 && *end == '\0';
}

static int note_holder(void *argument, const mortise_entry *entry)
{
    uint64_t *fence = argument;
    *fence = entry->place == 0 ? entry->fence : 0;
    return *fence > 0;
}

/* Says who has the lock instead, if anybody. */
static int fail_not_held(mortise_client *client, const char *name, uint64_t fence)
{
    uint64_t holder = 0;
    int error = mortise_list(client, name, note_holder, &holder);
    if (error)
        return mrt_cli_fail_error(name, error);
    if (holder == 0)
        return mrt_cli_fail(MRT_EXIT_FAILED, "%s: nobody holds it", name);
    return mrt_cli_fail(MRT_EXIT_FAILED,
                        "%s: nobody has fence %" PRIu64 "; the holder has %" PRIu64, name, fence,
                        holder);
}

static int operate(struct mrt_cli *cli, int argc, char **argv, bool needs_fence,
                   int (*function)(mortise_client *, const char *, uint64_t))
{
    uint64_t fence = 0;
    mortise_client *client;
    int option;
    while ((option = mrt_cli_option(cli, argc, argv)) != MRT_OPTION_END) {
        if (option == MRT_OPTION_STOP)
            return cli->exit_code;
        if (!read_fence(optarg, &fence))
            return mrt_cli_fail_value(cli, "a fence, a number from 1");
    }
    if (argc - optind != 1)
        return mrt_cli_fail(MRT_EXIT_USAGE, "%s takes one name; see --help", argv[0]);
    if (needs_fence && fence == 0)
        return mrt_cli_fail(MRT_EXIT_USAGE, "no --fence; see --help");
    const char *name = argv[optind];
    int code = mrt_cli_check_name(name);
    if (!code)
        code = mrt_cli_open(cli, MORTISE_FOREIGN_LOOP, &client);
    if (code)
        return code;
    int error = function(client, name, fence);
    if (error == MORTISE_ENOTHELD)
        code = fail_not_held(client, name, fence);
    else if (error)
        code = mrt_cli_fail_error(name, error);
    mortise_close(client); /* nothing was held */
    return code;
}

int mrt_cli_revoke(struct mrt_cli *cli, int argc, char **argv)
{
    return operate(cli, argc, argv, false, mortise_revoke);
}

int mrt_cli_break(struct mrt_cli *cli, int argc, char **argv)
{
    return operate(cli, argc, argv, true, mortise_break);
}
