/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract of the store port (core/store.h), clause by clause, on any store. The
 * letter in a test's name is the clause.
 *
 *   test_conform memory: | sqlite: | URI  [exclusive]
 *
 * See port_place for the argument. With "exclusive" the tests of mutexes are run with claims.
 * Continued in test_conform_values.c.
 */
#include "cmocka_all.h"
#include "conform/port_client.h"
#include "core/rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define READERS (UINT64_C(1) << 31)
#define PERMITS 3
#define LONG_ENOUGH (10 * MRT_SECOND)

static const char *uri;
static struct port_client first, second, third;

static bool granted(struct mrt_event view)
{
    assert_int_equal(view.type, MRT_VIEW);
    return mrt_rule_grants(view.weight_ahead, 1, 1);
}

static bool fits(struct mrt_event view, uint64_t weight, uint64_t capacity)
{
    assert_int_equal(view.type, MRT_VIEW);
    return mrt_rule_grants(view.weight_ahead, weight, capacity);
}

/* A ticket of a semaphore of three. */
static struct mrt_event permits(struct port_client *client, const char *queue, uint64_t weight)
{
    return port_append_weight(client, queue, port_id(), "semaphore", PERMITS, weight);
}

/* A ticket of a read/write lock. */
static struct mrt_event side(struct port_client *client, const char *queue, uint64_t weight)
{
    return port_append_weight(client, queue, port_id(), "read-write", READERS, weight);
}

/* For how long what is shown of a ticket that waits may be old (d): where several servers show it.
 */
static mrt_time late(void)
{
    return strncmp(uri, "zk:", 3) == 0 && strchr(uri, ',') ? LONG_ENOUGH : 0;
}

static void rest(mrt_time time)
{
    const struct timespec pause = {time / MRT_SECOND, time % MRT_SECOND};
    nanosleep(&pause, NULL);
}

static int open_three(void **state)
{
    (void)state;
    port_open_session(&first, uri);
    port_open_session(&second, uri);
    port_open_session(&third, uri);
    return 0;
}

static void end(struct port_client *client)
{
    if (!client->store)
        return;
    assert_int_equal(port_stop(client).type, MRT_STOPPED);
    port_close(client);
}

static int close_three(void **state)
{
    (void)state;
    end(&first);
    end(&second);
    end(&third);
    return 0;
}

/* -------------------------------------------------------------------- a */

static void test_a_first_ticket_has_nothing_ahead(void **state)
{
    (void)state;
    struct mrt_event view = port_append(&first, "a/1", port_id());
    assert_true(granted(view));
    assert_int_equal(view.weight_ahead, 0);
    assert_true(view.fence > 0);
    assert_true(view.fence_span >= 1);
    assert_false(view.others_behind);
}

static void test_a_second_ticket_is_behind_the_first(void **state)
{
    (void)state;
    assert_true(granted(port_append(&first, "a/2", port_id())));
    assert_false(granted(port_append(&second, "a/2", port_id())));
    assert_false(granted(port_append(&third, "a/2", port_id())));
}

static void test_a_two_tickets_of_one_session_are_two(void **state)
{
    (void)state;
    assert_true(granted(port_append(&first, "a/3", port_id())));
    assert_false(granted(port_append(&first, "a/3", port_id())));
}

static void test_a_queues_do_not_mix(void **state)
{
    (void)state;
    assert_true(granted(port_append(&first, "a/4", port_id())));
    assert_true(granted(port_append(&second, "a/4x", port_id())));
    assert_true(granted(port_append(&third, "a/4/x", port_id())));
}

static void test_a_weights_are_counted(void **state)
{
    (void)state;
    struct mrt_event one = port_append_weight(&first, "a/5", port_id(), "semaphore", 5, 2);
    struct mrt_event two = port_append_weight(&second, "a/5", port_id(), "semaphore", 5, 3);
    struct mrt_event three = port_append_weight(&third, "a/5", port_id(), "semaphore", 5, 1);
    assert_int_equal(one.weight_ahead, 0);
    assert_int_equal(two.weight_ahead, 2);
    assert_true(mrt_rule_grants(two.weight_ahead, 3, 5));
    assert_false(mrt_rule_grants(three.weight_ahead, 1, 5));
}

static void test_a_readers_share_and_a_writer_does_not(void **state)
{
    (void)state;
    struct mrt_event reader =
        port_append_weight(&first, "a/6", port_id(), "read-write", READERS, 1);
    struct mrt_event other =
        port_append_weight(&second, "a/6", port_id(), "read-write", READERS, 1);
    struct mrt_event writer =
        port_append_weight(&third, "a/6", port_id(), "read-write", READERS, READERS);
    struct mrt_event late = port_append_weight(&first, "a/6", port_id(), "read-write", READERS, 1);
    assert_true(mrt_rule_grants(reader.weight_ahead, 1, READERS));
    assert_true(mrt_rule_grants(other.weight_ahead, 1, READERS));
    assert_false(mrt_rule_grants(writer.weight_ahead, READERS, READERS));
    assert_false(mrt_rule_grants(late.weight_ahead, 1, READERS));
}

static void test_a_view_tells_of_others_behind(void **state)
{
    (void)state;
    struct mrt_event view = port_append(&first, "a/7", port_id());
    assert_false(port_refresh(&first, "a/7", &view).others_behind);
    struct mrt_event other = port_append(&second, "a/7", port_id());
    mrt_time until = mrt_time_now() + late();
    while (!port_refresh(&first, "a/7", &view).others_behind && mrt_time_now() < until)
        rest(5 * MRT_MILLISECOND);
    assert_true(port_refresh(&first, "a/7", &view).others_behind);
    assert_false(port_refresh(&second, "a/7", &other).others_behind);
}

