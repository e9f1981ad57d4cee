/* SPDX-License-Identifier: Apache-2.0 */
/* Elections: who leads, what is told of it and in which order, and who observes. */
#include "api_two.h"
#ifdef MRT_DEFECTS
#include "defect_run.h"
#endif

#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define EVENTS_MAX 4096
#ifdef MRT_DEFECTS
#define LONG_ENOUGH_MS 3000 /* what is waited for does not come */
#else
#define LONG_ENOUGH_MS 60000
#endif

/* The callbacks of a candidate, in order. */
struct record {
    _Atomic int count;
    struct {
        char kind; /* 'e'lected, 'd'eposed, 'c'ampaign ended */
        uint64_t fence;
        int error;
    } events[EVENTS_MAX];
};

/* The newest callback of an observer. */
struct sight {
    pthread_mutex_t mutex;
    mortise_leader leader;
    int count;
};

static void note(struct record *record, char kind, uint64_t fence, int error)
{
    int place = atomic_load(&record->count);
    check(place < EVENTS_MAX);
    record->events[place].kind = kind;
    record->events[place].fence = fence;
    record->events[place].error = error;
    atomic_store(&record->count, place + 1);
}

static void elected(void *argument, uint64_t fence)
{
    note(argument, 'e', fence, 0);
}

static void deposed(void *argument, uint64_t fence)
{
    note(argument, 'd', fence, 0);
}

static void campaigned(void *argument, int error)
{
    note(argument, 'c', 0, error);
}

static void await(struct record *record, int count)
{
    int64_t begin = mortise_now_ns();
    while (atomic_load(&record->count) < count) {
        check(api_ms_since(begin) < LONG_ENOUGH_MS);
        api_sleep_ms(1);
    }
}

static void expect(const struct record *record, const char *kinds)
{
    check((int)strlen(kinds) == atomic_load(&record->count));
    for (int i = 0; kinds[i]; i++)
        check(record->events[i].kind == kinds[i]);
}

static mortise_election *candidate(mortise_client *of, const char *name, const char *value,
                                   struct record *record)
{
    const mortise_election_options options = {.size = sizeof options,
                                              .value = value,
                                              .value_size = strlen(value),
                                              .elected = record ? elected : NULL,
                                              .deposed = record ? deposed : NULL,
                                              .argument = record};
    mortise_election *election = NULL;
    check(mortise_election_new(of, name, &options, &election) == MORTISE_OK);
    return election;
}

static bool shows(mortise_election *election, const char *value, uint64_t fence)
{
    mortise_leader leader;
    check(mortise_election_leader(election, &leader) == MORTISE_OK);
    return leader.size == strlen(value) && memcmp(leader.value, value, leader.size) == 0 &&
           (fence == 0 || leader.fence == fence);
}

/* A proclaimed value takes time to arrive. */
static void await_leader(mortise_election *election, const char *value, uint64_t fence)
{
    int64_t begin = mortise_now_ns();
    while (!shows(election, value, fence))
        check(api_ms_since(begin) < LONG_ENOUGH_MS);
}

static void seen(void *argument, const mortise_leader *leader)
{
    struct sight *sight = argument;
    pthread_mutex_lock(&sight->mutex);
    sight->leader = *leader;
    sight->count++;
    pthread_mutex_unlock(&sight->mutex);
}

/* Waits until an observer has seen this; fence 0: nobody. */
static void await_sight(struct sight *sight, const char *value, uint64_t fence)
{
    int64_t begin = mortise_now_ns();
    for (bool found = false; !found; api_sleep_ms(1)) {
        pthread_mutex_lock(&sight->mutex);
        found = sight->count > 0 && sight->leader.fence == fence &&
                sight->leader.size == strlen(value) &&
                memcmp(sight->leader.value, value, sight->leader.size) == 0;
        pthread_mutex_unlock(&sight->mutex);
        check(found || api_ms_since(begin) < LONG_ENOUGH_MS);
    }
}

