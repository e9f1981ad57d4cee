/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks taken together: what is counted of waits, holds and changes, and what cannot be; what is
 * remembered, and for how long.
 */
#include "cli/observe/watch.h"
#include "cmocka_all.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A ticket of a look: lock, fence, place, and whether its holder has died. */
struct seen {
    const char *name;
    uint64_t fence;
    uint32_t place;
    bool dead;
};

struct world {
    struct mrt_watch watch;
    mrt_time now;
    uint64_t first_id; /* of the first ticket of the next look, if it is not the fence */
};

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    mrt_watch_init(&world->watch, 2);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    mrt_watch_fini(&world->watch);
    free(world);
    return 0;
}

/* A look `ms` after the last one. */
static void look_at(struct world *world, int64_t ms, const struct seen *seen, size_t count)
{
    struct mrt_rows rows = {.rows = calloc(count + 1, sizeof *rows.rows), .count = count};
    for (size_t i = 0; i < count; i++) {
        rows.rows[i].name = strdup(seen[i].name);
        rows.rows[i].fence = rows.rows[i].id = seen[i].fence;
        rows.rows[i].place = seen[i].place;
        rows.rows[i].delay_ms = seen[i].dead ? 5000 : 0;
    }
    if (world->first_id > 0)
        rows.rows[0].id = world->first_id;
    world->now += mrt_time_from_ms(ms);
    assert_true(mrt_watch_look(&world->watch, &rows, world->now));
    for (size_t i = 0; i < count; i++)
        free(rows.rows[i].name); /* nothing of the rows is kept */
    free(rows.rows);
}

#define LOOK(world, ms, ...)                                                    \
    look_at(world, ms, (const struct seen[]){__VA_ARGS__, {NULL, 0, 0, false}}, \
            sizeof((const struct seen[]){__VA_ARGS__}) / sizeof(struct seen))
#define LOOK_EMPTY(world, ms) look_at(world, ms, NULL, 0)

static void test_wait_and_hold_are_timed_from_look_to_look(void **state)
{
    struct world *world = *state;
    const struct mrt_watch_counts *totals = &world->watch.totals;
    LOOK(world, 0, {"x", 1, 0, false});
    LOOK(world, 1000, {"x", 1, 0, false}, {"x", 2, 1, false});
    LOOK(world, 2000, {"x", 1, 0, false}, {"x", 2, 1, false});
    LOOK(world, 200, {"x", 2, 0, false});
    assert_int_equal(totals->waits.total, 1);
    assert_int_equal(totals->waits.sum, 2200 * MRT_MILLISECOND);
    assert_int_equal(totals->waits.buckets[4], 1); /* 1.5 s to 3.5 s */
    assert_int_equal(totals->grants, 1);
    assert_int_equal(totals->contended, 1);
    assert_int_equal(totals->changes, 1);
    assert_int_equal(totals->holds.total, 0); /* the first one's beginning is not known */
    LOOK_EMPTY(world, 750);
    assert_int_equal(totals->holds.total, 1);
    assert_int_equal(totals->holds.sum, 750 * MRT_MILLISECOND);
    assert_int_equal(totals->holds.buckets[2], 1); /* a bound is in its bucket */
    assert_int_equal(totals->gone, 0);
    const struct mrt_watch_lock *lock = mrt_watch_find(&world->watch, "x");
    assert_memory_equal(&lock->counts, totals, sizeof *totals);
}

static void test_a_ticket_whose_fence_changes_is_known_by_its_id(void **state)
{
    struct world *world = *state;
    const struct mrt_watch_counts *totals = &world->watch.totals;
    LOOK(world, 0, {"x", 1, 0, false});
    LOOK(world, 1000, {"x", 1, 0, false}, {"x", 901, 1, false}, {"x", 902, 2, false});
    world->first_id = 901;
    LOOK(world, 200, {"x", 2, 0, false}, {"x", 902, 1, false});
    LOOK(world, 200, {"x", 2, 0, false}, {"x", 902, 1, false});
    assert_int_equal(totals->grants, 1);
    assert_int_equal(totals->contended, 1);
    assert_int_equal(totals->changes, 1);
    assert_int_equal(totals->gone, 0);
    assert_int_equal(totals->waits.total, 1);
    assert_int_equal(totals->waits.sum, 200 * MRT_MILLISECOND);
    const struct mrt_watch_lock *lock = mrt_watch_find(&world->watch, "x");
    assert_int_equal(mrt_watch_ticket(lock, 901)->phase, MRT_WATCH_HOLDS);
    world->first_id = 903; /* it was never seen to wait */
    LOOK(world, 200, {"x", 3, 0, false});
    assert_int_equal(totals->grants, 2);
    assert_int_equal(totals->contended, 1);
    assert_int_equal(totals->gone, 1);
    assert_int_equal(totals->holds.total, 1);
    assert_int_equal(totals->holds.sum, 400 * MRT_MILLISECOND);
    assert_int_equal(mrt_watch_past(lock, 0)->fence, 2);
}

