/* SPDX-License-Identifier: Apache-2.0 */
/* Servers and connections; see zk_ensemble.h. Sessions and outsiders: zk_session.c. */
#include "zk_internal.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ troubles */

/* No trouble outlasts the chaos. */
static mrt_time end_of(const struct world *world, mrt_time until)
{
    return world->phase == PHASE_CHAOS || until < world->healed_at ? until : world->healed_at;
}

bool zk_stands_still(const struct zk_ensemble *ensemble, int server)
{
    return end_of(ensemble->world, ensemble->servers[server].frozen_until) > ensemble->world->now;
}

bool zk_cut_off(const struct zk_ensemble *ensemble, int server)
{
    return end_of(ensemble->world, ensemble->servers[server].severed_until) >
               ensemble->world->now ||
           zk_stands_still(ensemble, 0);
}

/* When a server that stands still, or cannot reach the leader, may be asked again. */
mrt_time zk_better_at(const struct zk_ensemble *ensemble, int server)
{
    mrt_time at = ensemble->servers[server].frozen_until;
    if (at < ensemble->servers[server].severed_until)
        at = ensemble->servers[server].severed_until;
    if (at < ensemble->servers[0].frozen_until)
        at = ensemble->servers[0].frozen_until;
    return end_of(ensemble->world, at) + MRT_MICROSECOND;
}

bool zk_is_down(const struct zk_ensemble *ensemble, int server)
{
    return end_of(ensemble->world, ensemble->servers[server].down_until) > ensemble->world->now ||
           end_of(ensemble->world, ensemble->servers[0].down_until) > ensemble->world->now;
}

static mrt_time lag(struct zk_ensemble *ensemble)
{
    return world_some(ensemble->world, ensemble->world->profile.zk_lag_us);
}

static mrt_time behind(struct zk_ensemble *ensemble)
{
    return world_some(ensemble->world, ensemble->world->profile.zk_behind_us);
}

/* ------------------------------------------------------------------ requests */

struct zk_request *zk_request_new(enum zk_type type, const char *path)
{
    struct zk_request *request = calloc(1, sizeof *request);
    if (!request)
        abort();
    request->part.type = type;
    request->part.version = -1;
    snprintf(request->part.path, sizeof request->part.path, "%s", path);
    return request;
}

static void free_watches(struct zk_watch *watch)
{
    while (watch) {
        struct zk_watch *next = watch->next;
        free(watch);
        watch = next;
    }
}

void zk_request_free(struct zk_request *request)
{
    free_watches(request->watches);
    free(request);
}

static void done(struct zk_connection *connection)
{
    struct zk_request *request = connection->first;
    connection->first = request->next;
    if (!connection->first)
        connection->last = &connection->first;
    zk_request_free(request);
}

static void drop_all(struct zk_connection *connection)
{
    while (connection->first)
        done(connection);
}

/* ------------------------------------------------------------------ watches */

static void tell(struct zk_connection *connection, int type, const char *path)
{
    if (!connection->hung_up && !connection->closed)
        connection->listener.happened(connection->listener.context, type, path);
}

/* Takes watches of a path away; whether there was one. */
static bool take_watch(struct zk_connection *connection, const char *path, bool children, bool data)
{
    struct zk_watch **link = &connection->watches, *watch;
    bool found = false;
    while ((watch = *link)) {
        if ((watch->children ? !children : !data) || strcmp(watch->path, path) != 0) {
            link = &watch->next;
            continue;
        }
        *link = watch->next;
        free(watch);
        found = true;
    }
    return found;
}

static void set_watch(struct zk_connection *connection, const char *path, bool children)
{
    take_watch(connection, path, children, !children);
    struct zk_watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        abort();
    watch->children = children;
    snprintf(watch->path, sizeof watch->path, "%s", path);
    watch->next = connection->watches;
    connection->watches = watch;
}

static void happened(struct zk_connection *connection, const struct zk_change *change)
{
    char parent[ZK_PATH_SIZE];
    const char *slash = strrchr(change->path, '/');
    bool gone = change->type == ZOO_DELETED_EVENT;
    if (take_watch(connection, change->path, gone, true))
        tell(connection, change->type, change->path);
    if (change->type == ZOO_CHANGED_EVENT)
        return;
    snprintf(parent, sizeof parent, "%.*s", (int)(slash - change->path), change->path);
    if (take_watch(connection, parent, true, false))
        tell(connection, ZOO_CHILD_EVENT, parent);
}

