/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's calls, and the list. */
#ifndef MRT_STORE_SQLITE_OPERATOR_H
#define MRT_STORE_SQLITE_OPERATOR_H

#include "store/sqlite/internal.h"

/* The fault that kept an operator's call from being done, as a code with its particulars. */
int mrt_sqlite_operator_error(const struct mrt_sqlite_store *store);
int mrt_sqlite_revoke(struct mrt_sqlite_store *store, const char *name, uint64_t fence);
int mrt_sqlite_break(struct mrt_sqlite_store *store, const char *name, uint64_t fence);

/* list.c */
int mrt_sqlite_list(struct mrt_sqlite_store *store, const char *name, const char *prefix,
                    mrt_listed_callback callback, void *argument);

#endif
