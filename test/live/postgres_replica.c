/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing is received while the replica is told of no primary. */
#include "live/sql_replica.h"

#include "cmocka_all.h"
#include "live/postgres_place.h"

#include <stdio.h>
#include <string.h>

const bool replica_not_for_ends = true;
static char primary[512]; /* where the replica finds it */

static PGconn *connect_replica(void)
{
    char text[128];
    snprintf(text, sizeof text, "host=127.0.0.1 port=%u user=postgres dbname=mortise",
             (unsigned)replica_port());
    return PQconnectdb(text);
}

/* On the replica. */
static const char *run(const char *text)
{
    static char value[512];
    PGconn *connection = connect_replica();
    snprintf(value, sizeof value, "%s", pg_sql_on(connection, text));
    PQfinish(connection);
    return value;
}

static void await(const char *text, const char *wanted)
{
    int64_t end = zk_now_ms() + 60000;
    while (strcmp(run(text), wanted) != 0) {
        assert_true(zk_now_ms() < end);
        zk_rest_ms(5);
    }
}

int replica_place_start(void **state)
{
    zk_place_settings("", "postgres-replica");
    if (zk_place_start(state) != 0)
        return -1;
    assert_int_equal(mortise_init(sql_uri(zk_place_port(), "lease=2s"), NULL, NULL), 0);
    return 0;
}

uint16_t replica_port(void)
{
    return replica_find_port();
}

static void follow(const char *address)
{
    char text[600];
    snprintf(text, sizeof text, "ALTER SYSTEM SET primary_conninfo = '%s'", address);
    run(text);
    run("SELECT pg_reload_conf()");
}

void replica_cut(void)
{
    snprintf(primary, sizeof primary, "host=127.0.0.1 port=%u user=postgres",
             (unsigned)zk_place_port());
    follow("");
    await("SELECT count(*) FROM pg_stat_wal_receiver", "0");
}

void replica_join(void)
{
    follow(primary);
}

void replica_catch_up(void)
{
    char text[128];
    snprintf(text, sizeof text, "SELECT pg_last_wal_replay_lsn() >= '%s'",
             sql_run("SELECT pg_current_wal_lsn()"));
    await(text, "t");
}

void replica_set_synchronous(bool on)
{
    sql_run(on ? "ALTER SYSTEM SET synchronous_standby_names = '*'"
               : "ALTER SYSTEM RESET synchronous_standby_names");
    sql_run("SELECT pg_reload_conf()");
}

long replica_waits(void)
{
    return sql_number("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mortise'"
                      " AND wait_event = 'SyncRep'");
}

void replica_promote(void)
{
    assert_string_equal(run("SELECT pg_promote(true, 100)"), "t");
}
