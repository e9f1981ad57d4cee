/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The actions that can happen next in a state, in an order that depends on nothing but the state.
 *
 * Clients and threads that are alike begin in the order of their numbers: any other run is one
 * of these with the numbers exchanged. A client crashes only once it has begun.
 */
#include "explore.h"

#include <string.h>

enum { LOSE_COMMAND, LOSE_REPLY, LOSE_EARLY, LOSE_COUNT };

/* ------------------------------------------------------------- threads */

static bool may_end_with(const struct thread *thread, int error)
{
    return (error == MORTISE_EBUSY && thread->waiter.try_only) ||
           (error == MORTISE_ECANCELLED && thread->cancelled);
}

static void take(const struct world *world, struct thread *thread, struct mrt_hold *hold)
{
    int free_grip = thread->grips[0].hold ? 1 : 0;
    if (!hold || !mrt_hold_live(hold, hold->generation) || thread->grips[free_grip].hold)
        check_fail(world, "granted a hold that is not one");
    thread->grips[free_grip] = (struct grip){.hold = hold, .generation = hold->generation};
}

void thread_settled(struct world *world, struct client *client, struct thread *thread)
{
    struct mrt_waiter *waiter = &thread->waiter;
    if (thread->state != THREAD_WAITING && thread->state != THREAD_WOKEN)
        return;
    if (waiter->state == MRT_WAITER_WOKEN)
        thread->state = THREAD_WOKEN;
    if (waiter->state != MRT_WAITER_DONE)
        return;
    bool left = thread->detaching || thread->adopting;
    if (left && !left_settled(world, thread, waiter->error)) {
        thread->state = THREAD_IDLE;
    } else if (waiter->error == MORTISE_OK && !thread->cancelled) {
        thread->state = THREAD_HELD;
        take(world, thread, waiter->hold);
        check_granted(world, client, waiter->hold);
    } else if (may_end_with(thread, waiter->error)) {
        thread->state = THREAD_IDLE;
    } else {
        check_fail(world, "an acquire ends with %s", mortise_error_name(waiter->error));
    }
    memset(waiter, 0, sizeof *waiter);
    thread->cancelled = thread->detaching = thread->adopting = false;
}

/* The host's part after a call of the engine that may have ended the wait of this thread. */
void thread_follow(struct world *world, struct client *client, struct thread *thread)
{
    world_pump(world, client);
    thread_settled(world, client, thread); /* if it was DONE at once, and so is in no list */
}

static void acquire(struct world *world, struct client *client, struct thread *thread, int variant)
{
    thread->turns--;
    thread->nested = false;
    thread->state = THREAD_WAITING;
    thread->waiter = (struct mrt_waiter){
        .owner = world_owner(world, (int)(thread - client->threads)),
        .weight = world_weight(world, variant & 1),
        .deadline = MRT_TIME_NEVER,
        .try_only = variant & 2,
        .competes = true,
    };
    delay_ask(world, client, thread);
    mrt_engine_acquire(client->engine, client->queue, &thread->waiter, world_now(world, client));
    thread_follow(world, client, thread);
}

void thread_retry(struct world *world, struct client *client, struct thread *thread)
{
    thread->state = THREAD_WAITING;
    mrt_engine_retry(client->engine, &thread->waiter, world_now(world, client));
    thread_follow(world, client, thread);
}

/* The owner of a hold acquires once more, and is answered at once. */
static void again(struct world *world, struct client *client, struct thread *thread, int choice)
{
    const struct mrt_recipe *recipe = world->instance->recipe;
    struct mrt_hold *first = thread->grips[0].hold;
    uint64_t weight = world_weight(world, choice);
    struct mrt_waiter waiter = {.owner = world_owner(world, (int)(thread - client->threads)),
                                .weight = weight,
                                .deadline = MRT_TIME_NEVER};
    uint32_t count = first->count;
    thread->nested = true;
    mrt_engine_acquire(client->engine, client->queue, &waiter, world_now(world, client));
    int expected = !first->ticket                                 ? MORTISE_ELOST
                   : !recipe->reentrant || weight > first->weight ? MORTISE_EDEADLOCK
                                                                  : MORTISE_OK;
    if (waiter.state != MRT_WAITER_DONE || waiter.error != expected)
        check_fail(world, "the owner acquires again: %s", mortise_error_name(waiter.error));
    if (expected == MORTISE_OK && waiter.hold != first)
        take(world, thread, waiter.hold);
    else if (expected == MORTISE_OK && first->count != count + 1)
        check_fail(world, "a nested acquire does not count");
    world_pump(world, client);
}

