/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the store for the time after a crash: tickets with a delay, and how a session is
 * stopped. */
#include "core_shared_fixture.h"

#define DELAY (3 * MRT_SECOND)

static void ask_for_delay(struct core *core, mrt_time delay)
{
    mrt_queue_delay(core->queue, delay, core->now);
}

static void expect_append(struct core *core, mrt_time delay)
{
    struct mrt_command *append = core_fetch(core, MRT_APPEND);
    assert_int_equal(append->delay, delay);
    core_view(core, append, 0);
}

static void test_gn06_each_ticket_carries_the_delay(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter first = core_waiter(1), second = core_waiter(2);
    open_semaphore(&core, 2);
    ask_for_delay(&core, DELAY);
    core_acquire(&core, &first);
    core_start(&core);
    expect_append(&core, DELAY);
    core_done(&core, &first, MORTISE_OK);
    core_acquire(&core, &second);
    expect_append(&core, DELAY);
    core_done(&core, &second, MORTISE_OK);
    core_free(&core);
}

static void test_gn06_a_session_that_is_lost_has_died(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter = core_waiter(1);
    core_open(&core, NULL);
    core.lease = MRT_SECOND;
    core_grant(&core, &waiter);
    core_pass(&core, MRT_SECOND); /* by the clock alone */
    struct mrt_command *stop = core_fetch(&core, MRT_STOP);
    assert_true(stop->died);
    core_fail(&core, stop, MORTISE_EUNREACHABLE);
    assert_int_equal(mrt_hold_state(waiter.hold, core.now), MORTISE_LOST);
    core_free(&core);
}

static void test_gn06_a_session_that_is_closed_has_not_died(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter = core_waiter(1);
    core_open(&core, NULL);
    core_grant(&core, &waiter);
    mrt_engine_close(core.engine, core.now);
    assert_false(core_fetch(&core, MRT_STOP)->died);
    core_free(&core);
}

static void test_gn06_a_repeated_stop_still_says_that_the_session_died(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter = core_waiter(1);
    core_open(&core, NULL);
    core_grant(&core, &waiter);
    core_session_lost(&core);
    struct mrt_command *stop = core_fetch(&core, MRT_STOP);
    mrt_engine_close(core.engine, core.now);
    core_answer(&core, stop, MRT_UNKNOWN);
    core_pass(&core, MRT_SECOND);
    assert_true(core_fetch(&core, MRT_STOP)->died);
    core_free(&core);
}

static void test_gn06_a_ticket_without_the_delay_does_not_linger(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter first = core_waiter(1), again = core_waiter(1);
    core_open(&core, NULL);
    mrt_queue_linger(core.queue, MRT_SECOND);
    core_grant(&core, &first);
    core_release(&core, first.hold, 1);
    core_no_command(&core);
    ask_for_delay(&core, DELAY);
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
    again.try_only = true; /* nothing is in its way */
    core_acquire(&core, &again);
    expect_append(&core, DELAY);
    core_done(&core, &again, MORTISE_OK);
    core_release(&core, again.hold, 1);
    core_no_command(&core); /* this one lingers */
    core_free(&core);
}

static void test_gn06_a_turn_without_the_delay_ends(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter first = core_waiter(1), second = core_waiter(2);
    core_open(&core, NULL);
    core_grant(&core, &first);
    ask_for_delay(&core, DELAY);
    core_no_command(&core); /* who holds goes on */
    core_acquire(&core, &second);
    core_release(&core, first.hold, 1);
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
    expect_append(&core, DELAY);
    core_done(&core, &second, MORTISE_OK);
    core_free(&core);
}

static void test_gn06_a_ticket_queued_without_the_delay_is_replaced(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter = core_waiter(1);
    core_open(&core, NULL);
    core_queue_behind(&core, &waiter);
    ask_for_delay(&core, DELAY);
    core_wake(&core, core.queue->ticket->id);
    core_view(&core, core_fetch(&core, MRT_REFRESH), 0);
    core_none_settled(&core);
    core_fetch(&core, MRT_REMOVE);
    expect_append(&core, DELAY);
    core_done(&core, &waiter, MORTISE_OK);
    core_free(&core);
}

static void test_gn06_the_longest_delay_of_all_handles_counts(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter first = core_waiter(1), second = core_waiter(2);
    core_open(&core, NULL);
    ask_for_delay(&core, DELAY);
    core_grant(&core, &first);
    ask_for_delay(&core, DELAY / 2); /* another handle's */
    core_acquire(&core, &second);
    core_release(&core, first.hold, 1);
    core_done(&core, &second, MORTISE_OK); /* handed on: the ticket is good enough */
    core_no_command(&core);
    core_free(&core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gn06_each_ticket_carries_the_delay),
        cmocka_unit_test(test_gn06_a_session_that_is_lost_has_died),
        cmocka_unit_test(test_gn06_a_session_that_is_closed_has_not_died),
        cmocka_unit_test(test_gn06_a_repeated_stop_still_says_that_the_session_died),
        cmocka_unit_test(test_gn06_a_ticket_without_the_delay_does_not_linger),
        cmocka_unit_test(test_gn06_a_turn_without_the_delay_ends),
        cmocka_unit_test(test_gn06_a_ticket_queued_without_the_delay_is_replaced),
        cmocka_unit_test(test_gn06_the_longest_delay_of_all_handles_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
