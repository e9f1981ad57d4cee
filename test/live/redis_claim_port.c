/*
 * Claims on a real Redis server, at the port: nothing comes by itself, so each test has its own
 * order of renewals, releases and answers.
 */
#include "live/redis_claim.h"

#include "conform/port_client.h"

#include <signal.h>

static struct port_client port;

static struct mrt_id claim_at_port(const char *key)
{
    struct mrt_id ticket = port_id();
    struct mrt_event view = port_append_weight(&port, key, ticket, "exclusive", 1, 1);
    assert_int_equal(view.weight_ahead, 0);
    return ticket;
}

static void open_at_port(struct port_client *of, uint16_t at)
{
    static char uri[128];
    snprintf(uri, sizeof uri, "redis://127.0.0.1:%u?session=%dms", (unsigned)at, PORT_LEASE_MS);
    port_kind = "exclusive";
    port_open_session(of, uri);
}

static void open_port(void)
{
    open_at_port(&port, zk_place_port());
}

/* How many listen for that key. */
static long long listeners(const char *key)
{
    redisReply *reply = redisCommand(raw, "PUBSUB NUMSUB {mortise/}w:%s", key);
    assert_int_equal(reply->elements, 2);
    long long count = reply->element[1]->integer;
    freeReplyObject(reply);
    return count;
}

/* The port asks for nothing by itself, so who is told was told by who gave it back. */
static void test_l6_who_waits_for_one_of_ours_is_told(void **state)
{
    (void)state;
    struct port_client waiter;
    open_port();
    open_at_port(&waiter, zk_place_port());
    struct mrt_id held = claim_at_port("told");
    struct mrt_event view = port_append(&waiter, "told", port_id());
    assert_int_equal(view.weight_ahead, 1);
    for (int64_t end = zk_now_ms() + 20000; listeners("told") == 0;) {
        assert_true(zk_now_ms() < end);
        assert_false(port_wait(&waiter, MRT_WAKE, view.ticket, MRT_MILLISECOND, NULL));
    }
    assert_int_equal(port_remove(&port, "told", held, 0).type, MRT_REMOVED);
    assert_true(port_wait(&waiter, MRT_WAKE, view.ticket, 20 * MRT_SECOND, NULL));
    view = port_refresh(&waiter, "told", &view);
    assert_int_equal(view.weight_ahead, 0);
    port_stop(&waiter);
    port_close(&waiter);
    port_stop(&port);
    port_close(&port);
}

static long connections(void)
{
    redisReply *reply = redisCommand(raw, "INFO stats");
    const char *found = strstr(reply->str, "total_connections_received:");
    assert_non_null(found);
    long count = strtol(strchr(found, ':') + 1, NULL, 10);
    freeReplyObject(reply);
    return count;
}

static enum mrt_event_type renewal_at_port(void)
{
    struct mrt_command renewal = port_command(&port, MRT_RENEW);
    return port_send(&port, &renewal).type;
}

/* Behind the removal of a claim comes a renewal, which finds the claim there still; and it has to
   be sent again, when the claim is not there any more. */
static void test_rd_14_a_renewal_of_what_is_released_is_not_sent_again(void **state)
{
    (void)state;
    open_port();
    struct mrt_id first = claim_at_port("first"), second = claim_at_port("second");
    assert_int_equal(renewal_at_port(), MRT_RENEWED);
    long before = connections();
    ask("SCRIPT FLUSH");
    freeReplyObject(redisCommand(raw, "SCRIPT LOAD %b",
                                 mrt_redis_scripts[MRT_REDIS_CLAIM_DELETE].text,
                                 mrt_redis_scripts[MRT_REDIS_CLAIM_DELETE].length));
    struct mrt_command removal = port_command(&port, MRT_REMOVE);
    removal.ticket = first;
    removal.queue = "first";
    assert_true(port.ops->submit(port.store, &removal, MRT_TIME_NEVER));
    assert_int_equal(renewal_at_port(), MRT_UNKNOWN); /* it proves nothing yet */
    assert_int_equal(renewal_at_port(), MRT_RENEWED);
    assert_string_equal(ask("EXISTS first second"), "1");
    assert_int_equal(port_remove(&port, "second", second, 0).type, MRT_REMOVED);
    assert_string_equal(ask("EXISTS first second"), "0");
    assert_int_equal(connections(), before);
    port_stop(&port);
    port_close(&port);
}