static void lighten(struct world *world, struct client *client, struct thread *thread)
{
    struct grip *grip = &thread->grips[0];
    thread->nested = true;
    int error = mrt_engine_lighten(client->engine, grip->hold, grip->generation, 0, MRT_READER,
                                   world_now(world, client));
    if (error != (grip->hold->ticket ? MORTISE_OK : MORTISE_ELOST))
        check_fail(world, "a downgrade: %s", mortise_error_name(error));
    world_pump(world, client);
}

void thread_release(struct world *world, struct client *client, struct thread *thread, int which)
{
    struct grip *grip = &thread->grips[which];
    uint32_t count = grip->hold->count;
    int error = mrt_engine_release(client->engine, grip->hold, grip->generation, 0,
                                   world_now(world, client));
    if (error != MORTISE_OK && error != MORTISE_ELOST)
        check_fail(world, "a release: %s", mortise_error_name(error));
    if (mrt_hold_live(grip->hold, grip->generation) != (count > 1))
        check_fail(world, "a hold of depth %u after its release", count);
    world_pump(world, client);
    if (count == 1 && error == MORTISE_ELOST && !grip->told_lost && !grip->seen_lost)
        check_fail(world, "a hold lost without a word");
    if (count == 1)
        memset(grip, 0, sizeof *grip);
    if (!thread->grips[0].hold && !thread->grips[1].hold) {
        thread->state = THREAD_IDLE;
        thread->nested = false;
    }
}

static void cancel(struct world *world, struct client *client, struct thread *thread)
{
    world->cancels--;
    world->faults--;
    thread->cancelled = true;
    mrt_engine_cancel(client->engine, &thread->waiter, MORTISE_ECANCELLED,
                      world_now(world, client));
    thread_follow(world, client, thread);
}

/* ------------------------------------------------------------- the link's faults */

static void lose(struct world *world, struct client *client, int variant)
{
    struct mrt_command *command = &client->down[0];
    const struct mrt_event unknown = {.type = MRT_UNKNOWN,
                                      .serial = command->serial,
                                      .session = command->session,
                                      .ticket = command->ticket};
    world->losses--;
    world->faults--;
    command->serial = SILENT;
    if (variant == LOSE_COMMAND)
        world_drop(client);
    else if (variant == LOSE_REPLY)
        world_apply(world, client);
    client->up[client->up_count++] = unknown;
}

/* ------------------------------------------------------------- what can happen */

struct list {
    struct action *actions;
    int count;
};

static void add(struct list *list, enum action_kind kind, int client, int thread, int variant)
{
    if (list->count < ACTIONS_MAX)
        list->actions[list->count++] =
            (struct action){(uint8_t)kind, (uint8_t)client, (uint8_t)thread, (uint8_t)variant};
}

static bool has_begun(const struct world *world, const struct client *client)
{
    return client->crashed || client->threads[0].turns < world->instance->turns;
}

/* Whether it is its turn to begin among those that are alike. */
static bool may_begin(const struct world *world, int c, int t)
{
    const struct client *client = &world->clients[c];
    if (t > 0)
        return client->threads[t - 1].turns < world->instance->turns;
    return c == 0 || world_threads(world, client - 1) > 1 || has_begun(world, client - 1);
}

static void list_acquires(const struct world *world, struct list *list, int c, int t)
{
    if (world->clients[c].threads[t].turns == 0 || !may_begin(world, c, t))
        return;
    for (int choice = 0; world_weight(world, choice) > 0; choice++) {
        add(list, ACTION_ACQUIRE, c, t, choice);
        if (world->instance->tries)
            add(list, ACTION_ACQUIRE, c, t, choice + 2);
    }
}

