/* SPDX-License-Identifier: Apache-2.0 */
/* Several locks as one: in one order, all or none, one deadline. */
#include "api_two.h"

#ifdef MRT_DEFECTS
#include "defect_run.h"
#endif

#include <stdio.h>
#include <string.h>

/* Each round there takes as long as four durable commits. */
#define ROUNDS (api_commits_to_disk() ? 400 : 10000)

static int try(const char *name)
{
    mortise_hold hold;
    mortise_lock *lock = api_lock(other, name);
    int error = mortise_try_acquire(lock, &hold);
    if (error == MORTISE_OK)
        api_release(hold);
    mortise_lock_free(lock);
    return error;
}

/* The call that gives back does not wait for the store's word. */
static void assert_given_back(const char *name)
{
    api_await_tickets(other, name, 0);
    assert_int_equal(try(name), MORTISE_OK);
}

static void test_e6_all_of_several_locks_are_held_and_released(void **state)
{
    (void)state;
    mortise_lock *locks[] = {api_lock(client, "c"), api_lock(client, "a"), api_lock(client, "b")};
    mortise_hold holds[3];
    assert_int_equal(mortise_acquire_all(locks, 3, -1, holds), MORTISE_OK);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(mortise_hold_name(holds[i]), mortise_lock_name(locks[i]));
        assert_int_equal(try(mortise_lock_name(locks[i])), MORTISE_EBUSY);
    }
    assert_int_equal(mortise_release_all(holds, 3), MORTISE_OK);
    for (int i = 0; i < 3; i++)
        assert_given_back(mortise_lock_name(locks[i]));
}

/* The first may have been told to come for it, by then: it is not given up for that. Only where a
   session's answers come in the order of its questions. With children a lock's directory stays. */
static void test_e6_several_free_locks_are_acquired_without_a_wait(void **state)
{
    (void)state;
    mortise_lock *locks[] = {api_lock(client, "f1"), api_lock(client, "f2"),
                             api_lock(client, "f3")};
    mortise_hold holds[3];
    if (strncmp(api_url, "zk:", 3) != 0 && strncmp(api_url, "memory:", 7) != 0)
        skip();
    mortise_hold children[] = {api_acquire(api_lock(other, "f1/child")),
                               api_acquire(api_lock(other, "f2/child")),
                               api_acquire(api_lock(other, "f3/child"))};
    uint64_t before = api_stats(client).acquisitions;
    for (int i = 0; i < 50; i++) {
        assert_int_equal(mortise_acquire_all(locks, 3, -1, holds), MORTISE_OK);
        assert_int_equal(mortise_release_all(holds, 3), MORTISE_OK);
    }
    assert_int_equal(api_stats(client).acquisitions - before, 150);
    assert_int_equal(mortise_release_all(children, 3), MORTISE_OK);
}

/* The k-th of them cannot be had. */
static void test_e6_if_one_of_several_locks_fails_none_is_held(void **state)
{
    (void)state;
    static const char *const names[] = {"x1", "x2", "x3"};
    for (int k = 0; k < 3; k++)
        for (int64_t wait = 0; wait <= 60; wait += 60) {
            mortise_lock *locks[3];
            mortise_hold holds[3], taken = api_acquire(api_lock(other, names[k]));
            for (int i = 0; i < 3; i++)
                locks[i] = api_lock(client, names[i]);
            int64_t begin = mortise_now_ns();
            assert_int_equal(mortise_acquire_all(locks, 3, wait, holds),
                             wait ? MORTISE_ETIMEOUT : MORTISE_EBUSY);
            assert_true(api_ms_since(begin) >= wait);
            for (int i = 0; i < 3; i++)
                api_await_tickets(client, names[i], i == k);
            api_release(taken);
        }
}

static void test_e7_a_release_that_fails_does_not_stop_the_others(void **state)
{
    (void)state;
    mortise_lock *locks[] = {api_lock(client, "r1"), api_lock(client, "r2"),
                             api_lock(client, "r3")};
    mortise_hold holds[3];
    assert_int_equal(mortise_acquire_all(locks, 3, -1, holds), MORTISE_OK);
    api_release(holds[1]);
    assert_int_equal(mortise_release_all(holds, 3), MORTISE_ENOTHELD);
    assert_given_back("r1");
    assert_given_back("r3");
}

static void *take_three(void *argument)
{
    mortise_lock *const *locks = argument;
    mortise_hold holds[3];
    check(mortise_acquire_all(locks, 3, -1, holds) == MORTISE_OK);
    check(mortise_release_all(holds, 3) == MORTISE_OK);
    return NULL;
}

