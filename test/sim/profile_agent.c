/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults of hosts with an agent. The link between an agent and its store has those that the port
 * allows; a local socket is only late, and short of breath. Where the store has no lease
 * (lease_us is 0), its clients have the agent's, of five seconds.
 */
#include "profile_draw.h"

#define LEASE_US 5000000
#define STRAY_MAX 200 /* one of a session makes all its clients look, whose answers bring more */
#define ROOM 16       /* two connections of each client, and one, are the least */

static void draw_disasters(struct profile *p, struct random *random, int64_t unit)
{
    p->agent_crash_every_us = profile_maybe_every(random, 3, unit * 2);
    p->agent_restart_us = profile_scale(random, unit);
    p->agent_pause_every_us = profile_maybe_every(random, 3, unit * 2);
    p->agent_pause_us = profile_scale(random, unit * 3);
    p->agent_cut_every_us = p->lease_us > 0 ? profile_maybe_every(random, 4, unit * 2) : 0;
    p->agent_signal_every_us = profile_maybe_every(random, 4, unit * 3);
    p->agent_drain_us = random_below(random, 2) ? 0 : profile_scale(random, unit * 2);
    p->kill_every_us = p->lease_us > 0 ? 0 : profile_maybe_every(random, 4, unit * 2);
}

/* Holders hold on through all that befalls them, and others wait. */
static void make_possessive(struct profile *p, struct random *random, int64_t unit)
{
    p->hold_us = unit * 3;
    p->think_us = unit / 50;
    p->delay_us = unit / random_between(random, 100, 1000);
    p->clients = random_between(random, 2, 4);
    p->queues = 1;
    p->cut_every_us = unit * random_between(random, 1, 8);
    p->cut_us = unit * 3;
    p->crash_every_us = p->try = p->timed = p->cancel = p->hold_max_us = 0;
}

/* Nothing goes wrong, so times have bounds. */
static void make_calm(struct profile *p, struct random *random)
{
    profile_make_untroubled(p, random);
    p->agent_crash_every_us = p->agent_pause_every_us = p->agent_cut_every_us = 0;
    p->agent_signal_every_us = 0;
}

void profile_draw_agent(struct profile *p, struct random *random)
{
    int64_t unit = p->lease_us / 100000 * 100000;
    p->lease_us = random_below(random, 2) ? unit : 0;
    if (p->lease_us == 0)
        unit = LEASE_US;
    p->agents = random_between(random, 1, 2);
    p->synchronous = p->reboot_every_us = p->notices_refused = 0;
    p->proof_lag_us = p->follower_every_us = 0;
    p->agent_room = random_below(random, 4) ? ROOM : random_between(random, 9, ROOM);
    p->capacity = 1;
    p->stray_wake %= STRAY_MAX;
    if (p->recheck_us < unit / 20)
        p->recheck_us += unit / 20; /* waits are long */
    p->delay_us = profile_scale(random, unit / (random_below(random, 4) ? 100 : 8));
    p->split = profile_maybe(random, 3000);
    p->busy = profile_maybe(random, 2000);
    p->reap_us = p->lease_us > 0 ? profile_maybe(random, unit / 2) : 0;
    draw_disasters(p, random, unit);
    switch (random_below(random, 6)) {
    case 0:
        make_calm(p, random);
        break;
    case 1:
    case 2:
        make_possessive(p, random, unit);
        break;
    default:
        break;
    }
}
