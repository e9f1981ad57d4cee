/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets of the sessions here, and notes of the wakes to send after the commit. */
#ifndef MRT_STORE_SQLITE_TICKET_H
#define MRT_STORE_SQLITE_TICKET_H

#include "store/sqlite/internal.h"

/* Saturates. */
static inline uint64_t mrt_sqlite_add_weight(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

struct mrt_sqlite_ticket *mrt_sqlite_ticket_find(struct mrt_sqlite_store *store, struct mrt_id id);
void mrt_sqlite_ticket_free(struct mrt_sqlite_store *store, struct mrt_sqlite_ticket *ticket);
/* NULL: no memory. The caller enters the ticket once its row exists. */
struct mrt_sqlite_ticket *mrt_sqlite_ticket_new(struct mrt_sqlite_session *session,
                                                const struct mrt_command *command);
void mrt_sqlite_ticket_enter(struct mrt_sqlite_store *store, struct mrt_sqlite_ticket *ticket);
/* The value in this column into an answer; it is the store's, until the next call. */
void mrt_sqlite_take_value(struct mrt_sqlite_store *store, sqlite3_stmt *row, int column,
                           struct mrt_event *answer);
/* Notes a session, unless it is the last; false: no memory. */
bool mrt_sqlite_ids_add(struct mrt_sqlite_ids *ids, struct mrt_id id);
/* Notes a wake for a ticket; NULL: its session is nobody, or no memory. */
struct mrt_sqlite_wake *mrt_sqlite_wake_later(struct mrt_sqlite_store *store, struct mrt_id session,
                                              struct mrt_id ticket, uint64_t weight_ahead);

#endif
