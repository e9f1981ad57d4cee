/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durable holds on a real server (C11, store/zookeeper/ticket/detach.c): what the nodes are, and
 * answers and requests that are lost on the way. conform_detach and api_detach test on every store
 * the promises of the port and the interface.
 */
#include "cmocka_all.h"

#include "live/zk_proxy.h"
#include "live/zk_raw.h"
#include "live/zookeeper_place.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define DIRECTORY "/test/root/mortise/"

static struct zk_proxy *proxy;
static struct zk_raw *raw;
static mortise_client *direct, *through; /* to the server; by way of the proxy */
static char token[MORTISE_TOKEN_SIZE];

static int begin(void **state)
{
    (void)state;
    proxy = zk_proxy_start(zk_place_port());
    raw = zk_raw_open(zk_place_port());
    direct = zk_open(zk_place_uri(zk_place_port(), "4s"));
    through = zk_open(zk_place_uri(zk_proxy_port(proxy), "4s"));
    return 0;
}

static int end(void **state)
{
    (void)state;
    mortise_close(direct);
    mortise_close(through);
    zk_raw_close(raw);
    zk_proxy_stop(proxy);
    return 0;
}

/* The only ticket's node. */
static const char *node_of(const char *name, int64_t *owner)
{
    static char child[128];
    char path[256];
    snprintf(path, sizeof path, DIRECTORY "%s", name);
    assert_int_equal(zk_raw_children(raw, path), 1);
    assert_true(zk_raw_child(raw, path, 0, child));
    snprintf(path, sizeof path, DIRECTORY "%s/%s", name, child);
    *owner = zk_raw_owner(raw, path);
    return child;
}

static mortise_hold adopt(mortise_lock *lock)
{
    mortise_hold hold;
    assert_int_equal(mortise_adopt(lock, token, &hold), MORTISE_OK);
    assert_int_equal(mortise_verify(hold, 10000), MORTISE_OK);
    return hold;
}

static void release(mortise_hold hold, const char *name)
{
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    assert_true(zk_wait_tickets(direct, name, 0, 5000));
}

static void test_c11_the_node_of_a_detached_ticket_is_persistent_and_keeps_its_place(void **state)
{
    (void)state;
    int64_t owner;
    char first[128];
    mortise_lock *lock = zk_mutex(through, "place");
    mortise_hold hold = zk_acquire(lock);
    uint64_t fence = mortise_hold_fence(hold);
    snprintf(first, sizeof first, "%s", node_of("place", &owner));
    assert_int_not_equal(owner, 0);
    assert_int_equal(mortise_detach(hold, token), MORTISE_OK);
    const char *node = node_of("place", &owner);
    assert_int_equal(owner, 0);
    assert_non_null(strstr(node, "-d-"));
    assert_string_equal(strstr(node, "-lock-"), strstr(first, "-lock-"));
    hold = adopt(lock);
    assert_true(mortise_hold_fence(hold) > fence);
    node = node_of("place", &owner);
    assert_int_not_equal(owner, 0);
    assert_non_null(strstr(node, "-a-"));
    assert_string_equal(strstr(node, "-lock-"), strstr(first, "-lock-"));
    assert_int_equal(mortise_detach(hold, token), MORTISE_OK);
    node = node_of("place", &owner);
    assert_int_equal(owner, 0);
    assert_string_equal(strstr(node, "-lock-"), strstr(first, "-lock-"));
    release(adopt(lock), "place");
}

typedef void loser(struct zk_proxy *, enum zk_opcode);
typedef bool question(struct zk_proxy *);

static void detach_through(loser *lose, question *was_lost, const char *name)
{
    int64_t owner;
    mortise_hold hold = zk_acquire(zk_mutex(through, name));
    lose(proxy, ZK_OP_MULTI);
    assert_int_equal(mortise_detach(hold, token), MORTISE_OK);
    assert_true(was_lost(proxy));
    assert_non_null(strstr(node_of(name, &owner), "-d-"));
    release(adopt(zk_mutex(direct, name)), name);
}

