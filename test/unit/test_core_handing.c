/* SPDX-License-Identifier: Apache-2.0 */
/* A mutex that a host hands on to others: shares of fences, and what the host sees of the queue. */
#include "core_fixture.h"

#include "core/lend.h"

enum { COUNT = 4, SPAN = 1000 }; /* as the fixture's budget and views have it */

static struct mrt_waiter sharing(void)
{
    struct mrt_waiter waiter = core_waiter(0);
    waiter.takes_share = true;
    return waiter;
}

static void open_with(struct core *core, uint64_t span, uint32_t budget_count)
{
    struct mrt_engine_config config = core_config();
    config.budget_count = budget_count;
    core_open(core, &config);
    core->shown.fence_span = span;
}

static void expect_fences(const struct mrt_hold *hold, uint64_t first, uint64_t count)
{
    assert_int_equal(hold->fence, first);
    assert_int_equal(hold->fence_span, count);
}

static void test_each_grant_of_a_turn_has_as_many_fences(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter first = sharing(), others[COUNT - 1] = {sharing(), sharing(), sharing()};
    open_with(&core, SPAN, COUNT);
    core_grant(&core, &first);
    expect_fences(first.hold, core.appended_fence, SPAN / COUNT);
    for (uint64_t i = 0; i < COUNT - 1; i++)
        core_acquire(&core, &others[i]);
    const struct mrt_waiter *holder = &first;
    for (uint64_t i = 0; i < COUNT - 1; i++) {
        core_release(&core, holder->hold, 0);
        core_done(&core, &others[i], MORTISE_OK);
        expect_fences(others[i].hold, core.appended_fence + (i + 1) * SPAN / COUNT, SPAN / COUNT);
        holder = &others[i];
    }
    core_no_command(&core);
    struct mrt_waiter next = sharing();
    core_acquire(&core, &next);
    core_release(&core, holder->hold, 0);
    core_fetch(&core, MRT_REMOVE); /* none is left */
    core_free(&core);
}

static void test_the_last_grant_has_what_is_left(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter one = core_waiter(1), some = sharing(), rest = sharing();
    open_with(&core, 10, 2);
    core_grant(&core, &one);
    expect_fences(one.hold, core.appended_fence, 1);
    core_acquire(&core, &some);
    core_release(&core, one.hold, 1);
    expect_fences(some.hold, core.appended_fence + 1, 5);
    core_acquire(&core, &rest);
    core_release(&core, some.hold, 0);
    expect_fences(rest.hold, core.appended_fence + 6, 4);
    core_free(&core);
}

static void test_those_who_wait_get_their_fences_early_and_keep_them(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter first = sharing(), second = sharing(), third = core_waiter(1),
                      fourth = sharing();
    open_with(&core, SPAN, COUNT);
    core_grant(&core, &first);
    core_acquire(&core, &second);
    core_acquire(&core, &third);
    core_acquire(&core, &fourth);
    uint64_t base = core.appended_fence;
    assert_int_equal(mrt_waiter_reserve(&third), base + 2 * SPAN / COUNT);
    assert_int_equal(mrt_waiter_reserve(&second), base + SPAN / COUNT);
    assert_int_equal(mrt_waiter_reserve(&fourth), base + 2 * SPAN / COUNT + 1);
    assert_int_equal(mrt_waiter_reserve(&fourth), base + 2 * SPAN / COUNT + 1);
    core_release(&core, first.hold, 0);
    core_done(&core, &second, MORTISE_OK);
    expect_fences(second.hold, base + SPAN / COUNT, SPAN / COUNT);
    mrt_engine_cancel(core.engine, &third, MORTISE_ECANCELLED, core.now);
    core_done(&core, &third, MORTISE_ECANCELLED);
    core_release(&core, second.hold, 0);
    core_done(&core, &fourth, MORTISE_OK);
    expect_fences(fourth.hold, base + 2 * SPAN / COUNT + 1, SPAN / COUNT);
    struct mrt_waiter last = sharing();
    core_acquire(&core, &last);
    core_release(&core, fourth.hold, 0);
    core_done(&core, &last, MORTISE_OK);
    assert_int_equal(last.hold->fence, base + 3 * SPAN / COUNT + 1);
    core_free(&core);
}

