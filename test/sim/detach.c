/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks that are detached and adopted. A holder leaves its ticket to nobody; all threads, of all
 * clients, know of it, and one that has nothing to do may adopt it. An operator goes about and
 * breaks what nobody has adopted for a while, so everybody is served in the end.
 *
 * The invariant: a ticket that was surely detached is at the server, with its place and its weight,
 * until a client adopts it or the operator breaks it; no client hears that it is not there as long
 * as it must be; one adopter gets it, with a higher fence than it had before; and nothing is
 * nobody's that no thread knows of.
 */
#include "world.h"

#include <string.h>

#define HEIRS UINT64_C(0x6865697273) /* the engines' identities begin otherwise */

static struct mrt_id identity(const struct detached *detached)
{
    return (struct mrt_id){HEIRS, detached->number};
}

/* Tickets that are neither free nor over. */
static bool may_be_there(const struct detached *detached)
{
    return detached->state != DETACHED_NONE && detached->state != DETACHED_OVER;
}

/* Frees the place of a ticket that no client works on. */
static void end(struct detached *detached)
{
    detached->state = detached->wanted > 0 ? DETACHED_OVER : DETACHED_NONE;
}

/* The detached ticket at the server; 0: it is not there, or a session has it. */
static uint64_t find(struct world *world, const struct detached *detached)
{
    struct truth truth;
    server_truth(world, detached->queue, NULL, &truth);
    for (int i = 0; i < truth.nobodys_count; i++)
        if (detached->fence - truth.nobodys[i] < truth.span)
            return truth.nobodys[i];
    return 0;
}

/* ------------------------------------------------------------------ what a thread does */

static struct detached *free_place(struct world *world)
{
    for (int i = 0; i < DETACHED_MAX; i++)
        if (world->detached[i].state == DETACHED_NONE)
            return &world->detached[i];
    return NULL;
}

/* Claims and candidacies cannot be detached. */
static bool can_be_detached(const struct world *world, int queue)
{
    int64_t lock = world->queues[queue].lock;
    return lock != LOCK_ELECTION && lock != LOCK_EXCLUSIVE;
}

/* A ticket with two holds in it stays. */
static bool is_only_hold(const struct actor *actor, const struct grip *grip)
{
    int count = 0;
    for (int g = 0; g < GRIPS_MAX; g++)
        count += actor->grips[g].hold && actor->grips[g].queue == grip->queue;
    return count == 1 && grip->count == 1;
}

bool detach_begin(struct world *world, struct actor *actor, struct grip *grip)
{
    struct client *client = actor->client;
    struct detached *detached = free_place(world);
    if (!detached || !can_be_detached(world, grip->queue) || !is_only_hold(actor, grip) ||
        grip->told == MORTISE_LOST)
        return false;
    *detached = (struct detached){.state = DETACHED_ASKED,
                                  .number = ++world->detached_number,
                                  .queue = grip->queue,
                                  .weight = grip->weight,
                                  .fence = grip->fence,
                                  .since = world->now,
                                  .wanted = 1};
    actor->detached = detached;
    actor->inherits = false;
    int error = mrt_engine_detach(client->engine, grip->hold, grip->generation, grip->owner,
                                  identity(detached), &actor->waiter, client_now(client));
    if (error == MORTISE_ELOST) {
        *detached = (struct detached){.state = DETACHED_NONE};
        actor->detached = NULL;
        return false;
    }
    if (error != MORTISE_OK)
        check_fail(world, client->index, grip->queue, "detaching answered %s",
                   mortise_error_name(error));
    actor_drop_grip(actor, grip);
    return true;
}

/* A ticket that is detached, or may be. */
static struct detached *pick(struct world *world)
{
    struct detached *found[DETACHED_MAX];
    int count = 0;
    for (int i = 0; i < DETACHED_MAX; i++)
        if (may_be_there(&world->detached[i]) && world->detached[i].state != DETACHED_ASKED)
            found[count++] = &world->detached[i];
    return count > 0 ? found[random_below(&world->random, count)] : NULL;
}

bool detach_adopt(struct world *world, struct actor *actor)
{
    struct detached *detached = pick(world);
    if (!detached)
        return false;
    detached->wanted++;
    actor->detached = detached;
    actor->inherits = true;
    actor->queue = detached->queue;
    actor->waiter.adopts = identity(detached);
    actor->waiter.last_fence = detached->fence;
    actor->waiter.weight = detached->weight;
    return true;
}

/* ------------------------------------------------------------------ what became of it */

/* Its adopter has died: the outcome of its adoption is unknown. */
static void doubt(struct detached *detached)
{
    if (may_be_there(detached))
        detached->state = DETACHED_UNSURE;
}

static void told_detached(struct world *world, const struct actor *actor, struct detached *detached,
                          int error)
{
    if (detached->state != DETACHED_ASKED)
        return; /* it has been broken meanwhile */
    if (error == MORTISE_OK)
        detached->state = DETACHED_SURE;
    else if (error != MORTISE_ELOST && error != MORTISE_EPERMISSION)
        doubt(detached);
    detached->since = world->now;
    bool is_there = find(world, detached) != 0;
    if (error == MORTISE_OK && !is_there)
        check_fail(world, actor->client->index, detached->queue,
                   "what was detached is not at the server");
    if (error == MORTISE_EPERMISSION && is_there)
        check_fail(world, actor->client->index, detached->queue,
                   "what the store refused to detach is detached");
    if (error == MORTISE_ELOST || error == MORTISE_EPERMISSION)
        end(detached);
}

