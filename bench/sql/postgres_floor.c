/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prepared statements, as anybody would use who is in a hurry. "told": the row that goes notifies a
 * session, as a release does to the next holder. "signed": the message has the signature of
 * src/store/sql/sign.h, and it is computed here once more, as its receiver does.
 */
#include "floor.h"

#include "store/sql/sign.h"

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH(bytes, digits) "left(encode(sha256(" bytes "), 'hex'), " digits ")"
#define NAME "replace(id::text, '-', '')"
#define PLACE "' place ' || number || ' 0 0'"
#define TELLING                          \
    "CREATE TABLE IF NOT EXISTS telling" \
    " (pid bigint PRIMARY KEY, session uuid, id uuid, number bigint)"
#define INSERT \
    "INSERT INTO telling VALUES (pg_backend_pid(), gen_random_uuid(), gen_random_uuid(), 7)"
#define DELETE(channel, text)                          \
    "DELETE FROM telling WHERE pid = pg_backend_pid()" \
    " RETURNING pg_notify('floor_' || " channel ", " text ")"

const struct floor_mode floor_modes[] = {
    {"rows",
     "CREATE TABLE IF NOT EXISTS floor (id bigint PRIMARY KEY)",
     {"INSERT INTO floor VALUES (pg_backend_pid())",
      "DELETE FROM floor WHERE id = pg_backend_pid()"}},
    {"call", NULL, {"SELECT pg_advisory_lock(4711)", "SELECT pg_advisory_unlock(4711)"}},
    {"told", TELLING, {INSERT, DELETE("replace(session::text, '-', '')", NAME " || " PLACE)}},
    {"signed",
     TELLING,
     {INSERT, DELETE(HASH("uuid_send(session)", "32"),
                     NAME " || " PLACE " || ' ' || " HASH("uuid_send(session) || uuid_send(id) ||"
                                                          " convert_to(" PLACE ", 'UTF8')",
                                                          "16"))}},
    {0}};

static PGconn *connection;
static bool is_signed;
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
    is_signed = strcmp(mode->name, "signed") == 0;
    connection = PQconnectdb(url);
    PQsetNoticeReceiver(connection, ignore, NULL);
    if (mode->setup)
        expect(PQexec(connection, mode->setup));
    for (int i = 0; i < 2; i++)
        expect(PQprepare(connection, names[i], mode->step[i], 0, NULL));
}

void floor_step(int which)
{
    static const char text[] = " place 7 0 0";
    char sign[MRT_SQL_SIGN_SIZE];
    expect(PQexecPrepared(connection, names[which], 0, NULL, NULL, NULL, 0));
    if (which == 1 && is_signed)
        mrt_sql_sign((struct mrt_id){1, 2}, (struct mrt_id){3, 4}, text, sizeof text - 1, sign);
}
