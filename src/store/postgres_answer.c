/*
 * What the outcome of a request means for the one who asked, and what else follows.
 *
 * A failure that a second attempt may mend is not shown: the request is sent again,
 * until its time is up. That may put it behind a later one of its session, but never behind another
 * of its ticket, for the engine has one at a time under way.
 */
#include "store/postgres_internal.h"

#include "base/error.h"
#include "core/rule.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECHECK_MIN (10 * MRT_MILLISECOND)
#define RECHECK_MAX (5 * MRT_SECOND)
#define ATTEMPTS_MAX 100

/* Columns of the statements' rows. */
enum { SETUP_BACKEND, SETUP_RECOVERY, SETUP_READ_ONLY };
enum { RENEW_TICKETS, RENEW_BACKEND };
enum { APPEND_NUMBER, APPEND_OLD, APPEND_AHEAD, APPEND_LEFT, APPEND_SESSION, APPEND_CAPACITY };
enum { VIEW_NUMBER, VIEW_AHEAD, VIEW_LEFT, VIEW_BEHIND };

static void count_tickets(struct mrt_store *store, struct mrt_id id, int change)
{
    struct mrt_pg_session *session = mrt_pg_find_session(store, id);
    if (session && session->tickets >= 0)
        session->tickets += change;
}

static void submit_own(struct mrt_store *store, enum mrt_pg_kind kind,
                       const struct mrt_command *command, mrt_time now)
{
    struct mrt_pg_request *own = mrt_pg_request_new(kind);
    if (!own)
        return; /* it is done again when it is next found to be needed */
    own->command = *command;
    own->command.serial = 0;
    mrt_pg_submit(store, own, now);
}

/* ------------------------------------------------------------------ the connection's */

static void finish_setup(struct mrt_store *store, const struct mrt_pg_request *request)
{
    const struct mrt_pg_code *code = mrt_pg_code(request->sqlstate);
    int64_t told = PQbackendPID(store->connection), backend = request->column[SETUP_BACKEND];
    if (request->failed && strcmp(request->sqlstate, "42P05") == 0) /* a new one has none */
        mrt_pg_reject(store, MORTISE_ENOTSUPPORTED,
                      "PostgreSQL: the pooler gives out connections that others have used; locks "
                      "need a pooler in session mode");
    else if (request->failed)
        mrt_pg_reject(store, code->error == MORTISE_ESTORE ? MORTISE_EUNREACHABLE : code->error,
                      "PostgreSQL, schema \"%s\": %.120s%s%s", store->address.schema,
                      request->detail, code->advice ? "; " : "", code->advice ? code->advice : "");
    else if (request->column[SETUP_RECOVERY] || request->column[SETUP_READ_ONLY])
        mrt_pg_reject(store, store->was_ready ? MORTISE_EUNREACHABLE : MORTISE_ENOTSUPPORTED,
                      "PostgreSQL: the server is %s; locks need one that can be written to",
                      request->column[SETUP_RECOVERY] ? "a standby" : "read-only");
    else if (told != backend && !store->address.pooled)
        mrt_pg_reject(store, MORTISE_ENOTSUPPORTED,
                      "PostgreSQL: there is a connection pooler before the server; connect to the "
                      "server itself, or to a pooler in session mode with pooler=session");
    else {
        store->backend = backend;
        mrt_pg_connected(store);
    }
}

static void finish_resume(struct mrt_store *store, const struct mrt_pg_request *request)
{
    struct mrt_pg_session *session = mrt_pg_find_session(store, request->command.session);
    struct mrt_event event = {.session = request->command.session, .error = MORTISE_ELOST};
    if (!session)
        return;
    event.type = request->has_row ? MRT_WAKE : MRT_SESSION_LOST;
    session->tickets = -1;
    if (!request->has_row)
        mrt_pg_forget_session(store, session);
    mrt_pg_tell(store, &event); /* what happened in between was not heard: all is looked at again */
}

