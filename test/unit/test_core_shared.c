/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks that several may hold: semaphores and read/write locks. Each waiter has a ticket of its
 * own.
 *
 * The scenes of many use a shelf: a store in order that keeps what was appended, tells the
 * weight ahead, and has all look again when one leaves or becomes lighter.
 */
#include "core_shared_fixture.h"

#define PLACES 64

struct shelf {
    struct core core;
    struct {
        struct mrt_id id;
        uint64_t weight, fence;
    } tickets[PLACES];
    size_t count;
    uint64_t numbers;
};

/* -------------------------------------------------------------- the shelf */

static size_t place_of(const struct shelf *shelf, struct mrt_id id)
{
    size_t place = 0;
    while (place < shelf->count && !mrt_id_equal(shelf->tickets[place].id, id))
        place++;
    return place;
}

static void show(struct shelf *shelf, const struct mrt_command *command)
{
    uint64_t ahead = 0;
    size_t place = place_of(shelf, command->ticket);
    assert_true(place < shelf->count);
    for (size_t i = 0; i < place; i++)
        ahead += shelf->tickets[i].weight;
    shelf->core.shown.fence = shelf->tickets[place].fence;
    core_view(&shelf->core, command, ahead);
}

static void take_off(struct shelf *shelf, struct mrt_id id)
{
    size_t place = place_of(shelf, id);
    assert_true(place < shelf->count);
    shelf->count--;
    memmove(&shelf->tickets[place], &shelf->tickets[place + 1],
            (shelf->count - place) * sizeof shelf->tickets[0]);
}

static void obey(struct shelf *shelf, struct mrt_command *command)
{
    static const struct mrt_id none;
    struct core *core = &shelf->core;
    switch (command->type) {
    case MRT_START:
        core_answer(core, command, MRT_STARTED);
        break;
    case MRT_REMOVE:
        take_off(shelf, command->ticket);
        core_answer(core, command, MRT_REMOVED);
        core_wake(core, none);
        break;
    case MRT_LIGHTEN:
        shelf->tickets[place_of(shelf, command->ticket)].weight = command->weight;
        show(shelf, command);
        core_wake(core, none);
        break;
    case MRT_APPEND:
        assert_true(shelf->count < PLACES);
        shelf->tickets[shelf->count].fence = ++shelf->numbers * 1000;
        shelf->tickets[shelf->count].id = command->ticket;
        shelf->tickets[shelf->count++].weight = command->weight;
        show(shelf, command);
        break;
    default:
        show(shelf, command);
    }
}

/* Everything under way is done. */
static void settle(struct shelf *shelf)
{
    struct mrt_command *command;
    while ((command = mrt_engine_next_command(shelf->core.engine, shelf->core.now)))
        obey(shelf, command);
    while (mrt_engine_next_settled(shelf->core.engine))
        ;
}

static void acquire_all(struct shelf *shelf, struct mrt_waiter *waiters, size_t count)
{
    for (size_t i = 0; i < count; i++)
        core_acquire(&shelf->core, &waiters[i]);
    settle(shelf);
}

/* The holders, as a text: 'x' holds, '-' does not. */
static void expect_holders(const struct mrt_waiter *waiters, const char *expected)
{
    char found[PLACES + 1] = "";
    for (size_t i = 0; i < strlen(expected); i++)
        found[i] = holds(&waiters[i]) ? 'x' : '-';
    assert_string_equal(found, expected);
}

/* Those marked 'x' release. */
static void release_some(struct shelf *shelf, struct mrt_waiter *waiters, const char *which)
{
    for (size_t i = 0; i < strlen(which); i++)
        if (which[i] == 'x') {
            release(&shelf->core, &waiters[i]);
            waiters[i].hold = NULL;
        }
    settle(shelf);
}

/* ------------------------------------------------------------------ orders */

