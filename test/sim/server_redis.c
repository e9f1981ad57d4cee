/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redis as the servers of a world: one, or the five of a quorum. The real stores in the clients
 * talk to them by streams; here are their troubles, what an operator does, and the truth about
 * who has a lock, which is read off their keys.
 *
 * A server that was restarted without what it kept is not to be used, by those whose address says
 * `uptime`, before it has been up so long. Until then it cannot contradict anybody.
 */
#include "redis_server.h"
#include "server.h"
#include "store/redis/internal.h"
#include "store/redis/script.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define OUTSIDER "ffffffffffffffffffffffffffffffff"
#define NOBODY "00000000000000000000000000000000" /* whose what was detached is */

struct redis_world *redis_of(struct world *world)
{
    return world->server->state;
}

void redis_note_session(struct redis_server *server, struct slice name, struct peer *peer)
{
    struct redis_world *redis = server->redis;
    struct redis_session *session = redis->sessions;
    while (session && !slice_is(name, session->name))
        session = session->next;
    if (!session) {
        session = calloc(1, sizeof *session);
        if (!session)
            abort();
        snprintf(session->name, sizeof session->name, "%.*s", (int)name.size, name.bytes);
        session->next = redis->sessions;
        redis->sessions = session;
    }
    session->peer = peer;
}

static struct peer *peer_of(const struct redis_world *redis, const char name[32])
{
    const struct redis_session *session = redis->sessions;
    while (session && memcmp(session->name, name, 32) != 0)
        session = session->next;
    return session ? session->peer : NULL;
}

/* ------------------------------------------------------------------ troubles */

static void thaw(struct world *world, struct task *task)
{
    struct redis_server *server = (struct redis_server *)task;
    (void)world;
    redis_catch_up(server);
}

static void freeze(struct world *world, struct redis_server *server, mrt_time until)
{
    server->frozen_until = until;
    world_at(world, &server->thaw, until, thaw);
}

/* It begins anew with what is on its disk. */
static void restart(struct world *world, struct redis_server *server, mrt_time until)
{
    bool forgets = random_chance(&world->random, world->profile.redis_amnesia);
    redis_disconnect_all(server, random_below(&world->random, 2));
    world_cancel(world, &server->thaw);
    server->frozen_until = 0;
    server->down_until = until;
    server->started = redis_ms(server) + (until - world->now) / MRT_MILLISECOND;
    server->next_id = 0;
    memset(server->knows, 0, sizeof server->knows);
    if (forgets) {
        redis_delete_all(&server->data);
        server->forgot = server->started;
    }
    trace_note(world, TRACE_LINK, -1, NO_QUEUE, forgets ? "and forgets" : "and remembers",
               server->number, 0, 0);
}

static void set_clock(struct world *world, struct redis_server *server)
{
    const struct profile *p = &world->profile;
    mrt_time back = world_some(world, p->clock_back_us);
    mrt_time ahead = world_some(world, p->clock_step_us);
    server->step_ms += (ahead - back) / MRT_MILLISECOND;
}

static void befall_server(struct world *world, struct redis_server *server, int kind,
                          mrt_time until)
{
    static const char *const names[] = {
        [TROUBLE_STILL] = "stands still",          [TROUBLE_DOWN] = "breaks down",
        [TROUBLE_SCRIPTS] = "forgets its scripts", [TROUBLE_CLOCK] = "has its clock set",
        [TROUBLE_STREAM] = "a stream is held up",
    };
    trace_note(world, TRACE_LINK, -1, NO_QUEUE, names[kind], server->number,
               (until - world->now) / 1000, 0);
    world->server_changed = true;
    if (kind == TROUBLE_STILL && server->down_until <= world->now)
        freeze(world, server, until);
    else if (kind == TROUBLE_DOWN)
        restart(world, server, until);
    else if (kind == TROUBLE_SCRIPTS)
        memset(server->knows, 0, sizeof server->knows);
    else if (kind == TROUBLE_CLOCK)
        set_clock(world, server);
    else if (kind == TROUBLE_STREAM)
        streams_hold_up(world, until);
}

