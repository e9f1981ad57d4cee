/*
 * The guard: a process that sees to it that when mortise is killed by SIGKILL, the
 * command's whole process group is dead before anybody else gets the lock.
 *
 * It is started while the lock is held. On a store of this machine, where the
 * operating system tells of death, a session lives as long as its lock on a file
 * is held by anybody who inherited it; so with the guard alive the lock stays
 * taken, and its exit lets it go. It learns of mortise's end by end of file on a
 * pipe, and the group's id through the same pipe, from the command itself before
 * it becomes the command: no instant is uncovered.
 *
 * It shares our memory (clone with CLONE_VM; descriptors are copied): a fork costs a
 * fifth of what flock takes in all, most of it in pages copied afterwards. In
 * exchange, its functions keep to rules: a stack of their own, no allocation, no
 * stdio streams, no library of ours, and while mortise lives no call that fails,
 * for errno is shared too. A build for a sanitizer, which knows nothing of such
 * processes, forks: by _Fork, for the library's fork handlers are not meant here.
 *
 * Of the caller's things it keeps none: not the standard descriptors, nor the
 * working directory, nor the session, so it is not seen by the terminal.
 */
#include "cli/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define QUICK_LOOKS 100 /* a millisecond apart; afterwards 50 */
#define STACK_SIZE 65536

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

static int pipe_ends[2];

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

/* Returns when no process of the group runs any more. A zombie that nobody reaps
   does not run: after a while the process table is read to tell. */
static void kill_group(pid_t group)
{
    for (int looks = 0; kill(-group, SIGKILL) == 0 || errno != ESRCH; looks++) {
        bool quick = looks < QUICK_LOOKS;
        if (!quick && !mrt_group_is_alive(group))
            return;
        struct timespec pause = {.tv_nsec = (quick ? 1 : 50) * MRT_MILLISECOND};
        nanosleep(&pause, NULL);
    }
}

/* The whole of one message; false at end of file. All signals are blocked. */
static bool read_message(void *message, size_t size)
{
    return read(pipe_ends[0], message, size) == (ssize_t)size;
}

static int guard(void *unused)
{
    pid_t group = 0;
    char dismissed;
    sigset_t all;
    (void)unused;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setsid();
    prctl(PR_SET_NAME, "lock-guard"); /* not "mortise": pkill would end it too */
    close(pipe_ends[1]);
    for (int standard = 0; standard <= 2; standard++)
        close(standard);
    if (chdir("/") == 0 && read_message(&group, sizeof(group)) && group > 1 &&
        !read_message(&dismissed, 1))
        kill_group(group);
    _exit(0);
}

static pid_t start_process(void)
{
#ifdef SANITIZED
    pid_t pid = _Fork();
    if (pid == 0)
        guard(NULL);
    return pid;
#else
    static _Alignas(16) char stack[STACK_SIZE];
    return clone(guard, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
#endif
}

bool mrt_guard_start(struct mrt_guard *self)
{
    if (pipe2(pipe_ends, O_CLOEXEC) < 0)
        return false;
    self->pid = start_process();
    int error = errno;
    close(pipe_ends[0]);
    self->fd = pipe_ends[1];
    if (self->pid > 0)
        return true;
    close(self->fd);
    self->pid = 0;
    errno = error;
    return false;
}

void mrt_guard_dismiss(struct mrt_guard *self)
{
    if (self->pid == 0)
        return;
    /* A guard that is gone already needs no message; SIGPIPE is blocked. */
    ssize_t written = write(self->fd, "", 1);
    (void)written;
}

void mrt_guard_reap(struct mrt_guard *self)
{
    if (self->pid == 0)
        return;
    close(self->fd);
    while (waitpid(self->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    self->pid = 0;
}