/* The watches of an earlier connection; what has happened meanwhile goes off at once. */
static void set_watches(struct zk_ensemble *ensemble, struct zk_connection *connection,
                        const struct zk_request *request)
{
    int64_t zxid = ensemble->servers[connection->server].applied;
    for (const struct zk_watch *watch = request->watches; watch; watch = watch->next) {
        const struct zk_node *node = zk_tree_find(&ensemble->tree, watch->path, zxid);
        struct Stat stat = {.czxid = 0};
        if (node)
            zk_stat_of(node, zxid, &stat);
        if (!node && !watch->exists)
            tell(connection, ZOO_DELETED_EVENT, watch->path);
        else if (node && watch->exists)
            tell(connection, ZOO_CREATED_EVENT, watch->path);
        else if (node && watch->children && stat.pzxid > request->seen)
            tell(connection, ZOO_CHILD_EVENT, watch->path);
        else if (node && !watch->children && stat.mzxid > request->seen)
            tell(connection, ZOO_CHANGED_EVENT, watch->path);
        else
            set_watch(connection, watch->path, watch->children);
    }
}

/* ------------------------------------------------------------------ applying */

static void close_by_server(struct zk_connection *connection)
{
    if (connection->closed || connection->hung_up)
        return;
    connection->closed = true;
    connection->listener.closed(connection->listener.context);
}

/* A server learns of all that has been committed. */
static void apply(struct zk_ensemble *ensemble, int server)
{
    struct zk_server *it = &ensemble->servers[server];
    while (it->change_count < ensemble->tree.change_count) {
        const struct zk_change change = ensemble->tree.changes[it->change_count++];
        for (struct zk_connection *c = ensemble->connections; c; c = c->next) {
            if (c->server != server || c->closed || c->hung_up)
                continue;
            if (change.type != ZOO_SESSION_EVENT)
                happened(c, &change);
            else if (c->session == change.session && c->stage == ZK_WAITING)
                c->doomed = true; /* its answer comes first */
            else if (c->session == change.session)
                close_by_server(c);
        }
    }
    it->applied = ensemble->tree.zxid;
    for (struct zk_connection *c = ensemble->connections; c; c = c->next)
        if (c->server == server && c->stage == ZK_WAITING && c->await <= it->applied)
            world_at(ensemble->world, &c->step, ensemble->world->now, zk_step);
    ensemble->tree.applied_by_all = ensemble->tree.zxid;
    for (int i = 0; i < ensemble->server_count; i++)
        if (ensemble->servers[i].applied < ensemble->tree.applied_by_all)
            ensemble->tree.applied_by_all = ensemble->servers[i].applied;
}

static void catch_up(struct world *world, struct task *task)
{
    struct zk_server *server = (struct zk_server *)task;
    struct zk_ensemble *ensemble = server->ensemble;
    int number = (int)(server - ensemble->servers);
    if (zk_stands_still(ensemble, number) || zk_cut_off(ensemble, number))
        world_at(world, task, zk_better_at(ensemble, number), catch_up);
    else
        apply(ensemble, number);
}

void zk_committed(struct zk_ensemble *ensemble)
{
    ensemble->world->server_changed = true;
    apply(ensemble, 0);
    for (int i = 1; i < ensemble->server_count; i++)
        if (!ensemble->servers[i].catch_up.timer.armed)
            world_at(ensemble->world, &ensemble->servers[i].catch_up,
                     ensemble->world->now + lag(ensemble) + behind(ensemble), catch_up);
}

/* ------------------------------------------------------------------ a connection's course */

/* The listener may ask for more, or hang up. */
static void answer(struct zk_connection *connection, struct zk_answer *pending)
{
    done(connection);
    pending->zxid = connection->ensemble->servers[connection->server].applied;
    if (!connection->hung_up && !connection->closed)
        connection->listener.answered(connection->listener.context, pending);
    free(pending->names);
    pending->names = NULL;
}

