/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operator's calls on others' holds: requests to give up, and tickets removed. On
 * every store.
 */
#include "api_fixture.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Waits, at most 20 s, until a count is so high. */
static void await(const _Atomic int *count, int wanted)
{
    int64_t begin = mortise_now_ns();
    while (atomic_load(count) < wanted) {
        check(api_ms_since(begin) < api_await_ms);
        api_sleep_ms(1);
    }
}

/* The fence of an entry, by its place. */
struct search {
    uint32_t place;
    uint64_t fence;
};

static int compare_place(void *argument, const mortise_entry *entry)
{
    struct search *search = argument;
    if (entry->place != search->place)
        return 0;
    search->fence = entry->fence;
    return 1;
}

static uint64_t fence_at(mortise_client *client, const char *name, uint32_t place)
{
    struct search search = {.place = place};
    check(mortise_list(client, name, compare_place, &search) == MORTISE_OK);
    return search.fence;
}

/* ------------------------------------------------------------------ the holder */

struct seen {
    int count;
    char labels[4][MORTISE_LABEL_MAX + 1], hosts[4][80];
    int64_t pids[4];
    uint64_t weights[4], capacities[4];
};

static int note_entry(void *argument, const mortise_entry *entry)
{
    struct seen *seen = argument;
    int at = seen->count++;
    check(at < 4);
    check(entry->size == sizeof *entry);
    snprintf(seen->labels[at], sizeof seen->labels[at], "%s", entry->label);
    snprintf(seen->hosts[at], sizeof seen->hosts[at], "%s", entry->host);
    seen->pids[at] = entry->pid;
    seen->weights[at] = entry->weight;
    seen->capacities[at] = entry->capacity;
    return 0;
}

static void test_f12_d1_a_list_says_which_process_holds_and_how_much(void **state)
{
    (void)state;
    struct utsname system;
    const mortise_client_options telling = {.size = sizeof telling,
                                            .flags = MORTISE_TELL_PROCESS,
                                            .timeout_ms = 30000,
                                            .label = "night run"};
    mortise_client *client = api_open_with(&telling), *other = api_open(0);
    mortise_lock *read, *write, *other_read, *other_write;
    check(uname(&system) == 0);
    check(mortise_read_write_new(client, "who", NULL, &read, &write) == MORTISE_OK);
    check(mortise_read_write_new(other, "who", NULL, &other_read, &other_write) == MORTISE_OK);
    mortise_hold hold = api_acquire(write);
    struct seen seen = {0};
    assert_int_equal(mortise_list(other, "who", note_entry, &seen), MORTISE_OK);
    assert_int_equal(seen.count, 1);
    assert_string_equal(seen.labels[0], "night run");
    assert_string_equal(seen.hosts[0], system.nodename);
    assert_int_equal(seen.pids[0], getpid());
    assert_true(seen.capacities[0] > 1);
    assert_int_equal(seen.weights[0], seen.capacities[0]); /* it writes */
    api_release(hold);
    hold = api_acquire(other_read);
    seen.count = 0;
    assert_int_equal(mortise_list(client, "who", note_entry, &seen), MORTISE_OK);
    assert_int_equal(seen.count, 1);
    assert_string_equal(seen.labels[0], "");
    assert_string_equal(seen.hosts[0], ""); /* only who wants to tell */
    assert_int_equal(seen.pids[0], 0);
    assert_int_equal(seen.weights[0], 1);
    api_release(hold);
    api_close(client);
    api_close(other);
}

/* ------------------------------------------------------------------ requests */

static void count_request(void *argument, mortise_hold hold)
{
    check(mortise_is_held(hold));
    atomic_fetch_add((_Atomic int *)argument, 1);
}

static void yield_to_request(void *argument, mortise_hold hold)
{
    check(mortise_release(hold) == MORTISE_OK);
    atomic_fetch_add((_Atomic int *)argument, 1);
}

