/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of an engine that name a time.
 *
 * Each of them begins with the lease: what the clock has ended by now is lost before anything is
 * done with it.
 *
 * Invariant: no call is made while another, an event or a tick is under way.
 * Threads: as core/engine.h.
 */
#include "base/assert.h"
#include "core/acquire.h"
#include "core/agenda.h"
#include "core/detach.h"
#include "core/engine.h"
#include "core/engine_internal.h"
#include "core/exclusive.h"
#include "core/hold.h"
#include "core/policy.h"
#include "core/request.h"
#include "core/session_answer.h"
#include "core/shared.h"
#include "core/ticket.h"
#include "core/verify.h"
#include "core/waiter.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- queues */

static void set_recipe(struct mrt_queue *queue, const struct mrt_recipe *recipe)
{
    MRT_ASSERT(queue->references == 0 && recipe->capacity > 0);
    queue->recipe = *recipe;
    queue->policy = recipe->shared ? &mrt_shared_policy : &mrt_exclusive_policy;
}

static struct mrt_queue *make(struct mrt_engine *engine, const char *name,
                              const struct mrt_recipe *recipe)
{
    size_t length = strlen(name);
    struct mrt_queue *queue = calloc(1, sizeof *queue + length + 1);
    if (!queue)
        return NULL;
    memcpy(queue->name, name, length + 1);
    queue->engine = engine;
    set_recipe(queue, recipe);
    TAILQ_INIT(&queue->tickets);
    TAILQ_INIT(&queue->waiters);
    TAILQ_INIT(&queue->holds);
    HASH_ADD_KEYPTR(hh, engine->queues_by_name, queue->name, length, queue);
    if (!queue->hh.tbl) {
        free(queue);
        return NULL;
    }
    TAILQ_INSERT_TAIL(&engine->unused, queue, link);
    return queue;
}

int mrt_engine_queue(struct mrt_engine *engine, const char *name, const struct mrt_recipe *recipe,
                     struct mrt_queue **result)
{
    struct mrt_queue *queue;
    HASH_FIND(hh, engine->queues_by_name, name, strlen(name), queue);
    if (!queue)
        queue = make(engine, name, recipe);
    if (!queue)
        return MORTISE_ENOMEM;
    if (strcmp(queue->recipe.kind, recipe->kind) != 0 ||
        queue->recipe.capacity != recipe->capacity) {
        *result = queue;
        if (queue->references > 0)
            return MORTISE_EMISMATCH;
        set_recipe(queue, recipe);
        queue->linger = queue->delay = 0;
    }
    MRT_ASSERT(queue->recipe.shared == recipe->shared);
    mrt_queue_reference(queue);
    *result = queue;
    return MORTISE_OK;
}

void mrt_queue_linger(struct mrt_queue *queue, mrt_time longest)
{
    MRT_ASSERT(!queue->recipe.shared);
    if (longest > queue->linger)
        queue->linger = longest;
}

const struct mrt_recipe *mrt_queue_recipe(const struct mrt_queue *queue)
{
    return &queue->recipe;
}

const char *mrt_queue_name(const struct mrt_queue *queue)
{
    return queue->name;
}

void mrt_queue_delay(struct mrt_queue *queue, mrt_time delay, mrt_time now)
{
    MRT_ASSERT(queue->references > 0);
    if (delay <= queue->delay)
        return;
    queue->delay = delay;
    mrt_queue_serve(queue, now); /* a ticket without that delay stops lingering */
}

/* -------------------------------------------------------------- acquires */

void mrt_engine_acquire(struct mrt_engine *engine, struct mrt_queue *queue,
                        struct mrt_waiter *waiter, mrt_time now)
{
    mrt_waiter_begin(waiter, engine, queue, now);
    mrt_session_check(engine, now);
    mrt_waiter_acquire(waiter, now);
    MRT_ASSERT(waiter->hold || waiter->error != MORTISE_OK);
}

void mrt_engine_adopt(struct mrt_engine *engine, struct mrt_queue *queue, struct mrt_waiter *waiter,
                      mrt_time now)
{
    mrt_waiter_begin(waiter, engine, queue, now);
    mrt_session_check(engine, now);
    mrt_adopt_begin(waiter, now);
    MRT_ASSERT(waiter->hold || waiter->error != MORTISE_OK);
}

void mrt_engine_retry(struct mrt_engine *engine, struct mrt_waiter *waiter, mrt_time now)
{
    if (waiter->state != MRT_WAITER_WOKEN)
        return;
    waiter->state = MRT_WAITER_WAITING;
    mrt_session_check(engine, now);
    mrt_waiter_retry(waiter, now);
    MRT_ASSERT(waiter->hold || waiter->error != MORTISE_OK);
}