static struct redis_server *any_server(struct redis_world *redis)
{
    return &redis->servers[random_below(&redis->world->random, redis->count)];
}

static void befall(struct world *world, void *state, int kind, mrt_time until)
{
    befall_server(world, any_server(state), kind, until);
}

static void trouble(struct world *world, struct task *task)
{
    const struct profile *p = &world->profile;
    if (world->phase != PHASE_CHAOS)
        return;
    world_at(world, task, world->now + world_about(world, p->trouble_every_us), trouble);
    struct redis_server *server = any_server((struct redis_world *)task);
    int kind = (int)random_between(&world->random, TROUBLE_STILL, TROUBLE_STREAM);
    if (p->trouble_kind != TROUBLE_ANY)
        kind = (int)p->trouble_kind;
    befall_server(world, server, kind, world->now + world_some(world, p->trouble_us));
}

/* ------------------------------------------------------------------ the truth */

static bool is_guarded(const struct redis_server *server)
{
    const struct redis_world *redis = server->redis;
    int64_t guard = redis->world->drawn.redis_uptime_us / 1000;
    return guard > 0 && server->forgot > 0 && redis_ms(server) < server->forgot + guard;
}

/* A fault of the servers that may let two clients hold at the same time. */
static bool is_breached(const struct profile *p)
{
    return p->clock_step_us > 0 || (p->redis_amnesia > 0 && p->redis_uptime_us == 0);
}

static double score_of(struct redis_server *server, const char *key, struct slice member)
{
    const struct redis_key *set = redis_find(&server->data, slice_of(key), redis_ms(server));
    int index = redis_field(set, member);
    return index < 0 ? 0 : set->fields[index].score;
}

static bool is_alive(struct redis_server *server, struct slice session)
{
    return score_of(server, REDIS_BASE "sessions", session) > (double)redis_ms(server);
}

static void see_value(struct redis_server *server, struct slice entry, struct truth *truth)
{
    struct slice ticket = {entry.bytes, 32};
    const struct redis_key *values =
        redis_find(&server->data, slice_of(REDIS_BASE "values"), redis_ms(server));
    int index = redis_field(values, ticket);
    if (index >= 0 && values->fields[index].value.size == sizeof truth->value)
        memcpy(&truth->value, values->fields[index].value.bytes, sizeof truth->value);
}

/* An entry is ticket, session, weight, and when it came. */
static void see_queue(struct redis_server *server, int queue, const struct peer *asker,
                      struct truth *truth)
{
    const struct queue_state *state = &server->redis->world->queues[queue];
    char name[64];
    uint64_t ahead = 0;
    snprintf(name, sizeof name, REDIS_BASE "q:%s", state->name);
    const struct redis_key *set = redis_find(&server->data, slice_of(name), redis_ms(server));
    truth->span = UINT64_C(1) << MRT_REDIS_FENCE_BITS;
    for (int i = 0; set && i < set->count; i++) {
        struct slice entry = set->fields[i].name;
        uint64_t weight = strtoull(entry.bytes + 64, NULL, 10);
        if (memcmp(entry.bytes + 32, NOBODY, 32) == 0) {
            ahead += weight;
            truth_add_nobodys(truth, (uint64_t)set->fields[i].score << MRT_REDIS_FENCE_BITS);
            continue;
        }
        if (!is_alive(server, (struct slice){entry.bytes + 32, 32}))
            continue;
        if (!truth->peer)
            see_value(server, entry, truth);
        ahead += weight;
        truth_add(truth, asker, peer_of(server->redis, entry.bytes + 32),
                  (uint64_t)set->fields[i].score << MRT_REDIS_FENCE_BITS, weight,
                  ahead <= state->recipe.capacity);
    }
}

static struct redis_key *claim_of(struct redis_server *server, int queue)
{
    const struct queue_state *state = &server->redis->world->queues[queue];
    return redis_find(&server->data, slice_of(state->name), redis_ms(server));
}

