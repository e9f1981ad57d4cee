/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The remains of a dead holder: from the end of its hold on nobody else has its part of the lock
 * for the delay. The end is, in true time, when his client has crashed, was told that its session
 * is lost, or could not know any more that it was not, whichever was first.
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

static void bury(struct world *world, const struct grip *grip, mrt_time died)
{
    int g = 0;
    while (g < GRAVES_MAX && world->graves[g].until > world->now)
        g++;
    if (g == GRAVES_MAX)
        check_fail(world, -1, grip->queue, "too many have died");
    mrt_time until = died + delay_of(world, grip->queue);
    world->graves[g] = (struct grave){grip->queue, until, grip->weight, grip->fence};
}

void delay_note(struct world *world, const struct client *client, const struct actor *actor,
                struct grip *grip)
{
    mrt_time now = client_now(client), died = world->now;
    if (delay_of(world, grip->queue) == 0)
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
    bury(world, grip, died);
}

void delay_died(struct world *world, struct client *client)
{
    if (world->drawn.lock_delay_us == 0 || !client->engine || client->closing)
        return;
    for (int a = 0; a < world->drawn.actors; a++)
        for (int g = 0; g < GRIPS_MAX; g++) {
            const struct actor *actor = &client->actors[a];
            struct grip *grip = &client->actors[a].grips[g];
            if (!grip->hold || delay_of(world, grip->queue) == 0)
                continue;
            delay_note(world, client, actor, grip);
            bool held = mrt_hold_state(grip->hold, client_now(client)) != MORTISE_LOST;
            if (held && !check_was_broken(world, grip) && !check_covered(actor, grip))
                bury(world, grip, world->now);
        }
}

void delay_broken(struct world *world, int queue, uint64_t fence)
{
    for (int g = 0; g < GRAVES_MAX; g++) {
        struct grave *grave = &world->graves[g];
        if (grave->queue == queue && grave->fence - fence < (uint64_t)world->drawn.fence_span)
            grave->until = 0;
    }
}

uint64_t delay_weight(const struct world *world, int queue)
{
    uint64_t sum = 0;
    for (int g = 0; g < GRAVES_MAX; g++)
        if (world->graves[g].queue == queue && world->graves[g].until > world->now)
            sum += world->graves[g].weight;
    return sum;
}
