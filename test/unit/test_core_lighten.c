/* SPDX-License-Identifier: Apache-2.0 */
/* Two holds in one ticket, and a ticket made lighter while it is held. */
#include "core_shared_fixture.h"

#define LONG_PAUSE (20 * MS) /* longer than the first pause of a repetition */

static int lighten(struct core *core, const struct mrt_waiter *waiter, uint64_t weight)
{
    return mrt_engine_lighten(core->engine, waiter->hold, waiter->hold->generation, waiter->owner,
                              weight, core->now);
}

/* A waiter that had its answer at once, and is not in the settled list. */
static void expect_at_once(struct core *core, const struct mrt_waiter *waiter, int error)
{
    assert_int_equal(waiter->state, MRT_WAITER_DONE);
    assert_int_equal(waiter->error, error);
    core_none_settled(core);
    core_no_command(core);
}

/* Writes, and reads in the same ticket. */
static void write_and_read(struct core *core, struct mrt_waiter *write, struct mrt_waiter *read)
{
    core_grant(core, write);
    core_acquire(core, read);
    expect_at_once(core, read, MORTISE_OK);
}

static struct mrt_ticket *ticket_of(const struct mrt_waiter *waiter)
{
    assert_non_null(waiter->hold->ticket);
    return waiter->hold->ticket;
}

/* ---------------------------------------------------- two holds in one ticket */

static void test_e2_a_holder_that_may_not_nest_is_refused_or_waits(void **state)
{
    (void)state;
    struct core core;
    open_semaphore(&core, 3);
    struct mrt_waiter one = core_waiter(1), again = core_waiter(1), nobody = core_waiter(0);
    core_grant(&core, &one);
    core_acquire(&core, &again);
    expect_at_once(&core, &again, MORTISE_EDEADLOCK);
    core_acquire(&core, &nobody); /* who says of nobody that it asks may have any number */
    core_view(&core, core_fetch(&core, MRT_APPEND), 1);
    core_done(&core, &nobody, MORTISE_OK);
    core_free(&core);
}

static void test_e4_a_writer_may_read(void **state)
{
    (void)state;
    struct core core;
    open_read_write(&core);
    struct mrt_waiter write = writing(1), read = reading(1);
    write_and_read(&core, &write, &read);
    assert_ptr_not_equal(read.hold, write.hold);
    assert_int_equal(read.hold->fence, write.hold->fence);
    assert_ptr_equal(ticket_of(&read), ticket_of(&write));
    assert_int_equal(mrt_engine_counters(core.engine)->nested, 1);
    release(&core, &read); /* the lighter first: the ticket stays as it is */
    core_no_command(&core);
    release(&core, &write);
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
    core_no_command(&core);
    core_free(&core);
}

static void test_e4_reading_and_writing_nest_each_in_its_own_hold(void **state)
{
    (void)state;
    struct core core;
    open_read_write(&core);
    struct mrt_waiter write = writing(1), read = reading(1);
    write_and_read(&core, &write, &read);
    struct mrt_waiter write_again = writing(1), read_again = reading(1);
    core_acquire(&core, &write_again);
    core_acquire(&core, &read_again);
    assert_ptr_equal(write_again.hold, write.hold);
    assert_ptr_equal(read_again.hold, read.hold);
    assert_int_equal(write.hold->count, 2);
    assert_int_equal(read.hold->count, 2);
    release(&core, &write);
    core_no_command(&core); /* it writes still */
    release(&core, &write);
    assert_int_equal(core_fetch(&core, MRT_LIGHTEN)->weight, MRT_READER);
    core_free(&core);
}

static void test_e4_a_reader_that_asks_to_write_is_told_at_once(void **state)
{
    (void)state;
    struct core core;
    open_read_write(&core);
    struct mrt_waiter read = reading(1), write = writing(1), other = reading(2);
    core_grant(&core, &read);
    core_acquire(&core, &write);
    expect_at_once(&core, &write, MORTISE_EDEADLOCK);
    assert_null(write.hold);
    core_acquire(&core, &other); /* another's reading is no writer's business either */
    core_view(&core, core_fetch(&core, MRT_APPEND), MRT_READER);
    core_done(&core, &other, MORTISE_OK);
    assert_int_equal(read.hold->count, 1);
    release(&core, &read);
    core_fetch(&core, MRT_REMOVE);
    core_free(&core);
}

