/* SPDX-License-Identifier: Apache-2.0 */
/* Holds that end by themselves, and places in the queue that are told. */
#include "core_fixture.h"

static struct mrt_waiter limited(uint64_t owner, mrt_time longest)
{
    struct mrt_waiter waiter = core_waiter(owner);
    waiter.hold_max = longest;
    return waiter;
}

/* A client whose waiter, of the owner 7, has been granted the lock for so long. */
static struct mrt_hold *hold_for(struct core *core, struct mrt_waiter *waiter, mrt_time longest)
{
    core_open(core, NULL);
    *waiter = limited(7, longest);
    core_grant(core, waiter);
    return waiter->hold;
}

static void told_lost(struct core *core, const struct mrt_hold *hold)
{
    assert_ptr_equal(mrt_engine_next_told(core->engine), hold);
    assert_int_equal(hold->told, MORTISE_LOST);
    assert_null(mrt_engine_next_told(core->engine));
}

static void test_a_hold_ends_by_itself_and_is_given_back(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    struct mrt_hold *hold = hold_for(&core, &waiter, 100 * MS);
    assert_int_equal(mrt_hold_valid_until(hold), core.now + 100 * MS);
    core_pass(&core, 99 * MS);
    assert_int_equal(mrt_hold_state(hold, core.now), MORTISE_HELD);
    assert_int_equal(mrt_hold_state(hold, core.now + 1 * MS), MORTISE_LOST); /* by the clock */
    assert_false(mrt_engine_has_told(core.engine));
    core_pass(&core, 1 * MS);
    told_lost(&core, hold);
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
    assert_int_equal(mrt_engine_counters(core.engine)->losses, 1);
    assert_int_equal(core_release(&core, hold, 7), MORTISE_ELOST);
    assert_int_equal(core_release(&core, hold, 7), MORTISE_ENOTHELD);
    core_pass(&core, 1000 * MS);
    core_no_command(&core);
    core_free(&core);
}

static void test_the_holder_gets_a_revoke_request_before_its_time_ends(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    struct mrt_hold *hold = hold_for(&core, &waiter, 100 * MS);
    mrt_engine_listen(hold, true);
    core_view(&core, core_fetch(&core, MRT_REFRESH), 0);
    core_pass(&core, 89 * MS);
    assert_null(mrt_engine_next_asked(core.engine));
    core_pass(&core, 1 * MS);
    assert_ptr_equal(mrt_engine_next_asked(core.engine), hold);
    assert_int_equal(core_release(&core, hold, 7), MORTISE_OK);
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
    core_pass(&core, 1000 * MS); /* no timer of it is left */
    assert_false(mrt_engine_has_told(core.engine));
    assert_int_equal(mrt_engine_next_time(core.engine), MRT_TIME_NEVER);
    core_free(&core);
}

static void test_the_end_of_a_hold_is_set_anew(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    struct mrt_hold *hold = hold_for(&core, &waiter, 100 * MS);
    uint64_t generation = hold->generation;
    core_pass(&core, 95 * MS); /* it was asked to end already */
    assert_int_equal(mrt_hold_extend(hold, generation, 50 * MS, core.now), MORTISE_OK);
    assert_int_equal(mrt_hold_valid_until(hold), core.now + 50 * MS);
    core_pass(&core, 49 * MS);
    assert_int_equal(mrt_hold_state(hold, core.now), MORTISE_HELD);
    assert_int_equal(mrt_hold_extend(hold, generation, 0, core.now), MORTISE_OK);
    assert_int_equal(mrt_hold_extend(hold, generation, 50 * MS, core.now + MS), MORTISE_ELOST);
    told_lost(&core, hold);
    assert_int_equal(core_release(&core, hold, 7), MORTISE_ELOST);
    assert_int_equal(mrt_hold_extend(hold, generation, 50 * MS, core.now), MORTISE_ENOTHELD);
    core_free(&core);
}

static void test_a_hold_that_ends_by_its_time_goes_to_the_next_of_the_client(void **state)
{
    (void)state;
    struct core core;
    struct mrt_engine_config config = core_config();
    config.budget = 1000 * MS;
    core_open(&core, &config);
    struct mrt_waiter one = limited(1, 50 * MS), two = core_waiter(2);
    core_grant(&core, &one);
    core_acquire(&core, &two);
    core_pass(&core, 50 * MS);
    core_pass(&core, 1 * MS);
    core_done(&core, &two, MORTISE_OK);
    assert_int_equal(mrt_hold_state(two.hold, core.now), MORTISE_HELD);
    told_lost(&core, one.hold);
    assert_int_equal(mrt_hold_valid_until(two.hold), MRT_TIME_NEVER); /* it has none */
    core_free(&core);
}

