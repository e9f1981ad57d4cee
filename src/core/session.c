/*
 * The session: the one thing of a client that is alive or not, and carries all its
 * tickets.
 *
 * Invariant: valid_until = when the newest acknowledged proof of life was *sent*,
 * plus the lease, minus a margin. Some stores learn of a sign of life only some
 * time after it reached them (proof_lag): there an acknowledgement proves the
 * newest one that was acknowledged so long before this one was sent, or the store says itself what
 * is proven. Validity never depends on when
 * an answer or an error came, nor on hearing anything at all: past valid_until the session is lost
 * by the clock alone. The margin, 3 % of the lease or margin_min if that is more, covers clocks
 * that drift: this machine's may be 1.5 % slow and the store's 1.5 % fast (0.97 / 0.985 < 1
 * / 1.015).
 *
 *   NONE -> STARTING -> LIVE -> STOPPING -> NONE
 *
 * A sign of life is sent each third of the lease, oftener where proofs lag. If none that was
 * sent within the last half is acknowledged, SUSPENDED is told; earlier, where less than all of the
 * lease can be proven. At valid_until: LOST, and a new session as soon as the old one is stopped,
 * if anyone still waits. A store whose operating system tells of death has a lease of 0: valid
 * until it says otherwise.
 */
#include "base/assert.h"
#include "core/engine_internal.h"

/* How often a sign of life is sent. Where one proves only what is older by the lag, the newest that
   it proves should be hardly older than that: so some whole number of intervals, each less than a
   seventh of the lease, is the lag and as much as a round trip may take. */
static mrt_time interval_of(mrt_time lease, mrt_time proof_lag)
{
    if (proof_lag == 0)
        return lease / 3;
    mrt_time age = proof_lag + lease / 32;
    mrt_time each = age / (age * 7 / lease + 1);
    return each > lease / 14 ? each : lease / 14;
}

static mrt_time interval(const struct mrt_session *session)
{
    return interval_of(session->lease, session->proof_lag);
}

static mrt_time margin_of(mrt_time lease, mrt_time margin_min)
{
    mrt_time margin = lease * 3 / 100;
    return margin < margin_min ? margin_min : margin;
}

/* The newest proof is as old as the lag asks for, and has aged by an interval when the next one
   comes. */
mrt_time mrt_lease_left(mrt_time lease, mrt_time proof_lag)
{
    mrt_time age = proof_lag == 0 ? 0 : proof_lag + lease / 32;
    mrt_time left = lease - margin_of(lease, MRT_MARGIN_MIN) - age - interval_of(lease, proof_lag);
    return left > 0 ? left : 0;
}

/* For how long no sign of life may be acknowledged before SUSPENDED is told. */
static mrt_time silence(const struct mrt_session *session)
{
    return mrt_time_min(session->lease / 2, (session->lease - session->proof_lag) / 3 * 2);
}

static void arm(struct mrt_engine *engine)
{
    struct mrt_session *session = &engine->session;
    if (session->state != MRT_SESSION_LIVE || session->lease == 0) {
        mrt_heap_clear(&engine->timers, &session->timer);
        return;
    }
    mrt_time at = session->valid_until;
    if (!session->suspended)
        at = mrt_time_min(at, session->heard + silence(session));
    if (!session->renew.queued && !session->renew.outstanding)
        at = mrt_time_min(at, session->sent + interval(session));
    mrt_heap_set(&engine->timers, &session->timer, at);
}

static void tell_all(struct mrt_engine *engine, mortise_state state)
{
    struct mrt_queue *queue;
    struct mrt_hold *hold;
    TAILQ_FOREACH (queue, &engine->queues, link)
        TAILQ_FOREACH (hold, &queue->holds, link)
            if (hold->ticket)
                mrt_hold_tell(hold, state);
}

static void set_suspended(struct mrt_engine *engine, bool suspended)
{
    if (engine->session.suspended == suspended)
        return;
    engine->session.suspended = suspended;
    tell_all(engine, suspended ? MORTISE_SUSPENDED : MORTISE_HELD);
}

/* What was answered long enough before `sent` is known to the whole store by now. */
static void prove_earlier(struct mrt_session *session, mrt_time sent, mrt_time now)
{
    uint32_t known = session->sign_count < MRT_SIGNS ? session->sign_count : MRT_SIGNS;
    for (uint32_t i = 0; i < known; i++) {
        const struct mrt_sign *sign = &session->signs[i];
        mrt_time since = sign->answered;
        if (sent - since >= session->proof_lag && sign->sent > session->proof)
            session->proof = sign->sent;
    }
    session->signs[session->sign_count++ % MRT_SIGNS] = (struct mrt_sign){sent, now};
}

/* A sign of life that was sent at `sent` has been acknowledged. */
static void prove(struct mrt_engine *engine, mrt_time sent, mrt_time now)
{
    struct mrt_session *session = &engine->session;
    session->unreachable = false;
    if (session->lease == 0) {
        session->valid_until = MRT_TIME_NEVER;
        return;
    }
    session->heard = sent;
    if (session->proof_lag == 0)
        session->proof = sent;
    else if (!session->dates)
        prove_earlier(session, sent, now);
    mrt_time margin = margin_of(session->lease, engine->config.margin_min);
    session->valid_until = mrt_time_add(session->proof, session->lease - margin);
    set_suspended(engine, now >= session->heard + silence(session));
}

