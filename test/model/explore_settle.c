/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How it ends. From a state on, nothing fails any more, but no wake is heard either: whoever
 * is first in the order of the file does what it can, time goes on when there is nothing else
 * to do, and in the end nobody may be waiting. Then all close, and nothing may be left.
 *
 * That no wake is heard makes it the worst of the ends: a wake lost is a matter of time.
 */
#include "explore.h"

#include <string.h>

#define ROUNDS_MAX 2000

/* The immediate steps of a client's threads: they take their holds, and release them. */
static bool work(struct world *world, struct client *client)
{
    bool any = false;
    for (int t = 0; t < THREADS_MAX; t++) {
        struct thread *thread = &client->threads[t];
        if (thread->state == THREAD_WOKEN) {
            thread_retry(world, client, thread);
            any = true;
        }
        for (int g = 0; g < GRIPS_MAX; g++)
            while (thread->grips[g].hold) {
                thread_release(world, client, thread, g);
                any = true;
            }
    }
    return any;
}

static bool serve_client(struct world *world, struct client *client)
{
    bool any = client->down_count > 0;
    while (client->down_count > 0)
        world_apply(world, client);
    if (!client->engine) {
        if (!client->noticed && world->instance->instants == 0)
            world_notice(world, client);
        return any;
    }
    memset(client->hints, 0, sizeof client->hints);
    client->hint_count = 0;
    while (client->up_count > 0) {
        world_hear(world, client);
        any = true;
    }
    if (world->instance->instants > 0 && mrt_engine_next_time(client->engine) <= world->now) {
        world_tick(world, client);
        any = true;
    }
    return (!client->closing && work(world, client)) || any;
}

static bool someone_waits(const struct world *world)
{
    for (int c = 0; c < world->instance->clients; c++)
        for (int t = 0; t < THREADS_MAX; t++)
            if (world->clients[c].threads[t].state != THREAD_IDLE)
                return true;
    return false;
}

static bool all_closed(const struct world *world)
{
    for (int c = 0; c < world->instance->clients; c++)
        if (world->clients[c].engine && !mrt_engine_closed(world->clients[c].engine))
            return false;
    return mrt_memory_server_sessions(world->server) == 0;
}

/* Nothing is on its way: time goes on to where something happens. */
static void pass(struct world *world)
{
    if (world->instance->instants > 0) {
        mrt_time next = world_next(world);
        if (mrt_memory_server_next(world->server) <= world->now)
            next = world->now; /* it has come already */
        if (next == MRT_TIME_NEVER)
            check_fail(world, "nothing will ever happen again");
        world->now = next;
        if (mrt_memory_server_next(world->server) <= world->now)
            world_expire(world);
        return;
    }
    for (int c = 0; c < world->instance->clients; c++) {
        struct client *client = &world->clients[c];
        if (client->engine && mrt_engine_next_time(client->engine) != MRT_TIME_NEVER)
            world_tick(world, client);
    }
    delay_end(world);
}

static void run(struct world *world, bool (*done)(const struct world *), const char *complaint)
{
    for (int round = 0; round < ROUNDS_MAX; round++) {
        bool any = false;
        for (int c = 0; c < world->instance->clients; c++) {
            any |= serve_client(world, &world->clients[c]);
            check_world(world);
        }
        if (!any && done(world))
            return;
        if (!any && !left_break(world))
            pass(world);
    }
    check_fail(world, "%s", complaint);
}

static bool none_waits(const struct world *world)
{
    return !someone_waits(world);
}

void settle(struct world *world)
{
    world->settling = true;
    run(world, none_waits, "somebody waits for ever");
    left_break(world);
    for (int c = 0; c < world->instance->clients; c++) {
        struct client *client = &world->clients[c];
        if (!client->engine)
            continue;
        client->closing = true;
        mrt_engine_close(client->engine, world_now(world, client));
        world_pump(world, client);
    }
    run(world, all_closed, "a session or a ticket is left in the end");
    while (delay_end(world))
        ;
    check_world(world);
    left_break(world);
}
