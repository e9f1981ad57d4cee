/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of the PostgreSQL store on a real server: what it may cost, what its statements
 * must not be, and what it does about errors. Errors are the server's own, raised by a trigger as
 * often as a test asks for.
 */
#include "cmocka_all.h"
#include "live/postgres_place.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void end(mortise_client *client)
{
    assert_int_equal(mortise_close(client), MORTISE_OK);
}

static mortise_client *open_client(const char *parameters)
{
    return sql_open(zk_place_port(), parameters);
}

/* A mutex whose hold any thread may release. */
static mortise_lock *not_the_threads(mortise_client *client, const char *name)
{
    mortise_lock_options options = {.size = sizeof options, .owner = 1};
    mortise_lock *lock = NULL;
    assert_int_equal(mortise_mutex_new(client, name, &options, &lock), MORTISE_OK);
    return lock;
}

/* ------------------------------------------------------------------ what it costs */

static void test_one_round_trip_to_acquire_and_none_to_wait(void **state)
{
    (void)state;
    struct sql_proxy *proxy = sql_proxy_start(zk_place_port());
    mortise_client *client = sql_open(sql_proxy_port(proxy), "lease=60s");
    mortise_client *other = open_client("lease=60s");
    mortise_lock *lock = zk_mutex(client, "trips");
    zk_acquire(zk_mutex(client, "first")); /* connects */
    unsigned before = sql_proxy_flights(proxy);
    mortise_hold hold = zk_acquire(lock);
    assert_int_equal(sql_proxy_flights(proxy) - before, 1);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    assert_true(zk_wait_tickets(other, "trips", 0, 10000));
    assert_int_equal(sql_proxy_flights(proxy) - before, 2);
    hold = zk_acquire(zk_mutex(other, "trips"));
    before = sql_proxy_flights(proxy);
    struct sql_attempt attempt;
    sql_begin(&attempt, lock);
    assert_true(zk_wait_tickets(other, "trips", 2, 10000));
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    sql_succeed(&attempt); /* by the notification alone */
    assert_int_equal(sql_proxy_flights(proxy) - before, 1);
    end(client);
    end(other);
    sql_proxy_stop(proxy);
}

/* The channel of a session. */
#define CHANNEL(id) "'mortise_' || left(encode(sha256(uuid_send(" id ")), 'hex'), 32)"

/* One that hears all that any session is told. */
static PGconn *listen_to_all(void)
{
    char text[256];
    PGconn *connection = pg_connect();
    pg_sql_on(connection, "LISTEN marker");
    long sessions = sql_number("SELECT count(*) FROM session");
    for (long i = 0; i < sessions; i++) {
        snprintf(
            text, sizeof text,
            "SELECT 'LISTEN ' || " CHANNEL("id") " FROM session ORDER BY id OFFSET %ld LIMIT 1", i);
        snprintf(text, sizeof text, "%s", sql_run(text));
        pg_sql_on(connection, text);
    }
    return connection;
}

/* How many were told anything since the last time. They come in the order of their commits. */
static int told(PGconn *connection)
{
    int count = 0;
    bool marked = false;
    sql_run("NOTIFY marker");
    while (!marked) {
        PGnotify *notification;
        struct pollfd descriptor = {.fd = PQsocket(connection), .events = POLLIN};
        assert_int_equal(poll(&descriptor, 1, 60000), 1);
        assert_true(PQconsumeInput(connection));
        while ((notification = PQnotifies(connection))) {
            if (strcmp(notification->relname, "marker") == 0)
                marked = true;
            else
                count++;
            PQfreemem(notification);
        }
    }
    return count;
}

