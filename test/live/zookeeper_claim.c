/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exclusive lock on a real server: one node called `lock`, all who want it, and what may
 * go wrong, made to go wrong by a proxy and by hand. The program itself, run with arguments,
 * is one of many processes that contend.
 */
#include "cmocka_all.h"

#include "live/zk_proxy.h"
#include "live/zk_raw.h"
#include "live/zookeeper_place.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

#define ROOT "/test/root/mortise/"
#define SOON 4000 /* before the look that is behind every wait, each 5 s */
#define LONG 20000

static struct zk_proxy *proxy;
static mortise_client *direct, *through; /* to the server; by way of the proxy */
static struct zk_raw *raw;

static int begin(void **state)
{
    (void)state;
    proxy = zk_proxy_start(zk_place_port());
    direct = zk_open(zk_place_uri(zk_place_port(), "4s"));
    through = zk_open(zk_place_uri(zk_proxy_port(proxy), "4s"));
    raw = zk_raw_open(zk_place_port());
    return 0;
}

static int end(void **state)
{
    (void)state;
    zk_raw_close(raw);
    mortise_close(direct);
    mortise_close(through);
    zk_proxy_stop(proxy);
    return 0;
}

static mortise_lock *exclusive(mortise_client *client, const char *name)
{
    mortise_lock *lock = NULL;
    assert_int_equal(mortise_exclusive_new(client, name, NULL, &lock), MORTISE_OK);
    return lock;
}

static void release(mortise_hold hold)
{
    assert_int_equal(mortise_release(hold), MORTISE_OK);
}

static const char *node_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, ROOT "%s/lock", name);
    return path;
}

static void await_no_node(const char *name)
{
    int64_t until = zk_now_ms() + LONG;
    while (zk_raw_exists(raw, node_of(name)) == ZOK)
        assert_true(zk_now_ms() < until);
}

/* ------------------------------------------------------------ the node */

struct listing {
    int count;
    char kind[32], label[32];
    uint64_t fence;
    uint32_t place;
};

static int note_entry(void *argument, const mortise_entry *entry)
{
    struct listing *listing = argument;
    listing->count++;
    snprintf(listing->kind, sizeof listing->kind, "%s", entry->kind);
    snprintf(listing->label, sizeof listing->label, "%s", entry->label);
    listing->fence = entry->fence;
    listing->place = entry->place;
    return 0;
}

static void test_b1_an_exclusive_lock_is_one_ephemeral_node_called_lock(void **state)
{
    (void)state;
    mortise_client_options options = {.size = sizeof options, .label = "the label"};
    mortise_client *labelled;
    struct listing listing = {0};
    assert_int_equal(mortise_open(zk_place_uri(zk_place_port(), "4s"), &options, &labelled), 0);
    mortise_hold hold = zk_acquire(exclusive(labelled, "one"));
    assert_int_equal(zk_raw_children(raw, ROOT "one"), 1);
    assert_true(zk_raw_owner(raw, ROOT "one/lock") > 0);
    assert_int_equal(mortise_list(direct, NULL, note_entry, &listing), MORTISE_OK);
    assert_int_equal(listing.count, 1);
    assert_string_equal(listing.kind, "exclusive");
    assert_string_equal(listing.label, "the label");
    assert_int_equal(listing.fence, mortise_hold_fence(hold));
    assert_int_equal(listing.place, 0);
    release(hold);
    await_no_node("one");
    assert_int_equal(mortise_close(labelled), MORTISE_OK);
}

static void test_b2_a_try_of_a_held_exclusive_lock_leaves_nothing(void **state)
{
    (void)state;
    mortise_lock *mine = exclusive(direct, "try"), *other = exclusive(through, "try");
    mortise_hold hold, none;
    assert_int_equal(mortise_try_acquire(mine, &hold), MORTISE_OK);
    for (int i = 0; i < 10; i++)
        assert_int_equal(mortise_try_acquire(other, &none), MORTISE_EBUSY);
    assert_int_equal(zk_raw_children(raw, ROOT "try"), 1);
    release(hold);
    await_no_node("try");
    assert_int_equal(mortise_try_acquire(other, &hold), MORTISE_OK);
    release(hold);
    await_no_node("try");
}

static void test_c14_the_directory_is_made_and_a_fence_rises_across_it(void **state)
{
    (void)state;
    mortise_hold hold = zk_acquire(exclusive(direct, "five/levels/of/a/path"));
    uint64_t fence = mortise_hold_fence(hold);
    release(hold);
    await_no_node("five/levels/of/a/path");
    assert_int_equal(zk_raw_delete(raw, ROOT "five/levels/of/a/path"), ZOK);
    hold = zk_acquire(exclusive(through, "five/levels/of/a/path"));
    assert_true(mortise_hold_fence(hold) > fence);
    release(hold);
}