static void test_a_f13_a_semaphore_of_three_with_mixed_weights(void **state)
{
    (void)state;
    struct mrt_event one = permits(&first, "a/8", 1);
    struct mrt_event two = permits(&second, "a/8", 1);
    struct mrt_event heavy = permits(&third, "a/8", 2);
    struct mrt_event light = permits(&first, "a/8", 1);
    assert_true(fits(one, 1, PERMITS));
    assert_true(fits(two, 1, PERMITS));
    assert_false(fits(heavy, 2, PERMITS));
    assert_false(fits(light, 1, PERMITS)); /* one is free, but not its turn */
    port_remove(&second, "a/8", two.ticket, two.fence);
    port_wait_granted(&third, "a/8", heavy, 2, PERMITS, LONG_ENOUGH);
    assert_false(fits(port_refresh(&first, "a/8", &light), 1, PERMITS));
    port_remove(&first, "a/8", one.ticket, one.fence);
    port_wait_granted(&first, "a/8", light, 1, PERMITS, LONG_ENOUGH);
    assert_true(fits(port_refresh(&third, "a/8", &heavy), 2, PERMITS));
}

static void test_a_f13_three_hold_and_the_fourth_does_not(void **state)
{
    (void)state;
    struct port_client *clients[] = {&first, &second, &third};
    for (int i = 0; i < 9; i++)
        assert_int_equal(fits(permits(clients[i % 3], "a/9", 1), 1, PERMITS), i < 3);
}

/* Runs a queue of readers and writers to its end; holders at the same time are a group. */
static void test_a_d6_r_r_r_w_r_r_w_runs_as_four_groups(void **state)
{
    static const char order[] = "RRRWRRW";
    static const int ends[] = {3, 4, 6, 7}; /* of the groups */
    enum { COUNT = sizeof order - 1 };
    (void)state;
    struct port_client *clients[] = {&first, &second, &third};
    struct mrt_event views[COUNT];
    for (int i = 0; i < COUNT; i++)
        views[i] = side(clients[i % 3], "a/10", order[i] == 'W' ? READERS : 1);
    int begin = 0;
    for (int group = 0; group < 4; group++) {
        for (int i = begin; i < COUNT; i++) {
            uint64_t weight = order[i] == 'W' ? READERS : 1;
            if (i < ends[group])
                port_wait_granted(clients[i % 3], "a/10", views[i], weight, READERS, LONG_ENOUGH);
            else
                assert_false(
                    fits(port_refresh(clients[i % 3], "a/10", &views[i]), weight, READERS));
        }
        for (; begin < ends[group]; begin++)
            port_remove(clients[begin % 3], "a/10", views[begin].ticket, views[begin].fence);
    }
    assert_int_equal(port_tickets(&first, "a/10"), 0);
}

/* -------------------------------------------------------------------- b */

static void test_b_tickets_of_a_dead_session_vanish(void **state)
{
    (void)state;
    assert_true(granted(port_append(&first, "b/1", port_id())));
    struct mrt_event view = port_append(&second, "b/1", port_id());
    port_close(&first);
    port_wait_granted(&second, "b/1", view, 1, 1, LONG_ENOUGH);
    assert_int_equal(port_tickets(&second, "b/1"), 1);
}

static void test_b_l7_a_waiter_is_granted_after_a_chain_of_deaths(void **state)
{
    (void)state;
    assert_true(granted(port_append(&first, "b/2", port_id())));
    assert_false(granted(port_append(&second, "b/2", port_id())));
    struct mrt_event view = port_append(&third, "b/2", port_id());
    port_close(&second); /* a waiter in between first, then the holder */
    rest(20 * MRT_MILLISECOND);
    assert_false(granted(port_refresh(&third, "b/2", &view)));
    port_close(&first);
    port_wait_granted(&third, "b/2", view, 1, 1, LONG_ENOUGH);
}

static void test_b_every_holder_ahead_is_watched(void **state)
{
    (void)state;
    port_append_weight(&first, "b/3", port_id(), "semaphore", 2, 1);
    port_append_weight(&second, "b/3", port_id(), "semaphore", 2, 1);
    struct mrt_event view = port_append_weight(&third, "b/3", port_id(), "semaphore", 2, 1);
    assert_false(mrt_rule_grants(view.weight_ahead, 1, 2));
    port_close(&first); /* not the one just ahead */
    port_wait_granted(&third, "b/3", view, 1, 2, LONG_ENOUGH);
}

static void test_b_a_live_session_keeps_its_tickets(void **state)
{
    (void)state;
    struct mrt_event held = port_append(&first, "b/4", port_id());
    struct mrt_event view = port_append(&second, "b/4", port_id());
    for (int i = 0; i < 20; i++) {
        rest(20 * MRT_MILLISECOND);
        view = port_refresh(&second, "b/4", &view);
        assert_false(granted(view));
    }
    assert_true(granted(port_refresh(&first, "b/4", &held)));
}

static void test_b_holders_that_came_in_later_are_watched_too(void **state)
{
    (void)state;
    struct mrt_event writer = side(&first, "b/5", READERS);
    struct mrt_event reader = side(&second, "b/5", 1);
    side(&first, "b/5", 1);
    struct mrt_event behind = side(&third, "b/5", READERS);
    port_remove(&first, "b/5", writer.ticket, writer.fence);
    port_wait_granted(&second, "b/5", reader, 1, READERS, LONG_ENOUGH);
    port_close(&second); /* not the one just ahead */
    port_close(&first);
    port_wait_granted(&third, "b/5", behind, READERS, READERS, LONG_ENOUGH);
}

/* -------------------------------------------------------------------- c */

static void test_c_fences_rise_and_do_not_overlap(void **state)
{
    (void)state;
    uint64_t last = 0;
    for (int i = 0; i < 200; i++) {
        struct port_client *client = i % 3 ? &first : &second;
        struct mrt_event view = port_append(client, "c/1", port_id());
        assert_true(view.fence > last);
        last = view.fence + view.fence_span - 1;
        assert_true(last >= view.fence && last <= (uint64_t)INT64_MAX);
        if (i % 2) /* the queue empties now and then */
            assert_int_equal(port_remove(client, "c/1", view.ticket, view.fence).type, MRT_REMOVED);
    }
}

static void test_c_fences_rise_across_a_restart(void **state)
{
    struct mrt_event view = port_append(&first, "c/2", port_id());
    if (!first.ops->capabilities.durable_fence)
        skip();
    uint64_t last = view.fence + view.fence_span - 1;
    close_three(state);
    open_three(state);
    view = port_append(&first, "c/2", port_id());
    assert_true(granted(view));
    assert_true(view.fence > last);
}

/* -------------------------------------------------------------------- d */

