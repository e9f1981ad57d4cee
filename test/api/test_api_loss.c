/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Losing a hold: the memory store with a lease, frozen so that no answer comes. The test checks the
 * holder's callbacks, their order, and that no other client has the lock while the holder may
 * believe to have it.
 */
#include "api_fixture.h"

#include "store/memory/memory.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>

#define SERVER "loss"
#define URL "memory:" SERVER "?lease=2s"
#define PATIENT "patient"

static mortise_client *open_url(const char *url, int32_t timeout_ms)
{
    mortise_client_options options = {.size = sizeof options, .timeout_ms = timeout_ms};
    mortise_client *client = NULL;
    check(mortise_open(url, &options, &client) == MORTISE_OK);
    return client;
}

static mortise_client *open_client(int32_t timeout_ms)
{
    return open_url(URL, timeout_ms);
}

/* The states told of one hold, in order. */
struct record {
    _Atomic int count;
    mortise_state states[64];
    int64_t at[64];
};

static void note(void *argument, mortise_hold hold, mortise_state state)
{
    struct record *record = argument;
    int place = atomic_load(&record->count);
    check(place < 64);
    record->states[place] = state;
    record->at[place] = mortise_now_ns();
    if (state == MORTISE_LOST)
        check(!mortise_is_held(hold)); /* by then, at the latest */
    atomic_fetch_add(&record->count, 1);
}

static void await(struct record *record, int count)
{
    int64_t begin = mortise_now_ns();
    while (atomic_load(&record->count) < count) {
        check(api_ms_since(begin) < api_await_ms);
        api_sleep_ms(1);
    }
}

static bool is_readable(int fd)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    check(poll(&poller, 1, 0) >= 0);
    return poller.revents & POLLIN;
}

static void test_g4_a_leader_is_suspended_then_lost(void **state)
{
    (void)state;
    mortise_client *client = open_client(0);
    mortise_lock *lock = api_lock(client, "a");
    mortise_hold hold = api_acquire(lock), other;
    struct record record = {0};
    uint64_t fence = mortise_hold_fence(hold);
    assert_int_equal(mortise_on_lost(hold, note, &record), MORTISE_OK);
    int fd = mortise_lost_fd(hold);
    assert_true(fd >= 0);
    assert_int_equal(mortise_lost_fd(hold), fd);
    assert_in_range(mortise_hold_remaining_ms(hold), 1, 2000);
    mrt_memory_freeze(SERVER, true);
    await(&record, 1);
    assert_int_equal(record.states[0], MORTISE_SUSPENDED);
    assert_false(is_readable(fd));
    await(&record, 2);
    assert_int_equal(record.states[1], MORTISE_LOST);
    assert_true(is_readable(fd));
    assert_int_equal(mortise_hold_state(hold), MORTISE_LOST); /* z7 */
    assert_int_equal(mortise_is_held(hold), 0);
    assert_int_equal(mortise_hold_remaining_ms(hold), 0);
    assert_int_equal(mortise_hold_fence(hold), fence); /* what it was */
    assert_int_equal(mortise_on_lost(hold, note, &record), MORTISE_ELOST);
    assert_int_equal(mortise_verify(hold, 100), MORTISE_ELOST);
    assert_int_equal(mortise_try_acquire(lock, &other), MORTISE_ELOST);
    assert_int_equal(api_stats(client).losses, 1);
    assert_int_equal(mortise_release(hold), MORTISE_ELOST); /* h3 */
    assert_int_equal(mortise_release(hold), MORTISE_ENOTHELD);
    mrt_memory_freeze(SERVER, false);
    assert_int_equal(mortise_acquire_for(lock, 20000, &hold), MORTISE_OK); /* a new session */
    assert_true(mortise_hold_fence(hold) > fence);
    api_release(hold);
    assert_int_equal(record.count, 2);
    api_close(client);
}

/* The contact callbacks of a client. */
struct contact {
    _Atomic int count;
    int errors[16];
    char why[256];
};

static void note_contact(void *argument, int error, const char *why)
{
    struct contact *contact = argument;
    check(contact->count < 16);
    contact->errors[contact->count] = error;
    snprintf(contact->why, sizeof contact->why, "%s", why);
    atomic_fetch_add(&contact->count, 1);
}

