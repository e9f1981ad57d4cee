/*
 * A real PostgreSQL server for a test program, with the schema in it. Starting, stopping and
 * freezing it, and what is done with locks, are zookeeper_place.h's, which knows no store.
 */
#ifndef TEST_POSTGRES_PLACE_H
#define TEST_POSTGRES_PLACE_H

#include "live/sql_place.h"

#include <libpq-fe.h>

/* cmocka's group set-up: starts the server and makes the schema. */
int pg_place_start(void **state);

/* The store's URI at this port, with parameters such as "lease=2s". */
const char *pg_uri(uint16_t port, const char *parameters);
mortise_client *pg_open(uint16_t port, const char *parameters);

/* A connection of the test's own, as the superuser; its search_path is the schema. */
PGconn *pg_connect(void);
/* Runs statements; the first value of the last one's first row, or "", until the next call. */
const char *pg_sql_on(PGconn *connection, const char *text);
/* The same on a connection that is kept for this. */
const char *pg_sql(const char *text);
long pg_number(const char *text);
/* Waits, at most 20 s, until the query's value is `number`. */
void pg_await(const char *text, long number);
/* The next `times` changes of the table of this sort end with the SQLSTATE, until sql_heal. */
void pg_inject(const char *when, const char *sqlstate, int times);

#endif
