/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Kubernetes store's rules, on a fake of an API server, with answers that a network, a proxy or
 * another program may bring about: one that is lost, that comes late, that is of a former state, or
 * that is no Lease. The store's own calls are led astray (k8s_stray.h), so a test needs no luck
 * with time.
 *
 * Built with seeded defects it is the measure of itself (defect_run.h). Its argument is a URI;
 * without one it starts a server.
 */
#include "cmocka_all.h"
#include "defect_run.h"
#include "live/k8s_place.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void test_an_acquire_of_a_new_lease_is_two_requests(void **state)
{
    (void)state;
    stray_lead(&holder, "GET", STRAY_NOT, ALL);
    assert_true(is_granted(port_append(&holder, lock, port_id())));
    port_wait(&holder, MRT_STOPPED, (struct mrt_id){0, 0}, SHORT, NULL);
    assert_int_equal(stray_count(), 1); /* and a POST */
}

/* ------------------------------------------------------------ writes in doubt */

static void test_an_own_creation_whose_answer_was_lost_is_recognised(void **state)
{
    (void)state;
    stray_lead(&holder, "POST", STRAY_LOST, 1);
    struct mrt_event view = port_append(&holder, lock, port_id());
    assert_int_equal(stray_count(), 1);
    assert_true(is_granted(view));
    assert_int_equal(view.fence, 1);
    assert_int_equal(spec_number("leaseTransitions"), 0);
}

static void test_a_ticket_whose_write_comes_late_is_nobodys(void **state)
{
    (void)state;
    struct mrt_id ticket = port_id();
    lease_write(&waiter, lock, "{}");
    stray_lead(&holder, "PUT", STRAY_LATE, ALL);
    assert_int_equal(port_append(&holder, lock, ticket).type, MRT_UNKNOWN);
    stray_lead(&holder, "PUT", STRAY_NOT, ALL);
    assert_int_equal(port_remove(&holder, lock, ticket, 0).type, MRT_REMOVED);
    assert_int_equal(late_arrives(&waiter), MORTISE_ECONFLICT);
    assert_true(is_free());
}

static void test_a_ticket_whose_creation_comes_late_is_nobodys(void **state)
{
    (void)state;
    struct mrt_id ticket = port_id();
    stray_lead(&holder, "POST", STRAY_LATE, ALL);
    assert_int_equal(port_append(&holder, lock, ticket).type, MRT_UNKNOWN);
    stray_lead(&holder, "POST", STRAY_NOT, ALL);
    assert_int_equal(port_remove(&holder, lock, ticket, 0).type, MRT_REMOVED);
    assert_int_equal(late_arrives(&waiter), MORTISE_ECONFLICT);
    assert_true(is_free());
    assert_true(is_granted(port_try(&waiter, lock, port_id())));
}

static void test_of_a_session_that_ends_no_late_write_is_done(void **state)
{
    (void)state;
    lease_write(&waiter, lock, "{}");
    stray_lead(&holder, "PUT", STRAY_LATE, ALL);
    assert_int_equal(port_append(&holder, lock, port_id()).type, MRT_UNKNOWN);
    stray_lead(&holder, "PUT", STRAY_NOT, ALL);
    assert_int_equal(port_stop(&holder).type, MRT_STOPPED);
    assert_int_equal(late_arrives(&waiter), MORTISE_ECONFLICT);
    assert_true(is_free());
}

static void test_a_release_that_comes_late_ends_no_other_hold(void **state)
{
    (void)state;
    struct mrt_event view = port_append(&holder, lock, port_id());
    stray_lead(&holder, "PUT", STRAY_LATE, 1);
    assert_int_equal(port_remove(&holder, lock, view.ticket, view.fence).type, MRT_REMOVED);
    assert_true(is_free());
    assert_true(is_granted(port_append(&waiter, lock, port_id())));
    assert_int_equal(late_arrives(&waiter), MORTISE_ECONFLICT);
    assert_false(is_free());
}

