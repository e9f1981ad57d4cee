/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the store beside tickets: cells, observers; and values of tickets. */
#include "core_fixture.h"

#define LONG_PAUSE (2 * MRT_SECOND) /* longer than any pause of a repetition */

/* ------------------------------------------------------------------ help */

static const struct mrt_command get = {.type = MRT_CELL_GET, .queue = "c"};
static const struct mrt_command set = {
    .type = MRT_CELL_SET, .queue = "c", .version = 3, .fence = 7, .value = "abc", .value_size = 3};

static void ask(struct core *core, const struct mrt_command *wanted, struct mrt_answer *answer,
                struct mrt_waiter *waiter)
{
    mrt_engine_request(core->engine, wanted, answer, waiter, core->now);
}

/* A client with a session; then a request under way. */
static struct mrt_command *asked(struct core *core, const struct mrt_command *wanted,
                                 struct mrt_answer *answer, struct mrt_waiter *waiter)
{
    core_open(core, NULL);
    ask(core, wanted, answer, waiter);
    core_start(core);
    return core_fetch(core, wanted->type);
}

static void answer_value(struct core *core, const struct mrt_command *command, uint64_t fence,
                         const char *value)
{
    core->shown = (struct mrt_event){.fence = fence,
                                     .version = 4,
                                     .value = value,
                                     .value_size = value ? strlen(value) : 0,
                                     .recheck = MRT_SECOND};
    core_answer(core, command, command->type == MRT_OBSERVE ? MRT_HOLDER : MRT_CELL);
}

static void changed(struct core *core, struct mrt_id id)
{
    const struct mrt_event event = {
        .type = MRT_CHANGED, .session = core->engine->session.id, .ticket = id};
    core_event(core, &event);
}

static struct mrt_id lose_session(struct core *core)
{
    struct mrt_id before = core->engine->session.id;
    core_session_lost(core);
    core_answer(core, core_fetch(core, MRT_STOP), MRT_STOPPED);
    return before;
}

/* ------------------------------------------------------------------ requests */

static void test_k1_a_read_brings_the_stores_value(void **state)
{
    (void)state;
    struct core core;
    struct mrt_answer answer = {0};
    struct mrt_waiter waiter = core_waiter(0);
    struct mrt_command *command = asked(&core, &get, &answer, &waiter);
    assert_string_equal(command->queue, "c");
    assert_null(command->value);
    assert_false(mrt_id_none(command->ticket));
    answer_value(&core, command, 9, "xy");
    core_done(&core, &waiter, MORTISE_OK);
    assert_int_equal(answer.version, 4);
    assert_int_equal(answer.fence, 9);
    assert_int_equal(answer.value_size, 2);
    assert_memory_equal(answer.value, "xy", 2);
    core_no_command(&core);
    ask(&core, &get, &answer, &waiter); /* the session is there now */
    answer_value(&core, core_fetch(&core, MRT_CELL_GET), 9, NULL);
    core_done(&core, &waiter, MORTISE_OK);
    assert_int_equal(answer.value_size, 0);
    core_free(&core);
}

static void test_k1_a_write_is_copied_and_refused_or_done(void **state)
{
    (void)state;
    struct core core;
    struct mrt_answer answer = {0};
    struct mrt_waiter waiter = core_waiter(0);
    char value[] = "abc";
    struct mrt_command wanted = set;
    wanted.value = value;
    struct mrt_command *command = asked(&core, &wanted, &answer, &waiter);
    value[0] = 'z';
    assert_memory_equal(command->value, "abc", 3);
    assert_int_equal(command->version, 3);
    assert_int_equal(command->fence, 7);
    core_fail(&core, command, MORTISE_ECONFLICT);
    core_done(&core, &waiter, MORTISE_ECONFLICT);
    ask(&core, &set, &answer, &waiter);
    core_fail(&core, core_fetch(&core, MRT_CELL_SET), MORTISE_ESTALE);
    core_done(&core, &waiter, MORTISE_ESTALE);
    ask(&core, &set, &answer, &waiter);
    answer_value(&core, core_fetch(&core, MRT_CELL_SET), 0, NULL);
    core_done(&core, &waiter, MORTISE_OK);
    core_free(&core);
}

