/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Kubernetes store on servers, and behind proxies, that are odd: they answer something else
 * than a Lease, or numbers that no Lease has, or let no write come through. A part of k8s_rules.
 */
#include "cmocka_all.h"
#include "live/k8s_place.h"

#include <stdio.h>
#include <string.h>

static void set_kind(struct json_object *json)
{
    json_object_object_add(json, "kind", json_object_new_string("Status"));
    json_object_object_del(json, "spec");
}

static void set_name(struct json_object *json)
{
    json_object_object_add(mrt_rest_member(json, "metadata"), "name",
                           json_object_new_string("another"));
    json_object_object_del(json, "spec");
}

/* An answer that is JSON, and says 200, but is not of this Lease. */
static void test_an_answer_that_is_no_lease_is_not_believed(void **state)
{
    (void)state;
    static stray_changer *const changers[] = {set_kind, set_name};
    stray_change(&waiter, "GET", set_kind, 1);
    assert_int_equal(port_start(&waiter).type, MRT_FAILED);
    struct mrt_event held = port_append(&holder, lock, port_id());
    for (int i = 0; i < 2; i++) {
        struct mrt_id ticket = port_id();
        stray_change(&waiter, "GET", changers[i], ALL);
        assert_int_equal(port_append(&waiter, lock, ticket).type, MRT_UNKNOWN);
        stray_change(&waiter, "GET", changers[i], 1);
        assert_int_equal(port_append(&waiter, lock, ticket).type, MRT_UNKNOWN);
        assert_true(waits(port_append(&waiter, lock, ticket)));
        watch_shows(&waiter, "MODIFIED", json_object_new_object());
        assert_false(mrt_k8s_queue_is_free(queue_of(&waiter), mrt_time_now()));
        assert_int_equal(port_remove(&waiter, lock, ticket, 0).type, MRT_REMOVED);
        stray_change(&holder, "PUT", changers[i], 1);
        assert_int_equal(renew(&holder).type, MRT_RENEWED);
        stray_change(&holder, "PUT", changers[i], ALL);
        assert_int_equal(renew(&holder).type, MRT_UNKNOWN);
    }
    stray_lead(&holder, "PUT", STRAY_NOT, ALL);
    assert_int_equal(port_refresh(&holder, lock, &held).type, MRT_VIEW);
}

static void test_a_creation_that_is_answered_by_something_else_is_recognised(void **state)
{
    (void)state;
    stray_change(&holder, "POST", set_kind, 1);
    struct mrt_event view = port_append(&holder, lock, port_id());
    assert_true(is_granted(view));
    assert_int_equal(view.fence, 1);
    stray_change(&holder, "PUT", set_name, 1);
    assert_int_equal(port_remove(&holder, lock, view.ticket, view.fence).type, MRT_REMOVED);
    assert_true(is_free());
}

/* The server does not know the selector of a list. */
static void add_another_item(struct json_object *json)
{
    struct json_object *items = mrt_rest_member(json, "items"), *own, *other = NULL;
    if (!items || !(own = json_object_array_get_idx(items, 0)))
        return;
    json_object_get(own);
    assert_int_equal(json_object_deep_copy(own, &other, NULL), 0);
    set_name(other);
    json_object_array_put_idx(items, 0, other);
    json_object_array_add(items, own);
}

static void test_of_a_list_the_own_lease_counts_alone(void **state)
{
    (void)state;
    assert_true(is_granted(port_append(&holder, lock, port_id())));
    struct mrt_event view = port_append(&waiter, lock, port_id());
    assert_true(waits(view));
    port_wait(&waiter, MRT_STOPPED, (struct mrt_id){0, 0}, SHORT, NULL);
    stray_change(&waiter, "GET", add_another_item, ALL);
    watch_shows(&waiter, "ERROR", json_object_new_object());
    for (mrt_time end = mrt_time_now() + LONG; stray_count() == 0 && mrt_time_now() < end;)
        port_wait(&waiter, MRT_STOPPED, (struct mrt_id){0, 0}, 20 * MRT_MILLISECOND, NULL);
    port_wait(&waiter, MRT_STOPPED, (struct mrt_id){0, 0}, SHORT, NULL);
    assert_false(mrt_k8s_queue_is_free(queue_of(&waiter), mrt_time_now()));
}

static void set_spec(struct json_object *json, const char *field, struct json_object *value)
{
    json_object_object_add(mrt_rest_member(json, "spec"), field, value);
}

static void set_huge_transitions(struct json_object *json)
{
    set_spec(json, "leaseTransitions", json_object_new_int64(INT64_MAX));
}

static void set_negative_transitions(struct json_object *json)
{
    set_spec(json, "leaseTransitions", json_object_new_int64(-5));
}

/* Refused before anything is written, with these words. */
static void refuses_to_take(int error, const char *words)
{
    stray_lead(&holder, "PUT", STRAY_NOT, ALL);
    struct mrt_event event = port_append(&holder, lock, port_id());
    assert_int_equal(event.type, MRT_FAILED);
    assert_int_equal(event.error, error);
    assert_non_null(strstr(holder.detail, words));
    assert_int_equal(stray_count(), 0);
}