void mrt_engine_cancel(struct mrt_engine *engine, struct mrt_waiter *waiter, int error,
                       mrt_time now)
{
    MRT_ASSERT(waiter->engine == engine);
    mrt_waiter_cancel(waiter, error, now);
}

/* ----------------------------------------------------------------- holds */

/* Before anything is done to a hold: MORTISE_ENOTHELD, MORTISE_ENOTOWNER (`owner` 0: any owner), or
 * 0. A hold that time has ended becomes LOST. */
static int use(struct mrt_engine *engine, struct mrt_hold *hold, uint64_t generation,
               uint64_t owner, mrt_time now)
{
    if (!mrt_hold_live(hold, generation))
        return MORTISE_ENOTHELD;
    if (owner && hold->owner && hold->owner != owner)
        return MORTISE_ENOTOWNER;
    mrt_session_check(engine, now);
    mrt_hold_check(hold, now);
    MRT_ASSERT(mrt_hold_live(hold, generation) && hold->count > 0);
    return MORTISE_OK;
}

int mrt_engine_release(struct mrt_engine *engine, struct mrt_hold *hold, uint64_t generation,
                       uint64_t owner, mrt_time now)
{
    int error = use(engine, hold, generation, owner, now);
    if (error != MORTISE_OK)
        return error;
    bool last = --hold->count == 0;
    if (!hold->ticket) {
        if (last)
            mrt_hold_put(hold);
        return MORTISE_ELOST;
    }
    if (!last)
        return MORTISE_OK;
    struct mrt_queue *queue = hold->queue;
    struct mrt_ticket *ticket = hold->ticket;
    mrt_hold_put(hold);
    queue->policy->released(ticket);
    mrt_queue_serve(queue, now);
    return MORTISE_OK;
}

int mrt_hold_set_value(struct mrt_hold *hold, uint64_t generation, const void *value, size_t size,
                       mrt_time now)
{
    int error = use(hold->engine, hold, generation, 0, now);
    if (error != MORTISE_OK)
        return error;
    return hold->ticket ? mrt_ticket_set_value(hold->ticket, value, size) : MORTISE_ELOST;
}

int mrt_hold_extend(struct mrt_hold *hold, uint64_t generation, mrt_time longest, mrt_time now)
{
    int error = use(hold->engine, hold, generation, 0, now);
    if (error != MORTISE_OK)
        return error;
    if (!hold->ticket)
        return MORTISE_ELOST;
    mrt_hold_limit(hold, longest, now);
    return MORTISE_OK;
}

int mrt_engine_lighten(struct mrt_engine *engine, struct mrt_hold *hold, uint64_t generation,
                       uint64_t owner, uint64_t weight, mrt_time now)
{
    int error = use(engine, hold, generation, owner, now);
    if (error != MORTISE_OK)
        return error;
    if (!hold->ticket)
        return MORTISE_ELOST;
    if (weight == 0 || weight >= hold->weight)
        return MORTISE_EINVALID;
    MRT_ASSERT(hold->weight <= hold->ticket->weight && hold->ticket->holds > 0);
    hold->weight = weight;
    hold->queue->policy->released(hold->ticket);
    return MORTISE_OK;
}

int mrt_engine_detach(struct mrt_engine *engine, struct mrt_hold *hold, uint64_t generation,
                      uint64_t owner, struct mrt_id detached_id, struct mrt_waiter *waiter,
                      mrt_time now)
{
    int error = use(engine, hold, generation, owner, now);
    return error == MORTISE_OK ? mrt_detach_begin(hold, detached_id, waiter, now) : error;
}

void mrt_engine_verify(struct mrt_engine *engine, struct mrt_hold *hold, struct mrt_waiter *waiter,
                       mrt_time now)
{
    MRT_ASSERT(hold->engine == engine && hold->queue);
    mrt_session_check(engine, now);
    mrt_hold_check(hold, now);
    mrt_waiter_begin(waiter, engine, hold->queue, now);
    waiter->after = engine->serial;
    if (!hold->ticket) {
        waiter->state = MRT_WAITER_DONE;
        waiter->error = MORTISE_ELOST;
        return;
    }
    mrt_ticket_verify(hold->ticket, waiter);
    mrt_ticket_look(hold->ticket);
}

/* -------------------------------------------------------------- requests */

void mrt_engine_request(struct mrt_engine *engine, const struct mrt_command *wanted,
                        struct mrt_answer *answer, struct mrt_waiter *waiter, mrt_time now)
{
    MRT_ASSERT(wanted->type >= MRT_OBSERVE);
    mrt_waiter_begin(waiter, engine, NULL, now);
    mrt_session_check(engine, now);
    mrt_request_begin(engine, wanted, answer, waiter);
}
