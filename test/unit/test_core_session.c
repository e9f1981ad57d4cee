/* SPDX-License-Identifier: Apache-2.0 */
/* The session: when it begins, how its life is proven and dated, how it is lost and ended. */
#include "core_fixture.h"

#define LEASE (900 * MS)
#define MARGIN (27 * MS) /* 3 % of it */
#define THIRD (300 * MS)
#define HALF (450 * MS)

static const struct mrt_session *session_of(const struct core *core)
{
    return &core->engine->session;
}

/* A core with a lease whose session is live and whose lock is held by owner 7. */
static void open_held(struct core *core, struct mrt_waiter *waiter)
{
    core_open(core, NULL);
    core->lease = LEASE;
    *waiter = core_waiter(7);
    core_grant(core, waiter);
    core_no_command(core);
}

/* The same where a proof is as old as `lag`. */
static void open_lagging(struct core *core, struct mrt_waiter *waiter, mrt_time lag)
{
    core_open(core, NULL);
    core->lease = LEASE;
    core->shown.proof_lag = lag;
    *waiter = core_waiter(7);
    core_grant(core, waiter);
}

static void expect_told(struct core *core, struct mrt_hold *hold, mortise_state state)
{
    assert_true(mrt_engine_has_told(core->engine));
    assert_ptr_equal(mrt_engine_next_told(core->engine), hold);
    assert_int_equal(hold->told, state);
    assert_null(mrt_engine_next_told(core->engine));
    assert_false(mrt_engine_has_told(core->engine));
}

/* ------------------------------------------------------------------- lease */

static void test_the_rest_of_a_lease_between_two_proofs(void **state)
{
    (void)state;
    assert_int_equal(mrt_lease_left(LEASE, 0), LEASE - MARGIN - THIRD);
    assert_int_equal(mrt_lease_left(20 * MS, 0), 20 * MS - MRT_MARGIN_MIN - 20 * MS / 3);
    assert_int_equal(mrt_lease_left(12 * MS, 0), 0);
    assert_int_equal(mrt_lease_left(0, 0), 0);
    /* The lag and a round trip, in four parts, and one part more. */
    assert_int_equal(mrt_lease_left(4000 * MS, 2000 * MS), (4000 - 120 - 2125) * MS - 531250000);
    assert_int_equal(mrt_lease_left(LEASE, MS), LEASE - MARGIN - MS - LEASE / 32 - LEASE / 14);
}

/* ------------------------------------------------------------------- start */

static void test_c13_no_command_is_sent_before_the_first_acquire(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    core_no_command(&core);
    assert_int_equal(session_of(&core)->state, MRT_SESSION_NONE);
    assert_int_equal(mrt_engine_next_time(core.engine), MRT_TIME_NEVER);
    core_free(&core);
}

static void test_start_comes_once_for_all_queues(void **state)
{
    (void)state;
    struct core core;
    struct mrt_queue *other;
    core_open(&core, NULL);
    assert_int_equal(mrt_engine_queue(core.engine, "other", &mrt_mutex, &other), MORTISE_OK);
    struct mrt_waiter a = core_waiter(1), b = core_waiter(2);
    core_acquire(&core, &a);
    mrt_engine_acquire(core.engine, other, &b, core.now);
    core_start(&core);
    const struct mrt_command *first = core_fetch(&core, MRT_APPEND);
    const struct mrt_command *second = core_fetch(&core, MRT_APPEND);
    assert_string_equal(first->queue, "q");
    assert_string_equal(second->queue, "other");
    assert_true(mrt_id_equal(first->session, second->session));
    assert_false(mrt_id_equal(first->ticket, second->ticket));
    core_no_command(&core);
    core_free(&core);
}

static void test_a_start_that_fails_for_now_is_repeated_for_the_same_session(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(1);
    core_acquire(&core, &waiter);
    struct mrt_command *start = core_fetch(&core, MRT_START);
    struct mrt_id id = start->session;
    core_fail(&core, start, MORTISE_EUNREACHABLE);
    core_no_command(&core);
    assert_true(mrt_engine_next_time(core.engine) < core.now + 20 * MS);
    core_pass(&core, 20 * MS);
    start = core_fetch(&core, MRT_START);
    assert_true(mrt_id_equal(start->session, id));
    core_answer(&core, start, MRT_UNKNOWN);
    core_no_command(&core);
    core_pass(&core, 40 * MS);
    start = core_fetch(&core, MRT_START);
    assert_true(mrt_id_equal(start->session, id));
    assert_int_equal(waiter.state, MRT_WAITER_WAITING);
    core_answer(&core, start, MRT_STARTED);
    core_fetch(&core, MRT_APPEND);
    core_free(&core);
}