static void test_d_the_next_is_woken(void **state)
{
    (void)state;
    struct mrt_event held = port_append(&first, "d/1", port_id());
    struct mrt_event view = port_append(&second, "d/1", port_id());
    assert_false(port_wait_told(&second, view.ticket, 50 * MRT_MILLISECOND));
    port_remove(&first, "d/1", held.ticket, held.fence);
    if (first.ops->capabilities.notify)
        assert_true(port_wait_told(&second, view.ticket, view.recheck / 2));
    port_wait_granted(&second, "d/1", view, 1, 1, LONG_ENOUGH);
}

static void test_d_a_refresh_shows_it_without_a_wake(void **state)
{
    (void)state;
    struct mrt_event held = port_append(&first, "d/2", port_id());
    struct mrt_event view = port_append(&second, "d/2", port_id());
    port_remove(&first, "d/2", held.ticket, held.fence);
    rest(20 * MRT_MILLISECOND);
    port_wait_ahead(&second, "d/2", view, 0, late());
}

static void test_d_all_readers_behind_a_writer_are_woken(void **state)
{
    (void)state;
    struct mrt_event writer =
        port_append_weight(&first, "d/3", port_id(), "read-write", READERS, READERS);
    struct mrt_event one = port_append_weight(&second, "d/3", port_id(), "read-write", READERS, 1);
    struct mrt_event two = port_append_weight(&third, "d/3", port_id(), "read-write", READERS, 1);
    port_remove(&first, "d/3", writer.ticket, writer.fence);
    port_wait_granted(&second, "d/3", one, 1, READERS, LONG_ENOUGH);
    port_wait_granted(&third, "d/3", two, 1, READERS, LONG_ENOUGH);
}

static void test_d_a_waiter_that_gives_up_lets_others_in(void **state)
{
    (void)state;
    port_append_weight(&first, "d/4", port_id(), "read-write", READERS, 1);
    struct mrt_event writer =
        port_append_weight(&second, "d/4", port_id(), "read-write", READERS, READERS);
    struct mrt_event reader =
        port_append_weight(&third, "d/4", port_id(), "read-write", READERS, 1);
    assert_false(mrt_rule_grants(reader.weight_ahead, 1, READERS));
    port_remove(&second, "d/4", writer.ticket, writer.fence);
    port_wait_granted(&third, "d/4", reader, 1, READERS, LONG_ENOUGH);
}

static void test_d_the_end_of_a_session_wakes(void **state)
{
    (void)state;
    port_append(&first, "d/5", port_id());
    struct mrt_event view = port_append(&second, "d/5", port_id());
    assert_int_equal(port_stop(&first).type, MRT_STOPPED);
    port_wait_granted(&second, "d/5", view, 1, 1, LONG_ENOUGH);
}

static void test_d_a_session_wakes_its_own_ticket(void **state)
{
    (void)state;
    struct mrt_event held = port_append(&first, "d/6", port_id());
    struct mrt_event view = port_append(&first, "d/6", port_id());
    port_remove(&first, "d/6", held.ticket, held.fence);
    port_wait_granted(&first, "d/6", view, 1, 1, LONG_ENOUGH);
}

static void test_d_a_session_that_waits_in_many_queues_is_woken_for_each(void **state)
{
    enum { QUEUES = 40 };
    (void)state;
    struct mrt_event held[QUEUES], view[QUEUES];
    char queue[QUEUES][16];
    for (int i = 0; i < QUEUES; i++) {
        snprintf(queue[i], sizeof queue[i], "d/7/%d", i);
        held[i] = port_append(&first, queue[i], port_id());
        view[i] = port_append(&second, queue[i], port_id());
    }
    for (int i = 0; i < QUEUES; i++)
        port_remove(&first, queue[i], held[i].ticket, held[i].fence);
    for (int i = 0; i < QUEUES; i++)
        port_wait_granted(&second, queue[i], view[i], 1, 1, LONG_ENOUGH);
}

static void test_d_all_tickets_behind_a_heavy_one_are_woken(void **state)
{
    (void)state;
    struct mrt_event heavy = permits(&first, "d/8", PERMITS);
    struct mrt_event one = permits(&second, "d/8", 1), two = permits(&third, "d/8", 2);
    struct mrt_event last = permits(&second, "d/8", 1);
    port_remove(&first, "d/8", heavy.ticket, heavy.fence);
    if (first.ops->capabilities.notify)
        assert_true(port_wait_told(&second, one.ticket, one.recheck / 2));
    port_wait_granted(&second, "d/8", one, 1, PERMITS, LONG_ENOUGH);
    if (first.ops->capabilities.notify) /* at the latest now that the first one has looked */
        assert_true(port_wait_told(&third, two.ticket, two.recheck / 2));
    port_wait_granted(&third, "d/8", two, 2, PERMITS, LONG_ENOUGH);
    assert_false(fits(port_refresh(&second, "d/8", &last), 1, PERMITS));
}

/* -------------------------------------------------------------------- e */

static void test_e_commands_take_effect_in_order(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        struct mrt_command append = port_append_command(&first, "e/1");
        struct mrt_command removal = port_command(&first, MRT_REMOVE);
        removal.ticket = append.ticket;
        removal.queue = "e/1";
        mrt_time patience = mrt_time_now() + LONG_ENOUGH;
        assert_true(first.ops->submit(first.store, &append, patience));
        assert_int_equal(port_send(&first, &removal).type, MRT_REMOVED);
        first.count = 0;
    }
    assert_true(granted(port_append(&second, "e/1", port_id())));
}

/* -------------------------------------------------------------------- f */

static void test_f_remove_of_nothing_succeeds(void **state)
{
    (void)state;
    assert_int_equal(port_remove(&first, "f/1", port_id(), 0).type, MRT_REMOVED);
    assert_int_equal(port_remove(&first, "f/1", port_id(), 12345).type, MRT_REMOVED);
}

static void test_f_remove_twice_is_once(void **state)
{
    (void)state;
    struct mrt_event view = port_append(&first, "f/2", port_id());
    assert_int_equal(port_remove(&first, "f/2", view.ticket, view.fence).type, MRT_REMOVED);
    struct mrt_event other = port_append(&second, "f/2", port_id());
    assert_true(granted(other));
    assert_int_equal(port_remove(&first, "f/2", view.ticket, view.fence).type, MRT_REMOVED);
    assert_true(granted(port_refresh(&second, "f/2", &other)));
}

