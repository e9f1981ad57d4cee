/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of waiting: how soon to look again, how a failure is repeated, and when
   an acquire gives up a store that is silent. */
#include "core_fixture.h"

static void open_with(struct core *core, mrt_time recheck, mrt_time give_up)
{
    struct mrt_engine_config config = core_config();
    config.recheck = recheck;
    config.give_up = give_up;
    core_open(core, &config);
}

/* --------------------------------------------------------------- looking again */

static void test_h5_a_waiter_rechecks_after_the_time_that_is_set(void **state)
{
    (void)state;
    struct core core;
    open_with(&core, 200 * MS, 0);
    core.shown.recheck = 5 * MRT_SECOND;
    struct mrt_waiter waiter = core_waiter(7);
    core_queue_behind(&core, &waiter);
    for (int i = 0; i < 3; i++) {
        core_pass(&core, 199 * MS);
        core_no_command(&core);
        core_pass(&core, 1 * MS);
        core_view(&core, core_fetch(&core, MRT_REFRESH), 1);
    }
    core_free(&core);
}

static void test_h5_a_store_may_ask_for_an_earlier_recheck(void **state)
{
    (void)state;
    struct core core;
    open_with(&core, 200 * MS, 0);
    core.shown.recheck = 100 * MS;
    struct mrt_waiter waiter = core_waiter(7);
    core_queue_behind(&core, &waiter);
    core_pass(&core, 100 * MS);
    core.shown.recheck = 0; /* nothing shows by a look */
    core_view(&core, core_fetch(&core, MRT_REFRESH), 1);
    core_pass(&core, 100 * MRT_SECOND);
    core_no_command(&core);
    core_free(&core);
}

static void test_h5_an_observer_rechecks_after_the_time_that_is_set(void **state)
{
    (void)state;
    struct core core;
    open_with(&core, 200 * MS, 0);
    core.shown = (struct mrt_event){.recheck = 5 * MRT_SECOND};
    assert_non_null(mrt_engine_observe(core.engine, "e", NULL));
    core_start(&core);
    core_answer(&core, core_fetch(&core, MRT_OBSERVE), MRT_HOLDER);
    core_pass(&core, 199 * MS);
    core_no_command(&core);
    core_pass(&core, 1 * MS);
    core_fetch(&core, MRT_OBSERVE);
    core_free(&core);
}

/* --------------------------------------------------------------- repeating */

static void test_f8_pauses_are_as_set(void **state)
{
    (void)state;
    struct core core;
    struct mrt_engine_config config = core_config();
    config.pause_min = 3 * MS;
    config.pause_max = 20 * MS;
    core_open(&core, &config);
    const mrt_time expected[] = {3, 6, 12, 20, 20, 20};
    for (uint32_t i = 0; i < 6; i++) {
        mrt_time pause = mrt_engine_pause(core.engine, i);
        assert_in_range(pause, expected[i] * MS / 2, expected[i] * MS * 3 / 2);
    }
    core_free(&core);
}

static void test_f8_attempts_are_as_many_as_set(void **state)
{
    (void)state;
    struct core core;
    struct mrt_engine_config config = core_config();
    config.attempts_max = 2;
    core_open(&core, &config);
    struct mrt_waiter waiter = core_waiter(7);
    core_acquire(&core, &waiter);
    core_start(&core);
    for (int i = 0; i < 2; i++) {
        core_fail(&core, core_fetch(&core, MRT_APPEND), MORTISE_ESTORE);
        core_none_settled(&core);
        core_pass(&core, 2 * MRT_SECOND);
    }
    core_fail(&core, core_fetch(&core, MRT_APPEND), MORTISE_ESTORE);
    core_done(&core, &waiter, MORTISE_ESTORE);
    core_free(&core);
}

/* Starts the session of an acquire, whose tickets are refused from then on, because no server can
   be reached, at least a hundred times. */
static void begin_away(struct core *core, struct mrt_waiter *waiter, mrt_time give_up)
{
    struct mrt_engine_config config = core_config();
    config.pause_max = 10 * MS;
    config.give_up = give_up;
    core_open(core, &config);
    core->lease = 100 * MRT_SECOND;
    *waiter = core_waiter(7);
    core_acquire(core, waiter);
    core_start(core);
    for (int i = 0; i < 100; i++) {
        core_fail(core, core_fetch(core, MRT_APPEND), MORTISE_EUNREACHABLE);
        core_none_settled(core);
        core_pass(core, 20 * MS);
    }
}

