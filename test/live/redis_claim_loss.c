/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims on a real Redis server that are lost: the lease ends, somebody else has the key, the
 * holder or the way to the server stands still.
 */
#include "live/redis_claim.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_l5_rd_06_rd_11_rd_22_a_superseded_holder_neither_deletes_nor_extends(void **state)
{
    (void)state;
    mortise_hold hold = zk_acquire(lock_of(client));
    ask("SET " KEY " theirs PX 60000");
    unsigned before = redis_proxy_seen(proxy, RENEWAL);
    while (mortise_hold_state(hold) != MORTISE_LOST) /* the next renewal finds it, no look */
        assert_true(redis_proxy_seen(proxy, RENEWAL) < before + 5);
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    assert_int_equal(mortise_try_acquire(lock_of(client), &hold), MORTISE_EBUSY);
    assert_string_equal(ask("GET " KEY), "theirs");
    assert_true(strtol(ask("PTTL " KEY), NULL, 10) > 10 * LEASE_MS);
}

static void test_rd_06_a_release_leaves_anothers_key(void **state)
{
    (void)state;
    mortise_hold hold = zk_acquire(lock_of(client));
    ask("SET " KEY " theirs PX 60000");
    mortise_release(hold);
    mortise_close(client); /* all that it had to say is said */
    client = open_at(redis_proxy_port(proxy));
    assert_string_equal(ask("GET " KEY), "theirs");
}

/* The lease of the key ends, by the server's clock: it is short, if no renewal has come in between.
 */
static void let_expire(void)
{
    int64_t end = zk_now_ms() + 20000;
    do {
        assert_true(zk_now_ms() < end);
        ask("PEXPIRE " KEY " 1");
    } while (strcmp(ask("EXISTS " KEY), "0") != 0);
}

static void test_rd_11_a_claim_that_expired_1_ms_ago_is_not_extended(void **state)
{
    (void)state;
    be_patient();
    mortise_hold hold = zk_acquire(lock_of(client));
    let_expire();
    assert_int_equal(mortise_hold_state(hold), MORTISE_HELD); /* for all that it knows */
    assert_int_equal(mortise_verify(hold, 20000), MORTISE_ELOST);
    assert_int_equal(mortise_hold_state(hold), MORTISE_LOST);
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    assert_string_equal(ask("EXISTS " KEY), "0");
    mortise_release(zk_acquire(lock_of(client)));
}

static void test_rd_11_a_renewal_does_not_bring_an_expired_claim_back(void **state)
{
    (void)state;
    mortise_hold hold = zk_acquire(lock_of(client));
    let_expire();
    unsigned before = redis_proxy_seen(proxy, RENEWAL);
    while (mortise_hold_state(hold) != MORTISE_LOST) /* the next renewal finds it, no look */
        assert_true(redis_proxy_seen(proxy, RENEWAL) < before + 5);
    assert_string_equal(ask("EXISTS " KEY), "0");
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
}

static void test_l5_rd_06_a_release_after_the_lease_leaves_the_next_ones_key(void **state)
{
    (void)state;
    char token[64];
    be_patient();
    mortise_hold hold = zk_acquire(lock_of(client));
    let_expire();
    mortise_hold next = zk_acquire(lock_of(other));
    snprintf(token, sizeof token, "%s", ask("GET " KEY));
    assert_int_equal(strlen(token), 40);
    mortise_release(hold);
    mortise_close(client); /* all that it had to say is said */
    client = open_at(redis_proxy_port(proxy));
    assert_string_equal(ask("GET " KEY), token);
    assert_int_equal(mortise_verify(next, 20000), MORTISE_OK);
}

static void test_l3_rd_13_loss_is_told_before_the_key_ends(void **state)
{
    (void)state;
    mortise_hold hold = zk_acquire(lock_of(client));
    redis_proxy_stall(proxy, true);
    int64_t end = zk_now_ms() + 10000;
    for (;;) {
        bool is_there = strcmp(ask("GET " KEY), "") != 0;
        if (mortise_hold_state(hold) == MORTISE_LOST)
            break;
        assert_true(is_there); /* for it is held still */
        assert_true(zk_now_ms() < end);
    }
    mortise_hold next = zk_acquire(lock_of(other));
    assert_true(mortise_hold_fence(next) > mortise_hold_fence(hold));
}

