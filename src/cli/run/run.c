/*
 * mortise run: a command under a lock, or under several.
 *
 * The order is the safety of it: the arguments are checked before anything is
 * touched; the lock is held before the guard is forked, the guard is there before
 * the command starts, and the lock is given back when the command's process group
 * is empty.
 */
#include "cli/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

mrt_time mrt_run_longest_grace(const mortise_capabilities *can)
{
    mrt_time left = mrt_time_from_ms(can->lease_left_ms) - MRT_RUN_LEASE_MARGIN;
    return left > 0 ? left : 0;
}

/* The command must not be ended while the store answers: between two renewals a part of the lease
   is left, and the grace lies in it. A third of that part is for answers that take their time. */
int mrt_run_fit_grace(struct mrt_run *run)
{
    char grace[32], lease[32];
    mortise_capabilities can = {.size = sizeof(can)};
    int error = mortise_get_capabilities(run->client, &can);
    if (error)
        return mrt_cli_fail_error(NULL, error);
    mrt_time left = mrt_run_longest_grace(&can);
    run->is_leased = can.lease_ms > 0;
    if (run->is_leased && run->grace > left && !run->grace_given)
        run->grace = left / 3 * 2;
    run->spare = run->is_leased && left > run->grace ? left - run->grace : 0;
    if (!run->is_leased || run->grace <= left)
        return 0;
    mrt_cli_format_duration(mrt_time_from_ms(can.lease_ms), lease, sizeof(lease));
    mrt_cli_format_duration(run->grace, grace, sizeof(grace));
    return mrt_cli_fail(MRT_EXIT_USAGE,
                        "--grace %s is too long for a lease of %s: make it %" PRId64
                        "ms at most, or the lease longer",
                        grace, lease, left / MRT_MILLISECOND);
}

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

static void on_contact(void *argument, int error, const char *why)
{
    struct mrt_run *run = argument;
    bool is_away = error && run->waits_for;
    if (is_away == run->is_away)
        return;
    run->is_away = is_away;
    mrt_run_event(run, is_away ? "away" : "back", run->waits_for, "%s", "");
    if (is_away)
        mrt_cli_say("%s: no answer from the store (%s); trying again", run->waits_for->name, why);
    else
        mrt_cli_say("%s: %s answers again", run->name, why);
}

int mrt_run_open(struct mrt_run *run)
{
    run->cli->contact = on_contact;
    run->cli->contact_argument = run;
    int code = mrt_run_open_file(run);
    return code ? code : mrt_cli_open_shared(run->cli, &run->client);
}

static void on_queued(void *argument, uint64_t ahead)
{
    struct mrt_run *run = argument;
    (void)ahead;
    run->is_queued = true;
}

int mrt_run_make_lock(struct mrt_run *run, struct mrt_run_lock *lock)
{
    mortise_lock *other;
    bool tells = run->verbose || run->status_fd >= 0;
    mortise_lock_options options = {.size = sizeof options,
                                    .permits = run->weight,
                                    .queued = tells ? on_queued : NULL,
                                    .queued_argument = run,
                                    .lock_delay_ms = mrt_time_left_ms(run->lock_delay, 0)};
    mortise_election_options candidate = {.size = sizeof candidate,
                                          .value = run->value,
                                          .value_size = run->value ? strlen(run->value) : 0};
    switch (run->mode) {
    case MRT_RUN_SHARED:
        return mortise_read_write_new(run->client, lock->name, &options, &lock->lock, &other);
    case MRT_RUN_LEADER:
        return mortise_election_new(run->client, lock->name, &candidate, &lock->election);
    case MRT_RUN_PERMITS:
        return mortise_semaphore_new(run->client, lock->name, run->permits, &options, &lock->lock);
    default:
        return mrt_run_make_exclusive(lock, &options);
    }
}

static int run_on_client(struct mrt_run *run)
{
    int code = mrt_run_fit_grace(run);
    if (!code)
        code = mrt_run_block_signals(run);
    for (size_t i = 0; i < run->count && !code; i++) {
        int error = run->locks[i].is_outer ? 0 : mrt_run_make_lock(run, &run->locks[i]);
        code = error ? mrt_cli_fail_error(NULL, error) : 0;
    }
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
