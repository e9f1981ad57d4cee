/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The quorum (store/quorum*.c) on the members of quorum_place.h: which client holds, and for how
 * long. quorum_time.c tests its time limits.
 *
 * Built with seeded defects it is the measure of itself (defect_run.h).
 */
#include "cmocka_all.h"
#include "defect_run.h"
#include "live/quorum_place.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define ROUNDS 15 /* of the contest; each costs some pauses */

/* ------------------------------------------------------------------ who holds */

static void test_m4_a_lock_needs_a_majority_and_no_more(void **state)
{
    (void)state;
    occupy(0);
    occupy(3);
    struct mrt_event view = acquire();
    assert_true(holds(&view));
    assert_int_equal(view.fence, 0);
    for (unsigned i = 0; i < place_members; i++)
        assert_int_equal(port_tickets(&rivals[i], "q"), 1);
}

static void test_m4_m8_rd_10_less_than_a_majority_grants_nothing_and_leaves_nothing(void **state)
{
    (void)state;
    occupy(0);
    occupy(1);
    occupy(4);
    struct mrt_event view = acquire();
    assert_int_equal(view.type, MRT_VIEW);
    assert_false(holds(&view));
    assert_true(empties(2) && empties(3)); /* immediately, since others may want them */
    assert_int_equal(port_try(&quorum, "q", port_id()).type, MRT_BLOCKED);
    assert_true(empties(2) && empties(3));
    vacate(1);
    view = port_refresh(&quorum, "q", &view);
    assert_true(holds(&view));
}

static void test_m6_m7_rd_10_a_claim_whose_answer_is_late_is_let_go(void **state)
{
    (void)state;
    occupy(0);
    silence(1, true);
    struct mrt_event view = acquire(); /* has it at 2 alone, as far as is known */
    assert_int_equal(view.type, MRT_VIEW);
    assert_false(holds(&view));
    assert_true(empties(2));
    silence(1, false);
    assert_true(empties(1));
}

static void test_m7_a_late_removal_does_not_touch_the_next_claim(void **state)
{
    (void)state;
    occupy(0);
    silence(1, true);
    struct mrt_event view = acquire();
    assert_false(holds(&view));
    silence(1, false);
    view = port_refresh(&quorum, "q", &view); /* 1 and 2 */
    assert_true(holds(&view));
    port_wait(&quorum, MRT_STARTED, (struct mrt_id){1, 1}, 300 * MRT_MILLISECOND, NULL);
    assert_int_equal(port_tickets(&rivals[1], "q"), 1);
    view = port_refresh(&quorum, "q", &view);
    assert_true(holds(&view));
}

static void test_m7_a_release_reaches_members_that_did_not_answer(void **state)
{
    (void)state;
    struct mrt_event view = acquire();
    assert_true(holds(&view));
    silence(2, true);
    assert_int_equal(port_remove(&quorum, "q", view.ticket, 0).type, MRT_REMOVED);
    assert_int_equal(port_tickets(&rivals[0], "q"), 0);
    assert_int_equal(port_tickets(&rivals[1], "q"), 0);
    silence(2, false);
    assert_true(empties(2));
}

static void test_m7_a_release_that_no_majority_answers_is_not_proven(void **state)
{
    (void)state;
    struct mrt_event view = acquire();
    silence(1, true);
    silence(2, true);
    assert_int_equal(port_remove(&quorum, "q", view.ticket, 0).type, MRT_UNKNOWN);
    silence(1, false);
    assert_int_equal(port_remove(&quorum, "q", view.ticket, 0).type, MRT_REMOVED);
}

/* The answer that comes late is of the first attempt, which has been let go since. */
static void test_m7_an_answer_to_an_attempt_that_failed_counts_for_no_other(void **state)
{
    (void)state;
    struct mrt_id ticket = port_id();
    ways[1].late = ways[2].late = true;
    assert_int_equal(port_append(&quorum, "q", ticket).type, MRT_FAILED);
    occupy(1);
    occupy(2);
    struct mrt_event view = port_append(&quorum, "q", ticket);
    assert_false(holds(&view));
}

/* The sanitizer sees to it that it does. */
static void test_m7_a_slow_members_append_is_undone_behind_the_session(void **state)
{
    (void)state;
    ways[2].slow = true;
    struct mrt_event view = acquire();
    assert_true(holds(&view));
    assert_int_equal(ways[2].on_its_way.type, MRT_APPEND);
    assert_int_equal(port_stop(&quorum).type, MRT_STOPPED); /* behind it */
    assert_int_equal(ways[2].on_its_way.serial, 0);
    assert_int_equal(port_tickets(&rivals[2], "q"), 0);
    port_close(&quorum);
}

