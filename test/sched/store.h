/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store of a run: the memory store, behind the port, with habits that real ones have.
 *
 *   inside:NAME?lease=   answers inside submit, as the embedded store does
 *   later:NAME?lease=    answers come some time later, and are read from a descriptor
 *
 * A call takes time, in which its thread stands still. Now and then the store is busy, and takes
 * no command until that is over or the caller's patience is; or a call is stuck for seconds, as in
 * a system call that does not return. The port's rule is checked that no two calls are made at the
 * same time, nor one from inside deliver.
 */
#ifndef SCHED_STORE_H
#define SCHED_STORE_H

#include "schedule.h"

struct habits {
    mrt_time latency;     /* of a call, and of an answer that comes later, at most */
    int64_t busy_chance;  /* of 10,000 commands */
    mrt_time busy;        /* at most so long */
    int64_t stuck_chance; /* of 10,000 calls */
    mrt_time stuck;       /* at most so long */
};

void store_begin(uint64_t seed);
/* Of all stores from now on. */
void store_set_habits(const struct habits *habits);
/* When the newest trouble ends, or has ended: a busy or a stuck store. */
mrt_time store_trouble(void);
/* How much time a thread has spent in calls that were stuck. */
mrt_time store_stuck(int thread);
/* When the next answer comes that is under way. */
mrt_time store_next(void);

#endif