static void test_a_hold_or_wait_from_before_the_first_look_is_not_timed(void **state)
{
    struct world *world = *state;
    const struct mrt_watch_counts *totals = &world->watch.totals;
    LOOK(world, 0, {"x", 1, 0, false}, {"x", 2, 1, false});
    assert_int_equal(totals->grants, 0);
    LOOK(world, 1000, {"x", 2, 0, false});
    assert_int_equal(totals->waits.total, 0);
    assert_int_equal(totals->holds.total, 0);
    assert_int_equal(totals->grants, 1);
    LOOK_EMPTY(world, 3000); /* but its hold has begun before our eyes */
    assert_int_equal(totals->holds.total, 1);
    assert_int_equal(totals->holds.sum, 3 * MRT_SECOND);
}

static void test_a_waiter_that_is_gone_was_not_granted(void **state)
{
    struct world *world = *state;
    LOOK(world, 0, {"x", 1, 0, false});
    LOOK(world, 1000, {"x", 1, 0, false}, {"x", 2, 1, false});
    LOOK(world, 1000, {"x", 1, 0, false});
    assert_int_equal(world->watch.totals.gone, 1);
    assert_int_equal(world->watch.totals.waits.total, 0);
    assert_int_equal(world->watch.totals.grants, 0);
    assert_int_equal(world->watch.totals.changes, 0);
}

static void test_a_holder_that_died_is_counted_and_its_delay_is_no_hold(void **state)
{
    struct world *world = *state;
    const struct mrt_watch_counts *totals = &world->watch.totals;
    LOOK(world, 0, {"old", 9, 0, true}); /* that was before we came */
    LOOK(world, 1000, {"x", 1, 0, false}, {"x", 2, 1, false});
    LOOK(world, 1000, {"x", 1, 0, true}, {"x", 2, 1, false});
    LOOK(world, 1000, {"x", 1, 0, true}, {"x", 2, 1, false});
    assert_int_equal(totals->deaths, 1);
    assert_int_equal(totals->holds.total, 1);
    assert_int_equal(totals->holds.sum, MRT_SECOND);
    LOOK(world, 1000, {"x", 2, 0, false});
    assert_int_equal(totals->deaths, 1);
    assert_int_equal(totals->holds.total, 1);
    assert_int_equal(totals->gone, 0);
    assert_int_equal(totals->grants, 2);
    assert_int_equal(totals->waits.sum, 3 * MRT_SECOND);
}

static void test_fences_of_different_locks_are_different_tickets(void **state)
{
    struct world *world = *state;
    LOOK(world, 0, {"x", 7, 0, false});
    LOOK(world, 1000, {"y", 7, 0, false});
    assert_int_equal(world->watch.totals.grants, 1);
    assert_int_equal(world->watch.totals.changes, 0);
    assert_int_equal(mrt_watch_find(&world->watch, "y")->counts.grants, 1);
    assert_int_equal(mrt_watch_find(&world->watch, "x")->counts.grants, 0);
}

static void test_a_change_is_seen_across_a_moment_of_freedom(void **state)
{
    struct world *world = *state;
    LOOK(world, 0, {"x", 1, 0, false});
    LOOK_EMPTY(world, 1000);
    LOOK(world, 1000, {"x", 2, 0, false});
    LOOK(world, 1000, {"x", 2, 0, false});
    assert_int_equal(mrt_watch_find(&world->watch, "x")->counts.changes, 1);
    assert_int_equal(world->watch.totals.grants, 1);
    assert_int_equal(world->watch.totals.contended, 0);
}

