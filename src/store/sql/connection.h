/* SPDX-License-Identifier: Apache-2.0 */
/* The one connection: connection.c */
#ifndef MRT_STORE_SQL_CONNECTION_H
#define MRT_STORE_SQL_CONNECTION_H

#include "store/sql/internal.h"

/* Everything that is due: connects, reads, sends. */
void mrt_sql_turn(struct mrt_sql_store *store, mrt_time now);
mrt_time mrt_sql_link_next(const struct mrt_sql_store *store);
/* Ends the connection; what was sent has an unknown outcome. */
void mrt_sql_drop(struct mrt_sql_store *store, mrt_time now);
/* The connection is established; sends the queries that identify its server. */
void mrt_sql_check(struct mrt_sql_store *store, mrt_time now);
/* The server has been accepted. */
void mrt_sql_connected(struct mrt_sql_store *store);
/* Which events of the connection's socket are waited for; which have come. */
void mrt_sql_watch(struct mrt_sql_store *store, int socket, uint32_t events);
uint32_t mrt_sql_ready(const struct mrt_sql_store *store);

#endif