static void test_j7_a_release_notifies_only_the_next_waiter(void **state)
{
    (void)state;
    mortise_client *clients[4];
    struct sql_proxy *proxies[4];
    struct sql_attempt attempts[4];
    unsigned before[4];
    for (int i = 0; i < 4; i++) {
        proxies[i] = sql_proxy_start(zk_place_port());
        clients[i] = sql_open(sql_proxy_port(proxies[i]), "lease=60s");
        sql_begin(&attempts[i], not_the_threads(clients[i], "next"));
        sql_await("SELECT count(*) FROM ticket WHERE queue = 'mortise/next'", i + 1);
    }
    sql_succeed(&attempts[0]);
    PGconn *listener = listen_to_all();
    for (int i = 0; i < 4; i++)
        before[i] = sql_proxy_flights(proxies[i]);
    assert_int_equal(mortise_release(attempts[0].hold), MORTISE_OK);
    sql_succeed(&attempts[1]);
    for (int i = 1; i < 4; i++)
        assert_int_equal(sql_proxy_flights(proxies[i]), before[i]);
    assert_int_equal(told(listener), 1);
    for (int i = 1; i < 4; i++) {
        assert_int_equal(mortise_release(attempts[i].hold), MORTISE_OK);
        if (i < 3) {
            sql_succeed(&attempts[i + 1]);
            assert_int_equal(told(listener), 1);
        }
    }
    PQfinish(listener);
    for (int i = 0; i < 4; i++) {
        end(clients[i]);
        sql_proxy_stop(proxies[i]);
    }
}

static void test_sq_16_renewals_leave_no_bloat(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=60s");
    zk_acquire(zk_mutex(client, "bloat"));
    sql_run("SET synchronous_commit = off");
    sql_run("DO $$ BEGIN FOR i IN 1..30000 LOOP UPDATE session SET expires = clock_timestamp()"
            " + interval '1 minute'; UPDATE queue SET number = nextval('fence'); COMMIT;"
            " END LOOP; END $$");
    assert_true(sql_number("SELECT pg_total_relation_size('session')") < 300000);
    assert_true(sql_number("SELECT pg_total_relation_size('queue')") < 300000);
    end(client);
}

/* ------------------------------------------------------------------ the statements */

/* The case that the design forbids: the lock and the look in one statement. */
static const char one_statement[] =
    "WITH mine AS (INSERT INTO queue (name, number, touched) VALUES ('one', nextval('fence'), "
    "now())"
    " ON CONFLICT (name) DO UPDATE SET number = nextval('fence') RETURNING number),"
    " put AS (INSERT INTO ticket SELECT s.id, gen_random_uuid(), 'one', m.number, 1, 'mutex', 1,"
    " now(), 0 FROM mine m, session s WHERE s.label = 'one')"
    " SELECT (SELECT count(*) FROM ticket WHERE queue = 'one') FROM mine";
static const char *const two_statements[] = {
    "INSERT INTO queue (name, number, touched) VALUES ('one', nextval('fence'), now())"
    " ON CONFLICT (name) DO UPDATE SET number = nextval('fence')",
    "WITH put AS (INSERT INTO ticket SELECT s.id, gen_random_uuid(), 'one', q.number, 1, 'mutex', "
    "1,"
    " now(), 0 FROM queue q, session s WHERE q.name = 'one' AND s.label = 'one')"
    " SELECT count(*) FROM ticket WHERE queue = 'one'"};

/* A second one comes while the first has not committed; how many it finds ahead. */
static long second_sees(bool in_one)
{
    PGconn *first = pg_connect(), *second = pg_connect();
    sql_run("DELETE FROM ticket; DELETE FROM session;"
            "INSERT INTO session VALUES (gen_random_uuid(), 1, now() + interval '1 hour', 'one')");
    pg_sql_on(first, "BEGIN");
    if (!in_one)
        pg_sql_on(first, two_statements[0]);
    assert_string_equal(pg_sql_on(first, in_one ? one_statement : two_statements[1]), "0");
    pg_sql_on(second, "BEGIN");
    assert_int_equal(PQsendQuery(second, in_one ? one_statement : two_statements[0]), 1);
    sql_await("SELECT count(*) FROM pg_locks WHERE NOT granted", 1);
    pg_sql_on(first, "COMMIT");
    PGresult *result, *last = NULL;
    while ((result = PQgetResult(second))) {
        PQclear(last);
        last = result;
    }
    long seen = in_one ? strtol(PQgetvalue(last, 0, 0), NULL, 10)
                       : strtol(pg_sql_on(second, two_statements[1]), NULL, 10);
    PQclear(last);
    pg_sql_on(second, "COMMIT");
    PQfinish(first);
    PQfinish(second);
    sql_run("DELETE FROM ticket; DELETE FROM session");
    return seen;
}

