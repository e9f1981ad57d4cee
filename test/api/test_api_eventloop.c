/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients with MORTISE_SHARED_LOOP: the program's event loop, here turn(), and the client's thread
 * do the same work, whichever comes first. So the tests count callbacks, and ask for the event
 * loop's thread only of some of many.
 */
#include "api_fixture.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

#define CYCLES 300
#define LASTS_MS 500

struct told {
    _Atomic int calls;
    int error;
    mortise_hold hold;
    pthread_t thread;
};

static void tell(void *argument, int error, mortise_hold hold)
{
    struct told *told = argument;
    told->error = error;
    told->hold = hold;
    told->thread = pthread_self();
    atomic_fetch_add(&told->calls, 1);
}

static void start(mortise_lock *lock, struct told *told)
{
    *told = (struct told){0};
    check(mortise_acquire_async(lock, INT64_MAX, tell, told, NULL) == MORTISE_OK);
}

/* An event loop that polls, and does not look for callbacks that its own calls have ended. */
static bool only_polls;

/* One turn of an event loop. */
static void turn(mortise_client *const *clients, size_t count)
{
    struct pollfd descriptors[2];
    int timeout = 1;
    for (size_t i = 0; i < count; i++) {
        descriptors[i] = (struct pollfd){mortise_fd(clients[i]), POLLIN, 0};
        check(descriptors[i].fd >= 0);
        int due = only_polls ? -1 : mortise_next_timeout_ms(clients[i]);
        check(due == 0 || due == -1);
        timeout = due == 0 ? 0 : timeout;
    }
    poll(descriptors, (nfds_t)count, timeout);
    for (size_t i = 0; i < count; i++) {
        int error = mortise_process(clients[i]);
        check(error == MORTISE_OK || error == MORTISE_EBUSY);
    }
}

static void turn_until(mortise_client *const *clients, size_t count, const struct told *told)
{
    int64_t begin = mortise_now_ns();
    while (atomic_load(&told->calls) == 0) {
        check(api_ms_since(begin) < api_await_ms);
        turn(clients, count);
    }
    check(atomic_load(&told->calls) == 1);
}

static void await(const struct told *told)
{
    int64_t begin = mortise_now_ns();
    while (atomic_load(&told->calls) == 0) {
        check(api_ms_since(begin) < api_await_ms);
        api_sleep_ms(1);
    }
    check(atomic_load(&told->calls) == 1);
}

/* How many of CYCLES grants came on this thread. */
static int cycle(mortise_client *client, mortise_lock *lock)
{
    int own = 0;
    for (int i = 0; i < CYCLES; i++) {
        struct told told;
        start(lock, &told);
        turn_until(&client, 1, &told);
        assert_int_equal(told.error, MORTISE_OK);
        own += pthread_equal(told.thread, pthread_self()) != 0;
        api_release(told.hold);
    }
    return own;
}

static void test_the_event_loop_makes_the_callbacks(void **state)
{
    (void)state;
    mortise_client *client = api_open(MORTISE_SHARED_LOOP);
    assert_true(cycle(client, api_lock(client, "eventloop/own")) > 0);
    api_close(client);
}

/* Also just after it has been there, when the client's thread stays away: for a grant, and for the
   one that a release of this thread brings. */
static void be_absent(void)
{
    mortise_client *client = api_open(MORTISE_SHARED_LOOP);
    mortise_lock *lock = api_lock(client, "eventloop/absent");
    for (int i = 0; i < 3; i++) {
        struct told told, next;
        cycle(client, lock);
        start(lock, &told);
        await(&told);
        assert_int_equal(told.error, MORTISE_OK);
        assert_false(pthread_equal(told.thread, pthread_self()));
        start(lock, &next);
        cycle(client, api_lock(client, "eventloop/beside"));
        assert_int_equal(atomic_load(&next.calls), 0);
        api_release(told.hold);
        await(&next);
        assert_int_equal(next.error, MORTISE_OK);
        api_release(next.hold);
    }
    api_close(client);
}

static void test_without_the_event_loop_the_thread_makes_them(void **state)
{
    (void)state;
    be_absent();
    only_polls = true;
    be_absent();
    only_polls = false;
}

