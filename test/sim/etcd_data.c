/* SPDX-License-Identifier: Apache-2.0 */
/* Keys, their history since the last compaction, and leases: etcd_server.h. */
#include "etcd_server.h"

#include <stdlib.h>
#include <string.h>

static void *checked(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

static void *grown(void *list, int count, int *room, size_t size)
{
    if (count < *room)
        return list;
    *room = *room ? 2 * *room : 16;
    return checked(realloc(list, (size_t)*room * size));
}

/* ------------------------------------------------------------------ keys */

bool etcd_is_in(const char *key, const char *from, const char *end)
{
    return end ? strcmp(key, from) >= 0 && strcmp(key, end) < 0 : strcmp(key, from) == 0;
}

struct etcd_kv *etcd_find(const struct etcd_cluster *cluster, const char *key)
{
    for (int i = 0; i < cluster->kv_count; i++)
        if (strcmp(cluster->kvs[i].key, key) == 0)
            return &cluster->kvs[i];
    return NULL;
}

char *etcd_decode(const char *value, size_t *size)
{
    struct json_object *object = checked(json_object_new_object());
    json_object_object_add(object, "value", json_object_new_string(value));
    char *bytes = mrt_rest_bytes(object, "value", size);
    json_object_put(object);
    return bytes;
}

static void forget_ticket(struct etcd_kv *kv)
{
    if (kv->ticket)
        free(kv->ticket->bytes);
    free(kv->ticket);
    kv->ticket = NULL;
}

/* Its value, as the store reads it. */
static void read_ticket(struct etcd_kv *kv)
{
    size_t size = 0;
    struct etcd_ticket *ticket = checked(calloc(1, sizeof *ticket));
    forget_ticket(kv);
    kv->ticket = ticket;
    ticket->bytes = checked(etcd_decode(kv->value, &size));
    if (!mrt_etcd_ticket_parse(ticket->bytes, size, &ticket->ticket))
        forget_ticket(kv);
}

static void free_kv(struct etcd_kv *kv)
{
    forget_ticket(kv);
    free(kv->key);
    free(kv->value);
}

static void note(struct etcd_cluster *cluster, const struct etcd_kv *kv, bool gone)
{
    cluster->history = grown(cluster->history, cluster->change_count, &cluster->change_room,
                             sizeof *cluster->history);
    struct etcd_change *change = &cluster->history[cluster->change_count++];
    *change = (struct etcd_change){.revision = cluster->revision + 1, .gone = gone, .kv = *kv};
    change->kv.key = checked(strdup(kv->key));
    change->kv.value = checked(strdup(kv->value));
    change->kv.ticket = NULL;
    cluster->changed = true;
}

void etcd_put(struct etcd_cluster *cluster, const char *key, const char *value, int64_t lease)
{
    struct etcd_kv *kv = etcd_find(cluster, key);
    int64_t revision = cluster->revision + 1;
    if (!kv) {
        cluster->kvs =
            grown(cluster->kvs, cluster->kv_count, &cluster->kv_room, sizeof *cluster->kvs);
        kv = &cluster->kvs[cluster->kv_count++];
        *kv = (struct etcd_kv){.key = checked(strdup(key)), .created = revision};
    }
    free(kv->value);
    kv->value = checked(strdup(value));
    kv->modified = revision;
    kv->version++;
    kv->lease = lease;
    read_ticket(kv);
    note(cluster, kv, false);
}

static void delete_at(struct etcd_cluster *cluster, int i)
{
    struct etcd_kv *kv = &cluster->kvs[i];
    note(cluster, kv, true);
    free_kv(kv);
    *kv = cluster->kvs[--cluster->kv_count];
}

void etcd_delete(struct etcd_cluster *cluster, const char *from, const char *end)
{
    for (int i = cluster->kv_count - 1; i >= 0; i--)
        if (etcd_is_in(cluster->kvs[i].key, from, end))
            delete_at(cluster, i);
}

void etcd_commit(struct etcd_cluster *cluster)
{
    if (!cluster->changed)
        return;
    cluster->changed = false;
    cluster->revision++;
    cluster->world->server_changed = true;
    etcd_notify(cluster);
}

void etcd_compact(struct etcd_cluster *cluster, int64_t revision)
{
    int kept = 0;
    for (int i = 0; i < cluster->change_count; i++)
        if (cluster->history[i].revision > revision)
            cluster->history[kept++] = cluster->history[i];
        else
            free_kv(&cluster->history[i].kv);
    cluster->change_count = kept;
    cluster->compacted = revision;
}

/* ------------------------------------------------------------------ leases */

struct etcd_lease *etcd_lease_find(const struct etcd_cluster *cluster, int64_t id)
{
    struct etcd_lease *lease = cluster->leases;
    while (lease && lease->id != id)
        lease = lease->next;
    return lease;
}

/* The leader looks after leases now and then; without one they do not end. */
static void reap(struct world *world, struct task *task)
{
    struct etcd_lease *lease = (struct etcd_lease *)task;
    if (!etcd_has_leader(lease->cluster))
        world_at(world, task, etcd_next_chance(lease->cluster), reap);
    else if (lease->ends > world->now)
        world_at(world, task, lease->ends + world_some(world, world->drawn.reap_us), reap);
    else
        etcd_lease_revoke(lease);
}

void etcd_lease_renew(struct etcd_lease *lease)
{
    struct world *world = lease->cluster->world;
    lease->ends = world->now + lease->ttl * MRT_SECOND;
    if (!lease->reap.timer.armed)
        world_at(world, &lease->reap, lease->ends + world_some(world, world->drawn.reap_us), reap);
}

struct etcd_lease *etcd_lease_grant(struct etcd_cluster *cluster, int64_t id, int64_t ttl,
                                    struct peer *peer)
{
    struct etcd_lease *lease = checked(calloc(1, sizeof *lease));
    lease->cluster = cluster;
    lease->id = id;
    lease->ttl = ttl;
    lease->peer = peer;
    lease->granted = cluster->world->now;
    lease->next = cluster->leases;
    cluster->leases = lease;
    etcd_lease_renew(lease);
    return lease;
}

static void free_lease(struct etcd_lease *lease)
{
    struct etcd_lease **link = &lease->cluster->leases;
    while (*link != lease)
        link = &(*link)->next;
    *link = lease->next;
    world_cancel(lease->cluster->world, &lease->reap);
    free(lease);
}

/* Its keys go with it, in one transaction. */
void etcd_lease_revoke(struct etcd_lease *lease)
{
    struct etcd_cluster *cluster = lease->cluster;
    for (int i = cluster->kv_count - 1; i >= 0; i--)
        if (cluster->kvs[i].lease == lease->id)
            delete_at(cluster, i);
    free_lease(lease);
    etcd_commit(cluster);
}

void etcd_data_free(struct etcd_cluster *cluster)
{
    while (cluster->leases)
        free_lease(cluster->leases);
    etcd_compact(cluster, INT64_MAX);
    for (int i = 0; i < cluster->kv_count; i++)
        free_kv(&cluster->kvs[i]);
    free(cluster->kvs);
    free(cluster->history);
}
