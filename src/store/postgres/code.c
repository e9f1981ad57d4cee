/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table of SQLSTATEs, a row each; a row of two letters stands for the whole class. A state that
 * is not in it means that the request failed: an error ends the transaction, so nothing was done.
 */
#include "store/postgres/internal.h"
#include "store/sql/driver.h"

#include <string.h>

static const char *const init = "mortise init creates the schema";
static const char *const grants = "doc/postgresql.md has the grants that are needed";

const struct mrt_sql_code mrt_sql_codes[] = {
    {"40003", MRT_SQL_PERHAPS, MORTISE_EUNKNOWN, NULL},
    {"40", MRT_SQL_AGAIN, MORTISE_ESTORE, NULL},    /* serialisation failure, deadlock */
    {"55P03", MRT_SQL_AGAIN, MORTISE_ESTORE, NULL}, /* a lock was not free in time */
    {"57014", MRT_SQL_AGAIN, MORTISE_ESTORE, NULL}, /* cancelled, or its time was up */
    {"26000", MRT_SQL_AGAIN, MORTISE_ESTORE, NULL}, /* no such prepared statement */
    {"42P05", MRT_SQL_AGAIN, MORTISE_ESTORE, NULL}, /* it is there already */
    {"0A000", MRT_SQL_AGAIN, MORTISE_ESTORE, NULL}, /* a plan of before the schema was made anew */
    {"23505", MRT_SQL_AGAIN, MORTISE_ESTORE, NULL}, /* our own ticket, come in late */
    {"54000", MRT_SQL_WITHOUT_NOTIFY, MORTISE_ESTORE,
     NULL}, /* the queue of notifications is full */
    {"25006", MRT_SQL_ELSEWHERE, MORTISE_EUNREACHABLE, "the server is read-only"},
    {"42501", MRT_SQL_FAILED, MORTISE_EPERMISSION, grants},
    {"28", MRT_SQL_FAILED, MORTISE_EPERMISSION, NULL},
    {"42P01", MRT_SQL_FAILED, MORTISE_ESETUP, init},
    {"42703", MRT_SQL_FAILED, MORTISE_ESETUP, init},
    {"3F000", MRT_SQL_FAILED, MORTISE_ESETUP, init},
    {"3D000", MRT_SQL_FAILED, MORTISE_ESETUP, NULL},
    /* Raised by the script of mortise init: the schema is not fit; another has kept it waiting. */
    {"MRT01", MRT_SQL_FAILED, MORTISE_ESETUP, NULL},
    {"MRT02", MRT_SQL_FAILED, MORTISE_EUNREACHABLE, NULL},
    {"53300", MRT_SQL_FAILED, MORTISE_EUNREACHABLE, NULL},
    {"57P", MRT_SQL_PERHAPS, MORTISE_EUNREACHABLE, NULL}, /* shutdown, crash, starting up */
    {"08", MRT_SQL_PERHAPS, MORTISE_EUNREACHABLE, NULL},
    {"", MRT_SQL_FAILED, MORTISE_ESTORE, NULL},
};

/* "FATAL:  28P01: password ..."; the first word is in the server's language. */
void mrt_pg_code_in(const char *message, char sqlstate[6])
{
    static const char letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    sqlstate[0] = '\0';
    for (const char *at = message; (at = strstr(at, ":  ")); at += 3)
        if (strspn(at + 3, letters) == 5 && at[8] == ':') {
            memcpy(sqlstate, at + 3, 5);
            sqlstate[5] = '\0';
        }
}
