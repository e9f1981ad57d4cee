/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences of calls, events and times into the engine, whatever the store may answer.
 *
 * The bytes are a program: each step reads an operation and its operands. Answers are
 * given to commands that were fetched, of any type, in any order, or never; fences are
 * what a store would give. One queue is a mutex's; the other is another's, or a semaphore's,
 * or a read/write lock's. After each step the engine's invariants are checked, and at
 * the end it is closed by a store that has come to its senses: it must end, with every
 * waiter told.
 */
#include "fuzz.h"

#include "core/engine_internal.h"
#include "core/recipe.h"

#include <string.h>

#define QUEUES 2
#define WAITERS 6
#define HOLDS 8
#define COMMANDS 64
#define STEPS_MAX 600
#define ENDING_MAX 20000
#define FULL MRT_WRITER /* so much ahead leaves no room in any queue */

struct player {
    struct mrt_waiter waiter;
    bool active; /* not seen as DONE yet */
};

struct known_hold {
    struct mrt_hold *hold;
    uint64_t generation, owner;
};

struct game {
    const uint8_t *data;
    size_t size;
    struct mrt_engine *engine;
    struct mrt_queue *queues[QUEUES];
    struct mrt_recipe recipes[QUEUES];
    struct player players[WAITERS];
    struct known_hold holds[HOLDS];
    struct mrt_command *fetched[COMMANDS];
    size_t fetched_count;
    mrt_time now;
    mrt_time lease, lag;
    struct mrt_id last_ticket;
};

static uint8_t next(struct game *game)
{
    if (game->size == 0)
        return 0;
    game->size--;
    return *game->data++;
}

/* ------------------------------------------------------------------ invariants */

static void check_holds(const struct mrt_queue *queue)
{
    const struct mrt_hold *hold;
    size_t with_ticket = 0;
    TAILQ_FOREACH (hold, &queue->holds, link) {
        require(hold->queue == queue && hold->count > 0);
        with_ticket += hold->ticket != NULL;
        if (hold->ticket)
            require(hold->ticket->state == MRT_TICKET_GRANTED && hold->ticket->queue == queue);
    }
    if (!queue->recipe.shared)
        require(with_ticket == (queue->active ? 1 : 0));
}

/* A mutex's: it stands for all. */
static void check_only_ticket(const struct mrt_queue *queue)
{
    const struct mrt_ticket *ticket = queue->ticket;
    if (queue->active)
        require(ticket && ticket->state == MRT_TICKET_GRANTED && ticket->holds == 1);
    if (ticket)
        require(queue->active || !TAILQ_EMPTY(&queue->waiters)); /* never kept for nobody */
}

/* A ticket of its own for each waiter, and for each who has it, as heavy as that one is. */
static void check_own_tickets(const struct mrt_queue *queue)
{
    const struct mrt_ticket *ticket;
    const struct mrt_waiter *waiter;
    const struct mrt_hold *hold;
    require(!queue->active && !queue->ticket);
    TAILQ_FOREACH (waiter, &queue->waiters, link)
        require(!waiter->ticket || waiter->ticket->waiter == waiter);
    TAILQ_FOREACH (ticket, &queue->tickets, link) {
        uint32_t count = 0;
        uint64_t heaviest = 0;
        TAILQ_FOREACH (hold, &queue->holds, link) {
            if (hold->ticket != ticket)
                continue;
            count++;
            heaviest = hold->weight > heaviest ? hold->weight : heaviest;
            require(hold->fence == ticket->fence);
        }
        require(ticket->holds == count);
        require((count > 0) != (ticket->waiter != NULL)); /* never kept for nobody */
        require(count == 0 || heaviest == ticket->weight);
        require(!ticket->waiter || ticket->waiter->ticket == ticket);
    }
}

static void check_queue(const struct mrt_queue *queue)
{
    const struct mrt_ticket *ticket;
    check_holds(queue);
    if (queue->recipe.shared)
        check_own_tickets(queue);
    else
        check_only_ticket(queue);
    TAILQ_FOREACH (ticket, &queue->tickets, link)
        if (ticket->state == MRT_TICKET_GRANTED)
            require(ticket->used <= ticket->fence_span);
}

