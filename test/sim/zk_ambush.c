/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operator at the worst moment. A waiter of a mutex is told by events that the lock is its own:
 * that is right only as long as its own node stands. So, just before a node is deleted, the node
 * of who comes next is written to, which uses up the watch on it, and deleted, before that watch
 * can be set again. The events of all three come together.
 *
 * The ticket waits when it is taken out: unlike a holder's, it must not be granted after that.
 */
#include "zk_internal.h"

#include <string.h>

static void operate(struct zk_ensemble *ensemble, enum zk_type type, const char *path)
{
    struct zk_answer answer = {0};
    struct zk_request *request = zk_request_new(type, path);
    request->part.data = zk_data_of("note", 4);
    zk_tree_write(&ensemble->tree, OUTSIDER, request, &answer);
    zk_request_free(request);
    zk_committed(ensemble);
}

/* The mutex that a directory is of; NO_QUEUE: it is none's. */
static int mutex_of(const struct world *world, const struct zk_node *directory)
{
    for (int i = 0; i < world->drawn.queues; i++)
        if (world->queues[i].lock == LOCK_MUTEX &&
            strcmp(world->queues[i].name, directory->name) == 0)
            return i;
    return NO_QUEUE;
}

static void take_away(struct zk_ensemble *ensemble, int queue, const struct zk_node *node)
{
    struct world *world = ensemble->world;
    char path[ZK_PATH_SIZE];
    int64_t how = random_below(&world->random, 4);
    trace_note(world, TRACE_PHASE, -1, queue, "ambush", (node->origin) << 12, how, 0);
    snprintf(path, sizeof path, ZK_CHROOT "/%s/%s", world->queues[queue].name, node->name);
    if (how != 0)
        operate(ensemble, ZK_SET, path);
    if (how != 1)
        operate(ensemble, ZK_DELETE, path);
}

static void ambush_next(struct zk_ensemble *ensemble, const struct zk_part *part)
{
    const struct zk_node *node = zk_tree_find(&ensemble->tree, part->path, ensemble->tree.zxid);
    int queue = node && node->weight > 0 ? mutex_of(ensemble->world, node->parent) : NO_QUEUE;
    const struct zk_node *next =
        queue != NO_QUEUE ? zk_next_ticket(node->parent, node->origin) : NULL;
    if (next && next->owner > OUTSIDER)
        take_away(ensemble, queue, next);
}

void zk_ambush(struct zk_ensemble *ensemble, const struct zk_request *request)
{
    struct world *world = ensemble->world;
    if (world->profile.zk_ambush == 0 || world->phase != PHASE_CHAOS ||
        !random_chance(&world->random, world->profile.zk_ambush))
        return;
    if (request->part.type == ZK_DELETE)
        ambush_next(ensemble, &request->part);
    for (int i = 0; request->part.type == ZK_MULTI && i < request->part_count; i++)
        if (request->parts[i].type == ZK_DELETE)
            ambush_next(ensemble, &request->parts[i]);
}
