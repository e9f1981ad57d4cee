/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that acquires several locks at once: api/multi.c as it ships, on a stack of its own.
 *
 * multi_library.c has the calls of the library that it makes: a wait lets the world go on until the
 * engine has settled it, or its time is up. Every effect on the world is made on the world's own
 * stack (multi_on_world), so that a failure can leave from there, and a client may die meanwhile.
 * The work of a dead client's thread is brought to its end without any effect, because it has
 * memory of its own to free.
 *
 * A lock is its thread's from the moment in which the engine grants it, as any other, so all
 * invariants hold for it. And besides: who waits holds nothing behind what he waits for; who got
 * all has each of them once; who did not has none.
 *
 * Threads: none. One call runs at a time, and the others stand still in a wait.
 */
#include "multi.h"

#include <string.h>

#define STACK_SIZE 65536

/* Not in the world, which is cleared for each seed. */
static struct multi multis[CLIENTS_MAX][ACTORS_MAX];
static char stacks[CLIENTS_MAX][ACTORS_MAX][STACK_SIZE];
struct multi *multi_running;

static struct multi *multi_of(const struct actor *actor)
{
    return &multis[actor->client->index][actor->index];
}

const struct client *multi_client(void)
{
    return multi_running ? multi_running->actor->client : NULL;
}

/* ------------------------------------------------------------- the two stacks */

static void finished(struct multi *multi);

/* Goes on with a call until it waits or has ended. */
static void resume(struct multi *multi)
{
    struct multi *before = multi_running;
    for (;;) {
        multi_running = multi;
        fiber_enter(&multi->fiber);
        multi_running = before;
        if (!multi->asked)
            break;
        void (*asked)(struct multi *, void *) = multi->asked;
        multi->asked = NULL;
        asked(multi, multi->argument);
        if (!multi->runs)
            return; /* its client has died of that */
    }
    if (!multi->runs && !multi->dead)
        finished(multi);
}

void multi_leave_to_world(void)
{
    fiber_leave(&multi_running->fiber);
}

/* Has something done by the world, unless the client is dead. */
void multi_on_world(void (*asked)(struct multi *multi, void *argument), void *argument)
{
    struct multi *multi = multi_running;
    if (multi->dead)
        return;
    multi->asked = asked;
    multi->argument = argument;
    multi_leave_to_world();
}

static void body(void)
{
    struct multi *multi = multi_running;
    mortise_lock *locks[GRIPS_MAX];
    for (size_t i = 0; i < multi->count; i++)
        locks[i] = &multi->locks[i];
    multi->result = mortise_acquire_all(locks, multi->count, multi->timeout_ms, multi->holds);
    multi->runs = false;
    fiber_leave(&multi->fiber);
}

static void start(struct multi *multi)
{
    const struct actor *actor = multi->actor;
    fiber_make(&multi->fiber, stacks[actor->client->index][actor->index], STACK_SIZE, body);
    multi->runs = true;
    resume(multi);
}

/* ------------------------------------------------------------- what has ended */

void multi_note(struct multi *multi, int kind, const char *what, int queue, int64_t a, int64_t b)
{
    const struct actor *actor = multi->actor;
    trace_note(actor->client->world, kind, actor->client->index, queue, what, actor->index, a, b);
}

/* Whether its thread has the lock already, and may acquire it again. */
static bool is_own(const struct actor *actor, int queue, uint64_t owner)
{
    for (int g = 0; g < GRIPS_MAX; g++)
        if (owner != 0 && actor->grips[g].hold && actor->grips[g].queue == queue &&
            actor->grips[g].owner == owner)
            return true;
    return false;
}