static void test_d2_a_reader_joins_readers_and_waits_behind_a_writer(void **state)
{
    (void)state;
    struct shelf shelf = {.count = 0};
    open_read_write(&shelf.core);
    struct mrt_waiter waiters[] = {reading(1), reading(2), writing(3), reading(4)};
    acquire_all(&shelf, waiters, 4);
    expect_holders(waiters, "xx--");
    release_some(&shelf, waiters, "xx--");
    expect_holders(waiters, "--x-");
    release_some(&shelf, waiters, "--x-");
    expect_holders(waiters, "---x");
    core_free(&shelf.core);
}

static void test_d3_a_writer_waits_for_every_earlier_reader_and_writer(void **state)
{
    (void)state;
    struct shelf shelf = {.count = 0};
    open_read_write(&shelf.core);
    struct mrt_waiter waiters[] = {reading(1), reading(2), writing(3), writing(4)};
    acquire_all(&shelf, waiters, 4);
    release_some(&shelf, waiters, "-x--"); /* the nearest is not enough */
    expect_holders(waiters, "x---");
    release_some(&shelf, waiters, "x---");
    expect_holders(waiters, "--x-");
    release_some(&shelf, waiters, "--x-");
    expect_holders(waiters, "---x");
    core_free(&shelf.core);
}

static void test_d6_r_r_r_w_r_r_w_runs_as_four_groups(void **state)
{
    static const char *const groups[] = {"xxx----", "---x---", "----xx-", "------x"};
    (void)state;
    struct shelf shelf = {.count = 0};
    open_read_write(&shelf.core);
    struct mrt_waiter waiters[] = {reading(1), reading(2), reading(3), writing(4),
                                   reading(5), reading(6), writing(7)};
    acquire_all(&shelf, waiters, 7);
    for (size_t i = 0; i < 4; i++) {
        expect_holders(waiters, groups[i]);
        release_some(&shelf, waiters, groups[i]);
    }
    expect_holders(waiters, "-------");
    assert_int_equal(shelf.count, 0);
    core_free(&shelf.core);
}

static void test_d8_a_stream_of_readers_does_not_keep_a_writer_out(void **state)
{
    enum { STREAM = 20 };
    (void)state;
    struct shelf shelf = {.count = 0};
    open_read_write(&shelf.core);
    struct mrt_waiter readers[STREAM], writer = writing(99);
    readers[0] = reading(1);
    acquire_all(&shelf, &readers[0], 1);
    acquire_all(&shelf, &writer, 1);
    for (size_t i = 1; i < STREAM; i++) {
        readers[i] = reading(i + 1);
        acquire_all(&shelf, &readers[i], 1);
        assert_false(holds(&readers[i]));
    }
    release_some(&shelf, &readers[0], "x");
    assert_true(holds(&writer));
    assert_false(holds(&readers[1]));
    release_some(&shelf, &writer, "x");
    for (size_t i = 1; i < STREAM; i++)
        assert_true(holds(&readers[i]));
    core_free(&shelf.core);
}

static void test_f13_three_permits_and_ten_contenders(void **state)
{
    (void)state;
    struct shelf shelf = {.count = 0};
    open_semaphore(&shelf.core, 3);
    struct mrt_waiter waiters[10];
    for (size_t i = 0; i < 10; i++)
        waiters[i] = core_asking(i + 1, 1);
    acquire_all(&shelf, waiters, 10);
    expect_holders(waiters, "xxx-------");
    release_some(&shelf, waiters, "-x--------"); /* any of them: the next in order is next */
    expect_holders(waiters, "x-xx------");
    release_some(&shelf, waiters, "x-xx------");
    expect_holders(waiters, "----xxx---");
    release_some(&shelf, waiters, "----xxx---");
    expect_holders(waiters, "-------xxx");
    release_some(&shelf, waiters, "-------xxx");
    assert_int_equal(shelf.count, 0);
    assert_int_equal(mrt_engine_counters(shelf.core.engine)->acquisitions, 10);
    assert_int_equal(mrt_engine_counters(shelf.core.engine)->handovers, 0);
    core_free(&shelf.core);
}

