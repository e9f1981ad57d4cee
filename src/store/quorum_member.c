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
#include "store/quorum_internal.h"

#include <stdlib.h>
#include <string.h>

#define START_PAUSE (500 * MRT_MILLISECOND)
#define PART_PAUSE (100 * MRT_MILLISECOND)
#define PATIENCE (5 * MRT_MILLISECOND)

/* ------------------------------------------------------------------ asking */

static bool is_parting(const struct mrt_quorum_ask *ask)
{
    return ask->command.type == MRT_REMOVE && mrt_id_none(ask->ticket);
}

static void forget(struct mrt_store *store, struct mrt_quorum_ask *ask)
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

static struct mrt_quorum_ask *new_ask(struct mrt_quorum_member *member,
                                      const struct mrt_command *command)
{
    size_t size = command->queue ? strlen(command->queue) + 1 : 0;
    struct mrt_quorum_ask *ask = calloc(1, sizeof *ask + size);
    if (!ask)
        return NULL;
    ask->member = member;
    ask->command = *command;
    if (size > 0)
        ask->command.queue = memcpy(ask->queue, command->queue, size);
    TAILQ_INSERT_TAIL(&member->quorum->asks, ask, link);
    return ask;
}

bool mrt_quorum_ask(struct mrt_quorum_member *member, const struct mrt_command *command,
                    struct mrt_id ticket, uint64_t round)
{
    struct mrt_quorum_ask *ask = new_ask(member, command);
    if (!ask)
        return false;
    ask->ticket = ticket;
    ask->round = round;
    if (send(ask))
        return true;
    forget(member->quorum, ask);
    return false;
}

void mrt_quorum_forget_asks(struct mrt_store *store, const struct mrt_quorum_member *member)
{
    struct mrt_quorum_ask *ask, *next;
    TAILQ_FOREACH_SAFE(ask, &store->asks, link, next)
    if (!member || ask->member == member)
        forget(store, ask);
}

/* ------------------------------------------------------------------ letting go */

void mrt_quorum_part(struct mrt_quorum_member *member, const struct mrt_quorum_ticket *ticket)
{
    const struct mrt_command command = {
        .type = MRT_REMOVE, .ticket = ticket->token, .queue = ticket->queue, .claim = true};
    struct mrt_quorum_ask *ask = new_ask(member, &command);
    if (ask && !send(ask)) /* without memory the claim stays until the session's end */
        ask->again = mrt_time_now() + PART_PAUSE;
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
    member->starting = member->quorum->renewals;
    member->start_at = MRT_TIME_NEVER;
    if (mrt_quorum_ask(member, &(struct mrt_command){.type = MRT_START}, (struct mrt_id){0, 0}, 0))
        return;
    member->phase = MRT_QUORUM_DOWN;
    member->start_at = now + START_PAUSE;
}

static void down(struct mrt_quorum_member *member, mrt_time now)
{
    member->phase = MRT_QUORUM_DOWN;
    member->start_at = now + START_PAUSE;
    mrt_quorum_forget_asks(member->quorum, member);
    mrt_quorum_tickets_lose(member->quorum, member);
}

static void answered_start(struct mrt_quorum_member *member, const struct mrt_event *event,
                           mrt_time now)
{
    if (event->type == MRT_STARTED) {
        member->phase = MRT_QUORUM_UP;
        member->lease = event->lease;
        member->proof_lag = event->proof_lag;
        member->proof = member->starting;
        return;
    }
    if (event->type == MRT_FAILED)
        mrt_quorum_session_refused(member->quorum, event);
    down(member, now);
}

/* ------------------------------------------------------------------ hearing */

static struct mrt_quorum_ask *asked(const struct mrt_store *store, uint64_t serial)
{
    struct mrt_quorum_ask *ask;
    TAILQ_FOREACH (ask, &store->asks, link)
        if (ask->command.serial == serial && ask->again == MRT_TIME_NEVER)
            break;
    return ask;
}

static void answered(struct mrt_store *store, struct mrt_quorum_ask *ask,
                     const struct mrt_event *event, mrt_time now)
{
    struct mrt_quorum_member *member = ask->member;
    if (is_parting(ask) && event->type != MRT_REMOVED) {
        ask->again = now + PART_PAUSE;
        return;
    }
    TAILQ_REMOVE(&store->asks, ask, link);
    if (ask->command.type == MRT_START)
        answered_start(member, event, now);
    else if (ask->command.type == MRT_RENEW && event->type == MRT_RENEWED)
        member->proof = ask->round;
    else if (ask->command.type == MRT_STOP)
        member->phase = MRT_QUORUM_DOWN;
    else if (!mrt_id_none(ask->ticket))
        mrt_quorum_ticket_answer(store, ask, event, now);
    free(ask);
}

static void hear(struct mrt_store *store, const struct mrt_quorum_heard *heard, mrt_time now)
{
    const struct mrt_event *event = &heard->event;
    struct mrt_quorum_ask *ask = event->serial ? asked(store, event->serial) : NULL;
    if (ask)
        answered(store, ask, event, now);
    else if (event->type == MRT_SESSION_LOST &&
             mrt_id_equal(event->session, heard->member->session))
        down(heard->member, now);
    else if (event->type == MRT_WAKE || event->type == MRT_VIEW)
        mrt_quorum_tickets_due(store, now);
}

void mrt_quorum_hear_all(struct mrt_store *store, mrt_time now)
{
    struct mrt_quorum_heard *heard;
    while ((heard = STAILQ_FIRST(&store->heard))) {
        STAILQ_REMOVE_HEAD(&store->heard, link);
        hear(store, heard, now);
        free(heard);
    }
}

void mrt_quorum_members_due(struct mrt_store *store, mrt_time now)
{
    struct mrt_quorum_ask *ask, *next;
    for (unsigned i = 0; i < store->count; i++) {
        struct mrt_quorum_member *member = &store->members[i];
        if (store->wanted && member->phase == MRT_QUORUM_DOWN && now >= member->start_at)
            mrt_quorum_start_member(member, now);
    }
    TAILQ_FOREACH_SAFE(ask, &store->asks, link, next)
    if (ask->again <= now && !send(ask))
        ask->again = now + PART_PAUSE;
}

mrt_time mrt_quorum_members_next(const struct mrt_store *store)
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