static void test_f_nobody_removes_anothers_ticket(void **state)
{
    (void)state;
    struct mrt_event view = port_append(&first, "f/3", port_id());
    port_remove(&second, "f/3", view.ticket, view.fence);
    port_remove(&second, "f/3", view.ticket, 0);
    port_remove(&second, "f/3", port_id(), view.fence);
    assert_true(granted(port_refresh(&first, "f/3", &view)));
    assert_int_equal(port_tickets(&first, "f/3"), 1);
}

static void test_f_no_other_session_of_its_client_removes_a_ticket(void **state)
{
    (void)state;
    struct mrt_id session = first.session;
    struct mrt_event view = port_append(&first, "f/5", port_id());
    first.session = port_id();
    assert_int_equal(port_start(&first).type, MRT_STARTED);
    port_remove(&first, "f/5", view.ticket, view.fence);
    assert_int_equal(port_tickets(&first, "f/5"), 1);
    port_stop(&first);
    assert_int_equal(port_tickets(&first, "f/5"), 1);
    first.session = session;
    assert_true(granted(port_refresh(&first, "f/5", &view)));
}

static void test_f_remove_without_the_fence(void **state)
{
    (void)state;
    struct mrt_event view = port_append(&first, "f/4", port_id());
    assert_int_equal(port_remove(&first, "f/4", view.ticket, 0).type, MRT_REMOVED);
    assert_int_equal(port_refresh(&first, "f/4", &view).type, MRT_GONE);
    assert_int_equal(port_tickets(&first, "f/4"), 0);
}

/* -------------------------------------------------------------------- g */

static void test_g_commands_of_an_ended_session_do_nothing(void **state)
{
    (void)state;
    struct mrt_event view = port_append(&first, "g/1", port_id());
    assert_int_equal(port_stop(&first).type, MRT_STOPPED);
    assert_int_equal(port_tickets(&second, "g/1"), 0);
    assert_int_not_equal(port_append(&first, "g/1", port_id()).type, MRT_VIEW);
    assert_int_not_equal(port_try(&first, "g/1", port_id()).type, MRT_VIEW);
    assert_int_not_equal(port_refresh(&first, "g/1", &view).type, MRT_VIEW);
    port_remove(&first, "g/1", view.ticket, view.fence);
    struct mrt_command renewal = port_command(&first, MRT_RENEW);
    assert_int_not_equal(port_send(&first, &renewal).type, MRT_RENEWED);
    assert_int_equal(port_stop(&first).type, MRT_STOPPED);
    assert_int_equal(port_tickets(&second, "g/1"), 0);
}

static void test_g_a_new_session_follows_an_ended_one(void **state)
{
    (void)state;
    port_stop(&first);
    first.session = port_id();
    assert_int_equal(port_start(&first).type, MRT_STARTED);
    struct mrt_command renewal = port_command(&first, MRT_RENEW);
    assert_int_equal(port_send(&first, &renewal).type, MRT_RENEWED);
    assert_true(granted(port_append(&first, "g/2", port_id())));
}

/* -------------------------------------------------------------------- h */

static void test_h_append_again_is_a_refresh(void **state)
{
    (void)state;
    struct mrt_id id = port_id();
    struct mrt_event view = port_append(&first, "h/1", id);
    struct mrt_event again = port_append(&first, "h/1", id);
    assert_true(granted(again));
    assert_int_equal(again.fence, view.fence);
    assert_int_equal(port_tickets(&first, "h/1"), 1);
    struct mrt_id other = port_id();
    view = port_append(&second, "h/1", other);
    again = port_append(&second, "h/1", other);
    assert_false(granted(again));
    assert_int_equal(again.fence, view.fence);
    assert_int_equal(port_tickets(&first, "h/1"), 2);
}

static void test_h_a_repeated_start_makes_no_second_session(void **state)
{
    (void)state;
    struct mrt_event view = port_append(&first, "h/2", port_id());
    assert_int_equal(port_start(&first).type, MRT_STARTED);
    assert_true(granted(port_refresh(&first, "h/2", &view)));
}

/* -------------------------------------------------------------------- i */

static void test_i_a_try_of_a_free_lock_is_granted(void **state)
{
    (void)state;
    struct mrt_event view = port_try(&first, "i/1", port_id());
    assert_true(granted(view));
    assert_int_equal(port_tickets(&second, "i/1"), 1);
}

static void test_i_try_leaves_nothing_behind(void **state)
{
    (void)state;
    struct mrt_event held = port_append(&first, "i/2", port_id());
    for (int i = 0; i < 5; i++)
        assert_int_equal(port_try(&second, "i/2", port_id()).type, MRT_BLOCKED);
    assert_int_equal(port_tickets(&first, "i/2"), 1);
    port_remove(&first, "i/2", held.ticket, held.fence);
    assert_true(granted(port_try(&second, "i/2", port_id())));
}

static struct mrt_event try_hopefully(struct port_client *client)
{
    struct mrt_command command = port_append_command(client, "i/5");
    command.try_only = command.expect_free = true;
    return port_send(client, &command);
}

static void test_i_a_hopeful_try_leaves_nothing_behind(void **state)
{
    (void)state;
    struct mrt_event held = try_hopefully(&first);
    assert_true(granted(held));
    for (int i = 0; i < 3; i++)
        assert_int_equal(try_hopefully(&second).type, MRT_BLOCKED);
    assert_int_equal(port_tickets(&first, "i/5"), 1);
    port_remove(&first, "i/5", held.ticket, held.fence);
    assert_true(granted(try_hopefully(&second)));
}

static void test_i_try_is_not_blocked_by_the_dead(void **state)
{
    (void)state;
    port_append(&first, "i/3", port_id());
    port_close(&first);
    mrt_time until = mrt_time_now() + LONG_ENOUGH;
    struct mrt_event event;
    do
        event = port_try(&second, "i/3", port_id());
    while (event.type == MRT_BLOCKED && mrt_time_now() < until);
    assert_true(granted(event));
}

static struct mrt_event append_at_most(struct port_client *client, uint64_t most, bool try_only)
{
    struct mrt_command command = port_append_command(client, "i/4");
    command.queue_max = most;
    command.try_only = try_only;
    return port_send(client, &command);
}