static void adopt_through(loser *lose, question *was_lost, const char *name)
{
    int64_t owner;
    assert_int_equal(mortise_detach(zk_acquire(zk_mutex(direct, name)), token), MORTISE_OK);
    mortise_lock *lock = zk_mutex(through, name);
    assert_int_equal(zk_tickets(through, name), 1);
    lose(proxy, ZK_OP_MULTI);
    mortise_hold hold = adopt(lock);
    assert_true(was_lost(proxy));
    assert_non_null(strstr(node_of(name, &owner), "-a-"));
    release(hold, name);
}

static void test_c11_zk_01_lost_reply_of_a_detach(void **state)
{
    (void)state;
    detach_through(zk_proxy_swallow, zk_proxy_swallowed, "detach-reply");
}

static void test_c11_a_detach_whose_request_is_lost_is_repeated(void **state)
{
    (void)state;
    detach_through(zk_proxy_drop, zk_proxy_dropped, "detach-request");
}

static void test_c11_zk_01_lost_reply_of_an_adoption(void **state)
{
    (void)state;
    adopt_through(zk_proxy_swallow, zk_proxy_swallowed, "adopt-reply");
}

static void test_c11_an_adoption_whose_request_is_lost_is_repeated(void **state)
{
    (void)state;
    adopt_through(zk_proxy_drop, zk_proxy_dropped, "adopt-request");
}

static void *adopt_too(void *argument)
{
    mortise_hold none;
    *(int *)argument = mortise_adopt(zk_mutex(through, "two"), token, &none);
    return NULL;
}

/* Both have found it. */
static void test_c11_one_of_two_adopters_succeeds(void **state)
{
    (void)state;
    pthread_t thread;
    int error = MORTISE_OK;
    mortise_lock *lock = zk_mutex(direct, "two");
    assert_int_equal(mortise_detach(zk_acquire(lock), token), MORTISE_OK);
    zk_proxy_hold(proxy, ZK_OP_MULTI, "");
    assert_int_equal(pthread_create(&thread, NULL, adopt_too, &error), 0);
    for (int64_t last = zk_now_ms() + 10000; !zk_proxy_holds(proxy); zk_rest_ms(1))
        assert_true(zk_now_ms() < last);
    mortise_hold hold = adopt(lock);
    zk_proxy_go(proxy);
    pthread_join(thread, NULL);
    assert_int_equal(error, MORTISE_ENOTHELD);
    assert_int_equal(mortise_verify(hold, 10000), MORTISE_OK);
    release(hold, "two");
}

static void asked(void *argument, mortise_hold hold)
{
    (void)hold;
    atomic_fetch_add((atomic_int *)argument, 1);
}

static void test_c11_f22_an_adopter_gets_an_earlier_revoke_request(void **state)
{
    (void)state;
    atomic_int requests = 0;
    mortise_hold hold = zk_acquire(zk_mutex(direct, "asked"));
    uint64_t fence = mortise_hold_fence(hold);
    assert_int_equal(mortise_detach(hold, token), MORTISE_OK);
    assert_int_equal(mortise_revoke(direct, "asked", fence), MORTISE_OK);
    hold = adopt(zk_mutex(through, "asked"));
    assert_int_equal(mortise_on_revoke(hold, asked, &requests), MORTISE_OK);
    for (int64_t last = zk_now_ms() + 4000; atomic_load(&requests) == 0; zk_rest_ms(1))
        assert_true(zk_now_ms() < last); /* and not by the look each 5 s */
    release(hold, "asked");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_c11_the_node_of_a_detached_ticket_is_persistent_and_keeps_its_place),
        TEST(test_c11_zk_01_lost_reply_of_a_detach),
        TEST(test_c11_a_detach_whose_request_is_lost_is_repeated),
        TEST(test_c11_zk_01_lost_reply_of_an_adoption),
        TEST(test_c11_an_adoption_whose_request_is_lost_is_repeated),
        TEST(test_c11_one_of_two_adopters_succeeds),
        TEST(test_c11_f22_an_adopter_gets_an_earlier_revoke_request),
    };
    return cmocka_run_group_tests(tests, zk_place_start, zk_place_stop);
}
