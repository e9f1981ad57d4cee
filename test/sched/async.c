/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous acquires, and what a callback may do: give back, free the handle it was acquired by,
 * cancel another operation, begin the next one, call what blocks (which is refused there).
 */
#include "check.h"

#include "core/recipe.h"

#include <stdlib.h>

#define CALLBACK_BOUND (30 * MRT_MILLISECOND) /* the loop has patience with a busy store */

enum deed { RELEASES, RELEASES_AND_FREES, HANDS_OVER, AGAIN, BLOCKS, DEEDS };

struct asked {
    struct actor *actor;
    int lock;
    mortise_lock *handle;
    bool own; /* the handle is this operation's alone */
    uint64_t weight, floor;
    enum deed deed;
    int more;   /* AGAIN: so often */
    bool begun; /* the callback has */
    bool done;
    int error;
    mortise_hold hold;
    mortise_operation *operation;
    struct asked *cancels; /* another one of the same client; NULL: none */
    mrt_time deadline;
    mrt_time paused; /* when it began */
};

static void granted(void *argument, int error, mortise_hold hold);

static void start(struct asked *asked, mrt_time deadline)
{
    asked->deadline = deadline;
    asked->begun = asked->done = false;
    asked->operation = NULL;
    asked->paused = sched_paused();
    asked->floor = check_floor(asked->lock);
    check_waits(asked->lock, 1);
    int error = mortise_acquire_async(asked->handle, deadline, granted, asked, &asked->operation);
    if (error != MORTISE_OK)
        sched_fail("an asynchronous acquire ended with %s", mortise_error_name(error));
}

/* A call of the store that is stuck keeps the loop, which calls back. */
static void check_in_time(const struct asked *asked)
{
    mrt_time limit = asked->deadline > store_trouble() ? asked->deadline : store_trouble();
    limit = mrt_time_add(limit, CALLBACK_BOUND + 10 * world.latency);
    limit = mrt_time_add(limit, sched_paused() - asked->paused);
    if (sched_now() > limit)
        sched_fail("a callback is late by %.3f ms", (double)(sched_now() - asked->deadline) / 1e6);
}

static void check_failure(const struct asked *asked, int error)
{
    check_in_time(asked);
    bool timed = (error == MORTISE_ETIMEOUT || error == MORTISE_EDISCONNECTED) &&
                 sched_now() >= asked->deadline;
    if (!timed && error != MORTISE_ECANCELLED)
        sched_fail("an asynchronous acquire ended with %s", mortise_error_name(error));
}

static void give_back(const struct asked *asked, struct grip *grip, mortise_hold hold)
{
    mrt_time since = check_since(grip);
    check_giving_back(grip);
    check_given_back(asked->lock, since, mortise_release(hold));
}

static void refuse(const struct asked *asked)
{
    mortise_hold hold;
    int error = mortise_try_acquire(asked->handle, &hold);
    if (error != MORTISE_EDEADLOCK)
        sched_fail("what blocks answers %s in a callback", mortise_error_name(error));
}

/* No call uses the handle any more: its callback has begun, and it has one. */
static void free_handle(struct asked *asked)
{
    int error = mortise_lock_free(asked->handle);
    if (error != MORTISE_OK)
        sched_fail("a handle that no call uses is not freed: %s", mortise_error_name(error));
    asked->own = false;
}

static void granted(void *argument, int error, mortise_hold hold)
{
    struct asked *asked = argument;
    sched_note("is called back with %s", mortise_error_name(error));
    if (asked->begun)
        sched_fail("a callback is called twice");
    asked->begun = true;
    check_waits(asked->lock, -1);
    if (asked->cancels && !asked->cancels->begun && asked->cancels->operation)
        mortise_cancel(asked->cancels->operation);
    if (error != MORTISE_OK)
        check_failure(asked, error);
    else if (asked->deed == HANDS_OVER)
        check_granted(asked->lock, hold, asked->weight, asked->floor);
    else
        give_back(asked, check_granted(asked->lock, hold, asked->weight, asked->floor), hold);
    if (asked->deed == BLOCKS)
        refuse(asked);
    if (asked->deed == AGAIN && asked->more-- > 0) {
        start(asked, asked->deadline);
        return;
    }
    if (asked->own && asked->deed == RELEASES_AND_FREES) {
        free_handle(asked);
    }
    asked->error = error;
    asked->hold = hold;
    asked->done = true;
}

