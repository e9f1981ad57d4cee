/* SPDX-License-Identifier: Apache-2.0 */
/* See world.h. */
#include "world.h"

#include "check.h"
#include "core/recipe.h"
#include "system.h"

#include <string.h>

struct world world;

/* ------------------------------------------------------------------ drawing */

static void draw_locks(struct random *random, bool rush)
{
    world.lock_count = rush ? ACTORS_MAX - 1 : 1 + (int)random_below(random, 3);
    for (int i = 0; i < world.lock_count; i++) {
        struct lock *lock = &world.locks[i];
        snprintf(lock->name, sizeof lock->name, "lock%d", i);
        lock->kind = rush ? MUTEX : (enum lock_kind)random_below(random, LOCK_KINDS);
        lock->capacity = 1;
        if (lock->kind == SEMAPHORE)
            lock->capacity = 1 + (uint64_t)random_below(random, 3);
        if (lock->kind == READ_WRITE)
            lock->capacity = MRT_WRITER;
    }
    world.locks[LEADERSHIP] = (struct lock){.name = "leadership", .capacity = 1};
}

static void draw_habits(struct random *random)
{
    static const mrt_time latencies[] = {0, 100 * MRT_MICROSECOND, MRT_MILLISECOND};
    struct habits habits = {.latency = latencies[random_below(random, 3)]};
    int64_t troubles = random_below(random, 4);
    world.latency = habits.latency;
    if (troubles == 1) {
        habits.busy_chance = random_between(random, 50, 1500);
        habits.busy = 100 * MRT_MILLISECOND;
    }
    if (troubles == 2) {
        habits.stuck_chance = random_between(random, 20, 300);
        habits.stuck = 3 * MRT_SECOND;
    }
    store_set_habits(&habits);
}

static void draw_actors(struct random *random, uint64_t seed, bool rush)
{
    world.actor_count = rush ? ACTORS_MAX : 2 + (int)random_below(random, 4);
    int foreign = -1;
    for (int i = 0; i < world.actor_count; i++) {
        struct actor *actor = &world.actors[i];
        struct client *client = &world.clients[random_below(random, world.client_count)];
        *actor = (struct actor){.index = i, .client = client, .in_a_rush = rush};
        if (client->foreign && foreign >= 0)
            actor->client = &world.clients[0]; /* it has one thread */
        if (actor->client->foreign)
            foreign = i;
        snprintf(actor->name, sizeof actor->name, "actor%d", i);
        random_seed(&actor->random, seed * ACTORS_MAX + (uint64_t)i);
        actor->steps = 2 + (int)random_below(random, rush ? 10 : 6);
    }
}

static void draw_clients(struct random *random, bool rush)
{
    world.client_count = rush ? 1 : 1 + (int)random_below(random, CLIENTS_MAX);
    for (int i = 0; i < world.client_count; i++) {
        struct client *client = &world.clients[i];
        snprintf(client->name, sizeof client->name, "client%d", i);
        client->foreign = i > 0 && random_below(random, 3) == 0 && i == world.client_count - 1;
        client->later = !rush && random_below(random, 2) == 0;
        client->timeout_ms = 50 + random_below(random, 2000);
    }
}

/* ------------------------------------------------------------------ clients */

static void open_handles(struct client *client, int i)
{
    const struct lock *lock = &world.locks[i];
    mortise_lock **handles = client->handles[i];
    int error = MORTISE_OK;
    switch (lock->kind) {
    case MUTEX:
        error = mortise_mutex_new(client->handle, lock->name, NULL, &handles[0]);
        break;
    case SEMAPHORE_MUTEX:
        error = mortise_semaphore_mutex_new(client->handle, lock->name, NULL, &handles[0]);
        break;
    case EXCLUSIVE:
        error = mortise_exclusive_new(client->handle, lock->name, NULL, &handles[0]);
        break;
    case SEMAPHORE:
        error = mortise_semaphore_new(client->handle, lock->name, (uint32_t)lock->capacity, NULL,
                                      &handles[0]);
        break;
    default:
        error = mortise_read_write_new(client->handle, lock->name, NULL, &handles[0], &handles[1]);
        break;
    }
    if (error != MORTISE_OK)
        sched_fail("a lock is not made: %s", mortise_error_name(error));
}

static int open_by_scheme(const char *scheme, const mortise_client_options *options,
                          mortise_client **client)
{
    char uri[64];
    int length = snprintf(uri, sizeof uri, "%s:run", scheme);
    if (world.lease > 0)
        snprintf(uri + length, sizeof uri - (size_t)length, "?lease=%dms",
                 (int)(world.lease / MRT_MILLISECOND));
    return mortise_open(uri, options, client);
}