/* ------------------------------------------------------------------ how long */

static void test_m9_m11_rd_11_a_renewal_needs_two_of_three(void **state)
{
    (void)state;
    assert_int_equal(renew(), MRT_RENEWED);
    silence(0, true);
    assert_int_equal(renew(), MRT_RENEWED);
    silence(1, true);
    assert_int_equal(renew(), MRT_UNKNOWN);
    silence(0, false);
    assert_int_equal(renew(), MRT_RENEWED);
}

static void test_m9_rd_11_a_lock_is_renewed_by_the_members_that_have_it(void **state)
{
    (void)state;
    occupy(2);
    struct mrt_event view = acquire(); /* at 0 and 1 */
    assert_true(holds(&view));
    assert_int_equal(renew(), MRT_RENEWED);
    silence(1, true); /* 0 and 2 are a majority, but not of the lock's */
    assert_int_equal(renew(), MRT_UNKNOWN);
    silence(1, false);
    assert_int_equal(renew(), MRT_RENEWED);
}

static int keep_fence(void *argument, const struct mrt_listed *row)
{
    *(uint64_t *)argument = row->entry.fence;
    return 0;
}

/* The member forgets who has it. */
static void forget(unsigned member)
{
    struct port_client *rival = &rivals[member];
    uint64_t fence = 0;
    assert_int_equal(rival->ops->list(rival->store, "q", NULL, keep_fence, &fence), MORTISE_OK);
    assert_int_equal(rival->ops->break_ticket(rival->store, "q", fence), MORTISE_OK);
}

static void test_m9_a_lock_that_members_forgot_is_lost(void **state)
{
    (void)state;
    struct mrt_event view = acquire();
    forget(0);
    view = port_refresh(&quorum, "q", &view);
    assert_true(holds(&view));
    assert_true(view.recheck <= PLACE_LEASE * MRT_MILLISECOND / 3); /* if no member tells */
    forget(2);
    assert_int_equal(port_refresh(&quorum, "q", &view).type, MRT_GONE);
    assert_true(empties(1));
    assert_int_equal(renew(), MRT_RENEWED);
}

static void test_m9_rd_11_rd_22_a_renewal_proves_no_lock_that_members_miss(void **state)
{
    (void)state;
    struct mrt_event view = acquire();
    forget(0);
    ways[0].misses = true;
    assert_int_equal(renew(), MRT_RENEWED); /* by the others, who have it */
    assert_true(port_wait(&quorum, MRT_WAKE, view.ticket, place_soon, NULL));
    view = port_refresh(&quorum, "q", &view);
    assert_true(holds(&view));
    ways[0].misses = false;
    forget(2);
    ways[2].misses = true;
    assert_int_equal(renew(), MRT_UNKNOWN);
    assert_true(port_wait(&quorum, MRT_WAKE, view.ticket, place_soon, NULL));
    assert_int_equal(port_refresh(&quorum, "q", &view).type, MRT_GONE);
    assert_int_equal(renew(), MRT_RENEWED);
}

/* A look finds it there after all. */
static void test_m9_a_member_that_misses_a_lock_is_queried_before_it_counts(void **state)
{
    (void)state;
    struct mrt_event view = acquire();
    for (unsigned i = 0; i < place_members; i++)
        ways[i].misses = true;
    assert_int_equal(renew(), MRT_UNKNOWN);
    for (unsigned i = 0; i < place_members; i++)
        ways[i].misses = false;
    assert_int_equal(renew(), MRT_UNKNOWN); /* none is counted that has not been looked at */
    view = port_refresh(&quorum, "q", &view);
    assert_true(holds(&view));
    assert_int_equal(renew(), MRT_RENEWED);
}

/* Two of three have the claim, but one of these has the lease of an earlier renewal only: it may
   be over while the engine, which goes by the newest, still holds. */
static void test_m9_rd_09_a_member_without_the_newest_renewal_does_not_count(void **state)
{
    (void)state;
    occupy(0);
    ways[2].not_taken = BIT(MRT_RENEW);
    assert_int_equal(renew(), MRT_RENEWED);
    struct mrt_event view = acquire(); /* at 1 and 2 */
    assert_int_equal(view.type, MRT_VIEW);
    assert_false(holds(&view));
    assert_true(empties(1) && empties(2));
    ways[2].not_taken = 0;
    assert_int_equal(renew(), MRT_RENEWED);
    view = port_refresh(&quorum, "q", &view);
    assert_true(holds(&view));
}

