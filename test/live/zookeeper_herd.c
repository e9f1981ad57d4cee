/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C4, D4, D5: what a release costs the whole queue, with wake=all and without, of a mutex and of
 * readers and writers, counted by a proxy that all waiters share; and that clients of both
 * sorts take turns.
 */
#include "cmocka_all.h"

#include "live/zk_proxy.h"
#include "live/zookeeper_place.h"

#include <stdatomic.h>
#include <stdio.h>

#define WAITERS 8
#define COUNTED 4 /* whose grant is counted: the first ones make the markers' directory */
#define SOON 4000 /* before the look that is behind every wait, each 5 s */

static struct waiter {
    mortise_client *client;
    mortise_hold hold;
    atomic_bool granted;
} waiters[WAITERS];
static struct zk_proxy *proxy;

static void granted(void *argument, int error, mortise_hold hold)
{
    struct waiter *waiter = argument;
    if (error != MORTISE_OK)
        return;
    waiter->hold = hold;
    waiter->granted = true;
}

enum side { MUTEX, READ, WRITE };

static mortise_lock *lock_of(mortise_client *client, const char *name, enum side side)
{
    mortise_lock *read, *write;
    if (side == MUTEX)
        return zk_mutex(client, name);
    assert_int_equal(mortise_read_write_new(client, name, NULL, &read, &write), MORTISE_OK);
    return side == READ ? read : write;
}

static const char *uri_of(uint16_t port, bool all)
{
    static char uri[256];
    snprintf(uri, sizeof uri, "%s%s", zk_place_uri(port, "10s"), all ? "&wake=all" : "");
    return uri;
}

static void await_granted(const struct waiter *waiter)
{
    for (int64_t last = zk_now_ms() + SOON; !waiter->granted; zk_rest_ms(1))
        assert_true(zk_now_ms() < last);
}

/* All has been sent that is going to be. */
static void await_quiet(void)
{
    for (int quiet = 0; quiet < 50; quiet++, zk_rest_ms(1))
        if (!zk_proxy_is_idle(proxy))
            quiet = 0;
}

static void want(int i, const char *name, enum side side, bool all)
{
    waiters[i] = (struct waiter){.client = zk_open(uri_of(zk_proxy_port(proxy), all))};
    mortise_lock *lock = lock_of(waiters[i].client, name, side);
    assert_int_equal(mortise_acquire_async(lock, INT64_MAX, granted, &waiters[i], NULL), 0);
}

/* Its ticket is at the end of the queue. */
static void queue_one(int i, const char *name, enum side side, bool all)
{
    want(i, name, side, all);
    assert_true(zk_wait_tickets(waiters[0].client, name, i + 1, SOON));
}

/* They queue up in order; the first one holds. */
static void queue_up(const char *name, enum side side, bool (*all)(int))
{
    for (int i = 0; i < WAITERS; i++)
        queue_one(i, name, side, all(i));
    await_granted(&waiters[0]);
    await_quiet();
}

static void let_go(int i)
{
    await_granted(&waiters[i]);
    assert_int_equal(mortise_release(waiters[i].hold), MORTISE_OK);
}

static void close_all(int count)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(mortise_close(waiters[i].client), MORTISE_OK);
}

static void await_count(enum zk_opcode opcode, unsigned count)
{
    for (int64_t last = zk_now_ms() + SOON; zk_proxy_count(proxy, opcode) < count; zk_rest_ms(1))
        assert_true(zk_now_ms() < last);
    await_quiet();
}

/* Exactly so many requests of a kind have passed. */
static void await_requests(enum zk_opcode opcode, unsigned count)
{
    await_count(opcode, count);
    assert_int_equal(zk_proxy_count(proxy, opcode), count);
}

/* The turn goes on from one to the next; one of the grants is counted. `herd`: each time all
   who wait list. */
static void run_through(bool herd, unsigned *lists, unsigned *events)
{
    for (int i = 0; i < WAITERS; i++) {
        await_granted(&waiters[i]);
        await_count(ZK_OP_GET_CHILDREN, herd && i > 0 ? (unsigned)(WAITERS - i) : 0);
        for (int later = i + 1; later < WAITERS; later++)
            assert_false(waiters[later].granted);
        if (i == COUNTED) {
            *lists = zk_proxy_count(proxy, ZK_OP_GET_CHILDREN);
            *events = zk_proxy_events(proxy);
        }
        zk_proxy_reset_counts(proxy);
        assert_int_equal(mortise_release(waiters[i].hold), MORTISE_OK);
    }
    close_all(WAITERS);
}

static bool everyone(int i)
{
    (void)i;
    return true;
}

static bool nobody(int i)
{
    (void)i;
    return false;
}

static bool every_other(int i)
{
    return i % 2;
}

static int begin(void **state)
{
    (void)state;
    proxy = zk_proxy_start(zk_place_port());
    return 0;
}

