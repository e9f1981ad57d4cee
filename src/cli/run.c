/*
 * mortise run: a command under a lock.
 *
 * The order is the safety of it: the arguments are checked before anything is
 * touched; the lock is held before the guard is forked, the guard is there before
 * the command starts, and the lock is given back when the command's process group
 * is empty. Letters mean what they mean in flock(1).
 */
#include "cli/run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

const char mrt_cli_run_help[] =
    "Usage: mortise run [options] NAME [--] COMMAND [ARGUMENT...]\n"
    "       mortise run [options] NAME -c STRING\n"
    "Waits for the lock NAME, runs the command while holding it, and ends with the\n"
    "command's exit code.\n"
    "\n"
    "  -n, --nonblock                 do not wait: end at once if the lock is held\n"
    "  -w, --timeout DURATION         wait so long at most (0: do not wait)\n"
    "  -E, --conflict-exit-code CODE  exit code if not acquired (default 75)\n"
    "  -c, --command STRING           run STRING by $SHELL, or /bin/sh\n"
    "  -v, --verbose                  say on standard error what happens\n"
    "      --grace DURATION           if the lock is lost, the time from TERM to KILL\n"
    "                                 (default 5s)\n"
    "      --inherit-fds              leave descriptors above 2 open in the command\n"
    "      --url URL                  the store\n"
    "      --help                     this text\n"
    "\n"
    "DURATION: seconds (10, 0.5), or with units (500ms, 10s, 5m, 1h, 1m30s).\n"
    "The command finds MORTISE_NAME, MORTISE_FENCE, and in MORTISE_LOCK_FD a descriptor\n"
    "that becomes readable when the lock is lost.\n"
    "Exit codes: the command's own; 128+N if signal N ended it; 126 and 127 if it cannot\n"
    "be run or found; 64 wrong usage; 69 store out of reach; 75 not acquired; 76 lost\n"
    "while held; 77 permission denied; 78 wrong configuration.\n";

enum { GRACE = 0x200, INHERIT_FDS };

static const struct option long_options[] = {MRT_CLI_OPTIONS,
                                             {"nonblock", no_argument, NULL, 'n'},
                                             {"timeout", required_argument, NULL, 'w'},
                                             {"conflict-exit-code", required_argument, NULL, 'E'},
                                             {"command", required_argument, NULL, 'c'},
                                             {"verbose", no_argument, NULL, 'v'},
                                             {"grace", required_argument, NULL, GRACE},
                                             {"inherit-fds", no_argument, NULL, INHERIT_FDS},
                                             {NULL, 0, NULL, 0}};

/* ------------------------------------------------------------- arguments */

static int fail_duration(const char *option)
{
    return mrt_cli_fail(MRT_EXIT_USAGE, "%s: \"%.64s\" is not a duration, as 10, 0.5, 500ms, 1m30s",
                        option, optarg);
}

static int take_timeout(struct mrt_run *run)
{
    mrt_time limit;
    if (!mrt_cli_duration(optarg, &limit))
        return fail_duration("-w");
    run->no_wait = limit == 0;
    run->deadline = mrt_time_add(mrt_time_now(), limit);
    return 0;
}

static int take_exit_code(struct mrt_run *run)
{
    int64_t code;
    if (!mrt_cli_number(optarg, 0, 255, &code))
        return mrt_cli_fail(MRT_EXIT_USAGE, "-E: \"%.64s\" is not an exit code from 0 to 255",
                            optarg);
    run->conflict_code = (int)code;
    return 0;
}

static int take_option(struct mrt_run *run, int option, const char **string)
{
    switch (option) {
    case 'n':
        run->no_wait = true;
        return 0;
    case 'w':
        return take_timeout(run);
    case 'E':
        return take_exit_code(run);
    case 'c':
        *string = optarg;
        return 0;
    case 'v':
        run->verbose = true;
        return 0;
    case INHERIT_FDS:
        run->keep_descriptors = true;
        return 0;
    default:
        run->grace_given = true;
        return mrt_cli_duration(optarg, &run->grace) ? 0 : fail_duration("--grace");
    }
}

/* The command: the rest of the arguments, or STRING given to a shell. */
static int take_command(struct mrt_run *run, char **rest, const char *string)
{
    static const char *shell_command[4];
    bool dashes = *rest && strcmp(*rest, "--") == 0;
    bool letter = *rest && (strcmp(*rest, "-c") == 0 || strcmp(*rest, "--command") == 0);
    if (letter && !string) { /* as flock takes it: after the name */
        string = *++rest;
        if (!string)
            return mrt_cli_fail(MRT_EXIT_USAGE, "option -c needs an argument; see --help");
        rest++;
    }
    rest += dashes;
    run->command = rest;
    if (string && *rest)
        return mrt_cli_fail(MRT_EXIT_USAGE, "-c takes one string; \"%.64s\" is too much", *rest);
    if (!string && !*rest)
        return mrt_cli_fail(MRT_EXIT_USAGE, "no command to run under \"%.64s\"; see --help",
                            run->name);
    if (!string)
        return 0;
    const char *shell = getenv("SHELL");
    shell_command[0] = shell && *shell ? shell : "/bin/sh";
    shell_command[1] = "-c";
    shell_command[2] = string;
    run->command = (char *const *)shell_command;
    return 0;
}

