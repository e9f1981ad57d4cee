/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper: a process in the background that holds locks as long as another process lives that
 * can be no child of ours: a script that acquires a lock in its midst, or (run -F) a command that
 * takes the place of mortise.
 *
 * `mortise acquire` forks, because a client cannot be used after a fork, and waits for the keeper's
 * report. The keeper opens the store, waits for the lock, reports its token, and stays only if the
 * report has arrived. So whichever process dies at whatever moment, no lock is left of which nobody
 * knows. From then on the keeper releases the lock and ends when the owner has ended, at a request,
 * when --max-hold is over, or when the lock is lost. It reports nothing afterwards: others learn
 * that the lock is lost when the keeper has ended.
 *
 * If --on-lost says that a loss ends the owner, that is done as for a command (run/ending.c),
 * and a guard does it when the keeper itself is killed or stopped. By default the owner goes
 * on, and there is no guard.
 *
 * For run -F the keeper looks after the command until the whole process group has ended, as run
 * does, and takes no requests.
 *
 * The keeper keeps none of the caller's resources: not the descriptors, the terminal's session, nor
 * the secrets in the environment. Only with run -F it keeps standard error and --status-fd, for its
 * messages. One thread, without one of the client's.
 */
#include "cli/keeper/keeper.h"
#include "base/system.h"
#include "cli/run/command.h"
#include "cli/run/held.h"
#include "cli/run/locks.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define VERIFY_MS 5000
#define LOOK_FIRST (10 * MRT_MILLISECOND)
#define LOOK_LAST (2 * MRT_SECOND)

struct keeper {
    struct mrt_run *run;
    struct mrt_ending ending;
    struct mrt_keeper_socket socket;
    int link;       /* to the process that started us; -1: it knows */
    int releaser;   /* the connection that waits for the release; -1: none */
    bool over;      /* there is nothing left to keep */
    mrt_time until; /* --max-hold */
    /* The owner itself has ended or is ending: how often to check the rest of its group; 0: no. */
    mrt_time look_every;
};

/* ------------------------------------------------------------------ requests */

static void set_max_hold(struct keeper *keeper, mrt_time length)
{
    keeper->run->max_hold = length;
    keeper->until = length > 0 ? mrt_time_add(mrt_time_now(), length) : MRT_TIME_NEVER;
}

static void renew(struct keeper *keeper, const struct mrt_keeper_request *request,
                  struct mrt_keeper_reply *reply)
{
    struct mrt_run *run = keeper->run;
    int error =
        keeper->ending.lock_gone ? MORTISE_ELOST : mortise_verify(run->locks[0].hold, VERIFY_MS);
    if (error) {
        reply->code = error == MORTISE_ENOTHELD ? MRT_EXIT_LOST : mrt_cli_exit_code(error);
        if (error == MORTISE_ETIMEOUT)
            reply->code = MRT_EXIT_UNREACHABLE;
        snprintf(reply->text, sizeof reply->text, "%s: %s", run->name, mortise_error_text(error));
        return;
    }
    reply->fence = run->locks[0].fence;
    set_max_hold(keeper, request->max_hold > 0 ? request->max_hold : run->max_hold);
}

static void describe_lock(const struct keeper *keeper, struct mrt_keeper_reply *reply)
{
    const struct mrt_run_lock *lock = &keeper->run->locks[0];
    if (!keeper->ending.lock_gone &&
        mrt_run_write_held(lock, reply->text, sizeof reply->text) >= (int)sizeof reply->text)
        reply->text[0] = '\0';
}

static void serve(struct keeper *keeper, size_t call)
{
    struct mrt_keeper_request request;
    struct mrt_keeper_reply reply = {.size = sizeof reply};
    if (!mrt_keeper_read(&keeper->socket, call, &request))
        return;
    int fd = keeper->socket.calls[call];
    bool is_other = strcmp(request.name, keeper->run->name) != 0;
    if (!is_other && request.demand == MRT_KEEPER_RELEASE && !keeper->over) {
        keeper->over = true;
        keeper->releaser = fd;
        keeper->socket.calls[call] = -1;
        return;
    }
    if (request.demand == MRT_KEEPER_TELL) {
        describe_lock(keeper, &reply);
    } else if (is_other) {
        reply.code = MRT_EXIT_USAGE;
        snprintf(reply.text, sizeof reply.text,
                 "%s: the token is of another lock: give the name that it was acquired with",
                 request.name);
    } else {
        renew(keeper, &request, &reply);
    }
    mrt_keeper_answer(fd, &reply);
    close(fd);
    keeper->socket.calls[call] = -1;
}

