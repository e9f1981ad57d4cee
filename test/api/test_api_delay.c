/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The delay after a crash (lock_delay_ms): nobody has the lock for so long after its holder has
 * died, and at once after all else. GN-06; on every store that has it.
 */
#include "api_fixture.h"

#include <unistd.h>

#define DELAY_MS 300
#define ENDLESS_MS 3600000

struct heir {
    mortise_lock *lock;
    int64_t held_at;
};

static void *inherit(void *argument)
{
    struct heir *heir = argument;
    mortise_hold hold = api_acquire(heir->lock);
    heir->held_at = mortise_now_ns();
    api_release(hold);
    return NULL;
}

static void test_gn06_a_waiter_gets_a_killed_holders_lock_after_the_delay(void **state)
{
    (void)state;
    if (!api_spans_processes())
        skip(); /* test_api_loss.c */
    pid_t child = api_holder_to_be_killed("delay/1", DELAY_MS);
    mortise_client *client = api_open(0);
    struct heir heir = {.lock = api_lock(client, "delay/1")};
    pthread_t thread = api_thread(inherit, &heir);
    api_await_tickets(client, "delay/1", 2);
    int64_t killed = mortise_now_ns();
    api_kill(child);
    api_join(thread);
    assert_true(heir.held_at - killed >= DELAY_MS * MS_IN_NS);
    api_await_tickets(client, "delay/1", 0); /* a release need not wait for the store */
    api_close(client);
}

static int note_entry(void *argument, const mortise_entry *entry)
{
    *(mortise_entry *)argument = *entry;
    return 0;
}

static mortise_entry entry_of(mortise_client *client, const char *name)
{
    mortise_entry entry = {0};
    check(mortise_list(client, name, note_entry, &entry) == MORTISE_OK);
    return entry;
}

static void test_gn06_an_operator_ends_a_delay(void **state)
{
    (void)state;
    if (!api_spans_processes())
        skip();
    pid_t child = api_holder_to_be_killed("delay/2", ENDLESS_MS);
    mortise_client *client = api_open(0);
    mortise_lock *lock = api_delaying_lock(client, "delay/2", 0);
    mortise_hold hold;
    api_kill(child);
    assert_int_equal(mortise_try_acquire(lock, &hold), MORTISE_EBUSY);
    mortise_entry entry = entry_of(client, "delay/2");
    while (entry.delay_ms == 0) { /* its lease is not over yet */
        api_sleep_ms(10);
        assert_int_equal(mortise_try_acquire(lock, &hold), MORTISE_EBUSY);
        entry = entry_of(client, "delay/2");
    }
    assert_in_range(entry.delay_ms, 1, ENDLESS_MS);
    assert_int_equal(entry.detached, 0);
    assert_int_equal(entry.place, 0);
    assert_int_equal(mortise_try_acquire(lock, &hold), MORTISE_EBUSY);
    assert_int_equal(mortise_break(client, "delay/2", entry.fence), MORTISE_OK);
    assert_int_equal(mortise_acquire_for(lock, 20000, &hold), MORTISE_OK);
    assert_true(mortise_hold_fence(hold) > entry.fence);
    api_release(hold);
    api_close(client);
}

static void test_a_release_or_close_frees_the_lock_without_the_delay(void **state)
{
    (void)state;
    mortise_client *client = api_open(0), *other = api_open(0);
    mortise_lock *lock = api_delaying_lock(client, "delay/3", ENDLESS_MS);
    mortise_lock *others = api_lock(other, "delay/3");
    mortise_hold hold;
    api_release(api_acquire(lock));
    assert_int_equal(mortise_acquire_for(others, 20000, &hold), MORTISE_OK);
    api_release(hold);
    api_acquire(lock);
    api_close(client);
    assert_int_equal(mortise_acquire_for(others, 20000, &hold), MORTISE_OK);
    api_release(hold);
    api_close(other);
}

static void test_a_handle_with_a_delay_gets_a_new_ticket(void **state)
{
    (void)state;
    mortise_client *client = api_open(0);
    mortise_lock *plain = api_lock(client, "delay/4");
    mortise_hold hold = api_acquire(plain);
    uint64_t fence = mortise_hold_fence(hold);
    mortise_lock *lock = api_delaying_lock(client, "delay/4", ENDLESS_MS);
    api_release(hold);
    hold = api_acquire(lock);
    assert_true(mortise_hold_fence(hold) > fence);
    api_release(hold);
    api_close(client);
}

static void test_delays_out_of_range_are_refused(void **state)
{
    (void)state;
    mortise_client *client = api_open(0);
    mortise_lock_options options = {.size = sizeof options, .lock_delay_ms = -1};
    mortise_lock *lock;
    assert_int_equal(mortise_mutex_new(client, "delay/5", &options, &lock), MORTISE_EINVALID);
    options.lock_delay_ms = MORTISE_LOCK_DELAY_MAX_MS + 1;
    assert_int_equal(mortise_mutex_new(client, "delay/5", &options, &lock), MORTISE_EINVALID);
    options.lock_delay_ms = MORTISE_LOCK_DELAY_MAX_MS;
    assert_int_equal(mortise_semaphore_new(client, "delay/5", 2, &options, &lock), MORTISE_OK);
    api_close(client);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gn06_a_waiter_gets_a_killed_holders_lock_after_the_delay),
        cmocka_unit_test(test_gn06_an_operator_ends_a_delay),
        cmocka_unit_test(test_a_release_or_close_frees_the_lock_without_the_delay),
        cmocka_unit_test(test_a_handle_with_a_delay_gets_a_new_ticket),
        cmocka_unit_test(test_delays_out_of_range_are_refused),
    };
    int error = api_begin(argc, argv);
    return error ? error : api_end(cmocka_run_group_tests(tests, NULL, NULL));
}
