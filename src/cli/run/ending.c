/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the process that a lock is held for has to end: the lock is lost, or will be when its lease
 * is over. Then it gets TERM, and KILL after the grace, in time for it to be dead before anybody
 * else can be granted the lock; or what --on-lost says instead. The guard is told of that instant
 * again and again, in case we are the ones that are stopped.
 *
 * That somebody has broken the lock, or asks for it, the store is to tell at once; to have it do
 * so costs requests, which a release would have to wait for. So it is asked only when the command
 * has lived for a moment; what has happened by then is told then.
 *
 * The system refuses a signal for a process that runs as another user (sudo). That is told at once,
 * and the exit code is MRT_EXIT_NOT_STOPPED: nothing here can end that process.
 */
#include "cli/frame/json.h"
#include "cli/run/command.h"

#include <errno.h>
#include <unistd.h>

/* The guard's TERM comes so much after ours was due. */
#define GUARD_LAG (100 * MRT_MILLISECOND)
/* Smaller changes of the guard's times are not worth a message. */
#define GUARD_STEP (10 * MRT_MILLISECOND)
#define ATTEND_AFTER (50 * MRT_MILLISECOND)
#define KILL_AGAIN (50 * MRT_MILLISECOND)

/* ------------------------------------------------------ the lock's state */

static void on_state(void *argument, mortise_hold hold, mortise_state state)
{
    struct mrt_run_lock *lock = argument;
    struct mrt_run *run = lock->run;
    const char *event = state == MORTISE_LOST        ? "lost"
                        : state == MORTISE_SUSPENDED ? "suspended"
                                                     : "resumed";
    (void)hold;
    mrt_run_event(run, event, lock, ", " MRT_JSON_FENCE, lock->fence, lock->fence);
    if (state == MORTISE_LOST)
        run->lost = true;
    else if (run->verbose)
        mrt_cli_say("%s: %s", lock->name,
                    state == MORTISE_SUSPENDED ? "the store does not answer, still held"
                                               : "the store answers again");
}

/* The program that started mortise may end the command; mortise does not. */
static void on_revoke(void *argument, mortise_hold hold)
{
    const struct mrt_run_lock *lock = argument;
    (void)hold;
    mrt_run_event(lock->run, "revoke", lock, ", " MRT_JSON_FENCE, lock->fence, lock->fence);
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

/* The time from the first signal to the command until it must be dead. */
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

static void send_signal(struct mrt_ending *ending, int signal)
{
    const struct mrt_run *run = ending->run;
    if (mrt_target_signal(&ending->target, signal) || errno != EPERM || ending->immune)
        return;
    ending->immune = true;
    mrt_run_event(run, "cannot-stop", NULL, ", \"pid\": %d", (int)ending->target.group);
    mrt_cli_say("%s: the command cannot be stopped: it runs as another user (process group %d); "
                "%s until that user ends it",
                run->name, (int)ending->target.group,
                ending->lock_gone ? "it runs without the lock" : "the lock stays held");
}

void mrt_ending_term(struct mrt_ending *ending, mrt_time kill_at)
{
    if (ending->stopping)
        return;
    ending->stopping = true;
    ending->kill_at = kill_at;
    send_signal(ending, SIGTERM);
    mrt_target_signal(&ending->target, SIGCONT); /* a stopped process does not hear TERM */
}

static void kill_if_due(struct mrt_ending *ending, mrt_time now)
{
    if (now < ending->kill_at)
        return;
    send_signal(ending, SIGKILL);
    /* A stray that was being forked meanwhile is killed the next time. A process that cannot be
     * killed shows only when the others of its group are dead. */
    bool again = ending->target.strays.root > 0 || !ending->killed;
    ending->kill_at = again ? mrt_time_add(now, KILL_AGAIN) : MRT_TIME_NEVER;
    ending->killed = true;
}

/* Does what --on-lost says; the group must be dead after `left`. */
static void end_command(struct mrt_ending *ending, mrt_time now, mrt_time left)
{
    struct mrt_run *run = ending->run;
    mrt_time kill_at = mrt_time_add(now, run->on_lost == MRT_ON_LOST_KILL ? 0 : left);
    ending->kill_at = kill_at = mrt_time_min(kill_at, ending->kill_at);
    if (run->is_leased)
        mrt_guard_set_times(&run->guard, kill_at, kill_at);
    bool is_told = run->on_lost == MRT_ON_LOST_EXEC && mrt_run_spawn_on_lost(run, &ending->target);
    if (!is_told && kill_at > now) {
        ending->stopping = false;
        mrt_ending_term(ending, kill_at);
    }
}

/* Tells readers of MORTISE_LOCK_FD, and ends the command within `left`. */
static void give_up(struct mrt_ending *ending, mrt_time now, mrt_time left)
{
    struct mrt_run *run = ending->run;
    ending->lock_gone = true;
    ssize_t written = write(run->lost_pipe[1], "", 1);
    (void)written; /* a reader that is gone needs no message */
    if (run->on_lost == MRT_ON_LOST_IGNORE)
        mrt_cli_say("%s: the lock was lost; the command goes on", run->name);
    else
        end_command(ending, now, mrt_time_min(left, run->grace));
}

void mrt_ending_give_up(struct mrt_ending *ending)
{
    if (!ending->lock_gone)
        give_up(ending, mrt_time_now(), ending->run->grace);
}

void mrt_ending_check_lock(struct mrt_ending *ending, mrt_time now)
{
    struct mrt_run *run = ending->run;
    bool guard_ends_it = run->guard.term_at != 0 && run->guard.term_at <= now;
    if (ending->lock_gone || (mrt_run_term_time(run) > now && !guard_ends_it))
        return;
    /* The time left of a lease: the next holder does not wait for our grace. */
    mrt_time left =
        run->is_leased ? mrt_time_add(find_end(run), -MRT_RUN_LEASE_MARGIN - now) : run->grace;
    give_up(ending, now, left);
}

static void attend_if_due(struct mrt_ending *ending, mrt_time now)
{
    struct mrt_run *run = ending->run;
    if (now < ending->attend_at)
        return;
    ending->attend_at = MRT_TIME_NEVER;
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

void mrt_ending_begin(struct mrt_ending *ending, struct mrt_run *run, struct mrt_target target)
{
    *ending = (struct mrt_ending){.run = run, .target = target, .kill_at = MRT_TIME_NEVER};
    ending->attend_at = mrt_time_add(mrt_time_now(), ATTEND_AFTER);
}

mrt_time mrt_ending_next_time(const struct mrt_ending *ending)
{
    mrt_time next = mrt_time_min(ending->kill_at, ending->attend_at);
    return ending->lock_gone ? next : mrt_time_min(next, mrt_run_term_time(ending->run));
}

void mrt_ending_step(struct mrt_ending *ending, mrt_time now)
{
    attend_if_due(ending, now);
    mrt_ending_check_lock(ending, now);
    kill_if_due(ending, now);
    if (!ending->lock_gone)
        mrt_run_tell_guard(ending->run);
}
