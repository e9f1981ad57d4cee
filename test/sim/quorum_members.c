/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A quorum whose members' claims end with a session, as on ZooKeeper or a database: unlike a key of
 * Redis, such a claim is only as old as its session's newest sign of life. The quorum store runs as
 * it ships; a member is the memory store's server, behind a store of the port's that does
 * nothing but carry commands down and events up, in order and late.
 *
 * No message is lost: a quorum gives up by the clock a member that does not answer. The faults are
 * a connection between one client and one member that carries nothing, in one direction or both,
 * and a client that is cut off from all members.
 */
#include "base/uri.h"
#include "host.h"
#include "server.h"
#include "store/memory/server.h"
#include "store/stores.h"

#include <stdlib.h>
#include <string.h>

#define MEMBERS QUORUM_MAX

enum { DOWN, UP };

struct member {
    struct task expire; /* first */
    struct members *all;
    struct mrt_memory_server *core;
    struct way {
        mrt_time last, free_at; /* what was sent last arrives; it is held up until then */
    } ways[CLIENTS_MAX][2];
};

struct members {
    struct task trouble; /* first */
    struct world *world;
    struct member members[MEMBERS];
};

/* On its way, in either direction. */
struct message {
    struct task task; /* first */
    struct member *member;
    struct peer *peer;
    struct mrt_command command;
    struct mrt_event event;
    char queue[32];
};

/* The client's side: keeps events that have arrived until the store is called. */
struct mrt_store {
    struct mrt_sink sink;
    struct client *client;
    int index;
    char address[16];
    struct mrt_event *inbox;
    size_t count, room;
};

static struct members *members_of(const struct world *world)
{
    return world->server->state;
}

static mrt_time latest(mrt_time a, mrt_time b)
{
    return a > b ? a : b;
}

/* ------------------------------------------------------------------ the way */

static struct message *message_to(struct member *member, struct peer *peer)
{
    struct message *message = calloc(1, sizeof *message);
    if (!message)
        abort();
    message->task.owned = true;
    message->member = member;
    message->peer = peer;
    return message;
}

static void dispatch(struct message *message, int direction,
                     void (*arrive)(struct world *, struct task *))
{
    struct world *world = message->member->all->world;
    struct way *way = &message->member->ways[message->peer->index][direction];
    mrt_time at = world->now + world_some(world, world->profile.delay_us);
    if (message->peer->client)
        at = latest(at, message->peer->client->cut_until);
    way->last = latest(latest(at, way->free_at), way->last);
    world_at(world, &message->task, way->last, arrive);
}

static void arrive_up(struct world *world, struct task *task)
{
    struct message *message = (struct message *)task;
    struct client *client = message->peer->client;
    struct mrt_store *store =
        client ? client->members[message->member - members_of(world)->members] : NULL;
    if (store && store->count == store->room) {
        store->room = store->room ? store->room * 2 : 16;
        store->inbox = realloc(store->inbox, store->room * sizeof *store->inbox);
        if (!store->inbox)
            abort();
    }
    if (store) {
        store->inbox[store->count++] = message->event;
        host_ready(client);
    }
    free(message);
}

static void emit(void *context, void *peer, const struct mrt_event *event)
{
    struct message *message = message_to(context, peer);
    message->event = *event;
    message->event.detail = NULL;
    dispatch(message, UP, arrive_up);
}

static void expire(struct world *world, struct task *task);

static void plan_expiry(struct world *world, struct member *member)
{
    mrt_time next = mrt_memory_server_next(member->core);
    if (next == MRT_TIME_NEVER)
        world_cancel(world, &member->expire);
    else
        world_at(world, &member->expire, next, expire);
}

static void expire(struct world *world, struct task *task)
{
    struct member *member = (struct member *)task;
    const struct mrt_memory_sink sink = {emit, member};
    world->server_changed = true;
    mrt_memory_server_expire(member->core, world->now, &sink);
    plan_expiry(world, member);
}

static void arrive_down(struct world *world, struct task *task)
{
    struct message *message = (struct message *)task;
    struct member *member = message->member;
    const struct mrt_memory_sink sink = {emit, member};
    trace_note(world, TRACE_APPLY, message->peer->index, NO_QUEUE, "member",
               member - member->all->members, message->command.type,
               (int64_t)message->command.serial);
    world->operations++;
    world->server_changed = true;
    mrt_memory_server_apply(member->core, &message->command, message->peer, world->now, &sink);
    plan_expiry(world, member);
    free(message);
}

/* ------------------------------------------------------------------ the member's store */

static int member_open(const struct mrt_uri *uri, const struct mrt_store_options *options,
                       struct mrt_sink sink, struct mrt_store **store)
{
    (void)options;
    *store = calloc(1, sizeof **store);
    if (!*store)
        return MORTISE_ENOMEM;
    **store = (struct mrt_store){
        .sink = sink, .client = host_current->client, .index = uri->rest[0] - '0'};
    snprintf((*store)->address, sizeof(*store)->address, "member:%d", (*store)->index);
    (*store)->client->members[(*store)->index] = *store;
    return MORTISE_OK;
}

static bool member_submit(struct mrt_store *store, const struct mrt_command *command,
                          mrt_time patience)
{
    struct client *client = store->client;
    struct message *message =
        message_to(&members_of(client->world)->members[store->index], client->peer);
    (void)patience;
    message->command = *command;
    message->command.kind = "exclusive";
    if (command->queue) {
        snprintf(message->queue, sizeof message->queue, "%s", command->queue);
        message->command.queue = message->queue;
    }
    dispatch(message, DOWN, arrive_down);
    return true;
}

