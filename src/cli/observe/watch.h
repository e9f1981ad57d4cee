/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Observes locks from outside by listing all tickets again and again. A ticket is known by its
 * lock's name and its id, which is mostly its fence.
 *
 * All times are read from this process's clock at each look, so the clocks of stores and
 * clients do not matter. A wait lasts from the first look that saw the ticket wait to the
 * first that saw it hold, a hold from there to the first that saw it no longer. Each differs from
 * the truth by at most the time between two looks. A hold or wait that began before the first look
 * has no known beginning and is in no histogram. One that comes and goes between two looks is not
 * seen at all, so every count is a lower bound. Tickets of stores without fences are not followed.
 * A holder that no longer holds has released the lock or has lost it. From outside that is the
 * same, except for a holder that is seen dead while the lock is kept for its delay.
 *
 * Memory grows with the number of locks and tickets. A lock that is free is remembered for
 * MRT_WATCH_IDLE, the latest MRT_WATCH_IDLE_MAX of them; but the first `own_max` locks for ever,
 * so that they may have series of their own in metrics.
 * Threads: none of its own, and no mutex.
 */
#ifndef MRT_CLI_OBSERVE_WATCH_H
#define MRT_CLI_OBSERVE_WATCH_H

#include "base/time.h"
#include "cli/observe/rows.h"

#include <sys/queue.h>

/* Memory that runs out makes an insertion fail, not the process. */
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element) ((element)->lost = true)
#include <uthash.h>

#define MRT_WATCH_IDLE (900 * MRT_SECOND)
#define MRT_WATCH_IDLE_MAX 1000
#define MRT_WATCH_BOUNDS 13
#define MRT_WATCH_PAST 5 /* how many of a lock's previous holders are remembered */

/* Upper bounds of the buckets, in milliseconds; what is longer is in one more. The short ones lie
   between what looks a second apart, or a tenth or half of one, can tell. */
extern const uint32_t mrt_watch_bounds_ms[MRT_WATCH_BOUNDS];

struct mrt_watch_histogram {
    uint64_t buckets[MRT_WATCH_BOUNDS + 1];
    uint64_t total;
    mrt_time sum;
};

struct mrt_watch_counts {
    uint64_t grants;    /* tickets that held and had not at the look before */
    uint64_t contended; /* of these, tickets that had been seen to wait */
    uint64_t changes;   /* another ticket was first of the queue than when that was last seen */
    uint64_t deaths;    /* holders that had died while they held, of locks with a delay */
    uint64_t gone; /* waiters that were gone at the next look, without having been seen to hold */
    struct mrt_watch_histogram waits, holds;
};

/* DEAD: its holder has died, and the lock is kept for its delay. */
enum mrt_watch_phase { MRT_WATCH_WAITS, MRT_WATCH_HOLDS, MRT_WATCH_DEAD };

struct mrt_watch_ticket {
    uint64_t id, fence;
    mrt_time since; /* when it was first seen as it is now */
    enum mrt_watch_phase phase;
    bool since_known; /* false: it was so at the first look */
    bool lost;        /* no memory to find it again */
    uint64_t look;    /* the last that saw it */
    char *owner;      /* NULL: no memory */
    UT_hash_handle hh;
};

/* A ticket that held and is gone. */
struct mrt_watch_past {
    uint64_t fence;
    char *owner;
    mrt_time held, ended; /* how long it was seen to hold, at least; when it was first missed */
};

struct mrt_watch_lock {
    char *name;
    struct mrt_watch_counts counts;
    struct mrt_watch_ticket *tickets;
    size_t first;      /* the first row of its queue in the newest look that saw it */
    uint64_t first_id; /* of the newest ticket that was seen first */
    uint32_t holders, waiters;
    uint64_t used;            /* what the holders have of its capacity */
    int64_t waiting_since_ms; /* of the longest wait known, by the store; 0: there is none */
    mrt_time watched_since;
    struct mrt_watch_past past[MRT_WATCH_PAST]; /* number n is in place n % PAST */
    uint64_t past_count;
    uint64_t look;
    bool own, lost, idle;
    mrt_time idle_since;
    TAILQ_ENTRY(mrt_watch_lock) idle_link;
    UT_hash_handle hh;
};

TAILQ_HEAD(mrt_watch_lock_list, mrt_watch_lock);

struct mrt_watch {
    struct mrt_watch_lock *locks; /* locks with tickets, and remembered locks */
    struct mrt_watch_lock_list idle;
    size_t idle_count, own_count, own_max;
    struct mrt_watch_counts totals;
    uint32_t held, holders, waiters; /* locks that somebody holds; of all locks */
    uint64_t look;
};

void mrt_watch_init(struct mrt_watch *watch, size_t own_max);
void mrt_watch_fini(struct mrt_watch *watch);
/* Takes in the rows of a look; false: no memory, and some of them are not counted. */
bool mrt_watch_look(struct mrt_watch *watch, const struct mrt_rows *rows, mrt_time now);
/* NULL: nothing is known of it. */
struct mrt_watch_lock *mrt_watch_find(const struct mrt_watch *watch, const char *name);
/* The same; `lock` may be NULL. */
struct mrt_watch_ticket *mrt_watch_ticket(const struct mrt_watch_lock *lock, uint64_t id);
/* The previous holder that is `back` before the newest, which is 0; NULL: none is remembered, or
   `lock` is NULL. */
const struct mrt_watch_past *mrt_watch_past(const struct mrt_watch_lock *lock, uint64_t back);

#endif
