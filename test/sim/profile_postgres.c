/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults that PostgreSQL servers, and the store on them, have to stand. In what is drawn here every
 * promise holds: a clock that is set ahead (clock_step_us), and a standby that lags and is promoted
 * (pg_lag_us), are breaches that only the command line asks for.
 */
#include "profile_draw.h"

#define LEASE_MIN_US 500000

static void draw_troubles(struct profile *p, struct random *random)
{
    p->trouble_every_us = profile_maybe_every(random, 2, p->lease_us * 2);
    p->trouble_us = profile_scale(random, p->lease_us * 2);
    p->clock_back_us = profile_maybe(random, p->lease_us * 2);
    p->split = profile_maybe(random, 3000);
    p->late = profile_maybe(random, 10000);
    p->pg_work_us = profile_scale(random, p->lease_us / 200);
    p->pg_conflict = profile_maybe(random, 2000);
    p->pg_full = random_below(random, 4) ? 0 : profile_maybe(random, 2000);
    p->pg_notify_late_us = profile_maybe(random, p->lease_us / 2);
}

void profile_draw_pooler(struct profile *p, uint64_t seed)
{
    struct random random;
    random_seed(&random, seed ^ UINT64_C(0x706f6f6c6572));
    if (p->model != MODEL_POSTGRES || random_below(&random, 3) > 0)
        return;
    if (random_below(&random, 2)) /* by pgpool, say, which is no such pooler */
        p->pg_split = random_between(&random, 100, 3000);
    else
        p->pg_pooled = random_below(&random, 2) ? 10000 : random_between(&random, 100, 10000);
}

/* There is no fault, but many tickets come and go at the same time, in long transactions. */
static void make_crowded(struct profile *p, struct random *random)
{
    profile_make_calm(p);
    p->trouble_every_us = p->kill_every_us = p->pg_conflict = p->pg_full = 0;
    p->pg_notify_late_us = 0;
    p->clients = random_between(random, 3, 4);
    p->queues = 1;
    p->delay_us = random_between(random, 1, 200);
    p->pg_work_us = random_between(random, 200, 2000);
    p->think_us = p->hold_us = random_between(random, 1, 8) * p->pg_work_us;
    p->reaction_us = 0;
    p->wait_us = p->hold_us * 2;
}

void profile_draw_postgres(struct profile *p, struct random *random)
{
    profile_put_behind_streams(p, random, LEASE_MIN_US);
    p->fence_span = 1 << 16;
    draw_troubles(p, random);
    switch (random_below(random, 8)) {
    case 0:
        profile_make_calm(p);
        p->trouble_every_us = p->kill_every_us = p->pg_conflict = p->pg_full = 0;
        break;
    case 1:
    case 2:
        make_crowded(p, random);
        break;
    case 3:
    case 4:
        profile_make_lossy(p, random);
        p->late = random_between(random, 1000, 10000);
        break;
    case 5:
        profile_make_possessive(p, random);
        break;
    default:
        break;
    }
}
