/* SPDX-License-Identifier: Apache-2.0 */
/* The test's own connections are the administrator's. One is kept, and made again when the server
   was away. */
#include "live/sql_place.h"

#include "cmocka_all.h"

#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static MYSQL *own, *blocker;

const char *const sql_parts[SQL_ALL_PARTS] = {"CONNECTION_ID(), @@global",
                                              "INSERT INTO session",
                                              "INSERT INTO ticket",
                                              "LEAST(weight",
                                              "' AND kind = x'",
                                              "DELETE FROM ticket WHERE session",
                                              "DELETE FROM ticket WHERE session",
                                              "DELETE FROM session WHERE id",
                                              "UPDATE session SET epoch",
                                              "EXECUTE mortise USING",
                                              "DELETE FROM ticket WHERE queue"};

const char sql_end_leases[] = "UPDATE session SET expires = (UNIX_TIMESTAMP() - 120) * 1000000"
                              " WHERE epoch > 0";
const char sql_days_ago[] = "(UNIX_TIMESTAMP() - 172800) * 1000000";
const char sql_hour_ago[] = "(UNIX_TIMESTAMP() - 3660) * 1000000";
const char sql_unused_queues[] =
    "INSERT INTO queue SELECT CONCAT('mortise/unused/', seq), (UNIX_TIMESTAMP() - 172800) * 1000000"
    " FROM seq_1_to_%d";
const bool sql_makes_rows_first = true;
const char sql_lease_left[] =
    "SELECT MIN(expires) DIV 1000 - UNIX_TIMESTAMP(SYSDATE(3)) * 1000 FROM session";

const char *sql_uri(uint16_t port, const char *parameters)
{
    static char uris[8][256];
    static int next;
    char *uri = uris[next++ % 8];
    snprintf(uri, sizeof uris[0], "mysql://mortise@127.0.0.1:%u/mortise?%s", (unsigned)port,
             parameters);
    return uri;
}

struct sql_proxy *sql_proxy(void)
{
    return sql_proxy_start_mysql(zk_place_port());
}

int sql_place_start(void **state)
{
    zk_place_settings("", "mariadb");
    if (zk_place_start(state) != 0)
        return -1;
    assert_int_equal(mortise_init(sql_uri(zk_place_port(), "lease=2s"), NULL, NULL), 0);
    return 0;
}

/* ------------------------------------------------------------------ statements */

