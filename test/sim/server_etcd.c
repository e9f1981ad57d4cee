/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etcd as the servers of a world: etcd_server.h has the map. The real stores in the clients talk to
 * its members by the functions of libcurl; here are their troubles, what an operator does, and the
 * truth about who has a lock, which is read off the keys.
 *
 * In all of it every promise must hold: time runs at one rate for all members, whose clocks no
 * lease depends on otherwise.
 */
#include "etcd_server.h"
#include "server.h"
#include "store/etcd/internal.h"
#include "store/kit/cell.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FENCE_BITS 12
#define QUEUE_LENGTH_MAX 512

struct etcd_cluster *etcd_of(struct world *world)
{
    return world->server->state;
}

/* ------------------------------------------------------------------ troubles */

static struct etcd_member *any_member(struct etcd_cluster *cluster)
{
    bool leads = cluster->leader >= 0 && random_below(&cluster->world->random, 2);
    int number = (int)random_below(&cluster->world->random, cluster->count);
    return &cluster->members[leads ? cluster->leader : number];
}

/* It begins anew with what is on its disk, which is all that a majority has. */
static void restart(struct etcd_member *member, mrt_time until)
{
    member->down_until = until;
    member->frozen_until = member->isolated_until = member->believes_until = 0;
    if (member->cluster->leader == member->number)
        member->cluster->leader = -1;
    etcd_hang_up_all(member);
}

static void promote(struct etcd_cluster *cluster, int number)
{
    const struct etcd_member *member = &cluster->members[number];
    mrt_time now = cluster->world->now;
    bool fine = etcd_is_up(member) && member->frozen_until <= now && member->isolated_until <= now;
    if (etcd_has_leader(cluster) && fine && cluster->leader != number)
        etcd_elect(cluster, number);
}

static void befall(struct world *world, void *state, int kind, mrt_time until)
{
    static const char *const names[] = {
        [TROUBLE_STILL] = "stands still",       [TROUBLE_DOWN] = "breaks down",
        [TROUBLE_STREAM] = "a call is held up", [TROUBLE_PROMOTION] = "is to lead",
        [TROUBLE_COMPACTION] = "is compacted",  [TROUBLE_PARTITION] = "is cut off from the others"};
    struct etcd_cluster *cluster = state;
    struct etcd_member *member = any_member(cluster);
    trace_note(world, TRACE_LINK, -1, NO_QUEUE, names[kind], member->number,
               (until - world->now) / 1000, 0);
    world->server_changed = true;
    if (kind == TROUBLE_STILL && etcd_is_up(member))
        member->frozen_until = until;
    else if (kind == TROUBLE_DOWN)
        restart(member, until);
    else if (kind == TROUBLE_STREAM)
        etcd_hold_up(world, until);
    else if (kind == TROUBLE_PROMOTION)
        promote(cluster, (int)random_below(&world->random, cluster->count));
    else if (kind == TROUBLE_COMPACTION)
        etcd_compact(cluster, cluster->revision);
    else if (kind == TROUBLE_PARTITION && cluster->count > 1)
        member->isolated_until = until;
    etcd_reconsider(cluster);
}

static void trouble(struct world *world, struct task *task)
{
    static const int kinds[] = {TROUBLE_STILL,     TROUBLE_DOWN,       TROUBLE_STREAM,
                                TROUBLE_PROMOTION, TROUBLE_COMPACTION, TROUBLE_PARTITION};
    const struct profile *p = &world->profile;
    if (world->phase != PHASE_CHAOS)
        return;
    world_at(world, task, world->now + world_about(world, p->trouble_every_us), trouble);
    int kind = kinds[random_below(&world->random, sizeof kinds / sizeof kinds[0])];
    if (p->trouble_kind != TROUBLE_ANY)
        kind = (int)p->trouble_kind;
    befall(world, task, kind, world->now + world_some(world, p->trouble_us));
}

/* ------------------------------------------------------------------ the truth */

static const struct etcd_kv *line[QUEUE_LENGTH_MAX]; /* of the queue that was looked at last */

static void directory_of(const struct world *world, int queue, char *from, char *end, size_t size)
{
    snprintf(from, size, "%s/", world->queues[queue].name);
    snprintf(end, size, "%s0", world->queues[queue].name); /* what comes after a slash */
}