/* They come in the order of their names, not of the list: a call that waits for one holds those
 * before it, and no other. */
static void test_e6_nothing_behind_the_one_waited_for_is_held(void **state)
{
    (void)state;
    static const char *const names[] = {"w1", "w2", "w3"};
    for (int k = 0; k < 3; k++) {
        mortise_lock *locks[3];
        mortise_hold taken = api_acquire(api_lock(other, names[k]));
        for (int i = 0; i < 3; i++)
            locks[2 - i] = api_lock(client, names[i]);
        pthread_t thread = api_thread(take_three, locks);
        api_await_tickets(other, names[k], 2);
        for (int i = 0; i < 3; i++)
            api_await_tickets(other, names[i], i == k ? 2 : i < k);
        api_release(taken);
        api_join(thread);
        for (int i = 0; i < 3; i++)
            api_await_tickets(other, names[i], 0);
    }
}

struct side {
    mortise_lock *locks[2];
    int *counter;
    int rounds;
};

static void *take_both(void *argument)
{
    struct side *side = argument;
    mortise_hold holds[2];
    for (int i = 0; i < side->rounds; i++) {
        check(mortise_acquire_all(side->locks, 2, -1, holds) == MORTISE_OK);
        ++*side->counter;
        check(mortise_release_all(holds, 2) == MORTISE_OK);
    }
    return NULL;
}

static void test_e6_acquiring_a_b_and_b_a_does_not_deadlock(void **state)
{
    (void)state;
    int counter = 0, rounds = api_lease_ms() ? ROUNDS / 20 : ROUNDS / 2; /* over a network */
    struct side sides[] = {{{api_lock(client, "a"), api_lock(client, "b")}, &counter, rounds},
                           {{api_lock(other, "b"), api_lock(other, "a")}, &counter, rounds}};
    pthread_t threads[] = {api_thread(take_both, &sides[0]), api_thread(take_both, &sides[1])};
    api_join(threads[0]);
    api_join(threads[1]);
    assert_int_equal(counter, 2 * rounds);
}

static void test_e6_threads_acquire_several_locks_by_the_same_handles(void **state)
{
    (void)state;
    int counter = 0;
    struct side side = {{api_lock(client, "h1"), api_lock(client, "h2")}, &counter, 100};
    pthread_t one = api_thread(take_both, &side), two = api_thread(take_both, &side);
    api_join(one);
    api_join(two);
    assert_int_equal(counter, 200);
}

static void test_a_set_may_name_both_sides_of_a_lock_or_one_lock_twice(void **state)
{
    (void)state;
    mortise_lock *read, *write, *mutex = api_lock(client, "twice");
    mortise_hold holds[2];
    assert_int_equal(mortise_read_write_new(client, "sides", NULL, &read, &write), MORTISE_OK);
    mortise_lock *sides[] = {read, write}, *same[] = {mutex, mutex};
    assert_int_equal(mortise_acquire_all(sides, 2, -1, holds), MORTISE_OK);
    assert_int_equal(mortise_release_all(holds, 2), MORTISE_OK);
    assert_int_equal(mortise_acquire_all(same, 2, -1, holds), MORTISE_OK);
    assert_int_equal(mortise_hold_count(holds[0]), 2);
    assert_int_equal(mortise_release_all(holds, 2), MORTISE_OK);
}

static void test_a_set_that_would_wait_for_itself_is_refused(void **state)
{
    (void)state;
    mortise_lock *locks[] = {api_lock(client, "self"), api_lock(other, "self")};
    mortise_lock *missing[] = {locks[0], NULL};
    mortise_hold holds[2];
    assert_int_equal(mortise_acquire_all(locks, 2, -1, holds), MORTISE_EDEADLOCK);
    assert_non_null(strstr(mortise_error_detail(), "self"));
    assert_int_equal(mortise_acquire_all(missing, 2, -1, holds), MORTISE_EINVALID);
    assert_int_equal(mortise_acquire_all(locks, 0, -1, holds), MORTISE_EINVALID);
    assert_int_equal(mortise_release_all(NULL, 1), MORTISE_EINVALID);
    assert_given_back("self");
}

static mortise_lock *semaphore(uint32_t permits, const mortise_lock_options *options)
{
    mortise_lock *lock = NULL;
    check(mortise_semaphore_new(client, "permits", permits, options, &lock) == MORTISE_OK);
    return lock;
}

