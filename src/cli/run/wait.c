/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acquiring the locks of a run, in their order, all or none.
 *
 * An interrupted wait is cancelled and its answer awaited, so that nothing stays queued.
 * Invariant: when mrt_run_wait returns false, nothing is held.
 * Threads: one.
 */
#include "base/error.h"
#include "cli/frame/json.h"
#include "cli/run/command.h"
#include "cli/run/held.h"
#include "cli/run/locks.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOOK_EVERY (100 * MRT_MILLISECOND)
/* A store that is not away and has not reported a place by then may be one that never does. */
#define QUEUED_AFTER MRT_SECOND
/* The pauses before an acquire is repeated whose name was in use with another kind. */
#define ASK_FIRST (5 * MRT_MILLISECOND)
#define ASK_LAST (300 * MRT_MILLISECOND)
/* So many refusals in a row of which a list shows no reason: where kinds take turns, the name may
   be in use as the other one at each attempt, and free at each list. */
#define UNCLEAR_MAX 16
/* Between two looks at the file of --flock. */
#define FILE_PAUSE (20 * MRT_MILLISECOND)

struct waiting {
    struct mrt_run *run;
    struct mrt_run_lock *lock;
    mortise_operation *operation; /* NULL: none is under way */
    bool done;
    int error;
    int interrupted; /* the signal */
    bool has_looked; /* whether anybody above us holds it: */
    bool is_endless;
    mrt_time since;
    bool has_told; /* that it waits */
};

static void on_acquired(void *argument, int error, mortise_hold hold)
{
    struct waiting *waiting = argument;
    waiting->done = true;
    waiting->error = error;
    waiting->lock->hold = hold;
}

static void on_elected(void *argument, int error)
{
    struct waiting *waiting = argument;
    waiting->done = true;
    waiting->error = error;
}

struct holder {
    char host[HOST_NAME_MAX + 1]; /* ours */
    bool found;
    char text[MRT_OWNER_TEXT_SIZE + 64];
};

static int note_holder(void *argument, const mortise_entry *entry)
{
    struct holder *holder = argument;
    char age[32], owner[MRT_OWNER_TEXT_SIZE];
    if (entry->place != 0 || (entry->pid == getpid() && strcmp(entry->host, holder->host) == 0))
        return 0;
    mrt_cli_describe_owner(entry, owner);
    mrt_cli_format_age(entry->since_wall_ms, age, sizeof(age));
    snprintf(holder->text, sizeof(holder->text), "held by %s for %s", owner[0] ? owner : "someone",
             age);
    holder->found = true;
    return 1;
}

/* "held by host web pid 12 for 3.2s", if the store shows somebody else; else `otherwise`. */
static const char *describe_holder(const struct waiting *waiting, const char *otherwise,
                                   struct holder *holder)
{
    *holder = (struct holder){.found = false};
    gethostname(holder->host, sizeof holder->host - 1);
    mortise_list(waiting->run->client, waiting->lock->name, note_holder, holder);
    return holder->found ? holder->text : otherwise;
}

static void cancel(struct waiting *waiting)
{
    if (waiting->lock->election)
        mortise_election_resign(waiting->lock->election);
    else if (waiting->operation)
        mortise_cancel(waiting->operation);
}

static void handle_signal(struct waiting *waiting, int signal)
{
    if (signal == SIGTSTP)
        mrt_terminal_stop(getpid());
    if (!mrt_run_is_terminating(signal) || waiting->interrupted)
        return;
    waiting->interrupted = signal;
    cancel(waiting);
}

static void tell_waiting(struct waiting *waiting)
{
    struct holder holder;
    waiting->has_told = true;
    mrt_run_event(waiting->run, "queued", waiting->lock, ", \"permits\": %" PRIu32,
                  waiting->run->weight);
    if (waiting->run->verbose)
        mrt_cli_say("%s: waiting, %s", waiting->lock->name,
                    describe_holder(waiting, "others are first", &holder));
}

/* If an outer run that waits for us holds the lock, the wait would never end, so it is an error;
   but not with a time limit. */
static void look_above(struct waiting *waiting)
{
    waiting->has_looked = true;
    if (waiting->run->deadline != INT64_MAX || waiting->run->no_wait || waiting->interrupted ||
        !mrt_run_is_held_above(waiting->run, waiting->lock) || waiting->done)
        return;
    waiting->is_endless = true;
    cancel(waiting);
}

/* Says that it waits as soon as the store has queued it, and nothing while the store is silent. */
static mrt_time tell_time(const struct waiting *waiting)
{
    const struct mrt_run *run = waiting->run;
    if (run->no_wait)
        return MRT_TIME_NEVER;
    if (run->is_queued && !waiting->has_told)
        return 0;
    return waiting->has_told || run->is_away ? MRT_TIME_NEVER
                                             : mrt_time_add(waiting->since, QUEUED_AFTER);
}

