/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command under the locks, from its start to its end.
 *   spawn.c    starting it
 *   child.c    looking after it until its process group is empty
 *   ending.c   its end when a lock is lost
 * Threads: one.
 */
#ifndef MRT_CLI_RUN_COMMAND_H
#define MRT_CLI_RUN_COMMAND_H

#include "cli/run/run.h"

/* --------------------------------------------------------- spawn.c */

/* Starts the command in a process group of its own: its id, or -1 and errno; ETIME: the lock
   may be lost by now. */
pid_t mrt_run_spawn(struct mrt_run *run);
/* Warns of a command that the system would not let mortise stop. */
void mrt_run_warn_of_immune(const struct mrt_run *run);
/* Says why a command could not be run: 126 or 127. */
int mrt_run_fail_exec(const struct mrt_run *run, int error);
/* Starts the command of --on-lost for the target, without counting it as a stray; false: it could
 * not be started. */
bool mrt_run_spawn_on_lost(const struct mrt_run *run, struct mrt_target *target);
/* Marks all descriptors above 2, but `kept` (-1: none), to be closed by exec. */
void mrt_run_shed_descriptors(int kept);

/* -------------------------------------------------------- ending.c */

struct mrt_ending {
    struct mrt_run *run;
    struct mrt_target target;
    bool stopping;  /* TERM was sent by us */
    bool lock_gone; /* it is lost, or about to be, and the action of --on-lost is under way */
    bool killed;    /* KILL was sent */
    bool immune;    /* the system refused a signal: a process runs as another user */
    mrt_time kill_at;
    mrt_time attend_at; /* MRT_TIME_NEVER: done */
};

/* The target runs under the locks from now on. */
void mrt_ending_begin(struct mrt_ending *ending, struct mrt_run *run, struct mrt_target target);
/* When to call mrt_ending_step next, if the client has nothing to say. */
mrt_time mrt_ending_next_time(const struct mrt_ending *ending);
/* Reads the locks' states, and acts on them. */
void mrt_ending_step(struct mrt_ending *ending, mrt_time now);
/* The urgent part alone: whether the locks are lost. */
void mrt_ending_check_lock(struct mrt_ending *ending, mrt_time now);
/* Acts as on a loss, with the whole grace. */
void mrt_ending_give_up(struct mrt_ending *ending);
/* TERM, once, and KILL at `kill_at`. */
void mrt_ending_term(struct mrt_ending *ending, mrt_time kill_at);
/* When the command must get TERM if the store never answers again. */
mrt_time mrt_run_term_time(const struct mrt_run *run);
/* Tells the guard when the locks end if nothing more is heard of the store. */
void mrt_run_tell_guard(struct mrt_run *run);

/* --------------------------------------------------------- child.c */

/* Looks after the group of `child` until it is empty: the exit code. */
int mrt_run_supervise(struct mrt_run *run, pid_t child);

#endif
