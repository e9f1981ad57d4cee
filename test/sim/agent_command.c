/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of clients of the commands: see agent_command.h. */
#include "agent_command.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAL_OPERATIONS 3

#define CLIENT_OF(task, member) \
    ((struct resp_client *)(void *)((char *)(task)-offsetof(struct client, member)))

/* ------------------------------------------------------------------ a process, as host.c has it */

static int process_open(const struct mrt_uri *uri, const struct mrt_store_options *options,
                        struct mrt_sink sink, struct mrt_store **store)
{
    (void)uri, (void)options, (void)sink;
    *store = (struct mrt_store *)host_current->client;
    return MORTISE_OK;
}

static mrt_time process_next(struct mrt_store *store)
{
    (void)store;
    return MRT_TIME_NEVER;
}

static void process_run(struct mrt_store *store, mrt_time now)
{
    struct resp_client *client = (struct resp_client *)store;
    (void)now;
    for (int i = 0; i < client->count; i++)
        if (client->dialogues[i].fd >= 0)
            dialogue_read(&client->dialogues[i]);
}

static void process_close(struct mrt_store *store)
{
    (void)store;
}

static void write_uri(const struct world *world, char *text, size_t size)
{
    (void)world;
    snprintf(text, size, "agent:");
}

static const struct mrt_store_ops process_ops = {
    .open = process_open, .next = process_next, .process = process_run, .close = process_close};
static const struct host_kind process_kind = {.ops = &process_ops, .write_uri = write_uri};

/* ------------------------------------------------------------------ life and death */

static void arm(struct resp_client *client);

static void note(const struct resp_client *client, const char *what)
{
    trace_note(client->client.world, TRACE_CLIENT, client->client.index, NO_QUEUE, what, 0, 0, 0);
}

static void start(struct resp_client *client)
{
    struct world *world = client->client.world;
    note(client, "begins");
    if (!host_open(world, &client->client, &process_kind))
        abort();
    host_current = client->client.host;
    client->epoll = epoll_create1(0);
    host_current = NULL;
    client->runs = true;
    for (int i = 0; i < client->count; i++)
        dialogue_begin(&client->dialogues[i], client->dialogues[i].operations);
    arm(client);
}

static void restart(struct world *world, struct task *task)
{
    (void)world;
    start(CLIENT_OF(task, restart));
}

/* The system closes its connections. */
static void end_process(struct resp_client *client, bool died)
{
    struct world *world = client->client.world;
    struct task *const tasks[] = {&client->client.disaster_crash, &client->client.disaster_pause,
                                  &client->client.disaster_cut};
    for (size_t i = 0; i < sizeof tasks / sizeof tasks[0]; i++)
        world_cancel(world, tasks[i]);
    client->runs = false;
    client->client.paused_until = 0;
    host_close(&client->client, died);
    for (int i = 0; i < client->count; i++)
        dialogue_forget(&client->dialogues[i]);
}

static void die(struct world *world, struct task *task)
{
    struct resp_client *client = CLIENT_OF(task, disaster_crash);
    note(client, "dies");
    if (random_below(&world->random, 2))
        dialogue_break_off(&client->dialogues[random_below(&world->random, client->count)]);
    end_process(client, true);
    world_at(world, &client->client.restart,
             world->now + MRT_MICROSECOND + world_some(world, world->drawn.restart_us), restart);
}

static void stand_still(struct world *world, struct task *task)
{
    struct resp_client *client = CLIENT_OF(task, disaster_pause);
    client->client.paused_until = world->now + world_some(world, world->profile.pause_us);
    note(client, "stands still");
    world_at(world, task, world->now + world_about(world, world->profile.pause_every_us),
             stand_still);
}

/* Bytes on their way come later. */
static void hold_up(struct world *world, struct task *task)
{
    struct resp_client *client = CLIENT_OF(task, disaster_cut);
    client->client.cut_until = world->now + world_some(world, world->profile.cut_us);
    note(client, "is held up");
    world_at(world, task, world->now + world_about(world, world->profile.cut_every_us), hold_up);
}

