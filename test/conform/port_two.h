/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two users of one place, for a suite: each test has sessions of its own, TEST says so. To be
 * included by the program's only file; `uri` is the place, which main opens.
 */
#ifndef TEST_PORT_TWO_H
#define TEST_PORT_TWO_H

#include "conform/port_client.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_two, close_two)

static const char *uri;
static struct port_client first, second;

static int open_two(void **state)
{
    (void)state;
    port_open_session(&first, uri);
    port_open_session(&second, uri);
    return 0;
}

static int close_two(void **state)
{
    (void)state;
    port_stop(&first);
    port_stop(&second);
    port_close(&first);
    port_close(&second);
    return 0;
}

/* Runs the tests on the place that the first argument names: the exit code. */
static int run_on_place(int argc, char **argv, const struct CMUnitTest *tests, size_t count)
{
    uri = argc > 1 ? port_place_open(argv[1]) : NULL;
    if (!uri)
        return 2;
    int failed = _cmocka_run_group_tests(uri, tests, count, NULL, NULL);
    port_place_close();
    return failed;
}

#endif
