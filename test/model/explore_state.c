/*
 * The hash of a state: two states with the same hash are taken for one. It covers all that
 * decides what can follow: every field of the engines, threads, channels, server and budgets
 * that is not named here. 128 bits, so that two states that differ meet by chance with a
 * probability of about 1e-24 in a search of ten million.
 *
 * Left out, and why that loses nothing:
 *  - Addresses, free slots and the order in hash tables: no decision depends on them.
 *  - The values of identities, serials, fences and orders of timers. They are counters: all
 *    that is ever asked is whether two are equal or which is the older. So each is replaced by
 *    its rank among those of its kind that are still referred to; new ones are above all.
 *  - Generations of holds: a thread here asks only of holds that it has not released.
 *  - Counters for statistics.
 *  - The origin of each clock: times are hashed as what is left until then. Those that
 *    only tell whether a bound has been passed (the turn's beginning, how long a waiter has
 *    waited) are cut off at the bound.
 *  - Fields that the state they belong to does not use: they are set before they are read.
 *    And what no instance uses at all: values, requests beside tickets, requests to give up.
 */
#include "explore.h"

#include <stdlib.h>
#include <string.h>

enum kind {
    PLAIN,
    FENCE,
    SESSION,
    IDENTITY,
    SERIAL,
    ORDER = SERIAL + CLIENTS_MAX,
    KINDS = ORDER + CLIENTS_MAX
};

#define TOKENS_MAX 2048
#define VALUES_MAX 256

struct token {
    uint8_t kind;
    uint64_t value;
};

static struct token tokens[TOKENS_MAX];
static int token_count;
static uint64_t values[KINDS][VALUES_MAX];
static int value_count[KINDS];

static void put(int kind, uint64_t value)
{
    if (token_count == TOKENS_MAX)
        abort();
    tokens[token_count++] = (struct token){(uint8_t)kind, value};
    if (kind == PLAIN || value == 0)
        return;
    int place = value_count[kind];
    while (place > 0 && values[kind][place - 1] > value)
        place--;
    if (place > 0 && values[kind][place - 1] == value)
        return;
    if (value_count[kind] == VALUES_MAX)
        abort();
    memmove(&values[kind][place + 1], &values[kind][place],
            (size_t)(value_count[kind]++ - place) * sizeof value);
    values[kind][place] = value;
}

static void plain(uint64_t value)
{
    put(PLAIN, value);
}

static void put_id(struct mrt_id id)
{
    put(IDENTITY, id.high << 32 | id.low);
}

static uint64_t rank(int kind, uint64_t value)
{
    uint64_t number = 1;
    if (kind == PLAIN || value == 0)
        return value;
    while (values[kind][number - 1] != value)
        number++;
    return number;
}

/* ------------------------------------------------------------- the engine */

struct view {
    const struct world *world;
    const struct client *client;
    int index;
    mrt_time now;
};

static void put_time(const struct view *view, mrt_time at)
{
    plain(at == MRT_TIME_NEVER ? UINT64_MAX
          : at == 0            ? UINT64_MAX / 2
                               : (uint64_t)(at - view->now));
}

static void put_since(const struct view *view, mrt_time since, mrt_time bound)
{
    mrt_time age = view->now - since;
    plain((uint64_t)(age > bound ? bound : age));
}

static void put_timer(const struct view *view, const struct mrt_timer *timer)
{
    plain(timer->armed);
    if (!timer->armed)
        return;
    put_time(view, timer->at);
    put(ORDER + view->index, timer->order + 1);
}

static void put_command(const struct view *view, const struct mrt_command *command)
{
    plain((uint64_t)command->queued | (uint64_t)command->outstanding << 1);
    if (!command->queued && !command->outstanding)
        return;
    plain((uint64_t)command->type);
    put(SERIAL + view->index, command->serial);
    put_id(command->session);
    plain(command->weight);
    put_id(command->heir);
    plain((uint64_t)command->delay | (uint64_t)(command->type == MRT_STOP && command->died) << 63);
}

static void put_session(const struct view *view)
{
    const struct mrt_engine *engine = view->client->engine;
    const struct mrt_session *session = &engine->session;
    plain((uint64_t)session->state | (uint64_t)engine->closing << 8 |
          (uint64_t)session->suspended << 9 | (uint64_t)session->attempts << 10);
    put_command(view, &session->command);
    put_command(view, &session->renew);
    put_timer(view, &session->timer);
    if (session->state != MRT_SESSION_NONE)
        put_id(session->id);
    if (view->world->instance->instants == 0 || session->state == MRT_SESSION_NONE)
        return;
    put_time(view, session->sent);
    if (session->state != MRT_SESSION_LIVE)
        return;
    put_time(view, session->heard);
    put_time(view, session->valid_until);
}

