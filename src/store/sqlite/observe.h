/* SPDX-License-Identifier: Apache-2.0 */
/* Observers of elections, and cells. */
#ifndef MRT_STORE_SQLITE_OBSERVE_H
#define MRT_STORE_SQLITE_OBSERVE_H

#include "store/sqlite/internal.h"

/* Fills in the answer; its value is the store's, until the next call. */
enum mrt_outcome mrt_sqlite_observe(struct mrt_sqlite_store *store,
                                    const struct mrt_command *command, mrt_time patience,
                                    struct mrt_event *answer);
/* Notifies all observing processes if the transaction changed a value. */
void mrt_sqlite_tell_change(struct mrt_sqlite_store *store);
/* The file was touched: tells the observers here. */
void mrt_sqlite_changed(struct mrt_sqlite_store *store);
/* Changes the value of a ticket. */
enum mrt_outcome mrt_sqlite_set_value(struct mrt_sqlite_store *store,
                                      const struct mrt_sqlite_ticket *ticket, const void *value,
                                      size_t size, mrt_time patience);

/* cell.c */
/* CELL_GET, CELL_SET. Fills in the answer, which may be FAILED. */
enum mrt_outcome mrt_sqlite_cell(struct mrt_sqlite_store *store, const struct mrt_command *command,
                                 mrt_time patience, struct mrt_event *answer);

#endif
