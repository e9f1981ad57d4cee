/* SPDX-License-Identifier: Apache-2.0 */
/* Requests on their way: send.c */
#ifndef MRT_STORE_SQL_SEND_H
#define MRT_STORE_SQL_SEND_H

#include "store/sql/internal.h"

/* Sends it if there is a connection, or lets it wait. */
void mrt_sql_begin(struct mrt_sql_store *store, struct mrt_sql_request *request, mrt_time now);
/* Sends it now; on failure it is answered. */
void mrt_sql_send(struct mrt_sql_store *store, struct mrt_sql_request *request, mrt_time now);
/* One of the store's own, on behalf of the command. */
void mrt_sql_begin_own(struct mrt_sql_store *store, enum mrt_sql_kind kind,
                       const struct mrt_command *command, mrt_time now);
/* Sends the request again. If `before` is another kind, a request of that kind, the store's own, is
   sent before it. Requests that have not been sent yet stay behind it. */
void mrt_sql_resend(struct mrt_sql_store *store, struct mrt_sql_request *request,
                    enum mrt_sql_kind before, mrt_time now);

#endif
