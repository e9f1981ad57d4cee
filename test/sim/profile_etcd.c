/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults that a cluster of etcd, and the store on it, have to stand. Every promise holds in all of
 * them. Leases are of whole seconds there, and the shortest may be longer than was asked for.
 */
#include "profile_draw.h"

#define LEASE_MIN_US 1000000

static void draw_troubles(struct profile *p, struct random *random)
{
    p->etcd_members = random_below(random, 3) ? 3 : 1;
    p->etcd_shortest = random_between(random, 1, 2);
    p->etcd_election_us = profile_scale(random, p->lease_us / 2);
    p->etcd_watch_late_us = profile_maybe(random, p->lease_us / 2);
    p->etcd_error = profile_maybe(random, 2000);
    p->reap_us = profile_maybe(random, 500000);
    p->trouble_every_us = profile_maybe_every(random, 2, p->lease_us * 2);
    p->trouble_us = profile_scale(random, p->lease_us * 2);
    p->split = profile_maybe(random, 3000);
    p->late = profile_maybe(random, 10000);
}

static void make_calm(struct profile *p)
{
    profile_make_calm(p);
    p->trouble_every_us = p->kill_every_us = p->etcd_watch_late_us = p->etcd_error = 0;
}

/* Leaders stand still or are cut off, and a former one renews for long; clients that hold are cut
   off from member after member. Nothing makes a lease longer than it says. */
static void make_deposed(struct profile *p, struct random *random)
{
    p->lease_us = random_between(random, 1, 3) * 1000000;
    profile_make_possessive(p, random);
    p->etcd_members = 3;
    p->etcd_shortest = 1;
    p->etcd_election_us = random_between(random, p->lease_us / 10, p->lease_us / 2);
    p->etcd_error = p->reap_us = 0;
    p->trouble_every_us = random_between(random, p->lease_us / 4, p->lease_us * 2);
    p->trouble_us = random_between(random, p->lease_us / 4, p->lease_us * 2);
    p->trouble_kind = random_below(random, 2) ? TROUBLE_STILL : TROUBLE_PARTITION;
    p->cut_every_us = random_between(random, p->lease_us / 4, p->lease_us * 2);
    p->cut_us = p->lease_us / random_between(random, 1, 20);
    p->break_every_us = p->kill_every_us = p->close_every_us = p->pause_every_us = 0;
}

/* Many come and go, watches are behind, and what they have not read is compacted. */
static void make_compacted(struct profile *p, struct random *random)
{
    profile_make_calm(p);
    p->clients = random_between(random, 2, 4);
    p->queues = 1;
    p->etcd_error = p->kill_every_us = 0;
    p->etcd_watch_late_us = random_between(random, p->lease_us / 20, p->lease_us / 2);
    p->trouble_every_us = random_between(random, p->lease_us / 20, p->lease_us / 2);
    p->trouble_kind = TROUBLE_COMPACTION;
    p->think_us = p->hold_us = p->lease_us / 20;
}

void profile_draw_etcd(struct profile *p, struct random *random)
{
    profile_put_behind_streams(p, random, LEASE_MIN_US);
    p->fence_span = 1 << 12;
    p->recheck_us = 10000000;
    draw_troubles(p, random);
    switch (random_below(random, 10)) {
    case 0:
    case 1:
        make_calm(p);
        break;
    case 2:
    case 3:
        profile_make_lossy(p, random);
        p->trouble_kind = TROUBLE_ANY;
        p->late = random_between(random, 1000, 10000);
        break;
    case 4:
    case 5:
        make_deposed(p, random);
        break;
    case 6:
        make_compacted(p, random);
        break;
    case 7:
        profile_make_possessive(p, random);
        break;
    default:
        break;
    }
}
