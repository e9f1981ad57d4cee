/* The test's own connection is made at first use, and again when the server was away. */
#include "live/postgres_place.h"

#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static PGconn *own;

const char *pg_uri(uint16_t port, const char *parameters)
{
    static char uris[8][256];
    static int next;
    char *uri = uris[next++ % 8];
    snprintf(uri, sizeof uris[0], "postgresql://mortise@127.0.0.1:%u/mortise?sslmode=disable&%s",
             (unsigned)port, parameters);
    return uri;
}

mortise_client *pg_open(uint16_t port, const char *parameters)
{
    return zk_open(pg_uri(port, parameters));
}

int pg_place_start(void **state)
{
    zk_place_settings("", "postgres");
    if (zk_place_start(state) != 0)
        return -1;
    assert_int_equal(mortise_init(pg_uri(zk_place_port(), "lease=2s"), NULL, NULL), 0);
    return 0;
}

PGconn *pg_connect(void)
{
    char text[256];
    snprintf(text, sizeof text,
             "host=127.0.0.1 port=%u user=postgres dbname=mortise "
             "application_name=test options='-c search_path=mortise'",
             (unsigned)zk_place_port());
    return PQconnectdb(text);
}

const char *pg_sql_on(PGconn *connection, const char *text)
{
    static char value[256];
    PGresult *result = PQexec(connection, text);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        fail_msg("%s: %s", text, PQerrorMessage(connection));
    snprintf(value, sizeof value, "%s", PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    return value;
}

const char *pg_sql(const char *text)
{
    if (own && PQstatus(own) == CONNECTION_OK)
        PQclear(PQexec(own, "SELECT 1")); /* finds out whether the server has been away */
    if (own && PQstatus(own) != CONNECTION_OK) {
        PQfinish(own);
        own = NULL;
    }
    if (!own)
        own = pg_connect();
    return pg_sql_on(own, text);
}

long pg_number(const char *text)
{
    return strtol(pg_sql(text), NULL, 10);
}

void pg_await(const char *text, long number)
{
    int64_t end = zk_now_ms() + 20000;
    while (pg_number(text) != number) {
        if (zk_now_ms() > end)
            fail_msg("%s did not become %ld", text, number);
        zk_rest_ms(5);
    }
}
