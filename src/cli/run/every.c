/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --every: once in each period, the first run of any host.
 *
 * Time is cut into periods from 1970 on, in UTC. The cell "NAME/every" has the beginning of the
 * newest period that has had its run, in milliseconds, as text. It is read and written under
 * the lock and before the command starts: so a command that fails, or whose host dies, has
 * had its run all the same, and none has two. Two who hold the lock together (-s, permits) are
 * kept apart by the cell's version.
 *
 * With --every-success it is written when the command has ended with 0, with the fence of the hold:
 * the next run in the period repeats a command that failed. A host that dies between the end and
 * the note leaves a second run behind, never none. The lock alone keeps runs apart, so it
 * has to be held alone, and mortise has to be there at the end.
 *
 * Periods are told by the hosts' clocks. One that is a whole period ahead or more has been
 * wrong: its word does not keep the others from running.
 */

#include "cli/run/held.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SUFFIX "/every"

/* Beginning of the present period, milliseconds since 1970. */
static int64_t find_period(const struct mrt_run *run)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t wall_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / MRT_MILLISECOND;
    return wall_ms - wall_ms % (run->every / MRT_MILLISECOND);
}

/* The period in the cell; -1: none. */
static int64_t read_period(const mortise_cell *cell)
{
    char text[32];
    int64_t period;
    if (cell->version == 0 || cell->size >= sizeof text)
        return -1;
    memcpy(text, cell->value, cell->size);
    text[cell->size] = '\0';
    return mrt_cli_number(text, 0, INT64_MAX, &period) ? period : -1;
}

int mrt_run_check_every(const struct mrt_run *run)
{
    if (run->every_success && run->every == 0)
        return mrt_cli_fail(MRT_EXIT_USAGE, "--every-success needs --every");
    if (run->every_success && run->no_fork)
        return mrt_cli_fail(MRT_EXIT_USAGE,
                            "--every-success and -F do not go together: nobody sees the end");
    if (run->every_success && (run->mode == MRT_RUN_SHARED || run->mode == MRT_RUN_PERMITS))
        return mrt_cli_fail(MRT_EXIT_USAGE,
                            "--every-success needs a lock that is held alone, not -s or --permits");
    if (run->every > 0 && strlen(run->name) + strlen(SUFFIX) > MORTISE_NAME_MAX)
        return mrt_cli_fail(MRT_EXIT_USAGE, "--every needs a name of %zu bytes at most",
                            MORTISE_NAME_MAX - strlen(SUFFIX));
    return 0;
}

static bool is_done(const struct mrt_run *run, const mortise_cell *cell, int64_t period)
{
    int64_t done = read_period(cell), ahead = run->every / MRT_MILLISECOND;
    if (done > period + ahead)
        mrt_cli_say("%s: a host's clock was ahead by %" PRId64 "s when it ran this", run->name,
                    (done - period) / 1000);
    return done >= period && done <= period + ahead;
}

static int note_period(const struct mrt_run *run, const char *name, uint64_t version)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, run->period);
    uint64_t fence = run->every_success ? mrt_run_fence(run) : 0;
    return mortise_cell_cas(run->client, name, version, text, strlen(text), fence, NULL);
}

static void name_cell(const struct mrt_run *run, char name[MORTISE_NAME_MAX + 1])
{
    snprintf(name, MORTISE_NAME_MAX + 1, "%s" SUFFIX, run->name);
}

/* Whether it is due, which is noted if any run counts. False: it has been run, or *code. */
static bool take_period(struct mrt_run *run, int *code)
{
    static mortise_cell cell;
    char name[MORTISE_NAME_MAX + 1];
    name_cell(run, name);
    run->period = find_period(run);
    int error = mortise_cell_get(run->client, name, &cell);
    if (!error && is_done(run, &cell, run->period))
        return false;
    if (!error && !run->every_success)
        error = note_period(run, name, cell.version);
    if (error && error != MORTISE_ECONFLICT)
        *code = mrt_cli_fail_error(run->name, error);
    return !error;
}

bool mrt_run_is_due(struct mrt_run *run, int *code)
{
    *code = 0;
    if (run->every == 0 || take_period(run, code))
        return true;
    if (*code)
        return false;
    mrt_run_event(run, "not-due", NULL, ", \"every_ms\": %" PRId64, run->every / MRT_MILLISECOND);
    if (run->verbose)
        mrt_cli_say("%s: has been run in this period", run->name);
    return false;
}

void mrt_run_count_success(const struct mrt_run *run)
{
    static mortise_cell cell;
    char name[MORTISE_NAME_MAX + 1];
    if (!run->every_success)
        return;
    name_cell(run, name);
    int error = mortise_cell_get(run->client, name, &cell);
    if (!error && !is_done(run, &cell, run->period))
        error = note_period(run, name, cell.version);
    if (error)
        mrt_cli_fail_error("warning: the success was not noted, and may be repeated", error);
}
