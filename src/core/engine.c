/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's frame: commands out, events in, timers, and the life of the whole.
 *
 * A command is in the outbox until the host fetches it, and among the outstanding
 * ones until an event with its serial answers it. An event whose serial
 * is not among them answers nothing any more and is dropped: that is how
 * answers of an earlier attempt are told from those of this one.
 */
#include "core/engine.h"

#include "base/assert.h"
#include "core/acquire.h"
#include "core/agenda.h"
#include "core/contact.h"
#include "core/engine_internal.h"
#include "core/hold.h"
#include "core/queue.h"
#include "core/request.h"
#include "core/session.h"
#include "core/session_answer.h"
#include "core/ticket.h"
#include "core/ticket_answer.h"

#include <stdlib.h>

#define PAUSE_MIN (10 * MRT_MILLISECOND)
#define PAUSE_MAX MRT_SECOND
#define ATTEMPTS_MAX 10 /* with the pauses about four seconds */

static void set_defaults(struct mrt_engine_config *config)
{
    if (config->pause_min == 0)
        config->pause_min = PAUSE_MIN;
    if (config->pause_max == 0)
        config->pause_max = PAUSE_MAX;
    if (config->attempts_max == 0)
        config->attempts_max = ATTEMPTS_MAX;
}

int mrt_engine_new(const struct mrt_engine_config *config, struct mrt_engine **result)
{
    struct mrt_engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return MORTISE_ENOMEM;
    engine->config = *config;
    set_defaults(&engine->config);
    engine->session.timer.kind = MRT_TIMER_SESSION;
    engine->contact.kind = MRT_TIMER_CONTACT;
    TAILQ_INIT(&engine->queues);
    TAILQ_INIT(&engine->unused);
    TAILQ_INIT(&engine->free_tickets);
    TAILQ_INIT(&engine->loose_tickets);
    TAILQ_INIT(&engine->free_holds);
    TAILQ_INIT(&engine->outbox);
    TAILQ_INIT(&engine->outstanding);
    TAILQ_INIT(&engine->settled);
    TAILQ_INIT(&engine->placed);
    TAILQ_INIT(&engine->told);
    TAILQ_INIT(&engine->asked);
    TAILQ_INIT(&engine->requests);
    TAILQ_INIT(&engine->observed);
    *result = engine;
    return MORTISE_OK;
}

static void free_queue_parts(struct mrt_engine *engine, struct mrt_queue *queue)
{
    struct mrt_hold *hold, *next;
    struct mrt_ticket *ticket, *next_ticket;
    const struct mrt_waiter *waiter; /* the slot reserved for its hold */
    TAILQ_FOREACH (waiter, &queue->waiters, link)
        mrt_hold_free(waiter->hold);
    TAILQ_FOREACH_SAFE (ticket, &queue->tickets, link, next_ticket)
        mrt_ticket_free(ticket);
    TAILQ_FOREACH_SAFE (hold, &queue->holds, link, next)
        mrt_hold_free(hold);
    HASH_DEL(engine->queues_by_name, queue);
    free(queue);
}

void mrt_engine_free(struct mrt_engine *engine)
{
    if (!engine)
        return;
    struct mrt_queue *queue, *next_queue;
    struct mrt_ticket *ticket, *next_ticket;
    struct mrt_hold *hold, *next_hold;
    HASH_CLEAR(hh, engine->tickets_by_id);
    TAILQ_FOREACH_SAFE (queue, &engine->queues, link, next_queue)
        free_queue_parts(engine, queue);
    TAILQ_FOREACH_SAFE (queue, &engine->unused, link, next_queue)
        free_queue_parts(engine, queue);
    TAILQ_FOREACH_SAFE (ticket, &engine->free_tickets, link, next_ticket)
        free(ticket);
    TAILQ_FOREACH_SAFE (ticket, &engine->loose_tickets, link, next_ticket)
        mrt_ticket_free(ticket);
    mrt_requests_free(engine);
    TAILQ_FOREACH_SAFE (hold, &engine->free_holds, link, next_hold)
        mrt_hold_free(hold);
    free(engine);
}

void *mrt_engine_host(const struct mrt_engine *engine)
{
    return engine->config.host;
}

static bool of_session(const struct mrt_command *command)
{
    return command->type == MRT_START || command->type == MRT_STOP || command->type == MRT_RENEW;
}

static bool of_request(const struct mrt_command *command)
{
    return command->type == MRT_OBSERVE || command->type == MRT_CELL_GET ||
           command->type == MRT_CELL_SET;
}

