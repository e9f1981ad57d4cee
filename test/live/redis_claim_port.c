/* SPDX-License-Identifier: Apache-2.0 */
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

/* The port asks for nothing by itself, so a wake can only come from the release. */
static void test_l6_a_release_notifies_a_waiter_for_our_claim(void **state)
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

/* The time of the next poll. It is random, so that waiters do not all poll at once. */
static void test_l6_polls_for_a_claim_are_spread(void **state)
{
    (void)state;
    struct port_client waiter;
    mrt_time least = MRT_SECOND, most = 0;
    bool differ = false;
    open_port();
    open_at_port(&waiter, zk_place_port());
    ask("SET spread theirs PX 60000");
    struct mrt_event view = port_append(&port, "spread", port_id());
    struct mrt_event beside = port_append(&waiter, "spread", port_id());
    for (int i = 0; i < 100; i++) {
        assert_int_equal(view.weight_ahead, 1);
        assert_in_range(view.recheck, 50 * MRT_MILLISECOND, 150 * MRT_MILLISECOND);
        least = mrt_time_min(least, view.recheck);
        most = most > view.recheck ? most : view.recheck;
        differ |= view.recheck != beside.recheck;
        view = port_refresh(&port, "spread", &view);
        beside = port_refresh(&waiter, "spread", &beside);
    }
    assert_true(most - least > 50 * MRT_MILLISECOND); /* chance: less than 10^-27 */
    assert_true(differ);
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

/* A script that the server has, as it had it after its first use. */
static void load_script(enum mrt_redis_script_name name)
{
    const struct mrt_redis_script *script = &mrt_redis_scripts[name];
    freeReplyObject(redisCommand(raw, "SCRIPT LOAD %b", script->text, script->length));
}

/* Sends a command of that ticket, and waits for nothing; its serial. */
static uint64_t submit(enum mrt_command_type type, struct mrt_id ticket, const char *key)
{
    struct mrt_command command = port_command(&port, type);
    command.ticket = ticket;
    command.queue = key;
    command.kind = port_kind;
    command.capacity = command.weight = 1;
    assert_true(port.ops->submit(port.store, &command, MRT_TIME_NEVER));
    return command.serial;
}

static uint64_t submit_renewal(void)
{
    static const struct mrt_id none;
    return submit(MRT_RENEW, none, NULL);
}

static void expect_answer(uint64_t serial, enum mrt_event_type type)
{
    assert_int_equal(port_answer(&port, serial).type, type);
}

/* A renewal with two claims, and behind it the removal of the first, while the server knows of
 * their scripts but the removal's: the request for the first is not sent again, because it would
 * come behind the removal; the second is not proven until its own has been. */
static void test_rd_14_a_renewal_of_a_released_claim_is_not_sent_again(void **state)
{
    (void)state;
    open_port();
    struct mrt_id first = claim_at_port("first"), second = claim_at_port("second");
    assert_int_equal(renewal_at_port(), MRT_RENEWED);
    long before = connections();
    ask("SCRIPT FLUSH");
    load_script(MRT_REDIS_CLAIM_DELETE);
    uint64_t renewal = submit_renewal();
    expect_answer(submit(MRT_REMOVE, first, "first"), MRT_REMOVED);
    expect_answer(renewal, MRT_UNKNOWN);
    assert_int_equal(renewal_at_port(), MRT_RENEWED);
    assert_string_equal(ask("EXISTS first second"), "1");
    assert_int_equal(port_remove(&port, "second", second, 0).type, MRT_REMOVED);
    assert_string_equal(ask("EXISTS first second"), "0");
    assert_int_equal(connections(), before);
    port_stop(&port);
    port_close(&port);
}

/* ------------------------------------------------------------------ released, so not renewed */

#define LEFT_MS 20000 /* of a lease: a renewal would make it longer */

static struct mrt_id released, kept; /* the tickets of "first" and "second" */

static long left_of(const char *key)
{
    char command[64];
    snprintf(command, sizeof command, "PTTL %s", key);
    return strtol(ask(command), NULL, 10);
}

/* How often a script has been called for a key. */
static unsigned calls(enum mrt_redis_script_name name, const char *key)
{
    char part[128];
    snprintf(part, sizeof part, "%s\r\n$1\r\n1\r\n$%zu\r\n%s\r\n", mrt_redis_scripts[name].digest,
             strlen(key), key);
    return redis_proxy_seen(proxy, part);
}

static void shorten_leases(void)
{
    char command[64];
    static const char *const keys[] = {"first", "second"};
    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command, "PEXPIRE %s %d", keys[i], LEFT_MS);
        ask(command);
    }
    redis_proxy_forget(proxy);
}

/* Two claims, which have been renewed. */
static void open_two(void)
{
    open_at_port(&port, redis_proxy_port(proxy));
    released = claim_at_port("first");
    kept = claim_at_port("second");
    load_script(MRT_REDIS_CLAIM_DELETE);
    while (renewal_at_port() != MRT_RENEWED) /* the scripts are known then */
        continue;
    assert_true(left_of("first") > LEFT_MS);
    shorten_leases();
}