/* ------------------------------------------------------------------ leading */

static void test_g1_g4_one_leads_and_the_next_follows(void **state)
{
    (void)state;
    struct record records[3] = {0};
    mortise_election *one = candidate(client, "next", "one", &records[0]);
    mortise_election *two = candidate(other, "next", "two", &records[1]);
    mortise_election *three = candidate(client, "next", "three", &records[2]);
    mortise_leader leader;
    bool in_order = api_queues(); /* else the third comes when the second leads */
    assert_int_equal(mortise_election_leader(three, &leader), MORTISE_ENOLEADER);
    assert_int_equal(mortise_election_campaign(one, -1), MORTISE_OK);
    uint64_t fence = mortise_election_fence(one);
    assert_true(fence > 0);
    assert_int_equal(mortise_election_is_leader(one), 1);
    assert_int_equal(mortise_election_campaign_async(two, INT64_MAX, campaigned, &records[1]), 0);
    api_await_tickets(client, "next", 2);
    if (in_order)
        assert_int_equal(mortise_election_campaign_async(three, INT64_MAX, NULL, NULL), 0);
    api_await_tickets(client, "next", 2 + in_order);
    assert_int_equal(mortise_election_is_leader(two), 0);
    assert_int_equal(mortise_election_fence(two), 0);
    await_leader(three, "one", fence);
    assert_int_equal(mortise_election_resign(one), MORTISE_OK);
    assert_int_equal(mortise_election_is_leader(one), 0);
    await(&records[1], 2);
    expect(&records[1], "ec");
    assert_int_equal(records[1].events[1].error, MORTISE_OK);
    assert_int_equal(records[1].events[0].fence, mortise_election_fence(two));
    assert_true(mortise_election_fence(two) > fence);
    await_leader(one, "two", mortise_election_fence(two));
    if (!in_order)
        assert_int_equal(mortise_election_campaign_async(three, INT64_MAX, NULL, NULL), 0);
    await(&records[0], 2);
    expect(&records[0], "ed");
    assert_int_equal(records[0].events[0].fence, fence);
    assert_int_equal(records[0].events[1].fence, fence);
    assert_int_equal(atomic_load(&records[2].count), 0);
    assert_int_equal(mortise_election_free(two), MORTISE_OK); /* a way to resign */
    expect(&records[1], "ecd");
    await(&records[2], 1);
    assert_int_equal(mortise_election_free(three), MORTISE_OK);
    expect(&records[2], "ed");
    assert_int_equal(mortise_election_free(one), MORTISE_OK);
    expect(&records[0], "ed");
}

static void test_g4_a_leader_proclaims(void **state)
{
    (void)state;
    char value[MORTISE_VALUE_MAX];
    mortise_election *election = candidate(client, "proclaims", "one", NULL);
    mortise_election *looks = candidate(other, "proclaims", "", NULL);
    memset(value, 'v', sizeof value);
    assert_int_equal(mortise_election_proclaim(election, "uno", 3), MORTISE_OK);
    assert_int_equal(mortise_election_campaign(election, -1), MORTISE_OK);
    await_leader(looks, "uno", 0);
    assert_int_equal(mortise_election_proclaim(election, value, sizeof value), MORTISE_OK);
    assert_int_equal(mortise_election_proclaim(election, "due", 3), MORTISE_OK);
    assert_int_equal(mortise_election_proclaim(election, "tre", 3), MORTISE_OK);
    await_leader(election, "tre", mortise_election_fence(election));
    assert_int_equal(mortise_election_proclaim(election, value, sizeof value + 1),
                     MORTISE_EINVALID);
    assert_int_equal(mortise_election_proclaim(election, NULL, 1), MORTISE_EINVALID);
    assert_int_equal(mortise_election_proclaim(election, NULL, 0), MORTISE_OK);
    await_leader(election, "", 0);
    assert_int_equal(mortise_election_campaign_async(looks, INT64_MAX, NULL, NULL), MORTISE_OK);
    api_await_tickets(client, "proclaims", 2);
    assert_int_equal(mortise_election_proclaim(looks, "four", 4), MORTISE_OK); /* while waiting */
    assert_int_equal(mortise_election_free(election), MORTISE_OK);
    int64_t begin = mortise_now_ns();
    while (!mortise_election_is_leader(looks))
        check(api_ms_since(begin) < LONG_ENOUGH_MS);
    await_leader(looks, "four", mortise_election_fence(looks));
    assert_int_equal(mortise_election_free(looks), MORTISE_OK);
}