/* It was looked for in vain, or given up. */
static void told_otherwise(struct world *world, const struct actor *actor,
                           struct detached *detached, int error)
{
    bool alone = detached->state == DETACHED_SURE && detached->wanted == 0;
    if (error == MORTISE_ENOTHELD && alone && check_keeps_sessions(world, 0))
        check_fail(world, actor->client->index, detached->queue,
                   "what is nobody's cannot be adopted");
    if (!may_be_there(detached) || error == MORTISE_EBUSY)
        return;
    if (alone && error == actor->giveup_error && actor->giving_up)
        detached->state = DETACHED_GIVEN_UP;
    else
        doubt(detached);
    detached->since = world->now;
}

/* The last fence of a ticket serves twice. */
static bool is_last_of_span(struct world *world, const struct grip *grip)
{
    struct truth truth;
    server_truth(world, grip->queue, NULL, &truth);
    for (int i = 0; i < truth.grant_count; i++)
        if (grip->fence == truth.grants[i].fence + truth.span - 1)
            return true;
    return false;
}

void detach_adopted(struct world *world, struct actor *actor, const struct grip *grip)
{
    struct detached *detached = actor->detached;
    const struct client *client = actor->client;
    if (!may_be_there(detached) && !detached->broken)
        check_fail(world, client->index, grip->queue, "a ticket was adopted twice");
    if (grip->fence < detached->fence ||
        (grip->fence == detached->fence && !is_last_of_span(world, grip)))
        check_fail(world, client->index, grip->queue, "adopted with fence %llu after %llu",
                   (unsigned long long)grip->fence, (unsigned long long)detached->fence);
    end(detached);
}

void detach_settled(struct world *world, struct actor *actor, int error)
{
    struct detached *detached = actor->detached;
    actor->detached = NULL;
    detached->wanted--;
    if (!actor->inherits)
        told_detached(world, actor, detached, error);
    else if (error != MORTISE_OK)
        told_otherwise(world, actor, detached, error);
    if (detached->state == DETACHED_OVER)
        end(detached);
}

void detach_forget(struct actor *actor)
{
    struct detached *detached = actor->detached;
    if (!detached)
        return;
    actor->detached = NULL;
    detached->wanted--;
    doubt(detached);
    if (detached->state == DETACHED_OVER)
        end(detached);
}

/* ------------------------------------------------------------------ what must be true */

static bool is_known(const struct world *world, int queue, uint64_t ticket, uint64_t span)
{
    for (int i = 0; i < DETACHED_MAX; i++) {
        const struct detached *detached = &world->detached[i];
        if (may_be_there(detached) && detached->queue == queue && detached->fence - ticket < span)
            return true;
    }
    return false;
}

uint64_t detach_weight(struct world *world, int queue)
{
    uint64_t sum = 0;
    for (int i = 0; world->detached_number > 0 && i < DETACHED_MAX; i++) {
        const struct detached *detached = &world->detached[i];
        if (detached->state != DETACHED_SURE || detached->queue != queue || detached->wanted > 0)
            continue;
        sum += detached->weight;
        if (world->server_changed && find(world, detached) == 0)
            check_fail(world, -1, queue, "what was nobody's has vanished");
    }
    return sum;
}

void detach_check(struct world *world, int queue, const struct truth *truth)
{
    for (int i = 0; i < truth->nobodys_count; i++)
        if (!is_known(world, queue, truth->nobodys[i], truth->span))
            check_fail(world, -1, queue, "ticket %llu is nobody's, and nobody knows",
                       (unsigned long long)truth->nobodys[i]);
}

/* ------------------------------------------------------------------ the operator */

void detach_broken(struct world *world, int queue, uint64_t ticket)
{
    for (int i = 0; i < DETACHED_MAX; i++) {
        struct detached *detached = &world->detached[i];
        if (!may_be_there(detached) || detached->queue != queue ||
            detached->fence - ticket >= (uint64_t)world->drawn.fence_span)
            continue;
        detached->broken = true;
        end(detached);
    }
}

static void break_it(struct world *world, int queue, uint64_t ticket)
{
    trace_note(world, TRACE_PHASE, -1, queue, "nobody's, and broken", (int64_t)ticket, 0, 0);
    check_broken(world, queue, (struct span){ticket, (uint64_t)world->drawn.fence_span});
    if (!server_break(world, queue, ticket))
        check_fail(world, -1, queue, "nobody's ticket was not broken");
}

/* Removes tickets that have been detached for so long. */
static void take_out(struct world *world, mrt_time longest)
{
    for (int i = 0; i < DETACHED_MAX; i++) {
        struct detached *detached = &world->detached[i];
        if (!may_be_there(detached) || world->now - detached->since < longest)
            continue;
        uint64_t ticket = find(world, detached);
        if (ticket > 0)
            break_it(world, detached->queue, ticket);
        else if (detached->state == DETACHED_GIVEN_UP && detached->wanted == 0 &&
                 check_keeps_sessions(world, detached->since))
            check_fail(world, -1, detached->queue, "who gave up adopting has taken it out");
    }
}

static void go_about(struct world *world, struct task *task)
{
    mrt_time longest = world->drawn.detach_us * MRT_MICROSECOND;
    world_at(world, task, world->now + longest, go_about);
    take_out(world, longest);
}

void detach_populate(struct world *world)
{
    if (world->drawn.detach > 0)
        world_at(world, &world->going_about, world->drawn.detach_us * MRT_MICROSECOND, go_about);
}

void detach_end(struct world *world)
{
    world_cancel(world, &world->going_about);
    take_out(world, 0);
}
