/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that have died. */
#ifndef MRT_STORE_SQLITE_DEATH_H
#define MRT_STORE_SQLITE_DEATH_H

#include "store/sqlite/internal.h"

/* In a transaction: takes out the tickets of a session that has died, but for those that it leaves
   behind; *count: how many they were. */
enum mrt_outcome mrt_sqlite_delete_session(struct mrt_sqlite_store *store, struct mrt_id session,
                                           size_t *count);
/* Takes out the tickets of a dead session and its files; sets store->fault if it must. */
enum mrt_outcome mrt_sqlite_bury(struct mrt_sqlite_store *store, struct mrt_id session,
                                 mrt_time patience);
/* Removes what crashed sessions left, at most once a minute. */
void mrt_sqlite_sweep(struct mrt_sqlite_store *store, mrt_time patience);

#endif
