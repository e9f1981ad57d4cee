/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tickets that are nobody's. They are rows as all others, so whatever counts tickets, tells who
 * waits, or takes one away knows no difference.
 *
 * A detached one's session has the identity of 16 zero bytes, a lease of millennia, and a row that
 * is made when first something is detached and never taken out. Both changes of hands are one
 * UPDATE, under the epoch of the session that gives or takes: what an old connection has left on
 * the server does not move a ticket a second time.
 *
 * What a dead session leaves behind for a while, as its tickets have a delay, gets a session for
 * each ticket, of that ticket's own identity, whose lease is the delay: it began when the dead
 * one's ended. It goes as every dead session does. A dead session that nobody has found yet
 * stays until all its delays are over. Of this there is nothing here but in the statements.
 */
#include "store/sql/outbox.h"
#include "store/sql/request.h"
#include "store/sql/send.h"
#include "store/sql/session.h"
#include "store/sql/values.h"

void mrt_sql_finish_detach(struct mrt_sql_store *store, struct mrt_sql_request *request)
{
    request->event.fence = (uint64_t)mrt_sql_number(request, MRT_MOVED_NUMBER)
                           << MRT_SQL_FENCE_BITS;
    request->event.fence_span = UINT64_C(1) << MRT_SQL_FENCE_BITS;
    if (mrt_sql_number(request, MRT_MOVED_BY_THIS))
        mrt_sql_count_tickets(store, request->command.session, -1);
    if (!mrt_sql_is_null(request, MRT_MOVED_NUMBER))
        mrt_sql_answer(store, request, MRT_VIEW);
    else if (mrt_sql_number(request, MRT_MOVED_SESSION))
        mrt_sql_answer(store, request, MRT_GONE);
    else
        mrt_sql_session_ended(store, request);
}

void mrt_sql_finish_adopt(struct mrt_sql_store *store, struct mrt_sql_request *request,
                          mrt_time now)
{
    if (mrt_sql_number(request, MRT_MOVED_BY_THIS))
        mrt_sql_count_tickets(store, request->command.session, 1);
    if (!mrt_sql_is_null(request, MRT_MOVED_NUMBER)) { /* it is as any other now */
        request->kind = MRT_SQL_DO_VIEW;
        mrt_sql_resend(store, request, request->kind, now);
    } else if (!mrt_sql_number(request, MRT_MOVED_SESSION)) {
        mrt_sql_session_ended(store, request);
    } else if (mrt_sql_number(request, MRT_MOVED_OTHER)) {
        mrt_sql_fail(store, request, MORTISE_EMISMATCH, "%s", MRT_ADOPT_MISMATCH);
    } else {
        mrt_sql_fail(store, request, MORTISE_ENOTHELD, "%.100s has no such ticket",
                     request->command.queue);
    }
}
