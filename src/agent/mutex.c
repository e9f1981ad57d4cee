/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutexes of client sessions, which are handed on inside the agent: see desk.h.
 *
 * A ticket that asks for a plain mutex is no ticket of the store. It is a waiter, then a hold, of
 * the agent's own engine, in the queue in which the LOCKs of that name wait too; one ticket of the
 * agent at the store stands for all of them, as one of a client does for its threads
 * (core/exclusive.c). So it is handed on in the order in which clients came, without a request to
 * the store, for as long as the agent's turn lasts there. A client gets a share of that ticket's
 * fences, so that its threads can hand on too.
 *
 * While it waits it has the fence that it will have, if that is known: until the turn of the
 * agent's ticket ends. It also has a number, which is larger than every fence and is used once; by
 * that operators recognise it until it has gone (mutex_list.c).
 *
 * Everything else has a ticket of its own at the store: what is claimed, adopted, lingers, or has a
 * delay, a value or a limit of the queue; the tickets of a user who has limits; and a name that the
 * agent uses as another kind.
 *
 *   APPEND -> an acquire -> VIEW that it waits -> a hold, VIEW that grants -> REMOVE -> REMOVED
 *
 * Answers say what is true at the store: an APPEND is answered once the agent's ticket stands in
 * the store's queue, or was refused there; a REMOVE, once that ticket has left, or serves another;
 * a REFRESH of what is held, by a look at the store.
 *
 * Invariants:
 *  - A grant of one store session is told to a client of the same session, or to none: nothing is
 *    taken from the engine while its session is another than that of the desk, which
 *    ends its clients' sessions then, and all of these.
 *  - A hold is released where the desk removes a ticket, for the same reasons, and nowhere else.
 *  - One command of a ticket is under way at a time: `asked`. Those behind it wait: `later`.
 *
 * Here is what becomes of a mutex in the engine, and what its client is told; mutex_take.c has the
 * commands. Threads: the agent's.
 */
#include "agent/mutex.h"
#include "agent/peer.h"

#include "base/assert.h"
#include "base/error.h"
#include "core/lend.h"
#include "store/agent/frame.h"
#include "store/kit/refusal.h"

#include <stdlib.h>
#include <string.h>

#define RECHECK MRT_SECOND /* of a client that waits: its place may have changed */

bool mrt_desk_is_mutex(const struct mrt_frame_command *frame)
{
    return frame->command.type == MRT_APPEND && frame->command.capacity == mrt_mutex.capacity &&
           frame->kind.size == strlen(mrt_mutex.kind) &&
           memcmp(frame->kind.text, mrt_mutex.kind, frame->kind.size) == 0;
}

void mrt_desk_mutex_wait(struct mrt_desk_mutex *mutex, bool is_pending)
{
    struct mrt_desk_mutexes *all = &mutex->agent->desk.pending;
    if (is_pending && !mutex->is_pending)
        TAILQ_INSERT_TAIL(all, mutex, link);
    else if (!is_pending && mutex->is_pending)
        TAILQ_REMOVE(all, mutex, link);
    mutex->is_pending = is_pending;
}

/* ---------------------------------------------------------------------- answers */

static void note_told(struct mrt_desk_mutex *mutex, const struct mrt_event *event)
{
    if (event->type == MRT_VIEW)
        mutex->knows_others = event->others_behind;
}

void mrt_desk_mutex_answer(struct mrt_desk_mutex *mutex, struct mrt_event event)
{
    struct mrt_desk_session *session = mutex->ticket->session;
    event.serial = mutex->asked.serial;
    event.ticket = mutex->ticket->id;
    mutex->asked.serial = 0;
    note_told(mutex, &event);
    if (session)
        mrt_desk_answer(session, &event);
}

static void send_event(struct mrt_desk_mutex *mutex, struct mrt_event event)
{
    const struct mrt_desk_ticket *ticket = mutex->ticket;
    event.ticket = ticket->id;
    note_told(mutex, &event);
    if (ticket->session && ticket->session->state == MRT_DESK_LIVE)
        mrt_desk_answer(ticket->session, &event);
}

