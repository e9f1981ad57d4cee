/* SPDX-License-Identifier: Apache-2.0 */
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
 * if anyone still waits (session_answer.c). A store whose operating system tells of death has a
 * lease of 0: valid until it says otherwise.
 *
 * A session that is lost earlier, because the store says so, is stopped immediately: all holders
 * are in this process, and have been told. Others may trust it (config `trusted_for`), who were
 * told until when a hold lasts and stand still since. Then it is stopped once that is over, no
 * later than at valid_until: until then this client makes no lock free, and gets none.
 */
#include "core/session.h"

#include "base/assert.h"
#include "core/engine_internal.h"
#include "core/hold.h"
#include "core/outbox.h"

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

mrt_time mrt_session_interval(const struct mrt_session *session)
{
    if (session->relayed)
        return session->lease / 12; /* what it proves may be old already */
    return interval_of(session->lease, session->proof_lag);
}

static mrt_time margin_of(mrt_time lease, mrt_time margin_min)
{
    mrt_time margin = lease * 3 / 100;
    return margin < margin_min ? margin_min : margin;
}

/* The newest proof is as old as the lag, and an interval older when the next one comes. */
mrt_time mrt_lease_left(mrt_time lease, mrt_time proof_lag)
{
    mrt_time age = proof_lag == 0 ? 0 : proof_lag + lease / 32;
    mrt_time left = lease - margin_of(lease, MRT_MARGIN_MIN) - age - interval_of(lease, proof_lag);
    return left > 0 ? left : 0;
}

/* How long signs of life may stay without acknowledgement before SUSPENDED is reported. */
static mrt_time silence(const struct mrt_session *session)
{
    return mrt_time_min(session->lease / 2, (session->lease - session->proof_lag) / 3 * 2);
}

bool mrt_session_is_silent(const struct mrt_session *session, mrt_time now)
{
    return now >= session->heard + silence(session);
}

void mrt_session_arm(struct mrt_engine *engine)
{
    struct mrt_session *session = &engine->session;
    if (session->state != MRT_SESSION_LIVE || session->lease == 0)
        return;
    MRT_ASSERT(session->valid_until != MRT_TIME_NEVER); /* its lease ends */
    mrt_time at = session->valid_until;
    if (!session->suspended)
        at = mrt_time_min(at, session->heard + silence(session));
    if (!session->renew.queued && !session->renew.outstanding)
        at = mrt_time_min(at, session->sent + mrt_session_interval(session));
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

void mrt_session_suspend(struct mrt_engine *engine, bool suspended)
{
    MRT_ASSERT(!suspended || engine->session.state == MRT_SESSION_LIVE);
    if (engine->session.suspended == suspended)
        return;
    engine->session.suspended = suspended;
    tell_all(engine, suspended ? MORTISE_SUSPENDED : MORTISE_HELD);
}

/* Signs of life that were answered long enough before `sent` are known to the whole store by now.
 */
static void prove_earlier(struct mrt_session *session, mrt_time sent, mrt_time now)
{
    MRT_ASSERT(session->proof_lag > 0 && sent <= now);
    uint32_t known = session->sign_count < MRT_SIGNS ? session->sign_count : MRT_SIGNS;
    for (uint32_t i = 0; i < known; i++) {
        const struct mrt_sign *sign = &session->signs[i];
        mrt_time since = sign->answered;
        if (sent - since >= session->proof_lag && sign->sent > session->proof)
            session->proof = sign->sent;
    }
    session->signs[session->sign_count++ % MRT_SIGNS] = (struct mrt_sign){sent, now};
}

void mrt_session_prove(struct mrt_engine *engine, mrt_time sent, mrt_time heard, mrt_time now)
{
    MRT_ASSERT(engine->session.state == MRT_SESSION_LIVE);
    struct mrt_session *session = &engine->session;
    session->unreachable = false;
    if (session->lease == 0) {
        session->valid_until = MRT_TIME_NEVER;
        return;
    }
    if (heard == 0)
        session->heard = sent;
    else if (heard > session->heard)
        session->heard = heard;
    if (session->proof_lag == 0 && !session->relayed)
        session->proof = sent;
    else if (!session->dates && !session->relayed)
        prove_earlier(session, sent, now);
    mrt_time margin = margin_of(session->lease, engine->config.margin_min);
    session->valid_until = mrt_time_add(session->proof, session->lease - margin);
    mrt_session_suspend(engine, mrt_session_is_silent(session, now));
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

void mrt_session_again_later(struct mrt_engine *engine, mrt_time now)
{
    MRT_ASSERT(engine->session.state == MRT_SESSION_STARTING ||
               engine->session.state == MRT_SESSION_STOPPING);
    struct mrt_session *session = &engine->session;
    mrt_time pause = mrt_engine_pause(engine, session->attempts++);
    mrt_heap_set(&engine->timers, &session->timer, mrt_time_add(now, pause));
}

bool mrt_session_unreachable(const struct mrt_engine *engine)
{
    const struct mrt_session *session = &engine->session;
    return session->state != MRT_SESSION_LIVE || session->unreachable || session->suspended;
}
