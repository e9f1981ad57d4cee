/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks after the command until its process group is empty. The lock is never
 * released earlier, except when it is lost (ending.c).
 *
 * The command's own process is its group's leader. When it has ended, others of the
 * group may live on, and mortise waits for them. A process whose parent has ended becomes our
 * child (subreaper), so its end is a signal. Processes with a living parent send none, so the
 * group is checked from time to time. A signal that ends mortise at that point
 * ends them: TERM, grace, KILL.
 *
 * Processes that have left the group, as daemons do, are found as descendants (target.c).
 * --stragglers decides whether mortise leaves them alone, waits for them as for the group, or ends
 * them when the group is empty.
 */

#include "cli/run/command.h"
#include "cli/run/locks.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#define GROUP_LOOK_FIRST (10 * MRT_MILLISECOND)
#define GROUP_LOOK_LAST (2 * MRT_SECOND)

struct child {
    struct mrt_run *run;
    pid_t group;
    bool running; /* the leader */
    int status;   /* its, once it is gone */
    bool asked_to_end;
    bool time_is_up; /* because of --max-hold */
    struct mrt_ending ending;
    mrt_time look_every;
};

static void check_time(struct child *child, mrt_time now)
{
    mrt_time limit = child->run->max_hold;
    if (limit == 0 || child->time_is_up || now < mrt_time_add(child->run->acquired_at, limit))
        return;
    child->time_is_up = true;
    mrt_run_event(child->run, "time-is-up", NULL, ", \"pid\": %d", (int)child->group);
    mrt_ending_term(&child->ending, mrt_time_add(now, child->run->grace));
}

/* -------------------------------------------------------------- signals */

static void follow_stop(struct child *child, int signal)
{
    struct mrt_run *run = child->run;
    struct mrt_terminal *terminal = &run->terminal;
    bool wants_terminal = signal == SIGTTIN || signal == SIGTTOU;
    if (wants_terminal && mrt_terminal_give(terminal, child->group)) {
        kill(-child->group, SIGCONT);
        return;
    }
    /* A SIGSTOP is left alone, unless a shell has to see it. */
    bool had = mrt_terminal_take(terminal, child->group);
    if (signal == SIGSTOP ? !had : !mrt_terminal_exists(terminal))
        return;
    mrt_terminal_stop(0);
    /* Continued: time has passed, so the lock is checked first. */
    mortise_process(run->client);
    mrt_ending_check_lock(&child->ending, mrt_time_now());
    if (terminal->eager || wants_terminal)
        mrt_terminal_give(terminal, child->group);
    kill(-child->group, SIGCONT);
}

static void end_survivors(struct child *child)
{
    if (child->asked_to_end && !child->running)
        mrt_ending_term(&child->ending, mrt_time_add(mrt_time_now(), child->run->grace));
}

/* Children that are gone or stopped; not only the leader, see the head of this file. */
static void reap(struct child *child)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        if (pid == child->run->guard.pid)
            child->run->guard.pid = 0;
        if (pid != child->group)
            continue;
        if (WIFSTOPPED(status)) {
            follow_stop(child, WSTOPSIG(status));
            continue;
        }
        child->running = false;
        child->status = status;
        mrt_terminal_take(&child->run->terminal, child->group);
        end_survivors(child);
    }
}

static void handle_signal(struct child *child, int signal)
{
    if (signal == SIGCHLD) {
        reap(child);
        return;
    }
    if (signal == SIGCONT && child->running && child->run->terminal.eager)
        mrt_terminal_give(&child->run->terminal, child->group);
    if (child->ending.target.group > 0)
        kill(-child->group, signal);
    else
        mrt_target_signal(&child->ending.target, signal);
    if (mrt_run_is_terminating(signal) && signal != SIGUSR1 && signal != SIGUSR2) {
        child->asked_to_end = true;
        end_survivors(child);
    }
}

/* ----------------------------------------------------------------- loop */

/* Whether a process of the group is left. */
static bool is_group_alive(const struct child *child)
{
    pid_t group = child->ending.target.group;
    if (group == 0 || (kill(-group, 0) < 0 && errno == ESRCH))
        return false;
    return child->look_every < GROUP_LOOK_LAST || mrt_group_is_alive(group);
}