void mrt_session_need(struct mrt_engine *engine)
{
    struct mrt_session *session = &engine->session;
    MRT_ASSERT(!engine->closing); /* nobody waits then */
    if (session->state != MRT_SESSION_NONE)
        return;
    session->state = MRT_SESSION_STARTING;
    session->id = mrt_engine_identity(engine);
    session->attempts = 0;
    mrt_engine_send(engine, &session->command, MRT_START);
}

static void serve_all(struct mrt_engine *engine, mrt_time now)
{
    struct mrt_queue *queue, *next; /* a queue that nothing refers to leaves the list */
    TAILQ_FOREACH_SAFE (queue, &engine->queues, link, next)
        mrt_queue_serve(queue, now);
    mrt_requests_serve(engine);
}

static void stop(struct mrt_engine *engine)
{
    struct mrt_session *session = &engine->session;
    session->state = MRT_SESSION_STOPPING;
    session->valid_until = 0;
    session->suspended = false;
    session->attempts = 0;
    mrt_engine_unsend(engine, &session->renew);
    mrt_requests_recall(engine);
    session->command.died = !engine->closing;
    mrt_engine_send(engine, &session->command, MRT_STOP);
    arm(engine);
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
}

void mrt_session_lose(struct mrt_engine *engine, mrt_time now)
{
    if (engine->session.state != MRT_SESSION_LIVE)
        return;
    stop(engine);
    drop_tickets(engine);
    serve_all(engine, now);
}

void mrt_session_check(struct mrt_engine *engine, mrt_time now)
{
    if (engine->session.state == MRT_SESSION_LIVE && now >= engine->session.valid_until)
        mrt_session_lose(engine, now);
}

void mrt_session_close(struct mrt_engine *engine)
{
    struct mrt_session *session = &engine->session;
    session->owes = session->state == MRT_SESSION_LIVE;
    if (session->state == MRT_SESSION_STARTING && !session->command.outstanding) {
        mrt_engine_unsend(engine, &session->command);
        mrt_heap_clear(&engine->timers, &session->timer);
        if (session->attempts == 0)
            session->state = MRT_SESSION_NONE;
        else
            stop(engine); /* an earlier START may have been done */
    } else if (session->state == MRT_SESSION_LIVE) {
        stop(engine);
        drop_tickets(engine);
    }
}

static void again_later(struct mrt_engine *engine, mrt_time now)
{
    struct mrt_session *session = &engine->session;
    mrt_time pause = mrt_engine_pause(engine, session->attempts++);
    mrt_heap_set(&engine->timers, &session->timer, mrt_time_add(now, pause));
}

static bool for_good(const struct mrt_event *event)
{
    return event->type == MRT_FAILED && mortise_error_kind_of(event->error) != MORTISE_KIND_RETRY;
}

static void start_answered(struct mrt_engine *engine, const struct mrt_event *event, mrt_time now)
{
    struct mrt_session *session = &engine->session;
    if (event->type == MRT_STARTED) {
        session->state = MRT_SESSION_LIVE;
        session->lease = event->lease;
        session->proof_lag = event->proof_lag;
        session->dates = event->dates;
        if (event->proven > 0)
            session->sent = event->proven;
        session->proof = session->sent;
        session->sign_count = 0;
        prove(engine, session->sent, now);
        if (engine->closing)
            stop(engine);
        arm(engine);
        serve_all(engine, now);
    } else if (for_good(event) || engine->closing) {
        struct mrt_queue *queue, *next;
        TAILQ_FOREACH_SAFE (queue, &engine->queues, link, next)
            mrt_queue_fail_all(queue, event->error); /* none waits if it is closing */
        mrt_requests_fail(engine, event->error, now);
        if (event->type == MRT_FAILED && session->attempts == 0)
            session->state = MRT_SESSION_NONE;
        else
            stop(engine); /* this START, or an earlier one, may have been done */
    } else {
        again_later(engine, now);
    }
}

static void stop_answered(struct mrt_engine *engine, const struct mrt_event *event, mrt_time now)
{
    struct mrt_session *session = &engine->session;
    if (event->type == MRT_STOPPED || !engine->closing) {
        /* A lost session is dead by its lease, whatever became of the STOP. */
        session->state = MRT_SESSION_NONE;
        serve_all(engine, now);
    } else {
        again_later(engine, now);
    }
}

static void renew_answered(struct mrt_engine *engine, const struct mrt_event *event, mrt_time now)
{
    struct mrt_session *session = &engine->session;
    if (session->state != MRT_SESSION_LIVE)
        return;
    if (!mrt_id_equal(session->renew.session, session->id)) {
        arm(engine); /* an earlier session's, late: it proves nothing for this one */
        return;
    }
    if (event->type == MRT_RENEWED) {
        if (event->proven > session->proof)
            session->proof = event->proven;
        prove(engine, session->sent, now);
        mrt_session_check(engine, now);
    } else if (for_good(event)) {
        mrt_session_lose(engine, now);
    } else {
        session->unreachable = true;
        mrt_time pause = mrt_time_min(mrt_engine_pause(engine, 0), interval(session) / 2);
        session->sent = now - interval(session) + pause;
    }
    arm(engine);
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

bool mrt_session_unreachable(const struct mrt_engine *engine)
{
    const struct mrt_session *session = &engine->session;
    return session->state != MRT_SESSION_LIVE || session->unreachable || session->suspended;
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
    if (now >= session->heard + silence(session))
        set_suspended(engine, true);
    if (!session->renew.queued && !session->renew.outstanding &&
        now >= session->sent + interval(session))
        mrt_engine_send(engine, &session->renew, MRT_RENEW);
    arm(engine);
}