static void queued(void *argument, uint64_t ahead)
{
    (void)argument;
    sched_note("has %llu ahead", (unsigned long long)ahead);
}

/* A handle of its own, of the kind that the lock is; NULL: of one that has two sides, or owners. */
static mortise_lock *own_handle(struct actor *actor, int lock)
{
    mortise_client *client = actor->client->handle;
    const struct lock *of = &world.locks[lock];
    mortise_lock_options options = {.size = sizeof options};
    mortise_lock *handle = NULL;
    int error = MORTISE_ENOTSUPPORTED;
    if (random_below(&actor->random, 3) == 0)
        options.queued = queued;
    if (of->kind == MUTEX && random_below(&actor->random, 3) == 0)
        options.linger_ms = 1 + random_below(&actor->random, 20);
    if (of->kind == MUTEX)
        error = mortise_mutex_new(client, of->name, &options, &handle);
    else if (of->kind == SEMAPHORE)
        error = mortise_semaphore_new(client, of->name, (uint32_t)of->capacity, &options, &handle);
    else if (of->kind == EXCLUSIVE)
        error = mortise_exclusive_new(client, of->name, &options, &handle);
    if (error != MORTISE_OK && error != MORTISE_ENOTSUPPORTED)
        sched_fail("a handle ended with %s", mortise_error_name(error));
    return handle;
}

static void draw(struct actor *actor, struct asked *asked)
{
    int lock = (int)random_below(&actor->random, world.lock_count);
    *asked = (struct asked){.actor = actor, .lock = lock, .weight = 1};
    asked->handle = own_handle(actor, lock);
    asked->own = asked->handle != NULL;
    if (!asked->own)
        asked->handle = actor_draw_handle(actor, lock, &asked->weight);
    asked->deed = (enum deed)random_below(&actor->random, DEEDS);
    asked->more = 2;
}

static bool are_done(const void *subject)
{
    const struct asked *both = subject;
    return both[0].done && both[1].done;
}

static void finish(struct asked *asked)
{
    if (asked->error == MORTISE_OK && asked->deed == HANDS_OVER) {
        actor_rest(asked->actor, actor_draw_time(asked->actor, 3));
        struct grip *grip = check_grip(asked->hold);
        give_back(asked, grip, asked->hold);
    }
    if (asked->own)
        free_handle(asked);
}

/* Two at a time, one of which may cancel the other: callbacks are called one after the other. */
void async_act(struct actor *actor)
{
    struct asked both[2];
    int count = 1 + (int)random_below(&actor->random, 2);
    draw(actor, &both[0]);
    draw(actor, &both[1]);
    both[1].done = count == 1;
    both[1].begun = count == 1;
    both[1].error = MORTISE_ECANCELLED;
    both[0].deed = both[0].deed == HANDS_OVER && count == 2 ? RELEASES : both[0].deed;
    both[1].deed = both[1].deed == HANDS_OVER ? RELEASES : both[1].deed;
    if (count == 2 && random_below(&actor->random, 2) == 0)
        both[0].cancels = &both[1];
    for (int i = 0; i < count; i++) {
        mrt_time most = actor_draw_time(actor, 20);
        sched_note("acquires %s by a callback", world.locks[both[i].lock].name);
        start(&both[i], most ? sched_now() + most : MRT_TIME_NEVER);
    }
    actor_await(actor, "a callback", are_done, both);
    finish(&both[0]);
    finish(&both[1]);
}
