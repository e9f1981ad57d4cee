/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims on a real Redis server: what goes over the wire, and what becomes of the key. How a
 * holder loses it is in redis_claim_loss.c, what comes in one order only in redis_claim_port.c; the
 * programs that keep their locks alike are in test/interop.
 */
#include "live/redis_claim.h"

#include "defect_run.h"

#include <stdatomic.h>

struct redis_proxy *proxy;
redisContext *raw;
mortise_client *client, *other;

const char *ask(const char *command)
{
    static char answer[256];
    redisReply *reply = redisCommand(raw, command);
    assert_non_null(reply);
    if (reply->type == REDIS_REPLY_INTEGER)
        snprintf(answer, sizeof answer, "%lld", reply->integer);
    else
        snprintf(answer, sizeof answer, "%s", reply->str ? reply->str : "");
    freeReplyObject(reply);
    return answer;
}

static mortise_client *open_for(uint16_t port, int lease_ms)
{
    char uri[128];
    snprintf(uri, sizeof uri, "redis://127.0.0.1:%u?session=%dms&namespace=", (unsigned)port,
             lease_ms);
    return zk_open(uri);
}

mortise_client *open_at(uint16_t port)
{
    return open_for(port, LEASE_MS);
}

void be_patient(void)
{
    mortise_close(client);
    client = open_for(redis_proxy_port(proxy), PORT_LEASE_MS);
}

int set_up(void **state)
{
    (void)state;
    raw = redisConnect("127.0.0.1", zk_place_port());
    assert_int_equal(raw->err, 0);
    ask("FLUSHALL");
    ask("CONFIG SET min-replicas-to-write 0");
    proxy = redis_proxy_start(zk_place_port());
    client = open_at(redis_proxy_port(proxy));
    other = open_at(zk_place_port());
    return 0;
}

int tear_down(void **state)
{
    (void)state;
    redis_proxy_stall(proxy, false);
    mortise_close(client);
    mortise_close(other);
    redis_proxy_stop(proxy);
    redisFree(raw);
    return 0;
}

mortise_lock *lock_of(mortise_client *of)
{
    mortise_lock *lock = NULL;
    assert_int_equal(mortise_exclusive_new(of, KEY, NULL, &lock), MORTISE_OK);
    return lock;
}

void let_server_work(void)
{
    ask("PING");
    ask("PING");
}

static unsigned sets(void)
{
    return redis_proxy_seen(proxy, "\r\n$3\r\nSET\r\n");
}

/* Of this key, by a script that the server has. */
static unsigned extensions(void)
{
    char part[128];
    snprintf(part, sizeof part, "%s\r\n$1\r\n1\r\n$12\r\n" KEY "\r\n", DIGEST(CLAIM_EXTEND));
    return redis_proxy_seen(proxy, part);
}

/* In vain. In a slow moment it is the store that is told of. */
static void try_for(mortise_lock *lock, int ms)
{
    mortise_hold hold;
    int error = mortise_acquire_for(lock, ms, &hold);
    assert_true(error == MORTISE_ETIMEOUT || error == MORTISE_EDISCONNECTED);
}

static void wait_for_key(const char *value)
{
    int64_t end = zk_now_ms() + 10000;
    while (strcmp(ask("GET " KEY), value) != 0)
        assert_true(zk_now_ms() < end);
}

static void test_l1_l2_l4_rd_07_one_set_with_a_token_of_160_bits(void **state)
{
    (void)state;
    char tokens[2][64];
    for (int i = 0; i < 2; i++) {
        mortise_hold hold = zk_acquire(lock_of(client));
        snprintf(tokens[i], sizeof tokens[i], "%s", ask("GET " KEY));
        assert_int_equal(strspn(tokens[i], "0123456789abcdef"), 40);
        assert_int_equal(strlen(tokens[i]), 40);
        assert_in_range(strtol(ask("PTTL " KEY), NULL, 10), LEASE_MS / 2, LEASE_MS);
        assert_true(mortise_hold_fence(hold) > 0);
        mortise_release(hold);
        wait_for_key("");
    }
    assert_string_not_equal(tokens[0], tokens[1]);
    char wire[256];
    for (int i = 0; i < 2; i++) {
        snprintf(wire, sizeof wire,
                 "*6\r\n$3\r\nSET\r\n$12\r\n" KEY "\r\n$40\r\n%s\r\n$2\r\nNX\r\n$2\r\nPX\r\n"
                 "$4\r\n1500\r\n",
                 tokens[i]);
        assert_int_equal(redis_proxy_seen(proxy, wire), 1);
    }
    assert_int_equal(sets(), 2);
}

