/* SPDX-License-Identifier: Apache-2.0 */
/* Acquiring and releasing: blocking, with a deadline, trying, nested. */
#include "api_fixture.h"

#include <stdio.h>

static mortise_client *client;

static int open_client(void **state)
{
    (void)state;
    client = api_open(0);
    return 0;
}

static int close_client(void **state)
{
    (void)state;
    api_close(client);
    return 0;
}

/* The work of a thread with a lock, and its result. */
struct attempt {
    mortise_lock *lock;
    int64_t timeout_ms;
    int error;
    mortise_hold hold;
    uint64_t owner;
    bool release;
};

static void *attempt_body(void *argument)
{
    struct attempt *attempt = argument;
    attempt->error = mortise_acquire_for(attempt->lock, attempt->timeout_ms, &attempt->hold);
    if (attempt->error == MORTISE_OK) {
        attempt->owner = mortise_hold_owner(attempt->hold);
        if (attempt->release)
            api_release(attempt->hold);
    }
    return NULL;
}

/* Tries in another thread, and releases at once if it succeeds. */
static int try_elsewhere(mortise_lock *lock)
{
    struct attempt attempt = {.lock = lock, .release = true};
    api_join(api_thread(attempt_body, &attempt));
    return attempt.error;
}

/* Whether a client of its own can have it now. */
static int try_as_another(const char *name)
{
    mortise_client *other = api_open(0);
    mortise_hold hold;
    int error = mortise_try_acquire(api_lock(other, name), &hold);
    if (error == MORTISE_OK)
        api_release(hold);
    api_close(other);
    return error;
}

/* ------------------------------------------------------------------- nesting */

static void test_a3_j5_h1_reentrant_needs_as_many_releases(void **state)
{
    (void)state;
    mortise_lock *lock = api_lock(client, "a3");
    mortise_stats before = api_stats(client);
    mortise_hold holds[5];
    for (uint32_t i = 0; i < 5; i++) {
        holds[i] = api_acquire(lock);
        assert_int_equal(mortise_hold_count(holds[0]), i + 1);
        assert_int_equal(mortise_hold_fence(holds[i]), mortise_hold_fence(holds[0]));
    }
    mortise_stats after = api_stats(client);
    assert_int_equal(after.acquisitions - before.acquisitions, 1);
    assert_int_equal(after.nested - before.nested, 4);
    for (int i = 4; i >= 0; i--) {
        assert_int_equal(try_as_another("a3"), MORTISE_EBUSY); /* i6, z3 */
        api_release(holds[i]);
    }
    api_await_tickets(client, "a3", 0);
    assert_int_equal(try_as_another("a3"), MORTISE_OK);
    mortise_lock_free(lock);
}

static void test_f1_nested_acquires_make_no_request(void **state)
{
    (void)state;
    mortise_lock *lock = api_lock(client, "f1");
    mortise_hold hold = api_acquire(lock);
    int64_t begin = mortise_now_ns();
    uint64_t commands = api_stats(client).commands;
    for (int i = 0; i < 1000; i++)
        api_acquire(lock);
    for (int i = 0; i < 1000; i++)
        api_release(hold);
    assert_in_range(api_stats(client).commands, commands, commands + 1 + api_commands_since(begin));
    api_release(hold);
    mortise_lock_free(lock);
}

static void test_same_owner_nests_through_two_handles(void **state)
{
    (void)state;
    mortise_lock *a = api_lock(client, "handles"), *b = api_lock(client, "handles");
    mortise_hold first = api_acquire(a), second;
    assert_int_equal(mortise_try_acquire(b, &second), MORTISE_OK);
    assert_int_equal(mortise_hold_count(first), 2);
    assert_int_equal(try_elsewhere(b), MORTISE_EBUSY);
    api_release(second);
    api_release(first);
    mortise_lock_free(a);
    mortise_lock_free(b);
}

/* ---------------------------------------------------------------- exclusion */

