/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redis servers whose wall clocks are set while locks are held: five, the first of them also
 * alone. doc/redis.md says how a step changes a lease; this test shows it, and the callbacks.
 */
#include "cmocka_all.h"
#include "live/stall.h"
#include "live/zookeeper_place.h"

#include <stdio.h>
#include <string.h>

#define LEASE_MS 1500

static char said[4096]; /* in the log of the newest client */

static void keep_log(void *argument, const char *message)
{
    size_t length = strlen(said);
    (void)argument;
    snprintf(said + length, sizeof said - length, "%s\n", message);
}

static mortise_client *open_with_log(const char *uri)
{
    mortise_client *client;
    const mortise_client_options options = {.size = sizeof options, .log = keep_log};
    said[0] = '\0';
    assert_int_equal(mortise_open(uri, &options, &client), MORTISE_OK);
    return client;
}

static const char *alone(void)
{
    static char uri[128];
    snprintf(uri, sizeof uri, "redis://127.0.0.1:%u?session=%dms", (unsigned)zk_place_port(),
             LEASE_MS);
    return uri;
}

static const char *together(void)
{
    static char uri[512];
    const char *urls = zk_place_servers("urls");
    snprintf(uri, sizeof uri, "redlock:%.*s?answer=500ms&session=%dms", (int)strcspn(urls, "\n"),
             urls, LEASE_MS);
    return uri;
}

static bool is_set[5];

static void set_clock(int server, const char *to)
{
    is_set[server] = strcmp(to, "+0") != 0;
    char number_and_time[32];
    snprintf(number_and_time, sizeof number_and_time, "%d %s", server, to);
    zk_place_servers_at("clock", number_and_time);
}

static void restore(void)
{
    for (int i = 0; i < 5; i++)
        if (is_set[i])
            set_clock(i, "+0");
}

static int restore_after(void **state)
{
    (void)state;
    restore();
    return 0;
}

static void await_loss(mortise_hold hold)
{
    int64_t end = zk_now_ms() + 20000;
    while (mortise_is_held(hold)) {
        assert_true(zk_now_ms() < end);
        zk_rest_ms(5);
    }
}

static bool is_kept(mortise_hold hold, int ms)
{
    for (int64_t end = zk_now_ms() + ms; zk_now_ms() < end; zk_rest_ms(5))
        if (mortise_is_held(hold) != 1)
            return false;
    return true;
}

static bool is_noted(const char *part, int ms)
{
    int64_t end = zk_now_ms() + ms;
    while (!strstr(said, part) && zk_now_ms() < end)
        zk_rest_ms(5);
    return strstr(said, part);
}

/* The first of several attempts. */
static void is_lost_in_one(bool (*is_so)(void))
{
    int attempts = 1;
    while (!is_so()) {
        assert_true(++attempts <= 6);
        restore();
    }
}

/* Whether the step was noted in time, before the hold was lost without it: the machine may be busy.
 */
static bool is_lost_by_a_step(bool claim)
{
    mortise_lock *lock;
    mortise_hold again;
    mortise_client *client = open_with_log(alone()), *other = zk_open(alone());
    assert_int_equal(claim ? mortise_exclusive_new(client, "m", NULL, &lock)
                           : mortise_mutex_new(client, "m", NULL, &lock),
                     MORTISE_OK);
    mortise_hold hold = zk_acquire(lock);
    zk_rest_ms(LEASE_MS);
    bool kept = mortise_is_held(hold);
    set_clock(0, "+3600");
    int64_t began = zk_now_ms();
    await_loss(hold);
    bool in_time = kept && zk_now_ms() - began < 2 * LEASE_MS && is_noted("clock moved", 3000);
    assert_int_equal(claim ? mortise_exclusive_new(other, "m", NULL, &lock)
                           : mortise_mutex_new(other, "m", NULL, &lock),
                     MORTISE_OK);
    again = zk_acquire(lock);
    assert_true(mortise_hold_fence(again) > mortise_hold_fence(hold));
    mortise_close(client);
    mortise_close(other);
    return in_time;
}

static bool a_mutex_is_lost_by_a_step(void)
{
    return is_lost_by_a_step(false);
}

static bool a_claim_is_lost_by_a_step(void)
{
    return is_lost_by_a_step(true);
}

static void test_rd_03_a_step_ahead_is_a_loss_that_is_told(void **state)
{
    (void)state;
    is_lost_in_one(a_mutex_is_lost_by_a_step);
}

