/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client: the host of one real engine. It does what the library's loop does, on
 * a clock of its own that runs fast or slow: takes events in, lets time pass when the
 * engine asks for it (late, if the loop is busy), and after every call fetches
 * commands, settled waiters and told holds.
 */
#include "agent_host.h"

#include <string.h>

#define AGENT_PAUSE (100 * MRT_MILLISECOND) /* before a client that found none comes again */

/* ------------------------------------------------------------- the clock */

/* The reading of its clock at that moment: never less than an earlier one. */
static mrt_time reading(const struct client *client, mrt_time at)
{
    const mrt_time million = 1000000;
    return client->offset + at + at / million * client->rate_ppm +
           at % million * client->rate_ppm / million;
}

mrt_time client_now(const struct client *client)
{
    return reading(client, client->world->now);
}

mrt_time client_true(const struct client *client, mrt_time local)
{
    const mrt_time million = 1000000, rate = million + client->rate_ppm;
    mrt_time now = client->world->now, left = local - client_now(client);
    if (left <= 0)
        return now;
    mrt_time at = now + left / rate * million + left % rate * million / rate; /* but for rounding */
    while (at > now && reading(client, at - 1) >= local)
        at--;
    while (reading(client, at) < local)
        at++;
    return at;
}

bool client_paused(const struct client *client)
{
    return client->paused_until > client->world->now;
}

/* ------------------------------------------------------------- the loop */

static struct client *client_of_tick(struct task *task)
{
    return (struct client *)(void *)((char *)task - offsetof(struct client, tick));
}

static struct client *client_of_kick(struct task *task)
{
    return (struct client *)(void *)((char *)task - offsetof(struct client, kick));
}

static void take(struct world *world, struct client *client, struct mrt_command *command);

/* The store has been busy for a while: it gives the command back, or takes it after all. Its waiter
   may have given up meanwhile, and its session may be lost. */
static void kick(struct world *world, struct task *task)
{
    struct client *client = client_of_kick(task);
    if (client_paused(client)) {
        world_at(world, task, client->paused_until, kick);
        return;
    }
    struct mrt_command *command = client->in_hand;
    client->in_hand = NULL;
    if (random_below(&world->random, 2)) {
        trace_note(world, TRACE_UNSUBMIT, client->index, NO_QUEUE, NULL, (int64_t)command->serial,
                   0, 0);
        mrt_engine_unsubmit(client->engine, command, client_now(client));
    } else {
        take(world, client, command);
    }
    if (client->engine) /* an answer given at once may have ended its closing */
        client_pump(world, client);
}

static void tick(struct world *world, struct task *task)
{
    struct client *client = client_of_tick(task);
    if (client_paused(client)) {
        world_at(world, task, client->paused_until, tick);
        return;
    }
    trace_note(world, TRACE_TICK, client->index, NO_QUEUE, NULL, 0, 0, 0);
    mrt_engine_tick(client->engine, client_now(client));
    client_pump(world, client);
    if (client->engine)
        check_ticked(world, client);
}

void client_catch_up(struct world *world, struct client *client)
{
    mrt_engine_tick(client->engine, client_now(client));
    client_pump(world, client);
}

static void plan_tick(struct world *world, struct client *client)
{
    mrt_time next = mrt_engine_next_time(client->engine);
    if (next == MRT_TIME_NEVER) {
        world_cancel(world, &client->tick);
        return;
    }
    mrt_time at = client_true(client, next);
    if (client->tick.timer.armed && client->tick.timer.at >= at &&
        client->tick.timer.at <= at + world->profile.timer_late_us * MRT_MICROSECOND)
        return;
    world_at(world, &client->tick, at + world_some(world, world->profile.timer_late_us), tick);
}

static void take(struct world *world, struct client *client, struct mrt_command *command)
{
    client->commands++;
    check_submitted(world, client, command);
    lone_submitted(world);
    struct mrt_command copy = *command;
    for (int i = 0; command->queue && i < world->drawn.queues; i++)
        if (strcmp(command->queue, world->queues[i].name) == 0) {
            copy.queue = world->queues[i].name; /* ours outlive the engine */
            copy.kind = world->queues[i].recipe.kind;
        }
    if (client->host)
        host_submit(world, client, &copy);
    else
        link_submit(world, client, &copy);
}