static void test_h7_start_that_fails_for_good_tells_every_waiter(void **state)
{
    (void)state;
    struct core core;
    struct mrt_queue *other;
    core_open(&core, NULL);
    assert_int_equal(mrt_engine_queue(core.engine, "other", &mrt_mutex, &other), MORTISE_OK);
    struct mrt_waiter a = core_waiter(1), b = core_waiter(2);
    core_acquire(&core, &a);
    mrt_engine_acquire(core.engine, other, &b, core.now);
    struct mrt_command *start = core_fetch(&core, MRT_START);
    struct mrt_id id = start->session;
    core_fail(&core, start, MORTISE_EPERMISSION);
    core_done(&core, &a, MORTISE_EPERMISSION);
    core_done(&core, &b, MORTISE_EPERMISSION);
    core_no_command(&core);
    a = core_waiter(1);
    core_acquire(&core, &a);
    assert_false(mrt_id_equal(core_fetch(&core, MRT_START)->session, id));
    core_free(&core);
}

/* An earlier START of unknown outcome may have made the session. */
static void test_start_that_fails_for_good_later_is_followed_by_a_stop(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(1);
    core_acquire(&core, &waiter);
    core_answer(&core, core_fetch(&core, MRT_START), MRT_UNKNOWN);
    core_pass(&core, 20 * MS);
    struct mrt_command *start = core_fetch(&core, MRT_START);
    struct mrt_id id = start->session;
    core_fail(&core, start, MORTISE_EPERMISSION);
    core_done(&core, &waiter, MORTISE_EPERMISSION);
    struct mrt_command *stop = core_fetch(&core, MRT_STOP);
    assert_true(mrt_id_equal(stop->session, id));
    core_answer(&core, stop, MRT_STOPPED);
    core_no_command(&core);
    core_free(&core);
}

static void test_f8_pauses_double_to_a_second_and_are_spread(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    for (uint32_t attempts = 0; attempts < 40; attempts++) {
        mrt_time base = attempts < 7 ? (10 * MS) << attempts : MRT_SECOND;
        core.engine->serial = attempts * 1000;
        mrt_time pause = mrt_engine_pause(core.engine, attempts);
        assert_in_range(pause, base / 2, base / 2 + base - 1);
        bool spread = false;
        while (!spread && ++core.engine->serial < attempts * 1000 + 100)
            spread = mrt_engine_pause(core.engine, attempts) != pause;
        assert_true(spread);
    }
    core_free(&core);
}

/* -------------------------------------------------------------- valid until */

static void test_lease_is_dated_from_the_sending_less_a_margin(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    core.lease = LEASE;
    struct mrt_waiter waiter = core_waiter(1);
    core_acquire(&core, &waiter);
    core.now += 5 * MS; /* it lay in the outbox */
    struct mrt_command *start = core_fetch(&core, MRT_START);
    mrt_time sent = core.now;
    core.now += 100 * MS;
    core_answer(&core, start, MRT_STARTED);
    assert_int_equal(session_of(&core)->valid_until, sent + LEASE - MARGIN);
    core_free(&core);
}

static void test_margin_has_a_least_value(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    core.lease = 100 * MS; /* 3 % would be 3 ms */
    struct mrt_waiter waiter = core_waiter(1);
    core_grant(&core, &waiter);
    assert_int_equal(mrt_hold_valid_until(waiter.hold), core.now + 90 * MS);
    core_free(&core);
}

static void test_without_a_lease_nothing_is_proven_and_nothing_ends(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(1);
    core_grant(&core, &waiter);
    assert_int_equal(mrt_hold_valid_until(waiter.hold), MRT_TIME_NEVER);
    assert_int_equal(mrt_engine_next_time(core.engine), MRT_TIME_NEVER);
    core_pass(&core, 1000 * MRT_SECOND);
    core_no_command(&core);
    assert_int_equal(mrt_hold_state(waiter.hold, core.now), MORTISE_HELD);
    core_free(&core);
}

static void test_started_after_its_lease_has_run_out_grants_nothing(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    core.lease = LEASE;
    struct mrt_waiter waiter = core_waiter(1);
    core_acquire(&core, &waiter);
    struct mrt_command *start = core_fetch(&core, MRT_START);
    core.now += LEASE;
    core_answer(&core, start, MRT_STARTED);
    core_pass(&core, 0);
    core_fetch(&core, MRT_STOP);
    core_none_settled(&core);
    core_free(&core);
}

/* -------------------------------------------------------------------- renew */

static void test_one_proof_each_third_of_the_lease(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    open_held(&core, &waiter);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(mrt_engine_next_time(core.engine), core.now + THIRD);
        core_pass(&core, THIRD - 1);
        core_no_command(&core);
        core_pass(&core, 1);
        struct mrt_command *renew = core_fetch(&core, MRT_RENEW);
        core_no_command(&core);
        assert_true(mrt_id_equal(renew->session, session_of(&core)->id));
        core_answer(&core, renew, MRT_RENEWED);
        assert_int_equal(mrt_hold_valid_until(waiter.hold), core.now + LEASE - MARGIN);
        assert_int_equal(mrt_hold_state(waiter.hold, core.now), MORTISE_HELD);
    }
    assert_false(mrt_engine_has_told(core.engine));
    core_free(&core);
}

