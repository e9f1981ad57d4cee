/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in which the locks are of several kinds, as the simulator's other runs never are: each
 * client's one engine, and its one session, serve them all at once. No two locks that follow each
 * other are of one kind, and every pair of kinds that the store keeps is had. Some runs have
 * semaphore mutexes alone instead. In most of all these, mutexes are kept for a while by clients
 * that do not want them any more.
 */
#include "profile_draw.h"

/* First those that are kept as claims or tickets of weight 1; sqlite's model has no elections. */
static const int64_t kinds[] = {LOCK_MUTEX,     LOCK_SEMAPHORE_MUTEX, LOCK_EXCLUSIVE,
                                LOCK_SEMAPHORE, LOCK_READ_WRITE,      LOCK_ELECTION};
enum { KINDS = sizeof kinds / sizeof kinds[0], KINDS_OF_ONE = 3 };

static int64_t kinds_of(int64_t model)
{
    if (model == MODEL_ZOOKEEPER || model == MODEL_REDLOCK || model == MODEL_QUORUM)
        return KINDS_OF_ONE;
    return model == MODEL_SQLITE ? KINDS - 1 : KINDS;
}

int64_t profile_lock(const struct profile *profile, uint64_t seed, int queue)
{
    struct random random;
    int64_t count = kinds_of(profile->model);
    if (profile->lock != LOCK_MIXED)
        return profile->lock;
    random_seed(&random, seed ^ UINT64_C(0x6b696e6473));
    int64_t first = random_below(&random, count);
    int64_t step = random_between(&random, 1, count - 1);
    return kinds[(first + queue * step) % count];
}

void profile_draw_mixed(struct profile *p, uint64_t seed)
{
    struct random random;
    bool zookeeper = p->model == MODEL_ZOOKEEPER || p->model == MODEL_ZK_LIBRARY;
    bool cells = p->model != MODEL_ZOOKEEPER && p->model != MODEL_SQLITE;
    random_seed(&random, seed ^ UINT64_C(0x6d69786564));
    p->zk_wake_all = zookeeper && random_below(&random, 8) == 0;
    p->zk_gap_us = zookeeper ? profile_maybe(&random, 2000) : 0;
    p->cells = !cells || random_below(&random, 3) ? 0 : random_between(&random, 4, 40);
    p->lock = random_below(&random, 4) ? LOCK_MIXED : LOCK_SEMAPHORE_MUTEX;
    p->capacity = 1;
    if (p->lock != LOCK_MIXED)
        return;
    p->queues = random_between(&random, 2, 4);
    if (kinds_of(p->model) > KINDS_OF_ONE) /* semaphores are among them */
        p->capacity = random_between(&random, 2, 4);
}

/* Locks that are soon wanted again, here or elsewhere. Neither faults nor detached tickets hide how
 * soon a lock must be released. */
static void make_undisturbed(struct profile *p, struct random *random)
{
    profile_make_untroubled(p, random);
    p->reboot_every_us = p->detach = p->pg_conflict = p->pg_full = p->pg_notify_late_us = 0;
    p->pg_split = 0;
    p->etcd_watch_late_us = p->etcd_error = 0;
    p->clients = random_between(random, 2, 3);
    p->actors = random_between(random, 1, 3);
    p->operations = random_between(random, 20, 40);
}

void profile_draw_linger(struct profile *p, uint64_t seed)
{
    struct random random;
    int64_t unit = p->lease_us > 0 ? p->lease_us : 1000000;
    random_seed(&random, seed ^ UINT64_C(0x6c696e676572));
    if (random_below(&random, 4) == 0)
        return;
    bool scaled = random_below(&random, 2);
    p->linger_us = profile_scale(&random, scaled ? unit : 4 * p->think_us);
    if (random_below(&random, 3) == 0)
        make_undisturbed(p, &random);
}

void profile_draw_several(struct profile *p, uint64_t seed)
{
    struct random random;
    random_seed(&random, seed ^ UINT64_C(0x7365766572616c));
    if (p->lock == LOCK_MIXED && random_below(&random, 2))
        p->several = profile_scale(&random, 6000);
}
