/*
 * The local tier: who of this process has the lock next.
 *
 * Threads of a client compete here, and only one ticket stands for all of them in
 * the store. The tier holds the store's ticket as long as its turn lasts and
 * hands the lock on without a request.
 *
 * Order. Waiters stand in the order they came. Strict: the head is handed the
 * lock, always. Otherwise it is eventually fair: a release leaves the lock free and
 * wakes the head, a running thread may take it first, and the head is handed it
 * directly once it has waited `fair_after`. At most one waiter is WOKEN at a
 * time; it stays the head until it gets the lock or gives up.
 *
 * Turn. A ticket's turn lasts while budget and budget_count last; beyond them only
 * as long as nobody is known to wait behind it. That is learnt when the ticket is
 * granted, and by a REFRESH each time the budget is spent, while the threads go on. A request to
 * give the ticket up ends its turn with the hold under way. When it is over
 * the ticket is removed and the next one goes to the back.
 *
 * Linger. If the program asks for it, a ticket that nobody here wants any more is kept for a
 * while, and acquired again without a request, until somebody else queues: the store reports that
 * immediately, so no budget has to be checked. The store reports newcomers only to a ticket whose
 * APPEND asked for that. A ticket queued earlier has ordinary turns.
 *
 * Delay. A ticket is granted to those who want a delay after a crash only if it was queued with
 * one: one that was not has no more turns, once somebody here asks for it.
 *
 * Invariant: a free, granted ticket has a waiter that was woken for it, or lingers, or is
 * being removed: a lock is never kept for nobody.
 */
#include "base/assert.h"
#include "core/engine_internal.h"

#include <stdlib.h>
#include <string.h>

void mrt_queue_reference(struct mrt_queue *queue)
{
    if (queue->references++ > 0)
        return;
    struct mrt_engine *engine = queue->engine;
    TAILQ_REMOVE(&engine->unused, queue, link);
    TAILQ_INSERT_TAIL(&engine->queues, queue, link);
}

void mrt_queue_put(struct mrt_queue *queue)
{
    MRT_ASSERT(queue->references > 0);
    if (--queue->references > 0)
        return;
    struct mrt_engine *engine = queue->engine;
    TAILQ_REMOVE(&engine->queues, queue, link);
    TAILQ_INSERT_TAIL(&engine->unused, queue, link);
}

void mrt_queue_free(struct mrt_queue *queue)
{
    MRT_ASSERT(queue->references == 0 && TAILQ_EMPTY(&queue->tickets));
    struct mrt_engine *engine = queue->engine;
    TAILQ_REMOVE(&engine->unused, queue, link);
    HASH_DEL(engine->queues_by_name, queue);
    free(queue);
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
    queue->recipe = *recipe;
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
        queue->recipe = *recipe;
        queue->linger = queue->delay = 0;
    }
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

void mrt_queue_delay(struct mrt_queue *queue, mrt_time delay, mrt_time now)
{
    if (delay <= queue->delay)
        return;
    queue->delay = delay;
    mrt_queue_serve(queue, now); /* a ticket without it lingers no more */
}

const struct mrt_recipe *mrt_queue_recipe(const struct mrt_queue *queue)
{
    return &queue->recipe;
}

const char *mrt_queue_name(const struct mrt_queue *queue)
{
    return queue->name;
}

/* ---------------------------------------------------------------- waiters */

void mrt_waiter_begin(struct mrt_waiter *waiter, struct mrt_engine *engine, struct mrt_queue *queue,
                      mrt_time now)
{
    waiter->state = MRT_WAITER_WAITING;
    waiter->error = MORTISE_OK;
    waiter->hold = NULL;
    waiter->engine = engine;
    waiter->queue = queue;
    waiter->since = now;
    waiter->weight = waiter->weight ? waiter->weight : 1;
}

void mrt_queue_enter(struct mrt_queue *queue, struct mrt_waiter *waiter, bool first)
{
    if (first)
        TAILQ_INSERT_HEAD(&queue->waiters, waiter, link);
    else
        TAILQ_INSERT_TAIL(&queue->waiters, waiter, link);
    mrt_queue_reference(queue);
    waiter->timer.kind = MRT_TIMER_WAITER;
    if (waiter->deadline != MRT_TIME_NEVER)
        mrt_heap_set(&queue->engine->timers, &waiter->timer, waiter->deadline);
}

void mrt_queue_unlink_waiter(struct mrt_waiter *waiter)
{
    struct mrt_queue *queue = waiter->queue;
    TAILQ_REMOVE(&queue->waiters, waiter, link);
    mrt_heap_clear(&queue->engine->timers, &waiter->timer);
    mrt_queue_put(queue);
}

void mrt_queue_attach_waiter(struct mrt_ticket *ticket, struct mrt_waiter *waiter)
{
    ticket->waiter = waiter;
    waiter->ticket = ticket;
}