static void test_renewal_is_dated_from_its_sending(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    open_held(&core, &waiter);
    core_pass(&core, THIRD);
    core.now += 10 * MS;
    struct mrt_command *renew = core_fetch(&core, MRT_RENEW);
    mrt_time sent = core.now;
    core.now += 200 * MS;
    core_answer(&core, renew, MRT_RENEWED);
    assert_int_equal(mrt_hold_valid_until(waiter.hold), sent + LEASE - MARGIN);
    core_free(&core);
}

static void test_a_hold_is_suspended_at_half_the_lease_and_resumed(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    open_held(&core, &waiter);
    core_pass(&core, THIRD);
    core_pass(&core, HALF - THIRD - 1); /* the renewal is not even fetched */
    assert_int_equal(mrt_hold_state(waiter.hold, core.now), MORTISE_HELD);
    core_pass(&core, 1);
    expect_told(&core, waiter.hold, MORTISE_SUSPENDED);
    assert_int_equal(mrt_hold_state(waiter.hold, core.now), MORTISE_SUSPENDED);
    struct mrt_command *renew = core_fetch(&core, MRT_RENEW);
    core_no_command(&core);
    core_answer(&core, renew, MRT_RENEWED);
    expect_told(&core, waiter.hold, MORTISE_HELD);
    assert_int_equal(mrt_hold_state(waiter.hold, core.now), MORTISE_HELD);
    core_free(&core);
}

/* The hold that an earlier session lost is not told again. */
static void test_suspended_is_told_to_holds_of_this_session_alone(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter, next = core_waiter(8);
    open_held(&core, &waiter);
    core_session_lost(&core);
    expect_told(&core, waiter.hold, MORTISE_LOST);
    core_answer(&core, core_fetch(&core, MRT_STOP), MRT_STOPPED);
    core_grant(&core, &next);
    core_pass(&core, HALF);
    expect_told(&core, next.hold, MORTISE_SUSPENDED);
    assert_false(mrt_engine_has_told(core.engine));
    assert_int_equal(mrt_hold_state(waiter.hold, core.now), MORTISE_LOST);
    core_free(&core);
}

static void test_a_late_proof_leaves_it_suspended(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    open_held(&core, &waiter);
    core_pass(&core, THIRD);
    struct mrt_command *renew = core_fetch(&core, MRT_RENEW);
    core_pass(&core, HALF - THIRD);
    expect_told(&core, waiter.hold, MORTISE_SUSPENDED);
    core.now += HALF - MARGIN - 1; /* just before it ends; what is proven is long past */
    core_answer(&core, renew, MRT_RENEWED);
    assert_int_equal(mrt_hold_state(waiter.hold, core.now), MORTISE_SUSPENDED);
    assert_false(mrt_engine_has_told(core.engine));
    core_pass(&core, 0);
    core_answer(&core, core_fetch(&core, MRT_RENEW), MRT_RENEWED);
    expect_told(&core, waiter.hold, MORTISE_HELD);
    core_free(&core);
}

/* Where an acknowledgement proves only what was sent some time before it. */
static void test_a_lagging_proof_counts_from_the_one_before(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    open_lagging(&core, &waiter, 250 * MS);
    mrt_time first = core.now;
    assert_int_equal(mrt_hold_valid_until(waiter.hold), first + LEASE - MARGIN);
    core_pass(&core, THIRD);
    core_answer(&core, core_fetch(&core, MRT_RENEW), MRT_RENEWED);
    assert_int_equal(mrt_hold_valid_until(waiter.hold), first + LEASE - MARGIN);
    core_pass(&core, THIRD);
    core_answer(&core, core_fetch(&core, MRT_RENEW), MRT_RENEWED);
    assert_int_equal(mrt_hold_valid_until(waiter.hold), first + THIRD + LEASE - MARGIN);
    assert_int_equal(mrt_hold_state(waiter.hold, core.now), MORTISE_HELD);
    core_free(&core);
}

static void test_the_lag_counts_from_the_acknowledgement(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    open_lagging(&core, &waiter, 250 * MS);
    mrt_time first = core.now;
    core_pass(&core, THIRD);
    struct mrt_command *renew = core_fetch(&core, MRT_RENEW);
    core.now += 100 * MS;
    core_answer(&core, renew, MRT_RENEWED); /* the store may have had it only just now */
    core_pass(&core, THIRD - 100 * MS);
    core_answer(&core, core_fetch(&core, MRT_RENEW), MRT_RENEWED);
    assert_int_equal(mrt_hold_valid_until(waiter.hold), first + LEASE - MARGIN);
    core_free(&core);
}

/* A quorum knows better than by one lag what is proven at a majority of its members. */
static void test_a_store_that_dates_its_proofs_is_believed_and_nothing_else(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    core.lease = LEASE;
    core.shown.proof_lag = 250 * MS;
    core.shown.dates = true;
    core.shown.proven = core.now - MS;
    struct mrt_waiter waiter = core_waiter(7);
    core_grant(&core, &waiter);
    mrt_time first = core.now;
    assert_int_equal(mrt_hold_valid_until(waiter.hold), first - MS + LEASE - MARGIN);
    for (int i = 0; i < 2; i++) {
        core_pass(&core, THIRD);
        core.shown.proven = first - 2 * MS; /* older than what is known */
        core_answer(&core, core_fetch(&core, MRT_RENEW), MRT_RENEWED);
        assert_int_equal(mrt_hold_valid_until(waiter.hold), first - MS + LEASE - MARGIN);
    }
    core_pass(&core, 200 * MS);
    core.shown.proven = first + THIRD;
    core_answer(&core, core_fetch(&core, MRT_RENEW), MRT_RENEWED);
    assert_int_equal(mrt_hold_valid_until(waiter.hold), first + THIRD + LEASE - MARGIN);
    core_free(&core);
}

