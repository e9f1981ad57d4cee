/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks that several may hold: semaphores and read/write locks; and the mutexes that differ from
 * the reentrant one. Two clients take turns, so that the store decides.
 */
#include "api_fixture.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static mortise_client *clients[2];

static int open_clients(void **state)
{
    (void)state;
    clients[0] = api_open(0);
    clients[1] = api_open(0);
    return 0;
}

static int close_clients(void **state)
{
    (void)state;
    api_close(clients[0]);
    api_close(clients[1]);
    return 0;
}

static mortise_lock *semaphore(int client, const char *name, uint32_t permits, uint32_t each)
{
    const mortise_lock_options options = {.size = sizeof options, .permits = each};
    mortise_lock *lock = NULL;
    check(mortise_semaphore_new(clients[client], name, permits, &options, &lock) == MORTISE_OK);
    return lock;
}

struct sides {
    mortise_lock *read, *write;
};

static struct sides read_write(int client, const char *name, uint64_t owner)
{
    const mortise_lock_options options = {.size = sizeof options, .owner = owner};
    struct sides sides;
    check(mortise_read_write_new(clients[client], name, &options, &sides.read, &sides.write) ==
          MORTISE_OK);
    return sides;
}

static int try(mortise_lock *lock)
{
    mortise_hold hold;
    int error = mortise_try_acquire(lock, &hold);
    if (error == MORTISE_OK)
        api_release(hold);
    return error;
}

/* An acquire under way, which waits its turn in the store. */
struct waiting {
    _Atomic bool done;
    int error;
    mortise_hold hold;
};

static void waiting_ends(void *argument, int error, mortise_hold hold)
{
    struct waiting *waiting = argument;
    waiting->error = error;
    waiting->hold = hold;
    waiting->done = true;
}

/* Begins an acquire and waits until the store has `tickets` of the name. */
static void begin(struct waiting *waiting, mortise_lock *lock, int tickets)
{
    *waiting = (struct waiting){0};
    check(mortise_acquire_async(lock, INT64_MAX, waiting_ends, waiting, NULL) == MORTISE_OK);
    api_await_tickets(clients[0], mortise_lock_name(lock), tickets);
}

static void expect_held(struct waiting *waiting)
{
    for (int i = 0; i < 20000 && !waiting->done; i++)
        api_sleep_ms(1);
    check(waiting->done && waiting->error == MORTISE_OK);
}

static void expect_waiting(const struct waiting *waiting)
{
    api_sleep_ms(30);
    assert_false(waiting->done);
}

/* ------------------------------------------------------------- semaphores */

static void test_f13_as_many_hold_as_there_are_permits(void **state)
{
    (void)state;
    mortise_lock *locks[2] = {semaphore(0, "pool", 3, 0), semaphore(1, "pool", 3, 0)};
    mortise_hold first = api_acquire(locks[0]), second = api_acquire(locks[1]);
    mortise_hold third = api_acquire(locks[0]); /* nobody owns a permit: it does not nest */
    assert_int_equal(try(locks[0]), MORTISE_EBUSY);
    assert_int_equal(try(locks[1]), MORTISE_EBUSY);
    assert_true(mortise_hold_fence(first) < mortise_hold_fence(second));
    assert_true(mortise_hold_fence(second) < mortise_hold_fence(third));
    struct waiting waiting;
    begin(&waiting, locks[1], 4);
    expect_waiting(&waiting);
    api_release(second);
    expect_held(&waiting);
    api_release(waiting.hold);
    api_release(first);
    api_release(third);
    api_await_tickets(clients[0], "pool", 0);
}

static void test_a_waiter_for_many_permits_is_not_overtaken(void **state)
{
    (void)state;
    mortise_lock *one = semaphore(0, "wide", 3, 1), *two = semaphore(1, "wide", 3, 2);
    mortise_hold first = api_acquire(one), second = api_acquire(one);
    struct waiting both, single;
    begin(&both, two, 3);
    begin(&single, semaphore(0, "wide", 3, 1), 4);
    expect_waiting(&single); /* there is a permit, but not for a later waiter */
    api_release(first);
    expect_held(&both);
    expect_waiting(&single);
    api_release(both.hold);
    expect_held(&single);
    api_release(single.hold);
    api_release(second);
}

