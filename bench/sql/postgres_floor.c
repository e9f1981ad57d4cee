/* SPDX-License-Identifier: Apache-2.0 */
/* Prepared statements, as anybody would use who is in a hurry. */
#include "floor.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

const struct floor_mode floor_modes[] = {
    {"rows",
     "CREATE TABLE IF NOT EXISTS floor (id bigint PRIMARY KEY)",
     {"INSERT INTO floor VALUES (pg_backend_pid())",
      "DELETE FROM floor WHERE id = pg_backend_pid()"}},
    {"call", NULL, {"SELECT pg_advisory_lock(4711)", "SELECT pg_advisory_unlock(4711)"}},
    {0}};

static PGconn *connection;
static const char *const names[] = {"first", "second"};

static void expect(PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        fprintf(stderr, "%s", PQerrorMessage(connection));
        exit(1);
    }
    PQclear(result);
}

static void ignore(void *context, const PGresult *notice)
{
    (void)context, (void)notice;
}

void floor_open(const char *url, const struct floor_mode *mode)
{
    connection = PQconnectdb(url);
    PQsetNoticeReceiver(connection, ignore, NULL);
    if (mode->setup)
        expect(PQexec(connection, mode->setup));
    for (int i = 0; i < 2; i++)
        expect(PQprepare(connection, names[i], mode->step[i], 0, NULL));
}

void floor_step(int which)
{
    expect(PQexecPrepared(connection, names[which], 0, NULL, NULL, NULL, 0));
}
