/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run: chaos, in which only safety is asked for; then heal, in which nothing fails any more
 * and everyone must be served; then everybody closes and nothing may be left.
 */
#include "agent_command.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 2000000
#define HEAL_OPERATIONS 3

void world_at(struct world *world, struct task *task, mrt_time at,
              void (*run)(struct world *, struct task *))
{
    task->run = run;
    mrt_heap_set(&world->agenda, &task->timer, at > world->now ? at : world->now);
}

void world_cancel(struct world *world, struct task *task)
{
    mrt_heap_clear(&world->agenda, &task->timer);
}

int64_t world_fastest(const struct world *world)
{
    const int64_t million = 1000000, drift = world->drawn.drift_ppm;
    return (million + drift) * million / (million - drift) - million;
}

mrt_time world_some(struct world *world, int64_t limit_us)
{
    return limit_us > 0 ? random_below(&world->random, limit_us * MRT_MICROSECOND) : 0;
}

mrt_time world_about(struct world *world, int64_t every_us)
{
    return MRT_MICROSECOND + world_some(world, 2 * every_us);
}

void world_arm(struct world *world, const struct disaster *disasters, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (disasters[i].every_us > 0)
            world_at(world, disasters[i].task,
                     world->now + world_about(world, disasters[i].every_us), disasters[i].run);
        else
            world_cancel(world, disasters[i].task);
}

static int64_t unit_us(const struct world *world)
{
    if (world->drawn.model == MODEL_AGENT && world->drawn.lease_us == 0)
        return 5000000; /* its clients' lease */
    return world->drawn.lease_us > 0 ? world->drawn.lease_us : 1000000;
}

/* Power is cut: every process dies at once, and what was not durable is gone. */
static void reboot(struct world *world, struct task *task)
{
    trace_note(world, TRACE_PHASE, -1, NO_QUEUE, "power cut", 0, 0, 0);
    for (int i = 0; i < world->drawn.clients; i++) {
        struct client *client = &world->clients[i];
        client->offset = random_below(&world->random, 10 * MRT_SECOND);
        if (client->engine)
            client_die(world, client);
    }
    server_reboot(world);
    world_at(world, task, world->now + world_about(world, world->profile.reboot_every_us), reboot);
}

/* An operator breaks the first ticket of a lock, of any client. */
static void breakage(struct world *world, struct task *task)
{
    int queue = (int)random_below(&world->random, world->drawn.queues);
    struct truth truth;
    world_at(world, task, world->now + world_about(world, world->profile.break_every_us), breakage);
    server_truth(world, queue, NULL, &truth);
    if (!truth.peer)
        return;
    if (random_below(&world->random, 4) == 0) { /* what he saw is gone */
        if (truth.nobodys_count == 0 && !world->resp && server_break(world, queue, truth.fence - 1))
            check_fail(world, truth.peer->index, queue, "another's ticket was broken");
        return;
    }
    trace_note(world, TRACE_PHASE, truth.peer->index, queue, "broken", (int64_t)truth.fence, 0, 0);
    check_broken(world, queue, (struct span){truth.fence, truth.span});
    if (!server_break(world, queue, truth.fence))
        check_fail(world, truth.peer->index, queue, "a ticket that is there was not broken");
}

/* A request would be written over a leader's value; a key does not say whose it is. */
static bool may_be_asked(const struct world *world, int queue)
{
    int64_t lock = world->queues[queue].lock;
    return !(world->drawn.model == MODEL_ZK_LIBRARY && lock == LOCK_ELECTION) &&
           !(world->drawn.model == MODEL_REDIS && lock == LOCK_EXCLUSIVE);
}

/* An operator revokes the first ticket of a lock. */
static void revocation(struct world *world, struct task *task)
{
    int queue = (int)random_below(&world->random, world->drawn.queues);
    struct truth truth;
    world_at(world, task, world->now + world_about(world, world->profile.revoke_every_us),
             revocation);
    server_truth(world, queue, NULL, &truth);
    bool alone = world->queues[queue].recipe.capacity == 1;
    bool anybody = alone && random_below(&world->random, 2);
    if (!truth.peer || truth.grant_count == 0) /* a ticket that waits for a delayed one */
        return;
    if (!may_be_asked(world, queue))
        return;
    trace_note(world, TRACE_PHASE, truth.peer->index, queue, "revoked", (int64_t)truth.fence, 0, 0);
    check_revoked(world, queue, truth.fence);
    if (!server_revoke(world, queue, anybody ? 0 : truth.fence))
        check_fail(world, truth.peer->index, queue, "a holder that is there was not asked");
}

/* Mutexes of two are the engine's alone, and so not mixed with others. */
static struct mrt_recipe recipe_of(const struct profile *profile, int64_t lock)
{
    struct mrt_recipe mutex = mrt_mutex;
    switch (lock) {
    case LOCK_ELECTION:
        return mrt_election;
    case LOCK_SEMAPHORE:
        return mrt_semaphore((uint64_t)profile->capacity);
    case LOCK_EXCLUSIVE:
        return mrt_exclusive;
    case LOCK_READ_WRITE:
        return mrt_read_write;
    case LOCK_SEMAPHORE_MUTEX:
        return mrt_semaphore_mutex;
    default:
        if (profile->lock != LOCK_MIXED)
            mutex.capacity = (uint64_t)profile->capacity;
        return mutex;
    }
}

