/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks with several holders: when any of them is killed, the next waiter is granted immediately,
 * also one that queued far behind. Immediately means by a notification: the recheck is a minute.
 */
#include "cmocka_all.h"
#include "core/rule.h"
#include "live/sqlite_place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG_ENOUGH (60 * MRT_SECOND)
#define ROUNDS 5
#define READERS (UINT64_C(1) << 31)

/* Waits for so much of a queue, says when it has it, and keeps it. */
static int hold(const char *uri, const char *what)
{
    struct port_client client;
    bool reads = strcmp(what, "reads") == 0, writes = strcmp(what, "writes") == 0;
    uint64_t capacity = reads || writes ? READERS : 3, weight = writes ? READERS : 1;
    const char *kind = reads || writes ? "read-write" : "semaphore";
    port_open_session(&client, uri);
    struct mrt_event view = port_append_weight(&client, "q", port_id(), kind, capacity, weight);
    if (!mrt_rule_grants(view.weight_ahead, weight, capacity))
        helper_say("waits");
    while (!mrt_rule_grants(view.weight_ahead, weight, capacity)) { /* no look but when told */
        assert_true(port_wait_told(&client, view.ticket, LONG_ENOUGH));
        view = port_refresh(&client, "q", &view);
        assert_int_equal(view.type, MRT_VIEW);
    }
    helper_say("holds");
    helper_sleep();
}

static int compare(const void *a, const void *b)
{
    mrt_time x = *(const mrt_time *)a, y = *(const mrt_time *)b;
    return (x > y) - (x < y);
}

static void print_times(const char *what, mrt_time *times, size_t count)
{
    qsort(times, count, sizeof times[0], compare);
    print_message("%s: killed to granted: median %.2f ms, longest %.2f ms of %zu\n", what,
                  (double)times[count / 2] / 1e6, (double)times[count - 1] / 1e6, count);
}

static void start(struct helper *helper, const struct place *place, const char *what,
                  const char *says)
{
    helper_start(helper, "hold", place->uri, what);
    helper_expect(helper, says);
}

static mrt_time kill_for(struct helper *victim, struct helper *next)
{
    mrt_time began = mrt_time_now();
    helper_kill(victim);
    helper_expect(next, "holds");
    return mrt_time_now() - began;
}

/* --------------------------------------------------------------- semaphores */

static void test_b_f13_three_permits_six_processes_and_holders_killed(void **state)
{
    static const int order[] = {1, 0, 2}; /* any of those that hold */
    const struct place *place = *state;
    mrt_time times[ROUNDS * 3];
    for (int round = 0; round < ROUNDS; round++) {
        struct helper helpers[6];
        for (int i = 0; i < 6; i++)
            start(&helpers[i], place, "permit", i < 3 ? "holds" : "waits");
        for (int i = 0; i < 3; i++)
            times[round * 3 + i] = kill_for(&helpers[order[i]], &helpers[3 + i]);
        for (int i = 3; i < 6; i++)
            helper_kill(&helpers[i]);
    }
    print_times("three permits", times, ROUNDS * 3);
    check_integrity(place->path);
}

static void test_b_a_waiter_killed_in_between_leaves_the_next_watching(void **state)
{
    const struct place *place = *state;
    mrt_time times[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        struct helper holders[3], waiter, last;
        for (int i = 0; i < 3; i++)
            start(&holders[i], place, "permit", "holds");
        start(&waiter, place, "permit", "waits");
        start(&last, place, "permit", "waits");
        helper_kill(&waiter);
        rest(50 * MRT_MILLISECOND);
        times[round] = kill_for(&holders[0], &last);
        for (int i = 1; i < 3; i++)
            helper_kill(&holders[i]);
        helper_kill(&last);
    }
    print_times("behind a dead waiter", times, ROUNDS);
}

/* A waiter that gives up and lives on is no death for anybody to see. */
static void test_b_a_waiter_that_gave_up_leaves_the_next_watching(void **state)
{
    const struct place *place = *state;
    mrt_time times[ROUNDS];
    struct port_client client;
    port_open_session(&client, place->uri);
    for (int round = 0; round < ROUNDS; round++) {
        struct helper holder, between, last;
        start(&holder, place, "writes", "holds");
        start(&between, place, "writes", "waits");
        struct mrt_event view =
            port_append_weight(&client, "q", port_id(), "read-write", READERS, READERS);
        start(&last, place, "writes", "waits");
        port_remove(&client, "q", view.ticket, view.fence); /* a waiter stays ahead */
        rest(50 * MRT_MILLISECOND);
        helper_kill(&between);
        rest(50 * MRT_MILLISECOND);
        times[round] = kill_for(&holder, &last);
        helper_kill(&last);
    }
    port_stop(&client);
    port_close(&client);
    print_times("behind one that gave up", times, ROUNDS);
}

/* --------------------------------------------------------------- read/write */

/* The readers came in when somebody else let them; the writer behind has to see each die. */
static void readers_killed(const struct place *place, bool lightens, mrt_time *took)
{
    struct port_client client;
    struct helper readers[2], writer;
    port_open_session(&client, place->uri);
    struct mrt_event held =
        port_append_weight(&client, "q", port_id(), "read-write", READERS, READERS);
    for (int i = 0; i < 2; i++)
        start(&readers[i], place, "reads", "waits");
    struct mrt_event read = port_append_weight(&client, "q", port_id(), "read-write", READERS, 1);
    start(&writer, place, "writes", "waits");
    if (lightens)
        port_lighten(&client, "q", &held, 1);
    else
        port_remove(&client, "q", held.ticket, held.fence);
    for (int i = 0; i < 2; i++)
        helper_expect(&readers[i], "holds");
    port_remove(&client, "q", read.ticket, read.fence); /* the one just ahead, in order */
    if (lightens)
        port_remove(&client, "q", held.ticket, held.fence);
    rest(50 * MRT_MILLISECOND);
    helper_kill(&readers[0]);
    *took = kill_for(&readers[1], &writer);
    helper_kill(&writer);
    port_stop(&client);
    port_close(&client);
}

static void test_b_d3_readers_killed_in_front_of_a_writer(void **state)
{
    mrt_time times[ROUNDS];
    for (int round = 0; round < ROUNDS; round++)
        readers_killed(*state, false, &times[round]);
    print_times("readers", times, ROUNDS);
}

static void test_b_e5_readers_that_came_in_behind_a_downgrade_killed(void **state)
{
    mrt_time times[ROUNDS];
    for (int round = 0; round < ROUNDS; round++)
        readers_killed(*state, true, &times[round]);
    print_times("readers behind a downgrade", times, ROUNDS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)

int main(int count, char **arguments)
{
    if (count >= 5 && strcmp(arguments[1], "child") == 0)
        return hold(arguments[3], arguments[4]);
    const struct CMUnitTest tests[] = {
        TEST(test_b_f13_three_permits_six_processes_and_holders_killed),
        TEST(test_b_a_waiter_killed_in_between_leaves_the_next_watching),
        TEST(test_b_a_waiter_that_gave_up_leaves_the_next_watching),
        TEST(test_b_d3_readers_killed_in_front_of_a_writer),
        TEST(test_b_e5_readers_that_came_in_behind_a_downgrade_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