/* The store may know of a later sign of life than START: the connection that made the session. */
static void test_a_session_is_dated_from_its_proof(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    core.lease = LEASE;
    struct mrt_waiter waiter = core_waiter(7);
    core_acquire(&core, &waiter);
    struct mrt_command *start = core_fetch(&core, MRT_START);
    core.shown.proven = core.now + 600 * MS;
    core.now += 610 * MS;
    core_answer(&core, start, MRT_STARTED);
    assert_int_equal(session_of(&core)->valid_until, core.now - 10 * MS + LEASE - MARGIN);
    assert_int_equal(mrt_engine_next_time(core.engine), core.now - 10 * MS + THIRD);
    core_free(&core);
}

/* And when it was attached again, which needs no older sign of life. */
static void test_a_renewal_may_carry_a_proof_without_lag(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    open_lagging(&core, &waiter, 450 * MS);
    mrt_time first = core.now;
    core_pass(&core, THIRD);
    struct mrt_command *renew = core_fetch(&core, MRT_RENEW);
    core.shown.proven = core.now - 20 * MS;
    core_answer(&core, renew, MRT_RENEWED);
    assert_int_equal(mrt_hold_valid_until(waiter.hold), first + THIRD - 20 * MS + LEASE - MARGIN);
    core_pass(&core, THIRD);
    core.shown.proven = first; /* an older one takes nothing back */
    core_answer(&core, core_fetch(&core, MRT_RENEW), MRT_RENEWED);
    assert_int_equal(mrt_hold_valid_until(waiter.hold), first + THIRD - 20 * MS + LEASE - MARGIN);
    core_free(&core);
}

/* With these lags, answered after 10 ms, so much of the lease is left when a renewal is due. */
static void test_the_rest_of_a_lease_whose_proofs_lag(void **state)
{
    (void)state;
    const struct {
        mrt_time lag, left; /* in thousandths of the lease */
    } rows[] = {{10, 800}, {100, 700}, {250, 540}, {400, 390}, {500, 300}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct core core;
        struct mrt_waiter waiter;
        open_lagging(&core, &waiter, LEASE * rows[i].lag / 1000);
        for (int turn = 0; turn < 40; turn++) {
            mrt_time due = mrt_engine_next_time(core.engine);
            if (turn > 0)
                assert_in_range(due - core.now + 10 * MS, LEASE / 14 - 1, LEASE / 7);
            core_pass(&core, due - core.now);
            assert_true(mrt_hold_valid_until(waiter.hold) >= due + LEASE * rows[i].left / 1000);
            struct mrt_command *renew = core_fetch(&core, MRT_RENEW);
            core_pass(&core, 10 * MS);
            core_answer(&core, renew, MRT_RENEWED);
        }
        assert_false(mrt_engine_has_told(core.engine)); /* it was never SUSPENDED */
        core_free(&core);
    }
}

/* Also where half of the lease is never proven. */
static void test_a_suspension_is_reported_before_the_loss(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    open_lagging(&core, &waiter, LEASE / 2);
    for (int turn = 0; turn < 10; turn++) {
        core_pass(&core, mrt_engine_next_time(core.engine) - core.now);
        core_answer(&core, core_fetch(&core, MRT_RENEW), MRT_RENEWED);
    }
    mrt_time heard = core.now;
    core_pass(&core, mrt_engine_next_time(core.engine) - core.now);
    core_fetch(&core, MRT_RENEW); /* not answered */
    core_pass(&core, mrt_engine_next_time(core.engine) - core.now);
    assert_int_equal(core.now, heard + LEASE / 3);
    expect_told(&core, waiter.hold, MORTISE_SUSPENDED);
    core_pass(&core, mrt_hold_valid_until(waiter.hold) - core.now);
    assert_in_range(core.now - heard, LEASE * 2 / 5, HALF);
    expect_told(&core, waiter.hold, MORTISE_LOST);
    core_free(&core);
}

static void test_suspended_at_once_if_the_start_was_slow(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    core.lease = LEASE;
    struct mrt_waiter waiter = core_waiter(1);
    core_acquire(&core, &waiter);
    struct mrt_command *start = core_fetch(&core, MRT_START);
    core.now += 2 * THIRD;
    core_answer(&core, start, MRT_STARTED);
    core_view(&core, core_fetch(&core, MRT_APPEND), 0);
    core_done(&core, &waiter, MORTISE_OK);
    assert_int_equal(mrt_hold_state(waiter.hold, core.now), MORTISE_SUSPENDED);
    core_pass(&core, 0);
    core_answer(&core, core_fetch(&core, MRT_RENEW), MRT_RENEWED);
    assert_int_equal(mrt_hold_state(waiter.hold, core.now), MORTISE_HELD);
    core_free(&core);
}