static void check_part(struct multi *multi, const struct mrt_waiter *waiter, int error)
{
    struct actor *actor = multi->actor;
    bool timed = error == MORTISE_ETIMEOUT || error == MORTISE_EDISCONNECTED;
    bool allowed = (error == MORTISE_EBUSY && waiter->try_only) ||
                   (error == MORTISE_ECANCELLED && multi->cancelled) ||
                   (error == MORTISE_ELOST && actor->nested) ||
                   (timed && (waiter->try_only || client_now(actor->client) >= multi->deadline));
    if (!allowed && !actor_may_fail(actor, error, waiter->try_only))
        check_fail(actor->client->world, actor->client->index, actor->queue,
                   "an acquire of several ended with %s", mortise_error_name(error));
}

static void note_end(struct multi *multi, size_t number)
{
    struct part *part = &multi->parts[number];
    struct actor *actor = multi->actor;
    const struct mrt_waiter *waiter = &part->wait->waiter;
    int error = waiter->error;
    part->noted = true;
    actor->queue = multi->queues[number];
    actor->order = part->order;
    actor->nested = is_own(actor, actor->queue, waiter->owner);
    actor->refused = false;
    multi_note(multi, TRACE_DONE, mortise_error_name(error), actor->queue, error,
               waiter->hold ? (int64_t)waiter->hold->fence : 0);
    multi->errors |= UINT64_C(1) << -error;
    if (error == MORTISE_OK)
        actor_granted(actor->client->world, actor, waiter);
    else
        check_part(multi, waiter, error);
}

/* Results that the engine has immediately, and does not report. */
void multi_note_ends(struct multi *multi)
{
    for (size_t i = 0; i < multi->count; i++) {
        const struct part *part = &multi->parts[i];
        if (part->wait && !part->noted && part->wait->waiter.state == MRT_WAITER_DONE &&
            !part->wait->waiter.settled)
            note_end(multi, i);
    }
}

static bool find_part(struct client *client, const struct mrt_waiter *waiter, struct multi **multi,
                      size_t *number)
{
    for (int a = 0; a < client->world->drawn.actors; a++) {
        *multi = &multis[client->index][a];
        for (*number = 0; (*multi)->runs && *number < (*multi)->count; ++*number) {
            const struct part *part = &(*multi)->parts[*number];
            if (part->wait && &part->wait->waiter == waiter)
                return true;
        }
    }
    return false;
}

bool multi_settled(struct world *world, struct client *client, struct mrt_waiter *waiter)
{
    struct multi *multi;
    size_t number;
    if (!find_part(client, waiter, &multi, &number))
        return false;
    if (waiter->state == MRT_WAITER_DONE)
        note_end(multi, number);
    else
        multi_note(multi, TRACE_WOKEN, NULL, multi->queues[number], 0, 0);
    if (multi->waits_for == &multi->parts[number])
        actor_step_in(world, multi->actor, world->profile.reaction_us);
    return true;
}

/* All locks once, or none. After a close all are released, whatever was reported before. */
static void check_result(const struct multi *multi)
{
    const struct actor *actor = multi->actor;
    struct world *world = actor->client->world;
    bool got = multi->result == MORTISE_OK;
    uint32_t had = 0;
    if (actor->client->closing)
        return;
    for (int g = 0; g < GRIPS_MAX; g++)
        had += actor->grips[g].hold ? actor->grips[g].count : 0;
    if (!(multi->errors & UINT64_C(1) << -multi->result))
        check_fail(world, actor->client->index, actor->queue,
                   "an acquire of several ended with %s, and none of them did",
                   mortise_error_name(multi->result));
    if (had != (got ? multi->count : 0))
        check_fail(world, actor->client->index, actor->queue,
                   "%u locks are held after an acquire of %zu ended with %s", had, multi->count,
                   mortise_error_name(multi->result));
    for (size_t i = 0; got && i < multi->count; i++) {
        const struct mrt_hold *hold = multi->holds[i].slot;
        if (!mrt_hold_live(hold, multi->holds[i].generation) ||
            hold->queue != multi->locks[i].queue || hold->weight < multi->locks[i].weight)
            check_fail(world, actor->client->index, multi->queues[i],
                       "an acquire of several gave a hold that is not one");
    }
}

