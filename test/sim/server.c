/* SPDX-License-Identifier: Apache-2.0 */
/* The server of a world: one of the models, and what is noted of each command. */
#include "server.h"

#include <stdlib.h>
#include <string.h>

static const char *const command_names[] = {
    [MRT_START] = "START",         [MRT_STOP] = "STOP",         [MRT_RENEW] = "RENEW",
    [MRT_APPEND] = "APPEND",       [MRT_REFRESH] = "REFRESH",   [MRT_LIGHTEN] = "LIGHTEN",
    [MRT_SET_VALUE] = "SET_VALUE", [MRT_REMOVE] = "REMOVE",     [MRT_DETACH] = "DETACH",
    [MRT_OBSERVE] = "OBSERVE",     [MRT_CELL_GET] = "CELL_GET", [MRT_CELL_SET] = "CELL_SET"};

int server_queue_index(const struct world *world, const char *name)
{
    for (int i = 0; name && i < world->drawn.queues; i++)
        if (strcmp(world->queues[i].name, name) == 0)
            return i;
    return NO_QUEUE;
}

static const struct server_model *model_of(int64_t model)
{
    switch (model) {
    case MODEL_SQLITE:
        return &sqlite_model;
    case MODEL_AGENT:
        return &agent_model;
#ifdef MORTISE_ZOOKEEPER
    case MODEL_ZOOKEEPER:
        return &zookeeper_model;
    case MODEL_ZK_LIBRARY:
        return &zk_library_model;
#endif
#ifdef SIM_REDIS
    case MODEL_REDIS:
    case MODEL_REDLOCK:
        return &redis_model;
    case MODEL_QUORUM:
        return &quorum_model;
#endif
#ifdef SIM_ETCD
    case MODEL_ETCD:
        return &etcd_model;
#endif
#ifdef SIM_POSTGRES
    case MODEL_POSTGRES:
        return &postgres_model;
#endif
    default:
        return &memory_model;
    }
}

void server_init(struct world *world)
{
    struct server *server = calloc(1, sizeof *server);
    if (!server)
        abort();
    world->server = server;
    server->model = model_of(world->drawn.model);
    world->truths = calloc(QUEUES_MAX, sizeof *world->truths);
    if (!world->truths)
        abort();
    server->state = server->model->new (world);
    if (server->model->populate)
        server->model->populate(world, server->state);
}

void server_fini(struct world *world)
{
    world->server->model->free(world->server->state);
    free(world->server);
    free(world->truths);
}

void server_apply(struct world *world, struct peer *peer, const struct mrt_command *command)
{
    world->operations++;
    world->server_changed = true;
    trace_note(world, TRACE_APPLY, peer->index, server_queue_index(world, command->queue),
               command_names[command->type], (int64_t)command->serial, (int64_t)command->ticket.low,
               (int64_t)command->session.low);
    world->server->model->apply(world, world->server->state, peer, command);
}

void server_died(struct world *world, struct peer *peer)
{
    world->server_changed = true;
    if (world->server->model->died)
        world->server->model->died(world, world->server->state, peer);
}

void server_kill(struct world *world, struct peer *peer)
{
    world->server_changed = true;
    if (world->server->model->kill)
        world->server->model->kill(world, world->server->state, peer);
}

void server_reboot(struct world *world)
{
    world->server_changed = true;
    if (world->server->model->reboot)
        world->server->model->reboot(world, world->server->state);
}

void server_told(struct world *world, const struct peer *peer, const struct mrt_event *event)
{
    if (world->server->model->told)
        world->server->model->told(world, world->server->state, peer, event);
}

bool server_break(struct world *world, int queue, uint64_t fence)
{
    world->server_changed = true;
    return world->server->model->break_ticket(world, world->server->state, queue, fence);
}

bool server_revoke(struct world *world, int queue, uint64_t fence)
{
    return world->server->model->revoke(world, world->server->state, queue, fence);
}

void truth_begin(struct truth *truth, const struct server *server, int queue)
{
    memset(truth, 0, offsetof(struct truth, grants));
    truth->server = server;
    truth->queue = queue;
}

void truth_add(struct truth *truth, const struct peer *asker, struct peer *peer, uint64_t fence,
               uint64_t weight, bool granted)
{
    const struct server *server = truth->server;
    if (server->model->owner)
        peer = server->model->owner(server->state, truth->queue, fence);
    if (!peer) {
        truth->others |= truth->peer && !granted; /* of an agent, which waits for its clients */
        return;
    }
    if (truth->peer) {
        truth->others = true;
    } else {
        truth->peer = peer;
        truth->fence = fence;
    }
    if (granted && peer == asker)
        truth->granted += weight;
    if (granted && truth->grant_count < GRANTS_MAX)
        truth->grants[truth->grant_count++] = (struct grant){.peer = peer, .fence = fence};
}

void truth_add_nobodys(struct truth *truth, uint64_t fence)
{
    if (truth->nobodys_count == DETACHED_MAX)
        abort(); /* there are not so many at a time */
    truth->nobodys[truth->nobodys_count++] = fence;
}

void server_truth(struct world *world, int queue, const struct peer *peer, struct truth *truth)
{
    truth_begin(truth, world->server, queue);
    world->server->model->truth(world, world->server->state, queue, peer, truth);
}

int server_left(struct world *world)
{
    return world->server->model->left(world, world->server->state);
}

uint64_t server_cell(struct world *world)
{
    return world->server->model->cell(world->server->state);
}
