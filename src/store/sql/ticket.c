/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the answers to APPEND, VIEW and REMOVE, which say what was found of a ticket.
 *
 * A view says by when to look again: when the first lease of the tickets ahead ends unless it is
 * renewed, or sooner where the server notifies nobody.
 */
#include "store/sql/ticket.h"
#include "store/sql/driver.h"
#include "store/sql/flush.h"
#include "store/sql/outbox.h"
#include "store/sql/request.h"
#include "store/sql/retry.h"
#include "store/sql/send.h"
#include "store/sql/session.h"

#include "core/rule.h"

#include <inttypes.h>
#include <string.h>

#define RECHECK_MIN (10 * MRT_MILLISECOND)

/* A detached ticket's session has a lease of millennia. The result is at most a lease of this
   store, because a client that adopts the ticket may die a lease later. */
mrt_time mrt_sql_lease_left(const struct mrt_sql_store *store,
                            const struct mrt_sql_request *request, int column)
{
    mrt_time most = mrt_time_min(store->address.lease, MRT_SQL_RECHECK_MAX);
    int64_t left = mrt_sql_number(request, column); /* in microseconds, and perhaps of centuries */
    if (mrt_sql_is_null(request, column))
        return 0;
    if (left >= most / MRT_MICROSECOND)
        return most;
    left = (left + 1) * MRT_MICROSECOND;
    return left > RECHECK_MIN ? left : RECHECK_MIN;
}

/* When to look at a view again: when the first lease of the tickets ahead ends, if it is not
   renewed; sooner where the server notifies nobody. */
static mrt_time recheck(const struct mrt_sql_store *store, const struct mrt_sql_request *request,
                        int left, mrt_time age, uint64_t place)
{
    mrt_time until = mrt_sql_lease_left(store, request, left);
    if (mrt_sql_is_notified(store) || until == 0)
        return until;
    uint64_t chance = mrt_sql_chance(&request->command, age);
    return mrt_time_min(mrt_sql_poll(age, place, chance), until);
}

static void view(struct mrt_sql_store *store, struct mrt_sql_request *request, int64_t number,
                 int64_t ahead, mrt_time again, uint64_t place)
{
    request->event.fence = (uint64_t)number << MRT_SQL_FENCE_BITS;
    request->event.fence_span = UINT64_C(1) << MRT_SQL_FENCE_BITS;
    request->event.weight_ahead = (uint64_t)ahead;
    request->event.recheck = again;
    request->event.place = place;
    /* One that would not be told of a newcomer does not linger. */
    request->event.others_behind |= request->command.linger && !mrt_sql_is_notified(store);
    mrt_sql_answer(store, request, MRT_VIEW);
}

bool mrt_sql_reaps(struct mrt_sql_store *store, struct mrt_sql_request *request, int column,
                   enum mrt_sql_kind again, mrt_time now)
{
    if (request->reaped || mrt_sql_is_null(request, column) || mrt_sql_number(request, column) > 0)
        return false;
    request->reaped = true;
    request->kind = again;
    mrt_sql_resend(store, request, MRT_SQL_DO_REAP, now);
    return true;
}

/* Nothing that was seen kept the ticket out: its session ended while its row was waited for, or
   somebody left in between. */
static bool is_unexplained(const struct mrt_sql_request *request)
{
    const struct mrt_command *command = &request->command;
    uint64_t ahead = (uint64_t)mrt_sql_number(request, MRT_APPEND_AHEAD);
    return mrt_rule_grants(ahead, command->weight, command->capacity) ||
           (!command->try_only && command->queue_max == 0);
}

static bool has_earlier_removal(const struct mrt_sql_requests *requests,
                                const struct mrt_sql_request *of)
{
    const struct mrt_sql_request *request;
    TAILQ_FOREACH (request, requests, link)
        if (mrt_sql_removes(request) && request->begun <= of->begun &&
            strcmp(request->command.queue, of->command.queue) == 0)
            return true;
    return false;
}

/* Whether a ticket of this client was to leave the queue before the request, and is still there:
   the removal is being made once more, and what was sent behind its first attempt has seen it. */
static bool is_leaving(const struct mrt_sql_store *store, const struct mrt_sql_request *request)
{
    return has_earlier_removal(&store->sent, request) ||
           has_earlier_removal(&store->waiting, request) ||
           has_earlier_removal(&store->resting, request);
}

