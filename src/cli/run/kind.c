/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kind of a run's locks, and what a run does if a name is in use as the other kind.
 *
 * As in flock(1) a name is one lock: a plain run and -x hold it alone, -s together with others. A
 * store keeps a queue of one kind at a time. A plain run acquires a mutex, for which programs and,
 * on ZooKeeper, Curator's mutexes contend too; -x and -s acquire the sides of a read/write lock. If
 * the store refuses because the name is in use as the other kind, a run that wants to be alone
 * tries again with that kind. So the other programs see a lock of the kind they use. A reader
 * cannot share a mutex: it waits until no mutex is left, without a place in the queue.
 *
 * Invariant: a ticket always has the kind of its queue. The store guarantees that, also
 * between two versions of mortise; this file only chooses the kind to try next.
 */

#include "cli/run/locks.h"

#include <string.h>

/* The state that the store shows under a name. */
struct seen {
    bool is_mutex, is_read_write, is_other;
    bool is_foreign; /* a mutex of which the store knows no process */
};

static int see(void *argument, const mortise_entry *entry)
{
    struct seen *seen = argument;
    bool is_mutex = strcmp(entry->kind, "mutex") == 0;
    bool is_read_write = strcmp(entry->kind, "read-write") == 0;
    seen->is_mutex |= is_mutex;
    seen->is_read_write |= is_read_write;
    seen->is_other |= !is_mutex && !is_read_write;
    seen->is_foreign |= is_mutex && entry->pid == 0 && !entry->detached;
    return 0;
}

/* Whether the lock is made as a side of a read/write lock. */
static bool reads_or_writes(const struct mrt_run_lock *lock)
{
    return (lock->run->mode == MRT_RUN_MUTEX) == lock->is_turned;
}

static int make_writer(struct mrt_run_lock *lock, const mortise_lock_options *options)
{
    mortise_lock *reader;
    int error =
        mortise_read_write_new(lock->run->client, lock->name, options, &reader, &lock->lock);
    if (!error)
        mortise_lock_free(reader);
    return error;
}

static int make_exclusive(struct mrt_run_lock *lock, const mortise_lock_options *options)
{
    return reads_or_writes(lock)
               ? make_writer(lock, options)
               : mortise_mutex_new(lock->run->client, lock->name, options, &lock->lock);
}

static void on_queued(void *argument, uint64_t ahead)
{
    struct mrt_run *run = argument;
    (void)ahead;
    run->is_queued = true;
}

int mrt_run_make_lock(struct mrt_run *run, struct mrt_run_lock *lock)
{
    mortise_lock *other;
    bool tells = run->verbose || run->status_fd >= 0;
    mortise_lock_options options = {.size = sizeof options,
                                    .permits = run->weight,
                                    .queued = tells ? on_queued : NULL,
                                    .queued_argument = run,
                                    .lock_delay_ms = mrt_time_left_ms(run->lock_delay, 0)};
    mortise_election_options candidate = {.size = sizeof candidate,
                                          .value = run->value,
                                          .value_size = run->value ? strlen(run->value) : 0};
    switch (run->mode) {
    case MRT_RUN_SHARED:
        return mortise_read_write_new(run->client, lock->name, &options, &lock->lock, &other);
    case MRT_RUN_LEADER:
        return mortise_election_new(run->client, lock->name, &candidate, &lock->election);
    case MRT_RUN_PERMITS:
        return mortise_semaphore_new(run->client, lock->name, run->permits, &options, &lock->lock);
    default:
        return make_exclusive(lock, &options);
    }
}

static enum mrt_join turn(struct mrt_run_lock *lock)
{
    mortise_lock_free(lock->lock);
    lock->lock = NULL;
    lock->is_turned = !lock->is_turned;
    return mrt_run_make_lock(lock->run, lock) ? MRT_JOIN_REFUSED : MRT_JOIN_TURNED;
}

/* Programs that know mutexes alone do not see readers there, and would come in beside them. */
static bool may_not_share(const struct mrt_run *run, const struct seen *seen)
{
    return seen->is_foreign && strncmp(mortise_url(run->client), "zk:", 3) == 0;
}

enum mrt_join mrt_run_join(struct mrt_run_lock *lock, int error)
{
    struct mrt_run *run = lock->run;
    struct seen seen = {.is_mutex = false};
    bool shares = run->mode == MRT_RUN_SHARED;
    if ((error != MORTISE_EMISMATCH && error != MORTISE_ENOTSUPPORTED) ||
        (run->mode != MRT_RUN_MUTEX && run->mode != MRT_RUN_EXCLUSIVE && !shares))
        return MRT_JOIN_REFUSED;
    if (error == MORTISE_ENOTSUPPORTED) /* the store has no read/write locks */
        return run->mode == MRT_RUN_EXCLUSIVE && !lock->is_turned ? turn(lock) : MRT_JOIN_REFUSED;
    if (mortise_list(run->client, lock->name, see, &seen) || seen.is_other)
        return MRT_JOIN_REFUSED;
    if (shares && seen.is_mutex)
        return may_not_share(run, &seen) ? MRT_JOIN_FOREIGN : MRT_JOIN_WAITS;
    if (!shares && (reads_or_writes(lock) ? seen.is_mutex : seen.is_read_write))
        return turn(lock);
    return MRT_JOIN_UNCLEAR;
}
