/* SPDX-License-Identifier: Apache-2.0 */
/* A ticket: every state, every answer in it, and how it leaves nothing behind. */
#include "core_fixture.h"
#include "defect_run.h"

#define LONG_PAUSE (20 * MS) /* longer than the first pause of a repetition */

/* ------------------------------------------- every answer in every state */

enum scene {
    IS_NEW,         /* APPEND under way */
    IS_MAYBE,       /* APPEND of unknown outcome sent again */
    IS_WAITING,     /* REFRESH under way */
    IS_HELD,        /* granted and held, REFRESH under way */
    LEFT_NEW,       /* cancelled with APPEND under way */
    LEFT_MAYBE,     /* the same, and it may be there already */
    LEFT_WAITING,   /* cancelled with REFRESH under way */
    LEFT_HELD,      /* released with REFRESH under way */
    IS_LEAVING,     /* REMOVE under way */
    ORPHAN_NEW,     /* session lost with APPEND under way */
    ORPHAN_WAITING, /* with REFRESH under way */
    ORPHAN_LEAVING, /* with REMOVE under way */
    SCENES
};

enum outcome {
    FREED,         /* nothing is left of it */
    STAYS,         /* as it was; nothing is sent */
    GRANTED,       /* the waiter has the lock */
    REFUSED,       /* the waiter has the error, nothing is left */
    REFUSED_MAYBE, /* the waiter has the error, and what may be there is removed */
    LOST,          /* the hold is lost, nothing is left */
    LOST_REMOVED,  /* the hold is lost, and the ticket that is there is removed */
    NEW_ONE,       /* a new ticket is appended at once */
    APPEND_LATER,  /* the same again after a pause */
    REFRESH_LATER,
    REMOVE_NOW,
    REMOVE_LATER
};

enum answer {
    VIEW_GRANTS,
    VIEW_BLOCKS,
    BLOCKED,
    GONE,
    REMOVED,
    FAILED_NOW,
    FAILED_EVER,
    UNKNOWN,
    ANSWERS
};

static const enum outcome table[SCENES][ANSWERS] = {
    [IS_NEW] = {GRANTED, STAYS, NEW_ONE, NEW_ONE, NEW_ONE, APPEND_LATER, REFUSED, APPEND_LATER},
    [IS_MAYBE] = {GRANTED, STAYS, NEW_ONE, NEW_ONE, NEW_ONE, APPEND_LATER, REFUSED_MAYBE,
                  APPEND_LATER},
    [IS_WAITING] = {GRANTED, STAYS, NEW_ONE, NEW_ONE, NEW_ONE, REFRESH_LATER, REFRESH_LATER,
                    REFRESH_LATER},
    [IS_HELD] = {STAYS, LOST_REMOVED, LOST, LOST, LOST, REFRESH_LATER, REFRESH_LATER,
                 REFRESH_LATER},
    [LEFT_NEW] = {REMOVE_NOW, REMOVE_NOW, FREED, FREED, FREED, FREED, FREED, REMOVE_NOW},
    [LEFT_MAYBE] = {REMOVE_NOW, REMOVE_NOW, FREED, FREED, FREED, REMOVE_NOW, REMOVE_NOW,
                    REMOVE_NOW},
    [LEFT_WAITING] = {REMOVE_NOW, REMOVE_NOW, FREED, FREED, FREED, REMOVE_NOW, REMOVE_NOW,
                      REMOVE_NOW},
    [LEFT_HELD] = {REMOVE_NOW, REMOVE_NOW, FREED, FREED, FREED, REMOVE_NOW, REMOVE_NOW, REMOVE_NOW},
    [IS_LEAVING] = {REMOVE_LATER, REMOVE_LATER, FREED, FREED, FREED, REMOVE_LATER, REMOVE_LATER,
                    REMOVE_LATER},
    [ORPHAN_NEW] = {FREED, FREED, FREED, FREED, FREED, FREED, FREED, FREED},
    [ORPHAN_WAITING] = {FREED, FREED, FREED, FREED, FREED, FREED, FREED, FREED},
    [ORPHAN_LEAVING] = {FREED, FREED, FREED, FREED, FREED, FREED, FREED, FREED},
};

static void cancel(struct core *core, struct mrt_waiter *waiter)
{
    mrt_engine_cancel(core->engine, waiter, MORTISE_ECANCELLED, core->now);
    core_done(core, waiter, MORTISE_ECANCELLED);
}

/* The store is asked about the ticket in the queue; the command. */
static struct mrt_command *refresh(struct core *core)
{
    core_wake(core, core->queue->ticket->id);
    return core_fetch(core, MRT_REFRESH);
}

static struct mrt_command *append(struct core *core, struct mrt_waiter *waiter)
{
    core_acquire(core, waiter);
    core_start(core);
    return core_fetch(core, MRT_APPEND);
}

static struct mrt_command *append_again(struct core *core, struct mrt_waiter *waiter)
{
    core_answer(core, append(core, waiter), MRT_UNKNOWN);
    core_pass(core, LONG_PAUSE);
    return core_fetch(core, MRT_APPEND);
}

static struct mrt_command *held(struct core *core, struct mrt_waiter *waiter)
{
    core_grant(core, waiter);
    return refresh(core);
}

static struct mrt_command *waiting(struct core *core, struct mrt_waiter *waiter)
{
    core_queue_behind(core, waiter);
    return refresh(core);
}

static void lose(struct core *core, struct mrt_waiter *waiter)
{
    if (waiter->state != MRT_WAITER_DONE)
        cancel(core, waiter); /* or it would begin the next session */
    core_session_lost(core);
    core_answer(core, core_fetch(core, MRT_STOP), MRT_STOPPED);
}

