/* SPDX-License-Identifier: Apache-2.0 */
/* The frame: effects, events that answer nothing, the end of the whole, and no memory. */
#include "core_fixture.h"

static void test_a_new_engine_has_no_command_and_no_timer(void **state)
{
    (void)state;
    int host;
    struct mrt_engine_config config = core_config();
    config.host = &host;
    struct core core;
    core_open(&core, &config);
    assert_ptr_equal(mrt_engine_host(core.engine), &host);
    core_no_command(&core);
    core_none_settled(&core);
    assert_null(mrt_engine_next_told(core.engine));
    core_pass(&core, MRT_SECOND);
    core_free(&core);
    mrt_engine_free(NULL);
}

static void test_an_event_that_answers_nothing_is_dropped(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    core_acquire(&core, &waiter);
    struct mrt_command *start = core_fetch(&core, MRT_START);
    struct mrt_event event = {.type = MRT_STARTED, .serial = start->serial + 1};
    core_event(&core, &event);
    assert_int_equal(core.engine->session.state, MRT_SESSION_STARTING);
    struct mrt_command answered = *start;
    core_answer(&core, start, MRT_STARTED);
    core_answer(&core, &answered, MRT_UNKNOWN); /* twice */
    assert_int_equal(core.engine->session.state, MRT_SESSION_LIVE);
    core_free(&core);
}

static void test_answers_come_in_any_order(void **state)
{
    (void)state;
    struct core core;
    struct mrt_queue *other;
    core_open(&core, NULL);
    assert_int_equal(mrt_engine_queue(core.engine, "other", &mrt_mutex, &other), MORTISE_OK);
    struct mrt_waiter a = core_waiter(1), b = core_waiter(1);
    core_acquire(&core, &a);
    mrt_engine_acquire(core.engine, other, &b, core.now);
    core_start(&core);
    struct mrt_command *first = core_fetch(&core, MRT_APPEND);
    core_view(&core, core_fetch(&core, MRT_APPEND), 0);
    core_done(&core, &b, MORTISE_OK);
    core_view(&core, first, 0);
    core_done(&core, &a, MORTISE_OK);
    core_free(&core);
}

static void test_commands_that_wait_together_say_so(void **state)
{
    (void)state;
    struct mrt_engine_config config = core_config();
    config.budget = 0;
    struct core core;
    core_open(&core, &config);
    struct mrt_waiter one = core_waiter(1), other = core_waiter(2);
    core_grant(&core, &one);
    core_acquire(&core, &other);
    assert_int_equal(core_release(&core, one.hold, 1), MORTISE_OK);
    assert_true(core_fetch(&core, MRT_REMOVE)->more);
    assert_false(core_fetch(&core, MRT_APPEND)->more);
    core_no_command(&core);
    core_free(&core);
}

/* A store that answers "your session has ended" says so to every ticket's command. */
static void test_a_refused_session_is_a_lost_one(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    core_grant(&core, &waiter);
    core_wake(&core, core.queue->ticket->id);
    core_fail(&core, core_fetch(&core, MRT_REFRESH), MORTISE_ELOST);
    assert_int_equal(mrt_hold_state(waiter.hold, core.now), MORTISE_LOST);
    core_fetch(&core, MRT_STOP);
    core_free(&core);
}

static void test_the_refusal_of_an_earlier_session_is_not_ours(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7), next = core_waiter(8);
    core_grant(&core, &waiter);
    core_wake(&core, core.queue->ticket->id);
    struct mrt_command *early = core_fetch(&core, MRT_REFRESH);
    core_acquire(&core, &next);
    core_session_lost(&core);
    struct mrt_command *stop = core_fetch(&core, MRT_STOP);
    core_fail(&core, early, MORTISE_ELOST); /* while the old session stops */
    core_answer(&core, stop, MRT_STOPPED);
    core_start(&core);
    struct mrt_command *append = core_fetch(&core, MRT_APPEND);
    core_session_lost(&core);
    core_answer(&core, core_fetch(&core, MRT_STOP), MRT_STOPPED);
    core_start(&core);
    core_fail(&core, append, MORTISE_ELOST); /* while the next one lives */
    assert_int_equal(core.engine->session.state, MRT_SESSION_LIVE);
    core_free(&core);
}

static void test_a_waiter_is_settled_once(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7), again = core_waiter(7);
    core_grant(&core, &waiter);
    core_acquire(&core, &again);
    core_none_settled(&core); /* it was DONE on return */
    mrt_engine_settle(core.engine, &again);
    mrt_engine_settle(core.engine, &again);
    core_settled(&core, &again);
    core_none_settled(&core);
    core_free(&core);
}

static size_t slots;

static void count_slot(struct mrt_hold *hold)
{
    assert_non_null(hold);
    slots++;
}

static void test_every_hold_is_found_in_use_and_when_the_engine_is_closed(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter a = core_waiter(1), b = core_waiter(2);
    core_grant(&core, &a);
    core_acquire(&core, &b);
    slots = 0;
    mrt_engine_each_hold(core.engine, count_slot);
    assert_int_equal(slots, 1); /* nobody has had the second one yet */
    mrt_engine_close(core.engine, core.now);
    slots = 0;
    mrt_engine_each_hold(core.engine, count_slot);
    assert_int_equal(slots, 2);
    core_free(&core);
}

