/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How soon a client can act, where what it asks is answered one after the other.
 *
 * A ZooKeeper server does what came by one connection in order, and the fake lets each write wait
 * for the leader, and each second read for others. A client of many threads may have many earlier
 * requests, and a bound in time has to count all of them. So time is counted in rounds as well: one
 * ends when everything is answered that had been asked when it began. In each, a step of what a
 * client has to do is done, whatever else it asks meanwhile.
 *
 * A connection that is lost ends no round: what was asked by it has not been done, or nobody knows.
 *
 * Of one lock these are four at most, the last of which is not known to have ended before: a
 * command that was under way writes, lists, and looks at a node; and then a ticket is removed, or
 * what was seen is told. The bounds in time hold as well: who hangs has nothing to wait for, and
 * does four rounds in less.
 */
#include "world.h"

#define ROUNDS 4
#define PAUSE MRT_SECOND /* at most, until what was lost is asked again */

/* Until a client can ask for the next thing: it hears, and a thread acts. */
static mrt_time reaction(const struct world *world)
{
    const struct profile *p = &world->profile;
    return (p->delay_us + p->zk_lag_us + p->zk_behind_us + p->actors * (p->reaction_us + 1) + 10) *
           MRT_MICROSECOND;
}

void rounds_begin(const struct world *world, struct rounds *rounds)
{
    *rounds = (struct rounds){.begins = world->now + reaction(world)};
}

bool rounds_over(const struct world *world, const struct client *client, struct rounds *rounds)
{
    if (world->drawn.model != MODEL_ZK_LIBRARY)
        return true;
    if (rounds->cuts != client->cuts) {
        rounds_begin(world, rounds);
        rounds->begins += PAUSE;
        rounds->cuts = client->cuts;
    }
    while (rounds->count < ROUNDS && (rounds->waits || world->now >= rounds->begins)) {
        bool waited = rounds->waits;
        if (!waited)
            rounds->asked = client->asked;
        rounds->waits = client->answered < rounds->asked;
        if (rounds->waits)
            break;
        rounds->count++;
        rounds->begins = (waited ? world->now : rounds->begins) + reaction(world);
    }
    return rounds->count >= ROUNDS;
}
