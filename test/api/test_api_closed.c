/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds of clients that were closed. A call on one answers as on a hold that was released, whatever
 * thread makes it and whatever client has the slot since; and no two holds are ever equal.
 */
#include "api_two.h"

#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 12

static void ignore_state(void *argument, mortise_hold hold, mortise_state state)
{
    (void)argument;
    (void)hold;
    (void)state;
}

static void ignore_revoke(void *argument, mortise_hold hold)
{
    (void)argument;
    (void)hold;
}

static int change(void *argument, mortise_cell *cell)
{
    (void)argument;
    (void)cell;
    return MORTISE_EINTERNAL; /* it is not called */
}

static void expect_no_change(mortise_hold hold)
{
    char token[MORTISE_TOKEN_SIZE];
    check(mortise_release(hold) == MORTISE_ENOTHELD);
    check(strcmp(mortise_error_detail(), "the client of this hold was closed") == 0);
    check(mortise_release_all(&hold, 1) == MORTISE_ENOTHELD);
    check(mortise_downgrade(hold) == MORTISE_ENOTHELD);
    check(mortise_detach(hold, token) == MORTISE_ENOTHELD);
    check(mortise_detach(hold, NULL) == MORTISE_ENOTHELD);
    check(mortise_on_lost(hold, ignore_state, NULL) == MORTISE_ENOTHELD);
    check(mortise_on_revoke(hold, ignore_revoke, NULL) == MORTISE_ENOTHELD);
    check(mortise_lost_fd(hold) == MORTISE_ENOTHELD);
    check(mortise_cell_cas_held(client, "closed", 0, "x", 1, hold, NULL) == MORTISE_ENOTHELD);
    check(mortise_cell_delete_held(client, "closed", 0, hold) == MORTISE_ENOTHELD);
    check(mortise_cell_update_held(client, "closed", change, NULL, hold, 0) == MORTISE_ENOTHELD);
}

static void expect_no_answer(mortise_hold hold)
{
    char node[MORTISE_NODE_SIZE];
    check(mortise_verify(hold, 0) == MORTISE_ENOTHELD);
    check(mortise_verify(hold, -1) == MORTISE_ENOTHELD);
    check(mortise_hold_node(hold, node, sizeof node) == MORTISE_ENOTHELD);
    check(mortise_hold_state(hold) == MORTISE_RELEASED);
    check(!mortise_is_held(hold));
    check(mortise_hold_fence(hold) == 0);
    check(mortise_hold_remaining_ms(hold) == 0);
    check(mortise_hold_count(hold) == 0);
    check(mortise_hold_owner(hold) == 0);
    check(mortise_hold_name(hold)[0] == '\0');
}

static void expect_released(mortise_hold hold)
{
    expect_no_change(hold);
    expect_no_answer(hold);
}

/* ------------------------------------------------------------- after the close */

static void test_u34_a_hold_of_a_closed_client_is_released(void **state)
{
    (void)state;
    mortise_client *closed = api_open(0);
    mortise_hold held = api_acquire(api_lock(closed, "closed/1"));
    mortise_hold before = api_acquire(api_lock(closed, "closed/2"));
    api_release(before);
    check(mortise_lost_fd(held) >= 0);
    check(mortise_on_lost(held, ignore_state, NULL) == MORTISE_OK);
    api_close(closed);
    expect_released(held);
    expect_released(held);
    expect_released(before);
    api_release(api_acquire(api_lock(client, "closed/1")));
}

static void test_u34_a_nested_hold_ends_with_its_client(void **state)
{
    (void)state;
    mortise_client *closed = api_open(0);
    mortise_lock *lock = api_lock(closed, "closed/nested");
    mortise_hold outer = api_acquire(lock), inner = api_acquire(lock);
    check(mortise_hold_count(inner) == 2);
    api_close(closed);
    expect_released(inner);
    expect_released(outer);
}

static void test_u34_holds_of_shared_locks_end_with_their_client(void **state)
{
    (void)state;
    mortise_client *closed = api_open(0);
    mortise_lock *semaphore, *exclusive, *read, *write;
    check(mortise_semaphore_new(closed, "closed/permits", 2, NULL, &semaphore) == MORTISE_OK);
    check(mortise_exclusive_new(closed, "closed/alone", NULL, &exclusive) == MORTISE_OK);
    check(mortise_read_write_new(closed, "closed/both", NULL, &read, &write) == MORTISE_OK);
    const mortise_hold holds[] = {api_acquire(semaphore), api_acquire(semaphore),
                                  api_acquire(exclusive), api_acquire(write), api_acquire(read)};
    api_close(closed);
    check(mortise_release_all(holds, 5) == MORTISE_ENOTHELD);
    for (size_t i = 0; i < 5; i++)
        expect_released(holds[i]);
}