static void read_here(struct zk_ensemble *ensemble, struct zk_connection *connection,
                      const struct zk_request *request)
{
    struct zk_answer *pending = &connection->pending;
    const char *path = request->part.path;
    enum zk_type type = request->part.type;
    if (type == ZK_SET_WATCHES) {
        set_watches(ensemble, connection, request);
    } else if (type == ZK_DROP_WATCHES) {
        pending->code = take_watch(connection, path, true, true) ? ZOK : ZNOWATCHER;
    } else if (type != ZK_PING) {
        zk_tree_read(&ensemble->tree, request, ensemble->servers[connection->server].applied,
                     pending);
        if (request->watch && (pending->code == ZOK || type == ZK_EXISTS))
            set_watch(connection, path, type == ZK_LIST);
    }
}

/* At the leader. */
static void lead(struct zk_ensemble *ensemble, struct zk_connection *connection,
                 const struct zk_request *request)
{
    struct zk_answer *pending = &connection->pending;
    struct zk_session *session = zk_session_find(ensemble, connection->session);
    struct world *world = ensemble->world;
    if (!session || !session->alive) {
        pending->code = ZSESSIONEXPIRED;
    } else if (session->owner != connection->id) {
        pending->code = ZSESSIONMOVED;
    } else if (request->part.type == ZK_CLOSE) {
        zk_session_end(ensemble, session);
    } else if (request->part.type != ZK_SYNC) {
        zk_impostor(ensemble, &request->part);
        zk_ambush(ensemble, request);
        zk_tree_write(&ensemble->tree, connection->session, request, pending);
        world->operations++;
        trace_note(world, TRACE_APPLY, session->peer->index, NO_QUEUE, "zk", request->part.type,
                   pending->code, ensemble->tree.zxid);
        zk_committed(ensemble);
    }
    bool early = request->part.type == ZK_SYNC && strchr(request->part.path + 1, '/') &&
                 random_chance(&world->random, world->profile.zk_sync_early);
    connection->await = early ? 0 : ensemble->tree.zxid;
}

/* Between a write and the read behind it, or in front of any read, others may come. */
static bool put_off(struct zk_connection *connection)
{
    struct world *world = connection->ensemble->world;
    connection->rested =
        !connection->rested && world->profile.zk_gap_us > 0 && random_below(&world->random, 2) == 0;
    if (connection->rested)
        world_at(world, &connection->step, world->now + world_some(world, world->profile.zk_gap_us),
                 zk_step);
    return connection->rested;
}

static bool begin(struct zk_ensemble *ensemble, struct zk_connection *connection)
{
    struct world *world = ensemble->world;
    const struct zk_request *request = connection->first;
    if (!request)
        return false;
    if (request->part.type > ZK_SYNC && put_off(connection))
        return false;
    zk_touch(ensemble, connection->server, connection->session);
    memset(&connection->pending, 0, sizeof connection->pending);
    connection->pending.type = request->part.type;
    connection->pending.tag = request->tag;
    if (request->part.type > ZK_SYNC) {
        read_here(ensemble, connection, request);
        world->operations++;
        answer(connection, &connection->pending);
        return true;
    }
    connection->stage = ZK_FORWARDING;
    world_at(world, &connection->step, world->now + lag(ensemble), zk_step);
    return false;
}

static bool is_in_hand(const struct zk_connection *c, const struct zk_connection *with)
{
    return c->stage == ZK_OPENING && !c->ignored && c->server == with->server &&
           c->session == with->session;
}

/* A follower keeps the attempts to attach a session by the session. Of several, of which one at
   least was given up while it stood still, it answers any one; the others hear nothing. */
static void choose_attempt(struct zk_ensemble *ensemble, struct zk_connection *connection)
{
    bool given_up = false;
    int64_t count = 0;
    if (connection->server == 0 || connection->session == 0 || connection->ignored)
        return;
    for (struct zk_connection *c = ensemble->connections; c; c = c->next) {
        given_up |= c->hung_up && is_in_hand(c, connection);
        count += is_in_hand(c, connection);
    }
    if (!given_up || count < 2)
        return;
    int64_t chosen = random_below(&ensemble->world->random, count);
    for (struct zk_connection *c = ensemble->connections; c; c = c->next)
        if (is_in_hand(c, connection))
            c->ignored = chosen-- != 0;
}

static void opened(struct zk_ensemble *ensemble, struct zk_connection *connection)
{
    choose_attempt(ensemble, connection);
    int code = connection->ignored ? ZOK : zk_session_open(ensemble, connection);
    connection->stage = ZK_IDLE;
    if (connection->ignored)
        return;
    if (connection->hung_up)
        return;
    connection->listener.opened(connection->listener.context, code, connection->session,
                                connection->timeout_ms);
    if (code != ZOK)
        close_by_server(connection);
}

