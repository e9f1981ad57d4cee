/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access rights: reports in the log, by mortise_server, if this user may do more than locks need,
 * or if the server lets others in without a password.
 *
 * The query uses a connection of its own, because the store's connection has its statements under
 * way.
 */
#include "store/mariadb/internal.h"
#include "store/sql/outbox.h"

#include "base/listen.h"

#include <string.h>

/* A user without that right sees only its own rows there; a user who sees more has more rights. A
   server that was given no address listens on all. */
static const char query[] =
    "SELECT (SELECT COUNT(*) FROM information_schema.USER_PRIVILEGES"
    "        WHERE PRIVILEGE_TYPE <> 'USAGE')"
    "     + (SELECT COUNT(*) FROM information_schema.SCHEMA_PRIVILEGES"
    "        WHERE PRIVILEGE_TYPE NOT IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')),"
    " COALESCE(NULLIF(@@bind_address, ''), '*')";

/* False also if an option file is read, because it may contain a password. */
static bool has_no_password(const struct mrt_mariadb_connection_options *words)
{
    return !(words->password && *words->password) && !*words->option_file &&
           !*words->option_group && !*words->socket;
}

static void judge(const struct mrt_sql_store *store, MYSQL_RES *rows)
{
    const char *more = rows ? mrt_sql_rows_text(rows, 0, 0) : NULL,
               *listens = rows ? mrt_sql_rows_text(rows, 0, 1) : NULL;
    if (!more || !listens)
        return;
    if (strcmp(more, "0") != 0)
        mrt_sql_say(store, "this user has rights that locks do not need; doc/mariadb.md has the "
                           "grants that are enough");
    if (has_no_password(&store->driver->words) && mrt_listens_for_others(listens))
        mrt_sql_say(store, "the server listens for other machines, and asked for no password");
}

void mrt_mariadb_check_access(const struct mrt_sql_store *store)
{
    const struct mrt_mariadb_connection_options *words = &store->driver->words;
    bool connected;
    struct mrt_mariadb_guard guard;
    MYSQL *connection = mrt_mariadb_connect(words, &connected, &guard);
    if (connected && !mrt_mariadb_is_open(connection, words) &&
        mysql_query(connection, query) == 0) {
        MYSQL_RES *rows = mysql_store_result(connection);
        judge(store, rows);
        mysql_free_result(rows);
    }
    mrt_mariadb_close(connection, &guard);
}