static void arm(struct resp_client *client)
{
    struct world *world = client->client.world;
    const struct profile *p = &world->profile;
    const struct disaster disasters[] = {
        {&client->client.disaster_crash, p->crash_every_us, die},
        {&client->client.disaster_pause, p->pause_every_us, stand_still},
        {&client->client.disaster_cut, p->cut_every_us, hold_up}};
    world_arm(world, disasters, sizeof disasters / sizeof disasters[0]);
}

/* ------------------------------------------------------------------ the phases */

/* Those that a LOCK of the commands can name. */
static bool can_be_named(const struct world *world, int queue)
{
    int64_t lock = world->queues[queue].lock;
    return lock == LOCK_SEMAPHORE || lock == LOCK_READ_WRITE ||
           (lock == LOCK_MUTEX && world->queues[queue].recipe.capacity == 1);
}

static void boot(struct resp_world *resp, int number)
{
    struct world *world = resp->world;
    struct resp_client *client = &resp->clients[number];
    client->client.world = world;
    client->client.index = RESP_INDEX + number;
    client->client.offset = random_below(&world->random, 1000 * MRT_SECOND);
    client->client.rate_ppm = agent_for(&client->client)->client.rate_ppm; /* the same host */
    client->count = (int)random_between(&world->random, 1, DIALOGUES_MAX);
    for (int i = 0; i < client->count; i++) {
        client->dialogues[i].client = client;
        client->dialogues[i].index = i;
        client->dialogues[i].fd = -1;
        client->dialogues[i].operations = world->drawn.operations;
    }
    start(client);
}

void resp_begin(struct world *world)
{
    const struct profile *p = &world->drawn;
    if (p->model != MODEL_AGENT || p->resp_clients + p->user_hold_us == 0)
        return;
    world->resp = calloc(1, sizeof *world->resp);
    if (!world->resp)
        abort();
    world->resp->world = world;
    if (can_be_named(world, 0))
        world->resp->count =
            (int)(p->resp_clients < RESP_CLIENTS_MAX ? p->resp_clients : RESP_CLIENTS_MAX);
    policy_begin(world);
}

void resp_populate(struct world *world)
{
    for (int i = 0; world->resp && i < world->resp->count; i++)
        boot(world->resp, i);
}

void resp_heal(struct world *world)
{
    for (int i = 0; world->resp && i < world->resp->count; i++) {
        struct resp_client *client = &world->resp->clients[i];
        client->client.cut_until = 0;
        if (client->runs)
            arm(client);
        for (int d = 0; d < client->count; d++) {
            bool idle = dialogue_idle(&client->dialogues[d]) || client->dialogues[d].fd < 0;
            client->dialogues[d].operations = HEAL_OPERATIONS;
            if (client->runs && idle)
                dialogue_step_in(&client->dialogues[d], world->drawn.think_us);
        }
    }
}

void resp_close(struct world *world)
{
    for (int i = 0; world->resp && i < world->resp->count; i++) {
        world_cancel(world, &world->resp->clients[i].client.restart);
        if (world->resp->clients[i].runs)
            end_process(&world->resp->clients[i], false);
    }
}

void resp_fini(struct world *world)
{
    for (int i = 0; world->resp && i < world->resp->count; i++) {
        struct client *client = &world->resp->clients[i].client;
        host_close(client, true);
        streams_free(client);
        hosts_free(client);
    }
    if (world->resp)
        policy_end(world->resp);
    free(world->resp);
}

/* The first that has something to do; NULL: none has. */
static const struct dialogue *find_busy(const struct world *world)
{
    for (int i = 0; world->resp && i < world->resp->count; i++) {
        const struct resp_client *client = &world->resp->clients[i];
        for (int d = 0; d < client->count; d++)
            if (!client->runs || !dialogue_idle(&client->dialogues[d]))
                return &client->dialogues[d];
    }
    return NULL;
}

bool resp_idle(const struct world *world)
{
    return !find_busy(world);
}

void resp_complain(const struct world *world)
{
    const struct dialogue *busy = find_busy(world);
    if (busy)
        resp_fail(busy, busy->asked_count > 0 ? busy->asked[0].queue : NO_QUEUE, "%s",
                  busy->asked_count > 0 ? "it is never answered" : "it does not finish");
}

void resp_end_streams(struct world *world, int agent)
{
    for (int i = 0; world->resp && i < world->resp->count; i++)
        streams_end_client(&world->resp->clients[i].client, agent);
}