static void finished(struct multi *multi)
{
    struct actor *actor = multi->actor;
    struct world *world = actor->client->world;
    const struct profile *p = &world->profile;
    multi_note(multi, TRACE_DONE, "all", NO_QUEUE, multi->result, 0);
    check_result(multi);
    for (size_t i = 0; i < multi->count; i++)
        mrt_queue_put(multi->locks[i].queue);
    world_cancel(world, &actor->giveup);
    actor->state = ACTOR_IDLE;
    actor_step_in(world, actor, multi->result == MORTISE_OK ? p->hold_us : p->think_us);
    client_pump(world, actor->client);
}

/* ------------------------------------------------------------- the thread */

/* Both sides of a read/write lock, or twice the same, where a second acquire nests. */
static int times_of(struct world *world, const mortise_lock *lock)
{
    bool nests = !lock->unowned && mrt_queue_recipe(lock->queue)->reentrant;
    return nests && random_below(&world->several, 4) == 0 ? 2 : 1;
}

static void draw_lock(struct world *world, struct multi *multi, int queue, mortise_lock *lock)
{
    struct random *random = &world->several;
    int64_t kind = world->queues[queue].lock;
    *lock = (mortise_lock){.client = &multi->client, .owner = (uint64_t)multi->actor->index + 1};
    lock->weight = actor_draw_weight(world, random, kind);
    lock->unowned = kind == LOCK_SEMAPHORE || random_below(random, 8) == 0;
    if (world->profile.hold_max_us > 0 && random_below(random, 4) == 0)
        lock->hold_max = 1 + random_below(random, world->profile.hold_max_us * MRT_MICROSECOND);
    lock->queue = client_queue(world, multi->actor->client, queue);
}

static void add_lock(struct world *world, struct multi *multi, int queue)
{
    mortise_lock *lock = &multi->locks[multi->count];
    draw_lock(world, multi, queue, lock);
    multi->queues[multi->count++] = queue;
    if (multi->count == GRIPS_MAX || times_of(world, lock) == 1)
        return;
    mortise_lock *again = &multi->locks[multi->count];
    draw_lock(world, multi, queue, again);
    again->unowned = false;
    multi->queues[multi->count++] = queue;
}

static void shuffle(struct world *world, struct multi *multi)
{
    for (size_t i = multi->count; i > 1; i--) {
        size_t j = (size_t)random_below(&world->several, (int64_t)i);
        mortise_lock lock = multi->locks[i - 1];
        int queue = multi->queues[i - 1];
        multi->locks[i - 1] = multi->locks[j];
        multi->queues[i - 1] = multi->queues[j];
        multi->locks[j] = lock;
        multi->queues[j] = queue;
    }
}

/* At most until when, and whether somebody will cancel it before. */
static void draw_end(struct world *world, struct multi *multi)
{
    const struct profile *p = &world->profile;
    struct random *random = &world->several;
    struct actor *actor = multi->actor;
    multi->timeout_ms = -1;
    multi->deadline = MRT_TIME_NEVER;
    if (random_chance(random, p->try))
        multi->timeout_ms = 0;
    else if (random_chance(random, p->timed))
        multi->timeout_ms = 1 + random_below(random, p->wait_us / 1000 + 1);
    if (multi->timeout_ms > 0)
        multi->deadline = client_now(actor->client) + mrt_time_from_ms(multi->timeout_ms);
    if (random_chance(random, p->cancel))
        actor_plan_giving_up(world, actor, random_below(random, p->wait_us * MRT_MICROSECOND));
}

