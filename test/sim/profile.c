/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing a run's configuration, and showing it. */
#include "profile_draw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct profile_field profile_fields[] = {
#define PROFILE_ROW(name, kind, text) {#name, kind, text},
    PROFILE_MAP(PROFILE_ROW)
#undef PROFILE_ROW
};
const int profile_field_count = sizeof profile_fields / sizeof profile_fields[0];

/* The struct is a row of int64_t in the table's order. */
int64_t *profile_value(struct profile *profile, int field)
{
    return (int64_t *)(void *)profile + field;
}

int64_t profile_scale(struct random *random, int64_t limit)
{
    int64_t top = 1;
    int steps = 0;
    while (top < limit) {
        top *= 4;
        steps++;
    }
    for (int64_t down = random_below(random, steps + 1); down > 0; down--)
        limit /= 4;
    return 1 + random_below(random, limit > 0 ? limit : 1);
}

int64_t profile_maybe(struct random *random, int64_t limit)
{
    return random_below(random, 2) ? profile_scale(random, limit) : 0;
}

int64_t profile_maybe_every(struct random *random, int one_in, int64_t unit)
{
    if (random_below(random, one_in) > 0)
        return 0;
    return unit / 4 + random_below(random, unit * 4);
}

static bool is_zookeeper(const struct profile *p)
{
    return p->model == MODEL_ZOOKEEPER || p->model == MODEL_ZK_LIBRARY;
}

static bool is_redis(const struct profile *p)
{
    return p->model == MODEL_REDIS || p->model == MODEL_REDLOCK;
}

static bool has_lease(const struct profile *p)
{
    return p->model != MODEL_KERNEL && p->model != MODEL_SQLITE;
}

static void draw_sizes(struct profile *p, struct random *random, int model)
{
    p->model = random_below(random, 4) % 3;
    if (model != MODEL_ANY)
        p->model = model;
    p->clients = random_between(random, 1, 4);
    p->actors = random_between(random, 1, 5);
    p->queues = random_below(random, 3) ? 1 : random_between(random, 1, 3);
    p->operations = random_between(random, 4, 24);
    p->lease_us = has_lease(p) ? random_between(random, 200, 3000) * 1000 : 0;
    p->recheck_us = random_between(random, 20, 2000) * 1000;
    p->capacity = random_below(random, 8) ? 1 : 2;
    p->fence_span = random_below(random, 3) ? 1 << 20 : random_between(random, 1, 8);
    p->strict = random_below(random, 2);
    p->fair_us = random_below(random, 4) ? 1000 : profile_scale(random, 100000);
    p->budget_us = random_below(random, 4) ? 2000 : random_below(random, 20000);
    p->budget_count = random_below(random, 2) ? 16 : random_between(random, 1, 8);
    p->drift_ppm = random_below(random, 2) ? 15000 : profile_maybe(random, 15000);
}

static void draw_actors(struct profile *p, struct random *random)
{
    int64_t unit = has_lease(p) ? p->lease_us : 1000000;
    p->think_us = profile_scale(random, unit / 4);
    p->hold_us = profile_scale(random, unit / 4);
    p->reaction_us = profile_maybe(random, 5000);
    p->nest = profile_maybe(random, 5000);
    p->try = profile_maybe(random, 6000);
    p->timed = profile_maybe(random, 6000);
    p->async = profile_maybe(random, 8000);
    p->cancel = profile_maybe(random, 5000);
    p->wait_us = profile_scale(random, unit * 2);
    p->misuse = profile_maybe(random, 2000);
    p->verify = profile_maybe(random, 2000);
    p->brief_handles = random_below(random, 2);
}

