/* SPDX-License-Identifier: Apache-2.0 */
/* Holds: whose they are, how deep, stale ones, what is told of them, and asking the store. */
#include "core_fixture.h"

static int release_as(struct core *core, struct mrt_hold *hold, uint64_t generation, uint64_t owner)
{
    return mrt_engine_release(core->engine, hold, generation, owner, core->now);
}

static void test_a3_f1_nested_acquires_make_no_request(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7), again = core_waiter(7);
    core_grant(&core, &waiter);
    uint64_t commands = mrt_engine_counters(core.engine)->commands;
    for (uint32_t i = 2; i <= 1001; i++) {
        if (i % 2) {
            assert_ptr_equal(mrt_engine_nest(core.queue, 7), waiter.hold);
        } else {
            core_acquire(&core, &again);
            assert_int_equal(again.error, MORTISE_OK);
            assert_ptr_equal(again.hold, waiter.hold);
        }
        assert_int_equal(waiter.hold->count, i);
    }
    assert_int_equal(mrt_engine_counters(core.engine)->nested, 1000);
    assert_int_equal(mrt_engine_counters(core.engine)->acquisitions, 1);
    for (uint32_t i = 1001; i > 1; i--) {
        assert_true(mrt_hold_nested(waiter.hold, waiter.hold->generation));
        assert_int_equal(core_release(&core, waiter.hold, 7), MORTISE_OK);
        assert_int_equal(mrt_hold_state(waiter.hold, core.now), MORTISE_HELD);
    }
    core_no_command(&core); /* i6, z3: an inner release does not touch the store */
    assert_false(mrt_hold_nested(waiter.hold, waiter.hold->generation));
    assert_int_equal(core_release(&core, waiter.hold, 7), MORTISE_OK);
    core_fetch(&core, MRT_REMOVE);
    assert_int_equal(mrt_engine_counters(core.engine)->commands, commands + 1);
    core_free(&core);
}

static void test_z10_a_store_without_fences_gives_none_on_any_turn(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    core.shown.fence = 0;
    struct mrt_waiter first = core_waiter(7), second = core_waiter(8);
    core_grant(&core, &first);
    core_acquire(&core, &second);
    assert_int_equal(first.hold->fence, 0);
    assert_int_equal(core_release(&core, first.hold, 7), MORTISE_OK);
    core_done(&core, &second, MORTISE_OK);
    assert_int_equal(second.hold->fence, 0);
    core_free(&core);
}

static void test_nesting_without_a_clock_only_where_no_clock_can_end_it(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    core.lease = MRT_SECOND;
    struct mrt_waiter waiter = core_waiter(7);
    assert_null(mrt_engine_nest(core.queue, 7)); /* nobody has it */
    core_grant(&core, &waiter);
    assert_null(mrt_engine_nest(core.queue, 7)); /* a clock can end it */
    core_acquire(&core, &waiter);
    assert_false(mrt_hold_nested(waiter.hold, waiter.hold->generation));
    core_free(&core);
    core.lease = 0;
    core_open(&core, NULL);
    waiter = core_waiter(7);
    core_grant(&core, &waiter);
    assert_null(mrt_engine_nest(core.queue, 8));
    assert_null(mrt_engine_nest(core.queue, 0));
    core.queue->recipe.reentrant = false;
    assert_null(mrt_engine_nest(core.queue, 7));
    core_free(&core);
}

static void test_a_hold_without_an_owner_does_not_nest(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(0), again = core_waiter(0);
    core_grant(&core, &waiter);
    core_acquire(&core, &again);
    assert_int_equal(again.state, MRT_WAITER_WAITING);
    assert_int_equal(release_as(&core, waiter.hold, waiter.hold->generation, 9), MORTISE_OK);
    core_done(&core, &again, MORTISE_OK);
    core_free(&core);
}