static void test_k1_a_write_of_unknown_outcome_keeps_its_identity(void **state)
{
    (void)state;
    struct core core;
    struct mrt_answer answer = {0};
    struct mrt_waiter waiter = core_waiter(0);
    struct mrt_command *command = asked(&core, &set, &answer, &waiter);
    struct mrt_id id = command->ticket;
    core_answer(&core, command, MRT_UNKNOWN);
    core_no_command(&core);
    core_pass(&core, LONG_PAUSE);
    command = core_fetch(&core, MRT_CELL_SET);
    assert_true(mrt_id_equal(command->ticket, id));
    core_fail(&core, command, MORTISE_ECONFLICT); /* somebody wrote after it, or instead of it */
    core_done(&core, &waiter, MORTISE_EUNKNOWN);
    core_free(&core);
}

static void test_k1_a_read_of_unknown_outcome_is_just_repeated(void **state)
{
    (void)state;
    struct core core;
    struct mrt_answer answer = {0};
    struct mrt_waiter waiter = core_waiter(0);
    core_answer(&core, asked(&core, &get, &answer, &waiter), MRT_UNKNOWN);
    core_pass(&core, LONG_PAUSE);
    core_fail(&core, core_fetch(&core, MRT_CELL_GET), MORTISE_EPERMISSION);
    core_done(&core, &waiter, MORTISE_EPERMISSION);
    core_free(&core);
}

static void test_passing_faults_are_repeated_for_some_time(void **state)
{
    (void)state;
    struct core core;
    struct mrt_answer answer = {0};
    struct mrt_waiter waiter = core_waiter(0);
    struct mrt_command *command = asked(&core, &get, &answer, &waiter);
    int failures = 0;
    for (;; failures++) {
        core_fail(&core, command, MORTISE_ESTORE);
        if (waiter.state == MRT_WAITER_DONE)
            break;
        core_pass(&core, LONG_PAUSE);
        command = core_fetch(&core, MRT_CELL_GET);
    }
    assert_int_equal(failures, 10);
    core_done(&core, &waiter, MORTISE_ESTORE);
    core_free(&core);
}

/* Of a write that is under way, or may have been done, nobody can say more. */
static void test_the_deadline_of_a_write_says_whether_its_outcome_is_unknown(void **state)
{
    (void)state;
    struct core core;
    struct mrt_answer answer = {0};
    core_open(&core, NULL);
    struct mrt_waiter unsent = core_waiter(0), queued = core_waiter(0), sent = core_waiter(0),
                      paused = core_waiter(0), read = core_waiter(0);
    unsent.deadline = core.now + 10 * MS;
    ask(&core, &set, &answer, &unsent);
    core_pass(&core, 10 * MS);
    core_done(&core, &unsent, MORTISE_ETIMEOUT);
    core_start(&core);
    ask(&core, &set, &answer, &queued);
    mrt_engine_cancel(core.engine, &queued, MORTISE_ECANCELLED, core.now);
    core_done(&core, &queued, MORTISE_ECANCELLED);
    core_no_command(&core);
    ask(&core, &set, &answer, &sent);
    struct mrt_command *late = core_fetch(&core, MRT_CELL_SET);
    mrt_engine_cancel(core.engine, &sent, MORTISE_ETIMEOUT, core.now);
    core_done(&core, &sent, MORTISE_EUNKNOWN);
    ask(&core, &set, &answer, &paused);
    core_answer(&core, core_fetch(&core, MRT_CELL_SET), MRT_UNKNOWN);
    mrt_engine_cancel(core.engine, &paused, MORTISE_ETIMEOUT, core.now);
    core_done(&core, &paused, MORTISE_EUNKNOWN);
    ask(&core, &get, &answer, &read);
    struct mrt_command *late_read = core_fetch(&core, MRT_CELL_GET);
    mrt_engine_cancel(core.engine, &read, MORTISE_ETIMEOUT, core.now);
    core_done(&core, &read, MORTISE_ETIMEOUT);
    answer_value(&core, late, 1, NULL);
    answer_value(&core, late_read, 1, NULL);
    core_none_settled(&core);
    core_pass(&core, LONG_PAUSE);
    core_no_command(&core);
    core_free(&core);
}