/* It was not put in. */
static void finish_refused(struct mrt_sql_store *store, struct mrt_sql_request *request,
                           mrt_time now)
{
    const struct mrt_command *command = &request->command;
    if (!mrt_sql_number(request, MRT_APPEND_SESSION)) {
        mrt_sql_session_ended(store, request);
    } else if (!mrt_sql_number(request, MRT_APPEND_QUEUE)) {
        mrt_sql_make(store, request, MRT_SQL_DO_MAKE, now);
    } else if (mrt_sql_reaps(store, request, MRT_APPEND_LEFT, MRT_SQL_DO_APPEND, now)) {
        return;
    } else if (is_leaving(store, request) && mrt_sql_may_retry(store, request, now)) {
        mrt_sql_retry_behind(store, request, now);
    } else if (!mrt_sql_is_null(request, MRT_APPEND_CAPACITY)) {
        mrt_sql_fail(store, request, MORTISE_EMISMATCH,
                     "%.100s is in use as a %.32s of capacity %" PRId64 ", not a %s of %" PRIu64,
                     command->queue, mrt_sql_text(request, MRT_APPEND_KIND),
                     mrt_sql_number(request, MRT_APPEND_CAPACITY), command->kind,
                     command->capacity);
    } else if (is_unexplained(request) && mrt_sql_may_retry(store, request, now)) {
        mrt_sql_retry(store, request, now);
    } else if (command->try_only) {
        mrt_sql_answer(store, request, MRT_BLOCKED);
    } else {
        mrt_sql_fail(store, request, MORTISE_EFULL, "%.100s: %" PRIu64 " are waiting already",
                     command->queue, command->queue_max);
    }
}

void mrt_sql_finish_append(struct mrt_sql_store *store, struct mrt_sql_request *request,
                           mrt_time now)
{
    const struct mrt_command *command = &request->command;
    int64_t ahead = mrt_sql_number(request, MRT_APPEND_AHEAD);
    uint64_t place = (uint64_t)mrt_sql_number(request, MRT_APPEND_PLACE);
    bool fits = mrt_rule_grants((uint64_t)ahead, command->weight, command->capacity);
    mrt_sql_on_disk(store); /* at least the queue's number has been written */
    if (!mrt_sql_is_null(request, MRT_APPEND_OLD)) { /* it was there already */
        mrt_sql_lose_count(store, command->session);
        request->kind = MRT_SQL_DO_VIEW;
        mrt_sql_resend(store, request, request->kind, now);
    } else if (mrt_sql_number(request, MRT_APPEND_NUMBER) > 0) {
        mrt_sql_count_tickets(store, command->session, 1);
        if (fits || !mrt_sql_reaps(store, request, MRT_APPEND_LEFT, MRT_SQL_DO_VIEW, now))
            view(store, request, mrt_sql_number(request, MRT_APPEND_NUMBER), ahead,
                 recheck(store, request, MRT_APPEND_LEFT, 0, place), place);
    } else {
        finish_refused(store, request, now);
    }
}

void mrt_sql_finish_view(struct mrt_sql_store *store, struct mrt_sql_request *request, mrt_time now)
{
    uint64_t place = (uint64_t)mrt_sql_number(request, MRT_VIEW_PLACE);
    mrt_time age = mrt_sql_number(request, MRT_VIEW_AGE) * MRT_MICROSECOND;
    if (!mrt_sql_has_row(request)) {
        mrt_sql_answer(store, request, MRT_GONE);
    } else if (!mrt_sql_reaps(store, request, MRT_VIEW_LEFT, MRT_SQL_DO_VIEW, now)) {
        request->event.others_behind = mrt_sql_number(request, MRT_VIEW_BEHIND);
        request->event.revoked = (uint64_t)mrt_sql_number(request, MRT_VIEW_ASKED);
        view(store, request, mrt_sql_number(request, MRT_VIEW_NUMBER),
             mrt_sql_number(request, MRT_VIEW_AHEAD),
             recheck(store, request, MRT_VIEW_LEFT, age, place), place);
    }
}

void mrt_sql_finish_remove(struct mrt_sql_store *store, struct mrt_sql_request *request,
                           mrt_time now)
{
    bool gone = mrt_sql_number(request, MRT_REMOVE_GONE) > 0;
    if (!gone && request->kind == MRT_SQL_DO_REMOVE_LAST) { /* somebody is, or was, behind it */
        request->kind = MRT_SQL_DO_REMOVE;
        mrt_sql_resend(store, request, request->kind, now);
        return;
    }
    if (gone)
        mrt_sql_count_tickets(store, request->command.session, -1);
    mrt_sql_answer(store, request, MRT_REMOVED);
}
