/*
 * What the outcome of a request means for the one who asked, and what else follows.
 *
 * A failure that a second attempt may mend is not shown: retry.c.
 */
#include "store/sql/internal.h"

#include "core/rule.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define RECHECK_MIN (10 * MRT_MILLISECOND)

/* Columns of a RENEW's row; the others are the driver's. */
enum { RENEW_TICKETS, RENEW_ASKED };

void mrt_sql_count_tickets(struct mrt_store *store, struct mrt_id id, int change)
{
    struct mrt_sql_session *session = mrt_sql_find_session(store, id);
    if (session && session->tickets >= 0)
        session->tickets += change;
}

void mrt_sql_lose_count(struct mrt_store *store, struct mrt_id id)
{
    struct mrt_sql_session *session = mrt_sql_find_session(store, id);
    if (session)
        session->tickets = -1;
}

/* ------------------------------------------------------------------ sessions */

static void finish_resume(struct mrt_store *store, const struct mrt_sql_request *request)
{
    struct mrt_sql_session *session = mrt_sql_find_session(store, request->command.session);
    struct mrt_event event = {.session = request->command.session, .error = MORTISE_ELOST};
    if (!session)
        return;
    event.type = mrt_sql_has_row(request) ? MRT_WAKE : MRT_SESSION_LOST;
    mrt_sql_lose_count(store, session->id);
    if (!mrt_sql_has_row(request))
        mrt_sql_forget_session(store, session);
    mrt_sql_tell(store,
                 &event); /* what happened in between was not heard: all is looked at again */
}

static void finish_start(struct mrt_store *store, struct mrt_sql_request *request, mrt_time now)
{
    struct mrt_sql_session *session = mrt_sql_find_session(store, request->command.session);
    mrt_sql_lose_count(store, request->command.session);
    if (!session) {
        session = calloc(1, sizeof *session);
        if (!session) {
            mrt_sql_answer(store, request, MRT_UNKNOWN);
            return;
        }
        session->id = request->command.session;
        TAILQ_INSERT_TAIL(&store->sessions, session, link);
    }
    if (mrt_sql_number(request, 0))
        mrt_sql_begin_own(store, MRT_SQL_DO_SWEEP, &request->command, now);
    request->event.lease = store->address.lease;
    mrt_sql_answer(store, request, MRT_STARTED);
}

/* Tickets may have been deleted, or asked for, without a word about it: then each is looked at. */
static void compare_tickets(struct mrt_store *store, const struct mrt_sql_request *request)
{
    int64_t tickets = mrt_sql_number(request, RENEW_TICKETS);
    int64_t asked = mrt_sql_number(request, RENEW_ASKED);
    struct mrt_sql_session *session = mrt_sql_find_session(store, request->command.session);
    struct mrt_event event = {.type = MRT_WAKE, .session = request->command.session};
    if (!session)
        return;
    if (session->tickets != tickets || session->asked != asked)
        mrt_sql_tell(store, &event);
    session->tickets = tickets;
    session->asked = asked;
}

void mrt_sql_session_ended(struct mrt_store *store, struct mrt_sql_request *request)
{
    struct mrt_sql_session *session = mrt_sql_find_session(store, request->command.session);
    if (session)
        mrt_sql_forget_session(store, session);
    mrt_sql_fail(store, request, MORTISE_ELOST, "the session has ended");
}

/* This is not the server to ask: the request waits for one that is. */
static void ask_elsewhere(struct mrt_store *store, struct mrt_sql_request *request, int error,
                          const char *why)
{
    mrt_sql_reject(store, error, "%s: %s", mrt_sql_product, why);
    TAILQ_INSERT_HEAD(&store->waiting, request, link);
}

static void finish_renew(struct mrt_store *store, struct mrt_sql_request *request, mrt_time now)
{
    if (!mrt_sql_has_row(request)) {
        mrt_sql_session_ended(store, request);
        return;
    }
    if (!mrt_sql_driver_writable(request)) {
        ask_elsewhere(store, request, MORTISE_EUNREACHABLE, "the server is read-only");
        return;
    }
    if (!mrt_sql_driver_same(store, request))
        mrt_sql_reject(store, MORTISE_ENOTSUPPORTED,
                       "%s: the pooler gives each transaction another connection; locks "
                       "need a pooler in session mode",
                       mrt_sql_product);
    compare_tickets(store, request);
    mrt_sql_on_disk(store);
    mrt_sql_remove_again(store, now);
    mrt_sql_answer(store, request, MRT_RENEWED);
}

/* ------------------------------------------------------------------ tickets */

/* What is nobody's has no end of a lease; but whoever adopts it may die a lease later. */
mrt_time mrt_sql_lease_left(const struct mrt_store *store, const struct mrt_sql_request *request,
                            int column)
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

/* When a view is to be looked at again: when the first lease of those ahead ends, if it is
   not renewed; or before, if nobody tells. */
static mrt_time recheck(const struct mrt_store *store, const struct mrt_sql_request *request,
                        int left, mrt_time age, uint64_t place)
{
    mrt_time until = mrt_sql_lease_left(store, request, left);
    if (mrt_sql_notifies || until == 0)
        return until;
    uint64_t chance = mrt_sql_chance(&request->command, age);
    return mrt_time_min(mrt_sql_poll(age, place, chance), until);
}

static void view(struct mrt_store *store, struct mrt_sql_request *request, int64_t number,
                 int64_t ahead, mrt_time again, uint64_t place)
{
    request->event.fence = (uint64_t)number << MRT_SQL_FENCE_BITS;
    request->event.fence_span = UINT64_C(1) << MRT_SQL_FENCE_BITS;
    request->event.weight_ahead = (uint64_t)ahead;
    request->event.recheck = again;
    request->event.place = place;
    mrt_sql_answer(store, request, MRT_VIEW);
}