/* The group is empty: its number may be another's from now on. */
static void forget_group(struct child *child)
{
    struct mrt_run *run = child->run;
    struct mrt_target *target = &child->ending.target;
    if (target->group == 0)
        return;
    target->group = 0;
    child->look_every = 0;
    if (target->strays.root > 0)
        mrt_guard_mind(&run->guard, target);
    if (run->stragglers == MRT_STRAGGLERS_END)
        mrt_ending_term(&child->ending, mrt_time_add(mrt_time_now(), run->grace));
}

static void tell_left(const struct child *child)
{
    const struct mrt_run *run = child->run;
    const char *whose =
        child->ending.target.group == 0 ? "that descend from it" : "of its process group";
    if (child->look_every == 0 && run->verbose)
        mrt_cli_say("%s: the command has ended, others %s live on", run->name, whose);
}

static bool is_alive(struct child *child)
{
    if (child->running)
        return true;
    if (!is_group_alive(child)) {
        forget_group(child);
        if (!mrt_strays_are_alive(&child->ending.target.strays))
            return false;
    }
    tell_left(child);
    child->look_every = child->look_every == 0
                            ? GROUP_LOOK_FIRST
                            : mrt_time_min(child->look_every * 2, GROUP_LOOK_LAST);
    return true;
}

static mrt_time find_next_time(const struct child *child)
{
    mrt_time now = mrt_time_now();
    mrt_time next = mrt_ending_next_time(&child->ending);
    if (child->run->max_hold > 0 && !child->time_is_up)
        next = mrt_time_min(next, mrt_time_add(child->run->acquired_at, child->run->max_hold));
    if (!child->running)
        next = mrt_time_min(next, mrt_time_add(now, child->look_every));
    return next;
}

static void tell_end(const struct child *child)
{
    if (WIFSIGNALED(child->status))
        mrt_run_event(child->run, "child-exit", NULL, ", \"signal\": %d", WTERMSIG(child->status));
    else
        mrt_run_event(child->run, "child-exit", NULL, ", \"code\": %d", WEXITSTATUS(child->status));
}

/* With -v: says that nobody waits for them. */
static void tell_strays(const struct child *child)
{
    const struct mrt_run *run = child->run;
    if ((!run->verbose && run->status_fd < 0) || !mrt_strays_are_alive(&run->strays))
        return;
    mrt_run_event(run, "stragglers", NULL, "%s", "");
    if (run->verbose)
        mrt_cli_say("%s: processes that left the command's group live on, without the lock",
                    run->name);
}

static int find_exit_code(const struct child *child)
{
    const struct mrt_run *run = child->run;
    bool is_lost = child->ending.lock_gone && run->on_lost != MRT_ON_LOST_IGNORE;
    if (is_lost && child->ending.immune)
        return mrt_cli_fail(MRT_EXIT_NOT_STOPPED,
                            "%s: the lock was lost; the command ran on without it, as another user",
                            run->name);
    if (is_lost)
        return mrt_cli_fail(MRT_EXIT_LOST, "%s: the lock was lost; the command was stopped",
                            run->name);
    if (child->time_is_up)
        return mrt_cli_fail(MRT_EXIT_TIME_IS_UP, "%s: --max-hold is over; the command was stopped",
                            run->name);
    if (WIFSIGNALED(child->status))
        return MRT_EXIT_SIGNAL + WTERMSIG(child->status);
    return WEXITSTATUS(child->status);
}

int mrt_run_supervise(struct mrt_run *run, pid_t pid)
{
    struct child child = {.run = run, .group = pid, .running = true};
    struct mrt_target target = {.group = pid};
    if (run->stragglers != MRT_STRAGGLERS_LEAVE)
        target.strays = run->strays;
    mrt_ending_begin(&child.ending, run, target);
    mrt_run_event(run, "started", NULL, ", \"pid\": %d", (int)pid);
    while (is_alive(&child)) {
        int signal;
        mrt_run_poll(run, find_next_time(&child));
        while ((signal = mrt_run_next_signal(run)) != 0)
            handle_signal(&child, signal);
        mrt_time now = mrt_time_now();
        mrt_ending_step(&child.ending, now);
        check_time(&child, now);
    }
    tell_end(&child);
    tell_strays(&child);
    return find_exit_code(&child);
}
