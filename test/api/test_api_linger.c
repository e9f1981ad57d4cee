/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lingering: a lock that is kept for the next acquire, until somebody else wants it. On every store
 * that reports waiters.
 */
#include "api_fixture.h"

static mortise_lock *lingering(mortise_client *client, const char *name, int64_t linger_ms)
{
    const mortise_lock_options options = {.size = sizeof options, .linger_ms = linger_ms};
    mortise_lock *lock;
    check(mortise_mutex_new(client, name, &options, &lock) == MORTISE_OK);
    return lock;
}

static void test_a_lingering_lock_is_acquired_again_without_a_request(void **state)
{
    (void)state;
    mortise_client *client = api_open(0);
    mortise_lock *lock = lingering(client, "linger/1", 60000);
    api_release(api_acquire(lock));
    uint64_t before = api_stats(client).commands, last = 0;
    int64_t began = mortise_now_ns();
    for (int i = 0; i < 2000; i++) { /* a ticket has at least twice as many fences */
        mortise_hold hold = api_acquire(lock);
        check(mortise_hold_fence(hold) > last);
        last = mortise_hold_fence(hold);
        api_release(hold);
    }
    assert_in_range(api_stats(client).commands - before, 0, api_commands_since(began));
    assert_int_equal(api_tickets(client, "linger/1"), 1);
    api_close(client);
}

static void test_a_waiter_elsewhere_ends_the_lingering(void **state)
{
    (void)state;
    mortise_client *client = api_open(0), *other = api_open(0);
    mortise_lock *lock = lingering(client, "linger/2", 3600000),
                 *others = api_lock(other, "linger/2");
    for (int i = 0; i < 20; i++) {
        mortise_hold hold = api_acquire(lock);
        uint64_t fence = mortise_hold_fence(hold);
        api_release(hold);
        assert_int_equal(mortise_acquire_for(others, 10000, &hold), MORTISE_OK);
        assert_true(mortise_hold_fence(hold) > fence);
        api_release(hold);
    }
    api_close(client);
    api_close(other);
}

/* A lingering client that hears of another looks once at most, and releases the lock. */
static void test_a_waiter_elsewhere_costs_at_most_one_refresh(void **state)
{
    (void)state;
    enum { ROUNDS = 20 };
    mortise_client *client = api_open(0), *other = api_open(0);
    mortise_lock *lock = lingering(client, "linger/7", 3600000),
                 *others = api_lock(other, "linger/7");
    uint64_t spent = 0;
    int64_t began = mortise_now_ns();
    for (int i = 0; i < ROUNDS; i++) {
        mortise_hold hold = api_acquire(lock); /* which is free: nothing follows the grant */
        api_release(hold);
        uint64_t before = api_stats(client).commands;
        assert_int_equal(mortise_acquire_for(others, 10000, &hold), MORTISE_OK);
        spent += api_stats(client).commands - before;
        api_release(hold);
        api_await_tickets(other, "linger/7", 0);
    }
    assert_in_range(spent, ROUNDS, 2 * ROUNDS + api_commands_since(began));
    api_close(client);
    api_close(other);
}

static void *acquire_once(void *argument)
{
    api_release(api_acquire(argument));
    return NULL;
}

static void test_a_waiter_elsewhere_does_not_end_a_hold(void **state)
{
    (void)state;
    mortise_client *client = api_open(0), *other = api_open(0);
    mortise_lock *lock = lingering(client, "linger/3", 3600000),
                 *others = api_lock(other, "linger/3");
    api_release(api_acquire(lock));
    mortise_hold hold = api_acquire(lock);
    pthread_t thread = api_thread(acquire_once, others);
    api_await_tickets(client, "linger/3", 2);
    assert_int_equal(mortise_is_held(hold), 1);
    assert_int_equal(mortise_verify(hold, 10000), MORTISE_OK);
    api_release(hold);
    api_join(thread);
    api_close(client);
    api_close(other);
}

static void test_lingering_ends_by_itself_and_with_its_client(void **state)
{
    (void)state;
    mortise_client *client = api_open(0), *other = api_open(0);
    api_release(api_acquire(lingering(client, "linger/4", 1)));
    api_await_tickets(other, "linger/4", 0);
    api_release(api_acquire(lingering(client, "linger/5", 3600000)));
    assert_int_equal(api_tickets(other, "linger/5"), 1);
    api_close(client);
    assert_int_equal(api_tickets(other, "linger/5"), 0);
    api_close(other);
}

static int note_fence(void *argument, const mortise_entry *entry)
{
    *(uint64_t *)argument = entry->fence;
    return 1;
}

/* Its client is told, and does not come upon it when it next looks by itself, after five seconds.
   The machine may be busy once. */
static void test_a_broken_lingering_lock_is_not_acquired_again(void **state)
{
    (void)state;
    mortise_client *client = api_open(0), *other = api_open(0);
    mortise_lock *lock = lingering(client, "linger/8", 3600000),
                 *others = api_lock(other, "linger/8");
    int late = 0;
    for (int i = 0; i < 5; i++) {
        uint64_t fence = 0;
        mortise_hold hold, again;
        api_release(api_acquire(lock));
        assert_int_equal(mortise_list(other, "linger/8", note_fence, &fence), MORTISE_OK);
        assert_int_equal(mortise_break(other, "linger/8", fence), MORTISE_OK);
        hold = api_acquire(others);
        int64_t began = mortise_now_ns();
        while (mortise_try_acquire(lock, &again) == MORTISE_OK) {
            check(api_ms_since(began) < api_await_ms);
            int error = mortise_release(again); /* the loss may be told just now */
            check(error == MORTISE_OK || error == MORTISE_ELOST);
            api_sleep_ms(1);
        }
        late += api_ms_since(began) >= 4000;
        api_release(hold);
    }
    assert_in_range(late, 0, 1);
    api_close(client);
    api_close(other);
}

static void test_only_a_mutex_may_linger(void **state)
{
    (void)state;
    mortise_client *client = api_open(0);
    mortise_lock_options options = {.size = sizeof options, .linger_ms = -1};
    mortise_lock *lock, *write;
    assert_int_equal(mortise_mutex_new(client, "linger/6", &options, &lock), MORTISE_EINVALID);
    options.linger_ms = 1;
    assert_int_equal(mortise_semaphore_new(client, "linger/6", 2, &options, &lock),
                     MORTISE_EINVALID);
    assert_int_equal(mortise_read_write_new(client, "linger/6", &options, &lock, &write),
                     MORTISE_EINVALID);
    assert_int_equal(mortise_exclusive_new(client, "linger/6", &options, &lock), MORTISE_EINVALID);
    api_close(client);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_lingering_lock_is_acquired_again_without_a_request),
        cmocka_unit_test(test_a_waiter_elsewhere_ends_the_lingering),
        cmocka_unit_test(test_a_waiter_elsewhere_costs_at_most_one_refresh),
        cmocka_unit_test(test_a_waiter_elsewhere_does_not_end_a_hold),
        cmocka_unit_test(test_lingering_ends_by_itself_and_with_its_client),
        cmocka_unit_test(test_a_broken_lingering_lock_is_not_acquired_again),
        cmocka_unit_test(test_only_a_mutex_may_linger),
    };
    int error = api_begin(argc, argv);
    return error ? error : api_end(cmocka_run_group_tests(tests, NULL, NULL));
}
