/* SPDX-License-Identifier: Apache-2.0 */
/*
 * F13 on a real server: who of a semaphore's queue is told of what
 * (store/zookeeper/ticket/semaphore.c), with every client behind a proxy of its own, so that what
 * is to happen in between happens in between; and what it costs.
 */
#include "cmocka_all.h"

#include "live/zk_proxy.h"
#include "live/zk_raw.h"
#include "live/zookeeper_place.h"

#include <stdatomic.h>
#include <stdio.h>

#define SOON 4000 /* before the look that is behind every wait, each 5 s */
#define CLIENTS 4

static struct user {
    struct zk_proxy *proxy;
    mortise_client *client;
    mortise_hold hold;
    int error;
    atomic_bool done;
} users[CLIENTS], *const A = &users[0], *const B = &users[1], *const C = &users[2],
                         *const D = &users[3];

static char name[32]; /* of the test's lock */

static int begin(void **state)
{
    static int number;
    (void)state;
    snprintf(name, sizeof name, "semaphore-%d", number++);
    for (int i = 0; i < CLIENTS; i++) {
        users[i].proxy = zk_proxy_start(zk_place_port());
        users[i].client = zk_open(zk_place_uri(zk_proxy_port(users[i].proxy), "10s"));
        assert_true(zk_wait_tickets(users[i].client, name, 0, SOON)); /* it is connected */
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (int i = 0; i < CLIENTS; i++) {
        mortise_close(users[i].client);
        zk_proxy_stop(users[i].proxy);
    }
    return 0;
}

static void ended(void *argument, int error, mortise_hold hold)
{
    struct user *user = argument;
    user->error = error;
    user->hold = hold;
    user->done = true;
}

/* Asks for permits of two. */
static void want(struct user *user, uint32_t permits)
{
    const mortise_lock_options options = {.size = sizeof options, .permits = permits};
    mortise_lock *lock = NULL;
    user->done = false;
    zk_proxy_reset_counts(user->proxy);
    assert_int_equal(mortise_semaphore_new(user->client, name, 2, &options, &lock), MORTISE_OK);
    assert_int_equal(mortise_acquire_async(lock, INT64_MAX, ended, user, NULL), MORTISE_OK);
}

static bool comes_to_hold(struct user *user)
{
    for (int64_t last = zk_now_ms() + SOON; !user->done && zk_now_ms() < last;)
        zk_rest_ms(1);
    return user->done && user->error == MORTISE_OK;
}

static bool sends(struct user *user, enum zk_opcode opcode, unsigned count)
{
    for (int64_t last = zk_now_ms() + SOON; zk_now_ms() < last; zk_rest_ms(1))
        if (zk_proxy_count(user->proxy, opcode) >= count && zk_proxy_is_idle(user->proxy))
            return true;
    return false;
}

static void hold(struct user *user, uint32_t permits)
{
    want(user, permits);
    assert_true(comes_to_hold(user));
}

/* Waits behind another waiter that will mark its node, and watches that. */
static void queue_up(struct user *user, uint32_t permits)
{
    want(user, permits);
    assert_true(sends(user, ZK_OP_GET_DATA, 1));
    assert_false(user->done);
}

static void release(struct user *user)
{
    assert_int_equal(mortise_release(user->hold), MORTISE_OK);
}

/* Until a request of this kind is held back. */
static bool is_held_back(struct user *user)
{
    for (int64_t last = zk_now_ms() + SOON; !zk_proxy_holds(user->proxy) && zk_now_ms() < last;)
        zk_rest_ms(1);
    return zk_proxy_holds(user->proxy);
}

static const char *path_of(int place)
{
    static char path[256];
    char directory[64], child[128];
    struct zk_raw *raw = zk_raw_open(zk_place_port());
    snprintf(directory, sizeof directory, "/test/root/mortise/%s", name);
    assert_true(zk_raw_child(raw, directory, place, child));
    zk_raw_close(raw);
    snprintf(path, sizeof path, "%s/%s", directory, child);
    return path;
}

static void test_f13_permits_that_are_free_cost_three_requests(void **state)
{
    (void)state;
    hold(B, 1); /* makes the directory, and keeps the server from reaping it */
    hold(A, 1);
    release(A);
    assert_true(sends(A, ZK_OP_DELETE, 1));
    release(B);
    assert_int_equal(zk_proxy_count(A->proxy, ZK_OP_CREATE2), 1);
    assert_int_equal(zk_proxy_count(A->proxy, ZK_OP_GET_CHILDREN), 1);
    assert_int_equal(zk_proxy_count(A->proxy, ZK_OP_SET_DATA), 0);
}

/* Those who wait behind the first one hear nothing of who comes and goes in front. */
static void test_f13_c7_a_departure_from_a_semaphore_wakes_one_waiter(void **state)
{
    (void)state;
    hold(A, 1);
    hold(B, 1);
    want(C, 2);
    assert_true(sends(C, ZK_OP_GET_CHILDREN, 2)); /* the second sets the watch */
    queue_up(D, 1);
    release(A);
    assert_true(sends(C, ZK_OP_GET_CHILDREN, 3));
    assert_false(C->done || D->done);
    assert_int_equal(zk_proxy_count(D->proxy, ZK_OP_GET_CHILDREN), 1);
    release(B);
    assert_true(comes_to_hold(C));
    release(C);
    assert_true(comes_to_hold(D));
    release(D);
    assert_true(sends(C, ZK_OP_DELETE, 1)); /* there is nothing to pass on */
    assert_int_equal(zk_proxy_count(C->proxy, ZK_OP_MULTI), 0);
}

/* C does not fit when D looks, and fits when it looks itself. */
static void test_f13_a_ticket_that_fits_at_its_first_list_writes_its_mark(void **state)
{
    (void)state;
    hold(A, 1);
    hold(B, 1);
    zk_proxy_hold(C->proxy, ZK_OP_GET_CHILDREN, name);
    want(C, 1);
    assert_true(is_held_back(C));
    queue_up(D, 1);
    release(A);
    assert_true(zk_wait_tickets(B->client, name, 3, SOON));
    zk_proxy_go(C->proxy);
    assert_true(comes_to_hold(C));
    release(B);
    assert_true(comes_to_hold(D));
    release(C);
    release(D);
}

/* The mark is there before D's watch is. */
static void test_f13_a_mark_that_was_there_first_is_read(void **state)
{
    (void)state;
    hold(A, 1);
    hold(B, 1);
    want(C, 1);
    assert_true(sends(C, ZK_OP_GET_CHILDREN, 2));
    zk_proxy_hold(D->proxy, ZK_OP_GET_DATA, name);
    want(D, 1);
    assert_true(is_held_back(D));
    release(A);
    assert_true(comes_to_hold(C));
    assert_true(sends(C, ZK_OP_SET_DATA, 1));
    zk_proxy_go(D->proxy);
    assert_true(sends(D, ZK_OP_GET_CHILDREN, 2)); /* it is first now, and watches the list */
    release(B);
    assert_true(comes_to_hold(D));
    release(C);
    release(D);
}

static void test_f13_a_mark_that_is_lost_is_written_again(void **state)
{
    (void)state;
    hold(A, 1);
    hold(B, 1);
    want(C, 1);
    assert_true(sends(C, ZK_OP_GET_CHILDREN, 2));
    queue_up(D, 1);
    zk_proxy_drop(C->proxy, ZK_OP_SET_DATA);
    release(A);
    assert_true(comes_to_hold(C));
    assert_true(sends(C, ZK_OP_SET_DATA, 1));
    assert_true(zk_proxy_dropped(C->proxy));
    release(B);
    assert_true(comes_to_hold(D));
    release(C);
    release(D);
}

/* As Curator's Revoker does: it costs a look or two, not more. */
static void test_f13_a_change_that_is_no_mark_grants_nothing(void **state)
{
    (void)state;
    struct zk_raw *raw = zk_raw_open(zk_place_port());
    hold(A, 1);
    hold(B, 1);
    want(C, 1);
    assert_true(sends(C, ZK_OP_GET_CHILDREN, 2));
    queue_up(D, 1);
    assert_int_equal(zk_raw_set(raw, path_of(2)), 0);
    assert_true(sends(D, ZK_OP_GET_CHILDREN, 2));
    zk_rest_ms(100);
    assert_false(C->done || D->done);
    assert_in_range(zk_proxy_count(D->proxy, ZK_OP_GET_CHILDREN), 2, 4);
    zk_raw_close(raw);
    release(A);
    release(B);
    assert_true(comes_to_hold(C));
    assert_true(comes_to_hold(D));
    release(C);
    release(D);
}

/* C will not mark its node, so D, behind it, watches the list as C does. */
static void test_f13_a_ticket_that_does_not_mark_is_not_waited_for(void **state)
{
    (void)state;
    hold(A, 2);
    want(C, 1);
    assert_true(sends(C, ZK_OP_GET_CHILDREN, 2));
    want(D, 1);
    assert_true(sends(D, ZK_OP_GET_CHILDREN, 2));
    assert_int_equal(zk_proxy_count(D->proxy, ZK_OP_GET_DATA), 0);
    release(A);
    assert_true(comes_to_hold(C));
    assert_true(comes_to_hold(D));
    assert_int_equal(zk_proxy_count(C->proxy, ZK_OP_SET_DATA), 0);
    release(C);
    release(D);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_f13_permits_that_are_free_cost_three_requests, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_f13_c7_a_departure_from_a_semaphore_wakes_one_waiter,
                                        begin, end),
        cmocka_unit_test_setup_teardown(
            test_f13_a_ticket_that_fits_at_its_first_list_writes_its_mark, begin, end),
        cmocka_unit_test_setup_teardown(test_f13_a_mark_that_was_there_first_is_read, begin, end),
        cmocka_unit_test_setup_teardown(test_f13_a_mark_that_is_lost_is_written_again, begin, end),
        cmocka_unit_test_setup_teardown(test_f13_a_change_that_is_no_mark_grants_nothing, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_f13_a_ticket_that_does_not_mark_is_not_waited_for,
                                        begin, end),
    };
    return cmocka_run_group_tests(tests, zk_place_start, zk_place_stop);
}