/* A busy store keeps its command for as long as its patience lasts; no other command is fetched
 * meanwhile. Whether the command was taken immediately. */
static bool submit(struct world *world, struct client *client, struct mrt_command *command)
{
    if (!random_chance(&world->random, world->profile.busy)) {
        take(world, client, command);
        return true;
    }
    client->in_hand = command;
    world_at(world, &client->kick, world->now + world_about(world, world->drawn.busy_us), kick);
    return false;
}

static bool pump_once(struct world *world, struct client *client)
{
    bool any = false;
    struct mrt_waiter *waiter;
    struct mrt_hold *hold;
    struct mrt_command *command;
    while ((waiter = mrt_engine_next_settled(client->engine))) {
        if (!cell_settled(world, client, waiter) && !election_settled(world, client, waiter) &&
            !multi_settled(world, client, waiter))
            actor_settled(world, client, waiter);
        any = true;
    }
    any |= election_observe(world, client);
    while ((hold = mrt_engine_next_told(client->engine))) {
        actor_told(world, client, hold);
        any = true;
    }
    while ((waiter = mrt_engine_next_placed(client->engine))) {
        if (!waiter->wants_place || waiter->place == 0 || waiter->state == MRT_WAITER_DONE)
            check_fail(world, client->index, NO_QUEUE, "a place was told that nobody asked for");
        any = true;
    }
    while ((hold = mrt_engine_next_asked(client->engine))) {
        actor_asked(world, client, hold);
        any = true;
    }
    bool has_command = mrt_engine_has_command(client->engine);
    if (!client->in_hand &&
        (command = mrt_engine_next_command(client->engine, client_now(client)))) {
        if (!has_command)
            check_fail(world, client->index, NO_QUEUE, "a command that was not announced");
        any |= submit(world, client, command);
    }
    return any;
}

void client_pump(struct world *world, struct client *client)
{
    if (client->pumping)
        return;
    client->pumping = true;
    while (pump_once(world, client) || host_goes_on(world, client))
        ;
    client->pumping = false;
    plan_tick(world, client);
    if (client->closing && mrt_engine_closed(client->engine) && !multi_inside(client))
        client_close(world, client);
}

void client_event(struct world *world, struct client *client, const struct mrt_event *event)
{
    if (client->agent) {
        agent_store_event(world, client->agent, event);
        return;
    }
    trace_note(world, TRACE_EVENT, client->index, NO_QUEUE, NULL, event->type,
               (int64_t)event->serial, (int64_t)(event->fence + event->weight_ahead));
    check_answered(world, client, event);
    if (world->drawn.model == MODEL_AGENT)
        agent_told(world, event);
    if (event->serial == 0 && event->error == MORTISE_EUNREACHABLE)
        client->unreachable_at = client_now(client);
    mrt_engine_event(client->engine, event, client_now(client));
    client_pump(world, client);
}

/* ------------------------------------------------------------- life and death */

struct mrt_queue *client_queue(struct world *world, struct client *client, int queue)
{
    struct mrt_queue *found;
    if (mrt_engine_queue(client->engine, world->queues[queue].name, &world->queues[queue].recipe,
                         &found) != MORTISE_OK)
        check_fail(world, client->index, queue, "no queue");
    mrt_queue_delay(found, delay_of(world, queue), client_now(client));
    mrt_time linger = world_linger(world, queue);
    if (linger > 0 && random_below(&world->random, 4) > 0) /* not every handle asks for it */
        mrt_queue_linger(found, linger);
    return found;
}

/* The world's time is the servers', so a client's rate is what its clock and theirs are wrong by,
   in opposite directions. In half of all cases both are as wrong as they may be. */
int64_t client_draw_rate(struct world *world)
{
    const int64_t million = 1000000, drift = world->drawn.drift_ppm;
    if (drift == 0)
        return 0;
    int64_t slowest = (million - drift) * million / (million + drift) - million;
    int64_t fastest = world_fastest(world),
            rate = random_between(&world->random, -4 * drift, 4 * drift);
    return rate < slowest ? slowest : rate > fastest ? fastest : rate;
}

