/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run -F: the command takes the place of mortise, its process number included, as supervisors of
 * services want it. So another process has to hold the locks, a keeper (keeper/keeper.c). It holds
 * them until the command's whole process group has ended, and ends the group when they are lost;
 * its guard does so when the keeper itself is stopped or killed.
 *
 * For that the command has to lead a group. If this process does not lead one yet, it becomes the
 * leader of a new one. If the terminal's keys are meant for the group that it would leave, that is
 * refused: no process would give the terminal back in the end.
 *
 * Compared with run, two promises are missing: the exit code is the command's even when the lock
 * was lost, and the lock is free only a moment after the command has ended.
 */
#include "cli/keeper/keeper.h"
#include "cli/run/command.h"
#include "cli/run/held.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int lead_group(struct mrt_target *owner)
{
    struct mrt_terminal terminal = {.fd = -1};
    if (getpgrp() != getpid()) {
        if (mrt_terminal_exists(&terminal) && tcgetpgrp(terminal.fd) == getpgrp())
            return mrt_cli_fail(MRT_EXIT_USAGE,
                                "-F: the terminal's foreground is shared with others; begin with "
                                "exec, or leave -F out");
        if (setpgid(0, 0) < 0)
            return mrt_cli_fail(MRT_EXIT_INTERNAL, "-F: no process group: %s", strerror(errno));
    }
    if (terminal.fd >= 0)
        close(terminal.fd);
    *owner =
        (struct mrt_target){.group = getpid(), .pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0)};
    if (owner->pidfd < 0)
        return mrt_cli_fail(MRT_EXIT_INTERNAL, "-F: %s", strerror(errno));
    return 0;
}

static int become_command(struct mrt_run *run, const struct mrt_keeper_word *word, int link)
{
    for (size_t i = 0; i < run->count; i++) {
        run->locks[i].is_outer = word->outer[i];
        run->locks[i].fence = word->fences[i];
    }
    run->address = strdup(word->address);
    if (!mrt_run_wipe_secrets(run))
        return mrt_cli_fail(MRT_EXIT_INTERNAL, "out of memory");
    if (word->are_outer)
        return mrt_run_replace(run);
    if (!mrt_run_set_environment(run))
        return mrt_cli_fail(MRT_EXIT_INTERNAL, "out of memory");
    mrt_run_event(run, "started", NULL, ", \"pid\": %d", (int)getpid());
    if (!mrt_keeper_commit(link))
        return mrt_cli_fail(MRT_EXIT_LOST, "%s: the lock was lost; the command was not started",
                            run->name);
    if (!run->keep_descriptors)
        mrt_run_shed_descriptors(run->lost_pipe[0]);
    else
        fcntl(run->lost_pipe[0], F_SETFD, 0);
    mrt_cli_restore_core();
    execvp(run->command[0], run->command);
    return mrt_run_fail_exec(run, errno);
}

int mrt_run_in_place(struct mrt_run *run)
{
    struct mrt_target owner;
    static struct mrt_keeper_word word;
    int link, code = lead_group(&owner);
    if (!code && pipe2(run->lost_pipe, O_CLOEXEC) < 0)
        code = mrt_cli_fail(MRT_EXIT_INTERNAL, "-F: %s", strerror(errno));
    if (!code)
        code = mrt_keeper_start(run, &owner, &link);
    if (!code)
        code = mrt_keeper_wait(link, &owner, &word);
    if (code)
        return code;
    if (!word.is_due)
        return mrt_keeper_dismiss(link, 0);
    code = become_command(run, &word, link);
    free(run->address);
    return code;
}
