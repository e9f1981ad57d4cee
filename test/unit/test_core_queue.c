/* SPDX-License-Identifier: Apache-2.0 */
/* The local tier: who of a process has the lock next, and when its turn ends. */
#include "core_fixture.h"

#define NONE ((uint64_t)0)

static struct mrt_waiter competing(uint64_t owner)
{
    struct mrt_waiter waiter = core_waiter(owner);
    waiter.competes = true;
    return waiter;
}

static void release(struct core *core, struct mrt_waiter *waiter)
{
    assert_int_equal(core_release(core, waiter->hold, waiter->owner), MORTISE_OK);
}

/* A waiter that got the lock at once, without being settled. */
static void expect_taken(const struct mrt_waiter *waiter)
{
    assert_int_equal(waiter->state, MRT_WAITER_DONE);
    assert_int_equal(waiter->error, MORTISE_OK);
}

static void expect_refused(const struct mrt_waiter *waiter, int error)
{
    assert_int_equal(waiter->state, MRT_WAITER_DONE);
    assert_int_equal(waiter->error, error);
    assert_null(waiter->hold);
}

static void retry(struct core *core, struct mrt_waiter *waiter)
{
    mrt_engine_retry(core->engine, waiter, core->now);
}

/* The turn is over: this ticket goes, the next one queues behind. */
static void expect_new_turn(struct core *core)
{
    struct mrt_command *removal = core_fetch(core, MRT_REMOVE);
    struct mrt_command *append = core_fetch(core, MRT_APPEND);
    assert_false(mrt_id_equal(removal->ticket, append->ticket));
    core_no_command(core);
}

/* ----------------------------------------------------------- one tier, one ticket */

static void test_i1_many_waiters_need_one_ticket(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiters[50];
    for (size_t i = 0; i < 50; i++) {
        waiters[i] = core_waiter(i + 1);
        core_acquire(&core, &waiters[i]);
    }
    core_start(&core);
    core_view(&core, core_fetch(&core, MRT_APPEND), 0);
    core_no_command(&core);
    core_done(&core, &waiters[0], MORTISE_OK);
    core_none_settled(&core);
    assert_int_equal(HASH_COUNT(core.engine->tickets_by_id), 1);
    core_free(&core);
}

static void
test_a_waiter_says_whether_it_waits_for_the_store_or_a_thread_of_its_client(void **state)
{
    (void)state;
    const struct mrt_command cell = {.type = MRT_CELL_GET, .queue = "c"};
    struct mrt_answer answer;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter first = core_waiter(1), second = core_waiter(2), verify, reads;
    core_queue_behind(&core, &first);
    assert_true(mrt_waiter_asks(&first));
    core_wake(&core, core.queue->ticket->id);
    core_view(&core, core_fetch(&core, MRT_REFRESH), 0);
    core_done(&core, &first, MORTISE_OK);
    core_acquire(&core, &second);
    assert_false(mrt_waiter_asks(&second));
    verify = core_waiter(0);
    mrt_engine_verify(core.engine, first.hold, &verify, core.now);
    assert_true(mrt_waiter_asks(&verify));
    reads = core_waiter(0);
    mrt_engine_request(core.engine, &cell, &answer, &reads, core.now);
    assert_true(mrt_waiter_asks(&reads));
    core_free(&core);
}

static void test_a_ticket_without_waiters_is_removed(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(1);
    core_grant(&core, &waiter);
    release(&core, &waiter);
    core_fetch(&core, MRT_REMOVE);
    core_no_command(&core);
    core_free(&core);
}