static void test_nested_acquires_do_not_move_the_end(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = limited(7, 50 * MS), again = limited(7, 500 * MS);
    core_grant(&core, &waiter);
    assert_null(mrt_engine_nest(core.queue, 7)); /* a clock can end it */
    core.now += 20 * MS;
    core_acquire(&core, &again);
    assert_int_equal(again.error, MORTISE_OK);
    assert_false(mrt_hold_nested(waiter.hold, waiter.hold->generation));
    core.now += 30 * MS; /* nobody has ticked yet */
    core_acquire(&core, &again);
    assert_int_equal(again.error, MORTISE_ELOST);
    assert_int_equal(core_release(&core, waiter.hold, 7), MORTISE_ELOST);
    assert_int_equal(core_release(&core, waiter.hold, 7), MORTISE_ELOST);
    core_fetch(&core, MRT_REMOVE);
    core_free(&core);
}

static void test_every_call_finds_a_hold_past_its_time_ended(void **state)
{
    (void)state;
    for (int call = 0; call < 5; call++) {
        struct core core;
        core_open_recipe(&core, &mrt_read_write);
        struct mrt_waiter waiter = core_asking(7, MRT_WRITER), asked = core_waiter(0);
        waiter.hold_max = 50 * MS;
        core_grant(&core, &waiter);
        struct mrt_hold *hold = waiter.hold;
        uint64_t generation = hold->generation;
        core.now += 50 * MS;
        if (call == 0) {
            assert_int_equal(core_release(&core, hold, 7), MORTISE_ELOST);
        } else if (call == 1) {
            assert_int_equal(mrt_engine_lighten(core.engine, hold, generation, 7, 1, core.now),
                             MORTISE_ELOST);
        } else if (call == 2) {
            assert_int_equal(mrt_hold_set_value(hold, generation, "v", 1, core.now), MORTISE_ELOST);
        } else if (call == 3) {
            mrt_engine_verify(core.engine, hold, &asked, core.now);
            assert_int_equal(asked.error, MORTISE_ELOST);
        } else {
            mrt_engine_close(core.engine, core.now);
            assert_int_equal(mrt_engine_counters(core.engine)->losses, 1);
        }
        core_fetch(&core, call < 4 ? MRT_REMOVE : MRT_STOP);
        core_free(&core);
    }
}

static void test_a_verify_under_way_ends_with_the_hold(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter, asked = core_waiter(0);
    struct mrt_hold *hold = hold_for(&core, &waiter, 50 * MS);
    mrt_engine_verify(core.engine, hold, &asked, core.now);
    core_fetch(&core, MRT_REFRESH);
    core_pass(&core, 50 * MS);
    core_done(&core, &asked, MORTISE_ELOST);
    core_free(&core);
}

static void test_both_sides_of_a_writer_end_together(void **state)
{
    (void)state;
    struct core core;
    core_open_recipe(&core, &mrt_read_write);
    struct mrt_waiter write = core_asking(7, MRT_WRITER), read = core_asking(7, MRT_READER);
    write.hold_max = 50 * MS;
    core_grant(&core, &write);
    core_acquire(&core, &read);
    assert_int_equal(read.error, MORTISE_OK);
    assert_int_equal(mrt_hold_valid_until(read.hold), mrt_hold_valid_until(write.hold));
    core_pass(&core, 50 * MS);
    core_pass(&core, 1 * MS);
    assert_int_equal(mrt_engine_counters(core.engine)->losses, 2);
    assert_int_equal(write.hold->told, MORTISE_LOST);
    assert_int_equal(read.hold->told, MORTISE_LOST);
    core_free(&core);
}

/* ------------------------------------------------------------------ places */

