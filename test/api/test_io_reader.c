/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A waiter reads the store's answers itself (io/reader.c), on a real store. Only the driver shows
 * which thread reads, so the tests read it, under its mutex. Calls of the store go through
 * functions of this file.
 *
 * `client` is the client under test; `other` holds the locks that it waits for.
 *
 * On a store without events the reader waits for answers to the loop's requests, and nothing else
 * comes.
 */
#include "api_between.h"
#include "api_two.h"

#include <stdatomic.h>
#include <stdio.h>

#ifdef MRT_DEFECTS
#include "defect_run.h"
#endif

#define ROUNDS 20 /* where what is looked for may be missed once, on a busy machine */

/* ------------------------------------------------------------------ the store */

static const struct mrt_store_ops *real;
static struct mrt_store_ops watched;
static _Atomic pthread_t reader; /* the thread that called process last */
static _Atomic bool answers_may_wait;
static _Atomic mrt_time wanted; /* when the store wants process to be called; 0: as it says */

static void process(struct mrt_store *store, mrt_time now)
{
    atomic_store(&reader, pthread_self());
    atomic_store(&wanted, 0);
    real->process(store, now);
}

static mrt_time next(struct mrt_store *store)
{
    mrt_time at = atomic_load(&wanted);
    return at ? at : real->next(store);
}

static bool may_wait(const struct mrt_store *store)
{
    return real->answers_may_wait(store) && atomic_load(&answers_may_wait);
}

static int open_watched(void **state)
{
    open_clients(state);
    watched = *client->driver.ops;
    watched.process = process;
    watched.next = next;
    watched.answers_may_wait = may_wait;
    real = api_put_between(client, &watched);
    atomic_store(&answers_may_wait, true);
    return 0;
}

/* ------------------------------------------------------------------ looking */

static bool look(bool (*is)(const struct mrt_driver *driver))
{
    struct mrt_driver *driver = &client->driver;
    pthread_mutex_lock(&driver->mutex);
    bool found = is(driver);
    pthread_mutex_unlock(&driver->mutex);
    return found;
}

static void await(bool (*is)(const struct mrt_driver *driver))
{
    int64_t begin = mortise_now_ns();
    while (!look(is)) {
        check(api_ms_since(begin) < api_await_ms);
        api_sleep_ms(1);
    }
}

static bool may_be_led(const struct mrt_driver *driver)
{
    return mrt_time_now() >= driver->reader.no_reader_until && driver->reader.blocked == 0;
}

static bool is_led(const struct mrt_driver *driver)
{
    return driver->reader.call && driver->reader.sleeps;
}

static bool looks_away(const struct mrt_driver *driver)
{
    return driver->reader.looks_away;
}

/* And it is a while ago that the second one called the loop back. */
static bool two_are_blocked(const struct mrt_driver *driver)
{
    return driver->reader.blocked == 2 && mrt_time_now() >= driver->reader.no_reader_until;
}

static bool loop_is_away(const struct mrt_driver *driver)
{
    return driver->reader.loop_away_until > 0;
}

/* The invariant of reader.c. */
static bool loop_will_be_back(const struct mrt_driver *driver)
{
    return driver->reader.loop_away_until <= mrt_time_now() + 20 * MRT_MILLISECOND;
}

static bool loop_is_called_back(const struct mrt_driver *driver)
{
    return driver->reader.next_reader_until == 0;
}

/* If somebody leads and the loop is away; both are so when it is called back. */
static bool recalls(const struct mrt_driver *driver)
{
    if (!is_led(driver) || !loop_is_away(driver))
        return false;
    mrt_reader_recall(&client->driver);
    return true;
}

static bool is_recalled(const struct mrt_driver *driver)
{
    return mrt_time_now() < driver->reader.no_reader_until;
}

static bool undone; /* a recall, by what these two have seen */

/* It has come and sleeps again: nothing but that takes back a kick. */
static bool loop_has_come(const struct mrt_driver *driver)
{
    if (!is_recalled(driver) || !driver->reader.call || driver->kicked)
        return false;
    undone |= driver->reader.loop_away_until > 0;
    return true;
}

/* The leader has stopped before the loop may go away again. */
static bool has_stopped_early(const struct mrt_driver *driver)
{
    if (!is_recalled(driver) || driver->reader.call)
        return false;
    undone |= driver->reader.next_reader_until > 0 ||
              (driver->reader.loop_away_until > 0 && !driver->kicked);
    return true;
}

static bool process_was_called(const struct mrt_driver *driver)
{
    (void)driver;
    return atomic_load(&wanted) == 0;
}

/* ------------------------------------------------------------------ waiting */

struct call {
    mortise_lock *lock;
    int64_t timeout_ms;
    pthread_t thread;
    _Atomic bool over;
    int error;
    mortise_hold hold;
};

