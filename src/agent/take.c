/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames of client sessions: which commands are refused, and who does the others. START, RENEW
 * and STOP are the session's own (session.c). A command of a ticket goes to the store (desk.c), or
 * to the mutex that is handed on here (mutex_take.c).
 *
 * Invariant: a command is read only of a session that was begun in the store session that lives
 * now, and of a ticket of this session.
 */
#include "agent/take.h"

#include "agent/mutex.h"
#include "agent/peer.h"
#include "agent/rights.h"

#include "base/error.h"
#include "base/name.h"
#include "store/agent/frame.h"
#include "store/kit/refusal.h"

#include <string.h>

#define KIND_MAX 63

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
    const struct mrt_event event = {
        .type = MRT_FAILED, .serial = serial, .error = error, .detail = *detail ? detail : NULL};
    mrt_desk_answer(session, &event);
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

/* Those who wait in the agent count for the limit of the store's queue, too. */
static void count_waiters(struct mrt_agent *agent, const struct mrt_desk_ticket *ticket,
                          struct mrt_command *command)
{
    uint64_t here, most = command->queue_max;
    if (command->type != MRT_APPEND || most == 0)
        return;
    here = mrt_desk_mutex_waiters(agent, ticket->queue);
    command->queue_max = here < most ? most - here : 1;
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
    if (entry)
        ticket = entry;
    count_waiters(agent, ticket, &frame->command);
    if (!mrt_desk_pass(session, frame)) {
        if (entry)
            mrt_desk_ticket_free(agent, entry);
        fail(session, command->serial, MORTISE_ENOMEM);
    } else if (ticket) {
        mrt_desk_ticket_note(ticket, command);
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
        mrt_desk_start(session, &frame.command);
        return true;
    case MRT_RENEW:
        mrt_desk_renew(session, &frame.command);
        return true;
    case MRT_STOP:
        mrt_desk_stop(session, &frame.command);
        return true;
    default:
        if (session->state == MRT_DESK_LIVE && mrt_id_equal(session->id, frame.command.session))
            return take_command(session, &frame);
        const struct mrt_event event = mrt_answer_ended(&frame.command);
        mrt_desk_answer(session, &event);
        return true;
    }
}