/* ------------------------------------------------------------------ sessions */

static void finish_start(struct mrt_store *store, struct mrt_pg_request *request, mrt_time now)
{
    struct mrt_pg_session *session = mrt_pg_find_session(store, request->command.session);
    if (!session) {
        session = calloc(1, sizeof *session);
        if (!session) {
            mrt_pg_answer(store, request, MRT_UNKNOWN);
            return;
        }
        session->id = request->command.session;
        TAILQ_INSERT_TAIL(&store->sessions, session, link);
    }
    session->tickets = -1;
    if (request->column[0])
        submit_own(store, MRT_PG_DO_SWEEP, &request->command, now);
    request->event.lease = store->address.lease;
    mrt_pg_answer(store, request, MRT_STARTED);
}

/* An operator may have deleted tickets: then each is looked at. */
static void compare_tickets(struct mrt_store *store, const struct mrt_pg_request *request)
{
    struct mrt_pg_session *session = mrt_pg_find_session(store, request->command.session);
    struct mrt_event event = {.type = MRT_WAKE, .session = request->command.session};
    if (!session || session->tickets == request->column[RENEW_TICKETS])
        return;
    if (session->tickets >= 0)
        mrt_pg_tell(store, &event);
    session->tickets = request->column[RENEW_TICKETS];
}

static void session_ended(struct mrt_store *store, struct mrt_pg_request *request)
{
    struct mrt_pg_session *session = mrt_pg_find_session(store, request->command.session);
    if (session)
        mrt_pg_forget_session(store, session);
    mrt_pg_fail(store, request, MORTISE_ELOST, "the session has ended");
}

static void finish_renew(struct mrt_store *store, struct mrt_pg_request *request)
{
    if (!request->has_row) {
        session_ended(store, request);
        return;
    }
    if (request->column[RENEW_BACKEND] != store->backend)
        mrt_pg_reject(store, MORTISE_ENOTSUPPORTED,
                      "PostgreSQL: the pooler gives each transaction another connection; locks "
                      "need a pooler in session mode");
    compare_tickets(store, request);
    mrt_pg_answer(store, request, MRT_RENEWED);
}

/* ------------------------------------------------------------------ tickets */

/* When a view is to be looked at again: when the first lease of those ahead ends, if it is
   not renewed. */
static mrt_time recheck(const struct mrt_pg_request *request, int column)
{
    mrt_time left = request->column[column] * MRT_MICROSECOND + MRT_MILLISECOND;
    if (request->is_null[column])
        return 0;
    return left < RECHECK_MIN ? RECHECK_MIN : mrt_time_min(left, RECHECK_MAX);
}

static void view(struct mrt_store *store, struct mrt_pg_request *request, int64_t number,
                 int64_t ahead, mrt_time again, bool behind)
{
    request->event.fence = (uint64_t)number << MRT_SQL_FENCE_BITS;
    request->event.fence_span = UINT64_C(1) << MRT_SQL_FENCE_BITS;
    request->event.weight_ahead = (uint64_t)ahead;
    request->event.recheck = again;
    request->event.others_behind = behind;
    mrt_pg_answer(store, request, MRT_VIEW);
}

/* Whether there is a dead session among those ahead, that has not been ended for this request
   yet: then that is done, and the request made again. */
static bool reaps(struct mrt_store *store, struct mrt_pg_request *request, int column,
                  enum mrt_pg_kind again, mrt_time now)
{
    if (request->reaped || request->is_null[column] || request->column[column] > 0)
        return false;
    request->reaped = true;
    request->kind = again;
    submit_own(store, MRT_PG_DO_REAP, &request->command, now);
    mrt_pg_submit(store, request, now);
    return true;
}

