/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator's calls on a queue, one transaction each.
 *
 * Holders are always the first tickets of a queue, so a request to all of them is one UPDATE of a
 * range. The request is a count in their rows. Their sessions are woken to look; a session
 * without a socket finds it at its next look. A ticket is broken by deleting its row, as a release
 * does; its session is woken to look, and finds it gone.
 */
#include "store/sqlite/operator.h"

#include "base/error.h"
#include "store/sqlite/leave.h"
#include "store/sqlite/ticket.h"

int mrt_sqlite_operator_error(const struct mrt_sqlite_store *store)
{
    const struct mrt_sqlite_db *db = &store->db;
    switch (mrt_sqlite_outcome(db)) {
    case MRT_FULL:
        return MORTISE_ENOMEM;
    case MRT_BUSY:
        return mrt_error(MORTISE_EUNREACHABLE, "%s: busy", store->address);
    default:
        return mrt_error(MORTISE_ESTORE, "%s: %s", store->address, sqlite3_errstr(db->last_error));
    }
}

/* The tickets that hold, or the one of them that has this number; `first` 0: there is none. */
struct holders {
    uint64_t first, last;
};

/* In a transaction; notes their sessions for waking. */
static enum mrt_outcome find_holders(struct mrt_sqlite_store *store, const char *queue,
                                     uint64_t wanted, struct holders *holders)
{
    struct mrt_sqlite_db *db = &store->db;
    uint64_t ahead = 0;
    sqlite3_stmt *row = mrt_sqlite_statement(db, MRT_SQLITE_AHEAD);
    if (!row)
        return mrt_sqlite_outcome(db);
    mrt_sqlite_bind_place(row, queue, MRT_SQLITE_END);
    while (mrt_sqlite_step_holder(db, row, &ahead)) {
        uint64_t number = (uint64_t)sqlite3_column_int64(row, 0);
        if (wanted > 0 && number != wanted)
            continue;
        mrt_sqlite_wake_row(store, row);
        holders->first = holders->first ? holders->first : number;
        holders->last = number;
    }
    sqlite3_reset(row);
    return mrt_sqlite_outcome(db);
}

/* In a transaction. */
static enum mrt_outcome count_request(struct mrt_sqlite_store *store, const char *queue,
                                      uint64_t wanted, struct holders *holders)
{
    enum mrt_outcome outcome = find_holders(store, queue, wanted, holders);
    if (outcome != MRT_DONE || !holders->first)
        return outcome;
    sqlite3_stmt *statement = mrt_sqlite_statement(&store->db, MRT_SQLITE_REVOKE);
    if (!statement)
        return mrt_sqlite_outcome(&store->db);
    mrt_sqlite_bind_place(statement, queue, holders->first);
    sqlite3_bind_int64(statement, 3, (sqlite3_int64)holders->last);
    return mrt_sqlite_run(&store->db, MRT_SQLITE_REVOKE);
}

static mrt_time patience(void)
{
    return mrt_time_add(mrt_time_now(), MRT_SQLITE_OPERATOR_PATIENCE);
}

/* Whether it can be a ticket's own fence; 0 is none. */
static bool names_ticket(uint64_t fence)
{
    return fence > 0 && fence % (UINT64_C(1) << MRT_SQLITE_FENCE_BITS) == 0;
}

int mrt_sqlite_revoke(struct mrt_sqlite_store *store, const char *name, uint64_t fence)
{
    struct holders holders = {0, 0};
    if (fence > 0 && !names_ticket(fence))
        return MORTISE_ENOTHELD;
    enum mrt_outcome outcome = mrt_sqlite_begin(&store->db, patience());
    if (outcome == MRT_DONE)
        outcome = mrt_sqlite_conclude(
            &store->db, count_request(store, name, fence >> MRT_SQLITE_FENCE_BITS, &holders));
    if (outcome != MRT_DONE)
        return mrt_sqlite_operator_error(store);
    return holders.first ? MORTISE_OK : MORTISE_ENOTHELD;
}

int mrt_sqlite_break(struct mrt_sqlite_store *store, const char *name, uint64_t fence)
{
    bool found = false;
    if (!names_ticket(fence))
        return MORTISE_ENOTHELD;
    enum mrt_outcome outcome =
        mrt_sqlite_break_number(store, name, fence >> MRT_SQLITE_FENCE_BITS, patience(), &found);
    if (outcome != MRT_DONE)
        return mrt_sqlite_operator_error(store);
    return found ? MORTISE_OK : MORTISE_ENOTHELD;
}
