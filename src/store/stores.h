/* The stores that are built in, by the scheme of their URI. */
#ifndef MRT_STORE_STORES_H
#define MRT_STORE_STORES_H

#include "core/store.h"

#include <stddef.h>

/* The ops for a scheme, or NULL. A store that this build leaves out is known all the
   same: it answers MORTISE_ENOTSUPPORTED when it is opened. */
const struct mrt_store_ops *mrt_store_find(const char *scheme);

extern const struct mrt_store_ops mrt_sqlite_store;
extern const struct mrt_store_ops mrt_zookeeper_store;
extern const struct mrt_store_ops mrt_redis_store;
extern const struct mrt_store_ops mrt_quorum_store;

/*
 * Path of the embedded store's default file; its directory is made, 0700, with its
 * parents. 0; MORTISE_EINVALID (too long, no home), MORTISE_EPERMISSION,
 * MORTISE_EUNREACHABLE, MORTISE_ENOTSUPPORTED.
 * "sqlite:" without a path opens this file.
 */
int mrt_sqlite_default_path(char *path, size_t size);

#endif
