/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread of a run, in the calls that block: it acquires a lock in one of the ways there
 * are, does something with the hold, and gives it back. A thread waits for one lock at a time, or
 * for several in one call, so no circle of waiting can close but by a fault.
 */
#include "check.h"

#include "core/recipe.h"
#include "system.h"

#include <string.h>

mrt_time actor_draw_time(struct actor *actor, int64_t most_ms)
{
    if (random_below(&actor->random, 3) == 0)
        return 0;
    return random_below(&actor->random, most_ms * MRT_MILLISECOND);
}

mortise_lock *actor_draw_handle(struct actor *actor, int lock, uint64_t *weight)
{
    bool writes = world.locks[lock].kind == READ_WRITE && random_below(&actor->random, 2) == 0;
    *weight = writes ? MRT_WRITER : 1;
    return actor->client->handles[lock][writes];
}

/* ------------------------------------------------------------------ time */

static bool never(const void *unused)
{
    (void)unused;
    return false;
}

/* A program's own loop: waits for the client's descriptor and has it process. */
static void run_loop(struct actor *actor, const char *what, bool (*ready)(const void *subject),
                     const void *subject, mrt_time until)
{
    mortise_client *client = actor->client->handle;
    while (!ready(subject) && sched_now() < until) {
        int timeout_ms = mortise_next_timeout_ms(client);
        mrt_time wake = until;
        if (timeout_ms >= 0)
            wake = mrt_time_min(until, sched_now() + timeout_ms * MRT_MILLISECOND);
        system_poll(what, mortise_fd(client), ready, subject, wake);
        mortise_process(client);
    }
}

void actor_rest(struct actor *actor, mrt_time length)
{
    if (length == 0)
        return;
    if (actor->client->foreign)
        run_loop(actor, "its time", never, NULL, sched_now() + length);
    else
        sched_sleep("its time", length);
}

void actor_await(struct actor *actor, const char *what, bool (*ready)(const void *subject),
                 const void *subject)
{
    if (actor->client->foreign)
        run_loop(actor, what, ready, subject, MRT_TIME_NEVER);
    else
        sched_wait(what, ready, subject, MRT_TIME_NEVER);
}

/* ------------------------------------------------------------------ holding */

static void told(void *argument, mortise_hold hold, mortise_state state)
{
    (void)argument;
    check_told(hold, state);
}

static void asked(void *argument, mortise_hold hold)
{
    (void)argument;
    (void)hold;
    sched_note("is asked to give up");
}

/* Where the program runs the client itself, nobody tells it while its thread is in the store. */
static void want_loss(struct actor *actor, struct grip *grip, mortise_hold hold)
{
    bool in_time = !actor->client->foreign;
    check_call(actor, "wants to hear of a loss", sched_now(), false);
    if (random_below(&actor->random, 2) == 0) {
        if (mortise_on_lost(hold, told, NULL) == MORTISE_OK && in_time)
            check_wants_loss(grip, -1);
    } else {
        int descriptor = mortise_lost_fd(hold);
        if (descriptor >= 0 && in_time)
            check_wants_loss(grip, descriptor);
    }
    check_returned(actor);
}

static void verify(struct actor *actor, struct grip *grip, mortise_hold hold)
{
    int64_t most_ms = 1 + random_below(&actor->random, 20);
    mrt_time since = sched_now();
    check_call(actor, "verifies", since + most_ms * MRT_MILLISECOND, false);
    int error = mortise_verify(hold, most_ms);
    check_returned(actor);
    bool late = error == MORTISE_ETIMEOUT && sched_now() >= since + most_ms * MRT_MILLISECOND;
    bool lost =
        error == MORTISE_ELOST && (check_is_broken(grip) || check_has_cause(check_since(grip)));
    if (error != MORTISE_OK && !late && !lost)
        sched_fail("a hold is verified with %s", mortise_error_name(error));
}

