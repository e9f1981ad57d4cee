/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client sessions: see desk.h for the rules.
 *
 *   NONE -> STARTING -> LIVE -> STOPPING -> NONE
 *
 * Invariant: a session that is LIVE was begun in the store session that lives now. The comparison
 * is made before each frame is read, so no answer joins what belongs to two store sessions.
 */
#include "agent/peer.h"
#include "agent/process.h"
#include "agent/rights.h"
#include "agent/take.h"
#include "base/error.h"
#include "base/name.h"
#include "store/agent/frame.h"
#include "store/agent/wire.h"
#include "store/kit/refusal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define START_TIMEOUT MRT_SECOND /* then a START is answered: the client comes again */
#define COMMANDS_MAX 16          /* under way, of a connection of a user who has limits */

/* --------------------------------------------------------------------- greeting */

/* The abilities of the store, as letters. */
static void write_abilities(const struct mrt_driver *driver, char *can)
{
    const struct mrt_store_ops *ops = driver->ops;
    mortise_capabilities all = ops->capabilities, *has = &all;
    if (ops->adapt)
        ops->adapt(driver->store, &all);
    const struct {
        bool is_there;
        char letter;
    } abilities[] = {{has->fair, MRT_AGENT_FAIR},
                     {has->exclusive_fair, MRT_AGENT_EXCLUSIVE_FAIR},
                     {has->fence, MRT_AGENT_FENCE},
                     {has->notify, MRT_AGENT_NOTIFY},
                     {has->across_hosts, MRT_AGENT_ACROSS_HOSTS},
                     {has->survives_failover, MRT_AGENT_SURVIVES_FAILOVER},
                     {has->durable_fence, MRT_AGENT_DURABLE_FENCE},
                     {has->detach, MRT_AGENT_DETACH},
                     {has->linger, MRT_AGENT_LINGER},
                     {has->lock_delay, MRT_AGENT_LOCK_DELAY},
                     {ops->values, MRT_AGENT_VALUES},
                     {ops->cells, MRT_AGENT_CELLS},
                     {ops->claims_end, MRT_AGENT_CLAIMS_END}};
    for (size_t i = 0; i < sizeof abilities / sizeof abilities[0]; i++)
        if (abilities[i].is_there)
            *can++ = abilities[i].letter;
    *can = '\0';
}

/* The owner that lists show: the client's label, and its process as the kernel knows it. A user of
   the policy might say that he is somebody else, so his number, and this host, are the agent's
   words. */
static void write_owner(const struct mrt_peer *peer, const struct mrt_resp_word *label,
                        char text[MRT_OWNER_SIZE])
{
    char given[MRT_OWNER_SIZE], named[MORTISE_LABEL_MAX + 1];
    struct mrt_owner owner;
    snprintf(given, sizeof given, "%.*s", (int)label->size, label->text);
    mrt_owner_parse(given, &owner);
    if (peer->user->limits) {
        mrt_owner_describe("", true, given);
        snprintf(named, sizeof named, "user %u: %.*s", peer->user->uid, MORTISE_LABEL_MAX - 20,
                 owner.label);
        mrt_owner_parse(given, &owner);
        memcpy(owner.label, named, sizeof named);
    }
    if (owner.pid != 0)
        owner.pid = peer->pid;
    mrt_owner_format(&owner, text);
}

bool mrt_desk_greet(struct mrt_peer *peer, const struct mrt_resp_word *label)
{
    struct mrt_agent *agent = peer->agent;
    const struct mrt_store_ops *ops = agent->driver.ops;
    struct mrt_desk_session *session = calloc(1, sizeof *session);
    char can[32];
    if (!session)
        return false;
    session->agent = agent;
    session->peer = peer;
    session->timer.kind = MRT_DESK_SESSION;
    TAILQ_INIT(&session->tickets);
    write_owner(peer, label, session->owner);
    TAILQ_INSERT_TAIL(&agent->desk.sessions, session, link);
    peer->session = session;
    write_abilities(&agent->driver, can);
    mrt_time lag = ops->lag ? ops->lag(agent->driver.store) : 0;
    mrt_reply_array(&peer->output, 9);
    mrt_frame_text(&peer->output, "MORTISE");
    mrt_frame_number(&peer->output, 1);
    mrt_frame_id(&peer->output, agent->desk.instance);
    mrt_frame_text(&peer->output, ops->address(agent->driver.store));
    mrt_frame_text(&peer->output, agent->prefix);
    mrt_frame_number(&peer->output, agent->lease);
    /* A proof is as old as the agent's, and as the client's pause between questions. */
    mrt_frame_number(&peer->output,
                     agent->has_lease ? lag + agent->lease / 10 * 3 : agent->lease / 14);
    mrt_frame_text(&peer->output, can);
    mrt_reply_bulk(&peer->output, &(char){MRT_AGENT_SEES_PROCESS}, 1);
    return true;
}

