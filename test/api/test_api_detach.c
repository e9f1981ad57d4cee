/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durable holds (C11): a lock that outlives its client, and is adopted by its token. On every store
 * that keeps what is nobody's.
 */
#include "api_fixture.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static char no_token[MORTISE_TOKEN_SIZE];

static mortise_hold adopt(mortise_lock *lock, const char *token)
{
    mortise_hold hold;
    check(mortise_adopt(lock, token, &hold) == MORTISE_OK);
    check(mortise_is_held(hold));
    return hold;
}

static int try_adopt(mortise_lock *lock, const char *token)
{
    mortise_hold hold;
    return mortise_adopt(lock, token, &hold);
}

/* Whether somebody has the lock; another client of the store's asks. */
static bool taken(const char *name)
{
    mortise_client *client = api_open(0);
    mortise_hold hold;
    int error = mortise_try_acquire(api_lock(client, name), &hold);
    check(error == MORTISE_OK || error == MORTISE_EBUSY);
    api_close(client);
    return error == MORTISE_EBUSY;
}

static void test_c11_a_detached_lock_outlives_its_client(void **state)
{
    (void)state;
    char token[MORTISE_TOKEN_SIZE];
    mortise_client *keeper = api_open(0), *client = api_open(0); /* "memory:" lasts with clients */
    mortise_hold hold = api_acquire(api_lock(client, "detach/1"));
    uint64_t fence = mortise_hold_fence(hold);
    assert_int_equal(mortise_detach(hold, token), MORTISE_OK);
    assert_int_equal(mortise_is_held(hold), 0);
    assert_int_equal(mortise_release(hold), MORTISE_ENOTHELD);
    assert_int_equal(mortise_detach(hold, no_token), MORTISE_ENOTHELD);
    api_close(client);
    assert_true(taken("detach/1"));
    mortise_lock *lock = api_lock(keeper, "detach/1");
    hold = adopt(lock, token);
    assert_true(mortise_hold_fence(hold) >= fence);
    assert_int_equal(mortise_hold_count(hold), 1);
    assert_int_equal(mortise_verify(hold, 10000), MORTISE_OK);
    assert_true(taken("detach/1"));
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    hold = api_acquire(lock);
    assert_true(mortise_hold_fence(hold) > fence);
    api_release(hold);
    api_close(keeper);
}

