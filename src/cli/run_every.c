/*
 * --every: once in each period, whoever on whatever host comes first.
 *
 * Time is cut into periods from 1970 on, in UTC. The cell "NAME/every" has the beginning of the
 * newest period that has had its run, in milliseconds, as text. It is read and written under
 * the lock and before the command starts: so a command that fails, or whose host dies, has
 * had its run all the same, and none has two. Two who hold the lock together (-s, permits) are
 * kept apart by the cell's version.
 *
 * Periods are told by the hosts' clocks. One that is a whole period ahead or more has been
 * wrong: its word does not keep the others from running.
 */
#include "cli/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SUFFIX "/every"

/* Beginning of the period that is now, milliseconds since 1970. */
static int64_t find_period(const struct mrt_run *run)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t wall_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / MRT_MILLISECOND;
    return wall_ms - wall_ms % (run->every / MRT_MILLISECOND);
}

/* What the cell has; -1: no period. */
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

/* Notes that this period has its run. False: it has had it, or *code. */
static bool note_period(const struct mrt_run *run, const char *name, int *code)
{
    static mortise_cell cell;
    char text[32];
    int64_t period = find_period(run);
    int error = mortise_cell_get(run->client, name, &cell);
    if (!error && is_done(run, &cell, period))
        return false;
    snprintf(text, sizeof text, "%" PRId64, period);
    if (!error)
        error = mortise_cell_cas(run->client, name, cell.version, text, strlen(text), 0, NULL);
    if (error && error != MORTISE_ECONFLICT)
        *code = mrt_cli_fail_error(run->name, error);
    return !error;
}

bool mrt_run_is_due(const struct mrt_run *run, int *code)
{
    char name[MORTISE_NAME_MAX + 1];
    *code = 0;
    if (run->every == 0)
        return true;
    snprintf(name, sizeof name, "%s" SUFFIX, run->name);
    if (note_period(run, name, code))
        return true;
    if (*code)
        return false;
    mrt_run_event(run, "not-due", NULL, ", \"every_ms\": %" PRId64, run->every / MRT_MILLISECOND);
    if (run->verbose)
        mrt_cli_say("%s: has been run in this period", run->name);
    return false;
}
