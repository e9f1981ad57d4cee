/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks that runs and scripts hold which this process is a part of.
 *   held.c    the command's environment, and locks that an outer run holds
 *   above.c   a wait for a lock whose holder waits for us
 * Threads: one.
 */
#ifndef MRT_CLI_RUN_HELD_H
#define MRT_CLI_RUN_HELD_H

#include "cli/run/run.h"

#define MRT_RUN_HELD_SIZE 1536 /* a line of MORTISE_HELD, with its 0 */

enum mrt_cover {
    MRT_COVER_NONE,    /* it is not held, or nothing to us */
    MRT_COVER_WHOLE,   /* it is held in the mode that the run wants */
    MRT_COVER_CIRCULAR /* it is held in a way that the run would wait for */
};
/* How the locks in `list`, written as MORTISE_HELD, cover this one. A line counts if the store
   confirms it; its fence is noted in the lock. */
enum mrt_cover mrt_run_find_cover(struct mrt_run *run, struct mrt_run_lock *lock, const char *list);
/* Writes the line of a lock that is held; snprintf's result. */
int mrt_run_write_held(const struct mrt_run_lock *lock, char *text, size_t size);
/* Marks the locks that outer runs hold now. 0; or an exit code, with the error said: an outer
   run holds one in a way that this one would wait for, for ever. */
int mrt_run_find_outer(struct mrt_run *run);
/* Notes the store's address, if it is not known yet, and takes what was shown to the server out of
   our environment; false: no memory. */
bool mrt_run_wipe_secrets(struct mrt_run *run);
/* The fence of the lock that was named first. */
uint64_t mrt_run_fence(const struct mrt_run *run);
/* Sets MORTISE_NAME, MORTISE_FENCE, MORTISE_LOCK_FD, MORTISE_HELD; false: no memory. */
bool mrt_run_set_environment(const struct mrt_run *run);
/* Whether outer runs hold all locks. */
bool mrt_run_are_all_outer(const struct mrt_run *run);
/* Becomes the command, under locks that outer runs hold. Returns only an exit code. */
int mrt_run_replace(const struct mrt_run *run);

/* --------------------------------------------------------- above.c */

/* Whether a run or a script that we are part of holds the lock, so that our wait may have no end.
 */
bool mrt_run_is_held_above(struct mrt_run *run, struct mrt_run_lock *lock);

#endif
