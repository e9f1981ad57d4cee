/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals as events.
 *
 * From here on signals are blocked and read from a descriptor, beside the client's, by one poll.
 * They are blocked only after the store has been opened: until then nothing is queued, and a
 * signal just ends the process. A signal that was ignored when mortise was started (nohup, a
 * shell's background) stays ignored, for mortise and for the command.
 * Threads: one.
 */

#include "cli/run/locks.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* End the wait; forwarded to the command. */
static const int terminating[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
/* Forwarded as well, or of the command itself. */
static const int others[] = {SIGTSTP, SIGCONT, SIGWINCH, SIGCHLD};

bool mrt_run_is_terminating(int signal)
{
    for (size_t i = 0; i < sizeof(terminating) / sizeof(terminating[0]); i++)
        if (terminating[i] == signal)
            return true;
    return false;
}

static bool is_ignored(int signal)
{
    struct sigaction action;
    return sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

int mrt_run_block_signals(struct mrt_run *run)
{
    sigset_t read, blocked;
    sigemptyset(&read);
    for (size_t i = 0; i < sizeof(terminating) / sizeof(terminating[0]); i++)
        if (!is_ignored(terminating[i]))
            sigaddset(&read, terminating[i]);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        sigaddset(&read, others[i]);
    /* With SIGCHLD ignored the command's exit code would be lost. */
    signal(SIGCHLD, SIG_DFL);
    blocked = read;
    sigaddset(&blocked, SIGPIPE);
    sigaddset(&blocked, SIGTTOU);
    sigprocmask(SIG_BLOCK, &blocked, &run->inherited_mask);
    run->signal_fd = signalfd(-1, &read, SFD_CLOEXEC | SFD_NONBLOCK);
    if (run->signal_fd < 0)
        return mrt_cli_fail(MRT_EXIT_INTERNAL, "cannot watch signals: %s", strerror(errno));
    return 0;
}

int mrt_run_next_signal(struct mrt_run *run)
{
    struct signalfd_siginfo info;
    if (run->cancelled) {
        run->cancelled = false;
        return SIGTERM;
    }
    ssize_t got = read(run->signal_fd, &info, sizeof(info));
    return got == (ssize_t)sizeof(info) ? (int)info.ssi_signo : 0;
}

/* Milliseconds to `until`, rounded up; -1: for ever. */
static int milliseconds_to(mrt_time until)
{
    if (until == MRT_TIME_NEVER)
        return -1;
    mrt_time left = until - mrt_time_now();
    if (left <= 0)
        return 0;
    mrt_time ms = mrt_time_add(left, MRT_MILLISECOND - 1) / MRT_MILLISECOND;
    return ms > INT_MAX ? INT_MAX : (int)ms;
}

void mrt_run_poll_all(struct mrt_run *run, mrt_time until, struct pollfd *fds, nfds_t count)
{
    fds[0] = (struct pollfd){.fd = mortise_fd(run->client), .events = POLLIN};
    fds[1] = (struct pollfd){.fd = run->signal_fd, .events = POLLIN};
    int timeout = milliseconds_to(until);
    int next = mortise_next_timeout_ms(run->client);
    if (next >= 0 && (timeout < 0 || next < timeout))
        timeout = next;
    int ready = poll(fds, count, timeout);
    if (ready < 0)
        for (nfds_t i = 0; i < count; i++)
            fds[i].revents = 0;
    if (ready == 0 || fds[0].revents != 0)
        mortise_process(run->client);
}

void mrt_run_poll(struct mrt_run *run, mrt_time until)
{
    struct pollfd fds[3] = {[2] = {.fd = run->cancel_fd, .events = POLLIN}};
    mrt_run_poll_all(run, until, fds, run->cancel_fd > 0 ? 3 : 2);
    if (run->cancel_fd <= 0 || fds[2].revents == 0)
        return;
    run->cancelled = true;
    run->cancel_fd = 0;
}

void mrt_run_linger(struct mrt_run *run, mrt_time until)
{
    while (!run->lost && mrt_time_now() < until) {
        mrt_run_poll(run, until);
        for (int signal; (signal = mrt_run_next_signal(run)) != 0;)
            if (mrt_run_is_terminating(signal))
                return;
    }
}
