/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judge judged: histories made by hand, good ones accepted and bad ones refused for
 * the right reason. Without this a checker that finds nothing would look like a lock
 * without fault.
 */
#include "cmocka_all.h"

#include "chaos/history.h"

#include <stdio.h>
#include <string.h>

static struct chaos_verdict verdict;

static void judge(const char *text)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    rewind(file);
    assert_int_equal(chaos_history_check(file, &verdict), 0);
    fclose(file);
}

static void accept(const char *text)
{
    judge(text);
    if (chaos_faults(&verdict))
        print_error("%s\n%s", verdict.first, text);
    assert_int_equal(chaos_faults(&verdict), 0);
}

/* Exactly one fault, of this sort. */
static void refuse(const char *text, const unsigned long *counter)
{
    judge(text);
    if (*counter != 1 || chaos_faults(&verdict) != 1)
        print_error("%s\n%s", verdict.first, text);
    assert_int_equal(*counter, 1);
    assert_int_equal(chaos_faults(&verdict), 1);
}

#define TAKES_TURN                                    \
    "10 ask 1 0 0\n20 got 1 5 90\n30 release 1 5 0\n" \
    "12 ask 2 0 0\n31 got 2 6 99\n40 release 2 6 0\n"
#define BOTH_LEAVE "95 left 1 0 0\n96 left 2 0 0\n"

static void test_l7_good_histories_are_accepted(void **state)
{
    (void)state;
    accept("");
    accept(TAKES_TURN BOTH_LEAVE);
    assert_int_equal(verdict.holds, 2);
    /* in any order in the file */
    accept(BOTH_LEAVE TAKES_TURN);
    /* the lease is over before the next begins, and its owner sees it much later */
    accept("1 ask 1 0 0\n2 got 1 5 10\n3 ask 2 0 0\n10 got 2 6 50\n20 release 2 6 0\n"
           "80 lost 1 5 0\n" BOTH_LEAVE);
    /* lost earlier than the lease said */
    accept("1 ask 1 0 0\n2 got 1 5 90\n3 ask 2 0 0\n8 lost 1 5 0\n10 got 2 6 50\n"
           "20 release 2 6 0\n" BOTH_LEAVE);
    /* killed while it held, and nobody before it was dead */
    accept("1 ask 1 0 0\n2 got 1 5 90\n3 ask 2 0 0\n9 dead 1 0 0\n10 got 2 6 50\n"
           "20 release 2 6 0\n96 left 2 0 0\n");
    /* one acquire in vain, one killed while it waited */
    accept("1 ask 1 0 0\n5 failed 1 1 0\n6 ask 2 0 0\n7 dead 2 0 0\n8 left 1 0 0\n");
    /* renewed */
    accept("1 ask 1 0 0\n2 got 1 5 10\n9 still 1 5 19\n3 ask 2 0 0\n18 release 1 5 0\n"
           "19 got 2 6 50\n20 release 2 6 0\n" BOTH_LEAVE);
    /* all are served after a heal; a client that died after it is excused, and one that came after
     * it is not expected */
    accept("1 ask 1 0 0\n1 ask 2 0 0\n1 ask 3 0 0\n2 cut 0 1 0\n5 heal 0 1 0\n8 got 1 5 90\n"
           "9 release 1 5 0\n10 dead 3 0 0\n11 got 2 6 90\n12 release 2 6 0\n12 ask 4 0 0\n"
           "13 cut 0 2 0\n14 dead 4 0 0\n" BOTH_LEAVE);
    assert_int_equal(verdict.heals, 1);
    assert_int_equal(verdict.heal[0].longest, 6);
}