static void test_f22_a_holder_is_asked_and_may_decline(void **state)
{
    (void)state;
    mortise_client *client = api_open(0), *other = api_open(0);
    mortise_lock *lock = api_lock_of(client, "asked", 7);
    mortise_hold hold = api_acquire(lock);
    _Atomic int requests = 0;
    assert_int_equal(mortise_on_revoke(hold, count_request, &requests), MORTISE_OK);
    assert_int_equal(mortise_revoke(other, "asked", 0), MORTISE_OK);
    await(&requests, 1);
    assert_int_equal(mortise_revoke(other, "asked", fence_at(other, "asked", 0)), MORTISE_OK);
    await(&requests, 2);
    assert_int_equal(mortise_is_held(hold), 1);
    assert_int_equal(mortise_verify(hold, 20000), MORTISE_OK);
    assert_int_equal(api_tickets(other, "asked"), 1); /* it grants nothing */
    assert_int_equal(requests, 2);
    assert_int_equal(mortise_on_revoke(hold, yield_to_request, &requests), MORTISE_OK);
    assert_int_equal(mortise_revoke(client, "asked", 0), MORTISE_OK); /* one's own client's */
    await(&requests, 3);
    api_await_tickets(other, "asked", 0);
    assert_int_equal(mortise_on_revoke(hold, count_request, &requests), MORTISE_ENOTHELD);
    api_close(client);
    api_close(other);
}

static void test_f22_a_request_is_not_lost_before_the_callback_is_set(void **state)
{
    (void)state;
    mortise_client *client = api_open(0), *other = api_open(0);
    mortise_hold hold = api_acquire(api_lock(client, "early"));
    _Atomic int requests = 0;
    assert_int_equal(mortise_revoke(other, "early", 0), MORTISE_OK);
    assert_int_equal(mortise_verify(hold, 20000), MORTISE_OK); /* whatever the client knows now */
    assert_int_equal(mortise_on_revoke(hold, count_request, &requests), MORTISE_OK);
    await(&requests, 1);
    assert_int_equal(mortise_on_revoke(hold, NULL, NULL), MORTISE_OK);
    api_release(hold);
    api_close(client);
    api_close(other);
}

static void test_f22_a_revoke_request_goes_to_all_holders_or_to_one(void **state)
{
    (void)state;
    mortise_client *clients[] = {api_open(0), api_open(0), api_open(0)};
    mortise_hold holds[3];
    _Atomic int requests[3] = {0};
    for (int i = 0; i < 3; i++) {
        mortise_lock *read, *write;
        check(mortise_read_write_new(clients[i], "all", NULL, &read, &write) == MORTISE_OK);
        holds[i] = api_acquire(read);
        check(mortise_on_revoke(holds[i], count_request, &requests[i]) == MORTISE_OK);
    }
    assert_int_equal(mortise_revoke(clients[0], "all", 0), MORTISE_OK);
    for (int i = 0; i < 3; i++)
        await(&requests[i], 1);
    assert_int_equal(mortise_revoke(clients[0], "all", mortise_hold_fence(holds[1])), MORTISE_OK);
    await(&requests[1], 2);
    assert_int_equal(requests[0], 1);
    assert_int_equal(requests[2], 1);
    for (int i = 0; i < 3; i++) {
        api_release(holds[i]);
        api_close(clients[i]);
    }
}

static void *acquire_and_release(void *argument)
{
    api_release(api_acquire(argument));
    return NULL;
}

