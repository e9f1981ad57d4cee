/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: session.c */
#ifndef MRT_STORE_SQL_SESSION_H
#define MRT_STORE_SQL_SESSION_H

#include "store/sql/internal.h"

struct mrt_sql_session *mrt_sql_find_session(struct mrt_sql_store *store, struct mrt_id id);
void mrt_sql_forget_session(struct mrt_sql_store *store, struct mrt_sql_session *session);
void mrt_sql_session_ended(struct mrt_sql_store *store, struct mrt_sql_request *request);
/* How many tickets the server should count for the session has changed; is not known any more, so
   the next renewal has all looked at. */
void mrt_sql_count_tickets(struct mrt_sql_store *store, struct mrt_id session, int change);
void mrt_sql_lose_count(struct mrt_sql_store *store, struct mrt_id session);
/* This is not the server to send to: the request waits for one that is. */
void mrt_sql_ask_elsewhere(struct mrt_sql_store *store, struct mrt_sql_request *request, int error,
                           const char *why);
/* Handle the answers of START, RESUME and RENEW. */
void mrt_sql_finish_start(struct mrt_sql_store *store, struct mrt_sql_request *request,
                          mrt_time now);
void mrt_sql_finish_resume(struct mrt_sql_store *store, const struct mrt_sql_request *request);
void mrt_sql_finish_renew(struct mrt_sql_store *store, struct mrt_sql_request *request,
                          mrt_time now);

#endif
