/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often a waiter asks whose server tells it nothing (store/sql/poll.c), over its age, its place
 * and chance; the bounds are those of doc/mariadb.md.
 */
#include "cmocka_all.h"

#include "store/sql/retry.h"

#define AGES 400
#define CHANCES 97
#define CLIENTS 512

static const uint64_t places[] = {0, 1, 2, 3, 7, 8, 31, 100, 1000, 4999, 1 << 20, UINT64_MAX};
#define PLACES (sizeof places / sizeof places[0])

/* Ages from 0 to more than a day, each a tenth longer than the one before. */
static void make_ages(mrt_time ages[AGES])
{
    ages[0] = 0;
    for (int i = 1; i < AGES; i++)
        ages[i] = ages[i - 1] < 100 * MRT_SECOND * 1000 ? ages[i - 1] * 11 / 10 + MRT_MICROSECOND
                                                        : ages[i - 1];
}

static uint64_t chance_of(int number)
{
    return (uint64_t)number * UINT64_C(4294967296) / CHANCES;
}

/* The longest that who is next may wait. */
static mrt_time longest(mrt_time age)
{
    mrt_time part = age / 8, late = age / 400;
    late = late < 25 * MRT_MILLISECOND ? 25 * MRT_MILLISECOND : late;
    late = late > 250 * MRT_MILLISECOND ? 250 * MRT_MILLISECOND : late;
    part = part > late ? late : part;
    return part < 4 * MRT_MILLISECOND / 3 + 1 ? 4 * MRT_MILLISECOND / 3 + 1 : part;
}

static void test_j7_pauses_between_polls_stay_in_their_bounds(void **state)
{
    (void)state;
    mrt_time ages[AGES];
    make_ages(ages);
    for (int i = 0; i < AGES; i++)
        for (int chance = 0; chance <= CHANCES; chance++) {
            mrt_time poll = mrt_sql_poll(ages[i], 1, chance_of(chance));
            assert_in_range(poll, MRT_MILLISECOND, 250 * MRT_MILLISECOND);
            assert_in_range(poll, longest(ages[i]) - longest(ages[i]) / 4, longest(ages[i]));
            assert_true(poll <= 25 * MRT_MILLISECOND || poll <= ages[i] / 400);
        }
}

static void test_j7_a_waiter_further_behind_polls_less_often(void **state)
{
    (void)state;
    mrt_time ages[AGES];
    make_ages(ages);
    for (int i = 0; i < AGES; i++)
        for (size_t place = 0; place < PLACES; place++)
            for (int chance = 0; chance <= CHANCES; chance++) {
                mrt_time next = mrt_sql_poll(ages[i], 1, chance_of(chance));
                mrt_time poll = mrt_sql_poll(ages[i], places[place], chance_of(chance));
                uint64_t times = places[place] > 1 ? places[place] : 1;
                bool most = times > (uint64_t)(MRT_SQL_RECHECK_MAX / next);
                assert_int_equal(poll, most ? MRT_SQL_RECHECK_MAX : next * (mrt_time)times);
            }
}

/* The server's clock may have been set back, or far forward, since the ticket came. */
static void test_j7_an_impossible_age_of_a_ticket_keeps_pauses_in_their_bounds(void **state)
{
    static const mrt_time ages[] = {INT64_MIN, -MRT_SECOND, -1, INT64_MAX};
    (void)state;
    for (size_t i = 0; i < sizeof ages / sizeof ages[0]; i++)
        for (int chance = 0; chance <= CHANCES; chance++)
            assert_in_range(mrt_sql_poll(ages[i], 1, chance_of(chance)), MRT_MILLISECOND,
                            ages[i] < 0 ? 4 * MRT_MILLISECOND / 3 + 1 : 250 * MRT_MILLISECOND);
}