static void note_done(struct game *game, struct player *player)
{
    struct mrt_waiter *waiter = &player->waiter;
    player->active = false;
    if (waiter->error != MORTISE_OK || waiter->verifies)
        return;
    require(waiter->hold && waiter->hold->queue); /* it has the lock, or it was just lost */
    struct known_hold *place = &game->holds[waiter->hold->generation % HOLDS];
    *place = (struct known_hold){waiter->hold, waiter->hold->generation, waiter->owner};
}

static void settle(struct game *game)
{
    struct mrt_waiter *waiter;
    while ((waiter = mrt_engine_next_settled(game->engine)))
        require(waiter->state != MRT_WAITER_WAITING || !waiter->settled);
    while (mrt_engine_next_told(game->engine))
        ;
    for (size_t i = 0; i < WAITERS; i++)
        if (game->players[i].active && game->players[i].waiter.state == MRT_WAITER_DONE)
            note_done(game, &game->players[i]);
}

static void check_all(struct game *game)
{
    const struct mrt_queue *queue;
    settle(game);
    TAILQ_FOREACH (queue, &game->engine->queues, link)
        check_queue(queue);
}

/* ------------------------------------------------------------------ operations */

static uint64_t some_weight(struct game *game, const struct mrt_recipe *recipe)
{
    if (!recipe->shared)
        return 1;
    if (recipe->capacity == MRT_WRITER)
        return next(game) & 1 ? MRT_WRITER : MRT_READER;
    return 1 + next(game) % recipe->capacity;
}

static void acquire(struct game *game)
{
    uint8_t what = next(game), how = next(game);
    size_t which = what / WAITERS % QUEUES;
    struct player *player = &game->players[what % WAITERS];
    if (player->active)
        return;
    player->waiter = (struct mrt_waiter){
        .owner = how >> 5,
        .weight = some_weight(game, &game->recipes[which]),
        .deadline = how & 1 ? game->now + (how >> 1 & 3) * 20 * MRT_MILLISECOND : MRT_TIME_NEVER,
        .try_only = how & 8,
        .competes = how & 16,
    };
    player->active = true;
    mrt_engine_acquire(game->engine, game->queues[which], &player->waiter, game->now);
}

static void release(struct game *game)
{
    uint8_t what = next(game);
    struct known_hold *known = &game->holds[what % HOLDS];
    if (!known->hold)
        return;
    bool live = mrt_hold_live(known->hold, known->generation);
    uint64_t owner = what & 64 ? 77 : known->owner;
    int error = mrt_engine_release(game->engine, known->hold, known->generation, owner, game->now);
    require(live || error == MORTISE_ENOTHELD);
    require(!live || error == MORTISE_OK || error == MORTISE_ELOST || error == MORTISE_ENOTOWNER);
}

static void lighten(struct game *game)
{
    uint8_t what = next(game);
    const struct known_hold *known = &game->holds[what % HOLDS];
    if (!known->hold)
        return;
    bool live = mrt_hold_live(known->hold, known->generation);
    uint64_t weight = what / HOLDS % 4;
    bool lighter = live && weight > 0 && weight < known->hold->weight;
    int error = mrt_engine_lighten(game->engine, known->hold, known->generation, known->owner,
                                   weight, game->now);
    require(live || error == MORTISE_ENOTHELD);
    require(!live || error == (lighter ? MORTISE_OK : MORTISE_EINVALID) || error == MORTISE_ELOST);
}

static void verify(struct game *game)
{
    uint8_t what = next(game);
    struct known_hold *known = &game->holds[what % HOLDS];
    struct player *player = &game->players[what / HOLDS % WAITERS];
    if (player->active || !known->hold || !mrt_hold_live(known->hold, known->generation))
        return;
    player->waiter = (struct mrt_waiter){.deadline = game->now + MRT_SECOND};
    player->active = true;
    mrt_engine_verify(game->engine, known->hold, &player->waiter, game->now);
    if (player->waiter.state == MRT_WAITER_DONE)
        player->active = false; /* it has no hold of its own */
}