static void test_i_zk_34_a_full_queue_takes_no_more(void **state)
{
    (void)state;
    struct mrt_event held = append_at_most(&first, 2, false),
                     one = append_at_most(&second, 2, false);
    assert_true(granted(held));
    assert_int_equal(one.type, MRT_VIEW);
    assert_int_equal(append_at_most(&first, 2, false).type, MRT_VIEW);
    for (int i = 0; i < 3; i++) {
        struct mrt_event event = append_at_most(&second, 2, false);
        assert_int_equal(event.type, MRT_FAILED);
        assert_int_equal(event.error, MORTISE_EFULL);
    }
    assert_int_equal(append_at_most(&second, 2, true).type, MRT_BLOCKED);
    assert_int_equal(port_tickets(&first, "i/4"), 3);
    assert_int_equal(append_at_most(&second, 3, false).type, MRT_VIEW);
    port_remove(&first, "i/4", held.ticket, held.fence);
    assert_int_equal(append_at_most(&second, 2, false).error, MORTISE_EFULL); /* two wait yet */
    port_remove(&second, "i/4", one.ticket, one.fence);
    assert_int_equal(append_at_most(&second, 2, false).type, MRT_VIEW);
}

/* -------------------------------------------------------------------- j */

static void test_j_another_kind_or_capacity_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *kind;
        uint64_t capacity;
    } others[] = {{"mutex", 1}, {"semaphore", 1}, {"semaphore", 4}, {"read-write", READERS}};
    permits(&first, "j/1", 1);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct mrt_event event =
            port_append_weight(&second, "j/1", port_id(), others[i].kind, others[i].capacity, 1);
        assert_int_equal(event.type, MRT_FAILED);
        assert_int_equal(event.error, MORTISE_EMISMATCH);
        assert_non_null(strstr(second.detail, "semaphore of capacity 3"));
    }
    assert_int_equal(port_tickets(&first, "j/1"), 1);
}

static void test_j_an_empty_queue_takes_any_kind(void **state)
{
    (void)state;
    struct mrt_event view = port_append(&first, "j/2", port_id());
    port_remove(&first, "j/2", view.ticket, view.fence);
    view = port_append_weight(&second, "j/2", port_id(), "semaphore", 3, 2);
    assert_int_equal(view.type, MRT_VIEW);
}

/* -------------------------------------------------------------------- k */

static void test_k_lighten_changes_neither_place_nor_fence(void **state)
{
    (void)state;
    struct mrt_event held = side(&first, "k/1", READERS);
    struct mrt_event writer = side(&second, "k/1", READERS);
    struct mrt_event lighter = port_lighten(&first, "k/1", &held, 1);
    assert_true(fits(lighter, 1, READERS));
    assert_int_equal(lighter.fence, held.fence);
    assert_int_equal(lighter.fence_span, held.fence_span);
    assert_true(lighter.others_behind);
    writer = port_wait_ahead(&second, "k/1", writer, 1, late());
    assert_false(fits(writer, READERS, READERS)); /* it keeps its place in front */
    struct mrt_event again = port_refresh(&first, "k/1", &held);
    assert_int_equal(again.weight_ahead, 0);
    assert_int_equal(again.fence, held.fence);
    assert_int_equal(port_remove(&first, "k/1", held.ticket, held.fence).type, MRT_REMOVED);
    port_wait_granted(&second, "k/1", writer, READERS, READERS, LONG_ENOUGH);
}

static void test_k_a_waiter_that_fits_behind_a_lighter_ticket_is_woken(void **state)
{
    (void)state;
    struct mrt_event held = side(&first, "k/2", READERS);
    struct mrt_event one = side(&second, "k/2", 1), two = side(&third, "k/2", 1);
    struct mrt_event writer = side(&second, "k/2", READERS);
    port_lighten(&first, "k/2", &held, 1);
    if (first.ops->capabilities.notify) {
        assert_true(port_wait_told(&second, one.ticket, one.recheck / 2));
        assert_true(port_wait_told(&third, two.ticket, two.recheck / 2));
    }
    port_wait_granted(&second, "k/2", one, 1, READERS, LONG_ENOUGH);
    port_wait_granted(&third, "k/2", two, 1, READERS, LONG_ENOUGH);
    assert_false(fits(port_refresh(&second, "k/2", &writer), READERS, READERS));
}

static void test_k_permits_given_back_by_lighten_are_granted(void **state)
{
    (void)state;
    struct mrt_event held = permits(&first, "k/3", 3), two = permits(&second, "k/3", 2);
    assert_int_equal(port_lighten(&first, "k/3", &held, 2).type, MRT_VIEW);
    port_wait_ahead(&second, "k/3", two, 2, late());
    assert_int_equal(port_lighten(&first, "k/3", &held, 1).type, MRT_VIEW);
    port_wait_granted(&second, "k/3", two, 2, PERMITS, LONG_ENOUGH);
}

static void test_k_lighten_again_is_a_refresh(void **state)
{
    (void)state;
    struct mrt_event held = permits(&first, "k/4", 3), one = permits(&second, "k/4", 1);
    for (int i = 0; i < 2; i++) {
        struct mrt_event view = port_lighten(&first, "k/4", &held, 2);
        assert_true(fits(view, 2, PERMITS));
        assert_int_equal(view.fence, held.fence);
    }
    assert_true(fits(port_lighten(&first, "k/4", &held, 3), 2, PERMITS)); /* never heavier */
    port_wait_ahead(&second, "k/4", one, 2, late());
    assert_int_equal(port_tickets(&first, "k/4"), 2);
}

static void test_k_lighten_without_a_ticket_is_gone(void **state)
{
    (void)state;
    struct mrt_event held = permits(&first, "k/5", 3);
    port_remove(&first, "k/5", held.ticket, held.fence);
    assert_int_equal(port_lighten(&first, "k/5", &held, 1).type, MRT_GONE);
    const struct mrt_event unknown = {.ticket = port_id()};
    assert_int_equal(port_lighten(&first, "k/5", &unknown, 1).type, MRT_GONE);
    assert_int_equal(port_tickets(&first, "k/5"), 0);
}

