/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of the library that api/multi.c calls in the simulator: as api/lock.c, api/hold.c
 * and io/driver.c have them, but the world goes on where they would sleep, and where their thread
 * might not run.
 *
 * All of this is called on a call's own stack; what reaches into the world is done on the world's.
 * The driver's functions are those of an agent's too, whose code gets the real ones.
 */
#include "multi.h"

#ifdef MRT_DEFECTS
#include "mutants.h"
#else
#define MRT_MUTANT(name) 0
#endif

const char *mortise_url(const mortise_client *client)
{
    (void)client;
    return "sim:";
}

const char *mortise_lock_name(const mortise_lock *lock)
{
    return mrt_queue_name(lock->queue);
}

uint64_t mrt_lock_owner(const mortise_lock *lock)
{
    return lock->unowned ? 0 : lock->owner;
}

int __real_mrt_driver_check(const struct mrt_driver *driver, bool blocking);
int __wrap_mrt_driver_check(const struct mrt_driver *driver, bool blocking);

int __wrap_mrt_driver_check(const struct mrt_driver *driver, bool blocking)
{
    if (!multi_running)
        return __real_mrt_driver_check(driver, blocking);
    (void)driver, (void)blocking;
    return MORTISE_OK;
}

int __real_mrt_driver_outcome(const struct mrt_driver *driver, const struct mrt_waiter *waiter);
int __wrap_mrt_driver_outcome(const struct mrt_driver *driver, const struct mrt_waiter *waiter);

int __wrap_mrt_driver_outcome(const struct mrt_driver *driver, const struct mrt_waiter *waiter)
{
    if (!multi_running)
        return __real_mrt_driver_outcome(driver, waiter);
    (void)driver;
    return waiter->error;
}

static void sleep_a_while(struct multi *multi, void *unused)
{
    struct world *world = multi->actor->client->world;
    (void)unused;
    actor_step_in(world, multi->actor, world->profile.reaction_us);
}

/* Between any two calls other threads may run; the first call marks the part that a close must wait
 * for. */
static void hesitate(void)
{
    struct multi *multi = multi_running;
    const struct world *world = multi->actor->client->world;
    if (multi->dead || !multi->inside || world->profile.reaction_us == 0 ||
        random_below(&multi->actor->client->world->several, 4) > 0)
        return;
    multi_on_world(sleep_a_while, NULL);
    multi_leave_to_world();
}

void __real_mrt_driver_enter(struct mrt_driver *driver);
void __wrap_mrt_driver_enter(struct mrt_driver *driver);

void __wrap_mrt_driver_enter(struct mrt_driver *driver)
{
    if (!multi_running) {
        __real_mrt_driver_enter(driver);
        return;
    }
    hesitate();
    driver->inside++;
}

void __real_mrt_driver_leave_quietly(struct mrt_driver *driver);
void __wrap_mrt_driver_leave_quietly(struct mrt_driver *driver);

void __wrap_mrt_driver_leave_quietly(struct mrt_driver *driver)
{
    if (!multi_running) {
        __real_mrt_driver_leave_quietly(driver);
        return;
    }
    driver->inside--;
}

void mrt_lock_pin(mortise_lock *lock)
{
    multi_running->inside = true;
    lock->client->driver.inside += !MRT_MUTANT(MULTI_OUTSIDE);
}

void mrt_lock_unpin(mortise_lock *lock)
{
    hesitate();
    lock->client->driver.inside -= !MRT_MUTANT(MULTI_OUTSIDE);
}

static void pump(struct multi *multi, void *unused)
{
    struct client *client = multi->actor->client;
    (void)unused;
    multi_note_ends(multi);
    client_pump(client->world, client);
}

void __real_mrt_driver_leave(struct mrt_driver *driver, mrt_time deadline);
void __wrap_mrt_driver_leave(struct mrt_driver *driver, mrt_time deadline);

void __wrap_mrt_driver_leave(struct mrt_driver *driver, mrt_time deadline)
{
    if (!multi_running) {
        __real_mrt_driver_leave(driver, deadline);
        return;
    }
    (void)deadline;
    multi_on_world(pump, NULL);
    driver->inside--;
}

static void begin_part(struct multi *multi, void *lock)
{
    size_t number = (size_t)((mortise_lock *)lock - multi->locks);
    struct part *part = &multi->parts[number];
    struct client *client = multi->actor->client;
    struct mrt_waiter *waiter = &part->wait->waiter;
    part->order = ++client->waiter_order;
    client->world->operations++;
    multi_note(multi, TRACE_ACQUIRE, waiter->try_only ? "one, try" : "one", multi->queues[number],
               (int64_t)waiter->owner, waiter->expect_free);
    mrt_engine_acquire(client->engine, multi->locks[number].queue, waiter, client_now(client));
}