static void draw_link(struct profile *p, struct random *random)
{
    int64_t unit = has_lease(p) ? p->lease_us : 1000000;
    p->synchronous = p->model != MODEL_LEASE && random_below(random, 2);
    p->delay_us =
        p->model == MODEL_SQLITE ? profile_scale(random, 2000) : profile_scale(random, unit / 2);
    p->timer_late_us = profile_maybe(random, unit / 20);
    p->reorder = profile_maybe(random, 3000);
    p->lose_command = profile_maybe(random, 3000);
    p->lose_reply = profile_maybe(random, 3000);
    p->early_unknown = profile_maybe(random, 2000);
    p->late_answer = profile_maybe(random, 10000);
    p->refuse = profile_maybe(random, 2000);
    p->refuse_for_good = random_below(random, 4) ? 0 : profile_maybe(random, 1000);
    p->unknown_us = profile_scale(random, unit * 2);
    p->wake_lost = profile_maybe(random, 10000);
    p->wake_double = profile_maybe(random, 5000);
    p->wake_late_us = profile_maybe(random, unit);
    p->stray_wake = profile_maybe(random, 2000);
}

static void draw_disasters(struct profile *p, struct random *random)
{
    int64_t unit = has_lease(p) ? p->lease_us : 1000000;
    p->cut_every_us = has_lease(p) ? profile_maybe_every(random, 3, unit * 2) : 0;
    p->cut_us = profile_scale(random, unit * 3);
    p->crash_every_us = profile_maybe_every(random, 3, unit * 2);
    p->restart_us = profile_scale(random, unit * 2);
    p->pause_every_us = profile_maybe_every(random, 3, unit * 2);
    p->pause_us = profile_scale(random, unit * 3);
    p->close_every_us = profile_maybe_every(random, 4, unit * 3);
    p->kill_every_us = p->model != MODEL_LEASE ? profile_maybe_every(random, 4, unit * 2) : 0;
    p->break_every_us = profile_maybe_every(random, 8, unit * 2);
    p->reboot_every_us = p->model == MODEL_SQLITE ? profile_maybe_every(random, 4, unit * 6) : 0;
    p->busy = p->model == MODEL_SQLITE ? profile_maybe(random, 3000) : 0;
    p->busy_us = p->busy > 0 ? profile_scale(random, 20000) : 0;
    p->notices_refused = p->model == MODEL_SQLITE ? profile_maybe(random, 10000) : 0;
    p->push = profile_maybe(random, 10000);
    if (p->push > 0)
        p->reorder = 0; /* views of one ticket come in the order they were made */
    p->proof_lag_us = p->model == MODEL_LEASE && random_below(random, 4) == 0
                          ? random_between(random, unit / 20, unit * 2 / 5)
                          : 0;
    p->follower_every_us = p->proof_lag_us > 0 ? random_between(random, unit / 4, unit * 2) : 0;
    p->reap_us = p->model == MODEL_LEASE ? profile_maybe(random, unit / 2) : 0;
}

/* A slow link, followers that die and clients that are then cut off: a proof of life that its
 * server acknowledged and then forgot must not harm. */
static void make_forgetful(struct profile *p, struct random *random)
{
    int64_t unit = p->lease_us;
    p->clients = random_between(random, 2, 4);
    p->operations = random_between(random, 20, 40);
    p->proof_lag_us = unit * random_between(random, 31, 36) / 100;
    p->follower_every_us = unit * 3 / 10;
    p->cut_every_us = unit * 6 / 10;
    p->cut_us = unit * 3;
    p->delay_us = unit / 5;
    p->hold_us = unit;
    p->think_us = unit / 100;
    p->drift_ppm = p->crash_every_us = p->wake_lost = p->break_every_us = p->reap_us = 0;
    p->lose_command = p->lose_reply = p->refuse = p->pause_every_us = p->close_every_us = 0;
    p->try = p->timed = p->cancel = 0;
}

/* Holders are cut off while others wait, and their clocks are wrong: a lease's last hundredth. */
static void make_drifting(struct profile *p, struct random *random)
{
    int64_t unit = p->lease_us;
    p->clients = random_between(random, 2, 4);
    p->drift_ppm = 15000;
    p->cut_every_us = unit * random_between(random, 6, 40) / 10;
    p->cut_us = unit * 3;
    p->delay_us = unit / 200;
    p->hold_us = unit * 3;
    p->think_us = unit / 50;
    p->crash_every_us = p->break_every_us = p->reap_us = p->proof_lag_us = p->follower_every_us = 0;
    p->try = p->timed = p->cancel = 0;
}