struct mrt_waiter *mrt_queue_detach_waiter(struct mrt_ticket *ticket)
{
    struct mrt_waiter *waiter = ticket->waiter;
    if (waiter)
        waiter->ticket = NULL;
    ticket->waiter = NULL;
    return waiter;
}

void mrt_queue_fail(struct mrt_waiter *waiter, int error)
{
    struct mrt_ticket *ticket = waiter->ticket;
    mrt_queue_unlink_waiter(waiter);
    mrt_hold_put(waiter->hold);
    waiter->hold = NULL;
    if (ticket) {
        mrt_queue_detach_waiter(ticket);
        mrt_ticket_remove(ticket);
    }
    mrt_waiter_end(waiter, error);
}

void mrt_queue_fail_all(struct mrt_queue *queue, int error)
{
    struct mrt_waiter *waiter;
    while ((waiter = TAILQ_FIRST(&queue->waiters)))
        mrt_queue_fail(waiter, error);
}

void mrt_queue_refused(struct mrt_ticket *ticket, int error, bool outcome_unknown)
{
    struct mrt_queue *queue = ticket->queue;
    struct mrt_waiter *own = mrt_queue_detach_waiter(ticket);
    bool was_try = ticket->try_only;
    struct mrt_waiter *head = TAILQ_FIRST(&queue->waiters);
    MRT_ASSERT(head); /* a ticket nobody waits for is removed at once */
    if (outcome_unknown)
        mrt_ticket_remove(ticket);
    else
        mrt_ticket_drop(ticket);
    if (own)
        mrt_queue_fail(own, error);
    else if (head->try_only == was_try) /* else the one it was asked for has given up */
        mrt_queue_fail(head, error);
}

void mrt_queue_blocked(struct mrt_ticket *ticket)
{
    struct mrt_waiter *waiter = mrt_queue_detach_waiter(ticket), *next;
    if (waiter) {
        mrt_queue_fail(waiter, MORTISE_EBUSY);
        return;
    }
    TAILQ_FOREACH_SAFE (waiter, &ticket->queue->waiters, link, next)
        if (waiter->try_only)
            mrt_queue_fail(waiter, MORTISE_EBUSY);
}

bool mrt_queue_wants_place(const struct mrt_ticket *ticket)
{
    const struct mrt_waiter *waiter;
    if (ticket->queue->recipe.shared)
        return ticket->waiter && ticket->waiter->wants_place;
    TAILQ_FOREACH (waiter, &ticket->queue->waiters, link)
        if (waiter->wants_place)
            return true;
    return false;
}

void mrt_queue_placed(struct mrt_ticket *ticket, uint64_t place)
{
    struct mrt_waiter *waiter;
    if (ticket->waiter)
        mrt_waiter_place(ticket->waiter, place);
    else
        TAILQ_FOREACH (waiter, &ticket->queue->waiters, link)
            mrt_waiter_place(waiter, place);
}

static void lose_holds(struct mrt_ticket *ticket)
{
    struct mrt_hold *hold;
    TAILQ_FOREACH (hold, &ticket->queue->holds, link)
        if (hold->ticket == ticket)
            mrt_hold_lose(hold);
}

void mrt_queue_ticket_gone(struct mrt_ticket *ticket)
{
    lose_holds(ticket);
    mrt_queue_detach_waiter(ticket);
    mrt_ticket_drop(ticket);
}

void mrt_queue_ticket_overtaken(struct mrt_ticket *ticket)
{
    lose_holds(ticket);
    mrt_ticket_end_verifiers(ticket, MORTISE_ELOST);
    mrt_ticket_remove(ticket);
}

/* ------------------------------------------------------------------ turns */

void mrt_queue_granted(struct mrt_queue *queue, mrt_time now)
{
    queue->turn_began = now;
    queue->turn_count = 0;
    mrt_queue_serve(queue, now);
}

/* Whether the ticket may be used once more. */
static bool turn_lasts(struct mrt_queue *queue, mrt_time now)
{
    const struct mrt_engine_config *config = &queue->engine->config;
    struct mrt_ticket *ticket = queue->ticket;
    if (ticket->delay < queue->delay)
        return false;
    if (ticket->fresh)
        return true;
    if (config->budget == 0 || ticket->revoked > 0 || ticket->used >= ticket->fence_span)
        return false;
    bool spent = now - queue->turn_began >= config->budget;
    if (!spent && queue->turn_count < config->budget_count)
        return true;
    if (ticket->others_behind)
        return false;
    if (spent && !ticket->checking_others && !ticket->may_linger) {
        ticket->checking_others = true;
        mrt_ticket_look(ticket);
    }
    return true;
}

