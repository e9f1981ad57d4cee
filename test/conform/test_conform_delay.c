/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tickets that a dying session leaves behind for a while: the clause (s) of the port. Requirement
 * GN-06.
 *
 *   test_conform_delay memory: | sqlite: | URI
 */
#include "cmocka_all.h"
#include "conform/port_two.h"
#include "core/recipe.h"
#include "core/rule.h"

#define LONG_ENOUGH (30 * MRT_SECOND)
#define SHORT (300 * MRT_MILLISECOND)
#define ENDLESS (20 * 60 * MRT_SECOND)

static struct mrt_event append_as(struct port_client *client, const char *queue, mrt_time delay,
                                  const char *kind, uint64_t capacity, uint64_t weight)
{
    struct mrt_command command = port_append_command(client, queue);
    command.kind = kind;
    command.capacity = capacity;
    command.weight = weight;
    command.delay = delay;
    struct mrt_event view = port_send(client, &command);
    assert_int_equal(view.type, MRT_VIEW);
    return view;
}

static struct mrt_event append(struct port_client *client, const char *queue, mrt_time delay)
{
    return append_as(client, queue, delay, port_kind, 1, 1);
}

/* As an engine that has lost its session says it. */
static void die(struct port_client *client)
{
    struct mrt_command command = port_command(client, MRT_STOP);
    command.died = true;
    assert_int_equal(port_send(client, &command).type, MRT_STOPPED);
}

static bool is_free(struct port_client *client, const char *queue)
{
    struct mrt_event view = port_try(client, queue, port_id());
    if (view.type == MRT_VIEW)
        port_remove(client, queue, view.ticket, view.fence);
    return view.type == MRT_VIEW;
}

static void test_s_gn06_the_next_is_granted_after_the_delay(void **state)
{
    (void)state;
    struct mrt_event held = append(&first, "s/1", SHORT);
    struct mrt_event waiting = port_append(&second, "s/1", port_id());
    assert_true(waiting.weight_ahead > 0);
    mrt_time died = mrt_time_now();
    port_close(&first); /* no STOP */
    port_wait_granted(&second, "s/1", waiting, 1, 1, LONG_ENOUGH);
    assert_true(mrt_time_now() - died >= SHORT);
    waiting = port_refresh(&second, "s/1", &waiting);
    assert_true(waiting.fence >= held.fence + held.fence_span);
    assert_int_equal(port_tickets(&second, "s/1"), 1); /* nothing is left of it */
    port_open_session(&first, uri);
}

static void test_s_gn06_a_lost_session_is_a_death(void **state)
{
    (void)state;
    append(&first, "s/2", SHORT);
    mrt_time died = mrt_time_now();
    die(&first);
    port_start(&first);
    struct mrt_event waiting = port_append(&first, "s/2", port_id()); /* he waits too */
    assert_true(waiting.weight_ahead > 0);
    port_wait_granted(&first, "s/2", waiting, 1, 1, LONG_ENOUGH);
    assert_true(mrt_time_now() - died >= SHORT);
}

static void test_s_a_release_or_a_close_has_no_delay(void **state)
{
    (void)state;
    struct mrt_event held = append(&first, "s/3", ENDLESS);
    port_remove(&first, "s/3", held.ticket, held.fence);
    assert_true(is_free(&second, "s/3"));
    append(&first, "s/3", ENDLESS);
    struct mrt_event waiting = port_append(&second, "s/3", port_id());
    port_stop(&first);
    port_wait_granted(&second, "s/3", waiting, 1, 1, LONG_ENOUGH);
}

static void test_s_a_dead_holder_without_a_delay_frees_the_lock_immediately(void **state)
{
    (void)state;
    append(&first, "s/4", 0);
    die(&first);
    assert_true(is_free(&second, "s/4"));
}