/* Nothing can be done now: false, and it will be tried again. */
static bool may_go_on(struct zk_ensemble *ensemble, struct zk_connection *connection)
{
    int server = connection->server;
    bool leads = connection->stage == ZK_FORWARDING || connection->stage == ZK_OPENING;
    if (!zk_stands_still(ensemble, server) && !(leads && zk_cut_off(ensemble, server)))
        return true;
    world_at(ensemble->world, &connection->step, zk_better_at(ensemble, server), zk_step);
    return false;
}

static void go_on(struct zk_ensemble *ensemble, struct zk_connection *connection)
{
    if (connection->stage == ZK_OPENING || connection->stage == ZK_FORWARDING)
        zk_tell_overdue(ensemble, connection->server);
    if (connection->stage == ZK_OPENING) {
        opened(ensemble, connection);
    } else if (connection->stage == ZK_FORWARDING) {
        connection->stage = ZK_WAITING;
        lead(ensemble, connection, connection->first);
    }
    if (connection->stage == ZK_WAITING) {
        if (ensemble->servers[connection->server].applied < connection->await)
            return;
        connection->stage = ZK_IDLE;
        bool last = connection->first->part.type == ZK_CLOSE;
        answer(connection, &connection->pending);
        if (last || connection->doomed)
            close_by_server(connection);
    }
    while (connection->stage == ZK_IDLE && begin(ensemble, connection))
        ;
}

void zk_step(struct world *world, struct task *task)
{
    struct zk_connection *connection = (struct zk_connection *)task;
    struct zk_ensemble *ensemble = connection->ensemble;
    (void)world;
    if (connection->closed && connection->stage == ZK_OPENING)
        return;
    if (connection->running || !may_go_on(ensemble, connection))
        return;
    connection->running = true;
    go_on(ensemble, connection);
    connection->running = false;
}

struct zk_connection *zk_open(struct zk_ensemble *ensemble, int server, int64_t id, int timeout_ms,
                              int64_t seen, struct peer *peer, struct zk_listener listener)
{
    struct zk_connection *connection = calloc(1, sizeof *connection);
    if (!connection)
        abort();
    *connection = (struct zk_connection){.ensemble = ensemble,
                                         .id = ++ensemble->connection_number,
                                         .server = server,
                                         .session = id,
                                         .timeout_ms = timeout_ms,
                                         .peer = peer,
                                         .listener = listener,
                                         .stage = ZK_OPENING};
    connection->last = &connection->first;
    connection->next = ensemble->connections;
    ensemble->connections = connection;
    if (zk_is_down(ensemble, server) || ensemble->servers[server].applied < seen)
        close_by_server(connection);
    else
        world_at(ensemble->world, &connection->step, ensemble->world->now + lag(ensemble), zk_step);
    return connection;
}

void zk_send(struct zk_connection *connection, struct zk_request *request)
{
    if (connection->closed) {
        zk_request_free(request);
        return;
    }
    *connection->last = request;
    connection->last = &request->next;
    if (connection->stage == ZK_IDLE && !connection->rested)
        zk_step(connection->ensemble->world, &connection->step);
}

void zk_hang_up(struct zk_connection *connection, bool orderly)
{
    struct zk_ensemble *ensemble = connection->ensemble;
    connection->hung_up = true;
    if (connection->stage == ZK_IDLE && !connection->first)
        return;
    if (connection->stage == ZK_OPENING && connection->session != 0 && connection->server > 0 &&
        zk_stands_still(ensemble, connection->server))
        return; /* it reads of the end when it has taken the attempt in hand */
    bool over =
        connection->stage == ZK_OPENING || (!orderly && random_below(&ensemble->world->random, 2));
    if (!over)
        return;
    world_cancel(ensemble->world, &connection->step);
    connection->stage = ZK_IDLE;
    drop_all(connection);
}

void zk_sweep(struct zk_ensemble *ensemble)
{
    struct zk_connection **link = &ensemble->connections, *connection;
    while ((connection = *link)) {
        if (!connection->hung_up || connection->first || connection->step.timer.armed) {
            link = &connection->next;
            continue;
        }
        *link = connection->next;
        free_watches(connection->watches);
        free(connection);
    }
}

