/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that a lock is kept for, given by its number.
 *
 * A number may belong to another process by the time it is used. So a process is known by its
 * number and the time of its start, and is the right one only if both are the same after its pidfd
 * has been opened. A number from the command line must be that of a process older than this one.
 *
 * Without a number it is the process that started us. But in "token=$(mortise acquire NAME)" that
 * may be a copy of the shell that ends with us. A copy has not become another program: it has its
 * parent's arguments, file and place of the stack, which are new at each exec. A subshell, as in
 * "( token=$(mortise acquire NAME); ... )", is a copy too, and the lock is kept for it. The copy
 * that a command substitution makes differs in this: its standard output is ours, and that of its
 * parent is another.
 *
 * A process of another user is refused, unless it has started us and is not the first of all:
 * nobody could end a lock that is kept for it.
 *
 * Signals go to the process, and to its whole group if it leads one.
 */
#include "cli/keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct process {
    pid_t pid, parent, group;
    uint64_t start; /* in the system's ticks since its own */
    uint64_t stack; /* where its stack begins; 0: not for us to know */
    uid_t user;
    struct stat program;
};

/* The fields of /proc/PID/stat that are read, numbered as in proc(5). */
enum { PARENT = 4, GROUP = 5, START = 22, STACK = 28 };

/* A whole file, cut at the end of the buffer; its length, -1: none. */
static ssize_t read_file(pid_t pid, const char *name, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    if (got >= 0)
        text[got] = '\0';
    return got;
}

static bool look_at(pid_t pid, struct process *process)
{
    char text[1024], path[64];
    *process = (struct process){.pid = pid};
    if (read_file(pid, "stat", text, sizeof text) < 0 || !strrchr(text, ')'))
        return false;
    char *next, *rest = strrchr(text, ')') + 1;
    int number = 3;
    for (char *word = strtok_r(rest, " ", &next); word; word = strtok_r(NULL, " ", &next)) {
        uint64_t value = strtoull(word, NULL, 10);
        if (number == PARENT)
            process->parent = (pid_t)value;
        else if (number == GROUP)
            process->group = (pid_t)value;
        else if (number == START)
            process->start = value;
        else if (number == STACK)
            process->stack = value;
        number++;
    }
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    if (stat(path, &process->program) < 0)
        process->stack = 0;
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    struct stat own;
    process->user = stat(path, &own) == 0 ? own.st_uid : (uid_t)-1;
    return process->start > 0;
}

static bool is_copy(const struct process *process, const struct process *parent)
{
    char own[4096], theirs[4096];
    if (process->stack == 0 || process->stack != parent->stack ||
        process->program.st_ino != parent->program.st_ino ||
        process->program.st_dev != parent->program.st_dev)
        return false;
    ssize_t length = read_file(process->pid, "cmdline", own, sizeof own);
    return length >= 0 && read_file(parent->pid, "cmdline", theirs, sizeof theirs) == length &&
           memcmp(own, theirs, (size_t)length) == 0;
}

static bool has_our_output(const struct process *process)
{
    char path[64];
    struct stat own, theirs;
    snprintf(path, sizeof path, "/proc/%d/fd/1", (int)process->pid);
    return fstat(STDOUT_FILENO, &own) == 0 && stat(path, &theirs) == 0 &&
           own.st_ino == theirs.st_ino && own.st_dev == theirs.st_dev;
}

static bool find_starter(struct process *starter, bool is_captured)
{
    struct process self, parent;
    if (!look_at(getppid(), starter))
        return false;
    self = *starter;
    while (is_captured && has_our_output(&self)) {
        if (!look_at(self.parent, &parent) || !is_copy(&self, &parent))
            return true; /* it is no substitution's */
        self = parent;
    }
    *starter = self;
    return true;
}

bool mrt_keeper_is_above(pid_t ancestor, pid_t pid)
{
    struct process process;
    while (pid > 1 && pid != ancestor)
        pid = look_at(pid, &process) ? process.parent : 0;
    return pid > 1;
}

static bool may_be_owner(const struct process *process)
{
    uid_t user = geteuid();
    return user == 0 || process->user == user ||
           (process->pid != 1 && mrt_keeper_is_above(process->pid, getpid()));
}

static void set_label(struct mrt_run *run, pid_t pid)
{
    char name[64];
    if (read_file(pid, "comm", name, sizeof name) <= 0)
        return;
    name[strcspn(name, "\n")] = '\0';
    mrt_run_set_label_of(run, name, pid);
}

int mrt_keeper_find_owner(struct mrt_run *run, pid_t pid, bool is_captured,
                          struct mrt_target *owner)
{
    struct process process, same, self;
    if (!(pid > 0 ? look_at(pid, &process) : find_starter(&process, is_captured)))
        return mrt_cli_fail(MRT_EXIT_USAGE, pid > 0 ? "--pid: there is no such process"
                                                    : "who started mortise is not here: use --pid");
    if (!look_at(getpid(), &self) || process.start > self.start)
        return mrt_cli_fail(MRT_EXIT_USAGE, "--pid: process %d is younger than mortise",
                            (int)process.pid);
    if (!may_be_owner(&process))
        return mrt_cli_fail(MRT_EXIT_DENIED,
                            "--pid: process %d is another user's, and has not started mortise",
                            (int)process.pid);
    owner->pidfd = (int)syscall(SYS_pidfd_open, process.pid, 0);
    if (owner->pidfd < 0)
        return mrt_cli_fail(MRT_EXIT_USAGE, "process %d: %s", (int)process.pid, strerror(errno));
    if (!look_at(process.pid, &same) || same.start != process.start)
        return mrt_cli_fail(MRT_EXIT_FAILED, "process %d has ended", (int)process.pid);
    set_label(run, process.pid);
    owner->group = process.group == process.pid ? process.pid : 0;
    return 0;
}