static struct mrt_ticket *ticket_of(struct mrt_command *command)
{
    MRT_ASSERT(!of_session(command) && !of_request(command));
    return (struct mrt_ticket *)((char *)command - offsetof(struct mrt_ticket, command));
}

/* Frees unreferenced queues here, where no call on them is under way. */
static void reap(struct mrt_engine *engine)
{
    while (!TAILQ_EMPTY(&engine->unused))
        mrt_queue_free(TAILQ_FIRST(&engine->unused));
}

struct mrt_command *mrt_engine_next_command(struct mrt_engine *engine, mrt_time now)
{
    reap(engine);
    struct mrt_command *command = TAILQ_FIRST(&engine->outbox);
    if (!command)
        return NULL;
    MRT_ASSERT(command->queued && !command->outstanding);
    TAILQ_REMOVE(&engine->outbox, command, link);
    command->queued = false;
    command->outstanding = true;
    command->more = !TAILQ_EMPTY(&engine->outbox);
    TAILQ_INSERT_TAIL(&engine->outstanding, command, link);
    engine->counters.commands++;
    if (command->type == MRT_START || command->type == MRT_RENEW)
        engine->session.sent = now;
    mrt_contact_asked(engine, now);
    return command;
}

bool mrt_engine_has_command(const struct mrt_engine *engine)
{
    return !TAILQ_EMPTY(&engine->outbox) || !TAILQ_EMPTY(&engine->unused);
}

void mrt_engine_unsubmit(struct mrt_engine *engine, struct mrt_command *command, mrt_time now)
{
    MRT_ASSERT(command->outstanding);
    TAILQ_REMOVE(&engine->outstanding, command, link);
    command->outstanding = false;
    command->queued = true;
    engine->counters.commands--;
    TAILQ_INSERT_HEAD(&engine->outbox, command, link);
    if (of_request(command))
        mrt_request_unsubmitted(engine, command);
    else if (!of_session(command))
        mrt_ticket_unsubmitted(ticket_of(command), now);
}

bool mrt_engine_is_unreachable(const struct mrt_engine *engine)
{
    return mrt_session_unreachable(engine);
}

bool mrt_engine_lives(const struct mrt_engine *engine, mrt_time now, struct mrt_engine_life *life)
{
    const struct mrt_session *session = &engine->session;
    if (session->state != MRT_SESSION_LIVE || now >= session->valid_until)
        return false;
    *life = (struct mrt_engine_life){session->id, session->lease, session->proof, session->heard};
    return true;
}

void mrt_engine_need_session(struct mrt_engine *engine)
{
    if (!engine->closing)
        mrt_session_need(engine);
}

bool mrt_engine_has_told(const struct mrt_engine *engine)
{
    return !TAILQ_EMPTY(&engine->told) || !TAILQ_EMPTY(&engine->asked) ||
           !TAILQ_EMPTY(&engine->placed);
}

mrt_time mrt_engine_next_time(const struct mrt_engine *engine)
{
    return mrt_heap_next(&engine->timers);
}

const struct mrt_engine_counters *mrt_engine_counters(const struct mrt_engine *engine)
{
    return &engine->counters;
}

/* ------------------------------------------------------------------ events */

static struct mrt_command *answered(struct mrt_engine *engine, const struct mrt_event *event)
{
    struct mrt_command *command;
    TAILQ_FOREACH (command, &engine->outstanding, link)
        if (command->serial == event->serial)
            break;
    if (command) {
        MRT_ASSERT(command->outstanding && !command->queued);
        TAILQ_REMOVE(&engine->outstanding, command, link);
        command->outstanding = false;
    }
    return command;
}

static void woken(struct mrt_engine *engine, const struct mrt_event *event)
{
    if (!mrt_id_none(event->ticket)) {
        struct mrt_ticket *ticket = mrt_engine_ticket(engine, event->ticket);
        if (ticket)
            mrt_ticket_look(ticket);
        return;
    }
    struct mrt_queue *queue;
    struct mrt_ticket *ticket;
    TAILQ_FOREACH (queue, &engine->queues, link)
        TAILQ_FOREACH (ticket, &queue->tickets, link)
            mrt_ticket_look(ticket);
}

static void revoked(struct mrt_ticket *ticket, const struct mrt_event *event, mrt_time now)
{
    mrt_ticket_revoked(ticket, event->revoked);
    if (ticket->queue->linger > 0)
        mrt_queue_serve(ticket->queue, now);
}

