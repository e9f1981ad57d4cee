/* SPDX-License-Identifier: Apache-2.0 */
/* A client's description of itself, there and back, and texts that others may have written. */
#include "cmocka_all.h"

#include "base/owner.h"

#include <string.h>

static struct mrt_owner parse(const char *text)
{
    struct mrt_owner owner;
    mrt_owner_parse(text, &owner);
    return owner;
}

static void test_f12_d1_the_text_of_an_owner_is_parsed_back(void **state)
{
    (void)state;
    char text[MRT_OWNER_SIZE];
    struct mrt_owner owner = {.label = "night run, \xc3\xbc", .host = "web-1", .pid = 4711}, back;
    mrt_owner_format(&owner, text);
    back = parse(text);
    assert_string_equal(back.label, owner.label);
    assert_string_equal(back.host, "web-1");
    assert_int_equal(back.pid, 4711);
    owner.label[0] = '\0';
    mrt_owner_format(&owner, text);
    back = parse(text);
    assert_string_equal(back.label, "");
    assert_string_equal(back.host, "web-1");
    memset(owner.label, 'l', sizeof owner.label - 1);
    memset(owner.host, 'h', sizeof owner.host - 1);
    owner.pid = 4194304;
    mrt_owner_format(&owner, text);
    back = parse(text);
    assert_string_equal(back.label, owner.label);
    assert_string_equal(back.host, owner.host);
    assert_int_equal(back.pid, owner.pid);
}

static void test_a_label_alone(void **state)
{
    (void)state;
    char text[MRT_OWNER_SIZE];
    const struct mrt_owner owner = {.label = "alone", .host = "not told"};
    mrt_owner_format(&owner, text);
    assert_string_equal(text, "alone");
    struct mrt_owner back = parse(text);
    assert_string_equal(back.label, "alone");
    assert_string_equal(back.host, "");
    assert_int_equal(back.pid, 0);
    assert_string_equal(parse("").label, "");
}

static void test_f23_owner_texts_of_other_programs_are_read_safely(void **state)
{
    (void)state;
    char longer[MORTISE_LABEL_MAX + 2];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_string_equal(parse(longer).label, "");
    assert_string_equal(parse("a\tb").label, "");
    assert_string_equal(parse("\xff\xfe").label, "");
    struct mrt_owner owner = parse("label\n\x01\n12");
    assert_string_equal(owner.label, "label");
    assert_string_equal(owner.host, "");
    assert_int_equal(owner.pid, 12);
    assert_int_equal(parse("l\nh\n-1").pid, 0);
    assert_int_equal(parse("l\nh\n12x").pid, 0);
    assert_int_equal(parse("l\nh\n12\nmore").pid, 0);
    assert_int_equal(parse("l\nh\n12345678901").pid, 0);
    assert_int_equal(parse("l\nh").pid, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f12_d1_the_text_of_an_owner_is_parsed_back),
        cmocka_unit_test(test_a_label_alone),
        cmocka_unit_test(test_f23_owner_texts_of_other_programs_are_read_safely),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
