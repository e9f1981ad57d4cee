/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients with real engines, the memory store's server, and the link between them.
 *
 * A client's commands reach the server in the order sent, and its answers come back in order.
 * Wakes come by themselves, at any time, in any order, or never; one for a ticket that the
 * engine does not know any more does nothing, so it is not kept.
 *
 * A store that keeps a claim instead of a queue, by clause (l) of the port, is the same server
 * with at most one ticket in it: those who wait are kept here, woken at each departure, and
 * let in by the first REFRESH that finds nobody.
 */
#include "explore.h"

#include <stdlib.h>
#include <string.h>

#define QUEUE "q"
#define FOR_EVER (1000000 * MRT_SECOND)

mrt_time __real_mrt_engine_pause(struct mrt_engine *engine, uint32_t attempts);
mrt_time __wrap_mrt_engine_pause(struct mrt_engine *engine, uint32_t attempts);

/* Pauses are spread by the newest serial, which no state has in it: only its place among others.
   Here they are not spread, or states that are one would go on with timers that differ. Nothing is
   lost with that: pauses are of milliseconds, and all they could change places with, rechecks, of
   seconds. */
mrt_time __wrap_mrt_engine_pause(struct mrt_engine *engine, uint32_t attempts)
{
    uint64_t serial = engine->serial;
    engine->serial = 0;
    mrt_time pause = __real_mrt_engine_pause(engine, attempts);
    engine->serial = serial;
    return pause;
}

static bool leases(const struct world *world)
{
    return world->instance->instants > 0;
}

mrt_time world_now(const struct world *world, const struct client *client)
{
    return leases(world) ? world->now : client->now;
}

int world_index(const struct world *world, const struct client *client)
{
    return (int)(client - world->clients);
}

int world_threads(const struct world *world, const struct client *client)
{
    return world_index(world, client) == 0 ? world->instance->threads : 1;
}

unsigned world_faults(const struct world *world)
{
    if (world->faults == 0)
        return 0;
    return (unsigned)(world->losses + 2 * world->kills + 4 * world->cancels + 8 * world->crashes);
}

uint64_t world_weight(const struct world *world, int choice)
{
    uint64_t capacity = world->instance->recipe->capacity;
    if (capacity == MRT_WRITER)
        return choice == 0 ? MRT_WRITER : choice == 1 ? MRT_READER : 0;
    return choice < (capacity < 2 ? 1 : 2) ? (uint64_t)choice + 1 : 0;
}

uint64_t world_owner(const struct world *world, int thread)
{
    return world->instance->recipe->capacity == 2 ? 0
                                                  : (uint64_t)thread + 1; /* permits are nobody's */
}

/* ------------------------------------------------------------- events */

static void push_hint(struct client *client, const struct mrt_event *event)
{
    for (int i = 0; i < client->hint_count; i++)
        if (mrt_id_equal(client->hints[i].ticket, event->ticket))
            return; /* a doubled event is the event and a further REFRESH */
    if (client->hint_count < CHANNEL_MAX)
        client->hints[client->hint_count++] = *event;
}

static void emit(void *context, void *peer, const struct mrt_event *event)
{
    const struct world *world = context;
    struct client *client = peer;
    if (client->crashed || event->serial == SILENT)
        return;
    struct mrt_event copy = *event;
    copy.detail = NULL;
    if (copy.type == MRT_VIEW && world->instance->claims)
        copy.others_behind = true;
    if (copy.type == MRT_WAKE)
        push_hint(client, &copy);
    else if (client->up_count < CHANNEL_MAX)
        client->up[client->up_count++] = copy;
    else
        check_fail(world, "too many answers");
}

static bool knows(const struct client *client, struct mrt_id id)
{
    struct mrt_ticket *ticket;
    HASH_FIND(hh, client->engine->tickets_by_id, &id, sizeof id, ticket);
    return ticket != NULL;
}