static void zero(int64_t *const *fields, size_t count)
{
    for (size_t i = 0; i < count; i++)
        *fields[i] = 0;
}

/* A link and machines without faults, so that times can be held to their bounds. */
static void make_quiet(struct profile *p, struct random *random)
{
    int64_t *const faults[] = {&p->lose_command,   &p->lose_reply,  &p->early_unknown,
                               &p->break_every_us, &p->refuse,      &p->refuse_for_good,
                               &p->break_every_us, &p->late_answer, &p->cut_every_us,
                               &p->pause_every_us, &p->busy,        &p->timer_late_us,
                               &p->wake_lost,      &p->wake_late_us};
    zero(faults, sizeof faults / sizeof faults[0]);
    p->delay_us = profile_scale(random, 5000);
    p->clients = random_between(random, 2, 4);
}

/* Permits that many come for at the same time, and a lost wake-up shows. */
static void make_frequented(struct profile *p, struct random *random)
{
    profile_make_calm(p);
    p->clients = 4;
    p->actors = random_between(random, 1, 3);
    p->queues = 1;
    p->operations = 40;
    p->delay_us = random_between(random, 1, 100);
    p->zk_lag_us = random_below(random, 100);
    p->zk_behind_us = random_below(random, 100);
    p->zk_gap_us = random_between(random, 1000, 5000);
    p->hold_us = random_between(random, 100, 300) * 1000;
    p->think_us = p->hold_us / random_between(random, 1, 4);
    p->reaction_us = p->try = p->timed = p->nest = 0;
    p->close_every_us = p->misuse = 0;
    p->cancel %= 2000;
}

/* Nodes of one name are created and deleted, also by other programs. */
static void make_contested(struct profile *p, struct random *random)
{
    p->clients = random_between(random, 2, 4);
    p->break_every_us = random_between(random, p->lease_us / 4, p->lease_us * 2);
    p->hold_us = p->lease_us / 2;
}

/* By a draw of its own, so that the rest of a run with mutexes is as it was. */
static void draw_lock(struct profile *p, uint64_t seed)
{
    struct random random;
    random_seed(&random, seed ^ UINT64_C(0x6c6f636b));
    int64_t kind = random_below(&random, 6);
    bool zookeeper = is_zookeeper(p);
    p->zk_wake_all = zookeeper && random_below(&random, 8) == 0;
    p->zk_gap_us = zookeeper ? profile_maybe(&random, 2000) : 0;
    if (zookeeper && kind == LOCK_EXCLUSIVE && random_below(&random, 2))
        make_contested(p, &random);
    if (p->model == MODEL_ZOOKEEPER) { /* whose fake of the port keeps no others */
        p->lock = kind == LOCK_EXCLUSIVE ? kind : LOCK_MUTEX;
        return;
    }
    if (kind == LOCK_SEMAPHORE)
        p->capacity = random_between(&random, 2, 4);
    if (kind == LOCK_SEMAPHORE || kind == LOCK_READ_WRITE || kind == LOCK_EXCLUSIVE)
        p->lock = kind;
    if (zookeeper && kind == LOCK_SEMAPHORE && random_below(&random, 2))
        make_frequented(p, &random);
    if (p->model != MODEL_LEASE && p->model != MODEL_KERNEL && p->model != MODEL_ZK_LIBRARY &&
        p->model != MODEL_REDIS && p->model != MODEL_POSTGRES && p->model != MODEL_ETCD &&
        p->model != MODEL_AGENT)
        return; /* the other models have neither values nor cells */
    if (kind == LOCK_ELECTION) {
        p->lock = kind;
        p->capacity = 1;
    }
    p->cells = random_below(&random, 3) ? 0 : random_between(&random, 4, 40);
}

/* Holders that did not wait, because a waiter watches its node, get requests to give up, and begin
   to listen later. They hold long enough to be told, and are seldom asked again, which would hide
   what was lost. */