static void test_renewal_that_fails_for_now_is_repeated_soon(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    open_held(&core, &waiter);
    core_pass(&core, THIRD);
    core_fail(&core, core_fetch(&core, MRT_RENEW), MORTISE_EUNREACHABLE);
    core_no_command(&core);
    assert_true(mrt_engine_next_time(core.engine) <= core.now + 20 * MS);
    core_pass(&core, 20 * MS);
    core_answer(&core, core_fetch(&core, MRT_RENEW), MRT_UNKNOWN);
    core_pass(&core, 20 * MS);
    core_answer(&core, core_fetch(&core, MRT_RENEW), MRT_RENEWED);
    assert_int_equal(mrt_hold_valid_until(waiter.hold), core.now + LEASE - MARGIN);
    core_free(&core);
}

static void test_suspended_between_two_attempts_to_renew(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    open_held(&core, &waiter);
    core_pass(&core, THIRD);
    struct mrt_command *renew = core_fetch(&core, MRT_RENEW);
    core.now += HALF - THIRD - 1; /* the next attempt is milliseconds away */
    core_fail(&core, renew, MORTISE_EUNREACHABLE);
    core_pass(&core, 1);
    expect_told(&core, waiter.hold, MORTISE_SUSPENDED);
    core_no_command(&core);
    core_pass(&core, 20 * MS);
    core_fetch(&core, MRT_RENEW);
    core_free(&core);
}

/* --------------------------------------------------------------------- lost */

static void test_z7_a_hold_is_lost_by_the_clock_alone(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    open_held(&core, &waiter);
    mrt_time until = mrt_hold_valid_until(waiter.hold);
    assert_int_equal(mrt_hold_state(waiter.hold, until - 1), MORTISE_HELD);
    assert_int_equal(mrt_hold_state(waiter.hold, until), MORTISE_LOST); /* nobody has ticked */
    core_pass(&core, THIRD);
    core_fetch(&core, MRT_RENEW);
    core.now = until - 1;
    core_pass(&core, 0);
    expect_told(&core, waiter.hold, MORTISE_SUSPENDED);
    core_pass(&core, 1);
    expect_told(&core, waiter.hold, MORTISE_LOST);
    assert_int_equal(mrt_hold_valid_until(waiter.hold), 0);
    assert_int_equal(mrt_engine_counters(core.engine)->losses, 1);
    core_fetch(&core, MRT_STOP);
    core_free(&core);
}

static void test_h3_lost_then_released(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter, again = core_waiter(7);
    open_held(&core, &waiter);
    core_acquire(&core, &again);
    assert_int_equal(waiter.hold->count, 2);
    struct mrt_hold *hold = waiter.hold;
    uint64_t generation = hold->generation;
    core_pass(&core, LEASE);
    expect_told(&core, hold, MORTISE_LOST);
    core_acquire(&core, &again); /* nested in what is lost */
    assert_int_equal(again.error, MORTISE_ELOST);
    assert_int_equal(core_release(&core, hold, 7), MORTISE_ELOST);
    assert_int_equal(core_release(&core, hold, 7), MORTISE_ELOST);
    assert_int_equal(mrt_engine_release(core.engine, hold, generation, 7, core.now),
                     MORTISE_ENOTHELD);
    core_free(&core);
}

static void test_an_answer_after_the_lease_comes_too_late(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    open_held(&core, &waiter);
    core_pass(&core, THIRD);
    struct mrt_command *renew = core_fetch(&core, MRT_RENEW);
    core.now += LEASE;
    core_answer(&core, renew, MRT_RENEWED);
    assert_int_equal(mrt_hold_state(waiter.hold, core.now), MORTISE_LOST);
    assert_int_equal(session_of(&core)->state, MRT_SESSION_STOPPING);
    core_free(&core);
}

static void test_a_new_session_follows_the_stopped_one(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter, next = core_waiter(8);
    open_held(&core, &waiter);
    core_acquire(&core, &next);
    struct mrt_id old = session_of(&core)->id;
    core_session_lost(&core);
    struct mrt_command *stop = core_fetch(&core, MRT_STOP);
    assert_true(mrt_id_equal(stop->session, old));
    core_no_command(&core);
    core_session_lost(&core); /* told twice */
    core_no_command(&core);
    core_answer(&core, stop, MRT_STOPPED);
    core_start(&core);
    assert_false(mrt_id_equal(session_of(&core)->id, old));
    core_view(&core, core_fetch(&core, MRT_APPEND), 0);
    core_settled(&core, &next);
    core_free(&core);
}

static void test_a_lost_session_is_replaced_even_if_its_stop_fails(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter, next = core_waiter(8);
    open_held(&core, &waiter);
    core_acquire(&core, &next);
    core_session_lost(&core);
    core_fail(&core, core_fetch(&core, MRT_STOP), MORTISE_EUNREACHABLE);
    core_fetch(&core, MRT_START);
    core_free(&core);
}

