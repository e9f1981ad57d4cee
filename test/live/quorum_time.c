/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long what takes at a quorum, and by which clock. No result depends on the speed of this
 * machine: members that are silent remain so, and where a limit must be over, the store is told so.
 */
#include "cmocka_all.h"
#include "live/quorum_place.h"
#include "live/wall_clock.h"
#include "store/memory/memory.h"
#include "store/quorum/internal.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LIMIT MRT_SECOND                /* of open_slow */
#define SHORTEST (60 * MRT_MILLISECOND) /* pause */
#define PAUSES 30                       /* that are drawn */
#define SHORT_LEASE (2000 * MRT_MILLISECOND)

static int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ------------------------------------------------------------------ members' limit */

static int open_slow(void **state)
{
    (void)state;
    return place_open(5, "1s", 60000);
}

static int open_default(void **state)
{
    (void)state;
    return place_open(3, NULL, SHORT_LEASE / MRT_MILLISECOND);
}

/* Asks for a try; it is not waited for. */
static void begin_try(const char *queue)
{
    struct mrt_command command = port_append_command(&quorum, queue);
    command.try_only = true;
    assert_int_equal(quorum.count, 0);
    assert_true(quorum.ops->submit(quorum.store, &command, MRT_TIME_NEVER));
}

static void expect_told(enum mrt_event_type type)
{
    assert_int_equal(quorum.count, 1);
    assert_int_equal(quorum.events[0].type, type);
    quorum.count = 0;
}

static void test_m3_rd_17_all_members_are_queried_before_any_is_waited_for(void **state)
{
    (void)state;
    silence(1, true);
    silence(2, true);
    begin_try("p");
    expect_told(MRT_VIEW); /* by a majority, at once */
    silence(0, true);
    for (unsigned i = 0; i < place_members; i++)
        ways[i].type = MRT_START;
    begin_try("q");
    mrt_time asked = mrt_time_now();
    for (unsigned i = 0; i < place_members; i++)
        assert_int_equal(ways[i].type, MRT_APPEND);
    assert_int_equal(quorum.count, 0);
    mrt_time next = quorum.ops->next(quorum.store); /* the caller sleeps until then */
    assert_true(next <= asked + LIMIT);
    quorum.ops->process(quorum.store, asked + LIMIT);
    expect_told(MRT_FAILED);
    assert_non_null(strstr(quorum.detail, "in time"));
}

/* One after the other they would cost three of it. The first of several attempts that succeeds,
   because the machine may be busy. */
static void test_m3_rd_17_silent_members_cost_no_more_than_their_limit(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++)
        silence(i, true);
    int64_t best = INT64_MAX;
    for (int i = 0; i < 10 && best >= 5 * LIMIT / 2; i++) {
        int64_t began = monotonic_ns();
        assert_int_equal(port_try(&quorum, "p", port_id()).type, MRT_FAILED);
        int64_t took = monotonic_ns() - began;
        assert_true(took >= LIMIT);
        best = took < best ? took : best;
    }
    assert_true(best < 5 * LIMIT / 2);
}

