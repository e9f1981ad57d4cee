/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets that are made nobody's, and adopted (C11). */
#include "core_shared_fixture.h"

#define LONG_PAUSE (2 * MRT_SECOND) /* longer than any pause before a repetition */

static const struct mrt_id detached_id = {7, 8};

static int detach(struct core *core, const struct mrt_waiter *had, struct mrt_waiter *waiter)
{
    *waiter = (struct mrt_waiter){.deadline = MRT_TIME_NEVER};
    return mrt_engine_detach(core->engine, had->hold, had->hold->generation, had->owner,
                             detached_id, waiter, core->now);
}

static struct mrt_waiter adopting(uint64_t owner, uint64_t last_fence)
{
    struct mrt_waiter waiter = core_waiter(owner);
    waiter.adopts = detached_id;
    waiter.last_fence = last_fence;
    return waiter;
}

static void adopt(struct core *core, struct mrt_waiter *waiter)
{
    mrt_engine_adopt(core->engine, core->queue, waiter, core->now);
}

/* The next command, which takes the detached ticket. */
static struct mrt_command *fetch_adoption(struct core *core)
{
    struct mrt_command *append = core_fetch(core, MRT_APPEND);
    assert_true(append->adopt);
    assert_true(mrt_id_equal(append->ticket, detached_id));
    return append;
}

/* A client of nothing else adopts the ticket: its command. */
static struct mrt_command *begin_adopting(struct core *core, struct mrt_waiter *waiter,
                                          uint64_t last_fence)
{
    *waiter = adopting(1, last_fence);
    adopt(core, waiter);
    core_start(core);
    return fetch_adoption(core);
}

/* A client detaches what it holds. */
static void begin_detaching(struct core *core, struct mrt_waiter *had, struct mrt_waiter *waiter)
{
    *had = core_waiter(1);
    core_grant(core, had);
    detach(core, had, waiter);
}

static void cancel(struct core *core, struct mrt_waiter *waiter)
{
    mrt_engine_cancel(core->engine, waiter, MORTISE_ECANCELLED, core->now);
    core_done(core, waiter, MORTISE_ECANCELLED);
}

/* It has been answered at once, and is not in the settled list. */
static void expect_at_once(struct core *core, const struct mrt_waiter *waiter, int error)
{
    assert_int_equal(waiter->state, MRT_WAITER_DONE);
    assert_int_equal(waiter->error, error);
    core_none_settled(core);
}

/* --------------------------------------------------------------- detaching */

static void test_c11_a_hold_is_detached(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter had = core_waiter(1), waiter;
    core_grant(&core, &had);
    struct mrt_id id = had.hold->ticket->id;
    struct mrt_hold *slot = had.hold;
    uint64_t generation = slot->generation;
    assert_int_equal(detach(&core, &had, &waiter), MORTISE_OK);
    assert_false(mrt_hold_live(slot, generation)); /* from this moment */
    struct mrt_command *command = core_fetch(&core, MRT_DETACH);
    assert_true(mrt_id_equal(command->ticket, id));
    assert_true(mrt_id_equal(command->detached_id, detached_id));
    core_none_settled(&core);
    core_view(&core, command, 0);
    core_done(&core, &waiter, MORTISE_OK);
    core_no_command(&core); /* no removal */
    core_free(&core);
}

static void test_c11_nested_foreign_and_lost_holds_are_not_detached(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter had = core_waiter(1), again = core_waiter(1), other = core_waiter(2), waiter;
    core_grant(&core, &had);
    core_acquire(&core, &again);
    assert_int_equal(detach(&core, &had, &waiter), MORTISE_EINVALID); /* held twice */
    core_release(&core, had.hold, 1);
    other.hold = had.hold;
    assert_int_equal(detach(&core, &other, &waiter), MORTISE_ENOTOWNER);
    core_session_lost(&core);
    assert_int_equal(detach(&core, &had, &waiter), MORTISE_ELOST);
    uint64_t generation = had.hold->generation;
    core_release(&core, had.hold, 1);
    assert_int_equal(
        mrt_engine_detach(core.engine, had.hold, generation, 1, detached_id, &waiter, core.now),
        MORTISE_ENOTHELD);
    core_free(&core);
}

