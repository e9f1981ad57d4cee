/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock that is left to nobody, and adopted. There is at most one at a time; all threads know of
 * it as soon as it has been told, and any that has nothing to do may adopt it.
 *
 * The invariant: a ticket that was surely left is at the server until a client adopts it, also when
 * its client, its session or its adopter have gone; no client hears that it is not there as long as
 * it must be; its next holder has a higher fence; and in the end nothing is nobody's that no client
 * knows of.
 */
#include "explore.h"

#include <string.h>

static struct mrt_id identity(uint64_t number)
{
    return (struct mrt_id){CLIENTS_MAX + 1, number}; /* the engines' begin with lower numbers */
}

struct mrt_id left_id(const struct world *world)
{
    return world->left.state == LEFT_NONE ? (struct mrt_id){0, 0} : identity(world->left.number);
}

/* Whether a thread is at it, but for this one. */
static bool is_wanted(const struct world *world, const struct thread *except)
{
    for (int c = 0; c < world->instance->clients; c++)
        for (int t = 0; t < THREADS_MAX; t++) {
            const struct thread *thread = &world->clients[c].threads[t];
            if (thread != except && thread->adopting)
                return true;
        }
    return false;
}

/* No session has ended by itself. */
static bool undisturbed(const struct world *world)
{
    return world->kills == world->instance->kills && world->crashes == world->instance->crashes &&
           world->instance->instants == 0;
}

struct search {
    struct mrt_id wanted; /* none: any */
    uint64_t fence;
    bool found;
};

static int find(void *context, const struct mrt_memory_entry *entry)
{
    struct search *search = context;
    if (!entry->detached ||
        (!mrt_id_none(search->wanted) && !mrt_id_equal(entry->ticket, search->wanted)))
        return 0;
    search->found = true;
    search->fence = entry->fence;
    return 1;
}

/* ---------------------------------------------------------------- what can happen */

bool left_may_detach(const struct world *world, const struct thread *thread)
{
    const struct mrt_hold *hold = thread->grips[0].hold;
    return world->adoptions > 0 && world->left.state == LEFT_NONE && hold && hold->ticket &&
           hold->count == 1 && !thread->grips[1].hold;
}

bool left_may_adopt(const struct world *world, const struct thread *thread)
{
    return world->adoptions > 0 && thread->state == THREAD_IDLE && world->left.state != LEFT_NONE &&
           world->left.state != LEFT_ASKED;
}

void left_detach(struct world *world, struct client *client, struct thread *thread)
{
    struct grip *grip = &thread->grips[0];
    const struct mrt_hold *hold = grip->hold;
    world->left = (struct left){.state = LEFT_ASKED,
                                .number = world->left.number + 1,
                                .weight = hold->weight,
                                .fence = hold->fence};
    thread->waiter = (struct mrt_waiter){.deadline = MRT_TIME_NEVER};
    int error = mrt_engine_detach(client->engine, grip->hold, grip->generation, 0, left_id(world),
                                  &thread->waiter, world_now(world, client));
    if (error == MORTISE_ELOST) {
        world->left.state = LEFT_NONE;
        world_pump(world, client);
        return;
    }
    if (error != MORTISE_OK)
        check_fail(world, "a hold is detached: %s", mortise_error_name(error));
    memset(grip, 0, sizeof *grip);
    thread->detaching = true;
    thread->nested = false;
    thread->state = THREAD_WAITING;
    thread_follow(world, client, thread);
}

void left_adopt(struct world *world, struct client *client, struct thread *thread)
{
    world->adoptions--;
    thread->adopting = true;
    thread->state = THREAD_WAITING;
    thread->waiter =
        (struct mrt_waiter){.owner = world_owner(world, (int)(thread - client->threads)),
                            .weight = world->left.weight,
                            .deadline = MRT_TIME_NEVER,
                            .adopts = left_id(world),
                            .last_fence = world->left.fence};
    mrt_engine_adopt(client->engine, client->queue, &thread->waiter, world_now(world, client));
    thread_follow(world, client, thread);
}

/* ------------------------------------------------------------------ what became of it */

static void detached(struct world *world, const struct thread *thread, int error)
{
    if (world->left.state != LEFT_ASKED)
        return; /* somebody who could not be sure has adopted it, or an operator broken it */
    if (error == MORTISE_OK)
        world->left.state = LEFT_SURE;
    else if (error == MORTISE_ELOST)
        world->left.state = LEFT_NONE;
    else if (error == MORTISE_EUNKNOWN || (error == MORTISE_ECANCELLED && thread->cancelled))
        world->left.state = LEFT_UNSURE;
    else
        check_fail(world, "detaching ends with %s", mortise_error_name(error));
}

static void not_there(struct world *world, const struct thread *thread)
{
    bool same = mrt_id_equal(thread->waiter.adopts, left_id(world));
    if (same && world->left.state == LEFT_SURE && undisturbed(world) && !is_wanted(world, thread))
        check_fail(world, "what is left to nobody cannot be adopted");
    if (same && world->left.state == LEFT_SURE)
        world->left.state = LEFT_UNSURE;
}

bool left_settled(struct world *world, struct thread *thread, int error)
{
    if (thread->detaching) {
        detached(world, thread, error);
        return false;
    }
    if (error == MORTISE_ECANCELLED && thread->cancelled) {
        if (world->left.state == LEFT_SURE)
            world->left.state = LEFT_GIVEN_UP;
        return false;
    }
    if (error == MORTISE_ENOTHELD) {
        not_there(world, thread);
        return false;
    }
    if (error == MORTISE_EBUSY)
        return false; /* another thread of the client is at it, or has just given up */
    if (error != MORTISE_OK)
        check_fail(world, "adopting ends with %s", mortise_error_name(error));
    if (thread->waiter.hold->fence <= thread->waiter.last_fence)
        check_fail(world, "what is adopted has no higher fence");
    world->left.state = LEFT_NONE;
    return true;
}

void left_crashed(struct world *world, const struct thread *thread)
{
    if ((thread->detaching || thread->adopting) && world->left.state != LEFT_NONE)
        world->left.state = LEFT_UNSURE;
}

uint64_t left_weight(const struct world *world)
{
    struct search search = {.wanted = left_id(world)};
    if (world->left.state != LEFT_SURE || is_wanted(world, NULL))
        return 0;
    mrt_memory_server_list(world->server, find, &search);
    if (!search.found)
        check_fail(world, "what was left to nobody has vanished");
    return world->left.weight;
}

bool left_break(struct world *world)
{
    struct search search = {.found = false};
    mrt_memory_server_list(world->server, find, &search);
    if (!search.found && world->left.state == LEFT_GIVEN_UP && undisturbed(world) &&
        world->losses == world->instance->losses)
        check_fail(world, "who gave up adopting has taken it out");
    if (search.found && world->left.state == LEFT_NONE)
        check_fail(world, "a lock is left to nobody, and nobody knows");
    if (search.found)
        world->left.state = LEFT_NONE;
    else if (world->left.state == LEFT_GIVEN_UP)
        world->left.state = LEFT_UNSURE; /* the one who gave up may put it back yet */
    if (search.found)
        mrt_memory_server_break(world->server, "q", search.fence, &world->sink);
    return search.found;
}
