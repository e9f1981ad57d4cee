/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MariaDB store where a transaction does not end as it should: its COMMIT is refused, as in a
 * cluster where another node's came first, or its client stops in the middle. The letters in a
 * test's name are the entry it covers.
 */
#include "cmocka_all.h"
#include "live/sql_place.h"

/* Errors that a COMMIT may be answered with. */
enum { LOST_TO_ANOTHER = 1213, UNKNOWN = 1180, NOT_READY = 1047 };

/* Statements that only an acquire has that looks at the whole queue, and so a transaction. */
static const char whole[] = "INTO @mortise_old";

static void await_order(struct sql_proxy *proxy)
{
    int64_t limit = zk_now_ms() + 20000;
    while (!sql_proxy_done(proxy)) {
        assert_true(zk_now_ms() < limit);
        zk_rest_ms(2);
    }
}

/* One thread's hold may be released by another. */
static mortise_lock *shared_mutex(mortise_client *client, const char *name)
{
    const mortise_lock_options options = {.size = sizeof options, .owner = 1};
    mortise_lock *lock = NULL;
    assert_int_equal(mortise_mutex_new(client, name, &options, &lock), MORTISE_OK);
    return lock;
}

/* ------------------------------------------------------------------ commits */

/* Leaves the queue empty, but after this the client looks at all of it. */
static void meet_in_queue(mortise_lock *lock, mortise_lock *others)
{
    mortise_hold hold = zk_acquire(others), none;
    assert_int_equal(mortise_try_acquire(lock, &none), MORTISE_EBUSY);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    sql_await("SELECT count(*) FROM ticket", 0);
}

/* A transaction does not count while its COMMIT is not answered, nor if the answer is an error.
 * Afterwards there is one ticket, that of its client. */
static mortise_hold acquire_refused(struct sql_proxy *proxy, mortise_lock *lock, const char *part,
                                    unsigned number, bool done)
{
    struct sql_attempt attempt;
    unsigned connections = sql_proxy_connections(proxy);
    sql_proxy_refuse(proxy, part, number, done);
    sql_begin_try(&attempt, lock); /* to which no passing failure is shown either */
    await_order(proxy);
    long ticket = sql_number("SELECT number FROM ticket");
    assert_int_equal(ticket != 0, done);
    zk_rest_ms(50);
    assert_false(attempt.done);
    sql_proxy_go(proxy);
    sql_succeed(&attempt);
    assert_int_equal(sql_number(SQL_TICKETS("refused")), 1);
    if (done)
        assert_int_equal(sql_number("SELECT number FROM ticket"), ticket);
    assert_int_equal(sql_proxy_connections(proxy), connections + (number == NOT_READY));
    return attempt.hold;
}

static void refuse_commits(unsigned number, const char *part, bool done)
{
    struct sql_proxy *proxy = sql_proxy();
    mortise_client *client = sql_open(sql_proxy_port(proxy), "lease=60s"),
                   *other = sql_open(zk_place_port(), "lease=60s");
    mortise_lock *lock = shared_mutex(client, "refused"), *others = zk_mutex(other, "refused");
    mortise_hold none;
    if (part == whole)
        meet_in_queue(lock, others);
    else
        assert_int_equal(mortise_release(zk_acquire(lock)), MORTISE_OK);
    sql_await("SELECT count(*) FROM ticket", 0);
    mortise_hold hold = acquire_refused(proxy, lock, part, number, done);
    assert_int_equal(mortise_try_acquire(others, &none), MORTISE_EBUSY);
    assert_int_equal(mortise_verify(hold, 20000), MORTISE_OK);
    sql_proxy_refuse(proxy, sql_parts[SQL_REMOVE], number, true); /* a statement of its own */
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    await_order(proxy);
    sql_proxy_go(proxy);
    sql_await(SQL_TICKETS("refused"), 0);
    assert_int_equal(mortise_release(zk_acquire(others)), MORTISE_OK);
    assert_int_equal(mortise_release(zk_acquire(lock)), MORTISE_OK);
    assert_int_equal(sql_losses(client), 0);
    assert_int_equal(mortise_close(client), MORTISE_OK);
    assert_int_equal(mortise_close(other), MORTISE_OK);
    sql_proxy_stop(proxy);
}

static void test_sq_14_a_commit_that_is_refused_was_not_made(void **state)
{
    (void)state;
    refuse_commits(LOST_TO_ANOTHER, whole, false);
    refuse_commits(NOT_READY, whole, false);
    refuse_commits(UNKNOWN, whole, false);
}

/* Nor is it taken for undone: the ticket is found by its identity. */
static void test_sq_14_sq_07_a_commit_that_is_refused_was_made(void **state)
{
    (void)state;
    static const unsigned numbers[] = {LOST_TO_ANOTHER, NOT_READY, UNKNOWN};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        refuse_commits(numbers[i], whole, true);
        refuse_commits(numbers[i], sql_parts[SQL_ALONE], true);
    }
}

/* ------------------------------------------------------------------ clients that stop */

/* In ms: how long nothing has come on the most silent of the store's connections. */
#define SILENT                                                                              \
    "SELECT CAST(COALESCE(MAX(time_ms), 0) AS INTEGER) FROM information_schema.processlist" \
    " WHERE user = 'mortise' AND command = 'Sleep'"

/* Its queue's row stays locked until the server ends the transaction, after 2 s and a third of the
   lease; it would end the connection after 2 s and the lease. */
static void test_sq_13_a_client_stops_in_the_middle_of_a_transaction(void **state)
{
    (void)state;
    struct sql_proxy *proxy = sql_proxy();
    mortise_client *client = sql_open(sql_proxy_port(proxy), "lease=9s"),
                   *other = sql_open(zk_place_port(), "lease=9s");
    struct sql_attempt stopped, next;
    long silent = 0, longest = 0;
    sql_inject("INSERT ON ticket", SQL_CONFLICT, 1);
    sql_proxy_order(proxy, SQL_HOLD, "ROLLBACK");
    sql_begin(&stopped, shared_mutex(client, "stopped"));
    await_order(proxy); /* it does not come to the server */
    sql_proxy_stall(proxy, true);
    assert_int_equal(sql_transactions(), 1);
    sql_begin(&next, shared_mutex(other, "stopped"));
    int64_t limit = zk_now_ms() + 20000;
    while (sql_lock_waits() == 0)
        assert_true(zk_now_ms() < limit);
    while (!next.done) {
        silent = sql_number(SILENT);
        longest = silent > longest ? silent : longest;
        zk_rest_ms(20);
    }
    sql_succeed(&next);
    sql_heal();
    assert_in_range(longest, 1000, 9000);
    assert_false(stopped.done);
    assert_int_equal(sql_number(SQL_TICKETS("stopped")), 1);
    sql_proxy_stall(proxy, false);
    assert_int_equal(mortise_release(next.hold), MORTISE_OK);
    sql_succeed(&stopped);
    assert_true(mortise_hold_fence(stopped.hold) > mortise_hold_fence(next.hold));
    assert_int_equal(mortise_close(client), MORTISE_OK);
    assert_int_equal(mortise_close(other), MORTISE_OK);
    sql_proxy_stop(proxy);
}

/* An argument chooses tests by their names. */
int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sq_14_a_commit_that_is_refused_was_not_made),
        cmocka_unit_test(test_sq_14_sq_07_a_commit_that_is_refused_was_made),
        cmocka_unit_test(test_sq_13_a_client_stops_in_the_middle_of_a_transaction),
    };
    if (count > 1)
        cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests(tests, sql_place_start, zk_place_stop);
}