/* The number of a thread by its waiter. */
static uint64_t thread_number(const struct view *view, const struct mrt_waiter *waiter)
{
    for (uint64_t t = 0; t < THREADS_MAX; t++)
        if (waiter == &view->client->threads[t].waiter)
            return t + 1;
    return 0;
}

static void put_ticket(const struct view *view, const struct mrt_ticket *ticket)
{
    plain((uint64_t)ticket->state + 1);
    put_id(ticket->id);
    plain(ticket->weight);
    plain(ticket->holds);
    plain((uint64_t)ticket->delay);
    plain(ticket->attempts);
    plain((uint64_t)ticket->try_only | (uint64_t)ticket->others_behind << 1 |
          (uint64_t)ticket->maybe << 2 | (uint64_t)ticket->look_again << 3 |
          (uint64_t)ticket->unsent << 4 | (uint64_t)ticket->lightening << 5 |
          (uint64_t)ticket->asking << 6);
    put(FENCE, ticket->fence);
    put(SERIAL + view->index, ticket->granted_serial);
    plain(ticket->used);
    plain((uint64_t)ticket->fresh | (uint64_t)ticket->adopts << 1 |
          (uint64_t)(ticket->lingers > 0) << 2);
    put(FENCE, ticket->adopts ? ticket->last_fence : 0);
    put_id(ticket->heir);
    plain(thread_number(view, ticket->waiter));
    put_timer(view, &ticket->timer);
    put_command(view, &ticket->command);
}

static void put_hold(const struct mrt_hold *hold)
{
    put_id(hold->ticket ? hold->ticket->id : (struct mrt_id){0, 0});
    plain(1);
    plain(hold->owner);
    plain(hold->weight);
    plain(hold->count);
    plain((uint64_t)hold->told);
    put(FENCE, hold->fence);
}

static void put_queue(const struct view *view, const struct mrt_queue *queue)
{
    const struct mrt_engine_config *config = &queue->engine->config;
    const struct mrt_waiter *waiter;
    const struct mrt_ticket *ticket;
    const struct mrt_hold *hold;
    plain(queue->unsent);
    plain((uint64_t)queue->delay);
    put_id(queue->ticket ? queue->ticket->id : (struct mrt_id){0, 0});
    plain(queue->turn_count);
    put_since(view, queue->turn_began, config->budget);
    TAILQ_FOREACH (waiter, &queue->waiters, link)
        plain(thread_number(view, waiter));
    plain(0);
    TAILQ_FOREACH (ticket, &queue->tickets, link)
        put_ticket(view, ticket);
    plain(0);
    TAILQ_FOREACH (ticket, &queue->engine->loose_tickets, link)
        put_ticket(view, ticket);
    plain(0);
    TAILQ_FOREACH (hold, &queue->holds, link)
        put_hold(hold);
}

/* ------------------------------------------------------------- threads and the link */

static uint64_t hold_number(const struct mrt_queue *queue, const struct mrt_hold *wanted)
{
    uint64_t number = 1;
    const struct mrt_hold *hold;
    TAILQ_FOREACH (hold, &queue->holds, link) {
        if (hold == wanted)
            return number;
        number++;
    }
    return 0;
}

static void put_thread(const struct view *view, const struct thread *thread)
{
    const struct mrt_engine_config *config = &view->client->engine->config;
    plain((uint64_t)thread->state | (uint64_t)thread->turns << 8 |
          (uint64_t)thread->cancelled << 16 | (uint64_t)thread->nested << 17 |
          (uint64_t)thread->detaching << 18 | (uint64_t)thread->adopting << 19);
    if (thread->state == THREAD_WAITING || thread->state == THREAD_WOKEN) {
        plain(thread->waiter.weight);
        put_id(thread->waiter.adopts);
        plain((uint64_t)thread->waiter.state | (uint64_t)thread->waiter.try_only << 8);
        put_since(view, thread->waiter.since, config->fair_after);
    }
    for (int g = 0; g < GRIPS_MAX; g++) {
        const struct grip *grip = &thread->grips[g];
        plain(hold_number(view->client->queue, grip->hold) | (uint64_t)grip->seen_lost << 8 |
              (uint64_t)grip->told_lost << 9);
        put_time(view, view->world->instance->instants > 0 ? grip->valid_until : 0);
    }
}

static void put_sent(const struct view *view, const struct mrt_command *command)
{
    bool silent = command->serial == SILENT;
    plain((uint64_t)command->type | (uint64_t)silent << 8 | (uint64_t)command->try_only << 9);
    put(SERIAL + view->index, silent ? 0 : command->serial);
    put_id(command->session);
    put_id(command->ticket);
    plain((uint64_t)command->adopt);
    put_id(command->type == MRT_DETACH ? command->heir : (struct mrt_id){0, 0});
    plain((uint64_t)command->delay | (uint64_t)(command->type == MRT_STOP && command->died) << 63);
    plain(command->weight);
}

