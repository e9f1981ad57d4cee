/* SPDX-License-Identifier: Apache-2.0 */
/* Acquiring by callback, cancelling, and clients without a thread of their own. */
#include "api_fixture.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

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

/* The result that a callback received. */
struct told {
    _Atomic int calls;
    int error;
    mortise_hold hold;
    pthread_t thread;
    bool release; /* at once, inside the callback */
};

static void tell(void *argument, int error, mortise_hold hold)
{
    struct told *told = argument;
    told->error = error;
    told->hold = hold;
    told->thread = pthread_self();
    if (told->release && error == MORTISE_OK)
        api_release(hold);
    atomic_fetch_add(&told->calls, 1);
}

static void await(struct told *told)
{
    int64_t begin = mortise_now_ns();
    while (atomic_load(&told->calls) == 0) {
        check(api_ms_since(begin) < api_await_ms);
        api_sleep_ms(1);
    }
    check(atomic_load(&told->calls) == 1);
}

static mortise_operation *start(mortise_lock *lock, int64_t deadline_ns, struct told *told)
{
    mortise_operation *operation = NULL;
    check(mortise_acquire_async(lock, deadline_ns, tell, told, &operation) == MORTISE_OK);
    check(operation != NULL);
    return operation;
}

/* ------------------------------------------------------------------ callbacks */

static void test_g6_granted_by_callback_on_the_clients_thread(void **state)
{
    (void)state;
    mortise_lock *lock = api_lock(client, "async");
    struct told told = {0};
    start(lock, INT64_MAX, &told);
    await(&told);
    assert_int_equal(told.error, MORTISE_OK);
    assert_false(pthread_equal(told.thread, pthread_self()));
    assert_true(mortise_is_held(told.hold));
    assert_int_equal(mortise_hold_owner(told.hold), 0);
    api_release(told.hold); /* whichever thread has it */
    mortise_lock_free(lock);
}

/* It neither waits nor stays in the queue. */
static void test_c4_a_try_by_callback_ends_where_the_lock_is_held(void **state)
{
    (void)state;
    mortise_client *other = api_open(0);
    mortise_lock *lock = api_lock(client, "tried"), *theirs = api_lock(other, "tried");
    struct told got = {0}, busy = {0}, again = {0};
    assert_int_equal(mortise_try_acquire_async(lock, tell, &got, NULL), MORTISE_OK);
    await(&got);
    assert_int_equal(got.error, MORTISE_OK);
    assert_int_equal(mortise_try_acquire_async(theirs, tell, &busy, NULL), MORTISE_OK);
    await(&busy);
    assert_int_equal(busy.error, MORTISE_EBUSY);
    api_release(got.hold);
    start(theirs, INT64_MAX, &again);
    await(&again);
    assert_int_equal(again.error, MORTISE_OK);
    api_release(again.hold);
    assert_int_equal(mortise_try_acquire_async(NULL, tell, &got, NULL), MORTISE_EINVALID);
    assert_int_equal(mortise_try_acquire_async(lock, NULL, NULL, NULL), MORTISE_EINVALID);
    api_close(other);
    mortise_lock_free(lock);
}

static void test_a_hold_without_an_owner_is_not_reentrant(void **state)
{
    (void)state;
    mortise_lock *lock = api_lock(client, "nobody");
    struct told first = {0}, second = {0};
    start(lock, INT64_MAX, &first);
    await(&first);
    start(lock, INT64_MAX, &second);
    api_sleep_ms(20);
    assert_int_equal(second.calls, 0);
    mortise_hold mine;
    assert_int_equal(mortise_try_acquire(lock, &mine), MORTISE_EBUSY);
    api_release(first.hold);
    await(&second);
    assert_int_equal(second.error, MORTISE_OK);
    assert_int_equal(mortise_release(first.hold), MORTISE_ENOTHELD);
    api_release(second.hold);
    mortise_lock_free(lock);
}

static void test_a_handle_with_an_owner_nests(void **state)
{
    (void)state;
    mortise_lock *lock = api_lock_of(client, "owner", 9);
    struct told first = {0}, second = {0};
    start(lock, INT64_MAX, &first);
    await(&first);
    start(lock, INT64_MAX, &second);
    await(&second); /* done at once, and told all the same */
    assert_int_equal(second.error, MORTISE_OK);
    assert_int_equal(mortise_hold_count(first.hold), 2);
    assert_int_equal(mortise_hold_owner(first.hold), 9);
    api_release(first.hold);
    api_release(second.hold);
    mortise_lock_free(lock);
}

