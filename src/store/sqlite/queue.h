/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets: what APPEND and REFRESH do to a queue. */
#ifndef MRT_STORE_SQLITE_QUEUE_H
#define MRT_STORE_SQLITE_QUEUE_H

#include "store/sqlite/internal.h"

struct mrt_sqlite_view {
    uint64_t fence, weight_ahead, revoked, place;
    bool others_behind;
    mrt_time recheck;
};

/* Of MRT_MISMATCH the thread's error detail tells. */
enum mrt_outcome mrt_sqlite_append(struct mrt_sqlite_store *store,
                                   struct mrt_sqlite_session *session,
                                   const struct mrt_command *command, mrt_time patience,
                                   enum mrt_verdict *verdict, struct mrt_sqlite_view *view);
/* `watch_closely`: the ticket's session wants to know what others do to it. */
enum mrt_outcome mrt_sqlite_refresh(struct mrt_sqlite_store *store,
                                    struct mrt_sqlite_ticket *ticket, bool watch_closely,
                                    mrt_time patience, enum mrt_verdict *verdict,
                                    struct mrt_sqlite_view *view);
/* How many tickets are ahead of it now, the dead included; 0 also if that cannot be read. */
uint64_t mrt_sqlite_place(struct mrt_sqlite_store *store, const struct mrt_sqlite_ticket *ticket);

#endif
