/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated thread of a client. It thinks, acquires one of the locks in one of the
 * ways there are, holds, nests, asks, errs, and releases; it may give up at any time.
 *
 * So that it can never wait for itself in a circle, it acquires only locks with a higher
 * number than those it holds, or nests in one that it has.
 */
#include "world.h"

#include <string.h>

#define OWNER(actor) ((uint64_t)(actor)->index + 1)

static void step(struct world *world, struct task *task);

void actor_step_at(struct world *world, struct actor *actor, mrt_time at)
{
    world_at(world, &actor->step, at, step);
}

void actor_step_in(struct world *world, struct actor *actor, int64_t limit_us)
{
    actor_step_at(world, actor, world->now + MRT_MICROSECOND + world_some(world, limit_us));
}

static void note(struct world *world, const struct actor *actor, int kind, const char *what,
                 int64_t a, int64_t b)
{
    trace_note(world, kind, actor->client->index, actor->queue, what, actor->index, a, b);
}

void actor_begin(struct world *world, struct actor *actor, int64_t operations)
{
    actor->operations = operations;
    if (actor->state == ACTOR_DONE) {
        actor->state = ACTOR_IDLE;
        actor_step_in(world, actor, world->profile.think_us);
    }
}

void actor_drop_grip(struct actor *actor, struct grip *grip)
{
    actor->client->grip_count -= grip->hold != NULL;
    memset(grip, 0, sizeof *grip);
}

void actor_forget(struct world *world, struct actor *actor)
{
    world_cancel(world, &actor->step);
    world_cancel(world, &actor->giveup);
    for (int i = 0; i < GRIPS_MAX; i++)
        actor_drop_grip(actor, &actor->grips[i]);
    memset(&actor->stale, 0, sizeof actor->stale);
    detach_forget(actor);
    actor->verifying = false;
    actor->state = ACTOR_DONE;
}

/* ------------------------------------------------------------- grips */

static int find_grip(const struct actor *actor, const struct mrt_hold *hold, uint64_t generation)
{
    for (int i = 0; i < GRIPS_MAX; i++)
        if (actor->grips[i].hold == hold && actor->grips[i].generation == generation)
            return i;
    return -1;
}

static int pick_grip(struct world *world, const struct actor *actor)
{
    int held[GRIPS_MAX], count = 0;
    for (int i = 0; i < GRIPS_MAX; i++)
        if (actor->grips[i].hold)
            held[count++] = i;
    return count ? held[random_below(&world->random, count)] : -1;
}

static int highest_queue(const struct actor *actor)
{
    int highest = -1;
    for (int i = 0; i < GRIPS_MAX; i++)
        if (actor->grips[i].hold && actor->grips[i].queue > highest)
            highest = actor->grips[i].queue;
    return highest;
}

/* The one of this weight if there are two. */
static int find_owned(const struct actor *actor, int queue, uint64_t owner, uint64_t weight)
{
    int found = -1;
    for (int i = 0; i < GRIPS_MAX; i++)
        if (actor->grips[i].hold && actor->grips[i].queue == queue &&
            actor->grips[i].owner == owner && (found < 0 || actor->grips[i].weight == weight))
            found = i;
    return found;
}

/* ------------------------------------------------------------- giving up */

static void give_up(struct world *world, struct task *task)
{
    struct actor *actor = (struct actor *)(void *)((char *)task - offsetof(struct actor, giveup));
    struct client *client = actor->client;
    if (client_paused(client)) {
        world_at(world, task, client->paused_until, give_up);
        return;
    }
    if (multi_cancel(world, actor) ||
        (actor->state != ACTOR_WAITING && actor->state != ACTOR_WOKEN))
        return;
    world->operations++;
    actor->giving_up = true;
    note(world, actor, TRACE_CANCEL, NULL, actor->giveup_error, 0);
    mrt_engine_cancel(client->engine, &actor->waiter, actor->giveup_error, client_now(client));
    if (actor->waiter.state != MRT_WAITER_DONE)
        check_fail(world, client->index, actor->queue, "not done after a cancel");
    client_pump(world, client);
    if (client->engine && actor->state == ACTOR_WAITING)
        check_fail(world, client->index, actor->queue, "a cancelled waiter was not settled");
}