static void *body(void *argument)
{
    struct call *call = argument;
    call->error = mortise_acquire_for(call->lock, call->timeout_ms, &call->hold);
    atomic_store(&call->over, true);
    return NULL;
}

static void start(struct call *call, mortise_lock *lock, int64_t timeout_ms)
{
    *call = (struct call){.lock = lock, .timeout_ms = timeout_ms};
    call->thread = api_thread(body, call);
}

static void start_leading(struct call *call, mortise_lock *lock, int64_t timeout_ms)
{
    await(may_be_led);
    start(call, lock, timeout_ms);
    await(is_led);
}

static void finish(struct call *call, int error)
{
    int64_t begin = mortise_now_ns();
    while (!atomic_load(&call->over)) {
        check(api_ms_since(begin) < api_await_ms);
        api_sleep_ms(1);
    }
    api_join(call->thread);
    check(call->error == error);
}

/* A lock of the client's that the other one holds; the handles are freed with the clients. */
static mortise_lock *taken(const char *name, mortise_hold *theirs)
{
    *theirs = api_acquire(api_lock(other, name));
    return api_lock_of(client, name, 7);
}

static bool store_tells(void)
{
    mortise_capabilities can = {.size = sizeof can};
    check(mortise_get_capabilities(client, &can) == MORTISE_OK);
    return can.linger;
}

/* ------------------------------------------------------------------ tests */

static void test_a_single_waiter_reads_the_answer_itself(void **state)
{
    (void)state;
    bool itself = false;
    for (int i = 0; i < ROUNDS && !itself; i++) {
        mortise_hold theirs;
        struct call call;
        start_leading(&call, taken("reads", &theirs), -1);
        api_release(theirs);
        finish(&call, MORTISE_OK);
        itself = pthread_equal(atomic_load(&reader), call.thread);
        api_release(call.hold);
    }
    assert_true(itself);
}

static pthread_t told_by;
static _Atomic int told;

static void tell_place(void *argument, uint64_t place)
{
    (void)argument, (void)place;
    told_by = pthread_self();
    atomic_fetch_add(&told, 1);
}

static void test_callbacks_run_on_the_loops_thread(void **state)
{
    (void)state;
    mortise_hold theirs = api_acquire(api_lock(other, "called"));
    mortise_lock_options options = {.size = sizeof options, .owner = 7, .queued = tell_place};
    mortise_lock *lock;
    assert_int_equal(mortise_mutex_new(client, "called", &options, &lock), MORTISE_OK);
    for (int i = 0; i < ROUNDS; i++) {
        struct call call;
        int before = atomic_load(&told);
        start_leading(&call, lock, -1);
        int64_t begin = mortise_now_ns();
        while (atomic_load(&told) == before) {
            check(api_ms_since(begin) < api_await_ms);
            api_sleep_ms(1);
        }
        assert_true(pthread_equal(told_by, client->driver.thread));
        assert_int_equal(mortise_cancel_waiters(lock), MORTISE_OK);
        finish(&call, MORTISE_ECANCELLED);
    }
    api_release(theirs);
}

static void test_f3_deadlines_of_the_reader_and_of_other_waiters(void **state)
{
    (void)state;
    mortise_hold first, second;
    struct call leads, waits;
    mortise_lock *one = taken("deadline-1", &first), *two = taken("deadline-2", &second);
    int64_t begin, timeout_ms = 50;
    bool seen;
    do { /* until it is seen to lead */
        timeout_ms *= 2;
        await(may_be_led);
        begin = mortise_now_ns();
        start(&leads, one, timeout_ms);
        while (!(seen = look(is_led)) && !atomic_load(&leads.over))
            api_sleep_ms(1);
        start(&waits, two, timeout_ms / 2);
        finish(&waits, MORTISE_ETIMEOUT);
        finish(&leads, MORTISE_ETIMEOUT);
        assert_true(api_ms_since(begin) >= timeout_ms);
    } while (!seen);
    api_release(first);
    api_release(second);
}

static _Atomic bool lost;

static void tell_lost(void *argument, mortise_hold hold, mortise_state now)
{
    (void)argument, (void)hold;
    if (now == MORTISE_LOST)
        atomic_store(&lost, true);
}

static void test_timers_run_while_a_waiter_reads(void **state)
{
    (void)state;
    const mortise_lock_options options = {.size = sizeof options, .max_hold_ms = 200};
    mortise_lock *limited;
    mortise_hold theirs;
    struct call call;
    mortise_lock *lock = taken("timers", &theirs);
    assert_int_equal(mortise_mutex_new(client, "limited", &options, &limited), MORTISE_OK);
    int error = MORTISE_ELOST;
    while (error == MORTISE_ELOST) /* before it could be asked for */
        error = mortise_on_lost(api_acquire(limited), tell_lost, NULL);
    assert_int_equal(error, MORTISE_OK);
    start_leading(&call, lock, -1);
    int64_t begin = mortise_now_ns();
    while (!atomic_load(&lost)) {
        check(api_ms_since(begin) < api_await_ms);
        api_sleep_ms(1);
    }
    assert_false(atomic_load(&call.over));
    api_release(theirs);
    finish(&call, MORTISE_OK);
    api_release(call.hold);
}