static void test_the_last_transition_is_not_overrun(void **state)
{
    (void)state;
    lease_write(&waiter, lock, "{\"leaseTransitions\": 2147483646}");
    struct mrt_event view = port_append(&holder, lock, port_id());
    assert_true(is_granted(view));
    assert_int_equal(view.fence, UINT64_C(2147483648));
    struct mrt_event waiting = port_append(&waiter, lock, port_id());
    assert_true(waits(waiting));
    assert_int_equal(port_remove(&holder, lock, view.ticket, view.fence).type, MRT_REMOVED);
    refuses_to_take(MORTISE_ESTORE, "the largest leaseTransitions");
    /* Else it has the lock as soon as it sees that the Lease is gone. */
    assert_int_equal(port_remove(&waiter, lock, waiting.ticket, waiting.fence).type, MRT_REMOVED);
    lease_delete(&waiter, lock);
    view = port_append(&holder, lock, port_id());
    assert_true(is_granted(view));
    assert_int_equal(view.fence, 1);
}

/* The API server's own coordinator chooses its holder. */
static void test_a_lease_with_a_strategy_is_refused(void **state)
{
    (void)state;
    lease_write(&waiter, lock, "{\"strategy\": \"OldestEmulationVersion\"}");
    refuses_to_take(MORTISE_EMISMATCH, "strategy OldestEmulationVersion");
    lease_write(&waiter, lock, "{\"holderIdentity\": \"chosen\", \"leaseDurationSeconds\": 9}");
    refuses_to_take(MORTISE_EMISMATCH, "strategy OldestEmulationVersion");
    assert_int_equal(port_observe(&holder, lock, (struct mrt_id){0, 0}).type, MRT_HOLDER);
    assert_string_equal(holder.value, "chosen");
}

static void test_transitions_that_no_server_has_are_not_added_to(void **state)
{
    (void)state;
    lease_write(&waiter, lock, "{}");
    stray_change(&holder, "GET", set_huge_transitions, ALL);
    struct mrt_event event = port_append(&holder, lock, port_id());
    assert_int_equal(event.type, MRT_FAILED);
    assert_non_null(strstr(holder.detail, "the largest leaseTransitions"));
    stray_change(&waiter, "GET", set_negative_transitions, ALL);
    event = port_append(&waiter, lock, port_id());
    assert_true(is_granted(event));
    assert_int_equal(event.fence, 2);
}

static void set_free(struct json_object *json)
{
    set_spec(json, "holderIdentity", json_object_new_string(""));
}

/* It is no refusal: the engine repeats the command later. */
static void test_a_command_that_never_comes_through_is_repeated_later(void **state)
{
    (void)state;
    struct mrt_id ticket = port_id();
    lease_write(&waiter, lock, "{}");
    stray_lead(&holder, "PUT", STRAY_REFUSED, ALL);
    assert_int_equal(port_append(&holder, lock, ticket).type, MRT_UNKNOWN);
    assert_in_range(stray_count(), 2, 20);
    stray_change(&holder, "PUT", set_free, ALL);
    assert_int_equal(port_append(&holder, lock, ticket).type, MRT_UNKNOWN);
    assert_in_range(stray_count(), 2, 20);
    stray_lead(&holder, "PUT", STRAY_REFUSED, 3);
    assert_true(is_granted(port_append(&holder, lock, ticket)));
}

/* The removals before have not barred the write. */
static void test_a_removal_that_never_comes_through_still_bars(void **state)
{
    (void)state;
    struct mrt_id ticket = port_id();
    lease_write(&waiter, lock, "{}");
    stray_lead(&holder, "PUT", STRAY_LATE, ALL);
    assert_int_equal(port_append(&holder, lock, ticket).type, MRT_UNKNOWN);
    assert_int_equal(port_remove(&holder, lock, ticket, 0).type, MRT_UNKNOWN);
    stray_lead(&holder, "PUT", STRAY_NOT, ALL);
    assert_int_equal(port_remove(&holder, lock, ticket, 0).type, MRT_REMOVED);
    assert_int_equal(late_arrives(&waiter), MORTISE_ECONFLICT);
    assert_true(is_free());
}

static void takes_and_releases(void)
{
    struct mrt_event view = port_append(&holder, lock, port_id());
    assert_true(is_granted(view));
    assert_int_equal(renew(&holder).type, MRT_RENEWED);
    assert_int_equal(port_remove(&holder, lock, view.ticket, view.fence).type, MRT_REMOVED);
}

/* Of a store that logs in, requests have a password, and replies a token. */
static void test_no_token_and_no_request_is_left_in_memory(void **state)
{
    (void)state;
    char token[sizeof store_of(&holder)->wire.token];
    snprintf(token, sizeof token, "%s", store_of(&holder)->wire.token);
    assert_true(strlen(token) > 8);
    remains.times = 0;
    remains.text = token;
    takes_and_releases();
    remains.text = "\"holderIdentity\":\"mortise_";
    takes_and_releases();
    remains.text = "\"holderIdentity\": \"mortise_"; /* as the server writes it */
    takes_and_releases();
    remains.text = NULL;
    assert_int_equal(remains.times, 0);
}

static const struct CMUnitTest tests[] = {
    TEST(test_an_answer_that_is_no_lease_is_not_believed),
    TEST(test_a_creation_that_is_answered_by_something_else_is_recognised),
    TEST(test_a_command_that_never_comes_through_is_repeated_later),
    TEST(test_a_removal_that_never_comes_through_still_bars),
    TEST(test_no_token_and_no_request_is_left_in_memory),
    TEST(test_of_a_list_the_own_lease_counts_alone),
    TEST(test_the_last_transition_is_not_overrun),
    TEST(test_a_lease_with_a_strategy_is_refused),
    TEST(test_transitions_that_no_server_has_are_not_added_to),
};

int k8s_odd(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
