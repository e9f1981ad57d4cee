/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise release and mortise renew: what is done with the token that mortise acquire has
 * printed. A keeper's is shown to the keeper, without the store; another is the store's.
 */
#include "cli/keeper/keeper.h"
#include "cli/run/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TOKEN_FILE = MRT_RUN_OPTION_OWN };

#define TOKEN_ROW                                                             \
    {                                                                         \
        TOKEN_FILE, "token-file", "FILE", "read the token from FILE", NULL, 0 \
    }
#define WHERE                                                                                     \
    "The token is read from --token-file, else from " MRT_TOKEN_VARIABLE ", else from standard\n" \
    "input."

static const struct mrt_flag release_flags[] = {TOKEN_ROW, MRT_RUN_MODE_FLAGS};

const struct mrt_subcommand mrt_release_subcommand = {
    .name = "release",
    .summary = "release what mortise acquire acquired, by its token",
    .operands = "NAME",
    .about = "Releases the lock NAME, and returns when that is done.\n" WHERE
             "\nEnds with 76 if the lock was lost.\n",
    .notes =
        "For the token of acquire --durable, give -s, -x, --permits and --weight as acquire had\n"
        "them. Ends with 1 if no lock has the token.\n",
    .flags = release_flags,
    .count = sizeof release_flags / sizeof release_flags[0],
    .function = mrt_cli_release,
};

static const struct mrt_flag renew_flags[] = {
    TOKEN_ROW,
    {MRT_RUN_OPTION_MAX_HOLD, "max-hold", "DURATION", "the new time, counted from now", NULL,
     MRT_FLAG_ONCE},
};

const struct mrt_subcommand mrt_renew_subcommand = {
    .name = "renew",
    .summary = "check that what mortise acquire acquired is held, and prolong it",
    .operands = "NAME",
    .about =
        "Checks at the store that the lock NAME is held, starts its --max-hold again, and prints\n"
        "its fence.\n" WHERE
        "\nEnds with 76 if the lock was lost, with 69 if neither store nor keeper answers.\n",
    .flags = renew_flags,
    .count = sizeof renew_flags / sizeof renew_flags[0],
    .function = mrt_cli_renew,
};

/* Options and the name; false: *code says how it ended. */
static bool take_arguments(struct mrt_run *run, int argc, char **argv, const char **file, int *code)
{
    int option;
    *code = 0;
    while (*code == 0 && (option = mrt_cli_option(run->cli, argc, argv)) != MRT_OPTION_END) {
        if (option == MRT_OPTION_STOP)
            *code = run->cli->exit_code;
        else if (option == TOKEN_FILE)
            *file = optarg;
        else
            *code = mrt_run_take_option(run, option);
        if (option == MRT_OPTION_STOP)
            return false;
    }
    if (*code == 0 && argc - optind != 1)
        *code = mrt_cli_fail(MRT_EXIT_USAGE, "%s takes one name; see --help", argv[0]);
    if (*code == 0)
        *code = mrt_run_add_name(run, argv[optind]);
    if (*code == 0)
        *code = mrt_run_check_together(run);
    return *code == 0;
}

/* Prints the keeper's error, if there is one. Returns the exit code. */
static int ask(const struct mrt_run *run, const char *token, enum mrt_keeper_demand demand)
{
    struct mrt_keeper_reply reply;
    struct mrt_keeper_request request = {.demand = demand, .max_hold = run->max_hold};
    snprintf(request.name, sizeof request.name, "%s", run->locks[0].name);
    int code = mrt_keeper_ask(token, &request, &reply);
    if (code)
        return code;
    if (reply.code)
        return mrt_cli_fail(reply.code, "%.*s", (int)strnlen(reply.text, sizeof reply.text),
                            reply.text);
    if (demand == MRT_KEEPER_RENEW)
        printf("%" PRIu64 "\n", reply.fence);
    return mrt_cli_end_output();
}

static int use_token(struct mrt_cli *cli, int argc, char **argv, enum mrt_keeper_demand demand)
{
    struct mrt_run run = {.cli = cli, .weight = 1, .status_fd = -1};
    char token[MORTISE_TOKEN_SIZE];
    const char *file = NULL;
    int code;
    if (!take_arguments(&run, argc, argv, &file, &code))
        return code;
    code = mrt_token_read(file, token);
    if (code)
        return code;
    if (mrt_keeper_is_token(token))
        return ask(&run, token, demand);
    if (demand == MRT_KEEPER_RENEW)
        return mrt_cli_fail(MRT_EXIT_USAGE, "not a keeper's token: what is durable is not renewed");
    return mrt_detach_release(&run, token);
}

int mrt_cli_release(struct mrt_cli *cli, int argc, char **argv)
{
    return use_token(cli, argc, argv, MRT_KEEPER_RELEASE);
}

int mrt_cli_renew(struct mrt_cli *cli, int argc, char **argv)
{
    return use_token(cli, argc, argv, MRT_KEEPER_RENEW);
}
