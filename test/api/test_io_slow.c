/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store that takes long, or does not return, and whom that may hold up: nobody whose time is
 * over, and nobody who is to hear that a hold is lost (io/driver.h, io/tell.c). The store is a
 * real one whose calls go through functions of this file, which let them stand still.
 */
#include "api_between.h"
#include "api_fixture.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>

#define LEASE_URL "memory:slow?lease=4s"
#define THREADS 12

/* ------------------------------------------------------------------ the store */

static const struct mrt_store_ops *real;
static struct mrt_store_ops slowed;
static _Atomic bool stands_still;
static _Atomic int standing; /* calls that do */
static _Atomic int submit_ms;

static void stand(void)
{
    atomic_fetch_add(&standing, 1);
    while (atomic_load(&stands_still))
        api_sleep_ms(1);
    atomic_fetch_sub(&standing, 1);
}

static bool submit(struct mrt_store *store, const struct mrt_command *command, mrt_time patience)
{
    stand();
    api_sleep_ms(atomic_load(&submit_ms));
    return real->submit(store, command, patience);
}

static void process(struct mrt_store *store, mrt_time now)
{
    stand();
    real->process(store, now);
}

static mortise_client *open_slowed(const char *url)
{
    mortise_client *client = NULL;
    check(mortise_open(url, NULL, &client) == MORTISE_OK);
    slowed = *client->driver.ops;
    slowed.submit = submit;
    slowed.process = process;
    real = api_put_between(client, &slowed);
    return client;
}

/* The rows of a server that lists what is not in the namespace. Each name ends where its memory
   does. */
static int list_others(struct mrt_store *store, const char *name, const char *prefix,
                       mrt_listed_callback callback, void *argument)
{
    static const char *const names[] = {"", "x", "elsewhere/x", "a/ours", "b/longer than that"};
    (void)store, (void)name, (void)prefix;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *copy = strdup(names[i]);
        check(copy);
        const struct mrt_listed row = {
            .entry = {.size = sizeof row.entry, .name = copy, .kind = "mutex", .label = ""},
            .claim = ""};
        int result = callback(argument, &row);
        free(copy);
        if (result != 0)
            break;
    }
    return MORTISE_OK;
}

static bool has_teller(mortise_client *client)
{
    pthread_mutex_lock(&client->driver.mutex);
    bool begun = client->driver.teller.begun;
    pthread_mutex_unlock(&client->driver.mutex);
    return begun;
}

/* ------------------------------------------------------------------ the caller that carries for
 * others */

struct worker {
    mortise_client *client;
    _Atomic bool *stop;
    int number;
    _Atomic int rounds;
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    char name[32];
    snprintf(name, sizeof name, "carry/%d", worker->number);
    mortise_lock *lock = api_lock(worker->client, name);
    for (; !atomic_load(worker->stop); atomic_fetch_add(&worker->rounds, 1)) {
        mortise_hold hold;
        int error = mortise_acquire_for(lock, 200, &hold);
        check(error == MORTISE_OK || error == MORTISE_ETIMEOUT);
        if (error == MORTISE_OK)
            api_release(hold);
    }
    return NULL;
}

static void await_rounds(struct worker *workers)
{
    int64_t begin = mortise_now_ns();
    int had[THREADS];
    for (int i = 0; i < THREADS; i++)
        had[i] = atomic_load(&workers[i].rounds);
    for (int i = 0; i < THREADS; i++)
        while (atomic_load(&workers[i].rounds) < had[i] + 2) {
            check(api_ms_since(begin) < api_await_ms);
            api_sleep_ms(1);
        }
}

/* Each round of one thread brings commands for the thread that carries, which would never end. */
static void test_f3_a_caller_past_its_deadline_carries_no_commands_of_others(void **state)
{
    (void)state;
    _Atomic bool stop = false;
    pthread_t threads[THREADS];
    struct worker workers[THREADS];
    mortise_client *client = open_slowed(api_url);
    atomic_store(&submit_ms, 2);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){client, &stop, i, 0};
        threads[i] = api_thread(work, &workers[i]);
    }
    for (int64_t begin = mortise_now_ns(); api_ms_since(begin) < 1500;)
        await_rounds(workers);
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++)
        api_join(threads[i]);
    atomic_store(&submit_ms, 0);
    api_close(client);
}

/* ------------------------------------------------------------------ losses */

struct record {
    _Atomic int suspended, lost;
    int64_t lost_at;
};

static void note(void *argument, mortise_hold hold, mortise_state state)
{
    struct record *record = argument;
    check(state != MORTISE_LOST || !mortise_is_held(hold));
    record->lost_at = mortise_now_ns();
    atomic_fetch_add(state == MORTISE_LOST ? &record->lost : &record->suspended, 1);
}

