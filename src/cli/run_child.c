/*
 * Looking after the command until its process group is empty. The lock is never
 * given back earlier, but for one case: it is lost. Then, or before a lease ends,
 * the group gets TERM, and KILL after the grace, in time for it to be dead before
 * anybody else can be granted the lock.
 *
 * The command's own process is its group's leader. When it is gone others of the
 * group may live on; they are waited for. Those whose parent is gone become our
 * children (subreaper), so that their end is a signal; for the rest the group is
 * looked at now and then. Somebody who wants mortise to end at that point has
 * them ended: TERM, grace, KILL.
 */
#include "cli/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The group is to be dead so long before a lease ends. */
#define LEASE_MARGIN (200 * MRT_MILLISECOND)
#define GROUP_LOOK_FIRST (10 * MRT_MILLISECOND)
#define GROUP_LOOK_LAST (2 * MRT_SECOND)

struct child {
    struct mrt_run *run;
    pid_t group;
    bool running; /* the leader */
    int status;   /* its, once it is gone */
    bool asked_to_end;
    bool stopping;  /* TERM was sent by us */
    bool lock_gone; /* because the lock is lost, or about to be */
    mrt_time kill_at;
    mrt_time look_every;
};

/* ------------------------------------------------------ the lock's state */

static void on_state(void *argument, mortise_hold hold, mortise_state state)
{
    struct mrt_run *run = argument;
    (void)hold;
    if (state == MORTISE_LOST)
        run->lost = true;
    else if (run->verbose)
        mrt_cli_say("%s: %s", run->name,
                    state == MORTISE_SUSPENDED ? "the store does not answer, still held"
                                               : "the store answers again");
}

/* When TERM is due if the store is never heard of again. */
static mrt_time find_term_time(const struct mrt_run *run, mrt_time now)
{
    if (run->lost)
        return now;
    int64_t remaining = mortise_hold_remaining_ms(run->hold);
    if (remaining == INT64_MAX)
        return MRT_TIME_NEVER;
    return mrt_time_add(now, mrt_time_from_ms(remaining) - run->grace - LEASE_MARGIN);
}

static void send_term(struct child *child, mrt_time kill_at)
{
    if (child->stopping)
        return;
    child->stopping = true;
    child->kill_at = kill_at;
    kill(-child->group, SIGTERM);
    kill(-child->group, SIGCONT); /* a stopped process does not hear TERM */
}

/* TERM if the lock is lost or soon will be, and word to who reads MORTISE_LOCK_FD. */
static void check_lock(struct child *child, mrt_time now)
{
    struct mrt_run *run = child->run;
    if (child->lock_gone || find_term_time(run, now) > now)
        return;
    child->lock_gone = true;
    ssize_t written = write(run->lost_pipe[1], "", 1);
    (void)written; /* a reader that is gone needs no word */
    /* What holds for a lease: who is granted next does not wait for our grace. */
    mrt_time left = run->is_leased
                        ? mrt_time_from_ms(mortise_hold_remaining_ms(run->hold)) - LEASE_MARGIN
                        : run->grace;
    mrt_time kill_at = mrt_time_add(now, mrt_time_min(left, run->grace));
    child->stopping = false;
    send_term(child, mrt_time_min(kill_at, child->kill_at));
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
    /* SIGSTOP is somebody's own affair, unless a shell has to see it. */
    bool had = mrt_terminal_take(terminal, child->group);
    if (signal == SIGSTOP ? !had : !mrt_terminal_exists(terminal))
        return;
    mrt_terminal_stop(0);
    /* Continued; time has passed, so first of all the lock. */
    mortise_process(run->client);
    check_lock(child, mrt_time_now());
    if (terminal->eager || wants_terminal)
        mrt_terminal_give(terminal, child->group);
    kill(-child->group, SIGCONT);
}

static void end_survivors(struct child *child)
{
    if (child->asked_to_end && !child->running)
        send_term(child, mrt_time_add(mrt_time_now(), child->run->grace));
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
    kill(-child->group, signal);
    if (mrt_run_is_terminating(signal) && signal != SIGUSR1 && signal != SIGUSR2) {
        child->asked_to_end = true;
        end_survivors(child);
    }
}

/* ----------------------------------------------------------------- loop */

/* Whether somebody of the group is left. Once it is empty its number may be another's. */
static bool is_alive(struct child *child)
{
    if (child->running)
        return true;
    if (kill(-child->group, 0) < 0 && errno == ESRCH)
        return false;
    if (child->look_every >= GROUP_LOOK_LAST)
        return mrt_group_is_alive(child->group);
    if (child->look_every == 0 && child->run->verbose)
        mrt_cli_say("%s: the command has ended, others of its process group live on",
                    child->run->name);
    child->look_every = child->look_every == 0
                            ? GROUP_LOOK_FIRST
                            : mrt_time_min(child->look_every * 2, GROUP_LOOK_LAST);
    return true;
}

static mrt_time find_next_time(const struct child *child)
{
    mrt_time now = mrt_time_now();
    mrt_time next = child->kill_at;
    if (!child->lock_gone)
        next = mrt_time_min(next, find_term_time(child->run, now));
    if (!child->running)
        next = mrt_time_min(next, mrt_time_add(now, child->look_every));
    return next;
}

static void kill_if_due(struct child *child, mrt_time now)
{
    if (now < child->kill_at)
        return;
    child->kill_at = MRT_TIME_NEVER;
    kill(-child->group, SIGKILL);
}

static int find_exit_code(const struct child *child)
{
    if (child->lock_gone)
        return mrt_cli_fail(MRT_EXIT_LOST, "%s: the lock was lost; the command was stopped",
                            child->run->name);
    if (WIFSIGNALED(child->status))
        return MRT_EXIT_SIGNAL + WTERMSIG(child->status);
    return WEXITSTATUS(child->status);
}

int mrt_run_supervise(struct mrt_run *run, pid_t pid)
{
    struct child child = {.run = run, .group = pid, .running = true, .kill_at = MRT_TIME_NEVER};
    run->lost = mortise_on_lost(run->hold, on_state, run) != 0;
    while (is_alive(&child)) {
        int signal;
        mrt_run_poll(run, find_next_time(&child));
        while ((signal = mrt_run_next_signal(run)) != 0)
            handle_signal(&child, signal);
        mrt_time now = mrt_time_now();
        check_lock(&child, now);
        kill_if_due(&child, now);
    }
    return find_exit_code(&child);
}