static void test_a_request_outlives_its_session(void **state)
{
    (void)state;
    struct core core;
    struct mrt_answer answer = {0};
    struct mrt_waiter one = core_waiter(0), two = core_waiter(0);
    struct mrt_command *sent = asked(&core, &set, &answer, &one);
    ask(&core, &get, &answer, &two); /* in the outbox when the session ends */
    struct mrt_id before = lose_session(&core);
    core_start(&core);
    struct mrt_command *again = core_fetch(&core, MRT_CELL_GET);
    assert_false(mrt_id_equal(again->session, before));
    answer_value(&core, again, 1, NULL);
    core_done(&core, &two, MORTISE_OK);
    core_no_command(&core); /* the first has not been answered yet */
    core_fail(&core, sent, MORTISE_ELOST);
    core_pass(&core, LONG_PAUSE);
    answer_value(&core, core_fetch(&core, MRT_CELL_SET), 1, NULL);
    core_done(&core, &one, MORTISE_OK);
    core_free(&core);
}

static void test_a_refusal_may_tell_of_the_loss_of_the_session(void **state)
{
    (void)state;
    struct core core;
    struct mrt_answer answer = {0};
    struct mrt_waiter waiter = core_waiter(0);
    core_fail(&core, asked(&core, &get, &answer, &waiter), MORTISE_ELOST);
    core_answer(&core, core_fetch(&core, MRT_STOP), MRT_STOPPED);
    core_pass(&core, LONG_PAUSE);
    core_start(&core);
    answer_value(&core, core_fetch(&core, MRT_CELL_GET), 1, NULL);
    core_done(&core, &waiter, MORTISE_OK);
    core_free(&core);
}

static void test_a_session_that_is_refused_ends_requests_but_no_observer(void **state)
{
    (void)state;
    struct core core;
    struct mrt_answer answer = {0};
    struct mrt_waiter waiter = core_waiter(0);
    core_open(&core, NULL);
    struct mrt_request *observer = mrt_engine_observe(core.engine, "q", NULL);
    ask(&core, &get, &answer, &waiter);
    core_fail(&core, core_fetch(&core, MRT_START), MORTISE_EPERMISSION);
    core_done(&core, &waiter, MORTISE_EPERMISSION);
    core_no_command(&core);
    core_pass(&core, LONG_PAUSE); /* an observer does not give up */
    core_start(&core);
    core_fetch(&core, MRT_OBSERVE);
    mrt_observer_end(observer);
    core_free(&core);
}

static void test_a_command_that_the_store_did_not_take_is_sent_again(void **state)
{
    (void)state;
    struct core core;
    struct mrt_answer answer = {0};
    struct mrt_waiter waiter = core_waiter(0);
    struct mrt_command *command = asked(&core, &get, &answer, &waiter);
    mrt_engine_unsubmit(core.engine, command, core.now);
    assert_ptr_equal(core_fetch(&core, MRT_CELL_GET), command);
    struct mrt_id before = lose_session(&core);
    mrt_engine_unsubmit(core.engine, command, core.now); /* it is for a session that has ended */
    core_start(&core);
    command = core_fetch(&core, MRT_CELL_GET);
    assert_false(mrt_id_equal(command->session, before));
    core_session_lost(&core);
    mrt_engine_unsubmit(core.engine, command,
                        core.now); /* of this session, which is being stopped */
    core_answer(&core, core_fetch(&core, MRT_STOP), MRT_STOPPED);
    core_start(&core);
    command = core_fetch(&core, MRT_CELL_GET);
    before = lose_session(&core);
    struct mrt_waiter other = core_waiter(7);
    core_acquire(&core, &other);
    core_start(&core);
    mrt_engine_unsubmit(core.engine, command,
                        core.now); /* it was for the session before this one */
    core_fetch(&core, MRT_APPEND);
    command = core_fetch(&core, MRT_CELL_GET);
    assert_false(mrt_id_equal(command->session, before));
    mrt_engine_cancel(core.engine, &waiter, MORTISE_ECANCELLED, core.now);
    core_done(&core, &waiter, MORTISE_ECANCELLED);
    mrt_engine_unsubmit(core.engine, command, core.now); /* and nobody wants it any more */
    core_no_command(&core);
    core_free(&core);
}