static void test_i2_with_budget_0_the_ticket_is_removed_before_the_next_thread_runs(void **state)
{
    (void)state;
    struct mrt_engine_config config = core_config();
    config.budget = 0;
    struct core core;
    core_open(&core, &config);
    struct mrt_waiter a = core_waiter(1), b = core_waiter(2);
    core_grant(&core, &a);
    core_acquire(&core, &b);
    release(&core, &a);
    core_none_settled(&core);
    struct mrt_command *removal = core_fetch(&core, MRT_REMOVE);
    struct mrt_command *append = core_fetch(&core, MRT_APPEND);
    core_answer(&core, removal, MRT_REMOVED);
    core_none_settled(&core);
    core_view(&core, append, 0);
    core_done(&core, &b, MORTISE_OK);
    core_free(&core);
}

/* ------------------------------------------------------------ eventually fair */

static void test_a5_a_running_thread_may_retake_the_lock(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter a = competing(1), b = competing(2);
    core_grant(&core, &a);
    core_acquire(&core, &b);
    release(&core, &a);
    core_settled(&core, &b);
    assert_int_equal(b.state, MRT_WAITER_WOKEN);
    a = competing(1);
    core_acquire(&core, &a); /* before b has come */
    expect_taken(&a);
    retry(&core, &b);
    assert_int_equal(b.state, MRT_WAITER_WAITING);
    core_none_settled(&core);
    retry(&core, &b); /* not woken: nothing */
    assert_int_equal(b.state, MRT_WAITER_WAITING);
    release(&core, &a);
    core_settled(&core, &b);
    retry(&core, &b);
    expect_taken(&b);
    core_none_settled(&core);
    core_no_command(&core); /* all of it without a request */
    assert_int_equal(mrt_engine_counters(core.engine)->acquisitions, 3);
    assert_int_equal(mrt_engine_counters(core.engine)->handovers, 2);
    core_free(&core);
}

static void test_a5_a_waiter_of_1_ms_is_handed_the_lock(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter a = competing(1), b = competing(2), c = competing(3);
    core_grant(&core, &a);
    core_acquire(&core, &b);
    core_acquire(&core, &c);
    core.now += 1 * MS;
    release(&core, &a);
    core_done(&core, &b, MORTISE_OK);
    core_none_settled(&core);
    core_free(&core);
}

static void test_a5_a_newcomer_does_not_overtake_a_waiter_of_1_ms(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter a = competing(1), b = competing(2), c = competing(3);
    core_grant(&core, &a);
    core_acquire(&core, &b);
    release(&core, &a);
    core_settled(&core, &b);
    core.now += 1 * MS; /* b was woken in time, but does not come */
    core_acquire(&core, &c);
    core_done(&core, &b, MORTISE_OK);
    assert_int_equal(c.state, MRT_WAITER_WAITING);
    retry(&core, &b); /* it comes now, and has it already */
    core_free(&core);
}

static void test_h4_one_waiter_is_woken_at_a_time_and_once(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter a = competing(1), b = competing(2), c = competing(3);
    core_grant(&core, &a);
    core_acquire(&core, &b);
    core_acquire(&core, &c);
    release(&core, &a);
    core_settled(&core, &b);
    core_none_settled(&core);
    mrt_engine_cancel(core.engine, &c, MORTISE_ECANCELLED, core.now); /* serves the queue again */
    core_done(&core, &c, MORTISE_ECANCELLED);
    core_none_settled(&core);
    core_free(&core);
}

static void test_h4_a_woken_waiter_that_gives_up_passes_the_wake_on(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter a = competing(1), b = competing(2), c = competing(3);
    core_grant(&core, &a);
    core_acquire(&core, &b);
    core_acquire(&core, &c);
    release(&core, &a);
    mrt_engine_cancel(core.engine, &b, MORTISE_ECANCELLED,
                      core.now); /* still in the settled list */
    core_done(&core, &b, MORTISE_ECANCELLED);
    core_settled(&core, &c);
    assert_int_equal(c.state, MRT_WAITER_WOKEN);
    retry(&core, &c);
    expect_taken(&c);
    core_free(&core);
}