static void test_f2_i7_threads_on_one_object_exclude_each_other(void **state)
{
    (void)state;
    mortise_lock *lock = api_lock(client, "f2");
    mortise_hold hold = api_acquire(lock);
    assert_int_equal(try_elsewhere(lock), MORTISE_EBUSY);
    uint64_t own = mortise_hold_owner(hold);
    assert_true(own != 0);
    api_release(hold);
    struct attempt attempt = {.lock = lock, .timeout_ms = 10000, .release = true};
    api_join(api_thread(attempt_body, &attempt));
    assert_int_equal(attempt.error, MORTISE_OK);
    assert_true(attempt.owner != 0 && attempt.owner != own);
    mortise_lock_free(lock);
}

static void test_h9_two_clients_exclude_each_other(void **state)
{
    (void)state;
    mortise_client *other = api_open(0);
    mortise_lock *a = api_lock(client, "h9"), *b = api_lock(other, "h9");
    for (int i = 0; i < 20; i++) {
        mortise_hold hold = api_acquire(a), refused = {NULL, 0};
        assert_int_equal(mortise_try_acquire(b, &refused), MORTISE_EBUSY); /* the same thread! */
        assert_null(refused.slot);
        api_release(hold);
        hold = api_acquire(b);
        assert_int_equal(mortise_try_acquire(a, &refused), MORTISE_EBUSY);
        api_release(hold);
    }
    mortise_lock_free(a);
    api_close(other);
}

static void test_names_do_not_touch_each_other(void **state)
{
    (void)state;
    mortise_lock *a = api_lock(client, "x/a"), *b = api_lock(client, "x/b");
    mortise_hold first = api_acquire(a), second;
    assert_int_equal(mortise_try_acquire(b, &second), MORTISE_OK);
    assert_string_equal(mortise_lock_name(b), "x/b");
    assert_string_equal(mortise_hold_name(second), "x/b");
    api_release(second);
    api_release(first);
    mortise_lock_free(a);
    mortise_lock_free(b);
}

static void test_z10_fences_rise_through_release_and_reopening(void **state)
{
    (void)state;
    uint64_t last = 0;
    if (!api_has_fences())
        skip();
    for (int i = 0; i < 5; i++) {
        mortise_client *other = api_open(0);
        mortise_lock *lock = api_lock(other, "z10");
        for (int j = 0; j < 5; j++) {
            mortise_hold hold = api_acquire(lock);
            assert_true(mortise_hold_fence(hold) > last);
            last = mortise_hold_fence(hold);
            api_release(hold);
        }
        api_close(other);
    }
}

/* ----------------------------------------------------- blocking, deadline, try */

static void test_a4_a_held_lock_refuses_tries_and_times_acquires_out(void **state)
{
    (void)state;
    mortise_client *other = api_open(0);
    mortise_lock *held = api_lock(other, "a4"), *lock = api_lock(client, "a4");
    mortise_hold hold = api_acquire(held), mine = {NULL, 0};
    int64_t begin = mortise_now_ns();
    assert_int_equal(mortise_try_acquire(lock, &mine), MORTISE_EBUSY);
    assert_int_equal(mortise_acquire_for(lock, 0, &mine), MORTISE_EBUSY);
    assert_int_equal(mortise_acquire_for(lock, 50, &mine), MORTISE_ETIMEOUT);
    assert_true(api_ms_since(begin) >= 50);
    assert_int_equal(mortise_acquire_until(lock, mortise_now_ns() + 20 * MS_IN_NS, &mine),
                     MORTISE_ETIMEOUT);
    assert_int_equal(mortise_acquire_until(lock, 0, &mine), MORTISE_ETIMEOUT); /* long past */
    assert_null(mine.slot);
    struct attempt attempt = {.lock = lock, .timeout_ms = -1, .release = true};
    pthread_t thread = api_thread(attempt_body, &attempt);
    api_await_tickets(client, "a4", 2);
    api_release(hold);
    api_join(thread);
    assert_int_equal(attempt.error, MORTISE_OK);
    assert_int_equal(mortise_acquire_until(lock, INT64_MAX, &mine), MORTISE_OK);
    api_release(mine);
    mortise_lock_free(lock);
    api_close(other);
}

