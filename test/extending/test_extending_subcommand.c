/* SPDX-License-Identifier: Apache-2.0 */
/* The example of a subcommand in a table of its own, as src/cli/main.c has one, on a memory store.
 */
#include "cmocka_all.h"

#include "cli/frame/cli.h"
#include "extending/held_subcommand.h"

static mrt_subcommands subcommands[] = {&example_held_subcommand, NULL};

static int call_held(int argc, char **argv)
{
    struct mrt_cli cli = {.url = "memory:extending",
                          .subcommands = subcommands,
                          .subcommand = &example_held_subcommand};
    optind = 0;
    return example_held_subcommand.function(&cli, argc, argv);
}

static void test_the_exit_code_says_whether_a_lock_is_held(void **state)
{
    (void)state;
    mortise_client *client;
    mortise_lock *lock;
    mortise_hold hold;
    char *arguments[] = {"held", "door", NULL};
    assert_int_equal(mortise_open("memory:extending", NULL, &client), MORTISE_OK);
    assert_int_equal(mortise_mutex_new(client, "door", NULL, &lock), MORTISE_OK);
    assert_int_equal(call_held(2, arguments), MRT_EXIT_FAILED);
    assert_int_equal(mortise_acquire(lock, &hold), MORTISE_OK);
    assert_int_equal(call_held(2, arguments), MRT_EXIT_OK);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    assert_int_equal(call_held(2, arguments), MRT_EXIT_FAILED);
    assert_int_equal(mortise_close(client), MORTISE_OK);
}

static void test_wrong_arguments_are_an_error_of_usage(void **state)
{
    (void)state;
    char *none[] = {"held", NULL}, *unknown[] = {"held", "--unknown", "door", NULL};
    assert_int_equal(call_held(1, none), MRT_EXIT_USAGE);
    assert_int_equal(call_held(3, unknown), MRT_EXIT_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_exit_code_says_whether_a_lock_is_held),
        cmocka_unit_test(test_wrong_arguments_are_an_error_of_usage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
