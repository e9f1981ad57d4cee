/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mistakes in the use of handles. Each is refused with an error that says what to do, and changes
 * nothing.
 */
#include "api_two.h"

#include <stdatomic.h>

/* A thread that waits for a lock of which another client has all there is. */
struct waiting {
    mortise_lock *lock;
    int error;
};

static void *wait_body(void *argument)
{
    struct waiting *waiting = argument;
    mortise_hold hold;
    waiting->error = mortise_acquire(waiting->lock, &hold);
    if (waiting->error == MORTISE_OK)
        api_release(hold);
    return NULL;
}

static void assert_not_freed(mortise_lock *lock)
{
    assert_int_equal(mortise_lock_free(lock), MORTISE_EINVALID);
    assert_non_null(strstr(mortise_error_detail(), mortise_lock_name(lock)));
    assert_non_null(strstr(mortise_error_detail(), "mortise_cancel_waiters"));
}

/* ------------------------------------------------------------- handles in use */

static void free_while_it_waits(mortise_lock *mine, mortise_lock *theirs)
{
    struct waiting waiting = {.lock = mine};
    mortise_hold held = api_acquire(theirs);
    pthread_t thread = api_thread(wait_body, &waiting);
    api_await_tickets(other, mortise_lock_name(mine), 2);
    assert_not_freed(mine);
    assert_int_equal(mortise_cancel_waiters(mine), MORTISE_OK);
    api_join(thread);
    assert_int_equal(waiting.error, MORTISE_ECANCELLED);
    assert_int_equal(mortise_lock_free(mine), MORTISE_OK);
    api_release(held);
    assert_int_equal(mortise_lock_free(theirs), MORTISE_OK);
}

static void test_u35_a_lock_on_which_a_thread_waits_is_not_freed(void **state)
{
    (void)state;
    mortise_lock *mine, *theirs, *reading;
    free_while_it_waits(api_lock(client, "free/mutex"), api_lock(other, "free/mutex"));
    check(mortise_semaphore_new(client, "free/semaphore", 1, NULL, &mine) == MORTISE_OK);
    check(mortise_semaphore_new(other, "free/semaphore", 1, NULL, &theirs) == MORTISE_OK);
    free_while_it_waits(mine, theirs);
    check(mortise_read_write_new(client, "free/both", NULL, &mine, &reading) == MORTISE_OK);
    check(mortise_lock_free(reading) == MORTISE_OK);
    check(mortise_read_write_new(other, "free/both", NULL, &reading, &theirs) == MORTISE_OK);
    free_while_it_waits(mine, theirs);
    assert_int_equal(mortise_lock_free(reading), MORTISE_OK);
}

static void note(void *argument, int error, mortise_hold hold)
{
    (void)hold;
    atomic_store((_Atomic int *)argument, error);
}

static void await_callback(const _Atomic int *result)
{
    int64_t begin = mortise_now_ns();
    while (atomic_load(result) == 1) {
        check(api_ms_since(begin) < api_await_ms);
        api_sleep_ms(1);
    }
}

static void test_u35_a_lock_with_an_operation_is_not_freed(void **state)
{
    (void)state;
    mortise_lock *lock = api_lock(client, "free/async"), *theirs = api_lock(other, "free/async");
    mortise_hold held = api_acquire(theirs);
    mortise_operation *operation;
    _Atomic int result = 1;
    check(mortise_acquire_async(lock, INT64_MAX, note, &result, &operation) == MORTISE_OK);
    assert_not_freed(lock);
    mortise_cancel(operation);
    await_callback(&result);
    assert_int_equal(result, MORTISE_ECANCELLED);
    assert_int_equal(mortise_lock_free(lock), MORTISE_OK);
    api_release(held);
    mortise_lock_free(theirs);
}

static void *take_both(void *locks)
{
    mortise_hold holds[2];
    check(mortise_acquire_all(locks, 2, -1, holds) == MORTISE_OK);
    check(mortise_release_all(holds, 2) == MORTISE_OK);
    return NULL;
}

/* While the call waits for one it has given the other back, and comes back to it. */
static void test_u35_locks_of_an_acquire_all_are_not_freed(void **state)
{
    (void)state;
    mortise_lock *locks[] = {api_lock(client, "free/1"), api_lock(client, "free/2")};
    mortise_hold held = api_acquire(api_lock(other, "free/1"));
    pthread_t thread = api_thread(take_both, locks);
    api_await_tickets(other, "free/1", 2);
    assert_not_freed(locks[0]);
    assert_not_freed(locks[1]);
    api_release(held);
    api_join(thread);
    assert_int_equal(mortise_lock_free(locks[0]), MORTISE_OK);
    assert_int_equal(mortise_lock_free(locks[1]), MORTISE_OK);
}