struct mrt_event mrt_desk_mutex_view(struct mrt_desk_mutex *mutex)
{
    const struct mrt_hold *hold = mutex->hold;
    struct mrt_event event = {.type = MRT_VIEW, .in_order = true, .fence_span = 1};
    if (hold) {
        event.fence = hold->fence;
        event.fence_span = hold->fence_span;
        if (hold->ticket)
            mrt_hold_ticket(hold, &event.number);
        event.others_behind = mrt_hold_has_others(hold);
        event.revoked = mrt_hold_revoked(hold) + mutex->revokes;
        return event;
    }
    uint64_t reserved = mrt_waiter_reserve(&mutex->call.waiter);
    event.fence = reserved > 0 ? reserved : mutex->number;
    event.weight_ahead = mrt_mutex.capacity;
    event.recheck = mrt_desk_recheck(&mutex->agent->desk, mutex->ticket->queue, RECHECK);
    if (mutex->wants_place) /* the waiter's: of the agent's ticket, while that waits */
        event.place = mrt_waiter_ahead(&mutex->call.waiter) + mutex->call.waiter.place;
    return event;
}

/* ------------------------------------------------------------------------ ends */

/* Takes it out of the engine. The ticket of the agent may go with it. */
static void leave_engine(struct mrt_desk_mutex *mutex)
{
    struct mrt_driver *driver = &mutex->agent->driver;
    mrt_time now = mrt_time_now();
    struct mrt_id left = mrt_queue_any_ticket(mutex->queue);
    if (mutex->calls) {
        mrt_engine_cancel(driver->engine, &mutex->call.waiter, MORTISE_ECANCELLED, now);
        mrt_driver_settle(driver);
        if (!mutex->hold && mutex->call.waiter.hold) {
            mutex->hold = mutex->call.waiter.hold;
            mutex->generation = mutex->hold->generation;
        }
    }
    mutex->calls = false;
    mrt_driver_unpost(driver, &mutex->upcall);
    if (mutex->hold)
        mrt_engine_release(driver->engine, mutex->hold, mutex->generation, 0, now);
    mutex->hold = NULL;
    mutex->agent->has_dropped = true;
    if (mrt_id_none(mutex->left))
        mutex->left = left;
}

bool mrt_desk_mutex_next(struct mrt_desk_mutex *mutex)
{
    struct mrt_desk_later *next = STAILQ_FIRST(&mutex->later);
    if (!next)
        return false;
    STAILQ_REMOVE_HEAD(&mutex->later, link);
    MRT_ASSERT(mutex->asked.serial == 0);
    mutex->asked = next->command;
    free(next);
    return true;
}

/* Answers all that is asked of it as of a ticket that is not there any more. */
static void answer_ended(struct mrt_desk_mutex *mutex)
{
    while (mutex->asked.serial > 0 || mrt_desk_mutex_next(mutex))
        mrt_desk_mutex_answer(mutex, mrt_answer_ended(&mutex->asked));
}

void mrt_desk_mutex_free(struct mrt_desk_mutex *mutex)
{
    if (!mutex)
        return;
    leave_engine(mutex);
    answer_ended(mutex);
    mrt_desk_mutex_wait(mutex, false);
    mrt_queue_put(mutex->queue);
    free(mutex);
}

void mrt_desk_mutex_finish(struct mrt_desk_mutex *mutex)
{
    struct mrt_agent *agent = mutex->agent;
    mrt_desk_mutex_wait(mutex, true);
    if (mrt_engine_is_leaving(agent->driver.engine, mutex->left))
        return;
    if (mutex->asked.serial > 0)
        mrt_desk_mutex_answer(mutex, (struct mrt_event){.type = MRT_REMOVED});
    mrt_desk_ticket_free(agent, mutex->ticket);
}

void mrt_desk_mutex_leave(struct mrt_desk_mutex *mutex)
{
    mutex->ticket->is_leaving = true;
    leave_engine(mutex);
    mrt_desk_mutex_finish(mutex);
}