/* ------------------------------------------------------------------ troubles to come */

static void break_down(struct zk_ensemble *ensemble, int server, mrt_time until)
{
    ensemble->servers[server].down_until = until;
    zk_forget_touches(ensemble, server);
    for (struct zk_connection *c = ensemble->connections; c; c = c->next)
        if (c->server == server || server == 0)
            close_by_server(c);
}

void zk_trouble(struct world *world, struct task *task)
{
    struct zk_ensemble *ensemble = (struct zk_ensemble *)task;
    const struct profile *p = &world->profile;
    if (world->phase != PHASE_CHAOS)
        return;
    world_at(world, task, world->now + world_about(world, p->zk_trouble_every_us), zk_trouble);
    int server = (int)random_below(&world->random, ensemble->server_count);
    int kind = p->zk_alone ? 1 : (int)random_below(&world->random, 3);
    mrt_time until = world->now + world_some(world, p->zk_trouble_us);
    trace_note(world, TRACE_LINK, -1, NO_QUEUE, "zk trouble", kind, server,
               (until - world->now) / 1000);
    if (kind == 0)
        ensemble->servers[server].frozen_until = until;
    else if (kind == 1 && server > 0)
        ensemble->servers[server].severed_until = until;
    else if (!p->zk_alone)
        break_down(ensemble, server, until);
}

static void freeze(struct zk_ensemble *ensemble, int server, mrt_time until)
{
    trace_note(ensemble->world, TRACE_LINK, -1, NO_QUEUE, "zk stands still", server,
               (until - ensemble->world->now) / 1000, 0);
    ensemble->servers[server].frozen_until = until;
    if (ensemble->world->drawn.zk_alone)
        ensemble->world->silent_until = until + 100 * MRT_MILLISECOND; /* and what it says then */
}

/* Before there is a session, all followers may stand still together. Later the next follower does
 * so only after each client that left this one has a proof at its new server. */
static void stand_still(struct world *world, struct task *task)
{
    struct zk_ensemble *ensemble =
        (struct zk_ensemble *)(void *)((char *)task - offsetof(struct zk_ensemble, still));
    const struct profile *p = &world->profile;
    if (world->phase != PHASE_CHAOS)
        return;
    int chosen = (int)random_between(&world->random, 1, ensemble->server_count - 1);
    mrt_time until = world->now + world_some(world, p->zk_still_us);
    for (int server = 1; server < ensemble->server_count; server++)
        if (server == chosen || world->now == 0)
            freeze(ensemble, server, until);
    world_at(world, task,
             until + p->lease_us * MRT_MICROSECOND + world_about(world, p->zk_still_every_us),
             stand_still);
}

struct zk_ensemble *zk_new(struct world *world)
{
    const struct profile *p = &world->drawn;
    struct zk_ensemble *ensemble = calloc(1, sizeof *ensemble);
    if (!ensemble)
        abort();
    ensemble->world = world;
    ensemble->server_count = (int)p->zk_servers;
    zk_tree_init(&ensemble->tree, (uint32_t)p->zk_sequence);
    ensemble->tree.reaps_late = world_has(world, LOCK_EXCLUSIVE);
    for (int i = 0; i < ensemble->server_count; i++) {
        ensemble->servers[i].ensemble = ensemble;
        ensemble->servers[i].applied = ensemble->tree.zxid;
    }
    zk_sessions_begin(ensemble);
    if (p->zk_trouble_every_us > 0)
        world_at(world, &ensemble->trouble, world_about(world, p->zk_trouble_every_us), zk_trouble);
    if (p->zk_still_every_us > 0 && p->zk_servers > 1)
        world_at(world, &ensemble->still,
                 random_below(&world->random, 2) ? world_some(world, p->zk_still_every_us) : 0,
                 stand_still);
    return ensemble;
}

void zk_free(struct zk_ensemble *ensemble)
{
    for (struct zk_connection *c = ensemble->connections; c; c = c->next) {
        drop_all(c);
        c->hung_up = true;
        c->step.timer.armed = false;
    }
    zk_sweep(ensemble);
    zk_tree_fini(&ensemble->tree);
    zk_sessions_free(ensemble);
    free(ensemble);
}

int zk_servers(const struct zk_ensemble *ensemble)
{
    return ensemble->server_count;
}