static void test_c11_a_writer_that_reads_too_is_not_detached(void **state)
{
    (void)state;
    struct core core;
    open_read_write(&core);
    struct mrt_waiter write = writing(1), read = reading(1), waiter;
    core_grant(&core, &write);
    core_acquire(&core, &read);
    assert_int_equal(detach(&core, &write, &waiter), MORTISE_EINVALID);
    assert_int_equal(detach(&core, &read, &waiter), MORTISE_EINVALID);
    core_free(&core);
}

static void test_c11_detaching_is_repeated_until_it_is_known(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter had, next = core_waiter(2), waiter;
    begin_detaching(&core, &had, &waiter);
    core_answer(&core, core_fetch(&core, MRT_DETACH), MRT_UNKNOWN);
    core_none_settled(&core);
    core_pass(&core, LONG_PAUSE);
    core_fail(&core, core_fetch(&core, MRT_DETACH), MORTISE_EPERMISSION); /* too late to refuse */
    core_pass(&core, LONG_PAUSE);
    struct mrt_command *third = core_fetch(&core, MRT_DETACH);
    core_queue_behind(&core, &next); /* it need not wait for that */
    core_view(&core, third, 0);
    core_done(&core, &waiter, MORTISE_OK);
    core_free(&core);
}

static void test_c11_detaching_waits_for_an_earlier_command(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter had = core_waiter(1), waiter;
    core_grant(&core, &had);
    mrt_engine_attend(had.hold);
    struct mrt_command *look = core_fetch(&core, MRT_REFRESH);
    detach(&core, &had, &waiter);
    core_no_command(&core);
    core_view(&core, look, 0);
    core_view(&core, core_fetch(&core, MRT_DETACH), 0);
    core_done(&core, &waiter, MORTISE_OK);
    core_free(&core);
}

static void test_c11_a_ticket_that_was_broken_is_not_detached(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter had, waiter;
    begin_detaching(&core, &had, &waiter);
    core_answer(&core, core_fetch(&core, MRT_DETACH), MRT_GONE);
    core_done(&core, &waiter, MORTISE_ELOST);
    core_grant(&core, &had);
    mrt_engine_attend(had.hold);
    struct mrt_command *look = core_fetch(&core, MRT_REFRESH);
    detach(&core, &had, &waiter);
    core_answer(&core, look, MRT_GONE);
    core_done(&core, &waiter, MORTISE_ELOST);
    core_no_command(&core);
    core_free(&core);
}

static void test_c11_a_refused_detach_leaves_the_lock_held(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter had, waiter;
    begin_detaching(&core, &had, &waiter);
    core_fail(&core, core_fetch(&core, MRT_DETACH), MORTISE_EUNREACHABLE);
    core_none_settled(&core);
    core_pass(&core, LONG_PAUSE);
    core_fail(&core, core_fetch(&core, MRT_DETACH), MORTISE_EPERMISSION);
    core_done(&core, &waiter, MORTISE_EPERMISSION);
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
    core_no_command(&core);
    core_free(&core);
}

static void test_c11_the_session_ends_while_detaching(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter had, waiter;
    begin_detaching(&core, &had, &waiter);
    core_session_lost(&core); /* it was not sent */
    core_done(&core, &waiter, MORTISE_ELOST);
    core_settle_all(&core);
    begin_detaching(&core, &had, &waiter);
    struct mrt_command *sent = core_fetch(&core, MRT_DETACH);
    core_session_lost(&core);
    core_done(&core, &waiter, MORTISE_EUNKNOWN);
    core_answer(&core, sent, MRT_UNKNOWN);
    core_settle_all(&core);
    begin_detaching(&core, &had, &waiter);
    core_answer(&core, core_fetch(&core, MRT_DETACH), MRT_UNKNOWN);
    core_session_lost(&core); /* between two attempts */
    core_done(&core, &waiter, MORTISE_EUNKNOWN);
    core_free(&core);
}

static void test_c11_a_busy_store_is_asked_to_detach_again(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter had = core_waiter(1), waiter;
    core_grant(&core, &had);
    mrt_engine_attend(had.hold);
    struct mrt_command *look = core_fetch(&core, MRT_REFRESH);
    detach(&core, &had, &waiter);
    mrt_engine_unsubmit(core.engine, look, core.now); /* the look is not needed any more */
    struct mrt_command *command = core_fetch(&core, MRT_DETACH);
    mrt_engine_unsubmit(core.engine, command, core.now);
    core_view(&core, core_fetch(&core, MRT_DETACH), 0);
    core_done(&core, &waiter, MORTISE_OK);
    core_free(&core);
}