/* Whether the lock is here, free, and may be taken now. */
static bool may_take(struct mrt_queue *queue, mrt_time now)
{
    struct mrt_ticket *ticket = queue->ticket;
    return ticket && ticket->state == MRT_TICKET_GRANTED && !queue->active &&
           now < queue->engine->session.valid_until && turn_lasts(queue, now);
}

static void grant(struct mrt_queue *queue, struct mrt_waiter *waiter, mrt_time now)
{
    struct mrt_engine *engine = queue->engine;
    MRT_ASSERT(queue->ticket);
    engine->counters.acquisitions++;
    if (!queue->ticket->fresh)
        engine->counters.handovers++;
    queue->turn_count++;
    mrt_queue_detach_waiter(queue->ticket);
    mrt_hold_begin(waiter, queue->ticket, now);
    /* A try, which can only be the first, waits for the store and for nobody here. */
    struct mrt_waiter *next = TAILQ_FIRST(&queue->waiters);
    if (next && next->try_only)
        mrt_queue_fail(next, MORTISE_EBUSY);
}

static bool must_be_handed(const struct mrt_engine *engine, const struct mrt_waiter *head,
                           mrt_time now)
{
    if (engine->config.strict || !head->competes)
        return true;
    return now - head->since >= engine->config.fair_after;
}

/* The lock is free and here, and someone waits: hand it over, or wake the head. */
static void pass_on(struct mrt_queue *queue, struct mrt_waiter *head, mrt_time now)
{
    if (must_be_handed(queue->engine, head, now)) {
        mrt_queue_unlink_waiter(head);
        grant(queue, head, now);
        mrt_waiter_end(head, MORTISE_OK);
    } else if (head->state == MRT_WAITER_WAITING) {
        head->state = MRT_WAITER_WOKEN;
        mrt_engine_settle(queue->engine, head);
    }
}

static void ask_for_ticket(struct mrt_queue *queue)
{
    struct mrt_engine *engine = queue->engine;
    if (engine->session.state != MRT_SESSION_LIVE) {
        mrt_session_need(engine);
        return;
    }
    if (queue->removals_pending > 0)
        return; /* it would queue up behind our own last ticket */
    struct mrt_waiter *head;
    while ((head = TAILQ_FIRST(&queue->waiters))) {
        queue->ticket = mrt_ticket_append(queue, head);
        if (queue->ticket && queue->ticket->adopts)
            mrt_queue_attach_waiter(queue->ticket, head);
        if (queue->ticket)
            return;
        mrt_queue_fail(head, MORTISE_ENOMEM);
    }
}

/* Nobody here has or wants the ticket: whether it is kept all the same. */
static bool lingers(struct mrt_queue *queue, mrt_time now)
{
    struct mrt_ticket *ticket = queue->ticket;
    bool over = ticket->others_behind || ticket->revoked > 0 ||
                ticket->used >= ticket->fence_span || ticket->delay < queue->delay;
    if (!ticket->may_linger || queue->engine->config.budget == 0 ||
        ticket->state != MRT_TICKET_GRANTED || ticket->fresh || over ||
        (ticket->lingers > 0 && now >= ticket->lingers))
        return false;
    if (ticket->lingers == 0)
        mrt_ticket_linger(ticket, mrt_time_add(now, queue->linger));
    return true;
}

/* Brings the queue to where it should be; called after every change. */
void mrt_queue_serve(struct mrt_queue *queue, mrt_time now)
{
    struct mrt_waiter *head = TAILQ_FIRST(&queue->waiters);
    if (queue->recipe.shared) {
        mrt_shared_serve(queue, now);
        return;
    }
    if (queue->active)
        return;
    if (queue->ticket &&
        (head ? queue->ticket->state == MRT_TICKET_GRANTED && !turn_lasts(queue, now)
              : !lingers(queue, now)))
        mrt_ticket_remove(queue->ticket);
    if (!head)
        return;
    if (!queue->ticket)
        ask_for_ticket(queue);
    else if (may_take(queue, now))
        pass_on(queue, head, now);
}

/* --------------------------------------------------------------- acquires */

/* Acquires again in a hold of the same owner: as much, or less. */
static void nest(struct mrt_engine *engine, struct mrt_waiter *waiter, struct mrt_hold *hold)
{
    bool heavier = waiter->weight > hold->weight;
    waiter->state = MRT_WAITER_DONE;
    if (!hold->ticket) {
        waiter->error = MORTISE_ELOST;
    } else if (!waiter->queue->recipe.reentrant || heavier) {
        waiter->error = MORTISE_EDEADLOCK;
    } else if (waiter->weight == hold->weight) {
        hold->count++;
        waiter->hold = hold;
    } else if ((waiter->hold = mrt_hold_take(engine))) {
        mrt_hold_join(waiter->hold, hold, waiter->weight);
    } else {
        waiter->error = MORTISE_ENOMEM;
    }
    if (waiter->error == MORTISE_OK)
        engine->counters.nested++;
}