/* Brings a ticket into the scene; the command to be answered. */
static struct mrt_command *set_scene(struct core *core, enum scene scene, struct mrt_waiter *waiter)
{
    struct mrt_command *command;
    switch (scene) {
    case IS_NEW:
        return append(core, waiter);
    case IS_MAYBE:
        return append_again(core, waiter);
    case IS_WAITING:
        return waiting(core, waiter);
    case IS_HELD:
        return held(core, waiter);
    case LEFT_NEW:
    case ORPHAN_NEW:
        command = append(core, waiter);
        break;
    case LEFT_MAYBE:
        command = append_again(core, waiter);
        break;
    case LEFT_HELD:
        command = held(core, waiter);
        assert_int_equal(core_release(core, waiter->hold, 7), MORTISE_OK);
        return command;
    case IS_LEAVING:
    case ORPHAN_LEAVING:
        core_queue_behind(core, waiter);
        cancel(core, waiter);
        command = core_fetch(core, MRT_REMOVE);
        break;
    default:
        command = waiting(core, waiter);
    }
    if (scene >= ORPHAN_NEW)
        lose(core, waiter);
    else if (waiter->state != MRT_WAITER_DONE)
        cancel(core, waiter);
    return command;
}

static void give(struct core *core, struct mrt_command *command, enum answer answer)
{
    static const enum mrt_event_type types[] = {[BLOCKED] = MRT_BLOCKED,
                                                [GONE] = MRT_GONE,
                                                [REMOVED] = MRT_REMOVED,
                                                [UNKNOWN] = MRT_UNKNOWN};
    if (answer == VIEW_GRANTS || answer == VIEW_BLOCKS)
        core_view(core, command, answer == VIEW_BLOCKS);
    else if (answer == FAILED_NOW || answer == FAILED_EVER)
        core_fail(core, command, answer == FAILED_NOW ? MORTISE_EUNREACHABLE : MORTISE_EPERMISSION);
    else
        core_answer(core, command, types[answer]);
}

static void expect_nothing_left(struct core *core)
{
    core_no_command(core);
    assert_null(core->queue->ticket);
    assert_true(TAILQ_EMPTY(&core->engine->loose_tickets));
    assert_int_equal(HASH_COUNT(core->engine->tickets_by_id), 0);
    core_pass(core, 10 * MRT_SECOND);
    core_no_command(core);
}

/* The same ticket is asked about, now or after a pause. */
static void expect_sent(struct core *core, enum mrt_command_type type, struct mrt_id id, bool later)
{
    if (later) {
        core_no_command(core);
        core_pass(core, 2 * LONG_PAUSE);
    }
    assert_true(mrt_id_equal(core_fetch(core, type)->ticket, id));
    core_no_command(core);
}

static void expect(struct core *core, enum outcome outcome, struct mrt_id id,
                   struct mrt_waiter *waiter)
{
    switch (outcome) {
    case FREED:
        expect_nothing_left(core);
        break;
    case STAYS:
        core_no_command(core);
        core_none_settled(core);
        assert_true(mrt_id_equal(core->queue->ticket->id, id));
        break;
    case GRANTED:
        core_done(core, waiter, MORTISE_OK);
        core_no_command(core);
        break;
    case REFUSED:
        core_done(core, waiter, MORTISE_EPERMISSION);
        expect_nothing_left(core);
        break;
    case REFUSED_MAYBE:
        core_done(core, waiter, MORTISE_EPERMISSION);
        expect_sent(core, MRT_REMOVE, id, false);
        break;
    case LOST:
        assert_int_equal(mrt_hold_state(waiter->hold, core->now), MORTISE_LOST);
        expect_nothing_left(core);
        break;
    case LOST_REMOVED:
        assert_int_equal(mrt_hold_state(waiter->hold, core->now), MORTISE_LOST);
        expect_sent(core, MRT_REMOVE, id, false);
        break;
    case NEW_ONE:
        core_none_settled(core);
        assert_false(mrt_id_equal(core_fetch(core, MRT_APPEND)->ticket, id));
        break;
    case APPEND_LATER:
        expect_sent(core, MRT_APPEND, id, true);
        break;
    case REFRESH_LATER:
        expect_sent(core, MRT_REFRESH, id, true);
        break;
    default:
        expect_sent(core, MRT_REMOVE, id, outcome == REMOVE_LATER);
    }
}

static void test_f7_z2_every_answer_in_every_state(void **state)
{
    (void)state;
    for (int scene = 0; scene < SCENES; scene++)
        for (int answer = 0; answer < ANSWERS; answer++) {
            struct core core;
            core_open(&core, NULL);
            struct mrt_waiter waiter = core_waiter(7);
            struct mrt_command *command = set_scene(&core, (enum scene)scene, &waiter);
            struct mrt_id id = command->ticket;
            give(&core, command, (enum answer)answer);
            print_message("# scene %d, answer %d\n", scene, answer);
            expect(&core, table[scene][answer], id, &waiter);
            core_free(&core);
        }
}

/* -------------------------------------------------------------- commands */

static void test_an_append_carries_the_recipe(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    struct mrt_command *command = append(&core, &waiter);
    assert_string_equal(command->queue, "q");
    assert_string_equal(command->kind, "mutex");
    assert_int_equal(command->capacity, 1);
    assert_int_equal(command->weight, 1);
    assert_false(command->try_only);
    assert_int_equal(command->fence, 0);
    assert_true(command->serial != 0);
    core_view(&core, command, 1);
    assert_int_equal(refresh(&core)->fence, 100);
    core_free(&core);
}

