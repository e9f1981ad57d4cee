/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lone fault of a world, or its two, and what may come of them: no hold is lost but of who was
 * hit for good, or for longer than a lease can bear; and a lock that nobody holds goes to who waits
 * within round trips, and one pause, recheck or lease where that is the way on.
 */
#include "server.h"

#define RECONNECT (700 * MRT_MILLISECOND) /* the longest pause before a store connects again */
#define POLL (160 * MRT_MILLISECOND)

/* A client that has the lock; mostly, because then most depends on it. */
static struct client *choose_victim(struct world *world)
{
    struct truth truth;
    struct client *client = &world->clients[random_below(&world->random, world->drawn.clients)];
    server_truth(world, 0, NULL, &truth);
    if (truth.peer && truth.peer->client && random_below(&world->random, 2))
        client = truth.peer->client;
    return client;
}

static void break_first(struct world *world)
{
    struct truth truth;
    server_truth(world, 0, NULL, &truth);
    if (!truth.peer || truth.fence == 0) /* a key's comes behind it */
        return;
    check_broken(world, 0, (struct span){truth.fence, truth.span});
    if (!server_break(world, 0, truth.fence))
        check_fail(world, truth.peer->index, 0, "a ticket that is there was not broken");
}

static int trouble_of(int64_t fault)
{
    return fault == FAULT_STILL     ? TROUBLE_STILL
           : fault == FAULT_DOWN    ? TROUBLE_DOWN
           : fault == FAULT_SCRIPTS ? TROUBLE_SCRIPTS
           : fault == FAULT_STREAM  ? TROUBLE_STREAM
                                    : TROUBLE_PROMOTION;
}

static void befall(struct world *world, struct client *client, int64_t fault, mrt_time until)
{
    switch (fault) {
    case FAULT_CUT:
        client->cut_until = until;
        if (client->host)
            client->host->kind->cut(world, client);
        break;
    case FAULT_CRASH:
        client_die(world, client);
        break;
    case FAULT_PAUSE:
        client->paused_until = until;
        break;
    case FAULT_CLOSE:
        if (!client->closing && !client_paused(client))
            client_close(world, client);
        break;
    case FAULT_KILL:
        if (!client_paused(client))
            server_kill(world, client->peer);
        break;
    case FAULT_BREAK:
        break_first(world);
        break;
    default:
        world->server->model->befall(world, world->server->state, trouble_of(fault), until);
    }
}

static void strike(struct world *world, struct task *task);

static void plan(struct world *world, int64_t fault)
{
    struct lone *lone = &world->lone;
    lone->next = fault;
    world_at(world, &lone->task, world->now + world_some(world, world->drawn.lone_within_us),
             strike);
}

static void hits(struct world *world, int64_t fault, const struct client *client)
{
    struct lone *lone = &world->lone;
    mrt_time most = world->drawn.lone_us;
    bool of_command = fault < FAULT_WAKE_LOST; /* which is told in its own time */
    mrt_time until = world->now + (of_command ? most * MRT_MICROSECOND : world_some(world, most));
    if (lone->count == 0)
        lone->since = world->now;
    lone->faults[lone->count] = fault;
    lone->victims[lone->count++] = client;
    if (until > lone->until)
        lone->until = until;
    trace_note(world, TRACE_PHASE, client ? client->index : -1, NO_QUEUE, "lone fault", fault,
               (until - world->now) / 1000, 0);
}

static void strike(struct world *world, struct task *task)
{
    struct lone *lone = &world->lone;
    int64_t fault = lone->next;
    (void)task;
    if (world->phase != PHASE_CHAOS)
        return;
    if (fault <= FAULT_WAKE_LOST) {
        lone->awaited = fault;
    } else {
        struct client *client = choose_victim(world);
        if (!client->engine)
            return;
        hits(world, fault, client);
        befall(world, client, fault, lone->until);
    }
    if (world->drawn.lone_next > 0 && !lone->again) {
        lone->again = true;
        plan(world, world->drawn.lone_next);
    }
}

void lone_submitted(struct world *world)
{
    if (world->drawn.lone > 0 && ++world->lone.commands == world->drawn.lone_after)
        plan(world, world->drawn.lone);
}

