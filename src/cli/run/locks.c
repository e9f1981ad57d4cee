/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The set of locks of a run: its client, the handles, and the end of the holds.
 *
 * Invariant: only a lock that no outer run holds has a handle.
 * Threads: one.
 */

#include "cli/run/locks.h"
#include "cli/frame/json.h"

#include <inttypes.h>

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

int mrt_run_make_locks(struct mrt_run *run)
{
    int error = MORTISE_OK;
    for (size_t i = 0; i < run->count && !error; i++)
        if (!run->locks[i].is_outer)
            error = mrt_run_make_lock(run, &run->locks[i]);
    return error ? mrt_cli_fail_error(NULL, error) : 0;
}

int mrt_run_release(struct mrt_run *run)
{
    int error = MORTISE_OK;
    mrt_run_unlock_file(run);
    for (size_t i = run->count; i > 0; i--) {
        struct mrt_run_lock *lock = &run->locks[i - 1];
        if (!lock->hold.slot)
            continue;
        int result =
            lock->election ? mortise_election_resign(lock->election) : mortise_release(lock->hold);
        if (!error)
            error = result;
        if (!result)
            mrt_run_event(run, "released", lock, ", " MRT_JSON_FENCE, lock->fence, lock->fence);
        if (!result && run->verbose && lock->fence)
            mrt_cli_say("%s: released", lock->name);
        lock->hold = (mortise_hold){.slot = NULL};
    }
    return error;
}