static void test_holders_and_waiters_are_counted(void **state)
{
    struct world *world = *state;
    LOOK(world, 0, {"s", 1, 0, false}, {"s", 2, 0, false}, {"s", 3, 1, false}, {"x", 4, 0, false},
         {"y", 5, 1, false});
    assert_int_equal(world->watch.held, 2);
    assert_int_equal(world->watch.holders, 3);
    assert_int_equal(world->watch.waiters, 2);
    const struct mrt_watch_lock *lock = mrt_watch_find(&world->watch, "s");
    assert_int_equal(lock->holders, 2);
    assert_int_equal(lock->waiters, 1);
    LOOK_EMPTY(world, 1000);
    assert_int_equal(world->watch.held + world->watch.holders + world->watch.waiters, 0);
    assert_int_equal(lock->holders + lock->waiters, 0);
}

static void test_tickets_without_a_fence_are_not_followed(void **state)
{
    struct world *world = *state;
    LOOK_EMPTY(world, 0);
    LOOK(world, 1000, {"x", 0, 0, false}, {"x", 0, 1, false});
    LOOK_EMPTY(world, 1000);
    assert_int_equal(world->watch.totals.grants, 0);
    assert_int_equal(world->watch.totals.holds.total, 0);
    assert_int_equal(world->watch.totals.gone, 0);
}

static void test_a_lock_that_is_long_free_is_forgotten(void **state)
{
    struct world *world = *state;
    LOOK(world, 0, {"first", 1, 0, false}, {"second", 2, 0, false}, {"third", 3, 0, false});
    LOOK_EMPTY(world, 1000);
    assert_non_null(mrt_watch_find(&world->watch, "third"));
    assert_int_equal(world->watch.idle_count, 1); /* two have series of their own */
    LOOK(world, 1000, {"third", 4, 0, false});    /* it comes back as it was */
    assert_int_equal(world->watch.idle_count, 0);
    assert_int_equal(mrt_watch_find(&world->watch, "third")->counts.grants, 1);
    LOOK_EMPTY(world, 1000);
    LOOK_EMPTY(world, MRT_WATCH_IDLE / MRT_MILLISECOND);
    assert_non_null(mrt_watch_find(&world->watch, "third"));
    LOOK_EMPTY(world, 1);
    assert_null(mrt_watch_find(&world->watch, "third"));
    assert_non_null(mrt_watch_find(&world->watch, "first"));
    assert_non_null(mrt_watch_find(&world->watch, "second"));
}

static void test_memory_is_bounded_however_many_names_there_are(void **state)
{
    struct world *world = *state;
    enum { MANY = 3 * MRT_WATCH_IDLE_MAX };
    char name[32];
    for (uint64_t i = 1; i <= MANY; i++) {
        snprintf(name, sizeof name, "job-%" PRIu64, i);
        LOOK(world, 100, {name, i, 0, false});
    }
    assert_int_equal(HASH_COUNT(world->watch.locks), MRT_WATCH_IDLE_MAX + 3);
    assert_int_equal(world->watch.own_count, 2);
    assert_non_null(mrt_watch_find(&world->watch, "job-1"));
    assert_null(mrt_watch_find(&world->watch, "job-3"));
    assert_non_null(mrt_watch_find(&world->watch, name));
    assert_int_equal(world->watch.totals.holds.total, MANY - 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_wait_and_hold_are_timed_from_look_to_look),
        TEST(test_a_ticket_whose_fence_changes_is_known_by_its_id),
        TEST(test_a_hold_or_wait_from_before_the_first_look_is_not_timed),
        TEST(test_a_waiter_that_is_gone_was_not_granted),
        TEST(test_a_holder_that_died_is_counted_and_its_delay_is_no_hold),
        TEST(test_fences_of_different_locks_are_different_tickets),
        TEST(test_a_change_is_seen_across_a_moment_of_freedom),
        TEST(test_holders_and_waiters_are_counted),
        TEST(test_tickets_without_a_fence_are_not_followed),
        TEST(test_a_lock_that_is_long_free_is_forgotten),
        TEST(test_memory_is_bounded_however_many_names_there_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
