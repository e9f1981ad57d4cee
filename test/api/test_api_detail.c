/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The details of errors: which lock, how long a call has waited, whose the lock is, and
 * which limit was reached; by thread, and by operation.
 */
#include "api_two.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

static void assert_detail(const char *expected)
{
    if (!strstr(mortise_error_detail(), expected))
        fail_msg("\"%s\" does not say \"%s\"", mortise_error_detail(), expected);
}

/* Everything that the callback of an operation is told. */
struct told {
    mortise_operation *operation;
    _Atomic int result; /* 1: not called yet */
    char detail[512];
};

static void note(void *argument, int error, mortise_hold hold)
{
    struct told *told = argument;
    check(strcmp(mortise_error_detail(), mortise_operation_detail(told->operation)) == 0);
    check(mortise_release(hold) == MORTISE_ENOTHELD); /* the thread has another detail now */
    snprintf(told->detail, sizeof told->detail, "%s", mortise_operation_detail(told->operation));
    atomic_store(&told->result, error);
}

static void await(const struct told *told)
{
    int64_t begin = mortise_now_ns();
    while (atomic_load(&told->result) == 1) {
        check(api_ms_since(begin) < api_await_ms);
        api_sleep_ms(1);
    }
}

/* ----------------------------------------------------------------- a conflict */

static void test_u37_a_conflict_names_the_lock_and_the_holder(void **state)
{
    (void)state;
    mortise_lock *lock = api_lock(client, "told/1"), *owned = api_lock_of(client, "told/1", 77),
                 *theirs = api_lock(other, "told/1");
    mortise_hold hold = api_acquire(lock), refused;
    char thread[64];
    snprintf(thread, sizeof thread, "told/1 is held by thread %" PRIu64 " of this client",
             mortise_hold_owner(hold));
    assert_int_equal(mortise_try_acquire(owned, &refused), MORTISE_EBUSY);
    assert_string_equal(mortise_error_detail(), thread);
    assert_int_equal(mortise_try_acquire(theirs, &refused), MORTISE_EBUSY);
    assert_string_equal(mortise_error_detail(), "told/1 is in use by another client");
    api_release(hold);
    hold = api_acquire(owned);
    assert_int_equal(mortise_try_acquire(lock, &refused), MORTISE_EBUSY);
    assert_string_equal(mortise_error_detail(), "told/1 is held by owner 77 of this client");
    mortise_lock *locks[] = {lock};
    assert_int_equal(mortise_acquire_all(locks, 1, 0, &refused), MORTISE_EBUSY);
    assert_string_equal(mortise_error_detail(), "told/1 is held by owner 77 of this client");
    api_release(hold);
    mortise_lock_free(lock);
    mortise_lock_free(owned);
    mortise_lock_free(theirs);
}

static void test_u37_a_timeout_tells_how_long_it_has_waited(void **state)
{
    (void)state;
    mortise_lock *lock = api_lock(client, "told/2"), *theirs = api_lock(other, "told/2");
    mortise_hold hold = api_acquire(theirs), refused;
    int64_t begin = mortise_now_ns();
    assert_int_equal(mortise_acquire_for(lock, 120, &refused), MORTISE_ETIMEOUT);
    int64_t most = api_ms_since(begin);
    char rest[64];
    int seconds = -1, ms = -1;
    assert_int_equal(
        sscanf(mortise_error_detail(), "waited %d.%3d s for %60[^\n]", &seconds, &ms, rest), 3);
    assert_in_range(seconds * 1000 + ms, 120, most);
    assert_string_equal(rest, "told/2, which is in use by another client");
    api_release(hold);
    mortise_lock_free(lock);
    mortise_lock_free(theirs);
}

static void *release_here(void *hold)
{
    check(mortise_release(*(mortise_hold *)hold) == MORTISE_ENOTOWNER);
    check(strstr(mortise_error_detail(), "told/3 is held by thread ") != NULL);
    check(strstr(mortise_error_detail(), "MORTISE_OWNER_NOBODY") != NULL);
    check(mortise_release_all(hold, 1) == MORTISE_ENOTOWNER);
    check(strstr(mortise_error_detail(), "told/3 is held by thread ") != NULL);
    check(mortise_detach(*(mortise_hold *)hold, (char[MORTISE_TOKEN_SIZE]){0}) != MORTISE_OK);
    return NULL;
}

static void test_u37_a_release_by_another_owner_names_the_owner(void **state)
{
    (void)state;
    mortise_lock *lock = api_lock(client, "told/3");
    mortise_hold hold = api_acquire(lock);
    api_join(api_thread(release_here, &hold));
    assert_true(mortise_is_held(hold));
    api_release(hold);
    mortise_lock_free(lock);
}

struct release_at_loss {
    _Atomic int result; /* 1: not called yet */
};

static void release_what_is_lost(void *argument, mortise_hold hold, mortise_state state)
{
    struct release_at_loss *release = argument;
    if (state == MORTISE_LOST)
        atomic_store(&release->result, mortise_release(hold));
}

/* The callback runs on a thread of the client's: what a thread has, that thread releases. */
static void test_u36_only_the_owner_releases_a_lost_hold(void **state)
{
    (void)state;
    const mortise_lock_options options = {.size = sizeof options, .max_hold_ms = 100};
    struct release_at_loss release = {.result = 1};
    mortise_lock *lock;
    check(mortise_mutex_new(client, "told/10", &options, &lock) == MORTISE_OK);
    mortise_hold hold = api_acquire(lock);
    check(mortise_on_lost(hold, release_what_is_lost, &release) == MORTISE_OK);
    int64_t begin = mortise_now_ns();
    while (atomic_load(&release.result) == 1) {
        check(api_ms_since(begin) < api_await_ms);
        api_sleep_ms(1);
    }
    assert_int_equal(release.result, MORTISE_ENOTOWNER);
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    mortise_lock_free(lock);
}

