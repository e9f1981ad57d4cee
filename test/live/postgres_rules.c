/*
 * The rules of the PostgreSQL store on a real server: what it may cost, what its statements
 * must not be, and what it does about errors. Errors are the server's own, raised by a trigger as
 * often as a test asks for.
 */
#include "cmocka_all.h"
#include "live/pg_proxy.h"
#include "live/postgres_place.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OURS "application_name = 'mortise'"

static void end(mortise_client *client)
{
    assert_int_equal(mortise_close(client), MORTISE_OK);
}

static mortise_client *open_client(const char *parameters)
{
    return pg_open(zk_place_port(), parameters);
}

/* An acquire in a thread of its own. */
struct attempt {
    mortise_lock *lock;
    mortise_hold hold;
    int error;
    pthread_t thread;
};

static void *try_for_long(void *argument)
{
    struct attempt *attempt = argument;
    attempt->error = mortise_acquire_for(attempt->lock, 30000, &attempt->hold);
    return NULL;
}

static void begin(struct attempt *attempt, mortise_lock *lock)
{
    *attempt = (struct attempt){.lock = lock};
    assert_int_equal(pthread_create(&attempt->thread, NULL, try_for_long, attempt), 0);
}

static void succeed(struct attempt *attempt)
{
    pthread_join(attempt->thread, NULL);
    assert_int_equal(attempt->error, MORTISE_OK);
}

/* ------------------------------------------------------------------ what it costs */

static void test_a9_k4_one_connection_and_no_open_transaction(void **state)
{
    (void)state;
    mortise_client *holder = open_client("lease=3s"), *waiter = open_client("lease=3s");
    struct attempt attempts[3];
    mortise_hold holds[3];
    char name[16];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "a9/%d", i);
        holds[i] = zk_acquire(zk_mutex(holder, name));
        begin(&attempts[i], zk_mutex(waiter, name));
    }
    pg_await("SELECT count(*) FROM ticket WHERE queue LIKE 'mortise/a9/%'", 6);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(pg_number("SELECT count(*) FROM pg_stat_activity WHERE " OURS), 2);
        pg_await("SELECT count(*) FROM pg_stat_activity WHERE " OURS " AND xact_start IS NOT NULL",
                 0); /* a renewal's is over at once */
    }
    assert_int_equal(pg_number("SELECT count(*) FROM pg_stat_activity WHERE " OURS
                               " AND state LIKE 'idle in transaction%'"),
                     0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(mortise_release(holds[i]), MORTISE_OK);
        succeed(&attempts[i]);
    }
    end(holder);
    end(waiter);
}

static void test_one_round_trip_to_acquire_and_none_to_wait(void **state)
{
    (void)state;
    struct pg_proxy *proxy = pg_proxy_start(zk_place_port());
    mortise_client *client = pg_open(pg_proxy_port(proxy), "lease=60s");
    mortise_client *other = open_client("lease=60s");
    mortise_lock *lock = zk_mutex(client, "trips");
    zk_acquire(zk_mutex(client, "first")); /* connects */
    unsigned before = pg_proxy_flights(proxy);
    mortise_hold hold = zk_acquire(lock);
    assert_int_equal(pg_proxy_flights(proxy) - before, 1);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    assert_true(zk_wait_tickets(other, "trips", 0, 10000));
    assert_int_equal(pg_proxy_flights(proxy) - before, 2);
    hold = zk_acquire(zk_mutex(other, "trips"));
    before = pg_proxy_flights(proxy);
    struct attempt attempt;
    begin(&attempt, lock);
    assert_true(zk_wait_tickets(other, "trips", 2, 10000));
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    succeed(&attempt); /* by the notification alone */
    assert_int_equal(pg_proxy_flights(proxy) - before, 1);
    end(client);
    end(other);
    pg_proxy_stop(proxy);
}

static void test_j7_only_the_next_is_told(void **state)
{
    (void)state;
    mortise_client *clients[4];
    struct pg_proxy *proxies[4];
    struct attempt attempts[4];
    unsigned before[4];
    for (int i = 0; i < 4; i++) {
        proxies[i] = pg_proxy_start(zk_place_port());
        clients[i] = pg_open(pg_proxy_port(proxies[i]), "lease=60s");
        mortise_lock_options options = {.size = sizeof options, .owner = 1}; /* not the thread */
        mortise_lock *lock = NULL;
        assert_int_equal(mortise_mutex_new(clients[i], "next", &options, &lock), MORTISE_OK);
        begin(&attempts[i], lock);
        pg_await("SELECT count(*) FROM ticket WHERE queue = 'mortise/next'", i + 1);
    }
    succeed(&attempts[0]);
    for (int i = 0; i < 4; i++)
        before[i] = pg_proxy_flights(proxies[i]);
    assert_int_equal(mortise_release(attempts[0].hold), MORTISE_OK);
    succeed(&attempts[1]);
    for (int i = 1; i < 4; i++)
        assert_int_equal(pg_proxy_flights(proxies[i]), before[i]);
    for (int i = 1; i < 4; i++) {
        assert_int_equal(mortise_release(attempts[i].hold), MORTISE_OK);
        if (i < 3)
            succeed(&attempts[i + 1]);
    }
    for (int i = 0; i < 4; i++) {
        end(clients[i]);
        pg_proxy_stop(proxies[i]);
    }
}

