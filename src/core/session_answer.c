/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session's beginning and end: answers to START, RENEW and STOP, its timer, and its loss.
 *
 * Invariant: when a session ends its tickets and holds end in the same step, before anything else
 * is done: nothing is granted by a session that is not LIVE. A STOP follows each START that may
 * have been done.
 * Threads: as core/engine.h.
 */
#include "core/session_answer.h"

#include "base/assert.h"
#include "core/agenda.h"
#include "core/engine_internal.h"
#include "core/outbox.h"
#include "core/queue.h"
#include "core/request.h"
#include "core/session.h"
#include "core/ticket.h"

static void serve_all(struct mrt_engine *engine, mrt_time now)
{
    struct mrt_queue *queue, *next; /* a queue that nothing refers to leaves the list */
    TAILQ_FOREACH_SAFE (queue, &engine->queues, link, next)
        mrt_queue_serve(queue, now);
    mrt_requests_serve(engine);
}

/* Ends the session; the STOP is sent at `at`, or now if that is past. */
static void stop(struct mrt_engine *engine, mrt_time at, mrt_time now)
{
    MRT_ASSERT(engine->session.state == MRT_SESSION_LIVE ||
               engine->session.state == MRT_SESSION_STARTING);
    struct mrt_session *session = &engine->session;
    session->state = MRT_SESSION_STOPPING;
    session->valid_until = 0;
    session->suspended = false;
    session->attempts = 0;
    mrt_engine_unsend(engine, &session->renew);
    mrt_requests_recall(engine);
    session->command.died = !engine->closing || engine->config.trusted_for > 0;
    mrt_heap_clear(&engine->timers, &session->timer);
    if (at > now)
        mrt_heap_set(&engine->timers, &session->timer, at);
    else
        mrt_engine_send(engine, &session->command, MRT_STOP);
}

static void drop_tickets(struct mrt_engine *engine)
{
    struct mrt_queue *queue, *next_queue; /* a queue that nothing refers to leaves the list */
    struct mrt_ticket *ticket, *next;
    TAILQ_FOREACH_SAFE (queue, &engine->queues, link, next_queue)
        TAILQ_FOREACH_SAFE (ticket, &queue->tickets, link, next)
            mrt_queue_ticket_gone(ticket);
    TAILQ_FOREACH_SAFE (ticket, &engine->loose_tickets, link, next)
        if (ticket->state == MRT_TICKET_LEAVING)
            mrt_ticket_drop(ticket);
    MRT_ASSERT(HASH_COUNT(engine->tickets_by_id) == 0);
}

void mrt_session_lose(struct mrt_engine *engine, mrt_time now)
{
    if (engine->session.state != MRT_SESSION_LIVE)
        return;
    mrt_time trusted =
        mrt_time_min(engine->session.valid_until, mrt_time_add(now, engine->config.trusted_for));
    stop(engine, trusted, now);
    drop_tickets(engine);
    serve_all(engine, now);
}

void mrt_session_check(struct mrt_engine *engine, mrt_time now)
{
    if (engine->session.state == MRT_SESSION_LIVE && now >= engine->session.valid_until)
        mrt_session_lose(engine, now);
    MRT_ASSERT(engine->session.state != MRT_SESSION_LIVE || now < engine->session.valid_until);
}

void mrt_session_close(struct mrt_engine *engine, mrt_time now)
{
    MRT_ASSERT(engine->closing);
    struct mrt_session *session = &engine->session;
    bool is_delayed = session->state == MRT_SESSION_STOPPING && !session->command.queued &&
                      !session->command.outstanding;
    session->owes = session->state == MRT_SESSION_LIVE || is_delayed;
    if (session->state == MRT_SESSION_STARTING && !session->command.outstanding) {
        mrt_engine_unsend(engine, &session->command);
        mrt_heap_clear(&engine->timers, &session->timer);
        if (session->attempts == 0)
            session->state = MRT_SESSION_NONE;
        else
            stop(engine, now, now); /* an earlier START may have been done */
    } else if (session->state == MRT_SESSION_LIVE) {
        stop(engine, now, now);
        drop_tickets(engine);
    } else if (is_delayed) {
        mrt_heap_clear(&engine->timers, &session->timer);
        mrt_session_timer(engine,
                          now); /* the call that closes it says that nobody trusts it any longer */
    }
}

