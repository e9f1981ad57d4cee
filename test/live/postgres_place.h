/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real PostgreSQL server for a test program, with the schema in it. Starting, stopping and
 * freezing it, and what is done with locks, are zookeeper_place.h's, which knows no store.
 */
#ifndef TEST_POSTGRES_PLACE_H
#define TEST_POSTGRES_PLACE_H

#include "live/sql_place.h"

#include <libpq-fe.h>

/* A connection of the test's own, as the superuser; its search_path is the schema. */
PGconn *pg_connect(void);
/* As the user of the locks, at a pooler. */
PGconn *pg_connect_at(uint16_t port);
/* Runs statements; the first value of the last one's first row, or "", until the next call. */
const char *pg_sql_on(PGconn *connection, const char *text);
/* The next `times` changes of the table of this sort end with the SQLSTATE, until sql_heal. */
void pg_inject(const char *when, const char *sqlstate, int times);

#endif
