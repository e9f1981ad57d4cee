/* SPDX-License-Identifier: Apache-2.0 */
/* A ticket that is kept though nobody here wants it, until another does. */
#include "core_shared_fixture.h"

#define LINGER (MRT_SECOND)

static void open_lingering(struct core *core)
{
    core_open(core, NULL);
    mrt_queue_linger(core->queue, LINGER);
}

/* Acquired and released: it lingers. */
static void leave_lingering(struct core *core, struct mrt_waiter *waiter)
{
    open_lingering(core);
    core_grant(core, waiter);
    core_release(core, waiter->hold, waiter->owner);
    core_no_command(core);
}

static void expect_at_once(struct core *core, const struct mrt_waiter *waiter, int error)
{
    assert_int_equal(waiter->state, MRT_WAITER_DONE);
    assert_int_equal(waiter->error, error);
    core_none_settled(core);
}

/* The store says unasked that another is queued behind. */
static void tell_others(struct core *core, struct mrt_id ticket)
{
    struct mrt_event view = core->shown;
    view.type = MRT_VIEW;
    view.serial = 0;
    view.session = core->engine->session.id;
    view.ticket = ticket;
    view.others_behind = true;
    core_event(core, &view);
}

static void test_a_lingering_lock_is_acquired_again_without_a_request(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter first = core_waiter(1);
    leave_lingering(&core, &first);
    uint64_t last = 100;
    for (uint64_t i = 0; i < 20; i++) { /* more than its budget */
        struct mrt_waiter again = core_waiter(1 + i % 2);
        again.try_only = i % 3 == 0;
        core_pass(&core, 10 * MS);
        core_acquire(&core, &again);
        expect_at_once(&core, &again, MORTISE_OK);
        assert_true(again.hold->fence > last);
        last = again.hold->fence;
        core_release(&core, again.hold, again.owner);
        core_no_command(&core);
    }
    core_free(&core);
}

static void test_lingering_ends_when_its_time_is_over(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter first = core_waiter(1), again = core_waiter(1);
    leave_lingering(&core, &first);
    core_pass(&core, LINGER / 2);
    core_acquire(&core, &again);
    expect_at_once(&core, &again, MORTISE_OK);
    core_release(&core, again.hold, 1);
    core_pass(&core, LINGER - MS); /* counted from the last release */
    core_no_command(&core);
    core_pass(&core, 2 * MS);
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
    core_no_command(&core);
    core_free(&core);
}

static void test_lingering_ends_as_soon_as_another_client_queues(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter first = core_waiter(1);
    leave_lingering(&core, &first);
    assert_true(core.queue->ticket->command.linger); /* the store was asked to tell */
    core_wake(&core, core.queue->ticket->id);
    core.shown.others_behind = true;
    core_view(&core, core_fetch(&core, MRT_REFRESH), 0);
    core_fetch(&core, MRT_REMOVE);
    core_free(&core);
    leave_lingering(&core, &first);
    tell_others(&core, core.queue->ticket->id);
    core_fetch(&core, MRT_REMOVE);
    core_free(&core);
}

static void test_a_holder_keeps_the_lock_although_another_client_queues(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter first = core_waiter(1);
    open_lingering(&core);
    core_grant(&core, &first);
    tell_others(&core, core.queue->ticket->id);
    core_no_command(&core);
    core_release(&core, first.hold, 1);
    core_fetch(&core, MRT_REMOVE); /* it does not linger then */
    core_free(&core);
}

static void test_lingering_goes_on_when_a_refresh_shows_nobody_else(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter first = core_waiter(1);
    leave_lingering(&core, &first);
    core_pass(&core, LINGER / 2);
    core.shown.others_behind = false;
    struct mrt_event view = core.shown;
    view.type = MRT_VIEW;
    view.session = core.engine->session.id;
    view.ticket = core.queue->ticket->id;
    core_event(&core, &view);
    core_no_command(&core);
    core_pass(&core, LINGER / 2 + 1); /* not from then on */
    core_fetch(&core, MRT_REMOVE);
    core_free(&core);
}