static void test_k_nobody_lightens_anothers_ticket(void **state)
{
    (void)state;
    struct mrt_event held = permits(&first, "k/6", 3), two = permits(&second, "k/6", 2);
    assert_int_equal(port_lighten(&second, "k/6", &held, 1).type, MRT_GONE);
    assert_int_equal(port_refresh(&second, "k/6", &two).weight_ahead, 3);
}

static void test_k_no_other_session_of_its_client_lightens_a_ticket(void **state)
{
    (void)state;
    struct mrt_id session = first.session;
    struct mrt_event held = permits(&first, "k/7", 3), two = permits(&second, "k/7", 2);
    first.session = port_id();
    assert_int_equal(port_start(&first).type, MRT_STARTED);
    assert_int_equal(port_lighten(&first, "k/7", &held, 1).type, MRT_GONE);
    assert_int_equal(port_stop(&first).type, MRT_STOPPED);
    first.session = session;
    assert_int_equal(port_refresh(&second, "k/7", &two).weight_ahead, 3);
}

static void test_k_lighten_in_an_ended_session(void **state)
{
    (void)state;
    struct mrt_event held = permits(&first, "k/8", 3);
    assert_int_equal(port_stop(&first).type, MRT_STOPPED);
    assert_int_not_equal(port_lighten(&first, "k/8", &held, 1).type, MRT_VIEW);
    assert_int_equal(port_tickets(&second, "k/8"), 0);
}

static void test_k_a_lighter_ticket_leaves_with_its_new_weight(void **state)
{
    (void)state;
    struct mrt_event held = permits(&first, "k/9", 3), one = permits(&second, "k/9", 1);
    port_lighten(&first, "k/9", &held, 1);
    port_wait_granted(&second, "k/9", one, 1, PERMITS, LONG_ENOUGH);
    struct mrt_event all = permits(&third, "k/9", 3);
    assert_int_equal(all.weight_ahead, 2);
    port_close(&first); /* its death is that of a light one */
    port_remove(&second, "k/9", one.ticket, one.fence);
    port_wait_granted(&third, "k/9", all, 3, PERMITS, LONG_ENOUGH);
    assert_int_equal(port_tickets(&third, "k/9"), 1);
}

/* -------------------------------------------------------------------- l */

static void test_l_fences_rise_from_grant_to_grant(void **state)
{
    (void)state;
    uint64_t last = 0;
    for (int i = 0; i < 5; i++) {
        struct mrt_event held = port_append_weight(&first, "l/1", port_id(), "exclusive", 1, 1);
        struct mrt_event next = port_append_weight(&second, "l/1", port_id(), "exclusive", 1, 1);
        assert_true(granted(held));
        assert_false(granted(next));
        assert_true(held.fence > last);
        port_remove(&first, "l/1", held.ticket, held.fence);
        port_wait_granted(&second, "l/1", next, 1, 1, LONG_ENOUGH);
        next = port_refresh(&second, "l/1", &next);
        assert_true(next.fence > held.fence + held.fence_span - 1);
        last = next.fence + next.fence_span - 1;
        port_remove(&second, "l/1", next.ticket, next.fence);
    }
}

static void test_l_b2_one_of_many_waiters_for_a_claim_is_next(void **state)
{
    (void)state;
    struct port_client *clients[] = {&first, &second, &third};
    struct mrt_event held = port_append_weight(&first, "l/2", port_id(), "exclusive", 1, 1);
    struct mrt_event views[6];
    for (int i = 0; i < 6; i++) {
        views[i] = port_append_weight(clients[i % 3], "l/2", port_id(), "exclusive", 1, 1);
        assert_false(granted(views[i]));
    }
    port_remove(&first, "l/2", held.ticket, held.fence);
    int holders = 0;
    mrt_time until = mrt_time_now() + LONG_ENOUGH;
    while (holders == 0 && mrt_time_now() < until)
        for (int i = 0; i < 6; i++)
            holders += granted(port_refresh(clients[i % 3], "l/2", &views[i]));
    assert_int_equal(holders, 1);
    for (int i = 0; i < 6; i++)
        port_remove(clients[i % 3], "l/2", views[i].ticket, views[i].fence);
    assert_int_equal(port_tickets(&first, "l/2"), 0);
}

static void test_l_b6_a_claim_does_not_mix_with_a_mutex(void **state)
{
    (void)state;
    static const char *const kinds[][2] = {{"exclusive", "mutex"}, {"mutex", "exclusive"}};
    for (int i = 0; i < 2; i++) {
        const char *queue = i ? "l/3" : "l/4";
        struct mrt_event held = port_append_weight(&first, queue, port_id(), kinds[i][0], 1, 1);
        struct mrt_event other = port_append_weight(&second, queue, port_id(), kinds[i][1], 1, 1);
        assert_int_equal(other.type, MRT_FAILED);
        assert_int_equal(other.error, MORTISE_EMISMATCH);
        assert_int_equal(port_tickets(&first, queue), 1);
        port_remove(&first, queue, held.ticket, held.fence);
        other = port_append_weight(&second, queue, port_id(), kinds[i][1], 1, 1);
        assert_true(granted(other));
    }
}

/* ----------------------------------------------------------------- listing */

struct listing {
    int count, stop_at;
    struct {
        char name[64], kind[32], label[32];
        uint64_t fence;
        uint32_t place;
        int64_t since;
    } entries[16];
};

static int note_entry(void *argument, const struct mrt_listed *row)
{
    struct listing *listing = argument;
    assert_true(listing->count < 16);
    assert_int_equal(row->entry.size, sizeof row->entry);
    snprintf(listing->entries[listing->count].name, 64, "%s", row->entry.name);
    snprintf(listing->entries[listing->count].kind, 32, "%s", row->entry.kind);
    snprintf(listing->entries[listing->count].label, 32, "%s", row->entry.label);
    listing->entries[listing->count].fence = row->entry.fence;
    listing->entries[listing->count].place = row->entry.place;
    listing->entries[listing->count].since = row->entry.since_wall_ms;
    return ++listing->count == listing->stop_at;
}

