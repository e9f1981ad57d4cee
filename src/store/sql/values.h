/* SPDX-License-Identifier: Apache-2.0 */
/* Answers about values and cells: values.c, detach.c */
#ifndef MRT_STORE_SQL_VALUES_H
#define MRT_STORE_SQL_VALUES_H

#include "store/sql/internal.h"

void mrt_sql_finish_observe(struct mrt_sql_store *store, struct mrt_sql_request *request,
                            mrt_time now);
void mrt_sql_finish_cell(struct mrt_sql_store *store, struct mrt_sql_request *request,
                         mrt_time now);
void mrt_sql_finish_detach(struct mrt_sql_store *store, struct mrt_sql_request *request);
void mrt_sql_finish_adopt(struct mrt_sql_store *store, struct mrt_sql_request *request,
                          mrt_time now);

#endif