static int end(void **state)
{
    (void)state;
    zk_proxy_stop(proxy);
    return 0;
}

static void test_c4_with_wake_all_a_release_wakes_all_waiters(void **state)
{
    (void)state;
    unsigned lists, events;
    queue_up("herd/mutex", MUTEX, everyone);
    run_through(true, &lists, &events);
    assert_in_range(lists, WAITERS - COUNTED, WAITERS - COUNTED + 1); /* of all who waited */
    assert_in_range(events, WAITERS - COUNTED, WAITERS - COUNTED + 1);
}

static void test_d4_with_wake_all_a_release_wakes_all_writers(void **state)
{
    (void)state;
    unsigned lists, events;
    queue_up("herd/write", WRITE, everyone);
    run_through(true, &lists, &events);
    assert_in_range(lists, WAITERS - COUNTED, WAITERS - COUNTED + 1);
    assert_in_range(events, WAITERS - COUNTED, WAITERS - COUNTED + 1);
}

static void test_c7_without_wake_all_a_release_wakes_one_and_lists_nothing(void **state)
{
    (void)state;
    unsigned lists, events;
    queue_up("herd/none", MUTEX, nobody);
    run_through(false, &lists, &events);
    assert_int_equal(lists, 0);
    assert_in_range(events, 1, 3); /* the marker, the node, and the marker's end */
}

static void test_c4_waiters_with_and_without_wake_all_take_turns(void **state)
{
    (void)state;
    unsigned lists, events;
    queue_up("herd/both", MUTEX, every_other);
    run_through(false, &lists, &events);
    assert_in_range(events, 1, 2 * WAITERS);
}

/* A session's requests keep their order, so what was sent before the release has passed. */
static void test_d5_zk_26_readers_behind_a_released_writer_send_no_request(void **state)
{
    (void)state;
    const int writers = 3; /* the first two releases make the markers' directory */
    for (int i = 0; i < WAITERS; i++)
        queue_one(i, "herd/readers", i < writers ? WRITE : READ, false);
    let_go(0);
    let_go(1);
    await_granted(&waiters[2]);
    await_quiet();
    zk_proxy_reset_counts(proxy);
    let_go(2);
    for (int i = writers; i < WAITERS; i++)
        await_granted(&waiters[i]);
    for (int i = writers; i < WAITERS; i++)
        let_go(i);
    await_requests(ZK_OP_DELETE, WAITERS - writers);
    assert_int_equal(zk_proxy_count(proxy, ZK_OP_MULTI), 1);
    assert_int_equal(zk_proxy_count(proxy, ZK_OP_GET_CHILDREN), 0);
    assert_int_equal(zk_proxy_count(proxy, ZK_OP_GET_DATA), 0);
    close_all(WAITERS);
}

/* Readers pass nothing on, so a list and one watch are all it takes to wait for one. */
static void test_d5_zk_26_a_writer_watches_one_reader_at_a_time(void **state)
{
    (void)state;
    const int readers = 3;
    for (int i = 0; i < readers; i++)
        queue_one(i, "herd/writer", READ, false);
    for (int i = 0; i < readers; i++)
        await_granted(&waiters[i]);
    await_quiet();
    zk_proxy_reset_counts(proxy);
    want(readers, "herd/writer", WRITE, false);
    await_requests(ZK_OP_GET_DATA, 1);
    let_go(2);
    await_requests(ZK_OP_GET_DATA, 2);
    let_go(0); /* nobody waits for that one */
    await_requests(ZK_OP_DELETE, 2);
    assert_false(waiters[readers].granted);
    let_go(1);
    let_go(readers);
    await_requests(ZK_OP_GET_DATA, 2);
    assert_int_equal(zk_proxy_count(proxy, ZK_OP_GET_CHILDREN), 3);
    assert_int_equal(zk_proxy_count(proxy, ZK_OP_EXISTS), 0);
    assert_int_equal(zk_proxy_count(proxy, ZK_OP_REMOVE_WATCHES), 0);
    close_all(readers + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_c4_with_wake_all_a_release_wakes_all_waiters, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_d4_with_wake_all_a_release_wakes_all_writers, begin,
                                        end),
        cmocka_unit_test_setup_teardown(
            test_c7_without_wake_all_a_release_wakes_one_and_lists_nothing, begin, end),
        cmocka_unit_test_setup_teardown(test_c4_waiters_with_and_without_wake_all_take_turns, begin,
                                        end),
        cmocka_unit_test_setup_teardown(
            test_d5_zk_26_readers_behind_a_released_writer_send_no_request, begin, end),
        cmocka_unit_test_setup_teardown(test_d5_zk_26_a_writer_watches_one_reader_at_a_time, begin,
                                        end),
    };
    return cmocka_run_group_tests(tests, zk_place_start, zk_place_stop);
}