static void *campaign(void *argument)
{
    return (void *)(intptr_t)mortise_election_campaign(argument, -1);
}

static void test_campaigns_that_time_out_or_are_refused(void **state)
{
    (void)state;
    struct record record = {0};
    mortise_election *leads = candidate(other, "nothing", "", NULL);
    mortise_election *election = candidate(client, "nothing", "", &record);
    assert_int_equal(mortise_election_resign(election), MORTISE_ENOTHELD);
    assert_int_equal(mortise_election_campaign(leads, -1), MORTISE_OK);
    assert_int_equal(mortise_election_campaign(leads, -1), MORTISE_EDEADLOCK);
    assert_int_equal(mortise_election_campaign(election, 0), MORTISE_EBUSY);
    assert_int_equal(mortise_election_campaign(election, 20), MORTISE_ETIMEOUT);
    api_await_tickets(other, "nothing", 1);
    pthread_t thread = api_thread(campaign, election);
    api_await_tickets(other, "nothing", 2);
    assert_int_equal(mortise_election_campaign(election, -1), MORTISE_EDEADLOCK);
    assert_int_equal(mortise_election_resign(election), MORTISE_OK);
    void *result;
    pthread_join(thread, &result);
    assert_int_equal((intptr_t)result, MORTISE_ECANCELLED);
    int64_t soon = mortise_now_ns() + 20 * MS_IN_NS;
    assert_int_equal(mortise_election_campaign_async(election, soon, campaigned, &record), 0);
    assert_int_equal(mortise_election_campaign_async(election, soon, campaigned, &record),
                     MORTISE_EDEADLOCK);
    await(&record, 1);
    expect(&record, "c"); /* and never elected */
    assert_int_equal(record.events[0].error, MORTISE_ETIMEOUT);
    api_await_tickets(other, "nothing", 1); /* so that it is the thread's that is seen next */
    thread = api_thread(campaign, election);
    api_await_tickets(other, "nothing", 2);
    assert_int_equal(mortise_election_free(election), MORTISE_OK);
    pthread_join(thread, &result);
    assert_int_equal((intptr_t)result, MORTISE_ECANCELLED);
    api_await_tickets(other, "nothing", 1);
    assert_int_equal(mortise_election_free(leads), MORTISE_OK);
}

static void test_g4_a_leader_steps_down_and_runs_again(void **state)
{
    (void)state;
    enum { ROUNDS = 40 };
    struct record *record = calloc(1, sizeof *record);
    mortise_election *election = candidate(client, "again", "", record);
    for (int i = 0; i < ROUNDS; i++) {
        check(mortise_election_campaign(election, -1) == MORTISE_OK);
        check(mortise_election_resign(election) == MORTISE_OK);
    }
    assert_int_equal(mortise_election_free(election), MORTISE_OK);
    assert_int_equal(record->count, 2 * ROUNDS);
    for (int i = 0; i < ROUNDS; i++) {
        assert_int_equal(record->events[2 * i].kind, 'e');
        assert_int_equal(record->events[2 * i + 1].kind, 'd');
        assert_int_equal(record->events[2 * i].fence, record->events[2 * i + 1].fence);
        assert_true(i == 0 || record->events[2 * i].fence > record->events[2 * i - 2].fence);
    }
    free(record);
}

