/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PostgreSQL store under faults of its server, of the way to it and of what stands in
 * between: lost answers, late statements, half-open connections, servers that are killed, frozen
 * or turned read-only, and poolers. The letters in a test's name are the entry it covers.
 */
#include "cmocka_all.h"
#include "live/postgres_pooler.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MANY 70
#define MANY_TICKETS "SELECT count(*) FROM ticket WHERE queue LIKE 'mortise/many%'"
#define OURS "application_name = 'mortise'"

static mortise_client *open_client(const char *parameters)
{
    return sql_open(zk_place_port(), parameters);
}

/* ------------------------------------------------------------------ the server */

/* The processes that write commits to disk that clients have not waited for. */
static void signal_writers(int signal)
{
    static pid_t writers[4];
    static int count;
    for (; signal == SIGSTOP && count < 4; count++) {
        char text[256];
        snprintf(text, sizeof text,
                 "SELECT pid FROM pg_stat_activity WHERE backend_type IN ('walwriter',"
                 " 'checkpointer', 'background writer', 'autovacuum launcher')"
                 " ORDER BY pid OFFSET %d LIMIT 1",
                 count);
        writers[count] = (pid_t)sql_number(text);
        assert_true(writers[count] > 1);
    }
    for (int i = 0; i < count; i++)
        assert_int_equal(kill(writers[i], signal), 0);
    if (signal == SIGKILL)
        count = 0; /* there will be others */
}

/* The server ends all of its processes and begins anew, with what is on disk. */
static void crash(void)
{
    PGconn *old = pg_connect(), *new = NULL;
    int64_t limit = zk_now_ms() + 60000;
    signal_writers(SIGKILL);
    while (PQstatus(old) == CONNECTION_OK)
        PQclear(PQexec(old, "SELECT pg_sleep(0.01)"));
    do { /* it takes none before it has read what is there */
        assert_true(zk_now_ms() < limit);
        PQfinish(new);
        new = pg_connect();
    } while (PQstatus(new) != CONNECTION_OK);
    PQfinish(new);
    PQfinish(old);
}

/* A client whose next session after a crash waits, so that what was lost can be seen. */
struct late {
    struct sql_proxy *proxy;
    mortise_client *client;
    mortise_hold kept;
};

static void open_late(struct late *late, const char *kept)
{
    late->proxy = sql_proxy();
    late->client = sql_open(sql_proxy_port(late->proxy), "lease=3600s");
    late->kept = zk_acquire(zk_mutex(late->client, kept));
    sql_proxy_order(late->proxy, SQL_HOLD, sql_parts[SQL_RESUME]);
}

static void await_late(const struct late *late)
{
    int64_t limit = zk_now_ms() + 60000;
    while (!sql_proxy_done(late->proxy)) {
        assert_true(zk_now_ms() < limit);
        zk_rest_ms(5);
    }
}

static void close_late(struct late *late)
{
    assert_int_equal(mortise_verify(late->kept, 60000), MORTISE_OK);
    assert_int_equal(sql_losses(late->client), 0);
    assert_int_equal(mortise_close(late->client), MORTISE_OK);
    sql_proxy_stop(late->proxy);
}

/* More than are remembered. */
static void acquire_many(mortise_client *client, mortise_hold *holds)
{
    char name[16];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "many%d", i);
        holds[i] = zk_acquire(zk_mutex(client, name));
    }
}

static void release_many(const mortise_hold *holds)
{
    for (int i = 0; i < MANY; i++)
        assert_int_equal(mortise_release(holds[i]), MORTISE_OK);
    sql_await(MANY_TICKETS, 0);
}

/* A release is told of before it is on disk, where nobody waits for it. The server loses it, and it
   is made again; but not what came before the end of a session. */
static void test_sq_08_a_release_that_a_server_forgets_is_made_again(void **state)
{
    (void)state;
    long others = sql_number("SELECT count(*) FROM session"); /* that an earlier crash has left */
    struct late first, second;
    mortise_hold many[MANY];
    mortise_client *closed = open_client("lease=3600s");
    open_late(&first, "first");
    open_late(&second, "second");
    acquire_many(first.client, many);
    mortise_hold forgotten = zk_acquire(zk_mutex(second.client, "forgotten")),
                 ended = zk_acquire(zk_mutex(closed, "ended"));
    signal_writers(SIGSTOP);
    assert_int_equal(mortise_release(ended), MORTISE_OK);
    sql_await(SQL_TICKETS("ended"), 0);
    assert_int_equal(mortise_close(closed), MORTISE_OK);
    release_many(many);
    assert_int_equal(mortise_release(forgotten), MORTISE_OK);
    sql_await(SQL_TICKETS("forgotten"), 0);
    crash();
    await_late(&first);
    await_late(&second);
    assert_int_equal(sql_number(SQL_TICKETS("forgotten")), 1);
    assert_int_equal(sql_number(SQL_TICKETS("ended")), 0);
    assert_true(sql_number(MANY_TICKETS) < 64);
    assert_int_equal(sql_number("SELECT count(*) FROM session"), others + 2);
    sql_proxy_go(first.proxy);
    sql_proxy_go(second.proxy);
    sql_await(SQL_TICKETS("forgotten"), 0);
    sql_await(MANY_TICKETS, 0);
    close_late(&first);
    close_late(&second);
}