static void test_sq_16_renewals_leave_no_bloat(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=60s");
    zk_acquire(zk_mutex(client, "bloat"));
    pg_sql("SET synchronous_commit = off");
    pg_sql("DO $$ BEGIN FOR i IN 1..30000 LOOP UPDATE session SET expires = clock_timestamp()"
           " + interval '1 minute'; UPDATE queue SET number = nextval('fence'); COMMIT;"
           " END LOOP; END $$");
    assert_true(pg_number("SELECT pg_total_relation_size('session')") < 300000);
    assert_true(pg_number("SELECT pg_total_relation_size('queue')") < 300000);
    end(client);
}

/* ------------------------------------------------------------------ the statements */

/* What design forbids: the lock and the look in one statement. */
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
    pg_sql("DELETE FROM ticket; DELETE FROM session;"
           "INSERT INTO session VALUES (gen_random_uuid(), 1, now() + interval '1 hour', 'one')");
    pg_sql_on(first, "BEGIN");
    if (!in_one)
        pg_sql_on(first, two_statements[0]);
    assert_string_equal(pg_sql_on(first, in_one ? one_statement : two_statements[1]), "0");
    pg_sql_on(second, "BEGIN");
    assert_int_equal(PQsendQuery(second, in_one ? one_statement : two_statements[0]), 1);
    pg_await("SELECT count(*) FROM pg_locks WHERE NOT granted", 1);
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
    pg_sql("DELETE FROM ticket; DELETE FROM session");
    return seen;
}

static void test_one_statement_lets_two_in_and_two_do_not(void **state)
{
    (void)state;
    pg_sql("INSERT INTO queue VALUES ('one', 1, now()) ON CONFLICT DO NOTHING");
    assert_int_equal(second_sees(true), 0);  /* it holds beside the first */
    assert_int_equal(second_sees(false), 1); /* as the store does it */
}

static void test_sq_04_z10_fences_rise_whatever_is_deleted(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=2s");
    mortise_lock *lock = zk_mutex(client, "fence");
    uint64_t last = 0;
    for (int i = 0; i < 30; i++) {
        mortise_hold hold = zk_acquire(lock);
        assert_true(mortise_hold_fence(hold) > last);
        last = mortise_hold_fence(hold);
        assert_int_equal(mortise_release(hold), MORTISE_OK);
        if (i % 10 == 9) {
            pg_await("SELECT count(*) FROM ticket WHERE queue = 'mortise/fence'", 0);
            pg_sql("DELETE FROM queue");
        }
    }
    end(client);
}

static void test_sq_17_names_that_look_alike_are_different(void **state)
{
    static const char *const names[] = {
        "name", "Name", "name ", " name", "näme", "na\xcc\x88me", "name\xc2\xa0", "%",
        "_",    "\\",   "'",     "\"",    "$1"};
    enum { COUNT = sizeof names / sizeof names[0] };
    (void)state;
    char longest[MORTISE_NAME_MAX + 2];
    mortise_client *client = open_client("lease=5s"), *other = open_client("lease=5s");
    mortise_hold hold;
    mortise_lock *lock = NULL;
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(mortise_try_acquire(zk_mutex(client, names[i]), &hold), MORTISE_OK);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(mortise_try_acquire(zk_mutex(other, names[i]), &hold), MORTISE_EBUSY);
    memset(longest, 'x', sizeof longest);
    longest[MORTISE_NAME_MAX + 1] = '\0';
    assert_int_equal(mortise_mutex_new(client, longest, NULL, &lock), MORTISE_ENAME);
    longest[MORTISE_NAME_MAX] = '\0';
    zk_acquire(zk_mutex(client, longest));
    assert_int_equal(mortise_try_acquire(zk_mutex(other, longest), &hold), MORTISE_EBUSY);
    longest[MORTISE_NAME_MAX - 1] = '\0';
    zk_acquire(zk_mutex(other, longest));
    end(client);
    end(other);
}