static void test_two_clients_in_one_event_loop(void **state)
{
    (void)state;
    mortise_client *clients[2] = {api_open(MORTISE_SHARED_LOOP), api_open(MORTISE_SHARED_LOOP)};
    mortise_lock *locks[2] = {api_lock(clients[0], "eventloop/two"),
                              api_lock(clients[1], "eventloop/two")};
    struct told told[2];
    uint64_t last = 0;
    start(locks[0], &told[0]);
    turn_until(clients, 2, &told[0]);
    for (size_t i = 0; i < CYCLES; i++) {
        struct told *next = &told[1 - i % 2], *now = &told[i % 2];
        uint64_t fence = mortise_hold_fence(now->hold);
        start(locks[1 - i % 2], next);
        turn(clients, 2);
        assert_int_equal(atomic_load(&next->calls), 0);
        assert_true(fence > last || !api_has_fences());
        last = fence;
        api_release(now->hold);
        turn_until(clients, 2, next);
        assert_int_equal(next->error, MORTISE_OK);
    }
    api_release(told[CYCLES % 2].hold);
    api_close(clients[0]);
    api_close(clients[1]);
}

struct pair {
    mortise_client *client;
    _Atomic bool done;
};

static void *contend(void *argument)
{
    struct pair *pair = argument;
    mortise_lock *lock = api_lock(pair->client, "eventloop/threads");
    for (int i = 0; i < CYCLES; i++)
        api_release(api_acquire(lock));
    atomic_store(&pair->done, true);
    return NULL;
}

static void test_a_thread_that_blocks_beside_the_event_loop(void **state)
{
    (void)state;
    struct pair pair = {.client = api_open(MORTISE_SHARED_LOOP)};
    mortise_lock *lock = api_lock(pair.client, "eventloop/threads");
    pthread_t thread = api_thread(contend, &pair);
    while (!atomic_load(&pair.done))
        cycle(pair.client, lock);
    api_join(thread);
    mortise_hold hold = api_acquire(lock); /* and where no event loop turns */
    api_release(hold);
    api_close(pair.client);
}

/* A callback that lasts, and starts an acquire that is granted meanwhile. */
struct lasting {
    mortise_lock *lock;
    pthread_t thread; /* the event loop's */
    bool here;        /* it lasts in the event loop alone, or elsewhere alone */
    _Atomic int calls;
    struct told next;
    int sleeps; /* of all threads meanwhile; -1: it did not last */
};

static _Atomic int sleeps;

int __real_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *time,
                 const sigset_t *set);
int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *time,
                 const sigset_t *set);

int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *time, const sigset_t *set)
{
    atomic_fetch_add(&sleeps, 1);
    return __real_ppoll(fds, count, time, set);
}

static void last(void *argument, mortise_hold hold)
{
    struct lasting *lasting = argument;
    (void)hold;
    if ((pthread_equal(pthread_self(), lasting->thread) != 0) == lasting->here) {
        int before = atomic_load(&sleeps);
        start(lasting->lock, &lasting->next);
        api_sleep_ms(LASTS_MS);
        lasting->sleeps = atomic_load(&sleeps) - before;
    }
    atomic_fetch_add(&lasting->calls, 1);
}

static void turn_until_called(mortise_client *client, const struct lasting *lasting)
{
    int64_t begin = mortise_now_ns();
    while (atomic_load(&lasting->calls) == 0) {
        check(api_ms_since(begin) < api_await_ms);
        turn(&client, 1);
    }
}

/* Whether it lasted. */
static bool revoke_once(mortise_client *client, mortise_client *other, struct lasting *lasting)
{
    struct told told;
    atomic_store(&lasting->calls, 0);
    start(api_lock(client, "eventloop/revoked"), &told);
    turn_until(&client, 1, &told);
    assert_int_equal(mortise_revoke(other, "eventloop/revoked", 0), MORTISE_OK);
    turn(&client, 1); /* the request comes, and is kept */
    assert_int_equal(mortise_on_revoke(told.hold, last, lasting), MORTISE_OK);
    turn_until_called(client, lasting);
    if (lasting->sleeps >= 0)
        await(&lasting->next); /* and no event loop turns */
    api_release(told.hold);
    return lasting->sleeps >= 0;
}

