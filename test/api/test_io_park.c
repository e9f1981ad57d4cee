/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parking a thread: no wake is lost. One thread counts up and wakes, the other parks
 * until it has seen each count; now and then the first waits to be caught up with. A
 * wake lost would leave both asleep for ever.
 */
#include "io/park.h"

#include "cmocka_all.h"

#include <pthread.h>

#define ROUNDS 1000000

struct pair {
    struct mrt_park sleeper, waker;
    _Atomic uint64_t given, taken;
    uint64_t parked;
};

static void *take(void *argument)
{
    struct pair *pair = argument;
    uint64_t seen = 0;
    while (seen < ROUNDS) {
        while (atomic_load(&pair->given) == seen) {
            mrt_park_wait(&pair->sleeper, MRT_TIME_NEVER);
            pair->parked++;
        }
        seen = atomic_load(&pair->given);
        atomic_store(&pair->taken, seen);
        mrt_park_wake(&pair->waker);
    }
    return NULL;
}

static void test_h4_a_million_wakes_and_none_is_lost(void **state)
{
    (void)state;
    struct pair pair = {0};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, take, &pair), 0);
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        atomic_store(&pair.given, i);
        mrt_park_wake(&pair.sleeper);
        if (i % 16 == 0 || i == ROUNDS)
            while (atomic_load(&pair.taken) < i)
                mrt_park_wait(&pair.waker, MRT_TIME_NEVER);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(pair.parked > 0);
}

static void test_h4_a_wake_that_comes_first_is_kept(void **state)
{
    (void)state;
    struct mrt_park park = {0};
    for (int i = 0; i < 1000; i++) {
        mrt_park_wake(&park);
        mrt_park_wake(&park); /* once more makes no difference */
        mrt_park_wait(&park, MRT_TIME_NEVER);
    }
}

static void test_f3_a_park_ends_at_its_time(void **state)
{
    (void)state;
    struct mrt_park park = {0};
    mrt_time begin = mrt_time_now(), until = begin + 20 * MRT_MILLISECOND;
    while (mrt_time_now() < until)
        mrt_park_wait(&park, until);
    assert_true(mrt_time_now() - begin >= 20 * MRT_MILLISECOND);
    mrt_park_wait(&park, begin); /* long past: at once */
    mrt_park_wake(&park);        /* and a late thread is not missed */
    mrt_park_wait(&park, MRT_TIME_NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_h4_a_million_wakes_and_none_is_lost),
        cmocka_unit_test(test_h4_a_wake_that_comes_first_is_kept),
        cmocka_unit_test(test_f3_a_park_ends_at_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