static void test_f17_a_close_ends_requests(void **state)
{
    (void)state;
    struct core core;
    struct mrt_answer answer = {0};
    struct mrt_waiter read = core_waiter(0), write = core_waiter(0), late = core_waiter(0);
    struct mrt_command *reading = asked(&core, &get, &answer, &read);
    struct mrt_request *observer = mrt_engine_observe(core.engine, "q", NULL);
    answer_value(&core, core_fetch(&core, MRT_OBSERVE), 1, "a");
    ask(&core, &set, &answer, &write);
    struct mrt_command *writing = core_fetch(&core, MRT_CELL_SET);
    mrt_engine_close(core.engine, core.now);
    core_done(&core, &read, MORTISE_ECLOSED);
    core_done(&core, &write, MORTISE_EUNKNOWN);
    ask(&core, &get, &answer, &late);
    assert_int_equal(late.state, MRT_WAITER_DONE);
    assert_int_equal(late.error, MORTISE_ECLOSED);
    answer_value(&core, reading, 1, NULL);
    answer_value(&core, writing, 1, NULL);
    core_answer(&core, core_fetch(&core, MRT_STOP), MRT_STOPPED);
    assert_true(mrt_engine_closed(core.engine));
    core_pass(&core, LONG_PAUSE);
    core_no_command(&core);
    assert_ptr_equal(mrt_engine_next_observed(core.engine), observer);
    core_free(&core);
}

static void test_without_memory_a_request_fails(void **state)
{
    (void)state;
    struct core core;
    struct mrt_answer answer = {0};
    struct mrt_waiter waiter = core_waiter(0);
    core_open(&core, NULL);
    core_fail_allocations(0);
    ask(&core, &get, &answer, &waiter);
    assert_null(mrt_engine_observe(core.engine, "q", NULL));
    core_fail_allocations(-1);
    assert_int_equal(waiter.state, MRT_WAITER_DONE);
    assert_int_equal(waiter.error, MORTISE_ENOMEM);
    core_no_command(&core);
    core_free(&core);
}

/* ------------------------------------------------------------------ observers */

static struct mrt_request *observing(struct core *core, struct mrt_command **command)
{
    core_open(core, NULL);
    struct mrt_request *observer = mrt_engine_observe(core->engine, "q", core);
    core_start(core);
    *command = core_fetch(core, MRT_OBSERVE);
    assert_false((*command)->once);
    assert_ptr_equal(mrt_observer_host(observer), core);
    return observer;
}

static void expect_news(struct core *core, struct mrt_request *observer, uint64_t fence,
                        const char *value)
{
    assert_ptr_equal(mrt_engine_next_observed(core->engine), observer);
    assert_null(mrt_engine_next_observed(core->engine));
    const struct mrt_answer *holder = mrt_observer_holder(observer);
    assert_int_equal(holder->fence, fence);
    assert_int_equal(holder->value_size, strlen(value));
    assert_memory_equal(holder->value, value, strlen(value));
}

static void test_g4_every_new_leader_is_reported_once(void **state)
{
    (void)state;
    struct core core;
    struct mrt_command *command;
    struct mrt_request *observer = observing(&core, &command);
    struct mrt_id id = command->ticket;
    assert_null(mrt_engine_next_observed(core.engine));
    answer_value(&core, command, 0, NULL);
    expect_news(&core, observer, 0, ""); /* that there is none is news too */
    changed(&core, id);
    answer_value(&core, core_fetch(&core, MRT_OBSERVE), 0, NULL);
    assert_null(mrt_engine_next_observed(core.engine));
    changed(&core, id);
    answer_value(&core, core_fetch(&core, MRT_OBSERVE), 5, "a");
    expect_news(&core, observer, 5, "a");
    changed(&core, id); /* spurious */
    answer_value(&core, core_fetch(&core, MRT_OBSERVE), 5, "a");
    assert_null(mrt_engine_next_observed(core.engine));
    static const struct {
        uint64_t fence;
        const char *value;
    } news[] = {{6, "a"}, {6, "b"}, {6, "bc"}};
    for (size_t i = 0; i < sizeof news / sizeof news[0]; i++) {
        changed(&core, id);
        answer_value(&core, core_fetch(&core, MRT_OBSERVE), news[i].fence, news[i].value);
        expect_news(&core, observer, news[i].fence, news[i].value);
    }
    changed(&core, id);
    answer_value(&core, core_fetch(&core, MRT_OBSERVE), 7, "d");
    changed(&core, id);
    answer_value(&core, core_fetch(&core, MRT_OBSERVE), 8, "e");
    expect_news(&core, observer, 8, "e"); /* the newest, once */
    core_free(&core);
}