static void test_a_semaphore_of_another_size_names_both(void **state)
{
    (void)state;
    mortise_lock *lock = NULL, *three = semaphore(0, "sized", 3, 0);
    mortise_hold hold = api_acquire(three), none;
    assert_int_equal(mortise_semaphore_new(clients[0], "sized", 4, NULL, &lock), MORTISE_EMISMATCH);
    assert_non_null(strstr(mortise_error_detail(), "capacity 3"));
    assert_int_equal(mortise_try_acquire(semaphore(1, "sized", 4, 0), &none), MORTISE_EMISMATCH);
    assert_non_null(strstr(mortise_error_detail(), "3"));
    assert_non_null(strstr(mortise_error_detail(), "4"));
    assert_int_equal(mortise_mutex_new(clients[0], "sized", NULL, &lock), MORTISE_EMISMATCH);
    api_release(hold);
}

static void test_numbers_of_permits_out_of_range_are_refused(void **state)
{
    (void)state;
    mortise_lock_options options = {.size = sizeof options, .permits = 4};
    mortise_lock *lock = NULL;
    assert_int_equal(mortise_semaphore_new(clients[0], "n", 0, NULL, &lock), MORTISE_EINVALID);
    assert_int_equal(mortise_semaphore_new(clients[0], "n", 3, &options, &lock), MORTISE_EINVALID);
    options.size = offsetof(mortise_lock_options, permits); /* an older program: one permit */
    assert_int_equal(mortise_semaphore_new(clients[0], "n", 3, &options, &lock), MORTISE_OK);
    mortise_lock_free(lock);
    lock = NULL;
    options.size = sizeof options + 1;
    assert_int_equal(mortise_semaphore_new(clients[0], "n", 8, &options, &lock), MORTISE_EINVALID);
    options.size = sizeof options;
    options.flags = 1u << 20;
    assert_int_equal(mortise_semaphore_new(clients[0], "n", 8, &options, &lock), MORTISE_EINVALID);
    assert_null(lock);
}

static void test_anybody_may_release_a_permit(void **state)
{
    (void)state;
    mortise_hold hold = api_acquire(semaphore(0, "lent", 1, 0));
    assert_int_equal(mortise_hold_owner(hold), 0);
    assert_int_equal(mortise_downgrade(hold), MORTISE_EINVALID);
    api_release(hold);
    assert_int_equal(mortise_release(hold), MORTISE_ENOTHELD);
}

/* ------------------------------------------------------------- read/write locks */

static void test_b6_d2_d3_which_holds_of_a_read_write_lock_exclude_each_other(void **state)
{
    (void)state;
    struct sides own = read_write(0, "matrix", 1), other = read_write(1, "matrix", 2);
    mortise_hold read = api_acquire(own.read), same = api_acquire(other.read);
    assert_int_equal(try(other.write), MORTISE_EDEADLOCK); /* it reads itself */
    assert_int_equal(try(read_write(1, "matrix", 3).write), MORTISE_EBUSY);
    assert_int_equal(try(read_write(1, "matrix", 3).read), MORTISE_OK);
    api_release(read);
    api_release(same);
    mortise_hold write = api_acquire(own.write);
    assert_int_equal(try(other.read), MORTISE_EBUSY);
    assert_int_equal(try(other.write), MORTISE_EBUSY);
    api_release(write);
}

static void test_d6_d8_readers_and_writers_hold_in_groups_as_they_came(void **state)
{
    (void)state;
    static const char order[] = "RRRWRRW";
    enum { COUNT = sizeof order - 1 };
    static const int group[COUNT] = {0, 0, 0, 1, 2, 2, 3};
    struct waiting waiting[COUNT];
    for (int i = 0; i < COUNT; i++) {
        struct sides sides = read_write(i % 2, "groups", (uint64_t)i + 1);
        begin(&waiting[i], order[i] == 'R' ? sides.read : sides.write, i + 1);
    }
    for (int now = 0; now < 4; now++) {
        for (int i = 0; i < COUNT; i++)
            if (group[i] == now)
                expect_held(&waiting[i]);
            else if (group[i] > now)
                assert_false(waiting[i].done);
        for (int i = 0; i < COUNT; i++)
            if (group[i] == now)
                api_release(waiting[i].hold);
    }
    api_await_tickets(clients[0], "groups", 0);
}

