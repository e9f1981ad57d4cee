/*
 * Looking after the command until its process group is empty. The lock is never
 * given back earlier, but for one case: it is lost. Then, or before a lease ends,
 * the group gets TERM, and KILL after the grace, in time for it to be dead before
 * anybody else can be granted the lock; or what --on-lost says instead. The guard is told of
 * that instant again and again, in case we are the ones that are stopped.
 *
 * That somebody has broken the lock, or asks for it, the store is to tell at once; to have it do
 * so costs requests, which a release would have to wait for. So it is asked only when the command
 * has lived for a moment; what has happened by then is told then.
 *
 * The command's own process is its group's leader. When it is gone others of the
 * group may live on; they are waited for. Those whose parent is gone become our
 * children (subreaper), so that their end is a signal; for the rest the group is
 * looked at now and then. Somebody who wants mortise to end at that point has
 * them ended: TERM, grace, KILL.
 */
#include "cli/run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The guard's TERM comes so much after ours was due. */
#define GUARD_LAG (100 * MRT_MILLISECOND)
/* Smaller changes of the guard's times are not worth a message. */
#define GUARD_STEP (10 * MRT_MILLISECOND)
#define ATTEND_AFTER (50 * MRT_MILLISECOND)
#define GROUP_LOOK_FIRST (10 * MRT_MILLISECOND)
#define GROUP_LOOK_LAST (2 * MRT_SECOND)

struct child {
    struct mrt_run *run;
    pid_t group;
    bool running; /* the leader */
    int status;   /* its, once it is gone */
    bool asked_to_end;
    bool stopping;   /* TERM was sent by us */
    bool lock_gone;  /* because the lock is lost, or about to be */
    bool time_is_up; /* because of --max-hold */
    mrt_time kill_at;
    mrt_time attend_at; /* MRT_TIME_NEVER: done */
    mrt_time look_every;
};

/* ------------------------------------------------------ the lock's state */

static void on_state(void *argument, mortise_hold hold, mortise_state state)
{
    struct mrt_run_lock *lock = argument;
    struct mrt_run *run = lock->run;
    const char *event = state == MORTISE_LOST        ? "lost"
                        : state == MORTISE_SUSPENDED ? "suspended"
                                                     : "resumed";
    (void)hold;
    mrt_run_event(run, event, lock, ", \"fence\": %" PRIu64, lock->fence);
    if (state == MORTISE_LOST)
        run->lost = true;
    else if (run->verbose)
        mrt_cli_say("%s: %s", lock->name,
                    state == MORTISE_SUSPENDED ? "the store does not answer, still held"
                                               : "the store answers again");
}

/* Whoever started us may end the command; we do not. */
static void on_revoke(void *argument, mortise_hold hold)
{
    const struct mrt_run_lock *lock = argument;
    (void)hold;
    mrt_run_event(lock->run, "revoke", lock, ", \"fence\": %" PRIu64, lock->fence);
    if (lock->run->verbose)
        mrt_cli_say("%s: somebody asks to give it up", lock->name);
}

/* When the first of the locks ends if the store is never heard of again; 0: one is lost. */
static mrt_time find_end(const struct mrt_run *run)
{
    int64_t least = INT64_MAX;
    if (run->lost)
        return 0;
    for (size_t i = 0; i < run->count; i++) {
        int64_t remaining =
            run->locks[i].is_outer ? INT64_MAX : mortise_hold_remaining_ms(run->locks[i].hold);
        least = remaining < least ? remaining : least;
    }
    return least == INT64_MAX ? MRT_TIME_NEVER
                              : mrt_time_add(mrt_time_now(), mrt_time_from_ms(least));
}

/* From the first thing done to the command until it has to be dead. */
static mrt_time find_lead(const struct mrt_run *run)
{
    bool gentle = run->on_lost == MRT_ON_LOST_TERM || run->on_lost == MRT_ON_LOST_EXEC;
    return MRT_RUN_LEASE_MARGIN + (gentle ? run->grace : 0);
}

mrt_time mrt_run_term_time(const struct mrt_run *run)
{
    mrt_time end = find_end(run);
    return end == MRT_TIME_NEVER ? end : mrt_time_add(end, -find_lead(run));
}

