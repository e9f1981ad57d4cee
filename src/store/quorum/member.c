/*
 * One member of a quorum: what it is asked, and its session.
 *
 * A member has a session of its own, under an identity of its own. While the engine's session
 * is open, a member that is down is tried again, and one whose session was lost gets another.
 *
 * A claim that is given up is removed at the member until that is proven or its session is no
 * more, also if the answer to the claim never came or comes later: the removal stands behind
 * it. It goes by the token of its round, so it cannot harm the next one.
 */
#include "store/quorum/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define START_PAUSE (500 * MRT_MILLISECOND)
#define SHORT_PAUSE (30 * MRT_SECOND) /* its lease will be as short again */
#define AGAIN_PAUSE (100 * MRT_MILLISECOND)
#define PATIENCE (5 * MRT_MILLISECOND)

static const struct mrt_id nobody;

/* ------------------------------------------------------------------ asking */

static bool is_parting(const struct mrt_quorum_ask *ask)
{
    return ask->command.type == MRT_REMOVE && mrt_id_none(ask->ticket) && !ask->is_forgotten;
}

static void drop(struct mrt_quorum_store *store, struct mrt_quorum_ask *ask)
{
    TAILQ_REMOVE(&store->asks, ask, link);
    free(ask);
}

static bool send(struct mrt_quorum_ask *ask)
{
    struct mrt_quorum_member *member = ask->member;
    ask->again = MRT_TIME_NEVER;
    ask->command.serial = ++member->quorum->serial;
    ask->command.session = member->session;
    return member->ops->submit(member->store, &ask->command, mrt_time_now() + PATIENCE);
}

struct mrt_quorum_ask *mrt_quorum_new_ask(struct mrt_quorum_member *member, const char *queue)
{
    size_t size = queue ? strlen(queue) + 1 : 0;
    struct mrt_quorum_ask *ask = calloc(1, sizeof *ask + size);
    if (!ask)
        return NULL;
    ask->member = member;
    if (size > 0)
        memcpy(ask->queue, queue, size);
    return ask;
}

static void put(struct mrt_quorum_ask *ask, const struct mrt_command *command)
{
    ask->command = *command;
    if (command->queue)
        ask->command.queue = ask->queue;
    TAILQ_INSERT_TAIL(&ask->member->quorum->asks, ask, link);
}

bool mrt_quorum_ask(struct mrt_quorum_ask *ask, const struct mrt_command *command,
                    struct mrt_id ticket, uint64_t round)
{
    ask->ticket = ticket;
    ask->round = round;
    put(ask, command);
    if (send(ask))
        return true;
    drop(ask->member->quorum, ask);
    return false;
}

void mrt_quorum_forget_asks(struct mrt_quorum_store *store, const struct mrt_quorum_member *member)
{
    struct mrt_quorum_ask *ask, *next;
    TAILQ_FOREACH_SAFE (ask, &store->asks, link, next)
        if (ask->member == member && ask->again == MRT_TIME_NEVER && !ask->is_answered)
            ask->is_forgotten = true;
        else if (ask->member == member)
            drop(store, ask);
}

void mrt_quorum_free_asks(struct mrt_quorum_store *store)
{
    while (!TAILQ_EMPTY(&store->asks))
        drop(store, TAILQ_FIRST(&store->asks));
}

/* ------------------------------------------------------------------ letting go */

void mrt_quorum_part(struct mrt_quorum_member *member, struct mrt_quorum_ticket *ticket)
{
    const struct mrt_command command = {
        .type = MRT_REMOVE, .ticket = ticket->token, .queue = ticket->queue, .claim = true};
    struct mrt_quorum_ask *ask = ticket->partings[member->index];
    ticket->partings[member->index] = NULL;
    put(ask, &command);
    if (!send(ask))
        ask->again = mrt_time_now() + AGAIN_PAUSE;
}

bool mrt_quorum_is_parting(const struct mrt_quorum_member *member, struct mrt_id token)
{
    const struct mrt_quorum_ask *ask;
    TAILQ_FOREACH (ask, &member->quorum->asks, link)
        if (ask->member == member && is_parting(ask) && mrt_id_equal(ask->command.ticket, token))
            return true;
    return false;
}

/* ------------------------------------------------------------------ its session */

