/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything at once: threads that acquire, try, time out, cancel, call back, nest, verify
 * and list, on two clients and a few names, for a while. The test checks that no two are ever
 * inside, that nothing hangs, and that nothing is left; the sanitizers see the rest.
 */
#include "api_fixture.h"

#include <stdatomic.h>
#include <stdio.h>

#define NAMES 2
#define THREADS 6

static _Atomic int inside[NAMES];
static _Atomic bool stop;

struct thread {
    mortise_client *client;
    uint64_t seed;
    _Atomic int pending; /* callbacks still to come */
    _Atomic uint64_t granted;
};

/* The length of a moment there: a disk is waited for. */
static int64_t moments(uint64_t ms)
{
    return (int64_t)ms * (api_commits_to_disk() ? 10 : 1);
}

static uint64_t draw(struct thread *self, uint64_t below)
{
    self->seed = self->seed * 6364136223846793005u + 1442695040888963407u;
    return (self->seed >> 33) % below;
}

static void enter(size_t name, mortise_hold hold)
{
    check(atomic_fetch_add(&inside[name], 1) == 0);
    check(mortise_is_held(hold));
    check(atomic_fetch_sub(&inside[name], 1) == 1);
    api_release(hold);
}

static void nest(mortise_lock *lock)
{
    mortise_hold hold;
    if (mortise_acquire_for(lock, moments(50), &hold) != MORTISE_OK)
        return;
    mortise_hold inner = api_acquire(lock);
    check(mortise_hold_count(hold) == 2);
    int error = mortise_verify(hold, 2);
    check(error == MORTISE_OK || error == MORTISE_ETIMEOUT);
    api_release(inner);
    api_release(hold);
}

struct operation {
    struct thread *thread;
    size_t name;
};

static void completed(void *argument, int error, mortise_hold hold)
{
    struct operation *operation = argument;
    if (error == MORTISE_OK)
        enter(operation->name, hold);
    else
        check(error == MORTISE_ETIMEOUT || error == MORTISE_ECANCELLED);
    atomic_fetch_sub(&operation->thread->pending, 1);
    free(operation);
}

static void call_back(struct thread *self, mortise_lock *lock, size_t name)
{
    struct operation *operation = malloc(sizeof *operation);
    check(operation != NULL);
    *operation = (struct operation){self, name};
    atomic_fetch_add(&self->pending, 1);
    int64_t deadline = mortise_now_ns() + moments(draw(self, 3)) * MS_IN_NS;
    check(mortise_acquire_async(lock, deadline, completed, operation, NULL) == MORTISE_OK);
    if (draw(self, 2) == 0)
        check(mortise_cancel_waiters(lock) == MORTISE_OK);
}

static void act(struct thread *self, mortise_lock *const locks[NAMES])
{
    size_t name = (size_t)draw(self, NAMES);
    mortise_lock *lock = locks[name], *other = NULL;
    mortise_hold hold;
    switch (draw(self, 8)) {
    case 0:
        call_back(self, lock, name);
        break;
    case 1:
        nest(lock);
        break;
    case 2:
        if (mortise_try_acquire(lock, &hold) == MORTISE_OK)
            enter(name, hold);
        break;
    case 3:
        check(api_tickets(self->client, NULL) >= 0);
        check(mortise_mutex_new(self->client, "other", NULL, &other) == MORTISE_OK);
        mortise_lock_free(other);
        break;
    case 4:
        check(mortise_cancel_waiters(lock) == MORTISE_OK);
        break;
    default:
        if (mortise_acquire_for(lock, moments(draw(self, 20)), &hold) != MORTISE_OK)
            break;
        atomic_fetch_add(&self->granted, 1);
        enter(name, hold);
    }
}

static void *run(void *argument)
{
    struct thread *self = argument;
    mortise_lock *locks[NAMES];
    for (size_t i = 0; i < NAMES; i++) {
        char name[16];
        snprintf(name, sizeof name, "stress/%zu", i);
        locks[i] = api_lock(self->client, name);
    }
    while (!atomic_load(&stop))
        act(self, locks);
    int64_t begin = mortise_now_ns();
    while (atomic_load(&self->pending) > 0) {
        check(api_ms_since(begin) < 20000);
        api_sleep_ms(1);
    }
    return NULL; /* the handles are freed with their client */
}

static bool all_were_granted(struct thread threads[THREADS])
{
    bool all = true;
    for (size_t i = 0; i < THREADS; i++)
        all = all && atomic_load(&threads[i].granted) > 0;
    return all;
}

static void stress(uint32_t flags)
{
    mortise_client *clients[2] = {api_open(flags), api_open(flags)};
    struct thread threads[THREADS];
    pthread_t handles[THREADS];
    for (size_t i = 0; i < 2; i++) /* once there is a session, no deadline is for want of it */
        api_release(api_acquire(api_lock(clients[i], "stress/0")));
    atomic_store(&stop, false);
    for (size_t i = 0; i < THREADS; i++) {
        threads[i] = (struct thread){.client = clients[i % 2], .seed = i + 1};
        handles[i] = api_thread(run, &threads[i]);
    }
    api_sleep_ms(api_full() ? 20000 : 1500);
    int64_t begin = mortise_now_ns();
    while (!all_were_granted(threads)) {
        check(api_ms_since(begin) < api_await_ms);
        api_sleep_ms(1);
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < THREADS; i++)
        api_join(handles[i]);
    api_await_tickets(clients[0], NULL, 0);
    api_close(clients[0]);
    api_close(clients[1]);
}

static void test_a8_f6_h4_everything_at_once(void **state)
{
    (void)state;
    stress(0);
}

static void test_a8_f6_h4_everything_at_once_strictly(void **state)
{
    (void)state;
    stress(MORTISE_STRICT);
}

/* Clients that come and go while others use the store. Each third one waits until it holds: where
   5 ms are not enough to connect, the others never do. */
static void *come_and_go(void *argument)
{
    (void)argument;
    for (int i = 0; !atomic_load(&stop); i++) {
        mortise_client *client = api_open(0);
        mortise_lock *lock = api_lock(client, "stress/0");
        mortise_hold hold;
        int error = mortise_acquire_for(lock, i % 3 == 0 ? -1 : 5, &hold);
        check(error == MORTISE_OK || i % 3 != 0);
        check(error == MORTISE_OK || error == MORTISE_ETIMEOUT || error == MORTISE_EDISCONNECTED);
        check(error != MORTISE_OK || mortise_is_held(hold)); /* closing gives it back */
        api_close(client);
    }
    return NULL;
}

static void test_f17_clients_come_and_go(void **state)
{
    (void)state;
    pthread_t threads[3];
    atomic_store(&stop, false);
    for (size_t i = 0; i < 3; i++)
        threads[i] = api_thread(come_and_go, NULL);
    api_sleep_ms(1000);
    atomic_store(&stop, true);
    for (size_t i = 0; i < 3; i++)
        api_join(threads[i]);
    mortise_client *client = api_open(0);
    assert_int_equal(api_tickets(client, NULL), 0);
    api_close(client);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a8_f6_h4_everything_at_once),
        cmocka_unit_test(test_a8_f6_h4_everything_at_once_strictly),
        cmocka_unit_test(test_f17_clients_come_and_go),
    };
    int failed = api_begin(argc, argv);
    return failed ? failed : api_end(cmocka_run_group_tests(tests, NULL, NULL));
}