static void make_importuned(struct profile *p)
{
    profile_make_calm(p);
    p->clients = 2;
    p->actors = p->queues = 1;
    p->hold_us = p->recheck_us * 4;
    p->think_us = p->hold_us * 2;
    p->revoke_every_us = p->recheck_us * 2;
    p->listen = 5000;
    p->nest = p->verify = p->hold_max_us = p->close_every_us = 0;
}

/* By a draw of its own, too. */
static void draw_requests(struct profile *p, uint64_t seed)
{
    struct random random;
    int64_t unit = has_lease(p) ? p->lease_us : 1000000;
    random_seed(&random, seed ^ UINT64_C(0x7265766f6b65));
    p->revoke_every_us = profile_maybe_every(&random, 3, unit / 2);
    if (is_zookeeper(p) && p->lock == LOCK_ELECTION)
        p->revoke_every_us = 0; /* it would be written over the leader's value */
    p->listen = p->revoke_every_us > 0 ? random_between(&random, 1000, 10000) : 0;
    p->hold_max_us = random_below(&random, 4) ? 0 : profile_scale(&random, unit);
    bool changes = p->lock == LOCK_READ_WRITE || p->lock == LOCK_SEMAPHORE; /* its node */
    if (is_zookeeper(p) && changes && random_below(&random, 4) == 0)
        make_importuned(p);
    if (is_redis(p))
        profile_draw_redis_lock(p, &random);
    if (p->model == MODEL_QUORUM)
        profile_draw_quorum_lock(p, &random);
}

/* And so. Of locks on the stores that the reference stands for; seldom, since a delay hides from a
   holder who goes on that another has begun, and never where that takes a rare chance. */
static void draw_delay(struct profile *p, uint64_t seed)
{
    struct random random;
    random_seed(&random, seed ^ UINT64_C(0x64656c6179));
    bool can = (p->model == MODEL_LEASE || p->model == MODEL_KERNEL || p->model == MODEL_AGENT) &&
               p->lock != LOCK_ELECTION && p->proof_lag_us == 0;
    if (can && random_below(&random, 8) == 0)
        p->lock_delay_us = profile_scale(&random, has_lease(p) ? p->lease_us : 1000000);
}

void profile_make_untroubled(struct profile *p, struct random *random)
{
    int64_t *const ends[] = {&p->crash_every_us, &p->close_every_us, &p->kill_every_us,
                             &p->proof_lag_us, &p->follower_every_us};
    make_quiet(p, random);
    zero(ends, sizeof ends / sizeof ends[0]);
    profile_make_calm(p);
    p->trouble_every_us = p->redis_copyless = p->etcd_watch_late_us = p->etcd_error = 0;
}

/* No session ends, so a client that stops adopting leaves the ticket as it was. */
static void make_inherited(struct profile *p, struct random *random)
{
    profile_make_untroubled(p, random);
    p->cancel = random_between(random, 2000, 8000);
    p->wait_us = p->delay_us * 2;
}

/* And so. Of the stores, and the locks, that can be detached wherever they are. */
static void draw_detach(struct profile *p, uint64_t seed)
{
    struct random random;
    random_seed(&random, seed ^ UINT64_C(0x646574616368));
    int64_t unit = has_lease(p) ? p->lease_us : 1000000;
    bool can = p->model == MODEL_LEASE || p->model == MODEL_KERNEL ||
               p->model == MODEL_ZK_LIBRARY || p->model == MODEL_REDIS || p->model == MODEL_ETCD;
    can = can && (p->lock != LOCK_MUTEX || p->capacity == 1); /* two of those there are not */
    if (!can || p->lock == LOCK_ELECTION || p->lock == LOCK_EXCLUSIVE || p->redis_amnesia > 0 ||
        random_below(&random, 6) > 0)
        return;
    p->detach = random_between(&random, 500, 5000);
    p->detach_us = random_between(&random, unit / 4, unit * 2);
    if (random_below(&random, 3) == 0)
        make_inherited(p, &random);
}

