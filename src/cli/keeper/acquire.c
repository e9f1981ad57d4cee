/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise acquire: a lock for a script that takes it in its midst. A keeper holds it as long as
 * the script lives (keeper.c), or nobody does, for ever (detach.c); the token says which.
 *
 * It ends when the token has been written: if it cannot be, the lock is given back first.
 */
#include "cli/keeper/keeper.h"
#include "cli/run/locks.h"
#include "cli/run/options.h"

#include <fcntl.h>
#include <unistd.h>

enum { OWNER = MRT_RUN_OPTION_OWN, DURABLE, TOKEN_FD, TOKEN_FILE };

static const struct mrt_flag flags[] = {
    MRT_RUN_MODE_FLAGS,
    {'n', "nonblock", NULL, "do not wait: end with 75 if the lock is\nheld", NULL, 0},
    {'w', "timeout", "DURATION", "wait at most this time (0: do not wait)", NULL, 0},
    MRT_RUN_FLOCK_FLAG,
    {OWNER, "pid", "PID", "hold the lock as long as this process\nlives", "the caller",
     MRT_FLAG_ONCE},
    {MRT_RUN_OPTION_MAX_HOLD, "max-hold", "DURATION",
     "release the lock after this time, unless\nrenewed", NULL, 0},
    {MRT_RUN_OPTION_ON_LOST, "on-lost", "term|kill|ignore|exec:COMMAND",
     "what happens to the caller if the lock is\nlost", "ignore", 0},
    {MRT_RUN_OPTION_GRACE, "grace", "DURATION", "the time between TERM and KILL", "5s", 0},
    {MRT_RUN_OPTION_LEASE, "lease", "DURATION",
     "how long the lock stays taken when the\nkeeper is silent; only on stores with leases", NULL,
     0},
    {MRT_RUN_OPTION_LOCK_DELAY, "lock-delay", "DURATION",
     "if the keeper dies while it holds the\nlock, keep the lock taken for this time", NULL, 0},
    {MRT_RUN_OPTION_LABEL, "label", "TEXT", "the text that lists show beside the lock", NULL, 0},
    {DURABLE, "durable", NULL,
     "without a keeper: the lock stays taken,\nwhatever dies, until it is released", NULL,
     MRT_FLAG_ONCE},
    {TOKEN_FD, "token-fd", "N", "write the token to descriptor N", "1", MRT_FLAG_ONCE},
    {TOKEN_FILE, "token-file", "FILE", "write the token to a file that only its\nowner may read",
     NULL, 0},
};

const struct mrt_subcommand mrt_acquire_subcommand = {
    .name = "acquire",
    .summary = "acquire a lock for the calling script, and print a token",
    .operands = "NAME",
    .about = "Acquires the lock NAME and prints a token. A process in the background, the keeper,\n"
             "holds the lock until mortise release gets the token, or the caller ends.\n",
    .notes = "The caller is the process that started mortise, or the shell above a $(...).\n"
             "Exit codes: 69 store out of reach; 75 not acquired; 1 the caller has ended.\n",
    .flags = flags,
    .count = sizeof flags / sizeof flags[0],
    .function = mrt_cli_acquire,
};

struct acquire {
    struct mrt_run run;
    struct mrt_token_place place;
    pid_t owner; /* 0: the process that started us */
    bool durable;
};

static int take_owner(struct acquire *self)
{
    int64_t pid;
    if (!mrt_cli_number(optarg, 1, INT32_MAX, &pid))
        return mrt_cli_fail_value(self->run.cli, "the number of a process");
    self->owner = (pid_t)pid;
    return 0;
}

static int take_token_fd(struct acquire *self)
{
    int64_t fd;
    if (!mrt_cli_number(optarg, 1, INT32_MAX, &fd) || fcntl((int)fd, F_GETFD) < 0)
        return mrt_cli_fail_value(self->run.cli, "an open descriptor");
    self->place.fd = (int)fd;
    return 0;
}

static int take_option(struct acquire *self, int option)
{
    switch (option) {
    case OWNER:
        return take_owner(self);
    case DURABLE:
        self->durable = true;
        return 0;
    case TOKEN_FD:
        return take_token_fd(self);
    case TOKEN_FILE:
        self->place.file = optarg;
        return 0;
    default:
        return mrt_run_take_option(&self->run, option);
    }
}

static int acquire_for_owner(struct acquire *self)
{
    struct mrt_target owner;
    struct mrt_keeper_word word;
    bool is_captured = !self->place.file && self->place.fd <= STDOUT_FILENO;
    int link, code = mrt_keeper_find_owner(&self->run, self->owner, is_captured, &owner);
    if (!code)
        code = mrt_keeper_start(&self->run, &owner, &link);
    if (!code)
        code = mrt_keeper_wait(link, &owner, &word);
    if (code)
        return code;
    code = mrt_token_write(&self->place, word.token);
    if (code)
        return mrt_keeper_dismiss(link, code);
    if (!mrt_keeper_commit(link))
        return mrt_cli_fail(MRT_EXIT_LOST, "%s: the lock was lost", self->run.name);
    return 0;
}

int mrt_cli_acquire(struct mrt_cli *cli, int argc, char **argv)
{
    struct acquire self = {.run.cli = cli};
    struct mrt_run *run = &self.run;
    int option, code = 0;
    mrt_run_set_standards(run);
    run->on_lost = MRT_ON_LOST_IGNORE;
    while (!code && (option = mrt_cli_option(cli, argc, argv)) != MRT_OPTION_END) {
        if (option == MRT_OPTION_STOP)
            return cli->exit_code;
        code = take_option(&self, option);
    }
    if (code)
        return code;
    if (argc - optind != 1)
        return mrt_cli_fail(MRT_EXIT_USAGE, "acquire takes one name; see --help");
    run->name = argv[optind];
    code = mrt_run_add_name(run, run->name);
    if (!code)
        code = mrt_run_check_together(run);
    if (!code && self.durable && self.owner)
        code = mrt_cli_fail(MRT_EXIT_USAGE, "--durable is for no process: --pid is too much");
    if (!code && self.durable && run->file)
        code = mrt_cli_fail(MRT_EXIT_USAGE,
                            "--durable is for no process, which --flock needs: leave one out");
    if (code)
        return code;
    mrt_run_warn_of_files(run);
    return self.durable ? mrt_detach_acquire(run, &self.place) : acquire_for_owner(&self);
}
