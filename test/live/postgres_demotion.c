/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A primary that comes back as a standby, under clients that are connected (SQ-09): a holder knows
 * in time that its lock is lost, an acquire says why there is none, and all go on as soon as the
 * server can be written to again.
 */
#include "cmocka_all.h"
#include "live/postgres_pooler.h"

#include <stdio.h>
#include <string.h>

#define LEASE_MS 3000
#define READ_ONLY "read-only"
#define WRITABLE "locks need a server that can be written to"

/* Afterwards the server is a standby. From when on it answered nobody. */
static int64_t demote(void)
{
    char text[512];
    snprintf(text, sizeof text, "COPY (SELECT 1) TO '%s/standby.signal'",
             sql_run("SHOW data_directory"));
    sql_run(text); /* the directory is the server's, and it is there that its name counts */
    zk_place_server("kill", 0);
    int64_t ended = zk_now_ms();
    zk_place_server("restart", 0);
    assert_string_equal(sql_run("SELECT pg_is_in_recovery()"), "t");
    return ended;
}

static void promote(void)
{
    assert_string_equal(sql_run("SELECT pg_promote(true, 100)"), "t");
}

static void note_state(void *argument, mortise_hold hold, mortise_state state)
{
    (void)hold;
    *(_Atomic mortise_state *)argument = state;
}

/* A client that asks after `limit` gets that answer, however late it runs. */
static void is_lost_by(mortise_hold hold, int64_t limit)
{
    mortise_state state;
    int64_t asked;
    do {
        zk_rest_ms(1);
        asked = zk_now_ms();
        state = mortise_hold_state(hold);
    } while (state != MORTISE_LOST && asked <= limit);
    assert_int_equal(state, MORTISE_LOST);
}

static bool is_explained(void)
{
    const char *detail = mortise_error_detail();
    return strstr(detail, READ_ONLY) && strstr(detail, WRITABLE);
}

/* A client that the server has served: it goes on trying for as long as its `connect` says, but a
 * shorter wait also says what is in the way. */
static void is_told_why(mortise_client *client)
{
    mortise_lock *lock = zk_mutex(client, "refused");
    mortise_hold none;
    int64_t limit = zk_now_ms() + 60000;
    int error;
    do {
        assert_true(zk_now_ms() < limit);
        error = mortise_acquire_for(lock, 1000, &none);
    } while (error == MORTISE_ETIMEOUT || !is_explained());
    assert_int_equal(error, MORTISE_EDISCONNECTED);
    mortise_lock_free(lock);
}

/* A new client is refused at once. */
static void is_refused(uint16_t port, const char *parameters)
{
    sql_is_refused(port, parameters, READ_ONLY, WRITABLE);
}

static void test_sq_09_j2_a_primary_that_becomes_a_standby(void **state)
{
    (void)state;
    mortise_client *holder = sql_open(zk_place_port(), "lease=3s&connect=600s"),
                   *ready = sql_open(zk_place_port(), "lease=3s&connect=600s");
    _Atomic mortise_state told = MORTISE_HELD;
    struct sql_attempt attempt;
    assert_int_equal(mortise_release(zk_acquire(zk_mutex(ready, "ready"))), MORTISE_OK);
    mortise_hold hold = zk_acquire(zk_mutex(holder, "demoted"));
    assert_int_equal(mortise_on_lost(hold, note_state, &told), MORTISE_OK);
    int64_t ended = demote();
    is_lost_by(hold, ended + LEASE_MS);
    int64_t limit = zk_now_ms() + 20000;
    while (told != MORTISE_LOST) {
        assert_true(zk_now_ms() < limit);
        zk_rest_ms(1);
    }
    is_told_why(ready);
    is_told_why(holder);
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    is_refused(zk_place_port(), "lease=3s");
    is_refused(zk_place_port(), "lease=3s&form=advisory"); /* which a standby would grant */
    is_refused(zk_place_port(), "lease=3s&form=row");
    sql_begin(&attempt, zk_mutex(ready, "demoted"));
    promote();
    sql_succeed(&attempt);
    assert_true(mortise_hold_fence(attempt.hold) > mortise_hold_fence(hold));
    assert_int_equal(mortise_close(holder), MORTISE_OK);
    assert_int_equal(mortise_close(ready), MORTISE_OK);
}

/* It tells new clients of a server what that was when it first came to it. */
static void test_sq_09_sq_10_a_pooler_that_has_not_noticed(void **state)
{
    (void)state;
    struct pg_pooler pooler;
    struct sql_attempt attempt;
    pg_pooler_start(&pooler, "session");
    mortise_client *client = sql_open(pooler.port, "lease=3s&connect=600s&pooler=session");
    assert_int_equal(mortise_release(zk_acquire(zk_mutex(client, "pooled"))), MORTISE_OK);
    demote();
    is_told_why(client);
    is_refused(pooler.port, "lease=3s&connect=600s&pooler=session");
    sql_begin(&attempt, zk_mutex(client, "pooled"));
    promote();
    sql_succeed(&attempt);
    assert_int_equal(mortise_close(client), MORTISE_OK);
    pg_pooler_stop(&pooler);
}

/* An argument chooses tests by their names. */
int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sq_09_j2_a_primary_that_becomes_a_standby),
        cmocka_unit_test(test_sq_09_sq_10_a_pooler_that_has_not_noticed),
    };
    if (count > 1)
        cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests(tests, sql_place_start, zk_place_stop);
}