/* ------------------------------------------------------------ renewals */

static void test_a_renewal_whose_answer_was_lost_is_written_once_more(void **state)
{
    (void)state;
    assert_true(is_granted(port_append(&holder, lock, port_id())));
    stray_lead(&holder, "PUT", STRAY_LOST, 1);
    assert_int_equal(renew(&holder).type, MRT_RENEWED);
    assert_int_equal(stray_count(), 1);
}

static void test_a_renewal_that_never_arrives_proves_nothing(void **state)
{
    (void)state;
    struct mrt_event view = port_append(&holder, lock, port_id());
    stray_lead(&holder, "PUT", STRAY_LATE, ALL);
    assert_int_equal(renew(&holder).type, MRT_UNKNOWN);
    stray_lead(&holder, "PUT", STRAY_NOT, ALL);
    lease_write(&waiter, lock, "{\"holderIdentity\": \"robber\"}");
    assert_int_equal(late_arrives(&waiter), MORTISE_ECONFLICT);
    assert_int_equal(renew(&holder).type, MRT_RENEWED); /* of the session: a ticket is lost */
    assert_int_equal(port_refresh(&holder, lock, &view).type, MRT_GONE);
    assert_string_equal(spec_text("holderIdentity"), "robber");
}

/* A change of the whole second, too: client-go reads no more of the time. */
static void test_renewals_differ_though_the_wall_clock_stands_still(void **state)
{
    (void)state;
    char first[32], second[32];
    still = 1800000000;
    assert_true(is_granted(port_append(&holder, lock, port_id())));
    snprintf(first, sizeof first, "%s", spec_text("renewTime"));
    assert_int_equal(renew(&holder).type, MRT_RENEWED);
    snprintf(second, sizeof second, "%s", spec_text("renewTime"));
    assert_string_not_equal(first, second);
    still -= 1; /* stepped back */
    port_wait(&holder, MRT_STOPPED, (struct mrt_id){0, 0}, MRT_SECOND, NULL);
    assert_int_equal(renew(&holder).type, MRT_RENEWED);
    assert_true(strcmp(spec_text("renewTime"), second) > 0);
    assert_memory_not_equal(spec_text("renewTime"), first, strlen("2027-01-15T08:00:00"));
}

/* The RENEW would prove a hold that it has not written. */
static void test_a_grant_behind_a_renew_is_written_once_more(void **state)
{
    (void)state;
    struct mrt_command command = port_append_command(&holder, lock);
    stray_lead(&holder, "POST", STRAY_HELD, 1);
    assert_true(holder.ops->submit(holder.store, &command, MRT_TIME_NEVER));
    for (mrt_time end = mrt_time_now() + LONG; spec_text("holderIdentity")[0] == '\0';) {
        port_wait(&holder, MRT_STOPPED, (struct mrt_id){0, 0}, 5 * MRT_MILLISECOND, NULL);
        assert_true(mrt_time_now() < end);
    }
    port_wait(&holder, MRT_STOPPED, (struct mrt_id){0, 0}, SHORT, NULL);
    assert_int_equal(renew(&holder).type, MRT_RENEWED);
    stray_lead(&holder, "PUT", STRAY_NOT, ALL);
    stray_release();
    assert_true(is_granted(port_answer(&holder, command.serial)));
    assert_int_equal(stray_count(), 1);
}

/* ------------------------------------------------------------ what others write */

static void test_an_event_of_a_former_state_wakes_nobody(void **state)
{
    (void)state;
    lease_write(&waiter, lock, "{}");
    struct json_object *former = lease_read(&waiter, lock);
    assert_true(is_granted(port_append(&holder, lock, port_id())));
    struct mrt_event view = port_append(&waiter, lock, port_id());
    assert_true(waits(view));
    watch_shows(&waiter, "MODIFIED", former);
    assert_false(port_wait_told(&waiter, view.ticket, SHORT));
    assert_false(mrt_k8s_queue_is_free(queue_of(&waiter), mrt_time_now()));
}

