/* SPDX-License-Identifier: Apache-2.0 */
/* A list on a quorum shows the tickets that a majority of its members has. */
#include "live/quorum_place.h"

#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

/* Each row's place, one digit a row; with a fence, which a quorum has none of, a sign behind it. */
static int note_place(void *argument, const struct mrt_listed *row)
{
    char *places = argument;
    size_t length = strlen(places);
    snprintf(places + length, 16 - length, "%u%s", row->entry.place, row->entry.fence ? "!" : "");
    return 0;
}

static const char *places(void)
{
    static char shown[16];
    *shown = '\0';
    assert_int_equal(quorum.ops->list(quorum.store, "q", NULL, note_place, shown), MORTISE_OK);
    return shown;
}

static void test_a_holder_is_shown_whose_first_member_is_empty(void **state)
{
    (void)state;
    occupy(0);
    struct mrt_event view = acquire(); /* at 1 and 2 */
    assert_true(holds(&view));
    assert_string_equal(places(), "01");
    vacate(0);
    assert_string_equal(places(), "0");
}

static void test_a_claim_at_a_minority_is_no_holder(void **state)
{
    (void)state;
    occupy(0);
    assert_string_equal(places(), "1");
    occupy(1); /* each by another one */
    assert_string_equal(places(), "12");
}

static void test_a_list_needs_answers_of_a_majority(void **state)
{
    (void)state;
    struct mrt_event view = acquire();
    assert_true(holds(&view));
    ways[0].away = true;
    assert_string_equal(places(), "0");
    ways[2].away = true;
    char shown[16] = "";
    assert_int_equal(quorum.ops->list(quorum.store, "q", NULL, note_place, shown),
                     MORTISE_EUNREACHABLE);
    assert_string_equal(shown, "");
}

int quorum_list(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_holder_is_shown_whose_first_member_is_empty,
                                        open_three, close_place),
        cmocka_unit_test_setup_teardown(test_a_claim_at_a_minority_is_no_holder, open_three,
                                        close_place),
        cmocka_unit_test_setup_teardown(test_a_list_needs_answers_of_a_majority, open_three,
                                        close_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