static void test_f22_only_the_holder_gets_a_revoke_request(void **state)
{
    (void)state;
    mortise_client *client = api_open(0), *other = api_open(0);
    mortise_lock *lock = api_lock(other, "nobody");
    assert_int_equal(mortise_revoke(other, "nobody", 0), MORTISE_ENOTHELD);
    mortise_hold hold = api_acquire(api_lock(client, "nobody"));
    _Atomic int requests = 0;
    assert_int_equal(mortise_on_revoke(hold, count_request, &requests), MORTISE_OK);
    pthread_t waiter = api_thread(acquire_and_release, lock);
    api_await_tickets(client, "nobody", 2);
    assert_int_equal(mortise_revoke(other, "nobody", fence_at(other, "nobody", 1)),
                     MORTISE_ENOTHELD); /* it waits */
    assert_int_equal(mortise_revoke(other, "nobody", mortise_hold_fence(hold) + 1),
                     MORTISE_ENOTHELD);
    assert_int_equal(mortise_revoke(other, "nobody/else", 0), MORTISE_ENOTHELD);
    assert_int_equal(mortise_revoke(other, "", 0), MORTISE_ENAME);
    assert_int_equal(mortise_verify(hold, 20000), MORTISE_OK);
    assert_int_equal(requests, 0);
    api_release(hold);
    api_join(waiter);
    api_close(client);
    api_close(other);
}

/* ------------------------------------------------------------------ tickets taken away */

struct fate {
    _Atomic int lost;
};

static void note_state(void *argument, mortise_hold hold, mortise_state state)
{
    struct fate *fate = argument;
    if (state != MORTISE_LOST)
        return;
    check(!mortise_is_held(hold));
    atomic_fetch_add(&fate->lost, 1);
}

static void test_a_broken_holder_learns_of_it_and_the_next_is_granted(void **state)
{
    (void)state;
    mortise_client *client = api_open(0), *other = api_open(0);
    mortise_lock *lock = api_lock(client, "broken");
    mortise_hold hold = api_acquire(lock);
    struct fate fate = {0};
    assert_int_equal(mortise_on_lost(hold, note_state, &fate), MORTISE_OK);
    pthread_t waiter = api_thread(acquire_and_release, api_lock(other, "broken"));
    api_await_tickets(other, "broken", 2);
    assert_int_equal(mortise_break(other, "broken", fence_at(other, "broken", 0)), MORTISE_OK);
    await(&fate.lost, 1);
    api_join(waiter);
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    hold = api_acquire(lock); /* the session is as good as it was */
    api_release(hold);
    api_close(client);
    api_close(other);
}

static void test_a_broken_holder_that_does_not_listen_finds_out(void **state)
{
    (void)state;
    mortise_client *client = api_open(0), *other = api_open(0);
    mortise_hold hold = api_acquire(api_lock(client, "found"));
    assert_int_equal(mortise_break(other, "found", mortise_hold_fence(hold)), MORTISE_OK);
    assert_int_equal(mortise_verify(hold, 20000), MORTISE_ELOST);
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    api_close(client);
    api_close(other);
}

static void test_break_takes_the_ticket_that_was_seen_and_no_other(void **state)
{
    (void)state;
    mortise_client *client = api_open(0), *other = api_open(0);
    mortise_lock *lock = api_lock(client, "seen");
    mortise_hold hold = api_acquire(lock);
    uint64_t old = fence_at(other, "seen", 0);
    assert_int_equal(old, mortise_hold_fence(hold));
    api_release(hold);
    api_await_tickets(other, "seen", 0);
    assert_int_equal(mortise_break(other, "seen", old), MORTISE_ENOTHELD);
    hold = api_acquire(lock);
    assert_int_equal(mortise_break(other, "seen", old), MORTISE_ENOTHELD);
    assert_int_equal(mortise_break(other, "seen", 0), MORTISE_ENOTHELD);
    assert_int_equal(mortise_break(other, "seen", mortise_hold_fence(hold) + 1), MORTISE_ENOTHELD);
    assert_int_equal(mortise_break(other, "seen/not", mortise_hold_fence(hold)), MORTISE_ENOTHELD);
    assert_int_equal(mortise_break(other, NULL, old), MORTISE_ENAME);
    assert_int_equal(mortise_verify(hold, 20000), MORTISE_OK);
    api_release(hold);
    api_close(client);
    api_close(other);
}

