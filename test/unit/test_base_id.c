/* SPDX-License-Identifier: Apache-2.0 */
/* Identities: text and back, strict parsing, and entropy that differs. */
#include "base/id.h"
#include "cmocka_all.h"

#include <string.h>

static void test_id_text_round_trip(void **state)
{
    (void)state;
    static const struct mrt_id ids[] = {
        {0, 0}, {0, 1}, {1, 0}, {UINT64_MAX, UINT64_MAX}, {0x0123456789abcdef, 0xfedcba9876543210},
    };
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        char text[MRT_ID_TEXT_SIZE];
        struct mrt_id back = {7, 7};
        mrt_id_format(ids[i], text);
        assert_int_equal(strlen(text), 32);
        assert_true(mrt_id_parse(text, &back));
        assert_true(mrt_id_equal(ids[i], back));
    }
    char text[MRT_ID_TEXT_SIZE];
    mrt_id_format(ids[4], text);
    assert_string_equal(text, "0123456789abcdeffedcba9876543210");
}

static void test_id_parse_is_strict(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "0",
        "0123456789abcdeffedcba987654321",   /* 31 */
        "0123456789abcdeffedcba98765432100", /* 33 */
        "0123456789ABCDEFfedcba9876543210",
        "0123456789abcdegfedcba9876543210",
        " 123456789abcdeffedcba9876543210",
        "0x23456789abcdeffedcba9876543210",
        "-123456789abcdeffedcba9876543210",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct mrt_id id = {7, 7};
        assert_false(mrt_id_parse(bad[i], &id));
        assert_true(id.high == 7 && id.low == 7);
    }
}

static void test_id_equal_and_none(void **state)
{
    (void)state;
    struct mrt_id a = {1, 2};
    assert_true(mrt_id_equal(a, (struct mrt_id){1, 2}));
    assert_false(mrt_id_equal(a, (struct mrt_id){1, 3}));
    assert_false(mrt_id_equal(a, (struct mrt_id){2, 2}));
    assert_true(mrt_id_none((struct mrt_id){0, 0}));
    assert_false(mrt_id_none((struct mrt_id){0, 1}));
    assert_false(mrt_id_none((struct mrt_id){1, 0}));
}

static void test_id_random_differs(void **state)
{
    (void)state;
    struct mrt_id seen[64];
    for (size_t i = 0; i < 64; i++) {
        assert_true(mrt_id_random(&seen[i]));
        for (size_t j = 0; j < i; j++)
            assert_false(mrt_id_equal(seen[i], seen[j]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_id_text_round_trip),
        cmocka_unit_test(test_id_parse_is_strict),
        cmocka_unit_test(test_id_equal_and_none),
        cmocka_unit_test(test_id_random_differs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