/* A session whose release had to be on disk immediately, and that has nothing of unknown outcome.
 */
static void acquire_and_release_for_good(mortise_client *client, const char *name)
{
    mortise_lock_options options = {.size = sizeof options, .lock_delay_ms = 1};
    mortise_lock *lock = NULL;
    assert_int_equal(mortise_mutex_new(client, name, &options, &lock), MORTISE_OK);
    assert_int_equal(mortise_release(zk_acquire(lock)), MORTISE_OK);
}

/* A transaction that ends without a holder does not wait for the disk, and is undone when the
 * server loses its memory. Nobody has been granted anything for it. */
static void test_sq_08_a_server_loses_commits_that_are_not_on_disk(void **state)
{
    (void)state;
    mortise_client *first = open_client("lease=3600s"), *second = open_client("lease=3600s"),
                   *idle = open_client("lease=3600s");
    struct sql_attempt attempt;
    acquire_and_release_for_good(idle, "idle");
    zk_acquire(zk_mutex(first, "inherited"));
    sql_begin(&attempt, zk_mutex(second, "inherited"));
    sql_await(SQL_TICKETS("inherited"), 2);
    sql_await(SQL_TICKETS("idle"), 0);
    signal_writers(SIGSTOP);
    assert_int_equal(mortise_close(first), MORTISE_OK); /* with its lock */
    sql_succeed(&attempt);
    assert_int_equal(mortise_close(idle), MORTISE_OK);
    assert_int_equal(sql_number("SELECT count(*) FROM session"), 1);
    crash();
    assert_int_equal(mortise_verify(attempt.hold, 60000), MORTISE_OK);
    assert_int_equal(sql_number("SELECT count(*) FROM session"), 2);
    assert_int_equal(sql_number(SQL_TICKETS("inherited")), 1);
    assert_int_equal(sql_losses(second), 0);
    assert_int_equal(mortise_close(second), MORTISE_OK);
}

static void test_sq_15_the_listener_is_terminated_between_release_and_wake(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=5s"), *waiting = open_client("lease=5s");
    for (int i = 0; i < 5; i++) {
        mortise_hold hold = zk_acquire(zk_mutex(client, "listen"));
        struct sql_attempt attempt;
        mortise_lock_options options = {.size = sizeof options, .owner = 1};
        mortise_lock *lock = NULL;
        assert_int_equal(mortise_mutex_new(waiting, "listen", &options, &lock), MORTISE_OK);
        sql_begin(&attempt, lock);
        sql_await(SQL_TICKETS("listen"), 2);
        sql_run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE " OURS
                " ORDER BY backend_start DESC LIMIT 1");
        assert_int_equal(mortise_release(hold), MORTISE_OK);
        sql_succeed(&attempt);
        assert_int_equal(mortise_release(attempt.hold), MORTISE_OK);
        sql_await(SQL_TICKETS("listen"), 0);
    }
    assert_int_equal(mortise_close(client), MORTISE_OK);
    assert_int_equal(mortise_close(waiting), MORTISE_OK);
}

/* Has the lock passed on to a waiter on a new connection; whether that asked for nothing after it
   had looked, so the notification alone has told it. */
static bool is_told_anew(mortise_client *client, mortise_client *waiting, struct sql_proxy *proxy,
                         int connection)
{
    mortise_lock_options options = {.size = sizeof options, .owner = 1};
    mortise_hold hold = zk_acquire(zk_mutex(client, "anew"));
    mortise_lock *lock = NULL;
    struct sql_attempt attempt;
    assert_int_equal(mortise_mutex_new(waiting, "anew", &options, &lock), MORTISE_OK);
    sql_begin(&attempt, lock);
    sql_await(SQL_TICKETS("anew"), 2);
    sql_proxy_cut(proxy);
    sql_await("SELECT max(epoch) FROM session", connection);
    sql_await("SELECT count(*) FROM pg_stat_activity WHERE " OURS
              " AND state = 'idle' AND query LIKE '%FROM ticket t JOIN session me ON%'",
              1);
    unsigned flights = sql_proxy_flights(proxy);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    sql_succeed(&attempt);
    bool told = sql_proxy_flights(proxy) == flights;
    assert_int_equal(mortise_release(attempt.hold), MORTISE_OK);
    sql_await(SQL_TICKETS("anew"), 0);
    return told;
}