static void test_one_statement_lets_two_in_and_two_do_not(void **state)
{
    (void)state;
    sql_run("INSERT INTO queue VALUES ('one', 1, now()) ON CONFLICT DO NOTHING");
    assert_int_equal(second_sees(true), 0);  /* it holds beside the first */
    assert_int_equal(second_sees(false), 1); /* as the store does it */
}

/* ------------------------------------------------------------------ errors */

static void cycle_under(const char *when, const char *sqlstate, int times)
{
    mortise_client *client = open_client("lease=5s");
    pg_inject(when, sqlstate, times);
    mortise_hold hold = zk_acquire(zk_mutex(client, "injected"));
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    sql_await("SELECT count(*) FROM ticket WHERE queue = 'mortise/injected'", 0);
    assert_true(sql_number("SELECT last_value FROM public.raised") >= times);
    sql_heal();
    end(client);
}

static void test_sq_05_retryable_errors_do_not_reach_the_caller(void **state)
{
    static const char *const states[] = {"40001", "40P01", "55P03", "57014"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        cycle_under("CREATE TRIGGER t BEFORE INSERT ON ticket", states[i], 3);
        cycle_under("CREATE TRIGGER t BEFORE DELETE ON ticket", states[i], 3);
        cycle_under("CREATE TRIGGER t BEFORE INSERT ON session", states[i], 3);
    }
}

static void test_sq_14_a_commit_that_fails_is_no_grant(void **state)
{
    (void)state;
    cycle_under("CREATE CONSTRAINT TRIGGER t AFTER INSERT ON ticket DEFERRABLE INITIALLY DEFERRED",
                "40001", 4);
    cycle_under("CREATE CONSTRAINT TRIGGER t AFTER DELETE ON ticket DEFERRABLE INITIALLY DEFERRED",
                "40001", 4);
}

static void test_sq_15_a_notification_that_fails_does_not_fail_the_release(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=5s"), *other = open_client("lease=2s");
    mortise_hold hold = zk_acquire(zk_mutex(client, "quiet"));
    struct sql_attempt attempt;
    sql_begin(&attempt, zk_mutex(other, "quiet"));
    sql_await("SELECT count(*) FROM ticket WHERE queue = 'mortise/quiet'", 2);
    /* The server says so at the commit; here, where the ticket goes. */
    pg_inject("CREATE TRIGGER t BEFORE DELETE ON ticket", "54000", 1);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    sql_succeed(&attempt); /* by looking again */
    sql_heal();
    end(client);
    end(other);
}

/* The statement has seen the session, and then waits for the row of one that is being ended. */
static void test_c5_a_session_that_ends_while_an_acquire_waits_for_it(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=60s");
    zk_acquire(zk_mutex(client, "before"));
    PGconn *reaper = pg_connect();
    pg_sql_on(reaper, "BEGIN");
    pg_sql_on(reaper, "SELECT 1 FROM session FOR UPDATE");
    struct sql_attempt attempt;
    sql_begin(&attempt, zk_mutex(client, "after"));
    sql_await("SELECT count(*) FROM pg_locks WHERE NOT granted", 1);
    pg_sql_on(reaper, "DELETE FROM session");
    pg_sql_on(reaper, "COMMIT");
    sql_succeed(&attempt); /* in a new session */
    assert_int_equal(sql_losses(client), 1);
    PQfinish(reaper);
    end(client);
}

/* Repeats, for a second, what a session would be told if it were the waiter's turn: a role that may
   not even see the schema, but has seen the channels' names, and guessed tickets and numbers. The
   last word is the end of what it has overheard. */
static void forge(const char *overheard)
{
    char text[2048];
    snprintf(
        text, sizeof text,
        "DO $$ DECLARE t record; c text; m text; till timestamptz := clock_timestamp() +"
        " interval '1 second'; BEGIN SELECT *, replace(session::text, '-', '') AS channel,"
        " replace(id::text, '-', '') AS name INTO t FROM mortise.ticket"
        " WHERE queue = 'mortise/forged' ORDER BY number DESC LIMIT 1;"
        " SET LOCAL ROLE watcher; WHILE clock_timestamp() < till LOOP"
        " FOREACH c IN ARRAY ARRAY['mortise_' || t.channel, " CHANNEL(
            "t.session") "] LOOP"
                         " FOREACH m IN ARRAY ARRAY['', ' 0123456789abcdef', '%s'] LOOP"
                         " PERFORM pg_notify(c, t.name || ' place ' || t.number || ' 0 0' || m),"
                         " pg_notify(c, right(t.name, 16) || ' place ' || t.number || ' 0 0' || m);"
                         " END LOOP; END LOOP; COMMIT; SET LOCAL ROLE watcher; PERFORM "
                         "pg_sleep(0.005);"
                         " END LOOP; END $$",
        overheard);
    sql_run(text);
}