static bool is_told(struct contact *contact, int count, int64_t within_ms)
{
    int64_t begin = mortise_now_ns();
    while (contact->count < count && api_ms_since(begin) < within_ms)
        api_sleep_ms(1);
    return contact->count >= count;
}

static void await_contact(struct contact *contact, int count, int error)
{
    assert_true(is_told(contact, count, api_await_ms));
    assert_int_equal(contact->count, count);
    assert_int_equal(contact->errors[count - 1], error);
    assert_string_equal(contact->why, "memory:" SERVER);
}

/* It returns to a session. A machine that stands still while the store is silent ends that, and who
   has none learns of the return by the next acquire: so some of several attempts decide. */
static void test_f9_a_silent_store_is_reported_once_and_so_is_its_return(void **state)
{
    (void)state;
    struct contact contact = {0};
    const mortise_client_options options = {
        .size = sizeof options, .contact = note_contact, .contact_argument = &contact};
    mortise_client *client;
    assert_int_equal(mortise_open(URL, &options, &client), MORTISE_OK);
    mortise_lock *lock = api_lock(client, "contact");
    api_release(api_acquire(lock));
    api_sleep_ms(1000);
    assert_int_equal(contact.count, 0);
    int told = 0, count = 0;
    for (int i = 0; i < 8 && told < 2; i++) {
        api_release(api_acquire(lock));
        mrt_memory_freeze(SERVER, true);
        await_contact(&contact, ++count, MORTISE_EUNREACHABLE);
        mrt_memory_freeze(SERVER, false);
        told += is_told(&contact, ++count, 5000);
        if (contact.count < count)
            api_release(api_acquire(lock));
        await_contact(&contact, count, MORTISE_OK);
    }
    assert_int_equal(told, 2);
    api_close(client);
    assert_int_equal(contact.count, count);
}

/* Whether the leader resumes, and leads for another lease; false: it was lost before it was heard.
 */
static bool resumes(int64_t lease_ms)
{
    char server[32], url[64];
    snprintf(server, sizeof server, "resumes%lld", (long long)lease_ms);
    snprintf(url, sizeof url, "memory:%s?lease=%lldms", server, (long long)lease_ms);
    mortise_client *client = open_url(url, 0);
    mortise_hold hold = api_acquire(api_lock(client, "b"));
    struct record record = {0};
    int error = mortise_on_lost(hold, note, &record);
    mrt_memory_freeze(server, true);
    if (error == MORTISE_OK)
        await(&record, 1);
    mrt_memory_freeze(server, false);
    if (error == MORTISE_OK)
        await(&record, 2);
    api_sleep_ms(lease_ms * 5 / 4); /* it is renewed again */
    error = mortise_release(hold);
    check(error == MORTISE_OK || error == MORTISE_ELOST);
    api_close(client);
    for (int i = 0; i < record.count && error == MORTISE_OK; i++)
        assert_int_equal(record.states[i], i % 2 ? MORTISE_HELD : MORTISE_SUSPENDED);
    return error == MORTISE_OK && record.count == 2; /* a machine that stands still suspends too */
}

/* The first of several attempts, with longer leases: the machine may be busy. */
static void test_g4_a_leader_is_suspended_then_resumes(void **state)
{
    (void)state;
    assert_true(resumes(2000) || resumes(4000) || resumes(8000) || resumes(16000));
}

struct heir {
    mortise_lock *lock;
    mortise_hold old;
    int64_t held_at;
    uint64_t fence;
};

static void *inherit(void *argument)
{
    struct heir *heir = argument;
    mortise_hold hold = api_acquire(heir->lock);
    heir->held_at = mortise_now_ns();
    check(!mortise_is_held(heir->old)); /* never both */
    heir->fence = mortise_hold_fence(hold);
    api_release(hold);
    return NULL;
}

