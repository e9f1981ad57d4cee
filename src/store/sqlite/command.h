/* SPDX-License-Identifier: Apache-2.0 */
/* Commands, and the file that they need. */
#ifndef MRT_STORE_SQLITE_COMMAND_H
#define MRT_STORE_SQLITE_COMMAND_H

#include "store/sqlite/internal.h"

/* Opens the file of the URI, or what lies there now; 0 or a MORTISE code. */
int mrt_sqlite_open_file(struct mrt_sqlite_store *store, mrt_time patience);
void mrt_sqlite_close_file(struct mrt_sqlite_store *store);
/* False: not done for want of patience. */
bool mrt_sqlite_dispatch(struct mrt_sqlite_store *store, const struct mrt_command *command,
                         mrt_time patience);
/* Ends all sessions if store->fault is set. */
void mrt_sqlite_tell_of_fault(struct mrt_sqlite_store *store);

#endif
