/* SPDX-License-Identifier: Apache-2.0 */
/* The stores, by the scheme of their URI: those that are built in, and those in modules. */
#ifndef MRT_STORE_STORES_H
#define MRT_STORE_STORES_H

#include "core/store.h"

/* A scheme that a store is known by. Without `ops` and `module` this build leaves the store out. */
struct mrt_store_row {
    const char *scheme, *name;
    const struct mrt_store_ops *ops;
    const char *module; /* file's name (store/module.h) */
};
/* Ends with a row without a scheme. */
extern const struct mrt_store_row mrt_store_rows[];

/* The ops for a URI; loads the store's module if it has one (store/module.h). 0, or
   MORTISE_ESCHEME, MORTISE_EURI, MORTISE_EUNSAFE, MORTISE_ENOTSUPPORTED (also: this build leaves
   the store out), with particulars. */
int mrt_store_find(const struct mrt_uri *uri, const struct mrt_store_ops **ops);

#endif
