/* SPDX-License-Identifier: Apache-2.0 */
/* The test's own connection is made at first use, and again when the server was away. */
#include "live/postgres_place.h"

#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static PGconn *own;

const char *sql_uri(uint16_t port, const char *parameters)
{
    static char uris[8][256];
    static int next;
    char *uri = uris[next++ % 8];
    snprintf(uri, sizeof uris[0], "postgresql://mortise@127.0.0.1:%u/mortise?sslmode=disable&%s",
             (unsigned)port, parameters);
    return uri;
}

int sql_place_start(void **state)
{
    zk_place_settings("", "postgres");
    if (zk_place_start(state) != 0)
        return -1;
    assert_int_equal(mortise_init(sql_uri(zk_place_port(), "lease=2s"), NULL, NULL), 0);
    return 0;
}

PGconn *pg_connect(void)
{
    char text[256];
    snprintf(text, sizeof text,
             "host=127.0.0.1 port=%u user=postgres dbname=mortise "
             "application_name=test options='-c search_path=mortise'",
             (unsigned)zk_place_port());
    return PQconnectdb(text);
}

PGconn *pg_connect_at(uint16_t port)
{
    char text[128];
    snprintf(text, sizeof text, "host=127.0.0.1 port=%u user=mortise dbname=mortise",
             (unsigned)port);
    return PQconnectdb(text);
}