static void finish_append(struct mrt_store *store, struct mrt_pg_request *request, mrt_time now)
{
    const struct mrt_command *command = &request->command;
    const int64_t *column = request->column;
    bool fits = mrt_rule_grants((uint64_t)column[APPEND_AHEAD], command->weight, command->capacity);
    if (!request->is_null[APPEND_OLD]) { /* it was there already */
        request->kind = MRT_PG_DO_VIEW;
        mrt_pg_submit(store, request, now);
    } else if (!request->is_null[APPEND_NUMBER]) {
        count_tickets(store, command->session, 1);
        if (fits || !reaps(store, request, APPEND_LEFT, MRT_PG_DO_VIEW, now))
            view(store, request, column[APPEND_NUMBER], column[APPEND_AHEAD],
                 recheck(request, APPEND_LEFT), false);
    } else if (!column[APPEND_SESSION]) {
        session_ended(store, request);
    } else if (reaps(store, request, APPEND_LEFT, MRT_PG_DO_APPEND, now)) {
        return;
    } else if (!request->is_null[APPEND_CAPACITY]) {
        mrt_pg_fail(store, request, MORTISE_EMISMATCH,
                    "%.100s is in use as a %s of capacity %" PRId64 ", not a %s of %" PRIu64,
                    command->queue, request->kind_text, column[APPEND_CAPACITY], command->kind,
                    command->capacity);
    } else if (command->try_only) {
        mrt_pg_answer(store, request, MRT_BLOCKED);
    } else {
        mrt_pg_fail(store, request, MORTISE_EFULL, "%.100s: %" PRIu64 " are waiting already",
                    command->queue, command->queue_max);
    }
}

static void finish_view(struct mrt_store *store, struct mrt_pg_request *request, mrt_time now)
{
    const int64_t *column = request->column;
    if (!request->has_row)
        mrt_pg_answer(store, request, MRT_GONE);
    else if (!reaps(store, request, VIEW_LEFT, MRT_PG_DO_VIEW, now))
        view(store, request, column[VIEW_NUMBER], column[VIEW_AHEAD], recheck(request, VIEW_LEFT),
             column[VIEW_BEHIND]);
}

static void finish_remove(struct mrt_store *store, struct mrt_pg_request *request)
{
    if (request->kind == MRT_PG_DO_REMOVE)
        count_tickets(store, request->command.session, request->column[0] ? -1 : 0);
    mrt_pg_answer(store, request, MRT_REMOVED);
}

/* ------------------------------------------------------------------ outcomes */

static bool goes_on(const struct mrt_store *store, const struct mrt_pg_request *request,
                    mrt_time now)
{
    mrt_time patience = store->address.lease > store->address.connect ? store->address.lease
                                                                      : store->address.connect;
    return request->attempts < ATTEMPTS_MAX && now < mrt_time_add(request->begun, patience);
}

static void fail_with_advice(struct mrt_store *store, struct mrt_pg_request *request,
                             const struct mrt_pg_code *code)
{
    mrt_pg_fail(store, request, code->error, "PostgreSQL: %.160s (%s)%s%s", request->detail,
                request->sqlstate, code->advice ? "; " : "", code->advice ? code->advice : "");
}

static void finish_failed(struct mrt_store *store, struct mrt_pg_request *request, mrt_time now)
{
    const struct mrt_pg_code *code = mrt_pg_code(request->sqlstate);
    enum mrt_pg_outcome outcome = code->outcome;
    if (outcome == MRT_PG_QUIETLY && request->kind == MRT_PG_DO_REMOVE)
        request->kind = MRT_PG_DO_REMOVE_QUIETLY;
    else if (outcome == MRT_PG_QUIETLY)
        outcome = MRT_PG_FAILED;
    if (outcome == MRT_PG_ELSEWHERE) {
        mrt_pg_reject(store, code->error, "PostgreSQL: %s", code->advice);
        TAILQ_INSERT_HEAD(&store->waiting, request, link);
    } else if (outcome == MRT_PG_PERHAPS) {
        mrt_pg_answer(store, request, MRT_UNKNOWN);
    } else if (outcome != MRT_PG_FAILED && goes_on(store, request, now)) {
        request->attempts++;
        mrt_pg_submit(store, request, now);
    } else {
        fail_with_advice(store, request, code);
    }
}

