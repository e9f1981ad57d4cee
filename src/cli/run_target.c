/*
 * Whom a lock is held for: signals for it, and whether it still runs.
 *
 * The guard calls these functions too, so they keep to its rules (run_guard.c): no allocation,
 * no stdio streams.
 */
#include "cli/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define QUICK_LOOKS 100 /* a millisecond apart; afterwards 50 */

/* Whether /proc/`pid` is of `group`, and more than a zombie. */
static bool is_alive_in(const char *pid, pid_t group)
{
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
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
    char *after_parent;
    strtol(end + 3, &after_parent, 10);
    return strtol(after_parent, NULL, 10) == group;
}

bool mrt_group_is_alive(pid_t group)
{
    _Alignas(struct dirent64) char buffer[4096];
    if (kill(-group, 0) < 0 && errno == ESRCH)
        return false;
    int directory = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return true;
    bool alive = false;
    ssize_t got = 0;
    while (!alive && (got = getdents64(directory, buffer, sizeof(buffer))) > 0) {
        const struct dirent64 *entry;
        for (ssize_t at = 0; at < got && !alive; at += entry->d_reclen) {
            entry = (const struct dirent64 *)(const void *)(buffer + at);
            alive = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
                    is_alive_in(entry->d_name, group);
        }
    }
    close(directory);
    return alive || got < 0;
}

bool mrt_target_is_set(const struct mrt_target *target)
{
    return target->group > 1 || target->pidfd > 0;
}

bool mrt_target_has_ended(const struct mrt_target *target)
{
    struct pollfd fd = {.fd = target->pidfd, .events = POLLIN};
    return target->pidfd > 0 && poll(&fd, 1, 0) > 0;
}

bool mrt_target_is_alive(const struct mrt_target *target)
{
    return target->group > 1 ? mrt_group_is_alive(target->group) : !mrt_target_has_ended(target);
}

bool mrt_target_signal(const struct mrt_target *target, int signal)
{
    if (target->group > 1)
        return kill(-target->group, signal) == 0;
    return syscall(SYS_pidfd_send_signal, target->pidfd, signal, NULL, 0) == 0;
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