static void test_rd_21_fences_rise_over_both_clients_without_a_promise_to_last(void **state)
{
    (void)state;
    mortise_capabilities can = {.size = sizeof can};
    assert_int_equal(mortise_get_capabilities(client, &can), MORTISE_OK);
    assert_int_equal(can.fence, 1);
    assert_int_equal(can.durable_fence, 0);
    uint64_t last = 0;
    for (int i = 0; i < 20; i++) {
        mortise_hold hold = zk_acquire(lock_of(i % 2 ? client : other));
        assert_true(mortise_hold_fence(hold) > last);
        last = mortise_hold_fence(hold);
        mortise_release(hold);
    }
}

static void test_rd_08_a_lost_reply_to_set_is_read_back(void **state)
{
    (void)state;
    redis_proxy_order(proxy, REDIS_SWALLOW, "SET", NULL);
    mortise_hold hold = zk_acquire(lock_of(client));
    assert_true(redis_proxy_done(proxy));
    assert_true(mortise_hold_fence(hold) > 0);
    assert_in_range(sets(), 1, 2); /* not until its end */
    mortise_release(hold);
    wait_for_key("");
}

static void test_rd_10_a_set_that_comes_late_is_not_done(void **state)
{
    (void)state;
    mortise_release(zk_acquire(lock_of(client)));
    wait_for_key("");
    redis_proxy_order(proxy, REDIS_HOLD, "$3\r\nSET\r\n", NULL);
    try_for(lock_of(client), 50);
    assert_true(redis_proxy_done(proxy));
    int64_t begin = zk_now_ms();
    while (redis_proxy_seen(proxy, "KILL") == 0) { /* on the next connection */
        assert_true(zk_now_ms() - begin < 30000);
        if (zk_now_ms() - begin > 5000) { /* a busy machine let the lease end: it needs none */
            mortise_release(zk_acquire(lock_of(client)));
            wait_for_key("");
        }
    }
    let_server_work(); /* which ends the held one */
    redis_proxy_go(proxy);
    let_server_work();
    assert_string_equal(ask("EXISTS " KEY), "0");
}

static void test_l3_rd_12_claims_are_extended_while_they_are_held_and_no_longer(void **state)
{
    (void)state;
    mortise_hold hold = zk_acquire(lock_of(client));
    char token[64];
    snprintf(token, sizeof token, "%s", ask("GET " KEY));
    zk_rest_ms(2 * LEASE_MS);
    ask("SCRIPT FLUSH");
    zk_rest_ms(LEASE_MS);
    assert_string_equal(ask("GET " KEY), token);
    assert_int_equal(mortise_verify(hold, 5000), MORTISE_OK);
    mortise_release(hold);
    wait_for_key("");
    zk_rest_ms(LEASE_MS);
    assert_string_equal(ask("EXISTS " KEY), "0");
}

/* Renewals go on, for another lock. */
static void await_renewals(unsigned count)
{
    int64_t end = zk_now_ms() + 20000;
    redis_proxy_forget(proxy);
    while (redis_proxy_seen(proxy, RENEWAL) < count) {
        assert_true(zk_now_ms() < end);
        zk_rest_ms(5);
    }
}

static void test_rd_12_a_waiter_that_gave_up_neither_polls_nor_extends(void **state)
{
    (void)state;
    mortise_lock *elsewhere;
    assert_int_equal(mortise_exclusive_new(client, "elsewhere", NULL, &elsewhere), MORTISE_OK);
    mortise_hold hold = zk_acquire(elsewhere);
    ask("SET " KEY " theirs PX 60000");
    try_for(lock_of(client), 300);
    await_renewals(1); /* what had been begun is over */
    await_renewals(2);
    assert_int_equal(sets() + extensions(), 0);
    assert_string_equal(ask("GET " KEY), "theirs");
    ask("DEL " KEY);
    await_renewals(2);
    assert_string_equal(ask("EXISTS " KEY), "0");
    assert_int_equal(sets() + extensions(), 0);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
}

static void test_l6_a_claim_of_another_program_is_waited_for_by_polling(void **state)
{
    (void)state;
    ask("SET " KEY " theirs PX 400");
    mortise_hold hold = zk_acquire(lock_of(client));
    mortise_release(hold);
    ask("SET " KEY " theirs PX 60000");
    try_for(lock_of(client), 300);
    assert_string_equal(ask("GET " KEY), "theirs");
}

/* Each time it is asked with one SET, at the earliest 50 ms after the last; how it is spread is
   seen at the port. A slow machine asks less often. */
