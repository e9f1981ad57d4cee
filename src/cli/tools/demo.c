/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise demo: what a lock is for. Eight processes each add 1 to a number in a
 * file 500 times: open, read, let others run, write, close. First without a
 * lock, and updates get lost; then each step under a mutex, and none may be.
 *
 * Each worker opens a client of its own, as separate programs would; the parent
 * opens one beforehand, alone, so that a store that cannot be used is reported
 * once. Progress goes through a shared page, which takes no part in the counting.
 */
#include "cli/frame/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORKERS 8
#define STEPS 500
#define TOTAL (WORKERS * STEPS)

const struct mrt_subcommand mrt_demo_subcommand = {
    .name = "demo",
    .summary = "lose updates without a lock, and none with one",
    .operands = "",
    .about = "8 processes each add 1 to a number in a file 500 times, first without a lock,\n"
             "then each step under a mutex. Ends with 0 only if the lock lost no update.\n",
    .function = mrt_cli_demo,
};

struct demo {
    const struct mrt_cli *cli;
    char directory[PATH_MAX];
    char file[PATH_MAX + 8];
    char name[64];
    bool on_terminal;
    sigset_t signals; /* signals that end the demo; blocked in the parent */
    pid_t workers[WORKERS];
    atomic_int *progress; /* shared: steps done; negative: start */
};

/* -------------------------------------------------------------- the file */

static bool read_number(const char *file, int64_t *number)
{
    char text[32];
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    /* A writer in between has emptied the file: the same as having read 0. */
    return got == 0 ? (*number = 0, true) : mrt_cli_number(text, 0, TOTAL, number);
}

static bool write_number(const char *file, int64_t number)
{
    char text[32];
    int length = snprintf(text, sizeof(text), "%08lld", (long long)number);
    int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool written = write(fd, text, (size_t)length) == length;
    return close(fd) == 0 && written;
}

static bool add_one(const char *file)
{
    int64_t number;
    if (!read_number(file, &number))
        return false;
    sched_yield();
    return write_number(file, number + 1);
}

/* ------------------------------------------------------------ the worker */

static int add_under_lock(const struct demo *demo, mortise_lock *lock)
{
    mortise_hold hold;
    int error = mortise_acquire(lock, &hold);
    if (error)
        return mrt_cli_fail_error(demo->name, error);
    bool added = add_one(demo->file);
    error = mortise_release(hold);
    if (error)
        return mrt_cli_fail_error(demo->name, error);
    return added ? 0 : mrt_cli_fail(MRT_EXIT_FAILED, "%s: %s", demo->file, strerror(errno));
}

static int take_steps(const struct demo *demo, mortise_lock *lock)
{
    int code = 0;
    for (int i = 0; i < STEPS && !code; i++) {
        if (lock)
            code = add_under_lock(demo, lock);
        else if (!add_one(demo->file))
            code = mrt_cli_fail(MRT_EXIT_FAILED, "%s: %s", demo->file, strerror(errno));
        atomic_fetch_add(demo->progress, 1);
    }
    return code;
}

static void wait_for_start(const struct demo *demo)
{
    while (atomic_load(demo->progress) < 0)
        nanosleep(&(struct timespec){.tv_nsec = 100 * MRT_MICROSECOND}, NULL);
}

static int work(const struct demo *demo, bool locked)
{
    mortise_client *client = NULL;
    mortise_lock *lock = NULL;
    int code = locked ? mrt_cli_open(demo->cli, MORTISE_FOREIGN_LOOP, &client) : 0;
    if (code)
        return code;
    int error = locked ? mortise_mutex_new(client, demo->name, NULL, &lock) : 0;
    if (error)
        code = mrt_cli_fail_error(demo->name, error);
    wait_for_start(demo);
    if (!code)
        code = take_steps(demo, lock);
    error = mortise_close(client);
    return error && !code ? mrt_cli_fail_error(demo->name, error) : code;
}

/* ------------------------------------------------------------ the parent */

static void show_progress(const struct demo *demo, const char *title)
{
    int done = atomic_load(demo->progress);
    if (demo->on_terminal)
        printf("\r%s: %4d of %d steps", title, done < 0 ? 0 : done, TOTAL);
    fflush(stdout);
}

static void end_workers(const struct demo *demo, int count)
{
    for (int i = 0; i < count; i++)
        kill(demo->workers[i], SIGKILL);
}

/* Waits for `count` workers; 0, or the first exit code that is not, or that of a
   signal: then the workers are ended, and the caller can clean up. */
static int wait_for_workers(const struct demo *demo, int count, const char *title)
{
    static const struct timespec pause = {.tv_nsec = 20 * MRT_MILLISECOND};
    int code = 0;
    for (int left = count; left > 0;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid < 0)
            return MRT_EXIT_INTERNAL;
        if (pid == 0) {
            show_progress(demo, title);
            int signal = sigtimedwait(&demo->signals, NULL, &pause);
            if (signal > 0) {
                code = MRT_EXIT_SIGNAL + signal;
                end_workers(demo, count);
            }
            continue;
        }
        left--;
        if (!code)
            code = WIFEXITED(status) ? WEXITSTATUS(status) : MRT_EXIT_SIGNAL + WTERMSIG(status);
    }
    show_progress(demo, title);
    return code;
}

