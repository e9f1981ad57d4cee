/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A wait that may have no end: for a lock that a script holds by `mortise acquire`, and the script
 * waits for us; or an outer run does, and we are `mortise acquire` and cannot run under it.
 *
 * acquire can set no variable in its script, but its keeper is on this machine, and tells the
 * descendants of its script what it holds, in the form of MORTISE_HELD. That counts if the store
 * confirms it. It is asked for only when we have waited for a moment, so that a run that need not
 * wait pays nothing. Anybody on this machine may listen as a keeper does, so all of them together
 * are given CURIOSITY at most, and none that is another user's is called.
 */
#include "cli/keeper/keeper.h"
#include "cli/run/held.h"

#include <stdlib.h>

#define CURIOSITY (500 * MRT_MILLISECOND)

struct search {
    mrt_time until;
    struct mrt_run *run;
    struct mrt_run_lock *lock;
};

static bool is_held_in(const struct search *search, const char *list)
{
    uint64_t fence = search->lock->fence;
    bool is_held = mrt_run_find_cover(search->run, search->lock, list) != MRT_COVER_NONE;
    search->lock->fence = fence;
    return is_held;
}

static bool ask_keeper(void *argument, const char *id)
{
    const struct search *search = argument;
    struct mrt_keeper_reply reply;
    int64_t left_ms = mrt_time_left_ms(search->until, mrt_time_now());
    return left_ms > 0 && mrt_keeper_hear(id, search->run->asker, left_ms, &reply) &&
           is_held_in(search, reply.text);
}

bool mrt_run_is_held_above(struct mrt_run *run, struct mrt_run_lock *lock)
{
    struct search search = {mrt_time_add(mrt_time_now(), CURIOSITY), run, lock};
    /* Permits may come from another holder. */
    if (run->mode == MRT_RUN_PERMITS || run->mode == MRT_RUN_LEADER)
        return false;
    return is_held_in(&search, secure_getenv("MORTISE_HELD")) ||
           mrt_keeper_each(ask_keeper, &search);
}