/* A span of two: the third has none by this ticket, and its turn ends with the second's hold. */
static void test_fences_that_are_reserved_are_no_more_than_the_ticket_has(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter first = sharing(), second = sharing(), third = sharing();
    open_with(&core, 2, COUNT);
    core_grant(&core, &first);
    core_acquire(&core, &second);
    core_acquire(&core, &third);
    assert_int_equal(mrt_waiter_reserve(&third), 0);
    assert_int_equal(mrt_waiter_reserve(&second), core.appended_fence + 1);
    core_release(&core, first.hold, 0);
    core_done(&core, &second, MORTISE_OK);
    core_release(&core, second.hold, 0);
    core_none_settled(&core);
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
    uint64_t before = core.appended_fence;
    core_view(&core, core_fetch(&core, MRT_APPEND), 0);
    core_done(&core, &third, MORTISE_OK);
    assert_int_equal(third.hold->fence, core.appended_fence);
    assert_true(third.hold->fence > before + 1);
    core_free(&core);
}

/* While it waits at the store, nobody uses its fences up. */
static void test_nothing_is_reserved_of_a_ticket_that_waits(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter = sharing();
    open_with(&core, SPAN, COUNT);
    core_queue_behind(&core, &waiter);
    assert_int_equal(mrt_waiter_reserve(&waiter), 0);
    core_free(&core);
}

static void test_nothing_is_reserved_before_a_ticket_or_after_the_grant(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter = sharing();
    open_with(&core, SPAN, COUNT);
    core_acquire(&core, &waiter);
    assert_int_equal(mrt_waiter_reserve(&waiter), 0);
    core_start(&core);
    core_view(&core, core_fetch(&core, MRT_APPEND), 0);
    core_done(&core, &waiter, MORTISE_OK);
    assert_int_equal(mrt_waiter_reserve(&waiter), 0);
    assert_ptr_equal(mrt_queue_holder(core.queue), waiter.hold);
    core_free(&core);
}

/* The first waiter of a new ticket, which was woken, has its first fence. */
static void test_nothing_is_reserved_of_a_ticket_that_nobody_has_had(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter head = core_waiter(1), next = sharing();
    head.competes = true;
    open_with(&core, SPAN, COUNT);
    core_queue_behind(&core, &head);
    core_acquire(&core, &next);
    core_wake(&core, core.appended);
    core_view(&core, core_fetch(&core, MRT_REFRESH), 0);
    assert_int_equal(head.state, MRT_WAITER_WOKEN);
    assert_int_equal(mrt_waiter_reserve(&next), 0);
    core_settled(&core, &head);
    mrt_engine_retry(core.engine, &head, core.now);
    assert_int_equal(head.hold->fence, core.appended_fence);
    assert_int_equal(mrt_waiter_reserve(&next), core.appended_fence + 1);
    core_free(&core);
}

static void test_nothing_is_reserved_where_the_store_has_no_fences(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter first = sharing(), second = sharing();
    open_with(&core, SPAN, COUNT);
    core.shown.fence = 0;
    core_grant(&core, &first);
    core_acquire(&core, &second);
    assert_int_equal(mrt_waiter_reserve(&second), 0);
    core_release(&core, first.hold, 0);
    core_done(&core, &second, MORTISE_OK);
    assert_int_equal(second.hold->fence, 0);
    core_free(&core);
}

static void test_a_fence_that_was_reserved_ends_with_its_ticket(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter first = sharing(), second = sharing();
    open_with(&core, SPAN, COUNT);
    core_grant(&core, &first);
    core_acquire(&core, &second);
    uint64_t reserved = mrt_waiter_reserve(&second);
    assert_int_equal(reserved, core.appended_fence + SPAN / COUNT);
    core_revoke(&core, core.appended, 1);
    core_release(&core, first.hold, 0);
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
    core_view(&core, core_fetch(&core, MRT_APPEND), 0);
    core_done(&core, &second, MORTISE_OK);
    expect_fences(second.hold, core.appended_fence, SPAN / COUNT);
    assert_true(core.appended_fence > reserved);
    core_free(&core);
}

