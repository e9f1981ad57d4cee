/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the answers to OBSERVE and to the commands of a cell.
 *
 * A cell's row stays when the cell is deleted (value NULL), so that its version and the largest
 * fence it has seen never fall. A write is one conditional statement. The row it leaves names its
 * last writer, which tells whether the write was done.
 */
#include "store/sql/values.h"
#include "store/sql/driver.h"
#include "store/sql/observers.h"
#include "store/sql/outbox.h"
#include "store/sql/request.h"
#include "store/sql/retry.h"
#include "store/sql/session.h"
#include "store/sql/ticket.h"

#define POLL (200 * MRT_MILLISECOND) /* where nobody notifies */

void mrt_sql_finish_observe(struct mrt_sql_store *store, struct mrt_sql_request *request,
                            mrt_time now)
{
    struct mrt_sql_observer *observer = mrt_sql_observer_of(store, request->command.ticket);
    mrt_time left = mrt_sql_lease_left(store, request, MRT_HOLDER_LEFT);
    if (mrt_sql_reaps(store, request, MRT_HOLDER_LEFT, MRT_SQL_DO_OBSERVE, now))
        return;
    if (mrt_sql_has_row(request) && !mrt_sql_take_value(request, MRT_HOLDER_VALUE)) {
        mrt_sql_answer(store, request, MRT_UNKNOWN);
        return;
    }
    request->event.fence = (uint64_t)mrt_sql_number(request, MRT_HOLDER_NUMBER)
                           << MRT_SQL_FENCE_BITS;
    request->event.recheck = left > 0 ? left : MRT_SQL_RECHECK_MAX;
    mrt_time wait = mrt_sql_is_notified(store) ? request->event.recheck
                                               : mrt_time_min(POLL, request->event.recheck);
    mrt_sql_answer(store, request, MRT_HOLDER);
    if (!observer)
        return;
    observer->looking = false;
    observer->due = observer->changed ? now : mrt_time_add(now, wait);
}

void mrt_sql_finish_cell(struct mrt_sql_store *store, struct mrt_sql_request *request, mrt_time now)
{
    const struct mrt_command *command = &request->command;
    uint64_t version = (uint64_t)mrt_sql_number(request, MRT_CELL_VERSION);
    uint64_t fence = (uint64_t)mrt_sql_number(request, MRT_CELL_FENCE);
    bool set = command->type == MRT_CELL_SET, own = mrt_sql_number(request, MRT_CELL_OWN);
    if (!mrt_sql_number(request, MRT_CELL_SESSION)) {
        mrt_sql_session_ended(store, request);
    } else if (set && mrt_sql_is_null(request, MRT_CELL_VERSION) && command->version == 0) {
        mrt_sql_make(store, request, MRT_SQL_DO_MAKE_CELL, now);
    } else if (set && !own) {
        mrt_sql_fail(store, request,
                     command->fence > 0 && command->fence < fence ? MORTISE_ESTALE
                                                                  : MORTISE_ECONFLICT,
                     "%.100s has been written to by another", command->queue);
    } else if (!set && !mrt_sql_is_null(request, MRT_CELL_VALUE) &&
               !mrt_sql_take_value(request, MRT_CELL_VALUE)) {
        mrt_sql_answer(store, request, MRT_UNKNOWN);
    } else {
        request->event.version = mrt_sql_is_null(request, MRT_CELL_VALUE) ? 0 : version;
        request->event.fence = fence;
        mrt_sql_answer(store, request, MRT_CELL);
    }
}