static void list_holder(const struct world *world, struct list *list, int c, int t)
{
    const struct thread *thread = &world->clients[c].threads[t];
    for (int g = 0; g < GRIPS_MAX; g++)
        if (thread->grips[g].hold)
            add(list, ACTION_RELEASE, c, t, g);
    if (left_may_detach(world, thread))
        add(list, ACTION_DETACH, c, t, 0);
    if (!world->instance->nests || thread->nested || !thread->grips[0].hold ||
        world_owner(world, t) == 0)
        return;
    for (int choice = 0; world_weight(world, choice) > 0; choice++)
        add(list, ACTION_AGAIN, c, t, choice);
    if (thread->grips[0].hold->weight == MRT_WRITER)
        add(list, ACTION_LIGHTEN, c, t, 0);
}

static void list_thread(const struct world *world, struct list *list, int c, int t)
{
    const struct thread *thread = &world->clients[c].threads[t];
    bool waits = thread->state == THREAD_WAITING || thread->state == THREAD_WOKEN;
    if (thread->state == THREAD_IDLE)
        list_acquires(world, list, c, t);
    if (left_may_adopt(world, thread))
        add(list, ACTION_ADOPT, c, t, 0);
    if (thread->state == THREAD_HELD)
        list_holder(world, list, c, t);
    if (thread->state == THREAD_WOKEN)
        add(list, ACTION_RETRY, c, t, 0);
    if (waits && world->faults > 0 && world->cancels > 0)
        add(list, ACTION_CANCEL, c, t, 0);
}

static void list_engine(const struct world *world, struct list *list, int c)
{
    const struct client *client = &world->clients[c];
    mrt_time next = mrt_engine_next_time(client->engine);
    for (int t = 0; t < world_threads(world, client); t++)
        list_thread(world, list, c, t);
    if (client->up_count > 0)
        add(list, ACTION_HEAR, c, 0, 0);
    for (int i = 0; i < client->hint_count; i++)
        add(list, ACTION_HINT, c, 0, i);
    if (world->instance->instants > 0 ? next <= world->now : next != MRT_TIME_NEVER)
        add(list, ACTION_TICK, c, 0, 0);
    if (world->faults == 0)
        return;
    if (world->kills > 0 && !mrt_id_none(world_session(world, client)))
        add(list, ACTION_KILL, c, 0, 0);
    if (world->crashes > 0 && has_begun(world, client))
        add(list, ACTION_CRASH, c, 0, 0);
}

static void list_link(const struct world *world, struct list *list, int c)
{
    const struct client *client = &world->clients[c];
    if (client->down_count == 0)
        return;
    add(list, ACTION_APPLY, c, 0, 0);
    if (world->faults == 0 || world->losses == 0 || client->down[0].serial == SILENT)
        return;
    for (int variant = 0; variant < LOSE_COUNT; variant++)
        add(list, ACTION_LOSE, c, 0, variant);
}

int action_list(struct world *world, struct action actions[ACTIONS_MAX])
{
    struct list list = {actions, 0};
    for (int c = 0; c < world->instance->clients; c++) {
        const struct client *client = &world->clients[c];
        if (client->engine)
            list_engine(world, &list, c);
        list_link(world, &list, c);
        if (client->crashed && !client->noticed && world->instance->instants == 0)
            add(&list, ACTION_NOTICE, c, 0, 0);
    }
    if (world->instants > 0 && world_next(world) != MRT_TIME_NEVER)
        add(&list, ACTION_INSTANT, 0, 0, 0);
    if (world->instance->instants > 0 && mrt_memory_server_next(world->server) <= world->now)
        add(&list, ACTION_EXPIRE, 0, 0, 0);
    if (delay_may_end(world))
        add(&list, ACTION_OVER, 0, 0, 0);
    if (list.count == ACTIONS_MAX)
        check_fail(world, "too much can happen at once");
    return list.count;
}

/* ------------------------------------------------------------- doing it */

static void hint(struct world *world, struct client *client, int which)
{
    struct mrt_event event = client->hints[which];
    client->hint_count--;
    memmove(client->hints + which, client->hints + which + 1,
            (size_t)(client->hint_count - which) * sizeof event);
    memset(&client->hints[client->hint_count], 0, sizeof event);
    world_event(world, client, &event);
}