static void test_zk_34_se_09_an_acquire_of_a_full_queue_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"0", "", "x", "-1", "1x", "1234567890123456789"};
    char parameter[64];
    mortise_client *limited;
    if (!api_queues())
        skip();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(parameter, sizeof parameter, "queue_max=%s", bad[i]);
        assert_int_equal(mortise_open(api_url_with(parameter), NULL, &limited), MORTISE_EURI);
    }
    assert_int_equal(mortise_open(api_url_with("queue_max=1"), NULL, &limited), MORTISE_OK);
    mortise_client *holder = api_open(0);
    mortise_hold hold = api_acquire(api_lock(holder, "full")), mine = {NULL, 0};
    struct attempt attempt = {.lock = api_lock(client, "full"), .timeout_ms = -1, .release = true};
    pthread_t thread = api_thread(attempt_body, &attempt);
    api_await_tickets(client, "full", 2);
    mortise_lock *lock = api_lock(limited, "full");
    assert_int_equal(mortise_acquire_for(lock, 60000, &mine), MORTISE_EFULL);
    assert_int_equal(api_tickets(client, "full"), 2);
    api_release(hold);
    api_join(thread);
    assert_int_equal(attempt.error, MORTISE_OK);
    api_await_tickets(client, "full", 0);
    api_release(api_acquire(lock));
    api_close(limited);
    api_close(holder);
}

/* A waiter that is told nothing asks again, and as often as its URI says. The first of several
   attempts that succeeds, because the machine may be busy. */
static void test_h5_a_waiter_rechecks_at_the_interval_of_the_uri(void **state)
{
    (void)state;
    mortise_client *waiting;
    assert_int_equal(mortise_open(api_url_with("recheck=100ms"), NULL, &waiting), MORTISE_OK);
    mortise_hold hold = api_acquire(api_lock(client, "h5")), none;
    mortise_lock *lock = api_lock(waiting, "h5");
    uint64_t most = 0;
    for (int i = 0; i < 20 && most < 8; i++) {
        uint64_t before = api_stats(waiting).commands, looks;
        assert_int_equal(mortise_acquire_for(lock, 1500, &none), MORTISE_ETIMEOUT);
        looks = api_stats(waiting).commands - before;
        most = looks > most ? looks : most;
    }
    assert_true(most >= 8); /* by themselves stores look each 1 to 5 s */
    api_release(hold);
    api_close(waiting);
}

/* The first of several attempts that succeeds, because the machine may be busy. */
static void test_f3_deadline_is_met_within_50_ms(void **state)
{
    (void)state;
    mortise_client *other = api_open(0);
    mortise_hold hold = api_acquire(api_lock(other, "f3")), mine;
    mortise_lock *lock = api_lock(client, "f3");
    int64_t best = INT64_MAX;
    for (int i = 0; i < 20 && best > 110; i++) {
        int64_t begin = mortise_now_ns();
        assert_int_equal(mortise_acquire_for(lock, 60, &mine), MORTISE_ETIMEOUT);
        int64_t took = api_ms_since(begin);
        assert_true(took >= 60);
        best = took < best ? took : best;
    }
    assert_in_range(best, 60, 110);
    api_release(hold);
    mortise_lock_free(lock);
    api_close(other);
}

static void test_f4_timed_out_acquires_leave_nothing(void **state)
{
    (void)state;
    mortise_client *other = api_open(0);
    mortise_hold hold = api_acquire(api_lock(other, "f4")), mine;
    mortise_lock *lock = api_lock(client, "f4");
    for (int i = 0; i < 100; i++)
        assert_int_equal(mortise_acquire_for(lock, 1, &mine), MORTISE_ETIMEOUT);
    api_await_tickets(client, "f4", 1);
    api_release(hold);
    api_await_tickets(client, "f4", 0);
    mortise_lock_free(lock);
    api_close(other);
}

static void test_h2_c18_z1_a_failed_try_leaves_nothing(void **state)
{
    (void)state;
    mortise_client *other = api_open(0);
    mortise_hold hold = api_acquire(api_lock(other, "h2")), mine;
    mortise_lock *lock = api_lock(client, "h2");
    for (int i = 0; i < 20; i++) {
        assert_int_equal(mortise_try_acquire(lock, &mine), MORTISE_EBUSY);
        assert_int_equal(api_tickets(client, "h2"), 1);
    }
    api_release(hold);
    api_await_tickets(client, "h2", 0); /* no phantom has become the owner */
    assert_int_equal(mortise_try_acquire(lock, &mine), MORTISE_OK);
    api_release(mine);
    mortise_lock_free(lock);
    api_close(other);
}

