/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One member of a quorum: the requests to it, and its session.
 *
 * A member has a session of its own, under an identity of its own. While the engine's session
 * is open, a member that is down is tried again, and a member whose session was lost gets
 * another.
 *
 * A claim that is given up is removed at the member. The removal is repeated until it is proven or
 * the member's session has ended, even if the answer to the claim never came or comes later,
 * because the member executes the removal after the claim. The token of its round identifies it,
 * so it cannot harm the next one.
 */
#include "store/quorum/member.h"

#include "base/assert.h"
#include "store/quorum/claim.h"

#include <stdio.h>
#include <stdlib.h>

#define START_PAUSE (500 * MRT_MILLISECOND)
#define SHORT_PAUSE (30 * MRT_SECOND) /* its lease will be as short again */

static const struct mrt_id nobody;

/* Why a START is refused, if too few answer it. */
static void note_refusal(struct mrt_quorum_store *store, int error, const char *detail)
{
    store->session_command.error = error;
    snprintf(store->session_command.detail, sizeof store->session_command.detail, "%s",
             detail ? detail : "");
}

/* ------------------------------------------------------------------ its session */

static void start(struct mrt_quorum_member *member, mrt_time now)
{
    member->phase = MRT_QUORUM_STARTING;
    member->session = mrt_quorum_identity(member->quorum);
    member->starting = now;
    member->start_at = MRT_TIME_NEVER;
    struct mrt_quorum_request *request = mrt_quorum_request_new(member, NULL);
    if (!request)
        note_refusal(member->quorum, MORTISE_ENOMEM, NULL);
    else if (mrt_quorum_request_send(request, &(struct mrt_command){.type = MRT_START}, nobody, 0))
        return;
    member->phase = MRT_QUORUM_DOWN;
    member->start_at = now + START_PAUSE;
}

/* Without memory for it the session dies by its lease. */
void mrt_quorum_member_stop(struct mrt_quorum_member *member)
{
    struct mrt_quorum_request *request = mrt_quorum_request_new(member, NULL);
    member->phase = request ? MRT_QUORUM_STOPPING : MRT_QUORUM_DOWN;
    if (request)
        mrt_quorum_request_insist(request, &(struct mrt_command){.type = MRT_STOP});
}

static void down(struct mrt_quorum_member *member, mrt_time now)
{
    member->phase = MRT_QUORUM_DOWN;
    member->lost = false;
    member->start_at = now + START_PAUSE;
    mrt_quorum_requests_forget(member->quorum, member);
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
        mrt_quorum_member_stop(member);
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
        note_refusal(member->quorum, event->error, event->detail);
    down(member, now);
}

/* ------------------------------------------------------------------ its signs of life */

void mrt_quorum_member_renew(struct mrt_quorum_member *member)
{
    struct mrt_quorum_request *request = mrt_quorum_request_new(member, NULL);
    if (!request)
        return;
    request->sent = member->quorum->renewed_at;
    mrt_quorum_request_send(request, &(struct mrt_command){.type = MRT_RENEW}, nobody,
                            member->quorum->renewals);
}

static mrt_time later(mrt_time one, mrt_time other)
{
    return one > other ? one : other;
}

/* Notes the proof that this answer is at this member, by the rule of core/session.c. */
static void renewed(struct mrt_quorum_member *member, const struct mrt_quorum_request *request)
{
    mrt_time lag = member->proof_lag;
    member->heard = later(member->heard, request->sent);
    member->proof = later(member->proof, lag > 0 ? request->answer.proven : request->sent);
    for (unsigned i = 0; i < member->sign_count && i < MRT_QUORUM_SIGNS; i++)
        if (request->sent - member->signs[i].answered >= lag)
            member->proof = later(member->proof, member->signs[i].sent);
    member->signs[member->sign_count % MRT_QUORUM_SIGNS].sent = request->sent;
    member->signs[member->sign_count++ % MRT_QUORUM_SIGNS].answered = request->answered;
}

/* ------------------------------------------------------------------ hearing */

/* Tells it when no majority can be reached. */
static void count_unreachable(struct mrt_quorum_member *member, const struct mrt_event *event)
{
    struct mrt_quorum_store *store = member->quorum;
    unsigned left = 0;
    member->unreachable = true;
    for (unsigned i = 0; i < store->count; i++)
        left += !store->members[i].unreachable;
    if (left < store->majority)
        mrt_quorum_deliver(store, (struct mrt_event){.type = MRT_FAILED,
                                                     .error = MORTISE_EUNREACHABLE,
                                                     .detail = event->detail});
}

