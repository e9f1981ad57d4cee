/* SPDX-License-Identifier: Apache-2.0 */
/* The error table: complete, without duplicates, and per thread in its particulars. */
#include "base/error.h"
#include "cmocka_all.h"

#include <pthread.h>
#include <string.h>

static const int codes[] = {
#define CODE(name, number, kind, text) MORTISE_##name,
    MORTISE_ERROR_MAP(CODE)
#undef CODE
};
#define CODES (sizeof codes / sizeof codes[0])

static void test_h2_every_code_has_kind_name_and_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < CODES; i++) {
        assert_true(codes[i] < 0);
        assert_int_not_equal(mortise_error_kind_of(codes[i]), MORTISE_KIND_NONE);
        assert_true(strlen(mortise_error_text(codes[i])) > 5);
        assert_null(strchr(mortise_error_text(codes[i]), '\n'));
        assert_int_equal(mortise_error_name(codes[i])[0], 'E');
    }
}

static void test_h2_codes_names_and_texts_are_unique(void **state)
{
    (void)state;
    for (size_t i = 0; i < CODES; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_int_not_equal(codes[i], codes[j]);
            assert_string_not_equal(mortise_error_name(codes[i]), mortise_error_name(codes[j]));
            assert_string_not_equal(mortise_error_text(codes[i]), mortise_error_text(codes[j]));
        }
    }
}

/* Numbers are part of the binary interface: a change here breaks programs already built. */
static void test_h2_numbers_never_change(void **state)
{
    (void)state;
    assert_int_equal(MORTISE_EBUSY, -1);
    assert_int_equal(MORTISE_ETIMEOUT, -2);
    assert_int_equal(MORTISE_ECANCELLED, -3);
    assert_int_equal(MORTISE_ECLOSED, -4);
    assert_int_equal(MORTISE_ELOST, -5);
    assert_int_equal(MORTISE_ENOTHELD, -6);
    assert_int_equal(MORTISE_ENOTOWNER, -7);
    assert_int_equal(MORTISE_EDEADLOCK, -8);
    assert_int_equal(MORTISE_EFORKED, -9);
    assert_int_equal(MORTISE_EINVALID, -10);
    assert_int_equal(MORTISE_ENAME, -11);
    assert_int_equal(MORTISE_EURI, -12);
    assert_int_equal(MORTISE_ESCHEME, -13);
    assert_int_equal(MORTISE_EPERMISSION, -14);
    assert_int_equal(MORTISE_EUNSAFE, -15);
    assert_int_equal(MORTISE_EUNREACHABLE, -16);
    assert_int_equal(MORTISE_ESTORE, -17);
    assert_int_equal(MORTISE_EUNKNOWN, -18);
    assert_int_equal(MORTISE_EMISMATCH, -19);
    assert_int_equal(MORTISE_ENOTSUPPORTED, -20);
    assert_int_equal(MORTISE_ENOMEM, -21);
    assert_int_equal(MORTISE_EINTERNAL, -22);
    assert_int_equal(MORTISE_EFULL, -23);
    assert_int_equal(MORTISE_EDISCONNECTED, -27);
}

/* As a program does that parses no macros: constants in a switch, and names by number. */
static const char *name_in_a_switch(enum mortise_error error)
{
    switch (error) {
#define CASE(name, number, kind, text) \
    case MORTISE_##name:               \
        return #name;
        MORTISE_ERROR_MAP(CASE)
#undef CASE
    case MORTISE_OK:
        return "OK";
    }
    return "unknown";
}

static void test_h2_every_constant_has_its_row(void **state)
{
    (void)state;
    for (int number = 0; number >= -(int)CODES; number--) /* without a gap */
        assert_string_equal(mortise_error_name(number),
                            name_in_a_switch((enum mortise_error)number));
    assert_string_equal(mortise_error_name(-(int)CODES - 1), "unknown");
}

static void test_h2_unknown_numbers(void **state)
{
    (void)state;
    static const int strange[] = {1, -1000, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++) {
        assert_string_equal(mortise_error_text(strange[i]), "unknown error");
        assert_string_equal(mortise_error_name(strange[i]), "unknown");
        assert_int_equal(mortise_error_kind_of(strange[i]), MORTISE_KIND_INTERNAL);
    }
    assert_string_equal(mortise_error_text(MORTISE_OK), "success");
    assert_string_equal(mortise_error_name(MORTISE_OK), "OK");
    assert_int_equal(mortise_error_kind_of(MORTISE_OK), MORTISE_KIND_NONE);
}

static void test_h2_particulars_are_cut_and_cleared(void **state)
{
    (void)state;
    char big[2 * MRT_ERROR_DETAIL_MAX];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    assert_int_equal(mrt_error(MORTISE_EBUSY, "%s", big), MORTISE_EBUSY);
    assert_int_equal(strlen(mortise_error_detail()), MRT_ERROR_DETAIL_MAX - 1);
    char copy[MRT_ERROR_DETAIL_MAX];
    mrt_error_copy_detail(copy);
    assert_string_equal(copy, mortise_error_detail());
    mrt_error_clear();
    assert_string_equal(mortise_error_detail(), "");
}

static void *other_thread(void *seen)
{
    *(int *)seen = mortise_error_detail()[0];
    mrt_error(MORTISE_EBUSY, "theirs");
    return NULL;
}

static void test_h2_particulars_are_per_thread(void **state)
{
    (void)state;
    pthread_t thread;
    int seen = -1;
    mrt_error(MORTISE_EBUSY, "mine");
    assert_int_equal(pthread_create(&thread, NULL, other_thread, &seen), 0);
    pthread_join(thread, NULL);
    assert_int_equal(seen, 0);
    assert_string_equal(mortise_error_detail(), "mine");
}

static void test_u42_the_library_tells_its_version(void **state)
{
    (void)state;
    assert_string_equal(mortise_version(), MORTISE_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_u42_the_library_tells_its_version),
        cmocka_unit_test(test_h2_every_code_has_kind_name_and_text),
        cmocka_unit_test(test_h2_codes_names_and_texts_are_unique),
        cmocka_unit_test(test_h2_numbers_never_change),
        cmocka_unit_test(test_h2_every_constant_has_its_row),
        cmocka_unit_test(test_h2_unknown_numbers),
        cmocka_unit_test(test_h2_particulars_are_cut_and_cleared),
        cmocka_unit_test(test_h2_particulars_are_per_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
