/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ensemble of three that loses one: each of them in turn is killed while clients
 * compete, and comes back. No two hold at once, fences rise, and everybody is served.
 */
#include "cmocka_all.h"

#include "live/zookeeper_place.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define CLIENTS 4

static char uri[512];
static atomic_bool ended;
static atomic_int holders;
static atomic_ulong served[CLIENTS], newest;
static mortise_client *clients[CLIENTS];

static void *compete(void *argument)
{
    int self = (int)(intptr_t)argument;
    mortise_lock *lock = zk_mutex(clients[self], "ensemble");
    while (!ended) {
        mortise_hold hold;
        if (mortise_acquire_for(lock, 30000, &hold) != MORTISE_OK)
            continue; /* told by `served`, if it stays so */
        uint64_t fence = mortise_hold_fence(hold);
        if (mortise_is_held(hold)) {
            assert_int_equal(atomic_fetch_add(&holders, 1), 0);
            assert_true(fence > newest);
            newest = fence;
            bool still = mortise_is_held(hold);
            atomic_fetch_sub(&holders, 1);
            served[self] += still;
        }
        mortise_release(hold);
    }
    return NULL;
}

/* Waits until each client has been served once more. */
static void await_all(void)
{
    unsigned long before[CLIENTS];
    for (int i = 0; i < CLIENTS; i++)
        before[i] = served[i];
    for (int i = 0; i < CLIENTS; i++)
        for (int64_t last = zk_now_ms() + 60000; served[i] <= before[i]; zk_rest_ms(10))
            assert_true(zk_now_ms() < last);
}

static void test_a1_a7_any_server_may_die(void **state)
{
    (void)state;
    pthread_t threads[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = zk_open(uri);
        assert_int_equal(pthread_create(&threads[i], NULL, compete, (void *)(intptr_t)i), 0);
    }
    await_all();
    for (int server = 0; server < 3; server++) {
        zk_place_server("kill", server);
        await_all(); /* two of three are enough */
        zk_place_server("restart", server);
        await_all();
    }
    ended = true;
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(mortise_close(clients[i]), MORTISE_OK);
    }
}

static int begin_all(void **state)
{
    int error = zk_place_start(state);
    if (error)
        return error;
    const char *url = zk_place_servers("url");
    snprintf(uri, sizeof uri, "%.*s/ensemble?session=6s&connect=10s", (int)strcspn(url, "\n"), url);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a1_a7_any_server_may_die)};
    zk_place_settings("", "zk3");
    return cmocka_run_group_tests(tests, begin_all, zk_place_stop);
}