/* Their sessions are as old as the first START, from which nobody counts any more. */
static void test_m9_rd_09_a_start_is_not_proven_by_an_earlier_starts_session(void **state)
{
    (void)state;
    for (unsigned i = 0; i < place_members; i++)
        ways[i].not_taken = BIT(MRT_RENEW);
    struct mrt_command again = port_command(&quorum, MRT_START);
    assert_true(quorum.ops->submit(quorum.store, &again, MRT_TIME_NEVER));
    for (size_t i = 0; i < quorum.count; i++) /* what is known is told before that returns */
        assert_true(quorum.events[i].serial != again.serial);
    for (unsigned i = 0; i < place_members; i++)
        ways[i].not_taken = 0;
    assert_int_equal(port_start(&quorum).type, MRT_STARTED);
}

static int make_three(void **state)
{
    (void)state;
    place_make(3, "100ms", PLACE_LEASE);
    return 0;
}

static void let_work(mrt_time time)
{
    port_wait(&quorum, MRT_STARTED, (struct mrt_id){1, 1}, time, NULL);
}

/* The member's session is as old as its START, which was sent before the renewal that its STARTED
   comes after: its lease may be over while the engine, which goes by that renewal, still holds. */
static void test_m9_rd_09_a_member_started_late_has_not_the_newest_renewal(void **state)
{
    (void)state;
    silence(2, true);
    place_begin();
    assert_int_equal(renew(), MRT_RENEWED);
    silence(2, false);
    let_work(50 * MRT_MILLISECOND); /* it is heard that 2 has started */
    occupy(0);
    struct mrt_event view = acquire(); /* at 1 and 2 */
    assert_int_equal(view.type, MRT_VIEW);
    assert_false(holds(&view));
    assert_int_equal(renew(), MRT_RENEWED);
    view = port_refresh(&quorum, "q", &view);
    assert_true(holds(&view));
}

static mrt_time renew_to(void)
{
    struct mrt_command command = port_command(&quorum, MRT_RENEW);
    struct mrt_event event = port_send(&quorum, &command);
    assert_int_equal(event.type, MRT_RENEWED);
    return event.proven;
}

/* An answer proves a renewal that the same member has answered so long before. Two renewals that
   two majorities have answered are both answered by one member only. */
static void test_m9_rd_09_where_proofs_lag_each_of_a_majority_proves_the_date(void **state)
{
    (void)state;
    place_lag = 100 * MRT_MILLISECOND;
    place_begin();
    mrt_time began = mrt_time_now();
    silence(2, true);
    assert_true(renew_to() < began); /* by 0 and 1: so far the START is all that is proven */
    silence(2, false);
    let_work(place_lag);
    silence(0, true);
    mrt_time later = mrt_time_now();
    assert_true(renew_to() < began); /* by 1, which proves the first, and 2, which does not */
    silence(0, false);
    let_work(place_lag);
    mrt_time proven = renew_to();
    assert_true(proven >= later); /* by 1 and 2 at least */
}

static void test_m9_an_unknown_outcome_at_a_majority_is_no_loss(void **state)
{
    (void)state;
    struct mrt_event view = acquire();
    ways[0].unknown = ways[1].unknown = BIT(MRT_REFRESH);
    assert_int_equal(port_refresh(&quorum, "q", &view).type, MRT_UNKNOWN);
    ways[0].unknown = ways[1].unknown = 0;
    ways[0].failed = ways[2].failed = BIT(MRT_REFRESH);
    assert_int_equal(port_refresh(&quorum, "q", &view).type, MRT_UNKNOWN);
    ways[0].failed = ways[2].failed = 0;
    view = port_refresh(&quorum, "q", &view);
    assert_true(holds(&view));
}

static void test_m9_members_that_were_silent_are_queried_again(void **state)
{
    (void)state;
    struct mrt_event view = acquire();
    silence(1, true);
    silence(2, true);
    assert_int_equal(port_refresh(&quorum, "q", &view).type, MRT_UNKNOWN);
    assert_int_equal(port_refresh(&quorum, "q", &view).type, MRT_UNKNOWN);
    silence(1, false);
    silence(2, false);
    view = port_refresh(&quorum, "q", &view);
    assert_true(holds(&view));
    assert_int_equal(renew(), MRT_RENEWED);
}

