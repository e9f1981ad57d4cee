/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elections: every candidate has a value, leaders proclaim others, and every client observes.
 *
 * The callbacks of an observer are compared with the server: where nothing goes wrong, soon after
 * each change; in any world, at the end. Values are few, so that two leaders often have the same. A
 * client that asks once, as some do that have been told of a leader, does not get one that led
 * before another whom the server knew by then.
 */
#include "world.h"

#include <string.h>

#define VALUES 3

void election_boot(struct world *world, struct client *client)
{
    memset(client->sights, 0, sizeof client->sights);
    client->inquiry.asks = false;
    for (int i = 0; i < world->drawn.queues; i++) {
        struct sight *sight = &client->sights[i];
        if (world->queues[i].lock != LOCK_ELECTION)
            continue;
        rounds_begin(world, &sight->rounds);
        sight->observer = mrt_engine_observe(client->engine, world->queues[i].name, sight);
        if (!sight->observer)
            check_fail(world, client->index, i, "no observer");
    }
}

void election_candidate(struct world *world, struct actor *actor)
{
    actor->value = (uint64_t)random_below(&world->random, VALUES);
    actor->waiter.value = &actor->value;
    actor->waiter.value_size = sizeof actor->value;
}

void election_proclaim(struct world *world, struct actor *actor, struct grip *grip)
{
    struct client *client = actor->client;
    mrt_time now = client_now(client);
    bool lost = mrt_hold_state(grip->hold, now) == MORTISE_LOST;
    uint64_t value = (uint64_t)random_below(&world->random, VALUES);
    world->operations++;
    trace_note(world, TRACE_VERIFY, client->index, grip->queue, "proclaims", actor->index,
               (int64_t)grip->fence, (int64_t)value);
    int result = mrt_hold_set_value(grip->hold, grip->generation, &value, sizeof value, now);
    if (!grip->broken && result != (lost ? MORTISE_ELOST : MORTISE_OK))
        check_fail(world, client->index, grip->queue, "a proclamation answered %s",
                   mortise_error_name(result));
    grip->value = value;
    grip->proclaimed_at = world->now;
    rounds_begin(world, &grip->proclaimed);
    client_pump(world, client);
}

static void inquire(struct world *world, struct client *client, int queue)
{
    struct inquiry *inquiry = &client->inquiry;
    struct truth truth;
    if (inquiry->asks || !random_chance(&world->random, world->drawn.inquire))
        return;
    server_truth(world, queue, NULL, &truth);
    const struct mrt_command who = {
        .type = MRT_OBSERVE, .once = true, .queue = world->queues[queue].name};
    *inquiry = (struct inquiry){.queue = queue,
                                .floor = truth.peer ? truth.fence : 0,
                                .waiter = {.deadline = MRT_TIME_NEVER}};
    world->operations++;
    mrt_engine_request(client->engine, &who, &inquiry->answer, &inquiry->waiter,
                       client_now(client));
    inquiry->asks = inquiry->waiter.state != MRT_WAITER_DONE || inquiry->waiter.settled;
}

bool election_settled(struct world *world, struct client *client, const struct mrt_waiter *waiter)
{
    struct inquiry *inquiry = &client->inquiry;
    const uint64_t fence = inquiry->answer.fence;
    if (waiter != &inquiry->waiter)
        return false;
    trace_note(world, TRACE_DONE, client->index, inquiry->queue, "who leads", waiter->error,
               (int64_t)fence, (int64_t)inquiry->floor);
    inquiry->asks = false;
    if (waiter->error == MORTISE_OK && fence > 0 && fence < inquiry->floor)
        check_fail(world, client->index, inquiry->queue, "told that %llu leads, after %llu",
                   (unsigned long long)fence, (unsigned long long)inquiry->floor);
    return true;
}

