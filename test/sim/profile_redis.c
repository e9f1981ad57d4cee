/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults that Redis servers, and the stores on them, have to stand. In what is drawn here every
 * promise holds: a clock that is set ahead (clock_step_us), and a restart that forgets what
 * was kept (redis_amnesia) without `uptime`, are breaches that only the command line asks for.
 */
#include "profile_draw.h"

static void draw_troubles(struct profile *p, struct random *random)
{
    p->trouble_every_us = profile_maybe_every(random, 2, p->lease_us * 2);
    p->trouble_us = profile_scale(random, p->lease_us * 2);
    p->clock_back_us = profile_maybe(random, p->lease_us * 2);
    p->split = profile_maybe(random, 3000);
    p->redis_replicas = random_below(random, 8) == 0;
    p->redis_copyless = p->redis_replicas ? profile_maybe(random, 3000) : 0;
    if (random_below(random, 4) == 0) {
        p->redis_amnesia = random_between(random, 2000, 10000);
        p->redis_uptime_us = p->lease_us;
        p->clock_back_us = 0; /* both together take the newest fence away */
    }
}

/* Servers lose their scripts all the time, and clients are cut off then. */
static void make_scriptless(struct profile *p)
{
    p->hold_us = p->lease_us * 3;
    p->think_us = p->lease_us / 50;
    p->delay_us = p->lease_us / 20;
    p->clients = p->clients < 2 ? 2 : p->clients;
    p->queues = 1;
    p->cut_every_us = p->lease_us;
    p->cut_us = p->lease_us * 3 / 2;
    p->trouble_every_us = p->lease_us / 10;
    p->trouble_kind = TROUBLE_SCRIPTS;
    p->redis_amnesia = p->redis_uptime_us = p->redis_replicas = p->redis_copyless = 0;
    p->crash_every_us = p->pause_every_us = p->close_every_us = 0;
    p->try = p->timed = p->cancel = p->nest = 0;
}

void profile_draw_redis(struct profile *p, struct random *random)
{
    profile_put_behind_streams(p, random, 0);
    p->fence_span = 1 << 15;
    draw_troubles(p, random);
    switch (random_below(random, 8)) {
    case 0:
    case 1:
        profile_make_calm(p);
        p->trouble_every_us = p->kill_every_us = p->redis_copyless = 0;
        break;
    case 2:
    case 3:
        profile_make_lossy(p, random);
        p->redis_amnesia = p->redis_uptime_us = 0;
        break;
    case 4:
    case 5:
        profile_make_possessive(p, random);
        break;
    default:
        break;
    }
}

void profile_draw_redis_lock(struct profile *p, struct random *random)
{
    bool one_kind = p->lock < LOCK_SEMAPHORE_MUTEX;
    if (p->model == MODEL_REDLOCK && one_kind) /* which keeps nothing else */
        p->lock = random_below(random, 4) ? LOCK_EXCLUSIVE : LOCK_MUTEX;
    if (p->model == MODEL_REDLOCK) {
        p->capacity = 1;
        p->cells = p->revoke_every_us = p->listen = p->break_every_us = 0;
    }
    if (p->lock == LOCK_EXCLUSIVE)
        p->revoke_every_us = p->listen = 0; /* a key does not say whose it is */
    if (p->lock == LOCK_EXCLUSIVE && p->trouble_every_us > 0 && random_below(random, 3) == 0)
        make_scriptless(p);
    if (p->redis_amnesia > 0)
        p->cells = p->break_every_us = p->revoke_every_us = 0;
}
