/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise try: whether locks could be had at this moment. They are acquired without waiting and
 * given back at once; the exit code is the answer. It is old when it arrives: to do something under
 * the lock, use run -n.
 */
#include "base/error.h"
#include "cli/run/locks.h"
#include "cli/run/options.h"

#define TRIES_MAX 4

static const struct mrt_flag flags[] = {MRT_RUN_MODE_FLAGS};

const struct mrt_subcommand mrt_try_subcommand = {
    .name = "try",
    .summary = "show by the exit code whether a lock is free",
    .operands = "NAME...",
    .about = "Acquires the locks without waiting, all or none, and releases them immediately.\n"
             "Ends with 0 if all were free, with 75 if one was not; it prints nothing.\n",
    .flags = flags,
    .count = sizeof flags / sizeof flags[0],
    .function = mrt_cli_try,
};

static int try_as_made(struct mrt_run *run)
{
    mortise_lock *locks[MRT_RUN_LOCKS_MAX];
    mortise_hold holds[MRT_RUN_LOCKS_MAX];
    for (size_t i = 0; i < run->count; i++)
        locks[i] = run->locks[i].lock;
    int error = mortise_acquire_all(locks, run->count, 0, holds);
    if (!error)
        mortise_release_all(holds, run->count);
    return error;
}

/* After a refusal: whether to try again. A name that a reader cannot share is busy. */
static bool join_all(struct mrt_run *run, int *error)
{
    bool again = false;
    int refused = *error;
    for (size_t i = 0; i < run->count && *error != MORTISE_EBUSY; i++) {
        enum mrt_join join = mrt_run_join(&run->locks[i], refused);
        again |= join == MRT_JOIN_TURNED;
        if (join == MRT_JOIN_WAITS)
            *error = MORTISE_EBUSY;
    }
    return again && *error != MORTISE_EBUSY;
}

static int try_all(struct mrt_run *run)
{
    char detail[MRT_ERROR_DETAIL_MAX];
    int code = mrt_run_make_locks(run);
    if (code)
        return code;
    for (int tries = 0;; tries++) {
        int error = try_as_made(run);
        mrt_error_copy_detail(detail);
        if (error && tries < TRIES_MAX && join_all(run, &error))
            continue;
        if (error == MORTISE_EBUSY)
            return MRT_EXIT_BUSY;
        const char *name = run->count == 1 ? run->locks[0].name : NULL;
        return error ? mrt_cli_fail_error(name, mrt_error(error, "%s", detail)) : MRT_EXIT_OK;
    }
}

int mrt_cli_try(struct mrt_cli *cli, int argc, char **argv)
{
    struct mrt_run run = {.cli = cli, .weight = 1, .status_fd = -1};
    int option, code = 0;
    while (!code && (option = mrt_cli_option(cli, argc, argv)) != MRT_OPTION_END) {
        if (option == MRT_OPTION_STOP)
            return cli->exit_code;
        code = mrt_run_take_mode(&run, option);
    }
    if (code)
        return code;
    if (optind == argc)
        return mrt_cli_fail(MRT_EXIT_USAGE, "no lock name; see --help");
    for (int i = optind; i < argc && !code; i++)
        code = mrt_run_add_name(&run, argv[i]);
    if (!code)
        code = mrt_run_check_together(&run);
    if (!code)
        code = mrt_cli_open_shared(cli, &run.client);
    if (code)
        return code;
    code = try_all(&run);
    int error = mortise_close(run.client);
    return error && !code ? mrt_cli_fail_error(NULL, error) : code;
}