/* ---------------------------------------------------------------------- loop */

/* Whether the owner does not need the locks any longer. */
static bool is_owner_gone(struct keeper *keeper)
{
    const struct mrt_ending *ending = &keeper->ending;
    const struct mrt_run *run = keeper->run;
    bool is_ended = ending->lock_gone || ending->stopping;
    if (ending->lock_gone && run->on_lost == MRT_ON_LOST_IGNORE)
        return true;
    if (!is_ended && !mrt_target_has_ended(&ending->target))
        return false;
    if ((!is_ended && !run->no_fork) || !mrt_target_is_alive(&ending->target))
        return true;
    keeper->look_every =
        keeper->look_every == 0 ? LOOK_FIRST : mrt_time_min(keeper->look_every * 2, LOOK_LAST);
    return false;
}

static void hear_link(struct keeper *keeper)
{
    char byte;
    bool is_committed = recv(keeper->link, &byte, 1, 0) == 1;
    if (is_committed)
        close(keeper->link); /* else the end of the keeper tells that the lock was released */
    keeper->over |= !is_committed;
    keeper->link = -1;
    const struct mrt_run *run = keeper->run;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int standard = 0; standard <= 2 && null >= 0; standard++)
        if (!run->no_fork || (standard != STDERR_FILENO && standard != run->status_fd))
            dup2(null, standard);
    if (null > 2)
        close(null);
}

static void wait_for_anything(struct keeper *keeper)
{
    enum { CLIENT, SIGNALS, OWNER, LINK, LISTENER, CALLS, COUNT = CALLS + MRT_KEEPER_CALLS };
    struct pollfd fds[COUNT] = {[LINK] = {.fd = keeper->link, .events = POLLIN},
                                [LISTENER] = {.fd = keeper->socket.listener, .events = POLLIN}};
    mrt_time now = mrt_time_now(), next = mrt_ending_next_time(&keeper->ending);
    /* Its pidfd is readable from its end on, also while others of its group live: from then on the
       group is looked at by the clock. */
    bool is_known = keeper->ending.lock_gone || keeper->look_every > 0;
    fds[OWNER] =
        (struct pollfd){.fd = is_known ? -1 : keeper->ending.target.pidfd, .events = POLLIN};
    for (size_t i = 0; i < MRT_KEEPER_CALLS; i++)
        fds[CALLS + i] = (struct pollfd){.fd = keeper->socket.calls[i], .events = POLLIN};
    next = mrt_time_min(next, keeper->until);
    if (keeper->look_every)
        next = mrt_time_min(next, mrt_time_add(now, keeper->look_every));
    mrt_run_poll_all(keeper->run, next, fds, COUNT);
    if (fds[LINK].revents != 0)
        hear_link(keeper);
    for (size_t i = 0; i < MRT_KEEPER_CALLS; i++)
        if (fds[CALLS + i].revents != 0)
            serve(keeper, i);
    if (fds[LISTENER].revents != 0)
        mrt_keeper_accept(&keeper->socket);
}

/* --max-hold is over: the lock is as lost, but for a command that has begun as ours. */
static void end_hold(struct keeper *keeper, mrt_time now)
{
    keeper->until = MRT_TIME_NEVER;
    if (!keeper->run->no_fork) {
        mrt_ending_give_up(&keeper->ending);
        return;
    }
    mrt_run_event(keeper->run, "time-is-up", NULL, ", \"pid\": %d",
                  (int)keeper->ending.target.group);
    mrt_ending_term(&keeper->ending, mrt_time_add(now, keeper->run->grace));
}