static mortise_lock *semaphore_mutex(uint32_t flags)
{
    mortise_lock_options options = {.size = sizeof options, .flags = flags};
    mortise_lock *lock = NULL;
    check(mortise_semaphore_mutex_new(client, "no-nesting", &options, &lock) == MORTISE_OK);
    return lock;
}

/* With its neighbours in the order, which are not to be acquired either. */
static void refused_together(mortise_lock *one, mortise_lock *two)
{
    mortise_lock *locks[] = {two, api_lock(client, "a"), one, api_lock(client, "z")};
    mortise_hold holds[4];
    for (int64_t wait = -1; wait <= 0; wait++)
        assert_int_equal(mortise_acquire_all(locks, 4, wait, holds), MORTISE_EDEADLOCK);
    assert_non_null(strstr(mortise_error_detail(), mortise_lock_name(one)));
    assert_int_equal(api_tickets(client, mortise_lock_name(one)), 0);
    assert_int_equal(api_tickets(client, "a"), 0);
}

static void test_a_lock_twice_in_a_set_is_refused_if_it_does_not_nest(void **state)
{
    (void)state;
    const mortise_lock_options one = {.size = sizeof one, .owner = 1},
                               two = {.size = sizeof two, .owner = 2};
    mortise_lock *read, *write, *other_read, *other_write;
    refused_together(api_lock_of(client, "owners", 1), api_lock_of(client, "owners", 2));
    refused_together(api_lock_of(client, "owners", 1), api_lock(client, "owners"));
    refused_together(semaphore_mutex(0), semaphore_mutex(0));
    refused_together(semaphore_mutex(0), semaphore_mutex(MORTISE_WAIT_FOR_SELF));
    refused_together(semaphore_mutex(MORTISE_WAIT_FOR_SELF),
                     semaphore_mutex(MORTISE_WAIT_FOR_SELF));
    assert_int_equal(mortise_read_write_new(client, "rw", &one, &read, &write), MORTISE_OK);
    assert_int_equal(mortise_read_write_new(client, "rw", &two, &other_read, &other_write),
                     MORTISE_OK);
    refused_together(read, other_read); /* a writer might come in between */
    refused_together(write, other_read);
    refused_together(semaphore(3, NULL), semaphore(3, NULL));
    refused_together(semaphore(3, &one), semaphore(3, &one));
}

/* ---------------------------------------------------------------- two stores */

/* Two clients of each, and in each a lock; the second store's has the name that sorts first. */
struct stores {
    mortise_client *clients[2][2]; /* by store; those of the first are the suite's */
    mortise_lock *locks[2][2];     /* by client, then by store */
};

static struct stores with_store(const char *url)
{
    static const char *const names[] = {"stores/b", "stores/a"};
    struct stores stores = {.clients = {{client, other}}};
    for (int i = 0; i < 2; i++) {
        check(mortise_open(url, NULL, &stores.clients[1][i]) == MORTISE_OK);
        for (int k = 0; k < 2; k++)
            stores.locks[i][k] = api_lock(stores.clients[k][i], names[k]);
    }
    return stores;
}

static void close_store(const struct stores *stores)
{
    for (int i = 0; i < 2; i++) {
        mortise_lock_free(stores->locks[i][0]);
        api_close(stores->clients[1][i]);
    }
}

static void await_in(const struct stores *stores, int k, int count)
{
    api_await_tickets(stores->clients[k][1], mortise_lock_name(stores->locks[1][k]), count);
}

/* The k-th store's lock cannot be had, in vain and then in time; in both orders of the list. */
static void all_or_nothing_of(const struct stores *stores, int k, bool turned)
{
    mortise_lock *locks[] = {stores->locks[0][turned], stores->locks[0][!turned]};
    mortise_hold holds[2], taken = api_acquire(stores->locks[1][k]);
    for (int64_t wait = 0; wait <= 60; wait += 60) {
        assert_int_equal(mortise_acquire_all(locks, 2, wait, holds),
                         wait ? MORTISE_ETIMEOUT : MORTISE_EBUSY);
        await_in(stores, k, 1);
        await_in(stores, !k, 0);
    }
    api_release(taken);
    await_in(stores, k, 0);
    assert_int_equal(mortise_acquire_all(locks, 2, -1, holds), MORTISE_OK);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(mortise_hold_name(holds[i]), mortise_lock_name(locks[i]));
        assert_int_equal(mortise_try_acquire(stores->locks[1][i], &taken), MORTISE_EBUSY);
    }
    assert_int_equal(mortise_release_all(holds, 2), MORTISE_OK);
    await_in(stores, 0, 0);
    await_in(stores, 1, 0);
}

