/*
 * The parts of `mortise run` and what they share.
 *   run.c           options, the order of things, what is said
 *   run_wait.c      getting the lock while signals are watched
 *   run_held.c      the command's environment, and locks that an outer run holds
 *   run_spawn.c     starting the command
 *   run_child.c     looking after it until its process group is empty
 *   run_terminal.c  the terminal's foreground
 *   run_guard.c     the process that outlives this one
 * One thread; the client has none of its own.
 */
#ifndef MRT_CLI_RUN_H
#define MRT_CLI_RUN_H

#include "cli/cli.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* The guard: run_guard.c. */
struct mrt_guard {
    pid_t pid; /* 0: none */
    int fd;    /* the end of its pipe that is written */
};

/* The terminal: run_terminal.c. */
struct mrt_terminal {
    int fd;     /* -1: not opened yet, or there is none */
    bool eager; /* the command has the foreground whenever we have it to give */
    pid_t own_group;
};

struct mrt_run {
    struct mrt_cli *cli;

    const char *name;
    char *const *command; /* ended by NULL */
    bool verbose;
    bool keep_descriptors;
    bool no_wait;
    mrt_time deadline; /* of the wait */
    mrt_time grace;    /* from TERM to KILL */
    bool grace_given;
    int conflict_code;

    mortise_client *client;
    mortise_lock *lock;
    mortise_hold hold;
    uint64_t fence;
    bool is_leased; /* the hold ends by itself */
    bool lost;      /* so the library told */

    sigset_t inherited_mask; /* what the command gets */
    int signal_fd;

    struct mrt_guard guard;
    struct mrt_terminal terminal;
    int lost_pipe[2]; /* MORTISE_LOCK_FD is the first */
};

/* ---------------------------------------------------------- run_wait.c */

/* Blocks the signals that are waited for and opens run->signal_fd. 0 or an exit code. */
int mrt_run_block_signals(struct mrt_run *run);
/* The next signal that has come; 0: none. */
int mrt_run_next_signal(struct mrt_run *run);
bool mrt_run_is_terminating(int signal);
/* Sleeps until the client, a signal or `until` calls, and runs the client. */
void mrt_run_poll(struct mrt_run *run, mrt_time until);
/* Acquires: true and run->hold; or false and the exit code, with nothing held or queued. */
bool mrt_run_wait(struct mrt_run *run, int *code);

/* ---------------------------------------------------------- run_held.c */

/* Whether an outer `mortise run` holds this very lock now, with which fence. */
bool mrt_run_is_held_outside(const struct mrt_run *run, uint64_t *fence);
/* Sets MORTISE_NAME, MORTISE_FENCE, MORTISE_LOCK_FD, MORTISE_HELD; false: no memory. */
bool mrt_run_set_environment(const struct mrt_run *run);
/* Becomes the command, under the lock that an outer run holds with run->fence. Returns
   only an exit code. */
int mrt_run_replace(const struct mrt_run *run);

/* --------------------------------------------------------- run_spawn.c */

/* Starts the command in a process group of its own: its id, or -1 and errno. */
pid_t mrt_run_spawn(struct mrt_run *run);
/* Says why a command could not be run: 126 or 127. */
int mrt_run_fail_exec(const struct mrt_run *run, int error);
/* Marks all descriptors above 2, but `kept` (-1: none), to be closed by exec. */
void mrt_run_shed_descriptors(int kept);

/* --------------------------------------------------------- run_child.c */

/* Looks after the group of `child` until it is empty: the exit code. */
int mrt_run_supervise(struct mrt_run *run, pid_t child);

/* ------------------------------------------------------ run_terminal.c */

/* Looks whether the command is to have the terminal from the start. */
void mrt_terminal_init(struct mrt_terminal *terminal);
/* Whether this process has a terminal. */
bool mrt_terminal_exists(struct mrt_terminal *terminal);
/* Gives it to `group` if we have it, takes it back if `group` has it; whether it did. */
bool mrt_terminal_give(struct mrt_terminal *terminal, pid_t group);
bool mrt_terminal_take(struct mrt_terminal *terminal, pid_t group);
/* Stops this process (its own id) or its group (0, for a shell to see the whole job
   stopped) as the suspend key would; returns when it is continued. */
void mrt_terminal_stop(pid_t whom);

/* --------------------------------------------------------- run_guard.c */

/* Forks the guard; the lock is held already. False and errno. */
bool mrt_guard_start(struct mrt_guard *guard);
/* The group is empty: the guard may go. */
void mrt_guard_dismiss(struct mrt_guard *guard);
/* Waits for its end. */
void mrt_guard_reap(struct mrt_guard *guard);
/* Whether a process of `group` lives that is more than a zombie. */
bool mrt_group_is_alive(pid_t group);

#endif