static void test_e4_no_memory_to_read_within_writing(void **state)
{
    (void)state;
    struct core core;
    open_read_write(&core);
    struct mrt_waiter write = writing(1), read = reading(1);
    core_grant(&core, &write);
    core_fail_allocations(0);
    core_acquire(&core, &read);
    expect_at_once(&core, &read, MORTISE_ENOMEM);
    assert_int_equal(ticket_of(&write)->holds, 1);
    core_free(&core);
}

static void test_e5_a_downgraded_writer_may_not_write_again(void **state)
{
    (void)state;
    struct core core;
    open_read_write(&core);
    struct mrt_waiter write = writing(1), read = reading(1);
    write_and_read(&core, &write, &read);
    release(&core, &write);
    core_view(&core, core_fetch(&core, MRT_LIGHTEN), 0);
    write = writing(1);
    core_acquire(&core, &write);
    expect_at_once(&core, &write, MORTISE_EDEADLOCK);
    core_free(&core);
}

/* ------------------------------------------------------------------ lighten */

static void test_e5_a_hold_made_lighter_in_place(void **state)
{
    (void)state;
    struct core core;
    open_read_write(&core);
    struct mrt_waiter write = writing(1);
    core_grant(&core, &write);
    assert_int_equal(lighten(&core, &write, MRT_READER), MORTISE_OK);
    const struct mrt_command *command = core_fetch(&core, MRT_LIGHTEN);
    assert_int_equal(command->weight, MRT_READER);
    assert_int_equal(command->fence, write.hold->fence);
    assert_true(mrt_id_equal(command->ticket, ticket_of(&write)->id));
    core_view(&core, command, 0);
    core_no_command(&core);
    assert_int_equal(write.hold->weight, MRT_READER);
    release(&core, &write);
    core_fetch(&core, MRT_REMOVE);
    core_free(&core);
}

static void test_the_ticket_weighs_as_much_as_its_heaviest_hold(void **state)
{
    (void)state;
    struct core core;
    open_read_write(&core);
    struct mrt_waiter write = writing(1), read = reading(1), other = reading(2);
    write_and_read(&core, &write, &read);
    core_acquire(&core, &other);
    struct mrt_command *append = core_fetch(&core, MRT_APPEND);
    assert_int_equal(lighten(&core, &write, 5), MORTISE_OK);
    struct mrt_command *command = core_fetch(&core, MRT_LIGHTEN);
    assert_int_equal(command->weight, 5);
    core_view(&core, append, 5);
    core_done(&core, &other, MORTISE_OK);
    core_view(&core, command, 0);
    release(&core, &write); /* the other's hold is not of this ticket */
    assert_int_equal(core_fetch(&core, MRT_LIGHTEN)->weight, MRT_READER);
    core_free(&core);
}

static void test_holds_that_cannot_be_downgraded(void **state)
{
    (void)state;
    struct core core;
    open_read_write(&core);
    struct mrt_waiter write = writing(1);
    core_grant(&core, &write);
    struct mrt_hold *hold = write.hold;
    uint64_t generation = hold->generation;
    assert_int_equal(lighten(&core, &write, 0), MORTISE_EINVALID);
    assert_int_equal(lighten(&core, &write, MRT_WRITER), MORTISE_EINVALID);
    assert_int_equal(mrt_engine_lighten(core.engine, hold, generation, 2, 1, core.now),
                     MORTISE_ENOTOWNER);
    assert_int_equal(mrt_engine_lighten(core.engine, hold, generation + 1, 1, 1, core.now),
                     MORTISE_ENOTHELD);
    core_no_command(&core);
    assert_int_equal(mrt_engine_lighten(core.engine, hold, generation, 0, 7, core.now),
                     MORTISE_OK); /* whoever has it */
    core_session_lost(&core);
    assert_int_equal(lighten(&core, &write, 1), MORTISE_ELOST);
    core_free(&core);
}

static void test_a_hold_without_an_owner_is_downgraded_by_any_thread(void **state)
{
    (void)state;
    struct core core;
    open_semaphore(&core, 3);
    struct mrt_waiter two = core_asking(0, 2);
    core_grant(&core, &two);
    assert_int_equal(
        mrt_engine_lighten(core.engine, two.hold, two.hold->generation, 9, 1, core.now),
        MORTISE_OK);
    core_fetch(&core, MRT_LIGHTEN);
    core_free(&core);
}

/* Held to read only, and the store not told yet: LIGHTEN is the command at hand. */
static struct mrt_command *downgrade(struct core *core, struct mrt_waiter *read)
{
    struct mrt_waiter write = writing(1);
    open_read_write(core);
    *read = reading(1);
    write_and_read(core, &write, read);
    release(core, &write);
    return core_fetch(core, MRT_LIGHTEN);
}

