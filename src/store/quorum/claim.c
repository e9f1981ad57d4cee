/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One ticket of a quorum: a claim at a majority of the members.
 *
 *   APPEND    a round: each member that is up gets a try at the same time. The claim is held if
 *             a majority have it within the limit. Otherwise all members are requested to release
 *             it, also those that have not answered. The next round follows after a pause of
 *             random length, longer than the round was, because two clients that share the
 *             members between them must not go on doing so.
 *   REFRESH   of a ticket that waits: the next round. Of a ticket that is held: the members that
 *             have it are asked whether they still do
 *   REMOVE    all members are requested to release it
 *
 * Each round has an identity of its own, so a late release of an old round cannot touch a newer
 * one.
 *
 * Only a member that has the newest renewal counts (session.c). A member's answer that comes after
 * the majority's counts too; an answer that comes after the round was given up does not.
 *
 * A member that proves claims with its session (redis/claim.c) reports a claim that is gone. It
 * is not counted any longer, and the ticket is looked at. At other members a holder looks whenever
 * it renews.
 *
 * Source: the Redlock algorithm, redis.io/docs: "Distributed Locks with Redis".
 */
#include "store/quorum/claim.h"

#include "base/assert.h"
#include "core/rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAUSE (60 * MRT_MILLISECOND) /* at least: longer than a round by default may take */
#define LOOK_AGAIN (5 * MRT_SECOND)  /* at most: a third of the lease */

/* ------------------------------------------------------------------ parts */

static struct mrt_quorum_ticket *find_ticket(const struct mrt_quorum_store *store, struct mrt_id id)
{
    struct mrt_quorum_ticket *ticket;
    TAILQ_FOREACH (ticket, &store->tickets, link)
        if (mrt_id_equal(ticket->command.ticket, id))
            break;
    return ticket;
}

static struct mrt_quorum_ticket *new_ticket(struct mrt_quorum_store *store,
                                            const struct mrt_command *command)
{
    size_t size = strlen(command->queue) + 1;
    struct mrt_quorum_ticket *ticket = calloc(1, sizeof *ticket + size);
    if (!ticket)
        return NULL;
    memcpy(ticket->queue, command->queue, size);
    TAILQ_INSERT_TAIL(&store->tickets, ticket, link);
    return ticket;
}

static void free_ticket(struct mrt_quorum_store *store, struct mrt_quorum_ticket *ticket)
{
    for (unsigned i = 0; i < store->count; i++)
        free(ticket->removals[i]);
    TAILQ_REMOVE(&store->tickets, ticket, link);
    free(ticket);
}

static void answer_ticket(struct mrt_quorum_store *store, struct mrt_quorum_ticket *ticket,
                          struct mrt_event event)
{
    event.serial = ticket->command.serial;
    event.session = ticket->command.session;
    event.ticket = ticket->command.ticket;
    ticket->busy = false;
    mrt_quorum_deliver(store, event);
}

static bool is_proven(const struct mrt_quorum_store *store, unsigned member)
{
    return store->members[member].proof >= store->proven;
}

static unsigned with(const struct mrt_quorum_store *store, const struct mrt_quorum_ticket *ticket,
                     enum mrt_quorum_claim claim)
{
    unsigned count = 0;
    for (unsigned i = 0; i < store->count; i++)
        count += ticket->claims[i] == claim && is_proven(store, i);
    return count;
}

/* Removes the claim at this member, again and again until that is proven or the member's session
   has ended. */
static void remove_claim(struct mrt_quorum_member *member, struct mrt_quorum_ticket *ticket)
{
    const struct mrt_command command = {
        .type = MRT_REMOVE, .ticket = ticket->token, .queue = ticket->queue, .claim = true};
    struct mrt_quorum_request *request = ticket->removals[member->index];
    MRT_ASSERT(request);
    ticket->removals[member->index] = NULL;
    mrt_quorum_request_insist(request, &command);
}

static void let_go(struct mrt_quorum_store *store, struct mrt_quorum_ticket *ticket)
{
    for (unsigned i = 0; i < store->count; i++) {
        bool sure = ticket->claims[i] == MRT_CLAIM_HAS;
        if (sure || ticket->claims[i] != MRT_CLAIM_NONE)
            remove_claim(&store->members[i], ticket);
        ticket->claims[i] = MRT_CLAIM_NONE;
    }
}

/* ------------------------------------------------------------------ outcomes */

/* The pause before the next round. Another client that shares the members must be able to finish
   its round within it, and others wait for the same members that this round waited for. So the
   pause is the time this round took and a fifth of it. A random time is added, of up to as much
   again, and after further failures of up to two and four times as much. */