static void test_f6_the_last_woken_waiter_gives_the_lock_back(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter a = competing(1), b = competing(2);
    core_grant(&core, &a);
    core_acquire(&core, &b);
    release(&core, &a);
    mrt_engine_cancel(core.engine, &b, MORTISE_ECANCELLED, core.now);
    core_fetch(&core, MRT_REMOVE);
    mrt_engine_cancel(core.engine, &b, MORTISE_EINTERNAL, core.now); /* DONE: no effect */
    core_done(&core, &b, MORTISE_ECANCELLED);
    core_free(&core);
}

static void test_a_waiter_that_cannot_barge_is_handed_the_lock(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter a = competing(1), b = core_waiter(NONE);
    core_grant(&core, &a);
    core_acquire(&core, &b);
    release(&core, &a);
    core_done(&core, &b, MORTISE_OK);
    core_free(&core);
}

static void test_a5_strict_is_first_come_first_served(void **state)
{
    (void)state;
    struct mrt_engine_config config = core_config();
    config.strict = true;
    config.budget_count = 100;
    struct core core;
    core_open(&core, &config);
    struct mrt_waiter waiters[20];
    for (size_t i = 0; i < 20; i++)
        waiters[i] = competing(i + 1);
    core_grant(&core, &waiters[0]);
    for (size_t i = 1; i < 20; i++)
        core_acquire(&core, &waiters[i]);
    for (size_t i = 0; i < 19; i++) {
        release(&core, &waiters[i]);
        core_done(&core, &waiters[i + 1], MORTISE_OK);
        core_none_settled(&core);
        assert_true(waiters[i + 1].hold->fence > 100 + i); /* rises at each hand-over */
    }
    core_no_command(&core);
    core_free(&core);
}

static void test_the_clock_grants_nothing_past_the_lease(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    core.lease = 900 * MS;
    struct mrt_waiter a = competing(1), b = competing(2), c = core_waiter(3);
    b.deadline = core.now + 100 * MS;
    core_grant(&core, &a);
    core_acquire(&core, &b);
    core_acquire(&core, &c);
    release(&core, &a);
    core_settled(&core, &b); /* free, for b; and then nothing runs for a second */
    core_pass(&core, MRT_SECOND);
    core_done(&core, &b, MORTISE_ETIMEOUT);
    core_none_settled(&core);
    assert_int_equal(c.state, MRT_WAITER_WAITING);
    core_fetch(&core, MRT_STOP);
    core_free(&core);
}

static void test_a_woken_waiter_that_retries_after_the_lease_is_not_granted(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    core.lease = 900 * MS;
    struct mrt_waiter a = competing(1), b = competing(2);
    core_grant(&core, &a);
    core_acquire(&core, &b);
    release(&core, &a);
    core_settled(&core, &b);
    core.now += MRT_SECOND;
    retry(&core, &b);
    assert_int_equal(b.state, MRT_WAITER_WAITING);
    core_fetch(&core, MRT_STOP);
    core_free(&core);
}

/* -------------------------------------------------------------------- turns */

/* One after the other takes and releases the lock, at the same instant. */
static void pass_around(struct core *core, struct mrt_waiter *holder, size_t times)
{
    for (size_t i = 0; i < times; i++) {
        struct mrt_waiter next = core_waiter(holder->owner + 1);
        core_acquire(core, &next);
        release(core, holder);
        core_done(core, &next, MORTISE_OK);
        *holder = next;
    }
}

static void test_i8_a_turn_has_at_most_its_budget_of_grants_while_others_wait(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    core.shown.others_behind = true;
    struct mrt_waiter holder = core_waiter(1), next = core_waiter(9);
    core_grant(&core, &holder);
    pass_around(&core, &holder, 3); /* with the first, 4 */
    core_acquire(&core, &next);
    core_no_command(&core);
    release(&core, &holder);
    core_none_settled(&core);
    expect_new_turn(&core);
    core_free(&core);
}