static void test_lighten_is_repeated_until_it_is_done(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter read;
    struct mrt_command *command = downgrade(&core, &read);
    core_answer(&core, command, MRT_UNKNOWN);
    core_no_command(&core);
    core_pass(&core, LONG_PAUSE);
    core_fail(&core, core_fetch(&core, MRT_LIGHTEN), MORTISE_EUNREACHABLE);
    core_no_command(&core);
    core_pass(&core, LONG_PAUSE * 2);
    command = core_fetch(&core, MRT_LIGHTEN);
    assert_int_equal(command->weight, MRT_READER);
    core.shown.recheck = MRT_SECOND;
    core_view(&core, command, 0);
    core_pass(&core, MRT_SECOND);
    core_fetch(&core, MRT_REFRESH); /* the recheck that the view requires */
    assert_true(holds(&read));
    core_free(&core);
}

static void test_lighten_while_a_look_is_under_way(void **state)
{
    (void)state;
    struct core core;
    open_read_write(&core);
    struct mrt_waiter write = writing(1), read = reading(1);
    write_and_read(&core, &write, &read);
    core_wake(&core, ticket_of(&write)->id);
    struct mrt_command *look = core_fetch(&core, MRT_REFRESH);
    release(&core, &write);
    core_no_command(&core);
    core_view(&core, look, 0);
    core_view(&core, core_fetch(&core, MRT_LIGHTEN), 0);
    core_no_command(&core);
    core_free(&core);
}

static void test_lighten_and_a_wake_while_a_look_is_under_way(void **state)
{
    (void)state;
    struct core core;
    open_read_write(&core);
    struct mrt_waiter write = writing(1), read = reading(1);
    write_and_read(&core, &write, &read);
    core_wake(&core, ticket_of(&write)->id);
    struct mrt_command *look = core_fetch(&core, MRT_REFRESH);
    release(&core, &write);
    core_wake(&core, ticket_of(&read)->id);
    core_view(&core, look, 0);
    core_view(&core, core_fetch(&core, MRT_REFRESH), 0); /* one at a time */
    core_view(&core, core_fetch(&core, MRT_LIGHTEN), 0);
    core_no_command(&core);
    core_free(&core);
}

static void test_a_look_that_fails_while_lighten_waits(void **state)
{
    (void)state;
    struct core core;
    open_read_write(&core);
    struct mrt_waiter write = writing(1), read = reading(1);
    write_and_read(&core, &write, &read);
    core_wake(&core, ticket_of(&write)->id);
    struct mrt_command *look = core_fetch(&core, MRT_REFRESH);
    release(&core, &write);
    core_answer(&core, look, MRT_UNKNOWN);
    core_pass(&core, LONG_PAUSE);
    core_fetch(&core, MRT_LIGHTEN);
    core_free(&core);
}

static void test_lighten_twice_and_the_first_answer_settles_nothing(void **state)
{
    (void)state;
    struct core core;
    open_semaphore(&core, 9);
    struct mrt_waiter waiter = core_asking(1, 9);
    core_grant(&core, &waiter);
    lighten(&core, &waiter, 5);
    struct mrt_command *command = core_fetch(&core, MRT_LIGHTEN);
    lighten(&core, &waiter, 2);
    core_no_command(&core);
    assert_int_equal(command->weight, 5);
    core_view(&core, command, 0);
    command = core_fetch(&core, MRT_LIGHTEN);
    assert_int_equal(command->weight, 2);
    core_view(&core, command, 0);
    core_no_command(&core);
    core_free(&core);
}

static void test_a_ticket_found_gone_when_made_lighter(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter read;
    struct mrt_command *command = downgrade(&core, &read);
    core_answer(&core, command, MRT_GONE);
    assert_ptr_equal(mrt_engine_next_told(core.engine), read.hold);
    assert_int_equal(mrt_hold_state(read.hold, core.now), MORTISE_LOST);
    core_no_command(&core);
    assert_int_equal(core_release(&core, read.hold, 1), MORTISE_ELOST);
    core_free(&core);
}

static void test_a_view_that_says_gone_while_lighten_waits(void **state)
{
    (void)state;
    struct core core;
    open_read_write(&core);
    struct mrt_waiter write = writing(1), read = reading(1);
    write_and_read(&core, &write, &read);
    core_wake(&core, ticket_of(&write)->id);
    struct mrt_command *look = core_fetch(&core, MRT_REFRESH);
    release(&core, &write);
    core_view(&core, look, MRT_WRITER); /* something is ahead: it is not ours any more */
    core_fetch(&core, MRT_REMOVE);
    core_no_command(&core);
    assert_int_equal(mrt_hold_state(read.hold, core.now), MORTISE_LOST);
    core_free(&core);
}