static void test_u34_the_hold_of_a_leader_ends_with_its_client(void **state)
{
    (void)state;
    mortise_client *closed = api_open(0);
    mortise_election *election;
    mortise_hold hold = {NULL, 0};
    int error = mortise_election_new(closed, "closed/election", NULL, &election);
    if (error == MORTISE_OK) {
        check(mortise_election_campaign(election, 20000) == MORTISE_OK);
        check(mortise_election_hold(election, &hold) == MORTISE_OK);
    }
    api_close(closed);
    if (error == MORTISE_ENOTSUPPORTED)
        skip();
    check(error == MORTISE_OK);
    expect_released(hold);
}

/* The slots of the same list belong to an open client, a closed one and nobody. */
static void test_u34_a_release_of_all_releases_those_of_open_clients(void **state)
{
    (void)state;
    mortise_client *closed = api_open(0);
    mortise_hold holds[] = {api_acquire(api_lock(client, "closed/a")),
                            api_acquire(api_lock(closed, "closed/b")),
                            {NULL, 0},
                            api_acquire(api_lock(client, "closed/c")),
                            api_acquire(api_lock(client, "closed/d"))};
    api_close(closed);
    check(mortise_release_all(holds, 5) == MORTISE_ENOTHELD);
    for (size_t i = 0; i < 5; i++)
        check(mortise_hold_state(holds[i]) == MORTISE_RELEASED);
}

/* ---------------------------------------------------------- the slot used again */

static bool is_equal(mortise_hold a, mortise_hold b)
{
    return a.slot == b.slot && a.generation == b.generation;
}

static void test_u34_the_next_client_has_the_slot_and_another_hold(void **state)
{
    (void)state;
    mortise_client *first = api_open(0);
    mortise_hold stale = api_acquire(api_lock(first, "closed/slot"));
    api_close(first);
    mortise_client *second = api_open(0);
    mortise_hold hold = api_acquire(api_lock(second, "closed/slot"));
    assert_ptr_equal(hold.slot, stale.slot);
    assert_true(hold.generation > stale.generation);
    expect_released(stale);
    assert_true(mortise_is_held(hold));
    assert_int_equal(mortise_hold_count(hold), 1);
    api_release(hold);
    api_close(second);
    expect_released(stale);
    expect_released(hold);
}

/* A slot is used for ever, and gives each hold another generation. */
static void test_u34_no_two_holds_are_equal(void **state)
{
    (void)state;
    mortise_hold seen[2 * ROUNDS];
    size_t count = 0;
    for (int round = 0; round < ROUNDS; round++) {
        mortise_client *closed = api_open(0);
        mortise_lock *lock = api_lock(closed, "closed/equal");
        for (int i = 0; i < 2; i++) {
            mortise_hold hold = api_acquire(lock);
            assert_ptr_equal(hold.slot, count ? seen[0].slot : hold.slot);
            for (size_t at = 0; at < count; at++)
                assert_false(is_equal(hold, seen[at]));
            seen[count++] = hold;
            if (i == 0)
                api_release(hold);
        }
        api_close(closed);
    }
    for (size_t i = 0; i < count; i++)
        expect_released(seen[i]);
}

/* ------------------------------------------------------------------- threads */

static void *expect_released_there(void *hold)
{
    expect_released(*(mortise_hold *)hold);
    return NULL;
}

static void *acquire_there(void *lock)
{
    mortise_hold *hold = malloc(sizeof *hold);
    check(hold && mortise_acquire(lock, hold) == MORTISE_OK);
    return hold;
}

static void test_u34_any_thread_may_release_after_the_close(void **state)
{
    (void)state;
    void *result;
    mortise_client *closed = api_open(0);
    mortise_hold mine = api_acquire(api_lock(closed, "closed/mine"));
    pthread_t thread = api_thread(acquire_there, api_lock(closed, "closed/theirs"));
    check(pthread_join(thread, &result) == 0);
    mortise_hold theirs = *(mortise_hold *)result;
    free(result);
    check(mortise_release(theirs) == MORTISE_ENOTOWNER);
    api_close(closed);
    api_join(api_thread(expect_released_there, &mine));
    expect_released(theirs);
}

