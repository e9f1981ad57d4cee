/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client sessions: see desk.h for the rules.
 *
 *   NONE -> STARTING -> LIVE -> STOPPING -> NONE
 *
 * Invariant: a session that is LIVE was begun in the store session that lives now. The comparison
 * is made before each frame is read, so no answer joins what belongs to two store sessions.
 */
#include "agent/mutex.h"
#include "agent/peer.h"
#include "agent/process.h"
#include "agent/rights.h"
#include "base/error.h"
#include "base/name.h"
#include "store/agent/frame.h"
#include "store/agent/wire.h"
#include "store/kit/refusal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define START_TIMEOUT MRT_SECOND /* then a START is answered: the client comes again */
#define KIND_MAX 63
#define COMMANDS_MAX 16 /* under way, of a connection of a user who has limits */

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

static void start(struct mrt_desk_session *session, const struct mrt_command *command)
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

static void renew(struct mrt_desk_session *session, const struct mrt_command *command)
{
    if (session->state != MRT_DESK_LIVE || !mrt_id_equal(session->id, command->session)) {
        answer_with(session, command->serial, MRT_FAILED, MORTISE_ELOST, MRT_REFUSAL_ENDED);
        return;
    }
    set_timer(session, session->agent->lease);
    answer_with(session, command->serial, MRT_RENEWED, 0, NULL);
}

static void stop(struct mrt_desk_session *session, const struct mrt_command *command)
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

/* ----------------------------------------------------------------------- frames */

/* Whether a command that has the identity of a ticket can be of it. */
static bool is_of_ticket(const struct mrt_desk_ticket *ticket,
                         const struct mrt_frame_command *frame)
{
    const struct mrt_command *command = &frame->command;
    return ticket->observes == (command->type == MRT_OBSERVE) &&
           strlen(ticket->queue) == frame->queue.size &&
           memcmp(ticket->queue, frame->queue.text, frame->queue.size) == 0;
}

/* Why a command is refused before it gets to the store; 0: it is not. The particulars are noted. */
static int check(const struct mrt_peer *peer, const struct mrt_desk_ticket *ticket,
                 const struct mrt_frame_command *frame)
{
    const struct mrt_command *command = &frame->command;
    size_t prefix = strlen(peer->agent->prefix) + strlen(peer->space);
    bool has_kind = command->type == MRT_APPEND;
    if (has_kind && (frame->kind.size > KIND_MAX || frame->kind.size == 0 ||
                     !mrt_text_is_clean(frame->kind.text, frame->kind.size) ||
                     command->weight == 0 || command->weight > command->capacity ||
                     (command->claim && command->weight != command->capacity) ||
                     command->delay > mrt_time_from_ms(MORTISE_LOCK_DELAY_MAX_MS)))
        return mrt_error(MORTISE_EINVALID, "a ticket without kind, weight or capacity");
    if (command->value_size > MORTISE_VALUE_MAX)
        return mrt_error(MORTISE_EINVALID, "a value has at most %d bytes", MORTISE_VALUE_MAX);
    if (mrt_id_none(command->ticket))
        return mrt_error(MORTISE_EINVALID, "a ticket without identity");
    if (ticket && !is_of_ticket(ticket, frame))
        return mrt_error(MORTISE_EINVALID, "the ticket is of another name, or none");
    if (frame->queue.size == prefix || !mrt_text_is_clean(frame->queue.text, frame->queue.size))
        return mrt_error(MORTISE_ENAME, "the name is empty, no UTF-8, or has control characters");
    return MORTISE_OK;
}

static void fail(struct mrt_desk_session *session, uint64_t serial, int error)
{
    const char *detail = mortise_error_detail();
    answer_with(session, serial, MRT_FAILED, error, *detail ? detail : NULL);
}

/* The answer to a command about a ticket that this session does not have. */
static void answer_absent(struct mrt_desk_session *session, const struct mrt_command *command)
{
    struct mrt_event event = mrt_answer_ended(command);
    if (command->type == MRT_DETACH || command->type == MRT_APPEND) {
        event = mrt_answer_to(command, MRT_FAILED);
        event.error = command->adopt ? MORTISE_ENOTHELD : MORTISE_EINVALID;
        event.detail = "the ticket is of another session";
    }
    mrt_desk_answer(session, &event);
}

static bool needs_entry(const struct mrt_command *command)
{
    return command->type == MRT_APPEND || (command->type == MRT_OBSERVE && !command->once);
}

static bool needs_ticket(const struct mrt_command *command)
{
    return command->type >= MRT_REFRESH && command->type <= MRT_DETACH;
}

