/*
 * Who may use the store: whether this user may do more than locks need, and whether the server lets
 * others in without a password. mortise_server tells it in the log.
 *
 * It is asked on a connection of its own, for the store's own has its statements under way.
 */
#include "store/mariadb_internal.h"

#include <stdio.h>
#include <string.h>

/* A user who may not sees only its own rows there; who sees more has more. */
static const char query[] =
    "SELECT (SELECT COUNT(*) FROM information_schema.USER_PRIVILEGES"
    "        WHERE PRIVILEGE_TYPE <> 'USAGE')"
    "     + (SELECT COUNT(*) FROM information_schema.SCHEMA_PRIVILEGES"
    "        WHERE PRIVILEGE_TYPE NOT IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')),"
    " COALESCE(@@bind_address, '*')";

static void say(const struct mrt_store *store, const char *text)
{
    char line[256];
    snprintf(line, sizeof line, "%s: %s", mrt_sql_product, text);
    if (store->log)
        store->log(store->log_argument, line);
}

/* Who reads an option file may have a password from there. */
static bool has_no_password(const struct mrt_my_words *words)
{
    return !(words->password && *words->password) && !*words->option_file &&
           !*words->option_group && !*words->socket;
}

static void judge(const struct mrt_store *store, MYSQL_RES *rows)
{
    MYSQL_ROW row = rows ? mysql_fetch_row(rows) : NULL;
    if (!row || !row[0] || !row[1])
        return;
    if (strcmp(row[0], "0") != 0)
        say(store, "this user has rights that locks do not need; doc/mariadb.md has the grants "
                   "that are enough");
    if (has_no_password(&store->driver->words) && strncmp(row[1], "127.", 4) != 0 &&
        strcmp(row[1], "::1") != 0 && strcmp(row[1], "localhost") != 0)
        say(store, "the server listens for other machines, and asked for no password");
}

void mrt_my_check_access(const struct mrt_store *store)
{
    const struct mrt_my_words *words = &store->driver->words;
    MYSQL *connection = mrt_my_new(words);
    unsigned seconds = (unsigned)(words->connect / MRT_SECOND) + 1;
    if (!connection)
        return;
    mysql_options(connection, MYSQL_OPT_CONNECT_TIMEOUT, &seconds);
    if (mysql_real_connect(connection, words->host, words->user, words->password, NULL, words->port,
                           *words->socket ? words->socket : NULL, 0) &&
        mysql_query(connection, query) == 0) {
        MYSQL_RES *rows = mysql_store_result(connection);
        judge(store, rows);
        mysql_free_result(rows);
    }
    mysql_close(connection);
}
