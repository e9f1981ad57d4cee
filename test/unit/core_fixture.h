/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine driven by hand: every command is fetched, every answer given and every
 * instant set by the test. Nothing runs by itself.
 *
 * Also an allocator that fails on demand, for the tests of lacking memory: the program
 * is linked with malloc and calloc wrapped.
 */
#ifndef TEST_CORE_FIXTURE_H
#define TEST_CORE_FIXTURE_H

#include "cmocka_all.h"

#include "core/engine_internal.h"
#include "core/recipe.h"

#include <string.h>

#define MS MRT_MILLISECOND

struct core {
    struct mrt_engine *engine;
    struct mrt_queue *queue; /* a handle on "q" */
    mrt_time now;
    mrt_time lease;         /* what STARTED tells */
    struct mrt_event shown; /* what VIEW tells but for the weight ahead */
    struct mrt_id appended; /* the newest ticket, and its fence; the next has a larger one */
    uint64_t appended_fence;
};

/* fair_after 1 ms, budget 2 ms and 4 grants, margin 10 ms. */
struct mrt_engine_config core_config(void);
/* At 1 s of the clock; no lease; views of fence 100, span 1000. NULL: the config above. */
void core_open(struct core *core, const struct mrt_engine_config *config);
/* The same; the handle is on "s", of this recipe. */
void core_open_recipe(struct core *core, const struct mrt_recipe *recipe);
void core_free(struct core *core);

/* A blocking acquire by `owner`; it does not compete, so it is handed the lock. */
struct mrt_waiter core_waiter(uint64_t owner);
/* The same for so much of the capacity. */
struct mrt_waiter core_asking(uint64_t owner, uint64_t weight);
void core_acquire(struct core *core, struct mrt_waiter *waiter);

/* The next command, which must be of this type. */
struct mrt_command *core_fetch(struct core *core, enum mrt_command_type type);
void core_no_command(struct core *core);
/* The next settled waiter, which must be this one. */
void core_settled(struct core *core, const struct mrt_waiter *waiter);
void core_none_settled(struct core *core);
/* It must be DONE, with this error, and in the settled list; taken out of it. */
void core_done(struct core *core, const struct mrt_waiter *waiter, int error);

void core_event(struct core *core, const struct mrt_event *event);
void core_answer(struct core *core, const struct mrt_command *command, enum mrt_event_type type);
void core_fail(struct core *core, const struct mrt_command *command, int error);
void core_view(struct core *core, const struct mrt_command *command, uint64_t weight_ahead);
/* Unasked, of the present session. */
void core_wake(struct core *core, struct mrt_id ticket);
/* The request of this number to give its ticket up. */
void core_revoke(struct core *core, struct mrt_id ticket, uint64_t number);
void core_session_lost(struct core *core);
/* Time passes, and due timers act. */
void core_pass(struct core *core, mrt_time duration);

/* START is asked for; answers it. */
void core_start(struct core *core);
/* Answers START if it is asked for, then APPEND: the waiter has the lock. */
void core_grant(struct core *core, struct mrt_waiter *waiter);
/* The waiter is queued in the store with a ticket ahead. */
void core_queue_behind(struct core *core, struct mrt_waiter *waiter);
/* Answers START; the waiter's ticket may be in the store, or not. */
void core_lose_append(struct core *core, struct mrt_waiter *waiter);
int core_release(struct core *core, struct mrt_hold *hold, uint64_t owner);
/* Answers everything under way, as a store in order would, until nothing is left. */
void core_settle_all(struct core *core);

/* The allocation after `successes` more fails, and all after it; -1: none does. */
void core_fail_allocations(int successes);

#endif
