/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting the command. vfork: the child runs on our memory until it becomes the
 * command, so nothing is copied however large the process is, and it reports a
 * failure by writing to our variable. In exchange it calls only what leaves no
 * trace here: system calls, and execvp, which allocates nothing; and its part is
 * kept out of the parent's function, whose stack frame it would share.
 */

#include "base/system.h"
#include "cli/run/command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int child_error; /* of the step that failed in the child */

void mrt_run_shed_descriptors(int kept)
{
    mrt_close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
    if (kept > 2)
        fcntl(kept, F_SETFD, 0);
}

/* In the child: true if the group is set up and the guard knows of it. */
static bool prepare(struct mrt_run *run, pid_t parent)
{
    pid_t self = getpid();
    struct mrt_target target = {.group = self};
    if (run->stragglers != MRT_STRAGGLERS_LEAVE || run->verbose || run->status_fd >= 0)
        mrt_strays_begin(&run->strays, parent, run->guard.pid);
    if (run->stragglers != MRT_STRAGGLERS_LEAVE)
        target.strays = run->strays;
    if (setpgid(0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return false;
    /* The parent may have died before the line above. */
    if (getppid() != parent)
        _exit(MRT_EXIT_INTERNAL);
    if (!mrt_guard_mind(&run->guard, &target))
        return false;
    /* We may have been stopped for long since the lock was acquired. From here on the guard
       ends us in time. */
    if (mrt_time_now() >= run->guard.kill_at) {
        errno = ETIME;
        return false;
    }
    if (run->terminal.eager)
        mrt_terminal_give(&run->terminal, self);
    if (run->keep_descriptors)
        return fcntl(run->lost_pipe[0], F_SETFD, 0) == 0;
    mrt_run_shed_descriptors(run->lost_pipe[0]);
    return true;
}

__attribute__((noinline)) static _Noreturn void become_command(struct mrt_run *run, pid_t parent)
{
    if (prepare(run, parent)) {
        sigprocmask(SIG_SETMASK, &run->inherited_mask, NULL);
        mrt_cli_restore_core();
        execvp(run->command[0], run->command);
    }
    child_error = errno;
    _exit(MRT_EXIT_NOT_FOUND);
}

pid_t mrt_run_spawn(struct mrt_run *run)
{
    pid_t parent = getpid();
    child_error = 0;
    pid_t child = vfork();
    if (child == 0)
        become_command(run, parent);
    if (child > 0 && child_error != 0) {
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            continue;
        mrt_terminal_take(&run->terminal, child);
        errno = child_error;
        return -1;
    }
    return child;
}

bool mrt_run_spawn_on_lost(const struct mrt_run *run, struct mrt_target *target)
{
    char text[24];
    char *const command[] = {(char[]){"/bin/sh"}, (char[]){"-c"},
                             (char *)(uintptr_t)run->on_lost_command, NULL};
    posix_spawnattr_t attributes;
    pid_t pid;
    snprintf(text, sizeof text, "%d", (int)target->group);
    if ((target->group > 1 ? setenv("MORTISE_GROUP", text, 1) : unsetenv("MORTISE_GROUP")) < 0 ||
        posix_spawnattr_init(&attributes) != 0)
        return false;
    posix_spawnattr_setsigmask(&attributes, &run->inherited_mask);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    mrt_cli_restore_core();
    int error = posix_spawn(&pid, command[0], NULL, &attributes, command, environ);
    mrt_cli_allow_no_core();
    posix_spawnattr_destroy(&attributes);
    if (error != 0)
        return false;
    target->strays.on_lost = pid;
    if (target->strays.root > 0 && run->guard.pid != 0)
        mrt_guard_mind(&run->guard, target);
    return true;
}

/* Whether execvp would take this file, and it begins as another user. */
static bool is_set_uid(const char *path)
{
    struct stat file;
    return stat(path, &file) == 0 && S_ISREG(file.st_mode) && (file.st_mode & S_ISUID) &&
           file.st_uid != geteuid();
}

/* The first file of that name in PATH; false: none. */
static bool find_program(const char *name, char *path, size_t size)
{
    const char *place = secure_getenv("PATH");
    if (strchr(name, '/') || !place)
        return (size_t)snprintf(path, size, "%s", name) < size;
    for (; *place; place += strcspn(place, ":"), place += *place == ':') {
        size_t length = strcspn(place, ":");
        if ((size_t)snprintf(path, size, "%.*s/%s", (int)length, place, name) < size &&
            access(path, X_OK) == 0)
            return true;
    }
    return false;
}

/* Root may end any process. */
void mrt_run_warn_of_immune(const struct mrt_run *run)
{
    char path[PATH_MAX];
    const char *name = run->command[0];
    if (!name || geteuid() == 0 || run->on_lost == MRT_ON_LOST_IGNORE ||
        !find_program(name, path, sizeof path) || !is_set_uid(path))
        return;
    mrt_cli_say(
        "warning: %s runs as another user, so mortise cannot stop it when the lock is lost; "
        "run mortise as that user, as in: sudo mortise run ...",
        name);
}

int mrt_run_fail_exec(const struct mrt_run *run, int error)
{
    int code = error == ENOENT ? MRT_EXIT_NOT_FOUND : MRT_EXIT_CANNOT_RUN;
    return mrt_cli_fail(code, "%s: %s", run->command[0], strerror(error));
}