static void ab_against_ba_of(const struct stores *stores)
{
    mortise_lock *const(*locks)[2] = stores->locks;
    int counter = 0, rounds = api_lease_ms() ? ROUNDS / 40 : ROUNDS / 4;
    struct side sides[] = {{{locks[0][0], locks[0][1]}, &counter, rounds},
                           {{locks[1][1], locks[1][0]}, &counter, rounds}};
    pthread_t threads[] = {api_thread(take_both, &sides[0]), api_thread(take_both, &sides[1])};
    api_join(threads[0]);
    api_join(threads[1]);
    assert_int_equal(counter, 2 * rounds);
}

static void play_two_stores(const char *url)
{
    struct stores stores = with_store(url);
    for (int i = 0; i < 4; i++)
        all_or_nothing_of(&stores, i / 2, i % 2);
    ab_against_ba_of(&stores);
    close_store(&stores);
}

/* As if its thread did not run for a while, just before it gives back. */
static _Atomic bool slow, giving_back;
int __real_mortise_release(mortise_hold hold);
int __wrap_mortise_release(mortise_hold hold);

int __wrap_mortise_release(mortise_hold hold)
{
    if (!slow)
        return __real_mortise_release(hold);
    giving_back = true;
    api_sleep_ms(300);
    int error = __real_mortise_release(hold);
    giving_back = false;
    return error;
}

static void *take_two_closed(void *argument)
{
    mortise_hold holds[2];
    check(mortise_acquire_all(argument, 2, -1, holds) == MORTISE_ECLOSED);
    return NULL;
}

static void test_e6_a_close_waits_for_the_releases_of_an_acquire_all(void **state)
{
    (void)state;
    mortise_client *closing = api_open(0);
    mortise_lock *locks[] = {api_lock(closing, "z1"), api_lock(closing, "z2")};
    mortise_hold taken = api_acquire(api_lock(other, "z2"));
    pthread_t thread = api_thread(take_two_closed, locks);
    api_await_tickets(other, "z2", 2);
    slow = true;
    api_close(closing);
    slow = false;
    assert_false(giving_back);
    api_join(thread);
    api_release(taken);
    assert_given_back("z1");
    assert_given_back("z2");
}

static void test_e6_several_locks_of_this_store_and_of_memory(void **state)
{
    (void)state;
    play_two_stores("memory:elsewhere");
}

static void test_e6_several_locks_of_two_sqlite_files(void **state)
{
    (void)state;
    char url[256];
    if (strncmp(api_url, "sqlite:", 7) != 0)
        skip();
    snprintf(url, sizeof url, "%s.other", api_url);
    play_two_stores(url);
}

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_e6_all_of_several_locks_are_held_and_released),
        cmocka_unit_test(test_e6_several_free_locks_are_acquired_without_a_wait),
        cmocka_unit_test(test_e6_if_one_of_several_locks_fails_none_is_held),
        cmocka_unit_test(test_e7_a_release_that_fails_does_not_stop_the_others),
        cmocka_unit_test(test_e6_nothing_behind_the_one_waited_for_is_held),
        cmocka_unit_test(test_e6_acquiring_a_b_and_b_a_does_not_deadlock),
        cmocka_unit_test(test_e6_threads_acquire_several_locks_by_the_same_handles),
        cmocka_unit_test(test_a_set_may_name_both_sides_of_a_lock_or_one_lock_twice),
        cmocka_unit_test(test_a_set_that_would_wait_for_itself_is_refused),
        cmocka_unit_test(test_a_lock_twice_in_a_set_is_refused_if_it_does_not_nest),
        cmocka_unit_test(test_e6_a_close_waits_for_the_releases_of_an_acquire_all),
        cmocka_unit_test(test_e6_several_locks_of_this_store_and_of_memory),
        cmocka_unit_test(test_e6_several_locks_of_two_sqlite_files),
    };
    return cmocka_run_group_tests(tests, open_clients, close_clients);
}

#ifdef MRT_DEFECTS

int main(int argc, char **argv)
{
    int error = api_begin(argc, argv);
    api_await_ms = 4000; /* in vain, as is expected there */
    return error ? error : api_end(defect_run("api_multi", run_all));
}

#else

int main(int argc, char **argv)
{
    int error = api_begin(argc, argv);
    return error ? error : api_end(run_all());
}

#endif