static void test_c11_a_wait_for_a_detach_may_be_given_up(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter had, waiter;
    begin_detaching(&core, &had, &waiter);
    cancel(&core, &waiter);
    core_view(&core, core_fetch(&core, MRT_DETACH), 0); /* it is done all the same */
    core_none_settled(&core);
    core_no_command(&core);
    core_free(&core);
}

/* ---------------------------------------------------------------- adopting */

static void test_c11_a_ticket_is_adopted(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter;
    core_view(&core, begin_adopting(&core, &waiter, 104), 0);
    core_done(&core, &waiter, MORTISE_OK);
    assert_int_equal(waiter.hold->fence, 105); /* more than that of its last hold */
    assert_int_equal(mrt_engine_counters(core.engine)->handovers, 0);
    assert_int_equal(core_release(&core, waiter.hold, 1), MORTISE_OK);
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
    core_free(&core);
}

static void test_c11_the_fence_of_an_adopted_hold_never_falls(void **state)
{
    (void)state;
    const struct {
        uint64_t span, last, expected;
    } cases[] = {{1, 100, 100}, {1000, 1099, 1099}, {1000, 50, 100}, {1000, 100, 101}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct core core;
        core_open(&core, NULL);
        core.shown.fence_span = cases[i].span;
        struct mrt_waiter waiter;
        core_view(&core, begin_adopting(&core, &waiter, cases[i].last), 0);
        core_done(&core, &waiter, MORTISE_OK);
        assert_int_equal(waiter.hold->fence, cases[i].expected);
        core_free(&core);
    }
}

static void test_c11_a_revoked_ticket_is_adopted_and_its_adopter_is_told(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter;
    struct mrt_command *append = begin_adopting(&core, &waiter, 100);
    core.shown.revoked = 3;
    core_view(&core, append, 0);
    core_done(&core, &waiter, MORTISE_OK);
    assert_true(waiter.hold->revoke_requested);
    core_free(&core);
}

static void test_c11_adopting_fails_where_nothing_is_detached(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = adopting(1, 100), behind = core_waiter(2);
    adopt(&core, &waiter);
    core_acquire(&core, &behind);
    core_start(&core);
    core_answer(&core, fetch_adoption(&core), MRT_UNKNOWN);
    core_pass(&core, LONG_PAUSE);
    core_fail(&core, fetch_adoption(&core), MORTISE_EUNREACHABLE);
    core_pass(&core, LONG_PAUSE);
    core_fail(&core, fetch_adoption(&core), MORTISE_ENOTHELD); /* so it was not done before */
    core_done(&core, &waiter, MORTISE_ENOTHELD);
    assert_false(core_fetch(&core, MRT_APPEND)->adopt); /* the next one's */
    core_free(&core);
}

static void test_c11_an_adopter_is_served_before_waiters_of_its_client(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter behind = core_waiter(2), waiter = adopting(1, 100);
    core_queue_behind(&core, &behind);
    adopt(&core, &waiter);
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
    core_view(&core, fetch_adoption(&core), 0);
    core_done(&core, &waiter, MORTISE_OK);
    assert_int_equal(core_release(&core, waiter.hold, 1), MORTISE_OK);
    core_done(&core, &behind, MORTISE_OK); /* handed on */
    assert_int_equal(behind.hold->fence, 102);
    core_free(&core);
}

static void test_c11_a_try_does_not_wait_for_an_adopter(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter try = core_waiter(2), waiter = adopting(1, 100);
    try.try_only = true;
    core_acquire(&core, &try);
    adopt(&core, &waiter);
    core_start(&core);
    core_view(&core, fetch_adoption(&core), 0);
    mrt_engine_next_settled(core.engine);
    mrt_engine_next_settled(core.engine);
    assert_int_equal(waiter.error, MORTISE_OK);
    assert_int_equal(try.state, MRT_WAITER_DONE);
    assert_int_equal(try.error, MORTISE_EBUSY);
    core_free(&core);
}

