/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets that are nobody's. */
#ifndef MRT_STORE_SQLITE_DETACH_H
#define MRT_STORE_SQLITE_DETACH_H

#include "store/sqlite/internal.h"

/* DETACH: MRT_IN_QUEUE, also if that was done before, or MRT_ABSENT. */
enum mrt_outcome mrt_sqlite_detach(struct mrt_sqlite_store *store,
                                   const struct mrt_command *command, mrt_time patience,
                                   enum mrt_verdict *verdict);
/* An APPEND that adopts: MRT_IN_QUEUE, MRT_ABSENT or MRT_MISMATCH. */
enum mrt_outcome mrt_sqlite_adopt(struct mrt_sqlite_store *store,
                                  struct mrt_sqlite_session *session,
                                  const struct mrt_command *command, mrt_time patience,
                                  enum mrt_verdict *verdict);

#endif