static void test_a6_z10_the_next_holder_comes_after_the_loss(void **state)
{
    (void)state;
    mortise_client *client = open_client(0), *other = open_client(0);
    mortise_hold hold = api_acquire(api_lock(client, "c"));
    struct record record = {0};
    assert_int_equal(mortise_on_lost(hold, note, &record), MORTISE_OK);
    struct heir heir = {.lock = api_lock(other, "c"), .old = hold};
    pthread_t thread = api_thread(inherit, &heir);
    api_await_tickets(client, "c", 2);
    mrt_memory_freeze(SERVER, true);
    await(&record, 2);
    mrt_memory_freeze(SERVER, false);
    api_join(thread);
    assert_int_equal(record.states[1], MORTISE_LOST);
    assert_true(heir.held_at >= record.at[0]);
    assert_true(heir.fence > mortise_hold_fence(hold));
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    api_close(client);
    api_close(other);
}

static void test_gn06_the_next_holder_comes_after_the_delay(void **state)
{
    (void)state;
    const mortise_lock_options options = {.size = sizeof options, .lock_delay_ms = 300};
    mortise_client *client = open_client(0), *other = open_client(0);
    mortise_lock *lock;
    check(mortise_mutex_new(client, "delay", &options, &lock) == MORTISE_OK);
    mortise_hold hold = api_acquire(lock);
    struct record record = {0};
    assert_int_equal(mortise_on_lost(hold, note, &record), MORTISE_OK);
    struct heir heir = {.lock = api_lock(other, "delay"), .old = hold};
    pthread_t thread = api_thread(inherit, &heir);
    api_await_tickets(client, "delay", 2);
    int64_t valid_until = mortise_now_ns();
    valid_until += (mortise_hold_remaining_ms(hold) - 1) * MS_IN_NS; /* renewed since, or not */
    mrt_memory_freeze(SERVER, true);
    await(&record, 2);
    mrt_memory_freeze(SERVER, false);
    api_join(thread);
    assert_int_equal(record.states[1], MORTISE_LOST);
    assert_true(heir.held_at >= valid_until + 300 * MS_IN_NS);
    assert_true(heir.fence > mortise_hold_fence(hold));
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    api_close(client);
    api_close(other);
}

static void test_h3_every_count_of_a_lost_hold_is_released(void **state)
{
    (void)state;
    mortise_client *client = open_client(0);
    mortise_lock *lock = api_lock(client, "d");
    mortise_hold hold = api_acquire(lock), again;
    struct record record = {0};
    api_acquire(lock);
    assert_int_equal(mortise_on_lost(hold, note, &record), MORTISE_OK);
    mrt_memory_freeze(SERVER, true);
    await(&record, 2);
    mrt_memory_freeze(SERVER, false);
    assert_true(is_readable(mortise_lost_fd(hold))); /* asked for only now */
    assert_int_equal(mortise_acquire_for(lock, 1000, &again), MORTISE_ELOST);
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    assert_int_equal(mortise_acquire_for(lock, 1000, &again), MORTISE_ELOST);
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    assert_int_equal(mortise_acquire_for(lock, 20000, &again), MORTISE_OK);
    api_release(again);
    api_close(client);
}

static void test_f3_deadlines_hold_while_the_store_is_silent(void **state)
{
    (void)state;
    mortise_client *client = open_url("memory:" PATIENT "?lease=60s", 200);
    mortise_lock *lock = api_lock(client, "e"), *other = api_lock(client, "e/other");
    mortise_hold hold = api_acquire(lock), refused;
    mrt_memory_freeze(PATIENT, true);
    int64_t begin = mortise_now_ns();
    assert_int_equal(mortise_verify(hold, 50), MORTISE_ETIMEOUT);
    assert_int_equal(mortise_acquire_for(other, 50, &refused), MORTISE_ETIMEOUT);
    assert_int_equal(mortise_try_acquire(other, &refused), MORTISE_EDISCONNECTED);
    assert_true(api_ms_since(begin) >= 150);
    mrt_memory_freeze(PATIENT, false);
    api_await_tickets(client, "e/other", 0); /* f5: given back as soon as it can be */
    api_release(hold);
    api_await_tickets(client, "e", 0);
    api_close(client);
}

