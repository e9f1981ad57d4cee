/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the server's notifications: notification.c */
#ifndef MRT_STORE_SQL_NOTIFICATION_H
#define MRT_STORE_SQL_NOTIFICATION_H

#include "store/sql/internal.h"

/* On the channel of a session, whose name the prefix is taken from. */
void mrt_sql_notification(struct mrt_sql_store *store, const char *channel, const char *text);

#endif