static void test_f3_deadline_of_an_operation(void **state)
{
    (void)state;
    mortise_lock *lock = api_lock(client, "deadline");
    mortise_hold hold = api_acquire(lock);
    struct told told = {0}, past = {0};
    int64_t begin = mortise_now_ns();
    start(lock, begin + 50 * MS_IN_NS, &told);
    await(&told);
    assert_int_equal(told.error, MORTISE_ETIMEOUT);
    assert_true(api_ms_since(begin) >= 50);
    start(lock, begin, &past);
    await(&past);
    assert_int_equal(past.error, MORTISE_ETIMEOUT);
    api_release(hold);
    api_await_tickets(client, "deadline", 0);
    mortise_lock_free(lock);
}

static void *cancel_body(void *argument)
{
    mortise_cancel(argument);
    return NULL;
}

static void test_f6_cancel_from_any_thread(void **state)
{
    (void)state;
    mortise_client *other = api_open(0);
    mortise_hold hold = api_acquire(api_lock(other, "cancel"));
    mortise_lock *lock = api_lock(client, "cancel");
    struct told told = {0};
    mortise_operation *operation = start(lock, INT64_MAX, &told);
    api_await_tickets(client, "cancel", 2);
    assert_int_equal(told.calls, 0);
    api_join(api_thread(cancel_body, operation));
    await(&told);
    assert_int_equal(told.error, MORTISE_ECANCELLED);
    api_await_tickets(client, "cancel", 1);
    api_release(hold);
    mortise_lock_free(lock);
    api_close(other);
}

static void test_f6_cancel_waiters_ends_operations_too(void **state)
{
    (void)state;
    mortise_lock *lock = api_lock(client, "cancel/all");
    mortise_hold hold = api_acquire(lock);
    struct told told[3] = {{0}};
    for (int i = 0; i < 3; i++)
        start(lock, INT64_MAX, &told[i]);
    assert_int_equal(mortise_cancel_waiters(lock), MORTISE_OK);
    for (int i = 0; i < 3; i++) {
        await(&told[i]);
        assert_int_equal(told[i].error, MORTISE_ECANCELLED);
    }
    assert_true(mortise_is_held(hold));
    api_release(hold);
    mortise_lock_free(lock);
}

static int interrupt_fd;

static void write_a_byte(int signal)
{
    (void)signal;
    if (write(interrupt_fd, "", 1) < 0)
        interrupt_fd = -1;
}

struct interruption {
    mortise_lock *lock;
    int error;
};

static void *wait_for_a_signal(void *argument)
{
    struct interruption *interruption = argument;
    mortise_hold hold;
    interruption->error = mortise_acquire(interruption->lock, &hold);
    return NULL;
}

static void interrupt_waits_of(mortise_client *waits, const char *name)
{
    mortise_hold held = api_acquire(api_lock(client, name)), hold;
    struct interruption interruption = {.lock = api_lock(waits, name)};
    interrupt_fd = mortise_interrupt_fd(waits);
    assert_true(interrupt_fd >= 0);
    assert_int_equal(mortise_interrupt_fd(waits), interrupt_fd);
    pthread_t thread = api_thread(wait_for_a_signal, &interruption);
    api_await_tickets(client, name, 2);
    pthread_kill(thread, SIGUSR1);
    api_join(thread);
    assert_int_equal(interruption.error, MORTISE_ECANCELLED);
    assert_int_equal(mortise_acquire_for(interruption.lock, 10, &hold), MORTISE_ETIMEOUT);
    int64_t begin = mortise_now_ns();
    while (mortise_process(waits) == MORTISE_OK && api_tickets(client, name) != 1) {
        check(api_ms_since(begin) <
              api_await_ms); /* only a foreign loop's caller removes a ticket */
        api_sleep_ms(2);     /* that came too late */
    }
    api_await_tickets(client, name, 1);
    api_release(held);
    api_release(api_acquire(interruption.lock));
}

