/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns the outcome of a request into the answer to its command, and does what follows from it.
 *
 * A failure that a second attempt may mend is not shown: retry.c.
 */
#include "store/sql/answer.h"
#include "store/sql/driver.h"
#include "store/sql/flush.h"
#include "store/sql/outbox.h"
#include "store/sql/request.h"
#include "store/sql/retry.h"
#include "store/sql/session.h"
#include "store/sql/ticket.h"
#include "store/sql/values.h"

static void finish_failed(struct mrt_sql_store *store, struct mrt_sql_request *request,
                          mrt_time now)
{
    const struct mrt_sql_code *code = mrt_sql_code(request->state);
    enum mrt_sql_outcome outcome = code->outcome;
    if (outcome == MRT_SQL_WITHOUT_NOTIFY && mrt_sql_removes(request) &&
        request->kind != MRT_SQL_DO_REMOVE_WITHOUT_NOTIFY)
        request->kind = MRT_SQL_DO_REMOVE_WITHOUT_NOTIFY;
    else if (outcome == MRT_SQL_WITHOUT_NOTIFY)
        outcome = MRT_SQL_FAILED;
    if (outcome == MRT_SQL_ELSEWHERE) {
        mrt_sql_ask_elsewhere(store, request, code->error, code->advice);
    } else if (outcome == MRT_SQL_PERHAPS) {
        mrt_sql_answer(store, request, MRT_UNKNOWN);
    } else if (outcome != MRT_SQL_FAILED && mrt_sql_may_retry(store, request, now)) {
        mrt_sql_retry(store, request, now);
    } else {
        mrt_sql_fail_with_advice(store, request, code);
    }
}

static void finish_done(struct mrt_sql_store *store, struct mrt_sql_request *request, mrt_time now)
{
    switch (request->kind) {
    case MRT_SQL_DO_START:
        mrt_sql_finish_start(store, request, now);
        break;
    case MRT_SQL_DO_STOP:
    case MRT_SQL_DO_DIE:
        mrt_sql_answer(store, request, MRT_STOPPED);
        break;
    case MRT_SQL_DO_RENEW:
        mrt_sql_finish_renew(store, request, now);
        break;
    case MRT_SQL_DO_APPEND:
        mrt_sql_finish_append(store, request, now);
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
        mrt_sql_finish_remove(store, request, now);
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
        mrt_sql_finish_view(store, request, now);
    }
}

void mrt_sql_finish(struct mrt_sql_store *store, struct mrt_sql_request *request, mrt_time now)
{
    if (store->hooks) {
        store->hooks->finish(store, request);
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
            mrt_sql_finish_resume(store, request);
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

static void free_own(struct mrt_sql_store *store, struct mrt_sql_request *request)
{
    mrt_sql_removal_answered(store, request, MRT_UNKNOWN);
    mrt_sql_request_free(request);
}

void mrt_sql_finish_lost(struct mrt_sql_store *store, struct mrt_sql_request *request)
{
    request->lost = true;
    if (store->hooks)
        store->hooks->finish_lost(store, request);
    else if (request->kind >= MRT_SQL_DO_LIST)
        TAILQ_INSERT_HEAD(&store->waiting, request, link); /* asking again does no harm */
    else if (request->command.serial == 0)
        free_own(store, request);
    else
        mrt_sql_answer(store, request, MRT_UNKNOWN);
}