/* And so. The recipe's names tell neither readers from writers nor what is nobody's. */
static void draw_layout(struct profile *p, uint64_t seed)
{
    struct random random;
    random_seed(&random, seed ^ UINT64_C(0x6c61796f7574));
    int64_t drawn = p->model == MODEL_ZK_LIBRARY ? random_below(&random, 8) : 0;
    bool recipe = (p->lock == LOCK_MUTEX || p->lock == LOCK_ELECTION) && p->detach == 0;
    if (drawn > 5)
        p->zk_layout = drawn == 7 && recipe ? 2 : 1;
}

/* And so. */
static void draw_inquiries(struct profile *p, uint64_t seed)
{
    struct random random;
    random_seed(&random, seed ^ UINT64_C(0x77686f));
    bool forgets = p->redis_amnesia + p->pg_lag_us > 0;
    if ((p->lock == LOCK_ELECTION || p->lock == LOCK_MIXED) && !forgets &&
        random_below(&random, 3) == 0)
        p->inquire = profile_scale(&random, 10000);
}

/* And so. Detached tickets are broken by an operator of their own, which knows which. */
static void draw_ambush(struct profile *p, uint64_t seed)
{
    struct random random;
    random_seed(&random, seed ^ UINT64_C(0x616d62757368));
    bool can = p->model == MODEL_ZK_LIBRARY && p->clients > 2 && p->detach == 0;
    if (can && random_below(&random, 4) == 0)
        p->zk_ambush = random_between(&random, 500, 5000);
}

/* And so. Apache's servers have no such sync. A try and an observer, which believe one, would find
   a holder who is gone; and names without identities hide what a lost create has made. */
static void draw_sync(struct profile *p, uint64_t seed)
{
    struct random random;
    random_seed(&random, seed ^ UINT64_C(0x73796e63));
    bool can = p->model == MODEL_ZK_LIBRARY && p->zk_layout != 2 && p->try == 0 &&
               p->lock != LOCK_ELECTION && p->lock != LOCK_MIXED;
    if (can && random_below(&random, 4) == 0)
        p->zk_sync_early = random_between(&random, 2000, 9000);
}

/* And so. */
static void draw_old(struct profile *p, uint64_t seed)
{
    struct random random;
    random_seed(&random, seed ^ UINT64_C(0x6f6c64));
    if (p->model != MODEL_LEASE || random_below(&random, 6) > 0)
        return;
    p->old_answers = profile_scale(&random, 5000);
    if (random_below(&random, 2))
        p->refuse_for_good = profile_scale(&random, 1000); /* refusals of renewals come late, too */
}

/* A wiped store grants immediately, although clients trust their former grants. */
static void draw_trusted(struct profile *p, uint64_t seed)
{
    struct random random;
    random_seed(&random, seed ^ UINT64_C(0x62656c69656665));
    p->trusted =
        has_lease(p) && p->redis_amnesia + p->pg_lag_us == 0 && random_below(&random, 3) == 0;
    if (p->model == MODEL_AGENT)
        p->trusted = 0;
}

static int64_t any_sequence(struct random *random)
{
    switch (random_below(random, 4)) {
    case 0:
        return 0;
    case 1: /* about to become negative */
        return INT32_MAX - random_below(random, 40);
    case 2: /* about to become positive again, and shorter */
        return -random_below(random, 40);
    default:
        return random_between(random, INT32_MIN, INT32_MAX);
    }
}

/* The longest tick that the store covers without being told of it, by any clock: see
   zookeeper_lease.c. */
static int64_t longest_tick(const struct profile *p)
{
    int64_t by_clocks = p->lease_us * 1000000 / (1000000 + p->drift_ppm) / 1000 * 1000;
    return p->lease_us < 6000000 ? by_clocks : by_clocks / 2;
}

static void draw_ensemble(struct profile *p, struct random *random)
{
    p->zk_servers = random_below(random, 4) ? 3 : 1;
    p->zk_tick_us = longest_tick(p) / random_between(random, 1, 10);
    p->zk_lag_us = profile_maybe(random, p->lease_us / 8);
    p->zk_behind_us = profile_maybe(random, p->lease_us / 2);
    p->zk_sequence = any_sequence(random);
    p->zk_trouble_every_us = profile_maybe_every(random, 2, p->lease_us * 2);
    p->zk_trouble_us = profile_scale(random, p->lease_us * 2);
    p->zk_outsider_every_us = profile_maybe_every(random, 4, p->lease_us);
    p->zk_visit_us = profile_scale(random, p->lease_us);
    p->zk_impostor = random_below(random, 4) ? 0 : profile_maybe(random, 3000);
    p->zk_reap_us = random_between(random, p->lease_us / 50, p->lease_us * 2);
}