/* ---------------------------------------------------------------------- answers */

/* How old the proof of the store session is now, and the newest sign that was heard. */
static void read_ages(const struct mrt_agent *agent, mrt_time *proof_age, mrt_time *heard_age)
{
    mrt_time now = mrt_time_now();
    const struct mrt_engine_life *life = &agent->desk.life;
    *proof_age = agent->has_lease && now > life->proof ? now - life->proof : 0;
    *heard_age = agent->has_lease && now > life->heard ? now - life->heard : 0;
}

void mrt_desk_answer(struct mrt_desk_session *session, const struct mrt_event *event)
{
    struct mrt_event answer = *event;
    mrt_time proof_age = 0, heard_age = 0;
    answer.session = session->id;
    if (answer.type == MRT_STARTED || answer.type == MRT_RENEWED) {
        answer.lease = session->agent->lease;
        read_ages(session->agent, &proof_age, &heard_age);
    }
    mrt_frame_write_event(&session->peer->output, &answer, proof_age, heard_age);
    mrt_peer_has_output(session->peer);
}

static void answer_with(struct mrt_desk_session *session, uint64_t serial, enum mrt_event_type type,
                        int error, const char *why)
{
    const struct mrt_event event = {.type = type, .serial = serial, .error = error, .detail = why};
    mrt_desk_answer(session, &event);
}

void mrt_desk_stopped(struct mrt_desk_session *session)
{
    session->state = MRT_DESK_NONE;
    answer_with(session, session->asked, MRT_STOPPED, 0, NULL);
}

/* ------------------------------------------------------------- beginning and end */

static void set_timer(struct mrt_desk_session *session, mrt_time left)
{
    mrt_heap_set(&session->agent->desk.timers, &session->timer, mrt_time_add(mrt_time_now(), left));
}

static void give_tickets_up(struct mrt_desk_session *session, bool died)
{
    struct mrt_desk_ticket *ticket, *next;
    mrt_heap_clear(&session->agent->desk.timers, &session->timer);
    TAILQ_FOREACH_SAFE (ticket, &session->tickets, link, next)
        mrt_desk_ticket_leave(session->agent, ticket, died);
}

static void answer_started(struct mrt_desk_session *session)
{
    session->state = MRT_DESK_LIVE;
    set_timer(session, session->agent->lease);
    answer_with(session, session->asked, MRT_STARTED, 0, NULL);
}

/* The client's session ends otherwise than by its word; it is told. */
static void end_untold(struct mrt_desk_session *session, const char *why)
{
    session->state = MRT_DESK_NONE;
    mrt_desk_recall(session, true);
    answer_with(session, 0, MRT_SESSION_LOST, MORTISE_ELOST, why);
    give_tickets_up(session, true);
}

void mrt_desk_start(struct mrt_desk_session *session, const struct mrt_command *command)
{
    struct mrt_agent *agent = session->agent;
    bool is_there = session->state == MRT_DESK_LIVE && mrt_id_equal(session->id, command->session);
    if (agent->drains) {
        answer_with(session, command->serial, MRT_FAILED, MORTISE_EUNREACHABLE,
                    "the agent is ending");
        return;
    }
    if (command->with_process && !mrt_process_watch(session->peer)) {
        answer_with(session, command->serial, MRT_FAILED, MORTISE_EUNREACHABLE,
                    "the agent has no descriptor left to watch this process by: raise its limit "
                    "(LimitNOFILE= of its unit, ulimit -Hn)");
        return;
    }
    session->asked = command->serial;
    if (is_there) {
        answer_started(session);
        return;
    }
    if (session->state == MRT_DESK_LIVE || session->state == MRT_DESK_STOPPING) {
        session->state = MRT_DESK_NONE;
        mrt_desk_recall(session, true);
        give_tickets_up(session, true);
    }
    session->id = command->session;
    session->state = MRT_DESK_STARTING;
    mrt_engine_need_session(agent->driver.engine);
    if (agent->desk.lives)
        answer_started(session);
    else
        set_timer(session, START_TIMEOUT);
}

void mrt_desk_renew(struct mrt_desk_session *session, const struct mrt_command *command)
{
    if (session->state != MRT_DESK_LIVE || !mrt_id_equal(session->id, command->session)) {
        answer_with(session, command->serial, MRT_FAILED, MORTISE_ELOST, MRT_REFUSAL_ENDED);
        return;
    }
    set_timer(session, session->agent->lease);
    answer_with(session, command->serial, MRT_RENEWED, 0, NULL);
}