struct mrt_hold *mrt_engine_nest(struct mrt_queue *queue, uint64_t owner)
{
    struct mrt_hold *hold = queue->active;
    if (!hold || !owner || hold->owner != owner || !queue->recipe.reentrant ||
        mrt_hold_valid_until(hold) != MRT_TIME_NEVER)
        return NULL;
    hold->count++;
    queue->engine->counters.nested++;
    return hold;
}

/* Whether a newcomer may have the free lock before those who wait. */
static bool may_barge(const struct mrt_queue *queue, mrt_time now)
{
    const struct mrt_waiter *head = TAILQ_FIRST(&queue->waiters);
    MRT_ASSERT(head || queue->ticket->lingers > 0); /* or someone was woken for it */
    return !head || !must_be_handed(queue->engine, head, now);
}

/* Whether the client has tickets_max tickets already, and an acquire here needs another. */
static bool is_full(const struct mrt_engine *engine, const struct mrt_queue *queue)
{
    uint64_t max = engine->config.tickets_max;
    return max > 0 && HASH_COUNT(engine->tickets_by_id) >= max &&
           (queue->recipe.shared || !queue->ticket);
}

void mrt_engine_acquire(struct mrt_engine *engine, struct mrt_queue *queue,
                        struct mrt_waiter *waiter, mrt_time now)
{
    mrt_waiter_begin(waiter, engine, queue, now);
    mrt_session_check(engine, now);
    struct mrt_hold *own = waiter->owner ? mrt_hold_of(queue, waiter->owner, waiter->weight) : NULL;
    if (own)
        mrt_hold_check(own, now);
    if (engine->closing)
        waiter->error = MORTISE_ECLOSED;
    else if (own)
        nest(engine, waiter, own);
    else if (is_full(engine, queue))
        waiter->error = MORTISE_EFULL;
    else if (!(waiter->hold = mrt_hold_take(engine)))
        waiter->error = MORTISE_ENOMEM;
    if (waiter->error != MORTISE_OK || own) {
        waiter->state = MRT_WAITER_DONE;
        return;
    }
    bool free_now = may_take(queue, now) && may_barge(queue, now);
    bool others = queue->ticket || !TAILQ_EMPTY(&queue->waiters);
    if (free_now) {
        grant(queue, waiter, now);
        waiter->state = MRT_WAITER_DONE;
    } else if (waiter->try_only && others && !queue->recipe.shared) {
        mrt_hold_put(waiter->hold);
        waiter->hold = NULL;
        waiter->error = MORTISE_EBUSY;
        waiter->state = MRT_WAITER_DONE;
    } else {
        mrt_queue_enter(queue, waiter, false);
        mrt_queue_serve(queue, now);
    }
}

void mrt_engine_retry(struct mrt_engine *engine, struct mrt_waiter *waiter, mrt_time now)
{
    if (waiter->state != MRT_WAITER_WOKEN)
        return;
    struct mrt_queue *queue = waiter->queue;
    waiter->state = MRT_WAITER_WAITING;
    mrt_session_check(engine, now);
    if (!may_take(queue, now)) {
        mrt_queue_serve(queue, now);
        return;
    }
    mrt_queue_unlink_waiter(waiter);
    mrt_waiter_unplace(waiter); /* its memory is its caller's from now on */
    grant(queue, waiter, now);
    waiter->state = MRT_WAITER_DONE;
}

bool mrt_waiter_asks(const struct mrt_waiter *waiter)
{
    return waiter->verifies || waiter->request || !waiter->queue->active;
}

/* Whether an acquire has come to nothing because the store does not answer: a try waits for
   nothing else. */
static bool is_adrift(const struct mrt_waiter *waiter)
{
    const struct mrt_ticket *ticket = waiter->ticket ? waiter->ticket : waiter->queue->ticket;
    return waiter->try_only || mrt_session_unreachable(waiter->engine) ||
           (ticket && ticket->unreachable);
}

void mrt_engine_cancel(struct mrt_engine *engine, struct mrt_waiter *waiter, int error,
                       mrt_time now)
{
    MRT_ASSERT(waiter->engine == engine);
    if (waiter->state == MRT_WAITER_DONE)
        return;
    if (waiter->request) {
        mrt_request_cancel(waiter, error);
        return;
    }
    if (waiter->verifies) {
        TAILQ_REMOVE(&waiter->verifies->verifiers, waiter, link);
        mrt_waiter_end(waiter, error);
        return;
    }
    struct mrt_queue *queue = waiter->queue;
    if (error == MORTISE_ETIMEOUT && is_adrift(waiter))
        error = MORTISE_EDISCONNECTED;
    mrt_queue_fail(waiter, error);
    mrt_queue_serve(queue, now);
}
