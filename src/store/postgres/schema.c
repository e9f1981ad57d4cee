/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise init: the schema, as a script that may be run any number of times, by several at
 * once, and by hand; it brings a schema of an older version forward, while it is in use too: what
 * is added has a default, and no client of an older version asks for it. The tables are small and
 * hot: rows leave room in their pages for new versions of themselves, no index has a column that
 * changes often, and vacuum comes early.
 */
#include "store/postgres/internal.h"
#include "store/sql/driver.h"
#include "store/sql/list.h"
#include "store/sql/request.h"

#include "base/error.h"
#include "store/postgres/trust.h"

#include <stdio.h>

#define KEY_TEXT "7309475598860448101"
/* So many times connect= is the wait for clients that run this too, or use the tables that it
 * changes. */
#define PATIENCE 6
#define HOT                                                                                     \
    "WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = " \
    "2000)"

/* %1$s is the schema's name and %3$s that of a role, which need no quoting; %4$lld milliseconds.
   The advisory lock serialises clients that run this script at the same time, and ends with the
   transaction. Any user can hold it, so the wait for it is limited. Existing tables are checked
   before anything is made and once more before anything is written, since other users may be
   allowed to make tables there. */
#define BEGIN                                                                                    \
    "-- mortise init, version %2$d of the schema\n"                                              \
    "BEGIN ISOLATION LEVEL READ COMMITTED;\n"                                                    \
    "SET LOCAL search_path = pg_catalog, pg_temp;\n"                                             \
    "SET LOCAL client_min_messages = warning;\n"                                                 \
    "SET LOCAL lock_timeout = %4$lld;\n"                                                         \
    "DO $mortise$\n"                                                                             \
    "DECLARE\n"                                                                                  \
    "    message text;\n"                                                                        \
    "    patience constant timestamptz := clock_timestamp() + %4$lld * interval '1 ms';\n"       \
    "BEGIN\n"                                                                                    \
    "WHILE NOT pg_try_advisory_xact_lock(" KEY_TEXT ") LOOP\n"                                   \
    "    IF clock_timestamp() > patience THEN\n"                                                 \
    "        RAISE EXCEPTION USING ERRCODE = 'MRT02', MESSAGE = 'the advisory lock " KEY_TEXT    \
    " of mortise init is held by ' || coalesce((SELECT string_agg('process ' || l.pid ||"        \
    " coalesce(' of ' || a.usename, ''), ', ') FROM pg_locks l"                                  \
    " LEFT JOIN pg_stat_activity a ON a.pid = l.pid WHERE l.locktype = 'advisory' AND l.granted" \
    " AND l.classid = (" KEY_TEXT " >> 32)::oid"                                                 \
    " AND l.objid = (" KEY_TEXT " & 4294967295)::oid AND l.objsubid = 1), 'a process that has"   \
    " just ended') || '; end that, or run mortise init again';\n"                                \
    "    END IF;\n"                                                                              \
    "    PERFORM pg_sleep(0.02);\n"                                                              \
    "END LOOP;\n"                                                                                \
    "IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = '%1$s') THEN\n"                     \
    "    CREATE SCHEMA %1$s;\n"                                                                  \
    "END IF;\n"                                                                                  \
    "FOR pass IN 1..2 LOOP\n"                                                                    \
    "message := (" MRT_PG_FAULT(                                                                 \
        "'%1$s'", "'%3$s'",                                                                      \
        "") ");\n"                                                                               \
            "IF message IS NOT NULL THEN\n"                                                      \
            "    RAISE EXCEPTION USING ERRCODE = 'MRT01', MESSAGE = message;\n"                  \
            "END IF;\n"
#define MADE      \
    "END LOOP;\n" \
    "END $mortise$;\n"

