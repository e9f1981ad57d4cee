/* SPDX-License-Identifier: Apache-2.0 */
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
 * If a lock is a lease, mortise also writes when TERM must be sent to the group and when the
 * group must be dead, again with every renewal. If those instants pass, the guard sends TERM and
 * KILL; its timer counts the time for which the machine is suspended. The command
 * itself checks the clock after the guard knows of it and before it begins, because
 * mortise may have been stopped before that.
 *
 * The guard shares our memory (clone with CLONE_VM; descriptors are copied): a fork costs a
 * fifth of the time of a whole flock, most of it in pages copied afterwards. In
 * exchange, its functions keep to rules: a stack of their own, no allocation, no
 * stdio streams, no library of ours, and while mortise holds the lock no call that fails,
 * because errno is shared too. A sanitizer knows nothing of such processes, so a build for one
 * forks instead: by _Fork, because the library's fork handlers must not run here.
 *
 * It keeps none of the caller's resources: neither the standard descriptors, nor the
 * working directory, nor the session, so the terminal does not see it.
 */

#include "cli/run/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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
    enum { MIND, SET_TIMES, DISMISS } what;
    struct mrt_target target;
    mrt_time term_at, kill_at;
};

static int pipe_ends[2];
static int timer = -1; /* -1: no lease ends */

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

/* A target that ended by itself before it was told to is not killed. */
static bool has_to_die(const struct mrt_target *target, bool is_told)
{
    return mrt_target_is_set(target) && (is_told || !mrt_target_has_ended(target));
}

/* Returns when the target has to be killed (true), or nothing is left to do. */
static bool watch(struct mrt_target *target)
{
    struct message told = {.term_at = MRT_TIME_NEVER, .kill_at = MRT_TIME_NEVER}, message;
    for (bool is_told = false;;) {
        mrt_time next = mrt_time_min(told.term_at, told.kill_at);
        *target = told.target;
        if (!wait_until(mrt_target_is_set(target) ? next : MRT_TIME_NEVER)) {
            if (has_come(told.kill_at))
                return has_to_die(target, is_told);
            told.term_at = MRT_TIME_NEVER;
            is_told = has_to_die(target, is_told);
            if (is_told) {
                mrt_target_signal(target, SIGTERM);
                mrt_target_signal(target, SIGCONT);
            }
        } else if (read(pipe_ends[0], &message, sizeof(message)) != (ssize_t)sizeof(message)) {
            return has_to_die(target, is_told); /* mortise is gone */
        } else if (message.what == DISMISS) {
            return false;
        } else if (message.what == MIND) {
            told.target = message.target;
        } else {
            told.term_at = message.term_at;
            told.kill_at = message.kill_at;
        }
    }
}

static int guard(void *unused)
{
    sigset_t all;
    struct mrt_target target;
    (void)unused;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setsid();
    prctl(PR_SET_NAME, "lock-guard"); /* not "mortise": pkill would end it too */
    close(pipe_ends[1]);
    for (int standard = 0; standard <= 2; standard++)
        close(standard);
    if (chdir("/") == 0 && watch(&target))
        mrt_target_kill(&target);
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
    self->term_at = self->kill_at = MRT_TIME_NEVER;
    if (self->pid > 0)
        return true;
    close(self->fd);
    self->pid = 0;
    errno = error;
    return false;
}

static bool send_message(const struct mrt_guard *self, const struct message *message)
{
    return write(self->fd, message, sizeof(*message)) == (ssize_t)sizeof(*message);
}

bool mrt_guard_mind(const struct mrt_guard *self, const struct mrt_target *target)
{
    struct message message = {.what = MIND, .target = *target};
    return send_message(self, &message);
}

void mrt_guard_set_times(struct mrt_guard *self, mrt_time term_at, mrt_time kill_at)
{
    struct message message = {.what = SET_TIMES, .term_at = term_at, .kill_at = kill_at};
    if (self->pid == 0 || !send_message(self, &message))
        return;
    self->term_at = term_at;
    self->kill_at = kill_at;
}

void mrt_guard_dismiss(struct mrt_guard *self)
{
    struct message message = {.what = DISMISS};
    if (self->pid != 0)
        send_message(self,
                     &message); /* a guard that is gone needs no message; SIGPIPE is blocked */
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
