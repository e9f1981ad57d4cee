/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that the tests of locks that several may hold share, over core_fixture.h. */
#ifndef TEST_CORE_SHARED_FIXTURE_H
#define TEST_CORE_SHARED_FIXTURE_H

#include "core_fixture.h"

static inline void open_read_write(struct core *core)
{
    core_open_recipe(core, &mrt_read_write);
}

static inline void open_semaphore(struct core *core, uint64_t permits)
{
    const struct mrt_recipe recipe = mrt_semaphore(permits);
    core_open_recipe(core, &recipe);
}

static inline struct mrt_waiter writing(uint64_t owner)
{
    return core_asking(owner, MRT_WRITER);
}

static inline struct mrt_waiter reading(uint64_t owner)
{
    return core_asking(owner, MRT_READER);
}

static inline void release(struct core *core, struct mrt_waiter *waiter)
{
    assert_int_equal(core_release(core, waiter->hold, waiter->owner), MORTISE_OK);
}

static inline bool holds(const struct mrt_waiter *waiter)
{
    return waiter->state == MRT_WAITER_DONE && waiter->error == MORTISE_OK && waiter->hold &&
           waiter->hold->ticket;
}

#endif