static void *lower(void *semaphore)
{
    int error = mortise_semaphore_set_permits(semaphore, 1, -1);
    check(error == MORTISE_OK || error == MORTISE_ENOTSUPPORTED);
    return NULL;
}

static void test_u35_a_semaphore_that_is_being_changed_is_not_freed(void **state)
{
    (void)state;
    mortise_capabilities can = {.size = sizeof can};
    mortise_lock *mine, *theirs;
    check(mortise_get_capabilities(client, &can) == MORTISE_OK);
    if (!can.detach)
        skip();
    check(mortise_semaphore_new(client, "free/permits", 2, NULL, &mine) == MORTISE_OK);
    check(mortise_semaphore_new(other, "free/permits", 2, NULL, &theirs) == MORTISE_OK);
    mortise_hold held = api_acquire(theirs), second = api_acquire(theirs);
    pthread_t thread = api_thread(lower, mine);
    api_await_tickets(other, "free/permits", 3);
    assert_not_freed(mine);
    api_release(second);
    api_join(thread);
    api_release(held);
    assert_int_equal(mortise_semaphore_set_permits(mine, 2, 10000), MORTISE_OK);
    assert_int_equal(mortise_lock_free(mine), MORTISE_OK);
    mortise_lock_free(theirs);
}

static void *campaign(void *election)
{
    check(mortise_election_campaign(election, -1) == MORTISE_ECANCELLED);
    return NULL;
}

/* An election ends its campaign itself, so its free waits and is not refused. */
static void test_u35_the_free_of_an_election_ends_its_campaign(void **state)
{
    (void)state;
    mortise_election *leads, *waits;
    int error = mortise_election_new(other, "free/election", NULL, &leads);
    if (error == MORTISE_ENOTSUPPORTED)
        skip();
    check(error == MORTISE_OK && mortise_election_campaign(leads, -1) == MORTISE_OK);
    check(mortise_election_new(client, "free/election", NULL, &waits) == MORTISE_OK);
    pthread_t thread = api_thread(campaign, waits);
    api_await_tickets(other, "free/election", 2);
    assert_int_equal(mortise_election_free(waits), MORTISE_OK);
    api_join(thread);
    assert_int_equal(mortise_election_free(leads), MORTISE_OK);
}

/* ------------------------------------------------------------ a foreign loop */

static void test_u32_a_client_with_a_thread_is_not_run_by_its_caller(void **state)
{
    (void)state;
    int (*const calls[])(mortise_client *) = {mortise_next_timeout_ms, mortise_process};
    for (size_t i = 0; i < 3; i++) {
        int error = i < 2 ? calls[i](client) : mortise_fd(client);
        assert_int_equal(error, MORTISE_EINVALID);
        assert_non_null(strstr(mortise_error_detail(), "MORTISE_FOREIGN_LOOP"));
    }
}

/* -------------------------------------------------------- what details say */

/* The reason alone: the text of the error is beside it. */
static void test_u4_a_detail_does_not_repeat_the_text(void **state)
{
    (void)state;
    mortise_client *away;
    mortise_hold hold;
    int error = mortise_open("redis://127.0.0.1:1", NULL, &away);
    if (error == MORTISE_ENOTSUPPORTED)
        skip();
    check(error == MORTISE_OK);
    assert_int_equal(mortise_try_acquire(api_lock(away, "away"), &hold), MORTISE_EDISCONNECTED);
    assert_non_null(strstr(mortise_error_detail(), "127.0.0.1:1"));
    assert_null(strstr(mortise_error_detail(), mortise_error_text(MORTISE_EDISCONNECTED)));
    api_close(away);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_u35_a_lock_on_which_a_thread_waits_is_not_freed),
        cmocka_unit_test(test_u35_a_lock_with_an_operation_is_not_freed),
        cmocka_unit_test(test_u35_locks_of_an_acquire_all_are_not_freed),
        cmocka_unit_test(test_u35_a_semaphore_that_is_being_changed_is_not_freed),
        cmocka_unit_test(test_u35_the_free_of_an_election_ends_its_campaign),
        cmocka_unit_test(test_u32_a_client_with_a_thread_is_not_run_by_its_caller),
        cmocka_unit_test(test_u4_a_detail_does_not_repeat_the_text),
    };
    int error = api_begin(argc, argv);
    return error ? error : api_end(cmocka_run_group_tests(tests, open_clients, close_clients));
}