static void test_an_answer_of_an_earlier_attempt_is_dropped(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    struct mrt_command *command = append(&core, &waiter);
    struct mrt_command old = *command;
    core_answer(&core, command, MRT_UNKNOWN);
    core_view(&core, &old, 0);
    core_none_settled(&core);
    core_pass(&core, LONG_PAUSE);
    core_fetch(&core, MRT_APPEND);
    core_view(&core, &old, 0);
    core_none_settled(&core);
    core_free(&core);
}

static void test_tickets_are_used_again_under_new_identities(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_id ids[5];
    for (size_t i = 0; i < 5; i++) {
        struct mrt_waiter waiter = core_waiter(7);
        core_grant(&core, &waiter);
        ids[i] = core.queue->ticket->id;
        for (size_t j = 0; j < i; j++)
            assert_false(mrt_id_equal(ids[i], ids[j]));
        assert_int_equal(core_release(&core, waiter.hold, 7), MORTISE_OK);
        core_settle_all(&core);
    }
    core_free(&core);
}

/* ------------------------------------------------------------------ wakes */

static void test_wakes_are_answered_by_one_look_at_a_time(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    core_queue_behind(&core, &waiter);
    struct mrt_id id = core.queue->ticket->id;
    core_wake(&core, id);
    core_wake(&core, id); /* not yet fetched: it will do for both */
    struct mrt_command *look = core_fetch(&core, MRT_REFRESH);
    core_no_command(&core);
    core_wake(&core, id); /* under way: it may have seen less */
    core_no_command(&core);
    core_view(&core, look, 1);
    look = core_fetch(&core, MRT_REFRESH);
    core_view(&core, look, 1);
    core_no_command(&core);
    core_free(&core);
}

static void test_h4_a_wake_that_overtakes_the_append_is_not_lost(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    struct mrt_command *command = append(&core, &waiter);
    core_wake(&core, command->ticket);
    core_view(&core, command, 1);
    core_view(&core, core_fetch(&core, MRT_REFRESH), 0);
    core_done(&core, &waiter, MORTISE_OK);
    core_free(&core);
}

static void test_f16_a_wake_without_a_ticket_refreshes_all_waiting_tickets(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_queue *other, *idle;
    assert_int_equal(mrt_engine_queue(core.engine, "other", &mrt_mutex, &other), MORTISE_OK);
    assert_int_equal(mrt_engine_queue(core.engine, "idle", &mrt_mutex, &idle), MORTISE_OK);
    struct mrt_waiter a = core_waiter(1), b = core_waiter(2);
    core_queue_behind(&core, &a);
    mrt_engine_acquire(core.engine, other, &b, core.now);
    core_view(&core, core_fetch(&core, MRT_APPEND), 1);
    core_wake(&core, (struct mrt_id){0, 0});
    core_fetch(&core, MRT_REFRESH);
    core_fetch(&core, MRT_REFRESH);
    core_no_command(&core);
    core_free(&core);
}

static void test_f15_wakes_of_unknown_tickets_and_sessions_are_ignored(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    core_queue_behind(&core, &waiter);
    struct mrt_id id = core.queue->ticket->id;
    core_wake(&core, (struct mrt_id){5, 5}); /* of no ticket */
    struct mrt_event other = {.type = MRT_WAKE, .session = {9, 9}, .ticket = id};
    core_event(&core, &other);
    core_no_command(&core);
    cancel(&core, &waiter);
    struct mrt_command *removal = core_fetch(&core, MRT_REMOVE);
    core_wake(&core, id); /* of one that leaves */
    core_no_command(&core);
    core_answer(&core, removal, MRT_REMOVED);
    core_no_command(&core);
    core_free(&core);
}

static void test_a_wake_while_an_append_waits_for_its_next_attempt(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    struct mrt_command *command = append(&core, &waiter);
    core_answer(&core, command, MRT_UNKNOWN);
    core_wake(&core, command->ticket);
    core_no_command(&core);
    core_free(&core);
}

static struct mrt_waiter trying(uint64_t owner)
{
    struct mrt_waiter waiter = core_waiter(owner);
    waiter.try_only = true;
    return waiter;
}

/* The waiter's place, told without being asked. */
static struct mrt_event told(struct core *core, uint64_t weight_ahead)
{
    struct mrt_event view = core->shown;
    view.type = MRT_VIEW;
    view.serial = 0;
    view.session = core->engine->session.id;
    view.ticket = core->queue->ticket->id;
    view.weight_ahead = weight_ahead;
    return view;
}

static void test_a_told_view_grants_at_once(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    core_queue_behind(&core, &waiter);
    struct mrt_event view = told(&core, 0);
    core_event(&core, &view);
    core_done(&core, &waiter, MORTISE_OK);
    /* One that says otherwise may be late: only an answer to a question decides. */
    view = told(&core, 1);
    core_event(&core, &view);
    assert_int_equal(mrt_hold_state(waiter.hold, core.now), MORTISE_HELD);
    core_view(&core, core_fetch(&core, MRT_REFRESH), 1);
    assert_int_equal(mrt_hold_state(waiter.hold, core.now), MORTISE_LOST);
    core_free(&core);
}

static void test_an_answer_older_than_the_grant_does_not_undo_it(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    core_queue_behind(&core, &waiter);
    struct mrt_command *look = refresh(&core);
    struct mrt_event view = told(&core, 0);
    core_event(&core, &view);
    core_done(&core, &waiter, MORTISE_OK);
    core_view(&core, look, 1);
    assert_int_equal(mrt_hold_state(waiter.hold, core.now), MORTISE_HELD);
    core_view(&core, core_fetch(&core, MRT_REFRESH), 0);
    assert_int_equal(mrt_hold_state(waiter.hold, core.now), MORTISE_HELD);
    core_no_command(&core);
    core_free(&core);
}

