/*
 * mortise acquire and mortise release: a lock that is kept without a process. It is acquired and
 * left to nobody, and the token on standard output is all that remains; who has it gives the
 * lock back, from another shell or another machine.
 *
 * The token comes by MORTISE_TOKEN or standard input, never by the command line, which
 * everybody sees.
 *
 * Invariant: a lock whose token nobody has would stay for ever. So no signal ends the command
 * between detaching and the end of the output, and if that fails the lock is given back.
 */
#include "cli/run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLE "MORTISE_TOKEN"

static const struct mrt_flag acquire_flags[] = {
    {'n', "no-wait", NULL, "do not wait: exit 75 if it is held", NULL, 0},
    {'w', "wait", "DURATION", "wait at most so long", "for ever", 0},
    MRT_RUN_MODE_FLAGS,
};

const struct mrt_subcommand mrt_acquire_subcommand = {
    .name = "acquire",
    .summary = "take a lock that no process holds, and print its token",
    .operands = "NAME",
    .about = "Acquires the lock NAME, leaves it taken by nobody and prints a token. It stays\n"
             "taken, whatever dies, until mortise release gives it back by that token, or\n"
             "mortise break takes it away.\n",
    .flags = acquire_flags,
    .count = sizeof acquire_flags / sizeof acquire_flags[0],
    .function = mrt_cli_acquire,
};

static const struct mrt_flag release_flags[] = {MRT_RUN_MODE_FLAGS};

const struct mrt_subcommand mrt_release_subcommand = {
    .name = "release",
    .summary = "give back by its token what mortise acquire took",
    .operands = "NAME",
    .about = "Gives back the lock NAME. The token is read from " VARIABLE ", else from standard\n"
             "input; the mode is to be that of mortise acquire. Ends with 1 if no lock has it.\n",
    .flags = release_flags,
    .count = sizeof release_flags / sizeof release_flags[0],
    .function = mrt_cli_release,
};

/* What both have in common: one name, its mode, and a client. 0 or an exit code. */
static int open_run(struct mrt_run *run, int argc, char **argv)
{
    if (argc - optind != 1)
        return mrt_cli_fail(MRT_EXIT_USAGE, "%s takes one name; see --help", argv[0]);
    int code = mrt_run_add_name(run, argv[optind]);
    if (!code)
        code = mrt_run_check_together(run);
    if (!code)
        code = mrt_cli_open(run->cli, MORTISE_FOREIGN_LOOP, &run->client);
    if (code)
        return code;
    int error = mrt_run_make_lock(run, &run->locks[0]);
    return error ? mrt_cli_fail_error(NULL, error) : 0;
}

static int close_run(struct mrt_run *run, int code)
{
    int error = run->client ? mortise_close(run->client) : MORTISE_OK;
    return error && !code ? mrt_cli_fail_error(NULL, error) : code;
}

/* Adopts and releases. 0 or the library's error. */
static int give_back(mortise_lock *lock, const char *token)
{
    mortise_hold hold;
    int error = mortise_adopt(lock, token, &hold);
    return error ? error : mortise_release(hold);
}

/* ------------------------------------------------------------------ acquire */

/* Detaches, and tells the token; all signals wait. */
static int leave(const struct mrt_run *run, mortise_hold hold)
{
    char token[MORTISE_TOKEN_SIZE];
    int error = mortise_detach(hold, token);
    if (error && error != MORTISE_EUNKNOWN)
        return mrt_cli_fail_error(run->locks[0].name, error);
    printf("%s\n", token);
    int code = mrt_cli_end_output();
    if (code)
        give_back(run->locks[0].lock, token);
    return error ? mrt_cli_fail_error(run->locks[0].name, error) : code;
}

static int acquire(const struct mrt_run *run, int64_t wait_ms)
{
    mortise_hold hold;
    sigset_t all, before;
    int error = mortise_acquire_for(run->locks[0].lock, wait_ms, &hold);
    if (error == MORTISE_EBUSY || error == MORTISE_ETIMEOUT)
        return mrt_cli_fail(MRT_EXIT_BUSY, "%s: %s", run->locks[0].name, mortise_error_text(error));
    if (error)
        return mrt_cli_fail_error(run->locks[0].name, error);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int code = leave(run, hold);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

int mrt_cli_acquire(struct mrt_cli *cli, int argc, char **argv)
{
    struct mrt_run run = {.cli = cli, .weight = 1, .status_fd = -1};
    mrt_time wait = -MRT_MILLISECOND;
    int option, code = 0;
    while (!code && (option = mrt_cli_option(cli, argc, argv)) != MRT_OPTION_END) {
        if (option == MRT_OPTION_STOP)
            return cli->exit_code;
        if (option == 'n')
            wait = 0;
        else if (option != 'w')
            code = mrt_run_take_mode(&run, option);
        else if (!mrt_cli_duration(optarg, &wait))
            code = mrt_cli_fail_value(cli, "a duration, as 10s");
    }
    if (!code)
        code = open_run(&run, argc, argv);
    if (!code)
        code = acquire(&run, wait / MRT_MILLISECOND);
    return close_run(&run, code);
}

/* ------------------------------------------------------------------ release */

/* Takes it out of the environment, or reads a line. 0 or an exit code. */
static int take_token(char token[MORTISE_TOKEN_SIZE])
{
    char line[MORTISE_TOKEN_SIZE + 1];
    const char *text = getenv(VARIABLE);
    if (!text)
        text = fgets(line, sizeof line, stdin);
    size_t length = text ? strcspn(text, "\n") : 0;
    if (length == 0 || length >= MORTISE_TOKEN_SIZE)
        return mrt_cli_fail(MRT_EXIT_USAGE, "no token in " VARIABLE " nor on standard input");
    memcpy(token, text, length);
    token[length] = '\0';
    return 0;
}

int mrt_cli_release(struct mrt_cli *cli, int argc, char **argv)
{
    struct mrt_run run = {.cli = cli, .weight = 1, .status_fd = -1};
    char token[MORTISE_TOKEN_SIZE];
    int option, code = 0;
    while (!code && (option = mrt_cli_option(cli, argc, argv)) != MRT_OPTION_END) {
        if (option == MRT_OPTION_STOP)
            return cli->exit_code;
        code = mrt_run_take_mode(&run, option);
    }
    if (!code)
        code = take_token(token);
    if (!code)
        code = open_run(&run, argc, argv);
    if (code)
        return close_run(&run, code);
    int error = give_back(run.locks[0].lock, token);
    code = error ? mrt_cli_fail_error(run.locks[0].name, error) : 0;
    return close_run(&run, error == MORTISE_ENOTHELD ? MRT_EXIT_FAILED : code);
}
