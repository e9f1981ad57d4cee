/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a connection is of no use. It is noted here, and the connection dropped when nothing is being
 * read of it (connection.c).
 */
#include "store/sql/fault.h"
#include "store/sql/driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const struct mrt_sql_code *mrt_sql_code(const char *state)
{
    const struct mrt_sql_code *row = mrt_sql_codes;
    while (strncmp(row->state, state, strlen(row->state)) != 0)
        row++;
    return row;
}

void mrt_sql_reject(struct mrt_sql_store *store, int error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(store->fault, sizeof store->fault, format, arguments);
    va_end(arguments);
    store->error = error;
    store->broken = true;
}

void mrt_sql_reject_setup(struct mrt_sql_store *store, const struct mrt_sql_request *request)
{
    const struct mrt_sql_code *code = mrt_sql_code(request->state);
    mrt_sql_reject(store, code->error == MORTISE_ESTORE ? MORTISE_EUNREACHABLE : code->error,
                   "%s, schema \"%s\": %.120s%s%s", mrt_sql_product, store->address.schema,
                   request->detail, code->advice ? "; " : "", code->advice ? code->advice : "");
}

bool mrt_sql_accept_schema(struct mrt_sql_store *store, int64_t version)
{
    if (store->steps || version == mrt_sql_schema_version) /* a form has none */
        return true;
    mrt_sql_reject(store, MORTISE_ESETUP, "%s: the schema \"%s\" is of version %d, not %d; %s",
                   mrt_sql_product, store->address.schema, (int)version, mrt_sql_schema_version,
                   version < mrt_sql_schema_version ? "mortise init brings it forward"
                                                    : "it was made by a newer mortise");
    return false;
}