static void test_f6_u12_u33_a_byte_from_a_signal_handler_ends_all_waits(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = write_a_byte}, before;
    sigaction(SIGUSR1, &action, &before);
    mortise_client *own = api_open(0), *foreign = api_open(MORTISE_FOREIGN_LOOP);
    interrupt_waits_of(own, "interrupt/own");
    interrupt_waits_of(foreign, "interrupt/foreign");
    assert_int_equal(mortise_interrupt_fd(NULL), MORTISE_EINVALID);
    api_close(own);
    api_close(foreign);
    sigaction(SIGUSR1, &before, NULL);
}

static void test_f6_cancel_at_any_moment(void **state)
{
    (void)state;
    mortise_lock *lock = api_lock(client, "cancel/race");
    for (int i = 0; i < 200; i++) {
        struct told told = {.release = true};
        mortise_hold hold;
        bool held = i % 2 == 0 && mortise_try_acquire(lock, &hold) == MORTISE_OK;
        mortise_operation *operation = start(lock, INT64_MAX, &told);
        if (held) {
            mortise_cancel(operation); /* it waits for us, so its callback has not begun */
            api_release(hold);
        }
        await(&told);
        assert_int_equal(told.error, held ? MORTISE_ECANCELLED : MORTISE_OK);
    }
    api_await_tickets(client, "cancel/race", 0);
    mortise_lock_free(lock);
}

static void test_f17_close_ends_operations(void **state)
{
    (void)state;
    mortise_client *other = api_open(0), *holder = api_open(0);
    mortise_hold hold = api_acquire(api_lock(holder, "close"));
    struct told told[3] = {{0}};
    mortise_lock *lock = api_lock(other, "close");
    for (int i = 0; i < 3; i++)
        start(lock, INT64_MAX, &told[i]);
    api_close(other);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(told[i].calls, 1);
        assert_int_equal(told[i].error, MORTISE_ECLOSED);
    }
    api_release(hold);
    api_close(holder);
}

struct freeing {
    mortise_lock *lock;
    _Atomic int calls;
};

static void free_handle(void *argument, int error, mortise_hold hold)
{
    struct freeing *freeing = argument;
    check(error == MORTISE_OK);
    api_release(hold);
    mortise_lock_free(freeing->lock);
    atomic_fetch_add(&freeing->calls, 1);
}

/* The thread that waited on it has ended: the address sanitizer sees writes to it after that. */
static void test_zk_18_a_callback_may_free_the_handle_of_its_own_operation(void **state)
{
    (void)state;
    struct freeing freeing = {.lock = api_lock(client, "free")};
    int64_t begin = mortise_now_ns();
    check(mortise_acquire_async(freeing.lock, INT64_MAX, free_handle, &freeing, NULL) ==
          MORTISE_OK);
    while (atomic_load(&freeing.calls) == 0) {
        check(api_ms_since(begin) < api_await_ms);
        api_sleep_ms(1);
    }
    api_release(api_acquire(api_lock(client, "free")));
}

/* ------------------------------------------------------ blocking in a callback */

struct inside {
    _Atomic int calls;
    mortise_client *client;
    mortise_lock *lock, *other;
    int acquire, verify, close, list, process;
    struct told next; /* acquired by the callback */
};

static int no_entry(void *argument, const mortise_entry *entry)
{
    (void)argument;
    (void)entry;
    return 0;
}

static void block(void *argument, int error, mortise_hold hold)
{
    struct inside *inside = argument;
    mortise_hold other;
    check(error == MORTISE_OK);
    inside->acquire = mortise_acquire(inside->lock, &other);
    inside->verify = mortise_verify(hold, 1000);
    inside->close = mortise_close(inside->client);
    inside->list = mortise_list(inside->client, NULL, no_entry, NULL);
    inside->process = mortise_process(inside->client);
    check(mortise_is_held(hold)); /* what does not block is allowed */
    check(mortise_hold_fence(hold) > 0);
    start(inside->other, INT64_MAX, &inside->next);
    api_release(hold);
    atomic_store(&inside->calls, 1);
}

