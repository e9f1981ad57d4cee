/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which member answers when: etcd_server.h. A request that a majority has to confirm waits until
 * there is one with a leader; after a while the member says that it has taken too long, and the
 * request may still be done. Leases are the leader's alone: it renews them by itself, and a new
 * leader begins them all anew. A leader that was cut off or stood still renews on until it learns
 * of the other.
 */
#include "etcd_server.h"

#include <stdlib.h>

static struct world *world_of(const struct etcd_member *member)
{
    return member->cluster->world;
}

bool etcd_is_up(const struct etcd_member *member)
{
    return member->down_until <= world_of(member)->now;
}

static bool is_running(const struct etcd_member *member)
{
    return etcd_is_up(member) && member->frozen_until <= world_of(member)->now;
}

static bool believes_to_lead(const struct etcd_member *member)
{
    return member->cluster->leader != member->number &&
           member->believes_until > world_of(member)->now;
}

/* It takes part in what the majority decides. */
static bool takes_part(const struct etcd_member *member)
{
    return is_running(member) && member->isolated_until <= world_of(member)->now &&
           !believes_to_lead(member);
}

static bool has_majority(const struct etcd_cluster *cluster)
{
    int parts = 0;
    for (int i = 0; i < cluster->count; i++)
        parts += takes_part(&cluster->members[i]);
    return parts > cluster->count / 2;
}

bool etcd_has_leader(const struct etcd_cluster *cluster)
{
    return cluster->leader >= 0 && takes_part(&cluster->members[cluster->leader]) &&
           has_majority(cluster);
}

static mrt_time sooner(mrt_time at, mrt_time other, mrt_time now)
{
    return other > now && other < at ? other : at;
}

mrt_time etcd_next_chance(const struct etcd_cluster *cluster)
{
    mrt_time now = cluster->world->now, at = now + 100 * MRT_MILLISECOND;
    for (int i = 0; i < cluster->count; i++) {
        const struct etcd_member *member = &cluster->members[i];
        at = sooner(at, member->down_until, now);
        at = sooner(at, member->frozen_until, now);
        at = sooner(at, member->isolated_until, now);
        at = sooner(at, member->believes_until, now);
    }
    if (cluster->election.timer.armed)
        at = sooner(at, cluster->election.timer.at, now);
    return at + 1;
}

/* ------------------------------------------------------------------ leaders */

/* Until it learns that another leads: so long after it goes on, or is cut off. */
static void depose(struct etcd_member *member)
{
    struct world *world = world_of(member);
    mrt_time since = world->now;
    member->deposed = world->now;
    if (member->frozen_until > since)
        since = member->frozen_until;
    member->believes_until = etcd_is_up(member) && !takes_part(member)
                                 ? since + world_some(world, world->drawn.etcd_election_us)
                                 : 0;
}

void etcd_elect(struct etcd_cluster *cluster, int number)
{
    if (cluster->leader >= 0 && cluster->leader != number)
        depose(&cluster->members[cluster->leader]);
    cluster->leader = number;
    cluster->members[number].term = ++cluster->term;
    for (struct etcd_lease *lease = cluster->leases; lease; lease = lease->next)
        etcd_lease_renew(lease);
    trace_note(cluster->world, TRACE_LINK, -1, NO_QUEUE, "leads", number, cluster->term, 0);
}

static void elect_one(struct world *world, struct task *task)
{
    struct etcd_cluster *cluster =
        (struct etcd_cluster *)(void *)((char *)task - offsetof(struct etcd_cluster, election));
    int first = (int)random_below(&world->random, cluster->count);
    if (etcd_has_leader(cluster))
        return;
    for (int i = 0; i < cluster->count && has_majority(cluster); i++) {
        int number = (first + i) % cluster->count;
        if (!takes_part(&cluster->members[number]))
            continue;
        etcd_elect(cluster, number);
        etcd_notify(cluster);
        return;
    }
    etcd_reconsider(cluster); /* there is no majority yet */
}

void etcd_reconsider(struct etcd_cluster *cluster)
{
    struct world *world = cluster->world;
    if (!etcd_has_leader(cluster) && !cluster->election.timer.armed)
        world_at(world, &cluster->election,
                 world->now + MRT_MILLISECOND + world_some(world, world->drawn.etcd_election_us),
                 elect_one);
}

void etcd_hang_up_all(struct etcd_member *member)
{
    struct etcd_exchange *exchange = member->cluster->exchanges, *next;
    for (; exchange; exchange = next) {
        next = exchange->next;
        if (exchange->member == member->number && exchange->arrived)
            etcd_hang_up(exchange);
    }
    etcd_forget_member(member->cluster, member->number);
}

/* ------------------------------------------------------------------ serving */

/* A request that a majority has to confirm, and none does. */
static void wait_for_majority(struct etcd_exchange *exchange)
{
    struct world *world = exchange->client->world;
    mrt_time patience = world->drawn.lease_us * 7 / 10 * MRT_MICROSECOND;
    if (exchange->gives_up == 0) /* or it says nothing, until the client gives up */
        exchange->gives_up =
            random_below(&world->random, 2) ? world->now + patience : MRT_TIME_NEVER;
    bool changes = exchange->method != ETCD_RANGE && exchange->method != ETCD_KEEPALIVE;
    if (world->now >= exchange->gives_up && exchange->easy) {
        etcd_say_error(exchange, "etcdserver: request timed out");
        return;
    }
    if (!exchange->easy && (!changes || random_chance(&world->random, 2000))) {
        etcd_exchange_free(exchange); /* another leader's log does not have it */
        return;
    }
    mrt_time at = etcd_next_chance(exchange->cluster);
    if (exchange->easy && exchange->gives_up < at)
        at = exchange->gives_up;
    world_at(world, &exchange->task, at, etcd_serve);
}

void etcd_serve(struct world *world, struct task *task)
{
    struct etcd_exchange *exchange = (struct etcd_exchange *)task;
    struct etcd_member *member = &exchange->cluster->members[exchange->member];
    exchange->arrived = true;
    if (!etcd_is_up(member)) {
        etcd_hang_up(exchange);
    } else if (!is_running(member)) {
        world_at(world, task, member->frozen_until, etcd_serve);
    } else if (exchange->method == ETCD_WATCH) {
        etcd_execute(exchange);
    } else if (exchange->method == ETCD_KEEPALIVE && believes_to_lead(member)) {
        etcd_say_stale(exchange);
    } else if (!takes_part(member) || !etcd_has_leader(exchange->cluster)) {
        wait_for_majority(exchange);
    } else {
        member->term = exchange->cluster->term;
        etcd_execute(exchange);
    }
}