void actor_plan_giving_up(struct world *world, struct actor *actor, mrt_time after)
{
    world_at(world, &actor->giveup, world->now + after, give_up);
}

/* A deadline kept by the engine, or by the caller; or a cancel. */
static void plan_giving_up(struct world *world, struct actor *actor, bool timed, bool cancelled)
{
    const struct profile *p = &world->profile;
    mrt_time after = world_some(world, p->wait_us);
    bool engine_keeps_time = random_below(&world->random, 2);
    actor->giving_up = false;
    actor->deadline = MRT_TIME_NEVER;
    if (timed && engine_keeps_time)
        actor->deadline = actor->waiter.deadline = client_now(actor->client) + after;
    if (!cancelled && (!timed || engine_keeps_time))
        return;
    actor->giveup_error = cancelled ? MORTISE_ECANCELLED : MORTISE_ETIMEOUT;
    actor_plan_giving_up(world, actor, after);
}

/* ------------------------------------------------------------- acquire */

void actor_granted(struct world *world, struct actor *actor, const struct mrt_waiter *waiter)
{
    struct client *client = actor->client;
    struct mrt_hold *hold = waiter->hold;
    int empty = find_grip(actor, NULL, 0);
    if (!hold || !mrt_hold_live(hold, hold->generation) ||
        strcmp(mrt_queue_name(hold->queue), world->queues[actor->queue].name) != 0)
        check_fail(world, client->index, actor->queue, "granted a hold that is not one");
    if (actor->nested && actor->refused)
        check_fail(world, client->index, actor->queue, "who may not acquire it again has");
    int old = find_grip(actor, hold, hold->generation);
    bool joined = actor->nested && old < 0;
    if (joined) {
        int first = find_owned(actor, actor->queue, OWNER(actor), 0);
        if (actor->grips[first].weight <= hold->weight || hold->fence != actor->grips[first].fence)
            check_fail(world, client->index, actor->queue, "joined a hold that is no heavier");
    } else if (actor->nested) {
        if (old < 0 || hold->count != ++actor->grips[old].count ||
            hold->fence != actor->grips[old].fence)
            check_fail(world, client->index, actor->queue, "a nested acquire gave another hold");
        client->nested++;
        return;
    }
    struct grip *grip = &actor->grips[empty];
    client->grip_count++;
    *grip = (struct grip){.hold = hold,
                          .generation = hold->generation,
                          .queue = actor->queue,
                          .owner = waiter->owner,
                          .weight = waiter->weight,
                          .count = 1,
                          .fence = hold->fence,
                          .told = MORTISE_HELD,
                          .value = actor->value,
                          .proclaimed_at = world->now};
    rounds_begin(world, &grip->proclaimed);
    if (waiter->hold_max > 0) /* of the step that has just granted it */
        grip->ends = client_now(client) + waiter->hold_max;
    if (joined) {
        const struct grip *first =
            &actor->grips[find_owned(actor, actor->queue, OWNER(actor), MRT_WRITER)];
        grip->broken = first->broken;
        grip->broken_at = first->broken_at;
        grip->told = hold->told;
        grip->revokes = first->revokes;
        grip->undue = first->undue;
        grip->ends = first->ends;
        client->nested++;
        return;
    }
    client->acquisitions++;
    check_granted(world, actor, grip);
}