static mrt_time pause_after(const struct mrt_quorum_ticket *ticket, mrt_time now)
{
    mrt_time took = mrt_time_min(now, ticket->decide_at) - ticket->asked_at;
    mrt_time least = took + took / 5 > PAUSE ? took + took / 5 : PAUSE;
    mrt_time spread = least << (ticket->failures < 2 ? ticket->failures : 2);
    struct mrt_id chance;
    if (!mrt_id_random(&chance))
        chance = ticket->token;
    return least + (mrt_time)(chance.low % (uint64_t)spread);
}

static void show(struct mrt_quorum_store *store, struct mrt_quorum_ticket *ticket, bool granted,
                 mrt_time now)
{
    struct mrt_event event = {.type = MRT_VIEW, .fence_span = UINT32_MAX};
    event.weight_ahead = granted ? 0 : 1;
    event.others_behind = granted; /* a waiter leaves no trace */
    event.recheck = store->lease > 0 ? mrt_time_min(LOOK_AGAIN, store->lease / 3) : LOOK_AGAIN;
    if (!granted) {
        event.recheck = pause_after(ticket, now);
        ticket->failures++;
    }
    ticket->step = granted ? MRT_QUORUM_HELD : MRT_QUORUM_IDLE;
    answer_ticket(store, ticket, event);
}

/* Nobody was in the way: too few answered in time, or would not have it. */
static void refuse(struct mrt_quorum_store *store, struct mrt_quorum_ticket *ticket)
{
    if (ticket->error == 0) {
        ticket->error = MORTISE_EUNREACHABLE;
        snprintf(ticket->detail, sizeof ticket->detail,
                 "fewer than %u of %u stores answered in time", store->majority, store->count);
    }
    answer_ticket(
        store, ticket,
        (struct mrt_event){.type = MRT_FAILED, .error = ticket->error, .detail = ticket->detail});
    free_ticket(store, ticket);
}

static void lost_round(struct mrt_quorum_store *store, struct mrt_quorum_ticket *ticket,
                       mrt_time now)
{
    let_go(store, ticket);
    if (ticket->command.type == MRT_APPEND && ticket->blocked == 0) {
        refuse(store, ticket);
    } else if (ticket->command.try_only) {
        answer_ticket(store, ticket, (struct mrt_event){.type = MRT_BLOCKED});
        free_ticket(store, ticket);
    } else {
        show(store, ticket, false, now);
    }
}

static void decide_round(struct mrt_quorum_store *store, struct mrt_quorum_ticket *ticket,
                         mrt_time now)
{
    unsigned has = with(store, ticket, MRT_CLAIM_HAS), open = with(store, ticket, MRT_CLAIM_ASKED);
    if (now >= ticket->decide_at)
        open = 0;
    if (has >= store->majority) {
        ticket->failures = 0;
        show(store, ticket, true, now);
    } else if (has + open < store->majority) {
        lost_round(store, ticket, now);
    }
}

/* A member whose answer is missing may still have the claim: the next look asks it again. */
static void decide_look(struct mrt_quorum_store *store, struct mrt_quorum_ticket *ticket,
                        mrt_time now)
{
    unsigned asked = with(store, ticket, MRT_CLAIM_ASKED), has = with(store, ticket, MRT_CLAIM_HAS);
    unsigned perhaps = with(store, ticket, MRT_CLAIM_PERHAPS);
    if (has + asked + perhaps < store->majority) {
        let_go(store, ticket);
        answer_ticket(store, ticket, (struct mrt_event){.type = MRT_GONE});
        free_ticket(store, ticket);
        return;
    }
    if (has < store->majority && asked > 0 && now < ticket->decide_at)
        return;
    for (unsigned i = 0; i < store->count; i++)
        if (ticket->claims[i] == MRT_CLAIM_ASKED)
            ticket->claims[i] = MRT_CLAIM_PERHAPS;
    if (has >= store->majority) {
        show(store, ticket, true, now);
    } else {
        ticket->step = MRT_QUORUM_HELD;
        answer_ticket(store, ticket, (struct mrt_event){.type = MRT_UNKNOWN});
    }
}

/* Proven by all members that answer in time; those that do not must be a minority. */
static void decide_leave(struct mrt_quorum_store *store, struct mrt_quorum_ticket *ticket,
                         mrt_time now)
{
    unsigned removal = 0;
    for (unsigned i = 0; i < store->count; i++)
        removal += mrt_quorum_is_removing(&store->members[i], ticket->token);
    if (removal > 0 && now < ticket->decide_at)
        return;
    bool gone = removal < store->majority;
    answer_ticket(store, ticket, (struct mrt_event){.type = gone ? MRT_REMOVED : MRT_UNKNOWN});
    if (gone)
        free_ticket(store, ticket);
}