static void test_e3_e4_a_writer_may_read_a_reader_not_write(void **state)
{
    (void)state;
    struct sides own = read_write(0, "both", 7);
    mortise_hold write = api_acquire(own.write), again = api_acquire(own.write);
    assert_int_equal(mortise_hold_count(again), 2);
    mortise_hold read = api_acquire(own.read), inner = api_acquire(own.read), none;
    assert_int_equal(mortise_hold_count(inner), 2);
    assert_int_equal(mortise_hold_fence(read), mortise_hold_fence(write));
    assert_int_equal(try(read_write(1, "both", 8).read), MORTISE_EBUSY);
    api_release(inner);
    api_release(read);
    api_release(again);
    api_release(write);
    read = api_acquire(own.read);
    assert_int_equal(mortise_acquire(own.write, &none), MORTISE_EDEADLOCK);
    api_release(read);
}

/* Write, read, stop writing: readers come in, the writer who queued behind does not. */
static void downgrade(const char *name, bool by_release)
{
    struct sides own = read_write(0, name, 1), other = read_write(1, name, 2);
    struct waiting reader, writer;
    mortise_hold write = api_acquire(own.write), read = {0};
    if (by_release)
        read = api_acquire(own.read);
    uint64_t fence = mortise_hold_fence(write);
    begin(&reader, other.read, 2);
    begin(&writer, read_write(1, name, 3).write, 3);
    assert_false(reader.done);
    if (by_release)
        api_release(write);
    else
        assert_int_equal(mortise_downgrade(read = write), MORTISE_OK);
    expect_held(&reader);
    assert_int_equal(mortise_verify(read, 5000), MORTISE_OK);
    assert_int_equal(mortise_hold_fence(read), fence);
    assert_int_equal(mortise_downgrade(read), MORTISE_EINVALID);
    api_release(reader.hold);
    expect_waiting(&writer);
    api_release(read);
    expect_held(&writer);
    assert_true(mortise_hold_fence(writer.hold) > fence);
    api_release(writer.hold);
}

static void test_e5_a_writer_that_also_reads_becomes_a_reader_by_its_release(void **state)
{
    (void)state;
    downgrade("down/release", true);
}

static void test_e5_a_writer_becomes_a_reader_by_a_downgrade(void **state)
{
    (void)state;
    downgrade("down/call", false);
    assert_int_equal(mortise_downgrade((mortise_hold){0}), MORTISE_ENOTHELD);
}

/* The second client with queue_max=1, until it is closed. */
static mortise_client *limit_second(void)
{
    char uri[512];
    mortise_client *usual = clients[1];
    snprintf(uri, sizeof uri, "%s%squeue_max=1", api_url, strchr(api_url, '?') ? "&" : "?");
    assert_int_equal(mortise_open(uri, NULL, &clients[1]), MORTISE_OK);
    return usual;
}

static void test_zk_34_a_reader_that_holds_does_not_count_as_waiting(void **state)
{
    (void)state;
    mortise_client *usual = limit_second();
    mortise_hold readers[3], none;
    for (uint64_t i = 0; i < 3; i++)
        readers[i] = api_acquire(read_write(1, "full", i + 1).read);
    struct waiting writer;
    begin(&writer, read_write(1, "full", 4).write, 4);
    struct sides late = read_write(1, "full", 5);
    assert_int_equal(mortise_acquire_for(late.write, 60000, &none), MORTISE_EFULL);
    assert_int_equal(mortise_acquire_for(late.read, 60000, &none), MORTISE_EFULL);
    assert_false(writer.done);
    for (int i = 0; i < 3; i++)
        api_release(readers[i]);
    expect_held(&writer);
    api_release(writer.hold);
    api_close(clients[1]);
    clients[1] = usual;
}