static void test_f6_cancelled_by_another_thread(void **state)
{
    (void)state;
    mortise_hold theirs;
    struct call call;
    mortise_lock *lock = taken("cancelled", &theirs);
    start_leading(&call, lock, -1);
    assert_int_equal(mortise_cancel_waiters(lock), MORTISE_OK);
    finish(&call, MORTISE_ECANCELLED);
    api_release(theirs);
}

static void test_a_waiter_behind_a_thread_of_its_client_does_not_read(void **state)
{
    (void)state;
    mortise_lock *lock = api_lock_of(client, "local", 7), *again = api_lock_of(client, "local", 8);
    struct call call;
    await(may_be_led);
    mortise_hold hold = api_acquire(lock);
    await(may_be_led);
    start(&call, again, 50);
    while (!atomic_load(&call.over))
        assert_false(look(is_led));
    finish(&call, MORTISE_ETIMEOUT);
    api_release(hold);
}

static void test_the_loop_reads_again_after_the_last_reader(void **state)
{
    (void)state;
    bool away;
    do { /* until one leads soon after another */
        mortise_hold theirs;
        struct call call;
        start_leading(&call, taken("back", &theirs), -1);
        api_release(theirs);
        finish(&call, MORTISE_OK);
        away = look(loop_is_away);
        for (int j = 0; j < 5; j++)
            assert_true(look(loop_will_be_back));
        api_release(call.hold);
    } while (!away);
}

static _Atomic bool asked;

static void tell_asked(void *argument, mortise_hold hold)
{
    (void)argument, (void)hold;
    atomic_store(&asked, true);
}

/* An event in the time in which the loop leaves the store to the next one who leads. */
static void test_f22_an_event_between_two_readers_is_read(void **state)
{
    (void)state;
    mortise_hold theirs, mine = api_acquire(api_lock_of(client, "asked", 7));
    assert_int_equal(mortise_on_revoke(mine, tell_asked, NULL), MORTISE_OK);
    struct call call;
    start_leading(&call, taken("before", &theirs), -1);
    api_release(theirs);
    finish(&call, MORTISE_OK);
    assert_int_equal(mortise_revoke(other, "asked", 0), MORTISE_OK);
    int64_t begin = mortise_now_ns();
    while (!atomic_load(&asked)) {
        check(api_ms_since(begin) < api_await_ms);
        api_sleep_ms(1);
    }
    api_release(mine);
    api_release(call.hold);
}

/* The program asks to be told of something while somebody leads: the loop comes, and stays when
   that one stops. A round that is too slow for the pause shows nothing, and another follows. */
static void test_f22_a_loop_called_back_stays_when_the_reader_stops(void **state)
{
    (void)state;
    bool came = false, stopped = false;
    while (!came || !stopped) {
        mortise_hold theirs;
        struct call call;
        start_leading(&call, taken("recalled", &theirs), -1);
        bool recalled = look(recalls), comes = false;
        while (recalled && !comes && look(is_recalled))
            comes = look(loop_has_come);
        came |= comes;
        api_release(theirs);
        finish(&call, MORTISE_OK);
        stopped |= recalled && look(has_stopped_early);
        api_release(call.hold);
    }
    assert_false(undone);
}

static void test_the_loop_reads_on_when_the_reader_ends_before_another_waiter(void **state)
{
    (void)state;
    mortise_hold first, second;
    struct call leads, waits;
    mortise_lock *one = taken("first", &first), *two = taken("second", &second);
    start_leading(&leads, one, -1);
    start(&waits, two, -1);
    await(two_are_blocked);
    api_release(first);
    finish(&leads, MORTISE_OK);
    assert_true(look(loop_is_called_back));
    api_release(second);
    finish(&waits, MORTISE_OK);
    api_release(leads.hold);
    api_release(waits.hold);
}

/* Leads until it has the lock, and the loop is not called back. On a busy machine something else
   may have called it: then the same again. */
static void lead_to_the_end(struct call *call, const char *name)
{
    mortise_hold theirs;
    for (int tries = 0; tries < 20; tries++) {
        start_leading(call, taken(name, &theirs), -1);
        api_release(theirs);
        finish(call, MORTISE_OK);
        if (!look(loop_is_called_back))
            return;
        api_release(call->hold);
    }
    fail_msg("the loop is always called back");
}

