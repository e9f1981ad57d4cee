/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of mortise run and mortise elect, locks and command. Letters mean what they mean in
 * flock(1). Everything is checked before anything is touched.
 *
 * Several locks are acquired in the order of their names, as the library does it for all who
 * want several, so that no two wait for each other.
 */

#include "cli/run/options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GIVE_UP_MIN (100 * MRT_MILLISECOND)
#define GIVE_UP_MAX (3600 * MRT_SECOND)

enum {
    ALSO = MRT_RUN_OPTION_OWN,
    MIN_HOLD,
    QUIET_CONFLICT,
    STATUS_FD,
    STRAGGLERS,
    JSON,
    INHERIT_FDS,
    EVERY,
    EVERY_SUCCESS,
    GIVE_UP,
    VALUE,
    OBSERVE,
    ONCE
};

const struct mrt_flag mrt_run_flags[] = {
    MRT_RUN_MODE_FLAGS,
    {'F', "no-fork", NULL, "run the command in place of mortise, as\nthe same process", NULL, 0},
    {ALSO, "also", "NAME", "hold this lock too: all or none; may be\nrepeated", NULL,
     MRT_FLAG_ONCE},
    {EVERY, "every", "PERIOD",
     "run only if nobody has in this period, in\nUTC: 1h (hourly) is this hour, 1d (daily)\nthis "
     "day",
     NULL, MRT_FLAG_ONCE},
    {EVERY_SUCCESS, "every-success", NULL,
     "with --every: only a command that ended\nwith 0 counts as run", NULL, MRT_FLAG_ONCE},
    MRT_RUN_FLOCK_FLAG,
    {MRT_RUN_OPTION_LOCK_DELAY, "lock-delay", "DURATION",
     "if mortise dies while it holds the lock,\nkeep the lock taken for this time", NULL, 0},
    {'n', "nonblock", NULL, "do not wait: end immediately if the lock\nis held", NULL, 0},
    {'w', "timeout", "DURATION", "wait at most this time (0: do not wait)", NULL, 0},
    {GIVE_UP, "give-up", "DURATION",
     "end with 69 when no server of the store\nhas answered for this time", NULL, 0},
    {'E', "conflict-exit-code", "CODE", "exit code if the lock was not\nacquired", "75", 0},
    {QUIET_CONFLICT, "quiet-conflict", NULL,
     "if the lock was not acquired, print\nnothing and end with 0", NULL, 0},
    {'c', "command", "STRING", "run STRING by $SHELL, or /bin/sh", NULL, MRT_FLAG_ONCE},
    {'o', "close", NULL,
     "accepted as by flock(1), no effect: the\ncommand never gets the descriptor", NULL, 0},
    {'v', "verbose", NULL, "report on standard error what happens", NULL, 0},
    {STATUS_FD, "status-fd", "N", "write each event to descriptor N, as a\nline of JSON", NULL,
     MRT_FLAG_ONCE},
    {JSON, "json", NULL, "write each event to standard error", NULL, 0},
    {MRT_RUN_OPTION_LABEL, "label", "TEXT", "the text that lists show beside the lock", NULL, 0},
    {MRT_RUN_OPTION_ON_LOST, "on-lost", "term|kill|ignore|exec:COMMAND",
     "what happens to the command if the lock is\nlost", "term", 0},
    {MRT_RUN_OPTION_LEASE, "lease", "DURATION",
     "how long the lock stays taken when mortise\nis silent; only on stores with leases", NULL, 0},
    {MRT_RUN_OPTION_GRACE, "grace", "DURATION", "the time between TERM and KILL", "5s", 0},
    {MIN_HOLD, "min-hold", "DURATION", "hold the lock at least this time", NULL, 0},
    {MRT_RUN_OPTION_MAX_HOLD, "max-hold", "DURATION",
     "end the command after this time: TERM, and\nKILL after the grace; exit code 124", NULL, 0},
    {STRAGGLERS, "stragglers", "leave|wait|end",
     "leave alone, wait for, or end processes\nthat left the command's process group", "leave", 0},
    {INHERIT_FDS, "inherit-fds", NULL, "leave descriptors above 2 open in the\ncommand", NULL, 0},
    {VALUE, "value", "TEXT",
     "a text that others see while this\ncandidate leads, such as an address", NULL, 0},
    {OBSERVE, "observe", NULL, "do not campaign: print the leader now and\nafter every change",
     NULL, MRT_FLAG_ONCE},
    {ONCE, "once", NULL, "do not campaign: print the leader and end;\n1 if nobody leads", NULL,
     MRT_FLAG_ONCE},
};
_Static_assert(sizeof mrt_run_flags / sizeof mrt_run_flags[0] == MRT_RUN_FLAG_COUNT,
               "a row is not counted");