/* 0, or MRT_OPTION_STOP's exit code in *code and false. */
static bool take_arguments(struct mrt_run *run, int argc, char **argv, int *code)
{
    const char *string = NULL;
    int option;
    *code = 0;
    while ((option = mrt_cli_option(run->cli, argc, argv, "+:nw:E:c:v", long_options)) !=
           MRT_OPTION_END) {
        *code = option == MRT_OPTION_STOP ? run->cli->exit_code : take_option(run, option, &string);
        if (option == MRT_OPTION_STOP || *code != 0)
            return false;
    }
    run->name = argv[optind];
    if (!run->name)
        *code = mrt_cli_fail(MRT_EXIT_USAGE, "no lock name; see --help");
    else
        *code = mrt_cli_check_name(run->name);
    if (*code == 0)
        *code = take_command(run, argv + optind + 1, string);
    return *code == 0;
}

/* -------------------------------------------------------------- the run */

/* A grace that fits into the store's lease; 0 or an exit code. */
static int fit_grace(struct mrt_run *run)
{
    char grace[32], lease[32];
    mortise_capabilities capabilities = {.size = sizeof(capabilities)};
    int error = mortise_get_capabilities(run->client, &capabilities);
    if (error)
        return mrt_cli_fail_error(NULL, error);
    mrt_time length = mrt_time_from_ms(capabilities.lease_ms);
    run->is_leased = length > 0;
    if (!run->is_leased || run->grace < length / 2)
        return 0;
    if (!run->grace_given) {
        run->grace = length / 3;
        return 0;
    }
    mrt_cli_format_duration(run->grace, grace, sizeof(grace));
    mrt_cli_format_duration(length, lease, sizeof(lease));
    return mrt_cli_fail(MRT_EXIT_USAGE, "--grace %s is not less than half of the lease, %s", grace,
                        lease);
}

/* The command under the lock that is held: its exit code. */
static int run_command(struct mrt_run *run)
{
    mrt_terminal_init(&run->terminal);
    if (!mrt_guard_start(&run->guard) || pipe2(run->lost_pipe, O_CLOEXEC) < 0)
        return mrt_cli_fail(MRT_EXIT_INTERNAL, "cannot start the guard: %s", strerror(errno));
    if (!mrt_run_set_environment(run))
        return mrt_cli_fail(MRT_EXIT_INTERNAL, "out of memory");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t child = mrt_run_spawn(run);
    if (child < 0)
        return mrt_run_fail_exec(run, errno);
    close(run->lost_pipe[0]);
    return mrt_run_supervise(run, child);
}

static void say_acquired(const struct mrt_run *run, mrt_time since)
{
    mrt_time took = mrt_time_now() - since;
    mrt_cli_say("%s: acquired after %" PRId64 ".%06" PRId64 "s, fence %" PRIu64, run->name,
                took / MRT_SECOND, took % MRT_SECOND / MRT_MICROSECOND, run->fence);
}

static int run_locked(struct mrt_run *run)
{
    mrt_time since = mrt_time_now();
    int code;
    if (!mrt_run_wait(run, &code))
        return code;
    run->fence = mortise_hold_fence(run->hold);
    if (run->verbose)
        say_acquired(run, since);
    code = run_command(run);
    mrt_guard_dismiss(&run->guard);
    int error = mortise_release(run->hold);
    if (error && code != MRT_EXIT_LOST)
        mrt_cli_fail_error("warning: at the release", error);
    else if (!error && run->verbose)
        mrt_cli_say("%s: released", run->name);
    return code;
}

static int run_on_client(struct mrt_run *run)
{
    int code = fit_grace(run);
    if (!code)
        code = mrt_run_block_signals(run);
    if (code)
        return code;
    int error = mortise_mutex_new(run->client, run->name, NULL, &run->lock);
    return error ? mrt_cli_fail_error(NULL, error) : run_locked(run);
}

int mrt_cli_run(struct mrt_cli *cli, int argc, char **argv)
{
    int code;
    struct mrt_run run = {
        .cli = cli, .deadline = INT64_MAX, .grace = 5 * MRT_SECOND, .conflict_code = MRT_EXIT_BUSY};
    if (!take_arguments(&run, argc, argv, &code))
        return code;
    code = mrt_cli_open(cli, MORTISE_FOREIGN_LOOP, &run.client);
    if (code)
        return code;
    bool held_outside = mrt_run_is_held_outside(&run, &run.fence);
    if (!held_outside)
        code = run_on_client(&run);
    int error = mortise_close(run.client);
    mrt_guard_reap(&run.guard);
    if (!held_outside && error)
        mrt_cli_fail_error("warning: at the end", error);
    if (!held_outside)
        return code;
    if (run.verbose)
        mrt_cli_say("%s: held by an outer run already, fence %" PRIu64, run.name, run.fence);
    return mrt_run_replace(&run);
}