/* On a slow machine it may have looked again by itself, so there is more than one chance. */
static void test_sq_15_a_new_connection_listens(void **state)
{
    (void)state;
    struct sql_proxy *proxy = sql_proxy();
    mortise_client *client = open_client("lease=600s"),
                   *waiting = sql_open(sql_proxy_port(proxy), "lease=600s");
    int connection = 2;
    while (!is_told_anew(client, waiting, proxy, connection))
        assert_true(++connection < 12);
    assert_int_equal(mortise_close(client), MORTISE_OK);
    assert_int_equal(mortise_close(waiting), MORTISE_OK);
    sql_proxy_stop(proxy);
}

/* While none of several hosts can be written to, one may be about to become the primary. */
static void test_sq_09_one_of_several_hosts_is_promoted_later(void **state)
{
    (void)state;
    struct sql_proxy *proxy = sql_proxy();
    unsigned port = sql_proxy_port(proxy);
    char uri[160];
    snprintf(uri, sizeof uri,
             "postgresql://mortise@127.0.0.1:%u,127.0.0.1:%u/mortise?sslmode=disable&connect=60s",
             port, port);
    mortise_client *client = zk_open(uri);
    struct sql_attempt attempt;
    sql_set_read_only(true);
    sql_begin(&attempt, zk_mutex(client, "several"));
    int64_t limit = zk_now_ms() + 20000;
    while (sql_proxy_connections(proxy) < 3) { /* both, and one of them again */
        assert_true(zk_now_ms() < limit);
        zk_rest_ms(5);
    }
    sql_set_read_only(false);
    sql_succeed(&attempt);
    assert_int_equal(mortise_close(client), MORTISE_OK);
    sql_proxy_stop(proxy);
}

/* ------------------------------------------------------------------ poolers */

static void refuses_forms(uint16_t port)
{
    sql_is_refused(port, "lease=3s&form=advisory", "pooler", "as long as the server's session");
    sql_is_refused(port, "lease=3s&form=row", "pooler", "as long as the server's session");
}

static bool notifies(mortise_client *client)
{
    mortise_capabilities can = {.size = sizeof can};
    assert_int_equal(mortise_get_capabilities(client, &can), MORTISE_OK);
    assert_int_equal(can.notify, can.linger);
    return can.notify;
}

/* A mutex whose hold any thread may release. */
static mortise_lock *any_thread_lock(mortise_client *client, const char *name)
{
    mortise_lock_options options = {.size = sizeof options, .owner = 1};
    mortise_lock *lock = NULL;
    assert_int_equal(mortise_mutex_new(client, name, &options, &lock), MORTISE_OK);
    return lock;
}

/* Takes turns with a client that is connected to the server itself, each of which waits for the
   other. */
static void take_turns(mortise_client *client, mortise_client *direct)
{
    struct sql_attempt attempt;
    mortise_client *const clients[] = {client, direct};
    mortise_hold hold = zk_acquire(any_thread_lock(direct, "turns"));
    for (int turn = 0; turn < 6; turn++) {
        sql_begin(&attempt, any_thread_lock(clients[turn % 2], "turns"));
        sql_await(SQL_TICKETS("turns"), 2);
        assert_int_equal(mortise_release(hold), MORTISE_OK);
        sql_succeed(&attempt);
        assert_true(mortise_hold_fence(attempt.hold) > mortise_hold_fence(hold));
        hold = attempt.hold;
    }
    assert_int_equal(mortise_release(hold), MORTISE_OK);
}

static void test_sq_10_a_pooler_in_session_mode(void **state)
{
    (void)state;
    struct pg_pooler pooler;
    pg_pooler_start(&pooler, "session");
    sql_is_refused(pooler.port, "lease=3s&pooler=no", "pooler", "PostgreSQL: ");
    refuses_forms(pooler.port); /* it cannot be told from the other kind */
    mortise_client *direct = open_client("lease=3s");
    mortise_client *client = sql_open(pooler.port, "lease=3s");
    assert_true(notifies(client)); /* nothing has shown yet */
    take_turns(client, direct);
    assert_false(notifies(client));
    assert_int_equal(mortise_close(client), MORTISE_OK);
    client = sql_open(pooler.port, "lease=3s&pooler=session");
    take_turns(client, direct);
    assert_true(notifies(client));
    assert_int_equal(mortise_close(client), MORTISE_OK);
    assert_int_equal(mortise_close(direct), MORTISE_OK);
    pg_pooler_stop(&pooler);
}