static int member_fd(struct mrt_store *store)
{
    (void)store;
    return -1;
}

static mrt_time member_next(struct mrt_store *store)
{
    return store->count > 0 ? 0 : MRT_TIME_NEVER;
}

static void member_process(struct mrt_store *store, mrt_time now)
{
    (void)now;
    for (size_t i = 0; i < store->count; i++)
        store->sink.deliver(store->sink.context, &store->inbox[i]);
    store->count = 0;
}

static mrt_time member_lease(const struct mrt_store *store)
{
    return store->client->world->drawn.lease_us * MRT_MICROSECOND;
}

static const char *member_address(const struct mrt_store *store)
{
    return store->address;
}

static void member_close(struct mrt_store *store)
{
    store->client->members[store->index] = NULL;
    free(store->inbox);
    free(store);
}

static const struct mrt_store_ops member_store = {.scheme = "member",
                                                  .open = member_open,
                                                  .submit = member_submit,
                                                  .fd = member_fd,
                                                  .next = member_next,
                                                  .process = member_process,
                                                  .lease = member_lease,
                                                  .address = member_address,
                                                  .close = member_close,
                                                  .abandon = member_close};

static int find_member(const struct mrt_uri *uri, const struct mrt_store_ops **ops)
{
    *ops = &member_store;
    return strcmp(uri->scheme, "member") == 0 ? MORTISE_OK : MORTISE_ESCHEME;
}

static void write_uri(const struct world *world, char *text, size_t size)
{
    snprintf(text, size, "redlock:member:0,member:1,member:2?answer=%lldms",
             (long long)(world->drawn.lease_us / 5000));
}

static void cut(struct world *world, struct client *client)
{
    (void)world, (void)client; /* messages sent from now on wait for its end */
}

static void free_client(struct client *client)
{
    (void)client;
}

const struct host_kind quorum_host_kind = {.ops = &mrt_quorum_store,
                                           .find = find_member,
                                           .write_uri = write_uri,
                                           .cut = cut,
                                           .free = free_client};

/* ------------------------------------------------------------------ the model */

static void trouble(struct world *world, struct task *task)
{
    struct members *all = (struct members *)task;
    struct member *member = &all->members[random_below(&world->random, MEMBERS)];
    int64_t client = random_below(&world->random, world->drawn.clients);
    int64_t directions = random_between(&world->random, 1, 3);
    mrt_time until = world->now + world_some(world, world->profile.trouble_us);
    if (world->phase != PHASE_CHAOS)
        return;
    world_at(world, task, world->now + world_about(world, world->profile.trouble_every_us),
             trouble);
    trace_note(world, TRACE_LINK, (int)client, NO_QUEUE, "a member is held up",
               member - all->members, directions, (until - world->now) / 1000);
    for (int direction = DOWN; direction <= UP; direction++)
        if (directions & 1 << direction)
            member->ways[client][direction].free_at = until;
}

static void *members_new(struct world *world)
{
    struct members *all = calloc(1, sizeof *all);
    const struct mrt_memory_config config = {.lease = world->drawn.lease_us * MRT_MICROSECOND,
                                             .recheck = world->drawn.recheck_us * MRT_MICROSECOND,
                                             .fence_span = 1,
                                             .first_fence = 1};
    if (!all)
        abort();
    all->world = world;
    for (int i = 0; i < MEMBERS; i++) {
        all->members[i].all = all;
        all->members[i].core = mrt_memory_server_new(&config);
        if (!all->members[i].core)
            abort();
    }
    if (world->drawn.trouble_every_us > 0)
        world_at(world, &all->trouble, world_about(world, world->drawn.trouble_every_us), trouble);
    return all;
}

static void members_free(void *state)
{
    struct members *all = state;
    for (int i = 0; i < MEMBERS; i++)
        mrt_memory_server_free(all->members[i].core);
    free(all);
}

static int see_holder(void *context, const struct mrt_memory_entry *entry)
{
    *(struct peer **)context = entry->peer;
    return 1; /* the first has it, and nobody waits at a member */
}

/* The client that has a claim at most of the members. */
static void members_truth(struct world *world, void *state, int queue, const struct peer *asker,
                          struct truth *truth)
{
    struct members *all = state;
    struct peer *holders[MEMBERS] = {NULL};
    truth->span = UINT64_MAX;
    for (int i = 0; i < MEMBERS; i++)
        mrt_memory_server_list_queue(all->members[i].core, world->queues[queue].name, see_holder,
                                     &holders[i]);
    for (int i = 0; i < MEMBERS; i++) {
        int count = 0;
        for (int j = 0; j < MEMBERS; j++)
            count += holders[i] && holders[j] == holders[i];
        if (count > MEMBERS / 2) {
            truth_add(truth, asker, holders[i], 0, 1, true);
            return;
        }
    }
}

static int members_left(struct world *world, void *state)
{
    struct members *all = state;
    int left = 0;
    (void)world;
    for (int i = 0; i < MEMBERS; i++)
        left += (int)mrt_memory_server_sessions(all->members[i].core);
    return left;
}

const struct server_model quorum_model = {
    .new = members_new, .free = members_free, .truth = members_truth, .left = members_left};