/* However long a member may take for its answer. */
static void test_m9_a_renewal_is_given_up_in_time_for_another(void **state)
{
    (void)state;
    struct mrt_command command = port_command(&quorum, MRT_RENEW);
    silence(0, true);
    silence(1, true);
    assert_true(quorum.ops->submit(quorum.store, &command, mrt_time_now() + place_soon));
    mrt_time end = mrt_time_now() + PLACE_LEASE * MRT_MILLISECOND / 6;
    assert_true(quorum.ops->next(quorum.store) <= end); /* the caller sleeps until then */
    assert_int_equal(renew(), MRT_UNKNOWN);
}

static void test_m9_a_member_whose_session_has_ended_gets_another(void **state)
{
    (void)state;
    struct mrt_command stop = port_command(&rivals[2], MRT_STOP);
    stop.session = ways[2].session;
    ways[2].deaf = true;
    assert_int_equal(port_send(&rivals[2], &stop).type, MRT_STOPPED);
    occupy(0);
    assert_int_equal(renew(), MRT_RENEWED);
    struct mrt_event view = acquire();
    mrt_time until = mrt_time_now() + place_soon;
    while (!holds(&view) && mrt_time_now() < until) {
        port_wait(&quorum, MRT_STARTED, (struct mrt_id){1, 1}, 50 * MRT_MILLISECOND, NULL);
        view = view.type == MRT_VIEW ? port_refresh(&quorum, "q", &view) : acquire();
    }
    assert_true(holds(&view));
}

static void test_m7_the_end_of_a_session_is_asked_for_until_it_is_proven(void **state)
{
    (void)state;
    struct mrt_event view = acquire();
    assert_true(holds(&view));
    for (int i = 0; i < 2; i++)
        ways[i].not_taken = ways[i].taken_next = BIT(MRT_STOP);
    assert_int_equal(port_stop(&quorum).type, MRT_STOPPED);
    for (unsigned i = 0; i < place_members; i++)
        assert_int_equal(port_tickets(&rivals[i], "q"), 0);
    port_close(&quorum);
}

static void test_a_session_needs_a_majority(void **state)
{
    (void)state;
    struct port_client other;
    silence(0, true);
    silence(1, true);
    port_open(&other, place_uri, "other");
    other.session = port_id();
    struct mrt_command command = port_command(&other, MRT_START);
    assert_true(other.ops->submit(other.store, &command, MRT_TIME_NEVER));
    assert_false(
        port_wait(&other, MRT_SESSION_LOST, (struct mrt_id){0, 0}, 50 * MRT_MILLISECOND, NULL));
    assert_int_equal(other.count, 0);
    silence(0, false);
    while (other.count == 0)
        port_wait(&other, MRT_SESSION_LOST, (struct mrt_id){0, 0}, MRT_MILLISECOND, NULL);
    assert_int_equal(other.events[0].type, MRT_STARTED);
    assert_int_equal(other.events[0].lease, PLACE_LEASE * MRT_MILLISECOND);
    port_stop(&other);
    port_close(&other);
}

/* ------------------------------------------------------------------ through the library */

static long counter;

static void *add(void *argument)
{
    mortise_client *client;
    mortise_lock *lock;
    mortise_hold hold;
    assert_int_equal(mortise_open(argument, NULL, &client), MORTISE_OK);
    assert_int_equal(mortise_mutex_new(client, "counted", NULL, &lock), MORTISE_OK);
    for (int i = 0; i < ROUNDS; i++) {
        int error = mortise_acquire_for(lock, 20000, &hold);
        if (error)
            return (void *)mortise_error_text(error);
        long seen = *(volatile long *)&counter;
        sched_yield();
        *(volatile long *)&counter = seen + 1;
        mortise_release(hold);
    }
    mortise_close(client);
    return NULL;
}

static void test_m12_rd_18_three_clients_and_five_members(void **state)
{
    (void)state;
    pthread_t threads[3];
    counter = 0;
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add, place_uri), 0);
    for (int i = 0; i < 3; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    assert_int_equal(counter, 3 * ROUNDS);
}