/* A renewal has been done since: the second is proven by it, and the first not touched. */
static void expect_second_alone_extended(void)
{
    assert_true(left_of("first") <= LEFT_MS); /* or -2: it is gone */
    assert_true(left_of("second") > LEFT_MS);
    assert_int_equal(calls(MRT_REDIS_CLAIM_EXTEND, "first"), 0);
    assert_true(calls(MRT_REDIS_CLAIM_EXTEND, "second") > 0);
}

static void await_order(void)
{
    int64_t end = zk_now_ms() + 20000;
    while (!redis_proxy_done(proxy))
        assert_true(zk_now_ms() < end);
}

static void close_two(void)
{
    assert_int_equal(port_remove(&port, "first", released, 0).type, MRT_REMOVED);
    assert_string_equal(ask("EXISTS first second"), "1");
    assert_int_equal(renewal_at_port(), MRT_RENEWED);
    assert_int_equal(port_remove(&port, "second", kept, 0).type, MRT_REMOVED);
    port_stop(&port);
    port_close(&port);
    assert_string_equal(ask("EXISTS first second"), "0");
}

static void test_rd_12_a_release_that_is_refused_has_ended_renewing(void **state)
{
    (void)state;
    open_two();
    for (size_t i = 0; i < REFUSALS; i++) {
        redis_proxy_order(proxy, REDIS_ANSWER, DIGEST(CLAIM_DELETE), refusals[i].text);
        assert_int_equal(port_remove(&port, "first", released, 0).type, MRT_UNKNOWN);
        assert_true(redis_proxy_done(proxy));
        assert_int_equal(renewal_at_port(), MRT_RENEWED);
        expect_second_alone_extended();
        shorten_leases();
    }
    close_two();
}

static void test_rd_12_a_release_that_comes_late_has_ended_renewing(void **state)
{
    (void)state;
    open_two();
    redis_proxy_order(proxy, REDIS_HOLD, DIGEST(CLAIM_DELETE), NULL);
    uint64_t removal = submit(MRT_REMOVE, released, "first");
    uint64_t renewal = submit_renewal();
    await_order();
    redis_proxy_go(proxy);
    expect_answer(removal, MRT_REMOVED);
    expect_answer(renewal, MRT_RENEWED);
    expect_second_alone_extended();
    close_two();
}

/* Before the server has read the release, or before its answer has come. */
static void test_rd_08_rd_12_a_release_that_is_cut_off_has_ended_renewing(void **state)
{
    (void)state;
    for (int done = 0; done < 2; done++) {
        open_two();
        redis_proxy_order(proxy, done ? REDIS_SWALLOW : REDIS_HOLD, DIGEST(CLAIM_DELETE), NULL);
        uint64_t removal = submit(MRT_REMOVE, released, "first");
        await_order();
        if (!done)
            redis_proxy_cut(proxy);
        expect_answer(removal, MRT_UNKNOWN);
        assert_int_equal(renewal_at_port(), MRT_RENEWED); /* whichever it was */
        expect_second_alone_extended();
        assert_string_equal(ask("EXISTS first"), done ? "0" : "1");
        close_two();
    }
}

/* When the claim is given up, neither the SET nor the command that deletes it has been answered. */
static void test_rd_12_a_claim_that_is_given_up_during_its_set_is_not_renewed(void **state)
{
    (void)state;
    open_two();
    assert_int_equal(port_remove(&port, "first", released, 0).type, MRT_REMOVED);
    redis_proxy_order(proxy, REDIS_HOLD, "\r\n$3\r\nSET\r\n", NULL);
    uint64_t attempt = submit(MRT_APPEND, released, "first");
    uint64_t removal = submit(MRT_REMOVE, released, "first");
    uint64_t renewal = submit_renewal();
    await_order();
    redis_proxy_order(proxy, REDIS_ANSWER, DIGEST(CLAIM_DELETE), "-BUSY x");
    redis_proxy_go(proxy);
    expect_answer(attempt, MRT_VIEW);
    expect_answer(removal, MRT_UNKNOWN);
    expect_answer(renewal, MRT_RENEWED);
    assert_true(redis_proxy_done(proxy));
    assert_string_equal(ask("EXISTS first"), "1");
    shorten_leases();
    assert_int_equal(renewal_at_port(), MRT_RENEWED);
    expect_second_alone_extended();
    close_two();
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
    do {
        ask("PEXPIRE first 1"); /* as its lease ends */
    } while (strcmp(ask("EXISTS first"), "0") != 0);
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
    TEST(test_l6_a_release_notifies_a_waiter_for_our_claim),
    TEST(test_l6_polls_for_a_claim_are_spread),
    TEST(test_rd_12_a_release_that_is_refused_has_ended_renewing),
    TEST(test_rd_12_a_release_that_comes_late_has_ended_renewing),
    TEST(test_rd_08_rd_12_a_release_that_is_cut_off_has_ended_renewing),
    TEST(test_rd_12_a_claim_that_is_given_up_during_its_set_is_not_renewed),
    TEST(test_rd_14_a_renewal_of_a_released_claim_is_not_sent_again),
    TEST(test_rd_11_rd_22_a_renewal_proves_no_claim_whose_key_is_gone),
    TEST(test_rd_11_rd_15_an_extension_that_is_refused_proves_nothing),
    TEST(test_claims_of_a_session_that_was_lost_are_given_back),
    TEST(test_rd_19_a_write_to_a_server_that_has_gone_is_only_an_error),
};

int run_at_port(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