void mrt_desk_mutex_recall(struct mrt_desk_mutex *mutex, bool answers)
{
    if (answers)
        answer_ended(mutex);
    do
        mutex->asked.serial = 0;
    while (mrt_desk_mutex_next(mutex));
}

void mrt_desk_mutex_end(struct mrt_desk_mutex *mutex, enum mrt_event_type type, int error)
{
    const char *detail = mortise_error_detail();
    mrt_desk_mutex_answer(
        mutex, (struct mrt_event){.type = type,
                                  .error = error,
                                  .detail = error != MORTISE_OK && *detail ? detail : NULL});
    mrt_desk_ticket_free(mutex->agent, mutex->ticket);
}

/* ------------------------------------------------------------------------- news */

/* Whether the engine is in the session in which the desk's clients are. */
static bool is_bound(const struct mrt_agent *agent)
{
    struct mrt_engine_life life;
    return agent->desk.lives && mrt_engine_lives(agent->driver.engine, mrt_time_now(), &life) &&
           mrt_id_equal(life.session, agent->desk.life.session);
}

static bool is_lost(const struct mrt_desk_mutex *mutex)
{
    return mrt_hold_valid_until(mutex->hold) == 0;
}

static void revoked(void *argument, mortise_hold hold)
{
    struct mrt_desk_mutex *mutex = argument;
    (void)hold;
    send_event(mutex,
               (struct mrt_event){.type = MRT_REVOKED,
                                  .revoked = mrt_hold_revoked(mutex->hold) + mutex->revokes});
}

/* Its acquire has failed, or its hold was lost, before the client was told of it. */
static void fail(struct mrt_desk_mutex *mutex)
{
    mutex->has_failed = true;
    send_event(mutex, (struct mrt_event){.type = MRT_WAKE});
}

static void acquired(struct mrt_desk_mutex *mutex)
{
    struct mrt_hold *hold = mutex->call.waiter.hold;
    struct mrt_hold_host *host = hold->host;
    MRT_ASSERT(!mutex->hold && !mutex->has_failed);
    mutex->hold = hold;
    mutex->generation = hold->generation;
    mutex->granted_at = mrt_time_now();
    mutex->since_wall_ms = 0;
    if (is_lost(mutex) && mutex->asked.serial > 0) {
        mrt_desk_mutex_end(mutex, MRT_GONE, MORTISE_OK);
        return;
    }
    if (is_lost(mutex)) {
        fail(mutex);
        return;
    }
    host->upcall = &mutex->upcall;
    host->revoke_callback = revoked;
    host->revoke_argument = mutex;
    mrt_desk_ticket_granted(mutex->ticket);
    mrt_desk_mutex_answer(mutex, mrt_desk_mutex_view(mutex));
    if (mutex->watches)
        mrt_engine_listen(hold, true);
}

/* The acquire was refused, or has failed: it is told in the answer to the APPEND, or to the one
   that follows. */
static void refused(struct mrt_desk_mutex *mutex)
{
    mrt_error_clear();
    int error = mrt_driver_outcome(&mutex->agent->driver, &mutex->call.waiter);
    if (mutex->asked.serial > 0) {
        mrt_desk_mutex_end(mutex, error == MORTISE_EBUSY ? MRT_BLOCKED : MRT_FAILED, error);
        return;
    }
    fail(mutex);
}

void mrt_desk_mutex_detached(struct mrt_desk_mutex *mutex, int error)
{
    mrt_error_clear();
    error = mrt_driver_error(&mutex->agent->driver, error);
    mrt_desk_mutex_end(mutex,
                       error == MORTISE_OK         ? MRT_VIEW
                       : error == MORTISE_ELOST    ? MRT_GONE
                       : error == MORTISE_EUNKNOWN ? MRT_UNKNOWN
                                                   : MRT_FAILED,
                       error == MORTISE_ELOST ? MORTISE_OK : error);
}

