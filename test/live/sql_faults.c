/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores on SQL servers under faults of the server and of the way to it: lost answers, late
 * statements, half-open connections, servers that are killed, frozen or turned read-only. One
 * program for each server. The letters in a test's name are the entry it covers.
 */
#include "cmocka_all.h"
#include "conform/port_client.h"
#include "live/sql_place.h"

#include <stdio.h>
#include <string.h>

static mortise_client *open_client(const char *parameters)
{
    return sql_open(zk_place_port(), parameters);
}

static void await_connections(long number)
{
    int64_t limit = zk_now_ms() + 60000;
    while (sql_connections() != number) {
        assert_true(zk_now_ms() < limit);
        zk_rest_ms(5);
    }
}

/* Leaves the lock to nobody, and takes it up again. */
static mortise_hold detach_and_adopt(mortise_client *client, mortise_lock *lock, mortise_hold hold)
{
    char token[MORTISE_TOKEN_SIZE];
    mortise_hold adopted, none;
    uint64_t fence = mortise_hold_fence(hold);
    assert_int_equal(mortise_detach(hold, token), MORTISE_OK);
    assert_int_equal(sql_number(SQL_NOBODYS("unknown")), 1);
    assert_int_equal(mortise_adopt(lock, token, &adopted), MORTISE_OK);
    assert_int_equal(sql_number(SQL_NOBODYS("unknown")), 0);
    assert_true(mortise_hold_fence(adopted) > fence);
    assert_int_equal(mortise_adopt(zk_mutex(client, "unknown"), token, &none), MORTISE_ENOTHELD);
    return adopted;
}

/* Somebody comes for it, in vain, and goes. */
static void come_behind(const char *name)
{
    mortise_client *other = sql_open(zk_place_port(), "lease=60s");
    mortise_hold none;
    assert_int_equal(mortise_try_acquire(zk_mutex(other, name), &none), MORTISE_EBUSY);
    assert_int_equal(mortise_close(other), MORTISE_OK);
}

/* One life of a client, in which the request with this statement is lost or its answer is. */
static void live_through(enum sql_fate fate, const char *statement)
{
    struct sql_proxy *proxy = sql_proxy();
    mortise_client *client = sql_open(sql_proxy_port(proxy), "lease=5s");
    sql_proxy_order(proxy, fate, statement);
    mortise_lock *lock = zk_mutex(client, "unknown");
    mortise_hold hold = detach_and_adopt(client, lock, zk_acquire(lock));
    assert_int_equal(sql_number(SQL_TICKETS("unknown")), 1);
    come_behind("unknown");
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    sql_await(SQL_TICKETS("unknown"), 0);
    zk_acquire(zk_mutex(client, "last"));
    assert_int_equal(mortise_close(client), MORTISE_OK);
    sql_await("SELECT count(*) FROM ticket", 0);
    sql_await("SELECT count(*) FROM session WHERE epoch > 0", 0); /* but nobody's */
    assert_true(sql_proxy_done(proxy));
    sql_proxy_stop(proxy);
}

static void test_sq_07_f10_an_answer_is_lost_after_the_commit(void **state)
{
    (void)state;
    for (int i = 0; i < SQL_PARTS; i++)
        live_through(SQL_SWALLOW, sql_parts[i]);
}

static void test_sq_07_a_request_is_lost_before_the_server(void **state)
{
    (void)state;
    for (int i = 0; i < SQL_PARTS; i++)
        live_through(SQL_DROP, sql_parts[i]);
}

/* The old connection's APPEND comes when the ticket has been acquired and released on another. */
static void come_late(enum sql_part part)
{
    struct sql_proxy *proxy = sql_proxy();
    mortise_client *client = sql_open(sql_proxy_port(proxy), "lease=9s");
    mortise_hold other = zk_acquire(zk_mutex(client, "kept"));
    sql_proxy_order(proxy, SQL_HOLD, sql_parts[part]);
    mortise_hold hold = zk_acquire(zk_mutex(client, "late")); /* on a second connection */
    assert_true(sql_proxy_done(proxy));
    assert_int_equal(sql_proxy_connections(proxy), 2);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    sql_await(SQL_TICKETS("late"), 0);
    sql_proxy_go(proxy);
    await_connections(1); /* the old one has ended */
    assert_int_equal(sql_number(SQL_TICKETS("late")), 0);
    assert_true(mortise_is_held(other));
    assert_int_equal(sql_losses(client), 0);
    assert_int_equal(mortise_close(client), MORTISE_OK);
    sql_proxy_stop(proxy);
}