/* Nor anything else of the session, until the loss has been seen. */
static void test_rd_11_rd_22_a_renewal_proves_no_claim_whose_key_is_gone(void **state)
{
    (void)state;
    open_port();
    struct mrt_event view = {.ticket = claim_at_port("first")};
    struct mrt_id second = claim_at_port("second");
    while (renewal_at_port() != MRT_RENEWED) /* the scripts are known then */
        continue;
    ask("DEL first");
    assert_int_equal(renewal_at_port(), MRT_UNKNOWN);
    assert_true(port_wait(&port, MRT_WAKE, view.ticket, 20 * MRT_SECOND, NULL));
    assert_int_equal(port_refresh(&port, "first", &view).type, MRT_GONE);
    assert_int_equal(renewal_at_port(), MRT_RENEWED);
    assert_int_equal(port_remove(&port, "second", second, 0).type, MRT_REMOVED);
    port_stop(&port);
    port_close(&port);
}

static void test_rd_11_rd_15_an_extension_that_is_refused_proves_nothing(void **state)
{
    (void)state;
    open_at_port(&port, redis_proxy_port(proxy));
    claim_at_port("first");
    while (renewal_at_port() != MRT_RENEWED) /* the scripts are known then */
        continue;
    for (size_t i = 0; i < REFUSALS; i++) {
        redis_proxy_order(proxy, REDIS_ANSWER, DIGEST(CLAIM_EXTEND), refusals[i].text);
        assert_int_equal(renewal_at_port(), MRT_UNKNOWN);
        assert_true(redis_proxy_done(proxy));
        assert_int_equal(renewal_at_port(), MRT_RENEWED);
    }
    assert_string_equal(ask("EXISTS first"), "1");
    port_stop(&port);
    port_close(&port);
}

static void test_claims_of_a_session_that_was_lost_are_given_back(void **state)
{
    (void)state;
    open_port();
    claim_at_port("first");
    ask("DEL {mortise/}sessions");
    struct mrt_command renewal = port_command(&port, MRT_RENEW);
    assert_int_equal(port_send(&port, &renewal).error, MORTISE_ELOST);
    assert_int_equal(port_start(&port).type, MRT_STARTED); /* which stands behind it */
    assert_string_equal(ask("EXISTS first"), "0");
    port_stop(&port);
    port_close(&port);
}

/* Nobody reads that the server has gone, before the second command is written. */
static void test_rd_19_a_write_to_a_server_that_has_gone_is_only_an_error(void **state)
{
    (void)state;
    struct mrt_command commands[2];
    signal(SIGPIPE, SIG_DFL);
    open_port();
    zk_place_server("kill", 0);
    for (int i = 0; i < 2; i++) {
        commands[i] = port_command(&port, MRT_RENEW);
        assert_true(port.ops->submit(port.store, &commands[i], MRT_TIME_NEVER));
        zk_rest_ms(50);
    }
    zk_place_server("restart", 0);
    commands[0] = port_command(&port, MRT_RENEW);
    assert_int_equal(port_send(&port, &commands[0]).error, MORTISE_ELOST);
    port_close(&port);
    signal(SIGPIPE, SIG_IGN);
}

static const struct CMUnitTest tests[] = {
    TEST(test_l6_who_waits_for_one_of_ours_is_told),
    TEST(test_rd_14_a_renewal_of_what_is_released_is_not_sent_again),
    TEST(test_rd_11_rd_22_a_renewal_proves_no_claim_whose_key_is_gone),
    TEST(test_rd_11_rd_15_an_extension_that_is_refused_proves_nothing),
    TEST(test_claims_of_a_session_that_was_lost_are_given_back),
    TEST(test_rd_19_a_write_to_a_server_that_has_gone_is_only_an_error),
};

int run_at_port(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
