/*
 * mortise init: the schema, as a script that may be run any number of times, by several at
 * once, and by hand; it brings a schema of an older version forward, while it is in use too: what
 * is added has a default, and no client of an older version asks for it. The tables are small and
 * hot: rows leave room in their pages for new versions of themselves, no index has a column that
 * changes often, and vacuum comes early.
 */
#include "store/postgres_internal.h"

#include "base/error.h"

#include <stdio.h>

#define HOT                                                                                     \
    "WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = " \
    "2000)"

/* The lock is for those who run this at the same time; it ends with the transaction. Every %1$s
   is the schema's name, which needs no quoting. */
static const char script[] =
    "BEGIN;\n"
    "SELECT pg_advisory_xact_lock(7309475598860448101);\n"
    "CREATE SCHEMA IF NOT EXISTS %1$s;\n"
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
    "CREATE TABLE IF NOT EXISTS %1$s.version (number integer NOT NULL);\n"
    "INSERT INTO %1$s.version SELECT %2$d WHERE NOT EXISTS (SELECT FROM %1$s.version);\n"
    "ALTER TABLE %1$s.ticket ADD COLUMN IF NOT EXISTS linger boolean NOT NULL DEFAULT false,\n"
    "    ADD COLUMN IF NOT EXISTS delay bigint NOT NULL DEFAULT 0;\n"
    "UPDATE %1$s.version SET number = %2$d WHERE number < %2$d;\n"
    "COMMIT;\n";

/* Who waits for such a row waits for its number of transaction, so each lock makes a new version
   of it. */
static const char row_script[] =
    "BEGIN;\n"
    "SELECT pg_advisory_xact_lock(7309475598860448101);\n"
    "CREATE SCHEMA IF NOT EXISTS %1$s;\n"
    "CREATE TABLE IF NOT EXISTS %1$s.row_lock (name text COLLATE \"C\" PRIMARY KEY);\n"
    "COMMIT;\n";

static int execute(const struct mrt_pg_words *words, const char *text)
{
    PGconn *connection = PQconnectdbParams(words->words, (const char *const *)words->values, 1);
    int error = MORTISE_OK;
    char line[256], sqlstate[6] = "";
    PQsetNoticeReceiver(connection, mrt_pg_ignore_notice, NULL);
    PGresult *result = PQstatus(connection) == CONNECTION_OK ? PQexec(connection, text) : NULL;
    if (!result) {
        mrt_sql_first_line(PQerrorMessage(connection), line, sizeof line);
        error = mrt_error(MORTISE_EUNREACHABLE, "PostgreSQL: %.220s", line);
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
    struct mrt_pg_words words;
    char text[sizeof script + 16 * MRT_SQL_SCHEMA_MAX];
    int error = mrt_pg_uri_parse(uri, &address, &words);
    snprintf(text, sizeof text, format, address.schema, mrt_sql_schema_version);
    if (error == MORTISE_OK && print)
        print(argument, text);
    else if (error == MORTISE_OK)
        error = execute(&words, text);
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
