/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions as the leader keeps them, other programs, and the truth about a queue. */
#include "zk_internal.h"

#include <stdlib.h>
#include <string.h>

#define QUEUE_LENGTH_MAX 512

static mrt_time tick_of(const struct zk_ensemble *ensemble)
{
    return ensemble->world->drawn.zk_tick_us * MRT_MICROSECOND;
}

struct zk_session *zk_session_find(struct zk_ensemble *ensemble, int64_t id)
{
    struct zk_session *session = ensemble->sessions;
    while (session && session->id != id)
        session = session->next;
    return session;
}

/* ------------------------------------------------------------------ staying alive */

static void extend(struct zk_ensemble *ensemble, struct zk_session *session, mrt_time heard)
{
    mrt_time tick = tick_of(ensemble);
    mrt_time expires = ((heard + session->timeout_ms * MRT_MILLISECOND) / tick + 1) * tick;
    if (session->expires < expires)
        session->expires = expires;
}

void zk_touch(struct zk_ensemble *ensemble, int server, int64_t id)
{
    struct zk_session *session = zk_session_find(ensemble, id);
    if (session && server == 0)
        extend(ensemble, session, ensemble->world->now);
    else if (session)
        session->touched[server] = true;
}

static void touch_all(struct zk_ensemble *ensemble)
{
    for (struct zk_session *session = ensemble->sessions; session; session = session->next)
        extend(ensemble, session, ensemble->world->now);
}

void zk_forget_touches(struct zk_ensemble *ensemble, int server)
{
    for (struct zk_session *session = ensemble->sessions; session; session = session->next)
        session->touched[server] = false;
    ensemble->servers[server].overdue = false;
}

static void tell_leader(struct zk_ensemble *ensemble, int server)
{
    for (struct zk_session *session = ensemble->sessions; session; session = session->next) {
        if (session->touched[server])
            extend(ensemble, session, ensemble->world->now);
        session->touched[server] = false;
    }
    ensemble->servers[server].overdue = false;
}

void zk_tell_overdue(struct zk_ensemble *ensemble, int server)
{
    if (ensemble->servers[server].overdue)
        tell_leader(ensemble, server);
}

/* A follower reports to the leader, each half tick, the sessions that it has heard. */
static void report(struct world *world, struct task *task)
{
    struct zk_server *server =
        (struct zk_server *)(void *)((char *)task - offsetof(struct zk_server, report));
    struct zk_ensemble *ensemble = server->ensemble;
    int number = (int)(server - ensemble->servers);
    world_at(world, task, world->now + tick_of(ensemble) / 2, report);
    if (zk_stands_still(ensemble, number) || zk_cut_off(ensemble, number))
        server->overdue = true;
    else
        tell_leader(ensemble, number);
}

/* ------------------------------------------------------------------ beginning and end */

int zk_session_open(struct zk_ensemble *ensemble, struct zk_connection *connection)
{
    struct zk_session *session = zk_session_find(ensemble, connection->session);
    struct world *world = ensemble->world;
    if (connection->session == 0) {
        int64_t tick_ms = world->drawn.zk_tick_us / 1000;
        int64_t timeout = connection->timeout_ms;
        session = calloc(1, sizeof *session);
        if (!session)
            abort();
        timeout = timeout < tick_ms ? tick_ms : timeout; /* minSessionTimeout may be set so low */
        session->timeout_ms = (int)(timeout > 20 * tick_ms ? 20 * tick_ms : timeout);
        session->id = ++ensemble->session_number;
        session->peer = connection->peer;
        session->alive = true;
        session->next = ensemble->sessions;
        ensemble->sessions = session;
        world->server_changed = true;
    }
    trace_note(world, TRACE_LINK, connection->peer->index, NO_QUEUE, "zk session",
               session ? session->id : 0, session && session->alive, connection->server);
    if (!session || !session->alive)
        return ZSESSIONEXPIRED;
    extend(ensemble, session, world->now);
    session->owner = connection->id;
    connection->session = session->id;
    connection->timeout_ms = session->timeout_ms;
    return ZOK;
}

void zk_session_end(struct zk_ensemble *ensemble, struct zk_session *session)
{
    session->alive = false;
    trace_note(ensemble->world, TRACE_LINK, session->peer->index, NO_QUEUE, "zk session ends",
               session->id, 0, 0);
    zk_tree_end_session(&ensemble->tree, session->id);
    zk_committed(ensemble);
}