static void test_an_event_of_a_deleted_lease_is_not_the_next_ones(void **state)
{
    (void)state;
    lease_write(&waiter, lock, "{}");
    struct json_object *former = lease_read(&waiter, lock), *again = json_object_get(former);
    lease_delete(&waiter, lock);
    assert_true(is_granted(port_append(&holder, lock, port_id())));
    struct mrt_event view = port_append(&waiter, lock, port_id());
    assert_true(waits(view));
    watch_shows(&waiter, "MODIFIED", former);
    watch_shows(&waiter, "DELETED", again);
    assert_false(port_wait_told(&waiter, view.ticket, SHORT));
    assert_false(mrt_k8s_queue_is_free(queue_of(&waiter), mrt_time_now()));
}

static void test_a_record_counts_for_its_time_since_its_newest_change(void **state)
{
    (void)state;
    lease_write(&waiter, lock, "{\"holderIdentity\": \"other\", \"leaseDurationSeconds\": 1}");
    struct mrt_event view = port_append(&waiter, lock, port_id());
    assert_true(waits(view));
    port_wait_told(&waiter, view.ticket, 100 * MRT_MILLISECOND);
    mrt_time renewed = mrt_time_now();
    lease_write(&waiter, lock, "{\"renewTime\": \"2020-01-01T00:00:00.000000Z\"}");
    port_wait_granted(&waiter, lock, view, 1, 1, LONG);
    assert_true(mrt_time_now() - renewed >= MRT_SECOND);
    assert_int_equal(spec_number("leaseTransitions"), 1);
}

/* The one of another program, and of a server that drops a zero. */
static void test_a_record_that_says_no_time_counts_for_some(void **state)
{
    (void)state;
    lease_write(&waiter, lock, "{\"holderIdentity\": \"other\"}");
    mrt_time now = mrt_time_now();
    assert_true(waits(port_append(&waiter, lock, port_id())));
    mrt_time left = mrt_k8s_lease_end(&queue_of(&waiter)->lease) - now;
    assert_true(left >= 15 * MRT_SECOND);
    assert_true(left < 16 * MRT_SECOND);
    assert_int_equal(port_try(&holder, lock, port_id()).type, MRT_BLOCKED);
}

static void test_a_deletion_ends_a_hold(void **state)
{
    (void)state;
    watches_begin_late();
    struct mrt_event view = append_closely(&holder);
    assert_true(is_granted(view));
    assert_int_equal(renew(&holder).type, MRT_RENEWED);
    port_wait(&holder, MRT_STOPPED, (struct mrt_id){0, 0}, SHORT, NULL); /* the watch begins */
    lease_delete(&waiter, lock);
    assert_true(port_wait_told(&holder, view.ticket, LONG));
    assert_int_equal(port_refresh(&holder, lock, &view).type, MRT_GONE);
}

/* A server that has no room for watches says so on each. */
static void test_watches_that_end_by_an_error_pause(void **state)
{
    (void)state;
    assert_true(is_granted(append_closely(&holder)));
    port_wait(&holder, MRT_STOPPED, (struct mrt_id){0, 0}, SHORT, NULL);
    unsigned count = watch_count();
    for (int i = 0; i < 5; i++) {
        watch_shows(&holder, "ERROR", json_object_new_object());
        port_wait(&holder, MRT_STOPPED, (struct mrt_id){0, 0}, 5 * MRT_MILLISECOND, NULL);
    }
    assert_in_range(watch_count(), count, count + 2);
}