static void test_a_broken_waiter_queues_again(void **state)
{
    (void)state;
    mortise_client *clients[] = {api_open(0), api_open(0), api_open(0)};
    mortise_hold hold = api_acquire(api_lock(clients[0], "waiter"));
    pthread_t waiters[2];
    for (int i = 0; i < 2; i++) {
        waiters[i] = api_thread(acquire_and_release, api_lock(clients[i + 1], "waiter"));
        api_await_tickets(clients[0], "waiter", 2 + i);
    }
    uint64_t first = fence_at(clients[0], "waiter", 1), second = fence_at(clients[0], "waiter", 2);
    assert_int_equal(mortise_break(clients[0], "waiter", first), MORTISE_OK);
    int64_t begin = mortise_now_ns();
    while (fence_at(clients[0], "waiter", 2) <= second) { /* behind the other */
        assert_true(api_ms_since(begin) < api_await_ms);
        api_sleep_ms(2);
    }
    assert_int_equal(fence_at(clients[0], "waiter", 1), second);
    assert_int_equal(mortise_is_held(hold), 1);
    api_release(hold);
    for (int i = 0; i < 2; i++)
        api_join(waiters[i]);
    for (int i = 0; i < 3; i++)
        api_close(clients[i]);
}

static void break_inside(void *argument, mortise_hold hold)
{
    mortise_client *client = argument;
    check(mortise_break(client, "inside", mortise_hold_fence(hold)) == MORTISE_EDEADLOCK);
    check(mortise_revoke(client, "inside", 0) == MORTISE_EDEADLOCK);
    check(mortise_release(hold) == MORTISE_OK);
}

static void test_operators_do_not_work_in_callbacks(void **state)
{
    (void)state;
    mortise_client *client = api_open(0);
    mortise_hold hold = api_acquire(api_lock_of(client, "inside", 7));
    assert_int_equal(mortise_on_revoke(hold, break_inside, client), MORTISE_OK);
    assert_int_equal(mortise_revoke(client, "inside", 0), MORTISE_OK);
    api_await_tickets(client, "inside", 0);
    api_close(client);
}

static void test_a_revoke_request_reaches_a_foreign_loop(void **state)
{
    (void)state;
    mortise_client *client = api_open(MORTISE_FOREIGN_LOOP), *other = api_open(0);
    mortise_hold hold = api_acquire(api_lock(client, "foreign"));
    _Atomic int requests = 0;
    assert_int_equal(mortise_on_revoke(hold, count_request, &requests), MORTISE_OK);
    assert_int_equal(mortise_revoke(other, "foreign", 0), MORTISE_OK);
    int64_t begin = mortise_now_ns();
    while (requests < 1) {
        assert_true(api_ms_since(begin) < api_await_ms);
        assert_int_equal(mortise_process(client), MORTISE_OK);
        api_sleep_ms(1);
    }
    assert_int_equal(mortise_revoke(client, "foreign", 0), MORTISE_OK);
    while (requests < 2) {
        assert_true(api_ms_since(begin) < api_await_ms);
        assert_int_equal(mortise_process(client), MORTISE_OK);
        api_sleep_ms(1);
    }
    api_release(hold);
    api_close(client);
    api_close(other);
}

/* ------------------------------------------------------------------ handles' options */

static mortise_lock *lock_with(mortise_client *client, const char *name,
                               const mortise_lock_options *options)
{
    mortise_lock *lock = NULL;
    check(mortise_mutex_new(client, name, options, &lock) == MORTISE_OK);
    return lock;
}

