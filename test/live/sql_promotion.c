/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The promotion of a replica that lags (SQ-08): what is lost then is shown by the checker of
 * histories, which has to find what must never be found elsewhere. And what helps: commits that
 * wait for the replica. One program for each server.
 */
#include "cmocka_all.h"
#include "live/noted.h"
#include "live/sql_replica.h"

#include <stdio.h>
#include <string.h>

/* More than the numbers that a server may have reserved ahead on its replica too. */
#define LOST 40

uint16_t replica_find_port(void)
{
    const char *second = strchr(zk_place_servers("urls"), ',');
    unsigned port = 0;
    assert_non_null(second);
    assert_int_equal(sscanf(strstr(second, "127.0.0.1:"), "127.0.0.1:%u", &port), 1);
    return (uint16_t)port;
}

/* A client whose end does not wait for a server that has gone. */
static mortise_client *open_briefly(const char *parameters)
{
    char uri[256];
    const mortise_client_options options = {.size = sizeof options, .timeout_ms = 100};
    mortise_client *client = NULL;
    const char *url = zk_place_servers("url");
    snprintf(uri, sizeof uri, "%.*s?%s", (int)strcspn(url, "\n"), url, parameters);
    assert_int_equal(mortise_open(uri, &options, &client), MORTISE_OK);
    return client;
}

static void test_sq_09_j2_a_replica_is_refused(void **state)
{
    (void)state;
    replica_catch_up(); /* so that it has the schema */
    sql_is_refused(replica_port(), "lease=10s", "read-only; locks need", "written to");
}

static void test_sq_08_with_a_synchronous_replica_no_grant_is_lost(void **state)
{
    (void)state;
    mortise_client *client = sql_open(zk_place_port(), "lease=120s"),
                   *other = sql_open(zk_place_port(), "lease=120s");
    struct sql_attempt attempt;
    char name[32];
    assert_int_equal(mortise_release(zk_acquire(zk_mutex(other, "other"))), MORTISE_OK);
    sql_await(SQL_TICKETS("other"), 0);
    zk_acquire(zk_mutex(client, "synchronous")); /* its session is there */
    replica_catch_up();
    replica_cut();
    replica_set_synchronous(true);
    for (int i = 0;; i++) { /* until it has taken effect */
        snprintf(name, sizeof name, "synchronous/%d", i);
        sql_begin(&attempt, zk_mutex(client, name));
        while (!attempt.done && replica_waits() == 0)
            zk_rest_ms(2);
        if (!attempt.done)
            break;
        sql_succeed(&attempt);
    }
    if (replica_not_for_ends)
        assert_int_equal(mortise_close(other), MORTISE_OK);
    assert_int_equal(replica_waits(), 1);
    assert_false(attempt.done);
    replica_join();
    sql_succeed(&attempt);
    replica_set_synchronous(false);
    if (!replica_not_for_ends)
        assert_int_equal(mortise_close(other), MORTISE_OK);
    assert_int_equal(mortise_close(client), MORTISE_OK);
}

static void test_sq_08_commits_that_wait_for_a_replica_may_be_asked_for(void **state)
{
    (void)state;
    sql_is_refused(zk_place_port(), "synchronous=required", "commits do not wait",
                   "synchronous=required asks for");
    mortise_client *client = sql_open(zk_place_port(), "synchronous=required");
    mortise_hold hold;
    replica_set_synchronous(true);
    int64_t end = zk_now_ms() + 60000;
    while (mortise_acquire_for(zk_mutex(client, "asked"), 60000, &hold) != MORTISE_OK) {
        assert_true(zk_now_ms() < end); /* it takes effect a little later */
        zk_rest_ms(5);
    }
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    assert_int_equal(mortise_close(client), MORTISE_OK);
    replica_set_synchronous(false);
    assert_int_equal(mortise_open(sql_uri(zk_place_port(), "synchronous=yes"), NULL, &client),
                     MORTISE_EURI);
}

static void test_sq_08_a_replica_that_lags_lets_two_in_and_fences_go_back(void **state)
{
    (void)state;
    mortise_client *client = open_briefly("lease=120s"), *other;
    mortise_lock *lock = zk_mutex(client, "lagging");
    mortise_hold kept = zk_acquire(zk_mutex(client, "kept")), none;
    noted_begin();
    noted_release(noted_acquire(lock, 1), 1);
    sql_await(SQL_TICKETS("lagging"), 0);
    replica_catch_up();
    replica_cut();
    for (int i = 0; i < LOST; i++)
        noted_release(noted_acquire(lock, 1), 1);
    mortise_hold hold = noted_acquire(lock, 1);
    zk_place_server("kill", 0);
    replica_promote();
    other = sql_open(replica_port(), "lease=10s");
    mortise_hold second = noted_acquire(zk_mutex(other, "lagging"), 2);
    assert_true(mortise_is_held(hold)); /* and so believes the first */
    noted_release(second, 2);
    noted_release(hold, 1);
    /* The replica's data is not lost. */
    assert_int_equal(mortise_try_acquire(zk_mutex(other, "kept"), &none), MORTISE_EBUSY);
    assert_true(mortise_is_held(kept));
    noted_leave(1);
    noted_leave(2);
    const struct chaos_verdict *verdict = noted_judge();
    assert_int_equal(verdict->holds, LOST + 3);
    assert_int_equal(verdict->overlaps, 1);
    assert_int_equal(verdict->fences, 1);
    assert_int_equal(chaos_faults(verdict), 2);
    mortise_close(client);
    assert_int_equal(mortise_close(other), MORTISE_OK);
}

/* In this order: the last ends the primary. */
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sq_09_j2_a_replica_is_refused),
        cmocka_unit_test(test_sq_08_with_a_synchronous_replica_no_grant_is_lost),
        cmocka_unit_test(test_sq_08_commits_that_wait_for_a_replica_may_be_asked_for),
        cmocka_unit_test(test_sq_08_a_replica_that_lags_lets_two_in_and_fences_go_back),
    };
    return cmocka_run_group_tests(tests, replica_place_start, zk_place_stop);
}