static void see_claim(struct redis_server *server, int queue, const struct peer *asker,
                      struct truth *truth)
{
    const struct redis_key *key = claim_of(server, queue);
    if (!key)
        return;
    truth_add(truth, asker, (struct peer *)(uintptr_t)key->setter,
              key->first << MRT_REDIS_FENCE_BITS, 1, true);
    truth->span = (key->last - key->first + 1) << MRT_REDIS_FENCE_BITS;
}

/* The client that has the key at most of the servers. */
static void see_quorum(struct redis_world *redis, int queue, const struct peer *asker,
                       struct truth *truth)
{
    struct peer *holders[REDIS_SERVERS_MAX] = {NULL};
    int forgetful = 0;
    for (int i = 0; i < redis->count; i++) {
        const struct redis_key *key = claim_of(&redis->servers[i], queue);
        holders[i] = key ? (struct peer *)(uintptr_t)key->setter : NULL;
        forgetful += is_guarded(&redis->servers[i]);
    }
    truth->lawless = forgetful > 0 || is_breached(&redis->world->drawn);
    truth->span = UINT64_MAX;
    for (int i = 0; i < redis->count; i++) {
        int count = 0;
        for (int j = 0; j < redis->count; j++)
            count += holders[i] && holders[j] == holders[i];
        if (count > redis->count / 2) {
            truth_add(truth, asker, holders[i], 0, 1, true);
            return;
        }
    }
}

static void redis_truth(struct world *world, void *state, int queue, const struct peer *peer,
                        struct truth *truth)
{
    struct redis_world *redis = state;
    struct redis_server *server = &redis->servers[0];
    if (redis->count > 1) {
        see_quorum(redis, queue, peer, truth);
        return;
    }
    truth->lawless = is_guarded(server) || is_breached(&world->drawn);
    if (world->queues[queue].lock == LOCK_EXCLUSIVE)
        see_claim(server, queue, peer, truth);
    else
        see_queue(server, queue, peer, truth);
}

/* ------------------------------------------------------------------ what is left */

/* A session that proves its life buries the dead. */
static void sweep(struct redis_server *server)
{
    static const char *const start[] = {OUTSIDER, "1", "start", "1000", "outside", "", "key"};
    static const char *const stop[] = {OUTSIDER, "1", "0"};
    struct reply reply = {0};
    for (int i = 0; i < PEERS_MAX / 16; i++)
        redis_run(server, MRT_REDIS_SESSION, REDIS_BASE "sessions", start, 7, &reply);
    redis_run(server, MRT_REDIS_STOP, REDIS_BASE "sessions", stop, 3, &reply);
    free(reply.bytes);
}

/* Whether a key may stay for ever. */
static bool may_stay(const struct redis_key *key)
{
    bool newest_only = key->count == 1 && key->fields[0].name.size == 0;
    if (slice_is(key->name, REDIS_BASE "queues"))
        return newest_only;
    return slice_is(key->name, REDIS_BASE "fence") ||
           (key->name.size > 12 && memcmp(key->name.bytes, REDIS_BASE "k:", 12) == 0);
}

/* Where the clock was set back, leases that end too late are seen first, and over a lease later. */
static void clear(struct redis_server *server)
{
    const struct profile *p = &server->redis->world->drawn;
    sweep(server);
    if (p->clock_back_us == 0)
        return;
    server->step_ms += p->lease_us / 1000 + 1;
    sweep(server);
}

static int redis_left(struct world *world, void *state)
{
    struct redis_world *redis = state;
    int left = 0;
    (void)world;
    for (int i = 0; i < redis->count; i++) {
        struct redis_server *server = &redis->servers[i];
        int64_t now = redis_ms(server);
        clear(server);
        for (const struct redis_key *key = server->data.keys; key; key = key->next)
            left += !may_stay(key) && (key->ends == 0 || key->ends >= now);
    }
    return left;
}