static void open_client(struct random *random, struct client *client)
{
    mortise_client_options options = {
        .size = sizeof options, .timeout_ms = (int32_t)client->timeout_ms, .label = client->name};
    options.flags = client->foreign ? MORTISE_FOREIGN_LOOP : 0;
    if (random_below(random, 4) == 0)
        options.flags |= MORTISE_STRICT;
    if (random_below(random, 4) == 0)
        options.budget_ms = -1;
    int error = open_by_scheme(client->later ? "later" : "inside", &options, &client->handle);
    if (error != MORTISE_OK)
        sched_fail("a client is not opened: %s", mortise_error_name(error));
    for (int i = 0; i < world.lock_count; i++)
        open_handles(client, i);
}

/* ------------------------------------------------------------------ closing */

/* Its threads either wait in a call, which closing ends, or have nothing to do with it any more. */
static bool stands_still(const void *subject)
{
    const struct client *client = subject;
    for (int i = 0; i < world.actor_count; i++)
        if (world.actors[i].client == client && !sched_waits(world.actors[i].thread, "a wake") &&
            !sched_waits(world.actors[i].thread, "a poll"))
            return false;
    return true;
}

static void close_client(struct client *client)
{
    mrt_time begun = sched_now(), paused = sched_paused();
    int error = mortise_close(client->handle);
    mrt_time trouble = store_trouble() > begun ? store_trouble() : begun;
    mrt_time limit = trouble + client->timeout_ms * MRT_MILLISECOND + 50 * MRT_MILLISECOND +
                     sched_paused() - paused;
    client->handle = NULL;
    if (sched_now() > limit)
        sched_fail("closing took %.3f ms", (double)(sched_now() - begun) / 1e6);
    if (error != MORTISE_OK && !check_has_cause(begun))
        sched_fail("closing ended with %s", mortise_error_name(error));
}

/* Starts all, or those only that are to wait for what the first client has. */
static void start_actors(bool last)
{
    for (int i = 0; i < world.actor_count; i++) {
        struct actor *actor = &world.actors[i];
        if (last && actor->client->foreign)
            continue;
        actor->done = false;
        actor->last = last;
        actor->steps = last ? 1 : actor->steps;
        actor->thread = sched_start(actor->name, actor_run, actor);
    }
}

static void join_actors(void)
{
    for (int i = 0; i < world.actor_count; i++)
        sched_join(world.actors[i].thread);
}

/* Some wait for what the first client's thread has, until it is closed. */
static void close_while_others_wait(struct random *random)
{
    struct client *client = &world.clients[0];
    mortise_hold hold;
    if (world.locks[0].kind == SEMAPHORE || world.lease > 0 || random_below(random, 3) > 0)
        return;
    if (mortise_acquire(client->handles[0][world.locks[0].kind == READ_WRITE], &hold) != 0)
        return;
    start_actors(true);
    sched_wait("those who wait", stands_still, client, MRT_TIME_NEVER);
    world.closing = true;
    close_client(client);
    join_actors();
}

static void close_clients(bool foreign)
{
    for (int i = 0; i < world.client_count; i++)
        if (world.clients[i].handle && world.clients[i].foreign == foreign)
            close_client(&world.clients[i]);
}

static int nothing_is_left(void *argument, const mortise_entry *entry)
{
    (void)argument;
    sched_fail("%s has a ticket when all clients are closed", entry->name);
}

/* ------------------------------------------------------------------ a run */

static void begin(struct random *random, uint64_t seed, enum sched_trace trace)
{
    sched_begin(seed, trace);
    system_begin();
    store_begin(seed);
    check_begin();
    memset(&world, 0, sizeof world);
    bool rush = random_below(random, 5) == 0;
    draw_locks(random, rush);
    draw_clients(random, rush);
    draw_actors(random, seed, rush);
    if (!rush && random_below(random, 2) == 0)
        world.lease = (300 + random_below(random, 3) * 400) * MRT_MILLISECOND;
    world.breaks = random_below(random, 4) == 0;
}

void world_run(uint64_t seed, enum sched_trace trace)
{
    struct random random;
    mortise_client *operator;
    random_seed(&random, seed ^ UINT64_C(0x5bd1e995));
    begin(&random, seed, trace);
    if (open_by_scheme("inside", NULL, &operator) != MORTISE_OK)
        sched_fail("the operator's client is not opened");
    for (int i = 0; i < world.client_count; i++)
        open_client(&random, &world.clients[i]);
    draw_habits(&random);
    start_actors(false);
    join_actors();
    close_clients(true); /* nobody runs them any more */
    close_while_others_wait(&random);
    close_clients(false);
    store_set_habits(&(struct habits){.latency = 0});
    if (world.lease > 0)
        sched_sleep("what is left to end", 3 * world.lease);
    operate_check_cell(operator);
    int error = mortise_list(operator, NULL, nothing_is_left, NULL);
    if (error != MORTISE_OK || mortise_close(operator) != MORTISE_OK)
        sched_fail("the operator's client does not list, or not close");
    check_end();
    sched_end();
    system_end();
}