/* Until the callback has come: a cancelled acquire may still end with the lock. */
static void wait_for_answer(struct waiting *waiting)
{
    struct mrt_run *run = waiting->run;
    waiting->since = mrt_time_now();
    mortise_process(run->client);
    while (!waiting->done) {
        int signal;
        mrt_time look_at =
            waiting->has_looked ? MRT_TIME_NEVER : mrt_time_add(waiting->since, LOOK_EVERY);
        mrt_run_poll(run, mrt_time_min(look_at, tell_time(waiting)));
        if (!waiting->done && mrt_time_now() >= look_at)
            look_above(waiting);
        if (!waiting->done && mrt_time_now() >= tell_time(waiting))
            mortise_process(run->client); /* it may be late to say that the store is away */
        if (!waiting->done && mrt_time_now() >= tell_time(waiting))
            tell_waiting(waiting);
        while (!waiting->done && (signal = mrt_run_next_signal(run)) != 0)
            handle_signal(waiting, signal);
    }
}

static int campaign(struct waiting *waiting)
{
    struct mrt_run *run = waiting->run;
    struct mrt_run_lock *lock = waiting->lock;
    waiting->done = false;
    int error = run->no_wait ? mortise_election_campaign(lock->election, 0)
                             : mortise_election_campaign_async(lock->election, run->deadline,
                                                               on_elected, waiting);
    if (!error && !run->no_wait) {
        wait_for_answer(waiting);
        error = waiting->error;
    }
    if (error)
        return error;
    error = mortise_election_hold(lock->election, &lock->hold);
    return error == MORTISE_ENOTHELD ? MORTISE_ELOST : error;
}

static int acquire_as_made(struct waiting *waiting)
{
    struct mrt_run *run = waiting->run;
    struct mrt_run_lock *lock = waiting->lock;
    waiting->done = false;
    int error = run->no_wait ? mortise_try_acquire_async(lock->lock, on_acquired, waiting,
                                                         &waiting->operation)
                             : mortise_acquire_async(lock->lock, run->deadline, on_acquired,
                                                     waiting, &waiting->operation);
    if (error)
        return error;
    wait_for_answer(waiting);
    return waiting->error;
}

/* Pauses before the acquire is repeated; a waiting reader reports that it waits. Whether it may be
 * repeated. */
static bool pause_for(struct waiting *waiting, mrt_time pause, bool waits)
{
    struct mrt_run *run = waiting->run;
    mrt_time until = mrt_time_min(mrt_time_add(mrt_time_now(), pause), run->deadline);
    waiting->operation = NULL;
    waiting->done = false;
    if (waits && !waiting->has_told)
        tell_waiting(waiting);
    if (waits && !waiting->has_looked && pause >= LOOK_EVERY)
        look_above(waiting);
    while (!waiting->is_endless && !waiting->interrupted && mrt_time_now() < until) {
        mrt_run_poll(run, until);
        for (int signal; (signal = mrt_run_next_signal(run)) != 0;)
            handle_signal(waiting, signal);
    }
    return !waiting->is_endless && !waiting->interrupted && mrt_time_now() < run->deadline;
}

static const char *leave_out(const struct mrt_run *run, int error)
{
    bool is_unknown = run->mode == MRT_RUN_SHARED && error == MORTISE_ENOTSUPPORTED;
    return is_unknown ? "; leave -s out" : "";
}

/* Tries until the lock is acquired with the kind that its name is in use with. */
static int acquire_as_used(struct waiting *waiting)
{
    struct mrt_run *run = waiting->run;
    mrt_time pause = 0;
    for (int unclear = 0; unclear < UNCLEAR_MAX;) {
        char detail[MRT_ERROR_DETAIL_MAX];
        int error = acquire_as_made(waiting);
        if (error != MORTISE_EMISMATCH && error != MORTISE_ENOTSUPPORTED)
            return error;
        mrt_error_copy_detail(detail);
        enum mrt_join join = mrt_run_join(waiting->lock, error);
        unclear = join == MRT_JOIN_UNCLEAR ? unclear + 1 : 0;
        if (join == MRT_JOIN_FOREIGN)
            return mrt_error(error, "held as a mutex by a program that sees no readers; leave -s "
                                    "out, or use another name");
        if (join == MRT_JOIN_REFUSED || unclear == UNCLEAR_MAX)
            return mrt_error(error, "%s%s", detail, leave_out(run, error));
        bool waits = join == MRT_JOIN_WAITS;
        if (waits && run->no_wait)
            return MORTISE_EBUSY;
        if (!pause_for(waiting, pause, waits))
            return MORTISE_ETIMEOUT;
        pause = mrt_time_min(pause * 2 + ASK_FIRST, ASK_LAST);
    }
    return MORTISE_EMISMATCH;
}

static int acquire(struct waiting *waiting)
{
    waiting->has_looked = waiting->is_endless = waiting->has_told = false;
    waiting->run->is_queued = false;
    return waiting->lock->election ? campaign(waiting) : acquire_as_used(waiting);
}