/* One worker; it ends with its parent. */
static pid_t start_worker(const struct demo *demo, bool locked, pid_t parent)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(MRT_EXIT_INTERNAL);
    sigprocmask(SIG_UNBLOCK, &demo->signals, NULL);
    _exit(work(demo, locked));
}

/* One round: 0 and how many updates got lost, or an exit code. */
static int run_round(struct demo *demo, bool locked, const char *title, int64_t *lost)
{
    int64_t number;
    int started = 0, code = 0;
    if (!write_number(demo->file, 0))
        return mrt_cli_fail(MRT_EXIT_FAILED, "%s: %s", demo->file, strerror(errno));
    atomic_store(demo->progress, INT32_MIN);
    fflush(stdout);
    while (started < WORKERS && (demo->workers[started] = start_worker(demo, locked, getpid())) > 0)
        started++;
    if (started < WORKERS)
        code = mrt_cli_fail(MRT_EXIT_INTERNAL, "cannot start %d processes", WORKERS);
    atomic_store(demo->progress, 0);
    int worst = wait_for_workers(demo, started, title);
    if (code || worst)
        return code ? code : worst;
    if (!read_number(demo->file, &number))
        return mrt_cli_fail(MRT_EXIT_FAILED, "%s: no number in it", demo->file);
    *lost = TOTAL - number;
    printf("%s%s: %lld of %d updates arrived\n", demo->on_terminal ? "\r" : "", title,
           (long long)number, TOTAL);
    return 0;
}

static int run_rounds(struct demo *demo)
{
    int64_t without, with;
    int code = run_round(demo, false, "without lock", &without);
    if (!code)
        code = run_round(demo, true, "with lock", &with);
    if (code)
        return code;
    printf("without lock: %lld of %d updates lost; with lock: %lld of %d lost\n",
           (long long)without, TOTAL, (long long)with, TOTAL);
    return with == 0 ? MRT_EXIT_OK : MRT_EXIT_FAILED;
}

/* The store can be used: said once, before eight processes say that it cannot. */
static int try_store(const struct mrt_cli *cli)
{
    mortise_client *client;
    int code = mrt_cli_open(cli, MORTISE_FOREIGN_LOOP, &client);
    if (code)
        return code;
    const char *url = mortise_url(client);
    if (strncmp(url, "memory:", 7) == 0)
        code = mrt_cli_fail(MRT_EXIT_CONFIG, "%s is not shared by processes", url);
    else
        printf("8 processes add 1 to a number in a file, 500 times each; store %s\n", url);
    mortise_close(client); /* nothing was held */
    return code;
}

static int run_in_directory(struct demo *demo)
{
    const char *temporary = secure_getenv("TMPDIR");
    int length = snprintf(demo->directory, sizeof(demo->directory), "%s/mortise-demo-XXXXXX",
                          temporary && *temporary ? temporary : "/tmp");
    errno = ENAMETOOLONG;
    if (length >= (int)sizeof(demo->directory) || !mkdtemp(demo->directory))
        return mrt_cli_fail(MRT_EXIT_FAILED, "%s: %s", demo->directory, strerror(errno));
    snprintf(demo->file, sizeof(demo->file), "%s/number", demo->directory);
    /* mkdtemp has just made the last part unique on this machine. */
    snprintf(demo->name, sizeof(demo->name), "demo/%ld-%s", (long)time(NULL),
             strrchr(demo->directory, '-') + 1);
    sigemptyset(&demo->signals);
    sigaddset(&demo->signals, SIGHUP);
    sigaddset(&demo->signals, SIGINT);
    sigaddset(&demo->signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &demo->signals, NULL);
    int code = run_rounds(demo);
    unlink(demo->file); /* best effort: nothing of it matters any more */
    rmdir(demo->directory);
    return code;
}

int mrt_cli_demo(struct mrt_cli *cli, int argc, char **argv)
{
    if (mrt_cli_option(cli, argc, argv) == MRT_OPTION_STOP)
        return cli->exit_code;
    if (optind < argc)
        return mrt_cli_fail(MRT_EXIT_USAGE, "demo takes no argument; \"%.64s\" is too much",
                            argv[optind]);
    struct demo demo = {.cli = cli, .on_terminal = isatty(STDOUT_FILENO)};
    int code = try_store(cli);
    if (code)
        return code;
    demo.progress = mmap(NULL, sizeof(*demo.progress), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (demo.progress == MAP_FAILED)
        return mrt_cli_fail(MRT_EXIT_INTERNAL, "out of memory");
    code = run_in_directory(&demo);
    return code ? code : mrt_cli_end_output();
}
