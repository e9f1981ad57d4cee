/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference model: the memory store's server, with leases or without. Without
 * leases a client's death is seen by the server, at once or a little later; with
 * them only by the lease, and sessions may be ended late.
 */
#include "server.h"
#include "store/memory/server.h"

#include <stdlib.h>
#include <string.h>

#define PUSHES_MAX 16

struct memory {
    struct world *world;
    struct push {
        struct peer *peer;
        struct mrt_id session, ticket;
    } pushes[PUSHES_MAX]; /* views to be sent when the command is done */
    int push_count;
    struct task follower;
    int follower_number;
    struct touch *touches; /* renewals that the leader does not know of yet */
    struct mrt_memory_server *core;
    struct mrt_memory_sink sink;
    struct task expire;
};

struct death {
    struct task task;
    struct peer *peer;
    struct memory *memory;
};

static void emit(void *context, void *peer, const struct mrt_event *event)
{
    struct memory *memory = context;
    struct world *world = memory->world;
    if (event->type == MRT_WAKE && memory->push_count < PUSHES_MAX &&
        random_chance(&world->random, world->profile.push)) {
        memory->pushes[memory->push_count++] =
            (struct push){.peer = peer, .session = event->session, .ticket = event->ticket};
        return;
    }
    struct mrt_event copy = *event;
    copy.detail = NULL;
    if (event->type == MRT_STARTED)
        copy.proof_lag = /* on a clock that may run fast */
            world->drawn.proof_lag_us * (1000000 + world_fastest(world)) / 1000;
    link_deliver(world, peer, &copy);
}

/* Sends the views that took the place of wakes; in the lock that the ticket is in. */
static void push_views(struct world *world, struct memory *memory)
{
    int count = memory->push_count;
    memory->push_count = 0;
    for (int i = 0; i < count; i++)
        for (int queue = 0; queue < world->drawn.queues; queue++) {
            const struct push *push = &memory->pushes[i];
            const struct mrt_command look = {.type = MRT_REFRESH,
                                             .session = push->session,
                                             .ticket = push->ticket,
                                             .queue = world->queues[queue].name};
            if (mrt_memory_server_has(memory->core, &look))
                mrt_memory_server_apply(memory->core, &look, push->peer, world->now, &memory->sink);
        }
}

static void follower_dies(struct world *world, struct task *task);

static void *memory_new(struct world *world)
{
    struct memory *memory = calloc(1, sizeof *memory);
    const struct mrt_memory_config config = {.lease = world->drawn.lease_us * MRT_MICROSECOND,
                                             .recheck = world->drawn.recheck_us * MRT_MICROSECOND,
                                             .fence_span = (uint64_t)world->drawn.fence_span,
                                             .first_fence =
                                                 (uint64_t)random_between(&world->random, 1, 120)};
    if (!memory || !(memory->core = mrt_memory_server_new(&config)))
        abort();
    memory->world = world;
    memory->sink = (struct mrt_memory_sink){.emit = emit, .context = memory};
    if (world->drawn.follower_every_us > 0)
        world_at(world, &memory->follower, world_about(world, world->drawn.follower_every_us),
                 follower_dies);
    return memory;
}

static void memory_free(void *server)
{
    struct memory *memory = server;
    mrt_memory_server_free(memory->core);
    free(memory);
}

static struct memory *memory_of(struct task *task)
{
    return (struct memory *)(void *)((char *)task - offsetof(struct memory, expire));
}

static void plan_expiry(struct world *world, struct memory *memory);

static void expire(struct world *world, struct task *task)
{
    struct memory *memory = memory_of(task);
    world->server_changed = true;
    trace_note(world, TRACE_LINK, -1, NO_QUEUE, "leases end", 0, 0, 0);
    mrt_memory_server_expire(memory->core, world->now, &memory->sink);
    push_views(world, memory);
    plan_expiry(world, memory);
}

static void plan_expiry(struct world *world, struct memory *memory)
{
    mrt_time next = mrt_memory_server_next(memory->core);
    if (next == MRT_TIME_NEVER)
        return;
    if (!memory->expire.timer.armed || memory->expire.timer.at < next)
        world_at(world, &memory->expire, next + world_some(world, world->profile.reap_us), expire);
}

