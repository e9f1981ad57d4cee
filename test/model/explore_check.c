/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The invariants of every state, checked from outside: the belief of a client at its own clock is
 * compared with that of the others at the same instant and with the server's data. The grant rule
 * is not asked; sums are made here.
 *
 *  - The holds that are valid weigh no more than the capacity.
 *  - A valid hold has a ticket at the server, and what is ahead of that leaves room for it.
 *    As nobody ahead can then be waiting for it to go, that is also the order: none who queued
 *    earlier is passed over.
 *  - Fences rise: one who is alone is given a higher one than anybody before, and nobody a
 *    lower one than the last who was alone.
 *  - A lost hold stays lost, and is reported.
 *  - A dead holder's part is nobody's for the delay, if it asked for one.
 *  - A ticket that was surely left to nobody stays until a client adopts it, and takes its part.
 */
#include "explore.h"

#include <stdarg.h>

_Noreturn void check_fail(const struct world *world, const char *format, ...)
{
    char text[160], whole[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(whole, sizeof whole, "%s%s", text, world->settling ? " (while it settles)" : "");
    search_fail(whole);
}

static bool is_valid(const struct world *world, const struct client *client, struct grip *grip)
{
    if (!mrt_hold_live(grip->hold, grip->generation))
        check_fail(world, "a hold vanished before its release");
    bool lost = mrt_hold_state(grip->hold, world_now(world, client)) == MORTISE_LOST;
    if (grip->seen_lost && !lost)
        check_fail(world, "a lost hold is held again");
    grip->seen_lost = lost;
    return !lost;
}

struct truth {
    const struct client *client;
    const struct mrt_hold *hold;
    uint64_t ahead;
    bool found, fits;
};

static int find(void *context, const struct mrt_memory_entry *entry)
{
    struct truth *truth = context;
    const struct mrt_hold *hold = truth->hold;
    if (entry->peer == truth->client && hold->fence >= entry->fence &&
        hold->fence - entry->fence < FENCE_SPAN) {
        truth->found = true;
        truth->fits = truth->ahead + hold->weight <= entry->capacity;
        return 1;
    }
    truth->ahead += entry->weight;
    return 0;
}

static void check_truth(const struct world *world, const struct client *client,
                        const struct mrt_hold *hold)
{
    struct truth truth = {.client = client, .hold = hold};
    mrt_memory_server_list(world->server, find, &truth);
    if (!truth.found)
        check_fail(world, "a valid hold without a ticket at the server");
    if (!truth.fits)
        check_fail(world, "a valid hold whose ticket has to wait");
}

/* The weight of a thread's valid holds: two of them have one ticket. */
static uint64_t weigh(struct world *world, const struct client *client, struct thread *thread)
{
    uint64_t heaviest = 0;
    for (int g = 0; g < GRIPS_MAX; g++) {
        struct grip *grip = &thread->grips[g];
        if (grip->hold)
            delay_note(world, client, thread, grip);
        if (!grip->hold || !is_valid(world, client, grip))
            continue;
        check_truth(world, client, grip->hold);
        heaviest = grip->hold->weight > heaviest ? grip->hold->weight : heaviest;
    }
    return heaviest;
}

void check_world(struct world *world)
{
    uint64_t sum = 0;
    for (int c = 0; c < world->instance->clients; c++) {
        struct client *client = &world->clients[c];
        for (int t = 0; client->engine && !client->closing && t < THREADS_MAX; t++)
            sum += weigh(world, client, &client->threads[t]);
    }
    delay_check(world);
    if (sum + left_weight(world) + delay_weight(world) > world->instance->recipe->capacity)
        check_fail(world, "valid holds beyond the capacity");
}

void check_granted(struct world *world, const struct client *client, const struct mrt_hold *hold)
{
    bool alone = hold->weight == world->instance->recipe->capacity;
    if (mrt_hold_state(hold, world_now(world, client)) == MORTISE_LOST)
        return; /* it is lost already, and was not seen by anybody */
    if (hold->fence <= (alone ? world->last_fence : world->last_alone))
        check_fail(world, "the fence does not rise");
    if (hold->fence > world->last_fence)
        world->last_fence = hold->fence;
    if (alone)
        world->last_alone = hold->fence;
}

void check_ticked(const struct world *world, const struct client *client)
{
    for (int t = 0; t < THREADS_MAX; t++)
        for (int g = 0; g < GRIPS_MAX; g++) {
            const struct grip *grip = &client->threads[t].grips[g];
            if (grip->hold && !grip->told_lost &&
                mrt_hold_state(grip->hold, world_now(world, client)) == MORTISE_LOST)
                check_fail(world, "a loss is not told");
        }
}
