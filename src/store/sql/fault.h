/* SPDX-License-Identifier: Apache-2.0 */
/* Why a connection is of no use: fault.c */
#ifndef MRT_STORE_SQL_FAULT_H
#define MRT_STORE_SQL_FAULT_H

#include "store/sql/internal.h"

/* It is no good, for this reason; it is dropped soon. */
__attribute__((format(printf, 3, 4))) void mrt_sql_reject(struct mrt_sql_store *store, int error,
                                                          const char *format, ...);
/* The schema's version is this: false if it is another, and then that is why the connection is no
   good. 0: it does not say. */
bool mrt_sql_accept_schema(struct mrt_sql_store *store, int64_t version);
/* SETUP has failed with an error of the server's. */
void mrt_sql_reject_setup(struct mrt_sql_store *store, const struct mrt_sql_request *request);

#endif