static void test_f13_a_waiter_for_many_permits_is_not_overtaken_by_one_for_few(void **state)
{
    (void)state;
    struct shelf shelf = {.count = 0};
    open_semaphore(&shelf.core, 5);
    struct mrt_waiter waiters[] = {core_asking(1, 2), core_asking(2, 2), core_asking(3, 4),
                                   core_asking(4, 1)};
    acquire_all(&shelf, waiters, 4);
    expect_holders(waiters, "xx--"); /* one permit is free, but not the fourth's turn */
    release_some(&shelf, waiters, "x---");
    expect_holders(waiters, "-x--");
    release_some(&shelf, waiters, "-x--");
    expect_holders(waiters, "--xx");
    core_free(&shelf.core);
}

static void test_f14_one_engine_keeps_all_recipes(void **state)
{
    (void)state;
    struct shelf shelf = {.count = 0};
    const struct mrt_recipe three = mrt_semaphore(3), four = mrt_semaphore(4);
    struct mrt_queue *other;
    core_open(&shelf.core, NULL);
    struct mrt_engine *engine = shelf.core.engine;
    struct mrt_waiter mutex[] = {core_waiter(1), core_waiter(2)};
    acquire_all(&shelf, mutex, 2);
    shelf.count = 0; /* the queues do not mix; one shelf shows one at a time */
    assert_int_equal(mrt_engine_queue(engine, "s", &three, &shelf.core.queue), MORTISE_OK);
    assert_int_equal(mrt_engine_queue(engine, "s", &four, &other), MORTISE_EMISMATCH);
    struct mrt_waiter permits[] = {core_waiter(1), core_waiter(2), core_waiter(3), core_waiter(4)};
    acquire_all(&shelf, permits, 4);
    shelf.count = 0;
    assert_int_equal(mrt_engine_queue(engine, "r", &mrt_read_write, &shelf.core.queue), MORTISE_OK);
    struct mrt_waiter sides[] = {reading(1), reading(2), writing(3)};
    acquire_all(&shelf, sides, 3);
    expect_holders(mutex, "x-");
    expect_holders(permits, "xxx-");
    expect_holders(sides, "xx-");
    core_free(&shelf.core);
}

static void test_e5_a_writer_that_reads_on_keeps_its_place(void **state)
{
    (void)state;
    struct shelf shelf = {.count = 0};
    open_read_write(&shelf.core);
    struct mrt_waiter waiters[] = {writing(1), reading(2), writing(3)}, read = reading(1);
    acquire_all(&shelf, waiters, 3);
    acquire_all(&shelf, &read, 1);
    uint64_t fence = read.hold->fence;
    release_some(&shelf, waiters, "x--");
    expect_holders(waiters, "-x-"); /* the reader behind comes in, the writer does not */
    assert_true(holds(&read));
    assert_int_equal(read.hold->fence, fence);
    release_some(&shelf, waiters, "-x-");
    expect_holders(waiters, "---");
    release_some(&shelf, &read, "x");
    expect_holders(waiters, "--x");
    core_free(&shelf.core);
}

/* ------------------------------------------------- a ticket for each waiter */

static void test_waiters_come_to_the_store_in_their_order(void **state)
{
    (void)state;
    struct core core;
    open_semaphore(&core, 3);
    struct mrt_waiter one = core_asking(1, 1), two = core_asking(2, 2);
    core_acquire(&core, &one);
    core_acquire(&core, &two);
    core_start(&core);
    struct mrt_command *first = core_fetch(&core, MRT_APPEND);
    struct mrt_command *second = core_fetch(&core, MRT_APPEND);
    core_no_command(&core);
    assert_int_equal(first->weight, 1);
    assert_int_equal(second->weight, 2);
    assert_int_equal(second->capacity, 3);
    assert_string_equal(second->kind, "semaphore");
    core_view(&core, second, 1); /* answers in any order */
    core_done(&core, &two, MORTISE_OK);
    core_view(&core, first, 0);
    core_done(&core, &one, MORTISE_OK);
    core_free(&core);
}