static void test_sq_07_a_request_of_an_old_connection_does_nothing(void **state)
{
    (void)state;
    come_late(SQL_APPEND);
    come_late(SQL_ALONE); /* to a queue whose row is there now */
}

/* Tickets of nobody, and those of this session, by the identity that they keep as both. */
static struct mrt_event leave(struct port_client *client, struct mrt_id ticket,
                              struct mrt_id detached_id)
{
    struct mrt_command command = port_command(client, MRT_DETACH);
    command.ticket = ticket;
    command.detached_id = detached_id;
    command.queue = "mortise/left";
    command.weight = 1;
    return port_send(client, &command);
}

static struct mrt_event adopt(struct port_client *client, struct mrt_id ticket)
{
    struct mrt_command command = port_command(client, MRT_APPEND);
    command.ticket = ticket;
    command.queue = "mortise/left";
    command.kind = port_kind;
    command.capacity = command.weight = 1;
    command.adopt = true;
    return port_send(client, &command);
}

/* A waiter that stops adopting leaves the ticket as it was: a DETACH undoes the adoption, and the
 * ticket may be adopted again. */
static void test_sq_07_c11_a_late_detach_or_adoption_does_nothing(void **state)
{
    (void)state;
    struct sql_proxy *proxy = sql_proxy();
    struct port_client client;
    struct mrt_id ticket = port_id(), detached_id = port_id();
    port_open_session(&client, sql_uri(sql_proxy_port(proxy), "lease=60s"));
    assert_int_equal(port_append(&client, "mortise/left", ticket).type, MRT_VIEW);
    assert_int_equal(leave(&client, ticket, detached_id).type, MRT_VIEW);
    sql_proxy_order(proxy, SQL_LATE, sql_parts[SQL_ADOPT]);
    assert_int_equal(adopt(&client, detached_id).type, MRT_UNKNOWN);
    assert_int_equal(adopt(&client, detached_id).type, MRT_VIEW);
    assert_int_equal(leave(&client, detached_id, detached_id).type, MRT_VIEW);
    sql_proxy_go(proxy);
    await_connections(1); /* the old one has ended, and what it had is done */
    assert_int_equal(sql_number(SQL_NOBODYS("left")), 1);
    assert_int_equal(adopt(&client, detached_id).type, MRT_VIEW);
    sql_proxy_order(proxy, SQL_LATE, sql_parts[SQL_DETACH]);
    assert_int_equal(leave(&client, detached_id, detached_id).type, MRT_UNKNOWN);
    assert_int_equal(leave(&client, detached_id, detached_id).type, MRT_VIEW);
    assert_int_equal(adopt(&client, detached_id).type, MRT_VIEW);
    sql_proxy_go(proxy);
    await_connections(1);
    assert_int_equal(sql_number(SQL_TICKETS("left")), 1);
    assert_int_equal(sql_number(SQL_NOBODYS("left")), 0);
    assert_int_equal(port_stop(&client).type, MRT_STOPPED);
    port_close(&client);
    sql_proxy_stop(proxy);
}

/* A connection says first thing that it is the newest. When an older one's word comes after that,
   what is asked on the newest is done all the same. */
static void older_word_comes_late(enum sql_part part)
{
    struct sql_proxy *proxy = sql_proxy();
    mortise_client *client = sql_open(sql_proxy_port(proxy), "lease=60s");
    if (part == SQL_RESUME)
        zk_acquire(zk_mutex(client, "older"));
    sql_proxy_order(proxy, SQL_LATE, sql_parts[part]);
    if (part == SQL_RESUME)
        sql_end_connections();
    mortise_hold hold = zk_acquire(zk_mutex(client, "newest"));
    assert_true(sql_proxy_done(proxy));
    sql_proxy_go(proxy);
    await_connections(1); /* the old one has ended, and what it had is done */
    zk_acquire(zk_mutex(client, "after"));
    assert_true(mortise_is_held(hold));
    assert_int_equal(sql_losses(client), 0);
    assert_int_equal(mortise_close(client), MORTISE_OK);
    sql_proxy_stop(proxy);
}