bool world_has(const struct world *world, int64_t lock)
{
    for (int i = 0; i < world->drawn.queues; i++)
        if (world->queues[i].lock == lock)
            return true;
    return false;
}

/* ZooKeeper's fake of the port does not report waiters. */
static bool can_linger(const struct world *world)
{
    const struct host_kind *kind = host_kind_of(world->drawn.model);
    return kind ? kind->ops->capabilities.linger : world->drawn.model != MODEL_ZOOKEEPER;
}

/* Of such locks as api/lock.c allows it for. A client that has one is its only holder. */
mrt_time world_linger(const struct world *world, int queue)
{
    const struct mrt_recipe *recipe = &world->queues[queue].recipe;
    if (recipe->shared || recipe->claim || recipe->capacity > 1 || !can_linger(world))
        return 0;
    return world->drawn.linger_us * MRT_MICROSECOND;
}

static void init(struct world *world, uint64_t seed, const struct profile *profile, bool keep)
{
    memset(world, 0, sizeof *world);
    world->seed = seed;
    world->profile = world->drawn = *profile;
    random_seed(&world->random, seed);
    random_seed(&world->several, seed ^ UINT64_C(0x7365766572616c));
    world->trace = trace_new(keep);
    world->failed_client = -1;
    world->failed_queue = NO_QUEUE;
    for (int i = 0; i < profile->queues; i++) {
        snprintf(world->queues[i].name, sizeof world->queues[i].name, "lock%d", i);
        world->queues[i].lock = profile_lock(profile, seed, i);
        world->queues[i].recipe = recipe_of(profile, world->queues[i].lock);
        world->queues[i].contended_since = MRT_TIME_NEVER;
        world->queues[i].overdue_since = MRT_TIME_NEVER;
        world->queues[i].unserved_since = MRT_TIME_NEVER;
    }
    check_begin(world);
    server_init(world);
}

static void populate(struct world *world)
{
    const struct profile *p = &world->drawn;
    for (int i = 0; i < p->clients; i++) {
        struct client *client = &world->clients[i];
        client->world = world;
        client->index = i;
        client_boot(world, client, true);
        for (int a = 0; a < p->actors; a++) {
            client->actors[a].client = client;
            client->actors[a].index = a;
            client->actors[a].state = ACTOR_DONE;
            client->actors[a].operations = p->operations;
            if (client->engine)
                actor_begin(world, &client->actors[a], p->operations);
        }
    }
    if (p->reboot_every_us > 0)
        world_at(world, &world->reboot, world_about(world, p->reboot_every_us), reboot);
    if (p->break_every_us > 0)
        world_at(world, &world->breakage, world_about(world, p->break_every_us), breakage);
    if (p->revoke_every_us > 0)
        world_at(world, &world->revocation, world_about(world, p->revoke_every_us), revocation);
    detach_populate(world);
    resp_populate(world);
}

static void fini(struct world *world)
{
    for (int i = 0; i < world->drawn.clients; i++)
        client_forget(&world->clients[i]);
    struct mrt_timer *timer;
    while ((timer = mrt_heap_pop(&world->agenda, MRT_TIME_NEVER))) {
        struct task *task = (struct task *)(void *)timer;
        if (task->owned)
            free(task);
    }
    server_fini(world);
    for (int i = 0; i < world->drawn.clients; i++)
        client_fini(&world->clients[i]);
    resp_fini(world);
    link_fini(world);
    trace_free(world->trace);
}

/* Runs tasks until `done` or the time is up; whether it was done. */
static bool run_until(struct world *world, mrt_time end, bool (*done)(const struct world *))
{
    while (!done(world)) {
        mrt_time next = mrt_heap_next(&world->agenda);
        if (next > end) {
            world->now = end == MRT_TIME_NEVER ? world->now : end;
            return false;
        }
        struct task *task = (struct task *)(void *)mrt_heap_pop(&world->agenda, next);
        world->now = next;
        task->run(world, task);
        check_step(world);
        if (++world->steps > STEPS_MAX)
            check_fail(world, -1, NO_QUEUE, "it does not come to rest");
    }
    return true;
}

static bool all_idle(const struct world *world)
{
    for (int i = 0; i < world->drawn.clients; i++)
        if (!client_idle(&world->clients[i]))
            return false;
    return resp_idle(world);
}

static bool all_closed(const struct world *world)
{
    for (int i = 0; i < world->drawn.clients; i++)
        if (world->clients[i].engine || world->clients[i].restart.timer.armed)
            return false;
    return true;
}

static bool never(const struct world *world)
{
    (void)world;
    return false;
}

static void begin_phase(struct world *world, enum phase phase, const char *name)
{
    world->phase = phase;
    trace_note(world, TRACE_PHASE, -1, NO_QUEUE, name, 0, 0, 0);
}