/* Runs again from inside its own callbacks, for some terms. */
struct runner {
    mortise_election *election;
    struct record record;
    int terms;
};

static void resigns(void *argument, uint64_t fence)
{
    struct runner *runner = argument;
    note(&runner->record, 'e', fence, 0);
    check(mortise_election_campaign(runner->election, -1) == MORTISE_EDEADLOCK);
    check(mortise_election_free(runner->election) == MORTISE_EDEADLOCK);
    check(mortise_election_is_leader(runner->election));
    check(mortise_election_resign(runner->election) == MORTISE_OK);
    if (runner->terms-- > 0) /* before deposed is called */
        check(mortise_election_campaign_async(runner->election, INT64_MAX, NULL, NULL) == 0);
}

static void is_deposed(void *argument, uint64_t fence)
{
    struct runner *runner = argument;
    note(&runner->record, 'd', fence, 0);
}

static void test_g4_callbacks_may_resign_and_run_again(void **state)
{
    (void)state;
    static struct runner runner = {.terms = 9};
    const mortise_election_options options = {
        .size = sizeof options, .elected = resigns, .deposed = is_deposed, .argument = &runner};
    assert_int_equal(mortise_election_new(client, "inside", &options, &runner.election), 0);
    assert_int_equal(mortise_election_campaign_async(runner.election, INT64_MAX, NULL, NULL), 0);
    await(&runner.record, 20);
    expect(&runner.record, "edededededededededed");
    assert_int_equal(mortise_election_free(runner.election), MORTISE_OK);
}

/* ------------------------------------------------------------------ observing */

static void test_an_observer_sees_every_leader(void **state)
{
    (void)state;
    struct sight sight = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    mortise_election *one = candidate(client, "seen", "one", NULL);
    mortise_election *two = candidate(client, "seen", "two", NULL);
    mortise_election *looks = candidate(other, "seen", "", NULL); /* and never runs */
    assert_int_equal(mortise_election_observe(looks, seen, &sight), MORTISE_OK);
    await_sight(&sight, "", 0);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(mortise_election_campaign(one, -1), MORTISE_OK);
        await_sight(&sight, "one", mortise_election_fence(one));
        assert_int_equal(mortise_election_campaign_async(two, INT64_MAX, NULL, NULL), MORTISE_OK);
        api_await_tickets(other, "seen", 2);
        assert_int_equal(mortise_election_resign(one), MORTISE_OK);
        int64_t begin = mortise_now_ns();
        while (!mortise_election_is_leader(two))
            check(api_ms_since(begin) < LONG_ENOUGH_MS);
        await_sight(&sight, "two", mortise_election_fence(two));
        assert_int_equal(mortise_election_proclaim(two, "dos", 3), MORTISE_OK);
        await_sight(&sight, "dos", mortise_election_fence(two));
        assert_int_equal(mortise_election_proclaim(two, "two", 3), MORTISE_OK);
        await_sight(&sight, "two", mortise_election_fence(two));
        assert_int_equal(mortise_election_resign(two), MORTISE_OK);
        await_sight(&sight, "", 0);
    }
    assert_int_equal(mortise_election_observe(looks, NULL, NULL), MORTISE_OK);
    int count = sight.count;
    assert_int_equal(mortise_election_campaign(one, -1), MORTISE_OK);
    await_leader(looks, "one", 0);
    assert_int_equal(sight.count, count);
    assert_int_equal(mortise_election_observe(looks, seen, &sight), MORTISE_OK);
    await_sight(&sight, "one", mortise_election_fence(one));
    assert_int_equal(mortise_election_free(looks), MORTISE_OK); /* while it observes */
    assert_int_equal(mortise_election_free(one), MORTISE_OK);
    assert_int_equal(mortise_election_free(two), MORTISE_OK);
}