static void test_a_hold_by_a_part_of_a_tickets_fences_has_that_tickets_number(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter = core_waiter(1);
    uint64_t number;
    core_open(&core, NULL);
    core.shown.number = 77;
    core_grant(&core, &waiter);
    mrt_hold_ticket(waiter.hold, &number);
    assert_int_equal(number, 77);
    core_free(&core);
    core_open(&core, NULL);
    waiter = core_waiter(1);
    core_grant(&core, &waiter);
    mrt_hold_ticket(waiter.hold, &number);
    assert_int_equal(number, core.appended_fence / SPAN);
    core_free(&core);
}

static void expect_one(uint64_t span, uint32_t budget_count)
{
    struct core core;
    struct mrt_waiter waiter = sharing();
    open_with(&core, span, budget_count);
    core_grant(&core, &waiter);
    expect_fences(waiter.hold, core.appended_fence, 1);
    core_free(&core);
}

static void test_a_share_is_one_fence_at_least(void **state)
{
    (void)state;
    expect_one(3, COUNT);
    expect_one(SPAN, 0);
}

static void test_a_later_ticket_has_larger_fences_than_a_share(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter first = sharing(), second = sharing();
    open_with(&core, SPAN, COUNT);
    core_grant(&core, &first);
    uint64_t last = first.hold->fence + first.hold->fence_span - 1;
    core_release(&core, first.hold, 0);
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
    core_acquire(&core, &second);
    struct mrt_command *append = core_fetch(&core, MRT_APPEND);
    struct mrt_event view = {.type = MRT_VIEW,
                             .serial = append->serial,
                             .session = append->session,
                             .ticket = append->ticket,
                             .fence = last,
                             .fence_span = SPAN};
    core_event(&core, &view);
    core_done(&core, &second, MORTISE_ESTALE);
    core_free(&core);
}

static void test_the_ticket_of_a_queue_is_seen_from_append_to_removal(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter = sharing();
    uint64_t fence = 0;
    open_with(&core, SPAN, COUNT);
    assert_true(mrt_id_none(mrt_queue_any_ticket(core.queue)));
    assert_true(mrt_id_none(mrt_queue_ticket(core.queue, &fence)));
    assert_false(mrt_queue_waits(core.queue));
    core_acquire(&core, &waiter);
    core_start(&core);
    struct mrt_command *append = core_fetch(&core, MRT_APPEND);
    struct mrt_id id = append->ticket;
    assert_true(mrt_id_equal(mrt_queue_any_ticket(core.queue), id));
    assert_true(mrt_id_none(mrt_queue_ticket(core.queue, &fence)));
    assert_false(mrt_queue_waits(core.queue));
    core_view(&core, append, 1);
    assert_true(mrt_queue_waits(core.queue));
    assert_null(mrt_engine_holder(core.engine, id));
    assert_true(mrt_id_equal(mrt_queue_ticket(core.queue, &fence), id));
    assert_int_equal(fence, core.appended_fence);
    assert_false(mrt_engine_is_leaving(core.engine, id));
    mrt_engine_cancel(core.engine, &waiter, MORTISE_ECANCELLED, core.now);
    assert_true(mrt_engine_is_leaving(core.engine, id));
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
    assert_false(mrt_engine_is_leaving(core.engine, id));
    assert_null(mrt_engine_holder(core.engine, id));
    core_free(&core);
}

static void test_waiters_are_counted_in_their_order(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter first = sharing(), second = sharing(), third = sharing();
    core_open(&core, NULL);
    core_grant(&core, &first);
    assert_null(mrt_queue_next_waiter(core.queue, NULL));
    assert_false(mrt_hold_has_others(first.hold));
    assert_ptr_equal(mrt_engine_holder(core.engine, core.appended), first.hold);
    core_acquire(&core, &second);
    core_acquire(&core, &third);
    assert_true(mrt_hold_has_others(first.hold));
    assert_int_equal(mrt_waiter_ahead(&second), 1);
    assert_int_equal(mrt_waiter_ahead(&third), 2);
    assert_int_equal(mrt_waiter_ahead(&first), 3); /* it waits no longer */
    assert_ptr_equal(mrt_queue_next_waiter(core.queue, NULL), &second);
    assert_ptr_equal(mrt_queue_next_waiter(core.queue, &second), &third);
    assert_null(mrt_queue_next_waiter(core.queue, &third));
    core_free(&core);
}

