/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detached tickets. They are rows like all others, so the statements that count tickets, notify
 * waiters or remove a ticket treat them alike.
 *
 * The session of a detached ticket has the identity of 16 zero bytes and a lease of millennia. Its
 * row is made at the first detach and never deleted. Both changes of session are one UPDATE, under
 * the epoch of the session that gives or takes: so a command that an old connection has left on the
 * server does not move a ticket a second time.
 *
 * A ticket with a delay stays when its session dies. It gets a session of its own, with the
 * ticket's identity, whose lease is the delay: the lease began when that of the dead session ended.
 * This session then ends like every dead session. A dead session that nobody has found yet stays
 * until all its delays are over. All of that is done by the statements, and nothing of it here.
 */
#include "store/sql/outbox.h"
#include "store/sql/request.h"
#include "store/sql/send.h"
#include "store/sql/session.h"
#include "store/sql/values.h"

#include "store/kit/refusal.h"

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
    if (!mrt_sql_is_null(request, MRT_MOVED_NUMBER)) { /* an adopted ticket is as any other now */
        request->kind = MRT_SQL_DO_VIEW;
        mrt_sql_resend(store, request, request->kind, now);
    } else if (!mrt_sql_number(request, MRT_MOVED_SESSION)) {
        mrt_sql_session_ended(store, request);
    } else if (mrt_sql_number(request, MRT_MOVED_OTHER)) {
        mrt_sql_fail(store, request, MORTISE_EMISMATCH, "%s", MRT_REFUSAL_ADOPT);
    } else {
        mrt_sql_fail(store, request, MORTISE_ENOTHELD, "%.100s has no such ticket",
                     request->command.queue);
    }
}