static void plan_restart(struct world *world, struct client *client);

/* Its server is not reached: it tries again later. */
static void give_boot_up(struct world *world, struct client *client)
{
    mrt_engine_free(client->engine);
    client->engine = NULL;
    world->peer_count--;
    host_close(client, true);
    plan_restart(world, client);
}

void client_boot(struct world *world, struct client *client, bool new_clock)
{
    const struct profile *p = &world->drawn;
    if (world->peer_count == PEERS_MAX)
        return;
    if (new_clock) {
        client->offset = random_below(&world->random, 1000 * MRT_SECOND);
        client->rate_ppm = client_draw_rate(world);
    }
    if (p->model == MODEL_AGENT)
        client->rate_ppm = agent_for(client)->client.rate_ppm; /* the same host */
    struct peer *peer = &world->peers[world->peer_count++];
    *peer = (struct peer){.client = client, .index = client->index};
    client->peer = peer;
    client->closing = client->pumping = false;
    client->acquisitions = client->nested = client->losses = client->commands = 0;
    client->last_serial = client->old.serial = client->renewal = 0;
    client->refused_count = 0;
    client->outstanding_count = 0;
    uint64_t entropy = random_next(&world->random);
    const struct mrt_engine_config config = {.seed = {entropy, random_next(&world->random) >> 1},
                                             .strict = p->strict != 0,
                                             .fair_after = p->fair_us * MRT_MICROSECOND,
                                             .budget = p->budget_us * MRT_MICROSECOND,
                                             .budget_count = (uint32_t)p->budget_count,
                                             .margin_min = MRT_MARGIN_MIN,
                                             .trusted_for =
                                                 p->trusted * p->lease_us * MRT_MICROSECOND};
    if (mrt_engine_new(&config, &client->engine) != MORTISE_OK)
        check_fail(world, client->index, NO_QUEUE, "no engine");
    for (int i = 0; i < p->queues && !p->brief_handles; i++)
        client_queue(world, client, i);
    if (host_kind_of(p->model) && !host_open(world, client, host_kind_of(p->model))) {
        give_boot_up(world, client);
        return;
    }
    trace_note(world, TRACE_CLIENT, client->index, NO_QUEUE, "boots", client->rate_ppm, 0, 0);
    client->booted_at = world->now;
    election_boot(world, client);
    cell_boot(world, client);
    if (world_has(world, LOCK_ELECTION))
        client_pump(world, client); /* it begins to observe */
    client_arm_disasters(world, client);
}

/* Its engine and all its threads are gone. */
static void vanish(struct world *world, struct client *client, bool died)
{
    client->peer->client = NULL;
    cell_died(world, client);
    multi_died(client);
    for (int i = 0; i < world->drawn.actors; i++)
        actor_forget(world, &client->actors[i]);
    struct task *const tasks[] = {&client->tick,           &client->kick,
                                  &client->disaster_crash, &client->disaster_pause,
                                  &client->disaster_close, &client->disaster_cut,
                                  &client->disaster_kill};
    for (size_t i = 0; i < sizeof tasks / sizeof tasks[0]; i++)
        world_cancel(world, tasks[i]);
    mrt_engine_free(client->engine);
    client->engine = NULL;
    client->in_hand = NULL;
    client->paused_until = 0;
    host_close(client, died);
}

void client_forget(struct client *client)
{
    if (client->engine)
        multi_died(client);
    mrt_engine_free(client->engine);
    host_close(client, true);
}

void client_fini(struct client *client)
{
    const struct host_kind *kind = client->world ? host_kind_of(client->world->drawn.model) : NULL;
    if (kind)
        kind->free(client);
    hosts_free(client);
}

static void restart(struct world *world, struct task *task)
{
    struct client *client =
        (struct client *)(void *)((char *)task - offsetof(struct client, restart));
    client_boot(world, client, false);
    for (int i = 0; client->engine && i < world->drawn.actors; i++)
        actor_begin(world, &client->actors[i], client->actors[i].operations);
}

static void plan_restart(struct world *world, struct client *client)
{
    if (world->phase != PHASE_CLOSE)
        world_at(world, &client->restart,
                 world->now + world_some(world, world->drawn.restart_us) +
                     (world->drawn.model == MODEL_AGENT ? AGENT_PAUSE : 0),
                 restart);
}

