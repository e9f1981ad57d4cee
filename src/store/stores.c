/* SPDX-License-Identifier: Apache-2.0 */
/* Finds stores in the table of cmake/stores.cmake. A store that is not built or not installed stays
   in the table, so that the error says so. */
#include "store/stores.h"

#include "base/error.h"
#include "base/uri.h"
#include "store/module.h"

#include <string.h>

int mrt_store_find(const struct mrt_uri *uri, const struct mrt_store_ops **ops)
{
    const struct mrt_store_row *row = mrt_store_rows;
    while (row->scheme && strcmp(row->scheme, uri->scheme) != 0)
        row++;
    if (!row->scheme)
        return mrt_error(MORTISE_ESCHEME, "no store is known by the scheme \"%s\"", uri->scheme);
    int error = MORTISE_OK;
    *ops = row->ops;
    if (row->module)
        error = mrt_module_load(row->module, row->name, ops);
    else if (!row->ops)
        error =
            mrt_error(MORTISE_ENOTSUPPORTED, "this build of mortise has no %s store", row->name);
    return error == MORTISE_OK && *ops && (*ops)->choose ? (*ops)->choose(uri, ops) : error;
}