static void test_list_shows_each_queue_in_order(void **state)
{
    (void)state;
    struct listing listing = {0};
    struct mrt_event one = port_append(&first, "list/b", port_id());
    struct mrt_event two = port_append(&second, "list/b", port_id());
    struct mrt_event three = port_append(&third, "list/b", port_id());
    port_append(&first, "list/a", port_id());
    port_append(&first, "lisu", port_id());
    assert_int_equal(first.ops->list(first.store, NULL, "list/", note_entry, &listing), 0);
    assert_int_equal(listing.count, 4);
    int b = strcmp(listing.entries[0].name, "list/b") == 0 ? 0 : 1; /* queues in any order */
    const uint64_t fences[] = {one.fence, two.fence, three.fence};
    for (int i = 0; i < 3; i++) {
        assert_string_equal(listing.entries[b + i].name, "list/b");
        assert_string_equal(listing.entries[b + i].kind, port_kind);
        assert_string_equal(listing.entries[b + i].label, "test");
        assert_int_equal(listing.entries[b + i].fence, fences[i]);
        assert_int_equal(listing.entries[b + i].place, i);
        assert_true(llabs(listing.entries[b + i].since - (int64_t)time(NULL) * 1000) < 60000);
    }
}

static void test_list_shows_one_name_alone_and_stops_when_told(void **state)
{
    (void)state;
    struct listing listing = {0};
    port_append(&first, "list/c", port_id());
    port_append(&first, "list/cc", port_id());
    assert_int_equal(first.ops->list(first.store, "list/c", "list/", note_entry, &listing), 0);
    assert_int_equal(listing.count, 1);
    listing = (struct listing){.stop_at = 1};
    assert_int_equal(first.ops->list(first.store, NULL, "list/c", note_entry, &listing), 0);
    assert_int_equal(listing.count, 1);
}

static int note_claim(void *argument, const struct mrt_listed *row)
{
    snprintf(argument, 32, "%s", row->claim);
    return 0;
}

/* In words that are the same wherever the ticket is: by these a quorum knows it. */
static void test_a_list_tells_whose_a_claim_is(void **state)
{
    (void)state;
    char told[32] = "", known[MRT_CLAIM_SIZE];
    struct mrt_id ticket = port_id();
    ticket.low = UINT64_C(0x8000000000f00d05);
    port_append_weight(&first, "list/e", ticket, "exclusive", 1, 1);
    mrt_claim_format(ticket, known);
    assert_string_equal(known, "000000f00d05");
    assert_int_equal(second.ops->list(second.store, "list/e", NULL, note_claim, told), 0);
    assert_string_equal(told, known);
}

static void test_list_places_by_weight(void **state)
{
    (void)state;
    struct listing listing = {0};
    port_append_weight(&first, "list/d", port_id(), "semaphore", 2, 1);
    port_append_weight(&second, "list/d", port_id(), "semaphore", 2, 1);
    port_append_weight(&third, "list/d", port_id(), "semaphore", 2, 1);
    first.ops->list(first.store, "list/d", NULL, note_entry, &listing);
    assert_int_equal(listing.count, 3);
    assert_int_equal(listing.entries[1].place, 0);
    assert_int_equal(listing.entries[2].place, 1);
}

static void test_list_does_not_show_the_dead(void **state)
{
    (void)state;
    port_append(&first, "list/e", port_id());
    port_append(&second, "list/e", port_id());
    port_close(&first);
    mrt_time until = mrt_time_now() + LONG_ENOUGH;
    while (port_tickets(&second, "list/e") != 1)
        assert_true(mrt_time_now() < until);
}

/* -------------------------------------------------------------------- main */

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_three, close_three)

static const struct CMUnitTest tests[] = {
    TEST(test_a_first_ticket_has_nothing_ahead),
    TEST(test_a_second_ticket_is_behind_the_first),
    TEST(test_a_two_tickets_of_one_session_are_two),
    TEST(test_a_queues_do_not_mix),
    TEST(test_a_weights_are_counted),
    TEST(test_a_readers_share_and_a_writer_does_not),
    TEST(test_a_view_tells_of_others_behind),
    TEST(test_a_f13_a_semaphore_of_three_with_mixed_weights),
    TEST(test_a_f13_three_hold_and_the_fourth_does_not),
    TEST(test_a_d6_r_r_r_w_r_r_w_runs_as_four_groups),
    TEST(test_b_tickets_of_a_dead_session_vanish),
    TEST(test_b_l7_a_waiter_is_granted_after_a_chain_of_deaths),
    TEST(test_b_every_holder_ahead_is_watched),
    TEST(test_b_a_live_session_keeps_its_tickets),
    TEST(test_b_holders_that_came_in_later_are_watched_too),
    TEST(test_c_fences_rise_and_do_not_overlap),
    TEST(test_c_fences_rise_across_a_restart),
    TEST(test_d_the_next_is_woken),
    TEST(test_d_a_refresh_shows_it_without_a_wake),
    TEST(test_d_all_readers_behind_a_writer_are_woken),
    TEST(test_d_a_waiter_that_gives_up_lets_others_in),
    TEST(test_d_the_end_of_a_session_wakes),
    TEST(test_d_a_session_wakes_its_own_ticket),
    TEST(test_d_a_session_that_waits_in_many_queues_is_woken_for_each),
    TEST(test_d_all_tickets_behind_a_heavy_one_are_woken),
    TEST(test_e_commands_take_effect_in_order),
    TEST(test_f_remove_of_nothing_succeeds),
    TEST(test_f_remove_twice_is_once),
    TEST(test_f_nobody_removes_anothers_ticket),
    TEST(test_f_no_other_session_of_its_client_removes_a_ticket),
    TEST(test_f_remove_without_the_fence),
    TEST(test_g_commands_of_an_ended_session_do_nothing),
    TEST(test_g_a_new_session_follows_an_ended_one),
    TEST(test_h_append_again_is_a_refresh),
    TEST(test_h_a_repeated_start_makes_no_second_session),
    TEST(test_i_a_try_of_a_free_lock_is_granted),
    TEST(test_i_try_leaves_nothing_behind),
    TEST(test_i_a_hopeful_try_leaves_nothing_behind),
    TEST(test_i_try_is_not_blocked_by_the_dead),
    TEST(test_i_zk_34_a_full_queue_takes_no_more),
    TEST(test_j_another_kind_or_capacity_is_refused),
    TEST(test_j_an_empty_queue_takes_any_kind),
    TEST(test_k_lighten_changes_neither_place_nor_fence),
    TEST(test_k_a_waiter_that_fits_behind_a_lighter_ticket_is_woken),
    TEST(test_k_permits_given_back_by_lighten_are_granted),
    TEST(test_k_lighten_again_is_a_refresh),
    TEST(test_k_lighten_without_a_ticket_is_gone),
    TEST(test_k_nobody_lightens_anothers_ticket),
    TEST(test_k_no_other_session_of_its_client_lightens_a_ticket),
    TEST(test_k_lighten_in_an_ended_session),
    TEST(test_k_a_lighter_ticket_leaves_with_its_new_weight),
    TEST(test_l_fences_rise_from_grant_to_grant),
    TEST(test_l_b2_one_of_many_waiters_for_a_claim_is_next),
    TEST(test_l_b6_a_claim_does_not_mix_with_a_mutex),
    TEST(test_list_shows_each_queue_in_order),
    TEST(test_list_shows_one_name_alone_and_stops_when_told),
    TEST(test_list_places_by_weight),
    TEST(test_a_list_tells_whose_a_claim_is),
    TEST(test_list_does_not_show_the_dead),
};

