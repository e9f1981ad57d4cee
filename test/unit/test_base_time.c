/* SPDX-License-Identifier: Apache-2.0 */
/* Time saturates instead of wrapping, and the clock goes forward. */
#include "base/time.h"
#include "cmocka_all.h"

#include <time.h>

static void test_cl_addition_saturates(void **state)
{
    (void)state;
    assert_int_equal(mrt_time_add(1, 2), 3);
    assert_int_equal(mrt_time_add(5, -7), -2);
    assert_int_equal(mrt_time_add(MRT_TIME_NEVER, 0), MRT_TIME_NEVER);
    assert_int_equal(mrt_time_add(MRT_TIME_NEVER, 1), MRT_TIME_NEVER);
    assert_int_equal(mrt_time_add(1, MRT_TIME_NEVER), MRT_TIME_NEVER);
    assert_int_equal(mrt_time_add(MRT_TIME_NEVER, MRT_TIME_NEVER), MRT_TIME_NEVER);
    assert_int_equal(mrt_time_add(INT64_MIN, -1), INT64_MIN);
    assert_int_equal(mrt_time_add(-1, INT64_MIN), INT64_MIN);
    assert_int_equal(mrt_time_add(INT64_MIN, MRT_TIME_NEVER), -1);
}

static void test_cl_milliseconds_saturate(void **state)
{
    (void)state;
    assert_int_equal(mrt_time_from_ms(0), 0);
    assert_int_equal(mrt_time_from_ms(3), 3000000);
    assert_int_equal(mrt_time_from_ms(-3), -3000000);
    assert_int_equal(mrt_time_from_ms(INT64_MAX), MRT_TIME_NEVER);
    assert_int_equal(mrt_time_from_ms(INT64_MIN), INT64_MIN);
    assert_int_equal(mrt_time_from_ms(INT64_MAX / 1000000), INT64_MAX / 1000000 * 1000000);
    assert_int_equal(mrt_time_from_ms(INT64_MAX / 1000000 + 1), MRT_TIME_NEVER);
    assert_int_equal(mrt_time_from_ms(INT64_MIN / 1000000 - 1), INT64_MIN);
}

static void test_cl_the_earlier_of_two_times(void **state)
{
    (void)state;
    assert_int_equal(mrt_time_min(1, 2), 1);
    assert_int_equal(mrt_time_min(2, 1), 1);
    assert_int_equal(mrt_time_min(MRT_TIME_NEVER, 7), 7);
}

static void test_cl_the_rest_of_a_time_is_rounded_up(void **state)
{
    (void)state;
    assert_int_equal(mrt_time_left_ms(5, 5), 0);
    assert_int_equal(mrt_time_left_ms(5, 6), 0);
    assert_int_equal(mrt_time_left_ms(6, 5), 1);
    assert_int_equal(mrt_time_left_ms(2 * MRT_MILLISECOND, 0), 2);
    assert_int_equal(mrt_time_left_ms(2 * MRT_MILLISECOND + 1, 0), 3);
}

static void test_cl_clock_goes_forward(void **state)
{
    (void)state;
    mrt_time last = mrt_time_now();
    assert_true(last > 0);
    for (int i = 0; i < 10000; i++) {
        mrt_time now = mrt_time_now();
        assert_true(now >= last);
        last = now;
    }
}

static void test_cl_wall_clock_is_in_milliseconds(void **state)
{
    (void)state;
    int64_t before = (int64_t)time(NULL) * 1000, now = mrt_time_wall_ms();
    assert_in_range(now, before, before + 60000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cl_addition_saturates),
        cmocka_unit_test(test_cl_milliseconds_saturate),
        cmocka_unit_test(test_cl_the_earlier_of_two_times),
        cmocka_unit_test(test_cl_the_rest_of_a_time_is_rounded_up),
        cmocka_unit_test(test_cl_clock_goes_forward),
        cmocka_unit_test(test_cl_wall_clock_is_in_milliseconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
