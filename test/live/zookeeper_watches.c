/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ZK-35 on a real server that takes no message of more than 64 kB: the paths that one
 * client watches add up to several times as much. Its connection is cut; it must come
 * back at once, look at everything and be served.
 */
#include "cmocka_all.h"

#include "live/zk_proxy.h"
#include "live/zookeeper_place.h"

#include <pthread.h>
#include <stdio.h>

#define WAITERS 2500
/* So that all the paths are far more than the server takes in one message. */
#define NAME_FORMAT "watched/by-one-client-with-names-that-are-not-short/%04d"

static struct zk_proxy *proxy;
static mortise_client *holder, *waiter;

static int begin(void **state)
{
    (void)state;
    proxy = zk_proxy_start(zk_place_port());
    holder = zk_open(zk_place_uri(zk_place_port(), "40s"));
    waiter = zk_open(zk_place_uri(zk_proxy_port(proxy), "40s"));
    return 0;
}

static int end(void **state)
{
    (void)state;
    mortise_close(waiter);
    zk_proxy_stop(proxy);
    return 0;
}

/* Acquires under way, counted as they end. */
static struct {
    pthread_mutex_t mutex;
    int granted, failed;
} tally = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void granted(void *argument, int error, mortise_hold hold)
{
    (void)argument, (void)hold;
    pthread_mutex_lock(&tally.mutex);
    if (error == MORTISE_OK)
        tally.granted++;
    else
        tally.failed++;
    pthread_mutex_unlock(&tally.mutex);
}

static int count_granted(void)
{
    pthread_mutex_lock(&tally.mutex);
    int count = tally.granted;
    assert_int_equal(tally.failed, 0);
    pthread_mutex_unlock(&tally.mutex);
    return count;
}

static void acquire_all(mortise_client *client)
{
    char name[128];
    pthread_mutex_lock(&tally.mutex);
    tally.granted = 0;
    pthread_mutex_unlock(&tally.mutex);
    for (int i = 0; i < WAITERS; i++) {
        snprintf(name, sizeof name, NAME_FORMAT, i);
        assert_int_equal(
            mortise_acquire_async(zk_mutex(client, name), INT64_MAX, granted, NULL, NULL), 0);
    }
}

static void await_granted(int count)
{
    for (int64_t last = zk_now_ms() + 60000; count_granted() < count; zk_rest_ms(10))
        assert_true(zk_now_ms() < last);
}

/* Waits until the waiting client has sent what it has to send. */
static void await_watches(unsigned count)
{
    for (int64_t last = zk_now_ms() + 60000; zk_proxy_count(proxy, ZK_OP_GET_DATA) < count;
         zk_rest_ms(10))
        assert_true(zk_now_ms() < last);
}

static void test_zk_35_more_watches_than_one_message_holds_are_set_again(void **state)
{
    (void)state;
    acquire_all(holder);
    await_granted(WAITERS);
    acquire_all(waiter);
    await_watches(2 * WAITERS);
    zk_rest_ms(200);
    unsigned connections = zk_proxy_connections(proxy);
    zk_proxy_reset_counts(proxy);
    zk_proxy_cut(proxy);
    await_watches(2 * WAITERS); /* all look again, and watch again */
    assert_int_equal(zk_proxy_connections(proxy), connections + 1);
    assert_int_equal(zk_proxy_count(proxy, ZK_OP_SET_WATCHES), 0);
    for (int i = 0; i < 100 && zk_place_figure("zk_watch_count") < WAITERS; i++)
        zk_rest_ms(100); /* they have been asked for, and the server is at it */
    assert_true(zk_place_figure("zk_watch_count") >= WAITERS);

    /* Watched, they look once in five seconds, and not oftener. */
    zk_rest_ms(500);
    int64_t before = zk_now_ms();
    zk_proxy_reset_counts(proxy);
    zk_rest_ms(4000);
    int64_t rounds = (zk_now_ms() - before) / 5000 + 1;
    assert_in_range(zk_proxy_count(proxy, ZK_OP_GET_CHILDREN), 0, WAITERS * rounds);
    assert_int_equal(zk_proxy_connections(proxy), connections + 1);
    assert_int_equal(count_granted(), 0);

    assert_int_equal(mortise_close(holder), MORTISE_OK);
    await_granted(WAITERS);
    assert_int_equal(zk_proxy_connections(proxy), connections + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_zk_35_more_watches_than_one_message_holds_are_set_again, begin, end),
    };
    /* Sessions may be long, so that a busy machine breaks no connection. */
    zk_place_settings("--tick 2000 --property jute.maxbuffer=65536", "zk");
    return cmocka_run_group_tests(tests, zk_place_start, zk_place_stop);
}