#define NO_DURATION "a duration, as 10, 0.5, 500ms, 1m30s"

static int take_duration(const struct mrt_run *run, mrt_time *duration)
{
    return mrt_cli_duration(optarg, duration) ? 0 : mrt_cli_fail_value(run->cli, NO_DURATION);
}

static int take_timeout(struct mrt_run *run)
{
    mrt_time limit;
    int code = take_duration(run, &limit);
    if (code)
        return code;
    run->no_wait = limit == 0;
    run->deadline = mrt_time_add(mrt_time_now(), limit);
    return 0;
}

static int take_exit_code(struct mrt_run *run)
{
    int64_t code;
    if (!mrt_cli_number(optarg, 0, 255, &code))
        return mrt_cli_fail_value(run->cli, "an exit code from 0 to 255");
    run->conflict_code = (int)code;
    run->conflict_code_given = true;
    return 0;
}

static int take_permits(struct mrt_run *run, uint32_t *permits)
{
    int64_t number;
    if (!mrt_cli_number(optarg, 1, INT32_MAX, &number))
        return mrt_cli_fail_value(run->cli, "a number of permits, 1 or more");
    *permits = (uint32_t)number;
    return 0;
}

static int take_on_lost(struct mrt_run *run)
{
    static const char *const words[] = {"term", "kill", "ignore"};
    for (int i = 0; i < 3; i++)
        if (strcmp(optarg, words[i]) == 0) {
            run->on_lost = (enum mrt_on_lost)i;
            return 0;
        }
    if (strncmp(optarg, "exec:", 5) != 0 || !optarg[5])
        return mrt_cli_fail_value(run->cli, "term, kill, ignore or exec:COMMAND");
    run->on_lost = MRT_ON_LOST_EXEC;
    run->on_lost_command = optarg + 5;
    return 0;
}

static int take_stragglers(struct mrt_run *run)
{
    static const char *const words[] = {"leave", "wait", "end"};
    for (int i = 0; i < 3; i++)
        if (strcmp(optarg, words[i]) == 0) {
            run->stragglers = (enum mrt_stragglers)i;
            return 0;
        }
    return mrt_cli_fail_value(run->cli, "leave, wait or end");
}

static int take_status_fd(struct mrt_run *run)
{
    int64_t fd;
    if (!mrt_cli_number(optarg, 0, INT32_MAX, &fd) || fcntl((int)fd, F_GETFD) < 0)
        return mrt_cli_fail_value(run->cli, "an open descriptor");
    run->status_fd = (int)fd;
    if (fd > 2)
        fcntl((int)fd, F_SETFD, FD_CLOEXEC);
    return 0;
}

int mrt_run_add_name(struct mrt_run *run, const char *name)
{
    int code = mrt_cli_check_name(name);
    if (code)
        return code;
    if (run->count == MRT_RUN_LOCKS_MAX)
        return mrt_cli_fail(MRT_EXIT_USAGE, "more than %d locks", MRT_RUN_LOCKS_MAX);
    run->locks[run->count++] = (struct mrt_run_lock){.run = run, .name = name};
    return 0;
}

static int take_every(struct mrt_run *run)
{
    if (strcmp(optarg, "hourly") == 0)
        optarg = "1h";
    else if (strcmp(optarg, "daily") == 0)
        optarg = "1d";
    if (!mrt_cli_duration(optarg, &run->every))
        return mrt_cli_fail_value(run->cli, "a period: hourly, daily, or a duration as 90s, 2h");
    if (run->every < MRT_SECOND || run->every % MRT_MILLISECOND != 0)
        return mrt_cli_fail_value(run->cli, "a period of 1s or more");
    return 0;
}

static int take_lease(struct mrt_run *run)
{
    int code = take_duration(run, &run->lease);
    if (!code && run->lease < MRT_MILLISECOND)
        return mrt_cli_fail_value(run->cli, "a lease of 1ms or more");
    return code;
}