void mrt_lock_begin(mortise_lock *lock, struct mrt_call *wait, uint64_t owner, bool try_only,
                    bool expect_free)
{
    struct multi *multi = multi_running;
    *wait = (struct mrt_call){.kind = MRT_CALL_BLOCKING,
                              .waiter = {.owner = owner,
                                         .weight = lock->weight,
                                         .hold_max = lock->hold_max,
                                         .deadline = MRT_TIME_NEVER,
                                         .try_only = try_only,
                                         .expect_free = expect_free,
                                         .competes = true}};
    if (multi->dead) {
        wait->waiter.state = MRT_WAITER_DONE;
        wait->waiter.error = MORTISE_ECLOSED;
        return;
    }
    multi->parts[lock - multi->locks] = (struct part){.wait = wait};
    multi_on_world(begin_part, lock);
}

/* Of locks in order: by name, and the heavier side first. */
static bool is_behind(const struct grip *grip, int queue, uint64_t weight)
{
    return grip->queue != queue ? grip->queue > queue : grip->weight < weight;
}

static void check_waiting(const struct multi *multi, const struct part *part)
{
    const struct actor *actor = multi->actor;
    int queue = multi->queues[part - multi->parts];
    for (int g = 0; g < GRIPS_MAX; g++)
        if (actor->grips[g].hold && is_behind(&actor->grips[g], queue, part->wait->waiter.weight))
            check_fail(actor->client->world, actor->client->index, queue,
                       "lock%d is held while what comes before it is waited for",
                       actor->grips[g].queue);
}

/* One step of mrt_driver_wait; `argument`: the deadline. It is on the world's stack. */
static void wait_step(struct multi *multi, void *argument)
{
    const struct part *part = multi->waits_for;
    const mrt_time *deadline = argument;
    struct client *client = multi->actor->client;
    struct mrt_waiter *waiter = &part->wait->waiter;
    mrt_time now = client_now(client);
    multi_note_ends(multi);
    if (waiter->state == MRT_WAITER_DONE)
        return;
    if (!waiter->try_only)
        check_waiting(multi, part);
    if (waiter->state == MRT_WAITER_WOKEN) {
        multi_note(multi, TRACE_RETRY, NULL, multi->queues[part - multi->parts], 0, 0);
        mrt_engine_retry(client->engine, waiter, now);
    } else if (now >= *deadline) {
        multi_note(multi, TRACE_CANCEL, NULL, multi->queues[part - multi->parts], 0, 0);
        mrt_engine_cancel(client->engine, waiter, MORTISE_ETIMEOUT, now);
    }
    pump(multi, NULL);
}

/* Lets the world go on until the waiter has settled, or its time is up. */
static void sleep_until(struct multi *multi, void *argument)
{
    const mrt_time *deadline = argument;
    struct actor *actor = multi->actor;
    if (multi->waits_for->wait->waiter.state != MRT_WAITER_WAITING || actor->step.timer.armed ||
        *deadline == MRT_TIME_NEVER)
        return;
    actor_step_at(actor->client->world, actor, client_true(actor->client, *deadline));
}

int mrt_lock_wait(mortise_lock *lock, struct mrt_call *wait, mrt_time deadline, mortise_hold *hold)
{
    struct multi *multi = multi_running;
    struct part *part = &multi->parts[lock - multi->locks];
    multi->waits_for = part;
    multi->client.driver.inside++;
    while (wait->waiter.state != MRT_WAITER_DONE) {
        multi_on_world(wait_step, &deadline);
        if (multi->dead || wait->waiter.state != MRT_WAITER_WAITING)
            continue;
        multi_on_world(sleep_until, &deadline);
        multi_leave_to_world();
    }
    multi->client.driver.inside--;
    multi_on_world(pump, NULL); /* nothing may look at it after its end */
    multi->waits_for = NULL;
    part->wait = NULL;
    if (wait->waiter.error == MORTISE_OK)
        *hold = (mortise_hold){wait->waiter.hold, wait->waiter.hold->generation};
    return wait->waiter.error;
}

static void release_one(struct multi *multi, void *argument)
{
    const mortise_hold *hold = argument;
    actor_release(multi->actor->client->world, multi->actor, hold->slot, hold->generation);
}

int mortise_release(mortise_hold hold)
{
    hesitate();
    multi_on_world(release_one, &hold);
    return MORTISE_OK;
}
