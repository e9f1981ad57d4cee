/* SPDX-License-Identifier: Apache-2.0 */
/* The slots of holds: kept when they are given back, taken again with larger generations, in any
 * thread and after a fork. */
#include "cmocka_all.h"

#include "api/slot.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOTS 8
#define FORKS 30
#define TURNS 20000

static struct mrt_engine_config config;

static struct mrt_hold *take(void)
{
    return config.take_slot(sizeof(struct mrt_hold) + sizeof(struct mrt_hold_host));
}

static bool no_memory;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
    return no_memory ? NULL : __real_calloc(count, size);
}

/* Where a slot is kept, none is needed. */
static void test_u34_no_memory_for_a_slot(void **state)
{
    (void)state;
    no_memory = true;
    struct mrt_hold *none = take(), *again;
    no_memory = false;
    assert_null(none);
    struct mrt_hold *slot = take();
    assert_non_null(slot);
    config.give_back_slot(slot);
    no_memory = true;
    again = take();
    no_memory = false;
    assert_ptr_equal(again, slot);
    config.give_back_slot(slot);
}

static bool is_open(struct mrt_hold *slot, uint64_t generation)
{
    return mrt_slot_is_open((mortise_hold){slot, generation});
}

static void test_u34_a_slot_is_open_for_the_holds_of_its_client_alone(void **state)
{
    (void)state;
    struct mrt_hold *slot = take();
    assert_non_null(slot);
    uint64_t first = slot->generation;
    slot->generation += 3; /* so many holds had it, and one has it */
    assert_true(is_open(slot, first));
    assert_true(is_open(slot, first + 3));
    config.give_back_slot(slot);
    for (uint64_t generation = first; generation <= first + 3; generation++)
        assert_false(is_open(slot, generation));
    assert_ptr_equal(take(), slot);
    assert_true(slot->generation > first + 3);
    assert_true(is_open(slot, slot->generation));
    assert_false(is_open(slot, first + 3));
    config.give_back_slot(slot);
}

static void test_u34_a_slot_that_is_taken_again_is_empty(void **state)
{
    (void)state;
    struct mrt_hold *slot = take();
    unsigned char *begin = (unsigned char *)slot;
    size_t size = sizeof(struct mrt_hold) + sizeof(struct mrt_hold_host);
    memset(begin, 0xff, size);
    slot->generation = 100;
    config.give_back_slot(slot);
    assert_ptr_equal(take(), slot);
    assert_int_equal(slot->generation, 101);
    slot->generation = 0;
    for (size_t i = 0; i < size; i++)
        assert_int_equal(begin[i], 0);
    slot->generation = 101;
    config.give_back_slot(slot);
}

static void test_u34_no_more_slots_than_were_taken_at_once(void **state)
{
    (void)state;
    struct mrt_hold *slots[SLOTS];
    for (int i = 0; i < SLOTS; i++)
        slots[i] = take();
    for (int i = 0; i < SLOTS; i++)
        config.give_back_slot(slots[i]);
    for (int i = SLOTS - 1; i >= 0; i--)
        assert_ptr_equal(take(), slots[i]);
    for (int i = 0; i < SLOTS; i++)
        config.give_back_slot(slots[i]);
}

static void *take_and_give_back(void *argument)
{
    for (int turn = 0; turn < TURNS; turn++) {
        struct mrt_hold *a = take(), *b = take();
        if (!a || !b || a == b || a->owner || b->owner)
            abort();
        a->owner = b->owner = (uint64_t)(uintptr_t)argument;
        if (a->owner != b->owner)
            abort();
        config.give_back_slot(a);
        config.give_back_slot(b);
    }
    return NULL;
}

static void test_u34_a_slot_is_taken_by_one_thread_at_a_time(void **state)
{
    (void)state;
    pthread_t threads[3];
    for (uintptr_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give_back, (void *)(i + 1)), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static _Atomic bool stop;

static void *take_until_stopped(void *argument)
{
    while (!atomic_load(&stop))
        config.give_back_slot(take());
    return argument;
}

/* Other threads are among the slots at each fork. A child that waits for ever is ended. */
static void test_u34_a_forked_child_takes_slots(void **state)
{
    (void)state;
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_until_stopped, NULL), 0);
    for (int i = 0; i < FORKS; i++) {
        int status;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            alarm(20);
            struct mrt_hold *slot = take();
            config.give_back_slot(slot);
            _exit(slot ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_u34_no_memory_for_a_slot), /* first: none is kept yet */
        cmocka_unit_test(test_u34_a_slot_is_open_for_the_holds_of_its_client_alone),
        cmocka_unit_test(test_u34_a_slot_that_is_taken_again_is_empty),
        cmocka_unit_test(test_u34_no_more_slots_than_were_taken_at_once),
        cmocka_unit_test(test_u34_a_slot_is_taken_by_one_thread_at_a_time),
        cmocka_unit_test(test_u34_a_forked_child_takes_slots),
    };
    mrt_slot_configure(&config);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