static void decide(struct mrt_quorum_store *store, struct mrt_quorum_ticket *ticket, mrt_time now)
{
    if (!ticket->busy)
        return;
    if (ticket->step == MRT_QUORUM_CLAIMING)
        decide_round(store, ticket, now);
    else if (ticket->step == MRT_QUORUM_LOOKING)
        decide_look(store, ticket, now);
    else if (ticket->step == MRT_QUORUM_LEAVING)
        decide_leave(store, ticket, now);
}

/* ------------------------------------------------------------------ commands */

static void send_to(struct mrt_quorum_member *member, struct mrt_quorum_ticket *ticket,
                    const struct mrt_command *command)
{
    enum mrt_quorum_claim *claim = &ticket->claims[member->index];
    struct mrt_quorum_request **removal = &ticket->removals[member->index];
    struct mrt_quorum_request *request = mrt_quorum_request_new(member, ticket->queue);
    if (!*removal)
        *removal = mrt_quorum_request_new(member, ticket->queue);
    if (!request || !*removal) {
        ticket->error = MORTISE_ENOMEM;
        free(request);
        return;
    }
    enum mrt_quorum_claim was = *claim;
    *claim = MRT_CLAIM_ASKED;
    if (!mrt_quorum_request_send(request, command, ticket->command.ticket, ticket->round))
        *claim = was;
}

static void send_all(struct mrt_quorum_store *store, struct mrt_quorum_ticket *ticket,
                     enum mrt_command_type type, enum mrt_quorum_claim of, mrt_time now)
{
    const struct mrt_command command = {.type = type,
                                        .ticket = ticket->token,
                                        .queue = ticket->queue,
                                        .kind = "exclusive",
                                        .capacity = 1,
                                        .weight = 1,
                                        .claim = true,
                                        .try_only = type == MRT_APPEND};
    ticket->round = ++store->rounds;
    ticket->asked_at = now;
    ticket->decide_at = now + mrt_quorum_limit(store);
    for (unsigned i = 0; i < store->count; i++) {
        if (ticket->claims[i] < of || store->members[i].phase != MRT_QUORUM_UP)
            continue;
        send_to(&store->members[i], ticket, &command);
    }
}

static void begin_step(struct mrt_quorum_store *store, struct mrt_quorum_ticket *ticket,
                       mrt_time now)
{
    bool held = ticket->step == MRT_QUORUM_HELD;
    if (ticket->command.type == MRT_REMOVE) {
        ticket->step = MRT_QUORUM_LEAVING;
        ticket->decide_at = now + mrt_quorum_limit(store);
        let_go(store, ticket);
    } else if (held) {
        ticket->step = MRT_QUORUM_LOOKING;
        send_all(store, ticket, MRT_REFRESH, MRT_CLAIM_PERHAPS, now);
    } else {
        ticket->step = MRT_QUORUM_CLAIMING;
        ticket->token = mrt_quorum_identity(store);
        ticket->error = 0;
        ticket->detail[0] = '\0';
        ticket->blocked = 0;
        send_all(store, ticket, MRT_APPEND, MRT_CLAIM_NONE, now);
    }
}

void mrt_quorum_ticket_submit(struct mrt_quorum_store *store, const struct mrt_command *command,
                              mrt_time now)
{
    struct mrt_quorum_ticket *ticket = find_ticket(store, command->ticket);
    struct mrt_event event = {
        .serial = command->serial, .session = command->session, .ticket = command->ticket};
    if (!ticket && command->type != MRT_APPEND) {
        event.type = command->type == MRT_REMOVE ? MRT_REMOVED : MRT_GONE;
    } else if (command->type == MRT_APPEND && (command->capacity != 1 || command->value)) {
        event.type = MRT_FAILED;
        event.error = MORTISE_ENOTSUPPORTED;
        event.detail = "a quorum of stores keeps locks of one holder only, without values";
    } else {
        if (!ticket)
            ticket = new_ticket(store, command);
        event.type = MRT_FAILED;
        event.error = MORTISE_ENOMEM;
    }
    if (!ticket || event.detail) {
        mrt_quorum_deliver(store, event);
        return;
    }
    ticket->command = *command;
    ticket->busy = true;
    begin_step(store, ticket, now);
}