static void test_a_ticket_that_was_never_granted_does_not_linger(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter = core_waiter(1);
    open_lingering(&core);
    core_queue_behind(&core, &waiter);
    mrt_engine_cancel(core.engine, &waiter, MORTISE_ECANCELLED, core.now); /* while it waits */
    core_done(&core, &waiter, MORTISE_ECANCELLED);
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
    waiter = core_waiter(1);
    waiter.competes = true;
    core_acquire(&core, &waiter);
    core_view(&core, core_fetch(&core, MRT_APPEND), 0);
    core_settled(&core, &waiter);
    assert_int_equal(waiter.state, MRT_WAITER_WOKEN);
    mrt_engine_cancel(core.engine, &waiter, MORTISE_ECANCELLED, core.now); /* before it came */
    core_done(&core, &waiter, MORTISE_ECANCELLED);
    core_fetch(&core, MRT_REMOVE);
    core_free(&core);
}

static void test_a_lock_released_during_a_refresh_lingers(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter first = core_waiter(1);
    open_lingering(&core);
    core_grant(&core, &first);
    mrt_engine_attend(first.hold);
    struct mrt_command *look = core_fetch(&core, MRT_REFRESH);
    core_release(&core, first.hold, 1);
    core_view(&core, look, 0);
    core_pass(&core, LINGER - MS);
    core_no_command(&core);
    core_pass(&core, 2 * MS);
    core_fetch(&core, MRT_REMOVE);
    core_free(&core);
}

static void test_a_revoke_request_ends_the_lingering(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter first = core_waiter(1);
    leave_lingering(&core, &first);
    core_revoke(&core, core.queue->ticket->id, 1);
    core_fetch(&core, MRT_REMOVE);
    core_free(&core);
}

static void test_lingering_ends_with_the_session(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter first = core_waiter(1), again = core_waiter(1);
    leave_lingering(&core, &first);
    core_session_lost(&core);
    assert_null(core.queue->ticket);
    assert_int_equal(mrt_engine_counters(core.engine)->losses, 0); /* nobody held it */
    core_answer(&core, core_fetch(&core, MRT_STOP), MRT_STOPPED);
    core_grant(&core, &again);
    core_free(&core);
}

static void test_lingering_ends_when_the_ticket_has_no_fence_left(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter first = core_waiter(1), again = core_waiter(1);
    open_lingering(&core);
    core.shown.fence_span = 2;
    core_grant(&core, &first);
    core_release(&core, first.hold, 1);
    core_acquire(&core, &again);
    expect_at_once(&core, &again, MORTISE_OK);
    core_release(&core, again.hold, 1);
    core_fetch(&core, MRT_REMOVE);
    core_free(&core);
}

static void test_a_refresh_under_way_does_not_prolong_the_lingering(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter first = core_waiter(1);
    open_lingering(&core);
    core.shown.recheck = LINGER / 4;
    core_grant(&core, &first);
    core_release(&core, first.hold, 1);
    core_pass(&core, LINGER / 4);
    struct mrt_command *look = core_fetch(&core, MRT_REFRESH); /* in case no word came */
    core_pass(&core, LINGER);
    core_view(&core, look, 0);
    core_pass(&core, 1);
    core_fetch(&core, MRT_REMOVE);
    core_free(&core);
}

static void test_without_a_budget_nothing_lingers(void **state)
{
    (void)state;
    struct core core;
    struct mrt_engine_config config = core_config();
    config.budget = 0;
    struct mrt_waiter first = core_waiter(1);
    core_open(&core, &config);
    mrt_queue_linger(core.queue, LINGER);
    core_grant(&core, &first);
    core_release(&core, first.hold, 1);
    core_fetch(&core, MRT_REMOVE);
    core_free(&core);
}

static void test_the_longest_linger_time_of_all_handles_counts(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter first = core_waiter(1);
    open_lingering(&core);
    mrt_queue_linger(core.queue, LINGER / 2);
    core_grant(&core, &first);
    core_release(&core, first.hold, 1);
    core_pass(&core, LINGER - MS);
    core_no_command(&core);
    mrt_engine_close(core.engine, core.now);
    core_fetch(&core, MRT_STOP);
    core_free(&core);
}

/* The ticket has to go, whatever its state is by then, because another came. */
static void removal_is_repeated(mrt_time lingered)
{
    struct core core;
    struct mrt_waiter first = core_waiter(1);
    leave_lingering(&core, &first);
    core_pass(&core, lingered);
    if (lingered < LINGER)
        tell_others(&core, core.queue->ticket->id);
    for (int i = 0; i < 3; i++) {
        core_fail(&core, core_fetch(&core, MRT_REMOVE), MORTISE_EUNREACHABLE);
        core_pass(&core, MRT_SECOND);
    }
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
    core_pass(&core, 2 * LINGER);
    core_no_command(&core);
    core_free(&core);
}