static void test_blocking_in_a_callback_is_refused(void **state)
{
    (void)state;
    struct inside inside = {.client = client,
                            .lock = api_lock(client, "inside"),
                            .other = api_lock(client, "inside/other")};
    assert_int_equal(mortise_acquire_async(inside.lock, INT64_MAX, block, &inside, NULL),
                     MORTISE_OK);
    await(&inside.next);
    assert_int_equal(inside.acquire, MORTISE_EDEADLOCK);
    assert_int_equal(inside.verify, MORTISE_EDEADLOCK);
    assert_int_equal(inside.close, MORTISE_EDEADLOCK);
    assert_int_equal(inside.list, MORTISE_EDEADLOCK);
    assert_int_equal(inside.process, MORTISE_EDEADLOCK);
    assert_int_equal(inside.next.error, MORTISE_OK);
    api_release(inside.next.hold);
    mortise_lock_free(inside.lock);
    mortise_lock_free(inside.other);
}

static void test_wrong_arguments_are_refused(void **state)
{
    (void)state;
    mortise_lock *lock = api_lock(client, "wrong");
    struct told told = {0};
    assert_int_equal(mortise_acquire_async(NULL, INT64_MAX, tell, &told, NULL), MORTISE_EINVALID);
    assert_int_equal(mortise_acquire_async(lock, INT64_MAX, NULL, &told, NULL), MORTISE_EINVALID);
    assert_int_equal(mortise_acquire(NULL, &told.hold), MORTISE_EINVALID);
    assert_int_equal(mortise_acquire(lock, NULL), MORTISE_EINVALID);
    assert_int_equal(mortise_try_acquire(NULL, &told.hold), MORTISE_EINVALID);
    assert_int_equal(mortise_fd(client), MORTISE_EINVALID); /* it has a thread */
    assert_int_equal(mortise_process(client), MORTISE_EINVALID);
    assert_int_equal(mortise_next_timeout_ms(client), MORTISE_EINVALID);
    mortise_lock_free(lock);
}

/* -------------------------------------------------------------- foreign loops */

/* Runs two clients in this thread until the told is told. */
static void run_until(mortise_client *const clients[2], struct told *told)
{
    int64_t begin = mortise_now_ns();
    while (atomic_load(&told->calls) == 0) {
        struct pollfd fds[2];
        int timeout = 1000;
        for (int i = 0; i < 2; i++) {
            int wanted = mortise_next_timeout_ms(clients[i]);
            fds[i] = (struct pollfd){.fd = mortise_fd(clients[i]), .events = POLLIN};
            check(fds[i].fd >= 0);
            timeout = wanted >= 0 && wanted < timeout ? wanted : timeout;
        }
        check(poll(fds, 2, timeout) >= 0);
        for (int i = 0; i < 2; i++)
            check(mortise_process(clients[i]) == MORTISE_OK);
        check(api_ms_since(begin) < api_await_ms);
    }
}

static void test_two_foreign_clients_in_one_thread(void **state)
{
    (void)state;
    mortise_client *clients[2] = {api_open(MORTISE_FOREIGN_LOOP), api_open(MORTISE_FOREIGN_LOOP)};
    mortise_lock *locks[2] = {api_lock(clients[0], "foreign"), api_lock(clients[1], "foreign")};
    uint64_t fence = 0;
    struct told told[2] = {{0}};
    start(locks[0], INT64_MAX, &told[0]);
    assert_int_equal(told[0].calls, 0); /* never from inside the call */
    run_until(clients, &told[0]);
    for (int i = 0; i < 50; i++) {
        struct told *mine = &told[i % 2], *theirs = &told[(i + 1) % 2];
        assert_int_equal(mine->error, MORTISE_OK);
        assert_true(pthread_equal(mine->thread, pthread_self()));
        assert_true(mortise_hold_fence(mine->hold) > fence);
        fence = mortise_hold_fence(mine->hold);
        *theirs = (struct told){0};
        start(locks[(i + 1) % 2], INT64_MAX, theirs);
        for (int j = 0; j < 3; j++)
            check(mortise_process(clients[j % 2]) == MORTISE_OK);
        assert_int_equal(theirs->calls, 0);
        api_release(mine->hold);
        run_until(clients, theirs);
    }
    api_release(told[0].hold);
    api_close(clients[0]);
    api_close(clients[1]);
}

/* After a release of a foreign client: where an answer is under way, the release leaves behind it,
   and that no thread reads but the program's. */
