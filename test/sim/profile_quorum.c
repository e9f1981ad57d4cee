/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The faults of worlds with a quorum whose members' claims end with their sessions
 * (quorum_members.c).
 */
#include "profile_draw.h"

/* Messages between a client and a member come late: the newest sign of life that one member has had
   is older than those of the others. */
static void make_late(struct profile *p, struct random *random)
{
    p->clients = random_between(random, 2, 4);
    p->actors = 1;
    p->hold_us = p->lease_us * 3;
    p->think_us = p->lease_us / 50;
    p->delay_us = p->lease_us / 200;
    p->trouble_every_us = p->lease_us / random_between(random, 4, 12);
    p->trouble_us = p->lease_us * 3 / 2;
    p->restart_us = p->lease_us / 4;
    p->crash_every_us = p->lease_us * 4;
    p->cut_every_us = p->pause_every_us = p->close_every_us = 0;
    p->try = p->timed = p->cancel = p->nest = p->misuse = 0;
}

void profile_draw_quorum(struct profile *p, struct random *random)
{
    profile_put_behind_streams(p, random, 0);
    p->kill_every_us = 0;
    p->trouble_every_us = profile_maybe_every(random, 2, p->lease_us);
    p->trouble_us = profile_scale(random, p->lease_us * 2);
    switch (random_below(random, 4)) {
    case 0:
        profile_make_calm(p);
        p->trouble_every_us = 0;
        break;
    case 1:
        profile_make_possessive(p, random);
        break;
    case 2:
        make_late(p, random);
        break;
    default:
        break;
    }
}

void profile_draw_quorum_lock(struct profile *p, struct random *random)
{
    if (p->lock < LOCK_SEMAPHORE_MUTEX) /* it keeps nothing else */
        p->lock = random_below(random, 4) ? LOCK_EXCLUSIVE : LOCK_MUTEX;
    p->capacity = 1;
    p->queues = 1;
    p->cells = p->revoke_every_us = p->listen = p->break_every_us = 0;
}