bool election_observe(struct world *world, struct client *client)
{
    bool any = false;
    struct mrt_request *observer;
    while ((observer = mrt_engine_next_observed(client->engine))) {
        struct sight *sight = mrt_observer_host(observer);
        const struct mrt_answer *holder = mrt_observer_holder(observer);
        int queue = (int)(sight - client->sights);
        uint64_t value = 0;
        if (holder->value_size == sizeof value)
            memcpy(&value, holder->value, sizeof value);
        trace_note(world, TRACE_TOLD, client->index, queue, "observes", (int64_t)holder->fence,
                   (int64_t)value, 0);
        if (sight->seen && holder->fence == sight->fence && value == sight->value)
            check_fail(world, client->index, queue, "an observer is told the same again");
        if (holder->fence > 0 && holder->fence < sight->last_fence)
            check_fail(world, client->index, queue, "an observer sees an earlier leader");
        sight->seen = true;
        sight->fence = holder->fence;
        sight->value = value;
        sight->last_fence = holder->fence ? holder->fence : sight->last_fence;
        inquire(world, client, queue);
        any = true;
    }
    return any;
}

static bool is_right(const struct sight *sight, const struct truth *truth)
{
    uint64_t fence = truth->peer ? truth->fence : 0;
    return sight->seen && sight->fence == fence && (fence == 0 || sight->value == truth->value);
}

static void check_sights(struct world *world, int queue, const struct truth *truth, mrt_time limit)
{
    mrt_time since = world->queues[queue].first_since;
    for (int c = 0; c < world->drawn.clients; c++) {
        struct client *client = &world->clients[c];
        struct sight *sight = &client->sights[queue];
        bool there = client->engine && !client->closing && !client_paused(client);
        bool late =
            limit == 0 || (rounds_over(world, client, &sight->rounds) &&
                           world->now - since > limit && world->now - client->booted_at >= limit);
        if (there && late && !is_right(sight, truth))
            check_fail(world, c, queue, "an observer sees %llu where %llu leads",
                       (unsigned long long)sight->fence,
                       (unsigned long long)(truth->peer ? truth->fence : 0));
    }
}

/* The leader's value has come to the server. */
static void check_value(struct world *world, int queue, const struct truth *truth, mrt_time limit)
{
    struct client *client = truth->peer ? truth->peer->client : NULL;
    for (int a = 0; client && !client->closing && a < world->drawn.actors; a++)
        for (int g = 0; g < GRIPS_MAX; g++) {
            struct grip *grip = &client->actors[a].grips[g];
            bool over = rounds_over(world, client, &grip->proclaimed);
            if (grip->hold && grip->queue == queue && grip->fence == truth->fence && over &&
                grip->value != truth->value && world->now - grip->proclaimed_at > limit)
                check_fail(world, client->index, queue, "a value is not proclaimed");
        }
}

void election_check(struct world *world, bool calm, mrt_time limit)
{
    for (int i = 0; i < world->drawn.queues; i++) {
        struct queue_state *state = &world->queues[i];
        if (state->lock != LOCK_ELECTION)
            continue;
        const struct truth *truth = check_truth(world, i);
        uint64_t fence = truth->peer ? truth->fence : 0;
        if (fence != state->first_fence || truth->value != state->first_value) {
            state->first_since = world->now;
            for (int c = 0; c < world->drawn.clients; c++)
                rounds_begin(world, &world->clients[c].sights[i].rounds);
        }
        state->first_fence = fence;
        state->first_value = truth->value;
        if (!calm)
            continue;
        check_sights(world, i, truth, limit);
        check_value(world, i, truth, limit);
    }
}

/* Longer than any pause of the engine, and the time after which it looks by itself. */
mrt_time election_patience(const struct world *world)
{
    const struct profile *p = &world->drawn;
    return 10 * MRT_SECOND +
           (2 * p->recheck_us + 4 * p->lease_us + p->pause_us + p->unknown_us) * MRT_MICROSECOND;
}

void election_check_end(struct world *world)
{
    for (int i = 0; i < world->drawn.queues; i++) {
        struct truth truth;
        if (world->queues[i].lock != LOCK_ELECTION)
            continue;
        server_truth(world, i, NULL, &truth);
        check_sights(world, i, &truth, 0);
    }
}