static void test_a_leader_may_observe_itself(void **state)
{
    (void)state;
    struct sight sight = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    mortise_election *election = candidate(client, "itself", "me", NULL);
    assert_int_equal(mortise_election_observe(election, seen, &sight), MORTISE_OK);
    assert_int_equal(mortise_election_campaign(election, -1), MORTISE_OK);
    await_sight(&sight, "me", mortise_election_fence(election));
    assert_int_equal(mortise_election_free(election), MORTISE_OK);
}

/* ------------------------------------------------------------------ ends */

static void test_g4_a_close_ends_the_term_and_the_campaign(void **state)
{
    (void)state;
    struct record leads = {0}, waits = {0};
    struct sight sight = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    mortise_client *closing = api_open(0);
    mortise_election *first = candidate(closing, "close", "", &leads);
    mortise_election *second = candidate(closing, "close", "", &waits);
    assert_int_equal(mortise_election_campaign(first, -1), MORTISE_OK);
    assert_int_equal(mortise_election_campaign_async(second, INT64_MAX, campaigned, &waits), 0);
    assert_int_equal(mortise_election_observe(second, seen, &sight), MORTISE_OK);
    api_await_tickets(client, "close", 2);
    api_close(closing);
    expect(&leads, "ed");
    expect(&waits, "c");
    assert_int_equal(waits.events[0].error, MORTISE_ECLOSED);
    api_await_tickets(client, "close", 0);
}

static void test_elections_work_on_a_foreign_loop(void **state)
{
    (void)state;
    struct record record = {0};
    struct sight sight = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    mortise_client *foreign = api_open(MORTISE_FOREIGN_LOOP);
    mortise_election *election = candidate(foreign, "foreign", "here", &record);
    assert_int_equal(mortise_election_observe(election, seen, &sight), MORTISE_OK);
    assert_int_equal(mortise_election_campaign(election, -1), MORTISE_OK);
    int64_t begin = mortise_now_ns();
    while (record.count < 1 || sight.leader.fence == 0) {
        check(api_ms_since(begin) < LONG_ENOUGH_MS);
        assert_int_equal(mortise_process(foreign), MORTISE_OK);
    }
    assert_int_equal(sight.leader.fence, mortise_election_fence(election));
    assert_int_equal(mortise_election_free(election), MORTISE_OK);
    expect(&record, "ed");
    api_close(foreign);
}

static void test_the_hold_of_a_term_ends_with_it(void **state)
{
    (void)state;
    mortise_election *election;
    mortise_hold hold;
    assert_int_equal(mortise_election_new(client, "hold", NULL, &election), MORTISE_OK);
    assert_int_equal(mortise_election_hold(election, &hold), MORTISE_ENOTHELD);
    assert_int_equal(mortise_election_campaign(election, -1), MORTISE_OK);
    assert_int_equal(mortise_election_hold(election, NULL), MORTISE_EINVALID);
    assert_int_equal(mortise_election_hold(NULL, &hold), MORTISE_EINVALID);
    assert_int_equal(mortise_election_hold(election, &hold), MORTISE_OK);
    assert_int_equal(mortise_hold_fence(hold), mortise_election_fence(election));
    assert_true(mortise_is_held(hold));
    assert_int_equal(mortise_verify(hold, 20000), MORTISE_OK);
    assert_int_equal(mortise_election_resign(election), MORTISE_OK);
    assert_false(mortise_is_held(hold));
    assert_int_equal(mortise_election_hold(election, &hold), MORTISE_ENOTHELD);
    assert_int_equal(mortise_election_free(election), MORTISE_OK);
}