static void test_c11_an_adoption_that_is_given_up_leaves_the_ticket_detached(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = adopting(1, 100);
    adopt(&core, &waiter);
    core_start(&core);
    cancel(&core, &waiter); /* before it is sent */
    core_no_command(&core);

    waiter = adopting(1, 100);
    adopt(&core, &waiter);
    struct mrt_command *append = fetch_adoption(&core);
    cancel(&core, &waiter);
    core_no_command(&core);
    core_view(&core, append, 0); /* done too late */
    struct mrt_command *command = core_fetch(&core, MRT_DETACH);
    assert_true(mrt_id_equal(command->ticket, detached_id));
    assert_true(mrt_id_equal(command->detached_id, detached_id));
    core_fail(&core, command, MORTISE_EPERMISSION); /* it cannot be taken out either */
    core_pass(&core, LONG_PAUSE);
    core_view(&core, core_fetch(&core, MRT_DETACH), 0);
    core_no_command(&core);
    core_free(&core);
}

static void test_c11_an_adoption_of_unknown_outcome_is_put_back_when_given_up(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter;
    core_answer(&core, begin_adopting(&core, &waiter, 100), MRT_UNKNOWN);
    cancel(&core, &waiter);
    core_answer(&core, core_fetch(&core, MRT_DETACH), MRT_GONE);
    core_no_command(&core);

    waiter = adopting(1, 100);
    adopt(&core, &waiter);
    core_answer(&core, fetch_adoption(&core), MRT_UNKNOWN);
    core_pass(&core, LONG_PAUSE);
    struct mrt_command *append = fetch_adoption(&core);
    cancel(&core, &waiter);
    core_fail(&core, append, MORTISE_ENOTHELD); /* nothing to be put right */
    core_no_command(&core);

    waiter = adopting(1, 100);
    adopt(&core, &waiter);
    core_answer(&core, fetch_adoption(&core), MRT_UNKNOWN);
    core_pass(&core, LONG_PAUSE);
    append = fetch_adoption(&core);
    cancel(&core, &waiter);
    core_fail(&core, append, MORTISE_EUNREACHABLE); /* the first attempt may have been done */
    core_answer(&core, core_fetch(&core, MRT_DETACH), MRT_GONE);
    core_no_command(&core);
    core_free(&core);
}

static void test_c11_a_refusal_after_an_unknown_outcome_leaves_it_as_it_was(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter;
    core_answer(&core, begin_adopting(&core, &waiter, 100), MRT_UNKNOWN);
    core_pass(&core, LONG_PAUSE);
    core_fail(&core, fetch_adoption(&core), MORTISE_EPERMISSION);
    core_done(&core, &waiter, MORTISE_EPERMISSION);
    core_view(&core, core_fetch(&core, MRT_DETACH), 0); /* the first attempt has adopted it */
    core_no_command(&core);
    core_free(&core);
}

static void test_c11_the_session_ends_while_adopting(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter;
    struct mrt_command *append = begin_adopting(&core, &waiter, 100);
    core_session_lost(&core);
    core_answer(&core, append, MRT_UNKNOWN);
    core_answer(&core, core_fetch(&core, MRT_STOP), MRT_STOPPED);
    core_start(&core);
    core_view(&core, fetch_adoption(&core), 0); /* again, in the new one */
    core_done(&core, &waiter, MORTISE_OK);
    core_free(&core);
}

static void test_c11_adopting_again_needs_no_answer_of_a_lost_session(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter;
    begin_adopting(&core, &waiter, 100); /* and it stays without an answer */
    core_session_lost(&core);
    cancel(&core, &waiter);
    core_answer(&core, core_fetch(&core, MRT_STOP), MRT_STOPPED);
    core_view(&core, begin_adopting(&core, &waiter, 100), 0);
    core_done(&core, &waiter, MORTISE_OK);
    mrt_engine_attend(waiter.hold);
    core_fetch(&core, MRT_REFRESH);
    core_free(&core);
}