static void test_a_waiter_whose_session_cannot_start(void **state)
{
    (void)state;
    struct core core;
    open_semaphore(&core, 3);
    struct mrt_waiter one = core_waiter(1), two = core_waiter(2);
    core_acquire(&core, &one);
    core_acquire(&core, &two);
    core_fail(&core, core_fetch(&core, MRT_START), MORTISE_EPERMISSION);
    core_done(&core, &one, MORTISE_EPERMISSION);
    core_done(&core, &two, MORTISE_EPERMISSION);
    core_no_command(&core);
    core_free(&core);
}

static void test_f6_a_waiter_that_gives_up_takes_its_own_ticket_out(void **state)
{
    (void)state;
    struct core core;
    open_semaphore(&core, 1);
    struct mrt_waiter held = core_waiter(1), waiter = core_waiter(2), next = core_waiter(3);
    core_grant(&core, &held);
    core_acquire(&core, &waiter);
    core_view(&core, core_fetch(&core, MRT_APPEND), 1);
    struct mrt_id id = waiter.ticket->id;
    core_acquire(&core, &next);
    struct mrt_command *append = core_fetch(&core, MRT_APPEND);
    mrt_engine_cancel(core.engine, &waiter, MORTISE_ECANCELLED, core.now);
    core_done(&core, &waiter, MORTISE_ECANCELLED);
    struct mrt_command *removal = core_fetch(&core, MRT_REMOVE);
    assert_true(mrt_id_equal(removal->ticket, id));
    core_view(&core, append, 2);
    core_answer(&core, removal, MRT_REMOVED);
    core_no_command(&core);
    assert_int_equal(next.state, MRT_WAITER_WAITING);
    assert_true(holds(&held));
    core_free(&core);
}

static void test_f6_a_newcomer_waits_until_a_removal_can_be_sent(void **state)
{
    (void)state;
    struct core core;
    open_semaphore(&core, 1);
    struct mrt_waiter waiter = core_waiter(1), next = core_waiter(2);
    core_acquire(&core, &waiter);
    core_start(&core);
    struct mrt_command *append = core_fetch(&core, MRT_APPEND);
    mrt_engine_cancel(core.engine, &waiter, MORTISE_ECANCELLED, core.now);
    core_done(&core, &waiter, MORTISE_ECANCELLED);
    core_acquire(&core, &next);
    core_no_command(&core); /* it would queue behind our own */
    core_view(&core, append, 0);
    core_fetch(&core, MRT_REMOVE);
    core_view(&core, core_fetch(&core, MRT_APPEND), 0);
    core_done(&core, &next, MORTISE_OK);
    core_free(&core);
}

static void test_f6_a_newcomer_is_served_if_the_store_gives_an_unwanted_append_back(void **state)
{
    (void)state;
    struct core core;
    open_semaphore(&core, 3);
    struct mrt_waiter leaving = core_asking(1, 1), newcomer = core_asking(2, 3);
    core_acquire(&core, &leaving);
    core_start(&core);
    struct mrt_command *command = core_fetch(&core, MRT_APPEND);
    mrt_engine_cancel(core.engine, &leaving, MORTISE_ECANCELLED, core.now);
    core_done(&core, &leaving, MORTISE_ECANCELLED);
    core_acquire(&core, &newcomer);
    core_no_command(&core);
    mrt_engine_unsubmit(core.engine, command, core.now);
    core_view(&core, core_fetch(&core, MRT_APPEND), 0);
    core_done(&core, &newcomer, MORTISE_OK);
    core_free(&core);
}