void profile_no_port_faults(struct profile *p)
{
    int64_t *const others[] = {
        &p->synchronous,   &p->reorder,           &p->lose_command, &p->lose_reply,
        &p->early_unknown, &p->late_answer,       &p->refuse,       &p->refuse_for_good,
        &p->wake_lost,     &p->wake_double,       &p->wake_late_us, &p->stray_wake,
        &p->kill_every_us, &p->reboot_every_us,   &p->busy,         &p->push,
        &p->proof_lag_us,  &p->follower_every_us, &p->reap_us,      &p->notices_refused};
    zero(others, sizeof others / sizeof others[0]);
}

static void draw_zookeeper(struct profile *p, struct random *random)
{
    profile_no_port_faults(p);
    p->capacity = 1;
    p->fence_span = 1 << 12;
    p->recheck_us = 5000000;
    p->lease_us = p->lease_us / 1000 * 1000;
    if (random_below(random, 4) == 0)
        p->lease_us = random_between(random, 6000, 9000) * 1000;
    p->delay_us = profile_scale(random, p->lease_us / (random_below(random, 4) ? 50 : 4));
    p->unknown_us = p->lease_us;
    draw_ensemble(p, random);
}

/* Connections are reset all the time, and followers are behind. */
static void make_lossy(struct profile *p, struct random *random)
{
    p->zk_servers = 3;
    p->delay_us = p->lease_us / 100;
    p->zk_lag_us = p->lease_us / 200;
    p->zk_behind_us = random_between(random, p->lease_us / 20, p->lease_us / 2);
    p->cut_every_us = random_between(random, p->lease_us / 20, p->lease_us / 2);
    p->cut_us = p->lease_us / 100;
    p->zk_impostor = random_below(random, 2) ? 0 : random_between(random, 500, 5000);
    p->try = random_below(random, 2) ? 0 : random_between(random, 1000, 9000);
    p->cancel = random_below(random, 2) ? 0 : random_between(random, 1000, 8000);
    p->wait_us = p->lease_us / 20;
    p->think_us = p->hold_us = p->lease_us / 40;
    p->clients = random_between(random, 2, 4);
    p->queues = 1;
    if (random_below(random, 3) > 0)
        return;
    /* Tries that race each other, and are undone while the connection breaks. */
    p->clients = 4;
    p->try = 10000;
    p->nest = p->zk_impostor = p->crash_every_us = p->zk_trouble_every_us = 0;
    p->think_us = p->hold_us = p->lease_us / 200;
    p->operations = 40;
}

/* Locks are held for longer than a session lives that its server cannot speak for. */
static void make_possessive(struct profile *p, struct random *random)
{
    p->hold_us = p->lease_us * 3;
    p->think_us = p->lease_us / 50;
    p->delay_us = p->lease_us / 100;
    p->zk_servers = 3;
    p->clients = random_between(random, 2, 4);
    p->cut_us = p->lease_us * 3;
    p->cut_every_us = random_below(random, 2) ? p->lease_us * 6 / 10 : p->lease_us * 8;
    p->zk_trouble_us = random_between(random, 1, p->lease_us * 4);
    p->zk_trouble_every_us = p->lease_us * random_between(random, 3, 30) / 10;
    if (!p->drift_ppm)
        p->zk_tick_us = longest_tick(p);
    p->crash_every_us = p->try = p->timed = p->cancel = p->zk_outsider_every_us = 0;
}

/* Nothing happens but that nodes are taken away from holders. */
static void make_usurped(struct profile *p)
{
    p->hold_us = 12000000;
    p->clients = p->clients < 2 ? 2 : p->clients;
    p->break_every_us = p->lease_us * 3;
}

