/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks that stay for a while when their holder has died. Of each client the last thread asks for a
 * delay; so where there are two, a ticket may have been queued without.
 *
 * The invariant: from the moment on at which such a thread's hold is lost, or its client has
 * crashed, nobody is granted its part of the lock for the delay; afterwards a waiter is; and a
 * client that only waited leaves nothing behind.
 *
 * Without leases the server's clock stands still until a delay is to end.
 */
#include "explore.h"

/* With leases, as long as what is between their instants; else longer than a recheck, or each look
   would be a state of its own. */
static mrt_time delay_of(const struct world *world)
{
    return world->instance->instants > 0 ? 20 : 2 * MRT_SECOND;
}

static bool asks(const struct world *world, const struct client *client,
                 const struct thread *thread)
{
    return world->instance->delays && thread == &client->threads[world_threads(world, client) - 1];
}

void delay_ask(const struct world *world, struct client *client, const struct thread *thread)
{
    if (asks(world, client, thread))
        mrt_queue_delay(client->queue, delay_of(world), world_now(world, client));
}

static void bury(struct world *world, mrt_time died, uint64_t weight)
{
    int g = 0;
    while (g < GRAVES_MAX && world->graves[g].until > world->now)
        g++;
    if (g == GRAVES_MAX)
        check_fail(world, "too many have died");
    world->graves[g] = (struct grave){died + delay_of(world), weight};
}

void delay_note(struct world *world, const struct client *client, const struct thread *thread,
                struct grip *grip)
{
    if (!asks(world, client, thread))
        return;
    mrt_time died = mrt_time_min(world->now, grip->valid_until);
    if (mrt_hold_state(grip->hold, world_now(world, client)) != MORTISE_LOST)
        grip->valid_until = mrt_hold_valid_until(grip->hold);
    else if (!grip->seen_lost)
        bury(world, died, grip->hold->weight);
}

void delay_crashed(struct world *world, const struct client *client, const struct thread *thread)
{
    const struct grip *grip = &thread->grips[0];
    if (asks(world, client, thread) && grip->hold && !grip->seen_lost)
        bury(world, mrt_time_min(world->now, mrt_hold_valid_until(grip->hold)), grip->hold->weight);
}

uint64_t delay_weight(const struct world *world)
{
    uint64_t sum = 0;
    for (int g = 0; g < GRAVES_MAX; g++)
        if (world->graves[g].until > world->now)
            sum += world->graves[g].weight;
    return sum;
}

bool delay_may_end(const struct world *world)
{
    return world->instance->instants == 0 &&
           mrt_memory_server_next(world->server) != MRT_TIME_NEVER;
}

bool delay_end(struct world *world)
{
    if (!delay_may_end(world))
        return false;
    world->now = mrt_memory_server_next(world->server);
    world_expire(world);
    return true;
}

static int look(void *context, const struct mrt_memory_entry *entry)
{
    if (entry->until > 0 && entry->place > 0)
        check_fail(context, "who only waited has left something behind");
    return 0;
}

void delay_check(const struct world *world)
{
    if (world->instance->delays)
        mrt_memory_server_list(world->server, look, (void *)(uintptr_t)world);
}