static int take_give_up(struct mrt_run *run)
{
    int code = take_duration(run, &run->cli->give_up);
    if (!code && (run->cli->give_up < GIVE_UP_MIN || run->cli->give_up > GIVE_UP_MAX))
        return mrt_cli_fail_value(run->cli, "a time from 100ms to 1h");
    return code;
}

static int take_lock_delay(struct mrt_run *run)
{
    int code = take_duration(run, &run->lock_delay);
    if (!code && run->lock_delay > mrt_time_from_ms(MORTISE_LOCK_DELAY_MAX_MS))
        return mrt_cli_fail_value(run->cli, "a delay of 24h at most");
    return code;
}

static int take_text(struct mrt_run *run)
{
    run->value = optarg;
    if (strlen(optarg) > MORTISE_VALUE_MAX)
        return mrt_cli_fail_value(run->cli, "a text of 4096 bytes at most");
    return 0;
}

static int take_label(struct mrt_run *run)
{
    run->cli->label = optarg;
    if (strlen(optarg) > MORTISE_LABEL_MAX)
        return mrt_cli_fail_value(run->cli, "a label of 127 bytes at most");
    return 0;
}

/* Of -s and -x the later counts. An option of the command line overrides a setting. */
static int set_mode(struct mrt_run *run, enum mrt_run_mode mode)
{
    bool given = !run->cli->setting.value;
    if (given && run->mode_given && (mode == MRT_RUN_PERMITS) != (run->mode == MRT_RUN_PERMITS))
        return mrt_cli_fail(MRT_EXIT_USAGE,
                            "-s and -x are of a read/write lock, and --permits is of "
                            "a semaphore: leave one of them out");
    run->mode_given |= given;
    run->mode = mode;
    return 0;
}

int mrt_run_take_mode(struct mrt_run *run, int option)
{
    switch (option) {
    case 's':
        return set_mode(run, MRT_RUN_SHARED);
    case 'x':
        return set_mode(run, MRT_RUN_EXCLUSIVE);
    case MRT_RUN_OPTION_PERMITS: {
        int code = set_mode(run, MRT_RUN_PERMITS);
        return code ? code : take_permits(run, &run->permits);
    }
    default:
        return take_permits(run, &run->weight);
    }
}

/* The options that take a value. */
static int take_value(struct mrt_run *run, int option)
{
    switch (option) {
    case ALSO:
        return mrt_run_add_name(run, optarg);
    case 'w':
        return take_timeout(run);
    case 'E':
        return take_exit_code(run);
    case 'c':
        run->string = optarg;
        return 0;
    case MRT_RUN_OPTION_ON_LOST:
        return take_on_lost(run);
    case MRT_RUN_OPTION_FLOCK:
        run->file = optarg;
        return 0;
    case STATUS_FD:
        return take_status_fd(run);
    case STRAGGLERS:
        return take_stragglers(run);
    case MRT_RUN_OPTION_LABEL:
        return take_label(run);
    case VALUE:
        return take_text(run);
    case EVERY:
        return take_every(run);
    case MRT_RUN_OPTION_LEASE:
        return take_lease(run);
    case MRT_RUN_OPTION_LOCK_DELAY:
        return take_lock_delay(run);
    case GIVE_UP:
        return take_give_up(run);
    case MIN_HOLD:
        return take_duration(run, &run->min_hold);
    case MRT_RUN_OPTION_MAX_HOLD:
        return take_duration(run, &run->max_hold);
    default:
        run->grace_given = true;
        return take_duration(run, &run->grace);
    }
}

int mrt_run_take_option(struct mrt_run *run, int option)
{
    switch (option) {
    case 's':
    case 'x':
    case MRT_RUN_OPTION_PERMITS:
    case MRT_RUN_OPTION_WEIGHT:
        return mrt_run_take_mode(run, option);
    case 'n':
        run->no_wait = true;
        return 0;
    case 'v':
        run->verbose = true;
        return 0;
    case 'o':
        return 0;
    case 'F':
        run->no_fork = true;
        return 0;
    case QUIET_CONFLICT:
        run->quiet_conflict = true;
        return 0;
    case EVERY_SUCCESS:
        run->every_success = true;
        return 0;
    case JSON:
        run->status_fd = STDERR_FILENO;
        return 0;
    case INHERIT_FDS:
        run->keep_descriptors = true;
        return 0;
    case OBSERVE:
    case ONCE:
        run->observe = true;
        run->once |= option == ONCE;
        return 0;
    default:
        return take_value(run, option);
    }
}

