/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of operators; each opens a connection of its own. */
#ifndef MRT_STORE_ZOOKEEPER_OPERATOR_OPERATOR_H
#define MRT_STORE_ZOOKEEPER_OPERATOR_OPERATOR_H

#include "core/store.h"

int mrt_zk_list(struct mrt_store *store, const char *name, const char *prefix,
                mrt_listed_callback callback, void *argument);
int mrt_zk_revoke(struct mrt_store *store, const char *name, uint64_t fence);
int mrt_zk_break(struct mrt_store *store, const char *name, uint64_t fence);
int mrt_zk_server(struct mrt_store *store, char *text, size_t size);

#endif
