/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that observe a queue: observers.c */
#ifndef MRT_STORE_SQL_OBSERVERS_H
#define MRT_STORE_SQL_OBSERVERS_H

#include "store/sql/internal.h"

/* Before an OBSERVE is sent. */
void mrt_sql_observe(struct mrt_sql_store *store, const struct mrt_command *command, mrt_time now);
/* Hears of changes from now on, if anybody observes anything and there is a connection. */
void mrt_sql_listen(struct mrt_sql_store *store, mrt_time now);
void mrt_sql_unobserve(struct mrt_sql_store *store, struct mrt_id id);
void mrt_sql_unobserve_all(struct mrt_sql_store *store, const struct mrt_sql_session *session);
void mrt_sql_observed_changed(struct mrt_sql_store *store, const char *queue);
void mrt_sql_observers_due(struct mrt_sql_store *store, mrt_time now);
mrt_time mrt_sql_observers_next(const struct mrt_sql_store *store);
/* NULL: there is none. */
struct mrt_sql_observer *mrt_sql_observer_of(struct mrt_sql_store *store, struct mrt_id id);

#endif