static void test_j7_chance_takes_all_of_a_quarter_and_no_more(void **state)
{
    (void)state;
    const mrt_time quarter = 25 * MRT_MILLISECOND / 4;
    assert_int_equal(mrt_sql_poll(MRT_SECOND, 1, 0), 25 * MRT_MILLISECOND);
    assert_int_equal(mrt_sql_poll(MRT_SECOND, 1, (uint64_t)quarter),
                     25 * MRT_MILLISECOND - quarter);
    assert_int_equal(mrt_sql_poll(MRT_SECOND, 1, (uint64_t)quarter + 1), 25 * MRT_MILLISECOND);
    assert_int_equal(mrt_sql_poll(0, 1, 0), 4 * MRT_MILLISECOND / 3 + 1);
    assert_int_equal(mrt_sql_poll(0, 1, (uint64_t)(MRT_MILLISECOND / 3)), MRT_MILLISECOND + 1);
}

/* ------------------------------------------------------------------ chance */

/* As the engine makes them: a client's random number, and the count of what has one. */
static struct mrt_command command_of(uint64_t client, uint64_t ticket)
{
    return (struct mrt_command){.session = {client, client + 1},
                                .ticket = {client, client + 1 + ticket}};
}

/* SplitMix64's: the same in each run. */
static uint64_t random_number(void)
{
    static uint64_t count;
    uint64_t x = count += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Which tenth of what chance takes it has hit. */
static size_t tenth_of(mrt_time poll)
{
    const mrt_time least = 25 * MRT_MILLISECOND - 25 * MRT_MILLISECOND / 4;
    size_t tenth = (size_t)((poll - least) * 10 / (25 * MRT_MILLISECOND / 4));
    return tenth < 10 ? tenth : 9;
}

static void assert_spread(const int tenths[10], int count)
{
    for (int i = 0; i < 10; i++)
        assert_in_range(tenths[i], count / 20, count / 5);
}

static void test_j7_clients_that_began_together_poll_at_different_times(void **state)
{
    (void)state;
    int tenths[10] = {0};
    for (int i = 0; i < CLIENTS; i++) {
        struct mrt_command command = command_of(random_number(), 1);
        uint64_t chance = mrt_sql_chance(&command, MRT_SECOND);
        assert_true(chance >> 32 == 0);
        tenths[tenth_of(mrt_sql_poll(MRT_SECOND, 1, chance))]++;
    }
    assert_spread(tenths, CLIENTS);
}

static void test_j7_threads_of_one_client_poll_at_different_times(void **state)
{
    (void)state;
    int tenths[10] = {0};
    uint64_t client = random_number();
    for (uint64_t i = 0; i < CLIENTS; i++) {
        struct mrt_command command = command_of(client, 1 + i);
        tenths[tenth_of(mrt_sql_poll(MRT_SECOND, 1, mrt_sql_chance(&command, MRT_SECOND)))]++;
    }
    assert_spread(tenths, CLIENTS);
}

/* And two who did once part again: each asks at intervals of its own. */
static void test_j7_the_jitter_differs_from_poll_to_poll(void **state)
{
    (void)state;
    int tenths[10] = {0}, count = 0;
    struct mrt_command command = command_of(random_number(), 1);
    mrt_time poll;
    for (mrt_time age = MRT_SECOND; age < 10 * MRT_SECOND; age += poll, count++) {
        age -= age % MRT_MICROSECOND;
        poll = mrt_sql_poll(age, 1, mrt_sql_chance(&command, age));
        tenths[tenth_of(poll)]++;
    }
    assert_spread(tenths, count);
    assert_in_range(count, 9 * 45, 9 * 47); /* 46 a second: doc/mariadb.md */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_j7_pauses_between_polls_stay_in_their_bounds),
        cmocka_unit_test(test_j7_a_waiter_further_behind_polls_less_often),
        cmocka_unit_test(test_j7_an_impossible_age_of_a_ticket_keeps_pauses_in_their_bounds),
        cmocka_unit_test(test_j7_chance_takes_all_of_a_quarter_and_no_more),
        cmocka_unit_test(test_j7_clients_that_began_together_poll_at_different_times),
        cmocka_unit_test(test_j7_threads_of_one_client_poll_at_different_times),
        cmocka_unit_test(test_j7_the_jitter_differs_from_poll_to_poll),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