/* Fills `line` with the tickets of a queue in their order; how many there are. */
static int line_up(const struct etcd_cluster *cluster, int queue)
{
    char from[32], end[32];
    int count = 0;
    directory_of(cluster->world, queue, from, end, sizeof from);
    for (int i = 0; i < cluster->kv_count; i++) {
        const struct etcd_kv *kv = &cluster->kvs[i];
        if (!kv->ticket || !etcd_is_in(kv->key, from, end))
            continue;
        int at = count++;
        if (count > QUEUE_LENGTH_MAX)
            abort();
        for (; at > 0 && line[at - 1]->created > kv->created; at--)
            line[at] = line[at - 1];
        line[at] = kv;
    }
    return count;
}

static void etcd_truth(struct world *world, void *state, int queue, const struct peer *asker,
                       struct truth *truth)
{
    const struct etcd_cluster *cluster = state;
    uint64_t ahead = 0, value;
    int count = line_up(cluster, queue);
    truth->span = UINT64_C(1) << FENCE_BITS;
    for (int i = 0; i < count; i++) {
        const struct etcd_kv *kv = line[i];
        uint64_t fence = (uint64_t)kv->created << FENCE_BITS;
        ahead += line[i]->ticket->ticket.weight;
        if (kv->lease == 0) {
            truth_add_nobodys(truth, fence);
            continue;
        }
        if (!truth->peer && line[i]->ticket->ticket.value_size == sizeof value)
            memcpy(&truth->value, line[i]->ticket->bytes, sizeof truth->value);
        truth_add(truth, asker, etcd_lease_find(cluster, kv->lease)->peer, fence,
                  line[i]->ticket->ticket.weight, ahead <= world->queues[queue].recipe.capacity);
    }
}

/* Tickets that no death explains. A request of an old connection may make a session after its end,
   in which nobody puts tickets, for as long as its lease. */
static int etcd_left(struct world *world, void *state)
{
    const struct etcd_cluster *cluster = state;
    const struct profile *p = &world->drawn;
    bool is_clean = p->cut_every_us + p->trouble_every_us + p->etcd_error + p->lone == 0;
    int left = 0;
    for (int i = 0; i < cluster->kv_count; i++) {
        const struct etcd_kv *kv = &cluster->kvs[i];
        const struct etcd_lease *lease = etcd_lease_find(cluster, kv->lease);
        bool is_session = strncmp(kv->key, ETCD_BASE "s/", strlen(ETCD_BASE "s/")) == 0;
        bool is_cell = strncmp(kv->key, ETCD_BASE "c/", strlen(ETCD_BASE "c/")) == 0;
        if (!lease)
            left += !is_cell;
        else if (!is_session || is_clean)
            left += lease->peer->closed;
    }
    return left;
}

static uint64_t etcd_cell(void *state)
{
    size_t size = 0;
    uint64_t value = 0;
    struct mrt_cell cell;
    const struct etcd_kv *kv = etcd_find(state, ETCD_BASE "c/cell");
    char *bytes = etcd_decode(kv ? kv->value : "", &size);
    if (bytes && mrt_cell_parse(bytes, size, &cell) && cell.there &&
        size - cell.value_offset == sizeof value)
        memcpy(&value, bytes + cell.value_offset, sizeof value);
    free(bytes);
    return value;
}

/* ------------------------------------------------------------------ an operator */

/* The ticket of this fence; NULL: there is none. */
static const struct etcd_kv *find_ticket(const struct etcd_cluster *cluster, int queue,
                                         uint64_t fence)
{
    int count = line_up(cluster, queue);
    for (int i = 0; i < count; i++)
        if ((uint64_t)line[i]->created << FENCE_BITS == fence)
            return line[i];
    return NULL;
}

static bool etcd_break(struct world *world, void *state, int queue, uint64_t fence)
{
    const struct etcd_kv *ticket = find_ticket(state, queue, fence);
    (void)world;
    if (!ticket)
        return false;
    char *key = strdup(ticket->key);
    etcd_delete(state, key, NULL);
    etcd_commit(state);
    free(key);
    return true;
}

/* Raises the number in a ticket's value. */
static void ask_back(struct etcd_cluster *cluster, const struct etcd_kv *kv)
{
    char bytes[2048], *key = strdup(kv->key);
    struct mrt_etcd_ticket ticket = kv->ticket->ticket;
    struct mrt_rest_text text = {0};
    ticket.revoked++;
    memcpy(bytes, kv->ticket->bytes, ticket.value_size);
    size_t size = ticket.value_size;
    size += mrt_etcd_ticket_format(&ticket, bytes + size);
    mrt_rest_add_bytes(&text, "", bytes, size);
    text.bytes[text.length - 1] = '\0'; /* the quotation mark behind it */
    etcd_put(cluster, key, text.bytes + strlen("\"\":\""), kv->lease);
    mrt_rest_text_free(&text);
    free(key);
}