static uint64_t redis_cell(void *state)
{
    struct redis_server *server = &((struct redis_world *)state)->servers[0];
    uint64_t value = 0;
    const struct redis_key *cell =
        redis_find(&server->data, slice_of(REDIS_BASE "k:cell"), redis_ms(server));
    int index = redis_field(cell, slice_of("value"));
    if (index >= 0 && cell->fields[index].value.size == sizeof value)
        memcpy(&value, cell->fields[index].value.bytes, sizeof value);
    return value;
}

/* ------------------------------------------------------------------ an operator */

static bool operate(struct redis_server *server, const char *what, int queue, uint64_t fence)
{
    char number[32];
    const struct world *world = server->redis->world;
    const char *name = world->queues[queue].name;
    const char *const arguments[] = {what, name, number, name};
    struct reply reply = {0};
    if (fence % (UINT64_C(1) << MRT_REDIS_FENCE_BITS) != 0)
        return false;
    snprintf(number, sizeof number, "%" PRIu64, fence >> MRT_REDIS_FENCE_BITS);
    redis_run(server, MRT_REDIS_OPERATE, REDIS_BASE "sessions", arguments, 4, &reply);
    reply_bytes(&reply, "", 1);
    bool done = strstr(reply.bytes, "DONE") != NULL;
    free(reply.bytes);
    return done;
}

/* A claim ends when another program deletes its key. */
static bool redis_break(struct world *world, void *state, int queue, uint64_t fence)
{
    struct redis_server *server = &((struct redis_world *)state)->servers[0];
    if (world->queues[queue].lock != LOCK_EXCLUSIVE)
        return operate(server, "break", queue, fence);
    struct redis_key *key = claim_of(server, queue);
    if (!key || key->first << MRT_REDIS_FENCE_BITS != fence)
        return false;
    redis_delete(&server->data, key);
    return true;
}

static bool redis_revoke(struct world *world, void *state, int queue, uint64_t fence)
{
    (void)world;
    return operate(&((struct redis_world *)state)->servers[0], "revoke", queue, fence);
}

/* He ends the client's connections. */
static void redis_kill_peer(struct world *world, void *state, struct peer *peer)
{
    struct redis_world *redis = state;
    (void)world;
    for (int i = 0; i < redis->count; i++) {
        redis_kill(&redis->servers[i], 0, peer);
        redis_bury_killed(&redis->servers[i]);
    }
}

/* ------------------------------------------------------------------ the model */

static void *redis_new(struct world *world)
{
    struct redis_world *redis = calloc(1, sizeof *redis);
    if (!redis)
        abort();
    redis->world = world;
    redis->count = world->drawn.model == MODEL_REDLOCK ? REDIS_SERVERS_MAX : 1;
    for (int i = 0; i < redis->count; i++) {
        redis->servers[i].redis = redis;
        redis->servers[i].number = i;
    }
    if (world->drawn.trouble_every_us > 0)
        world_at(world, &redis->trouble, world_about(world, world->drawn.trouble_every_us),
                 trouble);
    return redis;
}

static void redis_free(void *state)
{
    struct redis_world *redis = state;
    struct redis_session *session;
    for (int i = 0; i < redis->count; i++) {
        redis_disconnect_all(&redis->servers[i], true);
        redis_delete_all(&redis->servers[i].data);
    }
    while ((session = redis->sessions)) {
        redis->sessions = session->next;
        free(session);
    }
    free(redis);
}

static bool redis_is_down(struct world *world, int server)
{
    return redis_of(world)->servers[server].down_until > world->now;
}

static const struct stream_server redis_streams = {.is_down = redis_is_down,
                                                   .accept = redis_accept,
                                                   .receive = redis_receive,
                                                   .hang_up = redis_hang_up};

const struct server_model redis_model = {.streams = &redis_streams,
                                         .new = redis_new,
                                         .free = redis_free,
                                         .kill = redis_kill_peer,
                                         .befall = befall,
                                         .break_ticket = redis_break,
                                         .revoke = redis_revoke,
                                         .truth = redis_truth,
                                         .left = redis_left,
                                         .cell = redis_cell};