/* ------------------------------------------------------------------ errors */

/* The next `times` changes of the table of this sort end with the SQLSTATE. */
static void inject(const char *when, const char *sqlstate, int times)
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
             "%s FOR EACH ROW EXECUTE FUNCTION public.raise()",
             times, sqlstate, when);
    pg_sql(text);
}

static void heal(void)
{
    pg_sql("DROP FUNCTION public.raise CASCADE");
}

static void cycle_under(const char *when, const char *sqlstate, int times)
{
    mortise_client *client = open_client("lease=5s");
    inject(when, sqlstate, times);
    mortise_hold hold = zk_acquire(zk_mutex(client, "injected"));
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    pg_await("SELECT count(*) FROM ticket WHERE queue = 'mortise/injected'", 0);
    assert_true(pg_number("SELECT last_value FROM public.raised") >= times);
    heal();
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
    struct attempt attempt;
    begin(&attempt, zk_mutex(other, "quiet"));
    pg_await("SELECT count(*) FROM ticket WHERE queue = 'mortise/quiet'", 2);
    /* The server says so at the commit; here, where the ticket goes. */
    inject("CREATE TRIGGER t BEFORE DELETE ON ticket", "54000", 1);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    succeed(&attempt); /* by looking again */
    heal();
    end(client);
    end(other);
}

static void test_other_errors_are_told_with_their_state(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=5s");
    mortise_hold hold;
    zk_acquire(zk_mutex(client, "well"));
    inject("CREATE TRIGGER t BEFORE INSERT ON ticket", "53100", 1000);
    assert_int_equal(mortise_try_acquire(zk_mutex(client, "disk"), &hold), MORTISE_ESTORE);
    assert_non_null(strstr(mortise_error_detail(), "injected (53100)"));
    inject("CREATE OR REPLACE TRIGGER t BEFORE INSERT ON ticket", "42501", 1000);
    assert_int_equal(mortise_acquire(zk_mutex(client, "denied"), &hold), MORTISE_EPERMISSION);
    heal();
    assert_int_equal(mortise_try_acquire(zk_mutex(client, "denied"), &hold), MORTISE_OK);
    end(client);
}

struct contender {
    mortise_client *client;
    int *counter;
    pthread_t thread;
    bool failed;
};

static void *contend(void *argument)
{
    struct contender *self = argument;
    mortise_lock *lock = zk_mutex(self->client, "serial");
    mortise_hold hold;
    for (int i = 0; i < 10 && !self->failed; i++) {
        self->failed = mortise_acquire_for(lock, 60000, &hold) != MORTISE_OK;
        ++*self->counter;
        self->failed |= mortise_release(hold) != MORTISE_OK;
    }
    return NULL;
}

static void test_sq_05_the_servers_default_isolation_does_not_matter(void **state)
{
    (void)state;
    struct contender contenders[32];
    int counter = 0;
    pg_sql("ALTER DATABASE mortise SET default_transaction_isolation = serializable");
    for (int i = 0; i < 32; i++) {
        contenders[i] = (struct contender){.client = open_client("lease=20s"), .counter = &counter};
        pthread_create(&contenders[i].thread, NULL, contend, &contenders[i]);
    }
    for (int i = 0; i < 32; i++) {
        pthread_join(contenders[i].thread, NULL);
        assert_false(contenders[i].failed);
        end(contenders[i].client);
    }
    assert_int_equal(counter, 320);
    pg_sql("ALTER DATABASE mortise RESET default_transaction_isolation");
}

/* ------------------------------------------------------------------ time and rows */

static void test_sq_02_the_lease_is_whole_after_a_long_wait(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=2s");
    PGconn *blocker = pg_connect();
    zk_acquire(zk_mutex(client, "other"));
    mortise_hold hold = zk_acquire(zk_mutex(client, "blocked"));
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    pg_await("SELECT count(*) FROM ticket WHERE queue = 'mortise/blocked'", 0);
    pg_sql_on(blocker, "BEGIN; SELECT * FROM queue WHERE name = 'mortise/blocked' FOR UPDATE");
    struct attempt attempt;
    begin(&attempt, zk_mutex(client, "blocked"));
    zk_rest_ms(4000);
    pg_sql_on(blocker, "COMMIT");
    succeed(&attempt);
    assert_true(pg_number("SELECT extract(epoch FROM min(expires) - clock_timestamp()) * 1000"
                          " FROM session") > 700);
    mortise_stats stats = {.size = sizeof stats};
    mortise_get_stats(client, &stats);
    assert_int_equal(stats.losses, 0); /* nor was the session lost by the wait */
    PQfinish(blocker);
    end(client);
}

