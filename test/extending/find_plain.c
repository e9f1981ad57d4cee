/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry of stores with one row more, as the linker puts it in the place of mrt_store_find:
 * so that suites open plain: although the library does not have it.
 */
#include "extending/plain_store.h"
#include "store/stores.h"

#include "base/uri.h"

#include <string.h>

int __real_mrt_store_find(const struct mrt_uri *uri, const struct mrt_store_ops **ops);
int __wrap_mrt_store_find(const struct mrt_uri *uri, const struct mrt_store_ops **ops);

int __wrap_mrt_store_find(const struct mrt_uri *uri, const struct mrt_store_ops **ops)
{
    if (strcmp(uri->scheme, "plain") != 0)
        return __real_mrt_store_find(uri, ops);
    *ops = &example_plain_store;
    return MORTISE_OK;
}