/* A ticket that was taken out, unseen, and appended again: there are others before it now. */
static void test_a_told_view_of_an_earlier_ticket_grants_nothing(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    core.shown.fence = 100;
    core_queue_behind(&core, &waiter);
    struct mrt_event view = told(&core, 0);
    view.fence = 50;
    core_event(&core, &view);
    core_none_settled(&core);
    core_view(&core, core_fetch(&core, MRT_REFRESH), 1); /* it is asked about */
    core_none_settled(&core);
    view = told(&core, 0);
    core_event(&core, &view);
    core_done(&core, &waiter, MORTISE_OK);
    core_free(&core);
}

static void test_h4_a_told_view_that_overtakes_the_answer_is_asked_after(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    struct mrt_command *command = append(&core, &waiter);
    struct mrt_event view = told(&core, 0);
    core_event(&core, &view);
    core_none_settled(&core);
    view.ticket = (struct mrt_id){5, 5}; /* of none */
    core_event(&core, &view);
    core_view(&core, command, 1);
    core_none_settled(&core);
    core_view(&core, core_fetch(&core, MRT_REFRESH), 0);
    core_done(&core, &waiter, MORTISE_OK);
    core_free(&core);
}

/* The next ticket would find our own last one ahead, and a try would fail for it. */
static void test_h2_a_try_waits_for_the_removal_of_our_last_ticket_to_be_sent(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7), try = trying(7);
    struct mrt_command *look = held(&core, &waiter);
    assert_int_equal(core_release(&core, waiter.hold, 7), MORTISE_OK);
    core_acquire(&core, &try);
    core_no_command(&core);
    core_view(&core, look, 0);
    core_fetch(&core, MRT_REMOVE);
    struct mrt_command *command = core_fetch(&core, MRT_APPEND);
    assert_true(command->try_only);
    core_view(&core, command, 0);
    core_done(&core, &try, MORTISE_OK);
    core_free(&core);
}

static void test_f7_a_store_that_keeps_failing_is_told_after_some_seconds(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    core_fail(&core, append(&core, &waiter), MORTISE_ESTORE);
    for (int i = 0; i < 10; i++) {
        core_none_settled(&core);
        core_pass(&core, 2 * MRT_SECOND);
        core_fail(&core, core_fetch(&core, MRT_APPEND), MORTISE_ESTORE);
    }
    core_done(&core, &waiter, MORTISE_ESTORE);
    expect_nothing_left(&core);
    core_free(&core);
}

/* Removed by an operator, say: a look finds out. */
static void test_z7_a_holder_told_that_its_ticket_is_gone_looks_and_loses(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7), next = core_waiter(8);
    core_grant(&core, &waiter);
    core_acquire(&core, &next);
    struct mrt_event gone = {
        .type = MRT_GONE, .session = core.engine->session.id, .ticket = core.queue->ticket->id};
    core_event(&core, &gone);
    assert_int_equal(mrt_hold_state(waiter.hold, core.now), MORTISE_HELD);
    core_answer(&core, core_fetch(&core, MRT_REFRESH), MRT_GONE);
    assert_int_equal(mrt_hold_state(waiter.hold, core.now), MORTISE_LOST);
    core_view(&core, core_fetch(&core, MRT_APPEND), 0);
    core_settled(&core, &next);
    core_free(&core);
}

static void test_h5_a_waiting_ticket_is_looked_at_again_without_a_wake(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    core.shown.recheck = 5 * MRT_SECOND;
    struct mrt_waiter waiter = core_waiter(7);
    core_queue_behind(&core, &waiter);
    for (int i = 0; i < 3; i++) {
        core_pass(&core, 5 * MRT_SECOND - 1);
        core_no_command(&core);
        core_pass(&core, 1);
        core_view(&core, core_fetch(&core, MRT_REFRESH), 1);
        core_no_command(&core);
    }
    core_free(&core);
}

static void test_a_recheck_that_falls_due_while_asking_asks_nothing_more(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    core.shown.recheck = MRT_SECOND;
    struct mrt_waiter waiter = core_waiter(7);
    core_queue_behind(&core, &waiter);
    struct mrt_event view = core.shown; /* told meanwhile; it sets the time of the next look */
    view.type = MRT_VIEW;
    view.session = core.engine->session.id;
    view.ticket = core.queue->ticket->id;
    view.weight_ahead = 1;
    core_wake(&core, view.ticket);
    core_event(&core, &view);
    core_pass(&core, 2 * MRT_SECOND);
    struct mrt_command *look = core_fetch(&core, MRT_REFRESH);
    core_no_command(&core);
    core_event(&core, &view);
    core_pass(&core, 2 * MRT_SECOND);
    core_no_command(&core);
    core_view(&core, look, 1);
    core_pass(&core, MRT_SECOND);
    core_fetch(&core, MRT_REFRESH);
    core_free(&core);
}

/* ----------------------------------------------------------- given up, try */

static void test_f6_cancelled_before_anything_was_sent(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter first = core_waiter(1), waiter = core_waiter(7);
    core_grant(&core, &first);
    core_release(&core, first.hold, 1);
    core_settle_all(&core);
    core_acquire(&core, &waiter); /* APPEND is in the outbox */
    cancel(&core, &waiter);
    expect_nothing_left(&core);
    core_free(&core);
}

