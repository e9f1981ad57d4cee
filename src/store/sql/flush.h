/* SPDX-License-Identifier: Apache-2.0 */
/* Removals that may not be on disk yet: flush.c */
#ifndef MRT_STORE_SQL_FLUSH_H
#define MRT_STORE_SQL_FLUSH_H

#include "store/sql/internal.h"

/* A new REMOVE need not wait for the disk, if it can be remembered. */
void mrt_sql_note_unflushed(struct mrt_sql_store *store, struct mrt_sql_request *request);
/* Any request is answered so, or its outcome is not known (MRT_UNKNOWN). */
void mrt_sql_removal_answered(struct mrt_sql_store *store, struct mrt_sql_request *request,
                              enum mrt_event_type type);
/* A commit that waited for the disk has been answered. */
void mrt_sql_on_disk(struct mrt_sql_store *store);
void mrt_sql_connection_lost(struct mrt_sql_store *store);
/* Repeats the requests that are due. */
void mrt_sql_remove_again(struct mrt_sql_store *store, mrt_time now);
void mrt_sql_removals_free(struct mrt_sql_store *store);

#endif
