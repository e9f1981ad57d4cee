/* The stores, by the scheme of their URI: those that are built in, and those in modules. */
#ifndef MRT_STORE_STORES_H
#define MRT_STORE_STORES_H

#include "core/store.h"

#include <stddef.h>

/* The ops for a URI; loads the store's module if it has one (store/module.h). 0, or
   MORTISE_ESCHEME, MORTISE_EURI, MORTISE_ENOTSUPPORTED, MORTISE_EUNSAFE with particulars. A store
   that this build leaves out is known all the same: it answers MORTISE_ENOTSUPPORTED, here or when
   it is opened. */
int mrt_store_find(const struct mrt_uri *uri, const struct mrt_store_ops **ops);

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
