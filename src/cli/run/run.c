/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise run: a command under a lock, or under several.
 *
 * The order is the safety of it: the arguments are checked before anything is
 * touched; the lock is held before the guard is forked, the guard is there before
 * the command starts, and the lock is given back when the command's process group
 * is empty.
 */

#include "cli/run/command.h"
#include "cli/run/held.h"
#include "cli/run/locks.h"
#include "cli/run/options.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

const struct mrt_subcommand mrt_run_subcommand = {
    .name = "run",
    .summary = "run a command while holding a lock",
    .operands = "NAME [--] COMMAND [ARGUMENT...]\nNAME -c STRING",
    .about = "Waits for the lock NAME, runs the command while holding it, and ends with the\n"
             "command's exit code.\n",
    .notes = "DURATION: seconds (10, 0.5), or with units (500ms, 10s, 5m, 1h, 2d, 1m30s).\n"
             "The command finds MORTISE_NAME, MORTISE_FENCE, and in MORTISE_LOCK_FD a descriptor\n"
             "that becomes readable when the lock is lost.\n"
             "Exit codes: the command's own; 128+N if signal N ended it; 126 and 127 if it cannot\n"
             "be run or found; 64 wrong usage; 69 store out of reach; 70 no memory or processes\n"
             "left; 75 not acquired; 76 lost while held; 77 permission denied; 78 wrong\n"
             "configuration; 79 lost, and the command could not be stopped; 124 --max-hold is\n"
             "over.\n",
    .flags = mrt_run_flags,
    .count = MRT_RUN_FLAG_COUNT - MRT_RUN_FLAGS_OF_ELECT,
    .function = mrt_cli_run,
    .traits = MRT_FLAG_COMMAND,
};

/* The command under the locks that are held: its exit code. */
static int run_command(struct mrt_run *run)
{
    mrt_terminal_init(&run->terminal);
    if (!mrt_guard_start(&run->guard, run->is_leased) || pipe2(run->lost_pipe, O_CLOEXEC) < 0)
        return mrt_cli_fail(MRT_EXIT_INTERNAL, "cannot start the guard: %s", strerror(errno));
    if (!mrt_run_set_environment(run))
        return mrt_cli_fail(MRT_EXIT_INTERNAL, "out of memory");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    mrt_run_tell_guard(run);
    pid_t child = mrt_run_spawn(run);
    if (child < 0 && errno == ETIME)
        return mrt_cli_fail(MRT_EXIT_LOST, "%s: the lock was lost; the command was not started",
                            run->name);
    if (child < 0)
        return mrt_run_fail_exec(run, errno);
    close(run->lost_pipe[0]);
    return mrt_run_supervise(run, child);
}

static int run_locked(struct mrt_run *run)
{
    int code;
    if (!mrt_run_wait(run, &code))
        return code;
    if (mrt_run_is_due(run, &code)) {
        code = *run->command ? run_command(run) : mrt_elect_lead(run);
        if (code == 0)
            mrt_run_count_success(run);
    }
    mrt_guard_dismiss(&run->guard);
    if (run->min_hold > 0)
        mrt_run_linger(run, mrt_time_add(run->acquired_at, run->min_hold));
    int error = mrt_run_release(run);
    if (error && code != MRT_EXIT_LOST && code != MRT_EXIT_NOT_STOPPED)
        mrt_cli_fail_error("warning: at the release", error);
    return code;
}

static int run_on_client(struct mrt_run *run)
{
    int code = mrt_run_fit_grace(run);
    if (!code)
        code = mrt_run_block_signals(run);
    if (!code)
        code = mrt_run_make_locks(run);
    if (code)
        return code;
    return run->observe ? mrt_elect_observe(run) : run_locked(run);
}

void mrt_run_set_standards(struct mrt_run *run)
{
    run->asker = getpid();
    run->deadline = INT64_MAX;
    run->weight = 1;
    run->grace = 5 * MRT_SECOND;
    run->conflict_code = MRT_EXIT_BUSY;
    run->status_fd = -1;
}

int mrt_run_whole(struct mrt_run *run, int argc, char **argv)
{
    int code;
    mrt_run_set_standards(run);
    if (!mrt_run_take_arguments(run, argc, argv, &code))
        return code;
    mrt_run_warn_of_immune(run);
    mrt_run_warn_of_files(run);
    mrt_run_set_label(run);
    if (run->no_fork)
        return mrt_run_in_place(run);
    code = mrt_run_set_lease(run);
    if (!code)
        code = mrt_run_open(run);
    if (code) {
        free(run->leased_url);
        return code;
    }
    code = mrt_run_wipe_secrets(run) ? mrt_run_find_outer(run)
                                     : mrt_cli_fail(MRT_EXIT_INTERNAL, "out of memory");
    bool are_outer = !code && mrt_run_are_all_outer(run);
    if (are_outer && run->every_success) {
        are_outer = false;
        code = mrt_cli_fail(MRT_EXIT_USAGE, "%s: --every-success inside a run of the same lock",
                            run->name);
    }
    if (!code && !are_outer)
        code = run_on_client(run);
    else if (are_outer)
        are_outer = mrt_run_is_due(run, &code);
    int error = mortise_close(run->client);
    mrt_guard_reap(&run->guard);
    free(run->address);
    free(run->leased_url);
    if (!are_outer && error)
        mrt_cli_fail_error("warning: at the end", error);
    if (!are_outer)
        return code;
    if (run->verbose)
        mrt_cli_say("%s: held by an outer run already, fence %" PRIu64, run->name,
                    mrt_run_fence(run));
    return mrt_run_replace(run);
}

int mrt_cli_run(struct mrt_cli *cli, int argc, char **argv)
{
    struct mrt_run run = {.cli = cli};
    return mrt_run_whole(&run, argc, argv);
}