static void test_c11_of_two_adoptions_of_one_client_the_second_is_busy(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter first = adopting(1, 100), second = adopting(2, 100), other = adopting(3, 100);
    other.adopts.low++;
    adopt(&core, &first);
    adopt(&core, &second); /* the same */
    expect_at_once(&core, &second, MORTISE_EBUSY);
    adopt(&core, &other); /* one of them is not there; it may be the first */
    expect_at_once(&core, &other, MORTISE_EBUSY);
    core_start(&core);
    struct mrt_command *append = fetch_adoption(&core);
    cancel(&core, &first);
    second = adopting(2, 100);
    adopt(&core, &second); /* the first is being put back */
    expect_at_once(&core, &second, MORTISE_EBUSY);
    core_view(&core, append, 0);
    core_view(&core, core_fetch(&core, MRT_DETACH), 0);
    adopt(&core, &second);
    core_view(&core, fetch_adoption(&core), 0);
    core_done(&core, &second, MORTISE_OK);
    first = adopting(1, 100);
    adopt(&core, &first); /* it is held */
    expect_at_once(&core, &first, MORTISE_ENOTHELD);
    adopt(&core, &other);
    expect_at_once(&core, &other, MORTISE_ENOTHELD);
    assert_int_equal(core_release(&core, second.hold, 2), MORTISE_OK);
    first = adopting(1, 100);
    adopt(&core, &first); /* it is used up, though the store has not taken it out yet */
    expect_at_once(&core, &first, MORTISE_ENOTHELD);
    core_free(&core);
}

static void test_c11_readers_adopt_side_by_side(void **state)
{
    (void)state;
    struct core core;
    open_read_write(&core);
    struct mrt_waiter first = adopting(1, 100), second = adopting(2, 100);
    second.adopts.low++;
    adopt(&core, &first);
    adopt(&core, &second);
    core_start(&core);
    struct mrt_command *one = core_fetch(&core, MRT_APPEND);
    struct mrt_command *other = core_fetch(&core, MRT_APPEND);
    core_view(&core, one, 0);
    core_done(&core, &second, MORTISE_OK); /* the newest stands first */
    core_view(&core, other, 1);
    core_done(&core, &first, MORTISE_OK);
    core_free(&core);
}

static void test_c11_adopting_fails_without_memory_and_on_a_closed_client(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = adopting(1, 100);
    core_fail_allocations(0);
    adopt(&core, &waiter);
    core_fail_allocations(-1);
    expect_at_once(&core, &waiter, MORTISE_ENOMEM);
    mrt_engine_close(core.engine, core.now);
    waiter = adopting(1, 100);
    adopt(&core, &waiter);
    expect_at_once(&core, &waiter, MORTISE_ECLOSED);
    core_free(&core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_c11_a_hold_is_detached),
        cmocka_unit_test(test_c11_nested_foreign_and_lost_holds_are_not_detached),
        cmocka_unit_test(test_c11_a_writer_that_reads_too_is_not_detached),
        cmocka_unit_test(test_c11_detaching_is_repeated_until_it_is_known),
        cmocka_unit_test(test_c11_detaching_waits_for_an_earlier_command),
        cmocka_unit_test(test_c11_a_ticket_that_was_broken_is_not_detached),
        cmocka_unit_test(test_c11_a_refused_detach_leaves_the_lock_held),
        cmocka_unit_test(test_c11_the_session_ends_while_detaching),
        cmocka_unit_test(test_c11_a_busy_store_is_asked_to_detach_again),
        cmocka_unit_test(test_c11_a_wait_for_a_detach_may_be_given_up),
        cmocka_unit_test(test_c11_a_ticket_is_adopted),
        cmocka_unit_test(test_c11_the_fence_of_an_adopted_hold_never_falls),
        cmocka_unit_test(test_c11_a_revoked_ticket_is_adopted_and_its_adopter_is_told),
        cmocka_unit_test(test_c11_adopting_fails_where_nothing_is_detached),
        cmocka_unit_test(test_c11_an_adopter_is_served_before_waiters_of_its_client),
        cmocka_unit_test(test_c11_a_try_does_not_wait_for_an_adopter),
        cmocka_unit_test(test_c11_an_adoption_that_is_given_up_leaves_the_ticket_detached),
        cmocka_unit_test(test_c11_an_adoption_of_unknown_outcome_is_put_back_when_given_up),
        cmocka_unit_test(test_c11_a_refusal_after_an_unknown_outcome_leaves_it_as_it_was),
        cmocka_unit_test(test_c11_the_session_ends_while_adopting),
        cmocka_unit_test(test_c11_adopting_again_needs_no_answer_of_a_lost_session),
        cmocka_unit_test(test_c11_of_two_adoptions_of_one_client_the_second_is_busy),
        cmocka_unit_test(test_c11_readers_adopt_side_by_side),
        cmocka_unit_test(test_c11_adopting_fails_without_memory_and_on_a_closed_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
