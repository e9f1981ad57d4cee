/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of waiting in a store's URI, as the engine is given them. */
#include "cmocka_all.h"

#include "base/uri.h"
#include "io/policy.h"

#include <stdio.h>
#include <string.h>

static int read_policy(const char *query, struct mrt_engine_config *config)
{
    struct mrt_uri uri;
    char text[256];
    snprintf(text, sizeof text, "a:b?%s", query);
    assert_int_equal(mrt_uri_parse(text, &uri), MORTISE_OK);
    return mrt_policy_read(&uri, config);
}

static void test_values_that_are_not_given_keep_their_default(void **state)
{
    (void)state;
    struct mrt_engine_config config = {.give_up = 7, .recheck = 0};
    assert_int_equal(read_policy("namespace=x", &config), MORTISE_OK);
    assert_int_equal(config.give_up, 7);
    assert_int_equal(config.recheck, 0);
    assert_int_equal(config.pause_min, 0);
    assert_int_equal(config.pause_max, 0);
    assert_int_equal(config.attempts_max, 0);
    assert_int_equal(config.queue_max, 0);
    assert_int_equal(config.tickets_max, 20000);
}

static void test_h5_f8_f9_values_reach_the_engine(void **state)
{
    (void)state;
    struct mrt_engine_config config = {.give_up = 7};
    assert_int_equal(
        read_policy("recheck=50ms&retry=20ms..3s&attempts=12&give_up=30s&queue_max=9&tickets_max=7",
                    &config),
        MORTISE_OK);
    assert_int_equal(config.recheck, 50 * MRT_MILLISECOND);
    assert_int_equal(config.pause_min, 20 * MRT_MILLISECOND);
    assert_int_equal(config.pause_max, 3 * MRT_SECOND);
    assert_int_equal(config.attempts_max, 12);
    assert_int_equal(config.give_up, 30 * MRT_SECOND);
    assert_int_equal(config.queue_max, 9);
    assert_int_equal(config.tickets_max, 7);
}

static void test_the_bounds_themselves_are_allowed(void **state)
{
    (void)state;
    struct mrt_engine_config config = {0};
    static const char *const good[] = {
        "recheck=5s",    "recheck=5000ms", "retry=1ms..1ms",
        "retry=1s..60s", "attempts=1",     "attempts=1000",
        "give_up=100ms", "give_up=3600s",  "queue_max=999999999999999999"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_int_equal(read_policy(good[i], &config), MORTISE_OK);
}

static void test_values_out_of_bounds_are_refused_with_the_reason(void **state)
{
    (void)state;
    struct mrt_engine_config config = {0};
    static const char *const bad[] = {
        "recheck=49ms",        "recheck=5001ms",       "recheck=5",
        "recheck=s",           "recheck=-5s",          "recheck=1.5s",
        "recheck=5s ",         "recheck=9999999999ms", "retry=10ms",
        "retry=1001ms..2s",    "retry=1ms..61s",       "retry=20ms..10ms",
        "retry=0ms..1s",       "retry=1ms...1s",       "retry=1ms..1s..2s",
        "attempts=0",          "attempts=1001",        "attempts=1x",
        "attempts=",           "give_up=99ms",         "give_up=3601s",
        "give_up=1m",          "queue_max=0",          "tickets_max=0",
        "tickets_max=1000001", "queue_max=x",          "queue_max=9999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(read_policy(bad[i], &config), MORTISE_EURI);
        assert_non_null(strstr(mortise_error_detail(), bad[i]));
        assert_non_null(strstr(mortise_error_detail(), " is not "));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_that_are_not_given_keep_their_default),
        cmocka_unit_test(test_h5_f8_f9_values_reach_the_engine),
        cmocka_unit_test(test_the_bounds_themselves_are_allowed),
        cmocka_unit_test(test_values_out_of_bounds_are_refused_with_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
