/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A holder that keeps a lock until another client wants it hears of the other: the clause (r) of
 * the port.
 *
 *   test_conform_linger memory: | sqlite: | URI
 */
#include "cmocka_all.h"
#include "conform/port_two.h"

#define LONG_ENOUGH (10 * MRT_SECOND)

static struct mrt_event append_lingering(struct port_client *client, const char *queue)
{
    struct mrt_command command = port_append_command(client, queue);
    command.linger = true;
    struct mrt_event view = port_send(client, &command);
    assert_int_equal(view.type, MRT_VIEW);
    return view;
}

static void test_r_a_lingering_holder_is_told_of_a_waiter(void **state)
{
    (void)state;
    struct mrt_event held = append_lingering(&first, "r/1");
    assert_false(held.others_behind);
    struct mrt_event waiting = port_append(&second, "r/1", port_id());
    assert_true(waiting.weight_ahead > 0);
    assert_true(port_wait_told(&first, held.ticket, LONG_ENOUGH));
    held = port_refresh(&first, "r/1", &held);
    assert_true(held.others_behind);
    assert_int_equal(port_remove(&first, "r/1", held.ticket, held.fence).type, MRT_REMOVED);
    port_wait_granted(&second, "r/1", waiting, 1, 1, LONG_ENOUGH);
}

static void test_r_a_lingering_holder_is_told_of_each_newcomer(void **state)
{
    (void)state;
    struct mrt_event held = append_lingering(&first, "r/2");
    for (int i = 0; i < 3; i++) {
        struct mrt_event waiting = port_append(&second, "r/2", port_id());
        assert_true(port_wait_told(&first, held.ticket, LONG_ENOUGH));
        assert_true(port_refresh(&first, "r/2", &held).others_behind);
        port_remove(&second, "r/2", waiting.ticket, 0); /* given up */
        held = port_refresh(&first, "r/2", &held);
        assert_false(held.others_behind);
    }
}

static void test_r_a_lingering_holder_that_had_waited_is_told(void **state)
{
    (void)state;
    struct mrt_event before = port_append(&second, "r/3", port_id());
    struct mrt_event held = append_lingering(&first, "r/3");
    port_remove(&second, "r/3", before.ticket, before.fence);
    port_wait_granted(&first, "r/3", held, 1, 1, LONG_ENOUGH);
    port_append(&second, "r/3", port_id());
    assert_true(port_wait_told(&first, held.ticket, LONG_ENOUGH));
    assert_true(port_refresh(&first, "r/3", &held).others_behind);
}

static void test_r_a_failed_try_tells_no_lingering_holder(void **state)
{
    (void)state;
    struct mrt_event held = append_lingering(&first, "r/4");
    assert_int_equal(port_try(&second, "r/4", port_id()).type, MRT_BLOCKED);
    assert_false(port_refresh(&first, "r/4", &held).others_behind);
    assert_int_equal(port_tickets(&second, "r/4"), 1);
}

/* A detached ticket lingers as its adopter wants. */
static void test_r_a_lingering_holder_that_adopted_is_told(void **state)
{
    (void)state;
    struct mrt_event held = append_lingering(&first, "r/5");
    struct mrt_command detach = port_command(&first, MRT_DETACH);
    struct mrt_command adopt = port_append_command(&first, "r/5");
    detach.ticket = held.ticket;
    detach.fence = held.fence;
    detach.queue = "r/5";
    detach.kind = port_kind;
    detach.weight = 1;
    detach.detached_id = port_id();
    assert_int_equal(port_send(&first, &detach).type, MRT_VIEW);
    adopt.ticket = detach.detached_id;
    adopt.adopt = adopt.linger = true;
    held = port_send(&first, &adopt);
    assert_int_equal(held.type, MRT_VIEW);
    assert_int_equal(held.weight_ahead, 0);
    port_append(&second, "r/5", port_id());
    assert_true(port_wait_told(&first, held.ticket, LONG_ENOUGH));
    assert_true(port_refresh(&first, "r/5", &held).others_behind);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_r_a_lingering_holder_is_told_of_a_waiter),
        TEST(test_r_a_lingering_holder_is_told_of_each_newcomer),
        TEST(test_r_a_lingering_holder_that_had_waited_is_told),
        TEST(test_r_a_failed_try_tells_no_lingering_holder),
        TEST(test_r_a_lingering_holder_that_adopted_is_told),
    };
    return run_on_place(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