static void fetch(struct game *game)
{
    if (game->fetched_count == COMMANDS)
        return;
    struct mrt_command *command = mrt_engine_next_command(game->engine, game->now);
    if (!command)
        return;
    if (command->type == MRT_APPEND)
        game->last_ticket = command->ticket;
    game->fetched[game->fetched_count++] = command;
}

static struct mrt_command *take(struct game *game, uint8_t what)
{
    size_t place = what % game->fetched_count;
    struct mrt_command *command = game->fetched[place];
    game->fetched[place] = game->fetched[--game->fetched_count];
    return command;
}

/* A ticket's fences are its own and stay what they are. */
static uint64_t span_of(struct mrt_id ticket)
{
    return 1 + ticket.low % 4;
}

/* The answer that a store in order gives, or one that is not the command's own. */
static struct mrt_event answer_to(const struct game *game, const struct mrt_command *command,
                                  uint8_t how)
{
    static const enum mrt_event_type proper[] = {
        [MRT_START] = MRT_STARTED, [MRT_STOP] = MRT_STOPPED, [MRT_RENEW] = MRT_RENEWED,
        [MRT_APPEND] = MRT_VIEW,   [MRT_REFRESH] = MRT_VIEW, [MRT_LIGHTEN] = MRT_VIEW,
        [MRT_REMOVE] = MRT_REMOVED};
    static const int errors[] = {MORTISE_EUNREACHABLE, MORTISE_EPERMISSION, MORTISE_ELOST,
                                 MORTISE_EMISMATCH};
    static const enum mrt_event_type others[] = {MRT_FAILED, MRT_UNKNOWN, MRT_BLOCKED, MRT_GONE};
    struct mrt_event event = {.type = proper[command->type],
                              .serial = command->serial,
                              .session = command->session,
                              .ticket = command->ticket,
                              .fence = command->ticket.low * 100,
                              .fence_span = span_of(command->ticket),
                              .weight_ahead = how & 1 ? FULL : 0,
                              .others_behind = how & 2,
                              .recheck = how & 4 ? MRT_SECOND : 0,
                              .lease = game->lease,
                              .proof_lag = game->lag,
                              .error = errors[how >> 4 & 3]};
    if (how & 8)
        event.type = others[how >> 4 & 3];
    if ((how & 15) == 15)
        event.type = (enum mrt_event_type)((how >> 4) % (MRT_UNKNOWN + 1));
    return event;
}

static void answer(struct game *game)
{
    uint8_t what = next(game), how = next(game);
    if (game->fetched_count == 0)
        return;
    struct mrt_event event = answer_to(game, take(game, what), how);
    mrt_engine_event(game->engine, &event, game->now);
}

static void unsubmit(struct game *game)
{
    uint8_t what = next(game);
    if (game->fetched_count > 0)
        mrt_engine_unsubmit(game->engine, take(game, what), game->now);
}

static void tell(struct game *game)
{
    static const enum mrt_event_type types[] = {MRT_WAKE, MRT_GONE, MRT_VIEW, MRT_SESSION_LOST};
    uint8_t how = next(game);
    struct mrt_event event = {.type = types[how & 3],
                              .session = game->engine->session.id,
                              .ticket = game->last_ticket,
                              .weight_ahead = how & 4 ? FULL : 0,
                              .others_behind = how & 8,
                              .error = MORTISE_ELOST};
    if (how & 16)
        event.ticket = (struct mrt_id){0, 0};
    if (how & 32)
        event.session.low++;
    const struct mrt_ticket *first = TAILQ_FIRST(&game->queues[how >> 7]->tickets);
    if (how & 64 && first)
        event.ticket = first->id;
    event.fence = event.ticket.low * 100;
    event.fence_span = span_of(event.ticket);
    mrt_engine_event(game->engine, &event, game->now);
}