bool actor_may_fail(const struct actor *actor, int error, bool try_only)
{
    const struct client *client = actor->client;
    const struct world *world = client->world;
    if (error == MORTISE_ECLOSED)
        return client->closing;
    if (error == MORTISE_EPERMISSION)
        return world->profile.refuse_for_good + world->drawn.lone > 0 ||
               world->phase != PHASE_CHAOS;
    if (error == MORTISE_EUNREACHABLE)
        return client->closing || try_only;
    if (error == MORTISE_ESETUP) /* what splits transactions cannot be used */
        return world->drawn.pg_split > 0;
    if (error == MORTISE_ESTALE) /* a standby that was behind has been promoted */
        return world->drawn.pg_lag_us > 0;
    if (error == MORTISE_ESTORE) /* too few replicas have it; nobody can be told */
        return world->drawn.pg_full > 0 ||
               (world->drawn.redis_copyless > 0 && (client->closing || try_only));
    return false;
}

/* An acquire that does not wait ends when the store says that no server can be reached. */
static bool is_turned_away(const struct actor *actor, int error)
{
    return error == MORTISE_EDISCONNECTED && actor->waiter.try_only &&
           actor->client->unreachable_at >= actor->waiter.since;
}

static void check_error(struct world *world, const struct actor *actor, int error)
{
    const struct client *client = actor->client;
    bool allowed = error == MORTISE_OK || actor_may_fail(actor, error, actor->waiter.try_only);
    if (error == MORTISE_EBUSY)
        allowed = actor->waiter.try_only || (actor->detached && actor->inherits);
    else if (error == MORTISE_ETIMEOUT || (error == MORTISE_EDISCONNECTED && !actor->verifying))
        allowed = (actor->giving_up && actor->giveup_error == MORTISE_ETIMEOUT) ||
                  actor->deadline <= client_now(client) || is_turned_away(actor, error);
    else if (error == MORTISE_ECANCELLED)
        allowed = actor->giving_up && actor->giveup_error == MORTISE_ECANCELLED;
    else if (error == MORTISE_ELOST)
        allowed = actor->nested || actor->verifying;
    else if (error == MORTISE_EDEADLOCK)
        allowed = actor->nested && actor->refused;
    else if (error == MORTISE_ENOTHELD)
        allowed = actor->verifying || actor->detached;
    else if (error == MORTISE_EUNKNOWN)
        allowed = actor->verifying && actor->detached;
    if (!allowed)
        check_fail(world, client->index, actor->queue, "an acquire or a verify ended with %s",
                   mortise_error_name(error));
}

static void ended(struct world *world, struct actor *actor)
{
    int error = actor->waiter.error;
    note(world, actor, TRACE_DONE, mortise_error_name(error), error,
         actor->waiter.hold ? (int64_t)actor->waiter.hold->fence : 0);
    world_cancel(world, &actor->giveup);
    check_error(world, actor, error);
    actor->state = ACTOR_IDLE;
    if (error == MORTISE_OK && !actor->verifying)
        actor_granted(world, actor, &actor->waiter);
    if (actor->detached)
        detach_settled(world, actor, error);
    actor->verifying = false;
    actor_step_in(world, actor,
                  error == MORTISE_OK ? world->profile.hold_us : world->profile.think_us);
}

void actor_settled(struct world *world, struct client *client, struct mrt_waiter *waiter)
{
    struct actor *actor = (struct actor *)(void *)((char *)waiter - offsetof(struct actor, waiter));
    if (actor->client != client || (actor->state != ACTOR_WAITING && actor->state != ACTOR_WOKEN))
        check_fail(world, client->index, NO_QUEUE, "a waiter settled that does not wait");
    if (waiter->state == MRT_WAITER_DONE) {
        ended(world, actor);
        return;
    }
    if (waiter->state != MRT_WAITER_WOKEN || !waiter->competes || actor->state == ACTOR_WOKEN)
        check_fail(world, client->index, actor->queue, "a waiter was woken out of order");
    note(world, actor, TRACE_WOKEN, NULL, 0, 0);
    actor->state = ACTOR_WOKEN;
    actor_step_in(world, actor, world->profile.reaction_us);
}

uint64_t actor_draw_weight(struct world *world, struct random *random, int64_t lock)
{
    if (lock == LOCK_READ_WRITE)
        return random_below(random, 2) ? MRT_READER : MRT_WRITER;
    if (lock == LOCK_SEMAPHORE)
        return (uint64_t)random_between(random, 1, world->drawn.capacity);
    return 1;
}