static void test_s_a_waiter_that_dies_leaves_no_delay(void **state)
{
    (void)state;
    struct mrt_event held = append(&second, "s/5", 0);
    append(&first, "s/5", ENDLESS);
    die(&first);
    assert_int_equal(port_tickets(&second, "s/5"), 1);
    port_remove(&second, "s/5", held.ticket, held.fence);
    assert_true(is_free(&second, "s/5"));
}

struct left {
    int count, detached;
    int64_t delay_ms;
    uint64_t fence;
    uint32_t place;
};

static int note_left(void *argument, const struct mrt_listed *row)
{
    struct left *left = argument;
    left->count++;
    left->detached += row->entry.detached;
    left->delay_ms = row->entry.delay_ms;
    left->fence = row->entry.fence;
    left->place = row->entry.place;
    return 0;
}

static void test_s_gn06_an_operator_sees_and_breaks_a_delayed_ticket(void **state)
{
    (void)state;
    struct left left = {0};
    struct mrt_event held = append(&first, "s/6", ENDLESS);
    assert_int_equal(second.ops->list(second.store, "s/6", NULL, note_left, &left), 0);
    assert_int_equal(left.delay_ms, 0); /* somebody has it */
    die(&first);
    struct mrt_event waiting = port_append(&second, "s/6", port_id());
    assert_true(waiting.weight_ahead > 0);
    port_remove(&second, "s/6", waiting.ticket, waiting.fence);
    left = (struct left){0};
    assert_int_equal(second.ops->list(second.store, "s/6", NULL, note_left, &left), 0);
    assert_int_equal(left.count, 1);
    assert_int_equal(left.detached, 0);
    assert_int_equal(left.place, 0);
    assert_in_range(left.delay_ms, 1, ENDLESS / MRT_MILLISECOND);
    assert_int_equal(left.fence, held.fence);
    waiting = port_append(&second, "s/6", port_id());
    assert_int_equal(second.ops->break_ticket(second.store, "s/6", held.fence), MORTISE_OK);
    port_wait_granted(&second, "s/6", waiting, 1, 1, LONG_ENOUGH);
    port_start(&first);
}

static void test_s_a_dead_session_does_not_find_its_delayed_ticket(void **state)
{
    (void)state;
    struct mrt_event held = append(&first, "s/7", ENDLESS);
    die(&first);
    port_start(&first);
    assert_int_equal(port_refresh(&first, "s/7", &held).type, MRT_GONE);
    assert_int_equal(port_remove(&first, "s/7", held.ticket, held.fence).type, MRT_REMOVED);
    assert_int_equal(port_tickets(&first, "s/7"), 1);
    assert_int_equal(first.ops->break_ticket(first.store, "s/7", held.fence), MORTISE_OK);
}

static void test_s_a_reader_keeps_writers_out_alone(void **state)
{
    (void)state;
    const char *kind = mrt_read_write.kind;
    struct mrt_event held = append_as(&first, "s/8", ENDLESS, kind, MRT_WRITER, MRT_READER);
    die(&first);
    struct mrt_event reader = append_as(&second, "s/8", 0, kind, MRT_WRITER, MRT_READER);
    assert_true(mrt_rule_grants(reader.weight_ahead, MRT_READER, MRT_WRITER));
    port_remove(&second, "s/8", reader.ticket, reader.fence);
    struct mrt_event writer = append_as(&second, "s/8", 0, kind, MRT_WRITER, MRT_WRITER);
    assert_false(mrt_rule_grants(writer.weight_ahead, MRT_WRITER, MRT_WRITER));
    assert_int_equal(second.ops->break_ticket(second.store, "s/8", held.fence), MORTISE_OK);
    port_wait_granted(&second, "s/8", writer, MRT_WRITER, MRT_WRITER, LONG_ENOUGH);
}