/* A renewal on its way from the follower that acknowledged it to the leader, who ends
   sessions. */
struct touch {
    struct task task;
    struct memory *memory;
    struct mrt_id session;
    struct touch *next;
};

static void renew(struct world *world, struct memory *memory, struct mrt_id session)
{
    const struct mrt_command command = {.type = MRT_RENEW, .serial = SILENT, .session = session};
    mrt_memory_server_apply(memory->core, &command, NULL, world->now, &memory->sink);
}

static void forward(struct world *world, struct task *task)
{
    struct touch *touch = (struct touch *)task, **link = &touch->memory->touches;
    while (*link != touch)
        link = &(*link)->next;
    *link = touch->next;
    if (mrt_memory_server_has(touch->memory->core,
                              &(const struct mrt_command){.session = touch->session}))
        renew(world, touch->memory, touch->session);
    plan_expiry(world, touch->memory);
    free(touch);
}

/* The follower acknowledges at once, and tells the leader within the lag. */
static void acknowledge(struct world *world, struct memory *memory, struct peer *peer,
                        const struct mrt_command *command)
{
    struct touch *touch = calloc(1, sizeof *touch);
    if (!touch)
        abort();
    touch->task.owned = true;
    touch->memory = memory;
    touch->session = command->session;
    touch->next = memory->touches;
    memory->touches = touch;
    world_at(world, &touch->task, world->now + world_some(world, world->drawn.proof_lag_us),
             forward);
    const struct mrt_event renewed = {
        .type = MRT_RENEWED, .serial = command->serial, .session = command->session};
    link_deliver(world, peer, &renewed);
}

/* The follower dies, and with it the renewals that the leader does not know of. A client
   that comes back by another one is presented to the leader first. */
static void follower_dies(struct world *world, struct task *task)
{
    struct memory *memory =
        (struct memory *)(void *)((char *)task - offsetof(struct memory, follower));
    trace_note(world, TRACE_LINK, -1, NO_QUEUE, "follower dies", 0, 0, 0);
    memory->follower_number++;
    while (memory->touches) {
        struct touch *touch = memory->touches;
        memory->touches = touch->next;
        world_cancel(world, &touch->task);
        free(touch);
    }
    if (world->phase == PHASE_CHAOS)
        world_at(world, task, world->now + world_about(world, world->drawn.follower_every_us),
                 follower_dies);
}

static void memory_apply(struct world *world, void *server, struct peer *peer,
                         const struct mrt_command *command)
{
    struct memory *memory = server;
    if (!peer->client && world->drawn.lease_us == 0)
        return; /* its connection went with it */
    if (peer->follower != memory->follower_number &&
        mrt_memory_server_has(memory->core,
                              &(const struct mrt_command){.session = command->session}))
        renew(world, memory, command->session);
    peer->follower = memory->follower_number;
    if (world->drawn.proof_lag_us > 0 && command->type == MRT_RENEW &&
        mrt_memory_server_has(memory->core, command))
        acknowledge(world, memory, peer, command);
    else
        mrt_memory_server_apply(memory->core, command, peer, world->now, &memory->sink);
    push_views(world, memory);
    plan_expiry(world, memory);
}

static void buried(struct world *world, struct task *task)
{
    struct death *death = (struct death *)task;
    struct memory *memory = death->memory;
    world->server_changed = true;
    mrt_memory_server_drop(memory->core, death->peer, world->now, &memory->sink);
    push_views(world, memory);
    plan_expiry(world, memory);
    free(death);
}

static void memory_died(struct world *world, void *server, struct peer *peer)
{
    if (world->drawn.lease_us > 0)
        return;
    struct death *death = calloc(1, sizeof *death);
    if (!death)
        abort();
    death->task.owned = true;
    death->peer = peer;
    death->memory = server;
    world_at(world, &death->task, world->now + world_some(world, world->profile.delay_us), buried);
}

struct kill {
    struct peer *peer;
    struct mrt_id sessions[CHANNELS_MAX];
    int count;
};

