/* SPDX-License-Identifier: Apache-2.0 */
/* Finds stores in the table of cmake/stores.cmake. A store that is not built or not installed stays
   in the table, so that the error says so. */
#include "store/stores.h"

#include "base/error.h"
#include "base/uri.h"
#include "store/module.h"

#include <stdio.h>
#include <string.h>

/* All schemes, for people. */
static void list_schemes(char *text, size_t size)
{
    size_t length = 0;
    for (const struct mrt_store_row *row = mrt_store_rows; row->scheme && length < size; row++)
        length += (size_t)snprintf(text + length, size - length, "%s%s:", length > 0 ? ", " : "",
                                   row->scheme);
}

int mrt_store_find(const struct mrt_uri *uri, const struct mrt_store_ops **ops)
{
    const struct mrt_store_row *row = mrt_store_rows;
    while (row->scheme && strcmp(row->scheme, uri->scheme) != 0)
        row++;
    if (!row->scheme) {
        char known[256] = "";
        list_schemes(known, sizeof known);
        return mrt_error(MORTISE_ESCHEME, "no store is known by the scheme \"%s\"; known are %s",
                         uri->scheme, known);
    }
    int error = MORTISE_OK;
    *ops = row->ops;
    if (row->module)
        error = mrt_module_load(row->module, row->name, ops);
    else if (!row->ops)
        error =
            mrt_error(MORTISE_ENOTSUPPORTED, "this build of mortise has no %s store", row->name);
    return error == MORTISE_OK && *ops && (*ops)->choose ? (*ops)->choose(uri, ops) : error;
}