static void test_rd_21_a_quorum_promises_no_fence_no_order_and_no_failover(void **state)
{
    (void)state;
    mortise_client *client;
    mortise_lock *lock;
    mortise_hold hold;
    mortise_capabilities can = {.size = sizeof can};
    assert_int_equal(mortise_open(place_uri, NULL, &client), MORTISE_OK);
    assert_int_equal(mortise_get_capabilities(client, &can), MORTISE_OK);
    assert_false(can.fence || can.fair || can.survives_failover);
    assert_int_equal(can.lease_ms, PLACE_LEASE);
    assert_int_equal(mortise_mutex_new(client, "x", NULL, &lock), MORTISE_OK);
    assert_int_equal(mortise_acquire(lock, &hold), MORTISE_OK);
    assert_int_equal(mortise_hold_fence(hold), 0);
    assert_int_equal(mortise_verify(hold, 5000), MORTISE_OK);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    assert_int_equal(mortise_close(client), MORTISE_OK);
    struct mrt_event refused = port_append_weight(&quorum, "y", port_id(), "semaphore", 3, 1);
    assert_int_equal(refused.type, MRT_FAILED);
    assert_int_equal(refused.error, MORTISE_ENOTSUPPORTED);
}

static void test_addresses_that_make_no_quorum(void **state)
{
    (void)state;
    static const char *const wrong[] = {"redlock:",
                                        "redlock:memory:a,memory:a",
                                        "redlock:redlock:memory:a",
                                        "redlock:memory:a,nosuch:b",
                                        "redlock:memory:a?answer=0ms",
                                        "redlock:memory:a?answer=5",
                                        "redlock:memory:a?answer=11s"};
    mortise_client *client = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        int error = mortise_open(wrong[i], NULL, &client);
        print_message("%s: %s\n", wrong[i], mortise_error_detail());
        assert_int_equal(mortise_error_kind_of(error), MORTISE_KIND_CONFIG);
        assert_true(strlen(mortise_error_detail()) > 0);
    }
}

#define THREE(name) cmocka_unit_test_setup_teardown(name, open_three, close_place)
#define FIVE(name) cmocka_unit_test_setup_teardown(name, open_five, close_place)

static const struct CMUnitTest tests[] = {
    FIVE(test_m4_a_lock_needs_a_majority_and_no_more),
    FIVE(test_m4_m8_rd_10_less_than_a_majority_grants_nothing_and_leaves_nothing),
    THREE(test_m6_m7_rd_10_a_claim_whose_answer_is_late_is_let_go),
    THREE(test_m7_a_late_removal_does_not_touch_the_next_claim),
    THREE(test_m7_a_release_reaches_members_that_did_not_answer),
    THREE(test_m7_a_release_that_no_majority_answers_is_not_proven),
    THREE(test_m7_an_answer_to_an_attempt_that_failed_counts_for_no_other),
    THREE(test_m7_a_slow_members_append_is_undone_behind_the_session),
    THREE(test_m9_m11_rd_11_a_renewal_needs_two_of_three),
    THREE(test_m9_rd_11_a_lock_is_renewed_by_the_members_that_have_it),
    THREE(test_m9_a_lock_that_members_forgot_is_lost),
    THREE(test_m9_rd_11_rd_22_a_renewal_proves_no_lock_that_members_miss),
    THREE(test_m9_a_member_that_misses_a_lock_is_queried_before_it_counts),
    THREE(test_m9_rd_09_a_member_without_the_newest_renewal_does_not_count),
    THREE(test_m9_rd_09_a_start_is_not_proven_by_an_earlier_starts_session),
    cmocka_unit_test_setup_teardown(test_m9_rd_09_a_member_started_late_has_not_the_newest_renewal,
                                    make_three, close_place),
    cmocka_unit_test_setup_teardown(
        test_m9_rd_09_where_proofs_lag_each_of_a_majority_proves_the_date, make_three, close_place),
    THREE(test_m9_an_unknown_outcome_at_a_majority_is_no_loss),
    THREE(test_m9_members_that_were_silent_are_queried_again),
    cmocka_unit_test_setup_teardown(test_m9_a_renewal_is_given_up_in_time_for_another, open_patient,
                                    close_place),
    THREE(test_m9_a_member_whose_session_has_ended_gets_another),
    THREE(test_m7_the_end_of_a_session_is_asked_for_until_it_is_proven),
    THREE(test_a_session_needs_a_majority),
    FIVE(test_m12_rd_18_three_clients_and_five_members),
    THREE(test_rd_21_a_quorum_promises_no_fence_no_order_and_no_failover),
    cmocka_unit_test(test_addresses_that_make_no_quorum),
};

static int run_all(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL) + quorum_time() + quorum_list();
}

#ifdef MRT_DEFECTS

int main(void)
{
    place_soon = 5 * MRT_SECOND;
    return defect_run("quorum", run_all) != 0;
}
#else
int main(void)
{
    return run_all();
}
#endif