static void test_i5_z2_a_failed_try_frees_the_local_tier(void **state)
{
    (void)state;
    mortise_client *other = api_open(0);
    mortise_hold hold = api_acquire(api_lock(other, "z2")), mine;
    mortise_lock *lock = api_lock(client, "z2");
    assert_int_equal(mortise_try_acquire(lock, &mine), MORTISE_EBUSY);
    assert_int_equal(try_elsewhere(lock), MORTISE_EBUSY); /* from the store, not from this side */
    assert_int_equal(mortise_acquire_for(lock, 5, &mine), MORTISE_ETIMEOUT);
    api_release(hold);
    struct attempt attempt = {.lock = lock, .timeout_ms = 10000, .release = true};
    api_join(api_thread(attempt_body, &attempt));
    assert_int_equal(attempt.error, MORTISE_OK);
    mortise_lock_free(lock);
    api_close(other);
}

static void test_f6_h1_cancelled_from_another_thread(void **state)
{
    (void)state;
    mortise_client *other = api_open(0);
    mortise_hold hold = api_acquire(api_lock(other, "f6"));
    mortise_lock *lock = api_lock(client, "f6");
    struct attempt attempts[8];
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) {
        attempts[i] = (struct attempt){.lock = lock, .timeout_ms = -1};
        threads[i] = api_thread(attempt_body, &attempts[i]);
    }
    api_await_tickets(client, "f6", 2); /* i1: one for all of them */
    api_sleep_ms(50);
    assert_int_equal(mortise_cancel_waiters(lock), MORTISE_OK);
    int64_t begin = mortise_now_ns();
    for (int i = 0; i < 8; i++) {
        /* one that had not begun to wait has missed it */
        while (pthread_tryjoin_np(threads[i], NULL) != 0) {
            assert_true(api_ms_since(begin) < api_await_ms);
            mortise_cancel_waiters(lock);
            api_sleep_ms(1);
        }
        assert_int_equal(attempts[i].error, MORTISE_ECANCELLED);
    }
    api_await_tickets(client, "f6", 1);
    api_release(hold);
    api_await_tickets(client, "f6", 0);
    mortise_lock_free(lock);
    api_close(other);
}

/* ----------------------------------------------------------------- releasing */

static void test_f20_z5_a_release_without_a_hold_is_refused(void **state)
{
    (void)state;
    mortise_lock *lock = api_lock(client, "f20");
    mortise_hold none = {NULL, 0}, hold = api_acquire(lock);
    assert_int_equal(mortise_release(none), MORTISE_ENOTHELD);
    api_release(hold);
    assert_int_equal(mortise_release(hold), MORTISE_ENOTHELD);
    mortise_hold next = api_acquire(lock); /* perhaps in the same slot */
    assert_int_equal(mortise_release(hold), MORTISE_ENOTHELD);
    assert_true(mortise_is_held(next));
    api_release(next);
    mortise_lock_free(lock);
}

static int keep_node(void *argument, const mortise_entry *entry)
{
    snprintf(argument, MORTISE_NODE_SIZE, "%s", entry->node);
    return 0;
}