static void test_m3_rd_17_the_default_of_answer_is_a_fiftieth_of_the_lease(void **state)
{
    static struct mrt_quorum_store any;
    static const struct {
        mrt_time given, lease, limit; /* ms */
    } rows[] = {{0, 0, 50},  {0, 60000, 50}, {0, 2500, 50},   {0, 2000, 40},
                {0, 250, 5}, {0, 100, 5},    {200, 100, 200}, {1, 60000, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        any.limit = rows[i].given * MRT_MILLISECOND;
        any.lease = rows[i].lease * MRT_MILLISECOND;
        assert_int_equal(mrt_quorum_limit(&any), rows[i].limit * MRT_MILLISECOND);
    }
    silence(0, true);
    silence(1, true);
    begin_try("q");
    quorum.ops->process(quorum.store, mrt_time_now() + SHORT_LEASE / 50);
    expect_told(MRT_FAILED);
}

/* ------------------------------------------------------------------ rounds that fail */

/* They had been told when the caller was, so others need not wait. */
static void expect_let_go(unsigned member)
{
    assert_int_equal(ways[member].parted, 1);
    assert_int_equal(port_tickets(&rivals[member], "q"), 0);
}

static void test_m8_rd_10_a_claim_that_fails_is_removed_before_it_is_reported(void **state)
{
    (void)state;
    occupy(0);
    occupy(1);
    occupy(4);
    struct mrt_event view = acquire();
    assert_false(holds(&view));
    expect_let_go(2);
    expect_let_go(3);
}

static void test_m6_m8_rd_10_a_failed_claim_is_removed_where_nobody_has_answered(void **state)
{
    (void)state;
    occupy(0);
    silence(1, true);
    struct mrt_event view = acquire();
    assert_false(holds(&view));
    expect_let_go(1);
    expect_let_go(2);
}

/* Of 30 that are drawn from four times the shortest, all lie within a quarter by chance in no run.
 */
static void test_m12_rd_18_pauses_are_of_random_length(void **state)
{
    mrt_time least = MRT_TIME_NEVER, most = 0;
    (void)state;
    for (unsigned i = 0; i < 3; i++)
        occupy(i);
    struct mrt_event view = acquire();
    for (int i = 0; i < PAUSES + 2; i++) {
        assert_false(holds(&view));
        assert_true(view.recheck >= SHORTEST);
        assert_true(view.recheck < SHORTEST + (SHORTEST << (i < 2 ? i : 2)));
        if (i >= 2) {
            least = mrt_time_min(least, view.recheck);
            most = view.recheck > most ? view.recheck : most;
        }
        view = port_refresh(&quorum, "q", &view);
    }
    assert_true(most - least > SHORTEST);
}

static void test_m12_rd_18_pauses_are_longer_than_the_round(void **state)
{
    const mrt_time took = 100 * MRT_MILLISECOND; /* all of what two silent ones are given */
    (void)state;
    occupy(0);
    silence(1, true);
    silence(2, true);
    mrt_time began = mrt_time_now();
    struct mrt_event view = acquire();
    mrt_time lasted = mrt_time_now() - began; /* as long as that round was, or less */
    assert_false(holds(&view));
    assert_true(view.recheck > took && view.recheck < 3 * (lasted > took ? lasted : took));
}

/* ------------------------------------------------------------------ what is left of the lease */

static void freeze_all(bool frozen)
{
    mrt_memory_freeze("m10-a", frozen);
    mrt_memory_freeze("m10-b", frozen);
    mrt_memory_freeze("m10-c", frozen);
}

/* A step of the wall clock takes nothing away; any time that passes meanwhile is allowed for. */
static void expect_no_loss_by_step(mortise_hold hold, time_t step)
{
    int64_t began = monotonic_ns();
    int64_t before = mortise_hold_remaining_ms(hold);
    wall_clock_step += step;
    int64_t after = mortise_hold_remaining_ms(hold);
    int64_t passed_ms = (monotonic_ns() - began) / 1000000 + 1;
    assert_true(after + passed_ms >= before);
}

/* By the clock of the caller, whom nobody answers, and which nobody can set. */
static void test_m2_m5_m10_a_hold_is_valid_for_the_rest_of_the_lease(void **state)
{
    (void)state;
    mortise_client *client;
    mortise_lock *lock;
    mortise_hold hold;
    const char *where = "redlock:memory:m10-a,memory:m10-b,memory:m10-c?answer=100ms&lease=1s";
    assert_int_equal(mortise_open(where, NULL, &client), MORTISE_OK);
    assert_int_equal(mortise_mutex_new(client, "x", NULL, &lock), MORTISE_OK);
    assert_int_equal(mortise_acquire_for(lock, 20000, &hold), MORTISE_OK);
    expect_no_loss_by_step(hold, 3600);
    freeze_all(true);
    int64_t now = monotonic_ns(), end = now + 1000000000; /* nothing sent since is answered */
    expect_no_loss_by_step(hold, -7200);
    assert_true(mortise_hold_remaining_ms(hold) < 1000); /* less what is taken off for clocks */
    while (mortise_is_held(hold)) {
        assert_true(now < end);
        now = monotonic_ns();
    }
    assert_int_equal(mortise_hold_remaining_ms(hold), 0);
    freeze_all(false);
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    assert_int_equal(mortise_acquire_for(lock, 20000, &hold), MORTISE_OK);
    assert_int_equal(mortise_close(client), MORTISE_OK);
}

static int reset_clock(void **state)
{
    (void)state;
    wall_clock_step = 0;
    return 0;
}

struct told {
    unsigned calls;
    int error;
};

static void tell(void *argument, int error, mortise_hold hold)
{
    struct told *told = argument;
    (void)hold;
    told->calls++;
    told->error = error;
}

static int make_late(void **state)
{
    (void)state;
    place_make(3, "10s", SHORT_LEASE / MRT_MILLISECOND);
    return 0;
}

/* A client that does nothing but when it is told to, whose session is proven until now at most. */
static mortise_client *open_own_loop(mortise_lock **lock)
{
    char uri[sizeof place_uri + 16];
    mortise_client *client;
    mortise_hold hold;
    const mortise_client_options options = {.size = sizeof options, .flags = MORTISE_FOREIGN_LOOP};
    snprintf(uri, sizeof uri, "%s&namespace=", place_uri);
    place_take_ways(true);
    assert_int_equal(mortise_open(uri, &options, &client), MORTISE_OK);
    place_take_ways(false);
    assert_int_equal(mortise_mutex_new(client, "q", NULL, lock), MORTISE_OK);
    assert_int_equal(mortise_acquire_for(*lock, 20000, &hold), MORTISE_OK);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    return client;
}

static unsigned tickets_at_all(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < place_members; i++)
        count += (unsigned)port_tickets(&rivals[i], "q");
    return count;
}