static void keep(struct keeper *keeper)
{
    while (!keeper->over) {
        wait_for_anything(keeper);
        mrt_time now = mrt_time_now();
        for (int signal; (signal = mrt_run_next_signal(keeper->run)) != 0;)
            if (mrt_run_is_terminating(signal))
                mrt_ending_give_up(&keeper->ending);
        if (now >= keeper->until)
            end_hold(keeper, now);
        mrt_ending_step(&keeper->ending, now);
        keeper->over |= is_owner_gone(keeper);
    }
}

/* ----------------------------------------------------------- from begin to end */

/* Acquires all that no outer run holds: 0 or an exit code. */
static int get_locks(struct mrt_run *run)
{
    int code = mrt_run_set_lease(run);
    if (!code)
        code = mrt_run_open(run);
    if (code)
        return code;
    if (!mrt_run_wipe_secrets(run))
        return mrt_cli_fail(MRT_EXIT_INTERNAL, "out of memory");
    code = mrt_run_fit_grace(run);
    if (!code && run->no_fork)
        code = mrt_run_find_outer(run);
    if (!code)
        code = mrt_run_block_signals(run);
    if (!code)
        code = mrt_run_make_locks(run);
    if (!code && !mrt_run_are_all_outer(run))
        mrt_run_wait(run, &code);
    return code;
}

/* Fills in the part of the report for run -F. */
static void tell_locks(struct mrt_run *run, struct mrt_keeper_word *word)
{
    word->is_due = mrt_run_is_due(run, &word->code);
    word->are_outer = mrt_run_are_all_outer(run);
    for (size_t i = 0; i < run->count; i++) {
        word->outer[i] = run->locks[i].is_outer;
        word->fences[i] = run->locks[i].fence;
    }
    if (strlen(run->address) < sizeof word->address)
        memcpy(word->address, run->address, strlen(run->address) + 1);
}

/* Makes the socket and the guard that go with the lock: 0 or an exit code. */
static int set_up(struct keeper *keeper)
{
    struct mrt_run *run = keeper->run;
    if (!run->no_fork && !mrt_keeper_listen(&keeper->socket))
        return mrt_cli_fail(MRT_EXIT_INTERNAL, "the keeper cannot listen: %s", strerror(errno));
    struct mrt_target minded = keeper->ending.target;
    if (run->no_fork)
        minded.pidfd = 0; /* the group is killed even after the command has ended */
    else if (run->on_lost == MRT_ON_LOST_IGNORE)
        return 0;
    if (setenv("MORTISE_NAME", run->name, 1) < 0 || !mrt_guard_start(&run->guard, run->is_leased) ||
        !mrt_guard_mind(&run->guard, &minded))
        return mrt_cli_fail(MRT_EXIT_INTERNAL, "cannot start the guard: %s", strerror(errno));
    mrt_run_tell_guard(run);
    return 0;
}

/* Gives the lock back; returns the outcome. */
static struct mrt_keeper_reply give_back(struct keeper *keeper)
{
    struct mrt_run *run = keeper->run;
    struct mrt_keeper_reply reply = {.size = sizeof reply};
    mrt_guard_dismiss(&run->guard);
    int error = mrt_run_release(run);
    if (!error && keeper->ending.lock_gone)
        error = MORTISE_ELOST;
    int closing = run->client ? mortise_close(run->client) : MORTISE_OK;
    mrt_guard_reap(&run->guard);
    const char *detail = error ? "" : mortise_error_detail();
    error = error ? error : closing;
    reply.code = mrt_cli_exit_code(error);
    if (error)
        snprintf(reply.text, sizeof reply.text, "%s: %s", run->name,
                 detail[0] ? detail : mortise_error_text(error));
    return reply;
}

/* Keeps the lock until it must be released. */
static void serve_owner(struct keeper *keeper, const struct mrt_target *owner,
                        struct mrt_keeper_word *word)
{
    struct mrt_run *run = keeper->run;
    mrt_ending_begin(&keeper->ending, run, *owner);
    if (run->no_fork)
        tell_locks(run, word);
    keeper->over = run->no_fork && (!word->is_due || word->are_outer);
    if (!word->code && !keeper->over)
        word->code = set_up(keeper);
    keeper->over |= word->code != 0;
    set_max_hold(keeper, run->max_hold);
    if (!run->no_fork)
        mrt_keeper_make_token(&keeper->socket, word->token);
    keeper->over |= send(keeper->link, word, sizeof *word, MSG_NOSIGNAL) < 0;
    keep(keeper);
    /* A signal to the keeper demands the lock, also when it comes with the command's end. */
    if (run->min_hold > 0 && !keeper->ending.lock_gone)
        mrt_run_linger(run, mrt_time_add(run->acquired_at, run->min_hold));
}