void profile_make_calm(struct profile *p)
{
    int64_t *const faults[] = {
        &p->zk_trouble_every_us, &p->zk_outsider_every_us, &p->zk_impostor,    &p->break_every_us,
        &p->cut_every_us,        &p->pause_every_us,       &p->crash_every_us, &p->timer_late_us};
    zero(faults, sizeof faults / sizeof faults[0]);
    p->delay_us = p->delay_us % 2000 + 1;
    p->zk_lag_us %= 2000;
    p->zk_behind_us %= 2000;
    p->clients = p->clients < 2 ? 2 : p->clients;
}

/* Each client knows one server. It may stand still so long that clients leave it and return, twice,
 * and the rest of the lease may still suffice. */
static void make_pinned(struct profile *p, struct random *random)
{
    p->zk_alone = 1;
    p->lease_us = random_between(random, 6000, 9000) * 1000;
    p->zk_tick_us = longest_tick(p) / random_between(random, 1, 10);
    p->zk_still_us = p->lease_us * 42 / 100;
    p->zk_still_every_us = random_between(random, 1000, p->lease_us);
    p->hold_us = p->lease_us * 4;
}

/* Nothing is wrong but that one of three servers stands still, from the beginning, or while it
   has sessions. */
static void make_unanswering(struct profile *p, struct random *random)
{
    profile_make_calm(p);
    p->zk_servers = 3;
    p->zk_still_us = random_between(random, p->lease_us / 4, p->lease_us * 3);
    p->zk_still_every_us = random_between(random, 1000, p->lease_us);
    if (p->model != MODEL_ZK_LIBRARY) /* the fake of the port stays with its server */
        p->zk_still_every_us = 0;
    p->delay_us = random_between(random, 1, p->lease_us / 400);
    p->zk_lag_us = random_below(random, p->lease_us / 400);
    p->zk_behind_us = random_below(random, p->lease_us / 400);
    p->drift_ppm %= 20000;
    p->hold_us = profile_scale(random, p->lease_us * 2);
    p->think_us = profile_scale(random, p->lease_us / 4);
    p->close_every_us = p->timed = p->try = 0;
    if (p->model == MODEL_ZK_LIBRARY && random_below(random, 3) == 0)
        make_pinned(p, random);
}

/* Followers are cut off with signs of life that the leader has not heard of, as old as may be; and
   clients have nowhere to go. */
static void make_alone(struct profile *p, struct random *random)
{
    make_possessive(p, random);
    profile_make_calm(p);
    p->zk_alone = 1;
    p->drift_ppm = 0;
    p->zk_tick_us = longest_tick(p);
    p->zk_trouble_us = p->lease_us * 3;
    p->zk_trouble_every_us = p->lease_us * random_between(random, 20, 30) / 10;
    p->zk_lag_us = p->zk_behind_us = 0;
    p->delay_us = 1000;
    p->clients = random_between(random, 3, 4);
    p->operations = random_between(random, 10, 24);
    p->queues = 1;
}

static void shape_zookeeper(struct profile *p, struct random *random)
{
    switch (random_below(random, 16)) {
    case 0:
    case 1:
        profile_make_calm(p);
        break;
    case 2:
        profile_make_calm(p);
        make_usurped(p);
        break;
    case 3:
    case 4:
        make_lossy(p, random);
        break;
    case 5:
    case 6:
        make_possessive(p, random);
        break;
    case 7:
    case 8:
        make_unanswering(p, random);
        break;
    case 9:
    case 10:
        make_alone(p, random);
        break;
    default:
        break;
    }
}

static void shape_plain(struct profile *p, struct random *random)
{
    int64_t shape = p->model == MODEL_LEASE ? random_below(random, 12) : 2;
    if (shape == 0)
        make_forgetful(p, random);
    else if (shape == 1)
        make_drifting(p, random);
    else if (random_below(random, 6) == 0)
        make_quiet(p, random);
}

