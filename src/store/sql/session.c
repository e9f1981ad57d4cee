/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions: what START, RESUME and RENEW have answered.
 *
 * A session counts its tickets, and each renewal compares the count with the server's. If they
 * differ, something was deleted or requested without a notification, and all tickets are looked at.
 */
#include "store/sql/session.h"
#include "base/assert.h"
#include "store/sql/driver.h"
#include "store/sql/fault.h"
#include "store/sql/flush.h"
#include "store/sql/observers.h"
#include "store/sql/outbox.h"
#include "store/sql/request.h"
#include "store/sql/send.h"

#include <stdlib.h>

/* Columns of a RENEW's row; the others are the driver's. */
enum { RENEW_TICKETS, RENEW_ASKED };

struct mrt_sql_session *mrt_sql_find_session(struct mrt_sql_store *store, struct mrt_id id)
{
    struct mrt_sql_session *session;
    TAILQ_FOREACH (session, &store->sessions, link)
        if (mrt_id_equal(session->id, id))
            return session;
    return NULL;
}

void mrt_sql_forget_session(struct mrt_sql_store *store, struct mrt_sql_session *session)
{
    MRT_ASSERT(mrt_sql_find_session(store, session->id) == session);
    mrt_sql_unobserve_all(store, session);
    TAILQ_REMOVE(&store->sessions, session, link);
    free(session);
}

void mrt_sql_count_tickets(struct mrt_sql_store *store, struct mrt_id id, int change)
{
    struct mrt_sql_session *session = mrt_sql_find_session(store, id);
    if (session && session->tickets >= 0)
        session->tickets += change;
}

void mrt_sql_lose_count(struct mrt_sql_store *store, struct mrt_id id)
{
    struct mrt_sql_session *session = mrt_sql_find_session(store, id);
    if (session)
        session->tickets = -1;
}

void mrt_sql_finish_resume(struct mrt_sql_store *store, const struct mrt_sql_request *request)
{
    struct mrt_sql_session *session = mrt_sql_find_session(store, request->command.session);
    struct mrt_event event = {.session = request->command.session, .error = MORTISE_ELOST};
    if (!session)
        return;
    event.type = mrt_sql_has_row(request) ? MRT_WAKE : MRT_SESSION_LOST;
    mrt_sql_lose_count(store, session->id);
    if (!mrt_sql_has_row(request))
        mrt_sql_forget_session(store, session);
    mrt_sql_tell(store, &event); /* events in between were not heard: all tickets are read again */
}

void mrt_sql_finish_start(struct mrt_sql_store *store, struct mrt_sql_request *request,
                          mrt_time now)
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
static void compare_tickets(struct mrt_sql_store *store, const struct mrt_sql_request *request)
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

void mrt_sql_session_ended(struct mrt_sql_store *store, struct mrt_sql_request *request)
{
    struct mrt_sql_session *session = mrt_sql_find_session(store, request->command.session);
    if (session)
        mrt_sql_forget_session(store, session);
    mrt_sql_fail(store, request, MORTISE_ELOST, "the session has ended");
}

/* This server cannot serve it: the request waits for one that can. */
void mrt_sql_ask_elsewhere(struct mrt_sql_store *store, struct mrt_sql_request *request, int error,
                           const char *why)
{
    mrt_sql_reject(store, error, "%s: %s", mrt_sql_product, why);
    TAILQ_INSERT_HEAD(&store->waiting, request, link);
}

void mrt_sql_finish_renew(struct mrt_sql_store *store, struct mrt_sql_request *request,
                          mrt_time now)
{
    if (!mrt_sql_has_row(request)) {
        mrt_sql_session_ended(store, request);
        return;
    }
    if (!mrt_sql_driver_writable(request)) {
        mrt_sql_ask_elsewhere(store, request, MORTISE_EUNREACHABLE, "the server is read-only");
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
