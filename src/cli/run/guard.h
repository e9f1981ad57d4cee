/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that outlives mortise and ends the command when the lock ends.
 * Threads: one.
 */
#ifndef MRT_CLI_RUN_GUARD_H
#define MRT_CLI_RUN_GUARD_H

#include "base/time.h"
#include "cli/run/target.h"

#include <stdbool.h>
#include <sys/types.h>

struct mrt_guard {
    pid_t pid;                 /* 0: none */
    int fd;                    /* the end of its pipe that is written */
    mrt_time term_at, kill_at; /* the times that it was told last; 0: it was never started */
};

/* Starts the guard; the lock is held already. `timed`: a lease may end. False and errno. */
bool mrt_guard_start(struct mrt_guard *guard, bool timed);
/* When it sends TERM and KILL if no message follows. MRT_TIME_NEVER: never. */
void mrt_guard_set_times(struct mrt_guard *guard, mrt_time term_at, mrt_time kill_at);
/* From now on the guard minds the target; also in the command's process. False and errno. */
bool mrt_guard_mind(const struct mrt_guard *guard, const struct mrt_target *target);
/* The group is empty: the guard may go. */
void mrt_guard_dismiss(struct mrt_guard *guard);
/* Waits for its end. */
void mrt_guard_reap(struct mrt_guard *guard);

#endif
