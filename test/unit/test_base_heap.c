/* SPDX-License-Identifier: Apache-2.0 */
/* The timer heap against the plainest reference: an array searched from end to end. */
#include "base/heap.h"
#include "cmocka_all.h"

#include <string.h>

#define TIMERS 200

struct reference {
    bool armed;
    mrt_time at;
    uint64_t order; /* of arming */
};

struct model {
    struct mrt_heap heap;
    struct mrt_timer timers[TIMERS];
    struct reference reference[TIMERS];
    uint64_t order, seed;
};

static uint64_t draw(struct model *model, uint64_t below)
{
    model->seed = model->seed * 6364136223846793005u + 1442695040888963407u;
    return (model->seed >> 33) % below;
}

/* The earliest armed one, the first of equals; -1: none. */
static int first_of(const struct model *model)
{
    int best = -1;
    for (int i = 0; i < TIMERS; i++) {
        const struct reference *a = &model->reference[i];
        if (!a->armed)
            continue;
        const struct reference *b = best < 0 ? NULL : &model->reference[best];
        if (!b || a->at < b->at || (a->at == b->at && a->order < b->order))
            best = i;
    }
    return best;
}

static void arm(struct model *model, size_t i, mrt_time at)
{
    mrt_heap_set(&model->heap, &model->timers[i], at);
    model->reference[i] = (struct reference){true, at, model->order++};
}

static void pop(struct model *model, mrt_time now)
{
    int expected = first_of(model);
    if (expected >= 0 && model->reference[expected].at > now)
        expected = -1;
    struct mrt_timer *timer = mrt_heap_pop(&model->heap, now);
    if (expected < 0) {
        assert_null(timer);
        return;
    }
    assert_ptr_equal(timer, &model->timers[expected]);
    assert_false(timer->armed);
    model->reference[expected].armed = false;
}

static void step(struct model *model)
{
    size_t i = (size_t)draw(model, TIMERS);
    switch (draw(model, 4)) {
    case 0:
    case 1:
        arm(model, i, (mrt_time)draw(model, 50)); /* few instants: many are equal */
        break;
    case 2:
        mrt_heap_clear(&model->heap, &model->timers[i]);
        model->reference[i].armed = false;
        break;
    default:
        pop(model, (mrt_time)draw(model, 50));
    }
    int first = first_of(model);
    assert_int_equal(mrt_heap_next(&model->heap),
                     first < 0 ? MRT_TIME_NEVER : model->reference[first].at);
    assert_int_equal(model->timers[i].armed, model->reference[i].armed);
}

static void test_heap_random_against_reference(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        static struct model model;
        memset(&model, 0, sizeof model);
        model.seed = seed;
        for (int i = 0; i < 5000; i++)
            step(&model);
        while (first_of(&model) >= 0)
            pop(&model, MRT_TIME_NEVER);
        assert_null(mrt_heap_pop(&model.heap, MRT_TIME_NEVER));
    }
}

static void test_heap_equal_times_keep_order(void **state)
{
    (void)state;
    struct mrt_heap heap = {0};
    struct mrt_timer timers[TIMERS] = {0};
    for (int i = 0; i < TIMERS; i++)
        mrt_heap_set(&heap, &timers[i], 5);
    for (int i = 0; i < TIMERS; i++)
        assert_ptr_equal(mrt_heap_pop(&heap, 5), &timers[i]);
    assert_null(mrt_heap_pop(&heap, 5));
}

static void test_heap_empty_and_not_due(void **state)
{
    (void)state;
    struct mrt_heap heap = {0};
    struct mrt_timer timer = {0};
    assert_int_equal(mrt_heap_next(&heap), MRT_TIME_NEVER);
    assert_null(mrt_heap_pop(&heap, MRT_TIME_NEVER));
    mrt_heap_clear(&heap, &timer);
    mrt_heap_set(&heap, &timer, 10);
    assert_null(mrt_heap_pop(&heap, 9));
    assert_true(timer.armed);
    mrt_heap_set(&heap, &timer, 20);
    assert_null(mrt_heap_pop(&heap, 10));
    assert_ptr_equal(mrt_heap_pop(&heap, 20), &timer);
    assert_int_equal(mrt_heap_next(&heap), MRT_TIME_NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heap_random_against_reference),
        cmocka_unit_test(test_heap_equal_times_keep_order),
        cmocka_unit_test(test_heap_empty_and_not_due),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