static void test_the_removal_of_a_lingering_ticket_is_repeated(void **state)
{
    (void)state;
    removal_is_repeated(LINGER);
    removal_is_repeated(LINGER - 1);
    removal_is_repeated(LINGER / 2);
}

/* The store says unasked that nobody is, as it was before. */
static void tell_nobody(struct core *core, struct mrt_id ticket)
{
    struct mrt_event view = core->shown;
    view.type = MRT_VIEW;
    view.session = core->engine->session.id;
    view.ticket = ticket;
    core_event(core, &view);
}

static void test_a_late_view_that_nobody_waits_is_not_believed(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter first = core_waiter(1);
    open_lingering(&core);
    core_grant(&core, &first);
    tell_nobody(&core, core.queue->ticket->id);
    tell_others(&core, core.queue->ticket->id);
    tell_nobody(&core, core.queue->ticket->id);
    core_release(&core, first.hold, 1);
    core_fetch(&core, MRT_REMOVE);
    core_free(&core);
}

static void test_a_report_of_waiters_is_newer_than_the_answer_under_way(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter first = core_waiter(1);
    open_lingering(&core);
    core_grant(&core, &first);
    core_wake(&core, core.queue->ticket->id);
    struct mrt_command *look = core_fetch(&core, MRT_REFRESH);
    tell_others(&core, core.queue->ticket->id);
    core_view(&core, look, 0); /* that there was nobody */
    look = core_fetch(&core, MRT_REFRESH);
    core_release(&core, first.hold, 1);
    core_no_command(&core);
    core.shown.others_behind = true;
    core_view(&core, look, 0);
    core_fetch(&core, MRT_REMOVE);
    core_free(&core);
}

/* The lock is acquired again while it lingers, and held beyond that time. */
static void test_a_holder_outlasts_the_time_of_lingering(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter first = core_waiter(1), again = core_waiter(2);
    leave_lingering(&core, &first);
    core_acquire(&core, &again);
    expect_at_once(&core, &again, MORTISE_OK);
    core_pass(&core, 2 * LINGER);
    core_no_command(&core);
    assert_int_equal(mrt_hold_state(again.hold, core.now), MORTISE_HELD);
    core_free(&core);
}

/* Its store does not report other clients: they would wait for the next refresh. */
static void test_a_ticket_queued_without_lingering_does_not_linger(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter first = core_waiter(1), second = core_waiter(2);
    core_open(&core, NULL);
    core_grant(&core, &first);
    assert_false(core.queue->ticket->command.linger);
    mrt_queue_linger(core.queue, LINGER);
    core_acquire(&core, &second);
    core_pass(&core, LINGER);
    core_release(&core, first.hold, 1);
    struct mrt_command *look = core_fetch(&core, MRT_REFRESH); /* the budget is asked about */
    assert_false(look->linger);
    assert_int_equal(second.state, MRT_WAITER_DONE);
    core_view(&core, look, 0);
    core_release(&core, second.hold, 2);
    core_fetch(&core, MRT_REMOVE);
    core_free(&core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_lingering_lock_is_acquired_again_without_a_request),
        cmocka_unit_test(test_lingering_ends_when_its_time_is_over),
        cmocka_unit_test(test_lingering_ends_as_soon_as_another_client_queues),
        cmocka_unit_test(test_a_holder_keeps_the_lock_although_another_client_queues),
        cmocka_unit_test(test_a_holder_outlasts_the_time_of_lingering),
        cmocka_unit_test(test_lingering_goes_on_when_a_refresh_shows_nobody_else),
        cmocka_unit_test(test_a_ticket_that_was_never_granted_does_not_linger),
        cmocka_unit_test(test_a_lock_released_during_a_refresh_lingers),
        cmocka_unit_test(test_a_revoke_request_ends_the_lingering),
        cmocka_unit_test(test_lingering_ends_with_the_session),
        cmocka_unit_test(test_lingering_ends_when_the_ticket_has_no_fence_left),
        cmocka_unit_test(test_a_refresh_under_way_does_not_prolong_the_lingering),
        cmocka_unit_test(test_without_a_budget_nothing_lingers),
        cmocka_unit_test(test_the_longest_linger_time_of_all_handles_counts),
        cmocka_unit_test(test_the_removal_of_a_lingering_ticket_is_repeated),
        cmocka_unit_test(test_a_late_view_that_nobody_waits_is_not_believed),
        cmocka_unit_test(test_a_report_of_waiters_is_newer_than_the_answer_under_way),
        cmocka_unit_test(test_a_ticket_queued_without_lingering_does_not_linger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