static void test_wrong_arguments_of_elections_are_refused(void **state)
{
    (void)state;
    mortise_election *election, *same;
    mortise_leader leader;
    mortise_lock *lock = api_lock(client, "kind");
    mortise_election_options options = {.size = 1};
    assert_int_equal(mortise_election_new(client, "kind", NULL, &election), MORTISE_EMISMATCH);
    assert_non_null(strstr(mortise_error_detail(), "kind"));
    assert_int_equal(mortise_election_new(client, "", NULL, &election), MORTISE_ENAME);
    assert_int_equal(mortise_election_new(NULL, "x", NULL, &election), MORTISE_EINVALID);
    assert_int_equal(mortise_election_new(client, "x", NULL, NULL), MORTISE_EINVALID);
    assert_int_equal(mortise_election_new(client, "x", &options, &election), MORTISE_EINVALID);
    options.size = sizeof options + 1;
    assert_int_equal(mortise_election_new(client, "x", &options, &election), MORTISE_EINVALID);
    /* An older program's, which says nothing of what comes behind. */
    options = (mortise_election_options){.size = sizeof options.size, .value_size = 1};
    assert_int_equal(mortise_election_new(client, "x", &options, &election), MORTISE_OK);
    assert_int_equal(mortise_election_free(election), MORTISE_OK);
    options = (mortise_election_options){.size = sizeof options, .value_size = 1};
    assert_int_equal(mortise_election_new(client, "x", &options, &election), MORTISE_EINVALID);
    assert_int_equal(mortise_election_new(client, "x", NULL, &election), MORTISE_OK);
    assert_int_equal(mortise_election_new(client, "x", NULL, &same), MORTISE_OK);
    assert_int_equal(mortise_election_leader(election, NULL), MORTISE_EINVALID);
    assert_int_equal(mortise_election_leader(NULL, &leader), MORTISE_EINVALID);
    assert_int_equal(mortise_election_campaign(NULL, 0), MORTISE_EINVALID);
    assert_int_equal(mortise_election_campaign_async(NULL, 0, NULL, NULL), MORTISE_EINVALID);
    assert_int_equal(mortise_election_resign(NULL), MORTISE_EINVALID);
    assert_int_equal(mortise_election_is_leader(NULL), 0);
    assert_int_equal(mortise_election_free(NULL), MORTISE_OK);
    assert_int_equal(mortise_election_free(election), MORTISE_OK);
    assert_int_equal(mortise_election_free(same), MORTISE_OK);
    mortise_lock_free(lock);
}

/* ------------------------------------------------------------------ contests */

struct race {
    struct api_history *history;
    _Atomic int terms;
};

static void *race(void *argument)
{
    struct race *contest = argument;
    mortise_client *own = api_open(0);
    mortise_election *election = candidate(own, "race", "", NULL);
    for (int i = 0; i < 10; i++) {
        check(mortise_election_campaign(election, -1) == MORTISE_OK);
        struct api_period *period =
            &contest->history->periods[atomic_fetch_add(&contest->terms, 1)];
        *period = (struct api_period){.fence = mortise_election_fence(election),
                                      .begin = mortise_now_ns()};
        check(mortise_election_is_leader(election));
        period->end = mortise_now_ns();
        check(mortise_election_resign(election) == MORTISE_OK);
    }
    check(mortise_election_free(election) == MORTISE_OK);
    api_close(own);
    return NULL;
}

static void test_g1_terms_do_not_overlap(void **state)
{
    (void)state;
    struct race contest = {.history = api_history_new(80)};
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        threads[i] = api_thread(race, &contest);
    for (int i = 0; i < 8; i++)
        api_join(threads[i]);
    contest.history->count = (size_t)contest.terms;
    api_history_check(contest.history, 80);
}

/* A leader in a process of its own; `leads` tells when it does. */
static pid_t fork_leader(atomic_bool *leads)
{
    pid_t child = fork();
    check(child >= 0);
    if (child > 0)
        return child;
    mortise_client *own = api_open(0);
    mortise_election *election = candidate(own, "killed", "child", NULL);
    check(mortise_election_campaign(election, -1) == MORTISE_OK);
    atomic_store(leads, true);
    for (;;)
        pause();
}