static mortise_hold acquire_after(mortise_client *foreign, mortise_lock *lock)
{
    mortise_hold hold;
    int64_t begin = mortise_now_ns();
    for (;;) {
        check(mortise_process(foreign) == MORTISE_OK);
        int error = mortise_acquire_for(lock, 100, &hold);
        if (error == MORTISE_OK)
            return hold;
        check(error == MORTISE_ETIMEOUT || error == MORTISE_EDISCONNECTED);
        check(api_ms_since(begin) < api_await_ms);
    }
}

static void test_foreign_clients_can_block(void **state)
{
    (void)state;
    mortise_client *foreign = api_open(MORTISE_FOREIGN_LOOP);
    mortise_lock *lock = api_lock(foreign, "foreign/block"),
                 *held = api_lock(client, "foreign/block");
    mortise_hold hold = api_acquire(lock), refused;
    assert_int_equal(mortise_verify(hold, 10000), MORTISE_OK);
    assert_int_equal(mortise_try_acquire(held, &refused), MORTISE_EBUSY);
    api_release(hold);
    hold = acquire_after(foreign, held);
    assert_int_equal(mortise_try_acquire(lock, &refused), MORTISE_EBUSY);
    assert_int_equal(mortise_acquire_for(lock, 30, &refused), MORTISE_ETIMEOUT);
    api_await_tickets(client, "foreign/block", 1);
    api_release(hold);
    hold = api_acquire(lock);
    api_release(hold);
    mortise_lock_free(held);
    api_close(foreign);
}

/* A foreign client that blocks for a lock that another thread gives back. */
static void *late_release(void *argument)
{
    struct told *told = argument;
    api_sleep_ms(50);
    api_release(told->hold);
    return NULL;
}

static void test_a_blocked_foreign_client_is_woken(void **state)
{
    (void)state;
    mortise_client *foreign = api_open(MORTISE_FOREIGN_LOOP);
    mortise_lock *lock = api_lock(foreign, "foreign/wake"),
                 *held = api_lock(client, "foreign/wake");
    struct told told = {0};
    start(held, INT64_MAX, &told);
    await(&told);
    pthread_t thread = api_thread(late_release, &told);
    mortise_hold hold;
    assert_int_equal(mortise_acquire_for(lock, 20000, &hold), MORTISE_OK);
    api_join(thread);
    api_release(hold);
    mortise_lock_free(held);
    api_close(foreign);
}

static void test_f3_deadline_of_a_foreign_operation(void **state)
{
    (void)state;
    mortise_client *clients[2] = {api_open(MORTISE_FOREIGN_LOOP), api_open(MORTISE_FOREIGN_LOOP)};
    mortise_lock *lock = api_lock(clients[0], "foreign/deadline");
    api_release(api_acquire(lock)); /* it has a session from here on */
    mortise_hold hold = api_acquire(api_lock(clients[1], "foreign/deadline"));
    struct told told = {0};
    int64_t begin = mortise_now_ns();
    start(lock, begin + 50 * MS_IN_NS, &told);
    run_until(clients, &told);
    assert_int_equal(told.error, MORTISE_ETIMEOUT);
    assert_true(api_ms_since(begin) >= 50);
    api_release(hold);
    api_close(clients[0]);
    api_close(clients[1]);
}

static void test_f17_close_of_a_foreign_client(void **state)
{
    (void)state;
    mortise_client *foreign = api_open(MORTISE_FOREIGN_LOOP);
    mortise_lock *held = api_lock(client, "foreign/close"),
                 *lock = api_lock(foreign, "foreign/close");
    mortise_hold hold = api_acquire(held);
    struct told told = {0};
    start(lock, INT64_MAX, &told);
    api_close(foreign);
    assert_int_equal(told.calls, 1);
    assert_int_equal(told.error, MORTISE_ECLOSED);
    api_release(hold);
    api_await_tickets(client, "foreign/close", 0);
    mortise_lock_free(held);
}

static void note_held(void *argument, int error, mortise_hold hold)
{
    int *found = argument;
    *found = error == MORTISE_OK && !mortise_is_held(hold) ? MORTISE_ENOTHELD : error;
}

/* Stays in its callback until close has ended its hold; all others come after it. */
static void stay_until_ended(void *argument, int error, mortise_hold hold)
{
    int64_t begin = mortise_now_ns();
    check(error == MORTISE_OK);
    atomic_store((_Atomic bool *)argument, true);
    while (mortise_is_held(hold)) {
        check(api_ms_since(begin) < api_await_ms);
        api_sleep_ms(1);
    }
}

