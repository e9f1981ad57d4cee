/* SPDX-License-Identifier: Apache-2.0 */
/* A store's module, whose objects are linked into the fuzz target: it is no module here. */
#include "hostile.h"

#include "store/kit/module_glue.h"

bool mrt_module_greet(const struct mrt_module_host *greeting)
{
    (void)greeting;
    return true;
}

mrt_module_entry mortise_store_module;

const bool fuzz_server_waits = true;

const struct mrt_store_ops *fuzz_store(void)
{
    return mortise_store_module(NULL);
}