static void forget_hints(struct client *client)
{
    int kept = 0;
    for (int i = 0; i < client->hint_count; i++)
        if (knows(client, client->hints[i].ticket))
            client->hints[kept++] = client->hints[i];
    memset(client->hints + kept, 0, (size_t)(CHANNEL_MAX - kept) * sizeof client->hints[0]);
    client->hint_count = kept;
}

static void told(struct client *client, const struct mrt_hold *hold)
{
    for (int t = 0; t < THREADS_MAX; t++)
        for (int g = 0; g < GRIPS_MAX; g++) {
            struct grip *grip = &client->threads[t].grips[g];
            if (grip->hold == hold && hold->told == MORTISE_LOST)
                grip->told_lost = true;
        }
}

static void send(const struct world *world, struct client *client,
                 const struct mrt_command *command)
{
    if (client->down_count == CHANNEL_MAX)
        check_fail(world, "too many commands");
    struct mrt_command *copy = &client->down[client->down_count++];
    *copy = *command;
    memset(&copy->link, 0, sizeof copy->link);
    if (copy->queue) { /* texts that outlive the engine */
        copy->queue = QUEUE;
        copy->kind = world->instance->recipe->kind;
    }
}

void world_pump(struct world *world, struct client *client)
{
    struct mrt_waiter *waiter;
    const struct mrt_hold *hold;
    const struct mrt_command *command;
    while ((waiter = mrt_engine_next_settled(client->engine)))
        thread_settled(world, client,
                       (struct thread *)((char *)waiter - offsetof(struct thread, waiter)));
    while ((hold = mrt_engine_next_told(client->engine)))
        told(client, hold);
    while ((command = mrt_engine_next_command(client->engine, world_now(world, client))))
        send(world, client, command);
    while (world->instance->at_once && client->down_count > 0)
        world_apply(world, client);
    forget_hints(client);
}

void world_event(struct world *world, struct client *client, const struct mrt_event *event)
{
    mrt_engine_event(client->engine, event, world_now(world, client));
    world_pump(world, client);
}

void world_hear(struct world *world, struct client *client)
{
    struct mrt_event event = client->up[0];
    client->up_count--;
    memmove(client->up, client->up + 1, (size_t)client->up_count * sizeof event);
    memset(&client->up[client->up_count], 0, sizeof event);
    world_event(world, client, &event);
}

void world_tick(struct world *world, struct client *client)
{
    mrt_time next = mrt_engine_next_time(client->engine);
    if (!leases(world) && client->now < next)
        client->now = next;
    mrt_engine_tick(client->engine, world_now(world, client));
    world_pump(world, client);
    check_ticked(world, client);
}

/* ------------------------------------------------------------- the server */

static bool has_session(const struct world *world, struct mrt_id session)
{
    const struct mrt_command command = {.session = session};
    return mrt_memory_server_has(world->server, &command);
}

static int any_entry(void *context, const struct mrt_memory_entry *entry)
{
    (void)context, (void)entry;
    return 1;
}

static bool is_free(const struct world *world)
{
    return mrt_memory_server_list_queue(world->server, QUEUE, any_entry, NULL) == 0;
}

/* After a change at the server: ended sessions are forgotten, and claims of a free lock woken. */
static void changed(struct world *world, bool was_free)
{
    for (int c = 0; c < world->instance->clients; c++)
        for (int i = 0; i < SESSIONS_MAX; i++) {
            struct session_record *record = &world->clients[c].sessions[i];
            if (!mrt_id_none(record->id) && !has_session(world, record->id))
                memset(record, 0, sizeof *record);
        }
    for (int i = 0; i < CLAIMS_MAX; i++) {
        struct claim *claim = &world->claims[i];
        if (mrt_id_none(claim->command.ticket))
            continue;
        const struct mrt_event wake = {
            .type = MRT_WAKE, .session = claim->command.session, .ticket = claim->command.ticket};
        if (!has_session(world, claim->command.session))
            memset(claim, 0, sizeof *claim);
        else if (!was_free && is_free(world))
            emit(world, claim->client, &wake);
    }
}