/* It has read the Lease in a list alone, which does not say what it is. */
static void test_a_write_behind_a_list_says_what_it_is(void **state)
{
    (void)state;
    lease_write(&waiter, lock, "{}");
    assert_int_equal(port_observe(&holder, lock, port_id()).type, MRT_HOLDER);
    port_wait(&holder, MRT_STOPPED, (struct mrt_id){0, 0}, SHORT, NULL);
    watch_shows(&holder, "ERROR", json_object_new_object());
    assert_int_equal(port_observe(&holder, lock, port_id()).type, MRT_HOLDER);
    stray_lead(&holder, "GET", STRAY_NOT, ALL);
    for (mrt_time end = mrt_time_now() + LONG; stray_count() == 0 && mrt_time_now() < end;)
        port_wait(&holder, MRT_STOPPED, (struct mrt_id){0, 0}, 20 * MRT_MILLISECOND, NULL);
    assert_int_equal(stray_count(), 1);
    port_wait(&holder, MRT_STOPPED, (struct mrt_id){0, 0}, SHORT, NULL);
    stray_lead(&holder, "PUT", STRAY_LATE, ALL);
    assert_int_equal(port_append(&holder, lock, port_id()).type, MRT_UNKNOWN);
    assert_non_null(strstr(late_body(), "\"kind\":\"Lease\""));
}

/* By a client that has seen the Lease before; no other knows what it was. */
static void test_a_holder_behind_a_deletion_has_a_larger_fence(void **state)
{
    (void)state;
    struct mrt_event held = port_append(&holder, lock, port_id());
    struct mrt_event view = port_append(&waiter, lock, port_id());
    assert_true(waits(view));
    lease_delete(&waiter, lock);
    port_wait_granted(&waiter, lock, view, 1, 1, LONG);
    view = port_refresh(&waiter, lock, &view);
    assert_true(view.fence > held.fence);
}

/* Annotations that a former holder of ours has left are not the next one's. */
static void test_notes_of_a_former_holder_do_not_count(void **state)
{
    (void)state;
    assert_true(is_granted(port_append_value(&holder, lock, "ours")));
    lease_write(&waiter, lock, "{\"holderIdentity\": \"theirs\"}");
    assert_int_equal(port_observe(&waiter, lock, (struct mrt_id){0, 0}).type, MRT_HOLDER);
    assert_string_equal(waiter.value, "theirs");
    assert_true(waits(port_append(&waiter, lock, port_id()))); /* a mutex, and no election */
}

static const struct CMUnitTest tests[] = {
    TEST(test_an_acquire_of_a_new_lease_is_two_requests),
    TEST(test_an_own_creation_whose_answer_was_lost_is_recognised),
    TEST(test_a_ticket_whose_write_comes_late_is_nobodys),
    TEST(test_a_ticket_whose_creation_comes_late_is_nobodys),
    TEST(test_of_a_session_that_ends_no_late_write_is_done),
    TEST(test_a_release_that_comes_late_ends_no_other_hold),
    TEST(test_a_renewal_whose_answer_was_lost_is_written_once_more),
    TEST(test_a_renewal_that_never_arrives_proves_nothing),
    TEST(test_renewals_differ_though_the_wall_clock_stands_still),
    TEST(test_a_grant_behind_a_renew_is_written_once_more),
    TEST(test_an_event_of_a_former_state_wakes_nobody),
    TEST(test_an_event_of_a_deleted_lease_is_not_the_next_ones),
    TEST(test_a_record_counts_for_its_time_since_its_newest_change),
    TEST(test_a_record_that_says_no_time_counts_for_some),
    TEST(test_a_deletion_ends_a_hold),
    TEST(test_a_write_behind_a_list_says_what_it_is),
    TEST(test_watches_that_end_by_an_error_pause),
    TEST(test_a_holder_behind_a_deletion_has_a_larger_fence),
    TEST(test_notes_of_a_former_holder_do_not_count),
};

static int run_all(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL) + k8s_odd();
}

int main(int count, char **arguments)
{
    if (count < 2) { /* once more, beside a server */
        execl(K8S_SERVERS, K8S_SERVERS, "with", "k8s", arguments[0], "{}&lease=3s", (char *)NULL);
        return 1;
    }
    uri = arguments[1];
#ifdef MRT_DEFECTS
    return defect_run("k8s_rules", run_all) != 0;
#else
    return run_all() != 0;
#endif
}