void profile_draw(struct profile *profile, uint64_t seed, int model, enum world_kind kind)
{
    struct random random;
    bool mixed = kind == WORLD_MIXED;
    random_seed(&random, seed ^ UINT64_C(0x70726f66696c65));
    memset(profile, 0, sizeof *profile);
    draw_sizes(profile, &random, model);
    draw_actors(profile, &random);
    draw_link(profile, &random);
    draw_disasters(profile, &random);
    if (is_zookeeper(profile)) {
        draw_zookeeper(profile, &random);
        shape_zookeeper(profile, &random);
    } else if (is_redis(profile)) {
        profile_draw_redis(profile, &random);
    } else if (profile->model == MODEL_QUORUM) {
        profile_draw_quorum(profile, &random);
    } else if (profile->model == MODEL_POSTGRES) {
        profile_draw_postgres(profile, &random);
    } else if (profile->model == MODEL_ETCD) {
        profile_draw_etcd(profile, &random);
    } else if (profile->model == MODEL_AGENT) {
        profile_draw_agent(profile, &random);
    } else {
        shape_plain(profile, &random);
    }
    if (mixed)
        profile_draw_mixed(profile, seed);
    else
        draw_lock(profile, seed);
    if (profile->model != MODEL_ZOOKEEPER) /* whose fake of the port knows no requests */
        draw_requests(profile, seed);
    draw_delay(profile, seed);
    draw_detach(profile, seed);
    draw_layout(profile, seed);
    draw_inquiries(profile, seed);
    draw_ambush(profile, seed);
    draw_sync(profile, seed);
    draw_old(profile, seed);
    draw_trusted(profile, seed);
    profile_draw_pooler(profile, seed);
    if (kind == WORLD_LONE)
        profile_make_lone(profile, seed);
    if (!mixed)
        return;
    profile_draw_linger(profile, seed);
    profile_draw_several(profile, seed);
}

void profile_heal(struct profile *p)
{
    int64_t *const faults[] = {&p->reorder,
                               &p->lose_command,
                               &p->lose_reply,
                               &p->early_unknown,
                               &p->refuse,
                               &p->refuse_for_good,
                               &p->wake_lost,
                               &p->wake_double,
                               &p->wake_late_us,
                               &p->stray_wake,
                               &p->cut_every_us,
                               &p->crash_every_us,
                               &p->pause_every_us,
                               &p->close_every_us,
                               &p->kill_every_us,
                               &p->reboot_every_us,
                               &p->busy,
                               &p->misuse,
                               &p->cancel,
                               &p->timed,
                               &p->try,
                               &p->detach,
                               &p->pg_conflict,
                               &p->pg_full,
                               &p->pg_notify_late_us,
                               &p->pg_split,
                               &p->etcd_watch_late_us,
                               &p->etcd_error,
                               &p->agent_crash_every_us,
                               &p->agent_pause_every_us,
                               &p->agent_cut_every_us,
                               &p->agent_signal_every_us,
                               &p->old_answers};
    zero(faults, sizeof faults / sizeof faults[0]);
    /* A lease can be kept only if a round trip takes less than a third of it. */
    if (p->lease_us > 0 && p->delay_us > p->lease_us / 20)
        p->delay_us = p->lease_us / 20;
    if (p->zk_lag_us > p->lease_us / 40)
        p->zk_lag_us = p->lease_us / 40;
    if (p->zk_behind_us > p->lease_us / 40)
        p->zk_behind_us = p->lease_us / 40;
}

bool profile_set(struct profile *profile, const char *text)
{
    const char *equals = strchr(text, '=');
    if (!equals)
        return false;
    char *end;
    errno = 0;
    long long value = strtoll(equals + 1, &end, 10);
    if (errno || *end || end == equals + 1)
        return false;
    for (int i = 0; i < profile_field_count; i++)
        if (strlen(profile_fields[i].name) == (size_t)(equals - text) &&
            strncmp(profile_fields[i].name, text, (size_t)(equals - text)) == 0) {
            *profile_value(profile, i) = value;
            return true;
        }
    return false;
}

void profile_print(const struct profile *profile, FILE *file)
{
    struct profile copy = *profile;
    for (int i = 0; i < profile_field_count; i++)
        fprintf(file, "  %-16s %10lld  %s\n", profile_fields[i].name,
                (long long)*profile_value(&copy, i), profile_fields[i].text);
}
