/* SPDX-License-Identifier: Apache-2.0 */
/* Telling others, and being told: datagrams and file events. */
#ifndef MRT_STORE_SQLITE_WAKE_H
#define MRT_STORE_SQLITE_WAKE_H

#include "store/sqlite/internal.h"

/* Sends all noted wakes. A session that turns out dead is buried. */
void mrt_sqlite_wake_all(struct mrt_sqlite_store *store, mrt_time patience);
/* Reads what has come, and looks at sessions under suspicion. */
void mrt_sqlite_hear(struct mrt_sqlite_store *store, mrt_time now);
mrt_time mrt_sqlite_next_look(const struct mrt_sqlite_store *store);

#endif