static void test_l7_overlaps_are_found(void **state)
{
    (void)state;
    const unsigned long *overlaps = &verdict.overlaps;
    refuse("1 ask 1 0 0\n2 got 1 5 90\n3 ask 2 0 0\n20 got 2 6 90\n30 release 1 5 0\n"
           "40 release 2 6 0\n" BOTH_LEAVE,
           overlaps);
    assert_int_equal(verdict.longest_overlap, 10);
    /* one inside the other, which did not know it */
    refuse("1 ask 1 0 0\n2 got 1 5 90\n3 ask 2 0 0\n20 got 2 6 90\n30 release 2 6 0\n"
           "40 release 1 5 0\n" BOTH_LEAVE,
           overlaps);
    assert_int_equal(verdict.longest_overlap, 10);
    /* before the other's lease was over, although it was silent */
    refuse("1 ask 1 0 0\n2 got 1 5 60\n3 ask 2 0 0\n50 got 2 6 90\n60 release 2 6 0\n"
           "70 lost 1 5 0\n" BOTH_LEAVE,
           overlaps);
    assert_int_equal(verdict.longest_overlap, 10);
    /* a lease that had been renewed, and one said to hold on after it had ended */
    refuse("1 ask 1 0 0\n2 got 1 5 9\n8 still 1 5 60\n3 ask 2 0 0\n50 got 2 6 90\n"
           "60 release 2 6 0\n70 lost 1 5 0\n" BOTH_LEAVE,
           overlaps);
    refuse("1 ask 1 0 0\n2 got 1 5 9\n3 ask 2 0 0\n20 got 2 6 90\n30 release 2 6 0\n"
           "60 still 1 5 80\n70 release 1 5 0\n" BOTH_LEAVE,
           overlaps);
    /* before the killed one was dead */
    refuse("1 ask 1 0 0\n2 got 1 5 90\n3 ask 2 0 0\n9 got 2 6 50\n15 release 2 6 0\n"
           "20 dead 1 0 0\n96 left 2 0 0\n",
           overlaps);
    /* not with the one just before, but with an earlier one */
    refuse("1 ask 1 0 0\n2 got 1 5 30\n3 ask 2 0 0\n4 ask 3 0 0\n30 got 2 6 90\n40 release 2 6 0\n"
           "30 lost 1 5 0\n35 got 3 7 90\n36 release 3 7 0\n97 left 3 0 0\n" BOTH_LEAVE,
           overlaps);
}

static void test_l7_fences_that_do_not_rise_are_found(void **state)
{
    (void)state;
    refuse("10 ask 1 0 0\n20 got 1 5 90\n30 release 1 5 0\n"
           "12 ask 2 0 0\n31 got 2 5 99\n40 release 2 5 0\n" BOTH_LEAVE,
           &verdict.fences);
    refuse("10 ask 1 0 0\n20 got 1 5 90\n30 release 1 5 0\n"
           "12 ask 2 0 0\n31 got 2 4 99\n40 release 2 4 0\n" BOTH_LEAVE,
           &verdict.fences);
    refuse("10 ask 1 0 0\n20 got 1 0 90\n30 release 1 0 0\n95 left 1 0 0\n", &verdict.fences);
}

static void test_l7_a_waiter_that_is_not_served_is_found(void **state)
{
    (void)state;
    const unsigned long *unserved = &verdict.unserved;
    /* until the next cut, the next heal, and the end */
    refuse("1 ask 1 0 0\n2 heal 0 1 0\n3 cut 0 2 0\n9 got 1 5 90\n10 release 1 5 0\n"
           "95 left 1 0 0\n",
           unserved);
    refuse("1 ask 1 0 0\n1 failed 1 1 0\n2 heal 0 1 0\n3 left 1 0 0\n", unserved);
    refuse(TAKES_TURN "50 heal 0 1 0\n60 ask 1 0 0\n61 got 1 7 90\n62 release 1 7 0\n" BOTH_LEAVE,
           unserved);
}

static void test_l7_impossible_histories_are_refused(void **state)
{
    static const char *const texts[] = {
        "20 got 1 5 90\n30 left 1 0 0\n",
        "10 ask 1 0 0\n20 got 1 5 90\n",
        "10 ask 1 0 0\n",
        "10 ask 1 0 0\n11 ask 1 0 0\n12 failed 1 1 0\n13 left 1 0 0\n",
        "10 ask 1 0 0\n12 failed 1 1 0\n13 release 1 0 0\n14 left 1 0 0\n",
        "10 ask 1 0 0\n20 got 1 5 90\n22 lost 1 5 0\n23 still 1 5 99\n24 left 1 0 0\n",
        "10 ask 1 0 0\n20 got 1 5 90\n21 still 1 6 90\n22 release 1 5 0\n24 left 1 0 0\n",
        "1 left 1 0 0\n2 dead 1 0 0\n",
        "1 dead 1 0 0\n2 ask 1 0 0\n",
        "1 left 1 0 0\nnonsense\n",
        "1 left 1 0\n",
        "1 left 1 0 0 0\n",
        "1 left 0 0 0\n",
        "1 heal 1 0 0\n2 left 1 0 0\n",
        "1 left 4096 0 0\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        refuse(texts[i], &verdict.broken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_l7_good_histories_are_accepted),
        cmocka_unit_test(test_l7_overlaps_are_found),
        cmocka_unit_test(test_l7_fences_that_do_not_rise_are_found),
        cmocka_unit_test(test_l7_a_waiter_that_is_not_served_is_found),
        cmocka_unit_test(test_l7_impossible_histories_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