static void test_l6_a_claim_of_another_program_is_polled_at_a_bounded_rate(void **state)
{
    (void)state;
    mortise_hold hold;
    be_patient();
    ask("SET " KEY " theirs PX 60000");
    int64_t began = zk_now_ms();
    assert_int_equal(mortise_acquire_for(lock_of(client), 2000, &hold), MORTISE_ETIMEOUT);
    unsigned most = 2 + (unsigned)(zk_now_ms() - began) / 50;
    assert_in_range(sets(), 4, most);
}

/* A lock of nobody, so nobody gives it back. */
static void test_rd_22_a_key_of_another_type_is_an_error(void **state)
{
    (void)state;
    static const char *const others[] = {"HSET " KEY " a b", "RPUSH " KEY " a"};
    mortise_hold hold;
    be_patient();
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        ask(others[i]);
        assert_int_equal(mortise_acquire(lock_of(client), &hold), MORTISE_EMISMATCH);
        assert_non_null(strstr(mortise_error_detail(), "WRONGTYPE"));
        assert_int_equal(mortise_try_acquire(lock_of(client), &hold), MORTISE_EMISMATCH);
        assert_string_equal(ask("EXISTS " KEY), "1");
        ask("DEL " KEY);
    }
    mortise_release(zk_acquire(lock_of(client)));
}

static void test_the_end_of_a_client_releases_its_claims(void **state)
{
    (void)state;
    zk_acquire(lock_of(client));
    assert_int_equal(zk_tickets(other, KEY), 1);
    mortise_close(client);
    client = open_at(redis_proxy_port(proxy));
    assert_string_equal(ask("EXISTS " KEY), "0");
}

/* ------------------------------------------------------------------ operators */

static int find_fence(void *argument, const mortise_entry *entry)
{
    *(uint64_t *)argument = entry->fence;
    return 0;
}

/* The key as an operator sees it; 0: a stranger's, or nobody's. */
static uint64_t shown_fence(void)
{
    uint64_t fence = 0;
    assert_int_equal(mortise_list(other, KEY, find_fence, &fence), MORTISE_OK);
    return fence;
}

static void wait_until_shown(mortise_hold hold)
{
    int64_t end = zk_now_ms() + 20000;
    while (shown_fence() != mortise_hold_fence(hold))
        assert_true(zk_now_ms() < end);
}

static void count_request(void *argument, mortise_hold hold)
{
    (void)hold;
    ++*(atomic_int *)argument;
}

static void wait_for_count(atomic_int *count, int least)
{
    int64_t end = zk_now_ms() + 20000;
    while (*count < least) {
        assert_true(zk_now_ms() < end);
        zk_rest_ms(1);
    }
}

static void test_f22_a_holder_of_a_claim_gets_a_revoke_request(void **state)
{
    (void)state;
    atomic_int asked = 0;
    mortise_hold hold = zk_acquire(lock_of(client));
    assert_int_equal(mortise_on_revoke(hold, count_request, &asked), MORTISE_OK);
    wait_until_shown(hold);
    assert_int_equal(mortise_revoke(other, KEY, mortise_hold_fence(hold) + 1), MORTISE_ENOTHELD);
    assert_int_equal(mortise_revoke(other, KEY, mortise_hold_fence(hold)), MORTISE_OK);
    wait_for_count(&asked, 1);
    redis_proxy_drop_pushes(proxy, true); /* the next renewal tells it then */
    assert_int_equal(mortise_revoke(other, KEY, 0), MORTISE_OK);
    wait_for_count(&asked, 2);
    redis_proxy_drop_pushes(proxy, false);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    wait_for_key("");
    hold = zk_acquire(lock_of(client));
    wait_until_shown(hold); /* which nobody has asked for */
    atomic_int none = 0;
    assert_int_equal(mortise_on_revoke(hold, count_request, &none), MORTISE_OK);
    assert_int_equal(mortise_verify(hold, 20000), MORTISE_OK);
    assert_int_equal(none, 0);
}

static void test_n_a_claim_is_broken_only_by_its_fence(void **state)
{
    (void)state;
    mortise_hold hold = zk_acquire(lock_of(client)), again;
    wait_until_shown(hold); /* at the first renewal */
    uint64_t fence = mortise_hold_fence(hold);
    assert_int_equal(mortise_break(other, KEY, fence + 1), MORTISE_ENOTHELD);
    assert_int_equal(mortise_break(other, KEY, fence), MORTISE_OK);
    assert_int_equal(mortise_try_acquire(lock_of(other), &again), MORTISE_OK);
    assert_int_equal(mortise_verify(hold, 20000), MORTISE_ELOST);
    assert_int_equal(mortise_break(client, KEY, fence), MORTISE_ENOTHELD);
    assert_int_equal(mortise_verify(again, 20000), MORTISE_OK);
    mortise_release(again);
}