static void do_thread(struct world *world, struct client *client, struct thread *thread,
                      struct action action)
{
    switch (action.kind) {
    case ACTION_ACQUIRE:
        acquire(world, client, thread, action.variant);
        break;
    case ACTION_AGAIN:
        again(world, client, thread, action.variant);
        break;
    case ACTION_LIGHTEN:
        lighten(world, client, thread);
        break;
    case ACTION_RETRY:
        thread_retry(world, client, thread);
        break;
    case ACTION_RELEASE:
        thread_release(world, client, thread, action.variant);
        break;
    case ACTION_DETACH:
        left_detach(world, client, thread);
        break;
    case ACTION_ADOPT:
        left_adopt(world, client, thread);
        break;
    default:
        cancel(world, client, thread);
    }
}

void action_do(struct world *world, struct action action)
{
    struct client *client = &world->clients[action.client];
    switch (action.kind) {
    case ACTION_APPLY:
        world_apply(world, client);
        break;
    case ACTION_HEAR:
        world_hear(world, client);
        break;
    case ACTION_HINT:
        hint(world, client, action.variant);
        break;
    case ACTION_TICK:
        world_tick(world, client);
        break;
    case ACTION_INSTANT:
        world->instants--;
        world->now = world_next(world);
        break;
    case ACTION_EXPIRE:
        world_expire(world);
        break;
    case ACTION_OVER:
        delay_end(world);
        break;
    case ACTION_LOSE:
        lose(world, client, action.variant);
        break;
    case ACTION_KILL:
        world->kills--;
        world->faults--;
        world_kill(world, client);
        break;
    case ACTION_CRASH:
        world->crashes--;
        world->faults--;
        world_crash(world, client);
        break;
    case ACTION_NOTICE:
        world_notice(world, client);
        break;
    default:
        do_thread(world, client, &client->threads[action.thread], action);
    }
}

void action_print(const struct world *world, struct action action, FILE *file)
{
    static const char *const names[] = {"acquires",
                                        "acquires again",
                                        "goes on reading",
                                        "takes up the lock it was woken for",
                                        "releases",
                                        "gives up",
                                        "leaves the lock to nobody",
                                        "adopts",
                                        "is served",
                                        "hears",
                                        "is woken",
                                        "has a timer fire",
                                        "time goes on",
                                        "sessions run out",
                                        "a delay is over",
                                        "loses",
                                        "loses its session",
                                        "crashes",
                                        "is found dead"};
    static const char *const commands[] = {
        [MRT_START] = "START",   [MRT_STOP] = "STOP",       [MRT_RENEW] = "RENEW",
        [MRT_APPEND] = "APPEND", [MRT_REFRESH] = "REFRESH", [MRT_LIGHTEN] = "LIGHTEN",
        [MRT_REMOVE] = "REMOVE", [MRT_DETACH] = "DETACH"};
    static const char *const events[] = {
        [MRT_STARTED] = "STARTED", [MRT_STOPPED] = "STOPPED",
        [MRT_RENEWED] = "RENEWED", [MRT_VIEW] = "VIEW",
        [MRT_BLOCKED] = "BLOCKED", [MRT_REMOVED] = "REMOVED",
        [MRT_GONE] = "GONE",       [MRT_FAILED] = "FAILED",
        [MRT_UNKNOWN] = "UNKNOWN", [MRT_SESSION_LOST] = "SESSION_LOST"};
    static const char *const losses[] = {"command", "reply", "patience"};
    const struct client *client = &world->clients[action.client];
    const char *what = "";
    if (action.kind == ACTION_APPLY || action.kind == ACTION_LOSE)
        what = commands[client->down[0].type];
    else if (action.kind == ACTION_HEAR)
        what = events[client->up[0].type];
    fprintf(file, "    client %d, thread %d: %s %s", action.client, action.thread,
            names[action.kind], what);
    if (action.kind == ACTION_LOSE)
        fprintf(file, ", the %s", losses[action.variant]);
    else if (action.kind == ACTION_ACQUIRE || action.kind == ACTION_AGAIN)
        fprintf(file, "of weight %llu%s",
                (unsigned long long)world_weight(world, action.variant & 1),
                action.variant & 2 ? ", a try" : "");
    fprintf(file, "\n");
}
