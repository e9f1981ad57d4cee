/* SPDX-License-Identifier: Apache-2.0 */
/* Requests outside of any session: list.c */
#ifndef MRT_STORE_SQL_LIST_H
#define MRT_STORE_SQL_LIST_H

#include "store/sql/internal.h"

/* Whether one of the hosts has an address. Waits for at most connect=, which the client libraries
   would not keep. 0, or MORTISE_EUNREACHABLE with particulars. */
int mrt_sql_find_hosts(const struct mrt_sql_address *address);
bool mrt_sql_asks_apart(const struct mrt_store *store);
/* The server's version as it reports it, over a connection made for the call. */
int mrt_sql_tell_version(const struct mrt_sql_store *store,
                         const char *(*version_of)(const struct mrt_sql_store *asker), char *text,
                         size_t size);
/* In the wire of each dialect. */
int mrt_sql_server(struct mrt_store *store, char *text, size_t size);
int mrt_sql_list(struct mrt_store *store, const char *name, const char *prefix,
                 mrt_listed_callback callback, void *argument);
int mrt_sql_revoke(struct mrt_store *store, const char *name, uint64_t fence);
int mrt_sql_break(struct mrt_store *store, const char *name, uint64_t fence);

#endif