static void test_f20_z5_a_stale_hold_is_harmless(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    core_grant(&core, &waiter);
    struct mrt_hold *slot = waiter.hold;
    uint64_t stale = slot->generation;
    assert_true(mrt_hold_live(slot, stale));
    assert_int_equal(core_release(&core, slot, 7), MORTISE_OK);
    assert_false(mrt_hold_live(slot, stale));
    assert_int_equal(release_as(&core, slot, stale, 7), MORTISE_ENOTHELD);
    core_settle_all(&core);
    waiter = core_waiter(7);
    core_grant(&core, &waiter);
    assert_ptr_equal(waiter.hold, slot); /* the slot is used again */
    assert_true(slot->generation > stale);
    assert_int_equal(release_as(&core, slot, stale, 7), MORTISE_ENOTHELD);
    assert_false(mrt_hold_nested(slot, stale));
    assert_int_equal(mrt_hold_state(slot, core.now), MORTISE_HELD);
    assert_int_equal(release_as(&core, slot, slot->generation, 7), MORTISE_OK);
    core_free(&core);
}

static void test_f19_i7_only_the_owner_releases(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    core_grant(&core, &waiter);
    assert_int_equal(waiter.hold->owner, 7);
    assert_int_equal(core_release(&core, waiter.hold, 8), MORTISE_ENOTOWNER);
    assert_int_equal(waiter.hold->count, 1);
    assert_int_equal(mrt_hold_state(waiter.hold, core.now), MORTISE_HELD);
    core_no_command(&core);
    assert_int_equal(core_release(&core, waiter.hold, 0), MORTISE_OK); /* whoever has it */
    core_free(&core);
}

static void test_f20_the_next_holder_has_a_generation_of_its_own(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter a = core_waiter(1), b = core_waiter(2);
    core_grant(&core, &a);
    core_acquire(&core, &b);
    uint64_t generation = a.hold->generation;
    assert_int_equal(core_release(&core, a.hold, 1), MORTISE_OK);
    core_done(&core, &b, MORTISE_OK);
    assert_ptr_not_equal(a.hold, b.hold);
    assert_int_equal(release_as(&core, a.hold, generation, 1), MORTISE_ENOTHELD);
    assert_int_equal(core_release(&core, b.hold, 2), MORTISE_OK);
    core_free(&core);
}

/* ------------------------------------------------------------------- telling */

static void test_g4_states_are_told_once_in_order(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    core_grant(&core, &waiter);
    struct mrt_hold *hold = waiter.hold;
    mrt_hold_tell(hold, MORTISE_HELD); /* known */
    assert_false(mrt_engine_has_told(core.engine));
    mrt_hold_tell(hold, MORTISE_SUSPENDED);
    mrt_hold_tell(hold, MORTISE_HELD); /* not yet fetched: the newest is told */
    assert_ptr_equal(mrt_engine_next_told(core.engine), hold);
    assert_null(mrt_engine_next_told(core.engine));
    mrt_hold_tell(hold, MORTISE_LOST);
    mrt_hold_tell(hold, MORTISE_HELD); /* nothing follows LOST */
    assert_int_equal(hold->told, MORTISE_LOST);
    assert_ptr_equal(mrt_engine_next_told(core.engine), hold);
    core_free(&core);
}

static void test_nothing_is_told_of_a_released_hold(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    core_grant(&core, &waiter);
    core_session_lost(&core);
    assert_true(mrt_engine_has_told(core.engine));
    assert_int_equal(core_release(&core, waiter.hold, 7), MORTISE_ELOST);
    assert_false(mrt_engine_has_told(core.engine));
    core_free(&core);
}

static void test_a_lost_hold_does_not_keep_the_next_owner_out(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter lost = core_waiter(7), next = core_waiter(8), again = core_waiter(7);
    core_grant(&core, &lost);
    core_acquire(&core, &next);
    core_session_lost(&core);
    core_answer(&core, core_fetch(&core, MRT_STOP), MRT_STOPPED);
    core_start(&core);
    core_view(&core, core_fetch(&core, MRT_APPEND), 0);
    core_done(&core, &next, MORTISE_OK);
    core_acquire(&core, &again);
    assert_int_equal(again.error, MORTISE_ELOST);
    assert_int_equal(core_release(&core, lost.hold, 8), MORTISE_ENOTOWNER);
    assert_int_equal(core_release(&core, lost.hold, 7), MORTISE_ELOST);
    assert_int_equal(mrt_hold_state(next.hold, core.now), MORTISE_HELD);
    assert_true(next.hold->fence >= 100);
    core_free(&core);
}