/* As one that waits for a session: by a time, and not by a count. */
static void test_f8_f9_a_store_that_is_away_is_waited_for_however_often_it_refuses(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    begin_away(&core, &waiter, 0);
    core_view(&core, core_fetch(&core, MRT_APPEND), 0);
    core_done(&core, &waiter, MORTISE_OK);
    core_free(&core);
    begin_away(&core, &waiter, 3 * MRT_SECOND);
    core_pass(&core, 990 * MS);
    core_none_settled(&core);
    core_pass(&core, 10 * MS);
    core_done(&core, &waiter, MORTISE_EDISCONNECTED);
    core_free(&core);
}

/* A renewal is repeated in time, however long the pauses are. */
static void test_f8_long_pauses_do_not_keep_a_renewal_back(void **state)
{
    (void)state;
    struct core core;
    struct mrt_engine_config config = core_config();
    config.pause_min = config.pause_max = 10 * MRT_SECOND;
    core_open(&core, &config);
    core.lease = 3 * MRT_SECOND;
    struct mrt_waiter waiter = core_waiter(7);
    core_grant(&core, &waiter);
    core_pass(&core, MRT_SECOND);
    core_fail(&core, core_fetch(&core, MRT_RENEW), MORTISE_EUNREACHABLE);
    core_pass(&core, 500 * MS);
    core_answer(&core, core_fetch(&core, MRT_RENEW), MRT_RENEWED);
    assert_int_equal(mrt_hold_state(waiter.hold, core.now + MRT_SECOND), MORTISE_HELD);
    core_free(&core);
}

/* --------------------------------------------------------------- giving up */

/* An acquire gives up a silent store after `give_up`; its START is on its way. */
static struct mrt_command *begin(struct core *core, struct mrt_waiter *waiter, mrt_time give_up)
{
    open_with(core, 0, give_up);
    *waiter = core_waiter(7);
    core_acquire(core, waiter);
    return core_fetch(core, MRT_START);
}

/* It does so when this time is over, and not a moment sooner. */
static void gives_up_in(struct core *core, struct mrt_waiter *waiter, mrt_time time)
{
    core_pass(core, time - 1);
    core_none_settled(core);
    core_pass(core, 1);
    core_done(core, waiter, MORTISE_EDISCONNECTED);
}

static void test_f9_by_default_an_acquire_waits_for_a_silent_store(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    begin(&core, &waiter, 0);
    core_pass(&core, 86400 * MRT_SECOND);
    core_none_settled(&core);
    core_free(&core);
}

static void test_f9_an_acquire_gives_up_a_silent_store(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    begin(&core, &waiter, MRT_SECOND);
    gives_up_in(&core, &waiter, MRT_SECOND);
    core_free(&core);
}

static void test_f9_an_answer_made_without_the_server_is_silence(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    core_fail(&core, begin(&core, &waiter, MRT_SECOND), MORTISE_EUNREACHABLE);
    core_pass(&core, 500 * MS);
    core_answer(&core, core_fetch(&core, MRT_START), MRT_UNKNOWN);
    gives_up_in(&core, &waiter, 500 * MS);
    core_free(&core);
}

static void test_f9_an_answer_is_no_silence_though_it_is_a_refusal(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    struct mrt_command *start = begin(&core, &waiter, MRT_SECOND);
    core_pass(&core, 900 * MS);
    core_fail(&core, start, MORTISE_ESTORE);
    core_pass(&core, 50 * MS); /* longer than the first pause */
    core_fetch(&core, MRT_START);
    gives_up_in(&core, &waiter, MRT_SECOND);
    core_free(&core);
}

/* A lease of 4 s: a sign of life is due each 1.3 s, and giving up each 1 s would be too soon. */
static void test_f9_a_server_that_gets_few_requests_is_not_silent(void **state)
{
    (void)state;
    struct core core;
    open_with(&core, 0, MRT_SECOND);
    core.lease = 4 * MRT_SECOND;
    struct mrt_waiter waiter = core_waiter(7);
    core_queue_behind(&core, &waiter);
    for (int i = 0; i < 10; i++) {
        core_pass(&core, 1334 * MS);
        core_answer(&core, core_fetch(&core, MRT_RENEW), MRT_RENEWED);
    }
    core_none_settled(&core);
    core_pass(&core, 1334 * MS);
    core_fetch(&core, MRT_RENEW);
    core_pass(&core, MRT_SECOND);
    core_done(&core, &waiter, MORTISE_EDISCONNECTED);
    core_fetch(&core, MRT_REMOVE); /* it gives its place back */
    core_free(&core);
}