/* ------------------------------------------------------------------ answers */

static bool is_ours(const struct mrt_event *event)
{
    return event->type == MRT_VIEW && mrt_rule_grants(event->weight_ahead, 1, 1);
}

void mrt_quorum_ticket_answer(struct mrt_quorum_store *store,
                              const struct mrt_quorum_request *request)
{
    const struct mrt_event *event = &request->answer;
    struct mrt_quorum_ticket *ticket = find_ticket(store, request->ticket);
    if (!ticket || ticket->round != request->round || ticket->step == MRT_QUORUM_IDLE ||
        ticket->step == MRT_QUORUM_LEAVING)
        return; /* it has been given up, and the removal is sent behind its requests */
    enum mrt_quorum_claim *claim = &ticket->claims[request->member->index];
    bool refused = event->type == MRT_FAILED && ticket->step == MRT_QUORUM_LOOKING;
    if (is_ours(event)) {
        *claim = MRT_CLAIM_HAS;
    } else if (event->type == MRT_UNKNOWN || event->type == MRT_VIEW || refused) {
        *claim = MRT_CLAIM_PERHAPS;
    } else {
        *claim = MRT_CLAIM_NONE;
        ticket->blocked += event->type == MRT_BLOCKED;
    }
    if (event->type == MRT_FAILED) {
        ticket->error = event->error;
        snprintf(ticket->detail, sizeof ticket->detail, "%s", event->detail ? event->detail : "");
    }
}

void mrt_quorum_tickets_due(struct mrt_quorum_store *store, mrt_time now)
{
    struct mrt_quorum_ticket *ticket, *next;
    TAILQ_FOREACH_SAFE (ticket, &store->tickets, link, next)
        decide(store, ticket, now);
}

mrt_time mrt_quorum_tickets_next(const struct mrt_quorum_store *store)
{
    mrt_time next = MRT_TIME_NEVER;
    const struct mrt_quorum_ticket *ticket;
    TAILQ_FOREACH (ticket, &store->tickets, link)
        if (ticket->busy)
            next = mrt_time_min(next, ticket->decide_at);
    return next;
}

void mrt_quorum_ticket_wake(struct mrt_quorum_store *store, const struct mrt_quorum_ticket *ticket)
{
    if (ticket->step == MRT_QUORUM_HELD)
        mrt_quorum_deliver(store, (struct mrt_event){.type = MRT_WAKE,
                                                     .session = store->session,
                                                     .ticket = ticket->command.ticket});
}

void mrt_quorum_ticket_doubt(const struct mrt_quorum_member *member, struct mrt_id token)
{
    struct mrt_quorum_ticket *ticket;
    TAILQ_FOREACH (ticket, &member->quorum->tickets, link)
        if (mrt_id_equal(ticket->token, token))
            ticket->doubted |= 1U << member->index;
}

bool mrt_quorum_tickets_act(struct mrt_quorum_store *store)
{
    struct mrt_quorum_ticket *ticket;
    bool any = false;
    TAILQ_FOREACH (ticket, &store->tickets, link) {
        for (unsigned i = 0; i < store->count; i++)
            if (ticket->doubted >> i & 1 && ticket->claims[i] == MRT_CLAIM_HAS)
                ticket->claims[i] = MRT_CLAIM_PERHAPS;
        if (ticket->doubted)
            mrt_quorum_ticket_wake(store, ticket);
        any |= ticket->doubted != 0;
        ticket->doubted = 0;
    }
    return any;
}

void mrt_quorum_tickets_lose(struct mrt_quorum_store *store, const struct mrt_quorum_member *member)
{
    struct mrt_quorum_ticket *ticket;
    TAILQ_FOREACH (ticket, &store->tickets, link) {
        bool had = ticket->claims[member->index] != MRT_CLAIM_NONE;
        ticket->claims[member->index] = MRT_CLAIM_NONE;
        if (had)
            mrt_quorum_ticket_wake(store, ticket);
    }
}

void mrt_quorum_tickets_free(struct mrt_quorum_store *store)
{
    struct mrt_quorum_ticket *ticket;
    while ((ticket = TAILQ_FIRST(&store->tickets))) {
        if (ticket->busy)
            answer_ticket(store, ticket, (struct mrt_event){.type = MRT_UNKNOWN});
        free_ticket(store, ticket);
    }
}

void mrt_quorum_tickets_drop(struct mrt_quorum_store *store)
{
    while (!TAILQ_EMPTY(&store->tickets))
        free_ticket(store, TAILQ_FIRST(&store->tickets));
}