bool multi_begin(struct world *world, struct actor *actor)
{
    struct client *client = actor->client;
    if (!random_chance(&world->several, world->profile.several))
        return false;
    struct multi *multi = multi_of(actor);
    memset((void *)multi, 0, sizeof *multi);
    multi->actor = actor;
    multi->client.driver.engine = client->engine;
    multi->client.timeout = (world->drawn.wait_us + 1000) * MRT_MICROSECOND;
    for (int queue = 0; queue < world->drawn.queues && multi->count < GRIPS_MAX; queue++)
        if (world->queues[queue].lock != LOCK_ELECTION && random_below(&world->several, 4) > 0)
            add_lock(world, multi, queue);
    if (multi->count == 0)
        return false;
    shuffle(world, multi);
    world->operations++;
    actor->waiter = (struct mrt_waiter){.state = MRT_WAITER_DONE, .deadline = MRT_TIME_NEVER};
    actor->state = ACTOR_WAITING;
    draw_end(world, multi);
    multi_note(multi, TRACE_ACQUIRE, "several", NO_QUEUE, (int64_t)multi->count, multi->timeout_ms);
    start(multi);
    return true;
}

bool multi_step(struct actor *actor)
{
    struct multi *multi = multi_of(actor);
    if (!multi->runs)
        return false;
    resume(multi);
    return true;
}

/* As mortise_cancel_waiters does for each of the locks. */
bool multi_cancel(struct world *world, struct actor *actor)
{
    struct multi *multi = multi_of(actor);
    struct client *client = actor->client;
    if (!multi->runs)
        return false;
    world->operations++;
    multi->cancelled = true;
    for (size_t i = 0; i < multi->count; i++) {
        if (!multi->parts[i].wait)
            continue;
        multi_note(multi, TRACE_CANCEL, NULL, multi->queues[i], MORTISE_ECANCELLED, 0);
        mrt_engine_cancel(client->engine, &multi->parts[i].wait->waiter, MORTISE_ECANCELLED,
                          client_now(client));
    }
    client_pump(world, client);
    return true;
}

static bool is_waiting(const struct multi *multi, size_t number, int queue)
{
    const struct part *part = &multi->parts[number];
    return part->wait && multi->queues[number] == queue &&
           part->wait->waiter.state != MRT_WAITER_DONE;
}

bool multi_overtaken(const struct client *client, int queue, uint64_t order, mrt_time since)
{
    for (int a = 0; a < client->world->drawn.actors; a++) {
        const struct multi *multi = &multis[client->index][a];
        for (size_t i = 0; multi->runs && i < multi->count; i++)
            if (is_waiting(multi, i, queue) && multi->parts[i].order < order &&
                multi->parts[i].wait->waiter.since <= since)
                return true;
    }
    return false;
}

bool multi_tries(const struct client *client, int queue)
{
    for (int a = 0; a < client->world->drawn.actors; a++) {
        const struct multi *multi = &multis[client->index][a];
        for (size_t i = 0; multi->runs && i < multi->count; i++)
            if (is_waiting(multi, i, queue) && multi->parts[i].wait->waiter.try_only)
                return true;
    }
    return false;
}

bool multi_inside(const struct client *client)
{
    for (int a = 0; a < client->world->drawn.actors; a++)
        if (multis[client->index][a].runs && multis[client->index][a].client.driver.inside > 0)
            return true;
    return false;
}

void multi_check_closed(const struct client *client)
{
    for (int a = 0; a < client->world->drawn.actors; a++)
        if (multis[client->index][a].runs)
            check_fail(client->world, client->index, NO_QUEUE,
                       "a client is freed while a thread acquires several of its locks");
}

static void cancel_parts(struct multi *multi, struct client *client)
{
    multi->dead = true;
    multi->asked = NULL;
    for (size_t i = 0; i < multi->count; i++)
        if (multi->parts[i].wait)
            mrt_engine_cancel(client->engine, &multi->parts[i].wait->waiter, MORTISE_ECLOSED,
                              client_now(client));
}

void multi_died(struct client *client)
{
    const int count = (int)client->world->drawn.actors;
    struct multi *all = multis[client->index];
    for (int a = 0; a < count; a++)
        if (all[a].runs)
            cancel_parts(&all[a], client);
    while (mrt_engine_next_settled(client->engine))
        ; /* the call that waits there is about to be freed */
    for (int a = 0; a < count; a++)
        if (all[a].runs)
            resume(&all[a]);
}