static const char script[] = BEGIN
    "CREATE TABLE IF NOT EXISTS %1$s.session (\n"
    "    id uuid PRIMARY KEY,\n"
    "    epoch bigint NOT NULL,\n"
    "    expires timestamptz NOT NULL,\n"
    "    label text NOT NULL\n"
    ") " HOT ";\n"
    "CREATE TABLE IF NOT EXISTS %1$s.queue (\n"
    "    name text COLLATE \"C\" PRIMARY KEY,\n"
    "    number bigint NOT NULL,\n"
    "    touched timestamptz NOT NULL\n"
    ") " HOT ";\n"
    "CREATE TABLE IF NOT EXISTS %1$s.ticket (\n"
    "    session uuid NOT NULL,\n"
    "    id uuid NOT NULL,\n"
    "    queue text COLLATE \"C\" NOT NULL,\n"
    "    number bigint NOT NULL,\n"
    "    weight bigint NOT NULL,\n"
    "    kind text NOT NULL,\n"
    "    capacity bigint NOT NULL,\n"
    "    since timestamptz NOT NULL,\n"
    "    asked bigint NOT NULL,\n"
    "    value bytea,\n"
    "    linger boolean NOT NULL DEFAULT false,\n"
    "    delay bigint NOT NULL DEFAULT 0,\n"
    "    PRIMARY KEY (session, id),\n"
    "    UNIQUE (queue, number)\n"
    ") " HOT ";\n"
    "CREATE TABLE IF NOT EXISTS %1$s.cell (\n"
    "    name text COLLATE \"C\" PRIMARY KEY,\n"
    "    version bigint NOT NULL,\n"
    "    fence numeric(20) NOT NULL,\n"
    "    writer uuid,\n"
    "    value bytea\n"
    ") " HOT ";\n"
    "CREATE SEQUENCE IF NOT EXISTS %1$s.fence MAXVALUE 140737488355327;\n"
    "CREATE TABLE IF NOT EXISTS %1$s.version (number integer NOT NULL);\n" MADE
    "INSERT INTO %1$s.version SELECT %2$d WHERE NOT EXISTS (SELECT FROM %1$s.version);\n"
    "ALTER TABLE %1$s.ticket ADD COLUMN IF NOT EXISTS linger boolean NOT NULL DEFAULT false,\n"
    "    ADD COLUMN IF NOT EXISTS delay bigint NOT NULL DEFAULT 0;\n"
    "UPDATE %1$s.version SET number = %2$d WHERE number < %2$d;\n"
    "COMMIT;\n";

/* A waiter for such a row waits for the number of the transaction that locked it, so each lock
   makes a new version of the row. */
static const char row_script[] =
    BEGIN "CREATE TABLE IF NOT EXISTS %1$s.row_lock (name text COLLATE \"C\" PRIMARY KEY);\n" MADE
          "COMMIT;\n";

static int execute(const struct mrt_pg_connection_options *words,
                   const struct mrt_sql_address *address, const char *text)
{
    const char *fault;
    PGconn *connection = mrt_pg_connect(words, address, &fault);
    int error = MORTISE_OK;
    char line[256], sqlstate[6] = "";
    PGresult *result =
        PQstatus(connection) == CONNECTION_OK ? mrt_pg_execute(connection, text, &fault) : NULL;
    if (!result) {
        mrt_sql_first_line(PQerrorMessage(connection), line, sizeof line);
        error = mrt_error(MORTISE_EUNREACHABLE, "PostgreSQL: %.120s%s%.220s",
                          fault ? address->shown : "", fault ? ": " : "", fault ? fault : line);
    } else if (PQresultStatus(result) != PGRES_COMMAND_OK) {
        const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
        snprintf(sqlstate, sizeof sqlstate, "%s", state ? state : "");
        mrt_sql_first_line(PQresultErrorMessage(result), line, sizeof line);
        error = mrt_error(mrt_sql_code(sqlstate)->error, "PostgreSQL: %.220s", line);
    }
    PQclear(result);
    PQfinish(connection);
    return error;
}

/* The script with the schema's name and the version in it. */
__attribute__((format(printf, 4, 0))) static int
run(const struct mrt_uri *uri, mortise_text_callback print, void *argument, const char *format)
{
    struct mrt_sql_address address;
    struct mrt_pg_connection_options words;
    char text[sizeof script + 32 * MRT_SQL_OWNER_MAX];
    int error = mrt_pg_uri_parse(uri, &address, &words);
    long long patience = PATIENCE * address.connect / MRT_MILLISECOND;
    snprintf(text, sizeof text, format, address.schema, mrt_sql_schema_version, address.owner,
             patience);
    if (error == MORTISE_OK && print)
        print(argument, text);
    else if (error == MORTISE_OK && (error = mrt_sql_find_hosts(&address)) == MORTISE_OK)
        error = execute(&words, &address, text);
    mrt_pg_words_free(&words);
    return error;
}

int mrt_pg_init(const struct mrt_uri *uri, mortise_text_callback print, void *argument)
{
    return run(uri, print, argument, script);
}

int mrt_pg_init_rows(const struct mrt_uri *uri, mortise_text_callback print, void *argument)
{
    return run(uri, print, argument, row_script);
}