/* A lock that is granted, and told of while the client closes: the callback has the error. */
static void test_no_callback_has_a_hold_that_close_has_ended(void **state)
{
    (void)state;
    _Atomic bool stays = false;
    int found = 1;
    mortise_client *closing = api_open(0);
    mortise_lock *lock = api_lock_of(closing, "close/granted", 9);
    check(mortise_acquire_async(lock, INT64_MAX, stay_until_ended, &stays, NULL) == MORTISE_OK);
    while (!stays)
        api_sleep_ms(1);
    check(mortise_acquire_async(lock, INT64_MAX, note_held, &found, NULL) == MORTISE_OK);
    assert_int_equal(found, 1); /* it nests, so it is granted already */
    api_close(closing);
    assert_int_equal(found, MORTISE_ECLOSED);
}

/* In a foreign loop close itself may grant it, and calls back. */
static void test_no_callback_of_a_foreign_client_has_a_hold_that_close_has_ended(void **state)
{
    (void)state;
    int found = 1;
    mortise_client *closing = api_open(MORTISE_FOREIGN_LOOP);
    mortise_lock *lock = api_lock(closing, "close/granted");
    check(mortise_acquire_async(lock, INT64_MAX, note_held, &found, NULL) == MORTISE_OK);
    api_close(closing);
    assert_true(found == MORTISE_OK || found == MORTISE_ECLOSED);
}

/* ------------------------------------------- every recipe in a foreign loop */

enum { SEMAPHORE_MUTEX, EXCLUSIVE, WEIGHTED, READ, WRITE, RECIPES };

/* A handle of a recipe, and one of the same lock that it excludes; perhaps the same. */
struct pair {
    mortise_lock *lock, *against;
};

static struct pair make(mortise_client *of, int recipe)
{
    const mortise_lock_options two = {.size = sizeof two, .permits = 2};
    struct pair pair = {NULL, NULL};
    char name[32];
    snprintf(name, sizeof name, "foreign/recipe/%d", recipe);
    if (recipe == READ)
        check(mortise_read_write_new(of, name, NULL, &pair.lock, &pair.against) == MORTISE_OK);
    else if (recipe == WRITE)
        check(mortise_read_write_new(of, name, NULL, &pair.against, &pair.lock) == MORTISE_OK);
    else if (recipe == WEIGHTED)
        check(mortise_semaphore_new(of, name, 3, &two, &pair.lock) == MORTISE_OK);
    else if (recipe == EXCLUSIVE)
        check(mortise_exclusive_new(of, name, NULL, &pair.lock) == MORTISE_OK);
    else
        check(mortise_semaphore_mutex_new(of, name, NULL, &pair.lock) == MORTISE_OK);
    if (!pair.against)
        pair.against = pair.lock;
    return pair;
}

/* Starts it, and runs both clients until it has ended. */
static mortise_hold run(mortise_client *const clients[2], mortise_lock *lock, int64_t deadline_ns,
                        int expected)
{
    struct told told = {0};
    start(lock, deadline_ns, &told);
    run_until(clients, &told);
    assert_int_equal(told.error, expected);
    assert_true(pthread_equal(told.thread, pthread_self()));
    return told.hold;
}

static void test_g6_every_recipe_in_a_foreign_loop(void **state)
{
    (void)state;
    mortise_client *clients[2] = {api_open(MORTISE_FOREIGN_LOOP), api_open(MORTISE_FOREIGN_LOOP)};
    for (int recipe = 0; recipe < RECIPES; recipe++) {
        struct pair mine = make(clients[0], recipe), theirs = make(clients[1], recipe);
        struct told told = {0};
        api_release(run(clients, mine.lock, INT64_MAX, MORTISE_OK)); /* by now it has a session */
        mortise_hold hold = run(clients, theirs.against, INT64_MAX, MORTISE_OK);
        run(clients, mine.lock, mortise_now_ns() + 30 * MS_IN_NS, MORTISE_ETIMEOUT);
        start(mine.lock, INT64_MAX, &told);
        for (int i = 0; i < 6; i++)
            check(mortise_process(clients[i % 2]) == MORTISE_OK);
        assert_int_equal(told.calls, 0);
        api_release(hold);
        run_until(clients, &told);
        assert_int_equal(told.error, MORTISE_OK);
        run(clients, theirs.against, mortise_now_ns() + 30 * MS_IN_NS, MORTISE_ETIMEOUT);
        api_release(told.hold);
        api_release(run(clients, theirs.against, INT64_MAX, MORTISE_OK));
    }
    api_close(clients[0]);
    api_close(clients[1]);
}