static mrt_time server_now(const struct world *world)
{
    return leases(world) || world->instance->delays ? world->now : 0;
}

static void serve(struct world *world, struct client *client, const struct mrt_command *command)
{
    bool was_free = is_free(world);
    mrt_memory_server_apply(world->server, command, client, server_now(world), &world->sink);
    changed(world, was_free);
}

static void note_session(struct world *world, struct client *client, struct mrt_id id)
{
    struct session_record *free_record = NULL;
    for (int i = SESSIONS_MAX - 1; i >= 0; i--) {
        struct session_record *record = &client->sessions[i];
        if (mrt_id_none(record->id) || mrt_id_equal(record->id, id))
            free_record = record;
        if (mrt_id_equal(record->id, id))
            break;
    }
    if (!free_record)
        check_fail(world, "too many sessions");
    if (!mrt_id_equal(free_record->id, id))
        *free_record = (struct session_record){.id = id, .number = ++world->sessions};
    free_record->expires = mrt_time_add(world->now, LEASE);
}

static struct claim *find_claim(struct world *world, struct mrt_id ticket)
{
    for (int i = 0; i < CLAIMS_MAX; i++)
        if (mrt_id_equal(world->claims[i].command.ticket, ticket))
            return &world->claims[i];
    return NULL;
}

/* Whether it is a claim's command that has been dealt with: it has to wait, or needs not. */
static bool serve_claim(struct world *world, struct client *client,
                        const struct mrt_command *command)
{
    struct claim *claim = find_claim(world, command->ticket);
    bool asks = command->type == MRT_APPEND || (command->type == MRT_REFRESH && claim);
    if (claim && (command->type == MRT_REMOVE || (asks && is_free(world))))
        memset(claim, 0, sizeof *claim);
    if (!asks || is_free(world) || !has_session(world, command->session) ||
        mrt_memory_server_has(world->server, command))
        return false;
    struct mrt_event event = {.type = command->try_only ? MRT_BLOCKED : MRT_VIEW,
                              .serial = command->serial,
                              .session = command->session,
                              .ticket = command->ticket,
                              .fence_span = FENCE_SPAN,
                              .weight_ahead = command->capacity,
                              .recheck = MRT_SECOND};
    if (!command->try_only && !claim) {
        claim = find_claim(world, (struct mrt_id){0, 0});
        *claim = (struct claim){*command, client};
    }
    emit(world, client, &event);
    return true;
}

void world_drop(struct client *client)
{
    client->down_count--;
    memmove(client->down, client->down + 1, (size_t)client->down_count * sizeof client->down[0]);
    memset(&client->down[client->down_count], 0, sizeof client->down[0]);
}

void world_apply(struct world *world, struct client *client)
{
    struct mrt_command command = client->down[0];
    world_drop(client);
    if (world->instance->claims && command.queue) {
        bool asked = find_claim(world, command.ticket) && command.type == MRT_REFRESH;
        if (serve_claim(world, client, &command))
            return;
        if (asked)
            command.type = MRT_APPEND;
    }
    serve(world, client, &command);
    if ((command.type == MRT_START || command.type == MRT_RENEW) &&
        has_session(world, command.session))
        note_session(world, client, command.session);
}

void world_expire(struct world *world)
{
    bool was_free = is_free(world);
    mrt_memory_server_expire(world->server, world->now, &world->sink);
    changed(world, was_free);
}

struct mrt_id world_session(const struct world *world, const struct client *client)
{
    (void)world;
    for (int i = 0; i < SESSIONS_MAX; i++)
        if (!mrt_id_none(client->sessions[i].id))
            return client->sessions[i].id;
    return (struct mrt_id){0, 0};
}

/* Where there is no lease the client is told before anybody else can see it. */
void world_kill(struct world *world, struct client *client)
{
    struct mrt_id id = world_session(world, client);
    const struct mrt_event event = {
        .type = MRT_SESSION_LOST, .session = id, .error = MORTISE_ELOST};
    const struct mrt_command stop = {
        .type = MRT_STOP, .serial = SILENT, .session = id, .died = true};
    world_event(world, client, &event);
    serve(world, client, &stop);
}

