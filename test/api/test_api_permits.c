/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A semaphore's permits, changed while it is in use. On every store that keeps what is nobody's.
 */
#include "api_fixture.h"

#define MOST 5

static mortise_lock *semaphore(mortise_client *client, const char *name, uint32_t weight)
{
    const mortise_lock_options options = {.size = sizeof options, .permits = weight};
    mortise_lock *lock;
    check(mortise_semaphore_new(client, name, MOST, &options, &lock) == MORTISE_OK);
    return lock;
}

static uint32_t in_use(mortise_lock *lock)
{
    uint32_t permits = 99;
    check(mortise_semaphore_get_permits(lock, &permits) == MORTISE_OK);
    return permits;
}

/* How many can be had now. */
static uint32_t to_be_had(mortise_lock *lock)
{
    mortise_hold holds[MOST + 1];
    uint32_t count = 0;
    while (count <= MOST && mortise_try_acquire(lock, &holds[count]) == MORTISE_OK)
        count++;
    for (uint32_t i = 0; i < count; i++)
        api_release(holds[i]);
    return count;
}

/* A release is not waited for, and another client may come before it. */
static void await_tickets(mortise_client *client, const char *name, int count)
{
    for (int i = 0; api_tickets(client, name) != count; i++) {
        check(i < 10000);
        api_sleep_ms(1);
    }
}

static int set(mortise_lock *lock, uint32_t permits)
{
    return mortise_semaphore_set_permits(lock, permits, 10000);
}

static void test_permits_are_lowered_and_raised(void **state)
{
    (void)state;
    mortise_client *keeper = api_open(0), *client = api_open(0);
    mortise_lock *lock = semaphore(client, "permits/1", 1);
    const uint32_t steps[] = {3, 1, 2, 4, 0, 5, 2, 1, 5, 5};
    assert_int_equal(in_use(lock), MOST);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        assert_int_equal(set(lock, steps[i]), MORTISE_OK);
        assert_int_equal(in_use(lock), steps[i]);
        assert_int_equal(to_be_had(lock), steps[i]);
    }
    await_tickets(client, "permits/1", 0);
    assert_int_equal(set(lock, 2), MORTISE_OK);
    api_close(client); /* it is so for all, and stays so */
    lock = semaphore(keeper, "permits/1", 1);
    assert_int_equal(in_use(lock), 2);
    assert_int_equal(to_be_had(lock), 2);
    assert_int_equal(set(lock, MOST), MORTISE_OK);
    assert_int_equal(to_be_had(lock), MOST);
    api_close(keeper);
}

static void test_nobody_loses_a_permit(void **state)
{
    (void)state;
    mortise_client *client = api_open(0), *other = api_open(0);
    mortise_lock *lock = semaphore(client, "permits/2", 1),
                 *three = semaphore(other, "permits/2", 3);
    mortise_hold held = api_acquire(three), hold;
    assert_int_equal(mortise_semaphore_set_permits(lock, 2, 50), MORTISE_ETIMEOUT);
    assert_int_equal(mortise_semaphore_set_permits(lock, 2, 0), MORTISE_ETIMEOUT);
    assert_int_equal(in_use(lock), MOST);
    assert_int_equal(mortise_is_held(held), 1);
    assert_int_equal(set(lock, 3), MORTISE_OK); /* the two that are free */
    assert_int_equal(mortise_try_acquire(lock, &hold), MORTISE_EBUSY);
    assert_int_equal(mortise_is_held(held), 1);
    api_release(held);
    await_tickets(client, "permits/2", 1); /* what is out of use */
    assert_int_equal(to_be_had(lock), 3);
    await_tickets(other, "permits/2", 1);
    assert_int_equal(mortise_try_acquire(three, &held), MORTISE_OK);
    api_release(held);
    assert_int_equal(set(lock, MOST), MORTISE_OK);
    api_close(client);
    api_close(other);
}

/* As if its thread did not run for a while, just before it is done. */
static _Atomic bool slow, freeing;
int __real_mortise_lock_free(mortise_lock *lock);
int __wrap_mortise_lock_free(mortise_lock *lock);

int __wrap_mortise_lock_free(mortise_lock *lock)
{
    freeing = slow;
    if (freeing)
        api_sleep_ms(200);
    int error = __real_mortise_lock_free(lock);
    freeing = false;
    return error;
}

static void *lower_closed(void *lock)
{
    check(mortise_semaphore_set_permits(lock, 2, -1) == MORTISE_ECLOSED);
    return NULL;
}

static void test_a_close_waits_for_a_change(void **state)
{
    (void)state;
    mortise_client *closing = api_open(0), *other = api_open(0);
    mortise_lock *lock = semaphore(closing, "permits/closed", 1);
    mortise_hold held = api_acquire(semaphore(other, "permits/closed", 3));
    pthread_t thread = api_thread(lower_closed, lock);
    await_tickets(other, "permits/closed", 2);
    slow = true;
    api_close(closing);
    slow = false;
    assert_false(freeing);
    api_join(thread);
    api_release(held);
    await_tickets(other, "permits/closed", 0);
    assert_int_equal(in_use(semaphore(other, "permits/closed", 1)), MOST);
    api_close(other);
}

