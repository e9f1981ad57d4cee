/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owners of a hold: a thread, also one that has ended, or an id of the program's own. On every
 * store, since none may take a session, or what the system calls a thread, for an owner.
 */
#include "api_fixture.h"

#include <sched.h>

/* The work of a thread with a lock, and its result. */
struct attempt {
    mortise_lock *lock;
    mortise_hold hold;
    int error;
    uint64_t owner;
};

static void *try_body(void *argument)
{
    struct attempt *attempt = argument;
    attempt->error = mortise_try_acquire(attempt->lock, &attempt->hold);
    if (attempt->error == MORTISE_OK)
        attempt->owner = mortise_hold_owner(attempt->hold);
    return NULL;
}

/* By a thread that has ended when this returns, and has released nothing. */
static struct attempt try_in_a_thread(mortise_lock *lock)
{
    struct attempt attempt = {.lock = lock};
    api_join(api_thread(try_body, &attempt));
    return attempt;
}

static void *release_body(void *argument)
{
    struct attempt *attempt = argument;
    attempt->error = mortise_release(attempt->hold);
    return NULL;
}

static int release_in_a_thread(mortise_hold hold)
{
    struct attempt attempt = {.hold = hold};
    api_join(api_thread(release_body, &attempt));
    return attempt.error;
}

/* ----------------------------------------------------------- owners of their own */

static void test_e1_explicit_owners(void **state)
{
    (void)state;
    mortise_client *client = api_open(0);
    mortise_lock *five = api_lock_of(client, "owners", 5);
    mortise_lock *five_too = api_lock_of(client, "owners", 5);
    mortise_lock *six = api_lock_of(client, "owners", 6);
    mortise_hold hold = api_acquire(five), other;
    assert_int_equal(mortise_hold_owner(hold), 5);
    assert_int_equal(mortise_try_acquire(six, &other), MORTISE_EBUSY); /* the same thread */
    struct attempt attempt = try_in_a_thread(five_too);
    assert_int_equal(attempt.error, MORTISE_OK); /* another thread, the same owner */
    assert_int_equal(attempt.owner, 5);
    assert_int_equal(mortise_hold_count(hold), 2);
    api_release(hold);
    api_release(attempt.hold);
    assert_int_equal(mortise_release(hold), MORTISE_ENOTHELD);
    api_close(client);
}

static void test_e1_u13_any_thread_releases_a_hold_without_an_owner(void **state)
{
    (void)state;
    mortise_client *client = api_open(0);
    mortise_lock *lock = api_lock_of(client, "nobody", MORTISE_OWNER_NOBODY), *read, *write;
    const mortise_lock_options options = {.size = sizeof options, .owner = MORTISE_OWNER_NOBODY};
    mortise_hold other, both[2];
    struct attempt attempt = try_in_a_thread(lock);
    assert_int_equal(attempt.error, MORTISE_OK);
    assert_int_equal(mortise_hold_owner(attempt.hold), 0);
    assert_int_equal(mortise_try_acquire(lock, &other), MORTISE_EBUSY);
    assert_int_equal(mortise_release(attempt.hold), MORTISE_OK); /* by another thread */
    mortise_hold hold = api_acquire(lock);
    assert_int_equal(mortise_try_acquire(lock, &other), MORTISE_EBUSY); /* in the same thread */
    assert_int_equal(release_in_a_thread(hold), MORTISE_OK);
    assert_int_equal(mortise_read_write_new(client, "nobody-rw", &options, &read, &write), 0);
    hold = api_acquire(write);
    assert_int_equal(mortise_try_acquire(read, &other), MORTISE_EBUSY);
    assert_int_equal(release_in_a_thread(hold), MORTISE_OK);
    mortise_lock *twice[] = {lock, lock};
    assert_int_equal(mortise_acquire_all(twice, 2, 0, both), MORTISE_EDEADLOCK);
    api_close(client);
}

static void test_f19_only_the_owner_releases(void **state)
{
    (void)state;
    mortise_client *client = api_open(0), *other = api_open(0);
    mortise_hold hold = api_acquire(api_lock(client, "f19")), none;
    assert_int_equal(release_in_a_thread(hold), MORTISE_ENOTOWNER);
    assert_true(mortise_is_held(hold));
    assert_int_equal(mortise_hold_count(hold), 1);
    assert_int_equal(mortise_try_acquire(api_lock(other, "f19"), &none), MORTISE_EBUSY);
    api_release(hold);
    api_close(client);
    api_close(other);
}

