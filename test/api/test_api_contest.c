/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contests: many contenders on one lock, and a history of who held it when.
 *
 * On a store that spans processes each contender's client lives in a process of its own,
 * forked while no client is open here; else in a thread.
 */
#include "api_fixture.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Threads of one client. */
struct team {
    const struct contest *contest;
    size_t number;
    mortise_lock *lock; /* shared */
};

struct contest {
    const char *name;
    size_t teams, threads, rounds;
    int64_t pause_ms; /* at most, before each round */
    int64_t hold_ms;  /* at least; at most twice that */
    struct api_history *history;
};

struct contender {
    const struct team *team;
    size_t number;
};

/* Spread over 0 .. below, differently for each. */
static int64_t spread(size_t number, size_t round, int64_t below)
{
    return below > 0 ? (int64_t)((number * 7919 + round * 104729 + 31) % (size_t)below) : 0;
}

static void *contend(void *argument)
{
    const struct contender *self = argument;
    const struct contest *contest = self->team->contest;
    size_t number = self->team->number * contest->threads + self->number;
    for (size_t round = 0; round < contest->rounds; round++) {
        if (contest->pause_ms > 0)
            api_sleep_ms(spread(number, round, contest->pause_ms));
        mortise_hold hold = api_acquire(self->team->lock);
        api_history_hold(contest->history, hold,
                         contest->hold_ms + spread(number, round, contest->hold_ms));
        api_release(hold);
    }
    return NULL;
}

static void *play(void *argument)
{
    struct team *team = argument;
    mortise_client *client = api_open(0);
    struct contender contenders[64];
    pthread_t threads[64];
    team->lock = api_lock(client, team->contest->name);
    for (size_t i = 0; i < team->contest->threads; i++) {
        contenders[i] = (struct contender){team, i};
        threads[i] = api_thread(contend, &contenders[i]);
    }
    for (size_t i = 0; i < team->contest->threads; i++)
        api_join(threads[i]);
    api_close(client);
    return NULL;
}

static pid_t play_in_child(struct team *team)
{
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        play(team);
        _exit(0);
    }
    return child;
}

