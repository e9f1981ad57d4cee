/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise check: a resource of this machine that refuses stale fences. A file beside the
 * resource has the largest fence that ever used it. A command with a smaller one is not run:
 * its lock has passed on to somebody who was here already.
 *
 * The file is locked from before it is read until the command and all that inherits its
 * descriptor have ended; so a smaller fence cannot be at work still when a larger one
 * begins, however long its holder stood still after it was looked at. The number is on the disk
 * before the command runs.
 */
#include "cli/frame/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIGITS 20

enum { FENCE = MRT_OPTION_OWN, FENCE_FILE };

static const struct mrt_flag flags[] = {
    {FENCE, "fence", "N", "the fence of the lock that is held", "$MORTISE_FENCE", 0},
    {FENCE_FILE, "fence-file", "FILE",
     "the file with the largest fence so far;\ncreated if it is missing", NULL, 0},
};

const struct mrt_subcommand mrt_check_subcommand = {
    .name = "check",
    .summary = "run a command unless its fence is superseded",
    .operands = "--fence-file FILE [--] COMMAND [ARGUMENT...]",
    .about =
        "Writes the fence into FILE and runs the command. If FILE has a larger fence already,\n"
        "the command is not run and the exit code is 76. FILE is locked until the command has\n"
        "ended, so one command runs at a time. Inside mortise run the fence is known.\n",
    .flags = flags,
    .count = sizeof flags / sizeof flags[0],
    .function = mrt_cli_check,
    .traits = MRT_FLAG_COMMAND,
};

static bool read_fence(const char *text, uint64_t *fence)
{
    char *end;
    errno = 0;
    if (*text < '0' || *text > '9')
        return false;
    unsigned long long number = strtoull(text, &end, 10);
    *fence = number;
    return errno == 0 && *end == '\0' && number > 0;
}

static int fail_file(const char *path)
{
    int code = errno == EACCES || errno == EPERM ? MRT_EXIT_DENIED : MRT_EXIT_CONFIG;
    return mrt_cli_fail(code, "%s: %s", path, strerror(errno));
}

/* Why others could lower the number; NULL: only this user and root can write it. */
static const char *find_fault(const struct stat *status)
{
    const char *fault = mrt_cli_find_distrust(status);
    if (!fault && status->st_nlink > 1)
        fault = "has more than one name (hard links)";
    return fault;
}

/* The file, locked; it is inherited by the command. -1 and *code. */
static int open_locked(const char *path, int *code)
{
    struct stat status;
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NOCTTY, 0600);
    if (fd < 0 || fstat(fd, &status) < 0) {
        *code = fail_file(path);
        return -1;
    }
    const char *fault = find_fault(&status);
    if (fault) {
        *code = mrt_cli_fail(MRT_EXIT_CONFIG, "%s %s", path, fault);
        return -1;
    }
    while (flock(fd, LOCK_EX) < 0)
        if (errno != EINTR) {
            *code = fail_file(path);
            return -1;
        }
    return fd;
}

/* The largest fence so far; 0: none yet. */
static int read_largest(const char *path, int fd, uint64_t *largest)
{
    char text[DIGITS + 2];
    ssize_t got = pread(fd, text, sizeof text - 1, 0);
    *largest = 0;
    if (got < 0)
        return fail_file(path);
    if (got == 0)
        return 0;
    text[got] = '\0';
    bool ended = got == DIGITS + 1 && text[DIGITS] == '\n';
    text[ended ? DIGITS : 0] = '\0';
    if (!read_fence(text, largest))
        return mrt_cli_fail(MRT_EXIT_CONFIG, "%s is not a file of fences", path);
    return 0;
}

static int note(const char *path, int fd, uint64_t fence)
{
    char text[DIGITS + 2];
    int length = snprintf(text, sizeof text, "%0*" PRIu64 "\n", DIGITS, fence);
    if (pwrite(fd, text, (size_t)length, 0) != length || fdatasync(fd) < 0)
        return fail_file(path);
    return 0;
}

static int check_and_run(const char *path, uint64_t fence, char **command)
{
    int code = 0;
    uint64_t largest;
    int fd = open_locked(path, &code);
    if (fd < 0)
        return code;
    code = read_largest(path, fd, &largest);
    if (code)
        return code;
    if (fence < largest)
        return mrt_cli_fail(MRT_EXIT_LOST, "fence %" PRIu64 " is stale: %s has seen %" PRIu64,
                            fence, path, largest);
    if (fence > largest && (code = note(path, fd, fence)) != 0)
        return code;
    mrt_cli_restore_core();
    execvp(command[0], command);
    int error = errno;
    return mrt_cli_fail(error == ENOENT ? MRT_EXIT_NOT_FOUND : MRT_EXIT_CANNOT_RUN, "%s: %s",
                        command[0], strerror(error));
}

int mrt_cli_check(struct mrt_cli *cli, int argc, char **argv)
{
    const char *path = NULL;
    uint64_t fence = 0;
    int option;
    while ((option = mrt_cli_option(cli, argc, argv)) != MRT_OPTION_END) {
        if (option == MRT_OPTION_STOP)
            return cli->exit_code;
        if (option == FENCE_FILE)
            path = optarg;
        else if (strcmp(optarg, "0") == 0)
            return mrt_cli_fail(MRT_EXIT_CONFIG,
                                "fence 0: the store of the lock gives no fences, so "
                                "no command that comes late could be refused");
        else if (!read_fence(optarg, &fence))
            return mrt_cli_fail_value(cli, "a fence, a number from 1");
    }
    if (!path || !*path)
        return mrt_cli_fail(MRT_EXIT_USAGE, "no --fence-file; see --help");
    if (fence == 0)
        return mrt_cli_fail(MRT_EXIT_USAGE, "no --fence, and no MORTISE_FENCE; see --help");
    if (!argv[optind])
        return mrt_cli_fail(MRT_EXIT_USAGE, "no command to run; see --help");
    return check_and_run(path, fence, argv + optind);
}