/* The writer in front is broken while the word of its grant is on its way. */
static void test_zk_10_a_late_grant_with_an_earlier_fence_is_looked_at(void **state)
{
    (void)state;
    struct core core;
    open_read_write(&core);
    struct mrt_waiter broken = writing(1), behind = writing(2);
    core_acquire(&core, &broken);
    core_acquire(&core, &behind);
    core_start(&core);
    struct mrt_command *late = core_fetch(&core, MRT_APPEND);
    struct mrt_command *append = core_fetch(&core, MRT_APPEND);
    core.shown.fence = 5001;
    core_view(&core, append, 0);
    core_done(&core, &behind, MORTISE_OK);
    core.shown.fence = 5000;
    core_view(&core, late, 0);
    core_none_settled(&core);
    core_answer(&core, core_fetch(&core, MRT_REFRESH), MRT_GONE);
    core.shown.fence = 5002;
    core_view(&core, core_fetch(&core, MRT_APPEND), MRT_WRITER);
    core_none_settled(&core);
    release(&core, &behind);
    core_fetch(&core, MRT_REMOVE);
    core_free(&core);
}

static void test_h2_a_try_is_sent_to_the_store_although_others_wait(void **state)
{
    (void)state;
    struct core core;
    open_read_write(&core);
    struct mrt_waiter held = writing(1), waiter = reading(2), try_one = reading(3);
    core_grant(&core, &held);
    core_acquire(&core, &waiter);
    core_view(&core, core_fetch(&core, MRT_APPEND), MRT_WRITER);
    try_one.try_only = true;
    core_acquire(&core, &try_one);
    struct mrt_command *append = core_fetch(&core, MRT_APPEND);
    assert_true(append->try_only);
    core_answer(&core, append, MRT_BLOCKED);
    core_done(&core, &try_one, MORTISE_EBUSY);
    core_none_settled(&core);
    core_no_command(&core); /* nothing is left of it */
    assert_int_equal(waiter.state, MRT_WAITER_WAITING);
    core_free(&core);
}

static void test_z1_a_try_that_a_store_queued_is_busy(void **state)
{
    (void)state;
    struct core core;
    open_semaphore(&core, 1);
    struct mrt_waiter held = core_waiter(1), try_one = core_waiter(2);
    core_grant(&core, &held);
    try_one.try_only = true;
    core_acquire(&core, &try_one);
    core_view(&core, core_fetch(&core, MRT_APPEND), 1);
    core_done(&core, &try_one, MORTISE_EBUSY);
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
    core_no_command(&core);
    core_free(&core);
}

static void test_f7_a_refusal_is_for_the_waiter_whose_ticket_it_was(void **state)
{
    (void)state;
    struct core core;
    open_semaphore(&core, 3);
    struct mrt_waiter one = core_waiter(1), two = core_waiter(2);
    core_acquire(&core, &one);
    core_start(&core);
    core_acquire(&core, &two);
    struct mrt_command *first = core_fetch(&core, MRT_APPEND);
    core_fail(&core, core_fetch(&core, MRT_APPEND), MORTISE_EMISMATCH);
    core_done(&core, &two, MORTISE_EMISMATCH);
    core_none_settled(&core);
    core_view(&core, first, 0);
    core_done(&core, &one, MORTISE_OK);
    core_no_command(&core);
    core_free(&core);
}

static void test_no_memory_for_one_of_many_tickets(void **state)
{
    (void)state;
    struct core core;
    open_semaphore(&core, 3);
    struct mrt_waiter held = core_waiter(1), waiter = core_waiter(2);
    core_grant(&core, &held);
    core_fail_allocations(1); /* the slot of its hold, then no ticket */
    core_acquire(&core, &waiter);
    core_done(&core, &waiter, MORTISE_ENOMEM);
    core_no_command(&core);
    core_fail_allocations(-1);
    waiter = core_waiter(2);
    core_acquire(&core, &waiter);
    core_view(&core, core_fetch(&core, MRT_APPEND), 1);
    core_done(&core, &waiter, MORTISE_OK);
    core_free(&core);
}