static void test_i8_a_turn_lasts_at_most_its_budget_of_time_while_others_wait(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    core.shown.others_behind = true;
    struct mrt_waiter holder = core_waiter(1), next = core_waiter(9);
    core_grant(&core, &holder);
    core_acquire(&core, &next);
    core.now += 2 * MS;
    release(&core, &holder);
    core_none_settled(&core);
    expect_new_turn(&core);
    core_free(&core);
}

static void test_i8_the_first_grant_of_a_turn_is_never_too_late(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    core.shown.others_behind = true;
    struct mrt_waiter waiter = competing(1);
    core_acquire(&core, &waiter);
    core_start(&core);
    core_view(&core, core_fetch(&core, MRT_APPEND), 0);
    core_settled(&core, &waiter);
    core.now += MRT_SECOND; /* it was woken, and comes late */
    retry(&core, &waiter);
    expect_taken(&waiter);
    core_free(&core);
}

static void test_i8_without_other_clients_a_turn_is_renewed_without_a_wait(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter holder = core_waiter(1);
    core_grant(&core, &holder);
    pass_around(&core, &holder, 10); /* many, in no time: nobody is asked */
    core_no_command(&core);
    core.now += 2 * MS;
    pass_around(&core, &holder, 10); /* the store is asked once, and nobody waits for it */
    struct mrt_command *look = core_fetch(&core, MRT_REFRESH);
    core_no_command(&core);
    pass_around(&core, &holder, 1);
    core_view(&core, look, 0); /* nobody is behind */
    core.now += 1 * MS;
    pass_around(&core, &holder, 10);
    core_no_command(&core);
    core.now += 1 * MS;
    pass_around(&core, &holder, 1);
    core.shown.others_behind = true;
    core_view(&core, core_fetch(&core, MRT_REFRESH), 0);
    struct mrt_waiter next = core_waiter(9);
    core_acquire(&core, &next);
    release(&core, &holder);
    core_none_settled(&core);
    expect_new_turn(&core);
    core_free(&core);
}

static void test_z10_fences_stay_in_the_span_of_the_ticket(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    core.shown.fence_span = 2;
    struct mrt_waiter holder = core_waiter(1), next = core_waiter(9);
    core_grant(&core, &holder);
    assert_int_equal(mrt_hold_valid_until(holder.hold), MRT_TIME_NEVER);
    assert_int_equal(holder.hold->fence, 100);
    pass_around(&core, &holder, 1);
    assert_int_equal(holder.hold->fence, 101);
    core_acquire(&core, &next);
    release(&core, &holder);
    core_none_settled(&core);
    expect_new_turn(&core);
    core_free(&core);
}

static void test_i8_a_turn_that_ends_while_the_lock_lies_free(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    core.shown.others_behind = true;
    struct mrt_waiter a = competing(1), b = competing(2), c = competing(3);
    core_grant(&core, &a);
    core_acquire(&core, &b);
    release(&core, &a);
    core_settled(&core, &b);
    core.now += 2 * MS; /* b does not come in time */
    core_acquire(&core, &c);
    assert_int_equal(c.state, MRT_WAITER_WAITING);
    expect_new_turn(&core);
    retry(&core, &b);
    assert_int_equal(b.state, MRT_WAITER_WAITING);
    core_free(&core);
}

/* ---------------------------------------------------------------------- try */

static void test_h2_i5_a_try_needs_the_local_tier_first(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter holder = core_waiter(1), try = core_waiter(2);
    try.try_only = true;
    core_grant(&core, &holder);
    core_acquire(&core, &try);
    expect_refused(&try, MORTISE_EBUSY);
    core_no_command(&core);
    core_none_settled(&core);
    assert_int_equal(mrt_hold_state(holder.hold, core.now), MORTISE_HELD);
    core_free(&core);
}

