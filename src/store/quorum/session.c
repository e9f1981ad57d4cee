/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session of a quorum: START, RENEW and STOP, by majority.
 *
 * A RENEW may be answered only if for every ticket held a majority have the claim *and* this
 * renewal: two majorities that overlap in one member are not enough. The engine dates its lease
 * from the newest sign of life that each member of such a majority proves by itself: where proofs
 * lag, that is an earlier one, and not the newest that any one of them proves. For the same reason
 * a member counts for a new claim only if it proves the date that the engine was told
 * (claim.c). Where that cannot be had the answer is UNKNOWN, and the lease runs out by
 * itself.
 *
 * A START is dated as a RENEW is. When it is asked for once more, members that the one before has
 * started are renewed, and count when that is answered.
 */
#include "store/quorum/session.h"

#include "base/assert.h"
#include "store/quorum/claim.h"
#include "store/quorum/member.h"

#include <stdio.h>

static unsigned in_phase(const struct mrt_quorum_store *store, enum mrt_quorum_phase phase)
{
    unsigned count = 0;
    for (unsigned i = 0; i < store->count; i++)
        count += store->members[i].phase == phase;
    return count;
}

/* Whether the member is up, and has the ticket's claim if there is one. */
static bool counts(const struct mrt_quorum_store *store, const struct mrt_quorum_ticket *ticket,
                   unsigned member)
{
    return store->members[member].phase == MRT_QUORUM_UP &&
           (!ticket || ticket->claims[member] == MRT_CLAIM_HAS);
}

/* How many of them have answered the newest renewal. */
static unsigned renewed(const struct mrt_quorum_store *store,
                        const struct mrt_quorum_ticket *ticket)
{
    unsigned count = 0;
    for (unsigned i = 0; i < store->count; i++)
        count += counts(store, ticket, i) && store->members[i].heard >= store->renewed_at;
    return count;
}

/* When the newest sign of life was sent that is proven at a majority of them. */
static mrt_time date_of(const struct mrt_quorum_store *store,
                        const struct mrt_quorum_ticket *ticket)
{
    mrt_time newest = 0;
    for (unsigned i = 0; i < store->count; i++) {
        mrt_time proof = store->members[i].proof;
        unsigned with = 0;
        for (unsigned j = 0; j < store->count; j++)
            with += counts(store, ticket, j) && store->members[j].proof >= proof;
        if (with >= store->majority && proof > newest)
            newest = proof;
    }
    return newest;
}

static bool is_renewed(const struct mrt_quorum_store *store, const struct mrt_quorum_ticket *ticket)
{
    return renewed(store, ticket) >= store->majority;
}

static void answer(struct mrt_quorum_store *store, struct mrt_event event)
{
    event.serial = store->session_command.serial;
    event.session = store->session;
    store->session_command.serial = 0;
    mrt_quorum_deliver(store, event);
}

/* Of all that are up. */
static void renew(struct mrt_quorum_store *store, mrt_time now)
{
    store->renewals++;
    store->renewed_at = now;
    for (unsigned i = 0; i < store->count; i++)
        if (store->members[i].phase == MRT_QUORUM_UP)
            mrt_quorum_member_renew(&store->members[i]);
}

static bool is_held(const struct mrt_quorum_ticket *ticket)
{
    return ticket->step == MRT_QUORUM_HELD || ticket->step == MRT_QUORUM_LOOKING;
}

/* The date that a majority proves for every ticket held: the engine dates its lease from it. */
static mrt_time date(struct mrt_quorum_store *store)
{
    const struct mrt_quorum_ticket *ticket;
    mrt_time date = date_of(store, NULL);
    TAILQ_FOREACH (ticket, &store->tickets, link)
        if (is_held(ticket))
            date = mrt_time_min(date, date_of(store, ticket));
    if (date > store->proven)
        store->proven = date;
    return date;
}

/* ------------------------------------------------------------------ START */

/* Those that may soon have the newest renewal, or a session that was begun after it. */
static unsigned pending(const struct mrt_quorum_store *store, mrt_time now)
{
    unsigned count = 0;
    for (unsigned i = 0; i < store->count; i++) {
        const struct mrt_quorum_member *member = &store->members[i];
        bool fresh = member->phase == MRT_QUORUM_UP && member->heard >= store->renewed_at;
        count += !fresh && (member->phase != MRT_QUORUM_DOWN || member->start_at <= now);
    }
    return count;
}

static void started(struct mrt_quorum_store *store)
{
    struct mrt_event event = {.type = MRT_STARTED};
    store->lease = MRT_TIME_NEVER;
    for (unsigned i = 0; i < store->count; i++) {
        const struct mrt_quorum_member *member = &store->members[i];
        if (member->phase != MRT_QUORUM_UP)
            continue;
        if (member->lease > 0)
            store->lease = mrt_time_min(store->lease, member->lease);
        if (member->proof_lag > event.proof_lag)
            event.proof_lag = member->proof_lag;
    }
    if (store->lease == MRT_TIME_NEVER)
        store->lease = 0;
    event.lease = store->lease;
    event.dates = true;
    store->proven = 0; /* that was of the session before */
    event.proven = date(store);
    store->started = true;
    answer(store, event);
}