/* A ticket, or what is observed, counted for a user who has limits: 0, or an error. */
static int new_entry(struct mrt_desk_session *session, const struct mrt_frame_command *frame,
                     struct mrt_desk_ticket **entry)
{
    struct mrt_peer *peer = session->peer;
    struct mrt_desk_ticket *ticket = mrt_desk_ticket_new(session, frame);
    if (!ticket)
        return MORTISE_ENOMEM;
    *entry = ticket;
    if (!peer->user->limits)
        return MORTISE_OK;
    ticket->user = peer->user;
    ticket->usage = mrt_user_take(session->agent, peer->user, peer->pid, ticket->queue);
    if (!ticket->usage) {
        mrt_desk_ticket_free(session->agent, ticket);
        return MORTISE_EFULL;
    }
    ticket->waits = !ticket->observes;
    if (ticket->observes)
        mrt_usage_settle(ticket->usage);
    else
        mrt_desk_ticket_limit(ticket);
    return MORTISE_OK;
}

/* MORTISE_EFULL if as many wait for it in the agent as the client allows in the queue: then the
   entry is freed. */
static int compare_waiters(struct mrt_agent *agent, struct mrt_desk_ticket *entry, uint64_t most)
{
    if (mrt_desk_mutex_waiters(agent, entry->queue) < most)
        return MORTISE_OK;
    int error = mrt_error(MORTISE_EFULL, MRT_REFUSAL_FULL, most, entry->queue);
    mrt_desk_ticket_free(agent, entry);
    return error;
}

/* A command of a session that lives; false: no memory. */
static bool take_command(struct mrt_desk_session *session, struct mrt_frame_command *frame)
{
    struct mrt_agent *agent = session->agent;
    const struct mrt_command *command = &frame->command;
    struct mrt_desk_ticket *ticket = mrt_desk_find(&agent->desk, command->ticket), *entry = NULL;
    bool has_limits = session->peer->user->limits;
    char full[MRT_FULL_NAME_SIZE];
    if ((ticket && (ticket->session != session || ticket->is_leaving)) ||
        (!ticket && has_limits && needs_ticket(command))) {
        answer_absent(session, command);
        return true;
    }
    mrt_error_clear();
    int error = mrt_desk_place_name(session->peer, &frame->queue, full);
    if (error == MORTISE_OK)
        error = check(session->peer, ticket, frame);
    if (error == MORTISE_OK && has_limits)
        error = mrt_desk_permit(session, ticket, frame);
    if (error == MORTISE_OK && agent->drains && command->type == MRT_APPEND && !ticket)
        error = mrt_error(MORTISE_EUNREACHABLE, "the agent is ending");
    if (error == MORTISE_OK && !ticket && needs_entry(command))
        error = new_entry(session, frame, &entry);
    if (error == MORTISE_OK && entry && command->queue_max > 0)
        error = compare_waiters(agent, entry, command->queue_max);
    bool is_mutex = ticket && ticket->mutex;
    if (error == MORTISE_OK && is_mutex && !mrt_desk_mutex_take(ticket->mutex, command))
        error = MORTISE_ENOMEM;
    if (error != MORTISE_OK) {
        fail(session, command->serial, error);
        return true;
    }
    if (is_mutex || (entry && mrt_desk_mutex_begin(entry, frame)))
        return true;
    if (command->type == MRT_OBSERVE && !command->once)
        mrt_desk_find(&agent->desk, command->ticket)->is_asked = true;
    if (!mrt_desk_pass(session, frame)) {
        if (entry)
            mrt_desk_ticket_free(agent, entry);
        fail(session, command->serial, MORTISE_ENOMEM);
    } else if (ticket || entry) {
        mrt_desk_ticket_note(ticket ? ticket : entry, command);
    }
    return true;
}

bool mrt_desk_take(struct mrt_peer *peer, const struct mrt_resp_command *words)
{
    struct mrt_desk_session *session = peer->session;
    struct mrt_frame_command frame;
    if (mrt_desk_operate(peer, words))
        return true;
    if (!mrt_frame_read_command(words, &frame))
        return false;
    peer->agent->counters.commands++;
    mrt_desk_check(peer->agent, mrt_time_now());
    switch (frame.command.type) {
    case MRT_START:
        start(session, &frame.command);
        return true;
    case MRT_RENEW:
        renew(session, &frame.command);
        return true;
    case MRT_STOP:
        stop(session, &frame.command);
        return true;
    default:
        if (session->state == MRT_DESK_LIVE && mrt_id_equal(session->id, frame.command.session))
            return take_command(session, &frame);
        const struct mrt_event event = mrt_answer_ended(&frame.command);
        mrt_desk_answer(session, &event);
        return true;
    }
}
