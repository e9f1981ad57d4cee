/* SPDX-License-Identifier: Apache-2.0 */
/* The outcome of a request, and its consequences: answer.c */
#ifndef MRT_STORE_SQL_ANSWER_H
#define MRT_STORE_SQL_ANSWER_H

#include "store/sql/internal.h"

/* All of a request's results are there. */
void mrt_sql_finish(struct mrt_sql_store *store, struct mrt_sql_request *request, mrt_time now);
/* Its connection is gone. */
void mrt_sql_finish_lost(struct mrt_sql_store *store, struct mrt_sql_request *request);

#endif