static void tick(struct world *world, struct task *task)
{
    struct zk_ensemble *ensemble =
        (struct zk_ensemble *)(void *)((char *)task - offsetof(struct zk_ensemble, tick));
    world_at(world, task, world->now + tick_of(ensemble), tick);
    zk_sweep(ensemble);
    bool leaderless = zk_is_down(ensemble, 0);
    if (ensemble->leaderless && !leaderless)
        touch_all(ensemble);
    ensemble->leaderless = leaderless;
    if (leaderless || zk_stands_still(ensemble, 0))
        return;
    for (struct zk_session *session = ensemble->sessions; session; session = session->next)
        if (session->alive && session->expires <= world->now)
            zk_session_end(ensemble, session);
}

/* Where claims are counted by a directory's version it must not start anew between a node's
   deletion by an operator and the word of it: the case that doc/zookeeper.md leaves open. */
static mrt_time until_reaping(struct world *world)
{
    const struct profile *p = &world->drawn;
    bool late = world_has(world, LOCK_EXCLUSIVE) && p->zk_reap_us < 4 * p->lease_us;
    return world_about(world, late ? 4 * p->lease_us : p->zk_reap_us);
}

static void reap(struct world *world, struct task *task)
{
    struct zk_ensemble *ensemble =
        (struct zk_ensemble *)(void *)((char *)task - offsetof(struct zk_ensemble, reap));
    world_at(world, task, world->now + until_reaping(world), reap);
    if (zk_tree_reap(&ensemble->tree) > 0)
        zk_committed(ensemble);
}

/* ------------------------------------------------------------------ outsiders */

struct visit {
    struct task task;
    struct zk_ensemble *ensemble;
    int64_t czxid;
    char path[ZK_PATH_SIZE];
};

static void leave(struct world *world, struct task *task)
{
    struct visit *visit = (struct visit *)task;
    struct zk_tree *tree = &visit->ensemble->tree;
    const struct zk_node *node = zk_tree_find(tree, visit->path, tree->zxid);
    (void)world;
    if (node && node->czxid == visit->czxid) {
        struct zk_answer answer = {0};
        struct zk_request *request = zk_request_new(ZK_DELETE, visit->path);
        zk_tree_write(tree, OUTSIDER, request, &answer);
        zk_committed(visit->ensemble);
        zk_request_free(request);
    }
    free(visit);
}

/* Another program's node, for a while. */
static void visit_with(struct zk_ensemble *ensemble, const char *prefix, bool sequential)
{
    struct world *world = ensemble->world;
    struct zk_answer answer = {0};
    struct zk_request *request = zk_request_new(ZK_CREATE, prefix);
    request->part.ephemeral = true;
    request->part.sequential = sequential;
    zk_tree_write(&ensemble->tree, OUTSIDER, request, &answer);
    zk_request_free(request);
    if (answer.code != ZOK)
        return;
    zk_committed(ensemble);
    struct visit *visit = calloc(1, sizeof *visit);
    if (!visit)
        abort();
    visit->task.owned = true;
    visit->ensemble = ensemble;
    visit->czxid = answer.stat.czxid;
    memcpy(visit->path, answer.path, sizeof visit->path);
    world_at(world, &visit->task, world->now + world_some(world, world->drawn.zk_visit_us), leave);
}

#define CURATOR "_c_5e0a7b34-0000-4000-8000-00000000%04x-"
#define KAZOO "5e0a7b3400004000800000000000%04x"

/* How another program's node is called: of the lock's kind, or of none. */
static const char *outsider_name(const struct world *world, int64_t lock, int64_t kind)
{
    static const char *const mutexes[][2] = {{CURATOR "lock-", KAZOO "-lock-"},
                                             {KAZOO "__lock__", KAZOO "__lock__"},
                                             {"lock-", "x-%04x-"}};
    static const char *const sides[][2] = {{CURATOR "__READ__", CURATOR "__WRIT__"},
                                           {KAZOO "__rlock__", KAZOO "__lock__"},
                                           {NULL, NULL}};
    static const char *const permits[] = {CURATOR "lease-", "%04x-permits-0of2-"};
    if (lock == LOCK_EXCLUSIVE)
        return ZK_CLAIM;
    if (kind == 2)
        return "zz-%04x-leases-";
    if (lock == LOCK_SEMAPHORE) /* no other program takes part in these */
        return permits[kind];
    return (lock == LOCK_READ_WRITE ? sides : mutexes)[world->drawn.zk_layout][kind];
}

