/*
 * C4, D4: what a release costs the whole queue, with wake=all and without, counted by a proxy
 * that all waiters share; and that clients of both sorts take turns.
 */
#include "cmocka_all.h"

#include "live/zk_proxy.h"
#include "live/zookeeper_place.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

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

static mortise_lock *lock_of(mortise_client *client, const char *name, bool read_write)
{
    mortise_lock *read, *write;
    if (!read_write)
        return zk_mutex(client, name);
    assert_int_equal(mortise_read_write_new(client, name, NULL, &read, &write), MORTISE_OK);
    return write;
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

/* They queue up in order; the first one holds. */
static void queue_up(const char *name, bool read_write, bool (*all)(int))
{
    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = (struct waiter){.client = zk_open(uri_of(zk_proxy_port(proxy), all(i)))};
        mortise_lock *lock = lock_of(waiters[i].client, name, read_write);
        assert_int_equal(mortise_acquire_async(lock, INT64_MAX, granted, &waiters[i], NULL), 0);
        assert_true(zk_wait_tickets(waiters[0].client, name, i + 1, SOON));
    }
    await_granted(&waiters[0]);
    await_quiet();
}

/* The turn goes on from one to the next; one of the grants is counted. */
static void run_through(unsigned *lists, unsigned *events)
{
    for (int i = 0; i < WAITERS; i++) {
        await_granted(&waiters[i]);
        await_quiet();
        for (int later = i + 1; later < WAITERS; later++)
            assert_false(waiters[later].granted);
        if (i == COUNTED) {
            *lists = zk_proxy_count(proxy, ZK_OP_GET_CHILDREN);
            *events = zk_proxy_events(proxy);
        }
        zk_proxy_reset_counts(proxy);
        assert_int_equal(mortise_release(waiters[i].hold), MORTISE_OK);
    }
    for (int i = 0; i < WAITERS; i++)
        assert_int_equal(mortise_close(waiters[i].client), MORTISE_OK);
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

static void test_c4_a_release_wakes_the_whole_herd(void **state)
{
    (void)state;
    unsigned lists, events;
    queue_up("herd/mutex", false, everyone);
    run_through(&lists, &events);
    assert_in_range(lists, WAITERS - COUNTED, WAITERS - COUNTED + 1); /* of all who waited */
    assert_in_range(events, WAITERS - COUNTED, WAITERS - COUNTED + 1);
}

static void test_d4_writers_too(void **state)
{
    (void)state;
    unsigned lists, events;
    queue_up("herd/write", true, everyone);
    run_through(&lists, &events);
    assert_in_range(lists, WAITERS - COUNTED, WAITERS - COUNTED + 1);
    assert_in_range(events, WAITERS - COUNTED, WAITERS - COUNTED + 1);
}

static void test_c7_ours_wakes_one_and_lists_nothing(void **state)
{
    (void)state;
    unsigned lists, events;
    queue_up("herd/none", false, nobody);
    run_through(&lists, &events);
    assert_int_equal(lists, 0);
    assert_in_range(events, 1, 3); /* the marker, the node, and the marker's end */
}

static void test_c4_both_sorts_take_turns(void **state)
{
    (void)state;
    unsigned lists, events;
    queue_up("herd/both", false, every_other);
    run_through(&lists, &events);
    assert_in_range(events, 1, 2 * WAITERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_c4_a_release_wakes_the_whole_herd, begin, end),
        cmocka_unit_test_setup_teardown(test_d4_writers_too, begin, end),
        cmocka_unit_test_setup_teardown(test_c7_ours_wakes_one_and_lists_nothing, begin, end),
        cmocka_unit_test_setup_teardown(test_c4_both_sorts_take_turns, begin, end),
    };
    return cmocka_run_group_tests(tests, zk_place_start, zk_place_stop);
}