/* ------------------------------------------------------------ many contend */

/* State that the contenders share. */
struct arena {
    atomic_int inside, entered, overlaps, allowed; /* rounds that have been, and may end */
};

static int contend(const char *uri, const char *name, int descriptor)
{
    const struct timespec moment = {.tv_nsec = 500000};
    mortise_client *client;
    mortise_lock *lock;
    mortise_hold hold;
    struct arena *arena =
        mmap(NULL, sizeof *arena, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (arena == MAP_FAILED || mortise_open(uri, NULL, &client) ||
        mortise_exclusive_new(client, name, NULL, &lock))
        return 1;
    for (;;) {
        if (mortise_acquire(lock, &hold))
            return 1;
        arena->overlaps += arena->inside++ > 0;
        int round = ++arena->entered;
        while (arena->allowed < round)
            nanosleep(&moment, NULL);
        arena->inside--;
        if (mortise_release(hold))
            return 1;
    }
}

static pid_t start_contender(const char *name, const char *session, int descriptor)
{
    char number[16];
    snprintf(number, sizeof number, "%d", descriptor);
    const char *uri = zk_place_uri(zk_place_port(), session);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "contend", "contend", uri, name, number, NULL);
        _exit(127);
    }
    return pid;
}

/* It has contended until then. */
static void end_contender(pid_t pid)
{
    int status;
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void test_b2_fifty_processes_race_and_one_succeeds_each_time(void **state)
{
    enum { CONTENDERS = 50, ROUNDS = 20 };
    (void)state;
    pid_t pids[CONTENDERS];
    int descriptor = memfd_create("arena", 0);
    assert_int_equal(ftruncate(descriptor, sizeof(struct arena)), 0);
    struct arena *arena =
        mmap(NULL, sizeof *arena, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    mortise_hold hold = zk_acquire(exclusive(direct, "race"));
    for (int i = 0; i < CONTENDERS; i++)
        pids[i] = start_contender("race", "10s", descriptor);
    while (zk_place_figure("zk_watch_count") < 2) /* theirs is one path, and ours */
        zk_rest_ms(10);
    while (zk_place_figure("zk_num_alive_connections") < CONTENDERS)
        zk_rest_ms(10);
    int64_t owner = zk_raw_owner(raw, ROOT "race/lock");
    assert_int_equal(arena->entered, 0);
    release(hold);
    for (int round = 1; round <= ROUNDS; round++) {
        int64_t until = zk_now_ms() + LONG, next;
        while ((arena->entered < round || arena->inside == 0) && zk_now_ms() < until)
            zk_rest_ms(1);
        assert_int_equal(arena->entered, round);
        assert_int_equal(arena->inside, 1);
        assert_int_equal(zk_raw_children(raw, ROOT "race"), 1);
        next = zk_raw_owner(raw, ROOT "race/lock");
        assert_true(next > 0);
        if (round == 1)
            assert_int_not_equal(next, owner);
        arena->allowed = round;
    }
    for (int i = 0; i < CONTENDERS; i++)
        end_contender(pids[i]);
    assert_int_equal(arena->overlaps, 0);
    close(descriptor);
}

static void test_b4_a_killed_holder_is_followed_by_another(void **state)
{
    (void)state;
    mortise_hold hold;
    int descriptor = memfd_create("arena", 0);
    assert_int_equal(ftruncate(descriptor, sizeof(struct arena)), 0);
    struct arena *arena =
        mmap(NULL, sizeof *arena, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    pid_t pid = start_contender("killed", "2s", descriptor);
    while (arena->entered == 0)
        zk_rest_ms(5);
    assert_int_equal(mortise_try_acquire(exclusive(direct, "killed"), &hold), MORTISE_EBUSY);
    end_contender(pid);
    hold = zk_acquire(exclusive(direct, "killed"));
    release(hold);
    close(descriptor);
}

/* ------------------------------------------------------------ waiting */

struct crowd {
    mortise_client *clients[16];
    atomic_int granted, failed;
    mortise_hold hold;
};

static void on_acquired(void *argument, int error, mortise_hold hold)
{
    struct crowd *crowd = argument;
    if (error == MORTISE_OK) {
        crowd->hold = hold;
        crowd->granted++;
    } else {
        crowd->failed++;
    }
}

static void await_idle(void)
{
    int64_t until = zk_now_ms() + LONG;
    for (int calm = 0; calm < 10; calm++) { /* for 50 ms */
        if (!zk_proxy_is_idle(proxy))
            calm = 0;
        assert_true(zk_now_ms() < until);
        zk_rest_ms(5);
    }
}

/* Requests other than the signs of life. */
static size_t count_requests(void)
{
    enum zk_opcode operations[256];
    size_t count = zk_proxy_trace(proxy, operations, 256), others = 0;
    for (size_t i = 0; i < count && i < 256; i++)
        others += operations[i] != ZK_OP_SYNC && operations[i] != ZK_OP_PING;
    return others;
}

static void test_b3_b5_waiters_do_not_poll_and_a_release_wakes_all(void **state)
{
    enum { WAITERS = 16 };
    (void)state;
    struct crowd crowd = {0};
    mortise_hold hold = zk_acquire(exclusive(direct, "herd"));
    for (int i = 0; i < WAITERS; i++) {
        crowd.clients[i] = zk_open(zk_place_uri(zk_proxy_port(proxy), "10s"));
        mortise_lock *lock = exclusive(crowd.clients[i], "herd");
        assert_int_equal(mortise_acquire_async(lock, INT64_MAX, on_acquired, &crowd, NULL), 0);
    }
    while (zk_proxy_count(proxy, ZK_OP_GET_DATA) < 2 * WAITERS) /* a look, and a watch */
        zk_rest_ms(5);
    await_idle();
    zk_proxy_reset_counts(proxy);
    zk_rest_ms(1500);
    assert_int_equal(count_requests(), 0);
    release(hold);
    while (crowd.granted == 0)
        zk_rest_ms(1);
    await_idle();
    unsigned attempts = zk_proxy_count(proxy, ZK_OP_MULTI);
    print_message("%d wait, %u attempts at a release\n", WAITERS, attempts);
    assert_in_range(attempts, WAITERS, 2 * WAITERS);
    assert_int_equal(crowd.granted, 1);
    assert_int_equal(crowd.failed, 0);
    for (int i = 0; i < WAITERS; i++)
        assert_int_equal(mortise_close(crowd.clients[i]), MORTISE_OK);
    assert_int_equal(crowd.failed, WAITERS - crowd.granted);
    await_no_node("herd");
}

/* ------------------------------------------------------------ what is lost on the way */

/* Loses the answer to a request of a claim or a release, or the request itself. */
static void lose_one(void (*lose)(struct zk_proxy *, enum zk_opcode), enum zk_opcode what,
                     bool of_release, const char *name)
{
    mortise_lock *lock = exclusive(through, name), *other = exclusive(direct, name);
    release(zk_acquire(lock));
    await_no_node(name);
    if (!of_release)
        lose(proxy, what);
    mortise_hold hold = zk_acquire(lock), none;
    assert_int_equal(mortise_try_acquire(other, &none), MORTISE_EBUSY);
    assert_int_equal(mortise_verify(hold, LONG), MORTISE_OK);
    if (of_release)
        lose(proxy, what);
    release(hold);
    release(zk_acquire(other));
    await_no_node(name);
}

static void test_zk_01_lost_answers_of_a_claim(void **state)
{
    (void)state;
    static const enum zk_opcode operations[] = {ZK_OP_MULTI, ZK_OP_GET_CHILDREN, ZK_OP_GET_DATA};
    for (size_t i = 0; i < 3; i++) {
        lose_one(zk_proxy_swallow, operations[i], false, "lost/claim");
        assert_true(zk_proxy_swallowed(proxy));
    }
    lose_one(zk_proxy_drop, ZK_OP_MULTI, false, "lost/claim");
    assert_true(zk_proxy_dropped(proxy));
}

static void test_zk_22_lost_answers_of_a_release(void **state)
{
    (void)state;
    lose_one(zk_proxy_swallow, ZK_OP_MULTI, true, "lost/release");
    assert_true(zk_proxy_swallowed(proxy));
    lose_one(zk_proxy_drop, ZK_OP_MULTI, true, "lost/release");
    assert_true(zk_proxy_dropped(proxy));
}

static void test_zk_21_a_claim_of_unknown_outcome_that_is_given_up(void **state)
{
    (void)state;
    mortise_lock *lock = exclusive(through, "given-up");
    mortise_hold none;
    release(zk_acquire(lock));
    await_no_node("given-up");
    zk_proxy_mute(proxy, true);
    assert_int_equal(mortise_acquire_for(lock, 300, &none), MORTISE_ETIMEOUT);
    assert_int_equal(zk_raw_exists(raw, node_of("given-up")), ZOK);
    zk_proxy_mute(proxy, false);
    zk_proxy_cut(proxy);
    await_no_node("given-up");
}

/* ------------------------------------------------------------ what others do to it */

static void test_zk_13_a_holder_whose_node_is_deleted_loses_the_lock(void **state)
{
    (void)state;
    mortise_hold hold = zk_acquire(exclusive(direct, "deleted"));
    int64_t begin_ms = zk_now_ms();
    assert_int_equal(zk_raw_delete(raw, node_of("deleted")), ZOK);
    while (mortise_is_held(hold))
        assert_true(zk_now_ms() - begin_ms < SOON);
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
}

static void test_z6_zk_42_a_release_deletes_nobody_elses_node(void **state)
{
    (void)state;
    mortise_hold hold = zk_acquire(exclusive(through, "usurped")), other;
    zk_proxy_stall(proxy, true);
    assert_int_equal(zk_raw_delete(raw, node_of("usurped")), ZOK);
    other = zk_acquire(exclusive(direct, "usurped"));
    release(hold); /* it has not heard of it */
    zk_proxy_stall(proxy, false);
    assert_int_equal(mortise_release(zk_acquire(exclusive(through, "usurped/next"))), MORTISE_OK);
    await_idle();
    assert_int_equal(mortise_verify(other, LONG), MORTISE_OK);
    release(other);
}

static void test_z6_foreign_writes_do_not_hinder_a_release(void **state)
{
    (void)state;
    mortise_hold hold = zk_acquire(exclusive(direct, "written"));
    assert_int_equal(zk_raw_set(raw, node_of("written")), ZOK);
    assert_int_equal(zk_raw_set(raw, ROOT "written"), ZOK);
    assert_int_equal(mortise_verify(hold, LONG), MORTISE_OK);
    assert_int_equal(zk_raw_set(raw, ROOT "written"), ZOK);
    release(hold);
    await_no_node("written");
}

static void test_b6_a_program_with_the_same_recipe_is_waited_for(void **state)
{
    (void)state;
    struct crowd crowd = {0};
    mortise_lock *lock = exclusive(direct, "same");
    mortise_hold none;
    release(zk_acquire(lock));
    await_no_node("same");
    assert_int_equal(zk_raw_create(raw, node_of("same"), true), ZOK);
    assert_int_equal(mortise_try_acquire(lock, &none), MORTISE_EBUSY);
    assert_int_equal(mortise_acquire_async(lock, INT64_MAX, on_acquired, &crowd, NULL), 0);
    while (zk_place_figure("zk_watch_count") < 1)
        zk_rest_ms(5);
    assert_int_equal(crowd.granted, 0);
    assert_int_equal(zk_raw_delete(raw, node_of("same")), ZOK);
    int64_t begin_ms = zk_now_ms();
    while (crowd.granted == 0)
        assert_true(zk_now_ms() - begin_ms < SOON);
    assert_int_equal(zk_raw_create(raw, node_of("same"), true), ZNODEEXISTS);
    release(crowd.hold);
}

static void on_revoked(void *argument, mortise_hold hold)
{
    atomic_int *told = argument;
    (void)hold;
    ++*told;
}

static void test_f22_requests_and_breaks_reach_the_holder_alone(void **state)
{
    (void)state;
    atomic_int told = 0;
    mortise_hold hold = zk_acquire(exclusive(through, "asked")), other;
    uint64_t fence = mortise_hold_fence(hold);
    assert_int_equal(mortise_on_revoke(hold, on_revoked, &told), MORTISE_OK);
    assert_int_equal(mortise_revoke(direct, "asked", fence), MORTISE_OK);
    while (told == 0)
        zk_rest_ms(1);
    assert_int_equal(mortise_verify(hold, LONG), MORTISE_OK);
    assert_int_equal(mortise_break(direct, "asked", fence), MORTISE_OK);
    other = zk_acquire(exclusive(direct, "asked"));
    while (mortise_is_held(hold))
        zk_rest_ms(1);
    assert_int_equal(mortise_break(direct, "asked", fence), MORTISE_ENOTHELD);
    assert_int_equal(mortise_revoke(direct, "asked", fence), MORTISE_ENOTHELD);
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    assert_int_equal(mortise_verify(other, LONG), MORTISE_OK);
    release(other);
    await_no_node("asked");
}

/* ------------------------------------------------------------ other kinds */

static void test_b6_an_exclusive_hold_conflicts_with_every_kind(void **state)
{
    (void)state;
    mortise_lock *locks[4];
    mortise_hold hold, none;
    for (int held = 0; held < 4; held++)
        for (int wanted = 0; wanted < 4; wanted++) {
            char name[32];
            snprintf(name, sizeof name, "kinds/%d%d", held, wanted);
            mortise_client *const clients[] = {direct, through};
            for (int side = 0; side < 2; side++) {
                int kind = side ? wanted : held;
                mortise_lock *read, *write;
                if (kind == 0)
                    locks[side] = exclusive(clients[side], name);
                else if (kind == 1)
                    locks[side] = zk_mutex(clients[side], name);
                else
                    assert_int_equal(
                        mortise_read_write_new(clients[side], name, NULL, &read, &write), 0);
                if (kind > 1)
                    locks[side] = kind == 2 ? read : write;
            }
            hold = zk_acquire(locks[0]);
            bool one_kind = held == wanted || (held > 1 && wanted > 1);
            int expected = !one_kind                  ? MORTISE_EMISMATCH
                           : held == 2 && wanted == 2 ? MORTISE_OK
                                                      : MORTISE_EBUSY;
            int error = mortise_try_acquire(locks[1], &none);
            print_message("%s: %s\n", name, mortise_error_name(error));
            assert_int_equal(error, expected);
            if (error == MORTISE_OK)
                release(none);
            if (error == MORTISE_EMISMATCH)
                assert_int_equal(mortise_acquire_for(locks[1], LONG, &none), MORTISE_EMISMATCH);
            release(hold);
        }
}

static void test_b6_a_lock_may_be_called_lock(void **state)
{
    (void)state;
    mortise_lock *outer = zk_mutex(direct, "name"), *inner = zk_mutex(direct, "name/lock");
    mortise_hold one = zk_acquire(outer), two = zk_acquire(inner), none;
    release(one);
    assert_int_equal(mortise_try_acquire(outer, &one), MORTISE_OK);
    release(one);
    assert_true(zk_wait_tickets(direct, "name", 0, SOON));
    assert_int_equal(mortise_acquire(exclusive(through, "name"), &none), MORTISE_EMISMATCH);
    assert_int_equal(mortise_try_acquire(exclusive(through, "name"), &none), MORTISE_EMISMATCH);
    release(two);
}

static void test_c6_no_watch_and_no_node_is_left(void **state)
{
    (void)state;
    struct crowd crowd = {0};
    mortise_lock *mine = exclusive(direct, "left"), *other = exclusive(through, "left");
    release(zk_acquire(other)); /* it has a session from here on */
    mortise_hold none, hold = zk_acquire(mine);
    for (int i = 0; i < 10; i++)
        assert_int_equal(mortise_acquire_for(other, 5, &none), MORTISE_ETIMEOUT);
    assert_int_equal(mortise_acquire_async(other, INT64_MAX, on_acquired, &crowd, NULL), 0);
    release(hold);
    while (crowd.granted == 0)
        zk_rest_ms(1);
    release(crowd.hold);
    for (int i = 0; i < 50; i++)
        release(zk_acquire(i % 2 ? mine : other));
    await_no_node("left");
    int64_t until = zk_now_ms() + LONG;
    while (zk_place_figure("zk_watch_count") > 0)
        assert_true(zk_now_ms() < until);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_b1_an_exclusive_lock_is_one_ephemeral_node_called_lock),
        TEST(test_b2_a_try_of_a_held_exclusive_lock_leaves_nothing),
        TEST(test_c14_the_directory_is_made_and_a_fence_rises_across_it),
        TEST(test_b2_fifty_processes_race_and_one_succeeds_each_time),
        TEST(test_b4_a_killed_holder_is_followed_by_another),
        TEST(test_b3_b5_waiters_do_not_poll_and_a_release_wakes_all),
        TEST(test_zk_01_lost_answers_of_a_claim),
        TEST(test_zk_22_lost_answers_of_a_release),
        TEST(test_zk_21_a_claim_of_unknown_outcome_that_is_given_up),
        TEST(test_zk_13_a_holder_whose_node_is_deleted_loses_the_lock),
        TEST(test_z6_zk_42_a_release_deletes_nobody_elses_node),
        TEST(test_z6_foreign_writes_do_not_hinder_a_release),
        TEST(test_b6_a_program_with_the_same_recipe_is_waited_for),
        TEST(test_f22_requests_and_breaks_reach_the_holder_alone),
        TEST(test_b6_an_exclusive_hold_conflicts_with_every_kind),
        TEST(test_b6_a_lock_may_be_called_lock),
        TEST(test_c6_no_watch_and_no_node_is_left),
    };
    if (argc == 5 && strcmp(argv[1], "contend") == 0)
        return contend(argv[2], argv[3], (int)strtol(argv[4], NULL, 10));
    return cmocka_run_group_tests(tests, zk_place_start, zk_place_stop);
}