static bool for_good(const struct mrt_event *event)
{
    return event->type == MRT_FAILED && mortise_error_kind_of(event->error) != MORTISE_KIND_RETRY;
}

static void start_answered(struct mrt_engine *engine, const struct mrt_event *event, mrt_time now)
{
    MRT_ASSERT(engine->session.state == MRT_SESSION_STARTING);
    struct mrt_session *session = &engine->session;
    if (event->type == MRT_STARTED) {
        session->state = MRT_SESSION_LIVE;
        session->lease = event->lease;
        session->proof_lag = event->proof_lag;
        session->dates = event->dates;
        session->relayed = event->heard > 0;
        if (event->proven > 0)
            session->sent = event->proven;
        session->proof = session->sent;
        session->heard = 0;
        session->sign_count = 0;
        mrt_session_prove(engine, session->sent, event->heard, now);
        if (engine->closing)
            stop(engine, now, now);
        mrt_session_arm(engine);
        serve_all(engine, now);
    } else if (for_good(event) || engine->closing) {
        struct mrt_queue *queue, *next;
        TAILQ_FOREACH_SAFE (queue, &engine->queues, link, next)
            mrt_queue_fail_all(queue, event->error); /* a closing engine has no waiters */
        mrt_requests_fail(engine, event->error, now);
        if (event->type == MRT_FAILED && session->attempts == 0)
            session->state = MRT_SESSION_NONE;
        else
            stop(engine, now, now); /* this START, or an earlier one, may have been done */
    } else {
        mrt_session_again_later(engine, now);
    }
}

static void stop_answered(struct mrt_engine *engine, const struct mrt_event *event, mrt_time now)
{
    MRT_ASSERT(engine->session.state == MRT_SESSION_STOPPING);
    struct mrt_session *session = &engine->session;
    if (event->type == MRT_STOPPED || !engine->closing) {
        /* A lost session is dead by its lease, also if the STOP failed. */
        session->state = MRT_SESSION_NONE;
        serve_all(engine, now);
    } else {
        mrt_session_again_later(engine, now);
    }
}

static void renew_answered(struct mrt_engine *engine, const struct mrt_event *event, mrt_time now)
{
    struct mrt_session *session = &engine->session;
    if (session->state != MRT_SESSION_LIVE)
        return;
    if (!mrt_id_equal(session->renew.session, session->id)) {
        mrt_session_arm(engine); /* an earlier session's, late: it proves nothing for this one */
        return;
    }
    if (event->type == MRT_RENEWED) {
        if (event->proven > session->proof)
            session->proof = event->proven;
        mrt_session_prove(engine, session->sent, event->heard, now);
        mrt_session_check(engine, now);
    } else if (for_good(event)) {
        mrt_session_lose(engine, now);
    } else {
        session->unreachable = true;
        mrt_time pause =
            mrt_time_min(mrt_engine_pause(engine, 0), mrt_session_interval(session) / 2);
        session->sent = now - mrt_session_interval(session) + pause;
    }
    mrt_session_arm(engine);
}

void mrt_session_answer(struct mrt_engine *engine, struct mrt_command *command,
                        const struct mrt_event *event, mrt_time now)
{
    switch (command->type) {
    case MRT_START:
        start_answered(engine, event, now);
        break;
    case MRT_STOP:
        stop_answered(engine, event, now);
        break;
    default:
        MRT_ASSERT(command->type == MRT_RENEW);
        renew_answered(engine, event, now);
    }
}

void mrt_session_timer(struct mrt_engine *engine, mrt_time now)
{
    struct mrt_session *session = &engine->session;
    if (session->state == MRT_SESSION_STARTING || session->state == MRT_SESSION_STOPPING) {
        mrt_engine_send(engine, &session->command,
                        session->state == MRT_SESSION_STARTING ? MRT_START : MRT_STOP);
        return;
    }
    MRT_ASSERT(session->state == MRT_SESSION_LIVE);
    mrt_session_check(engine, now);
    if (session->state != MRT_SESSION_LIVE)
        return;
    if (mrt_session_is_silent(session, now))
        mrt_session_suspend(engine, true);
    if (!session->renew.queued && !session->renew.outstanding &&
        now >= session->sent + mrt_session_interval(session))
        mrt_engine_send(engine, &session->renew, MRT_RENEW);
    mrt_session_arm(engine);
}
