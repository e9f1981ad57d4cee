/* SPDX-License-Identifier: Apache-2.0 */
/* The module's entry: libnats and json-c are loaded when a URI names this store. */
#include "store/kit/module_glue.h"
#include "store/nats/internal.h"

__attribute__((visibility("default"))) mrt_module_entry mortise_store_module;

const struct mrt_store_ops *mortise_store_module(const struct mrt_module_host *host)
{
    return mrt_module_greet(host) ? &mrt_nats_store : NULL;
}