/* Uses a hold in a way that is drawn; now and then for longer than a lease. */
static void use(struct actor *actor, struct grip *grip, mortise_hold hold)
{
    bool long_one = false;
    switch (random_below(&actor->random, 8)) {
    case 0:
    case 1:
        want_loss(actor, grip, hold);
        long_one = world.lease > 0 && random_below(&actor->random, 3) == 0;
        break;
    case 2:
        verify(actor, grip, hold);
        break;
    case 3:
        mortise_on_revoke(hold, asked, NULL);
        break;
    default:
        break;
    }
    actor_rest(actor,
               long_one ? world.lease + actor_draw_time(actor, 1000) : actor_draw_time(actor, 3));
}

static void give_back(struct actor *actor, struct grip *grip, int lock, mortise_hold hold)
{
    mrt_time since = check_since(grip);
    check_giving_back(grip);
    check_call(actor, "releases", sched_now(), false);
    int error = mortise_release(hold);
    check_returned(actor);
    check_given_back(lock, since, error);
}

/* ------------------------------------------------------------------ acquiring */

/* Whether this error may be, given when the time was up; the rest are faults. */
static void check_error(const struct actor *actor, int lock, int error, mrt_time deadline,
                        mrt_time since, bool try_only)
{
    bool over = sched_now() >= deadline;
    bool timed = (error == MORTISE_ETIMEOUT || error == MORTISE_EDISCONNECTED) && over;
    bool allowed = timed || (error == MORTISE_EBUSY && try_only) || error == MORTISE_ECANCELLED ||
                   (error == MORTISE_ECLOSED && world.closing) ||
                   (error == MORTISE_ELOST && check_has_cause(since));
    if (!allowed)
        sched_fail("%s: an acquire of %s ended with %s", actor->name, world.locks[lock].name,
                   mortise_error_name(error));
}

/* Acquires in one of the ways there are; the error, which may be. */
static int acquire(struct actor *actor, int lock, mortise_lock *handle, mortise_hold *hold)
{
    struct random *random = &actor->random;
    mrt_time begun = sched_now(), deadline = MRT_TIME_NEVER;
    int64_t way = actor->last ? 0 : random_below(random, 8);
    int64_t most_ms = way < 2 ? -1 : way == 2 ? 0 : 1 + random_below(random, 20);
    if (most_ms > 0)
        deadline = begun + most_ms * MRT_MILLISECOND;
    else if (most_ms == 0)
        deadline = begun + actor->client->timeout_ms * MRT_MILLISECOND;
    check_waits(lock, 1);
    check_call(actor,
               most_ms < 0    ? "acquires"
               : most_ms == 0 ? "tries"
                              : "acquires for",
               deadline, false);
    int error = mortise_acquire_for(handle, most_ms, hold);
    check_waits(lock, -1);
    if (error == MORTISE_OK && !actor->client->handle)
        sched_fail("an acquire succeeds when its client is closed");
    check_returned(actor);
    if (error != MORTISE_OK)
        check_error(actor, lock, error, deadline, begun, most_ms == 0);
    return error;
}

static void nest(struct actor *actor, int lock, mortise_lock *handle, uint64_t weight)
{
    mortise_hold again;
    mrt_time begun = sched_now();
    uint64_t floor = check_floor(lock);
    check_call(actor, "acquires again", begun, false);
    int error = mortise_acquire(handle, &again);
    check_returned(actor);
    if (error == MORTISE_OK)
        give_back(actor, check_granted(lock, again, weight, floor), lock, again);
    else if (error != MORTISE_ELOST)
        sched_fail("a nested acquire ended with %s", mortise_error_name(error));
}

static void downgrade(struct actor *actor, struct grip *grip, mortise_hold hold)
{
    check_lightened(grip, MRT_READER);
    check_call(actor, "goes on reading", sched_now(), false);
    mortise_downgrade(hold);
    check_returned(actor);
}

static void act_on_one(struct actor *actor, int lock)
{
    uint64_t weight, floor = check_floor(lock);
    mortise_lock *handle = actor_draw_handle(actor, lock, &weight);
    mortise_hold hold;
    if (acquire(actor, lock, handle, &hold) != MORTISE_OK)
        return;
    enum lock_kind kind = world.locks[lock].kind;
    struct grip *grip = check_granted(lock, hold, weight, floor);
    if (!actor->in_a_rush)
        use(actor, grip, hold);
    bool nests = kind == MUTEX || kind == READ_WRITE || kind == EXCLUSIVE;
    if (nests && !actor->last && random_below(&actor->random, 4) == 0)
        nest(actor, lock, handle, weight);
    if (weight == MRT_WRITER && random_below(&actor->random, 3) == 0) {
        downgrade(actor, grip, hold);
        actor_rest(actor, actor_draw_time(actor, 3));
    }
    give_back(actor, grip, lock, hold);
}

