/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The remains of a dead holder: from the end of its hold on nobody else has its part of the lock
 * for the delay. The end is, in true time, when his client has crashed, was told that its session
 * is lost, or could not know any more that it was not, whichever was first.
 *
 * And of a hold that others trust (`trusted`), until what they were told of it is over, by
 * its client's clock, which may be fast.
 *
 * It does not count what has ended otherwise: by an operator, or by its own limit.
 */
#include "world.h"

/* An election has none. */
mrt_time delay_of(const struct world *world, int queue)
{
    if (world->queues[queue].lock == LOCK_ELECTION)
        return 0;
    return world->drawn.lock_delay_us * MRT_MICROSECOND;
}

static bool counts(const struct world *world, const struct grip *grip)
{
    return delay_of(world, grip->queue) > 0 || world->drawn.trusted > 0;
}

/* How long it is trusted from now on. */
static mrt_time trusted_for(const struct world *world, const struct client *client,
                            const struct grip *grip)
{
    mrt_time left = grip->valid_until - client_now(client);
    bool is_told = world->drawn.trusted > 0 && grip->valid_until != MRT_TIME_NEVER && left > 0;
    return is_told ? left * 9 / 10 : 0;
}

static void bury(struct world *world, const struct client *client, const struct grip *grip,
                 mrt_time died)
{
    int g = 0;
    while (g < world->grave_count && world->graves[g].until > world->now)
        g++;
    if (g == GRAVES_MAX)
        check_fail(world, -1, grip->queue, "too many have died");
    if (g == world->grave_count)
        world->grave_count++;
    mrt_time until = died + delay_of(world, grip->queue);
    mrt_time trusted = world->now + trusted_for(world, client, grip);
    if (trusted > until)
        until = trusted;
    world->graves[g] = (struct grave){grip->queue, until, grip->weight, grip->fence};
}

void delay_note(struct world *world, const struct client *client, const struct actor *actor,
                struct grip *grip)
{
    mrt_time now = client_now(client), died = world->now;
    if (!counts(world, grip))
        return;
    if (mrt_hold_state(grip->hold, now) != MORTISE_LOST) {
        grip->valid_until = mrt_hold_valid_until(grip->hold);
        return;
    }
    bool ended = (grip->ends > 0 && now >= grip->ends) || check_was_broken(world, grip);
    if (grip->seen_lost || ended || check_covered(actor, grip))
        return;
    if (now >= grip->valid_until)
        died -= (now - grip->valid_until) * 11 / 10; /* its clock may be slow */
    bury(world, client, grip, died);
}

void delay_died(struct world *world, struct client *client)
{
    if (!client->engine || client->closing)
        return;
    for (int a = 0; a < world->drawn.actors; a++)
        for (int g = 0; g < GRIPS_MAX; g++) {
            const struct actor *actor = &client->actors[a];
            struct grip *grip = &client->actors[a].grips[g];
            if (!grip->hold || !counts(world, grip))
                continue;
            delay_note(world, client, actor, grip);
            bool held = mrt_hold_state(grip->hold, client_now(client)) != MORTISE_LOST;
            if (held && !check_was_broken(world, grip) && !check_covered(actor, grip))
                bury(world, client, grip, world->now);
        }
}

void delay_broken(struct world *world, int queue, uint64_t fence)
{
    for (int g = 0; g < world->grave_count; g++) {
        struct grave *grave = &world->graves[g];
        if (grave->queue == queue && grave->fence - fence < (uint64_t)world->drawn.fence_span)
            grave->until = 0;
    }
}

uint64_t delay_weight(const struct world *world, int queue)
{
    uint64_t sum = 0;
    for (int g = 0; g < world->grave_count; g++)
        if (world->graves[g].queue == queue && world->graves[g].until > world->now)
            sum += world->graves[g].weight;
    return sum;
}