static void on_waiter(struct game *game, bool cancel)
{
    struct player *player = &game->players[next(game) % WAITERS];
    if (!player->active)
        return;
    if (cancel)
        mrt_engine_cancel(game->engine, &player->waiter, MORTISE_ECANCELLED, game->now);
    else if (!player->waiter.verifies)
        mrt_engine_retry(game->engine, &player->waiter, game->now);
}

static void take_queue(struct game *game, size_t which)
{
    static const char *const names[QUEUES] = {"a", "b"};
    require(mrt_engine_queue(game->engine, names[which], &game->recipes[which],
                             &game->queues[which]) == MORTISE_OK);
}

/* A handle is given back and taken again. */
static void retake_queue(struct game *game)
{
    size_t which = next(game) % QUEUES;
    mrt_queue_put(game->queues[which]);
    take_queue(game, which);
}

static void on_hold(struct game *game)
{
    switch (next(game) % 4) {
    case 0:
        retake_queue(game);
        break;
    case 1:
        lighten(game);
        break;
    default:
        verify(game);
    }
}

static void pass(struct game *game)
{
    uint8_t how = next(game);
    game->now += (mrt_time)(how & 127) * (how & 128 ? 20 * MRT_MILLISECOND : 100000);
    mrt_engine_tick(game->engine, game->now);
}

static void step(struct game *game)
{
    switch (next(game) % 12) {
    case 0:
    case 1:
        acquire(game);
        break;
    case 2:
        release(game);
        break;
    case 3:
    case 4:
        fetch(game);
        break;
    case 5:
    case 6:
        answer(game);
        break;
    case 7:
        unsubmit(game);
        break;
    case 8:
        tell(game);
        break;
    case 9:
        on_waiter(game, next(game) & 1);
        break;
    case 10:
        on_hold(game);
        break;
    default:
        pass(game);
    }
}

/* ------------------------------------------------------------------- the frame */

static void open_game(struct game *game, const uint8_t *data, size_t size)
{
    memset(game, 0, sizeof *game);
    game->data = data;
    game->size = size;
    game->now = MRT_SECOND;
    uint8_t how = next(game);
    const struct mrt_engine_config config = {.seed = {1, 1},
                                             .strict = how & 1,
                                             .fair_after = MRT_MILLISECOND,
                                             .budget = how & 2 ? 0 : 2 * MRT_MILLISECOND,
                                             .budget_count = 1 + (how >> 4 & 3),
                                             .margin_min = 10 * MRT_MILLISECOND};
    game->lease = how & 4 ? MRT_SECOND : 0;
    game->lag = how & 8 ? 200 * MRT_MILLISECOND : 0;
    require(mrt_engine_new(&config, &game->engine) == MORTISE_OK);
    game->recipes[0] = mrt_mutex;
    game->recipes[1] = how < 64 ? mrt_mutex : how < 128 ? mrt_semaphore(3) : mrt_read_write;
    for (size_t i = 0; i < QUEUES; i++)
        take_queue(game, i);
}

static void end_game(struct game *game)
{
    mrt_engine_close(game->engine, game->now);
    for (int i = 0; i < ENDING_MAX && !mrt_engine_closed(game->engine); i++) {
        if (game->fetched_count < COMMANDS)
            fetch(game);
        if (game->fetched_count > 0) {
            struct mrt_event event = answer_to(game, take(game, 0), 0);
            mrt_engine_event(game->engine, &event, game->now);
        } else {
            game->now += 100 * MRT_MILLISECOND;
            mrt_engine_tick(game->engine, game->now);
        }
        check_all(game);
    }
    require(mrt_engine_closed(game->engine));
    settle(game);
    for (size_t i = 0; i < WAITERS; i++)
        require(!game->players[i].active);
    mrt_engine_free(game->engine);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct game game;
    open_game(&game, data, size);
    for (int i = 0; i < STEPS_MAX && game.size > 0; i++) {
        step(&game);
        check_all(&game);
    }
    end_game(&game);
    return 0;
}
