/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise init: the schema, which is a database here, as a script that may be run any number of
 * times, by several at once, and by hand; it brings a schema of an older version forward. The
 * version is the largest number in its table. Names are bytes, compared as bytes.
 */
#include "store/mariadb/internal.h"
#include "store/sql/driver.h"
#include "store/sql/list.h"
#include "store/sql/request.h"

#include "base/error.h"
#include "store/mariadb/trust.h"

#include <stdio.h>
#include <string.h>

#define TABLE "ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET binary"

/* Every %1$s is the database's name, which needs no quoting. Existing tables are checked before
   anything is made. A trigger runs with the rights of its definer, so a later check is in no danger
   from it. */
#define LOOK                                                                                      \
    "SET @mortise_fault = COALESCE(" MRT_MARIADB_FAULT(                                           \
        "'%1$s'") ",\n"                                                                           \
                  "    (SELECT CONCAT(event_object_table, ' has the trigger ', trigger_name, "    \
                  "'" MRT_MARIADB_UNDO "')"                                                       \
                  " FROM information_schema.triggers WHERE trigger_schema = '%1$s' AND "          \
                  "event_object_table IN " MRT_MARIADB_TABLES " LIMIT 1));\n"                     \
                  "EXECUTE IMMEDIATE IF(@mortise_fault IS NULL, 'DO 0',"                          \
                  " CONCAT('SIGNAL SQLSTATE ''45000'' SET MYSQL_ERRNO = 32100, MESSAGE_TEXT = '," \
                  " QUOTE(@mortise_fault)));\n"
static const char script[] =
    LOOK "CREATE DATABASE IF NOT EXISTS %1$s;\n"
         "CREATE TABLE IF NOT EXISTS %1$s.session (\n"
         "    id BINARY(16) NOT NULL PRIMARY KEY,\n"
         "    epoch BIGINT UNSIGNED NOT NULL,\n"
         "    expires BIGINT NOT NULL,\n"
         "    label VARBINARY(1024) NOT NULL\n"
         ") " TABLE ";\n"
         "CREATE TABLE IF NOT EXISTS %1$s.queue (\n"
         "    name VARBINARY(760) NOT NULL PRIMARY KEY,\n"
         "    touched BIGINT NOT NULL\n"
         ") " TABLE ";\n"
         "CREATE TABLE IF NOT EXISTS %1$s.ticket (\n"
         "    number BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,\n"
         "    session BINARY(16) NOT NULL,\n"
         "    id BINARY(16) NOT NULL,\n"
         "    queue VARBINARY(760) NOT NULL,\n"
         "    weight BIGINT NOT NULL,\n"
         "    kind VARBINARY(64) NOT NULL,\n"
         "    capacity BIGINT NOT NULL,\n"
         "    since BIGINT NOT NULL,\n"
         "    asked BIGINT NOT NULL,\n"
         "    value VARBINARY(4096),\n"
         "    delay BIGINT NOT NULL DEFAULT 0,\n"
         "    KEY by_session (session, id),\n"
         "    KEY by_queue (queue, number)\n"
         ") " TABLE ";\n"
         "CREATE TABLE IF NOT EXISTS %1$s.cell (\n"
         "    name VARBINARY(760) NOT NULL PRIMARY KEY,\n"
         "    version BIGINT UNSIGNED NOT NULL,\n"
         "    fence BIGINT UNSIGNED NOT NULL,\n"
         "    writer BINARY(16),\n"
         "    value VARBINARY(4096)\n"
         ") " TABLE ";\n"
         "CREATE TABLE IF NOT EXISTS %1$s.version (number INT NOT NULL PRIMARY KEY) " TABLE ";\n"
         "ALTER TABLE %1$s.ticket ADD COLUMN IF NOT EXISTS delay BIGINT NOT NULL DEFAULT 0;\n"
         "INSERT IGNORE INTO %1$s.version VALUES (%2$d);\n";

static const char row_script[] = LOOK
    "CREATE DATABASE IF NOT EXISTS %1$s;\n"
    "CREATE TABLE IF NOT EXISTS %1$s.row_lock (name VARBINARY(760) NOT NULL PRIMARY KEY) " TABLE
    ";\n";

/* Reads the results of all statements; the first error's number, or 0. */
static unsigned run(MYSQL *connection, const char *text)
{
    int more = mysql_real_query(connection, text, strlen(text));
    while (more == 0) {
        MYSQL_RES *result = mysql_store_result(connection);
        if (!result && mysql_errno(connection))
            return mysql_errno(connection); /* the connection ended below it */
        mysql_free_result(result);
        more = mysql_next_result(connection);
    }
    return mysql_errno(connection);
}

static int execute(const struct mrt_mariadb_connection_options *words, const char *shown,
                   const char *text)
{
    char line[256], number[8];
    struct mrt_mariadb_guard guard;
    int error = MORTISE_OK;
    bool connected;
    MYSQL *connection = mrt_mariadb_connect(words, &connected, &guard);
    if (!connection)
        return MORTISE_ENOMEM;
    bool open = connected && mrt_mariadb_is_open(connection, words);
    unsigned code = open ? 0 : connected ? run(connection, text) : mysql_errno(connection);
    if (open)
        error = mrt_error(MORTISE_EUNREACHABLE, "MariaDB: the server does not encrypt%s",
                          mrt_sql_tls_advice(words->tls));
    if (code) {
        snprintf(number, sizeof number, "%u", code % 100000);
        mrt_mariadb_error_line(connection, line, sizeof line);
        bool of_library = code >= 2000 && code < 3000;
        error = mrt_error(of_library ? MORTISE_EUNREACHABLE : mrt_sql_code(number)->error,
                          "MariaDB: %.100s: %.160s%s", shown, line,
                          mrt_mariadb_tls_advice(words, code));
    }
    mrt_mariadb_close(connection, &guard);
    return error;
}

/* The script with the database's name and the version in it. */
__attribute__((format(printf, 4, 0))) static int
make(const struct mrt_uri *uri, mortise_text_callback print, void *argument, const char *format)
{
    struct mrt_sql_address address;
    struct mrt_mariadb_connection_options words;
    char text[sizeof script + 16 * MRT_SQL_SCHEMA_MAX];
    int error = mrt_mariadb_uri_parse(uri, &address, &words);
    snprintf(text, sizeof text, format, words.database, mrt_sql_schema_version);
    if (error == MORTISE_OK && print)
        print(argument, text);
    else if (error == MORTISE_OK && (error = mrt_sql_find_hosts(&address)) == MORTISE_OK)
        error = execute(&words, address.shown, text);
    explicit_bzero(&words, sizeof words);
    return error;
}

int mrt_mariadb_init(const struct mrt_uri *uri, mortise_text_callback print, void *argument)
{
    return make(uri, print, argument, script);
}

int mrt_mariadb_init_rows(const struct mrt_uri *uri, mortise_text_callback print, void *argument)
{
    return make(uri, print, argument, row_script);
}
