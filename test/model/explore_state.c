/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hash of a state: two states with the same hash are taken for one. It covers all that
 * decides what can follow: every field of the engines, threads, channels and server that is not
 * named here. 128 bits; what is kept of them, explore_seen.c says.
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
 *
 * That is a state as it is. Of states that are alike the search goes on from one only, so its hash
 * leaves out more:
 *  - Which client is which. A client's state is hashed by itself, with its places in the queue, and
 * the sum of these hashes knows no order. No client knows another's identities.
 *  - The highest fences granted, but for which of those that are still about they exceed.
 *  - State that only a later turn of a ticket needs, where a ticket has one: of a client with one
 * thread that does not linger, which no longer wants the lock when it has been released.
 *  - Other fields that are not asked in the state they are in: how often a START was sent once
 *    the session lives, whether an APPEND was in doubt once its ticket has been seen, fences of
 *    tickets that are not granted and of holds that are lost, identities in an answer, which is
 *    told by its serial.
 *  - The order of wakes on their way: any may be heard first.
 *  - The faults that are left (explore_seen.c).
 * `explore --compare` tests that (explore_compare.c). How it would end from a state depends on
 * less: nothing fails any more, nobody begins a turn, and no wake is heard.
 */
#include "explore_hash.h"

static enum precision precision;

static bool whole(void)
{
    return precision == PRECISION_WHOLE;
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
    put_id(command->detached_id);
    plain((uint64_t)command->delay | (uint64_t)(command->type == MRT_STOP && command->died) << 63);
}

/* Whether only one thread of a client can want the lock: its ticket serves nobody a second time. */
static bool serves_once(const struct view *view)
{
    return !whole() && world_threads(view->world, view->client) == 1 &&
           !view->world->instance->lingers;
}