static void test_sq_07_an_old_connection_is_not_taken_for_the_newest(void **state)
{
    (void)state;
    older_word_comes_late(SQL_START);
    older_word_comes_late(SQL_RESUME);
}

static void await_flights(struct sql_proxy *proxy, unsigned number)
{
    int64_t limit = zk_now_ms() + 20000;
    while (sql_proxy_flights(proxy) < number) {
        assert_true(zk_now_ms() < limit);
        zk_rest_ms(5);
    }
}

/* The lease is so long that nothing else is sent meanwhile: no renewal, and no second release (the
 * server ends a statement after a quarter of the lease). */
static void test_a_command_behind_a_release_is_sent_before_the_release_is_answered(void **state)
{
    (void)state;
    struct sql_proxy *proxy = sql_proxy();
    mortise_client *client = sql_open(sql_proxy_port(proxy), "lease=600s");
    struct sql_attempt next;
    assert_int_equal(mortise_release(zk_acquire(zk_mutex(client, "next"))), MORTISE_OK);
    mortise_hold hold = zk_acquire(zk_mutex(client, "stuck"));
    unsigned flights = sql_proxy_flights(proxy);
    sql_block("ticket WHERE queue = 'mortise/stuck'");
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    sql_begin(&next, zk_mutex(client, "next"));
    await_flights(proxy, flights + 2);
    assert_false(next.done);
    sql_unblock();
    sql_succeed(&next);
    sql_await(SQL_TICKETS("stuck"), 0);
    assert_int_equal(sql_number(SQL_TICKETS("next")), 1);
    assert_int_equal(mortise_close(client), MORTISE_OK);
    sql_proxy_stop(proxy);
}

/* A statement that was refused once is not tried again on that connection. */
static void test_without_room_for_prepared_statements_a_cycle_is_two_requests(void **state)
{
    (void)state;
    struct sql_proxy *proxy = sql_proxy();
    sql_set_room(false);
    mortise_client *client = sql_open(sql_proxy_port(proxy), "lease=60s");
    mortise_lock *lock = zk_mutex(client, "no room");
    int error = mortise_release(zk_acquire(lock));
    sql_await(SQL_TICKETS("no room"), 0);
    unsigned flights = sql_proxy_flights(proxy);
    for (int i = 0; i < 5 && error == MORTISE_OK; i++)
        error = mortise_release(zk_acquire(lock));
    sql_await(SQL_TICKETS("no room"), 0);
    flights = sql_proxy_flights(proxy) - flights;
    sql_set_room(true);
    assert_int_equal(error, MORTISE_OK);
    assert_int_equal(flights, 10);
    assert_int_equal(mortise_close(client), MORTISE_OK);
    sql_proxy_stop(proxy);
}

/* Releases, which the server refuses, and acquires behind it. */
static void refuse_the_release_before(const char *next)
{
    mortise_client *client = open_client("lease=60s");
    mortise_lock *lock = zk_mutex(client, next);
    assert_int_equal(mortise_release(zk_acquire(lock)), MORTISE_OK);
    mortise_hold hold = zk_acquire(zk_mutex(client, "refused"));
    sql_inject("DELETE ON ticket", SQL_DEADLOCK, 3);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    hold = zk_acquire(lock);
    sql_await("SELECT count(*) FROM ticket", 1);
    assert_true(sql_heal() > 3);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    assert_int_equal(mortise_close(client), MORTISE_OK);
}

static void test_sq_05_a_refused_release_is_repeated_and_the_acquire_behind_it_too(void **state)
{
    (void)state;
    refuse_the_release_before("next");
    refuse_the_release_before("refused");
}

static void test_sq_13_c12_a_half_open_connection_ends_a_hold_in_time(void **state)
{
    (void)state;
    struct sql_proxy *proxy = sql_proxy();
    mortise_client *client = sql_open(sql_proxy_port(proxy), "lease=2s"),
                   *other = open_client("lease=2s");
    mortise_hold hold = zk_acquire(zk_mutex(client, "half"));
    sql_proxy_stall(proxy, true);
    mortise_hold next = zk_acquire(zk_mutex(other, "half"));
    assert_int_equal(mortise_hold_state(hold), MORTISE_LOST);
    assert_true(mortise_hold_fence(next) > mortise_hold_fence(hold));
    sql_proxy_stall(proxy, false);
    assert_int_equal(mortise_close(other), MORTISE_OK);
    zk_acquire(zk_mutex(client, "half-again"));
    assert_int_equal(mortise_close(client), MORTISE_OK);
    sql_proxy_stop(proxy);
}