/* -------------------------------------------------------------------- verify */

static struct mrt_waiter verify(struct core *core, struct mrt_hold *hold, struct mrt_waiter *waiter)
{
    *waiter = core_waiter(0);
    mrt_engine_verify(core->engine, hold, waiter, core->now);
    return *waiter;
}

static void test_verify_asks_the_store(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7), asked[2];
    core_grant(&core, &waiter);
    verify(&core, waiter.hold, &asked[0]);
    verify(&core, waiter.hold, &asked[1]);
    core_view(&core, core_fetch(&core, MRT_REFRESH), 0);
    core_done(&core, &asked[0], MORTISE_OK); /* sent after the question */
    core_none_settled(&core);                /* not after the second one */
    core_view(&core, core_fetch(&core, MRT_REFRESH), 0);
    core_done(&core, &asked[1], MORTISE_OK);
    core_no_command(&core);
    core_free(&core);
}

static void test_verify_does_not_believe_an_answer_older_than_the_question(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7), asked;
    core_grant(&core, &waiter);
    core_wake(&core, core.queue->ticket->id);
    struct mrt_command *old = core_fetch(&core, MRT_REFRESH);
    verify(&core, waiter.hold, &asked);
    core_view(&core, old, 0);
    core_none_settled(&core);
    core_view(&core, core_fetch(&core, MRT_REFRESH), 0);
    core_done(&core, &asked, MORTISE_OK);
    core_free(&core);
}

static void test_verify_finds_the_loss(void **state)
{
    (void)state;
    static const enum mrt_event_type answers[] = {MRT_GONE, MRT_VIEW};
    for (size_t i = 0; i < 2; i++) {
        struct core core;
        core_open(&core, NULL);
        struct mrt_waiter waiter = core_waiter(7), asked;
        core_grant(&core, &waiter);
        verify(&core, waiter.hold, &asked);
        struct mrt_command *look = core_fetch(&core, MRT_REFRESH);
        if (answers[i] == MRT_GONE)
            core_answer(&core, look, MRT_GONE);
        else
            core_view(&core, look, 1); /* it is there, but behind: not what was granted */
        core_done(&core, &asked, MORTISE_ELOST);
        if (answers[i] == MRT_VIEW)
            core_fetch(&core, MRT_REMOVE);
        verify(&core, waiter.hold, &asked); /* known: nobody is asked */
        assert_int_equal(asked.error, MORTISE_ELOST);
        core_no_command(&core);
        core_free(&core);
    }
}

static void test_verify_of_a_session_past_its_lease(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    core.lease = MRT_SECOND;
    struct mrt_waiter waiter = core_waiter(7), asked;
    core_grant(&core, &waiter);
    core.now += MRT_SECOND;
    verify(&core, waiter.hold, &asked);
    assert_int_equal(asked.state, MRT_WAITER_DONE);
    assert_int_equal(asked.error, MORTISE_ELOST);
    core_free(&core);
}

static void test_verify_times_out_and_is_cancelled(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7), asked = core_waiter(0);
    core_grant(&core, &waiter);
    asked.deadline = core.now + 5 * MS;
    mrt_engine_verify(core.engine, waiter.hold, &asked, core.now);
    core_pass(&core, 5 * MS);
    core_done(&core, &asked, MORTISE_ETIMEOUT);
    verify(&core, waiter.hold, &asked);
    mrt_engine_cancel(core.engine, &asked, MORTISE_ECANCELLED, core.now);
    core_done(&core, &asked, MORTISE_ECANCELLED);
    core_view(&core, core_fetch(&core, MRT_REFRESH), 0);
    core_none_settled(&core);
    core_free(&core);
}

static void test_verify_of_a_hold_released_meanwhile(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(0), asked;
    core_grant(&core, &waiter);
    verify(&core, waiter.hold, &asked);
    assert_int_equal(core_release(&core, waiter.hold, 0), MORTISE_OK);
    core_done(&core, &asked, MORTISE_ENOTHELD);
    core_free(&core);
}