/* The last word that any session was told. */
static void overhear(PGconn *listener, char *word, size_t size)
{
    PGnotify *notification;
    struct pollfd descriptor = {.fd = PQsocket(listener), .events = POLLIN};
    *word = '\0';
    while (!*word) {
        assert_int_equal(poll(&descriptor, 1, 60000), 1);
        assert_true(PQconsumeInput(listener));
        while ((notification = PQnotifies(listener))) {
            snprintf(word, size, "%s", strrchr(notification->extra, ' '));
            PQfreemem(notification);
        }
    }
}

static void test_sq_15_a_notification_that_is_forged_grants_nothing(void **state)
{
    (void)state;
    char word[64];
    mortise_client *client = open_client("lease=60s"), *other = open_client("lease=60s");
    mortise_hold hold = zk_acquire(zk_mutex(client, "forged"));
    struct sql_attempt attempt;
    sql_run("CREATE ROLE watcher NOLOGIN");
    assert_string_equal(sql_run("SELECT has_schema_privilege('watcher', 'mortise', 'USAGE')"), "f");
    sql_begin(&attempt, not_the_threads(other, "forged"));
    sql_await(SQL_TICKETS("forged"), 2);
    forge("");
    assert_false(attempt.done);
    PGconn *listener = listen_to_all();
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    sql_succeed(&attempt); /* what is not forged does */
    overhear(listener, word, sizeof word);
    assert_int_equal(mortise_release(attempt.hold), MORTISE_OK);
    sql_await(SQL_TICKETS("forged"), 0);
    hold = zk_acquire(zk_mutex(client, "forged"));
    sql_begin(&attempt, not_the_threads(other, "forged"));
    sql_await(SQL_TICKETS("forged"), 2);
    forge(word);
    assert_false(attempt.done);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    sql_succeed(&attempt);
    assert_int_equal(mortise_release(attempt.hold), MORTISE_OK);
    PQfinish(listener);
    end(client);
    end(other);
}

static void test_other_errors_are_told_with_their_state(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=5s");
    mortise_hold hold;
    zk_acquire(zk_mutex(client, "well"));
    pg_inject("CREATE TRIGGER t BEFORE INSERT ON ticket", "53100", 1000);
    assert_int_equal(mortise_try_acquire(zk_mutex(client, "disk"), &hold), MORTISE_ESTORE);
    assert_non_null(strstr(mortise_error_detail(), "injected (53100)"));
    sql_heal();
    pg_inject("CREATE TRIGGER t BEFORE INSERT ON ticket", "42501", 1000);
    assert_int_equal(mortise_acquire(zk_mutex(client, "denied"), &hold), MORTISE_EPERMISSION);
    sql_heal();
    assert_int_equal(mortise_try_acquire(zk_mutex(client, "denied"), &hold), MORTISE_OK);
    end(client);
}

/* An argument chooses tests by their names, "*sq_14*". */
int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_round_trip_to_acquire_and_none_to_wait),
        cmocka_unit_test(test_j7_a_release_notifies_only_the_next_waiter),
        cmocka_unit_test(test_sq_16_renewals_leave_no_bloat),
        cmocka_unit_test(test_one_statement_lets_two_in_and_two_do_not),
        cmocka_unit_test(test_sq_05_retryable_errors_do_not_reach_the_caller),
        cmocka_unit_test(test_sq_14_a_commit_that_fails_is_no_grant),
        cmocka_unit_test(test_sq_15_a_notification_that_fails_does_not_fail_the_release),
        cmocka_unit_test(test_c5_a_session_that_ends_while_an_acquire_waits_for_it),
        cmocka_unit_test(test_sq_15_a_notification_that_is_forged_grants_nothing),
        cmocka_unit_test(test_other_errors_are_told_with_their_state),
    };
    if (count > 1)
        cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests(tests, sql_place_start, zk_place_stop);
}