static void decide_start(struct mrt_quorum_store *store, mrt_time now)
{
    unsigned up = renewed(store, NULL);
    if (up >= store->majority) {
        started(store);
        return;
    }
    if (up + pending(store, now) >= store->majority && now < store->session_command.decide_at)
        return;
    char detail[240];
    const char *why = store->session_command.detail;
    snprintf(detail, sizeof detail, "%u of %u stores answer, %u are needed: %.180s", up,
             store->count, store->majority, *why ? why : store->address);
    int error = store->session_command.error;
    answer(store, (struct mrt_event){.type = MRT_FAILED,
                                     .error = error ? error : MORTISE_EUNREACHABLE,
                                     .detail = detail});
}

/* ------------------------------------------------------------------ RENEW */

static bool all_renewed(const struct mrt_quorum_store *store)
{
    const struct mrt_quorum_ticket *ticket;
    if (!is_renewed(store, NULL))
        return false;
    TAILQ_FOREACH (ticket, &store->tickets, link)
        if (is_held(ticket) && !is_renewed(store, ticket))
            return false;
    return true;
}

/* Wakes the tickets that kept the renewal from being answered: they may be lost. */
static void wake_unrenewed(struct mrt_quorum_store *store)
{
    const struct mrt_quorum_ticket *ticket;
    TAILQ_FOREACH (ticket, &store->tickets, link)
        if (!is_renewed(store, ticket))
            mrt_quorum_ticket_wake(store, ticket);
}

/* Whether requests under way may still prove it, or too few were sent and more may follow soon.
 */
static bool is_open(const struct mrt_quorum_store *store)
{
    const struct mrt_quorum_request *request;
    const struct mrt_quorum_ticket *ticket;
    TAILQ_FOREACH (request, &store->requests, link)
        if (request->command.type == MRT_RENEW && request->round == store->renewals &&
            !request->is_forgotten)
            return true;
    TAILQ_FOREACH (ticket, &store->tickets, link)
        if (ticket->step == MRT_QUORUM_LOOKING)
            return true;
    return in_phase(store, MRT_QUORUM_UP) < store->majority;
}

static void decide_renewal(struct mrt_quorum_store *store, mrt_time now)
{
    if (all_renewed(store)) {
        answer(store, (struct mrt_event){.type = MRT_RENEWED, .proven = date(store)});
    } else if (now >= store->session_command.decide_at || !is_open(store)) {
        wake_unrenewed(store);
        answer(store, (struct mrt_event){.type = MRT_UNKNOWN});
    }
}

/* ------------------------------------------------------------------ STOP */

static void stop(struct mrt_quorum_store *store)
{
    mrt_quorum_tickets_free(store);
    for (unsigned i = 0; i < store->count; i++) {
        struct mrt_quorum_member *member = &store->members[i];
        mrt_quorum_requests_forget(store, member); /* claims under removal end with the session */
        member->start_at = 0;
        if (member->phase != MRT_QUORUM_DOWN)
            mrt_quorum_member_stop(member);
    }
    store->wanted = store->started = false;
}

static void decide_stop(struct mrt_quorum_store *store, mrt_time now)
{
    unsigned down = in_phase(store, MRT_QUORUM_DOWN);
    unsigned needed = now < store->session_command.enough_at ? store->count : store->majority;
    bool done = down >= needed;
    if (!done && now < store->session_command.decide_at)
        return;
    answer(store, (struct mrt_event){.type = done ? MRT_STOPPED : MRT_UNKNOWN});
    store->session = (struct mrt_id){0, 0};
}

/* ------------------------------------------------------------------ commands */

static void begin_command(struct mrt_quorum_store *store, mrt_time now)
{
    mrt_time limit = store->timeout;
    store->session_command.error = 0;
    store->session_command.detail[0] = '\0';
    switch (store->session_command.type) {
    case MRT_START:
        store->wanted = true;
        renew(store, now); /* a session that an earlier START began is as old as that */
        mrt_quorum_members_due(store, now);
        break;
    case MRT_RENEW:
        limit = store->lease > 0 ? store->lease / 6 : limit;
        renew(store, now);
        break;
    default:
        stop(store);
    }
    store->session_command.enough_at = now + mrt_quorum_limit(store);
    store->session_command.decide_at = now + limit;
}

/* A session that the engine has given up ends here first, whatever its members answer. */
static void replace(struct mrt_quorum_store *store, struct mrt_id session)
{
    if (!mrt_id_none(store->session) && !mrt_id_equal(store->session, session))
        stop(store);
    store->session = session;
}

void mrt_quorum_session_submit(struct mrt_quorum_store *store, const struct mrt_command *command,
                               mrt_time now)
{
    if (store->session_command.serial != 0)
        answer(store, (struct mrt_event){.type = MRT_UNKNOWN}); /* the newer one counts */
    if (command->type == MRT_START)
        replace(store, command->session);
    store->session_command.serial = command->serial;
    store->session_command.type = command->type;
    begin_command(store, now);
}

void mrt_quorum_session_due(struct mrt_quorum_store *store, mrt_time now)
{
    if (store->session_command.serial == 0)
        return;
    if (store->session_command.type == MRT_START)
        decide_start(store, now);
    else if (store->session_command.type == MRT_RENEW)
        decide_renewal(store, now);
    else
        decide_stop(store, now);
}

mrt_time mrt_quorum_session_next(const struct mrt_quorum_store *store)
{
    if (store->session_command.serial == 0)
        return MRT_TIME_NEVER;
    if (store->worked_at < store->session_command.enough_at)
        return mrt_time_min(store->session_command.enough_at, store->session_command.decide_at);
    return store->session_command.decide_at;
}