static void run_until_tickets(mortise_client *client, unsigned count)
{
    mrt_time until = mrt_time_now() + place_soon;
    while (tickets_at_all() != count) {
        assert_true(mrt_time_now() < until);
        assert_int_equal(mortise_process(client), MORTISE_OK);
    }
}

/* All say yes at 0.99 of the lease, and are heard before anything else. No other session is let
   begin, so that nothing but the claim could be granted. Whether the members are told, and their
   leases do not merely run out before. */
static bool is_told_at_the_end(void)
{
    bool are_told = true;
    mortise_lock *lock;
    mortise_operation *operation;
    struct told told = {0};
    mortise_client *client = open_own_loop(&lock);
    mrt_time late = mrt_time_now() + SHORT_LEASE * 99 / 100;
    for (unsigned i = 0; i < place_members; i++) {
        silence(i, true);
        ways[i].not_taken = BIT(MRT_START);
    }
    assert_int_equal(mortise_acquire_async(lock, INT64_MAX, tell, &told, &operation), MORTISE_OK);
    run_until_tickets(client, place_members); /* they have done it, and nobody has heard */
    assert_int_equal(told.calls, 0);
    while (mrt_time_now() < late)
        usleep(1000);
    for (unsigned i = 0; i < place_members; i++)
        silence(i, false);
    run_until_tickets(client, 0);
    for (unsigned i = 0; i < place_members; i++) {
        are_told = are_told && ways[i].type == MRT_STOP;
        ways[i].not_taken = 0;
    }
    assert_int_equal(told.calls, 0);
    mortise_cancel(operation);
    for (mrt_time until = mrt_time_now() + place_soon; told.calls == 0 && mrt_time_now() < until;)
        assert_int_equal(mortise_process(client), MORTISE_OK);
    assert_int_equal(told.calls, 1);
    assert_int_equal(told.error, MORTISE_ECANCELLED);
    assert_int_equal(mortise_close(client), MORTISE_OK);
    assert_int_equal(tickets_at_all(), 0);
    return are_told;
}

/* The first of several attempts: a hundredth of the lease is 20 ms. */
static void test_m10_rd_09_a_majority_at_the_end_of_the_lease_grants_nothing(void **state)
{
    (void)state;
    int attempts = 1;
    while (!is_told_at_the_end())
        assert_true(++attempts <= 10);
}

#define WITH(name, open) cmocka_unit_test_setup_teardown(name, open, close_place)

int quorum_time(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_m3_rd_17_all_members_are_queried_before_any_is_waited_for, open_slow),
        WITH(test_m3_rd_17_silent_members_cost_no_more_than_their_limit, open_slow),
        WITH(test_m3_rd_17_the_default_of_answer_is_a_fiftieth_of_the_lease, open_default),
        WITH(test_m8_rd_10_a_claim_that_fails_is_removed_before_it_is_reported, open_five),
        WITH(test_m6_m8_rd_10_a_failed_claim_is_removed_where_nobody_has_answered, open_three),
        WITH(test_m12_rd_18_pauses_are_of_random_length, open_five),
        WITH(test_m12_rd_18_pauses_are_longer_than_the_round, open_five),
        cmocka_unit_test_teardown(test_m2_m5_m10_a_hold_is_valid_for_the_rest_of_the_lease,
                                  reset_clock),
        WITH(test_m10_rd_09_a_majority_at_the_end_of_the_lease_grants_nothing, make_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