static void test_f6_cancelled_while_the_session_starts(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    core_acquire(&core, &waiter);
    cancel(&core, &waiter);
    core_start(&core);
    expect_nothing_left(&core);
    core_free(&core);
}

static void test_f5_cancelled_between_two_attempts_to_append(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    core_fail(&core, append(&core, &waiter), MORTISE_EUNREACHABLE);
    cancel(&core, &waiter); /* nothing was done, so there is nothing to undo */
    expect_nothing_left(&core);
    waiter = core_waiter(7);
    core_acquire(&core, &waiter);
    core_answer(&core, core_fetch(&core, MRT_APPEND), MRT_UNKNOWN);
    cancel(&core, &waiter); /* this one may be there */
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
    expect_nothing_left(&core);
    core_free(&core);
}

static void test_f6_cancelled_with_a_look_not_yet_fetched(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    core_queue_behind(&core, &waiter);
    core_wake(&core, core.queue->ticket->id);
    cancel(&core, &waiter);
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
    expect_nothing_left(&core);
    core_free(&core);
}

static void test_f4_timed_out_leaves_nothing(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    waiter.deadline = core.now + 50 * MS;
    core_queue_behind(&core, &waiter);
    core_pass(&core, 50 * MS - 1);
    core_none_settled(&core);
    core_pass(&core, 1);
    core_done(&core, &waiter, MORTISE_ETIMEOUT);
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
    expect_nothing_left(&core);
    core_free(&core);
}

static void test_h2_c18_z1_a_failed_try_leaves_nothing(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = trying(7);
    struct mrt_command *command = append(&core, &waiter);
    assert_true(command->try_only);
    core_answer(&core, command, MRT_BLOCKED);
    core_done(&core, &waiter, MORTISE_EBUSY);
    expect_nothing_left(&core);
    core_free(&core);
}

static void test_z1_a_try_that_a_store_queued_is_removed(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = trying(7), behind = core_waiter(8);
    struct mrt_command *command = append(&core, &waiter);
    core_acquire(&core, &behind);
    core_view(&core, command, 1);
    core_done(&core, &waiter, MORTISE_EBUSY);
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
    core_fetch(&core, MRT_APPEND); /* and the one behind has a ticket of its own */
    core_free(&core);
}

static void test_h2_a_try_says_to_the_store_that_it_expects_the_lock_free(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = trying(7);
    waiter.expect_free = true;
    struct mrt_command *command = append(&core, &waiter);
    assert_true(command->expect_free); /* the store is told */
    core_view(&core, command, 0);
    core_done(&core, &waiter, MORTISE_OK);
    core_free(&core);
}

static void test_h2_a_try_does_not_wait_for_a_store_that_fails(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = trying(7);
    core_fail(&core, append(&core, &waiter), MORTISE_EUNREACHABLE);
    core_done(&core, &waiter, MORTISE_EUNREACHABLE);
    expect_nothing_left(&core);
    core_free(&core);
}

static void test_z2_blocked_frees_the_local_tier(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter try = trying(7), behind = core_waiter(8);
    struct mrt_command *command = append(&core, &try);
    core_acquire(&core, &behind);
    core_answer(&core, command, MRT_BLOCKED);
    core_done(&core, &try, MORTISE_EBUSY);
    command = core_fetch(&core, MRT_APPEND);
    assert_false(command->try_only);
    core_view(&core, command, 0);
    core_settled(&core, &behind);
    core_free(&core);
}

static void test_z2_a_refused_append_frees_the_local_tier(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7), behind = core_waiter(8);
    struct mrt_command *command = append(&core, &waiter);
    core_acquire(&core, &behind);
    core_fail(&core, command, MORTISE_EMISMATCH);
    core_done(&core, &waiter, MORTISE_EMISMATCH);
    core_view(&core, core_fetch(&core, MRT_APPEND), 0);
    core_settled(&core, &behind);
    core_free(&core);
}

/* Though it is of the kind that is tried again: that is for the caller to do. */
static void test_zk_34_a_full_queue_is_told_at_once(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    struct mrt_command *command = append(&core, &waiter);
    core_fail(&core, command, MORTISE_EFULL);
    core_done(&core, &waiter, MORTISE_EFULL);
    core_free(&core);
}

/* An attempt of unknown outcome is followed by a refusal: what may be left of it is removed until
   that is proven, and the next waiter goes on meanwhile. */
static void test_f7_a_refusal_after_an_unknown_outcome_is_told_and_leaves_nothing(void **state)
{
    (void)state;
    static const int errors[] = {MORTISE_EPERMISSION, MORTISE_ENAME, MORTISE_EFULL};
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        struct core core;
        core_open(&core, NULL);
        struct mrt_waiter waiter = core_waiter(7), behind = core_waiter(8);
        struct mrt_command *command = append_again(&core, &waiter);
        core_acquire(&core, &behind);
        core_fail(&core, command, errors[i]);
        core_done(&core, &waiter, errors[i]);
        command = core_fetch(&core, MRT_REMOVE);
        core_view(&core, core_fetch(&core, MRT_APPEND), 0);
        core_done(&core, &behind, MORTISE_OK);
        core_fail(&core, command, MORTISE_EPERMISSION);
        core_pass(&core, 2 * LONG_PAUSE);
        core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
        core_pass(&core, 10 * LONG_PAUSE);
        core_no_command(&core);
        core_free(&core);
    }
}

/* A try fails with that immediately; with a passing fault it does not, because its ticket may be
 * granted. */