/* A call that does not wait for a lock waits for the store as long as the client's time allows. */
static mrt_time limit_of_all(const struct actor *actor, mrt_time begun, int64_t most_ms)
{
    if (most_ms < 0)
        return MRT_TIME_NEVER;
    return begun + (most_ms > 0 ? most_ms : actor->client->timeout_ms) * MRT_MILLISECOND;
}

static void act_on_all(struct actor *actor)
{
    mortise_lock *handles[LOCKS_MAX];
    mortise_hold holds[LOCKS_MAX];
    struct grip *taken[LOCKS_MAX];
    uint64_t weights[LOCKS_MAX], floors[LOCKS_MAX];
    int64_t most_ms = random_below(&actor->random, 20) - 2;
    mrt_time begun = sched_now();
    size_t count = (size_t)world.lock_count;
    for (size_t i = 0; i < count; i++) {
        handles[i] = actor_draw_handle(actor, (int)i, &weights[i]);
        floors[i] = check_floor((int)i);
    }
    world.gathering++;
    check_call(actor, "acquires all", limit_of_all(actor, begun, most_ms), false);
    int error = mortise_acquire_all(handles, count, most_ms, holds);
    world.gathering--;
    check_returned(actor);
    if (error != MORTISE_OK) {
        int64_t shortest_ms = most_ms ? most_ms : actor->client->timeout_ms;
        check_error(actor, 0, error, begun + shortest_ms * MRT_MILLISECOND, begun, most_ms == 0);
        return;
    }
    for (size_t i = 0; i < count; i++)
        taken[i] = check_granted((int)i, holds[i], weights[i], floors[i]);
    actor_rest(actor, actor_draw_time(actor, 3));
    for (size_t i = 0; i < count; i++)
        give_back(actor, taken[i], (int)i, holds[i]);
}

/* ------------------------------------------------------------------ the thread */

static void cancel_others(struct actor *actor, int lock)
{
    uint64_t weight;
    mortise_lock *handle = actor_draw_handle(actor, lock, &weight);
    check_call(actor, "cancels who waits", sched_now(), false);
    mortise_cancel_waiters(handle);
    check_returned(actor);
}

static void act(struct actor *actor)
{
    int lock = (int)random_below(&actor->random, world.lock_count);
    int64_t what = actor->in_a_rush || actor->last ? 11 : random_below(&actor->random, 20);
    if (actor->in_a_rush)
        lock = actor->index % world.lock_count;
    if (actor->last)
        lock = 0;
    if (what == 0)
        act_on_all(actor);
    else if (what == 1)
        cancel_others(actor, lock);
    else if (what < 5)
        async_act(actor);
    else if (what < 7 && !actor->client->foreign) /* it would stand still meanwhile */
        operate_list(actor);
    else if (what < 9)
        operate_election(actor);
    else if (what == 9)
        operate_cell(actor);
    else
        act_on_one(actor, lock);
}

/* A thread that runs a client itself does so until nobody waits for work that it may have left
 * undone. */
static bool all_others_are_done(const void *subject)
{
    const struct actor *actor = subject;
    for (int i = 0; i < world.actor_count; i++)
        if (!world.actors[i].done && !world.actors[i].client->foreign && &world.actors[i] != actor)
            return false;
    return true;
}

void *actor_run(void *argument)
{
    struct actor *actor = argument;
    while (actor->steps-- > 0 && !world.closing) {
        act(actor);
        if (!actor->in_a_rush)
            actor_rest(actor, actor_draw_time(actor, 2));
    }
    actor->done = true;
    if (actor->client->foreign)
        actor_await(actor, "the others", all_others_are_done, actor);
    return NULL;
}