static void test_without_waiters_no_session_follows(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    open_held(&core, &waiter);
    core_session_lost(&core);
    core_answer(&core, core_fetch(&core, MRT_STOP), MRT_STOPPED);
    core_no_command(&core);
    assert_int_equal(session_of(&core)->state, MRT_SESSION_NONE);
    core_free(&core);
}

static void test_loss_of_another_session_is_not_ours(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    open_held(&core, &waiter);
    struct mrt_event event = {.type = MRT_SESSION_LOST, .session = {9, 9}, .error = MORTISE_ELOST};
    core_event(&core, &event);
    assert_int_equal(mrt_hold_state(waiter.hold, core.now), MORTISE_HELD);
    core_no_command(&core);
    core_free(&core);
}

static void test_renewal_refused_for_good_loses_at_once(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    open_held(&core, &waiter);
    core_pass(&core, THIRD);
    core_fail(&core, core_fetch(&core, MRT_RENEW), MORTISE_ELOST);
    expect_told(&core, waiter.hold, MORTISE_LOST);
    core_fetch(&core, MRT_STOP);
    core_free(&core);
}

static void test_a_renewal_not_yet_fetched_goes_with_its_session(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    open_held(&core, &waiter);
    core_pass(&core, THIRD); /* RENEW is in the outbox */
    core_session_lost(&core);
    core_answer(&core, core_fetch(&core, MRT_STOP), MRT_STOPPED);
    core_no_command(&core);
    core_free(&core);
}

static void test_an_earlier_sessions_proof_proves_nothing(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter, next = core_waiter(8);
    open_held(&core, &waiter);
    core_acquire(&core, &next);
    core_pass(&core, THIRD);
    struct mrt_command *renew = core_fetch(&core, MRT_RENEW);
    core_session_lost(&core);
    core_answer(&core, core_fetch(&core, MRT_STOP), MRT_STOPPED);
    core_start(&core);
    mrt_time until = session_of(&core)->valid_until;
    core.now += 100 * MS;
    core_answer(&core, renew, MRT_RENEWED);
    assert_int_equal(session_of(&core)->valid_until, until);
    /* and from then on this session renews itself */
    core_fetch(&core, MRT_APPEND);
    core_pass(&core, 200 * MS);
    core_fetch(&core, MRT_RENEW);
    core_free(&core);
}

/* A core whose session others trust for so long. */
static void open_trusted(struct core *core, struct mrt_waiter *waiter, mrt_time trusted_for)
{
    struct mrt_engine_config config = core_config();
    config.trusted_for = trusted_for;
    core_open(core, &config);
    core->lease = LEASE;
    *waiter = core_waiter(7);
    core_grant(core, waiter);
}

static void test_what_others_trust_is_kept_until_its_end(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter, next = core_waiter(8);
    open_trusted(&core, &waiter, LEASE);
    core_acquire(&core, &next);
    mrt_time until = mrt_hold_valid_until(waiter.hold);
    core_session_lost(&core);
    expect_told(&core, waiter.hold, MORTISE_LOST);
    assert_int_equal(mrt_hold_valid_until(waiter.hold), 0);
    core_no_command(&core);
    core_pass(&core, until - core.now - 1);
    core_no_command(&core);
    core_pass(&core, 1);
    struct mrt_command *stop = core_fetch(&core, MRT_STOP);
    assert_true(stop->died);
    core_answer(&core, stop, MRT_STOPPED);
    core_fetch(&core, MRT_START);
    core_free(&core);
}

/* An answer of the session must not put its end off for good. */
static void test_what_others_trust_ends_after_a_refusal(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    open_trusted(&core, &waiter, LEASE);
    mrt_time until = mrt_hold_valid_until(waiter.hold);
    core_pass(&core, THIRD);
    core_fail(&core, core_fetch(&core, MRT_RENEW), MORTISE_EPERMISSION);
    expect_told(&core, waiter.hold, MORTISE_LOST);
    core_no_command(&core);
    core_pass(&core, until - core.now);
    core_fetch(&core, MRT_STOP);
    core_free(&core);
}

static void test_what_others_trust_ends_by_the_clock_too(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    open_trusted(&core, &waiter, LEASE);
    core_pass(&core, LEASE);
    core_fetch(&core, MRT_STOP);
    core_free(&core);
}

static void test_trust_may_end_before_the_lease(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    open_trusted(&core, &waiter, THIRD);
    core_session_lost(&core);
    core_pass(&core, THIRD - 1);
    core_no_command(&core);
    core_pass(&core, 1);
    core_fetch(&core, MRT_STOP);
    core_free(&core);
}