/* Its messages may still arrive. */
void world_crash(struct world *world, struct client *client)
{
    for (int t = 0; t < THREADS_MAX; t++) {
        left_crashed(world, &client->threads[t]);
        delay_crashed(world, client, &client->threads[t]);
    }
    mrt_engine_free(client->engine);
    client->engine = NULL;
    client->queue = NULL;
    client->crashed = true;
    client->now = 0;
    memset(client->threads, 0, sizeof client->threads);
    memset(client->up, 0, sizeof client->up);
    memset(client->hints, 0, sizeof client->hints);
    client->up_count = client->hint_count = 0;
    for (int i = 0; i < client->down_count; i++)
        client->down[i].serial = SILENT;
}

void world_notice(struct world *world, struct client *client)
{
    bool was_free = is_free(world);
    client->noticed = true;
    client->down_count = 0;
    memset(client->down, 0, sizeof client->down);
    mrt_memory_server_drop(world->server, client, world->now, &world->sink);
    changed(world, was_free);
}

/* ------------------------------------------------------------- time, and the whole */

static void sooner(const struct world *world, mrt_time *next, mrt_time at)
{
    if (at > world->now && at < *next)
        *next = at;
}

/* When a sign of life is due, and when a lease is over for its client. */
static void sooner_in_session(const struct world *world, const struct mrt_session *session,
                              mrt_time *next)
{
    if (session->state != MRT_SESSION_LIVE)
        return;
    sooner(world, next, session->valid_until);
    if (!session->renew.outstanding)
        sooner(world, next, session->sent + LEASE / 3);
}

mrt_time world_next(const struct world *world)
{
    mrt_time next = MRT_TIME_NEVER;
    sooner(world, &next, mrt_memory_server_next(world->server));
    for (int c = 0; c < world->instance->clients; c++) {
        const struct mrt_engine *engine = world->clients[c].engine;
        if (engine && world->settling)
            sooner(world, &next, mrt_engine_next_time(engine));
        else if (engine)
            sooner_in_session(world, &engine->session, &next);
    }
    return next;
}

static void open_client(const struct world *world, struct client *client)
{
    const struct mrt_engine_config config = {
        .seed = {(uint64_t)world_index(world, client) + 1, 1},
        .fair_after = MRT_MILLISECOND,
        .budget = 2 * MRT_MILLISECOND,
        .budget_count = 1,
        .margin_min = 6,
    };
    client->now = MRT_SECOND;
    if (mrt_engine_new(&config, &client->engine) != MORTISE_OK ||
        mrt_engine_queue(client->engine, QUEUE, world->instance->recipe, &client->queue) !=
            MORTISE_OK)
        abort();
    if (world->instance->lingers)
        mrt_queue_linger(client->queue, FOR_EVER);
    for (int t = 0; t < world_threads(world, client); t++)
        client->threads[t].turns = world->instance->turns;
}

struct world *world_new(const struct instance *instance)
{
    struct world *world = calloc(1, sizeof *world);
    const struct mrt_memory_config config = {
        .lease = instance->instants > 0 ? LEASE : 0,
        .recheck = instance->instants > 0 ? 4 * LEASE : MRT_SECOND,
        .fence_span = FENCE_SPAN,
        .first_fence = 9 * FENCE_SPAN, /* the second ticket's has a digit more */
    };
    if (!world || !(world->server = mrt_memory_server_new(&config)))
        abort();
    world->instance = instance;
    world->now = MRT_SECOND;
    world->sink = (struct mrt_memory_sink){emit, world};
    world->losses = instance->losses;
    world->kills = instance->kills;
    world->cancels = instance->cancels;
    world->crashes = instance->crashes;
    world->faults = instance->faults;
    world->instants = instance->instants;
    world->adoptions = instance->adoptions;
    for (int c = 0; c < instance->clients; c++)
        open_client(world, &world->clients[c]);
    return world;
}