static void test_sq_19_a_row_deleted_by_hand_while_waiting(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=10s"), *other = open_client("lease=2s");
    mortise_hold hold = zk_acquire(zk_mutex(client, "row"));
    struct attempt attempt;
    begin(&attempt, zk_mutex(other, "row"));
    pg_await("SELECT count(*) FROM ticket WHERE queue = 'mortise/row'", 2);
    pg_sql("DELETE FROM ticket WHERE number = (SELECT max(number) FROM ticket)");
    pg_await("SELECT count(*) FROM ticket WHERE queue = 'mortise/row'", 2); /* it queues again */
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    succeed(&attempt);
    end(client);
    end(other);
}

static void await_state(mortise_hold hold, mortise_state wanted)
{
    int64_t limit = zk_now_ms() + 20000;
    while (mortise_hold_state(hold) != wanted) {
        assert_true(zk_now_ms() < limit);
        zk_rest_ms(5);
    }
}

static void test_sq_19_a_row_deleted_by_hand_while_holding(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=1500ms");
    mortise_hold hold = zk_acquire(zk_mutex(client, "row"));
    mortise_hold kept = zk_acquire(zk_mutex(client, "kept"));
    zk_rest_ms(1000); /* a renewal has counted them */
    pg_sql("DELETE FROM ticket WHERE queue = 'mortise/row'");
    await_state(hold, MORTISE_LOST);
    assert_true(mortise_is_held(kept));
    pg_sql("DELETE FROM session");
    await_state(kept, MORTISE_LOST);
    end(client);
}

static void test_sq_19_a_row_deleted_before_anything_was_renewed(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=1500ms");
    mortise_hold hold = zk_acquire(zk_mutex(client, "row"));
    pg_sql("DELETE FROM ticket WHERE queue = 'mortise/row'");
    await_state(hold, MORTISE_LOST);
    end(client);
}

static void test_j3_a_late_renewal_and_a_takeover_exclude_each_other(void **state)
{
    (void)state;
    struct pg_proxy *proxy = pg_proxy_start(zk_place_port());
    mortise_client *client = pg_open(pg_proxy_port(proxy), "lease=1s"),
                   *other = open_client("lease=5s");
    mortise_hold hold = zk_acquire(zk_mutex(client, "late"));
    pg_proxy_stall(proxy, true);
    mortise_hold next = zk_acquire(zk_mutex(other, "late"));
    assert_false(mortise_is_held(hold)); /* it knew before */
    assert_true(mortise_hold_fence(next) > mortise_hold_fence(hold));
    pg_proxy_stall(proxy, false);
    hold = (mortise_hold){0};
    zk_acquire(zk_mutex(client, "again")); /* a new session of the same client */
    assert_true(mortise_is_held(next));
    end(client);
    end(other);
    pg_proxy_stop(proxy);
}

/* An argument chooses tests by their names, "*sq_14*". */
int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a9_k4_one_connection_and_no_open_transaction),
        cmocka_unit_test(test_one_round_trip_to_acquire_and_none_to_wait),
        cmocka_unit_test(test_j7_only_the_next_is_told),
        cmocka_unit_test(test_sq_16_renewals_leave_no_bloat),
        cmocka_unit_test(test_one_statement_lets_two_in_and_two_do_not),
        cmocka_unit_test(test_sq_04_z10_fences_rise_whatever_is_deleted),
        cmocka_unit_test(test_sq_17_names_that_look_alike_are_different),
        cmocka_unit_test(test_sq_05_retryable_errors_do_not_reach_the_caller),
        cmocka_unit_test(test_sq_14_a_commit_that_fails_is_no_grant),
        cmocka_unit_test(test_sq_15_a_notification_that_fails_does_not_fail_the_release),
        cmocka_unit_test(test_other_errors_are_told_with_their_state),
        cmocka_unit_test(test_sq_05_the_servers_default_isolation_does_not_matter),
        cmocka_unit_test(test_sq_02_the_lease_is_whole_after_a_long_wait),
        cmocka_unit_test(test_sq_19_a_row_deleted_by_hand_while_waiting),
        cmocka_unit_test(test_sq_19_a_row_deleted_by_hand_while_holding),
        cmocka_unit_test(test_sq_19_a_row_deleted_before_anything_was_renewed),
        cmocka_unit_test(test_j3_a_late_renewal_and_a_takeover_exclude_each_other),
    };
    if (count > 1)
        cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests(tests, pg_place_start, zk_place_stop);
}