static void test_permits_out_of_range_are_refused(void **state)
{
    (void)state;
    mortise_client *client = api_open(0);
    mortise_lock *lock = semaphore(client, "permits/3", 2), *mutex = api_lock(client, "permits/4");
    uint32_t permits;
    assert_int_equal(set(lock, MOST + 1), MORTISE_EINVALID);
    assert_int_equal(set(mutex, 1), MORTISE_EINVALID);
    assert_int_equal(set(NULL, 1), MORTISE_EINVALID);
    assert_int_equal(mortise_semaphore_get_permits(mutex, &permits), MORTISE_EINVALID);
    assert_int_equal(mortise_semaphore_get_permits(lock, NULL), MORTISE_EINVALID);
    char name[MORTISE_NAME_MAX + 1] = {0};
    memset(name, 'a', MORTISE_NAME_MAX);
    assert_int_equal(set(semaphore(client, name, 1), 1), MORTISE_ENAME);
    assert_int_equal(in_use(lock), MOST);
    api_close(client);
}

static int break_detached(void *argument, const mortise_entry *entry)
{
    if (entry->detached)
        *(uint64_t *)argument = entry->fence;
    return 0;
}

static void test_permits_taken_out_return_when_an_operator_breaks_their_ticket(void **state)
{
    (void)state;
    mortise_client *client = api_open(0);
    mortise_lock *lock = semaphore(client, "permits/5", 1);
    uint64_t fence = 0;
    assert_int_equal(set(lock, 4), MORTISE_OK);
    assert_int_equal(set(lock, 1), MORTISE_OK);
    check(mortise_list(client, "permits/5", break_detached, &fence) == MORTISE_OK);
    assert_int_equal(mortise_break(client, "permits/5", fence), MORTISE_OK); /* the newer: 3 */
    assert_int_equal(in_use(lock), 4);
    assert_int_equal(to_be_had(lock), 4);
    assert_int_equal(set(lock, 2), MORTISE_OK);
    assert_int_equal(to_be_had(lock), 2);
    assert_int_equal(set(lock, MOST), MORTISE_OK);
    assert_int_equal(to_be_had(lock), MOST);
    api_close(client);
}

static void test_a_recorded_change_without_a_ticket_is_dropped(void **state)
{
    (void)state;
    const char *lost = "0123456789abcdef0123456789abcdef-77 77 3\nnonsense\n";
    mortise_client *client = api_open(0);
    mortise_lock *lock = semaphore(client, "permits/6", 1);
    check(mortise_cell_cas(client, "permits/6/permits", 0, lost, strlen(lost), 0, NULL) == 0);
    assert_int_equal(in_use(lock), MOST); /* its writer died before it detached */
    assert_int_equal(set(lock, 4), MORTISE_OK);
    assert_int_equal(to_be_had(lock), 4);
    assert_int_equal(set(lock, MOST), MORTISE_OK);
    api_close(client);
}

static void *change_often(void *argument)
{
    mortise_client *client = api_open(0);
    mortise_lock *lock = semaphore(client, "permits/7", 1);
    uint32_t number = *(uint32_t *)argument;
    for (int i = 0; i < 12; i++)
        check(set(lock, (number + (uint32_t)i * 3) % (MOST + 1)) == MORTISE_OK);
    api_close(client);
    return NULL;
}

static void test_concurrent_changes_of_permits_agree(void **state)
{
    (void)state;
    uint32_t numbers[] = {0, 1};
    mortise_client *client = api_open(0);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        threads[i] = api_thread(change_often, &numbers[i]);
    for (int i = 0; i < 2; i++)
        api_join(threads[i]);
    mortise_lock *lock = semaphore(client, "permits/7", 1);
    assert_int_equal(to_be_had(lock), in_use(lock));
    assert_int_equal(set(lock, MOST), MORTISE_OK);
    assert_int_equal(to_be_had(lock), MOST);
    api_close(client);
}

static void test_permits_are_lowered_in_at_most_32_steps(void **state)
{
    (void)state;
    const mortise_lock_options options = {.size = sizeof options};
    mortise_client *client = api_open(0);
    mortise_lock *lock;
    check(mortise_semaphore_new(client, "permits/8", 40, &options, &lock) == MORTISE_OK);
    for (uint32_t left = 39; left >= 8; left--)
        assert_int_equal(set(lock, left), MORTISE_OK);
    assert_int_equal(set(lock, 7), MORTISE_EFULL);
    assert_string_equal(mortise_error_detail(), "permits/8 was lowered in too many steps");
    assert_int_equal(in_use(lock), 8);
    assert_int_equal(set(lock, 40), MORTISE_OK);
    assert_int_equal(set(lock, 1), MORTISE_OK);
    assert_int_equal(in_use(lock), 1);
    assert_int_equal(set(lock, 40), MORTISE_OK);
    api_close(client);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_permits_are_lowered_and_raised),
        cmocka_unit_test(test_nobody_loses_a_permit),
        cmocka_unit_test(test_a_close_waits_for_a_change),
        cmocka_unit_test(test_permits_out_of_range_are_refused),
        cmocka_unit_test(test_permits_taken_out_return_when_an_operator_breaks_their_ticket),
        cmocka_unit_test(test_a_recorded_change_without_a_ticket_is_dropped),
        cmocka_unit_test(test_concurrent_changes_of_permits_agree),
        cmocka_unit_test(test_permits_are_lowered_in_at_most_32_steps),
    };
    int error = api_begin(argc, argv);
    return error ? error : api_end(cmocka_run_group_tests(tests, NULL, NULL));
}