void client_die(struct world *world, struct client *client)
{
    trace_note(world, TRACE_CLIENT, client->index, NO_QUEUE, "dies", 0, 0, 0);
    struct peer *peer = client->peer;
    delay_died(world, client);
    vanish(world, client, true);
    server_died(world, peer);
    plan_restart(world, client);
}

/* Begins to close, or, when the store has confirmed, ends it. */
void client_close(struct world *world, struct client *client)
{
    if (!client->closing) {
        trace_note(world, TRACE_CLIENT, client->index, NO_QUEUE, "closes", 0, 0, 0);
        check_closing(client);
        client->closing = true;
        mrt_engine_close(client->engine, client_now(client));
        client_pump(world, client);
        return;
    }
    trace_note(world, TRACE_CLIENT, client->index, NO_QUEUE, "closed", 0, 0, 0);
    check_counters(world, client);
    multi_check_closed(client);
    client->peer->closed = true;
    client->peer->closed_at = world->now;
    vanish(world, client, false);
    plan_restart(world, client);
}

bool client_idle(const struct client *client)
{
    if (!client->engine)
        return !client->restart.timer.armed;
    if (client->closing)
        return false; /* it is to come back */
    for (int i = 0; i < client->world->drawn.actors; i++)
        if (client->actors[i].state != ACTOR_DONE)
            return false;
    return true;
}

/* ------------------------------------------------------------- disasters */

/* Plans the next of its kind. */
static void again(struct world *world, struct task *task, int64_t every_us,
                  void (*run)(struct world *, struct task *))
{
    world_at(world, task, world->now + world_about(world, every_us), run);
}

#define CLIENT_OF(task, member) \
    ((struct client *)(void *)((char *)(task)-offsetof(struct client, member)))

static void crash(struct world *world, struct task *task)
{
    client_die(world, CLIENT_OF(task, disaster_crash));
}

static void pause_client(struct world *world, struct task *task)
{
    struct client *client = CLIENT_OF(task, disaster_pause);
    again(world, task, world->profile.pause_every_us, pause_client);
    client->paused_until = world->now + world_some(world, world->profile.pause_us);
    trace_note(world, TRACE_CLIENT, client->index, NO_QUEUE, "pauses for us",
               (client->paused_until - world->now) / 1000, 0, 0);
}

static void close_client(struct world *world, struct task *task)
{
    struct client *client = CLIENT_OF(task, disaster_close);
    if (client_paused(client))
        world_at(world, task, client->paused_until, close_client);
    else if (!client->closing)
        client_close(world, client);
}

static void cut_client(struct world *world, struct task *task)
{
    struct client *client = CLIENT_OF(task, disaster_cut);
    again(world, task, world->profile.cut_every_us, cut_client);
    client->cut_until = world->now + world_some(world, world->profile.cut_us);
    trace_note(world, TRACE_CLIENT, client->index, NO_QUEUE, "cut for us",
               (client->cut_until - world->now) / 1000, 0, 0);
    if (client->host)
        client->host->kind->cut(world, client);
}

static void kill_session(struct world *world, struct task *task)
{
    struct client *client = CLIENT_OF(task, disaster_kill);
    if (client_paused(client)) {
        world_at(world, task, client->paused_until, kill_session);
        return;
    }
    again(world, task, world->profile.kill_every_us, kill_session);
    trace_note(world, TRACE_CLIENT, client->index, NO_QUEUE, "store gives up", 0, 0, 0);
    server_kill(world, client->peer);
}

void client_arm_disasters(struct world *world, struct client *client)
{
    const struct profile *p = &world->profile;
    const struct disaster disasters[] = {{&client->disaster_crash, p->crash_every_us, crash},
                                         {&client->disaster_pause, p->pause_every_us, pause_client},
                                         {&client->disaster_close, p->close_every_us, close_client},
                                         {&client->disaster_cut, p->cut_every_us, cut_client},
                                         {&client->disaster_kill, p->kill_every_us, kill_session}};
    world_arm(world, disasters, sizeof disasters / sizeof disasters[0]);
}
