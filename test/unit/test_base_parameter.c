/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of store URIs by a table: what reaches the struct, and what is refused in which words.
 */
#include "cmocka_all.h"

#include "base/parameter.h"
#include "mortise.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum color { RED, GREEN, BLUE };
static const char *const colors[] = {"red", "green", "blue", NULL};

struct members {
    mrt_time lease;
    uint64_t copies;
    enum color color;
    bool loud;
    char path[8];
};

static const struct mrt_parameter rows[] = {
    {"lease", MRT_PARAMETER_DURATION, offsetof(struct members, lease), .least = MRT_MILLISECOND,
     .most = 60 * MRT_SECOND},
    {"copies", MRT_PARAMETER_NUMBER, offsetof(struct members, copies), .least = 0, .most = 100},
    {"color", MRT_PARAMETER_WORD, offsetof(struct members, color), .words = colors},
    {"loud", MRT_PARAMETER_FLAG, .offset = offsetof(struct members, loud)},
    {"path", MRT_PARAMETER_TEXT, offsetof(struct members, path), .most = 8},
    {.key = "secret"},
    {.key = NULL}};

static int read_members(const char *query, struct members *members)
{
    static struct mrt_uri uri;
    char text[256];
    snprintf(text, sizeof text, "a:b?%s", query);
    assert_int_equal(mrt_uri_parse(text, &uri), MORTISE_OK);
    *members = (struct members){1, 2, GREEN, true, "old"};
    return mrt_parameters_read(&uri, rows, members);
}

static void test_values_reach_their_members(void **state)
{
    (void)state;
    struct members got;
    assert_int_equal(
        read_members("lease=60s&copies=100&color=blue&loud=no&path=1234567&secret=x", &got),
        MORTISE_OK);
    assert_int_equal(got.lease, 60 * MRT_SECOND);
    assert_int_equal(got.copies, 100);
    assert_int_equal(got.color, BLUE);
    assert_false(got.loud);
    assert_string_equal(got.path, "1234567");
    assert_int_equal(read_members("lease=1ms&copies=0&color=red&loud=yes&path=", &got), MORTISE_OK);
    assert_int_equal(got.lease, MRT_MILLISECOND);
    assert_int_equal(got.copies, 0);
    assert_int_equal(got.color, RED);
    assert_true(got.loud);
    assert_string_equal(got.path, "");
}

static void test_members_without_a_parameter_stay(void **state)
{
    (void)state;
    struct members got;
    assert_int_equal(read_members("namespace=n&queue_max=3", &got), MORTISE_OK);
    assert_int_equal(got.lease, 1);
    assert_int_equal(got.copies, 2);
    assert_int_equal(got.color, GREEN);
    assert_true(got.loud);
    assert_string_equal(got.path, "old");
}

static void test_values_outside_are_refused_in_these_words(void **state)
{
    (void)state;
    static const char *const durations[] = {"",    "s",       "5",    "5m",
                                            "-5s", "0s",      "61s",  "1.5s",
                                            "5s ", "60001ms", "5sms", "99999999999999999999s"};
    static const struct {
        const char *query, *words;
    } others[] = {
        {"copies=101", "copies=101 is not a number from 0 to 100"},
        {"copies=", "copies= is not a number from 0 to 100"},
        {"copies=1x", "copies=1x is not a number from 0 to 100"},
        {"copies=18446744073709551617", "is not a number from 0 to 100"},
        {"color=pink", "color=pink is not red, green or blue"},
        {"color=", "color= is not red, green or blue"},
        {"loud=maybe", "loud=maybe is not yes or no"},
        {"path=12345678", "path= is longer than 7 bytes"},
        {"other=hunter2", "unknown parameter \"other\""},
    };
    struct members got;
    char query[64];
    for (size_t i = 0; i < sizeof durations / sizeof durations[0]; i++) {
        snprintf(query, sizeof query, "lease=%s", durations[i]);
        assert_int_equal(read_members(query, &got), MORTISE_EURI);
        assert_non_null(strstr(mortise_error_detail(), query));
        assert_non_null(strstr(mortise_error_detail(),
                               " is not a duration from 1ms to 60s, such as 10s or 500ms"));
        assert_int_equal(got.lease, 1);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_int_equal(read_members(others[i].query, &got), MORTISE_EURI);
        assert_non_null(strstr(mortise_error_detail(), others[i].words));
        assert_null(strstr(mortise_error_detail(), "hunter2"));
        assert_string_equal(got.path, "old");
    }
}

static void test_parameters_of_others_may_be_left_to_the_caller(void **state)
{
    (void)state;
    struct mrt_uri uri;
    struct members got = {.copies = 2};
    assert_int_equal(mrt_uri_parse("a:b?other=1&copies=7", &uri), MORTISE_OK);
    assert_int_equal(mrt_parameters_read(&uri, rows, &got), MORTISE_EURI);
    assert_int_equal(got.copies, 2);
    assert_int_equal(mrt_parameters_read_known(&uri, rows, &got), MORTISE_OK);
    assert_int_equal(got.copies, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_reach_their_members),
        cmocka_unit_test(test_members_without_a_parameter_stay),
        cmocka_unit_test(test_values_outside_are_refused_in_these_words),
        cmocka_unit_test(test_parameters_of_others_may_be_left_to_the_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