static void test_closing_ends_what_others_trusted(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    open_trusted(&core, &waiter, LEASE);
    core_session_lost(&core);
    core_no_command(&core);
    mrt_engine_close(core.engine, core.now);
    assert_true(mrt_engine_owes(core.engine)); /* others may wait for the tickets */
    core_answer(&core, core_fetch(&core, MRT_STOP), MRT_STOPPED);
    assert_true(mrt_engine_closed(core.engine));
    assert_int_equal(mrt_engine_next_time(core.engine), MRT_TIME_NEVER);
    core_free(&core);
    open_trusted(&core, &waiter, LEASE); /* what has been sent is not sent again */
    core_pass(&core, LEASE);
    mrt_engine_close(core.engine, core.now);
    assert_false(mrt_engine_owes(core.engine));
    core_free(&core);
}

/* -------------------------------------------------------------------- close */

static void test_f17_close_before_any_session(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    assert_false(mrt_engine_closed(core.engine));
    mrt_engine_close(core.engine, core.now);
    assert_true(mrt_engine_closed(core.engine));
    mrt_engine_close(core.engine, core.now); /* once more does nothing */
    core_no_command(&core);
    struct mrt_waiter waiter = core_waiter(1);
    core_acquire(&core, &waiter);
    assert_int_equal(waiter.error, MORTISE_ECLOSED);
    core_free(&core);
}

static void test_f17_close_while_the_start_is_not_fetched(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(1);
    core_acquire(&core, &waiter);
    mrt_engine_close(core.engine, core.now);
    core_done(&core, &waiter, MORTISE_ECLOSED);
    core_no_command(&core);
    assert_true(mrt_engine_closed(core.engine));
    core_free(&core);
}

/* Closes while START is under way, and gives it this answer. */
static void close_while_starting(struct core *core, enum mrt_event_type answer)
{
    core_open(core, NULL);
    core->lease = LEASE;
    struct mrt_waiter waiter = core_waiter(1);
    core_acquire(core, &waiter);
    struct mrt_command *start = core_fetch(core, MRT_START);
    mrt_engine_close(core->engine, core->now);
    core_done(core, &waiter, MORTISE_ECLOSED);
    assert_false(mrt_engine_closed(core->engine));
    assert_false(mrt_engine_owes(core->engine)); /* it has no ticket yet */
    if (answer == MRT_FAILED)
        core_fail(core, start, MORTISE_EUNREACHABLE);
    else
        core_answer(core, start, answer);
}

static void test_f17_close_while_starting(void **state)
{
    (void)state;
    struct core core;
    close_while_starting(&core, MRT_STARTED);
    core_answer(&core, core_fetch(&core, MRT_STOP), MRT_STOPPED);
    assert_true(mrt_engine_closed(core.engine));
    core_free(&core);
    close_while_starting(&core, MRT_UNKNOWN); /* it may have been done */
    core_answer(&core, core_fetch(&core, MRT_STOP), MRT_STOPPED);
    assert_true(mrt_engine_closed(core.engine));
    core_free(&core);
    close_while_starting(&core, MRT_FAILED);
    core_no_command(&core);
    assert_true(mrt_engine_closed(core.engine));
    core_free(&core);
}

static void test_f17_close_between_two_attempts_to_start(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(1);
    core_acquire(&core, &waiter);
    core_answer(&core, core_fetch(&core, MRT_START), MRT_UNKNOWN);
    mrt_engine_close(core.engine, core.now);
    core_done(&core, &waiter, MORTISE_ECLOSED);
    core_answer(&core, core_fetch(&core, MRT_STOP), MRT_STOPPED);
    assert_true(mrt_engine_closed(core.engine));
    assert_int_equal(mrt_engine_next_time(core.engine), MRT_TIME_NEVER);
    core_free(&core);
}

static void test_f17_close_of_a_live_session_ends_holds_and_waiters(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter, next = core_waiter(8);
    open_held(&core, &waiter);
    core_acquire(&core, &next);
    struct mrt_hold *hold = waiter.hold;
    uint64_t generation = hold->generation;
    mrt_engine_close(core.engine, core.now);
    core_done(&core, &next, MORTISE_ECLOSED);
    assert_false(mrt_hold_live(hold, generation));
    assert_int_equal(mrt_engine_release(core.engine, hold, generation, 7, core.now),
                     MORTISE_ENOTHELD);
    assert_false(mrt_engine_closed(core.engine));
    assert_true(mrt_engine_owes(core.engine));
    core_answer(&core, core_fetch(&core, MRT_STOP), MRT_STOPPED);
    assert_true(mrt_engine_closed(core.engine));
    core_no_command(&core);
    core_free(&core);
}

static void test_f17_stop_is_repeated_until_it_is_proven(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    open_held(&core, &waiter);
    mrt_engine_close(core.engine, core.now);
    core_fail(&core, core_fetch(&core, MRT_STOP), MORTISE_EUNREACHABLE);
    core_no_command(&core);
    core_pass(&core, 20 * MS);
    core_answer(&core, core_fetch(&core, MRT_STOP), MRT_UNKNOWN);
    core_pass(&core, 40 * MS);
    core_answer(&core, core_fetch(&core, MRT_STOP), MRT_STOPPED);
    assert_true(mrt_engine_closed(core.engine));
    core_free(&core);
}