static void test_f17_close_does_not_wait_for_ever_for_a_silent_store(void **state)
{
    (void)state;
    mortise_client *keeper = open_client(0), *client = open_client(100);
    api_acquire(api_lock(client, "f"));
    mrt_memory_freeze(SERVER, true);
    int64_t begin = mortise_now_ns();
    assert_int_equal(mortise_close(client), MORTISE_EUNKNOWN);
    assert_true(api_ms_since(begin) < api_await_ms);
    mrt_memory_freeze(SERVER, false);
    api_await_tickets(keeper, "f", 0);
    api_close(keeper);
}

/* ------------------------------------------------------------------ elections */

/* How often elected, minus how often deposed, and the fences. */
/* ---------------------------------------------------------- one store of two */

/* A store is silent, before it has given a session or from then on; the other's lock, which is
   acquired before its or tried with it, is given back. */
static void all_or_nothing_beside(const char *server, bool met)
{
    char url[64];
    const mortise_client_options options = {.size = sizeof options, .timeout_ms = 100};
    mortise_client *client = open_client(0), *other = open_client(0), *silent = NULL;
    snprintf(url, sizeof url, "memory:%s", server);
    check(mortise_open(url, &options, &silent) == MORTISE_OK);
    mortise_lock *locks[] = {api_lock(silent, "e6"), api_lock(client, "e6")};
    mortise_hold holds[2];
    if (met)
        api_release(api_acquire(locks[0]));
    mrt_memory_freeze(server, true);
    for (int64_t wait = 0; wait <= 60; wait += 60) {
        assert_int_equal(mortise_acquire_all(locks, 2, wait, holds),
                         wait && met ? MORTISE_ETIMEOUT : MORTISE_EDISCONNECTED);
        assert_true(wait > 0 || api_stats(client).acquisitions == 1);
        api_await_tickets(other, "e6", 0);
    }
    mrt_memory_freeze(server, false);
    assert_int_equal(mortise_acquire_all(locks, 2, 20000, holds), MORTISE_OK);
    assert_int_equal(mortise_release_all(holds, 2), MORTISE_OK);
    api_close(silent);
    api_close(client);
    api_close(other);
}

/* Before this store in the order in which they are acquired, and behind it. */
static void test_e6_an_acquire_all_that_fails_in_a_silent_store_releases_the_others(void **state)
{
    (void)state;
    for (int met = 0; met < 2; met++) {
        all_or_nothing_beside("before", met);
        all_or_nothing_beside("other", met);
    }
}

static void *take_two(void *argument)
{
    mortise_hold holds[2];
    check(mortise_acquire_all(argument, 2, 20000, holds) == MORTISE_OK);
    check(mortise_hold_state(holds[0]) == MORTISE_HELD);
    check(mortise_hold_state(holds[1]) == MORTISE_HELD);
    check(mortise_release_all(holds, 2) == MORTISE_OK);
    return NULL;
}

/* The first of two stores is silent for longer than its lease, while the second's lock is waited
   for. It answers again before that lock is free. */
static void test_e6_acquire_all_acquires_again_a_lock_that_was_lost_while_it_waited(void **state)
{
    (void)state;
    mortise_client *client = open_client(0), *behind = NULL, *other = NULL;
    check(mortise_open("memory:other", NULL, &behind) == MORTISE_OK);
    check(mortise_open("memory:other", NULL, &other) == MORTISE_OK);
    mortise_lock *locks[] = {api_lock(client, "lost"), api_lock(behind, "waited for")};
    mortise_hold taken = api_acquire(api_lock(other, "waited for"));
    mortise_hold beside = api_acquire(api_lock(client, "beside"));
    pthread_t thread = api_thread(take_two, locks);
    api_await_tickets(behind, "waited for", 2);
    mrt_memory_freeze(SERVER, true);
    int64_t begin = mortise_now_ns();
    while (mortise_hold_state(beside) != MORTISE_LOST) { /* of the same session */
        assert_true(api_ms_since(begin) < api_await_ms);
        api_sleep_ms(1);
    }
    mrt_memory_freeze(SERVER, false);
    api_release(taken);
    api_join(thread);
    assert_int_equal(mortise_release(beside), MORTISE_ELOST);
    api_close(other);
    api_close(behind);
    api_close(client);
}