/* Its answer is lost, and it cannot be asked for again. */
static void test_sq_07_a_break_that_may_have_been_done_is_not_said_to_have_failed(void **state)
{
    (void)state;
    struct sql_proxy *proxy = sql_proxy();
    mortise_client *client = sql_open(sql_proxy_port(proxy), "lease=4s&connect=2s"),
                   *other = open_client("lease=6s");
    mortise_hold hold = zk_acquire(zk_mutex(other, "broken"));
    sql_proxy_order(proxy, SQL_SWALLOW, sql_parts[SQL_BREAK]);
    assert_int_equal(mortise_break(client, "broken", mortise_hold_fence(hold)), MORTISE_EUNKNOWN);
    assert_true(sql_proxy_done(proxy));
    assert_int_equal(sql_number(SQL_TICKETS("broken")), 0); /* it was done */
    assert_int_equal(mortise_break(client, "broken", mortise_hold_fence(hold)), MORTISE_ENOTHELD);
    mortise_release(hold);
    assert_int_equal(mortise_close(client), MORTISE_OK);
    assert_int_equal(mortise_close(other), MORTISE_OK);
    sql_proxy_stop(proxy);
}

static void test_a_short_break_of_the_connection_costs_no_hold(void **state)
{
    (void)state;
    struct sql_proxy *proxy = sql_proxy();
    mortise_client *client = sql_open(sql_proxy_port(proxy), "lease=6s"),
                   *other = open_client("lease=6s");
    mortise_hold hold = zk_acquire(zk_mutex(other, "break"));
    struct sql_attempt attempt;
    sql_begin(&attempt, zk_mutex(client, "break"));
    sql_await(SQL_TICKETS("break"), 2);
    for (int i = 0; i < 5; i++) {
        unsigned before = sql_proxy_connections(proxy);
        sql_proxy_cut(proxy);
        int64_t limit = zk_now_ms() + 10000;
        while (sql_proxy_connections(proxy) == before && zk_now_ms() < limit)
            zk_rest_ms(5);
    }
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    sql_succeed(&attempt);
    assert_int_equal(sql_losses(client), 0);
    assert_int_equal(mortise_close(client), MORTISE_OK);
    assert_int_equal(mortise_close(other), MORTISE_OK);
    sql_proxy_stop(proxy);
}

static void test_terminated_backends_lose_nobody_a_lock(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=5s");
    mortise_hold hold = zk_acquire(zk_mutex(client, "kept"));
    for (int i = 0; i < 3; i++) {
        sql_end_connections();
        await_connections(1);
        assert_int_equal(mortise_verify(hold, 10000), MORTISE_OK);
    }
    assert_int_equal(sql_losses(client), 0);
    assert_int_equal(mortise_close(client), MORTISE_OK);
}

static void test_a_frozen_server_is_a_loss_and_fences_rise_behind_it(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=2s");
    mortise_hold hold = zk_acquire(zk_mutex(client, "frozen"));
    zk_place_server("pause", 0);
    sql_await_state(hold, MORTISE_LOST);
    zk_place_server("resume", 0);
    uint64_t fence = mortise_hold_fence(hold);
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    hold = zk_acquire(zk_mutex(client, "frozen"));
    assert_true(mortise_hold_fence(hold) > fence);
    assert_int_equal(mortise_close(client), MORTISE_OK);
}

static void test_sq_04_c11_a_server_that_is_killed_and_comes_back(void **state)
{
    (void)state;
    char token[MORTISE_TOKEN_SIZE];
    mortise_client *client = open_client("lease=120s"), *other = open_client("lease=120s");
    mortise_lock *left = zk_mutex(client, "left");
    mortise_hold kept = zk_acquire(left), hold = zk_acquire(zk_mutex(client, "killed"));
    uint64_t left_fence = mortise_hold_fence(kept);
    assert_int_equal(mortise_detach(kept, token), MORTISE_OK);
    struct sql_attempt attempt;
    sql_begin(&attempt, zk_mutex(other, "killed"));
    sql_await(SQL_TICKETS("killed"), 2);
    zk_place_server("kill", 0);
    zk_place_server("restart", 0);
    assert_int_equal(mortise_verify(hold, 60000), MORTISE_OK);
    assert_int_equal(sql_number(SQL_TICKETS("killed")), 2);
    assert_int_equal(mortise_adopt(left, token, &kept), MORTISE_OK);
    assert_true(mortise_hold_fence(kept) > left_fence);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    sql_succeed(&attempt);
    assert_int_equal(sql_losses(client) + sql_losses(other), 0);
    uint64_t fence = mortise_hold_fence(attempt.hold);
    assert_int_equal(mortise_close(other), MORTISE_OK);
    hold = zk_acquire(zk_mutex(client, "killed"));
    assert_true(mortise_hold_fence(hold) > fence);
    assert_int_equal(mortise_close(client), MORTISE_OK);
}