/* Not where a store has one session at a time, which is all that an engine asks for. */
static const char *const two_sessions[] = {
    "test_f_no_other_session_of_its_client_removes_a_ticket",
    "test_k_no_other_session_of_its_client_lightens_a_ticket",
};

/* The clauses that do not hold for claims where they are kept without an order. */
static const char *const not_unordered[] = {
    "test_a_first_ticket_has_nothing_ahead",   "test_a_view_tells_of_others_behind",
    "test_c_fences_rise_and_do_not_overlap",   "test_h_append_again_is_a_refresh",
    "test_i_zk_34_a_full_queue_takes_no_more", "test_list_shows_each_queue_in_order",
    "test_list_does_not_show_the_dead",
};

/* Where a claim is a key that other programs keep too, it is a lock by itself. */
static const char *const claims_apart[] = {"test_l_b6_a_claim_does_not_mix_with_a_mutex"};

/* And is listed by its whole name alone. */
static const char *const claims_unlisted[] = {"test_list_shows_one_name_alone_and_stops_when_told"};

/* Where a lock is the server's own and a connection its lease (?form=), or one object that names
   its holder (k8s:): a capacity of 1, and waiters that nobody sees. */
static const char *const need_queues[] = {
    "test_a_first_ticket_has_nothing_ahead",
    "test_a_weights_are_counted",
    "test_a_readers_share_and_a_writer_does_not",
    "test_a_view_tells_of_others_behind",
    "test_a_f13_a_semaphore_of_three_with_mixed_weights",
    "test_a_f13_three_hold_and_the_fourth_does_not",
    "test_a_d6_r_r_r_w_r_r_w_runs_as_four_groups",
    "test_b_every_holder_ahead_is_watched",
    "test_b_holders_that_came_in_later_are_watched_too",
    "test_c_fences_rise_and_do_not_overlap",
    "test_d_all_readers_behind_a_writer_are_woken",
    "test_d_a_waiter_that_gives_up_lets_others_in",
    "test_d_all_tickets_behind_a_heavy_one_are_woken",
    "test_h_append_again_is_a_refresh",
    "test_i_zk_34_a_full_queue_takes_no_more",
    "test_j_another_kind_or_capacity_is_refused",
    "test_j_an_empty_queue_takes_any_kind",
    "test_k_lighten_changes_neither_place_nor_fence",
    "test_k_a_waiter_that_fits_behind_a_lighter_ticket_is_woken",
    "test_k_permits_given_back_by_lighten_are_granted",
    "test_k_lighten_again_is_a_refresh",
    "test_k_nobody_lightens_anothers_ticket",
    "test_k_no_other_session_of_its_client_lightens_a_ticket",
    "test_k_a_lighter_ticket_leaves_with_its_new_weight",
    "test_list_shows_each_queue_in_order",
    "test_list_places_by_weight",
};

/* By a connection there are no fences either, no parts, and an order that only the server knows. */
static const char *const not_by_connection[] = {
    "test_c_fences_rise_across_a_restart",
    "test_d_a_refresh_shows_it_without_a_wake",
    "test_f_no_other_session_of_its_client_removes_a_ticket",
    "test_k_lighten_without_a_ticket_is_gone",
    "test_k_lighten_in_an_ended_session",
    "test_l_fences_rise_from_grant_to_grant",
    "test_l_b2_one_of_many_waiters_for_a_claim_is_next", /* the server shows a waiter that has left
                                                            for a second */
    "test_l_b6_a_claim_does_not_mix_with_a_mutex",
    "test_list_shows_one_name_alone_and_stops_when_told",
    "test_a_list_tells_whose_a_claim_is", /* the server does not show it */
};

#define AMONG(name, names) is_among(name, names, sizeof(names) / sizeof((names)[0]))

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static int run(const char *given, bool claims)
{
    struct CMUnitTest chosen[sizeof tests / sizeof tests[0]];
    bool zookeeper = strncmp(given, "zk:", 3) == 0,
         one_session = zookeeper || strncmp(given, "agent:", 6) == 0,
         apart = strncmp(given, "redis", 5) == 0, by_connection = strstr(given, "form="),
         leases = strncmp(given, "k8s:", 4) == 0;
    size_t kept = 0;
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        if (!(by_connection && AMONG(tests[i].name, not_by_connection)) &&
            !((by_connection || leases) && AMONG(tests[i].name, need_queues)) &&
            !(one_session && AMONG(tests[i].name, two_sessions)) &&
            !(apart && AMONG(tests[i].name, claims_apart)) &&
            !(apart && claims && AMONG(tests[i].name, claims_unlisted)) &&
            !((zookeeper || apart) && claims && AMONG(tests[i].name, not_unordered)))
            chosen[kept++] = tests[i];
    return _cmocka_run_group_tests(given, chosen, kept, NULL, NULL);
}

int main(int count, char **arguments)
{
    const char *given = count > 1 ? arguments[1] : "memory:";
    uri = port_place_open(given);
    if (!uri)
        return 1;
    bool claims = count > 2;
    if (claims)
        port_kind = arguments[2];
    int failed = run(given, claims);
    port_place_close();
    return failed != 0;
}