static void test_the_loop_reads_an_answer_that_may_not_wait(void **state)
{
    (void)state;
    struct call call;
    lead_to_the_end(&call, "must");
    atomic_store(&answers_may_wait, false);
    api_release(call.hold);
    await(loop_is_called_back);
    atomic_store(&answers_may_wait, true);
}

static void test_a_reader_sleeps_while_another_thread_has_the_store(void **state)
{
    (void)state;
    if (!store_tells())
        skip();
    mortise_hold theirs;
    struct call call;
    start_leading(&call, taken("borrowed", &theirs), -1);
    mrt_driver_enter(&client->driver);
    mrt_driver_borrow_store(&client->driver);
    api_release(theirs);
    await(looks_away); /* and does not turn and turn */
    mrt_driver_give_back_store(&client->driver);
    mrt_driver_leave(&client->driver, MRT_TIME_NEVER);
    finish(&call, MORTISE_OK);
    api_release(call.hold);
}

/* The loop sees what any thread's call of the store has changed. */
static void test_a_thread_that_borrowed_the_store_calls_the_loop_back(void **state)
{
    (void)state;
    mortise_hold theirs;
    struct call call;
    start_leading(&call, taken("lent", &theirs), -1);
    api_release(theirs);
    finish(&call, MORTISE_OK);
    api_release(call.hold);
    assert_false(look(loop_is_called_back));
    mrt_driver_enter(&client->driver);
    mrt_driver_borrow_store(&client->driver);
    mrt_time now = mrt_time_now();
    atomic_store(&wanted, now);
    atomic_store(&answers_may_wait, false);
    mrt_driver_give_back_store(&client->driver);
    assert_int_equal(client->driver.store_next, now);
    assert_true(loop_is_called_back(&client->driver));
    mrt_driver_leave(&client->driver, MRT_TIME_NEVER);
    await(process_was_called);
    atomic_store(&answers_may_wait, true);
}

static void test_no_waiter_reads_while_a_lock_lingers(void **state)
{
    (void)state;
    if (!store_tells())
        skip();
    mortise_lock_options options = {.size = sizeof options, .linger_ms = 1};
    mortise_lock *lingering;
    mortise_hold theirs;
    struct call call;
    await(may_be_led);
    assert_int_equal(mortise_mutex_new(client, "lingers", &options, &lingering), MORTISE_OK);
    await(may_be_led);
    start(&call, taken("news", &theirs), 50);
    while (!atomic_load(&call.over))
        assert_false(look(is_led));
    finish(&call, MORTISE_ETIMEOUT);
    api_release(theirs);
    pthread_mutex_lock(&client->driver.mutex);
    client->driver.reader.disabled = false; /* nobody else is here */
    pthread_mutex_unlock(&client->driver.mutex);
}

/* The last one: it takes the client away. */
static void test_c_a_close_ends_the_reader(void **state)
{
    (void)state;
    mortise_hold theirs;
    struct call call;
    start_leading(&call, taken("closed", &theirs), -1);
    api_close(client);
    finish(&call, MORTISE_ECLOSED);
    api_release(theirs);
    client = api_open(0);
}

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_single_waiter_reads_the_answer_itself),
        cmocka_unit_test(test_callbacks_run_on_the_loops_thread),
        cmocka_unit_test(test_f3_deadlines_of_the_reader_and_of_other_waiters),
        cmocka_unit_test(test_timers_run_while_a_waiter_reads),
        cmocka_unit_test(test_f6_cancelled_by_another_thread),
        cmocka_unit_test(test_a_waiter_behind_a_thread_of_its_client_does_not_read),
        cmocka_unit_test(test_the_loop_reads_again_after_the_last_reader),
        cmocka_unit_test(test_f22_an_event_between_two_readers_is_read),
        cmocka_unit_test(test_f22_a_loop_called_back_stays_when_the_reader_stops),
        cmocka_unit_test(test_the_loop_reads_on_when_the_reader_ends_before_another_waiter),
        cmocka_unit_test(test_the_loop_reads_an_answer_that_may_not_wait),
        cmocka_unit_test(test_a_reader_sleeps_while_another_thread_has_the_store),
        cmocka_unit_test(test_a_thread_that_borrowed_the_store_calls_the_loop_back),
        cmocka_unit_test(test_no_waiter_reads_while_a_lock_lingers),
        cmocka_unit_test(test_c_a_close_ends_the_reader),
    };
    return cmocka_run_group_tests(tests, open_watched, close_clients);
}

#ifdef MRT_DEFECTS

int main(int argc, char **argv)
{
    int error = api_begin(argc, argv);
    api_await_ms = 4000; /* in vain, as is expected there */
    return error ? error : api_end(defect_run("io_reader", run_all));
}

#else

int main(int argc, char **argv)
{
    int error = api_begin(argc, argv);
    return error ? error : api_end(run_all());
}

#endif