static void test_z2_a_waiter_whose_ticket_is_gone_appends_another(void **state)
{
    (void)state;
    struct core core;
    open_semaphore(&core, 1);
    struct mrt_waiter held = core_waiter(1), waiter = core_waiter(2);
    core_grant(&core, &held);
    core_acquire(&core, &waiter);
    core_view(&core, core_fetch(&core, MRT_APPEND), 1);
    core_wake(&core, waiter.ticket->id);
    core_answer(&core, core_fetch(&core, MRT_REFRESH), MRT_GONE);
    core_view(&core, core_fetch(&core, MRT_APPEND), 1);
    assert_true(holds(&held));
    core_free(&core);
}

static void test_a_lost_session_takes_every_ticket(void **state)
{
    (void)state;
    struct core core;
    open_semaphore(&core, 2);
    struct mrt_waiter one = core_waiter(1), two = core_waiter(2), three = core_waiter(3);
    core_grant(&core, &one);
    core_grant(&core, &two);
    core_acquire(&core, &three);
    core_view(&core, core_fetch(&core, MRT_APPEND), 2);
    core_session_lost(&core);
    assert_ptr_equal(mrt_engine_next_told(core.engine), one.hold);
    assert_ptr_equal(mrt_engine_next_told(core.engine), two.hold);
    core_answer(&core, core_fetch(&core, MRT_STOP), MRT_STOPPED);
    core_start(&core);
    core_view(&core, core_fetch(&core, MRT_APPEND), 0);
    core_done(&core, &three, MORTISE_OK);
    core_free(&core);
}

static void test_close_gives_all_tickets_back(void **state)
{
    (void)state;
    struct shelf shelf = {.count = 0};
    open_read_write(&shelf.core);
    struct mrt_waiter waiters[] = {reading(1), reading(2), writing(3), reading(4)};
    acquire_all(&shelf, waiters, 4);
    mrt_engine_close(shelf.core.engine, shelf.core.now);
    core_done(&shelf.core, &waiters[2], MORTISE_ECLOSED);
    core_done(&shelf.core, &waiters[3], MORTISE_ECLOSED);
    core_answer(&shelf.core, core_fetch(&shelf.core, MRT_STOP), MRT_STOPPED);
    assert_true(mrt_engine_closed(shelf.core.engine));
    core_free(&shelf.core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_d2_a_reader_joins_readers_and_waits_behind_a_writer),
        cmocka_unit_test(test_d3_a_writer_waits_for_every_earlier_reader_and_writer),
        cmocka_unit_test(test_d6_r_r_r_w_r_r_w_runs_as_four_groups),
        cmocka_unit_test(test_d8_a_stream_of_readers_does_not_keep_a_writer_out),
        cmocka_unit_test(test_f13_three_permits_and_ten_contenders),
        cmocka_unit_test(test_f13_a_waiter_for_many_permits_is_not_overtaken_by_one_for_few),
        cmocka_unit_test(test_f14_one_engine_keeps_all_recipes),
        cmocka_unit_test(test_e5_a_writer_that_reads_on_keeps_its_place),
        cmocka_unit_test(test_waiters_come_to_the_store_in_their_order),
        cmocka_unit_test(test_a_waiter_whose_session_cannot_start),
        cmocka_unit_test(test_f6_a_waiter_that_gives_up_takes_its_own_ticket_out),
        cmocka_unit_test(test_f6_a_newcomer_waits_until_a_removal_can_be_sent),
        cmocka_unit_test(test_f6_a_newcomer_is_served_if_the_store_gives_an_unwanted_append_back),
        cmocka_unit_test(test_zk_10_a_late_grant_with_an_earlier_fence_is_looked_at),
        cmocka_unit_test(test_h2_a_try_is_sent_to_the_store_although_others_wait),
        cmocka_unit_test(test_z1_a_try_that_a_store_queued_is_busy),
        cmocka_unit_test(test_f7_a_refusal_is_for_the_waiter_whose_ticket_it_was),
        cmocka_unit_test(test_no_memory_for_one_of_many_tickets),
        cmocka_unit_test(test_z2_a_waiter_whose_ticket_is_gone_appends_another),
        cmocka_unit_test(test_a_lost_session_takes_every_ticket),
        cmocka_unit_test(test_close_gives_all_tickets_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