static _Noreturn void be_keeper(struct mrt_run *run, const struct mrt_target *owner, int link)
{
    struct keeper keeper = {
        .run = run, .link = link, .releaser = -1, .socket.listener = -1, .until = MRT_TIME_NEVER};
    static struct mrt_keeper_word word;
    for (size_t i = 0; i < MRT_KEEPER_CALLS; i++)
        keeper.socket.calls[i] = -1;
    run->cancel_fd = link;
    word.code = get_locks(run);
    run->cancel_fd = 0;
    if (word.code == 0)
        serve_owner(&keeper, owner, &word);
    else
        send(link, &word, sizeof word, MSG_NOSIGNAL);
    struct mrt_keeper_reply reply = give_back(&keeper);
    if (keeper.releaser >= 0)
        mrt_keeper_answer(keeper.releaser, &reply);
    _exit(0);
}

/* Closes what is open above 2, but for these. */
static void shed_descriptors(const int *kept, size_t count)
{
    unsigned from = 3;
    for (;;) {
        unsigned next = ~0u;
        for (size_t i = 0; i < count; i++)
            if (kept[i] >= (int)from && (unsigned)kept[i] < next)
                next = (unsigned)kept[i];
        if (next > from)
            mrt_close_range(from, next == ~0u ? next : next - 1, 0);
        if (next == ~0u)
            return;
        from = next + 1;
    }
}

int mrt_keeper_start(struct mrt_run *run, const struct mrt_target *owner, int *link)
{
    int ends[2];
    if (!run->no_fork)
        run->lost_pipe[0] = run->lost_pipe[1] = -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return mrt_cli_fail(MRT_EXIT_INTERNAL, "cannot start the keeper: %s", strerror(errno));
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        /* Forks again, so that it is no child of the program that this process may become. */
        if (setsid() < 0 || fork() != 0)
            _exit(0);
        prctl(PR_SET_NAME, "lock-keeper"); /* not "mortise": pkill would end it too */
        const int kept[] = {ends[1], owner->pidfd, run->lost_pipe[1], run->status_fd};
        shed_descriptors(kept, sizeof kept / sizeof kept[0]);
        be_keeper(run, owner, ends[1]);
    }
    close(ends[1]);
    if (pid < 0)
        return mrt_cli_fail(MRT_EXIT_INTERNAL, "cannot start the keeper: %s", strerror(errno));
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    *link = ends[0];
    return 0;
}

int mrt_keeper_dismiss(int link, int code)
{
    char byte;
    shutdown(link, SHUT_WR);
    while (recv(link, &byte, 1, 0) > 0)
        continue; /* until it has ended */
    close(link);
    return code;
}

int mrt_keeper_wait(int link, const struct mrt_target *owner, struct mrt_keeper_word *word)
{
    struct pollfd fds[] = {{.fd = link, .events = POLLIN}, {.fd = owner->pidfd, .events = POLLIN}};
    while (poll(fds, 2, -1) < 0 && errno == EINTR)
        continue;
    if (fds[0].revents == 0)
        return mrt_keeper_dismiss(
            link, mrt_cli_fail(MRT_EXIT_FAILED, "the process that the lock is for has ended"));
    if (recv(link, word, sizeof *word, 0) != (ssize_t)sizeof *word)
        return mrt_keeper_dismiss(link, mrt_cli_fail(MRT_EXIT_INTERNAL, "the keeper has ended"));
    return word->code ? mrt_keeper_dismiss(link, word->code) : 0;
}

bool mrt_keeper_commit(int link)
{
    bool done = send(link, "", 1, MSG_NOSIGNAL) == 1;
    close(link);
    return done;
}