static void test_verify_is_repeated_while_the_store_fails(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7), asked;
    core_grant(&core, &waiter);
    verify(&core, waiter.hold, &asked);
    core_fail(&core, core_fetch(&core, MRT_REFRESH), MORTISE_EUNREACHABLE);
    core_none_settled(&core);
    core_pass(&core, 20 * MS);
    core_view(&core, core_fetch(&core, MRT_REFRESH), 0);
    core_done(&core, &asked, MORTISE_OK);
    core_free(&core);
}

static void test_f17_close_ends_a_verify(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7), asked;
    core_grant(&core, &waiter);
    verify(&core, waiter.hold, &asked);
    mrt_engine_close(core.engine, core.now);
    assert_int_equal(asked.state, MRT_WAITER_DONE);
    assert_true(asked.error != MORTISE_OK);
    core_free(&core);
}

/* ---------------------------------------------------------------- the slots */

static struct mrt_hold *slots[4];
static size_t taken, given_back;

static struct mrt_hold *take_slot(size_t size)
{
    struct mrt_hold *slot = taken < 4 ? calloc(1, size) : NULL;
    if (!slot)
        return NULL;
    slot->generation = 1000 * (taken + 1);
    return slots[taken++] = slot;
}

static void give_back_slot(struct mrt_hold *slot)
{
    given_back++;
    assert_in_range(slot->generation, 1000, 4999);
}

static void test_u34_slots_are_the_hosts(void **state)
{
    (void)state;
    struct core core;
    struct mrt_engine_config config = core_config();
    config.take_slot = take_slot;
    config.give_back_slot = give_back_slot;
    core_open(&core, &config);
    struct mrt_waiter held = core_waiter(7), waits = core_waiter(8), too = core_waiter(9),
                      last = core_waiter(10), refused = core_waiter(11);
    core_grant(&core, &held);
    assert_ptr_equal(held.hold, slots[0]);
    assert_int_equal(held.hold->generation, 1000);
    core_acquire(&core, &waits);
    core_acquire(&core, &too);
    core_acquire(&core, &last);
    core_acquire(&core, &refused);
    assert_int_equal(refused.error, MORTISE_ENOMEM);
    mrt_engine_cancel(core.engine, &too, MORTISE_ECANCELLED, core.now);
    core_done(&core, &too, MORTISE_ECANCELLED);
    core_free(&core); /* one is held, one is free, and two are reserved for waiters */
    assert_int_equal(taken, 4);
    assert_int_equal(given_back, 4);
    for (size_t i = 0; i < 4; i++)
        free(slots[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a3_f1_nested_acquires_make_no_request),
        cmocka_unit_test(test_z10_a_store_without_fences_gives_none_on_any_turn),
        cmocka_unit_test(test_nesting_without_a_clock_only_where_no_clock_can_end_it),
        cmocka_unit_test(test_a_hold_without_an_owner_does_not_nest),
        cmocka_unit_test(test_f20_z5_a_stale_hold_is_harmless),
        cmocka_unit_test(test_f19_i7_only_the_owner_releases),
        cmocka_unit_test(test_f20_the_next_holder_has_a_generation_of_its_own),
        cmocka_unit_test(test_g4_states_are_told_once_in_order),
        cmocka_unit_test(test_nothing_is_told_of_a_released_hold),
        cmocka_unit_test(test_a_lost_hold_does_not_keep_the_next_owner_out),
        cmocka_unit_test(test_verify_asks_the_store),
        cmocka_unit_test(test_verify_does_not_believe_an_answer_older_than_the_question),
        cmocka_unit_test(test_verify_finds_the_loss),
        cmocka_unit_test(test_verify_of_a_session_past_its_lease),
        cmocka_unit_test(test_verify_times_out_and_is_cancelled),
        cmocka_unit_test(test_verify_of_a_hold_released_meanwhile),
        cmocka_unit_test(test_verify_is_repeated_while_the_store_fails),
        cmocka_unit_test(test_f17_close_ends_a_verify),
        cmocka_unit_test(test_u34_slots_are_the_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