static void test_an_observer_rechecks_without_an_event(void **state)
{
    (void)state;
    struct core core;
    struct mrt_command *command;
    struct mrt_request *observer = observing(&core, &command);
    answer_value(&core, command, 5, "a");
    expect_news(&core, observer, 5, "a");
    core_pass(&core, MRT_SECOND - 1);
    core_no_command(&core);
    core_pass(&core, 1);
    answer_value(&core, core_fetch(&core, MRT_OBSERVE), 6, "b");
    expect_news(&core, observer, 6, "b");
    core_free(&core);
}

static void test_a_change_that_overtakes_the_answer_is_not_forgotten(void **state)
{
    (void)state;
    struct core core;
    struct mrt_command *command;
    struct mrt_request *observer = observing(&core, &command);
    changed(&core, command->ticket);
    core_no_command(&core); /* one at a time */
    answer_value(&core, command, 5, "a");
    expect_news(&core, observer, 5, "a");
    command = core_fetch(&core, MRT_OBSERVE);
    answer_value(&core, command, 5, "a");
    core_no_command(&core);
    core_free(&core);
}

static void test_an_observer_never_gives_up(void **state)
{
    (void)state;
    struct core core;
    struct mrt_command *command;
    struct mrt_request *observer = observing(&core, &command);
    for (int i = 0; i < 30; i++) {
        if (i % 2)
            core_fail(&core, command, MORTISE_EPERMISSION);
        else
            core_answer(&core, command, MRT_UNKNOWN);
        changed(&core, command->ticket); /* it is not worth more than the pause */
        core_no_command(&core);
        core_pass(&core, LONG_PAUSE);
        command = core_fetch(&core, MRT_OBSERVE);
    }
    answer_value(&core, command, 5, "a");
    expect_news(&core, observer, 5, "a");
    core_free(&core);
}

static void test_an_observer_looks_again_in_the_next_session(void **state)
{
    (void)state;
    struct core core;
    struct mrt_command *command;
    struct mrt_request *observer = observing(&core, &command);
    answer_value(&core, command, 5, "a");
    expect_news(&core, observer, 5, "a");
    lose_session(&core); /* and with it the server that would report changes */
    core_start(&core);
    command = core_fetch(&core, MRT_OBSERVE);
    struct mrt_id id = command->ticket;
    changed(&core, (struct mrt_id){7, 7}); /* of somebody else, or who has been ended */
    answer_value(&core, command, 6, "a");
    expect_news(&core, observer, 6, "a");
    core_no_command(&core);
    changed(&core, id);
    core_fetch(&core, MRT_OBSERVE);
    core_free(&core);
}

static void test_an_observer_reads_again_after_an_answer_of_a_lost_session(void **state)
{
    (void)state;
    struct core core;
    struct mrt_command *command;
    struct mrt_request *observer = observing(&core, &command);
    lose_session(&core);
    core_no_command(&core); /* one at a time */
    answer_value(&core, command, 5, "a");
    expect_news(&core, observer, 5, "a");
    core_start(&core);
    answer_value(&core, core_fetch(&core, MRT_OBSERVE), 6, "b");
    expect_news(&core, observer, 6, "b");
    core_no_command(&core);
    core_free(&core);
}

static void test_an_observer_that_is_freed_is_told_nothing(void **state)
{
    (void)state;
    struct core core;
    struct mrt_command *command;
    struct mrt_request *observer = observing(&core, &command);
    mrt_observer_end(observer);
    answer_value(&core, command, 5, "a"); /* its memory is needed until here */
    assert_null(mrt_engine_next_observed(core.engine));
    observer = mrt_engine_observe(core.engine, "q", NULL);
    answer_value(&core, core_fetch(&core, MRT_OBSERVE), 5, "a");
    mrt_observer_end(observer); /* with news that nobody has fetched */
    assert_null(mrt_engine_next_observed(core.engine));
    core_pass(&core, LONG_PAUSE);
    core_no_command(&core);
    core_free(&core);
}

/* ------------------------------------------------------------------ values */

static struct mrt_waiter candidate(const char *value)
{
    struct mrt_waiter waiter = core_waiter(0);
    waiter.value = value;
    waiter.value_size = strlen(value);
    return waiter;
}

static void expect_told(const struct mrt_command *command, const char *value)
{
    assert_non_null(command->value);
    assert_int_equal(command->value_size, strlen(value));
    assert_memory_equal(command->value, value, strlen(value));
}