static void test_n_rd_06_an_operator_does_not_break_a_claim_of_another_program(void **state)
{
    (void)state;
    mortise_hold hold = zk_acquire(lock_of(client));
    wait_until_shown(hold);
    uint64_t fence = mortise_hold_fence(hold);
    ask("SET " KEY " theirs PX 60000");
    assert_int_equal(shown_fence(), 0);
    assert_int_equal(mortise_break(other, KEY, fence), MORTISE_ENOTHELD);
    assert_int_equal(mortise_revoke(other, KEY, fence), MORTISE_ENOTHELD);
    assert_int_equal(mortise_revoke(other, KEY, 0), MORTISE_ENOTHELD);
    assert_string_equal(ask("GET " KEY), "theirs");
    assert_int_equal(zk_tickets(other, KEY), 1);
}

/* ------------------------------------------------------------------ refused commands */

const struct refusal refusals[REFUSALS] = {
    {"-LOADING x", MORTISE_ESTORE},     {"-MISCONF x", MORTISE_ESTORE},
    {"-OOM x", MORTISE_ESTORE},         {"-READONLY x", MORTISE_ESTORE},
    {"-NOREPLICAS x", MORTISE_ESTORE},  {"-BUSY x", MORTISE_ESTORE},
    {"-MASTERDOWN x", MORTISE_ESTORE},  {"-MOVED 1 h:1", MORTISE_ENOTSUPPORTED},
    {"-NOPERM x", MORTISE_EPERMISSION},
};

static void test_rd_15_rd_16_a_refused_set_or_release_leaves_no_key(void **state)
{
    (void)state;
    mortise_hold hold;
    be_patient();
    mortise_release(zk_acquire(lock_of(client))); /* the scripts are known then */
    wait_for_key("");
    for (size_t i = 0; i < REFUSALS; i++) {
        redis_proxy_order(proxy, REDIS_ANSWER, "\r\n$3\r\nSET\r\n", refusals[i].text);
        assert_int_equal(mortise_try_acquire(lock_of(client), &hold), refusals[i].error);
        assert_string_equal(ask("EXISTS " KEY), "0");
        redis_proxy_order(proxy, REDIS_ANSWER, "INCR", refusals[i].text);
        assert_int_equal(mortise_try_acquire(lock_of(client), &hold), MORTISE_OK);
        assert_true(redis_proxy_done(proxy)); /* the key was ours, without a fence */
        assert_true(mortise_hold_fence(hold) > 0);
        redis_proxy_order(proxy, REDIS_ANSWER, DIGEST(CLAIM_DELETE), refusals[i].text);
        mortise_release(hold);
        wait_for_key("");
        assert_true(redis_proxy_done(proxy));
    }
}

static const struct CMUnitTest tests[] = {
    TEST(test_l1_l2_l4_rd_07_one_set_with_a_token_of_160_bits),
    TEST(test_rd_21_fences_rise_over_both_clients_without_a_promise_to_last),
    TEST(test_rd_08_a_lost_reply_to_set_is_read_back),
    TEST(test_rd_10_a_set_that_comes_late_is_not_done),
    TEST(test_l3_rd_12_claims_are_extended_while_they_are_held_and_no_longer),
    TEST(test_rd_12_a_waiter_that_gave_up_neither_polls_nor_extends),
    TEST(test_l6_a_claim_of_another_program_is_waited_for_by_polling),
    TEST(test_l6_a_claim_of_another_program_is_polled_at_a_bounded_rate),
    TEST(test_rd_22_a_key_of_another_type_is_an_error),
    TEST(test_f22_a_holder_of_a_claim_gets_a_revoke_request),
    TEST(test_n_a_claim_is_broken_only_by_its_fence),
    TEST(test_n_rd_06_an_operator_does_not_break_a_claim_of_another_program),
    TEST(test_rd_15_rd_16_a_refused_set_or_release_leaves_no_key),
    TEST(test_the_end_of_a_client_releases_its_claims),
};

static int run_all(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL) + run_losses() + run_at_port();
}

#ifdef MRT_DEFECTS

static int run(void)
{
    return defect_run("redis_claim", run_all);
}
#else
static int run(void)
{
    return run_all();
}
#endif

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "hold") == 0)
        return hold_claim(argv[2]);
    zk_place_settings("", "redis");
    if (zk_place_start(NULL) < 0)
        return 1;
    int failed = run();
    zk_place_stop(NULL);
    return failed != 0;
}