static void finish_done(struct mrt_store *store, struct mrt_pg_request *request, mrt_time now)
{
    switch (request->kind) {
    case MRT_PG_DO_START:
        finish_start(store, request, now);
        break;
    case MRT_PG_DO_STOP:
        mrt_pg_answer(store, request, MRT_STOPPED);
        break;
    case MRT_PG_DO_RENEW:
        finish_renew(store, request);
        break;
    case MRT_PG_DO_APPEND:
        finish_append(store, request, now);
        break;
    case MRT_PG_DO_VIEW:
    case MRT_PG_DO_LIGHTEN:
        finish_view(store, request, now);
        break;
    case MRT_PG_DO_REMOVE:
    case MRT_PG_DO_REMOVE_QUIETLY:
        finish_remove(store, request);
        break;
    default:
        mrt_pg_answer(store, request, MRT_VIEW); /* the list's; nobody is told */
    }
}

void mrt_pg_finish(struct mrt_store *store, struct mrt_pg_request *request, mrt_time now)
{
    switch (request->kind) {
    case MRT_PG_DO_SETUP:
        finish_setup(store, request);
        mrt_pg_request_free(request);
        break;
    case MRT_PG_DO_RESUME:
        if (request->failed)
            store->broken = true; /* and once more on another connection */
        else
            finish_resume(store, request);
        mrt_pg_request_free(request);
        break;
    case MRT_PG_DO_REAP:
    case MRT_PG_DO_SWEEP:
        mrt_pg_request_free(request);
        break;
    default:
        if (request->failed)
            finish_failed(store, request, now);
        else
            finish_done(store, request, now);
    }
}

void mrt_pg_finish_lost(struct mrt_store *store, struct mrt_pg_request *request)
{
    if (request->kind == MRT_PG_DO_LIST)
        TAILQ_INSERT_HEAD(&store->waiting, request, link); /* asking again does no harm */
    else if (request->command.serial == 0)
        mrt_pg_request_free(request);
    else
        mrt_pg_answer(store, request, MRT_UNKNOWN);
}

/* ------------------------------------------------------------------ wakes */

/* "TICKET NUMBER AHEAD BEHIND", as postgres_statements.c writes it. */
static bool read_wake(const char *text, struct mrt_event *event)
{
    char id[MRT_ID_TEXT_SIZE];
    int64_t number, ahead;
    int behind, end = 0;
    if (sscanf(text, "%32s %15" SCNd64 " %18" SCNd64 " %1d%n", id, &number, &ahead, &behind,
               &end) != 4 ||
        text[end] != '\0' || !mrt_id_parse(id, &event->ticket) || number <= 0 || ahead < 0)
        return false;
    event->fence = (uint64_t)number << MRT_SQL_FENCE_BITS;
    event->fence_span = UINT64_C(1) << MRT_SQL_FENCE_BITS;
    event->weight_ahead = (uint64_t)ahead;
    event->others_behind = behind;
    return true;
}

/*
 * A place that is told is believed: its channel is the session's own, 128 random bits that
 * nobody can read who may not change the tables themselves.
 */
void mrt_pg_notified(struct mrt_store *store, const PGnotify *notification)
{
    static const char prefix[] = "mortise_";
    struct mrt_event event = {.type = MRT_VIEW, .recheck = RECHECK_MAX};
    if (strncmp(notification->relname, prefix, sizeof prefix - 1) == 0 &&
        mrt_id_parse(notification->relname + sizeof prefix - 1, &event.session) &&
        mrt_pg_find_session(store, event.session) && read_wake(notification->extra, &event))
        mrt_pg_tell(store, &event);
}
