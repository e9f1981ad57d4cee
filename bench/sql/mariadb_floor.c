/* SPDX-License-Identifier: Apache-2.0 */
/* Statements as texts, which this server takes no longer for than prepared ones. */
#include "floor.h"

#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct floor_mode floor_modes[] = {
    {"rows",
     "CREATE TABLE IF NOT EXISTS floor (id BIGINT PRIMARY KEY)",
     {"INSERT INTO floor VALUES (CONNECTION_ID())",
      "DELETE FROM floor WHERE id = CONNECTION_ID()"}},
    {"call", NULL, {"SELECT GET_LOCK('floor', 3600)", "SELECT RELEASE_LOCK('floor')"}},
    {0}};

static MYSQL *connection;
static const struct floor_mode *doing;

static void run(const char *text)
{
    if (mysql_query(connection, text) != 0) {
        fprintf(stderr, "%s\n", mysql_error(connection));
        exit(1);
    }
    mysql_free_result(mysql_store_result(connection));
}

void floor_open(const char *url, const struct floor_mode *mode)
{
    const char *at = strrchr(url, ':');
    connection = mysql_init(NULL);
    doing = mode;
    if (!at || !mysql_real_connect(connection, "127.0.0.1", "mortise", NULL, "mortise",
                                   (unsigned)strtoul(at + 1, NULL, 10), NULL, 0)) {
        fprintf(stderr, "%s\n", mysql_error(connection));
        exit(1);
    }
    if (mode->setup)
        run(mode->setup);
}

void floor_step(int which)
{
    run(doing->step[which]);
}