static int try(mortise_lock *lock)
{
    mortise_hold hold;
    return mortise_try_acquire(lock, &hold);
}

/* Of the two, the second is in use at first. */
static void take_all(mortise_client *foreign, mortise_lock *const mine[2],
                     mortise_lock *const theirs[2])
{
    mortise_hold hold = api_acquire(theirs[1]), holds[2];
    assert_int_equal(mortise_acquire_all(mine, 2, 0, holds), MORTISE_EBUSY);
    api_release(hold);
    assert_int_equal(mortise_acquire_all(mine, 2, -1, holds), MORTISE_OK);
    assert_int_equal(try(theirs[0]), MORTISE_EBUSY);
    assert_int_equal(try(theirs[1]), MORTISE_EBUSY);
    assert_int_equal(mortise_release_all(holds, 2), MORTISE_OK);
    for (int i = 0; i < 2; i++)
        api_release(acquire_after(foreign, theirs[i]));
}

static void test_every_recipe_blocks_in_a_foreign_client(void **state)
{
    (void)state;
    mortise_client *foreign = api_open(MORTISE_FOREIGN_LOOP), *other = api_open(0);
    struct pair mine[RECIPES], theirs[RECIPES];
    for (int i = 0; i < RECIPES; i++) {
        mine[i] = make(foreign, i);
        theirs[i] = make(other, i);
        mortise_hold hold = api_acquire(theirs[i].against);
        assert_int_equal(try(mine[i].lock), MORTISE_EBUSY);
        api_release(hold);
        hold = api_acquire(mine[i].lock);
        assert_int_equal(try(theirs[i].against), MORTISE_EBUSY);
        api_release(hold);
        api_release(acquire_after(foreign, theirs[i].against));
    }
    mortise_lock *all[] = {mine[READ].lock, mine[WEIGHTED].lock};
    mortise_lock *against[] = {theirs[READ].against, theirs[WEIGHTED].against};
    take_all(foreign, all, against);
    api_close(foreign);
    api_close(other);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_g6_granted_by_callback_on_the_clients_thread),
        cmocka_unit_test(test_c4_a_try_by_callback_ends_where_the_lock_is_held),
        cmocka_unit_test(test_a_hold_without_an_owner_is_not_reentrant),
        cmocka_unit_test(test_a_handle_with_an_owner_nests),
        cmocka_unit_test(test_f3_deadline_of_an_operation),
        cmocka_unit_test(test_f6_cancel_from_any_thread),
        cmocka_unit_test(test_f6_cancel_waiters_ends_operations_too),
        cmocka_unit_test(test_f6_u12_u33_a_byte_from_a_signal_handler_ends_all_waits),
        cmocka_unit_test(test_f6_cancel_at_any_moment),
        cmocka_unit_test(test_f17_close_ends_operations),
        cmocka_unit_test(test_zk_18_a_callback_may_free_the_handle_of_its_own_operation),
        cmocka_unit_test(test_blocking_in_a_callback_is_refused),
        cmocka_unit_test(test_wrong_arguments_are_refused),
        cmocka_unit_test(test_two_foreign_clients_in_one_thread),
        cmocka_unit_test(test_foreign_clients_can_block),
        cmocka_unit_test(test_a_blocked_foreign_client_is_woken),
        cmocka_unit_test(test_f3_deadline_of_a_foreign_operation),
        cmocka_unit_test(test_f17_close_of_a_foreign_client),
        cmocka_unit_test(test_no_callback_has_a_hold_that_close_has_ended),
        cmocka_unit_test(test_no_callback_of_a_foreign_client_has_a_hold_that_close_has_ended),
        cmocka_unit_test(test_g6_every_recipe_in_a_foreign_loop),
        cmocka_unit_test(test_every_recipe_blocks_in_a_foreign_client),
    };
    int failed = api_begin(argc, argv);
    return failed ? failed : api_end(cmocka_run_group_tests(tests, open_client, close_client));
}
