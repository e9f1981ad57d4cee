/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of a run, true at every step:
 *
 *  - No more is held of a lock than there is of it: whoever has been told that he holds, and whose
 *    hold says so by the clock, counts, unless an operator has broken it.
 *  - Fences rise where one holds at a time: a grant's is larger than that of any hold that was
 * given back before the acquire began.
 *  - Each call returns by its deadline, or at once if it has none, and a bound; what its own thread
 *    spends in a call of the store that is stuck comes on top, and pauses.
 *  - Nobody waits for a lock that nobody holds, but for a bound after the newest trouble.
 *  - A loss is told within a bound of the end of the lease, whatever the store does; and nothing is
 *    lost without a cause.
 */
#ifndef SCHED_CHECK_H
#define SCHED_CHECK_H

#include "world.h"

struct grip; /* a hold that its owner knows of */

void check_begin(void);
/* Nothing is held, waited for or under way. */
void check_end(void);

/* Around each call of the library. `deadline`: when it has to have returned, but for the bound;
   MRT_TIME_NEVER: it may wait for ever. `on_store`: it waits for the store itself. */
void check_call(const struct actor *actor, const char *what, mrt_time deadline, bool on_store);
void check_returned(const struct actor *actor);

/* A thread begins to wait for a lock, or stops. */
void check_waits(int lock, int change);
/* The largest fence of what has been given back. */
uint64_t check_floor(int lock);

/* A grant, or one more count of a hold. `floor` is of before the acquire began. */
struct grip *check_granted(int lock, mortise_hold hold, uint64_t weight, uint64_t floor);
/* The grip that stands for a hold in these checks. */
struct grip *check_grip(mortise_hold hold);
/* It goes on with less. */
void check_lightened(struct grip *grip, uint64_t weight);
/* A count is about to be given back. The last one ends it. */
void check_giving_back(struct grip *grip);
/* Its release has returned this. */
void check_given_back(int lock, mrt_time since, int error);
/* Its loss is told, by a callback or a descriptor. */
void check_wants_loss(struct grip *grip, int descriptor);
void check_told(mortise_hold hold, mortise_state state);
/* An operator is about to break the ticket of this fence: its holder may be overtaken. */
void check_breaks(int lock, uint64_t fence);
bool check_is_broken(const struct grip *grip);
mrt_time check_since(const struct grip *grip);

/* Whether a loss, or a store that does not answer, has a cause since then. */
bool check_has_cause(mrt_time since);

#endif