static void test_others_at_the_store_and_requests_are_seen_by_the_hold(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter = sharing();
    core_open(&core, NULL);
    core.shown.others_behind = true;
    core.shown.revoked = 7;
    core_grant(&core, &waiter);
    assert_true(mrt_hold_has_others(waiter.hold));
    assert_int_equal(mrt_hold_revoked(waiter.hold), 7);
    core_revoke(&core, core.appended, 8);
    assert_int_equal(mrt_hold_revoked(waiter.hold), 8);
    core_session_lost(&core);
    assert_false(mrt_hold_has_others(waiter.hold));
    assert_int_equal(mrt_hold_revoked(waiter.hold), 0);
    core_free(&core);
}

/* An unasked view that grants, of another fence than that of the view before. */
static void show_granted(struct core *core, const struct mrt_waiter *waiter, bool in_order)
{
    const struct mrt_event view = {.type = MRT_VIEW,
                                   .session = core->engine->session.id,
                                   .ticket = core->appended,
                                   .fence = core->appended_fence + 1,
                                   .fence_span = 1,
                                   .in_order = in_order};
    assert_int_equal(waiter->state, MRT_WAITER_WAITING);
    core_event(core, &view);
}

static void test_a_view_in_order_is_believed_whatever_its_fence(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter = core_waiter(1);
    core_open(&core, NULL);
    core_queue_behind(&core, &waiter);
    show_granted(&core, &waiter, false);
    core_none_settled(&core);
    core_view(&core, core_fetch(&core, MRT_REFRESH), 1);
    show_granted(&core, &waiter, true);
    core_done(&core, &waiter, MORTISE_OK);
    core_no_command(&core);
    core_free(&core);
}

static void test_delays_for_this_host_alone_say_so(void **state)
{
    (void)state;
    for (int alone = 0; alone < 2; alone++) {
        struct core core;
        struct mrt_waiter waiter = sharing();
        struct mrt_engine_config config = core_config();
        config.delay_is_host = alone;
        core_open(&core, &config);
        mrt_queue_delay(core.queue, MRT_SECOND, core.now);
        core_acquire(&core, &waiter);
        core_start(&core);
        const struct mrt_command *append = core_fetch(&core, MRT_APPEND);
        assert_int_equal(append->delay, MRT_SECOND);
        assert_int_equal(append->delay_is_host, alone);
        core_free(&core);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_grant_of_a_turn_has_as_many_fences),
        cmocka_unit_test(test_the_last_grant_has_what_is_left),
        cmocka_unit_test(test_those_who_wait_get_their_fences_early_and_keep_them),
        cmocka_unit_test(test_fences_that_are_reserved_are_no_more_than_the_ticket_has),
        cmocka_unit_test(test_nothing_is_reserved_of_a_ticket_that_waits),
        cmocka_unit_test(test_nothing_is_reserved_before_a_ticket_or_after_the_grant),
        cmocka_unit_test(test_nothing_is_reserved_of_a_ticket_that_nobody_has_had),
        cmocka_unit_test(test_nothing_is_reserved_where_the_store_has_no_fences),
        cmocka_unit_test(test_a_fence_that_was_reserved_ends_with_its_ticket),
        cmocka_unit_test(test_a_hold_by_a_part_of_a_tickets_fences_has_that_tickets_number),
        cmocka_unit_test(test_a_share_is_one_fence_at_least),
        cmocka_unit_test(test_a_later_ticket_has_larger_fences_than_a_share),
        cmocka_unit_test(test_the_ticket_of_a_queue_is_seen_from_append_to_removal),
        cmocka_unit_test(test_waiters_are_counted_in_their_order),
        cmocka_unit_test(test_others_at_the_store_and_requests_are_seen_by_the_hold),
        cmocka_unit_test(test_a_view_in_order_is_believed_whatever_its_fence),
        cmocka_unit_test(test_delays_for_this_host_alone_say_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
