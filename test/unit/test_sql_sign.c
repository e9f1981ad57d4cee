/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server's notification is signed (store/sql/sign.h): the values are SHA-256's, computed by
 * another program, at lengths around the ends of its blocks.
 */
#include "cmocka_all.h"

#include "store/sql/sign.h"

#include <string.h>

static const struct mrt_id session = {UINT64_C(0x0001020304050607), UINT64_C(0x08090a0b0c0d0e0f)};
static const struct mrt_id ticket = {UINT64_C(0x0001020304050607), UINT64_C(0xf0f1f2f3f4f5f6f7)};

static void test_a_channel_is_a_hash_of_the_session(void **state)
{
    char channel[MRT_SQL_CHANNEL_SIZE];
    (void)state;
    mrt_sql_channel(session, channel);
    assert_string_equal(channel, "be45cb2605bf36bebde684841a28f0fd");
}

static void test_a_signature_is_of_session_ticket_and_text(void **state)
{
    static const struct {
        size_t length;
        const char *sign;
    } known[] = {{0, "e1fb0171a64be98e"},  {8, "b9d8c6f25041e3f5"},  {23, "69574851cbe965d3"},
                 {24, "fb5f7bcd54f64bde"}, {31, "a4e68c3f223e260f"}, {32, "58ac3eb2835c76a6"},
                 {80, "ad03c83b5e7516d2"}, {87, "ea59908c7c1a9f69"}, {88, "ff5949073d073bb9"},
                 {96, "67d6cec5511bd2e9"}};
    char text[104], sign[MRT_SQL_SIGN_SIZE];
    (void)state;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + i % 8);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        mrt_sql_sign(session, ticket, text, known[i].length, sign);
        assert_string_equal(sign, known[i].sign);
    }
    mrt_sql_sign(session, ticket, text, sizeof text, sign); /* longer than any: cut */
    assert_string_equal(sign, "67d6cec5511bd2e9");
}

static void test_a_ticket_is_named_without_its_sessions_half(void **state)
{
    char name[MRT_ID_TEXT_SIZE];
    struct mrt_id other = {1, 2};
    (void)state;
    mrt_sql_ticket_name(session, ticket, name);
    assert_string_equal(name, "f0f1f2f3f4f5f6f7");
    mrt_sql_ticket_name(session, other, name);
    assert_string_equal(name, "00000000000000010000000000000002");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_channel_is_a_hash_of_the_session),
        cmocka_unit_test(test_a_signature_is_of_session_ticket_and_text),
        cmocka_unit_test(test_a_ticket_is_named_without_its_sessions_half),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
