/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to give a lock up: who is told of them, when, and what they end. */
#include "core_fixture.h"

static void asked(struct core *core, const struct mrt_hold *hold)
{
    assert_true(mrt_engine_has_told(core->engine));
    assert_ptr_equal(mrt_engine_next_asked(core->engine), hold);
    assert_null(mrt_engine_next_asked(core->engine));
    assert_false(mrt_engine_has_told(core->engine));
}

static void none_asked(struct core *core)
{
    assert_null(mrt_engine_next_asked(core->engine));
}

/* The holder listens, and the store knows. */
static void begin_listening(struct core *core, struct mrt_hold *hold)
{
    mrt_engine_listen(hold, true);
    struct mrt_command *command = core_fetch(core, MRT_REFRESH);
    assert_true(command->watch_closely);
    core_view(core, command, 0);
}

static void test_f22_a_holder_that_listens_is_asked_once_a_request(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    core_grant(&core, &waiter);
    struct mrt_id id = waiter.hold->ticket->id;
    begin_listening(&core, waiter.hold);
    none_asked(&core);
    core_revoke(&core, id, 3);
    asked(&core, waiter.hold);
    core_revoke(&core, id, 3); /* told twice */
    core_revoke(&core, id, 2); /* late */
    none_asked(&core);
    core_revoke(&core, id, 4);
    core_revoke(&core, id, 5); /* two are told as one */
    asked(&core, waiter.hold);
    mrt_engine_listen(waiter.hold, true); /* another callback hears of the next one only */
    none_asked(&core);
    core_no_command(&core);
    assert_int_equal(mrt_hold_state(waiter.hold, core.now), MORTISE_HELD); /* it has declined */
    core_free(&core);
}

static void test_f22_a_request_waits_for_a_listener(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    core_grant(&core, &waiter);
    core_revoke(&core, waiter.hold->ticket->id, 1);
    none_asked(&core);
    mrt_engine_listen(waiter.hold, true);
    asked(&core, waiter.hold);
    mrt_engine_listen(waiter.hold, false);
    core_revoke(&core, waiter.hold->ticket->id, 2);
    none_asked(&core);
    mrt_engine_listen(waiter.hold, true);
    mrt_engine_listen(waiter.hold, false); /* before it was fetched */
    none_asked(&core);
    mrt_engine_listen(waiter.hold, true);
    asked(&core, waiter.hold);
    core_free(&core);
}

static void test_a_refresh_shows_a_revoke_request_too(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    core_grant(&core, &waiter);
    begin_listening(&core, waiter.hold);
    core_wake(&core, waiter.hold->ticket->id);
    core.shown.revoked = 1;
    core_view(&core, core_fetch(&core, MRT_REFRESH), 0);
    asked(&core, waiter.hold);
    core_free(&core);
}

static void test_a_request_to_a_waiter_waits_for_its_hold(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    core_queue_behind(&core, &waiter);
    core_revoke(&core, core.queue->ticket->id, 1);
    core_wake(&core, core.queue->ticket->id);
    core_view(&core, core_fetch(&core, MRT_REFRESH), 0);
    core_done(&core, &waiter, MORTISE_OK);
    none_asked(&core);
    mrt_engine_listen(waiter.hold, true);
    asked(&core, waiter.hold);
    core_free(&core);
}

/* Its ticket was asked for and then broken, before it was known to be there at all. */
static void test_a_request_to_a_ticket_that_was_never_seen_is_not_for_the_next(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    core_lose_append(&core, &waiter);
    core_revoke(&core, core.queue->ticket->id, 1);
    core_pass(&core, 2 * MRT_SECOND);
    core_view(&core, core_fetch(&core, MRT_APPEND), 0);
    core_done(&core, &waiter, MORTISE_OK);
    mrt_engine_listen(waiter.hold, true);
    none_asked(&core);
    core_free(&core);
}

static void test_a_revoke_request_ends_the_turn(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter one = core_waiter(1), two = core_waiter(2);
    core_grant(&core, &one);
    core_acquire(&core, &two);
    core_revoke(&core, one.hold->ticket->id, 1);
    assert_int_equal(core_release(&core, one.hold, 1), MORTISE_OK);
    assert_int_equal(two.state, MRT_WAITER_WAITING); /* it is not handed on */
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
    struct mrt_command *command = core_fetch(&core, MRT_APPEND);
    assert_false(command->watch_closely); /* no holder has the next ticket yet */
    core_view(&core, command, 0);
    core_done(&core, &two, MORTISE_OK);
    mrt_engine_listen(two.hold, true);
    none_asked(&core); /* nor was it asked for */
    core_free(&core);
}

