/* SPDX-License-Identifier: Apache-2.0 */
/* Answers about tickets: ticket.c */
#ifndef MRT_STORE_SQL_TICKET_H
#define MRT_STORE_SQL_TICKET_H

#include "store/sql/internal.h"

/* Whether a session that matters is dead and this request has not ended it yet. Then it is ended,
 * and the request repeated as `again`. The column is the rest of the first of their leases, in
 * microseconds. */
bool mrt_sql_reaps(struct mrt_sql_store *store, struct mrt_sql_request *request, int column,
                   enum mrt_sql_kind again, mrt_time now);
/* How long such a lease lasts, within reason; 0: there is none. */
mrt_time mrt_sql_lease_left(const struct mrt_sql_store *store,
                            const struct mrt_sql_request *request, int column);
/* Handle the answers of APPEND, VIEW and REMOVE. */
void mrt_sql_finish_append(struct mrt_sql_store *store, struct mrt_sql_request *request,
                           mrt_time now);
void mrt_sql_finish_view(struct mrt_sql_store *store, struct mrt_sql_request *request,
                         mrt_time now);
void mrt_sql_finish_remove(struct mrt_sql_store *store, struct mrt_sql_request *request,
                           mrt_time now);

#endif