static void test_h2_a_try_behind_a_waiter_whose_session_starts(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(1), try = core_waiter(2);
    try.try_only = true;
    core_acquire(&core, &waiter);
    core_acquire(&core, &try);
    expect_refused(&try, MORTISE_EBUSY);
    core_free(&core);
}

static void test_h2_a_woken_try_fails_if_another_thread_took_the_lock(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter try = competing(1), other = competing(2);
    try.try_only = true;
    core_acquire(&core, &try);
    core_start(&core);
    core_view(&core, core_fetch(&core, MRT_APPEND), 0);
    core_settled(&core, &try);
    assert_int_equal(try.state, MRT_WAITER_WOKEN);
    core_acquire(&core, &other); /* before the other thread has come */
    expect_taken(&other);
    core_done(&core, &try, MORTISE_EBUSY);
    retry(&core, &try); /* it comes now, and knows already */
    release(&core, &other);
    core_fetch(&core, MRT_REMOVE); /* nobody else wants it */
    core_free(&core);
}

static void test_h2_a_try_takes_a_lock_that_lies_free(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter a = competing(1), b = competing(2), try = core_waiter(3);
    try.try_only = true;
    core_grant(&core, &a);
    core_acquire(&core, &b);
    release(&core, &a);
    core_acquire(&core, &try);
    expect_taken(&try);
    core_free(&core);
}

/* ----------------------------------------------------------------- queues */

static const struct mrt_recipe single = {.kind = "single", .capacity = 1};

static void test_e2_a_recipe_that_does_not_nest(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    assert_int_equal(mrt_engine_queue(core.engine, "single", &single, &core.queue), MORTISE_OK);
    struct mrt_waiter waiter = core_waiter(1), again = core_waiter(1);
    core_grant(&core, &waiter);
    core_acquire(&core, &again);
    expect_refused(&again, MORTISE_EDEADLOCK);
    core_free(&core);
}

/* A store without order: who waits has no fence, and asks anew each time it is woken. */
static void test_b2_b3_a_claim_is_asked_for_again_at_each_wake(void **state)
{
    (void)state;
    struct core core;
    core_open_recipe(&core, &mrt_exclusive);
    core.shown.fence = 0;
    struct mrt_waiter waiter = core_waiter(1);
    core_queue_behind(&core, &waiter);
    for (int i = 0; i < 3; i++) {
        core_wake(&core, core.queue->ticket->id);
        struct mrt_command *again = core_fetch(&core, MRT_REFRESH);
        assert_true(again->claim);
        if (i == 2) {
            core.shown.fence = 500;
            core.shown.others_behind = true;
        }
        core_view(&core, again, i < 2);
    }
    core_done(&core, &waiter, MORTISE_OK);
    assert_int_equal(waiter.hold->fence, 500);
    release(&core, &waiter);
    assert_true(core_fetch(&core, MRT_REMOVE)->claim);
    core_no_command(&core);
    core_free(&core);
}

static void test_b1_only_the_exclusive_lock_is_a_claim(void **state)
{
    (void)state;
    const struct mrt_recipe semaphore = mrt_semaphore(3);
    const struct mrt_recipe *const recipes[] = {&mrt_exclusive, &mrt_mutex, &mrt_semaphore_mutex,
                                                &mrt_read_write, &semaphore};
    for (size_t i = 0; i < sizeof recipes / sizeof recipes[0]; i++) {
        struct core core;
        core_open_recipe(&core, recipes[i]);
        struct mrt_waiter waiter = core_waiter(1);
        core_acquire(&core, &waiter);
        core_start(&core);
        assert_int_equal(core_fetch(&core, MRT_APPEND)->claim, i == 0);
        core_free(&core);
    }
}

