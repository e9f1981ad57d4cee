/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults that all stores have to stand that run as they ship, on fake servers behind streams.
 */
#include "profile_draw.h"

void profile_put_behind_streams(struct profile *p, struct random *random, int64_t lease_min_us)
{
    int64_t every = p->kill_every_us;
    profile_no_port_faults(p);
    p->kill_every_us = every; /* connections, by an operator */
    p->capacity = 1;
    p->recheck_us = 5000000;
    p->lease_us = p->lease_us / 1000 * 1000;
    if (p->lease_us < lease_min_us)
        p->lease_us += lease_min_us;
    p->unknown_us = p->lease_us;
    p->delay_us = profile_scale(random, p->lease_us / (random_below(random, 4) ? 50 : 4));
}

void profile_make_lossy(struct profile *p, struct random *random)
{
    p->delay_us = p->lease_us / 100;
    p->cut_every_us = random_between(random, p->lease_us / 10, p->lease_us);
    p->cut_us = p->lease_us / random_between(random, 4, 100);
    p->trouble_every_us = random_between(random, p->lease_us / 20, p->lease_us / 2);
    p->trouble_us = p->lease_us;
    p->trouble_kind = random_below(random, 2) ? TROUBLE_ANY : TROUBLE_STREAM;
    p->think_us = p->hold_us = p->lease_us / 20;
    p->clients = random_between(random, 2, 4);
    p->queues = 1;
    p->cancel = random_below(random, 2) ? 0 : random_between(random, 1000, 8000);
    p->wait_us = p->lease_us / random_between(random, 4, 40);
}

void profile_make_possessive(struct profile *p, struct random *random)
{
    p->hold_us = p->lease_us * 3;
    p->think_us = p->lease_us / 50;
    p->delay_us = p->lease_us / 100;
    p->clients = random_between(random, 2, 4);
    p->queues = 1;
    p->cut_every_us = p->lease_us * random_between(random, 1, 8);
    p->cut_us = p->lease_us * 3;
    p->crash_every_us = p->try = p->timed = p->cancel = 0;
}