void mrt_desk_stop(struct mrt_desk_session *session, const struct mrt_command *command)
{
    bool is_there = session->state == MRT_DESK_LIVE && mrt_id_equal(session->id, command->session);
    if (!is_there) {
        answer_with(session, command->serial, MRT_STOPPED, 0, NULL);
        return;
    }
    session->state = MRT_DESK_STOPPING;
    session->asked = command->serial;
    give_tickets_up(session, command->died);
    if (session->state == MRT_DESK_STOPPING && TAILQ_EMPTY(&session->tickets))
        mrt_desk_stopped(session);
}

void mrt_desk_close(struct mrt_peer *peer)
{
    struct mrt_desk_session *session = peer->session;
    struct mrt_desk *desk = &peer->agent->desk;
    if (!session)
        return;
    mrt_desk_recall(session, false);
    session->state = MRT_DESK_NONE;
    give_tickets_up(session, true);
    TAILQ_REMOVE(&desk->sessions, session, link);
    free(session);
    peer->session = NULL;
}

bool mrt_desk_is_busy(const struct mrt_peer *peer)
{
    return peer->session && peer->user->limits && peer->session->commands >= COMMANDS_MAX;
}

void mrt_desk_overstay(struct mrt_desk_session *session)
{
    answer_with(session, 0, MRT_SESSION_LOST, MORTISE_ELOST,
                "a hold has lasted as long as the agent's policy lets it");
    session->peer->ends = true; /* now it may be in use */
}

bool mrt_desk_holds(const struct mrt_peer *peer)
{
    return peer->session && peer->session->granted > 0;
}

/* ------------------------------------------------------------- the store session */

static void lose_all(struct mrt_agent *agent, mrt_time now)
{
    struct mrt_desk *desk = &agent->desk;
    struct mrt_desk_session *session;
    struct mrt_desk_ticket *ticket, *next;
    desk->lives = false;
    desk->trusted_until = mrt_time_add(now, agent->lease);
    TAILQ_FOREACH (session, &desk->sessions, link) {
        if (session->state == MRT_DESK_LIVE) {
            session->state = MRT_DESK_NONE;
            mrt_heap_clear(&desk->timers, &session->timer);
            answer_with(session, 0, MRT_SESSION_LOST, MORTISE_ELOST,
                        "the agent has lost its session at the store");
        }
        mrt_desk_recall(session, true);
    }
    mrt_desk_drop_outbox(desk);
    HASH_ITER (hh, desk->tickets, ticket, next)
        mrt_desk_ticket_free(agent, ticket);
}

static void expire(struct mrt_desk_session *session)
{
    if (session->state == MRT_DESK_LIVE) {
        end_untold(session, "the client has not asked for its lease in time");
    } else if (session->state == MRT_DESK_STARTING) {
        const char *why = session->agent->driver.store_detail;
        session->state = MRT_DESK_NONE;
        answer_with(session, session->asked, MRT_FAILED, MORTISE_EUNREACHABLE,
                    *why ? why : "the agent has no session at its store yet");
    }
}

static void run_timers(struct mrt_agent *agent, mrt_time now)
{
    struct mrt_timer *timer;
    while ((timer = mrt_heap_pop(&agent->desk.timers, now))) {
        if (timer->kind == MRT_DESK_SESSION)
            expire((struct mrt_desk_session *)((char *)timer -
                                               offsetof(struct mrt_desk_session, timer)));
        else
            mrt_desk_ticket_timer(
                agent, (struct mrt_desk_ticket *)((char *)timer -
                                                  offsetof(struct mrt_desk_ticket, timer)));
    }
}

static bool is_waited_for(const struct mrt_desk *desk)
{
    const struct mrt_desk_session *session;
    TAILQ_FOREACH (session, &desk->sessions, link)
        if (session->state == MRT_DESK_STARTING)
            return true;
    return false;
}

void mrt_desk_check(struct mrt_agent *agent, mrt_time now)
{
    struct mrt_desk *desk = &agent->desk;
    struct mrt_engine_life life;
    struct mrt_desk_session *session;
    bool lives = mrt_engine_lives(agent->driver.engine, now, &life);
    if (desk->lives && (!lives || !mrt_id_equal(life.session, desk->life.session)))
        lose_all(agent, now);
    if (lives)
        desk->life = life;
    else if (is_waited_for(desk))
        mrt_engine_need_session(agent->driver.engine); /* a STOP that was delayed forgets it */
    if (lives && !desk->lives) {
        desk->lives = true;
        TAILQ_FOREACH (session, &desk->sessions, link)
            if (session->state == MRT_DESK_STARTING)
                answer_started(session);
    }
    run_timers(agent, now);
}