static void expect_success(pid_t child)
{
    int status;
    check(waitpid(child, &status, 0) == child);
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void hold_contest(struct contest *contest)
{
    static struct team teams[64];
    pthread_t threads[64];
    pid_t children[64];
    size_t expected = contest->teams * contest->threads * contest->rounds;
    contest->history = api_history_new(expected);
    for (size_t i = 0; i < contest->teams; i++) {
        teams[i] = (struct team){.contest = contest, .number = i};
        if (api_spans_processes())
            children[i] = play_in_child(&teams[i]);
        else
            threads[i] = api_thread(play, &teams[i]);
    }
    for (size_t i = 0; i < contest->teams; i++) {
        if (api_spans_processes())
            expect_success(children[i]);
        else
            api_join(threads[i]);
    }
    api_history_check(contest->history, expected);
    mortise_client *client = api_open(0);
    assert_int_equal(api_tickets(client, contest->name), 0);
    api_close(client);
}

static void test_h11_50_contenders_with_their_own_objects(void **state)
{
    (void)state;
    struct contest contest = {.name = "h11", .teams = 50, .threads = 1, .rounds = 1};
    contest.pause_ms = api_full() ? 1000 : 100;
    contest.hold_ms = api_full() ? 100 : 10;
    hold_contest(&contest);
}

static void test_i4_50_threads_share_one_object(void **state)
{
    (void)state;
    struct contest contest = {.name = "i4", .teams = 1, .threads = 50, .rounds = 1};
    contest.pause_ms = api_full() ? 1000 : 100;
    contest.hold_ms = api_full() ? 100 : 10;
    hold_contest(&contest);
}

static void test_a8_processes_times_threads(void **state)
{
    (void)state;
    struct contest contest = {.name = "a8", .teams = 4, .threads = 4, .rounds = 25};
    hold_contest(&contest);
}

/* ------------------------------------------------------------------- fairness */

struct turn {
    _Atomic int *order;
    int place;
    _Atomic int done;
};

static void take_turn(void *argument, int error, mortise_hold hold)
{
    struct turn *turn = argument;
    check(error == MORTISE_OK);
    turn->place = atomic_fetch_add(turn->order, 1);
    api_release(hold);
    atomic_store(&turn->done, 1);
}

static mortise_lock *queued_lock(mortise_client *client, const char *name, bool exclusive)
{
    mortise_lock *lock = NULL;
    if (!exclusive)
        return api_lock(client, name);
    check(mortise_exclusive_new(client, name, NULL, &lock) == MORTISE_OK);
    return lock;
}

static void serve_in_order(const char *name, bool exclusive)
{
    enum { CLIENTS = 50 };
    mortise_client *holder = api_open(0), *clients[CLIENTS];
    mortise_hold hold = api_acquire(queued_lock(holder, name, exclusive));
    _Atomic int order = 0;
    struct turn turns[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = api_open(0);
        turns[i] = (struct turn){.order = &order};
        check(mortise_acquire_async(queued_lock(clients[i], name, exclusive), INT64_MAX, take_turn,
                                    &turns[i], NULL) == MORTISE_OK);
        api_await_tickets(holder, name, i + 2);
    }
    api_release(hold);
    int64_t begin = mortise_now_ns();
    for (int i = 0; i < CLIENTS; i++) {
        while (!atomic_load(&turns[i].done)) {
            assert_true(api_ms_since(begin) < api_await_ms);
            api_sleep_ms(1);
        }
        assert_int_equal(turns[i].place, i);
        api_close(clients[i]);
    }
    api_close(holder);
}

static void test_a5_c2_j6_50_clients_are_served_in_queue_order(void **state)
{
    (void)state;
    if (!api_queues())
        skip();
    serve_in_order("a5", false);
}

static void test_a5_j6_exclusive_waiters_are_served_in_order_where_the_store_says_so(void **state)
{
    (void)state;
    mortise_client *client = api_open(0);
    mortise_capabilities can = {.size = sizeof can};
    check(mortise_get_capabilities(client, &can) == MORTISE_OK);
    api_close(client);
    if (!can.exclusive_fair)
        skip();
    serve_in_order("a5/exclusive", true);
}

/* Both sides of i3, in memory that children share. */
struct share {
    bool verify; /* each busy one asks the store while it holds */
    _Atomic bool over;
    _Atomic int inside;
    _Atomic uint64_t grants, tickets; /* of the busy ones; changed by the holder of the lock */
    uint64_t last_fence;
};

static void be_busy_once(struct share *share, mortise_lock *lock)
{
    mortise_hold hold = api_acquire(lock);
    uint64_t fence = mortise_hold_fence(hold);
    check(atomic_fetch_add(&share->inside, 1) == 0);
    atomic_fetch_add(&share->grants, 1);
    if (fence != share->last_fence + 1) /* else it was handed over */
        atomic_fetch_add(&share->tickets, 1);
    share->last_fence = fence;
    if (share->verify)
        check(mortise_verify(hold, 60000) == MORTISE_OK);
    check(atomic_fetch_sub(&share->inside, 1) == 1);
    api_release(hold);
}

struct worker {
    struct share *share;
    mortise_lock *lock;
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    while (!atomic_load(&worker->share->over))
        be_busy_once(worker->share, worker->lock);
    return NULL;
}

static void *work_busily(void *argument)
{
    mortise_client *client = api_open(0);
    struct worker worker = {argument, api_lock(client, "i3")};
    pthread_t threads[50];
    for (size_t i = 0; i < 50; i++)
        threads[i] = api_thread(work, &worker);
    for (size_t i = 0; i < 50; i++)
        api_join(threads[i]);
    api_close(client);
    return NULL;
}

/* One wait of the single client: how many turns the busy ones had when it was queued. */
struct wait {
    const struct share *share;
    _Atomic bool queued;
    _Atomic uint64_t grants, tickets;
};

static void note_queued(void *argument, uint64_t ahead)
{
    struct wait *wait = argument;
    check(ahead > 0);
    if (atomic_load(&wait->queued))
        return; /* its place has changed */
    atomic_store(&wait->grants, atomic_load(&wait->share->grants));
    atomic_store(&wait->tickets, atomic_load(&wait->share->tickets));
    atomic_store(&wait->queued, true);
}

struct turns {
    uint64_t sum, longest; /* grants of the busy ones in a wait of the single one's */
};

/* Whether it had to wait: the handle is of this wait alone, so no call of another is taken for it.
 */
static bool wait_once(mortise_client *client, struct wait *wait, struct turns *turns)
{
    const mortise_lock_options options = {
        .size = sizeof options, .queued = note_queued, .queued_argument = wait};
    mortise_lock *lock = NULL;
    check(mortise_mutex_new(client, "i3", &options, &lock) == MORTISE_OK);
    mortise_hold hold;
    check(mortise_acquire_for(lock, 60000, &hold) == MORTISE_OK);
    check(atomic_load(&wait->share->inside) == 0);
    bool waited = atomic_load(&wait->queued);
    uint64_t grants = waited ? wait->share->grants - wait->grants : 0;
    if (waited) /* the ticket ahead, which may not have been used before; no later one */
        check(wait->share->tickets - wait->tickets <= 1);
    turns->sum += grants;
    turns->longest = grants > turns->longest ? grants : turns->longest;
    api_release(hold);
    return waited;
}

#define WAITS 30

/* A client that finds the lock free tries again when it is in use again. */
static void await_grant(const struct share *share)
{
    uint64_t before = atomic_load(&share->grants);
    int64_t begin = mortise_now_ns();
    while (atomic_load(&share->grants) == before) {
        check(api_ms_since(begin) < 60000);
        sched_yield();
    }
}

static struct turns wait_among_busy_ones(const struct share *share)
{
    static struct wait waits[100 * WAITS];
    struct turns turns = {0};
    mortise_client *client = api_open(0);
    memset(waits, 0, sizeof waits);
    await_grant(share);
    for (size_t i = 0, waited = 0; waited < WAITS; i++) {
        check(i < sizeof waits / sizeof waits[0]);
        waits[i].share = share;
        if (wait_once(client, &waits[i], &turns))
            waited++;
        else
            await_grant(share);
    }
    api_close(client); /* which frees the handles: no call comes any more */
    return turns;
}

/* The busy ones do not stop before the single one has had its turns. */
static struct turns play_single_and_busy(bool verify)
{
    struct share *share =
        mmap(NULL, sizeof *share, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(share != MAP_FAILED);
    share->verify = verify;
    pthread_t thread = 0;
    pid_t child = api_spans_processes() ? fork() : 1;
    check(child >= 0);
    if (child == 0) {
        work_busily(share);
        _exit(0);
    }
    if (!api_spans_processes())
        thread = api_thread(work_busily, share);
    struct turns turns = wait_among_busy_ones(share);
    atomic_store(&share->over, true);
    if (api_spans_processes())
        expect_success(child);
    else
        api_join(thread);
    print_message("# in %d waits %llu grants of others, in one at most %llu\n", WAITS,
                  (unsigned long long)turns.sum, (unsigned long long)turns.longest);
    munmap(share, sizeof *share);
    return turns;
}

/* A turn lasts about 2 ms while others wait, however many grants that are: some ten thousand. A
   turn as long as 50 ms, at five million grants a second, is far too long, be it only on average.
 */
static void test_i3_a_busy_process_does_not_starve_a_single_one(void **state)
{
    (void)state;
    if (!api_has_fences()) /* by which turns are counted */
        skip();
    struct turns turns = play_single_and_busy(false);
    assert_true(turns.sum > 0);
    assert_true(turns.sum < WAITS * UINT64_C(250000));
    assert_true(turns.longest < UINT64_C(5000000));
}

/* A client that has seen that others wait hands the lock on inside its process 16 times at most.
   Each holder sees it, but for one that had been granted the lock before and had not yet counted.
 */
static void test_i3_a_turn_ends_after_16_grants(void **state)
{
    (void)state;
    if (!api_has_fences())
        skip();
    struct turns turns = play_single_and_busy(true);
    assert_true(turns.sum > 0);
    assert_true(turns.longest <= 1 + 16);
}

/* ---------------------------------------------------------------------- death */

struct heir {
    mortise_lock *lock;
    int64_t held_at;
    uint64_t fence;
};

static void *inherit(void *argument)
{
    struct heir *heir = argument;
    mortise_hold hold;
    check(mortise_acquire_for(heir->lock, 60000, &hold) == MORTISE_OK);
    heir->held_at = mortise_now_ns();
    heir->fence = mortise_hold_fence(hold);
    api_release(hold);
    return NULL;
}

/* In a second, and a lease where the store has one: one of several attempts at least. On NATS a
   client has to have lived for a lease itself before it takes another for dead. */
static void test_a6_a_killed_holders_lock_goes_to_the_next(void **state)
{
    (void)state;
    uint64_t last = 0;
    if (!api_spans_processes())
        skip();
    int64_t lease_ms = api_lease_ms(), best = INT64_MAX;
    int64_t most = strncmp(api_url, "nats:", 5) == 0 ? 2 * lease_ms + 2000 : lease_ms + 1000;
    for (int i = 0; i < (lease_ms ? 2 : 5) || (i < 12 && best >= most); i++) {
        pid_t child = api_holder_to_be_killed("a6", 0);
        mortise_client *client = api_open(0);
        struct heir heir = {.lock = api_lock(client, "a6")};
        pthread_t thread = api_thread(inherit, &heir);
        api_await_tickets(client, "a6", 2);
        int64_t killed = mortise_now_ns();
        api_kill(child);
        api_join(thread);
        int64_t took = (heir.held_at - killed) / MS_IN_NS;
        best = took < best ? took : best;
        assert_true(heir.fence > last || (heir.fence == 0 && !api_has_fences()));
        last = heir.fence;
        api_close(client);
    }
    assert_true(best < most);
}

/* A hold, and the acquire of another client after it. */
enum { READ_HELD, WRITE_HELD, PERMITS_HELD, EXCLUSIVE_HELD, SHARES };
static const char *const shares[SHARES] = {"d7/read", "d7/write", "d7/permits", "l2"};

static mortise_lock *share_of(mortise_client *client, int share, bool first)
{
    const mortise_lock_options two = {.size = sizeof two, .permits = 2};
    mortise_lock *lock, *read, *write;
    if (share == PERMITS_HELD) {
        check(mortise_semaphore_new(client, shares[share], 3, &two, &lock) == MORTISE_OK);
        return lock;
    }
    if (share == EXCLUSIVE_HELD) {
        check(mortise_exclusive_new(client, shares[share], NULL, &lock) == MORTISE_OK);
        return lock;
    }
    check(mortise_read_write_new(client, shares[share], NULL, &read, &write) == MORTISE_OK);
    return (share == READ_HELD) == first ? read : write;
}

static void hold_shares(const void *argument)
{
    (void)argument;
    mortise_client *client = api_open(0);
    for (int i = 0; i < SHARES; i++)
        api_acquire(share_of(client, i, true));
}

static void test_d7_l2_f13_locks_of_a_killed_process_go_to_the_next(void **state)
{
    (void)state;
    if (!api_spans_processes() || !api_queues())
        skip();
    pid_t child = api_child_to_be_killed(hold_shares, NULL);
    mortise_client *client = api_open(0);
    _Atomic int order = 0;
    struct turn turns[SHARES];
    mortise_capabilities can = {.size = sizeof can};
    check(mortise_get_capabilities(client, &can) == MORTISE_OK);
    for (int i = 0; i < SHARES; i++) {
        turns[i] = (struct turn){.order = &order};
        check(mortise_acquire_async(share_of(client, i, false), INT64_MAX, take_turn, &turns[i],
                                    NULL) == MORTISE_OK);
        api_await_tickets(client, shares[i], i == EXCLUSIVE_HELD && !can.exclusive_fair ? 1 : 2);
    }
    assert_int_equal(order, 0);
    api_kill(child);
    int64_t begin = mortise_now_ns();
    for (int i = 0; i < SHARES; i++)
        while (!atomic_load(&turns[i].done)) {
            assert_true(api_ms_since(begin) < 60000);
            api_sleep_ms(1);
        }
    api_close(client);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_h11_50_contenders_with_their_own_objects),
        cmocka_unit_test(test_i4_50_threads_share_one_object),
        cmocka_unit_test(test_a8_processes_times_threads),
        cmocka_unit_test(test_a5_c2_j6_50_clients_are_served_in_queue_order),
        cmocka_unit_test(test_a5_j6_exclusive_waiters_are_served_in_order_where_the_store_says_so),
        cmocka_unit_test(test_i3_a_busy_process_does_not_starve_a_single_one),
        cmocka_unit_test(test_i3_a_turn_ends_after_16_grants),
        cmocka_unit_test(test_a6_a_killed_holders_lock_goes_to_the_next),
        cmocka_unit_test(test_d7_l2_f13_locks_of_a_killed_process_go_to_the_next),
    };
    int failed = api_begin(argc, argv);
    return failed ? failed : api_end(cmocka_run_group_tests(tests, NULL, NULL));
}