static int proclaim(struct core *core, const struct mrt_waiter *waiter, const char *value)
{
    return mrt_hold_set_value(waiter->hold, waiter->hold->generation, value, strlen(value),
                              core->now);
}

static void test_g4_each_candidate_has_a_ticket_with_its_value(void **state)
{
    (void)state;
    struct core core;
    core_open_recipe(&core, &mrt_election);
    struct mrt_waiter one = candidate("one"), two = candidate("");
    core_acquire(&core, &one);
    core_acquire(&core, &two);
    core_start(&core);
    struct mrt_command *first = core_fetch(&core, MRT_APPEND);
    struct mrt_command *second = core_fetch(&core, MRT_APPEND);
    expect_told(first, "one");
    expect_told(second, "");
    core_view(&core, first, 0);
    core_done(&core, &one, MORTISE_OK);
    core_view(&core, second, 1);
    core_none_settled(&core);
    assert_int_equal(core_release(&core, one.hold, 0), MORTISE_OK);
    assert_int_equal(core_fetch(&core, MRT_REMOVE)->type, MRT_REMOVE);
    core_free(&core);
}

static void test_g4_a_leader_proclaims(void **state)
{
    (void)state;
    struct core core;
    core_open_recipe(&core, &mrt_election);
    struct mrt_waiter leader = candidate("one");
    core_grant(&core, &leader);
    assert_int_equal(proclaim(&core, &leader, "two"), MORTISE_OK);
    struct mrt_command *command = core_fetch(&core, MRT_SET_VALUE);
    expect_told(command, "two");
    assert_int_equal(proclaim(&core, &leader, "three"), MORTISE_OK);
    assert_int_equal(proclaim(&core, &leader, "four"), MORTISE_OK); /* the newest counts */
    expect_told(command, "two");                                    /* it is being sent */
    core_view(&core, command, 0);
    command = core_fetch(&core, MRT_SET_VALUE);
    expect_told(command, "four");
    core_answer(&core, command, MRT_UNKNOWN);
    core_pass(&core, LONG_PAUSE);
    command = core_fetch(&core, MRT_SET_VALUE);
    expect_told(command, "four");
    core_view(&core, command, 0);
    core_no_command(&core);
    core_free(&core);
}

static void test_g4_a_leader_proclaims_while_it_looks_twice(void **state)
{
    (void)state;
    struct core core;
    core_open_recipe(&core, &mrt_election);
    struct mrt_waiter leader = candidate("one");
    core_grant(&core, &leader);
    core_wake(&core, leader.hold->ticket->id);
    struct mrt_command *look = core_fetch(&core, MRT_REFRESH);
    assert_int_equal(proclaim(&core, &leader, "two"), MORTISE_OK);
    core_wake(&core, leader.hold->ticket->id);
    core_view(&core, look, 0);
    core_view(&core, core_fetch(&core, MRT_REFRESH), 0);
    expect_told(core_fetch(&core, MRT_SET_VALUE), "two");
    core_free(&core);
}

static void test_g4_a_candidate_changes_its_value_while_it_waits(void **state)
{
    (void)state;
    struct core core;
    core_open_recipe(&core, &mrt_election);
    struct mrt_waiter waiter = candidate("one");
    core_acquire(&core, &waiter);
    assert_int_equal(mrt_waiter_set_value(&waiter, "two", 3), MORTISE_OK); /* no ticket yet */
    core_start(&core);
    struct mrt_command *append = core_fetch(&core, MRT_APPEND);
    expect_told(append, "two");
    assert_int_equal(mrt_waiter_set_value(&waiter, "three", 5), MORTISE_OK);
    core_answer(&core, append, MRT_UNKNOWN);
    assert_int_equal(mrt_waiter_set_value(&waiter, "four", 4), MORTISE_OK);
    core_pass(&core, LONG_PAUSE);
    append = core_fetch(&core, MRT_APPEND);
    expect_told(append, "four");
    core_view(&core, append, 1);
    /* The store may have the ticket as it was first sent. */
    struct mrt_command *change = core_fetch(&core, MRT_SET_VALUE);
    expect_told(change, "four");
    core_view(&core, change, 1);
    core_no_command(&core);
    core_free(&core);
}