static void test_f9_one_answer_of_two_shows_that_the_server_is_there(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter = core_waiter(7);
    open_with(&core, 0, 2 * MRT_SECOND);
    core.lease = 3 * MRT_SECOND;
    core_acquire(&core, &waiter);
    core_start(&core);
    core_fetch(&core, MRT_APPEND);
    core_pass(&core, MRT_SECOND);
    core_answer(&core, core_fetch(&core, MRT_RENEW), MRT_RENEWED);
    core_pass(&core, MRT_SECOND);
    core_none_settled(&core);
    core_fetch(&core, MRT_RENEW);
    core_pass(&core, MRT_SECOND);
    core_done(&core, &waiter, MORTISE_EDISCONNECTED);
    core_free(&core);
}

static void test_f9_each_acquire_has_its_own_time(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter first, second = core_waiter(8);
    begin(&core, &first, MRT_SECOND);
    core_pass(&core, 600 * MS);
    core_acquire(&core, &second);
    core_pass(&core, 400 * MS);
    core_done(&core, &first, MORTISE_EDISCONNECTED);
    gives_up_in(&core, &second, 600 * MS);
    core_free(&core);
}

static void test_f9_an_acquire_behind_a_thread_of_its_client_goes_on(void **state)
{
    (void)state;
    struct core core;
    open_with(&core, 0, MRT_SECOND);
    core.lease = 30 * MRT_SECOND;
    struct mrt_waiter waiter = core_waiter(7), next = core_waiter(8);
    core_grant(&core, &waiter);
    core_acquire(&core, &next);
    core_pass(&core, 10 * MRT_SECOND);
    core_fetch(&core, MRT_RENEW);
    core_pass(&core, 5 * MRT_SECOND);
    core_none_settled(&core);
    core_release(&core, waiter.hold, 7);
    core_done(&core, &next, MORTISE_OK);
    core_free(&core);
}

static void test_f9_when_all_is_answered_no_timer_is_left(void **state)
{
    (void)state;
    struct core core;
    open_with(&core, 0, MRT_SECOND);
    struct mrt_waiter waiter = core_waiter(7);
    core_grant(&core, &waiter);
    core_pass(&core, MRT_SECOND);
    assert_int_equal(mrt_engine_next_time(core.engine), MRT_TIME_NEVER);
    core_free(&core);
}

/* --------------------------------------------------------------- telling */

static void open_that_tells(struct core *core, mrt_time give_up)
{
    struct mrt_engine_config config = core_config();
    config.give_up = give_up;
    config.notice = 700 * MS;
    core_open(core, &config);
}

static void expect_contact(struct core *core, bool away)
{
    bool shown;
    assert_true(mrt_engine_has_contact(core->engine));
    assert_true(mrt_engine_next_contact(core->engine, &shown));
    assert_int_equal(shown, away);
    assert_false(mrt_engine_next_contact(core->engine, &shown));
}

static void test_f9_a_silence_is_told_once_and_so_is_its_end(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter = core_waiter(7);
    open_that_tells(&core, 0);
    core_acquire(&core, &waiter);
    struct mrt_command *start = core_fetch(&core, MRT_START);
    core_pass(&core, 699 * MS);
    assert_false(mrt_engine_has_contact(core.engine));
    core_pass(&core, 1 * MS);
    expect_contact(&core, true);
    core_pass(&core, 100 * MRT_SECOND);
    assert_false(mrt_engine_has_contact(core.engine));
    core_answer(&core, start, MRT_STARTED);
    expect_contact(&core, false);
    core_free(&core);
}

static void test_f9_a_silence_is_told_before_an_acquire_gives_up(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter = core_waiter(7);
    open_that_tells(&core, MRT_SECOND);
    core_acquire(&core, &waiter);
    core_fetch(&core, MRT_START);
    core_pass(&core, 700 * MS);
    expect_contact(&core, true);
    gives_up_in(&core, &waiter, 300 * MS);
    core_free(&core);
}

static void test_f9_a_silence_is_told_after_an_acquire_has_given_up(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter = core_waiter(7);
    open_that_tells(&core, 300 * MS);
    core_acquire(&core, &waiter);
    core_fetch(&core, MRT_START);
    gives_up_in(&core, &waiter, 300 * MS);
    assert_false(mrt_engine_has_contact(core.engine));
    core_pass(&core, 400 * MS);
    expect_contact(&core, true);
    core_free(&core);
}

static void test_f9_a_server_that_gets_few_requests_is_not_reported_as_silent(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter = core_waiter(7);
    open_that_tells(&core, 0);
    core.lease = 4 * MRT_SECOND;
    core_queue_behind(&core, &waiter);
    for (int i = 0; i < 10; i++) {
        core_pass(&core, 1334 * MS);
        core_answer(&core, core_fetch(&core, MRT_RENEW), MRT_RENEWED);
    }
    assert_false(mrt_engine_has_contact(core.engine));
    core_free(&core);
}