void mrt_quorum_start_member(struct mrt_quorum_member *member, mrt_time now)
{
    member->phase = MRT_QUORUM_STARTING;
    member->session = mrt_quorum_identity(member->quorum);
    member->starting = now;
    member->start_at = MRT_TIME_NEVER;
    struct mrt_quorum_ask *ask = mrt_quorum_new_ask(member, NULL);
    if (!ask)
        mrt_quorum_session_refused(member->quorum, &(struct mrt_event){.error = MORTISE_ENOMEM});
    else if (mrt_quorum_ask(ask, &(struct mrt_command){.type = MRT_START}, nobody, 0))
        return;
    member->phase = MRT_QUORUM_DOWN;
    member->start_at = now + START_PAUSE;
}

/* Without memory for it the session dies by its lease. */
void mrt_quorum_stop_member(struct mrt_quorum_member *member)
{
    struct mrt_quorum_ask *ask = mrt_quorum_new_ask(member, NULL);
    member->phase = ask ? MRT_QUORUM_STOPPING : MRT_QUORUM_DOWN;
    if (!ask)
        return;
    put(ask, &(struct mrt_command){.type = MRT_STOP});
    if (!send(ask))
        ask->again = mrt_time_now() + AGAIN_PAUSE;
}

static void down(struct mrt_quorum_member *member, mrt_time now)
{
    member->phase = MRT_QUORUM_DOWN;
    member->lost = false;
    member->start_at = now + START_PAUSE;
    mrt_quorum_forget_asks(member->quorum, member);
    mrt_quorum_tickets_lose(member->quorum, member);
}

/* Whether what the member grants could end before what the session was promised when it began. */
static bool is_too_short(const struct mrt_quorum_store *store, mrt_time lease)
{
    return store->started && lease > 0 && (store->lease == 0 || lease < store->lease);
}

static void answered_start(struct mrt_quorum_member *member, const struct mrt_event *event,
                           mrt_time now)
{
    if (event->type == MRT_STARTED && is_too_short(member->quorum, event->lease)) {
        mrt_quorum_stop_member(member);
        member->start_at = mrt_time_add(now, SHORT_PAUSE);
        return;
    }
    if (event->type == MRT_STARTED) {
        member->phase = MRT_QUORUM_UP;
        member->lease = event->lease;
        member->proof_lag = event->proof_lag;
        member->proof = event->proven > 0 ? event->proven : member->starting;
        member->heard = member->proof;
        member->sign_count = 0;
        return;
    }
    if (event->type == MRT_FAILED)
        mrt_quorum_session_refused(member->quorum, event);
    down(member, now);
}

/* ------------------------------------------------------------------ its signs of life */

void mrt_quorum_renew_member(struct mrt_quorum_member *member)
{
    struct mrt_quorum_ask *ask = mrt_quorum_new_ask(member, NULL);
    if (!ask)
        return;
    ask->sent = member->quorum->renewed_at;
    mrt_quorum_ask(ask, &(struct mrt_command){.type = MRT_RENEW}, nobody, member->quorum->renewals);
}

static mrt_time later(mrt_time one, mrt_time other)
{
    return one > other ? one : other;
}

/* Notes the proof that this answer is at this member, by the rule of core/session.c. */
static void renewed(struct mrt_quorum_member *member, const struct mrt_quorum_ask *ask)
{
    mrt_time lag = member->proof_lag;
    member->heard = later(member->heard, ask->sent);
    member->proof = later(member->proof, lag > 0 ? ask->answer.proven : ask->sent);
    for (unsigned i = 0; i < member->sign_count && i < MRT_QUORUM_SIGNS; i++)
        if (ask->sent - member->signs[i].answered >= lag)
            member->proof = later(member->proof, member->signs[i].sent);
    member->signs[member->sign_count % MRT_QUORUM_SIGNS].sent = ask->sent;
    member->signs[member->sign_count++ % MRT_QUORUM_SIGNS].answered = ask->answered;
}

/* ------------------------------------------------------------------ hearing */

/* Tells it when no majority can be reached. */
static void hear_unreachable(struct mrt_quorum_member *member, const struct mrt_event *event)
{
    struct mrt_quorum_store *store = member->quorum;
    unsigned left = 0;
    member->unreachable = true;
    for (unsigned i = 0; i < store->count; i++)
        left += !store->members[i].unreachable;
    if (left < store->majority)
        mrt_quorum_tell(store, (struct mrt_event){.type = MRT_FAILED,
                                                  .error = MORTISE_EUNREACHABLE,
                                                  .detail = event->detail});
}