static void unasked(struct mrt_engine *engine, const struct mrt_event *event, mrt_time now)
{
    MRT_ASSERT(event->serial == 0);
    if (event->type == MRT_FAILED && event->error == MORTISE_EUNREACHABLE)
        mrt_contact_refused(engine, now);
    if (event->type == MRT_FAILED || !mrt_id_equal(event->session, engine->session.id))
        return;
    struct mrt_ticket *ticket = mrt_engine_ticket(engine, event->ticket);
    if (event->type == MRT_SESSION_LOST)
        mrt_session_lose(engine, now);
    else if (event->type == MRT_VIEW && ticket)
        mrt_ticket_told(ticket, event, now);
    else if (event->type == MRT_REVOKED && ticket)
        revoked(ticket, event, now);
    else if (event->type == MRT_CHANGED)
        mrt_request_changed(engine, event->ticket);
    else
        woken(engine, event); /* whatever it says: only a REFRESH shows the present state */
}

/* Whether a command was refused because its session, the present one, has ended. */
static bool tells_loss(const struct mrt_engine *engine, const struct mrt_command *command,
                       const struct mrt_event *event)
{
    return event->type == MRT_FAILED && event->error == MORTISE_ELOST &&
           engine->session.state == MRT_SESSION_LIVE &&
           mrt_id_equal(command->session, engine->session.id);
}

void mrt_engine_event(struct mrt_engine *engine, const struct mrt_event *event, mrt_time now)
{
    mrt_session_check(engine, now);
    if (event->serial == 0) {
        unasked(engine, event, now);
        return;
    }
    struct mrt_command *command = answered(engine, event);
    if (!command)
        return;
    mrt_contact_answered(engine, event, now);
    if (of_request(command) && tells_loss(engine, command, event))
        mrt_session_lose(engine, now);
    if (of_session(command))
        mrt_session_answer(engine, command, event, now);
    else if (of_request(command))
        mrt_request_answer(engine, command, event, now);
    else if (tells_loss(engine, command, event))
        mrt_session_lose(engine, now);
    else
        mrt_ticket_answer(ticket_of(command), event, now);
}

/* ------------------------------------------------------------------- time */

#define OWNER_OF(timer_, type) ((struct type *)((char *)(timer_)-offsetof(struct type, timer)))

void mrt_engine_tick(struct mrt_engine *engine, mrt_time now)
{
    struct mrt_timer *timer;
    while ((timer = mrt_heap_pop(&engine->timers, now))) {
        switch (timer->kind) {
        case MRT_TIMER_WAITER:
            mrt_waiter_cancel(OWNER_OF(timer, mrt_waiter), MORTISE_ETIMEOUT, now);
            break;
        case MRT_TIMER_HOLD:
            mrt_hold_timer(OWNER_OF(timer, mrt_hold), now);
            break;
        case MRT_TIMER_TICKET:
            mrt_ticket_timer(OWNER_OF(timer, mrt_ticket), now);
            break;
        case MRT_TIMER_REQUEST:
            mrt_request_timer(OWNER_OF(timer, mrt_request));
            break;
        case MRT_TIMER_CONTACT:
            mrt_contact_timer(engine, now);
            break;
        default:
            mrt_session_timer(engine, now);
        }
    }
}

/* ------------------------------------------------------------------- close */

static void end_holds(struct mrt_queue *queue, mrt_time now)
{
    struct mrt_hold *hold;
    while ((hold = TAILQ_FIRST(&queue->holds))) {
        mrt_hold_check(hold, now); /* for the count of losses */
        mrt_hold_put(hold);
    }
    MRT_ASSERT(!queue->active);
}

void mrt_engine_close(struct mrt_engine *engine, mrt_time now)
{
    if (engine->closing)
        return;
    mrt_session_check(engine, now);
    engine->closing = true;
    struct mrt_queue *queue, *next;
    TAILQ_FOREACH_SAFE (queue, &engine->queues, link, next) {
        mrt_queue_fail_all(queue, MORTISE_ECLOSED);
        end_holds(queue, now);
    }
    mrt_requests_fail(engine, MORTISE_ECLOSED, now);
    mrt_session_close(engine, now);
    MRT_ASSERT(engine->session.state != MRT_SESSION_LIVE);
}

bool mrt_engine_closed(const struct mrt_engine *engine)
{
    return engine->closing && engine->session.state == MRT_SESSION_NONE;
}

bool mrt_engine_owes(const struct mrt_engine *engine)
{
    return engine->session.owes;
}
