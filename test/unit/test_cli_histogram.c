/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms of mortise bench: buckets in order, quantiles within their promise. */
#include "cli/tools/histogram.h"
#include "cmocka_all.h"

#include <string.h>

static void test_bucket_grows_with_the_value(void **state)
{
    (void)state;
    uint32_t last = 0;
    for (uint64_t value = 0; value < 100000; value++) {
        uint32_t bucket = mrt_histogram_bucket(value);
        assert_true(bucket == last || bucket == last + 1);
        last = bucket;
    }
    for (uint32_t power = 1; power < 64; power++)
        assert_true(mrt_histogram_bucket(UINT64_C(1) << power) >=
                    mrt_histogram_bucket((UINT64_C(1) << power) - 1));
    assert_int_equal(mrt_histogram_bucket(UINT64_MAX), MRT_HISTOGRAM_BUCKETS - 1);
}

static void test_quantile_is_within_three_percent(void **state)
{
    (void)state;
    for (uint64_t value = 1; value < UINT64_C(1) << 43; value = value * 17 / 16 + 1) {
        static struct mrt_histogram histogram;
        memset(&histogram, 0, sizeof histogram);
        mrt_histogram_add(&histogram, value);
        double found = mrt_histogram_quantile(&histogram, 0.5);
        assert_true(found >= (double)value * 0.97 && found <= (double)value * 1.03);
        assert_int_equal(histogram.largest, value);
    }
}

static void test_quantiles_of_a_known_distribution(void **state)
{
    (void)state;
    static struct mrt_histogram even, odd;
    assert_true(mrt_histogram_quantile(&even, 0.5) == 0);
    for (uint64_t value = 1; value <= 100000; value++)
        mrt_histogram_add(value % 2 ? &odd : &even, value);
    mrt_histogram_merge(&even, &odd);
    assert_int_equal(even.total, 100000);
    assert_int_equal(even.largest, 100000);
    static const double quantiles[] = {0.01, 0.5, 0.9, 0.99, 1};
    for (size_t i = 0; i < sizeof quantiles / sizeof quantiles[0]; i++) {
        double found = mrt_histogram_quantile(&even, quantiles[i]) / (quantiles[i] * 100000);
        assert_true(found > 0.97 && found < 1.03);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bucket_grows_with_the_value),
        cmocka_unit_test(test_quantile_is_within_three_percent),
        cmocka_unit_test(test_quantiles_of_a_known_distribution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
