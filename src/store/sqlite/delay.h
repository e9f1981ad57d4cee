/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets that a dead session leaves behind for a while. */
#ifndef MRT_STORE_SQLITE_DELAY_H
#define MRT_STORE_SQLITE_DELAY_H

#include "store/sqlite/internal.h"

/* In a transaction: leaves a dead session's holders with a delay behind. */
enum mrt_outcome mrt_sqlite_leave_behind(struct mrt_sqlite_store *store, struct mrt_id session,
                                         size_t *count);
/* Removes tickets of a queue whose delay is over, in a transaction or in one of its own. */
enum mrt_outcome mrt_sqlite_delete_over(struct mrt_sqlite_store *store, const char *queue,
                                        bool *any);
enum mrt_outcome mrt_sqlite_end_delays(struct mrt_sqlite_store *store, const char *queue,
                                       mrt_time patience);

#endif