void mrt_run_tell_guard(struct mrt_run *run)
{
    if (!run->is_leased || run->on_lost == MRT_ON_LOST_IGNORE)
        return;
    mrt_time end = find_end(run);
    mrt_time kill_at = end == MRT_TIME_NEVER ? end : mrt_time_add(end, -MRT_RUN_LEASE_MARGIN);
    mrt_time change = mrt_time_add(kill_at, -run->guard.kill_at);
    if (change < GUARD_STEP && change > -GUARD_STEP)
        return;
    mrt_time term_at = run->on_lost == MRT_ON_LOST_KILL || run->grace <= GUARD_LAG
                           ? kill_at
                           : mrt_time_add(kill_at, GUARD_LAG - run->grace);
    mrt_guard_set_times(&run->guard, term_at, kill_at);
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

static void kill_if_due(struct child *child, mrt_time now)
{
    if (now < child->kill_at)
        return;
    child->kill_at = MRT_TIME_NEVER;
    kill(-child->group, SIGKILL);
}

/* What --on-lost says, with `left` until the group has to be dead. */
static void end_command(struct child *child, mrt_time now, mrt_time left)
{
    struct mrt_run *run = child->run;
    mrt_time kill_at = mrt_time_add(now, run->on_lost == MRT_ON_LOST_KILL ? 0 : left);
    child->kill_at = kill_at = mrt_time_min(kill_at, child->kill_at);
    if (run->is_leased)
        mrt_guard_set_times(&run->guard, kill_at, kill_at);
    bool is_told = run->on_lost == MRT_ON_LOST_EXEC && mrt_run_spawn_on_lost(run, child->group);
    if (!is_told && kill_at > now) {
        child->stopping = false;
        send_term(child, kill_at);
    }
}

/* If the lock is lost or soon will be: word to who reads MORTISE_LOCK_FD, and an end. */
static void check_lock(struct child *child, mrt_time now)
{
    struct mrt_run *run = child->run;
    if (child->lock_gone || mrt_run_term_time(run) > now)
        return;
    child->lock_gone = true;
    ssize_t written = write(run->lost_pipe[1], "", 1);
    (void)written; /* a reader that is gone needs no word */
    if (run->on_lost == MRT_ON_LOST_IGNORE) {
        mrt_cli_say("%s: the lock was lost; the command goes on", run->name);
        return;
    }
    /* What holds for a lease: who is granted next does not wait for our grace. */
    mrt_time left =
        run->is_leased ? mrt_time_add(find_end(run), -MRT_RUN_LEASE_MARGIN - now) : run->grace;
    end_command(child, now, mrt_time_min(left, run->grace));
}

static void check_time(struct child *child, mrt_time now)
{
    mrt_time limit = child->run->max_hold;
    if (limit == 0 || child->time_is_up || now < mrt_time_add(child->run->acquired_at, limit))
        return;
    child->time_is_up = true;
    mrt_run_event(child->run, "time-is-up", NULL, ", \"pid\": %d", (int)child->group);
    send_term(child, mrt_time_add(now, child->run->grace));
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
    mrt_time next = mrt_time_min(child->kill_at, child->attend_at);
    if (!child->lock_gone)
        next = mrt_time_min(next, mrt_run_term_time(child->run));
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

static int find_exit_code(const struct child *child)
{
    const struct mrt_run *run = child->run;
    if (child->lock_gone && run->on_lost != MRT_ON_LOST_IGNORE)
        return mrt_cli_fail(MRT_EXIT_LOST, "%s: the lock was lost; the command was stopped",
                            run->name);
    if (child->time_is_up)
        return mrt_cli_fail(MRT_EXIT_TIME_IS_UP, "%s: --max-hold is over; the command was stopped",
                            run->name);
    if (WIFSIGNALED(child->status))
        return MRT_EXIT_SIGNAL + WTERMSIG(child->status);
    return WEXITSTATUS(child->status);
}

static void attend_if_due(struct child *child, mrt_time now)
{
    struct mrt_run *run = child->run;
    if (now < child->attend_at)
        return;
    child->attend_at = MRT_TIME_NEVER;
    for (size_t i = 0; i < run->count; i++) {
        struct mrt_run_lock *lock = &run->locks[i];
        if (lock->is_outer)
            continue;
        if (mortise_on_lost(lock->hold, on_state, lock) != 0)
            on_state(lock, lock->hold, MORTISE_LOST);
        else
            mortise_on_revoke(lock->hold, on_revoke, lock);
    }
}

int mrt_run_supervise(struct mrt_run *run, pid_t pid)
{
    struct child child = {.run = run, .group = pid, .running = true, .kill_at = MRT_TIME_NEVER};
    child.attend_at = mrt_time_add(mrt_time_now(), ATTEND_AFTER);
    mrt_run_event(run, "started", NULL, ", \"pid\": %d", (int)pid);
    while (is_alive(&child)) {
        int signal;
        mrt_run_poll(run, find_next_time(&child));
        while ((signal = mrt_run_next_signal(run)) != 0)
            handle_signal(&child, signal);
        mrt_time now = mrt_time_now();
        attend_if_due(&child, now);
        check_lock(&child, now);
        check_time(&child, now);
        kill_if_due(&child, now);
        if (!child.lock_gone)
            mrt_run_tell_guard(run);
    }
    tell_end(&child);
    return find_exit_code(&child);
}