/* In every state, everything is freed: the leak checkers see to it. */
static void test_an_engine_freed_in_any_state_leaks_nothing(void **state)
{
    (void)state;
    for (int step = 0; step < 7; step++) {
        struct core core;
        struct mrt_queue *idle, *unused;
        core_open(&core, NULL);
        assert_int_equal(mrt_engine_queue(core.engine, "idle", &mrt_mutex, &idle), MORTISE_OK);
        assert_int_equal(mrt_engine_queue(core.engine, "unused", &mrt_mutex, &unused), MORTISE_OK);
        struct mrt_waiter a = core_waiter(1), b = core_waiter(2), c = core_waiter(3);
        if (step > 0)
            core_grant(&core, &a);
        if (step > 1)
            core_acquire(&core, &b);
        if (step > 2)
            core_release(&core, a.hold, 1);
        if (step > 3)
            core_release(&core, b.hold, 2);
        if (step > 4)
            core_session_lost(&core);
        if (step > 5) {
            core_settle_all(&core);
            core_grant(&core, &c);
            core_session_lost(&core); /* a lost hold */
        }
        mrt_queue_put(unused);
        core_free(&core);
    }
}

/* ---------------------------------------------------------------- no memory */

static void test_no_memory_for_the_engine(void **state)
{
    (void)state;
    struct mrt_engine_config config = core_config();
    struct mrt_engine *engine = NULL;
    core_fail_allocations(0);
    assert_int_equal(mrt_engine_new(&config, &engine), MORTISE_ENOMEM);
    core_fail_allocations(-1);
    assert_null(engine);
}

/* Until the call succeeds, with one more allocation allowed each time. */
static void test_no_memory_for_a_queue(void **state)
{
    (void)state;
    struct mrt_engine_config config = core_config();
    int failures = 0;
    for (int allowed = 0;; allowed++) {
        struct mrt_engine *engine;
        struct mrt_queue *queue = NULL;
        assert_int_equal(mrt_engine_new(&config, &engine), MORTISE_OK);
        core_fail_allocations(allowed);
        int error = mrt_engine_queue(engine, "q", &mrt_mutex, &queue);
        core_fail_allocations(-1);
        mrt_engine_free(engine);
        if (error == MORTISE_OK)
            break;
        assert_int_equal(error, MORTISE_ENOMEM);
        assert_null(queue);
        failures++;
    }
    assert_in_range(failures, 2, 10); /* the queue, and its place in the table */
}

static void test_no_memory_for_a_hold(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    core_fail_allocations(0);
    core_acquire(&core, &waiter);
    core_fail_allocations(-1);
    assert_int_equal(waiter.state, MRT_WAITER_DONE);
    assert_int_equal(waiter.error, MORTISE_ENOMEM);
    core_no_command(&core);
    core_free(&core);
}

static void test_no_memory_for_a_ticket_fails_all_its_waiters(void **state)
{
    (void)state;
    int failures = 0;
    for (int allowed = 0;; allowed++) {
        struct core core;
        core_open(&core, NULL);
        struct mrt_waiter a = core_waiter(1), b = core_waiter(2);
        core_acquire(&core, &a);
        core_acquire(&core, &b);
        struct mrt_command *start = core_fetch(&core, MRT_START);
        core_fail_allocations(allowed);
        core_answer(&core, start, MRT_STARTED);
        core_fail_allocations(-1);
        if (a.state != MRT_WAITER_DONE) {
            core_fetch(&core, MRT_APPEND);
            core_free(&core);
            break;
        }
        core_done(&core, &a, MORTISE_ENOMEM);
        core_done(&core, &b, MORTISE_ENOMEM);
        core_no_command(&core);
        struct mrt_waiter later = core_waiter(3);
        core_grant(&core, &later); /* and with memory it goes on */
        core_free(&core);
        failures++;
    }
    assert_in_range(failures, 2, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_new_engine_has_no_command_and_no_timer),
        cmocka_unit_test(test_an_event_that_answers_nothing_is_dropped),
        cmocka_unit_test(test_answers_come_in_any_order),
        cmocka_unit_test(test_commands_that_wait_together_say_so),
        cmocka_unit_test(test_a_refused_session_is_a_lost_one),
        cmocka_unit_test(test_the_refusal_of_an_earlier_session_is_not_ours),
        cmocka_unit_test(test_a_waiter_is_settled_once),
        cmocka_unit_test(test_every_hold_is_found_in_use_and_when_the_engine_is_closed),
        cmocka_unit_test(test_an_engine_freed_in_any_state_leaks_nothing),
        cmocka_unit_test(test_no_memory_for_the_engine),
        cmocka_unit_test(test_no_memory_for_a_queue),
        cmocka_unit_test(test_no_memory_for_a_hold),
        cmocka_unit_test(test_no_memory_for_a_ticket_fails_all_its_waiters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