static void test_c11_a_detached_lock_outlives_its_process(void **state)
{
    (void)state;
    if (!api_spans_processes())
        skip();
    char *token =
        mmap(NULL, MORTISE_TOKEN_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(token != MAP_FAILED);
    pid_t child = fork();
    if (child == 0) {
        mortise_client *client = api_open(0);
        check(mortise_detach(api_acquire(api_lock(client, "detach/2")), token) == MORTISE_OK);
        _exit(0); /* without closing */
    }
    int status = -1;
    check(waitpid(child, &status, 0) == child && status == 0);
    assert_true(taken("detach/2"));
    mortise_client *client = api_open(0);
    api_release(adopt(api_lock(client, "detach/2"), token));
    api_close(client);
    assert_false(taken("detach/2"));
    munmap(token, MORTISE_TOKEN_SIZE);
}

static void test_c11_a_token_is_used_up(void **state)
{
    (void)state;
    char first[MORTISE_TOKEN_SIZE], second[MORTISE_TOKEN_SIZE];
    mortise_client *client = api_open(0), *other = api_open(0);
    mortise_lock *lock = api_lock(client, "detach/3"), *others = api_lock(other, "detach/3");
    assert_int_equal(mortise_detach(api_acquire(lock), first), MORTISE_OK);
    mortise_hold hold = adopt(others, first);
    uint64_t fence = mortise_hold_fence(hold);
    assert_int_equal(try_adopt(lock, first), MORTISE_ENOTHELD);
    assert_int_equal(try_adopt(others, first), MORTISE_ENOTHELD);
    assert_int_equal(mortise_detach(hold, second), MORTISE_OK);
    assert_string_not_equal(first, second);
    assert_int_equal(try_adopt(lock, first), MORTISE_ENOTHELD);
    hold = adopt(lock, second);
    assert_true(mortise_hold_fence(hold) >= fence);
    api_release(hold);
    assert_int_equal(try_adopt(lock, second), MORTISE_ENOTHELD);
    api_close(client);
    api_close(other);
}

#define RACES 30

struct racer {
    pthread_barrier_t *start, *end;
    const char *token;
    int won;
};

static void *adopt_at_once(void *argument)
{
    struct racer *racer = argument;
    mortise_client *client = api_open(0);
    mortise_lock *lock = api_lock(client, "detach/race");
    for (int i = 0; i < RACES; i++) {
        mortise_hold hold;
        pthread_barrier_wait(racer->start);
        int error = mortise_adopt(lock, racer->token, &hold);
        check(error == MORTISE_OK || error == MORTISE_ENOTHELD);
        racer->won += error == MORTISE_OK;
        pthread_barrier_wait(racer->end);
        if (error == MORTISE_OK)
            api_release(hold);
    }
    api_close(client);
    return NULL;
}

static void test_c11_one_of_many_adopters_succeeds(void **state)
{
    (void)state;
    enum { RACERS = 3 };
    char token[MORTISE_TOKEN_SIZE];
    pthread_barrier_t start, end;
    pthread_t threads[RACERS];
    struct racer racers[RACERS];
    mortise_client *client = api_open(0);
    mortise_lock *lock = api_lock(client, "detach/race");
    int won = 0;
    pthread_barrier_init(&start, NULL, RACERS + 1);
    pthread_barrier_init(&end, NULL, RACERS + 1);
    for (int i = 0; i < RACERS; i++) {
        racers[i] = (struct racer){.start = &start, .end = &end, .token = token};
        threads[i] = api_thread(adopt_at_once, &racers[i]);
    }
    for (int i = 0; i < RACES; i++) {
        check(mortise_detach(api_acquire(lock), token) == MORTISE_OK);
        pthread_barrier_wait(&start);
        pthread_barrier_wait(&end);
    }
    for (int i = 0; i < RACERS; i++) {
        api_join(threads[i]);
        won += racers[i].won;
    }
    assert_int_equal(won, RACES);
    api_close(client);
}

static void test_c11_texts_that_are_no_tokens_are_refused(void **state)
{
    (void)state;
    const char *const bad[] = {"",
                               "1",
                               "0123456789abcdef0123456789abcdef",
                               "0123456789abcdef0123456789abcdef-",
                               "0123456789abcdef0123456789abcdef--1",
                               "0123456789abcdef0123456789abcdef- 1",
                               "0123456789abcdef0123456789abcdef-1x",
                               "0123456789abcdef0123456789abcdeg-1",
                               "00000000000000000000000000000000-1",
                               "0123456789abcdef0123456789abcdef-99999999999999999999"};
    mortise_client *client = api_open(0);
    mortise_lock *lock = api_lock(client, "detach/4");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(try_adopt(lock, bad[i]), MORTISE_EINVALID);
    mortise_hold hold = api_acquire(lock), again = api_acquire(lock);
    assert_int_equal(mortise_detach(hold, no_token), MORTISE_EINVALID); /* held twice */
    api_release(again);
    assert_int_equal(mortise_detach(hold, NULL), MORTISE_EINVALID);
    assert_int_equal(mortise_detach((mortise_hold){NULL, 0}, no_token), MORTISE_ENOTHELD);
    assert_true(mortise_is_held(hold)); /* nothing was lost by all that */
    assert_int_equal(try_adopt(lock, "0123456789abcdef0123456789abcdef-1"), MORTISE_ENOTHELD);
    api_release(hold);
    api_close(client);
}

static void test_c11_only_a_handle_of_the_same_kind_adopts(void **state)
{
    (void)state;
    char token[MORTISE_TOKEN_SIZE];
    mortise_lock *read, *write, *other_read, *other_write;
    mortise_client *client = api_open(0), *other = api_open(0);
    check(mortise_read_write_new(client, "detach/5", NULL, &read, &write) == MORTISE_OK);
    check(mortise_read_write_new(other, "detach/5", NULL, &other_read, &other_write) == MORTISE_OK);
    assert_int_equal(mortise_detach(api_acquire(write), token), MORTISE_OK);
    assert_int_equal(try_adopt(other_read, token), MORTISE_EMISMATCH);
    api_release(adopt(other_write, token));
    assert_int_equal(mortise_detach(api_acquire(read), token), MORTISE_OK);
    api_release(api_acquire(other_read)); /* beside it */
    mortise_hold hold;
    assert_int_equal(mortise_try_acquire(other_write, &hold), MORTISE_EBUSY);
    api_release(adopt(other_read, token));
    api_release(api_acquire(write));

    mortise_lock *two, *three;
    const mortise_lock_options options = {.size = sizeof options, .permits = 2};
    check(mortise_semaphore_new(client, "detach/6", 3, &options, &two) == MORTISE_OK);
    check(mortise_semaphore_new(other, "detach/6", 3, NULL, &three) == MORTISE_OK);
    assert_int_equal(mortise_detach(api_acquire(two), token), MORTISE_OK);
    hold = api_acquire(three); /* the permit that is left */
    assert_int_equal(try_adopt(three, token), MORTISE_EMISMATCH);
    mortise_hold adopted = adopt(two, token);
    api_release(hold);
    api_release(adopted);
    api_close(client);
    api_close(other);
}

/* Nothing is lost where the store cannot do it. */
static void test_c11_detaching_a_claim_is_done_or_refused(void **state)
{
    (void)state;
    char token[MORTISE_TOKEN_SIZE];
    mortise_client *client = api_open(0);
    mortise_lock *lock;
    check(mortise_exclusive_new(client, "detach/claim", NULL, &lock) == MORTISE_OK);
    mortise_hold hold = api_acquire(lock);
    int error = mortise_detach(hold, token);
    if (error == MORTISE_ENOTSUPPORTED) {
        assert_true(mortise_is_held(hold));
        assert_int_equal(try_adopt(lock, token), MORTISE_ENOTSUPPORTED);
        assert_int_equal(mortise_verify(hold, 10000), MORTISE_OK);
    } else {
        assert_int_equal(error, MORTISE_OK);
        hold = adopt(lock, token);
    }
    api_release(hold);
    api_close(client);
}

static int count_detached(void *argument, const mortise_entry *entry)
{
    *(int *)argument += entry->detached && entry->place == 0;
    return 0;
}

static void test_c11_an_operator_breaks_a_detached_lock(void **state)
{
    (void)state;
    char token[MORTISE_TOKEN_SIZE];
    mortise_client *client = api_open(0), *operator= api_open(0);
    mortise_lock *lock = api_lock(client, "detach/7");
    mortise_hold hold = api_acquire(lock);
    uint64_t fence = mortise_hold_fence(hold);
    int detached = 0;
    check(mortise_list(operator, "detach/7", count_detached, &detached) == MORTISE_OK);
    assert_int_equal(detached, 0);
    assert_int_equal(mortise_detach(hold, token), MORTISE_OK);
    check(mortise_list(operator, "detach/7", count_detached, &detached) == MORTISE_OK);
    assert_int_equal(detached, 1);
    assert_int_equal(mortise_break(operator, "detach/7", fence), MORTISE_OK);
    api_release(api_acquire(lock));
    assert_int_equal(try_adopt(lock, token), MORTISE_ENOTHELD);
    api_close(client);
    api_close(operator);
}

static void test_c11_an_adopter_is_served_before_waiting_threads(void **state)
{
    (void)state;
    char token[MORTISE_TOKEN_SIZE];
    mortise_client *client = api_open(0), *other = api_open(0);
    mortise_lock *lock = api_lock(client, "detach/8"), *others = api_lock(other, "detach/8");
    api_release(api_acquire(others)); /* it has a session from here on */
    assert_int_equal(mortise_detach(api_acquire(lock), token), MORTISE_OK);
    mortise_hold waiting;
    assert_int_equal(mortise_acquire_for(others, 50, &waiting), MORTISE_ETIMEOUT);
    mortise_hold hold = adopt(others, token);
    int fd = mortise_lost_fd(hold);
    assert_true(fd >= 0);
    assert_int_equal(mortise_detach(hold, token), MORTISE_OK); /* is no loss */
    assert_int_equal(mortise_acquire_for(others, 50, &waiting), MORTISE_ETIMEOUT);
    hold = adopt(lock, token);
    api_release(hold);
    api_release(api_acquire(others));
    api_close(client);
    api_close(other);
}

static void test_c11_an_adopted_lock_goes_with_its_client(void **state)
{
    (void)state;
    char token[MORTISE_TOKEN_SIZE];
    mortise_client *keeper = api_open(0), *client = api_open(0);
    assert_int_equal(mortise_detach(api_acquire(api_lock(keeper, "detach/9")), token), MORTISE_OK);
    adopt(api_lock(client, "detach/9"), token);
    api_close(client);
    assert_false(taken("detach/9"));
    assert_int_equal(try_adopt(api_lock(keeper, "detach/9"), token), MORTISE_ENOTHELD);
    api_close(keeper);
}

struct inside {
    mortise_lock *lock;
    mortise_hold hold;
    _Atomic int done;
};

static void inside(void *argument, int error, mortise_hold hold)
{
    struct inside *inside = argument;
    char token[MORTISE_TOKEN_SIZE];
    check(error == MORTISE_OK);
    check(mortise_detach(hold, token) == MORTISE_EDEADLOCK);
    check(try_adopt(inside->lock, "0123456789abcdef0123456789abcdef-1") == MORTISE_EDEADLOCK);
    inside->hold = hold;
    inside->done = 1;
}

static void test_c11_a_callback_neither_detaches_nor_adopts(void **state)
{
    (void)state;
    mortise_client *client = api_open(0);
    struct inside argument = {.lock = api_lock(client, "detach/10")};
    check(mortise_acquire_async(argument.lock, mortise_now_ns() + 10000 * MS_IN_NS, inside,
                                &argument, NULL) == MORTISE_OK);
    while (!argument.done)
        api_sleep_ms(1);
    api_release(argument.hold);
    api_close(client);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_c11_a_detached_lock_outlives_its_client),
        cmocka_unit_test(test_c11_a_detached_lock_outlives_its_process),
        cmocka_unit_test(test_c11_a_token_is_used_up),
        cmocka_unit_test(test_c11_one_of_many_adopters_succeeds),
        cmocka_unit_test(test_c11_texts_that_are_no_tokens_are_refused),
        cmocka_unit_test(test_c11_only_a_handle_of_the_same_kind_adopts),
        cmocka_unit_test(test_c11_detaching_a_claim_is_done_or_refused),
        cmocka_unit_test(test_c11_an_operator_breaks_a_detached_lock),
        cmocka_unit_test(test_c11_an_adopter_is_served_before_waiting_threads),
        cmocka_unit_test(test_c11_an_adopted_lock_goes_with_its_client),
        cmocka_unit_test(test_c11_a_callback_neither_detaches_nor_adopts),
    };
    int error = api_begin(argc, argv);
    return error ? error : api_end(cmocka_run_group_tests(tests, NULL, NULL));
}