static void put_event(const struct view *view, const struct mrt_event *event)
{
    plain((uint64_t)event->type | (uint64_t)event->others_behind << 8);
    put(SERIAL + view->index, event->serial);
    put_id(event->session);
    put_id(event->ticket);
    put(FENCE, event->fence);
    plain(event->weight_ahead);
    plain((uint64_t)event->error);
    plain((uint64_t)event->recheck);
}

static void put_channels(const struct view *view)
{
    const struct client *client = view->client;
    plain((uint64_t)client->down_count | (uint64_t)client->up_count << 8 |
          (uint64_t)client->hint_count << 16);
    for (int i = 0; i < client->down_count; i++)
        put_sent(view, &client->down[i]);
    for (int i = 0; i < client->up_count; i++)
        put_event(view, &client->up[i]);
    for (int i = 0; i < client->hint_count; i++)
        put_event(view, &client->hints[i]);
}

static void put_client(const struct world *world, int index)
{
    const struct client *client = &world->clients[index];
    const struct view view = {world, client, index, world_now(world, client)};
    plain((uint64_t)client->crashed | (uint64_t)client->noticed << 1);
    put_channels(&view);
    for (int i = 0; i < SESSIONS_MAX; i++)
        if (!mrt_id_none(client->sessions[i].id)) {
            put_id(client->sessions[i].id);
            plain((uint64_t)(client->sessions[i].expires - world->now));
            put(SESSION, world->instance->instants > 0 ? client->sessions[i].number : 0);
        }
    plain(0);
    if (!client->engine)
        return;
    put_session(&view);
    put_queue(&view, client->queue);
    for (int t = 0; t < world_threads(world, client); t++)
        put_thread(&view, &client->threads[t]);
}

/* ------------------------------------------------------------- the whole */

static int put_entry(void *context, const struct mrt_memory_entry *entry)
{
    const struct world *world = context;
    plain(1);
    put_id(entry->session);
    put_id(entry->ticket);
    put(FENCE, entry->fence);
    plain(entry->weight);
    plain(entry->detached);
    plain((uint64_t)entry->delay);
    plain((uint64_t)(entry->until > 0 ? entry->until - world->now : 0));
    return 0;
}

static void put_graves(const struct world *world)
{
    for (int g = 0; g < GRAVES_MAX; g++) {
        const struct grave *grave = &world->graves[g];
        plain(grave->until > world->now ? (uint64_t)(grave->until - world->now) : 0);
        plain(grave->until > world->now ? grave->weight : 0);
    }
}

static void put_claims(const struct world *world)
{
    for (int i = 0; i < CLAIMS_MAX; i++) {
        const struct claim *claim = &world->claims[i];
        if (mrt_id_none(claim->command.ticket))
            continue;
        plain((uint64_t)world_index(world, claim->client) + 1);
        put_id(claim->command.ticket);
    }
}

static uint64_t mix(uint64_t hash, uint64_t value, uint64_t factor)
{
    hash = (hash ^ value) * factor;
    return hash ^ hash >> 29;
}

struct state_hash state_hash(const struct world *world)
{
    token_count = 0;
    memset(value_count, 0, sizeof value_count);
    plain((uint64_t)world->losses | (uint64_t)world->kills << 4 | (uint64_t)world->cancels << 8 |
          (uint64_t)world->crashes << 12 | (uint64_t)world->instants << 16 |
          (uint64_t)world->faults << 24);
    put(FENCE, world->last_fence);
    put(FENCE, world->last_alone);
    mrt_memory_server_list(world->server, put_entry, (void *)(uintptr_t)world);
    plain(0);
    put_claims(world);
    plain((uint64_t)world->left.state | (uint64_t)world->adoptions << 8);
    put_id(left_id(world));
    plain(world->left.weight);
    put(FENCE, world->left.fence);
    put_graves(world);
    for (int c = 0; c < world->instance->clients; c++)
        put_client(world, c);
    struct state_hash hash = {UINT64_C(0x243f6a8885a308d3), UINT64_C(0x13198a2e03707344)};
    for (int i = 0; i < token_count; i++) {
        uint64_t value = rank(tokens[i].kind, tokens[i].value);
        hash.low = mix(hash.low, value, UINT64_C(0x9e3779b97f4a7c15));
        hash.high = mix(hash.high, value + 1, UINT64_C(0xbf58476d1ce4e5b9));
    }
    hash.low = mix(hash.low, hash.high >> 32, UINT64_C(0x94d049bb133111eb));
    hash.high = mix(hash.high, hash.low >> 32, UINT64_C(0x94d049bb133111eb));
    return hash;
}