static void test_zk_34_f13_a_holder_of_permits_does_not_count_as_waiting(void **state)
{
    (void)state;
    mortise_client *usual = limit_second();
    mortise_lock *one = semaphore(1, "full/permits", 4, 1),
                 *two = semaphore(1, "full/permits", 4, 2);
    mortise_hold first = api_acquire(one), second = api_acquire(one), third = api_acquire(one),
                 none;
    struct waiting waiting;
    begin(&waiting, two, 4);
    assert_int_equal(mortise_acquire_for(one, 60000, &none), MORTISE_EFULL); /* though one fits */
    api_release(second);
    expect_held(&waiting);
    api_release(waiting.hold);
    api_release(first);
    api_release(third);
    api_close(clients[1]);
    clients[1] = usual;
}

/* ------------------------------------------------------------- other mutexes */

static void test_e2_a_semaphore_mutex_does_not_nest(void **state)
{
    (void)state;
    const mortise_lock_options patient = {.size = sizeof patient, .flags = MORTISE_WAIT_FOR_SELF};
    mortise_lock *lock, *waits;
    mortise_hold hold, none;
    assert_int_equal(mortise_semaphore_mutex_new(clients[0], "flat", NULL, &lock), MORTISE_OK);
    hold = api_acquire(lock);
    assert_int_equal(mortise_acquire(lock, &none), MORTISE_EDEADLOCK);
    api_release(hold);
    assert_int_equal(mortise_semaphore_mutex_new(clients[0], "flat", &patient, &waits), MORTISE_OK);
    hold = api_acquire(waits);
    assert_int_equal(mortise_acquire_for(waits, 50, &none), MORTISE_ETIMEOUT);
    api_release(hold);
    api_release(api_acquire(lock));
}

static void test_an_exclusive_lock_excludes_and_nests(void **state)
{
    (void)state;
    mortise_lock *locks[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(mortise_exclusive_new(clients[i], "alone", NULL, &locks[i]), MORTISE_OK);
    mortise_hold hold = api_acquire(locks[0]), again = api_acquire(locks[0]);
    assert_int_equal(mortise_hold_count(again), 2);
    assert_int_equal(try(locks[1]), MORTISE_EBUSY);
    api_release(again);
    /* A waiter for a claim need not show in a list. */
    struct waiting waiting = {0};
    assert_int_equal(mortise_acquire_async(locks[1], INT64_MAX, waiting_ends, &waiting, NULL), 0);
    expect_waiting(&waiting);
    api_release(hold);
    expect_held(&waiting);
    api_release(waiting.hold);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f13_as_many_hold_as_there_are_permits),
        cmocka_unit_test(test_a_waiter_for_many_permits_is_not_overtaken),
        cmocka_unit_test(test_a_semaphore_of_another_size_names_both),
        cmocka_unit_test(test_numbers_of_permits_out_of_range_are_refused),
        cmocka_unit_test(test_anybody_may_release_a_permit),
        cmocka_unit_test(test_b6_d2_d3_which_holds_of_a_read_write_lock_exclude_each_other),
        cmocka_unit_test(test_d6_d8_readers_and_writers_hold_in_groups_as_they_came),
        cmocka_unit_test(test_e3_e4_a_writer_may_read_a_reader_not_write),
        cmocka_unit_test(test_e5_a_writer_that_also_reads_becomes_a_reader_by_its_release),
        cmocka_unit_test(test_e5_a_writer_becomes_a_reader_by_a_downgrade),
        cmocka_unit_test(test_zk_34_a_reader_that_holds_does_not_count_as_waiting),
        cmocka_unit_test(test_zk_34_f13_a_holder_of_permits_does_not_count_as_waiting),
        cmocka_unit_test(test_e2_a_semaphore_mutex_does_not_nest),
        cmocka_unit_test(test_an_exclusive_lock_excludes_and_nests),
    };
    int error = api_begin(argc, argv);
    if (error)
        return error;
    return api_end(cmocka_run_group_tests(tests, open_clients, close_clients));
}