bool lone_takes(struct world *world, int64_t fault, const struct client *client)
{
    if (world->lone.awaited != fault || world->phase != PHASE_CHAOS)
        return false;
    world->lone.awaited = FAULT_NONE;
    hits(world, fault, client);
    return true;
}

/* ------------------------------------------------------------------ what may come of it */

static bool is_single(const struct world *world)
{
    return world->drawn.model == MODEL_POSTGRES || world->drawn.model == MODEL_REDIS;
}

/* Whether it may take a session away, or a connection for as long as a session lives. */
static bool is_fatal(const struct world *world, int i)
{
    const struct lone *lone = &world->lone;
    int64_t fault = lone->faults[i];
    return fault == FAULT_CRASH || fault == FAULT_CLOSE || fault == FAULT_REFUSED ||
           (fault == FAULT_KILL && !is_single(world));
}

/* A sign of life is sent each third of a lease, and again at the next chance. */
static bool was_long(const struct world *world)
{
    return (world->lone.until - world->lone.since) * 2 >
           world->drawn.lease_us * MRT_MICROSECOND - RECONNECT;
}

bool lone_explains(const struct world *world, const struct client *client)
{
    const struct lone *lone = &world->lone;
    for (int i = 0; i < lone->count; i++) {
        bool hit = lone->victims[i] == client || lone->faults[i] >= FAULT_STILL;
        if (hit && (is_fatal(world, i) || was_long(world)))
            return true;
    }
    return false;
}

/* A client that hears nothing, though its connection stands or is up again, has only its next look.
 */
static mrt_time aftermath(const struct world *world)
{
    const struct profile *p = &world->drawn;
    const struct lone *lone = &world->lone;
    mrt_time lease = p->lease_us * MRT_MICROSECOND;
    mrt_time limit = RECONNECT + 2 * host_connect_ms(p) * MRT_MILLISECOND;
    bool fatal = was_long(world), deaf = !host_kind_of(p->model);
    for (int i = 0; i < lone->count; i++) {
        fatal |= is_fatal(world, i);
        deaf |= lone->faults[i] >= FAULT_DOWN && lone->faults[i] != FAULT_SCRIPTS;
    }
    if (fatal)
        limit += lease * 5 / 4 + p->restart_us * MRT_MICROSECOND;
    return limit + (deaf ? p->recheck_us * 5 / 4 * MRT_MICROSECOND : 0);
}

bool lone_disturbs(const struct world *world)
{
    const struct lone *lone = &world->lone;
    return lone->awaited != FAULT_NONE ||
           (lone->count > 0 && world->now <= lone->until + 2 * aftermath(world));
}

static bool is_wanted(const struct world *world, int queue)
{
    for (int c = 0; c < world->drawn.clients; c++)
        for (int a = 0; world->clients[c].engine && a < world->drawn.actors; a++) {
            const struct actor *actor = &world->clients[c].actors[a];
            if (actor->queue == queue && !actor->verifying && !world->clients[c].closing &&
                !client_paused(&world->clients[c]) &&
                (actor->state == ACTOR_WAITING || actor->state == ACTOR_WOKEN))
                return true;
        }
    return false;
}

/* A waiter for a claim may have to ask again, after a pause; and in a quorum those that do so at
 * the same time may do so again. */
static mrt_time poll_limit(const struct world *world, int queue)
{
    const struct profile *p = &world->drawn;
    if (p->model == MODEL_REDLOCK || p->model == MODEL_QUORUM)
        return 10 * POLL;
    return p->model == MODEL_REDIS && world->queues[queue].lock == LOCK_EXCLUSIVE ? POLL : 0;
}

void lone_check_served(struct world *world, int queue, bool held, mrt_time limit)
{
    struct queue_state *state = &world->queues[queue];
    const struct lone *lone = &world->lone;
    if (held || world->phase == PHASE_CLOSE || !is_wanted(world, queue)) {
        state->unserved_since = MRT_TIME_NEVER;
        return;
    }
    if (state->unserved_since == MRT_TIME_NEVER)
        state->unserved_since = world->now;
    limit += poll_limit(world, queue);
    mrt_time since = state->unserved_since;
    if (lone->count > 0 && since < lone->until)
        since = lone->until;
    if (lone_disturbs(world))
        limit += aftermath(world);
    if (world->now > since + limit)
        check_fail(world, -1, queue, "nobody is let in for %lld us",
                   (long long)(world->now - state->unserved_since) / 1000);
}