/* --------------------------------------------------------- a thread that has ended */

static mortise_lock *mutex(mortise_client *client)
{
    return api_lock(client, "left/mutex");
}

static mortise_lock *semaphore_mutex(mortise_client *client)
{
    mortise_lock *lock;
    check(mortise_semaphore_mutex_new(client, "left/flat", NULL, &lock) == MORTISE_OK);
    return lock;
}

static mortise_lock *exclusive(mortise_client *client)
{
    mortise_lock *lock;
    check(mortise_exclusive_new(client, "left/claim", NULL, &lock) == MORTISE_OK);
    return lock;
}

static mortise_lock *writer(mortise_client *client)
{
    mortise_lock *read, *write;
    check(mortise_read_write_new(client, "left/sides", NULL, &read, &write) == MORTISE_OK);
    return write;
}

/* Many threads: the system gives them the name and the stack of the one that has ended. */
static void expect_nobody_else_has_it(const struct attempt *left, mortise_client *other,
                                      mortise_lock *(*make)(mortise_client *))
{
    mortise_hold none;
    for (int i = 0; i < 8; i++) {
        assert_int_equal(try_in_a_thread(left->lock).error, MORTISE_EBUSY);
        assert_int_equal(release_in_a_thread(left->hold), MORTISE_ENOTOWNER);
    }
    assert_int_equal(mortise_try_acquire(left->lock, &none), MORTISE_EBUSY);
    assert_int_equal(mortise_release(left->hold), MORTISE_ENOTOWNER);
    assert_int_equal(mortise_try_acquire(make(other), &none), MORTISE_EBUSY);
}

static void leave_and_close(mortise_client *other, mortise_lock *(*make)(mortise_client *))
{
    mortise_client *client = api_open(0);
    struct attempt left = try_in_a_thread(make(client));
    assert_int_equal(left.error, MORTISE_OK);
    expect_nobody_else_has_it(&left, other, make);
    assert_int_equal(mortise_hold_state(left.hold), MORTISE_HELD);
    assert_int_equal(mortise_verify(left.hold, 10000), MORTISE_OK);
    assert_int_equal(mortise_hold_owner(left.hold), left.owner);
    assert_int_equal(mortise_hold_count(left.hold), 1);
    assert_true(mortise_hold_fence(left.hold) > 0);
    api_close(client);
    mortise_hold hold;
    assert_int_equal(mortise_acquire_for(make(other), 20000, &hold), MORTISE_OK);
    assert_true(mortise_hold_fence(hold) > 0);
    api_release(hold);
}

static void test_zk_25_a_thread_that_exits_holding_leaves_it_held_until_close(void **state)
{
    (void)state;
    mortise_client *other = api_open(0);
    leave_and_close(other, mutex);
    leave_and_close(other, semaphore_mutex);
    leave_and_close(other, exclusive);
    leave_and_close(other, writer);
    api_close(other);
}

static void test_zk_25_max_hold_ends_the_hold_of_a_thread_that_exited(void **state)
{
    (void)state;
    const mortise_lock_options options = {.size = sizeof options, .max_hold_ms = 200};
    mortise_client *client = api_open(0);
    mortise_lock *lock;
    check(mortise_mutex_new(client, "left/limit", &options, &lock) == MORTISE_OK);
    struct attempt left = try_in_a_thread(lock);
    assert_int_equal(left.error, MORTISE_OK);
    mortise_hold hold;
    assert_int_equal(mortise_acquire_for(api_lock(client, "left/limit"), 20000, &hold), MORTISE_OK);
    assert_int_equal(mortise_hold_state(left.hold), MORTISE_LOST);
    assert_int_equal(mortise_release(left.hold), MORTISE_ENOTOWNER); /* ours is not touched */
    api_release(hold);
    api_close(client);
}

static int note_fence(void *argument, const mortise_entry *entry)
{
    *(uint64_t *)argument = entry->fence;
    return 0;
}