/* Stores with nodes of their own list them too. */
static void test_f2_h8_the_node_of_a_hold_is_that_of_the_list(void **state)
{
    (void)state;
    mortise_lock *lock = api_lock(client, "h8-node");
    mortise_hold hold = api_acquire(lock);
    char node[MORTISE_NODE_SIZE], again[MORTISE_NODE_SIZE], listed[MORTISE_NODE_SIZE] = "";
    int error = mortise_hold_node(hold, node, sizeof node);
    if (api_has_fences()) {
        assert_int_equal(error, MORTISE_OK);
        assert_non_null(strstr(node, "h8-node"));
        assert_in_range(node[strlen(node) - 1], '0', '9'); /* of a number */
        assert_int_equal(mortise_hold_node(hold, again, strlen(node) + 1), MORTISE_OK);
        assert_string_equal(again, node);
        assert_int_equal(mortise_hold_node(hold, again, strlen(node)), MORTISE_EINVALID);
        assert_int_equal(mortise_hold_node(hold, NULL, 0), MORTISE_EINVALID);
        assert_int_equal(mortise_list(client, "h8-node", keep_node, listed), MORTISE_OK);
        if (listed[0])
            assert_string_equal(listed, node);
    } else {
        assert_int_equal(error, MORTISE_ENOTSUPPORTED);
    }
    api_release(hold);
    if (api_has_fences())
        assert_int_equal(mortise_hold_node(hold, node, sizeof node), MORTISE_ENOTHELD);
    mortise_lock_free(lock);
}

static void test_h8_queries_of_a_lock_and_its_hold(void **state)
{
    (void)state;
    mortise_lock *lock = api_lock(client, "h8");
    mortise_hold hold = api_acquire(lock);
    assert_string_equal(mortise_lock_name(lock), "h8");
    assert_string_equal(mortise_hold_name(hold), "h8");
    assert_int_equal(mortise_hold_state(hold), MORTISE_HELD);
    assert_int_equal(mortise_is_held(hold), 1);
    assert_int_equal(mortise_hold_fence(hold) > 0, api_has_fences());
    assert_true(mortise_hold_remaining_ms(hold) > 0);
    assert_int_equal(mortise_hold_count(hold), 1);
    assert_int_equal(mortise_verify(hold, 10000), MORTISE_OK);
    api_release(hold);
    mortise_lock_free(lock);
}

/* The least that is left of a hold in somewhat more than a lease. */
static int64_t least_left(mortise_lock *lock, int64_t lease_ms)
{
    mortise_hold hold = api_acquire(lock);
    int64_t begin = mortise_now_ns(), least = INT64_MAX;
    while (api_ms_since(begin) < lease_ms * 5 / 4) {
        int64_t left = mortise_hold_remaining_ms(hold);
        least = left < least ? left : least;
        api_sleep_ms(2);
    }
    int error = mortise_release(hold);
    check(error == MORTISE_OK || (error == MORTISE_ELOST && least == 0));
    return least;
}

/* A tenth of the lease is for answers that a busy machine delays; one of several attempts counts,
   as it may stand still for longer. */
static void test_the_rest_of_a_lease_never_falls_below_the_stores_promise(void **state)
{
    (void)state;
    mortise_capabilities can = {.size = sizeof can};
    assert_int_equal(mortise_get_capabilities(client, &can), MORTISE_OK);
    if (can.lease_ms == 0) {
        assert_int_equal(can.lease_left_ms, 0);
        skip();
    }
    assert_in_range(can.lease_left_ms, 1, can.lease_ms - 1);
    mortise_lock *lock = api_lock(client, "left");
    int64_t least = 0, enough = can.lease_left_ms - can.lease_ms / 10;
    for (int i = 0; i < 10 && least < enough; i++) {
        least = least_left(lock, can.lease_ms);
        print_message("of %lld ms %lld are left at least, said %lld\n", (long long)can.lease_ms,
                      (long long)least, (long long)can.lease_left_ms);
    }
    assert_true(least >= enough);
    assert_true(least <= can.lease_left_ms + can.lease_ms / 5); /* and it is not far from that */
}

static void test_f20_z7_queries_of_a_stale_hold(void **state)
{
    (void)state;
    mortise_lock *lock = api_lock(client, "stale");
    mortise_hold stale = api_acquire(lock);
    api_release(stale);
    const mortise_hold holds[] = {stale, {NULL, 0}};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(mortise_hold_state(holds[i]), MORTISE_RELEASED);
        assert_int_equal(mortise_is_held(holds[i]), 0);
        assert_int_equal(mortise_hold_fence(holds[i]), 0);
        assert_int_equal(mortise_hold_count(holds[i]), 0);
        assert_int_equal(mortise_hold_owner(holds[i]), 0);
        assert_int_equal(mortise_hold_remaining_ms(holds[i]), 0);
        assert_string_equal(mortise_hold_name(holds[i]), "");
        assert_int_equal(mortise_verify(holds[i], 1000), MORTISE_ENOTHELD);
        assert_int_equal(mortise_on_lost(holds[i], NULL, NULL), MORTISE_ENOTHELD);
        assert_int_equal(mortise_lost_fd(holds[i]), MORTISE_ENOTHELD);
    }
    mortise_lock_free(lock);
}