static void test_h2_a_try_of_unknown_outcome_fails_only_by_a_lasting_fault(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = trying(7);
    struct mrt_command *command = append_again(&core, &waiter);
    core_fail(&core, command, MORTISE_EUNREACHABLE);
    core_none_settled(&core);
    core_pass(&core, 2 * LONG_PAUSE);
    core_fail(&core, core_fetch(&core, MRT_APPEND), MORTISE_EPERMISSION);
    core_done(&core, &waiter, MORTISE_EPERMISSION);
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
    expect_nothing_left(&core);
    core_free(&core);
}

/* A store that was wiped, or restored from a backup, counts anew from a smaller number. */
static void test_zk_10_a_fence_that_goes_back_is_given_to_nobody(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter first = core_waiter(7), next = core_waiter(8), last = core_waiter(9);
    core.shown.fence = 5000;
    core_grant(&core, &first);
    assert_int_equal(core_release(&core, first.hold, 7), MORTISE_OK);
    core_settle_all(&core);
    core_acquire(&core, &next);
    core_acquire(&core, &last);
    core.shown.fence = 4999;
    core_view(&core, core_fetch(&core, MRT_APPEND), 0);
    core_done(&core, &next, MORTISE_ESTALE);
    assert_null(next.hold);
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
    core.shown.fence = 5001;
    core_view(&core, core_fetch(&core, MRT_APPEND), 0);
    core_done(&core, &last, MORTISE_OK);
    assert_int_equal(last.hold->fence, 5001);
    core_free(&core);
}

/* The ticket of a try that was given up serves the waiter behind it; its failure does not end that
 * waiter. */
static void test_z2_the_failure_of_a_cancelled_try_is_not_the_next_ones(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter try = trying(7), behind = core_waiter(8);
    struct mrt_command *command = append(&core, &try);
    core_acquire(&core, &behind);
    cancel(&core, &try);
    core_fail(&core, command, MORTISE_EUNREACHABLE);
    core_none_settled(&core);
    assert_int_equal(behind.state, MRT_WAITER_WAITING);
    core_view(&core, core_fetch(&core, MRT_APPEND), 0);
    core_settled(&core, &behind);
    core_free(&core);
}

/* ------------------------------------------------- commands not taken, orphans */

static void test_unsubmit_gives_the_same_command_again(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    core_acquire(&core, &waiter);
    struct mrt_command *start = core_fetch(&core, MRT_START);
    mrt_engine_unsubmit(core.engine, start, core.now);
    assert_int_equal(mrt_engine_counters(core.engine)->commands, 0);
    core.now += MRT_SECOND;
    assert_ptr_equal(core_fetch(&core, MRT_START), start);
    assert_int_equal(core.engine->session.sent, core.now);
    core_answer(&core, start, MRT_STARTED);
    struct mrt_command *command = core_fetch(&core, MRT_APPEND);
    mrt_engine_unsubmit(core.engine, command, core.now);
    assert_ptr_equal(core_fetch(&core, MRT_APPEND), command);
    core_view(&core, command, 0);
    core_done(&core, &waiter, MORTISE_OK);
    core_free(&core);
}

static void test_f6_an_append_that_is_not_wanted_any_more_is_not_sent(void **state)
{
    (void)state;
    static const struct {
        enum scene scene;
        bool removes;
    } scenes[] = {{LEFT_NEW, false},       {LEFT_MAYBE, true},     {LEFT_WAITING, true},
                  {LEFT_HELD, true},       {IS_LEAVING, true},     {ORPHAN_NEW, false},
                  {ORPHAN_WAITING, false}, {ORPHAN_LEAVING, false}};
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        struct core core;
        core_open(&core, NULL);
        struct mrt_waiter waiter = core_waiter(7);
        struct mrt_command *command = set_scene(&core, scenes[i].scene, &waiter);
        mrt_engine_unsubmit(core.engine, command, core.now);
        if (scenes[i].removes)
            core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
        expect_nothing_left(&core);
        core_free(&core);
    }
}

/* The next waiter waits until the store has said what became of the command in hand. */
static void test_f6_an_append_that_is_not_wanted_goes_to_the_next_waiter(void **state)
{
    (void)state;
    static const enum scene scenes[] = {LEFT_NEW, LEFT_MAYBE, LEFT_WAITING, LEFT_HELD};
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        struct core core;
        core_open(&core, NULL);
        struct mrt_waiter waiter = core_waiter(7), next = core_waiter(8);
        struct mrt_command *command = set_scene(&core, scenes[i], &waiter);
        core_acquire(&core, &next);
        core_no_command(&core);
        while (mrt_engine_next_settled(core.engine))
            ;
        mrt_engine_unsubmit(core.engine, command, core.now);
        if (scenes[i] != LEFT_NEW)
            core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
        core_view(&core, core_fetch(&core, MRT_APPEND), 0);
        core_done(&core, &next, MORTISE_OK);
        core_free(&core);
    }
}

static void test_an_orphan_outlives_the_next_loss(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    struct mrt_command *orphan = append(&core, &waiter);
    for (int i = 0; i < 2; i++) {
        core_session_lost(&core);
        core_answer(&core, core_fetch(&core, MRT_STOP), MRT_STOPPED);
        core_start(&core);
        if (i == 0)
            core_view(&core, core_fetch(&core, MRT_APPEND), 1);
    }
    assert_int_equal(core.engine->loose_tickets.tqh_first->state, MRT_TICKET_ORPHAN);
    core_answer(&core, orphan, MRT_UNKNOWN);
    assert_true(TAILQ_EMPTY(&core.engine->loose_tickets));
    core_free(&core);
}

