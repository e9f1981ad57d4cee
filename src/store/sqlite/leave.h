/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that go, or become lighter. */
#ifndef MRT_STORE_SQLITE_LEAVE_H
#define MRT_STORE_SQLITE_LEAVE_H

#include "store/sqlite/internal.h"

/* Lowers its weight; no effect if it is not heavier. Wakes are left in store->wakes. */
enum mrt_outcome mrt_sqlite_lighten(struct mrt_sqlite_store *store,
                                    struct mrt_sqlite_ticket *ticket, uint64_t weight,
                                    mrt_time patience);
/* Takes out one ticket, or all of the session; wakes are left in store->wakes. */
enum mrt_outcome mrt_sqlite_remove(struct mrt_sqlite_store *store, struct mrt_sqlite_ticket *ticket,
                                   mrt_time patience);
enum mrt_outcome mrt_sqlite_remove_all(struct mrt_sqlite_store *store,
                                       struct mrt_sqlite_session *session, mrt_time patience);
/* Removes the ticket of this number, of any session. *found: it was there. */
enum mrt_outcome mrt_sqlite_break_number(struct mrt_sqlite_store *store, const char *queue,
                                         uint64_t number, mrt_time patience, bool *found);
/* Ends a transaction; if it fails, the departures noted in it are forgotten. */
enum mrt_outcome mrt_sqlite_end(struct mrt_sqlite_store *store, enum mrt_outcome outcome,
                                size_t noted_before);
/* In a transaction: takes a row out and notes who can be granted by that. */
enum mrt_outcome mrt_sqlite_delete_row(struct mrt_sqlite_store *store, const char *queue,
                                       uint64_t number, struct mrt_id id, uint64_t weight);
/* The session's first row after (queue, number), copied, of those with at least such a delay; no
   row: *number is 0. */
enum mrt_outcome mrt_sqlite_next_of_session(struct mrt_sqlite_store *store, struct mrt_id session,
                                            mrt_time delay, char queue[MRT_SQLITE_QUEUE_MAX],
                                            uint64_t *number, struct mrt_id *id, uint64_t *weight);
/* Steps through the tickets that hold, in order, with the weight ahead: `row` is of
   MRT_SQLITE_AHEAD. False: the row is the first that waits, or there is no row
   (sqlite3_data_count). */
bool mrt_sqlite_step_holder(struct mrt_sqlite_db *db, sqlite3_stmt *row, uint64_t *ahead);
/* Notes the ticket of such a row for waking. */
void mrt_sqlite_wake_row(struct mrt_sqlite_store *store, sqlite3_stmt *row);
/* In a transaction: notes the first that waits in the queue for waking. */
enum mrt_outcome mrt_sqlite_note_first_waiting(struct mrt_sqlite_store *store, const char *queue);

#endif