void mrt_quorum_member_event(struct mrt_quorum_member *member, const struct mrt_event *event)
{
    struct mrt_quorum_request *request;
    bool unreachable = event->type == MRT_FAILED && event->error == MORTISE_EUNREACHABLE;
    if (event->type == MRT_SESSION_LOST && mrt_id_equal(event->session, member->session))
        member->lost = true;
    if (event->type == MRT_WAKE)
        mrt_quorum_ticket_doubt(member, event->ticket);
    if (event->serial == 0 && unreachable)
        count_unreachable(member, event);
    else if (!unreachable && event->type != MRT_UNKNOWN)
        member->unreachable = false;
    if (event->serial == 0)
        return;
    TAILQ_FOREACH (request, &member->quorum->requests, link)
        if (request->command.serial == event->serial)
            break;
    if (!request)
        return;
    request->is_answered = true;
    request->answered = mrt_time_now();
    request->answer = *event;
    snprintf(request->detail, sizeof request->detail, "%s", event->detail ? event->detail : "");
    request->answer.detail = request->detail;
}

/* Whether a request that must be proven is not proven yet. The end of a session that another will
   follow need not be, because the next session has another identity. */
static bool is_unproven(const struct mrt_quorum_store *store,
                        const struct mrt_quorum_request *request)
{
    if (request->command.type == MRT_STOP)
        return request->answer.type != MRT_STOPPED && !store->wanted;
    return mrt_quorum_request_removes(request) && request->answer.type != MRT_REMOVED;
}

static void answered(struct mrt_quorum_store *store, struct mrt_quorum_request *request,
                     mrt_time now)
{
    struct mrt_quorum_member *member = request->member;
    const struct mrt_event *event = &request->answer;
    if (request->is_forgotten) {
        mrt_quorum_request_drop(store, request);
        return;
    }
    if (event->type == MRT_FAILED && event->error == MORTISE_ELOST) {
        down(member, now); /* with all that it was asked */
        return;
    }
    if (is_unproven(store, request)) {
        mrt_quorum_request_repeat(request, now);
        return;
    }
    TAILQ_REMOVE(&store->requests, request, link);
    if (request->command.type == MRT_START)
        answered_start(member, event, now);
    else if (request->command.type == MRT_RENEW && event->type == MRT_RENEWED)
        renewed(member, request);
    else if (request->command.type == MRT_STOP)
        member->phase = MRT_QUORUM_DOWN;
    else if (!mrt_id_none(request->ticket))
        mrt_quorum_ticket_answer(store, request);
    free(request);
}

static struct mrt_quorum_request *first_answered(const struct mrt_quorum_store *store)
{
    struct mrt_quorum_request *request;
    TAILQ_FOREACH (request, &store->requests, link)
        if (request->is_answered)
            break;
    return request;
}

bool mrt_quorum_members_act(struct mrt_quorum_store *store, mrt_time now)
{
    struct mrt_quorum_request *request;
    bool any = false;
    for (unsigned i = 0; i < store->count; i++) {
        if (!store->members[i].lost)
            continue;
        down(&store->members[i], now);
        any = true;
    }
    while ((request = first_answered(store))) {
        answered(store, request, now);
        any = true;
    }
    return mrt_quorum_tickets_act(store) || any; /* it may be newer than the answers */
}

void mrt_quorum_members_due(struct mrt_quorum_store *store, mrt_time now)
{
    for (unsigned i = 0; i < store->count; i++) {
        struct mrt_quorum_member *member = &store->members[i];
        if (store->wanted && member->phase == MRT_QUORUM_DOWN && now >= member->start_at)
            start(member, now);
    }
    mrt_quorum_requests_due(store, now);
}

mrt_time mrt_quorum_members_next(const struct mrt_quorum_store *store)
{
    mrt_time next = mrt_quorum_requests_next(store);
    for (unsigned i = 0; i < store->count; i++) {
        const struct mrt_quorum_member *member = &store->members[i];
        next = mrt_time_min(next, member->ops->next(member->store));
        if (store->wanted && member->phase == MRT_QUORUM_DOWN)
            next = mrt_time_min(next, member->start_at);
    }
    return next;
}