/* A holder of a semaphore mutex that acquires it again may ask to wait like anyone; in vain. */
static bool waits_for_itself(struct world *world, struct actor *actor)
{
    if (world->queues[actor->queue].lock != LOCK_SEMAPHORE_MUTEX ||
        find_owned(actor, actor->queue, OWNER(actor), 1) < 0 || world->phase != PHASE_CHAOS ||
        random_below(&world->random, 2))
        return false;
    actor->waiter.owner = 0;
    return true;
}

static void acquire(struct world *world, struct actor *actor, int queue)
{
    const struct profile *p = &world->profile;
    struct random *random = &world->random;
    struct client *client = actor->client;
    bool async = random_chance(random, p->async), nobody = random_below(random, 2);
    bool try_only = random_chance(random, p->try);
    int64_t lock = world->queues[queue].lock;
    actor->queue = queue;
    actor->waiter = (struct mrt_waiter){.owner = async && nobody ? 0 : OWNER(actor),
                                        .weight = actor_draw_weight(world, random, lock),
                                        .deadline = MRT_TIME_NEVER,
                                        .try_only = try_only,
                                        .expect_free = nobody,
                                        .competes = !async};
    uint64_t weight = actor->waiter.weight;
    if (p->hold_max_us > 0 && lock != LOCK_ELECTION && random_below(random, 2))
        actor->waiter.hold_max = 1 + world_some(world, p->hold_max_us);
    actor->waiter.wants_place = random_below(random, 2);
    if (find_owned(actor, queue, 0, 0) >= 0 || find_owned(actor, queue, OWNER(actor), 0) >= 0)
        actor->waiter.owner = OWNER(actor);
    if (lock == LOCK_SEMAPHORE || lock == LOCK_ELECTION)
        actor->waiter.owner = 0;
    if (lock == LOCK_ELECTION)
        election_candidate(world, actor);
    bool for_itself = waits_for_itself(world, actor);
    int own = for_itself ? -1 : find_owned(actor, queue, OWNER(actor), weight);
    actor->nested = own >= 0;
    actor->refused =
        own >= 0 && (actor->grips[own].weight < weight || !world->queues[queue].recipe.reentrant);
    actor->order = ++client->waiter_order;
    actor->state = ACTOR_WAITING;
    bool timed = random_chance(random, p->timed), cancelled = random_chance(random, p->cancel);
    timed |= for_itself;
    plan_giving_up(world, actor, timed, cancelled);
    world->operations++;
    note(world, actor, TRACE_ACQUIRE, actor->waiter.try_only ? "try" : "",
         (int64_t)actor->waiter.owner, actor->waiter.competes);
    struct mrt_queue *handle = client_queue(world, client, queue);
    actor->waiter.hold = mrt_engine_nest(handle, actor->waiter.owner);
    if (actor->waiter.hold)
        actor->waiter.state = MRT_WAITER_DONE;
    else
        mrt_engine_acquire(client->engine, handle, &actor->waiter, client_now(client));
    mrt_queue_put(handle);
    if (actor->waiter.state == MRT_WAITER_DONE && !actor->waiter.settled)
        ended(world, actor);
    client_pump(world, client);
}

/* Adopts a detached lock; false: there is none. */
static bool adopt(struct world *world, struct actor *actor)
{
    struct client *client = actor->client;
    actor->waiter = (struct mrt_waiter){.deadline = MRT_TIME_NEVER};
    actor->nested = actor->refused = false;
    if (!detach_adopt(world, actor))
        return false;
    if (world->queues[actor->queue].lock != LOCK_SEMAPHORE && random_below(&world->random, 2))
        actor->waiter.owner = OWNER(actor);
    actor->state = ACTOR_WAITING;
    bool timed = random_chance(&world->random, world->profile.timed);
    bool cancelled = random_chance(&world->random, world->profile.cancel);
    plan_giving_up(world, actor, timed, cancelled);
    world->operations++;
    note(world, actor, TRACE_ACQUIRE, "adopts", (int64_t)actor->waiter.last_fence, 0);
    struct mrt_queue *handle = client_queue(world, client, actor->queue);
    mrt_engine_adopt(client->engine, handle, &actor->waiter, client_now(client));
    mrt_queue_put(handle);
    if (actor->waiter.state == MRT_WAITER_DONE && !actor->waiter.settled)
        ended(world, actor);
    client_pump(world, client);
    return true;
}