static void test_one_name_is_one_queue_of_one_recipe(void **state)
{
    (void)state;
    struct core core;
    struct mrt_queue *same = NULL, *other = NULL;
    core_open(&core, NULL);
    assert_int_equal(mrt_engine_queue(core.engine, "q", &mrt_mutex, &same), MORTISE_OK);
    assert_ptr_equal(same, core.queue);
    assert_string_equal(mrt_queue_name(same), "q");
    assert_int_equal(mrt_engine_queue(core.engine, "q", &single, &other), MORTISE_EMISMATCH);
    assert_ptr_equal(other, core.queue); /* the kind that it is in use with */
    other = NULL;
    mrt_queue_put(same);
    mrt_queue_put(core.queue); /* the last: then the name is free for another recipe */
    assert_int_equal(mrt_engine_queue(core.engine, "q", &single, &other), MORTISE_OK);
    assert_ptr_equal(other, same);
    core_free(&core);
}

static void test_queues_nobody_refers_to_are_freed(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiter = core_waiter(1);
    core_grant(&core, &waiter);
    mrt_queue_put(core.queue); /* the hold still refers to it */
    assert_false(mrt_engine_has_command(core.engine));
    release(&core, &waiter);
    core_answer(&core, core_fetch(&core, MRT_REMOVE), MRT_REMOVED);
    assert_int_equal(HASH_COUNT(core.engine->queues_by_name), 1);
    assert_true(mrt_engine_has_command(core.engine)); /* to be freed */
    core_no_command(&core);
    assert_int_equal(HASH_COUNT(core.engine->queues_by_name), 0);
    core_free(&core);
}

static void test_a_queue_is_used_again_before_it_is_freed(void **state)
{
    (void)state;
    struct core core;
    struct mrt_queue *again;
    core_open(&core, NULL);
    mrt_queue_put(core.queue);
    assert_int_equal(mrt_engine_queue(core.engine, "q", &mrt_mutex, &again), MORTISE_OK);
    assert_ptr_equal(again, core.queue);
    core_no_command(&core);
    assert_int_equal(HASH_COUNT(core.engine->queues_by_name), 1);
    core_free(&core);
}

static void test_f3_deadlines_of_many_waiters(void **state)
{
    (void)state;
    struct core core;
    core_open(&core, NULL);
    struct mrt_waiter waiters[10];
    for (size_t i = 0; i < 10; i++) {
        waiters[i] = core_waiter(i + 1);
        waiters[i].deadline = core.now + (mrt_time)(10 - i) * MS;
        core_acquire(&core, &waiters[i]);
    }
    core_start(&core);
    core_view(&core, core_fetch(&core, MRT_APPEND), 1);
    for (size_t i = 10; i > 0; i--) {
        assert_int_equal(mrt_engine_next_time(core.engine), waiters[i - 1].deadline);
        core_pass(&core, 1 * MS);
        core_done(&core, &waiters[i - 1], MORTISE_ETIMEOUT);
        core_none_settled(&core);
    }
    core_fetch(&core, MRT_REMOVE); /* with the last of them the ticket goes */
    core_free(&core);
}

/* A client has tickets_max tickets at most. An acquire that needs another is refused, and leaves
   nothing. */