static void test_g4_a_candidate_that_does_not_lead_proclaims_nothing(void **state)
{
    (void)state;
    struct core core;
    core_open_recipe(&core, &mrt_election);
    struct mrt_waiter leader = candidate("one");
    core_grant(&core, &leader);
    struct mrt_hold stale = *leader.hold;
    core_fail_allocations(0);
    assert_int_equal(proclaim(&core, &leader, "two"), MORTISE_ENOMEM);
    core_fail_allocations(-1);
    core_session_lost(&core);
    assert_int_equal(proclaim(&core, &leader, "two"), MORTISE_ELOST);
    assert_int_equal(core_release(&core, leader.hold, 0), MORTISE_ELOST);
    assert_int_equal(mrt_hold_set_value(leader.hold, stale.generation, "two", 3, core.now),
                     MORTISE_ENOTHELD);
    core_free(&core);
}

static void test_a_candidate_with_a_value_and_no_memory(void **state)
{
    (void)state;
    struct core core;
    core_open_recipe(&core, &mrt_election);
    struct mrt_waiter first = candidate("one"), waiter = candidate("two");
    core_grant(&core, &first);
    for (int round = 0; round < 2; round++) {
        waiter = candidate("two");
        core_fail_allocations(1); /* the hold, not the value; then the value, not the ticket */
        core_acquire(&core, &waiter);
        core_fail_allocations(-1);
        core_done(&core, &waiter, MORTISE_ENOMEM);
    }
    core_free(&core);
}

static void test_values_end_with_their_tickets(void **state)
{
    (void)state;
    struct core core;
    core_open_recipe(&core, &mrt_election);
    struct mrt_waiter leader = candidate("one");
    core_grant(&core, &leader);
    proclaim(&core, &leader, "two");
    struct mrt_command *change = core_fetch(&core, MRT_SET_VALUE);
    proclaim(&core, &leader, "three");
    assert_int_equal(core_release(&core, leader.hold, 0), MORTISE_OK);
    core_answer(&core, change, MRT_VIEW);
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
    core_no_command(&core);
    leader = candidate("again");
    core_acquire(&core, &leader);
    expect_told(core_fetch(&core, MRT_APPEND), "again");
    assert_int_equal(mrt_waiter_set_value(&leader, "more", 4), MORTISE_OK);
    core_free(&core); /* with a value that is sent, and another that is not */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_k1_a_read_brings_the_stores_value),
        cmocka_unit_test(test_k1_a_write_is_copied_and_refused_or_done),
        cmocka_unit_test(test_k1_a_write_of_unknown_outcome_keeps_its_identity),
        cmocka_unit_test(test_k1_a_read_of_unknown_outcome_is_just_repeated),
        cmocka_unit_test(test_passing_faults_are_repeated_for_some_time),
        cmocka_unit_test(test_the_deadline_of_a_write_says_whether_its_outcome_is_unknown),
        cmocka_unit_test(test_a_request_outlives_its_session),
        cmocka_unit_test(test_a_refusal_may_tell_of_the_loss_of_the_session),
        cmocka_unit_test(test_a_session_that_is_refused_ends_requests_but_no_observer),
        cmocka_unit_test(test_a_command_that_the_store_did_not_take_is_sent_again),
        cmocka_unit_test(test_f17_a_close_ends_requests),
        cmocka_unit_test(test_without_memory_a_request_fails),
        cmocka_unit_test(test_g4_every_new_leader_is_reported_once),
        cmocka_unit_test(test_an_observer_rechecks_without_an_event),
        cmocka_unit_test(test_a_change_that_overtakes_the_answer_is_not_forgotten),
        cmocka_unit_test(test_an_observer_never_gives_up),
        cmocka_unit_test(test_an_observer_looks_again_in_the_next_session),
        cmocka_unit_test(test_an_observer_reads_again_after_an_answer_of_a_lost_session),
        cmocka_unit_test(test_an_observer_that_is_freed_is_told_nothing),
        cmocka_unit_test(test_g4_each_candidate_has_a_ticket_with_its_value),
        cmocka_unit_test(test_g4_a_leader_proclaims),
        cmocka_unit_test(test_g4_a_leader_proclaims_while_it_looks_twice),
        cmocka_unit_test(test_g4_a_candidate_changes_its_value_while_it_waits),
        cmocka_unit_test(test_g4_a_candidate_that_does_not_lead_proclaims_nothing),
        cmocka_unit_test(test_a_candidate_with_a_value_and_no_memory),
        cmocka_unit_test(test_values_end_with_their_tickets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