static void test_a_hold_ends_after_its_longest_time(void **state)
{
    (void)state;
    mortise_client *client = api_open(0), *other = api_open(0);
    const mortise_lock_options options = {.size = sizeof options, .max_hold_ms = 300};
    mortise_lock *lock = lock_with(client, "limited", &options);
    mortise_hold hold = api_acquire(lock);
    struct fate fate = {0};
    int64_t left = mortise_hold_remaining_ms(hold);
    assert_in_range(left, 0, 300);
    int error = mortise_on_lost(hold, note_state, &fate);
    assert_true(error == MORTISE_OK || error == MORTISE_ELOST); /* on a slow machine */
    api_release(api_acquire(api_lock(other, "limited")));       /* given back by the library */
    if (error == MORTISE_OK)
        await(&fate.lost, 1);
    assert_int_equal(mortise_is_held(hold), 0);
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    error = mortise_release(api_acquire(lock)); /* it begins anew */
    assert_true(error == MORTISE_OK || error == MORTISE_ELOST);
    const mortise_lock_options wrong = {.size = sizeof wrong, .max_hold_ms = -1};
    assert_int_equal(mortise_mutex_new(client, "limited", &wrong, &lock), MORTISE_EINVALID);
    api_close(client);
    api_close(other);
}

static void note_request(void *argument, mortise_hold hold)
{
    (void)hold;
    atomic_fetch_add((_Atomic int *)argument, 1);
}

/* Looks at the client once in the last tenth of a hold, and says what it was told then; -1: it was
   late. */
static int requests_in_last_tenth(mortise_client *client, mortise_lock *lock, int64_t tenth_ms)
{
    _Atomic int requests = 0;
    mortise_hold hold = api_acquire(lock);
    int listening = mortise_on_revoke(hold, note_request, &requests);
    int64_t now = mortise_now_ns(), left = mortise_hold_remaining_ms(hold);
    int64_t earliest_end = now + left * MS_IN_NS;
    api_sleep_ms(left < tenth_ms ? 0 : left + 1 - tenth_ms);
    check(requests == 0);
    check(mortise_process(client) == MORTISE_OK);
    bool in_time = listening == MORTISE_OK && mortise_now_ns() < earliest_end;
    int error = mortise_release(hold);
    check(error == MORTISE_OK || (error == MORTISE_ELOST && !in_time));
    return in_time ? requests : -1;
}

static void test_f22_a_hold_near_its_time_limit_gets_a_revoke_request(void **state)
{
    (void)state;
    mortise_client *client = api_open(MORTISE_FOREIGN_LOOP);
    const mortise_lock_options options = {.size = sizeof options, .max_hold_ms = 400};
    mortise_lock *lock = lock_with(client, "tenth", &options);
    int64_t begin = mortise_now_ns();
    int requests;
    while ((requests = requests_in_last_tenth(client, lock, 40)) < 0)
        assert_true(api_ms_since(begin) < 60000);
    assert_int_equal(requests, 1);
    api_close(client);
}

struct places {
    _Atomic int count;
    uint64_t last;
};

static void note_place(void *argument, uint64_t ahead)
{
    struct places *places = argument;
    check(ahead > 0);
    places->last = ahead;
    atomic_fetch_add(&places->count, 1);
}

static void test_a_waiter_is_told_its_place(void **state)
{
    (void)state;
    mortise_client *clients[] = {api_open(0), api_open(0), api_open(0)};
    struct places places = {0};
    const mortise_lock_options options = {
        .size = sizeof options, .queued = note_place, .queued_argument = &places};
    mortise_lock *lock = lock_with(clients[2], "placed", &options);
    mortise_hold hold = api_acquire(lock);
    api_release(hold);
    api_await_tickets(clients[0], "placed", 0);
    assert_int_equal(places.count, 0); /* it was granted at once */
    hold = api_acquire(api_lock(clients[0], "placed"));
    pthread_t between = api_thread(acquire_and_release, api_lock(clients[1], "placed"));
    api_await_tickets(clients[0], "placed", 2);
    pthread_t last = api_thread(acquire_and_release, lock);
    await(&places.count, 1);
    assert_int_equal(places.last, 2);
    assert_int_equal(mortise_break(clients[0], "placed", fence_at(clients[0], "placed", 1)),
                     MORTISE_OK); /* which queues again behind it */
    await(&places.count, 2);
    assert_int_equal(places.last, 1);
    api_release(hold);
    api_join(between);
    api_join(last);
    for (int i = 0; i < 3; i++)
        api_close(clients[i]);
}