static void test_g3_the_next_leads_when_the_leader_is_killed(void **state)
{
    (void)state;
    if (!api_spans_processes())
        skip();
    struct sight sight = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    atomic_bool *leads =
        mmap(NULL, sizeof *leads, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(leads != MAP_FAILED);
    for (int with_next = 1; with_next >= 0; with_next--) {
        atomic_store(leads, false);
        pid_t child = fork_leader(leads);
        while (!atomic_load(leads))
            api_sleep_ms(1);
        mortise_client *own = api_open(0);
        mortise_election *next = candidate(own, "killed", "next", NULL);
        assert_int_equal(mortise_election_observe(next, seen, &sight), MORTISE_OK);
        mortise_leader leader;
        assert_int_equal(mortise_election_leader(next, &leader), MORTISE_OK);
        await_sight(&sight, "child", leader.fence);
        if (with_next)
            assert_int_equal(mortise_election_campaign_async(next, INT64_MAX, NULL, NULL), 0);
        api_kill(child);
        int64_t begin = mortise_now_ns();
        while (with_next && !mortise_election_is_leader(next))
            check(api_ms_since(begin) < LONG_ENOUGH_MS);
        if (with_next)
            await_sight(&sight, "next", mortise_election_fence(next));
        else
            await_sight(&sight, "", 0); /* nobody else was there to find it dead */
        assert_int_equal(mortise_election_free(next), MORTISE_OK);
        api_close(own);
    }
    munmap(leads, sizeof *leads);
}

static void test_a_forked_child_cannot_end_its_parents_term(void **state)
{
    (void)state;
    mortise_client *own = api_open(0);
    mortise_election *election = candidate(own, "forked", "parent", NULL);
    assert_int_equal(mortise_election_campaign(election, -1), MORTISE_OK);
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        mortise_leader leader;
        check(mortise_election_is_leader(election) == 0);
        check(mortise_election_resign(election) == MORTISE_EFORKED);
        check(mortise_election_leader(election, &leader) == MORTISE_EFORKED);
        check(mortise_election_free(election) == MORTISE_EFORKED);
        check(mortise_close(own) == MORTISE_OK);
        _exit(0);
    }
    int status;
    check(waitpid(child, &status, 0) == child);
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    await_leader(election, "parent", mortise_election_fence(election));
    api_close(own);
}

static const struct CMUnitTest alone[] = {
    cmocka_unit_test(test_g3_the_next_leads_when_the_leader_is_killed),
    cmocka_unit_test(test_a_forked_child_cannot_end_its_parents_term),
};
static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_g1_g4_one_leads_and_the_next_follows),
    cmocka_unit_test(test_g4_a_leader_proclaims),
    cmocka_unit_test(test_campaigns_that_time_out_or_are_refused),
    cmocka_unit_test(test_g4_a_leader_steps_down_and_runs_again),
    cmocka_unit_test(test_g4_callbacks_may_resign_and_run_again),
    cmocka_unit_test(test_an_observer_sees_every_leader),
    cmocka_unit_test(test_a_leader_may_observe_itself),
    cmocka_unit_test(test_g4_a_close_ends_the_term_and_the_campaign),
    cmocka_unit_test(test_elections_work_on_a_foreign_loop),
    cmocka_unit_test(test_the_hold_of_a_term_ends_with_it),
    cmocka_unit_test(test_wrong_arguments_of_elections_are_refused),
    cmocka_unit_test(test_g1_terms_do_not_overlap),
};

static int run_all(void)
{
    int failed = cmocka_run_group_tests(alone, NULL, NULL);
    return failed + cmocka_run_group_tests(tests, open_clients, close_clients);
}

#ifdef MRT_DEFECTS

int main(int argc, char **argv)
{
    int error = api_begin(argc, argv);
    return error ? error : api_end(defect_run("api_election", run_all));
}

#else

int main(int argc, char **argv)
{
    int error = api_begin(argc, argv);
    return error ? error : api_end(run_all());
}

#endif
