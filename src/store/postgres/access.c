/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access rights: reports in the log, by mortise_server, if this user may do more than locks need,
 * or if the server lets others in without a password.
 *
 * Each row of the query is a sentence. The query uses a connection of its own, because the store's
 * connection has its statements under way.
 */
#include "store/postgres/internal.h"
#include "store/sql/outbox.h"

#include "base/listen.h"

#include <stdio.h>

#define ENOUGH "doc/postgresql.md has the grants that are enough"

/* Of a right that implies another only the larger one is told. to_regclass: a form has no such
   table, or none at all. */
static const char query[] =
    "SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);"
    " SELECT CASE WHEN r.rolsuper THEN 'is a superuser'"
    " WHEN r.rolcreaterole OR r.rolcreatedb OR r.rolreplication OR r.rolbypassrls"
    " THEN 'may make roles or databases, or replicate'"
    " WHEN pg_catalog.has_table_privilege(t.oid, 'TRUNCATE') THEN 'may empty or drop the tables of "
    "the locks'"
    " ELSE '' END,"
    " pg_catalog.current_setting('listen_addresses')"
    " FROM pg_catalog.pg_roles r, (SELECT pg_catalog.to_regclass('%s.ticket') AS oid) t WHERE "
    "r.rolname = current_user";

void mrt_pg_check_access(const struct mrt_sql_store *store)
{
    const struct mrt_pg_connection_options *words = &store->driver->words;
    char text[sizeof query + MRT_SQL_SCHEMA_MAX], line[192];
    const char *fault;
    PGconn *connection = mrt_pg_connect(words, &store->address, &fault);
    snprintf(text, sizeof text, query, store->address.schema);
    PGresult *result =
        PQstatus(connection) == CONNECTION_OK ? mrt_pg_execute(connection, text, &fault) : NULL;
    const char *more = mrt_sql_rows_text(result, 0, 0), *listens = mrt_sql_rows_text(result, 0, 1);
    if (more && listens) {
        const char *host = PQhost(connection);
        snprintf(line, sizeof line, "this user %s; " ENOUGH, more);
        if (*more)
            mrt_sql_say(store, line);
        if (!PQconnectionUsedPassword(connection) && host && *host != '/' &&
            mrt_listens_for_others(listens))
            mrt_sql_say(store, "the server listens for other machines, and asked for no password: "
                               "see its pg_hba.conf");
    }
    PQclear(result);
    PQfinish(connection);
}
