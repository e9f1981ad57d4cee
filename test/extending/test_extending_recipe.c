/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An example of a recipe: a pair is a lock that two clients may hold at the same time. It is one
 * row of data; the engine, the local tier and every store do the rest. doc/extending.md.
 */
#include "unit/core_fixture.h"

static const struct mrt_recipe example_pair = {.kind = "pair", .capacity = 2, .shared = true};

static void test_two_hold_and_the_third_waits_for_a_release(void **state)
{
    (void)state;
    struct core core;
    core_open_recipe(&core, &example_pair);
    struct mrt_waiter first = core_waiter(1), second = core_waiter(2), third = core_waiter(3);
    core_grant(&core, &first);
    core_acquire(&core, &second);
    core_view(&core, core_fetch(&core, MRT_APPEND), 1);
    core_done(&core, &second, MORTISE_OK);
    core_acquire(&core, &third);
    core_view(&core, core_fetch(&core, MRT_APPEND), 2);
    assert_int_equal(third.state, MRT_WAITER_WAITING);
    assert_int_equal(core_release(&core, first.hold, 1), MORTISE_OK);
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
    core_wake(&core, core.appended);
    core_view(&core, core_fetch(&core, MRT_REFRESH), 1);
    core_done(&core, &third, MORTISE_OK);
    core_free(&core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_hold_and_the_third_waits_for_a_release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