/* The state of a connection that other programs are given next: the path of names, prepared
   statements, channels. */
static const char left_behind[] =
    "SELECT current_setting('search_path') || current_setting('statement_timeout') ||"
    " current_setting('enable_seqscan') || (SELECT count(*) FROM pg_prepared_statements) ||"
    " (SELECT count(*) FROM pg_listening_channels())";

static void test_sq_10_a_pooler_in_transaction_mode(void **state)
{
    (void)state;
    struct pg_pooler pooler;
    pg_pooler_start(&pooler, "transaction");
    refuses_forms(pooler.port);
    mortise_client *direct = open_client("lease=3s");
    mortise_client *client = sql_open(pooler.port, "lease=3s");
    take_turns(client, direct);
    assert_false(notifies(client));
    PGconn *other = pg_connect_at(pooler.port);
    assert_string_equal(pg_sql_on(other, left_behind), "\"$user\", public0on00");
    PQfinish(other);
    assert_int_equal(mortise_close(client), MORTISE_OK);
    assert_int_equal(mortise_close(direct), MORTISE_OK);
    pg_pooler_stop(&pooler);
}

/* It gives itself away by what others have left in its connections. */
static void test_sq_10_a_pooler_that_is_said_to_be_in_session_mode(void **state)
{
    (void)state;
    struct pg_pooler pooler;
    pg_pooler_start(&pooler, "transaction");
    mortise_client *first = sql_open(pooler.port, "lease=600s&pooler=session");
    zk_acquire(zk_mutex(first, "lies"));
    sql_is_refused(pooler.port, "lease=3s&pooler=session", "others have used", "PostgreSQL: ");
    assert_int_equal(mortise_close(first), MORTISE_OK);
    pg_pooler_stop(&pooler);
}

/* Other programs may leave anything behind in its connections. */
static void test_sq_10_settings_of_others_do_no_harm(void **state)
{
    (void)state;
    struct pg_pooler pooler;
    pg_pooler_start(&pooler, "transaction");
    mortise_client *client = sql_open(pooler.port, "lease=3s");
    mortise_hold hold = zk_acquire(zk_mutex(client, "settings"));
    PGconn *other = pg_connect_at(pooler.port);
    pg_sql_on(other, "CREATE TEMP TABLE ticket (number int)");
    pg_sql_on(other, "SET search_path = pg_temp, public; SET statement_timeout = 1;"
                     " SET synchronous_commit = off; SET lock_timeout = 1");
    assert_int_equal(mortise_verify(hold, 20000), MORTISE_OK);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    mortise_client *direct = open_client("lease=3s");
    take_turns(client, direct);
    /* This one cannot be set any more in a transaction that looks at it. */
    pg_sql_on(other, "SET default_transaction_isolation = serializable");
    mortise_hold none;
    assert_int_equal(mortise_acquire_for(zk_mutex(client, "serial"), 20000, &none), MORTISE_ESETUP);
    assert_non_null(strstr(mortise_error_detail(), "serializable"));
    PQfinish(other);
    assert_int_equal(mortise_close(direct), MORTISE_OK);
    mortise_close(client);
    pg_pooler_stop(&pooler);
}

/* An argument chooses tests by their names. */
int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sq_15_the_listener_is_terminated_between_release_and_wake),
        cmocka_unit_test(test_sq_08_a_server_loses_commits_that_are_not_on_disk),
        cmocka_unit_test(test_sq_08_a_release_that_a_server_forgets_is_made_again),
        cmocka_unit_test(test_sq_15_a_new_connection_listens),
        cmocka_unit_test(test_sq_09_one_of_several_hosts_is_promoted_later),
        cmocka_unit_test(test_sq_10_a_pooler_in_session_mode),
        cmocka_unit_test(test_sq_10_a_pooler_in_transaction_mode),
        cmocka_unit_test(test_sq_10_a_pooler_that_is_said_to_be_in_session_mode),
        cmocka_unit_test(test_sq_10_settings_of_others_do_no_harm),
    };
    if (count > 1)
        cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests(tests, sql_place_start, zk_place_stop);
}