static void await(const _Atomic int *count)
{
    int64_t begin = mortise_now_ns();
    while (atomic_load(count) == 0) {
        check(api_ms_since(begin) < api_await_ms);
        api_sleep_ms(1);
    }
}

static bool is_readable(int fd, int timeout_ms)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    check(poll(&poller, 1, timeout_ms) >= 0);
    return poller.revents & POLLIN;
}

static int go_on(void **state)
{
    (void)state;
    atomic_store(&stands_still, false);
    atomic_store(&submit_ms, 0);
    return 0;
}

/* One of several attempts, with longer leases: the lease may end before the store stands still, if
   the machine does. */
static void succeeds(bool (*is_so)(const char *url))
{
    assert_true(is_so("memory:slow1?lease=1s") || is_so(LEASE_URL) ||
                is_so("memory:slow16?lease=16s"));
}

/* Whether the holder is told that it is suspended before the loss. */
static bool tells_in_order(const char *url)
{
    mortise_client *client = open_slowed(url);
    mortise_hold hold = api_acquire(api_lock(client, "loss"));
    struct record record = {0};
    assert_false(has_teller(client)); /* nobody listens */
    if (mortise_on_lost(hold, note, &record) != MORTISE_OK) {
        api_close(client);
        return false;
    }
    assert_true(has_teller(client));
    int fd = mortise_lost_fd(hold);
    atomic_store(&stands_still, true);
    await(&standing); /* the loop is in it, with a renewal */
    int64_t begin = mortise_now_ns(), left_ms = mortise_hold_remaining_ms(hold);
    await(&record.lost);
    assert_int_equal(standing, 1);
    assert_true((record.lost_at - begin) / MS_IN_NS >= left_ms);
    assert_true(is_readable(fd, 0));
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    assert_int_equal(standing, 1); /* nobody has called the store meanwhile */
    atomic_store(&stands_still, false);
    api_release(api_acquire(api_lock(client, "loss")));
    api_close(client);
    return record.suspended == 1;
}

static void test_zk_07_loss_is_told_while_a_call_of_the_store_stands_still(void **state)
{
    (void)state;
    succeeds(tells_in_order);
}

static bool reports_by_descriptor(const char *url)
{
    mortise_client *client = open_slowed(url);
    mortise_hold hold = api_acquire(api_lock(client, "loss/fd"));
    int fd = mortise_lost_fd(hold);
    if (fd < 0) {
        api_close(client);
        return false;
    }
    atomic_store(&stands_still, true);
    assert_true(is_readable(fd, 20000));
    assert_int_equal(mortise_is_held(hold), 0);
    atomic_store(&stands_still, false);
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    api_close(client);
    return true;
}

static void test_the_lost_descriptor_reports_a_loss_without_a_callback(void **state)
{
    (void)state;
    succeeds(reports_by_descriptor);
}

static void note_term(void *argument, uint64_t fence)
{
    check(fence > 0);
    atomic_fetch_add((_Atomic int *)argument, 1);
}

static bool is_deposed(const char *url)
{
    _Atomic int deposed = 0;
    mortise_client *client = open_slowed(url);
    mortise_election *election;
    const mortise_election_options options = {
        .size = sizeof options, .deposed = note_term, .argument = (void *)&deposed};
    check(mortise_election_new(client, "loss/term", &options, &election) == MORTISE_OK);
    assert_int_equal(mortise_election_campaign(election, -1), MORTISE_OK);
    bool led = mortise_election_is_leader(election);
    atomic_store(&stands_still, led);
    await(&deposed);
    assert_false(mortise_election_is_leader(election));
    atomic_store(&stands_still, false);
    assert_int_equal(mortise_election_free(election), MORTISE_OK);
    api_close(client);
    return led;
}

static void test_a_leader_is_deposed_while_a_call_of_the_store_stands_still(void **state)
{
    (void)state;
    succeeds(is_deposed);
}

/* ------------------------------------------------------------------ callbacks */

struct calls {
    _Atomic int inside, ended;
    pthread_t thread;
    bool listens; /* in the first one: a thread of its own calls back from then on */
    struct record record;
};

static void acquired(void *argument, int error, mortise_hold hold)
{
    struct calls *calls = argument;
    check(error == MORTISE_OK);
    check(atomic_fetch_add(&calls->inside, 1) == 0);
    if (calls->listens)
        check(mortise_on_lost(hold, note, &calls->record) == MORTISE_OK);
    calls->listens = false;
    api_sleep_ms(5);
    api_release(hold);
    calls->thread = pthread_self();
    atomic_fetch_sub(&calls->inside, 1);
    atomic_fetch_add(&calls->ended, 1);
}