/* An answer of a store without a server does not mean that it is back. */
static void test_f9_the_stop_of_a_session_that_never_began_ends_no_silence(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter = core_waiter(7);
    open_that_tells(&core, 0);
    core_acquire(&core, &waiter);
    struct mrt_command *start = core_fetch(&core, MRT_START);
    core_pass(&core, 700 * MS);
    expect_contact(&core, true);
    core_answer(&core, start, MRT_UNKNOWN);
    assert_false(mrt_engine_has_contact(core.engine));
    mrt_engine_close(core.engine, core.now);
    core_answer(&core, core_fetch(&core, MRT_STOP), MRT_STOPPED);
    assert_false(mrt_engine_has_contact(core.engine));
    core_free(&core);
}

/* The store says unasked that no server can be reached. */
static void say(struct core *core, int error)
{
    core_event(core, &(struct mrt_event){.type = MRT_FAILED, .error = error});
}

static void test_f9_a_refusal_of_one_server_ends_a_try_and_no_wait(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waits = core_waiter(7), tries = core_waiter(8);
    open_that_tells(&core, 0);
    tries.try_only = true;
    core_acquire(&core, &tries);
    core_acquire(&core, &waits);
    core_fetch(&core, MRT_START);
    say(&core, MORTISE_EPERMISSION); /* of one server: another may do it */
    core_none_settled(&core);
    say(&core, MORTISE_EUNREACHABLE);
    core_done(&core, &tries, MORTISE_EDISCONNECTED);
    core_none_settled(&core);
    assert_int_equal(waits.state, MRT_WAITER_WAITING);
    core_free(&core);
}

/* Cells are waited for as acquires are. */
static void test_u3_a_refusal_ends_a_look_at_a_leader(void **state)
{
    (void)state;
    struct core core;
    struct mrt_answer answers[2];
    struct mrt_waiter look = core_waiter(7), read = core_waiter(8);
    const struct mrt_command leader = {.type = MRT_OBSERVE, .queue = "e", .once = true},
                             cell = {.type = MRT_CELL_GET, .queue = "c"};
    open_that_tells(&core, 0);
    mrt_engine_request(core.engine, &leader, &answers[0], &look, core.now);
    mrt_engine_request(core.engine, &cell, &answers[1], &read, core.now);
    assert_non_null(mrt_engine_observe(core.engine, "e", NULL));
    core_fetch(&core, MRT_START);
    say(&core, MORTISE_EPERMISSION);
    core_none_settled(&core);
    say(&core, MORTISE_EUNREACHABLE);
    core_done(&core, &look, MORTISE_EUNREACHABLE);
    core_none_settled(&core);
    core_free(&core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_h5_a_waiter_rechecks_after_the_time_that_is_set),
        cmocka_unit_test(test_h5_a_store_may_ask_for_an_earlier_recheck),
        cmocka_unit_test(test_h5_an_observer_rechecks_after_the_time_that_is_set),
        cmocka_unit_test(test_f8_pauses_are_as_set),
        cmocka_unit_test(test_f8_attempts_are_as_many_as_set),
        cmocka_unit_test(test_f8_f9_a_store_that_is_away_is_waited_for_however_often_it_refuses),
        cmocka_unit_test(test_f8_long_pauses_do_not_keep_a_renewal_back),
        cmocka_unit_test(test_f9_by_default_an_acquire_waits_for_a_silent_store),
        cmocka_unit_test(test_f9_an_acquire_gives_up_a_silent_store),
        cmocka_unit_test(test_f9_an_answer_made_without_the_server_is_silence),
        cmocka_unit_test(test_f9_an_answer_is_no_silence_though_it_is_a_refusal),
        cmocka_unit_test(test_f9_a_server_that_gets_few_requests_is_not_silent),
        cmocka_unit_test(test_f9_one_answer_of_two_shows_that_the_server_is_there),
        cmocka_unit_test(test_f9_each_acquire_has_its_own_time),
        cmocka_unit_test(test_f9_an_acquire_behind_a_thread_of_its_client_goes_on),
        cmocka_unit_test(test_f9_when_all_is_answered_no_timer_is_left),
        cmocka_unit_test(test_f9_a_silence_is_told_once_and_so_is_its_end),
        cmocka_unit_test(test_f9_a_silence_is_told_before_an_acquire_gives_up),
        cmocka_unit_test(test_f9_a_silence_is_told_after_an_acquire_has_given_up),
        cmocka_unit_test(test_f9_a_server_that_gets_few_requests_is_not_reported_as_silent),
        cmocka_unit_test(test_f9_the_stop_of_a_session_that_never_began_ends_no_silence),
        cmocka_unit_test(test_f9_a_refusal_of_one_server_ends_a_try_and_no_wait),
        cmocka_unit_test(test_u3_a_refusal_ends_a_look_at_a_leader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