void mrt_quorum_hear(struct mrt_quorum_member *member, const struct mrt_event *event)
{
    struct mrt_quorum_ask *ask;
    bool unreachable = event->type == MRT_FAILED && event->error == MORTISE_EUNREACHABLE;
    if (event->type == MRT_SESSION_LOST && mrt_id_equal(event->session, member->session))
        member->lost = true;
    if (event->type == MRT_WAKE)
        mrt_quorum_ticket_told(member, event->ticket);
    if (event->serial == 0 && unreachable)
        hear_unreachable(member, event);
    else if (!unreachable && event->type != MRT_UNKNOWN)
        member->unreachable = false;
    if (event->serial == 0)
        return;
    TAILQ_FOREACH (ask, &member->quorum->asks, link)
        if (ask->command.serial == event->serial)
            break;
    if (!ask)
        return;
    ask->is_answered = true;
    ask->answered = mrt_time_now();
    ask->answer = *event;
    snprintf(ask->detail, sizeof ask->detail, "%s", event->detail ? event->detail : "");
    ask->answer.detail = ask->detail;
}

/* What has to be proven is asked again until it is; the end of a session that is to be followed
   by another is not, for that has another identity. */
static bool is_unproven(const struct mrt_quorum_store *store, const struct mrt_quorum_ask *ask)
{
    if (ask->command.type == MRT_STOP)
        return ask->answer.type != MRT_STOPPED && !store->wanted;
    return is_parting(ask) && ask->answer.type != MRT_REMOVED;
}

static void answered(struct mrt_quorum_store *store, struct mrt_quorum_ask *ask, mrt_time now)
{
    struct mrt_quorum_member *member = ask->member;
    const struct mrt_event *event = &ask->answer;
    if (ask->is_forgotten) {
        drop(store, ask);
        return;
    }
    if (event->type == MRT_FAILED && event->error == MORTISE_ELOST) {
        down(member, now); /* with all that it was asked */
        return;
    }
    if (is_unproven(store, ask)) {
        ask->is_answered = false;
        ask->again = now + AGAIN_PAUSE;
        return;
    }
    TAILQ_REMOVE(&store->asks, ask, link);
    if (ask->command.type == MRT_START)
        answered_start(member, event, now);
    else if (ask->command.type == MRT_RENEW && event->type == MRT_RENEWED)
        renewed(member, ask);
    else if (ask->command.type == MRT_STOP)
        member->phase = MRT_QUORUM_DOWN;
    else if (!mrt_id_none(ask->ticket))
        mrt_quorum_ticket_answer(store, ask);
    free(ask);
}

static struct mrt_quorum_ask *first_answered(const struct mrt_quorum_store *store)
{
    struct mrt_quorum_ask *ask;
    TAILQ_FOREACH (ask, &store->asks, link)
        if (ask->is_answered)
            break;
    return ask;
}

bool mrt_quorum_hear_all(struct mrt_quorum_store *store, mrt_time now)
{
    struct mrt_quorum_ask *ask;
    bool any = false;
    for (unsigned i = 0; i < store->count; i++) {
        if (!store->members[i].lost)
            continue;
        down(&store->members[i], now);
        any = true;
    }
    while ((ask = first_answered(store))) {
        answered(store, ask, now);
        any = true;
    }
    return mrt_quorum_tickets_doubt(store) || any; /* it may be newer than the answers */
}

void mrt_quorum_members_due(struct mrt_quorum_store *store, mrt_time now)
{
    struct mrt_quorum_ask *ask, *next;
    for (unsigned i = 0; i < store->count; i++) {
        struct mrt_quorum_member *member = &store->members[i];
        if (store->wanted && member->phase == MRT_QUORUM_DOWN && now >= member->start_at)
            mrt_quorum_start_member(member, now);
    }
    TAILQ_FOREACH_SAFE (ask, &store->asks, link, next)
        if (ask->again <= now && !send(ask))
            ask->again = now + AGAIN_PAUSE;
}

mrt_time mrt_quorum_members_next(const struct mrt_quorum_store *store)
{
    mrt_time next = MRT_TIME_NEVER;
    const struct mrt_quorum_ask *ask;
    for (unsigned i = 0; i < store->count; i++) {
        const struct mrt_quorum_member *member = &store->members[i];
        next = mrt_time_min(next, member->ops->next(member->store));
        if (store->wanted && member->phase == MRT_QUORUM_DOWN)
            next = mrt_time_min(next, member->start_at);
    }
    TAILQ_FOREACH (ask, &store->asks, link)
        next = mrt_time_min(next, ask->again);
    return next;
}
