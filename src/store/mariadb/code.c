/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table of the server's numbers of errors. A number that is not in it means that the request
 * failed: ROLLBACK follows a failure, so nothing was done. Numbers from 2000 on are the library's
 * own, and the connection is gone.
 */
#include "store/mariadb/internal.h"
#include "store/sql/driver.h"

static const char *const init = "mortise init creates the schema";
static const char *const grants = "doc/mariadb.md has the grants that are needed";

const struct mrt_sql_code mrt_sql_codes[] = {
    {"1213", MRT_SQL_AGAIN, MORTISE_ESTORE, NULL}, /* deadlock; in a cluster, a commit that lost */
    {"1205", MRT_SQL_AGAIN, MORTISE_ESTORE, NULL}, /* a lock was not free in time */
    {"1020", MRT_SQL_AGAIN, MORTISE_ESTORE, NULL}, /* a row has changed since it was read */
    {"1969", MRT_SQL_AGAIN, MORTISE_ESTORE, NULL}, /* its time was up */
    {"1062", MRT_SQL_AGAIN, MORTISE_ESTORE, NULL}, /* another was first with a row */
    {"1317", MRT_SQL_PERHAPS, MORTISE_EUNREACHABLE, NULL}, /* interrupted */
    {"1180", MRT_SQL_PERHAPS, MORTISE_EUNREACHABLE, NULL}, /* in the commit */
    {"1053", MRT_SQL_PERHAPS, MORTISE_EUNREACHABLE, NULL}, /* shutdown */
    {"1927", MRT_SQL_PERHAPS, MORTISE_EUNREACHABLE, NULL}, /* killed */
    {"1290", MRT_SQL_ELSEWHERE, MORTISE_EUNREACHABLE, "the server is read-only"},
    {"1792", MRT_SQL_ELSEWHERE, MORTISE_EUNREACHABLE, "the server is read-only"},
    {"1836", MRT_SQL_ELSEWHERE, MORTISE_EUNREACHABLE, "the server is read-only"},
    {"1047", MRT_SQL_ELSEWHERE, MORTISE_EUNREACHABLE, "the server has left its cluster"},
    {"1044", MRT_SQL_FAILED, MORTISE_EPERMISSION, grants},
    {"1045", MRT_SQL_FAILED, MORTISE_EPERMISSION, NULL},
    {"1142", MRT_SQL_FAILED, MORTISE_EPERMISSION, grants},
    {"1143", MRT_SQL_FAILED, MORTISE_EPERMISSION, grants},
    {"1227", MRT_SQL_FAILED, MORTISE_EPERMISSION, NULL},
    {"1698", MRT_SQL_FAILED, MORTISE_EPERMISSION, NULL},
    {"32100", MRT_SQL_FAILED, MORTISE_ESETUP, NULL}, /* raised by the script of mortise init */
    {"1049", MRT_SQL_FAILED, MORTISE_ESETUP, init},
    {"1146", MRT_SQL_FAILED, MORTISE_ESETUP, init},
    {"1054", MRT_SQL_FAILED, MORTISE_ESETUP, init},
    {"1040", MRT_SQL_FAILED, MORTISE_EUNREACHABLE, NULL}, /* too many connections */
    {"1203", MRT_SQL_FAILED, MORTISE_EUNREACHABLE, NULL},
    {"1226", MRT_SQL_FAILED, MORTISE_EUNREACHABLE, NULL},
    {"20", MRT_SQL_PERHAPS, MORTISE_EUNREACHABLE, NULL},
    {"", MRT_SQL_FAILED, MORTISE_ESTORE, NULL},
};