static void test_a_loss_with_an_append_not_yet_fetched(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    core_acquire(&core, &waiter);
    core_start(&core);
    core_session_lost(&core);
    core_answer(&core, core_fetch(&core, MRT_STOP), MRT_STOPPED);
    core_start(&core);
    core_view(&core, core_fetch(&core, MRT_APPEND), 0);
    core_done(&core, &waiter, MORTISE_OK);
    core_free(&core);
}

/* A ticket that leaves goes at once if its session is lost. */
static void test_a_loss_ends_a_removal_that_pauses(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(7);
    core_queue_behind(&core, &waiter);
    cancel(&core, &waiter);
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_UNKNOWN);
    core_session_lost(&core);
    core_answer(&core, core_fetch(&core, MRT_STOP), MRT_STOPPED);
    expect_nothing_left(&core);
    core_free(&core);
}

/* ------------------------------------------------------------------ f18 */

/* Times the waiter out now; the error it ends with. */
static int time_out(struct core *core, struct mrt_waiter *waiter)
{
    mrt_engine_cancel(core->engine, waiter, MORTISE_ETIMEOUT, core->now);
    assert_int_equal(waiter->state, MRT_WAITER_DONE);
    return waiter->error;
}

static void test_f18_lost_while_acquiring_is_told_from_too_late(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(1);
    core_lose_append(&core, &waiter);
    assert_int_equal(time_out(&core, &waiter), MORTISE_EDISCONNECTED);
    core_free(&core);

    core_open(&core, NULL);
    waiter = core_waiter(1);
    core_lose_append(&core, &waiter);
    core_pass(&core, 100 * MS);
    core_view(&core, core_fetch(&core, MRT_APPEND), 1); /* there again: someone else holds it */
    assert_int_equal(time_out(&core, &waiter), MORTISE_ETIMEOUT);
    core_free(&core);

    core_open(&core, NULL);
    waiter = core_waiter(1);
    core_acquire(&core, &waiter);
    core_start(&core);
    core_fail(&core, core_fetch(&core, MRT_APPEND), MORTISE_ESTORE); /* it was reached */
    assert_int_equal(time_out(&core, &waiter), MORTISE_ETIMEOUT);
    core_free(&core);

    core_open(&core, NULL);
    waiter = core_waiter(1);
    core_acquire(&core, &waiter);
    core_start(&core);
    core_fail(&core, core_fetch(&core, MRT_APPEND), MORTISE_EUNREACHABLE);
    assert_int_equal(time_out(&core, &waiter), MORTISE_EDISCONNECTED);
    core_free(&core);
}

static void test_f18_a_cancel_while_the_store_is_away_is_reported_as_a_cancel(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(1);
    core_lose_append(&core, &waiter);
    mrt_engine_cancel(core.engine, &waiter, MORTISE_ECANCELLED, core.now);
    assert_int_equal(waiter.error, MORTISE_ECANCELLED);
    core_free(&core);
}

static void test_f18_a_session_that_cannot_be_opened_or_proven(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(1);
    core_acquire(&core, &waiter);
    core_fetch(&core, MRT_START); /* not answered: no holder is known who could be waited for */
    assert_int_equal(time_out(&core, &waiter), MORTISE_EDISCONNECTED);
    core_free(&core);

    core_open(&core, NULL);
    waiter = core_waiter(1);
    core_acquire(&core, &waiter);
    core_fail(&core, core_fetch(&core, MRT_START), MORTISE_EUNREACHABLE);
    assert_int_equal(time_out(&core, &waiter), MORTISE_EDISCONNECTED);
    core_free(&core);

    core_open(&core, NULL);
    core.lease = 1200 * MS;
    waiter = core_waiter(1);
    core_queue_behind(&core, &waiter);
    core_pass(&core, 400 * MS);
    core_answer(&core, core_fetch(&core, MRT_RENEW), MRT_UNKNOWN);
    assert_int_equal(time_out(&core, &waiter), MORTISE_EDISCONNECTED);
    core_free(&core);

    core_open(&core, NULL);
    core.lease = 1200 * MS;
    waiter = core_waiter(1);
    core_queue_behind(&core, &waiter);
    core_pass(&core, 400 * MS);
    core_fetch(&core, MRT_RENEW);
    core_pass(&core, 200 * MS); /* no word for half the lease */
    assert_int_equal(time_out(&core, &waiter), MORTISE_EDISCONNECTED);
    core_free(&core);
}

static void test_f18_a_lost_session_that_is_not_open_again(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(1);
    core_queue_behind(&core, &waiter);
    core_session_lost(&core);
    core_fetch(&core, MRT_STOP); /* not answered */
    assert_int_equal(time_out(&core, &waiter), MORTISE_EDISCONNECTED);
    core_free(&core);
}

static void test_f18_a_try_waits_for_the_store_alone(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(1);
    waiter.try_only = true;
    core_acquire(&core, &waiter);
    core_start(&core);
    core_fetch(&core, MRT_APPEND); /* not answered */
    assert_int_equal(time_out(&core, &waiter), MORTISE_EDISCONNECTED);
    core_free(&core);

    core_open(&core, NULL);
    waiter = core_waiter(1);
    core_acquire(&core, &waiter);
    core_start(&core);
    core_fetch(&core, MRT_APPEND); /* as late as that a holder may be meant as well */
    assert_int_equal(time_out(&core, &waiter), MORTISE_ETIMEOUT);
    core_free(&core);
}

static void test_f18_a_waiter_without_a_ticket_times_out_plainly(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter one = core_waiter(1), two = core_waiter(2);
    core_acquire(&core, &one);
    core_start(&core);
    core_fetch(&core, MRT_APPEND);
    cancel(&core, &one);
    core_acquire(&core, &two); /* until the removal of our last one can be sent */
    core_no_command(&core);
    assert_int_equal(time_out(&core, &two), MORTISE_ETIMEOUT);
    core_free(&core);
}

