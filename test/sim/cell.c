/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cell that every client adds 1 to, one write after the other: it is written as often as clients
 * were told, or could not be told. Each write has the fence of a turn that lasts for some writes; a
 * turn that another one has overtaken cannot write.
 */
#include "world.h"

#include <string.h>

#define CELL "cell"

static void step(struct world *world, struct task *task);

static void plan(struct world *world, struct client *client)
{
    struct writer *writer = &client->writer;
    if (writer->left > 0)
        world_at(world, &writer->step,
                 world->now + MRT_MICROSECOND + world_some(world, world->profile.think_us), step);
}

static void ask(struct world *world, struct client *client, const struct mrt_command *wanted)
{
    struct writer *writer = &client->writer;
    writer->waiter = (struct mrt_waiter){.deadline = MRT_TIME_NEVER};
    if (random_chance(&world->random, world->profile.timed))
        writer->waiter.deadline = client_now(client) + world_some(world, world->profile.wait_us);
    world->operations++;
    mrt_engine_request(client->engine, wanted, &writer->answer, &writer->waiter,
                       client_now(client));
    if (writer->waiter.state == MRT_WAITER_DONE && !writer->waiter.settled)
        writer->asks = writer->writes = false;
}

static void step(struct world *world, struct task *task)
{
    struct client *client =
        (struct client *)(void *)((char *)task - offsetof(struct client, writer));
    struct writer *writer = &client->writer;
    static const struct mrt_command get = {.type = MRT_CELL_GET, .queue = CELL};
    if (client_paused(client)) {
        world_at(world, task, client->paused_until, step);
        return;
    }
    if (client->closing)
        return;
    writer->left--;
    if (random_below(&world->random, 3) == 0)
        writer->fence = ++world->cell_fences;
    writer->floor = world->cell_floor;
    writer->asks = true;
    ask(world, client, &get);
    client_pump(world, client);
}

static void add_one(struct world *world, struct client *client)
{
    struct writer *writer = &client->writer;
    uint64_t value = 0;
    memcpy(&value, writer->answer.value, writer->answer.value_size);
    value++;
    const struct mrt_command set = {.type = MRT_CELL_SET,
                                    .queue = CELL,
                                    .version = writer->answer.version,
                                    .fence = writer->fence,
                                    .value = &value,
                                    .value_size = sizeof value};
    writer->writes = true;
    ask(world, client, &set);
}

static void written(struct world *world, struct client *client, int error)
{
    struct writer *writer = &client->writer;
    if (error == MORTISE_OK) {
        world->cell_done++;
        if (writer->fence > 0 && writer->fence < writer->floor)
            check_fail(world, client->index, NO_QUEUE, "a write of %llu after one of %llu",
                       (unsigned long long)writer->fence, (unsigned long long)writer->floor);
        if (writer->fence > world->cell_floor)
            world->cell_floor = writer->fence;
    } else if (error == MORTISE_EUNKNOWN) {
        world->cell_unknown++;
    } else if (error == MORTISE_ESTALE) {
        writer->fence = ++world->cell_fences;
    }
}

bool cell_settled(struct world *world, struct client *client, const struct mrt_waiter *waiter)
{
    struct writer *writer = &client->writer;
    if (waiter != &writer->waiter)
        return false;
    bool read = writer->asks && waiter->error == MORTISE_OK;
    trace_note(world, TRACE_DONE, client->index, NO_QUEUE, writer->writes ? "cell" : "reads",
               waiter->error, (int64_t)writer->answer.version, (int64_t)writer->fence);
    if (writer->writes)
        written(world, client, waiter->error);
    writer->asks = writer->writes = false;
    if (read)
        add_one(world, client);
    if (!writer->writes)
        plan(world, client);
    return true;
}

void cell_boot(struct world *world, struct client *client)
{
    struct writer *writer = &client->writer;
    if (world->phase == PHASE_CHAOS && client->writer.step.run == NULL)
        writer->left = world->drawn.cells;
    writer->fence = 0;
    plan(world, client);
}

/* Its write may have been executed, or may still be. */
void cell_died(struct world *world, struct client *client)
{
    struct writer *writer = &client->writer;
    world_cancel(world, &writer->step);
    if (writer->writes)
        world->cell_unknown++;
    writer->asks = writer->writes = false;
}

void cell_check_end(struct world *world)
{
    if (world->drawn.cells == 0)
        return;
    uint64_t count = server_cell(world);
    if (count < world->cell_done || count > world->cell_done + world->cell_unknown)
        check_fail(world, -1, NO_QUEUE, "a cell was written %llu times; %llu were told, %llu not",
                   (unsigned long long)count, (unsigned long long)world->cell_done,
                   (unsigned long long)world->cell_unknown);
}