static void test_f17_close_while_stopping(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter, next = core_waiter(8);
    open_held(&core, &waiter);
    core_session_lost(&core);
    core_acquire(&core, &next);
    struct mrt_command *stop = core_fetch(&core, MRT_STOP);
    mrt_engine_close(core.engine, core.now);
    core_done(&core, &next, MORTISE_ECLOSED);
    assert_false(mrt_engine_closed(core.engine));
    assert_false(mrt_engine_owes(core.engine)); /* what it had was lost before */
    core_answer(&core, stop, MRT_STOPPED);
    assert_true(mrt_engine_closed(core.engine));
    core_no_command(&core);
    core_free(&core);
}

static void test_f17_close_when_the_lease_has_run_out_unnoticed(void **state)
{
    (void)state;
    struct core core;
    struct mrt_waiter waiter;
    open_held(&core, &waiter);
    core.now += LEASE;
    mrt_engine_close(core.engine, core.now);
    core_answer(&core, core_fetch(&core, MRT_STOP), MRT_STOPPED);
    assert_true(mrt_engine_closed(core.engine));
    core_free(&core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_rest_of_a_lease_between_two_proofs),
        cmocka_unit_test(test_c13_no_command_is_sent_before_the_first_acquire),
        cmocka_unit_test(test_start_comes_once_for_all_queues),
        cmocka_unit_test(test_a_start_that_fails_for_now_is_repeated_for_the_same_session),
        cmocka_unit_test(test_h7_start_that_fails_for_good_tells_every_waiter),
        cmocka_unit_test(test_start_that_fails_for_good_later_is_followed_by_a_stop),
        cmocka_unit_test(test_f8_pauses_double_to_a_second_and_are_spread),
        cmocka_unit_test(test_lease_is_dated_from_the_sending_less_a_margin),
        cmocka_unit_test(test_margin_has_a_least_value),
        cmocka_unit_test(test_without_a_lease_nothing_is_proven_and_nothing_ends),
        cmocka_unit_test(test_started_after_its_lease_has_run_out_grants_nothing),
        cmocka_unit_test(test_one_proof_each_third_of_the_lease),
        cmocka_unit_test(test_renewal_is_dated_from_its_sending),
        cmocka_unit_test(test_a_hold_is_suspended_at_half_the_lease_and_resumed),
        cmocka_unit_test(test_suspended_is_told_to_holds_of_this_session_alone),
        cmocka_unit_test(test_a_late_proof_leaves_it_suspended),
        cmocka_unit_test(test_a_lagging_proof_counts_from_the_one_before),
        cmocka_unit_test(test_the_lag_counts_from_the_acknowledgement),
        cmocka_unit_test(test_a_session_is_dated_from_its_proof),
        cmocka_unit_test(test_a_renewal_may_carry_a_proof_without_lag),
        cmocka_unit_test(test_the_rest_of_a_lease_whose_proofs_lag),
        cmocka_unit_test(test_a_suspension_is_reported_before_the_loss),
        cmocka_unit_test(test_a_store_that_dates_its_proofs_is_believed_and_nothing_else),
        cmocka_unit_test(test_suspended_at_once_if_the_start_was_slow),
        cmocka_unit_test(test_renewal_that_fails_for_now_is_repeated_soon),
        cmocka_unit_test(test_suspended_between_two_attempts_to_renew),
        cmocka_unit_test(test_z7_a_hold_is_lost_by_the_clock_alone),
        cmocka_unit_test(test_h3_lost_then_released),
        cmocka_unit_test(test_an_answer_after_the_lease_comes_too_late),
        cmocka_unit_test(test_a_new_session_follows_the_stopped_one),
        cmocka_unit_test(test_a_lost_session_is_replaced_even_if_its_stop_fails),
        cmocka_unit_test(test_without_waiters_no_session_follows),
        cmocka_unit_test(test_loss_of_another_session_is_not_ours),
        cmocka_unit_test(test_renewal_refused_for_good_loses_at_once),
        cmocka_unit_test(test_a_renewal_not_yet_fetched_goes_with_its_session),
        cmocka_unit_test(test_an_earlier_sessions_proof_proves_nothing),
        cmocka_unit_test(test_what_others_trust_is_kept_until_its_end),
        cmocka_unit_test(test_what_others_trust_ends_after_a_refusal),
        cmocka_unit_test(test_what_others_trust_ends_by_the_clock_too),
        cmocka_unit_test(test_trust_may_end_before_the_lease),
        cmocka_unit_test(test_closing_ends_what_others_trusted),
        cmocka_unit_test(test_f17_close_before_any_session),
        cmocka_unit_test(test_f17_close_while_the_start_is_not_fetched),
        cmocka_unit_test(test_f17_close_while_starting),
        cmocka_unit_test(test_f17_close_between_two_attempts_to_start),
        cmocka_unit_test(test_f17_close_of_a_live_session_ends_holds_and_waiters),
        cmocka_unit_test(test_f17_stop_is_repeated_until_it_is_proven),
        cmocka_unit_test(test_f17_close_while_stopping),
        cmocka_unit_test(test_f17_close_when_the_lease_has_run_out_unnoticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