static void put_session(const struct view *view)
{
    const struct mrt_engine *engine = view->client->engine;
    const struct mrt_session *session = &engine->session;
    plain((uint64_t)session->state | (uint64_t)engine->closing << 8 |
          (uint64_t)session->suspended << 9);
    if (whole() || session->state == MRT_SESSION_STARTING || session->state == MRT_SESSION_STOPPING)
        plain(session->attempts);
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

/* Whether it may be asked yet if an APPEND that came to nothing has put it into the store. */
static bool doubts(const struct mrt_ticket *ticket)
{
    return whole() || ticket->adopts || ticket->state == MRT_TICKET_NEW ||
           (ticket->state == MRT_TICKET_LEAVING &&
            (ticket->command.type == MRT_APPEND || ticket->command.type == MRT_DETACH));
}

/* Whether an answer that is on its way was asked for before it was granted. */
static void put_granted_serial(const struct view *view, const struct mrt_ticket *ticket)
{
    if (whole())
        put(SERIAL + view->index, ticket->granted_serial);
    else
        plain(ticket->state == MRT_TICKET_GRANTED && ticket->command.outstanding &&
              ticket->command.serial <= ticket->granted_serial);
}

static void put_ticket(const struct view *view, const struct mrt_ticket *ticket)
{
    bool granted = ticket->state == MRT_TICKET_GRANTED;
    bool in_queue =
        granted || ticket->state == MRT_TICKET_NEW || ticket->state == MRT_TICKET_WAITING;
    bool once = serves_once(view);
    plain((uint64_t)ticket->state + 1);
    put_id(ticket->id);
    plain(ticket->weight);
    plain(ticket->holds);
    plain((uint64_t)ticket->delay);
    plain(ticket->attempts);
    plain((uint64_t)ticket->try_only | (uint64_t)(ticket->others_behind && !once) << 1 |
          (uint64_t)(ticket->outcome_unknown && doubts(ticket)) << 2 |
          (uint64_t)(ticket->look_again && (in_queue || whole())) << 3 |
          (uint64_t)ticket->remove_pending << 4 | (uint64_t)ticket->lightening << 5 |
          (uint64_t)(ticket->checking_others && !once) << 6);
    put(FENCE, granted || whole() ? ticket->fence : 0);
    put_granted_serial(view, ticket);
    plain(once ? ticket->used > 0 : ticket->used);
    plain((uint64_t)ticket->fresh | (uint64_t)ticket->adopts << 1 |
          (uint64_t)(ticket->lingers > 0) << 2 | (uint64_t)ticket->may_linger << 3);
    put(FENCE, ticket->adopts ? ticket->last_fence : 0);
    put_id(ticket->detached_id);
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
    put(FENCE, hold->ticket || whole() ? hold->fence : 0);
}

static void put_queue(const struct view *view, const struct mrt_queue *queue)
{
    const struct mrt_engine_config *config = &queue->engine->config;
    const struct mrt_waiter *waiter;
    const struct mrt_ticket *ticket;
    const struct mrt_hold *hold;
    plain(queue->removals_pending);
    plain((uint64_t)queue->delay);
    put_id(queue->ticket ? queue->ticket->id : (struct mrt_id){0, 0});
    if (!serves_once(view)) {
        plain(queue->turn_count);
        put_since(view, queue->turn_began, config->budget);
    }
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
    bool ends = precision == PRECISION_END;
    plain((uint64_t)thread->state | (uint64_t)(ends ? 0 : thread->turns) << 8 |
          (uint64_t)thread->cancelled << 16 | (uint64_t)(thread->nested && !ends) << 17 |
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
    put_id(command->type == MRT_DETACH ? command->detached_id : (struct mrt_id){0, 0});
    plain((uint64_t)command->delay | (uint64_t)(command->type == MRT_STOP && command->died) << 63);
    plain(command->weight);
}

static void put_event(const struct view *view, const struct mrt_event *event)
{
    bool by_serial = event->serial != 0 && !whole(); /* then its command has the identities */
    bool others = event->others_behind && !serves_once(view);
    plain((uint64_t)event->type | (uint64_t)others << 8);
    put(SERIAL + view->index, event->serial);
    put_id(by_serial ? (struct mrt_id){0, 0} : event->session);
    put_id(by_serial ? (struct mrt_id){0, 0} : event->ticket);
    put(FENCE, event->fence);
    plain(event->weight_ahead);
    plain((uint64_t)event->error);
    plain((uint64_t)event->recheck);
}

static bool before(struct mrt_id a, struct mrt_id b)
{
    return a.high != b.high ? a.high < b.high : a.low < b.low;
}

/* They may be heard in any order; each has a ticket of its own. */
static void put_hints(const struct client *client)
{
    const struct mrt_event *sorted[CHANNEL_MAX];
    for (int i = 0; i < client->hint_count; i++) {
        const struct mrt_event *hint = &client->hints[i];
        int place = i;
        for (; place > 0 && before(hint->ticket, sorted[place - 1]->ticket); place--)
            sorted[place] = sorted[place - 1];
        sorted[place] = hint;
    }
    plain((uint64_t)client->hint_count);
    for (int i = 0; i < client->hint_count; i++) {
        put_id(sorted[i]->session);
        put_id(sorted[i]->ticket);
    }
}

static void put_channels(const struct view *view)
{
    const struct client *client = view->client;
    plain((uint64_t)client->down_count | (uint64_t)client->up_count << 8);
    for (int i = 0; i < client->down_count; i++)
        put_sent(view, &client->down[i]);
    for (int i = 0; i < client->up_count; i++)
        put_event(view, &client->up[i]);
    if (precision == PRECISION_ALIKE)
        put_hints(client);
    if (!whole())
        return;
    plain((uint64_t)client->hint_count);
    for (int i = 0; i < client->hint_count; i++)
        put_event(view, &client->hints[i]);
}

static void put_client(const struct world *world, int index)
{
    const struct client *client = &world->clients[index];
    const struct view view = {world, client, index, world_now(world, client)};
    hash_part(index);
    plain((uint64_t)world_threads(world, client) | (uint64_t)client->crashed << 8 |
          (uint64_t)client->noticed << 9 | (uint64_t)(whole() ? index : 0) << 10);
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
    plain(0);
}

/* ------------------------------------------------------------- the whole */

/* The queue is its entries with their places, each in the part of the client that made it; what is
   nobody's is in that of all. */
struct place {
    const struct world *world;
    uint64_t number;
};

static int put_entry(void *context, const struct mrt_memory_entry *entry)
{
    struct place *place = context;
    const struct world *world = place->world;
    bool left_behind = entry->until > 0; /* nobody finds it by its name any more */
    struct mrt_id ticket = left_behind ? (struct mrt_id){0, 0} : entry->ticket;
    uint64_t maker = entry->session.high ? entry->session.high : ticket.high;
    hash_part(maker > 0 && maker <= CLIENTS_MAX ? (int)maker - 1 : COMMON);
    plain(++place->number);
    put_id(entry->session);
    put_id(ticket);
    put(FENCE, entry->fence);
    plain(entry->weight);
    plain(entry->detached);
    plain((uint64_t)entry->delay);
    plain((uint64_t)(left_behind ? entry->until - world->now : 0));
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
        hash_part(world_index(world, claim->client));
        put_id(claim->command.ticket);
    }
}

static void put_common(const struct world *world)
{
    int kind = whole() ? FENCE : BOUND;
    hash_part(COMMON);
    if (whole() || (precision == PRECISION_END && world->instance->adoptions > 0))
        plain((uint64_t)world->losses | (uint64_t)world->kills << 4 |
              (uint64_t)world->cancels << 8 | (uint64_t)world->crashes << 12 |
              (uint64_t)world->faults << 24);
    plain((uint64_t)world->instants);
    put(kind, world->last_fence);
    put(kind, world->last_alone);
    plain((uint64_t)world->left.state | (uint64_t)world->adoptions << 8);
    put_id(left_id(world));
    plain(world->left.weight);
    put(FENCE, world->left.fence);
    put_graves(world);
}

struct state_hash state_hash(const struct world *world, enum precision wanted)
{
    struct place place = {world, 0};
    precision = wanted;
    hash_begin();
    put_common(world);
    for (int c = 0; c < world->instance->clients; c++)
        put_client(world, c);
    mrt_memory_server_list(world->server, put_entry, &place);
    put_claims(world);
    return hash_end();
}
