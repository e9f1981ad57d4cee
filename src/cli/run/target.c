/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom a lock is held for: signals for it, and whether it still runs.
 *
 * A process group is one system call. A process that has left it (setsid) is found by its ancestors
 * alone: mortise adopts whatever loses its parent (it is a subreaper), so each process below it
 * that is no older than the command, and neither its guard nor the command of --on-lost, descends
 * from the command. The guard, mortise's child, finds the same while mortise lives, stopped or not.
 *
 * The guard calls these functions too, so they keep to its rules (guard.c): no allocation,
 * no stdio streams.
 */

#include "cli/run/target.h"

#include "base/time.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define QUICK_LOOKS 100 /* a millisecond apart; afterwards 50 */
#define DEPTH_MAX 64    /* of a tree of processes */

struct process {
    pid_t parent, group;
    uint64_t start; /* clock ticks since boot */
};

/* The number behind `count` more of them, each after a space. */
static uint64_t find_number(const char *text, int count)
{
    while (count-- > 0 && *text)
        text += 1 + strcspn(text + 1, " ");
    return strtoull(text, NULL, 10);
}

/* From /proc/`pid`; false: there is none, or it is a zombie. */
static bool read_process(pid_t pid, struct process *process)
{
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (got <= 0)
        return false;
    text[got] = '\0';
    /* "pid (name) state parent group ..."; the name may hold anything. */
    const char *end = strrchr(text, ')');
    if (!end || strlen(end) < 4 || end[2] == 'Z' || end[2] == 'X')
        return false;
    *process = (struct process){.parent = (pid_t)find_number(end + 3, 0),
                                .group = (pid_t)find_number(end + 3, 1),
                                .start = find_number(end + 3, 18)};
    return true;
}

/* Calls `visit` for each process until it says that this is enough, which is returned; and
   `otherwise` where the processes cannot be looked at. */
static bool visit_all(bool (*visit)(pid_t pid, void *subject), void *subject, bool otherwise)
{
    _Alignas(struct dirent64) char buffer[4096];
    int directory = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return otherwise;
    bool enough = false;
    ssize_t got = 0;
    while (!enough && (got = getdents64(directory, (void *)buffer, sizeof(buffer))) > 0) {
        const struct dirent64 *entry;
        for (ssize_t at = 0; at < got && !enough; at += entry->d_reclen) {
            entry = (const struct dirent64 *)(const void *)(buffer + at);
            enough = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
                     visit((pid_t)strtol(entry->d_name, NULL, 10), subject);
        }
    }
    close(directory);
    return got < 0 ? otherwise : enough;
}

/* ------------------------------------------------------------------ groups */

static bool is_of_group(pid_t pid, void *group)
{
    struct process process;
    return read_process(pid, &process) && process.group == *(const pid_t *)group;
}

bool mrt_group_is_alive(pid_t group)
{
    if (kill(-group, 0) < 0 && errno == ESRCH)
        return false;
    return visit_all(is_of_group, &group, true);
}

/* ------------------------------------------------------------------ strays */

/* Whether the process descends from the command; it itself and its group do too. */
static bool is_stray(const struct mrt_strays *strays, pid_t pid)
{
    struct process process;
    for (int depth = 0; depth < DEPTH_MAX && pid > 1; depth++) {
        if (pid == strays->guard || pid == strays->on_lost || !read_process(pid, &process))
            return false;
        if (process.parent == strays->root)
            return process.start >= strays->since;
        pid = process.parent;
    }
    return false;
}

struct search {
    const struct mrt_strays *strays;
    int signal; /* 0: only counts them */
    bool found;
};

/* The descriptor holds the process fast while it is looked at: no other gets the signal. */
static bool signal_stray(pid_t pid, void *subject)
{
    struct search *search = subject;
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0)
        return false;
    bool is_one = is_stray(search->strays, pid);
    if (is_one && search->signal != 0)
        syscall(SYS_pidfd_send_signal, pidfd, search->signal, NULL, 0);
    close(pidfd);
    search->found |= is_one;
    return is_one && search->signal == 0;
}

/* Once mortise is dead its number may be another's, and its descendants cannot be told from others.
 */
static bool search_strays(const struct mrt_strays *strays, int signal)
{
    struct search search = {.strays = strays, .signal = signal};
    if (strays->root == 0 || (strays->root != getpid() && strays->root != getppid()))
        return false;
    visit_all(signal_stray, &search, false);
    return search.found;
}

bool mrt_strays_are_alive(const struct mrt_strays *strays)
{
    return search_strays(strays, 0);
}

void mrt_strays_begin(struct mrt_strays *strays, pid_t root, pid_t guard)
{
    struct process self = {.start = 0};
    read_process(getpid(), &self);
    *strays = (struct mrt_strays){.root = root, .guard = guard, .since = self.start};
}

/* ------------------------------------------------------------------ targets */

bool mrt_target_is_set(const struct mrt_target *target)
{
    return target->group > 1 || target->pidfd > 0 || target->strays.root > 0;
}

bool mrt_target_has_ended(const struct mrt_target *target)
{
    struct pollfd fd = {.fd = target->pidfd, .events = POLLIN};
    return target->pidfd > 0 && poll(&fd, 1, 0) > 0;
}

bool mrt_target_is_alive(const struct mrt_target *target)
{
    bool is_left = target->strays.root > 0 && target->pidfd <= 0; /* the group was forgotten */
    if (target->group > 1 ? mrt_group_is_alive(target->group)
                          : !is_left && !mrt_target_has_ended(target))
        return true;
    return mrt_strays_are_alive(&target->strays);
}

bool mrt_target_signal(const struct mrt_target *target, int signal)
{
    bool sent = false;
    errno = ESRCH;
    if (target->group > 1)
        sent = kill(-target->group, signal) == 0;
    else if (target->pidfd > 0)
        sent = syscall(SYS_pidfd_send_signal, target->pidfd, signal, NULL, 0) == 0;
    int error = errno;
    if (search_strays(&target->strays, signal))
        return true;
    errno = error;
    return sent;
}

/* A zombie that nobody reaps does not run: after a while the process table is read to tell. */
void mrt_target_kill(const struct mrt_target *target)
{
    for (int looks = 0; mrt_target_signal(target, SIGKILL) || errno != ESRCH; looks++) {
        bool quick = looks < QUICK_LOOKS;
        if ((!quick || target->group <= 1) && !mrt_target_is_alive(target))
            return;
        struct timespec pause = {.tv_nsec = (quick ? 1 : 50) * MRT_MILLISECOND};
        nanosleep(&pause, NULL);
    }
}