struct term {
    _Atomic int depth, terms;
    uint64_t fence;
};

static void begins(void *argument, uint64_t fence)
{
    struct term *term = argument;
    check(atomic_fetch_add(&term->depth, 1) == 0);
    check(fence > term->fence);
    term->fence = fence;
}

static void is_over(void *argument, uint64_t fence)
{
    struct term *term = argument;
    check(fence == term->fence);
    atomic_fetch_add(&term->terms, 1);
    check(atomic_fetch_sub(&term->depth, 1) == 1);
}

static void see(void *argument, const mortise_leader *leader)
{
    atomic_store((_Atomic uint64_t *)argument, leader->fence);
}

static void await_true(bool (*holds)(const void *subject), const void *subject)
{
    int64_t begin = mortise_now_ns();
    while (!holds(subject)) {
        check(api_ms_since(begin) < api_await_ms);
        api_sleep_ms(1);
    }
}

static bool has_one_term(const void *subject)
{
    return atomic_load(&((struct term *)(uintptr_t)subject)->terms) == 1;
}

static bool leads(const void *subject)
{
    return mortise_election_is_leader((mortise_election *)(uintptr_t)subject);
}

static void test_g5_a_leader_without_its_store_leads_no_more(void **state)
{
    (void)state;
    mortise_client *client = open_client(0), *other = open_client(0);
    struct term term = {0};
    _Atomic uint64_t seen = 1;
    mortise_election *election, *looks;
    const mortise_election_options options = {
        .size = sizeof options, .elected = begins, .deposed = is_over, .argument = &term};
    assert_int_equal(mortise_election_new(client, "term", &options, &election), MORTISE_OK);
    assert_int_equal(mortise_election_new(other, "term", NULL, &looks), MORTISE_OK);
    assert_int_equal(mortise_election_observe(looks, see, &seen), MORTISE_OK);
    assert_int_equal(mortise_election_campaign(election, -1), MORTISE_OK);
    uint64_t fence = mortise_election_fence(election);
    while (atomic_load(&seen) != fence)
        api_sleep_ms(1);
    mrt_memory_freeze(SERVER, true);
    int64_t begin = mortise_now_ns();
    while (mortise_election_is_leader(election)) /* by the clock: nothing is heard */
        check(api_ms_since(begin) < api_await_ms);
    assert_int_equal(mortise_election_fence(election), 0);
    await_true(has_one_term, &term);
    assert_int_equal(mortise_election_resign(election), MORTISE_ENOTHELD);
    assert_int_equal(mortise_election_campaign_async(election, INT64_MAX, NULL, NULL), MORTISE_OK);
    mrt_memory_freeze(SERVER, false);
    await_true(leads, election); /* it runs again in a new session */
    fence = mortise_election_fence(election);
    while (atomic_load(&seen) != fence) /* and an observer goes on in one too */
        api_sleep_ms(1);
    assert_int_equal(mortise_election_free(election), MORTISE_OK);
    assert_int_equal(term.terms, 2);
    assert_int_equal(mortise_election_free(looks), MORTISE_OK);
    api_close(client);
    api_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_g4_a_leader_is_suspended_then_lost),
        cmocka_unit_test(test_f9_a_silent_store_is_reported_once_and_so_is_its_return),
        cmocka_unit_test(test_g4_a_leader_is_suspended_then_resumes),
        cmocka_unit_test(test_a6_z10_the_next_holder_comes_after_the_loss),
        cmocka_unit_test(test_gn06_the_next_holder_comes_after_the_delay),
        cmocka_unit_test(test_h3_every_count_of_a_lost_hold_is_released),
        cmocka_unit_test(test_f3_deadlines_hold_while_the_store_is_silent),
        cmocka_unit_test(test_f17_close_does_not_wait_for_ever_for_a_silent_store),
        cmocka_unit_test(test_e6_an_acquire_all_that_fails_in_a_silent_store_releases_the_others),
        cmocka_unit_test(test_e6_acquire_all_acquires_again_a_lock_that_was_lost_while_it_waited),
        cmocka_unit_test(test_g5_a_leader_without_its_store_leads_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