static MYSQL *connect_to(void)
{
    MYSQL *connection = mysql_init(NULL);
    mysql_options(connection, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    if (mysql_real_connect(connection, "127.0.0.1", "root", NULL, "mortise", zk_place_port(), NULL,
                           CLIENT_MULTI_STATEMENTS))
        return connection;
    fail_msg("%s", mysql_error(connection));
    return NULL;
}

static const char *run_on(MYSQL *connection, const char *text)
{
    static char value[256];
    int more = mysql_real_query(connection, text, strlen(text));
    value[0] = '\0';
    while (more == 0) {
        MYSQL_RES *rows = mysql_store_result(connection);
        MYSQL_ROW row = rows ? mysql_fetch_row(rows) : NULL;
        snprintf(value, sizeof value, "%s", row && row[0] ? row[0] : "");
        mysql_free_result(rows);
        more = mysql_next_result(connection);
    }
    if (more > 0)
        fail_msg("%s: %s", text, mysql_error(connection));
    return value;
}

const char *sql_run(const char *text)
{
    if (own && mysql_ping(own) != 0) {
        mysql_close(own);
        own = NULL;
    }
    if (!own)
        own = connect_to();
    return run_on(own, text);
}

/* ------------------------------------------------------------------ the server */

#define OURS "information_schema.processlist WHERE user = 'mortise'"

long sql_connections(void)
{
    return sql_number("SELECT count(*) FROM " OURS);
}

/* The server goes on showing what it saw before, unless it was not asked for a tenth of a second.
 */
long sql_transactions(void)
{
    zk_rest_ms(150);
    return sql_number("SELECT count(*) FROM information_schema.innodb_trx WHERE"
                      " trx_mysql_thread_id IN (SELECT id FROM " OURS ")");
}

/* Not from innodb_trx, which is read again and again. */
long sql_lock_waits(void)
{
    return sql_number("SELECT variable_value FROM information_schema.global_status"
                      " WHERE variable_name = 'innodb_row_lock_current_waits'");
}

void sql_end_connections(void)
{
    sql_run("KILL USER mortise");
}

void sql_set_read_only(bool on)
{
    sql_run(on ? "SET GLOBAL read_only = 1" : "SET GLOBAL read_only = 0");
}

const bool sql_demotes_in_place = true;

void sql_set_privileged(bool on)
{
    sql_run(on ? "GRANT READ_ONLY ADMIN ON *.* TO mortise"
               : "REVOKE READ_ONLY ADMIN ON *.* FROM mortise");
}

void sql_set_idle_limit(bool on)
{
    sql_run(on ? "SET GLOBAL wait_timeout = 1, GLOBAL idle_transaction_timeout = 1,"
                 " GLOBAL idle_readonly_transaction_timeout = 1"
               : "SET GLOBAL wait_timeout = 28800, GLOBAL idle_transaction_timeout = 0,"
                 " GLOBAL idle_readonly_transaction_timeout = 0");
}

long sql_idle_ms(void)
{
    return sql_number("SELECT CAST(MIN(IF(command = 'Sleep', time_ms, 0)) AS INTEGER) FROM " OURS);
}

void sql_set_serializable(bool on)
{
    sql_run(on ? "SET GLOBAL tx_isolation = 'SERIALIZABLE'"
               : "SET GLOBAL tx_isolation = 'REPEATABLE-READ'");
}

void sql_set_room(bool on)
{
    sql_run(on ? "SET GLOBAL max_prepared_stmt_count = 16382"
               : "SET GLOBAL max_prepared_stmt_count = 0");
}

const char *const sql_refusals[SQL_REFUSALS] = {"1213", "1205"};

void sql_inject(const char *what, enum sql_refusal refusal, int times)
{
    char text[512];
    snprintf(text, sizeof text,
             "CREATE TABLE IF NOT EXISTS raised (number INT) ENGINE = MyISAM;"
             "DELETE FROM raised;"
             "CREATE TRIGGER raising BEFORE %s FOR EACH ROW BEGIN"
             " INSERT INTO raised VALUES (1);"
             " IF (SELECT count(*) FROM raised) <= %d THEN"
             " SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = %s, MESSAGE_TEXT = 'injected';"
             " END IF; END",
             what, times, sql_refusals[refusal]);
    sql_run(text);
}

long sql_heal(void)
{
    sql_run("DROP TRIGGER raising");
    return sql_number("SELECT count(*) FROM raised");
}

void sql_block(const char *rows)
{
    char text[128];
    blocker = connect_to();
    run_on(blocker, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"); /* rows, not gaps */
    snprintf(text, sizeof text, "BEGIN; SELECT * FROM %s FOR UPDATE", rows);
    run_on(blocker, text);
}

void sql_unblock(void)
{
    run_on(blocker, "COMMIT");
    mysql_close(blocker);
}

/* ------------------------------------------------------------------ forms */

const char *const sql_forms[SQL_FORMS] = {"get_lock", "row"};

struct sql_peer {
    MYSQL *connection;
    int form;
};

struct sql_peer *sql_peer_start(int form)
{
    struct sql_peer *peer = calloc(1, sizeof *peer);
    assert_non_null(peer);
    *peer = (struct sql_peer){connect_to(), form};
    run_on(peer->connection, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    return peer;
}

/* A long name is called as doc/forms.md tells other programs to call it. */
static const char *call(struct sql_peer *peer, const char *before, const char *name,
                        const char *after)
{
    char text[2048];
    snprintf(text, sizeof text,
             "SELECT %s(IF(CHAR_LENGTH('%s') > 64 OR LENGTH('%s') > 192, SHA2('%s', 256), '%s')%s)",
             before, name, name, name, name, after);
    return run_on(peer->connection, text);
}

void sql_peer_take(struct sql_peer *peer, const char *name)
{
    char text[1024];
    snprintf(text, sizeof text, "BEGIN; SELECT 1 FROM row_lock WHERE name = '%s' FOR UPDATE", name);
    assert_string_equal(peer->form == SQL_NAMED ? call(peer, "GET_LOCK", name, ", 60")
                                                : run_on(peer->connection, text),
                        "1");
}

bool sql_peer_try(struct sql_peer *peer, const char *name)
{
    char text[1024];
    if (peer->form == SQL_NAMED)
        return *call(peer, "GET_LOCK", name, ", 0") == '1';
    snprintf(text, sizeof text,
             "BEGIN; SELECT 1 FROM row_lock WHERE name = '%s' FOR UPDATE SKIP LOCKED", name);
    if (*run_on(peer->connection, text) == '1')
        return true;
    run_on(peer->connection, "COMMIT");
    return false;
}

void sql_peer_give(struct sql_peer *peer, const char *name)
{
    if (peer->form == SQL_NAMED)
        assert_string_equal(call(peer, "RELEASE_LOCK", name, ""), "1");
    else
        run_on(peer->connection, "COMMIT");
}

void sql_peer_end(struct sql_peer *peer)
{
    mysql_close(peer->connection);
    free(peer);
}

/* Not from innodb_trx either. */
#define WAITING OURS " AND (state = 'User lock' OR info LIKE 'SELECT 1 FROM row_lock%FOR UPDATE%')"

long sql_form_waits(void)
{
    return sql_number("SELECT count(*) FROM " WAITING);
}

long sql_form_wait_age(void)
{
    return sql_number("SELECT CAST(MAX(time_ms) AS INTEGER) FROM " WAITING);
}