/* At the end of the lease the hold is lost, although the read-only server still shows the session
 * and the ticket. */
static void turn_read_only(const char *parameters)
{
    mortise_client *client = open_client(parameters), *late = open_client(parameters);
    mortise_hold hold = zk_acquire(zk_mutex(client, "role")), none;
    sql_set_read_only(true);
    sql_await_state(hold, MORTISE_LOST);
    assert_int_equal(mortise_acquire_for(zk_mutex(late, "role"), 20000, &none),
                     MORTISE_ENOTSUPPORTED);
    assert_non_null(strstr(mortise_error_detail(), "read-only"));
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    sql_set_read_only(false);
    zk_acquire(zk_mutex(client, "role"));
    assert_int_equal(mortise_close(client), MORTISE_OK);
    assert_int_equal(mortise_close(late), MORTISE_OK);
}

static void test_sq_09_j2_a_server_that_turns_read_only(void **state)
{
    (void)state;
    turn_read_only("lease=3s");
}

/* No statement of theirs is refused. */
static void test_sq_09_users_who_may_write_to_a_read_only_server(void **state)
{
    (void)state;
    sql_set_privileged(true);
    turn_read_only("lease=3s");
    sql_set_privileged(false);
}

/* Nothing is written, so nothing is refused. */
static void test_sq_09_forms_on_a_server_that_turns_read_only(void **state)
{
    (void)state;
    char parameters[32];
    if (!sql_demotes_in_place)
        skip();
    assert_int_equal(mortise_init(sql_uri(zk_place_port(), "form=row"), NULL, NULL), MORTISE_OK);
    for (int form = 0; form < SQL_FORMS; form++) {
        snprintf(parameters, sizeof parameters, "form=%s&lease=3s", sql_forms[form]);
        turn_read_only(parameters);
    }
}

/* An argument chooses tests by their names. */
int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sq_07_f10_an_answer_is_lost_after_the_commit),
        cmocka_unit_test(test_sq_07_a_request_is_lost_before_the_server),
        cmocka_unit_test(test_sq_07_a_request_of_an_old_connection_does_nothing),
        cmocka_unit_test(test_sq_07_c11_a_late_detach_or_adoption_does_nothing),
        cmocka_unit_test(test_sq_07_an_old_connection_is_not_taken_for_the_newest),
        cmocka_unit_test(test_a_command_behind_a_release_is_sent_before_the_release_is_answered),
        cmocka_unit_test(test_without_room_for_prepared_statements_a_cycle_is_two_requests),
        cmocka_unit_test(test_sq_05_a_refused_release_is_repeated_and_the_acquire_behind_it_too),
        cmocka_unit_test(test_sq_13_c12_a_half_open_connection_ends_a_hold_in_time),
        cmocka_unit_test(test_sq_07_a_break_that_may_have_been_done_is_not_said_to_have_failed),
        cmocka_unit_test(test_a_short_break_of_the_connection_costs_no_hold),
        cmocka_unit_test(test_terminated_backends_lose_nobody_a_lock),
        cmocka_unit_test(test_a_frozen_server_is_a_loss_and_fences_rise_behind_it),
        cmocka_unit_test(test_sq_04_c11_a_server_that_is_killed_and_comes_back),
        cmocka_unit_test(test_sq_09_j2_a_server_that_turns_read_only),
        cmocka_unit_test(test_sq_09_users_who_may_write_to_a_read_only_server),
        cmocka_unit_test(test_sq_09_forms_on_a_server_that_turns_read_only),
    };
    if (count > 1)
        cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests(tests, sql_place_start, zk_place_stop);
}
