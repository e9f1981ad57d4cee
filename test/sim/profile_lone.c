/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worlds in which nothing goes wrong but one thing, or two in succession: few threads want one lock
 * a few times, so any moment of its life may be the one in which it comes. The following worlds
 * have bounds in round trips (lone.c), where worlds full of faults have none.
 */
#include "profile_draw.h"

#include <stddef.h>

enum {
    IS_LEASE = 1,
    IS_MEMORY = 2,
    IS_SQLITE = 4,
    IS_ZOOKEEPER = 8,
    IS_REDIS = 16,
    IS_QUORUM = 32,
    IS_POSTGRES = 64,
    IS_SESSIONS = 128,
    IS_ETCD = 256,
    BEHIND_PORT = IS_LEASE | IS_MEMORY | IS_SQLITE,
    BEHIND_STREAMS = IS_REDIS | IS_QUORUM | IS_POSTGRES | IS_ETCD,
    ALL = BEHIND_PORT | BEHIND_STREAMS | IS_ZOOKEEPER | IS_SESSIONS
};

static const unsigned stores[MODEL_COUNT] = {
    [MODEL_LEASE] = IS_LEASE,          [MODEL_KERNEL] = IS_MEMORY,
    [MODEL_SQLITE] = IS_SQLITE,        [MODEL_ZOOKEEPER] = IS_ZOOKEEPER,
    [MODEL_ZK_LIBRARY] = IS_ZOOKEEPER, [MODEL_REDIS] = IS_REDIS,
    [MODEL_REDLOCK] = IS_QUORUM,       [MODEL_QUORUM] = IS_SESSIONS,
    [MODEL_POSTGRES] = IS_POSTGRES,    [MODEL_ETCD] = IS_ETCD};

/* The stores that have such a fault. */
static const unsigned where[] = {
    [FAULT_COMMAND_LOST] = BEHIND_PORT,
    [FAULT_REPLY_LOST] = BEHIND_PORT,
    [FAULT_GIVEN_UP] = BEHIND_PORT,
    [FAULT_REFUSED] = BEHIND_PORT | BEHIND_STREAMS,
    [FAULT_WAKE_LOST] = BEHIND_PORT,
    [FAULT_CUT] = IS_LEASE | IS_ZOOKEEPER | BEHIND_STREAMS | IS_SESSIONS,
    [FAULT_CRASH] = ALL,
    [FAULT_PAUSE] = ALL,
    [FAULT_CLOSE] = ALL,
    [FAULT_KILL] = IS_MEMORY | IS_SQLITE | BEHIND_STREAMS,
    [FAULT_BREAK] =
        ALL & ~(unsigned)(IS_QUORUM | IS_SESSIONS | IS_POSTGRES), /* whose fake waits for no lock */
    [FAULT_STILL] = BEHIND_STREAMS,
    [FAULT_DOWN] = BEHIND_STREAMS,
    [FAULT_SCRIPTS] = IS_REDIS | IS_QUORUM,
    [FAULT_STREAM] = BEHIND_STREAMS,
    [FAULT_PROMOTION] = IS_POSTGRES | IS_ETCD,
};
enum { FAULTS = sizeof where / sizeof where[0] };

static int64_t draw_fault(const struct profile *p, struct random *random)
{
    int64_t fault;
    do
        fault = random_between(random, FAULT_COMMAND_LOST, FAULTS - 1);
    while (!(where[fault] & stores[p->model]));
    return fault;
}

/* Events that befall other worlds by themselves. */
static void make_faultless(struct profile *p)
{
    int64_t *const faults[] = {&p->reorder,
                               &p->wake_double,
                               &p->stray_wake,
                               &p->reboot_every_us,
                               &p->notices_refused,
                               &p->lock_delay_us,
                               &p->linger_us,
                               &p->detach,
                               &p->zk_still_every_us,
                               &p->clock_back_us,
                               &p->redis_amnesia,
                               &p->redis_uptime_us,
                               &p->redis_replicas,
                               &p->late,
                               &p->pg_conflict,
                               &p->pg_full,
                               &p->pg_notify_late_us,
                               &p->pg_split,
                               &p->pg_pooled,
                               &p->etcd_watch_late_us,
                               &p->etcd_error,
                               &p->revoke_every_us,
                               &p->listen,
                               &p->misuse,
                               &p->several,
                               &p->zk_ambush,
                               &p->redis_copyless,
                               &p->trouble_every_us,
                               &p->kill_every_us,
                               &p->zk_alone,
                               &p->timed,
                               &p->cancel,
                               &p->try,
                               &p->cells,
                               &p->hold_max_us,
                               &p->zk_sync_early,
                               &p->old_answers};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        *faults[i] = 0;
}

void profile_make_lone(struct profile *p, uint64_t seed)
{
    struct random random;
    random_seed(&random, seed ^ UINT64_C(0x6c6f6e65));
    if (stores[p->model] & BEHIND_STREAMS) /* which waits for any answer for a second */
        p->lease_us = random_between(&random, 3000, 8000) * 1000;
    int64_t unit = p->lease_us > 0 ? p->lease_us : 1000000;
    profile_make_untroubled(p, &random);
    make_faultless(p);
    p->clients = random_between(&random, 2, 3);
    p->actors = random_between(&random, 1, 4);
    p->queues = 1;
    p->operations = random_between(&random, 3, 8);
    p->delay_us = profile_scale(&random, unit / 400);
    p->zk_lag_us = p->zk_behind_us = p->zk_gap_us = 0;
    if (p->model == MODEL_ETCD)
        p->reap_us = 0;
    if (p->model == MODEL_POSTGRES)
        p->pg_work_us = profile_scale(&random, unit / 1000);
    p->hold_us = profile_scale(&random, unit);
    p->think_us = profile_scale(&random, unit / 4);
    if (random_below(&random, 2)) /* much of what is done is under way at the same time */
        p->hold_us = p->think_us = 4 * p->delay_us;
    p->restart_us = profile_scale(&random, unit);
    p->lone = draw_fault(p, &random);
    p->lone_next = random_below(&random, 2) ? draw_fault(p, &random) : 0;
    p->lone_after = random_between(&random, 1, 40);
    p->lone_within_us = random_below(&random, 2) ? 4 * p->delay_us : profile_scale(&random, unit);
    p->lone_us = profile_scale(&random, unit * 2);
    p->unknown_us = p->cut_us = p->pause_us = p->trouble_us = p->lone_us;
    if (p->lock != LOCK_SEMAPHORE)
        p->capacity = 1;
}