static void outsider(struct world *world, struct task *task)
{
    struct zk_ensemble *ensemble =
        (struct zk_ensemble *)(void *)((char *)task - offsetof(struct zk_ensemble, outsider));
    char name[ZK_NAME_SIZE], path[ZK_PATH_SIZE];
    if (world->phase != PHASE_CHAOS)
        return;
    world_at(world, task, world->now + world_about(world, world->drawn.zk_outsider_every_us),
             outsider);
    unsigned number = (unsigned)random_below(&world->random, 65536);
    int64_t kind = random_below(&world->random, 3);
    int64_t queue = random_below(&world->random, world->drawn.queues);
    int64_t lock = world->queues[queue].lock;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(name, sizeof name, outsider_name(world, lock, kind), number);
#pragma GCC diagnostic pop
    snprintf(path, sizeof path, ZK_CHROOT "/%s/%s", world->queues[queue].name, name);
    visit_with(ensemble, path, lock != LOCK_EXCLUSIVE);
}

void zk_impostor(struct zk_ensemble *ensemble, const struct zk_part *part)
{
    struct world *world = ensemble->world;
    if (part->type == ZK_CREATE && part->sequential && world->phase == PHASE_CHAOS &&
        random_chance(&world->random, world->profile.zk_impostor))
        visit_with(ensemble, part->path, true);
}

void zk_sessions_begin(struct zk_ensemble *ensemble)
{
    struct world *world = ensemble->world;
    struct zk_session *session = calloc(1, sizeof *session);
    if (!session)
        abort();
    ensemble->outsiders.index = -1;
    *session = (struct zk_session){
        .id = OUTSIDER, .alive = true, .expires = MRT_TIME_NEVER, .peer = &ensemble->outsiders};
    ensemble->sessions = session;
    ensemble->session_number = OUTSIDER;
    world_at(world, &ensemble->tick, tick_of(ensemble), tick);
    for (int i = 1; i < ensemble->server_count; i++)
        world_at(world, &ensemble->servers[i].report, world_some(world, world->drawn.zk_tick_us),
                 report);
    world_at(world, &ensemble->reap, until_reaping(world), reap);
    if (world->drawn.zk_outsider_every_us > 0)
        world_at(world, &ensemble->outsider, world_about(world, world->drawn.zk_outsider_every_us),
                 outsider);
}

void zk_sessions_free(struct zk_ensemble *ensemble)
{
    struct zk_session *session;
    while ((session = ensemble->sessions)) {
        ensemble->sessions = session->next;
        free(session);
    }
}

/* ------------------------------------------------------------------ the truth */

uint64_t zk_weight(const char *name)
{
    const char *permits = strstr(name, "-permits-");
    if (permits)
        return strtoull(permits + strlen("-permits-"), NULL, 10);
    if (strstr(name, "__WRIT__"))
        return MRT_WRITER;
    return strstr(name, "-lock-") || strstr(name, "lock__") || strstr(name, "__READ__") ||
           strncmp(name, "lock-", 5) == 0 || strncmp(name, "x-", 2) == 0 ||
           strcmp(name, ZK_CLAIM) == 0;
}

static struct zk_node *directory(struct zk_ensemble *ensemble, int queue)
{
    char path[ZK_PATH_SIZE];
    snprintf(path, sizeof path, ZK_CHROOT "/%s", ensemble->world->queues[queue].name);
    return zk_tree_find(&ensemble->tree, path, ensemble->tree.zxid);
}

struct zk_node *zk_next_ticket(const struct zk_node *parent, int64_t last)
{
    struct zk_node *next = NULL;
    for (struct zk_node *node = parent ? parent->children : NULL; node; node = node->next)
        if (node->dzxid == 0 && node->weight > 0 && node->origin > last &&
            (!next || node->origin < next->origin))
            next = node;
    return next;
}

/* Fills `line` with the tickets of a directory in their order; how many there are. Of two that have
   taken the same place the newer one counts. */
