/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise elect: a run whose lock is an election (run.h), and what it does beside running a
 * command: to lead without a command, and to report who leads.
 *
 * An observer reads the leader once before it waits for changes, so a store out of reach
 * is an error and not a long silence.
 */
#include "cli/frame/json.h"
#include "cli/run/locks.h"
#include "cli/run/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const struct mrt_subcommand mrt_elect_subcommand = {
    .name = "elect",
    .summary = "campaign, and run a command while leading",
    .operands = "NAME [options] [[--] COMMAND [ARGUMENT...]]\nNAME --observe|--once",
    .about = "Waits until it leads the election NAME, runs the command while it leads, and ends\n"
             "with the command's exit code. Without a command it prints \"elected\" and leads\n"
             "until a signal ends it or the leadership is lost.\n",
    .notes = "The command runs as with mortise run, also when the leadership is lost.\n"
             "--observe and --once print the fence and the value of the leader, or \"nobody\n"
             "leads\". With --json they print objects with event, time, name, fence (0: nobody\n"
             "leads), fence_text and value.\n",
    .flags = mrt_run_flags + MRT_RUN_FLAGS_OF_RUN,
    .count = MRT_RUN_FLAG_COUNT - MRT_RUN_FLAGS_OF_RUN,
    .function = mrt_cli_elect,
    .traits = MRT_FLAG_COMMAND,
};

/* The signal that ends us; 0: none has come. */
static int ending_signal(struct mrt_run *run)
{
    int signal;
    while ((signal = mrt_run_next_signal(run)) != 0) {
        if (signal == SIGTSTP)
            mrt_terminal_stop(getpid());
        if (mrt_run_is_terminating(signal))
            return signal;
    }
    return 0;
}

int mrt_elect_lead(struct mrt_run *run)
{
    struct mrt_run_lock *lock = &run->locks[0];
    mortise_on_lost(lock->hold, NULL, NULL); /* a break is reported immediately */
    printf("elected, fence %" PRIu64 "\n", lock->fence);
    int code = mrt_cli_end_output();
    while (!code) {
        int64_t left = mortise_hold_remaining_ms(lock->hold);
        if (left == 0) {
            mrt_run_event(run, "lost", lock, ", " MRT_JSON_FENCE, lock->fence, lock->fence);
            return mrt_cli_fail(MRT_EXIT_LOST, "%s: leadership was lost", run->name);
        }
        mrt_run_poll(run, left == INT64_MAX ? MRT_TIME_NEVER
                                            : mrt_time_add(mrt_time_now(), mrt_time_from_ms(left)));
        int signal = ending_signal(run);
        code = signal ? MRT_EXIT_SIGNAL + signal : 0;
    }
    return code;
}

/* --------------------------------------------------------------- observing */

struct observed {
    struct mrt_run *run;
    int code; /* set when standard output cannot be written */
};

static void print_json(const char *name, uint64_t fence, const char *value)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    printf("{\"event\": \"leader\", \"time\": ");
    mrt_json_time(stdout, (int64_t)now.tv_sec * 1000 + now.tv_nsec / MRT_MILLISECOND);
    printf(", \"name\": ");
    mrt_json_string(stdout, name);
    printf(", " MRT_JSON_FENCE ", \"value\": ", fence, fence);
    mrt_json_string(stdout, value);
    printf("}\n");
}

static void on_leader(void *argument, const mortise_leader *leader)
{
    struct observed *observed = argument;
    char value[MORTISE_VALUE_MAX + 1], shown[4 * MORTISE_VALUE_MAX + 1];
    memcpy(value, leader->value, leader->size);
    value[leader->size] = '\0';
    mrt_cli_escape(value, shown, sizeof shown);
    if (observed->run->status_fd >= 0)
        print_json(observed->run->name, leader->fence, value);
    else if (leader->fence == 0)
        puts("nobody leads");
    else
        printf("%" PRIu64 " %s\n", leader->fence, shown);
    if (!observed->code)
        observed->code = mrt_cli_end_output();
}

static int follow(struct mrt_run *run, struct observed *observed)
{
    int error = mortise_election_observe(run->locks[0].election, on_leader, observed);
    int signal = 0;
    if (error)
        return mrt_cli_fail_error(run->name, error);
    while (!signal && !observed->code) {
        mrt_run_poll(run, MRT_TIME_NEVER);
        signal = ending_signal(run);
    }
    return signal ? MRT_EXIT_SIGNAL + signal : observed->code;
}

int mrt_elect_observe(struct mrt_run *run)
{
    static mortise_leader leader;
    struct observed observed = {.run = run};
    run->waits_for = &run->locks[0];
    int error = mortise_election_leader(run->locks[0].election, &leader);
    if (error && error != MORTISE_ENOLEADER)
        return mrt_cli_fail_error(run->name, error);
    if (!run->once)
        return follow(run, &observed);
    if (error)
        leader = (mortise_leader){.fence = 0};
    on_leader(&observed, &leader);
    return !observed.code && error ? MRT_EXIT_FAILED : observed.code;
}

int mrt_cli_elect(struct mrt_cli *cli, int argc, char **argv)
{
    struct mrt_run run = {.cli = cli, .mode = MRT_RUN_LEADER};
    return mrt_run_whole(&run, argc, argv);
}