static void test_rd_03_a_clock_set_ahead_is_a_loss_of_a_claim_that_is_told(void **state)
{
    (void)state;
    is_lost_in_one(a_claim_is_lost_by_a_step);
}

/* And ends, whatever the holder has: the other one waits for it. */
static bool outlives_a_step_back(void)
{
    mortise_client *client = open_with_log(alone()), *other = zk_open(alone());
    mortise_hold hold = zk_acquire(zk_mutex(client, "m"));
    set_clock(0, "-3600");
    bool kept = is_kept(hold, 2 * LEASE_MS) && strstr(said, "clock moved");
    mortise_close(client);
    hold = zk_acquire(zk_mutex(other, "m"));
    assert_true(mortise_hold_fence(hold) > 0);
    mortise_close(other);
    return kept;
}

static void test_rd_03_after_a_step_back_a_session_still_ends_with_its_lease(void **state)
{
    (void)state;
    assert_true(stall_succeeds(outlives_a_step_back, restore));
}

static bool a_stop_is_noted_and_no_loss(void)
{
    mortise_client *client = open_with_log(alone());
    mortise_hold hold = zk_acquire(zk_mutex(client, "m"));
    set_clock(0, "stop");
    bool noted = is_noted("clock moved by", 20000) && is_kept(hold, LEASE_MS);
    mortise_close(client);
    return noted;
}

static void test_rd_04_a_clock_that_stands_still_is_reported(void **state)
{
    (void)state;
    assert_true(stall_succeeds(a_stop_is_noted_and_no_loss, restore));
}

/* A member that comes up after the round has no part in it. */
static mortise_hold acquire_at_all(mortise_client *client)
{
    int64_t end = zk_now_ms() + 20000;
    for (;;) {
        char uri[64];
        const char *at = zk_place_servers("urls");
        mortise_hold hold = zk_acquire(zk_mutex(client, "m"));
        int have = 0;
        for (int i = 0; i < 5; i++, at += strcspn(at, ",\n") + 1) {
            snprintf(uri, sizeof uri, "%.*s", (int)strcspn(at, ",\n"), at);
            mortise_client *one = zk_open(uri);
            have += zk_tickets(one, "m");
            mortise_close(one);
        }
        if (have == 5)
            return hold;
        assert_true(zk_now_ms() < end);
        mortise_release(hold);
    }
}

static bool outlives_steps_of_a_minority(void)
{
    mortise_hold again;
    mortise_client *client = zk_open(together()), *other = zk_open(together());
    mortise_hold hold = acquire_at_all(client);
    set_clock(0, "+3600");
    set_clock(1, "+3600");
    bool kept = is_kept(hold, 2 * LEASE_MS) &&
                mortise_try_acquire(zk_mutex(other, "m"), &again) == MORTISE_EBUSY;
    mortise_close(client);
    mortise_close(other);
    return kept;
}

static void test_m4_rd_03_a_minority_of_clocks_takes_no_lock_away(void **state)
{
    (void)state;
    assert_true(stall_succeeds(outlives_steps_of_a_minority, restore));
}

static void test_m4_rd_03_a_majority_of_clocks_set_ahead_is_a_loss_that_is_told(void **state)
{
    (void)state;
    mortise_client *client = zk_open(together()), *other = zk_open(together());
    mortise_hold hold = zk_acquire(zk_mutex(client, "m"));
    for (int i = 0; i < 3; i++)
        set_clock(i, "+3600");
    await_loss(hold);
    zk_acquire(zk_mutex(other, "m"));
    mortise_close(client);
    mortise_close(other);
}

#define TEST(name) cmocka_unit_test_teardown(name, restore_after)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_rd_03_a_step_ahead_is_a_loss_that_is_told),
        TEST(test_rd_03_a_clock_set_ahead_is_a_loss_of_a_claim_that_is_told),
        TEST(test_rd_03_after_a_step_back_a_session_still_ends_with_its_lease),
        TEST(test_rd_04_a_clock_that_stands_still_is_reported),
        TEST(test_m4_rd_03_a_minority_of_clocks_takes_no_lock_away),
        TEST(test_m4_rd_03_a_majority_of_clocks_set_ahead_is_a_loss_that_is_told),
    };
    zk_place_settings("--clock " SET_CLOCK, "redis5");
    if (zk_place_start(NULL) < 0)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    zk_place_stop(NULL);
    return failed != 0;
}
