/*
 * The guard: a process that sees to it that when mortise is killed by SIGKILL, or stopped
 * while a lease runs out, the command's whole process group is dead before anybody else
 * gets the lock.
 *
 * It is started while the lock is held. On a store of this machine, where the
 * operating system tells of death, a session lives as long as its lock on a file
 * is held by anybody who inherited it; so with the guard alive the lock stays
 * taken, and its exit lets it go. It learns of mortise's end by end of file on a
 * pipe, and the group's id through the same pipe, from the command itself before
 * it becomes the command: no instant is uncovered.
 *
 * Where a lock is a lease, mortise also writes when the group has to be told and when it has
 * to be dead, again with every renewal. If those instants pass, the guard sends TERM and
 * KILL; its timer counts the time for which the machine is suspended. The command
 * itself looks at the clock after the guard has heard of it and before it begins, for
 * mortise may have been stopped before that.
 *
 * It shares our memory (clone with CLONE_VM; descriptors are copied): a fork costs a
 * fifth of what flock takes in all, most of it in pages copied afterwards. In
 * exchange, its functions keep to rules: a stack of their own, no allocation, no
 * stdio streams, no library of ours, and while mortise holds the lock no call that fails,
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
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
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

/* A message on the pipe, written in one piece. */
struct message {
    enum { MIND_GROUP, SET_TIMES, DISMISS } what;
    pid_t group;
    mrt_time term_at, kill_at;
};

static int pipe_ends[2];
static int timer = -1; /* -1: no lease ends */

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

static void set_timer(mrt_time instant)
{
    struct itimerspec at = {.it_value.tv_nsec = 0}; /* not set */
    if (instant != MRT_TIME_NEVER) {
        instant = instant > 0 ? instant : 1;
        at.it_value.tv_sec = instant / MRT_SECOND;
        at.it_value.tv_nsec = instant % MRT_SECOND;
    }
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
}

static bool has_come(mrt_time instant)
{
    struct timespec now;
    if (instant == MRT_TIME_NEVER)
        return false;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec * MRT_SECOND + now.tv_nsec >= instant;
}

/* Waits for a message, or for an instant; false for the instant. */
static bool wait_until(mrt_time instant)
{
    struct pollfd fds[] = {{.fd = pipe_ends[0], .events = POLLIN}, {.fd = timer, .events = POLLIN}};
    if (timer >= 0)
        set_timer(instant);
    while (!has_come(instant)) {
        poll(fds, 2, -1);
        if (fds[0].revents != 0)
            return true;
    }
    return false;
}

/* Returns when the group has to be killed, or nothing is left to do (0). */
static pid_t watch(void)
{
    struct message told = {.term_at = MRT_TIME_NEVER, .kill_at = MRT_TIME_NEVER}, message;
    for (;;) {
        mrt_time next = mrt_time_min(told.term_at, told.kill_at);
        if (!wait_until(told.group > 1 ? next : MRT_TIME_NEVER)) {
            if (has_come(told.kill_at))
                return told.group;
            told.term_at = MRT_TIME_NEVER;
            kill(-told.group, SIGTERM);
            kill(-told.group, SIGCONT);
        } else if (read(pipe_ends[0], &message, sizeof(message)) != (ssize_t)sizeof(message)) {
            return told.group; /* mortise is gone */
        } else if (message.what == DISMISS) {
            return 0;
        } else if (message.what == MIND_GROUP) {
            told.group = message.group;
        } else {
            told.term_at = message.term_at;
            told.kill_at = message.kill_at;
        }
    }
}

static int guard(void *unused)
{
    sigset_t all;
    (void)unused;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setsid();
    prctl(PR_SET_NAME, "lock-guard"); /* not "mortise": pkill would end it too */
    close(pipe_ends[1]);
    for (int standard = 0; standard <= 2; standard++)
        close(standard);
    pid_t group = chdir("/") == 0 ? watch() : 0;
    if (group > 1)
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

/* The pipe, with an end for writing that never blocks: a guard that somebody has stopped does
   not stop us. */
static bool open_pipe(bool timed)
{
    if (pipe2(pipe_ends, O_CLOEXEC) < 0)
        return false;
    fcntl(pipe_ends[1], F_SETFL, O_NONBLOCK);
    timer = timed ? timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC) : -1;
    if (!timed || timer >= 0)
        return true;
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    return false;
}

bool mrt_guard_start(struct mrt_guard *self, bool timed)
{
    if (!open_pipe(timed))
        return false;
    self->pid = start_process();
    int error = errno;
    close(pipe_ends[0]);
    if (timed)
        close(timer);
    self->fd = pipe_ends[1];
    self->kill_at = MRT_TIME_NEVER;
    if (self->pid > 0)
        return true;
    close(self->fd);
    self->pid = 0;
    errno = error;
    return false;
}

static bool tell(const struct mrt_guard *self, const struct message *message)
{
    return write(self->fd, message, sizeof(*message)) == (ssize_t)sizeof(*message);
}

bool mrt_guard_mind(const struct mrt_guard *self, pid_t group)
{
    struct message message = {.what = MIND_GROUP, .group = group};
    return tell(self, &message);
}

void mrt_guard_set_times(struct mrt_guard *self, mrt_time term_at, mrt_time kill_at)
{
    struct message message = {.what = SET_TIMES, .term_at = term_at, .kill_at = kill_at};
    if (self->pid != 0 && tell(self, &message))
        self->kill_at = kill_at;
}

void mrt_guard_dismiss(struct mrt_guard *self)
{
    struct message message = {.what = DISMISS};
    if (self->pid != 0)
        tell(self, &message); /* one that is gone already needs none; SIGPIPE is blocked */
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