bool mrt_sql_reaps(struct mrt_store *store, struct mrt_sql_request *request, int column,
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
static bool is_leaving(const struct mrt_store *store, const struct mrt_sql_request *request)
{
    return has_earlier_removal(&store->sent, request) ||
           has_earlier_removal(&store->waiting, request) ||
           has_earlier_removal(&store->resting, request);
}

/* It was not put in. */
static void finish_refused(struct mrt_store *store, struct mrt_sql_request *request, mrt_time now)
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

static void finish_append(struct mrt_store *store, struct mrt_sql_request *request, mrt_time now)
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

static void finish_view(struct mrt_store *store, struct mrt_sql_request *request, mrt_time now)
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

static void finish_remove(struct mrt_store *store, struct mrt_sql_request *request, mrt_time now)
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

/* ------------------------------------------------------------------ outcomes */

static void fail_with_advice(struct mrt_store *store, struct mrt_sql_request *request,
                             const struct mrt_sql_code *code)
{
    mrt_sql_fail(store, request, code->error, "%s: %.160s (%s)%s%s", mrt_sql_product,
                 request->detail, request->state, code->advice ? "; " : "",
                 code->advice ? code->advice : "");
}

static void finish_failed(struct mrt_store *store, struct mrt_sql_request *request, mrt_time now)
{
    const struct mrt_sql_code *code = mrt_sql_code(request->state);
    enum mrt_sql_outcome outcome = code->outcome;
    if (outcome == MRT_SQL_WITHOUT_NOTIFY && mrt_sql_removes(request) &&
        request->kind != MRT_SQL_DO_REMOVE_WITHOUT_NOTIFY)
        request->kind = MRT_SQL_DO_REMOVE_WITHOUT_NOTIFY;
    else if (outcome == MRT_SQL_WITHOUT_NOTIFY)
        outcome = MRT_SQL_FAILED;
    if (outcome == MRT_SQL_ELSEWHERE) {
        ask_elsewhere(store, request, code->error, code->advice);
    } else if (outcome == MRT_SQL_PERHAPS) {
        mrt_sql_answer(store, request, MRT_UNKNOWN);
    } else if (outcome != MRT_SQL_FAILED && mrt_sql_may_retry(store, request, now)) {
        mrt_sql_retry(store, request, now);
    } else {
        fail_with_advice(store, request, code);
    }
}

static void finish_done(struct mrt_store *store, struct mrt_sql_request *request, mrt_time now)
{
    switch (request->kind) {
    case MRT_SQL_DO_START:
        finish_start(store, request, now);
        break;
    case MRT_SQL_DO_STOP:
    case MRT_SQL_DO_DIE:
        mrt_sql_answer(store, request, MRT_STOPPED);
        break;
    case MRT_SQL_DO_RENEW:
        finish_renew(store, request, now);
        break;
    case MRT_SQL_DO_APPEND:
        finish_append(store, request, now);
        break;
    case MRT_SQL_DO_ADOPT:
        mrt_sql_finish_adopt(store, request, now);
        break;
    case MRT_SQL_DO_DETACH:
        mrt_sql_finish_detach(store, request);
        break;
    case MRT_SQL_DO_REMOVE:
    case MRT_SQL_DO_REMOVE_LAST:
    case MRT_SQL_DO_REMOVE_WITHOUT_NOTIFY:
        finish_remove(store, request, now);
        break;
    case MRT_SQL_DO_OBSERVE:
        mrt_sql_finish_observe(store, request, now);
        break;
    case MRT_SQL_DO_CELL_GET:
    case MRT_SQL_DO_CELL_SET:
        mrt_sql_finish_cell(store, request, now);
        break;
    case MRT_SQL_DO_LIST:
    case MRT_SQL_DO_REVOKE:
    case MRT_SQL_DO_BREAK:
        mrt_sql_answer(store, request, MRT_VIEW); /* nobody is told; it is waited for */
        break;
    default:
        finish_view(store, request, now);
    }
}

void mrt_sql_finish(struct mrt_store *store, struct mrt_sql_request *request, mrt_time now)
{
    if (store->steps) {
        mrt_native_finish(store, request);
        return;
    }
    switch (request->kind) {
    case MRT_SQL_DO_SETUP:
        mrt_sql_driver_check(store, request);
        mrt_sql_request_free(request);
        break;
    case MRT_SQL_DO_RESUME:
    case MRT_SQL_DO_LISTEN:
        if (request->failed)
            store->broken = true; /* and once more on another connection */
        else if (request->kind == MRT_SQL_DO_RESUME)
            finish_resume(store, request);
        mrt_sql_request_free(request);
        break;
    case MRT_SQL_DO_MAKE:
    case MRT_SQL_DO_MAKE_CELL:
    case MRT_SQL_DO_REAP:
    case MRT_SQL_DO_SWEEP:
        mrt_sql_request_free(request);
        break;
    default:
        if (request->failed)
            finish_failed(store, request, now);
        else
            finish_done(store, request, now);
    }
}

static void free_own(struct mrt_store *store, struct mrt_sql_request *request)
{
    mrt_sql_removal_answered(store, request, MRT_UNKNOWN);
    mrt_sql_request_free(request);
}

void mrt_sql_finish_lost(struct mrt_store *store, struct mrt_sql_request *request)
{
    request->lost = true;
    if (store->steps)
        mrt_native_finish_lost(store, request);
    else if (request->kind >= MRT_SQL_DO_LIST)
        TAILQ_INSERT_HEAD(&store->waiting, request, link); /* asking again does no harm */
    else if (request->command.serial == 0)
        free_own(store, request);
    else
        mrt_sql_answer(store, request, MRT_UNKNOWN);
}