static void retry(struct world *world, struct actor *actor)
{
    struct client *client = actor->client;
    world->operations++;
    note(world, actor, TRACE_RETRY, NULL, 0, 0);
    actor->state = ACTOR_WAITING;
    mrt_engine_retry(client->engine, &actor->waiter, client_now(client));
    if (actor->waiter.state == MRT_WAITER_DONE && !actor->waiter.settled)
        ended(world, actor);
    client_pump(world, client);
}

/* ------------------------------------------------------------- holds */

void actor_told(struct world *world, struct client *client, struct mrt_hold *hold)
{
    for (int i = 0; i < world->drawn.actors; i++) {
        struct actor *actor = &client->actors[i];
        int found = find_grip(actor, hold, hold->generation);
        if (found < 0)
            continue;
        struct grip *grip = &actor->grips[found];
        trace_note(world, TRACE_TOLD, client->index, grip->queue, NULL, actor->index, hold->told,
                   (int64_t)grip->fence);
        bool allowed = grip->told != MORTISE_LOST && hold->told != grip->told &&
                       hold->told != MORTISE_RELEASED;
        if (!allowed)
            check_fail(world, client->index, grip->queue, "a hold was told state %d after %d",
                       (int)hold->told, (int)grip->told);
        grip->told = hold->told;
        if (hold->told == MORTISE_LOST) {
            client->losses++;
            check_lost(world, client, grip);
        }
        return;
    }
    check_fail(world, client->index, NO_QUEUE, "a hold was told of that nobody has");
}

void actor_asked(struct world *world, struct client *client, struct mrt_hold *hold)
{
    for (int i = 0; i < world->drawn.actors; i++) {
        struct actor *actor = &client->actors[i];
        int found = find_grip(actor, hold, hold->generation);
        if (found < 0)
            continue;
        struct grip *grip = &actor->grips[found];
        trace_note(world, TRACE_TOLD, client->index, grip->queue, "asked", actor->index,
                   grip->revokes, (int64_t)grip->fence);
        if (!grip->listens || grip->told == MORTISE_LOST)
            check_fail(world, client->index, grip->queue, "a hold was asked that does not listen");
        check_asked(world, client, grip);
        return;
    }
    check_fail(world, client->index, NO_QUEUE, "a hold was asked for that nobody has");
}

static void begin_listening(struct world *world, struct actor *actor, struct grip *grip)
{
    struct client *client = actor->client;
    world->operations++;
    actor->queue = grip->queue;
    note(world, actor, TRACE_VERIFY, "listens", (int64_t)grip->fence, 0);
    grip->listens = true;
    if (grip->revokes > grip->undue)
        grip->unheard_since = world->now;
    mrt_engine_listen(grip->hold, true);
    client_pump(world, client);
}

static void check_result(struct world *world, const struct actor *actor, int expected, int result,
                         const char *what)
{
    if (result != expected)
        check_fail(world, actor->client->index, actor->queue, "%s answered %s instead of %s", what,
                   mortise_error_name(result), mortise_error_name(expected));
}