static void test_a_hold_that_is_gone_gets_no_revoke_request(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    core_grant(&core, &waiter);
    begin_listening(&core, waiter.hold);
    core_revoke(&core, waiter.hold->ticket->id, 1);
    core_session_lost(&core);
    none_asked(&core);
    mrt_engine_listen(waiter.hold, true);
    mrt_engine_attend(waiter.hold);
    none_asked(&core);
    assert_false(waiter.hold->wants_revokes);
    assert_int_equal(core_release(&core, waiter.hold, 7), MORTISE_ELOST);
    core_answer(&core, core_fetch(&core, MRT_STOP), MRT_STOPPED);
    core_grant(&core, &waiter);
    begin_listening(&core, waiter.hold);
    core_revoke(&core, waiter.hold->ticket->id, 1);
    struct mrt_hold *hold = waiter.hold;
    assert_int_equal(core_release(&core, hold, 7), MORTISE_OK);
    none_asked(&core);
    core_revoke(&core, core_fetch(&core, MRT_REMOVE)->ticket, 2); /* it is going anyhow */
    core_revoke(&core, (struct mrt_id){9, 9}, 1);                 /* nobody's */
    none_asked(&core);
    core_free(&core);
}

static void test_a_revoke_request_reaches_only_the_ticket_it_names(void **state)
{
    (void)state;
    struct core core;
    core_open_recipe(&core, &mrt_read_write);
    struct mrt_waiter one = core_asking(1, MRT_WRITER), read = core_asking(1, MRT_READER);
    struct mrt_waiter other = core_asking(2, MRT_READER);
    core_grant(&core, &one);
    core_acquire(&core, &read); /* in the same ticket */
    core_acquire(&core, &other);
    struct mrt_command *append = core_fetch(&core, MRT_APPEND);
    core_view(&core, append, 0); /* as if it were so */
    core_done(&core, &other, MORTISE_OK);
    begin_listening(&core, one.hold);
    mrt_engine_listen(read.hold, true); /* the ticket is watched already */
    core_no_command(&core);
    begin_listening(&core, other.hold);
    core_revoke(&core, one.hold->ticket->id, 1);
    assert_ptr_equal(mrt_engine_next_asked(core.engine), one.hold);
    asked(&core, read.hold);
    core_free(&core);
}

static void test_a_new_listener_is_announced_to_the_store(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    core_grant(&core, &waiter);
    core_wake(&core, waiter.hold->ticket->id);
    mrt_engine_attend(waiter.hold); /* a look is in the outbox: it takes the wish along */
    struct mrt_command *command = core_fetch(&core, MRT_REFRESH);
    assert_true(command->watch_closely);
    core_view(&core, command, 0);
    core_no_command(&core);
    core_free(&core);
    core_open(&core, NULL);
    waiter = core_waiter(7);
    core_grant(&core, &waiter);
    core_wake(&core, waiter.hold->ticket->id);
    command = core_fetch(&core, MRT_REFRESH);
    mrt_engine_attend(waiter.hold); /* one is under way: another follows */
    mrt_engine_attend(waiter.hold);
    core_view(&core, command, 0);
    command = core_fetch(&core, MRT_REFRESH);
    assert_true(command->watch_closely);
    core_view(&core, command, 0);
    core_no_command(&core);
    core_revoke(&core, waiter.hold->ticket->id,
                1); /* nobody listens: it attends to its loss only */
    none_asked(&core);
    core_free(&core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f22_a_holder_that_listens_is_asked_once_a_request),
        cmocka_unit_test(test_f22_a_request_waits_for_a_listener),
        cmocka_unit_test(test_a_refresh_shows_a_revoke_request_too),
        cmocka_unit_test(test_a_request_to_a_waiter_waits_for_its_hold),
        cmocka_unit_test(test_a_request_to_a_ticket_that_was_never_seen_is_not_for_the_next),
        cmocka_unit_test(test_a_revoke_request_ends_the_turn),
        cmocka_unit_test(test_a_hold_that_is_gone_gets_no_revoke_request),
        cmocka_unit_test(test_a_revoke_request_reaches_only_the_ticket_it_names),
        cmocka_unit_test(test_a_new_listener_is_announced_to_the_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
