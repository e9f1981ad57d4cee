/* SPDX-License-Identifier: Apache-2.0 */
/* mortise_list, mortise_revoke, mortise_break and mortise_server: core/store.h. */
#ifndef MRT_STORE_REDIS_OPERATOR_H
#define MRT_STORE_REDIS_OPERATOR_H

#include "core/store.h"

int mrt_redis_list(struct mrt_store *port, const char *name, const char *prefix,
                   mrt_listed_callback callback, void *argument);
int mrt_redis_revoke(struct mrt_store *port, const char *name, uint64_t fence);
int mrt_redis_break(struct mrt_store *port, const char *name, uint64_t fence);
int mrt_redis_server(struct mrt_store *port, char *text, size_t size);

#endif