static void test_places_are_told_as_they_change(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(1), silent = core_waiter(2), late = core_waiter(3);
    waiter.wants_place = late.wants_place = true;
    core_acquire(&core, &silent);
    core_start(&core);
    core.shown.place = 3;
    struct mrt_command *command = core_fetch(&core, MRT_APPEND);
    assert_false(command->wants_place);
    core_acquire(&core, &waiter);
    core_view(&core, command, 1);
    assert_true(mrt_engine_has_told(core.engine));
    assert_ptr_equal(mrt_engine_next_placed(core.engine), &waiter);
    assert_int_equal(waiter.place, 3);
    assert_null(mrt_engine_next_placed(core.engine));
    core_wake(&core, core.queue->ticket->id);
    command = core_fetch(&core, MRT_REFRESH);
    assert_true(command->wants_place);
    core_view(&core, command, 1); /* nothing new */
    assert_false(mrt_engine_has_told(core.engine));
    core.shown.place = 0; /* not known */
    core_wake(&core, core.queue->ticket->id);
    core_view(&core, core_fetch(&core, MRT_REFRESH), 1);
    assert_false(mrt_engine_has_told(core.engine));
    core_acquire(&core, &late);
    for (core.shown.place = 2; core.shown.place > 0; core.shown.place--) {
        core_wake(&core, core.queue->ticket->id);
        core_view(&core, core_fetch(&core, MRT_REFRESH), 1);
    }
    assert_ptr_equal(mrt_engine_next_placed(core.engine), &waiter); /* two are told as one */
    assert_int_equal(waiter.place, 1);
    mrt_engine_cancel(core.engine, &late, MORTISE_ECANCELLED, core.now);
    assert_null(mrt_engine_next_placed(core.engine)); /* who has gone hears nothing */
    core_free(&core);
}

/* The caller may use the waiter's memory again as soon as the lock is granted. */
static void test_a_holder_is_told_no_place(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(1);
    waiter.wants_place = waiter.competes = true;
    core_acquire(&core, &waiter);
    core_start(&core);
    core.shown.place = 1;
    core_view(&core, core_fetch(&core, MRT_APPEND), 1);
    assert_true(mrt_engine_has_told(core.engine));
    core_wake(&core, core.queue->ticket->id);
    core_view(&core, core_fetch(&core, MRT_REFRESH), 0);
    assert_int_equal(waiter.state, MRT_WAITER_WOKEN);
    mrt_engine_retry(core.engine, &waiter, core.now);
    assert_int_equal(waiter.state, MRT_WAITER_DONE);
    assert_null(mrt_engine_next_placed(core.engine));
    core_free(&core);
}

static void test_each_ticket_of_a_shared_lock_has_its_place(void **state)
{
    (void)state;
    struct core core;
    core_open_recipe(&core, &mrt_read_write);
    struct mrt_waiter one = core_asking(1, MRT_WRITER), two = core_asking(2, MRT_WRITER);
    one.wants_place = true;
    core_acquire(&core, &one);
    core_start(&core);
    core_acquire(&core, &two);
    struct mrt_command *first = core_fetch(&core, MRT_APPEND),
                       *second = core_fetch(&core, MRT_APPEND);
    assert_true(first->wants_place);
    assert_false(second->wants_place);
    core.shown.place = 1;
    core_view(&core, first, 1);
    core_view(&core, second, MRT_WRITER);
    assert_ptr_equal(mrt_engine_next_placed(core.engine), &one);
    assert_null(mrt_engine_next_placed(core.engine));
    core_wake(&core, one.ticket->id);
    core_view(&core, core_fetch(&core, MRT_REFRESH), 0);
    core_done(&core, &one, MORTISE_OK);
    core_wake(&core, one.hold->ticket->id);
    assert_false(core_fetch(&core, MRT_REFRESH)->wants_place); /* it has it */
    core_free(&core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_hold_ends_by_itself_and_is_given_back),
        cmocka_unit_test(test_the_holder_gets_a_revoke_request_before_its_time_ends),
        cmocka_unit_test(test_the_end_of_a_hold_is_set_anew),
        cmocka_unit_test(test_a_hold_that_ends_by_its_time_goes_to_the_next_of_the_client),
        cmocka_unit_test(test_nested_acquires_do_not_move_the_end),
        cmocka_unit_test(test_every_call_finds_a_hold_past_its_time_ended),
        cmocka_unit_test(test_a_verify_under_way_ends_with_the_hold),
        cmocka_unit_test(test_both_sides_of_a_writer_end_together),
        cmocka_unit_test(test_places_are_told_as_they_change),
        cmocka_unit_test(test_a_holder_is_told_no_place),
        cmocka_unit_test(test_each_ticket_of_a_shared_lock_has_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