static void heal(struct world *world)
{
    begin_phase(world, PHASE_HEAL, "heal");
    profile_heal(&world->profile);
    world->healed_at = world->now;
    world_cancel(world, &world->reboot);
    world_cancel(world, &world->breakage);
    world_cancel(world, &world->revocation);
    if (world->drawn.model == MODEL_AGENT)
        agents_heal(world);
    resp_heal(world);
    for (int i = 0; i < world->drawn.clients; i++) {
        struct client *client = &world->clients[i];
        client->cut_until = 0;
        client_arm_disasters(world, client);
        for (int a = 0; a < world->drawn.actors; a++)
            if (client->engine)
                actor_begin(world, &client->actors[a], HEAL_OPERATIONS);
            else
                client->actors[a].operations = HEAL_OPERATIONS;
    }
}

static void complain_of_waiters(struct world *world)
{
    for (int i = 0; i < world->drawn.clients; i++)
        for (int a = 0; a < world->drawn.actors; a++) {
            const struct actor *actor = &world->clients[i].actors[a];
            if (actor->state == ACTOR_WAITING || actor->state == ACTOR_WOKEN)
                check_fail(world, i, actor->queue, "thread %d is never served, nor told", a);
        }
    resp_complain(world);
    check_fail(world, -1, NO_QUEUE, "the threads do not finish");
}

static void close_all(struct world *world)
{
    begin_phase(world, PHASE_CLOSE, "close");
    resp_close(world);
    for (int i = 0; i < world->drawn.clients; i++) {
        struct client *client = &world->clients[i];
        world_cancel(world, &client->restart);
        if (client->engine && !client->closing)
            client_close(world, client);
    }
}

/* Agents have forgotten their clients, and end when they are told to. */
static void end_agents(struct world *world, mrt_time patience)
{
    if (!run_until(world, world->now + patience, agents_rest))
        check_fail(world, -1, NO_QUEUE, "an agent keeps what nobody has");
    agents_end(world);
    if (!run_until(world, world->now + patience, agents_ended))
        check_fail(world, -1, NO_QUEUE, "an agent does not end");
}

static void live(struct world *world)
{
    const struct profile *p = &world->drawn;
    mrt_time unit = unit_us(world) * MRT_MICROSECOND;
    int64_t threads = p->clients * p->actors + p->resp_clients * DIALOGUES_MAX;
    mrt_time work = (p->hold_us + p->think_us + 20 * p->delay_us) * 20 * HEAL_OPERATIONS * threads *
                    MRT_MICROSECOND;
    begin_phase(world, PHASE_CHAOS, "chaos");
    populate(world);
    run_until(world, 40 * unit, all_idle);
    heal(world);
    mrt_time patience = 100 * unit + 20 * p->recheck_us * MRT_MICROSECOND + work +
                        (p->pause_us + p->restart_us + p->unknown_us + p->zk_trouble_us +
                         DETACHED_MAX * p->detach_us) *
                            MRT_MICROSECOND;
    if (!run_until(world, world->now + patience, all_idle))
        complain_of_waiters(world);
    if (world_has(world, LOCK_ELECTION)) {
        run_until(world, world->now + election_patience(world), never);
        election_check_end(world);
    }
    close_all(world);
    if (!run_until(world, world->now + patience, all_closed))
        check_fail(world, -1, NO_QUEUE, "a close does not end");
    detach_end(world);
    if (p->model == MODEL_AGENT)
        end_agents(world, patience);
    run_until(world,
              world->now + 3 * unit +
                  (p->reap_us + p->delay_us + p->lock_delay_us) * MRT_MICROSECOND,
              never);
    cell_check_end(world);
    int left = server_left(world);
    if (left > 0)
        check_fail(world, -1, NO_QUEUE, "%d tickets or sessions are left at the server", left);
}

/* For a run that ends in a failed assertion: what led there. */
static struct {
    struct world *world;
    FILE *text;
    bool all;
} dying;

static void print_last_words(int number)
{
    (void)number;
    signal(SIGABRT, SIG_DFL);
    trace_print(dying.world->trace, dying.text, NO_QUEUE, -1, dying.all);
    fflush(dying.text);
}

void world_run(uint64_t seed, const struct profile *profile, FILE *text, bool all,
               struct outcome *outcome)
{
    static struct world world;
    init(&world, seed, profile, text != NULL);
    if (text) {
        dying.world = &world;
        dying.text = text;
        dying.all = all;
        signal(SIGABRT, print_last_words);
    }
    if (setjmp(world.failed) == 0)
        live(&world);
    bool failed = world.failure[0] != '\0';
    if (text && (failed || all))
        trace_print(world.trace, text, world.failed_queue, world.failed_client, all);
    if (text && failed)
        fprintf(text, "%14.6f ms  client %d  lock %d: %s\n", (double)world.now / 1e6,
                world.failed_client, world.failed_queue, world.failure);
    *outcome = (struct outcome){.hash = trace_hash(world.trace) ^ world.random.state[0],
                                .operations = world.operations,
                                .steps = world.steps};
    memcpy(outcome->failure, world.failure, sizeof outcome->failure);
    fini(&world);
}