static int line_up(const struct zk_node *parent, const struct zk_node *line[QUEUE_LENGTH_MAX])
{
    int count = 0;
    for (const struct zk_node *node = parent ? parent->children : NULL; node; node = node->next) {
        int at = count;
        if (node->dzxid != 0 || node->weight == 0)
            continue;
        while (at > 0 && line[at - 1]->origin > node->origin)
            at--;
        if (at > 0 && line[at - 1]->origin == node->origin)
            continue;
        if (count == QUEUE_LENGTH_MAX)
            abort();
        memmove(&line[at + 1], &line[at], (size_t)(count++ - at) * sizeof *line);
        line[at] = node;
    }
    return count;
}

/* kazoo's __lock__ is a writer where there may be readers. */
static uint64_t weight_in(const struct world *world, int queue, const struct zk_node *node)
{
    bool sides = world->queues[queue].lock == LOCK_READ_WRITE;
    return sides && strstr(node->name, "__lock__") ? MRT_WRITER : node->weight;
}

void zk_truth(struct zk_ensemble *ensemble, int queue, const struct peer *peer, struct truth *truth)
{
    const struct zk_node *line[QUEUE_LENGTH_MAX];
    uint64_t ahead = 0, capacity = ensemble->world->queues[queue].recipe.capacity;
    int count = line_up(directory(ensemble, queue), line);
    truth->span = 1 << 12;
    for (int i = 0; i < count; i++) {
        const struct zk_node *node = line[i];
        uint64_t weight = weight_in(ensemble->world, queue, node);
        ahead += weight;
        if (node->owner == 0) {
            truth_add_nobodys(truth, (uint64_t)node->origin << 12);
            continue;
        }
        if (!truth->peer && node->data.length == sizeof truth->value)
            memcpy(&truth->value, node->data.bytes, sizeof truth->value);
        truth_add(truth, peer, zk_session_find(ensemble, node->owner)->peer,
                  (uint64_t)node->origin << 12, weight, ahead <= capacity);
    }
}

/* Writes to the node of the ticket of this fence, 0: of the first, as an operator does. */
static bool operate(struct zk_ensemble *ensemble, int queue, uint64_t fence, enum zk_type type,
                    const char *data)
{
    struct zk_answer answer = {0};
    char path[ZK_PATH_SIZE];
    const struct zk_node *node = zk_next_ticket(directory(ensemble, queue), 0);
    while (node && fence != 0 && (uint64_t)node->origin << 12 != fence)
        node = zk_next_ticket(node->parent, node->origin);
    if (!node)
        return false;
    snprintf(path, sizeof path, ZK_CHROOT "/%s/%s", ensemble->world->queues[queue].name,
             node->name);
    struct zk_request *request = zk_request_new(type, path);
    request->part.data = zk_data_of(data, (int)strlen(data));
    zk_tree_write(&ensemble->tree, OUTSIDER, request, &answer);
    zk_request_free(request);
    zk_committed(ensemble);
    return true;
}

bool zk_break(struct zk_ensemble *ensemble, int queue, uint64_t fence)
{
    return operate(ensemble, queue, fence, ZK_DELETE, "");
}

bool zk_revoke(struct zk_ensemble *ensemble, int queue, uint64_t fence)
{
    return operate(ensemble, queue, fence, ZK_SET, "__REVOKE__");
}

/* The bytes behind its head: see store/zookeeper/values/cell.c. */
uint64_t zk_cell(struct zk_ensemble *ensemble)
{
    uint64_t value = 0;
    struct zk_tree *tree = &ensemble->tree;
    const struct zk_node *node = zk_tree_find(tree, ZK_CHROOT "/cell/mortise-cell", tree->zxid);
    if (node && node->data.length >= (int)sizeof value)
        memcpy(&value, node->data.bytes + node->data.length - sizeof value, sizeof value);
    return value;
}

int zk_left(struct zk_ensemble *ensemble)
{
    int left = 0;
    for (int queue = 0; queue < ensemble->world->drawn.queues; queue++) {
        const struct zk_node *parent = directory(ensemble, queue), *node;
        for (int64_t last = 0; (node = zk_next_ticket(parent, last)); last = node->origin)
            left += node->owner != OUTSIDER;
    }
    for (const struct zk_session *s = ensemble->sessions; s; s = s->next)
        left += s->alive && s->id != OUTSIDER;
    return left;
}