static void test_released_before_lighten_was_sent(void **state)
{
    (void)state;
    struct core core;
    open_read_write(&core);
    struct mrt_waiter write = writing(1), read = reading(1);
    write_and_read(&core, &write, &read);
    release(&core, &write);
    release(&core, &read);
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
    core_no_command(&core);
    core_free(&core);
}

static void test_released_while_lighten_is_under_way(void **state)
{
    static const enum mrt_event_type answers[] = {MRT_VIEW, MRT_UNKNOWN, MRT_FAILED, MRT_GONE};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct core core;
        struct mrt_waiter read;
        struct mrt_command *command = downgrade(&core, &read);
        release(&core, &read);
        core_no_command(&core); /* one at a time */
        core_answer(&core, command, answers[i]);
        if (answers[i] != MRT_GONE)
            core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
        core_no_command(&core);
        assert_int_equal(HASH_COUNT(core.engine->tickets_by_id), 0);
        core_free(&core);
    }
}

static void test_lighten_that_the_store_did_not_take(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter read;
    struct mrt_command *command = downgrade(&core, &read);
    mrt_engine_unsubmit(core.engine, command, core.now);
    assert_ptr_equal(core_fetch(&core, MRT_LIGHTEN), command);
    release(&core, &read);
    mrt_engine_unsubmit(core.engine, command, core.now); /* and now it is not wanted any more */
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
    core_no_command(&core);
    core_free(&core);
}

static void test_z2_both_holds_of_a_ticket_are_lost_with_it(void **state)
{
    (void)state;
    struct core core;
    open_read_write(&core);
    struct mrt_waiter write = writing(1), read = reading(1), other = reading(2);
    write_and_read(&core, &write, &read);
    core_acquire(&core, &other);
    core_view(&core, core_fetch(&core, MRT_APPEND), MRT_WRITER);
    core_wake(&core, ticket_of(&write)->id);
    core_answer(&core, core_fetch(&core, MRT_REFRESH), MRT_GONE);
    assert_ptr_equal(mrt_engine_next_told(core.engine), write.hold);
    assert_ptr_equal(mrt_engine_next_told(core.engine), read.hold);
    assert_int_equal(mrt_engine_counters(core.engine)->losses, 2);
    assert_int_equal(other.ticket->state, MRT_TICKET_WAITING); /* nobody else's is */
    struct mrt_waiter again = reading(1);
    core_acquire(&core, &again);
    expect_at_once(&core, &again, MORTISE_ELOST); /* until they have been released */
    assert_int_equal(core_release(&core, write.hold, 1), MORTISE_ELOST);
    assert_int_equal(core_release(&core, read.hold, 1), MORTISE_ELOST);
    core_free(&core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_e2_a_holder_that_may_not_nest_is_refused_or_waits),
        cmocka_unit_test(test_e4_a_writer_may_read),
        cmocka_unit_test(test_e4_reading_and_writing_nest_each_in_its_own_hold),
        cmocka_unit_test(test_e4_a_reader_that_asks_to_write_is_told_at_once),
        cmocka_unit_test(test_e4_no_memory_to_read_within_writing),
        cmocka_unit_test(test_e5_a_downgraded_writer_may_not_write_again),
        cmocka_unit_test(test_e5_a_hold_made_lighter_in_place),
        cmocka_unit_test(test_the_ticket_weighs_as_much_as_its_heaviest_hold),
        cmocka_unit_test(test_holds_that_cannot_be_downgraded),
        cmocka_unit_test(test_a_hold_without_an_owner_is_downgraded_by_any_thread),
        cmocka_unit_test(test_lighten_is_repeated_until_it_is_done),
        cmocka_unit_test(test_lighten_while_a_look_is_under_way),
        cmocka_unit_test(test_lighten_and_a_wake_while_a_look_is_under_way),
        cmocka_unit_test(test_a_look_that_fails_while_lighten_waits),
        cmocka_unit_test(test_lighten_twice_and_the_first_answer_settles_nothing),
        cmocka_unit_test(test_a_ticket_found_gone_when_made_lighter),
        cmocka_unit_test(test_a_view_that_says_gone_while_lighten_waits),
        cmocka_unit_test(test_released_before_lighten_was_sent),
        cmocka_unit_test(test_released_while_lighten_is_under_way),
        cmocka_unit_test(test_lighten_that_the_store_did_not_take),
        cmocka_unit_test(test_z2_both_holds_of_a_ticket_are_lost_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