/* The call under way is DONE. */
static void settled(struct mrt_desk_mutex *mutex)
{
    int error = mutex->call.waiter.error;
    bool acquires = !mutex->hold && mutex->asked.type != MRT_DETACH;
    mutex->calls = false;
    if (acquires && error == MORTISE_OK)
        acquired(mutex);
    else if (acquires)
        refused(mutex);
    else if (mutex->asked.type == MRT_DETACH)
        mrt_desk_mutex_detached(mutex, error);
    else if (error == MORTISE_OK)
        mrt_desk_mutex_answer(mutex, mrt_desk_mutex_view(mutex));
    else
        mrt_desk_mutex_end(mutex, MRT_GONE, MORTISE_OK);
}

static void run(struct mrt_upcall *upcall)
{
    struct mrt_desk_mutex *mutex =
        (struct mrt_desk_mutex *)((char *)upcall - offsetof(struct mrt_desk_mutex, upcall));
    if (!is_bound(mutex->agent))
        return; /* the end of this turn ends it */
    if (mutex->calls && mutex->call.waiter.state == MRT_WAITER_DONE)
        settled(mutex);
    else if (mutex->hold && is_lost(mutex))
        send_event(mutex, (struct mrt_event){.type = MRT_WAKE}); /* it looks, and finds it gone */
    else if (mutex->hold && !mutex->knows_others && mrt_hold_has_others(mutex->hold))
        send_event(mutex, mrt_desk_mutex_view(mutex)); /* its turn ends with the agent's */
}

void mrt_desk_mutex_seen(struct mrt_agent *agent, const struct mrt_event *event)
{
    const struct mrt_hold *hold = event->type == MRT_VIEW && event->others_behind
                                      ? mrt_engine_holder(agent->driver.engine, event->ticket)
                                      : NULL;
    const struct mrt_hold_host *host = hold ? hold->host : NULL;
    if (host && host->upcall)
        mrt_driver_post(&agent->driver, host->upcall);
}

/* Its place at the store has changed. */
static void placed(void *argument, uint64_t place)
{
    struct mrt_desk_mutex *mutex = argument;
    (void)place;
    if (mutex->asked.serial == 0 && mutex->calls && !mutex->hold)
        send_event(mutex, mrt_desk_mutex_view(mutex));
}

struct mrt_desk_mutex *mrt_desk_mutex_new(struct mrt_desk_ticket *ticket, struct mrt_queue *queue)
{
    struct mrt_agent *agent = ticket->session->agent;
    struct mrt_desk_mutex *mutex = calloc(1, sizeof *mutex);
    MRT_ASSERT(!ticket->mutex && ticket->delay == 0);
    if (!mutex)
        return NULL;
    STAILQ_INIT(&mutex->later);
    mutex->agent = agent;
    mutex->ticket = ticket;
    mutex->queue = queue;
    mutex->upcall.run = run;
    mutex->number = MRT_WAITING_NUMBER + (agent->desk.instance.low >> 3) + ++agent->desk.mutexes;
    ticket->mutex = mutex;
    return mutex;
}

struct mrt_waiter *mrt_desk_mutex_call(struct mrt_desk_mutex *mutex)
{
    MRT_ASSERT(!mutex->calls);
    mutex->call = (struct mrt_call){.kind = MRT_CALL_UPCALL,
                                    .upcall = &mutex->upcall,
                                    .waiter.deadline = MRT_TIME_NEVER,
                                    .queued = placed,
                                    .queued_argument = mutex};
    mutex->calls = true;
    return &mutex->call.waiter;
}

void mrt_desk_mutex_check(struct mrt_desk_mutex *mutex)
{
    if (mutex->call.waiter.state == MRT_WAITER_DONE && !mutex->call.waiter.settled)
        settled(mutex);
}

/* -------------------------------------------------------------------- operators */

void mrt_desk_mutex_break(struct mrt_desk_mutex *mutex)
{
    leave_engine(mutex);
    if (mutex->asked.serial > 0)
        mrt_desk_mutex_end(mutex, MRT_GONE, MORTISE_OK);
    else
        fail(mutex);
}

void mrt_desk_mutex_revoke(struct mrt_desk_mutex *mutex)
{
    mutex->revokes++;
    if (mutex->hold)
        revoked(mutex, (mortise_hold){NULL, 0});
}