/* All holders, or that of this fence. */
static bool etcd_ask_back(struct world *world, void *state, int queue, uint64_t fence)
{
    uint64_t ahead = 0;
    bool any = false;
    int count = line_up(state, queue);
    for (int i = 0; i < count; i++) {
        ahead += line[i]->ticket->ticket.weight;
        if (ahead > world->queues[queue].recipe.capacity)
            break;
        if (fence > 0 && (uint64_t)line[i]->created << FENCE_BITS != fence)
            continue;
        ask_back(state, line[i]);
        any = true;
    }
    etcd_commit(state);
    return any;
}

/* The tickets of a lease go, whose holders are told at their next renewal. */
static void note_broken(struct etcd_cluster *cluster, const struct etcd_lease *lease)
{
    for (int queue = 0; queue < cluster->world->drawn.queues; queue++) {
        int count = line_up(cluster, queue);
        for (int i = 0; i < count; i++)
            if (line[i]->lease == lease->id)
                check_broken(cluster->world, queue,
                             (struct span){(uint64_t)line[i]->created << FENCE_BITS,
                                           UINT64_C(1) << FENCE_BITS});
    }
}

/* He revokes the client's leases. */
static void etcd_kill(struct world *world, void *state, struct peer *peer)
{
    struct etcd_cluster *cluster = state;
    (void)world;
    for (struct etcd_lease *lease = cluster->leases, *next; lease; lease = next) {
        next = lease->next;
        if (lease->peer != peer)
            continue;
        note_broken(cluster, lease);
        etcd_lease_revoke(lease);
    }
}

/* ------------------------------------------------------------------ the model */

static void *etcd_new(struct world *world)
{
    struct etcd_cluster *cluster = calloc(1, sizeof *cluster);
    if (!cluster)
        abort();
    cluster->world = world;
    cluster->count = (int)world->drawn.etcd_members;
    cluster->term = cluster->revision = 1;
    for (int i = 0; i < cluster->count; i++)
        cluster->members[i] =
            (struct etcd_member){.cluster = cluster, .number = i, .term = cluster->term};
    if (world->drawn.trouble_every_us > 0)
        world_at(world, &cluster->trouble, world_about(world, world->drawn.trouble_every_us),
                 trouble);
    return cluster;
}

static void etcd_free(void *state)
{
    struct etcd_cluster *cluster = state;
    while (cluster->exchanges)
        etcd_exchange_free(cluster->exchanges);
    etcd_data_free(cluster);
    free(cluster);
}

const struct server_model etcd_model = {.is_steady = true,
                                        .new = etcd_new,
                                        .free = etcd_free,
                                        .kill = etcd_kill,
                                        .befall = befall,
                                        .break_ticket = etcd_break,
                                        .revoke = etcd_ask_back,
                                        .truth = etcd_truth,
                                        .left = etcd_left,
                                        .cell = etcd_cell};

/* ------------------------------------------------------------------ its clients' store */

/* Clients begin with different members. */
static void write_uri(const struct world *world, char *text, size_t size)
{
    const struct profile *p = &world->drawn;
    struct world *drawn = (struct world *)(uintptr_t)world;
    int64_t first = random_below(&drawn->random, p->etcd_members);
    int used = snprintf(text, size, "etcd://");
    for (int64_t i = 0; i < p->etcd_members; i++)
        used += snprintf(text + used, size - (size_t)used, "%s127.0.0.1:%d", i > 0 ? "," : "",
                         ETCD_FIRST_PORT + (int)((first + i) % p->etcd_members));
    snprintf(text + used, size - (size_t)used, "?lease=%lldms&connect=%lldms",
             (long long)(p->lease_us / 1000), (long long)host_connect_ms(p));
}

static void free_nothing(struct client *client)
{
    (void)client; /* all is the cluster's */
}

/* A command that can begin has begun: nothing may come for long that would make it. */
static void check(struct world *world, const struct client *client)
{
    const struct mrt_etcd_store *store = (struct mrt_etcd_store *)client->host->store;
    const struct mrt_etcd_queue *queue;
    TAILQ_FOREACH (queue, &store->active, link) {
        const struct mrt_job *job = TAILQ_FIRST(&queue->jobs);
        const struct mrt_etcd_session *session =
            job ? mrt_etcd_session_find(store, job->command.session) : NULL;
        if (job && !queue->busy && !(session && session->writing))
            check_fail(world, client->index, NO_QUEUE, "command %llu does not begin",
                       (unsigned long long)job->command.serial);
    }
}

const struct host_kind etcd_host_kind = {.ops = &mrt_etcd_store,
                                         .write_uri = write_uri,
                                         .cut = etcd_cut,
                                         .check = check,
                                         .free = free_nothing};
