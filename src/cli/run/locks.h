/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The set of locks of a run: how they are made, acquired and given back. The run, the keeper and
 * mortise try stand above it.
 *   locks.c     the client, the locks' handles, and the end of the holds
 *   kind.c      the kind of a handle, and names that are in use as another kind
 *   wait.c      acquiring while signals are watched
 *   flock.c     --flock: the flock(2) of a file beside the locks
 *   signals.c   signals as events beside the client's
 * Invariant: a lock that an outer run holds has no handle here, and no hold.
 * Threads: one.
 */
#ifndef MRT_CLI_RUN_LOCKS_H
#define MRT_CLI_RUN_LOCKS_H

#include "cli/run/run.h"

#include <poll.h>

/* --------------------------------------------------------- locks.c */

/* The longest grace that fits into the store's lease. */
mrt_time mrt_run_longest_grace(const mortise_capabilities *can);
/* Makes the grace fit into the store's lease; 0 or an exit code. */
int mrt_run_fit_grace(struct mrt_run *run);
/* Opens the client; from now on a wait says when the store does not answer. 0 or an exit code. */
int mrt_run_open(struct mrt_run *run);
/* Makes the handles of all locks that no outer run holds. 0 or an exit code. */
int mrt_run_make_locks(struct mrt_run *run);
/* Releases all; the library's error of the first that could not be released. */
int mrt_run_release(struct mrt_run *run);

/* ---------------------------------------------------------- kind.c */

/* The ways on after a refusal. */
enum mrt_join {
    MRT_JOIN_TURNED,  /* ask again: the lock is made anew, as the kind that the name is in use as */
    MRT_JOIN_WAITS,   /* a mutex is in the way of a reader: ask again, later */
    MRT_JOIN_UNCLEAR, /* nothing is in the way by now */
    MRT_JOIN_FOREIGN, /* a mutex of a program that would not see a reader */
    MRT_JOIN_REFUSED  /* there is none */
};
/* Makes the handle, of the run's mode: an error of the library. */
int mrt_run_make_lock(struct mrt_run *run, struct mrt_run_lock *lock);
/* After an acquire that the store has refused by this error. */
enum mrt_join mrt_run_join(struct mrt_run_lock *lock, int error);

/* ---------------------------------------------------------- wait.c */

/* Acquires all that no outer run holds: true; or false and the exit code, with nothing
   held or queued. */
bool mrt_run_wait(struct mrt_run *run, int *code);

/* --------------------------------------------------------- flock.c */

/* Opens the file of --flock; 0 or an exit code. */
int mrt_run_open_file(struct mrt_run *run);
/* Locks the file of --flock, if there is one, without a wait. 0; EBUSY, or EINVALID and errno. */
int mrt_run_lock_file(const struct mrt_run *run);
void mrt_run_unlock_file(const struct mrt_run *run);
/* Warns of names that are paths of files. */
void mrt_run_warn_of_files(const struct mrt_run *run);

/* ------------------------------------------------------- signals.c */

/* Blocks the signals that are waited for and opens run->signal_fd. 0 or an exit code. */
int mrt_run_block_signals(struct mrt_run *run);
/* The next signal that has come; 0: none. */
int mrt_run_next_signal(struct mrt_run *run);
bool mrt_run_is_terminating(int signal);
/* Sleeps until the client, a signal or `until` calls, and runs the client. */
void mrt_run_poll(struct mrt_run *run, mrt_time until);
/* The same for more descriptors; the first two of `fds` are filled in here. */
void mrt_run_poll_all(struct mrt_run *run, mrt_time until, struct pollfd *fds, nfds_t count);
/* Sleeps until `until`, a signal that ends, or the loss of a lock. */
void mrt_run_linger(struct mrt_run *run, mrt_time until);

#endif