static int say_not_acquired(const struct waiting *waiting, int error)
{
    const struct mrt_run *run = waiting->run;
    struct holder holder;
    if (waiting->interrupted) {
        mrt_run_event(run, "interrupted", waiting->lock, ", \"signal\": %d", waiting->interrupted);
        return MRT_EXIT_SIGNAL + waiting->interrupted;
    }
    mrt_run_event(run, "not-acquired", waiting->lock, ", \"error\": \"%s\"",
                  mortise_error_name(error));
    if (waiting->is_endless)
        return mrt_cli_fail(MRT_EXIT_USAGE,
                            "%s: held by a run or a script that this is part of, and that may wait "
                            "for it; with -w it is waited for all the same",
                            waiting->lock->name);
    if (error != MORTISE_EBUSY && error != MORTISE_ETIMEOUT)
        return mrt_cli_fail_error(waiting->lock->name, error);
    if (run->quiet_conflict)
        return run->conflict_code;
    return mrt_cli_fail(run->conflict_code, "%s: %s", waiting->lock->name,
                        describe_holder(waiting, mortise_error_text(error), &holder));
}

static void say_acquired(const struct mrt_run_lock *lock, mrt_time took)
{
    const struct mrt_run *run = lock->run;
    mrt_run_event(run, "acquired", lock, ", " MRT_JSON_FENCE ", \"waited_ms\": %" PRId64,
                  lock->fence, lock->fence, took / MRT_MILLISECOND);
    if (run->verbose)
        mrt_cli_say("%s: acquired after %" PRId64 ".%06" PRId64 "s, fence %" PRIu64 ", at %s",
                    lock->name, took / MRT_SECOND, took % MRT_SECOND / MRT_MICROSECOND, lock->fence,
                    mortise_url(run->client));
}

/* False: not acquired, and *code. */
static bool acquire_all(struct waiting *waiting, int *code)
{
    struct mrt_run *run = waiting->run;
    for (size_t i = 0; i < run->count; i++) {
        mrt_time since = mrt_time_now();
        waiting->lock = &run->locks[i];
        if (waiting->lock->is_outer)
            continue;
        run->waits_for = waiting->lock;
        int error = acquire(waiting);
        run->waits_for = NULL;
        if (error || waiting->interrupted) {
            *code = say_not_acquired(waiting, error);
            return false;
        }
        waiting->lock->fence = mortise_hold_fence(waiting->lock->hold);
        say_acquired(waiting->lock, mrt_time_now() - since);
    }
    return true;
}

static bool are_all_held(const struct mrt_run *run)
{
    for (size_t i = 0; i < run->count; i++)
        if (!run->locks[i].is_outer && !mortise_is_held(run->locks[i].hold))
            return false;
    return true;
}

/* The same of the file. */
static bool acquire_file(struct waiting *waiting, int *code)
{
    struct mrt_run *run = waiting->run;
    bool may_wait = !run->no_wait;
    int error;
    while ((error = mrt_run_lock_file(run)) == MORTISE_EBUSY && may_wait && are_all_held(run))
        may_wait = pause_for(waiting, FILE_PAUSE, false);
    if (error == MORTISE_EBUSY && may_wait)
        error = MORTISE_OK; /* a lock is lost, and all are acquired again */
    if (waiting->interrupted)
        *code = say_not_acquired(waiting, error);
    else if (error == MORTISE_EBUSY && run->quiet_conflict)
        *code = run->conflict_code;
    else if (error == MORTISE_EBUSY)
        *code = mrt_cli_fail(run->conflict_code, "%s: its flock is held by others", run->file);
    else if (error)
        *code = mrt_cli_fail(MRT_EXIT_CONFIG, "--flock %s: %s", run->file, strerror(errno));
    return !error && !waiting->interrupted;
}

/* When a lock is acquired after the store stood still, its lease is old, and the command would be
   ended soon after its start. So this waits until at least as much of the lease is left as between
   two renewals. False: the lease was not renewed, or a signal came. */
static bool settle(struct waiting *waiting)
{
    struct mrt_run *run = waiting->run;
    while (!waiting->interrupted && are_all_held(run)) {
        mrt_time now = mrt_time_now();
        if (mrt_run_term_time(run) > mrt_time_add(now, run->spare))
            return true;
        mrt_run_poll(run, mrt_time_add(now, LOOK_EVERY));
        for (int signal; (signal = mrt_run_next_signal(run)) != 0;)
            if (mrt_run_is_terminating(signal))
                waiting->interrupted = signal;
    }
    return false;
}

bool mrt_run_wait(struct mrt_run *run, int *code)
{
    struct waiting waiting = {.run = run, .lock = &run->locks[0]};
    do {
        mrt_run_release(run); /* holds that were lost before the command could start */
        if (!acquire_all(&waiting, code) || !acquire_file(&waiting, code)) {
            mrt_run_release(run);
            return false;
        }
    } while (!settle(&waiting) && !waiting.interrupted);
    run->acquired_at = mrt_time_now();
    if (!waiting.interrupted)
        return true;
    *code = say_not_acquired(&waiting, MORTISE_OK);
    mrt_run_release(run);
    return false;
}