static void test_zk_25_an_operator_breaks_the_hold_of_a_thread_that_exited(void **state)
{
    (void)state;
    mortise_client *client = api_open(0), *boss = api_open(0);
    struct attempt left = try_in_a_thread(api_lock(client, "left/broken"));
    uint64_t fence = 0;
    mortise_hold hold;
    assert_int_equal(left.error, MORTISE_OK);
    assert_int_equal(mortise_list(boss, "left/broken", note_fence, &fence), MORTISE_OK);
    assert_int_equal(mortise_break(boss, "left/broken", fence), MORTISE_OK);
    assert_int_equal(mortise_acquire_for(api_lock(boss, "left/broken"), 20000, &hold), MORTISE_OK);
    assert_int_equal(mortise_verify(left.hold, 10000), MORTISE_ELOST);
    api_release(hold);
    api_close(client);
    api_close(boss);
}

static void test_zk_25_a_thread_with_the_same_owner_releases_for_one_that_exited(void **state)
{
    (void)state;
    mortise_client *client = api_open(0), *other = api_open(0);
    mortise_lock *lock = api_lock_of(client, "left/id", 7);
    struct attempt left = try_in_a_thread(lock);
    mortise_hold hold;
    assert_int_equal(left.error, MORTISE_OK);
    assert_int_equal(mortise_try_acquire(api_lock(other, "left/id"), &hold), MORTISE_EBUSY);
    assert_int_equal(mortise_try_acquire(lock, &hold), MORTISE_OK); /* it goes on with the work */
    assert_int_equal(mortise_hold_count(left.hold), 2);
    assert_int_equal(release_in_a_thread(hold), MORTISE_OK);
    assert_int_equal(mortise_release(left.hold), MORTISE_OK);
    assert_int_equal(mortise_acquire_for(api_lock(other, "left/id"), 20000, &hold), MORTISE_OK);
    api_release(hold);
    api_close(client);
    api_close(other);
}

/* ------------------------------------------------------ many threads of one session */

#define THREADS 8

struct adder {
    mortise_lock *lock;
    volatile int *counter; /* nothing but the lock keeps it right */
    int rounds;
};

static void *add(void *argument)
{
    const struct adder *adder = argument;
    for (int i = 0; i < adder->rounds; i++) {
        mortise_hold hold = api_acquire(adder->lock);
        int seen = *adder->counter;
        sched_yield();
        *adder->counter = seen + 1;
        api_release(hold);
    }
    return NULL;
}

/* Every second thread has a handle of its own. */
static void count_together(const mortise_client_options *options, int rounds)
{
    mortise_client *client = api_open_with(options);
    mortise_lock *shared = api_lock(client, "counter");
    volatile int counter = 0;
    struct adder adders[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        mortise_lock *lock = i % 2 ? api_lock(client, "counter") : shared;
        adders[i] = (struct adder){lock, &counter, rounds};
        threads[i] = api_thread(add, &adders[i]);
    }
    for (int i = 0; i < THREADS; i++)
        api_join(threads[i]);
    assert_int_equal(counter, THREADS * rounds);
    assert_int_equal(api_stats(client).acquisitions, counter);
    assert_int_equal(api_stats(client).nested, 0);
    api_close(client);
}

static void test_zk_25_threads_of_one_session_count_together(void **state)
{
    (void)state;
    mortise_client_options options = {.size = sizeof options, .timeout_ms = 30000};
    count_together(&options, 250);
    options.budget_ms = -1; /* each has a ticket of its own in the store */
    count_together(&options, 5);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_e1_explicit_owners),
        cmocka_unit_test(test_e1_u13_any_thread_releases_a_hold_without_an_owner),
        cmocka_unit_test(test_f19_only_the_owner_releases),
        cmocka_unit_test(test_zk_25_a_thread_that_exits_holding_leaves_it_held_until_close),
        cmocka_unit_test(test_zk_25_max_hold_ends_the_hold_of_a_thread_that_exited),
        cmocka_unit_test(test_zk_25_an_operator_breaks_the_hold_of_a_thread_that_exited),
        cmocka_unit_test(test_zk_25_a_thread_with_the_same_owner_releases_for_one_that_exited),
        cmocka_unit_test(test_zk_25_threads_of_one_session_count_together),
    };
    int failed = api_begin(argc, argv);
    return failed ? failed : api_end(cmocka_run_group_tests(tests, NULL, NULL));
}