const char *pg_sql_on(PGconn *connection, const char *text)
{
    static char value[256];
    PGresult *result = PQexec(connection, text);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        fail_msg("%s: %s", text, PQerrorMessage(connection));
    snprintf(value, sizeof value, "%s", PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    return value;
}

const char *sql_run(const char *text)
{
    if (own && PQstatus(own) == CONNECTION_OK)
        PQclear(PQexec(own, "SELECT 1")); /* finds out whether the server has been away */
    if (own && PQstatus(own) != CONNECTION_OK) {
        PQfinish(own);
        own = NULL;
    }
    if (!own)
        own = pg_connect();
    return pg_sql_on(own, text);
}

/* ------------------------------------------------------------------ sql_place.h */

#define OURS "pg_stat_activity WHERE application_name = 'mortise'"

const char *const sql_parts[SQL_ALL_PARTS] = {
    "tcp_keepalives_idle", "START",     "APPEND", "DETACH", "ADOPT", "REMOVE",
    "REMOVE_LAST",         "LEAVE_ALL", "RESUME", "APPEND", "BREAK"};
const char sql_lease_left[] =
    "SELECT extract(epoch FROM min(expires) - clock_timestamp()) * 1000 FROM session";
const char sql_end_leases[] =
    "UPDATE session SET expires = clock_timestamp() - interval '2 minutes' WHERE epoch > 0";
const char sql_days_ago[] = "clock_timestamp() - interval '2 days'";
const char sql_hour_ago[] = "clock_timestamp() - interval '61 minutes'";
const char sql_unused_queues[] =
    "INSERT INTO queue SELECT 'mortise/unused/' || i, 1, clock_timestamp() - interval '2 days'"
    " FROM generate_series(1, %d) i";
const bool sql_makes_rows_first = false;
static PGconn *blocker;

struct sql_proxy *sql_proxy(void)
{
    return sql_proxy_start(zk_place_port());
}

long sql_connections(void)
{
    return sql_number("SELECT count(*) FROM " OURS);
}

long sql_transactions(void)
{
    return sql_number("SELECT count(*) FROM " OURS " AND xact_start IS NOT NULL");
}

long sql_lock_waits(void)
{
    return sql_number("SELECT count(*) FROM pg_locks WHERE NOT granted");
}

void sql_end_connections(void)
{
    sql_run("SELECT pg_terminate_backend(pid, 5000) FROM " OURS);
}

/* Until a new connection has the setting, by this text. */
static void reload(const char *name, const char *value)
{
    char text[64];
    PGconn *look = NULL;
    bool is;
    snprintf(text, sizeof text, "SHOW %s", name);
    sql_run("SELECT pg_reload_conf()");
    do {
        PQfinish(look);
        look = pg_connect();
        is = strcmp(pg_sql_on(look, text), value) == 0;
    } while (!is);
    PQfinish(look);
}

void sql_set_read_only(bool on)
{
    sql_run(on ? "ALTER SYSTEM SET default_transaction_read_only = on"
               : "SET default_transaction_read_only = off");
    if (!on)
        sql_run("ALTER SYSTEM RESET default_transaction_read_only");
    reload("default_transaction_read_only", on ? "on" : "off");
}

const bool sql_demotes_in_place = false;

void sql_set_privileged(bool on)
{
    (void)on; /* nobody may */
}

void sql_set_idle_limit(bool on)
{
    sql_run(on ? "ALTER SYSTEM SET idle_in_transaction_session_timeout = '1s'"
               : "ALTER SYSTEM RESET idle_in_transaction_session_timeout");
    sql_run(on ? "ALTER SYSTEM SET idle_session_timeout = '1s'"
               : "ALTER SYSTEM RESET idle_session_timeout");
    reload("idle_session_timeout", on ? "1s" : "0");
}

long sql_idle_ms(void)
{
    return sql_number("SELECT min(CASE WHEN state LIKE 'idle%' THEN extract(epoch FROM"
                      " clock_timestamp() - state_change) * 1000 ELSE 0 END)::int FROM " OURS);
}

void sql_set_serializable(bool on)
{
    sql_run(on ? "ALTER DATABASE mortise SET default_transaction_isolation = serializable"
               : "ALTER DATABASE mortise RESET default_transaction_isolation");
}

void pg_inject(const char *when, const char *sqlstate, int times)
{
    char text[1024];
    snprintf(text, sizeof text,
             "SET client_min_messages = warning; CREATE SEQUENCE IF NOT EXISTS public.raised;"
             "SELECT setval('public.raised', 1, false);"
             "GRANT ALL ON SEQUENCE public.raised TO mortise;"
             "CREATE OR REPLACE FUNCTION public.raise() RETURNS trigger LANGUAGE plpgsql AS $$"
             " BEGIN IF nextval('public.raised') <= %d THEN"
             " RAISE EXCEPTION 'injected' USING ERRCODE = '%s'; END IF;"
             " RETURN coalesce(NEW, OLD); END $$;"
             "%s FOR EACH ROW EXECUTE FUNCTION public.raise();"
             /* A schema with a trigger that a user made is refused. */
             "UPDATE pg_trigger SET tgisinternal = true WHERE tgname = 't'",
             times, sqlstate, when);
    sql_run(text);
}

void sql_set_room(bool on)
{
    (void)on;
}

const char *const sql_refusals[SQL_REFUSALS] = {"40P01", "40001"};

void sql_inject(const char *what, enum sql_refusal refusal, int times)
{
    char text[64];
    snprintf(text, sizeof text, "CREATE TRIGGER t BEFORE %s", what);
    pg_inject(text, sql_refusals[refusal], times);
}

long sql_heal(void)
{
    sql_run("DROP FUNCTION public.raise CASCADE");
    return sql_number("SELECT last_value FROM public.raised");
}

void sql_block(const char *rows)
{
    char text[128];
    blocker = pg_connect();
    snprintf(text, sizeof text, "BEGIN; SELECT * FROM %s FOR UPDATE", rows);
    pg_sql_on(blocker, text);
}

void sql_unblock(void)
{
    pg_sql_on(blocker, "COMMIT");
    PQfinish(blocker);
}

/* ------------------------------------------------------------------ forms */

const char *const sql_forms[SQL_FORMS] = {"advisory", "row"};

struct sql_peer {
    PGconn *connection;
    int form;
};

struct sql_peer *sql_peer_start(int form)
{
    struct sql_peer *peer = calloc(1, sizeof *peer);
    assert_non_null(peer);
    *peer = (struct sql_peer){pg_connect(), form};
    return peer;
}

/* The key as doc/forms.md tells other programs to make it. */
#define KEY "('x' || left(encode(sha256(convert_to('%s', 'UTF8')), 'hex'), 16))::bit(64)::bigint"

/* A number is its own key. */
static const char *advise(struct sql_peer *peer, const char *call, const char *name)
{
    char text[1024], key[900];
    bool number = name[strspn(name, "-0123456789")] == '\0';
    snprintf(key, sizeof key, number ? "%s" : KEY, name);
    snprintf(text, sizeof text, "SELECT %s(%s)", call, key);
    return pg_sql_on(peer->connection, text);
}

void sql_peer_take(struct sql_peer *peer, const char *name)
{
    char text[1024];
    snprintf(text, sizeof text, "BEGIN; SELECT 1 FROM row_lock WHERE name = '%s' FOR UPDATE", name);
    if (peer->form == SQL_NAMED)
        advise(peer, "pg_advisory_lock", name);
    else
        assert_string_equal(pg_sql_on(peer->connection, text), "1");
}

bool sql_peer_try(struct sql_peer *peer, const char *name)
{
    char text[1024];
    if (peer->form == SQL_NAMED)
        return *advise(peer, "pg_try_advisory_lock", name) == 't';
    snprintf(text, sizeof text,
             "BEGIN; SELECT 1 FROM row_lock WHERE name = '%s' FOR UPDATE SKIP LOCKED", name);
    if (*pg_sql_on(peer->connection, text) == '1')
        return true;
    pg_sql_on(peer->connection, "COMMIT");
    return false;
}

void sql_peer_give(struct sql_peer *peer, const char *name)
{
    if (peer->form == SQL_NAMED)
        assert_string_equal(advise(peer, "pg_advisory_unlock", name), "t");
    else
        pg_sql_on(peer->connection, "COMMIT");
}

void sql_peer_end(struct sql_peer *peer)
{
    PQfinish(peer->connection);
    free(peer);
}

long sql_form_waits(void)
{
    return sql_number("SELECT count(*) FROM " OURS " AND wait_event_type = 'Lock'");
}

long sql_form_wait_age(void)
{
    return sql_number("SELECT max(extract(epoch FROM clock_timestamp() - query_start) * 1000)::int"
                      " FROM " OURS " AND wait_event_type = 'Lock'");
}
