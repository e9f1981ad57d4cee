/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses that servers listen on, in their words: which of them other machines can reach. */
#include "base/listen.h"
#include "cmocka_all.h"

static const char *const closed[] = {
    "",
    " ",
    ", ",
    "127.0.0.1",
    "127.0.0.1 -::1",
    "127.0.0.1,::1",
    " ::1 , 127.1.2.3 ,",
    "localhost",
    "-127.0.0.1 localhost",
};

static const char *const open[] = {
    "*",
    "-*",
    "* -::*",
    "0.0.0.0",
    "::",
    "127.0.0.1,10.0.0.1",
    "127.0.0.1 -::*",
    "::1, fe80::1",
    "::1:2",
    "::12",
    "127.",
    "127.example",
    "1127.0.0.1",
    "localhost.example",
    "local",
    "db.example, localhost",
};

static void test_loopback_addresses_are_not_open(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof closed / sizeof closed[0]; i++)
        if (mrt_listens_for_others(closed[i]))
            fail_msg("\"%s\" is closed", closed[i]);
}

static void test_addresses_other_than_loopback_are_open(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++)
        if (!mrt_listens_for_others(open[i]))
            fail_msg("\"%s\" is open", open[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loopback_addresses_are_not_open),
        cmocka_unit_test(test_addresses_other_than_loopback_are_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