static void test_f18_each_shared_waiter_learns_of_its_own_lost_append(void **state)
{
    (void)state;
    struct core core;
    core_open_recipe(&core, &mrt_read_write);
    struct mrt_waiter one = core_asking(1, MRT_WRITER), two = core_asking(2, MRT_WRITER);
    core_acquire(&core, &one);
    core_start(&core);
    core_acquire(&core, &two);
    struct mrt_command *first = core_fetch(&core, MRT_APPEND),
                       *second = core_fetch(&core, MRT_APPEND);
    core_answer(&core, first, MRT_UNKNOWN);
    core_view(&core, second, MRT_WRITER);
    assert_int_equal(time_out(&core, &two), MORTISE_ETIMEOUT);
    assert_int_equal(time_out(&core, &one), MORTISE_EDISCONNECTED);
    core_free(&core);
}

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f7_z2_every_answer_in_every_state),
        cmocka_unit_test(test_an_append_carries_the_recipe),
        cmocka_unit_test(test_an_answer_of_an_earlier_attempt_is_dropped),
        cmocka_unit_test(test_tickets_are_used_again_under_new_identities),
        cmocka_unit_test(test_wakes_are_answered_by_one_look_at_a_time),
        cmocka_unit_test(test_h4_a_wake_that_overtakes_the_append_is_not_lost),
        cmocka_unit_test(test_f16_a_wake_without_a_ticket_refreshes_all_waiting_tickets),
        cmocka_unit_test(test_f15_wakes_of_unknown_tickets_and_sessions_are_ignored),
        cmocka_unit_test(test_a_wake_while_an_append_waits_for_its_next_attempt),
        cmocka_unit_test(test_a_told_view_grants_at_once),
        cmocka_unit_test(test_an_answer_older_than_the_grant_does_not_undo_it),
        cmocka_unit_test(test_a_told_view_of_an_earlier_ticket_grants_nothing),
        cmocka_unit_test(test_h4_a_told_view_that_overtakes_the_answer_is_asked_after),
        cmocka_unit_test(test_h2_a_try_waits_for_the_removal_of_our_last_ticket_to_be_sent),
        cmocka_unit_test(test_f7_a_store_that_keeps_failing_is_told_after_some_seconds),
        cmocka_unit_test(test_z7_a_holder_told_that_its_ticket_is_gone_looks_and_loses),
        cmocka_unit_test(test_h5_a_waiting_ticket_is_looked_at_again_without_a_wake),
        cmocka_unit_test(test_a_recheck_that_falls_due_while_asking_asks_nothing_more),
        cmocka_unit_test(test_f6_cancelled_before_anything_was_sent),
        cmocka_unit_test(test_f6_cancelled_while_the_session_starts),
        cmocka_unit_test(test_f5_cancelled_between_two_attempts_to_append),
        cmocka_unit_test(test_f6_cancelled_with_a_look_not_yet_fetched),
        cmocka_unit_test(test_f4_timed_out_leaves_nothing),
        cmocka_unit_test(test_h2_c18_z1_a_failed_try_leaves_nothing),
        cmocka_unit_test(test_z1_a_try_that_a_store_queued_is_removed),
        cmocka_unit_test(test_h2_a_try_says_to_the_store_that_it_expects_the_lock_free),
        cmocka_unit_test(test_h2_a_try_does_not_wait_for_a_store_that_fails),
        cmocka_unit_test(test_z2_blocked_frees_the_local_tier),
        cmocka_unit_test(test_z2_a_refused_append_frees_the_local_tier),
        cmocka_unit_test(test_zk_34_a_full_queue_is_told_at_once),
        cmocka_unit_test(test_zk_10_a_fence_that_goes_back_is_given_to_nobody),
        cmocka_unit_test(test_f7_a_refusal_after_an_unknown_outcome_is_told_and_leaves_nothing),
        cmocka_unit_test(test_h2_a_try_of_unknown_outcome_fails_only_by_a_lasting_fault),
        cmocka_unit_test(test_z2_the_failure_of_a_cancelled_try_is_not_the_next_ones),
        cmocka_unit_test(test_unsubmit_gives_the_same_command_again),
        cmocka_unit_test(test_f6_an_append_that_is_not_wanted_any_more_is_not_sent),
        cmocka_unit_test(test_f6_an_append_that_is_not_wanted_goes_to_the_next_waiter),
        cmocka_unit_test(test_an_orphan_outlives_the_next_loss),
        cmocka_unit_test(test_a_loss_with_an_append_not_yet_fetched),
        cmocka_unit_test(test_a_loss_ends_a_removal_that_pauses),
        cmocka_unit_test(test_f18_lost_while_acquiring_is_told_from_too_late),
        cmocka_unit_test(test_f18_a_cancel_while_the_store_is_away_is_reported_as_a_cancel),
        cmocka_unit_test(test_f18_a_session_that_cannot_be_opened_or_proven),
        cmocka_unit_test(test_f18_a_lost_session_that_is_not_open_again),
        cmocka_unit_test(test_f18_a_try_waits_for_the_store_alone),
        cmocka_unit_test(test_f18_a_waiter_without_a_ticket_times_out_plainly),
        cmocka_unit_test(test_f18_each_shared_waiter_learns_of_its_own_lost_append),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
#ifdef MRT_DEFECTS
    return defect_run("core_ticket", run_all) != 0;
#else
    return run_all();
#endif
}