static void test_u37_an_acquire_that_does_not_nest_says_so(void **state)
{
    (void)state;
    mortise_lock *lock;
    mortise_hold hold, second;
    check(mortise_semaphore_mutex_new(client, "told/4", NULL, &lock) == MORTISE_OK);
    hold = api_acquire(lock);
    assert_int_equal(mortise_acquire(lock, &second), MORTISE_EDEADLOCK);
    assert_detail("told/4 is held by the same owner");
    api_release(hold);
    mortise_lock_free(lock);
}

/* ------------------------------------------------------------- by operation */

static void test_u37_an_operation_has_its_own_detail(void **state)
{
    (void)state;
    mortise_lock *lock = api_lock(client, "told/5"), *theirs = api_lock(other, "told/5");
    mortise_hold hold = api_acquire(theirs);
    struct told late = {.result = 1}, busy = {.result = 1};
    int64_t deadline = mortise_now_ns() + 60 * MS_IN_NS;
    assert_string_equal(mortise_operation_detail(NULL), "");
    check(mortise_acquire_async(lock, deadline, note, &late, &late.operation) == MORTISE_OK);
    await(&late);
    assert_int_equal(late.result, MORTISE_ETIMEOUT);
    assert_non_null(strstr(late.detail, " s for told/5, which is in use by another client"));
    check(mortise_try_acquire_async(lock, note, &busy, &busy.operation) == MORTISE_OK);
    await(&busy);
    assert_int_equal(busy.result, MORTISE_EBUSY);
    assert_string_equal(busy.detail, "told/5 is in use by another client");
    api_release(hold);
    mortise_lock_free(lock);
    mortise_lock_free(theirs);
}

/* ------------------------------------------------------- campaigns, and limits */

static void note_campaign(void *argument, int error)
{
    struct told *told = argument;
    snprintf(told->detail, sizeof told->detail, "%s", mortise_error_detail());
    atomic_store(&told->result, error);
}

static void test_u37_a_failed_campaign_says_why(void **state)
{
    (void)state;
    mortise_election *leads, *fails;
    int error = mortise_election_new(other, "told/6", NULL, &leads);
    if (error == MORTISE_ENOTSUPPORTED)
        skip();
    check(error == MORTISE_OK && mortise_election_campaign(leads, -1) == MORTISE_OK);
    check(mortise_election_new(client, "told/6", NULL, &fails) == MORTISE_OK);
    assert_int_equal(mortise_election_campaign(fails, 0), MORTISE_EBUSY);
    assert_string_equal(mortise_error_detail(), "told/6 is in use by another client");
    assert_int_equal(mortise_election_campaign(fails, 30), MORTISE_ETIMEOUT);
    assert_detail(" s for told/6, which is in use by another client");
    struct told told = {.result = 1};
    int64_t deadline = mortise_now_ns() + 30 * MS_IN_NS;
    check(mortise_election_campaign_async(fails, deadline, note_campaign, &told) == MORTISE_OK);
    await(&told);
    assert_int_equal(told.result, MORTISE_ETIMEOUT);
    assert_non_null(strstr(told.detail, " s for told/6, which is in use by another client"));
    mortise_election_free(fails);
    mortise_election_free(leads);
}

/* By the limit of the client, not of a queue: its name, its value, and the way out. */
static void assert_limit_told(const char *detail, const char *name)
{
    if (!strstr(detail, "tickets_max=1 sets") ||
        !strstr(detail, "raise tickets_max= in the store's URI") || !strstr(detail, name))
        fail_msg("\"%s\" does not name the limit", detail);
}

static void test_a_full_client_names_its_limit(void **state)
{
    (void)state;
    mortise_client *full;
    check(mortise_open(api_url_with("tickets_max=1"), NULL, &full) == MORTISE_OK);
    mortise_hold hold = api_acquire(api_lock(full, "told/7")), refused;
    mortise_lock *lock = api_lock(full, "told/8");
    assert_int_equal(mortise_acquire(lock, &refused), MORTISE_EFULL);
    assert_limit_told(mortise_error_detail(), "told/8");
    struct told told = {.result = 1};
    check(mortise_acquire_async(lock, INT64_MAX, note, &told, &told.operation) == MORTISE_OK);
    await(&told);
    assert_int_equal(told.result, MORTISE_EFULL);
    assert_limit_told(told.detail, "told/8");
    mortise_election *election;
    if (mortise_election_new(full, "told/9", NULL, &election) == MORTISE_OK) {
        assert_int_equal(mortise_election_campaign(election, -1), MORTISE_EFULL);
        assert_limit_told(mortise_error_detail(), "told/9");
        assert_int_equal(mortise_election_campaign_async(election, INT64_MAX, NULL, NULL),
                         MORTISE_EFULL);
        assert_limit_told(mortise_error_detail(), "told/9");
    }
    api_release(hold);
    api_close(full);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_u37_a_conflict_names_the_lock_and_the_holder),
        cmocka_unit_test(test_u37_a_timeout_tells_how_long_it_has_waited),
        cmocka_unit_test(test_u37_a_release_by_another_owner_names_the_owner),
        cmocka_unit_test(test_u36_only_the_owner_releases_a_lost_hold),
        cmocka_unit_test(test_u37_an_acquire_that_does_not_nest_says_so),
        cmocka_unit_test(test_u37_an_operation_has_its_own_detail),
        cmocka_unit_test(test_u37_a_failed_campaign_says_why),
        cmocka_unit_test(test_a_full_client_names_its_limit),
    };
    int error = api_begin(argc, argv);
    return error ? error : api_end(cmocka_run_group_tests(tests, open_clients, close_clients));
}