static void last_in(mortise_client *client, mortise_client *other, bool here)
{
    struct lasting lasting = {.lock = api_lock(client, "eventloop/next"),
                              .thread = pthread_self(),
                              .here = here,
                              .sleeps = -1};
    for (int i = 0; i < CYCLES && !revoke_once(client, other, &lasting); i++)
        continue;
    assert_true(lasting.sleeps > 0);
    assert_true(lasting.sleeps < 3 * LASTS_MS);
    assert_int_equal(lasting.next.error, MORTISE_OK);
    api_release(lasting.next.hold);
}

static void test_a_callback_that_lasts_keeps_no_thread_busy(void **state)
{
    (void)state;
    mortise_client *client = api_open(MORTISE_SHARED_LOOP), *other = api_open(0);
    last_in(client, other, true);
    last_in(client, other, false);
    api_close(other);
    api_close(client);
}

struct losses {
    _Atomic int lost;
};

static void lose(void *argument, mortise_hold hold, mortise_state state)
{
    struct losses *losses = argument;
    (void)hold;
    if (state == MORTISE_LOST)
        atomic_fetch_add(&losses->lost, 1);
}

static void test_losses_are_told_once_beside_the_event_loop(void **state)
{
    (void)state;
    if (!api_has_fences())
        return; /* nor can a ticket be broken there */
    mortise_client *client = api_open(MORTISE_SHARED_LOOP), *other = api_open(0);
    mortise_lock *lock = api_lock(client, "eventloop/loss");
    for (int i = 0; i < 20; i++) {
        struct losses losses = {0};
        struct told told;
        start(lock, &told);
        turn_until(&client, 1, &told);
        assert_int_equal(mortise_on_lost(told.hold, lose, &losses), MORTISE_OK);
        cycle(client, api_lock(client, "eventloop/beside"));
        int error = mortise_break(other, "eventloop/loss", mortise_hold_fence(told.hold));
        assert_int_equal(error, MORTISE_OK);
        int64_t begin = mortise_now_ns();
        while (atomic_load(&losses.lost) == 0) {
            check(api_ms_since(begin) < api_await_ms);
            turn(&client, 1);
        }
        assert_int_equal(mortise_release(told.hold), MORTISE_ELOST);
        assert_int_equal(atomic_load(&losses.lost), 1);
    }
    api_close(other);
    api_close(client);
}

static void test_close_ends_operations_of_an_event_loop(void **state)
{
    (void)state;
    mortise_client *client = api_open(MORTISE_SHARED_LOOP), *other = api_open(0);
    mortise_hold hold = api_acquire(api_lock(other, "eventloop/close"));
    mortise_lock *lock = api_lock(client, "eventloop/close");
    struct told told;
    cycle(client, api_lock(client, "eventloop/before"));
    start(lock, &told);
    api_close(client);
    assert_int_equal(told.calls, 1);
    assert_int_equal(told.error, MORTISE_ECLOSED);
    api_release(hold);
    api_close(other);
}

static void test_the_two_kinds_of_loop_exclude_each_other(void **state)
{
    (void)state;
    mortise_client *client = NULL;
    const mortise_client_options options = {.size = sizeof options,
                                            .flags = MORTISE_SHARED_LOOP | MORTISE_FOREIGN_LOOP};
    assert_int_equal(mortise_open(api_url, &options, &client), MORTISE_EINVALID);
    assert_null(client);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_event_loop_makes_the_callbacks),
        cmocka_unit_test(test_without_the_event_loop_the_thread_makes_them),
        cmocka_unit_test(test_two_clients_in_one_event_loop),
        cmocka_unit_test(test_a_thread_that_blocks_beside_the_event_loop),
        cmocka_unit_test(test_a_callback_that_lasts_keeps_no_thread_busy),
        cmocka_unit_test(test_losses_are_told_once_beside_the_event_loop),
        cmocka_unit_test(test_close_ends_operations_of_an_event_loop),
        cmocka_unit_test(test_the_two_kinds_of_loop_exclude_each_other),
    };
    int failed = api_begin(argc, argv);
    return failed ? failed : api_end(cmocka_run_group_tests(tests, NULL, NULL));
}