static void release(struct world *world, struct actor *actor, struct grip *grip)
{
    struct client *client = actor->client;
    mrt_time now = client_now(client);
    bool lost = mrt_hold_state(grip->hold, now) == MORTISE_LOST;
    uint64_t owner = random_below(&world->random, 4) ? grip->owner : 0;
    bool told = grip->told == MORTISE_LOST;
    struct grip before = *grip;
    world->operations++;
    actor->queue = grip->queue;
    if (--grip->count == 0) {
        actor->stale = before;
        check_released(world, before.queue, before.fence);
        actor_drop_grip(actor, grip);
    }
    note(world, actor, TRACE_RELEASE, before.count > 1 ? "inner" : "", (int64_t)before.fence, lost);
    if (mrt_hold_nested(before.hold, before.generation))
        now = 0; /* it promises not to look */
    int result = mrt_engine_release(client->engine, before.hold, before.generation, owner, now);
    if (!before.broken)
        check_result(world, actor, lost ? MORTISE_ELOST : MORTISE_OK, result, "a release");
    if (before.count == 1 && mrt_hold_live(before.hold, before.generation))
        check_fail(world, client->index, actor->queue, "a released hold is live");
    if (before.count == 1 && lost && !told)
        client->losses++;
    client_pump(world, client);
}

void actor_release(struct world *world, struct actor *actor, struct mrt_hold *hold,
                   uint64_t generation)
{
    int found = find_grip(actor, hold, generation);
    if (!actor->client->closing) {
        if (found < 0)
            check_fail(world, actor->client->index, NO_QUEUE, "what nobody has is released");
        release(world, actor, &actor->grips[found]);
        return;
    }
    if (found >= 0) /* the close has ended it */
        actor_drop_grip(actor, &actor->grips[found]);
    int error =
        mrt_engine_release(actor->client->engine, hold, generation, 0, client_now(actor->client));
    if (error != MORTISE_ENOTHELD && error != MORTISE_ELOST)
        check_result(world, actor, MORTISE_ENOTHELD, error, "a release after a close");
}

static void misuse(struct world *world, struct actor *actor)
{
    struct client *client = actor->client;
    mrt_time now = client_now(client);
    world->operations++;
    if (actor->stale.hold) {
        actor->queue = actor->stale.queue;
        note(world, actor, TRACE_RELEASE, "stale", (int64_t)actor->stale.fence, 0);
        check_result(world, actor, MORTISE_ENOTHELD,
                     mrt_engine_release(client->engine, actor->stale.hold, actor->stale.generation,
                                        actor->stale.owner, now),
                     "a stale release");
    }
    int held = pick_grip(world, actor);
    if (held >= 0 && actor->grips[held].owner != 0) {
        actor->queue = actor->grips[held].queue;
        note(world, actor, TRACE_RELEASE, "foreign", (int64_t)actor->grips[held].fence, 0);
        check_result(world, actor, MORTISE_ENOTOWNER,
                     mrt_engine_release(client->engine, actor->grips[held].hold,
                                        actor->grips[held].generation, OWNER(actor) + 1, now),
                     "a foreign release");
    }
    client_pump(world, client);
}

static void verify(struct world *world, struct actor *actor, struct grip *grip)
{
    struct client *client = actor->client;
    actor->waiter = (struct mrt_waiter){.deadline = MRT_TIME_NEVER};
    actor->queue = grip->queue;
    actor->verifying = true;
    actor->nested = false;
    actor->state = ACTOR_WAITING;
    plan_giving_up(world, actor, random_below(&world->random, 2), false);
    world->operations++;
    note(world, actor, TRACE_VERIFY, NULL, (int64_t)grip->fence, 0);
    mrt_engine_verify(client->engine, grip->hold, &actor->waiter, client_now(client));
    if (actor->waiter.state == MRT_WAITER_DONE && !actor->waiter.settled)
        ended(world, actor);
    client_pump(world, client);
}

/* Detaches a lock; false: it stays held. */
static bool detach(struct world *world, struct actor *actor, struct grip *grip)
{
    struct client *client = actor->client;
    uint64_t fence = grip->fence;
    actor->waiter = (struct mrt_waiter){.deadline = MRT_TIME_NEVER};
    actor->queue = grip->queue;
    plan_giving_up(world, actor, random_below(&world->random, 4) == 0, false);
    if (!detach_begin(world, actor, grip)) {
        world_cancel(world, &actor->giveup);
        return false;
    }
    world->operations++;
    actor->verifying = true;
    actor->nested = false;
    actor->state = ACTOR_WAITING;
    note(world, actor, TRACE_RELEASE, "detaches", (int64_t)fence, 0);
    client_pump(world, client);
    return true;
}