static void test_s_a_delayed_ticket_keeps_its_permits(void **state)
{
    (void)state;
    append_as(&first, "s/9", SHORT, "semaphore", 3, 2);
    mrt_time died = mrt_time_now();
    die(&first);
    struct mrt_event one = append_as(&second, "s/9", 0, "semaphore", 3, 1);
    assert_true(mrt_rule_grants(one.weight_ahead, 1, 3));
    struct mrt_event two = append_as(&second, "s/9", 0, "semaphore", 3, 2);
    assert_false(mrt_rule_grants(two.weight_ahead, 2, 3));
    port_wait_granted(&second, "s/9", two, 2, 3, LONG_ENOUGH);
    assert_true(mrt_time_now() - died >= SHORT);
}

/* The first waiter need not stay to the end. */
static void test_s_each_waiter_knows_when_a_delay_ends(void **state)
{
    (void)state;
    struct port_client third;
    port_open_session(&third, uri);
    append(&first, "s/10", SHORT);
    struct mrt_event ahead = port_append(&second, "s/10", port_id());
    struct mrt_event waiting = port_append(&third, "s/10", port_id());
    mrt_time died = mrt_time_now();
    die(&first);
    port_remove(&second, "s/10", ahead.ticket, ahead.fence);
    port_wait_granted(&third, "s/10", waiting, 1, 1, LONG_ENOUGH);
    assert_true(mrt_time_now() - died >= SHORT);
    port_stop(&third);
    port_close(&third);
}

static void test_s_a_waiter_is_told_that_a_delay_begins(void **state)
{
    (void)state;
    append(&first, "s/11", SHORT);
    struct mrt_event waiting = port_append(&second, "s/11", port_id());
    die(&first);
    if (second.ops->capabilities.notify) /* else it asks again and again anyhow */
        assert_true(port_wait_told(&second, waiting.ticket, LONG_ENOUGH));
    waiting = port_refresh(&second, "s/11", &waiting);
    assert_in_range(waiting.recheck, 1, SHORT);
}

static void test_s_a_detached_ticket_has_no_delay(void **state)
{
    (void)state;
    if (!first.ops->capabilities.detach)
        skip();
    struct mrt_event held = append(&first, "s/12", SHORT), view;
    struct mrt_command command = port_command(&first, MRT_DETACH);
    command.ticket = held.ticket;
    command.fence = held.fence;
    command.queue = "s/12";
    command.kind = port_kind;
    command.weight = 1;
    command.detached_id = port_id();
    assert_int_equal(port_send(&first, &command).type, MRT_VIEW);
    die(&first);
    struct mrt_command adopt = port_append_command(&second, "s/12");
    adopt.ticket = command.detached_id;
    adopt.adopt = true;
    adopt.delay = ENDLESS; /* of its own */
    view = port_send(&second, &adopt);
    assert_int_equal(view.type, MRT_VIEW);
    assert_int_equal(view.weight_ahead, 0);
    die(&second);
    port_start(&first);
    assert_false(is_free(&first, "s/12"));
    adopt.session = first.session;
    adopt.serial = ++first.serial;
    view = port_send(&first, &adopt); /* it is left behind, but not to be adopted */
    assert_int_equal(view.type, MRT_FAILED);
    assert_int_equal(view.error, MORTISE_ENOTHELD);
    assert_int_equal(first.ops->break_ticket(first.store, "s/12", held.fence), MORTISE_OK);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_s_gn06_the_next_is_granted_after_the_delay),
        TEST(test_s_gn06_a_lost_session_is_a_death),
        TEST(test_s_a_release_or_a_close_has_no_delay),
        TEST(test_s_a_dead_holder_without_a_delay_frees_the_lock_immediately),
        TEST(test_s_a_waiter_that_dies_leaves_no_delay),
        TEST(test_s_gn06_an_operator_sees_and_breaks_a_delayed_ticket),
        TEST(test_s_a_dead_session_does_not_find_its_delayed_ticket),
        TEST(test_s_a_reader_keeps_writers_out_alone),
        TEST(test_s_a_delayed_ticket_keeps_its_permits),
        TEST(test_s_each_waiter_knows_when_a_delay_ends),
        TEST(test_s_a_waiter_is_told_that_a_delay_begins),
        TEST(test_s_a_detached_ticket_has_no_delay),
    };
    return run_on_place(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
