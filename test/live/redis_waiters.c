/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiters on a real Redis server: which of them are woken, and the fate of those behind one that
 * dies.
 */
#include "cmocka_all.h"
#include "conform/port_client.h"
#include "core/rule.h"
#include "live/zookeeper_place.h"
#include "store/redis/script.h"

#include <stdio.h>
#include <string.h>

#define LEASE_MS 60000 /* nobody dies of slowness */
#define SHORT_LEASE_MS 1500
#define WAITERS 5

static redisContext *listener; /* to all that is told to sessions */
static struct port_client holder, waiters[WAITERS];

static void open_with(struct port_client *client, int lease_ms)
{
    static char uri[128];
    snprintf(uri, sizeof uri, "redis://127.0.0.1:%u?session=%dms", (unsigned)zk_place_port(),
             lease_ms);
    port_open_session(client, uri);
}

static redisReply *next_reply(void)
{
    redisReply *reply = NULL;
    assert_int_equal(redisGetReply(listener, (void **)&reply), REDIS_OK);
    return reply;
}

static int listen_to_all(void **state)
{
    (void)state;
    listener = redisConnect("127.0.0.1", zk_place_port());
    assert_int_equal(listener->err, 0);
    freeReplyObject(redisCommand(listener, "PSUBSCRIBE {mortise/}c:*"));
    return 0;
}

static int listen_no_more(void **state)
{
    (void)state;
    redisFree(listener);
    return 0;
}

/* How many messages have been published until now, and the last one. */
static int published(char last[256])
{
    redisAppendCommand(listener, "PING");
    for (int count = 0;; count++) {
        redisReply *reply = next_reply();
        bool message = strcmp(reply->element[0]->str, "pmessage") == 0;
        if (message)
            snprintf(last, 256, "%s", reply->element[3]->str);
        freeReplyObject(reply);
        if (!message)
            return count;
    }
}

/* One has it, or as many as there is room for, and the others wait, each of a session and a
   connection of its own. */
static void expect_one_message(const char *queue, const char *kind, uint64_t capacity)
{
    struct mrt_id held[2];
    struct mrt_event views[WAITERS];
    char last[256], expected[2 * MRT_ID_TEXT_SIZE], session[MRT_ID_TEXT_SIZE],
        ticket[MRT_ID_TEXT_SIZE];
    open_with(&holder, LEASE_MS);
    for (uint64_t i = 0; i < capacity; i++) {
        held[i] = port_id();
        port_append_weight(&holder, queue, held[i], kind, capacity, 1);
    }
    for (int i = 0; i < WAITERS; i++) {
        open_with(&waiters[i], LEASE_MS);
        views[i] = port_append_weight(&waiters[i], queue, port_id(), kind, capacity, 1);
        assert_false(mrt_rule_grants(views[i].weight_ahead, 1, capacity));
    }
    published(last);
    assert_int_equal(port_remove(&holder, queue, held[0], 0).type, MRT_REMOVED);
    assert_int_equal(published(last), 1);
    mrt_id_format(waiters[0].session, session);
    mrt_id_format(views[0].ticket, ticket);
    snprintf(expected, sizeof expected, "%s %s", session, ticket);
    assert_int_equal(strncmp(last, expected, strlen(expected)), 0);
    assert_true(port_wait_told(&waiters[0], views[0].ticket, 20 * MRT_SECOND));
    for (int i = 0; i < WAITERS; i++) {
        port_stop(&waiters[i]);
        port_close(&waiters[i]);
    }
    port_stop(&holder);
    port_close(&holder);
}

static void test_a_release_wakes_only_the_waiter_that_is_granted(void **state)
{
    (void)state;
    expect_one_message("told/mutex", "mutex", 1);
    expect_one_message("told/semaphore", "semaphore", 2);
}

/* All but the last, which gets no message: the release publishes to the first. */
static void test_l7_waiters_that_die_do_not_stall_those_behind(void **state)
{
    (void)state;
    struct mrt_event view = {0};
    struct mrt_id held = port_id();
    open_with(&holder, LEASE_MS);
    port_append(&holder, "dead", held);
    for (int i = 0; i < WAITERS; i++) {
        open_with(&waiters[i], i < WAITERS - 1 ? SHORT_LEASE_MS : LEASE_MS);
        view = port_append(&waiters[i], "dead", port_id());
        assert_false(mrt_rule_grants(view.weight_ahead, 1, 1));
    }
    for (int i = 0; i < WAITERS - 1; i++)
        port_close(&waiters[i]);
    assert_int_equal(port_remove(&holder, "dead", held, 0).type, MRT_REMOVED);
    port_wait_granted(&waiters[WAITERS - 1], "dead", view, 1, 1, 20 * MRT_SECOND);
    assert_int_equal(port_tickets(&holder, "dead"), 1);
    port_stop(&waiters[WAITERS - 1]);
    port_close(&waiters[WAITERS - 1]);
    port_stop(&holder);
    port_close(&holder);
}

static void test_l7_capabilities_say_which_locks_are_fair(void **state)
{
    (void)state;
    char uri[64];
    mortise_capabilities can = {.size = sizeof can};
    snprintf(uri, sizeof uri, "redis://127.0.0.1:%u", (unsigned)zk_place_port());
    mortise_client *client = zk_open(uri);
    assert_int_equal(mortise_get_capabilities(client, &can), MORTISE_OK);
    assert_int_equal(can.fair, 1);
    assert_int_equal(can.exclusive_fair, 0);
    mortise_close(client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, listen_to_all, listen_no_more)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_release_wakes_only_the_waiter_that_is_granted),
        TEST(test_l7_waiters_that_die_do_not_stall_those_behind),
        TEST(test_l7_capabilities_say_which_locks_are_fair),
    };
    zk_place_settings("", "redis");
    return cmocka_run_group_tests(tests, zk_place_start, zk_place_stop);
}