/* The command: the rest of the arguments, or STRING given to a shell. */
static int take_command(struct mrt_run *run, char **rest)
{
    const char *string = run->string;
    static const char *shell_command[4];
    bool dashes = *rest && strcmp(*rest, "--") == 0;
    bool letter = *rest && (strcmp(*rest, "-c") == 0 || strcmp(*rest, "--command") == 0);
    if (letter && !string) { /* as flock takes it: after the name */
        string = *++rest;
        if (!string)
            return mrt_cli_fail(MRT_EXIT_USAGE, "option -c needs an argument; see --help");
        rest++;
    }
    if (*rest && !dashes && !letter && **rest == '-')
        return mrt_cli_fail(
            MRT_EXIT_USAGE,
            "\"%.64s\" stands behind the name: options stand before it, and a command "
            "that begins with \"-\" stands behind --",
            *rest);
    rest += dashes;
    run->command = rest;
    if (string && *rest)
        return mrt_cli_fail(MRT_EXIT_USAGE, "-c takes one string; \"%.64s\" is too much", *rest);
    if (run->observe && (string || *rest))
        return mrt_cli_fail(MRT_EXIT_USAGE, "--observe takes no COMMAND; see --help");
    if (!string && !*rest && run->mode != MRT_RUN_LEADER)
        return mrt_cli_fail(MRT_EXIT_USAGE,
                            "no command to run under \"%.64s\"; for a lock that a script takes in "
                            "its midst: mortise acquire",
                            run->name);
    run->string = string;
    if (!string)
        return 0;
    const char *shell = secure_getenv("SHELL");
    shell_command[0] = shell && *shell ? shell : "/bin/sh";
    shell_command[1] = "-c";
    shell_command[2] = string;
    run->command = (char *const *)shell_command;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const struct mrt_run_lock *p = a, *q = b;
    return strcmp(p->name, q->name);
}

int mrt_run_check_together(struct mrt_run *run)
{
    qsort(run->locks, run->count, sizeof run->locks[0], by_name);
    for (size_t i = 1; i < run->count; i++)
        if (by_name(&run->locks[i - 1], &run->locks[i]) == 0)
            return mrt_cli_fail(MRT_EXIT_USAGE, "the lock \"%.64s\" is named twice",
                                run->locks[i].name);
    if (run->mode == MRT_RUN_PERMITS && run->weight > run->permits)
        return mrt_cli_fail(MRT_EXIT_USAGE, "--weight is more than --permits");
    if (run->mode != MRT_RUN_PERMITS && run->weight > 1)
        return mrt_cli_fail(MRT_EXIT_USAGE, "--weight needs --permits");
    if (run->quiet_conflict && !run->conflict_code_given)
        run->conflict_code = MRT_EXIT_OK;
    if (run->no_fork && run->stragglers != MRT_STRAGGLERS_LEAVE)
        return mrt_cli_fail(MRT_EXIT_USAGE,
                            "--stragglers and -F do not go together: they are not below mortise");
    return mrt_run_check_every(run);
}

/* Options as far as they go; false: *code says how it ended. */
static bool take_options(struct mrt_run *run, int argc, char **argv, int *code)
{
    int option;
    while ((option = mrt_cli_option(run->cli, argc, argv)) != MRT_OPTION_END) {
        *code = option == MRT_OPTION_STOP ? run->cli->exit_code : mrt_run_take_option(run, option);
        if (option == MRT_OPTION_STOP || *code != 0)
            return false;
    }
    return true;
}

bool mrt_run_take_arguments(struct mrt_run *run, int argc, char **argv, int *code)
{
    *code = 0;
    if (!take_options(run, argc, argv, code))
        return false;
    run->name = argv[optind];
    if (!run->name)
        *code = mrt_cli_fail(MRT_EXIT_USAGE, "no lock name; see --help");
    else
        *code = mrt_run_add_name(run, run->name);
    if (*code != 0)
        return false;
    optind++;
    if (run->mode == MRT_RUN_LEADER && !take_options(run, argc, argv, code))
        return false;
    *code = take_command(run, argv + optind);
    if (*code == 0)
        *code = mrt_run_check_together(run);
    return *code == 0;
}