static void test_a_client_has_tickets_max_tickets_at_most(void **state)
{
    (void)state;
    struct core core;
    struct mrt_engine_config config = core_config();
    struct mrt_recipe permits = mrt_mutex;
    permits.kind = "semaphore";
    permits.capacity = 5;
    permits.shared = true;
    config.tickets_max = 1;
    core_open(&core, &config);
    struct mrt_queue *other, *shared;
    assert_int_equal(mrt_engine_queue(core.engine, "other", &mrt_mutex, &other), MORTISE_OK);
    assert_int_equal(mrt_engine_queue(core.engine, "shared", &permits, &shared), MORTISE_OK);
    struct mrt_waiter first = core_waiter(1), second = core_waiter(2), third = core_waiter(3);
    core_grant(&core, &first);
    mrt_engine_acquire(core.engine, other, &second, core.now);
    assert_int_equal(second.state, MRT_WAITER_DONE);
    assert_int_equal(second.error, MORTISE_EFULL);
    second = core_waiter(2);
    mrt_engine_acquire(core.engine, shared, &second, core.now);
    assert_int_equal(second.error, MORTISE_EFULL);
    core_acquire(&core, &third); /* uses the ticket that is there */
    assert_int_equal(third.state, MRT_WAITER_WAITING);
    assert_int_equal(core_release(&core, first.hold, 1), MORTISE_OK);
    core_done(&core, &third, MORTISE_OK);
    assert_int_equal(core_release(&core, third.hold, 3), MORTISE_OK);
    core_settle_all(&core);
    second = core_waiter(2);
    mrt_engine_acquire(core.engine, other, &second, core.now);
    assert_int_equal(second.state, MRT_WAITER_WAITING);
    mrt_queue_put(other);
    mrt_queue_put(shared);
    core_free(&core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_i1_many_waiters_need_one_ticket),
        cmocka_unit_test(
            test_a_waiter_says_whether_it_waits_for_the_store_or_a_thread_of_its_client),
        cmocka_unit_test(test_a_ticket_without_waiters_is_removed),
        cmocka_unit_test(test_i2_with_budget_0_the_ticket_is_removed_before_the_next_thread_runs),
        cmocka_unit_test(test_a5_a_running_thread_may_retake_the_lock),
        cmocka_unit_test(test_a5_a_waiter_of_1_ms_is_handed_the_lock),
        cmocka_unit_test(test_a5_a_newcomer_does_not_overtake_a_waiter_of_1_ms),
        cmocka_unit_test(test_h4_one_waiter_is_woken_at_a_time_and_once),
        cmocka_unit_test(test_h4_a_woken_waiter_that_gives_up_passes_the_wake_on),
        cmocka_unit_test(test_f6_the_last_woken_waiter_gives_the_lock_back),
        cmocka_unit_test(test_a_waiter_that_cannot_barge_is_handed_the_lock),
        cmocka_unit_test(test_a5_strict_is_first_come_first_served),
        cmocka_unit_test(test_the_clock_grants_nothing_past_the_lease),
        cmocka_unit_test(test_a_woken_waiter_that_retries_after_the_lease_is_not_granted),
        cmocka_unit_test(test_i8_a_turn_has_at_most_its_budget_of_grants_while_others_wait),
        cmocka_unit_test(test_i8_a_turn_lasts_at_most_its_budget_of_time_while_others_wait),
        cmocka_unit_test(test_i8_the_first_grant_of_a_turn_is_never_too_late),
        cmocka_unit_test(test_i8_a_turn_that_ends_while_the_lock_lies_free),
        cmocka_unit_test(test_i8_without_other_clients_a_turn_is_renewed_without_a_wait),
        cmocka_unit_test(test_z10_fences_stay_in_the_span_of_the_ticket),
        cmocka_unit_test(test_h2_i5_a_try_needs_the_local_tier_first),
        cmocka_unit_test(test_h2_a_woken_try_fails_if_another_thread_took_the_lock),
        cmocka_unit_test(test_h2_a_try_behind_a_waiter_whose_session_starts),
        cmocka_unit_test(test_h2_a_try_takes_a_lock_that_lies_free),
        cmocka_unit_test(test_e2_a_recipe_that_does_not_nest),
        cmocka_unit_test(test_b2_b3_a_claim_is_asked_for_again_at_each_wake),
        cmocka_unit_test(test_b1_only_the_exclusive_lock_is_a_claim),
        cmocka_unit_test(test_one_name_is_one_queue_of_one_recipe),
        cmocka_unit_test(test_queues_nobody_refers_to_are_freed),
        cmocka_unit_test(test_a_queue_is_used_again_before_it_is_freed),
        cmocka_unit_test(test_f3_deadlines_of_many_waiters),
        cmocka_unit_test(test_a_client_has_tickets_max_tickets_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