static int find_session(void *context, const struct mrt_memory_entry *entry)
{
    struct kill *kill = context;
    if (entry->peer != kill->peer || kill->count == CHANNELS_MAX)
        return 0;
    for (int i = 0; i < kill->count; i++)
        if (mrt_id_equal(kill->sessions[i], entry->session))
            return 0;
    kill->sessions[kill->count++] = entry->session;
    return 0;
}

/* Without a lease the client hears of it before anybody is let in. */
static void memory_kill(struct world *world, void *server, struct peer *peer)
{
    struct memory *memory = server;
    struct kill kill = {.peer = peer};
    mrt_memory_server_list(memory->core, find_session, &kill);
    for (int i = 0; i < kill.count; i++) {
        struct mrt_event event = {
            .type = MRT_SESSION_LOST, .session = kill.sessions[i], .error = MORTISE_ESTORE};
        if (peer->client)
            client_event(world, peer->client, &event);
    }
    for (int i = 0; i < kill.count; i++) {
        const struct mrt_command stop = {
            .type = MRT_STOP, .serial = SILENT, .session = kill.sessions[i], .died = true};
        mrt_memory_server_apply(memory->core, &stop, peer, world->now, &memory->sink);
    }
    push_views(world, memory);
    plan_expiry(world, memory);
}

struct look {
    const struct peer *peer;
    struct truth *truth;
    bool keeps; /* a dead agent's tickets are its clients', who may live */
};

static int see(void *context, const struct mrt_memory_entry *entry)
{
    struct look *look = context;
    look->truth->span = entry->fence_span;
    if (entry->detached)
        truth_add_nobodys(look->truth, entry->fence);
    if (entry->detached || (entry->until > 0 && !look->keeps))
        return 0; /* nobody's */
    if (!look->truth->peer && entry->value)
        memcpy(&look->truth->value, entry->value, sizeof look->truth->value);
    truth_add(look->truth, look->peer, entry->peer, entry->fence, entry->weight,
              entry->weight_ahead + entry->weight <= entry->capacity);
    return 0;
}

static void memory_truth(struct world *world, void *server, int queue, const struct peer *peer,
                         struct truth *truth)
{
    struct memory *memory = server;
    struct look look = {.peer = peer, .truth = truth, .keeps = world->drawn.model == MODEL_AGENT};
    mrt_memory_server_list_queue(memory->core, world->queues[queue].name, see, &look);
}

static bool memory_break(struct world *world, void *server, int queue, uint64_t fence)
{
    struct memory *memory = server;
    int error =
        mrt_memory_server_break(memory->core, world->queues[queue].name, fence, &memory->sink);
    push_views(world, memory);
    return error == MORTISE_OK;
}

static bool memory_revoke(struct world *world, void *server, int queue, uint64_t fence)
{
    struct memory *memory = server;
    return mrt_memory_server_revoke(memory->core, world->queues[queue].name, fence,
                                    &memory->sink) == MORTISE_OK;
}

static int count_left_behind(void *context, const struct mrt_memory_entry *entry)
{
    *(int *)context += entry->until > 0 || entry->detached;
    return 0;
}

static int memory_left(struct world *world, void *server)
{
    (void)world;
    struct memory *memory = server;
    int count = (int)mrt_memory_server_sessions(memory->core);
    mrt_memory_server_list(memory->core, count_left_behind, &count);
    return count;
}

static uint64_t memory_cell(void *server)
{
    struct memory *memory = server;
    struct mrt_event cell = {0};
    uint64_t value = 0;
    mrt_memory_server_cell(memory->core, "cell", &cell);
    if (cell.value)
        memcpy(&value, cell.value, sizeof value);
    return value;
}

const struct server_model memory_model = {.is_steady = true,
                                          .new = memory_new,
                                          .free = memory_free,
                                          .apply = memory_apply,
                                          .died = memory_died,
                                          .kill = memory_kill,
                                          .break_ticket = memory_break,
                                          .revoke = memory_revoke,
                                          .truth = memory_truth,
                                          .left = memory_left,
                                          .cell = memory_cell};