static void test_a_store_names_its_server_and_version(void **state)
{
    (void)state;
    mortise_client *client = api_open(0);
    char whole[128], cut[8];
    int error = mortise_server(client, whole, sizeof whole);
    assert_int_equal(mortise_server(client, cut, sizeof cut), error);
    assert_int_equal(error, strncmp(mortise_url(client), "memory:", 7) == 0 ? MORTISE_ENOTSUPPORTED
                                                                            : MORTISE_OK);
    if (error)
        assert_string_equal(whole, "");
    else
        assert_non_null(strpbrk(whole, "0123456789"));
    assert_int_equal(strlen(cut), strlen(whole) < 7 ? strlen(whole) : 7);
    assert_memory_equal(cut, whole, strlen(cut));
    assert_int_equal(mortise_server(client, NULL, 8), MORTISE_EINVALID);
    assert_int_equal(mortise_server(client, cut, 0), MORTISE_EINVALID);
    api_close(client);
}

/* ------------------------------------------------------------------ lists */

struct operator
{
    mortise_client *client;
    mortise_lock *other;
    int rows, nested;
};

static int count_row(void *argument, const mortise_entry *entry)
{
    (void)entry;
    ++*(int *)argument;
    return 0;
}

static int operate(void *argument, const mortise_entry *entry)
{
    struct operator* operator= argument;
    mortise_client *client = operator->client;
    mortise_hold hold;
    char server[128];
    operator->rows++;
    check(mortise_list(client, entry->name, count_row, &operator->nested) == MORTISE_OK);
    check(mortise_revoke(client, entry->name, entry->fence) == MORTISE_OK);
    check(mortise_server(client, server, sizeof server) != MORTISE_EDEADLOCK);
    check(mortise_acquire_for(operator->other, 20000, &hold) == MORTISE_OK);
    api_release(hold);
    check(mortise_break(client, entry->name, entry->fence) == MORTISE_OK);
    return 0;
}

/* As an operator's program does: it looks, and breaks what is dead. */
static void test_everything_is_allowed_in_the_callback_of_a_list(void **state)
{
    (void)state;
    mortise_client *client = api_open(0), *other = api_open(0);
    struct operator operator= {.client = other, .other = api_lock(other, "list/other")};
    mortise_hold hold = api_acquire(api_lock(client, "list/broken"));
    assert_int_equal(mortise_list(other, "list/broken", operate, &operator), MORTISE_OK);
    assert_int_equal(operator.rows, 1);
    assert_int_equal(operator.nested, 1);
    assert_int_equal(mortise_verify(hold, 20000), MORTISE_ELOST);
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    api_close(client);
    api_close(other);
}

static int look_long(void *argument, const mortise_entry *entry)
{
    int *rows = argument;
    (void)entry;
    if (++*rows == 1)
        api_sleep_ms(api_lease_ms() * 5 / 4);
    return 0;
}

static void count_losses(void *argument, mortise_hold hold, mortise_state state)
{
    (void)hold;
    atomic_fetch_add((_Atomic int *)argument, state == MORTISE_LOST);
}

/* Has so many locks more made past the client, where it would take long. */
static void make_more(const char *name, int wanted)
{
    char command[512];
    snprintf(command, sizeof command, "%s '%s' '%s' %d", getenv("MORTISE_TEST_MORE"), api_url, name,
             wanted);
    check(system(command) == 0);
}