static void test_a_hold_outlives_its_handle(void **state)
{
    (void)state;
    mortise_lock *lock = api_lock(client, "handle");
    mortise_hold hold = api_acquire(lock);
    mortise_lock_free(lock);
    assert_true(mortise_is_held(hold));
    assert_string_equal(mortise_hold_name(hold), "handle");
    assert_int_equal(try_as_another("handle"), MORTISE_EBUSY);
    api_release(hold);
    api_await_tickets(client, "handle", 0);
    mortise_lock_free(NULL);
}

/* ------------------------------------------------------------- order of release */

/* i2: with hand-overs off, each grant is a ticket of its own; with them on, one may do. */
static void test_i2_i8_without_a_budget_each_grant_has_its_own_ticket(void **state)
{
    (void)state;
    mortise_client_options options = {.size = sizeof options, .budget_ms = -1};
    mortise_client *plain = api_open_with(&options);
    mortise_lock *lock = api_lock(plain, "i2");
    struct attempt attempts[4];
    pthread_t threads[4];
    mortise_hold hold = api_acquire(lock);
    for (int i = 0; i < 4; i++) {
        attempts[i] = (struct attempt){.lock = lock, .timeout_ms = -1, .release = true};
        threads[i] = api_thread(attempt_body, &attempts[i]);
    }
    api_sleep_ms(50);
    api_release(hold);
    for (int i = 0; i < 4; i++)
        api_join(threads[i]);
    assert_int_equal(api_stats(plain).acquisitions, 5);
    assert_int_equal(api_stats(plain).handovers, 0);
    api_close(plain);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a3_j5_h1_reentrant_needs_as_many_releases),
        cmocka_unit_test(test_f1_nested_acquires_make_no_request),
        cmocka_unit_test(test_same_owner_nests_through_two_handles),
        cmocka_unit_test(test_f2_i7_threads_on_one_object_exclude_each_other),
        cmocka_unit_test(test_h9_two_clients_exclude_each_other),
        cmocka_unit_test(test_names_do_not_touch_each_other),
        cmocka_unit_test(test_z10_fences_rise_through_release_and_reopening),
        cmocka_unit_test(test_a4_a_held_lock_refuses_tries_and_times_acquires_out),
        cmocka_unit_test(test_zk_34_se_09_an_acquire_of_a_full_queue_is_refused),
        cmocka_unit_test(test_h5_a_waiter_rechecks_at_the_interval_of_the_uri),
        cmocka_unit_test(test_f3_deadline_is_met_within_50_ms),
        cmocka_unit_test(test_f4_timed_out_acquires_leave_nothing),
        cmocka_unit_test(test_h2_c18_z1_a_failed_try_leaves_nothing),
        cmocka_unit_test(test_i5_z2_a_failed_try_frees_the_local_tier),
        cmocka_unit_test(test_f6_h1_cancelled_from_another_thread),
        cmocka_unit_test(test_f20_z5_a_release_without_a_hold_is_refused),
        cmocka_unit_test(test_f2_h8_the_node_of_a_hold_is_that_of_the_list),
        cmocka_unit_test(test_h8_queries_of_a_lock_and_its_hold),
        cmocka_unit_test(test_the_rest_of_a_lease_never_falls_below_the_stores_promise),
        cmocka_unit_test(test_f20_z7_queries_of_a_stale_hold),
        cmocka_unit_test(test_a_hold_outlives_its_handle),
        cmocka_unit_test(test_i2_i8_without_a_budget_each_grant_has_its_own_ticket),
    };
    int failed = api_begin(argc, argv);
    return failed ? failed : api_end(cmocka_run_group_tests(tests, open_client, close_client));
}
