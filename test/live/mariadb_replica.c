/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing is received while the replica's thread for that is stopped. */
#include "live/sql_replica.h"

#include "cmocka_all.h"

#include <mysql.h>
#include <stdio.h>

const bool replica_not_for_ends = false;

/* On the replica; the first value of the first row, or "". */
static const char *run(const char *text)
{
    static char value[256];
    MYSQL *connection = mysql_init(NULL);
    MYSQL_ROW row = NULL;
    if (!mysql_real_connect(connection, "127.0.0.1", "root", NULL, NULL, replica_port(), NULL, 0) ||
        mysql_query(connection, text) != 0)
        fail_msg("%s: %s", text, mysql_error(connection));
    MYSQL_RES *rows = mysql_store_result(connection);
    if (rows)
        row = mysql_fetch_row(rows);
    snprintf(value, sizeof value, "%s", row && row[0] ? row[0] : "");
    mysql_free_result(rows);
    mysql_close(connection);
    return value;
}

int replica_place_start(void **state)
{
    zk_place_settings("", "mariadb-replica");
    if (zk_place_start(state) != 0)
        return -1;
    assert_int_equal(mortise_init(sql_uri(zk_place_port(), "lease=2s"), NULL, NULL), 0);
    return 0;
}

uint16_t replica_port(void)
{
    return replica_find_port();
}

void replica_cut(void)
{
    run("STOP SLAVE IO_THREAD");
}

void replica_join(void)
{
    run("START SLAVE IO_THREAD");
}

void replica_catch_up(void)
{
    char text[128];
    snprintf(text, sizeof text, "SELECT MASTER_GTID_WAIT('%s', 60)",
             sql_run("SELECT @@global.gtid_binlog_pos"));
    assert_string_equal(run(text), "0");
}

void replica_set_synchronous(bool on)
{
    run(on ? "SET GLOBAL rpl_semi_sync_slave_enabled = 1"
           : "SET GLOBAL rpl_semi_sync_slave_enabled = 0");
    sql_run("SET GLOBAL rpl_semi_sync_master_wait_point = AFTER_SYNC");
    sql_run("SET GLOBAL rpl_semi_sync_master_timeout = 1000000");
    sql_run(on ? "SET GLOBAL rpl_semi_sync_master_enabled = 1"
               : "SET GLOBAL rpl_semi_sync_master_enabled = 0");
}

long replica_waits(void)
{
    return sql_number("SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS"
                      " WHERE VARIABLE_NAME = 'RPL_SEMI_SYNC_MASTER_WAIT_SESSIONS'");
}

void replica_promote(void)
{
    run("STOP SLAVE");
    run("RESET SLAVE ALL");
    run("SET GLOBAL read_only = 0");
}