/* A writer goes on as a reader. */
static void downgrade(struct world *world, struct actor *actor, struct grip *grip)
{
    struct client *client = actor->client;
    mrt_time now = client_now(client);
    bool lost = mrt_hold_state(grip->hold, now) == MORTISE_LOST;
    world->operations++;
    actor->queue = grip->queue;
    note(world, actor, TRACE_RELEASE, "to a reader", (int64_t)grip->fence, lost);
    int result = mrt_engine_lighten(client->engine, grip->hold, grip->generation, grip->owner,
                                    MRT_READER, now);
    if (!grip->broken)
        check_result(world, actor, lost ? MORTISE_ELOST : MORTISE_OK, result, "a downgrade");
    if (result == MORTISE_OK)
        grip->weight = MRT_READER;
    client_pump(world, client);
}

/* ------------------------------------------------------------- what next */

/* With something in hand: nest, go further, ask, err or release. */
static void step_holding(struct world *world, struct actor *actor, int held)
{
    const struct profile *p = &world->profile;
    struct random *random = &world->random;
    struct grip *grip = &actor->grips[held];
    int next = highest_queue(actor) + 1 + (int)random_below(random, 2);
    if (world->queues[grip->queue].lock == LOCK_ELECTION && random_below(random, 3) == 0) {
        election_proclaim(world, actor, grip);
        actor_step_in(world, actor, p->hold_us);
    } else if (grip->weight == MRT_WRITER && random_below(random, 4) == 0) {
        downgrade(world, actor, grip);
        actor_step_in(world, actor, p->hold_us);
    } else if (random_chance(random, p->nest) && grip->owner == OWNER(actor) && grip->count < 4 &&
               find_grip(actor, NULL, 0) >= 0) {
        acquire(world, actor, grip->queue);
    } else if (random_chance(random, p->nest) && next < p->queues &&
               find_grip(actor, NULL, 0) >= 0) {
        acquire(world, actor, next);
    } else if (random_chance(random, p->detach) && detach(world, actor, grip)) {
        return;
    } else if (random_chance(random, p->verify)) {
        verify(world, actor, grip);
    } else if (!grip->listens && random_chance(random, p->listen)) {
        begin_listening(world, actor, grip);
        actor_step_in(world, actor, p->hold_us);
    } else {
        release(world, actor, grip);
        if (actor->state == ACTOR_IDLE)
            actor_step_in(world, actor, p->think_us);
    }
}

static void step_idle(struct world *world, struct actor *actor)
{
    const struct profile *p = &world->profile;
    if (random_chance(&world->random, p->misuse)) {
        actor_step_in(world, actor, p->think_us);
        misuse(world, actor);
        return;
    }
    int held = pick_grip(world, actor);
    if (held >= 0) {
        step_holding(world, actor, held);
    } else if (actor->operations > 0) {
        actor->operations--;
        if (random_chance(&world->random, world->drawn.detach) && adopt(world, actor))
            return;
        if (!multi_begin(world, actor))
            acquire(world, actor, (int)random_below(&world->random, p->queues));
    } else {
        actor->state = ACTOR_DONE;
    }
}

static void step(struct world *world, struct task *task)
{
    struct actor *actor = (struct actor *)task;
    struct client *client = actor->client;
    if (client_paused(client))
        world_at(world, task, client->paused_until, step);
    else if (multi_step(actor))
        return;
    else if (client->closing)
        actor->state = ACTOR_DONE;
    else if (actor->state == ACTOR_WOKEN)
        retry(world, actor);
    else if (actor->state == ACTOR_IDLE)
        step_idle(world, actor);
}