/* This program run again as the holder of the claim: for each byte that it reads it first says
 * whether it still holds. */
struct child {
    pid_t pid;
    int to, from;
};

int hold_claim(const char *uri)
{
    mortise_client *mine;
    mortise_lock *lock;
    mortise_hold hold;
    char byte = 'h';
    if (mortise_open(uri, NULL, &mine) || mortise_exclusive_new(mine, KEY, NULL, &lock) ||
        mortise_acquire_for(lock, 20000, &hold))
        return 1;
    while (write(STDOUT_FILENO, &byte, 1) == 1 && read(STDIN_FILENO, &byte, 1) == 1)
        byte = mortise_is_held(hold) ? 'h' : 'l';
    return 0;
}

static char said_by(const struct child *child)
{
    char byte = 0;
    return (char)(read(child->from, &byte, 1) == 1 ? byte : 0);
}

static struct child start_child(void)
{
    int to[2], from[2];
    char uri[128];
    snprintf(uri, sizeof uri,
             "redis://127.0.0.1:%u?session=%dms&namespace=", (unsigned)zk_place_port(), LEASE_MS);
    assert_int_equal(pipe(to), 0);
    assert_int_equal(pipe(from), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(to[0], STDIN_FILENO);
        dup2(from[1], STDOUT_FILENO);
        close(to[1]);
        close(from[0]);
        execl("/proc/self/exe", "holder", "hold", uri, NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    return (struct child){pid, to[1], from[0]};
}

static void end_child(const struct child *child)
{
    close(child->to);
    close(child->from);
    kill(child->pid, SIGKILL);
    waitpid(child->pid, NULL, 0);
}

static void test_l3_rd_13_a_holder_that_stood_still_for_two_leases_knows_immediately(void **state)
{
    (void)state;
    int status;
    struct child child = start_child();
    assert_int_equal(said_by(&child), 'h');
    kill(child.pid, SIGSTOP);
    assert_int_equal(waitpid(child.pid, &status, WUNTRACED), child.pid);
    assert_true(WIFSTOPPED(status));
    zk_rest_ms(2 * LEASE_MS);
    mortise_hold next = zk_acquire(lock_of(other));
    assert_int_equal(write(child.to, "?", 1), 1); /* it has been asked before it goes on */
    kill(child.pid, SIGCONT);
    assert_int_equal(said_by(&child), 'l');
    assert_int_equal(mortise_verify(next, 20000), MORTISE_OK);
    end_child(&child);
}

/* As long as it refuses them. */
static void
test_rd_11_rd_15_a_server_that_takes_no_writes_loses_the_lock_before_its_key(void **state)
{
    (void)state;
    mortise_hold hold = zk_acquire(lock_of(client));
    ask("CONFIG SET min-replicas-to-write 1");
    for (;;) {
        bool is_there = strcmp(ask("GET " KEY), "") != 0;
        if (mortise_hold_state(hold) == MORTISE_LOST)
            break;
        assert_true(is_there); /* for it is held still */
    }
    ask("CONFIG SET min-replicas-to-write 0");
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    mortise_release(zk_acquire(lock_of(client)));
}

static const struct CMUnitTest tests[] = {
    TEST(test_l5_rd_06_rd_11_rd_22_a_superseded_holder_neither_deletes_nor_extends),
    TEST(test_rd_06_a_release_leaves_anothers_key),
    TEST(test_rd_11_a_claim_that_expired_1_ms_ago_is_not_extended),
    TEST(test_rd_11_a_renewal_does_not_bring_an_expired_claim_back),
    TEST(test_l5_rd_06_a_release_after_the_lease_leaves_the_next_ones_key),
    TEST(test_l3_rd_13_loss_is_told_before_the_key_ends),
    TEST(test_l3_rd_13_a_holder_that_stood_still_for_two_leases_knows_immediately),
    TEST(test_rd_11_rd_15_a_server_that_takes_no_writes_loses_the_lock_before_its_key),
};

int run_losses(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