/* However many rows there are, and however long a program looks at them. */
static void test_a_long_list_costs_no_holder_its_lease(void **state)
{
    (void)state;
    enum { ROWS = 10000 };
    static mortise_lock *locks[ROWS];
    static mortise_hold holds[ROWS];
    _Atomic int losses = 0;
    int rows = 0;
    mortise_client *client = api_open(0);
    for (int i = 0; i < ROWS; i++) {
        char name[32];
        snprintf(name, sizeof name, "many/%d", i);
        locks[i] = api_lock(client, name);
    }
    /* The one that is watched comes after those that take long. */
    size_t more = getenv("MORTISE_TEST_MORE") ? 0 : ROWS - 1;
    check(more == 0 || mortise_acquire_all(locks + 1, more, -1, holds + 1) == MORTISE_OK);
    check(mortise_acquire(locks[0], &holds[0]) == MORTISE_OK);
    if (more == 0)
        make_more("many/0", ROWS - 1);
    check(mortise_on_lost(holds[0], count_losses, (void *)&losses) == MORTISE_OK);
    assert_int_equal(mortise_list(client, NULL, look_long, &rows), MORTISE_OK);
    assert_int_equal(rows, ROWS);
    assert_int_equal(mortise_hold_state(holds[0]), MORTISE_HELD);
    assert_int_equal(losses, 0);
    check(mortise_release_all(holds, more + 1) == MORTISE_OK);
    api_close(client);
}

/* ------------------------------------------------------------------ signals */

static void ignore_signal(int number)
{
    (void)number;
}

static void set_timer(int interval_us)
{
    const struct itimerval timer = {{0, interval_us}, {0, interval_us}};
    check(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

/* They are asked on the program's threads, with its signals: a timer's are no failure. */
static void test_signals_of_a_timer_do_not_fail_an_operators_call(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = ignore_signal}, before;
    mortise_client *client = api_open(0), *other = api_open(0);
    mortise_lock *lock = api_lock(client, "timer");
    char server[128];
    check(sigaction(SIGALRM, &action, &before) == 0);
    int told = mortise_server(other, server, sizeof server);
    for (int i = 0; i < 20; i++) {
        mortise_hold hold = api_acquire(lock);
        uint64_t fence = mortise_hold_fence(hold);
        set_timer(200);
        int listed = api_tickets(other, "timer"), asked = mortise_revoke(other, "timer", fence);
        int broken = mortise_break(other, "timer", fence);
        int version = mortise_server(other, server, sizeof server);
        set_timer(0);
        assert_int_equal(listed, 1);
        assert_int_equal(asked, MORTISE_OK);
        assert_int_equal(broken, MORTISE_OK);
        assert_int_equal(version, told);
        mortise_release(hold);
    }
    check(sigaction(SIGALRM, &before, NULL) == 0);
    api_close(client);
    api_close(other);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f12_d1_a_list_says_which_process_holds_and_how_much),
        cmocka_unit_test(test_f22_a_holder_is_asked_and_may_decline),
        cmocka_unit_test(test_f22_a_request_is_not_lost_before_the_callback_is_set),
        cmocka_unit_test(test_f22_a_revoke_request_goes_to_all_holders_or_to_one),
        cmocka_unit_test(test_f22_only_the_holder_gets_a_revoke_request),
        cmocka_unit_test(test_a_broken_holder_learns_of_it_and_the_next_is_granted),
        cmocka_unit_test(test_a_broken_holder_that_does_not_listen_finds_out),
        cmocka_unit_test(test_break_takes_the_ticket_that_was_seen_and_no_other),
        cmocka_unit_test(test_a_broken_waiter_queues_again),
        cmocka_unit_test(test_operators_do_not_work_in_callbacks),
        cmocka_unit_test(test_a_revoke_request_reaches_a_foreign_loop),
        cmocka_unit_test(test_a_hold_ends_after_its_longest_time),
        cmocka_unit_test(test_f22_a_hold_near_its_time_limit_gets_a_revoke_request),
        cmocka_unit_test(test_a_waiter_is_told_its_place),
        cmocka_unit_test(test_a_store_names_its_server_and_version),
        cmocka_unit_test(test_everything_is_allowed_in_the_callback_of_a_list),
        cmocka_unit_test(test_a_long_list_costs_no_holder_its_lease),
        cmocka_unit_test(test_signals_of_a_timer_do_not_fail_an_operators_call),
    };
    int result = api_begin(argc, argv);
    return result ? result : api_end(cmocka_run_group_tests(tests, NULL, NULL));
}
