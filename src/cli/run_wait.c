/*
 * Signals as events, and getting the lock.
 *
 * From here on signals are blocked and read from a descriptor, beside the
 * client's, by one poll: so an interrupted wait is cancelled and its answer
 * awaited, and nothing stays queued. They are blocked only after the store has
 * been opened: until then nothing is queued, and a signal just ends the process.
 * A signal that was ignored when we were started (nohup, a shell's background)
 * stays ignored, for us and for the command.
 */
#include "cli/run.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
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

void mrt_run_poll(struct mrt_run *run, mrt_time until)
{
    struct pollfd fds[] = {{.fd = mortise_fd(run->client), .events = POLLIN},
                           {.fd = run->signal_fd, .events = POLLIN}};
    int timeout = milliseconds_to(until);
    int next = mortise_next_timeout_ms(run->client);
    if (next >= 0 && (timeout < 0 || next < timeout))
        timeout = next;
    if (poll(fds, 2, timeout) == 0 || fds[0].revents != 0)
        mortise_process(run->client);
}

/* --------------------------------------------------------------- waiting */

struct waiting {
    struct mrt_run *run;
    mortise_operation *operation;
    bool done;
    int error;
    int interrupted; /* the signal */
};

static void on_acquired(void *argument, int error, mortise_hold hold)
{
    struct waiting *waiting = argument;
    waiting->done = true;
    waiting->error = error;
    waiting->run->hold = hold;
}

struct holder {
    bool found;
    char text[MRT_OWNER_TEXT_SIZE + 64];
};

static int note_holder(void *argument, const mortise_entry *entry)
{
    struct holder *holder = argument;
    struct timespec now;
    char age[32], owner[MRT_OWNER_TEXT_SIZE];
    if (entry->place != 0)
        return 0;
    mrt_cli_describe_owner(entry, owner);
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / MRT_MILLISECOND;
    mrt_cli_format_duration(mrt_time_from_ms(now_ms - entry->since_wall_ms), age, sizeof(age));
    snprintf(holder->text, sizeof(holder->text), "held by %s for %s", owner[0] ? owner : "someone",
             age);
    holder->found = true;
    return 1;
}

/* "held by host web pid 12 for 3.2s", as far as the store can tell. */
static const char *describe_holder(struct mrt_run *run, struct holder *holder)
{
    holder->found = false;
    mortise_list(run->client, run->name, note_holder, holder);
    return holder->found ? holder->text : "held by someone else";
}

static void handle_signal(struct waiting *waiting, int signal)
{
    if (signal == SIGTSTP)
        mrt_terminal_stop(getpid());
    if (!mrt_run_is_terminating(signal) || waiting->interrupted)
        return;
    waiting->interrupted = signal;
    mortise_cancel(waiting->operation);
}

/* Until the callback has come: a cancelled acquire may still end with the lock. */
static void wait_for_answer(struct waiting *waiting)
{
    struct mrt_run *run = waiting->run;
    bool told = !run->verbose;
    mortise_process(run->client);
    while (!waiting->done) {
        int signal;
        struct holder holder;
        if (!told)
            mrt_cli_say("%s: waiting, %s", run->name, describe_holder(run, &holder));
        told = true;
        mrt_run_poll(run, MRT_TIME_NEVER);
        while (!waiting->done && (signal = mrt_run_next_signal(run)) != 0)
            handle_signal(waiting, signal);
    }
}

static int acquire(struct waiting *waiting)
{
    struct mrt_run *run = waiting->run;
    if (run->no_wait)
        return mortise_try_acquire(run->lock, &run->hold);
    int error =
        mortise_acquire_async(run->lock, run->deadline, on_acquired, waiting, &waiting->operation);
    if (error)
        return error;
    wait_for_answer(waiting);
    return waiting->error;
}

bool mrt_run_wait(struct mrt_run *run, int *code)
{
    struct waiting waiting = {.run = run};
    struct holder holder;
    int error = acquire(&waiting);
    if (waiting.interrupted) {
        if (!error)
            mortise_release(run->hold);
        *code = MRT_EXIT_SIGNAL + waiting.interrupted;
        return false;
    }
    if (error == MORTISE_EBUSY || error == MORTISE_ETIMEOUT)
        *code =
            mrt_cli_fail(run->conflict_code, "%s: %s", run->name, describe_holder(run, &holder));
    else if (error)
        *code = mrt_cli_fail_error(run->name, error);
    return error == 0;
}
