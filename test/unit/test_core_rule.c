/* SPDX-License-Identifier: Apache-2.0 */
/* The grant rule against its definition in a wider type, and the recipe of the mutex. */
#include "core/rule.h"

#include "cmocka_all.h"

#include "core/recipe.h"

#define WRITER (UINT64_C(1) << 31)

static void test_f14_rule_table(void **state)
{
    (void)state;
    static const struct {
        uint64_t ahead, weight, capacity;
        bool grants;
    } table[] = {
        {0, 1, 1, true}, /* mutex */
        {1, 1, 1, false},
        {UINT64_MAX, 1, 1, false},
        {0, 3, 3, true}, /* semaphore of 3 */
        {2, 1, 3, true},
        {2, 2, 3, false},
        {3, 1, 3, false},
        {0, 4, 3, false},              /* more than there is: never */
        {WRITER - 1, 1, WRITER, true}, /* read/write */
        {WRITER, 1, WRITER, false},
        {1, WRITER, WRITER, false},
        {0, WRITER, WRITER, true},
        {0, 0, 0, true},
        {1, 0, 0, false},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        assert_int_equal(mrt_rule_grants(table[i].ahead, table[i].weight, table[i].capacity),
                         table[i].grants);
}

static void test_rule_does_not_overflow(void **state)
{
    (void)state;
    static const uint64_t edges[] = {
        0,         1, 2, WRITER - 1, WRITER, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX - 1,
        UINT64_MAX};
    const size_t count = sizeof edges / sizeof edges[0];
    for (size_t a = 0; a < count; a++)
        for (size_t w = 0; w < count; w++)
            for (size_t c = 0; c < count; c++) {
                __extension__ typedef unsigned __int128 wide;
                bool expected = (wide)edges[a] + edges[w] <= edges[c];
                assert_int_equal(mrt_rule_grants(edges[a], edges[w], edges[c]), expected);
            }
}

/* An old view may delay, never over-grant: what is ahead only falls. */
static void test_rule_is_monotonic(void **state)
{
    (void)state;
    for (uint64_t capacity = 0; capacity < 12; capacity++)
        for (uint64_t weight = 0; weight < 12; weight++)
            for (uint64_t ahead = 1; ahead < 24; ahead++)
                if (mrt_rule_grants(ahead, weight, capacity))
                    assert_true(mrt_rule_grants(ahead - 1, weight, capacity));
}

static void test_a3_mutex_recipe(void **state)
{
    (void)state;
    assert_string_equal(mrt_mutex.kind, "mutex");
    assert_int_equal(mrt_mutex.capacity, 1);
    assert_true(mrt_mutex.reentrant);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f14_rule_table),
        cmocka_unit_test(test_rule_does_not_overflow),
        cmocka_unit_test(test_rule_is_monotonic),
        cmocka_unit_test(test_a3_mutex_recipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