static void acquire_async(mortise_client *client, struct calls *calls, int from, int count)
{
    for (int i = from; i < from + count; i++) {
        char name[32];
        snprintf(name, sizeof name, "calls/%d", i);
        mortise_lock *lock = api_lock(client, name);
        check(mortise_acquire_async(lock, INT64_MAX, acquired, calls, NULL) == MORTISE_OK);
    }
    int64_t begin = mortise_now_ns();
    while (atomic_load(&calls->ended) < from + count) {
        check(api_ms_since(begin) < api_await_ms);
        api_sleep_ms(1);
    }
}

static void test_callbacks_run_one_at_a_time_also_when_their_thread_begins(void **state)
{
    (void)state;
    struct calls calls = {.listens = true};
    mortise_client *client = open_slowed(LEASE_URL);
    acquire_async(client, &calls, 0, 40);
    assert_true(has_teller(client));
    acquire_async(client, &calls, 40, 1);
    assert_true(pthread_equal(calls.thread, client->driver.teller.thread));
    assert_int_equal(api_stats(client).losses, 0);
    api_close(client);
}

struct stay {
    _Atomic int ended;
    int64_t ms;
};

static void stay(void *argument, int error, mortise_hold hold)
{
    struct stay *stay = argument;
    (void)hold;
    check(error == MORTISE_OK);
    api_sleep_ms(stay->ms);
    atomic_fetch_add(&stay->ended, 1);
}

/* Whether a hold outlives a callback that takes three leases. */
static bool outlives_a_callback(int lease_s)
{
    char url[64];
    struct stay staying = {.ms = lease_s * INT64_C(3000)};
    struct record record = {0};
    snprintf(url, sizeof url, "memory:slow%d?lease=%ds", lease_s, lease_s);
    mortise_client *client = open_slowed(url);
    mortise_hold hold = api_acquire(api_lock(client, "slow"));
    int error = mortise_on_lost(hold, note, &record);
    if (error == MORTISE_OK) {
        check(mortise_acquire_async(api_lock(client, "slow/other"), INT64_MAX, stay, &staying,
                                    NULL) == MORTISE_OK);
        await(&staying.ended);
        error = mortise_release(hold);
    }
    api_close(client);
    check(error == MORTISE_ELOST || record.lost == 0);
    return error == MORTISE_OK;
}

/* Callbacks with a thread of their own do not delay the loop's renewals. One of several attempts: a
   machine that stands still for a lease does. */
static void test_a_slow_callback_does_not_delay_renewals_once_a_loss_callback_is_set(void **state)
{
    (void)state;
    assert_true(outlives_a_callback(1) || outlives_a_callback(3) || outlives_a_callback(9));
}

static int count_ours(void *argument, const mortise_entry *entry)
{
    check(strcmp(entry->name, "ours") == 0);
    ++*(int *)argument;
    return 0;
}

static void test_rows_that_are_not_in_the_namespace_are_not_shown(void **state)
{
    (void)state;
    mortise_client *client = open_slowed("memory:others?namespace=a");
    int count = 0;
    slowed.list = list_others;
    assert_int_equal(mortise_list(client, NULL, count_ours, &count), MORTISE_OK);
    assert_int_equal(mortise_list(client, "ours", count_ours, &count), MORTISE_OK);
    assert_int_equal(count, 2);
    api_close(client);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_f3_a_caller_past_its_deadline_carries_no_commands_of_others,
                                  go_on),
        cmocka_unit_test_teardown(test_zk_07_loss_is_told_while_a_call_of_the_store_stands_still,
                                  go_on),
        cmocka_unit_test_teardown(test_the_lost_descriptor_reports_a_loss_without_a_callback,
                                  go_on),
        cmocka_unit_test_teardown(test_a_leader_is_deposed_while_a_call_of_the_store_stands_still,
                                  go_on),
        cmocka_unit_test_teardown(test_callbacks_run_one_at_a_time_also_when_their_thread_begins,
                                  go_on),
        cmocka_unit_test_teardown(
            test_a_slow_callback_does_not_delay_renewals_once_a_loss_callback_is_set, go_on),
        cmocka_unit_test_teardown(test_rows_that_are_not_in_the_namespace_are_not_shown, go_on),
    };
    int failed = api_begin(argc, argv);
    return failed ? failed : api_end(cmocka_run_group_tests(tests, NULL, NULL));
}