struct stale {
    mortise_hold hold;
    _Atomic bool stop;
};

static void *use_stale(void *argument)
{
    struct stale *stale = argument;
    while (!atomic_load(&stale->stop))
        expect_no_answer(stale->hold);
    return NULL;
}

/* Other clients open, take the slot and close meanwhile: nothing of theirs is touched. */
static void test_u34_a_stale_hold_touches_no_other_client(void **state)
{
    (void)state;
    mortise_client *closed = api_open(0);
    struct stale stale = {.hold = api_acquire(api_lock(closed, "closed/stale"))};
    api_close(closed);
    pthread_t threads[] = {api_thread(use_stale, &stale), api_thread(use_stale, &stale)};
    for (int round = 0; round < ROUNDS; round++) {
        closed = api_open(0);
        mortise_hold hold = api_acquire(api_lock(closed, "closed/stale"));
        assert_ptr_equal(hold.slot, stale.hold.slot);
        api_close(closed);
    }
    atomic_store(&stale.stop, true);
    api_join(threads[0]);
    api_join(threads[1]);
}

static void *open_and_close(void *argument)
{
    const char *name = argument;
    for (int round = 0; round < ROUNDS; round++) {
        char own[64];
        mortise_hold holds[3];
        mortise_client *closed = api_open(0);
        for (int i = 0; i < 3; i++) {
            snprintf(own, sizeof own, "%s/%d", name, i);
            holds[i] = api_acquire(api_lock(closed, own));
        }
        for (int i = 0; i < 3; i++)
            check(mortise_is_held(holds[i]));
        api_close(closed);
        for (int i = 0; i < 3; i++)
            expect_released(holds[i]);
    }
    return NULL;
}

static void test_u34_clients_are_closed_in_many_threads(void **state)
{
    (void)state;
    static char names[][16] = {"closed/thread1", "closed/thread2", "closed/thread3"};
    pthread_t threads[3];
    for (size_t i = 0; i < 3; i++)
        threads[i] = api_thread(open_and_close, names[i]);
    for (size_t i = 0; i < 3; i++)
        api_join(threads[i]);
}

/* ---------------------------------------------------------------------- fork */

/* In a child: the parent's client, and a hold of one that was closed before the fork. */
static int close_in_child(mortise_client *parents, mortise_hold hold, mortise_hold stale)
{
    expect_no_answer(stale);
    check(mortise_release(hold) == MORTISE_EFORKED);
    check(mortise_close(parents) == MORTISE_OK);
    expect_no_answer(hold);
    check(mortise_release(hold) == MORTISE_ENOTHELD);
    return 0;
}

static void test_u34_a_child_closes_and_then_releases(void **state)
{
    (void)state;
    int status;
    mortise_client *closed = api_open(0);
    mortise_hold stale = api_acquire(api_lock(closed, "closed/fork"));
    api_release(api_acquire(api_lock(closed, "closed/fork2")));
    api_close(closed);
    closed = api_open(0);
    mortise_hold hold = api_acquire(api_lock(closed, "closed/fork"));
    pid_t child = fork();
    check(child >= 0);
    if (child == 0)
        _exit(close_in_child(closed, hold, stale));
    check(waitpid(child, &status, 0) == child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(mortise_is_held(hold));
    api_release(hold);
    api_close(closed);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_u34_a_hold_of_a_closed_client_is_released),
        cmocka_unit_test(test_u34_a_nested_hold_ends_with_its_client),
        cmocka_unit_test(test_u34_holds_of_shared_locks_end_with_their_client),
        cmocka_unit_test(test_u34_the_hold_of_a_leader_ends_with_its_client),
        cmocka_unit_test(test_u34_a_release_of_all_releases_those_of_open_clients),
        cmocka_unit_test(test_u34_the_next_client_has_the_slot_and_another_hold),
        cmocka_unit_test(test_u34_no_two_holds_are_equal),
        cmocka_unit_test(test_u34_any_thread_may_release_after_the_close),
        cmocka_unit_test(test_u34_a_stale_hold_touches_no_other_client),
        cmocka_unit_test(test_u34_clients_are_closed_in_many_threads),
        cmocka_unit_test(test_u34_a_child_closes_and_then_releases),
    };
    int error = api_begin(argc, argv);
    return error ? error : api_end(cmocka_run_group_tests(tests, open_clients, close_clients));
}
