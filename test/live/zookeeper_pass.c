/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of passing a lock on (store/zookeeper/watch/pass.c) on a real server. Each actor has a
 * client behind a proxy of its own, which holds requests back, loses or counts them, so what
 * is to happen in between happens in between. Each client that acquires looks whether another
 * holds.
 *
 * Built with seeded defects it is the measure of itself: each defect is switched on in turn,
 * and the test of its rule must fail. The output is then in the form of TAP.
 */
#include "cmocka_all.h"

#include "defect_run.h"
#include "live/zk_proxy.h"
#include "live/zk_raw.h"
#include "live/zookeeper_place.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

#define ROOT "/test/root"
#define MARKERS ROOT "/mortise-markers"
#define SOON 4000 /* before the look that is behind every wait, each 5 s */
#define LONG 20000

enum state { IDLE, WANTS, HOLDS, DONE };

static struct actor {
    struct zk_proxy *proxy;
    mortise_client *client;
    mortise_lock *lock;
    pthread_t thread;
    int64_t timeout_ms;
    mortise_hold hold;
    char *token; /* it detaches instead of releasing; NULL: not */
    int error;
    sem_t go;
    atomic_int state;
} actors[4], *const A = &actors[0], *const B = &actors[1], *const C = &actors[2],
                    *const D = &actors[3];
static struct zk_raw *raw;
static char name[32]; /* of the test's lock */
static atomic_int overlaps;
static bool stranded; /* nothing more can be tested */

/* ------------------------------------------------------------ actors */

static void look_for_others(const struct actor *self)
{
    for (size_t i = 0; i < sizeof actors / sizeof actors[0]; i++)
        if (&actors[i] != self && actors[i].state == HOLDS &&
            strcmp(mortise_lock_name(actors[i].lock), mortise_lock_name(self->lock)) == 0 &&
            mortise_is_held(actors[i].hold))
            overlaps++;
}

static void *act(void *argument)
{
    struct actor *actor = argument;
    mortise_hold hold = {0};
    actor->error = mortise_acquire_for(actor->lock, actor->timeout_ms, &hold);
    if (actor->error == MORTISE_OK) {
        actor->hold = hold;
        look_for_others(actor);
        actor->state = HOLDS;
        sem_wait(&actor->go);
        actor->error = actor->token ? mortise_detach(hold, actor->token) : mortise_release(hold);
    }
    actor->state = DONE;
    return NULL;
}

static void want_this(struct actor *actor, mortise_lock *lock, int64_t timeout_ms)
{
    actor->lock = lock;
    actor->timeout_ms = timeout_ms;
    actor->token = NULL;
    actor->state = WANTS;
    assert_int_equal(pthread_create(&actor->thread, NULL, act, actor), 0);
}

static void want_for(struct actor *actor, const char *lock, int64_t timeout_ms)
{
    want_this(actor, zk_mutex(actor->client, lock), timeout_ms);
}

static void want(struct actor *actor)
{
    want_for(actor, name, LONG);
}

static void finish(struct actor *actor)
{
    pthread_join(actor->thread, NULL);
    actor->state = IDLE;
}

static void let_go(struct actor *actor)
{
    sem_post(&actor->go);
    finish(actor);
}

static bool comes_to(struct actor *actor, enum state state)
{
    int64_t end = zk_now_ms() + SOON;
    while ((enum state)actor->state != state && zk_now_ms() < end)
        zk_rest_ms(1);
    return (enum state)actor->state == state;
}

static unsigned count(const struct actor *actor, enum zk_opcode opcode)
{
    return zk_proxy_count(actor->proxy, opcode);
}

/* Whether so many requests of a kind pass soon; then all that has passed is answered, the client
   has read the answers, and sends nothing for them. */
static bool has_sent(struct actor *actor, enum zk_opcode opcode, unsigned number)
{
    int64_t begin = zk_now_ms();
    for (int quiet = 0; quiet < 20; quiet++) {
        bool sent = count(actor, opcode) >= number;
        if (zk_now_ms() - begin > (sent ? LONG : SOON))
            return false;
        if (!sent || !zk_proxy_is_idle(actor->proxy))
            quiet = 0;
        zk_rest_ms(1);
    }
    return true;
}

/* Whether events of watches reach its client, beyond so many. */
static bool has_heard(struct actor *actor, unsigned before)
{
    for (int64_t end = zk_now_ms() + SOON; zk_now_ms() < end; zk_rest_ms(1))
        if (zk_proxy_events(actor->proxy) > before)
            return true;
    return false;
}

/* All that the server has told its client by now has passed the proxy: an answer to the same client
 * comes after it. */
static void settle(struct actor *actor)
{
    zk_tickets(actor->client, name);
}

static bool is_holding_back(struct actor *actor)
{
    int64_t end = zk_now_ms() + SOON;
    while (!zk_proxy_holds(actor->proxy) && zk_now_ms() < end)
        zk_rest_ms(1);
    return zk_proxy_holds(actor->proxy);
}

/* Its request for a place in the queue is sent, and held back. */
static bool is_kept_from_queueing(struct actor *actor)
{
    int64_t end = zk_now_ms() + SOON;
    while (!zk_proxy_keeps(actor->proxy, ZK_OP_CREATE2) && zk_now_ms() < end)
        zk_rest_ms(1);
    return zk_proxy_keeps(actor->proxy, ZK_OP_CREATE2);
}

/* Its ticket waits, and its watches are set. */
static void queue_up_for(struct actor *actor, const char *lock, int64_t timeout_ms)
{
    zk_proxy_reset_counts(actor->proxy);
    want_for(actor, lock, timeout_ms);
    assert_true(has_sent(actor, ZK_OP_GET_DATA, 2));
    assert_int_equal(actor->state, WANTS);
}

static void queue_up(struct actor *actor)
{
    queue_up_for(actor, name, LONG);
}

/* Holds after it has waited, as one does in a contest. */
static void hold_in_contest(struct actor *actor, struct actor *first, const char *lock)
{
    want_for(first, lock, LONG);
    assert_true(comes_to(first, HOLDS));
    queue_up_for(actor, lock, LONG);
    let_go(first);
    assert_true(comes_to(actor, HOLDS));
    zk_proxy_reset_counts(actor->proxy);
}

/* Path of the node of the ticket that is the `place`th in the queue, or of its marker. */
static const char *node(int place)
{
    static char path[256];
    char directory[64], child[128];
    snprintf(directory, sizeof directory, ROOT "/mortise/%s", name);
    assert_true(zk_raw_child(raw, directory, place, child));
    snprintf(path, sizeof path, "%s/%s", directory, child);
    return path;
}

static const char *marker(int place)
{
    static char path[256];
    snprintf(path, sizeof path, MARKERS "%s", strrchr(node(place), '/'));
    return path;
}

/* Its ticket waits for A's, which it has not watched yet. */
static void want_and_keep_from_watching(struct actor *actor)
{
    zk_proxy_reset_counts(actor->proxy);
    zk_proxy_hold(actor->proxy, ZK_OP_GET_DATA, strrchr(node(0), '/'));
    want(actor);
    assert_true(is_holding_back(actor));
    assert_int_equal(count(actor, ZK_OP_GET_DATA), 1); /* of its own */
}

/* Removes the files of a test that failed. */
static void clean_up(void)
{
    char child[128], path[256];
    zk_raw_protect(raw, MARKERS, false);
    while (zk_raw_child(raw, MARKERS, 0, child)) {
        snprintf(path, sizeof path, MARKERS "/%s", child);
        zk_raw_delete(raw, path);
    }
}

static int set_up(void **state)
{
    static int number;
    (void)state;
    if (stranded)
        _exit(1);
    overlaps = 0;
    snprintf(name, sizeof name, "pass-%d-%d", (int)getpid(), number++);
    raw = zk_raw_open(zk_place_port());
    clean_up();
    for (size_t i = 0; i < sizeof actors / sizeof actors[0]; i++) {
        actors[i].proxy = zk_proxy_start(zk_place_port());
        actors[i].client = zk_open(zk_place_uri(zk_proxy_port(actors[i].proxy), "6s"));
        actors[i].state = IDLE;
        sem_init(&actors[i].go, 0, 0);
    }
    /* The first pass fails because there is no directory of markers, and makes one. */
    hold_in_contest(A, B, "warm");
    let_go(A);
    assert_true(has_sent(A, ZK_OP_MULTI, 1));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof actors / sizeof actors[0]; i++) {
        if (actors[i].state != IDLE) {
            stranded = true; /* the test has failed, and its threads are about */
            return -1;
        }
        mortise_close(actors[i].client);
        zk_proxy_stop(actors[i].proxy);
        sem_destroy(&actors[i].go);
    }
    zk_raw_close(raw);
    assert_int_equal(overlaps, 0);
    return 0;
}

/* ------------------------------------------------------------ rule 1 */

static void test_pass_rule_1_all_that_was_ahead_is_gone(void **state)
{
    (void)state;
    hold_in_contest(A, B, name);
    queue_up(B);
    queue_up(C); /* has seen two ahead */
    let_go(A);
    assert_true(comes_to(B, HOLDS));
    assert_int_equal(count(B, ZK_OP_GET_CHILDREN), 1);
    let_go(B);
    assert_true(comes_to(C, HOLDS));
    assert_int_equal(count(C, ZK_OP_GET_CHILDREN), 1);
    let_go(C);
}

/* ------------------------------------------------------------ rule 2 */

static void test_pass_rule_2_zk_26_a_waiter_that_gives_up_does_not_pass(void **state)
{
    (void)state;
    hold_in_contest(A, B, name);
    queue_up_for(B, name, 1500);
    queue_up(C);
    finish(B);
    assert_int_equal(B->error, MORTISE_ETIMEOUT);
    assert_true(has_sent(C, ZK_OP_GET_DATA, 3)); /* it has looked, and waits for another */
    assert_int_equal(C->state, WANTS);
    assert_int_equal(count(B, ZK_OP_MULTI), 0);
    let_go(A);
    assert_true(comes_to(C, HOLDS));
    let_go(C);
}

/* ------------------------------------------------------------ rule 3 */

static void test_pass_rule_3_a_pass_of_another_lock_is_not_taken(void **state)
{
    (void)state;
    char other[sizeof name + 8];
    snprintf(other, sizeof other, "%s-other", name);
    hold_in_contest(D, B, other); /* the ticket of number 1 */
    want(A);
    assert_true(comes_to(A, HOLDS));
    queue_up(B); /* here too */
    queue_up(C);
    unsigned heard = zk_proxy_events(C->proxy);
    let_go(D);
    assert_true(has_sent(D, ZK_OP_MULTI, 1));
    settle(C);
    assert_int_equal(zk_proxy_events(C->proxy), heard);
    assert_int_equal(C->state, WANTS);
    let_go(A);
    assert_true(comes_to(B, HOLDS));
    let_go(B);
    assert_true(comes_to(C, HOLDS));
    let_go(C);
}

/* Waits until the server has looked for empty containers, which it does each second, and taken this
   lock's directory for one. */
static void see_reaped(const char *lock)
{
    char path[256];
    snprintf(path, sizeof path, ROOT "/mortise/%s", lock);
    int64_t end = zk_now_ms() + LONG;
    while (zk_raw_exists(raw, path) == ZOK && zk_now_ms() < end)
        zk_rest_ms(20);
    assert_int_equal(zk_raw_exists(raw, path), ZNONODE);
}

static void test_pass_rule_3_zk_12_the_markers_directory_stays(void **state)
{
    (void)state;
    char later[sizeof name + 8];
    assert_int_equal(zk_raw_delete(raw, MARKERS), ZOK);
    for (int i = 0; i < 2; i++) { /* the first makes it */
        hold_in_contest(A, B, name);
        let_go(A);
        assert_true(has_sent(A, ZK_OP_MULTI, 1));
    }
    see_reaped(name);
    snprintf(later, sizeof later, "%s-later", name);
    want_for(A, later, LONG);
    assert_true(comes_to(A, HOLDS));
    let_go(A);
    see_reaped(later); /* so the first look has ended */
    assert_int_equal(zk_raw_exists(raw, MARKERS), ZOK);
}

/* ------------------------------------------------------------ rule 4 */

static void test_pass_rule_4_zk_14_a_release_while_the_watches_are_set(void **state)
{
    (void)state;
    hold_in_contest(A, B, name);
    queue_up(B);
    zk_proxy_reset_counts(C->proxy);
    zk_proxy_hold(C->proxy, ZK_OP_GET_DATA, strrchr(node(1), '/'));
    want(C);
    assert_true(is_holding_back(C));
    assert_true(has_sent(C, ZK_OP_CREATE2, 1)); /* and what was sent before has arrived */
    let_go(A);
    assert_true(comes_to(B, HOLDS));
    let_go(B);
    assert_true(has_sent(B, ZK_OP_MULTI, 1));
    zk_proxy_go(C->proxy);
    assert_true(comes_to(C, HOLDS));
    assert_int_equal(count(C, ZK_OP_GET_CHILDREN), 1);
    let_go(C);
}

/* ------------------------------------------------------------ rule 5 */

/* B's node has been deleted by someone. Only C waits for A now. */
static void check_that_c_is_next(unsigned reads)
{
    assert_true(has_sent(C, ZK_OP_GET_DATA, reads));
    let_go(A);
    assert_true(comes_to(C, HOLDS));
    assert_true(has_sent(B, ZK_OP_CREATE2, 2)); /* it has queued up again */
    zk_rest_ms(200);
    assert_int_equal(overlaps, 0);
    assert_int_equal(B->state, WANTS);
    let_go(C);
    assert_true(comes_to(B, HOLDS));
    let_go(B);
}

static void test_pass_rule_5_zk_19_the_own_node_is_deleted(void **state)
{
    (void)state;
    hold_in_contest(A, B, name);
    queue_up(B);
    queue_up(C);
    assert_int_equal(zk_raw_delete(raw, node(1)), ZOK);
    check_that_c_is_next(3);
}

static void test_pass_rule_5_the_own_node_is_changed_and_then_deleted(void **state)
{
    (void)state;
    hold_in_contest(A, B, name);
    queue_up(B);
    queue_up(C);
    assert_int_equal(zk_raw_set(raw, node(1)), ZOK);
    assert_true(has_sent(B, ZK_OP_GET_DATA, 3));
    assert_true(has_sent(C, ZK_OP_GET_DATA, 3)); /* C watches it too */
    assert_int_equal(zk_raw_delete(raw, node(1)), ZOK);
    check_that_c_is_next(4);
}

static void test_pass_rule_5_the_own_node_cannot_be_watched(void **state)
{
    (void)state;
    hold_in_contest(A, B, name);
    zk_proxy_rewrite(B->proxy, ZK_OP_GET_DATA, "", ZNOAUTH);
    zk_proxy_reset_counts(B->proxy);
    want(B);
    assert_true(has_sent(B, ZK_OP_GET_CHILDREN, 2)); /* it looks once more */
    queue_up(C);
    assert_int_equal(zk_raw_delete(raw, node(1)), ZOK);
    check_that_c_is_next(3);
}

/* B's node is changed, which uses up its watch, and deleted before that is set again. */
static void change_and_delete_own(int place)
{
    char path[256];
    unsigned heard = zk_proxy_events(B->proxy);
    snprintf(path, sizeof path, "%s", node(place));
    assert_int_equal(zk_raw_set(raw, path), ZOK);
    assert_true(has_heard(B, heard));
    assert_int_equal(zk_raw_delete(raw, path), ZOK);
}

/* B's requests go on, while C holds. */
static void check_that_b_looks(void)
{
    zk_rest_ms(200);
    assert_int_equal(B->state, WANTS);
    zk_proxy_go(B->proxy);
    assert_true(has_sent(B, ZK_OP_CREATE2, 2)); /* it has queued up again */
    assert_int_equal(overlaps, 0);
    assert_int_equal(B->state, WANTS);
    let_go(C);
    assert_true(comes_to(B, HOLDS));
    let_go(B);
}

static void test_pass_rule_5_a_pass_before_the_own_watch_is_set_again(void **state)
{
    (void)state;
    hold_in_contest(A, B, name);
    queue_up(D);
    queue_up(B);
    queue_up(C);
    zk_proxy_hold(B->proxy, ZK_OP_GET_DATA, strrchr(node(2), '/'));
    change_and_delete_own(2);
    assert_true(is_holding_back(B));
    assert_true(has_sent(C, ZK_OP_GET_DATA, 4));
    let_go(A);
    assert_true(comes_to(D, HOLDS));
    unsigned heard = zk_proxy_events(B->proxy);
    let_go(D);
    assert_true(comes_to(C, HOLDS));
    assert_true(has_heard(B, heard)); /* of the marker */
    check_that_b_looks();
}

static void test_pass_rule_5_absence_before_the_own_watch_is_set_again(void **state)
{
    (void)state;
    hold_in_contest(A, B, name);
    want_and_keep_from_watching(B);
    queue_up(C);
    change_and_delete_own(1);
    assert_true(has_sent(C, ZK_OP_GET_DATA, 4));
    let_go(A);
    assert_true(comes_to(C, HOLDS));
    check_that_b_looks();
}

static void test_pass_rule_5_the_node_ahead_is_changed(void **state)
{
    (void)state;
    hold_in_contest(A, B, name);
    queue_up(B);
    assert_int_equal(zk_raw_set(raw, node(0)), ZOK); /* as Curator's Revoker does */
    assert_true(has_sent(B, ZK_OP_GET_DATA, 3));
    assert_int_equal(B->state, WANTS);
    let_go(A);
    assert_true(comes_to(B, HOLDS));
    assert_int_equal(count(B, ZK_OP_GET_CHILDREN), 1);
    let_go(B);
}

/* ------------------------------------------------------------ rule 6 */

static void test_pass_rule_6_c7_the_only_one_ahead_has_gone_meanwhile(void **state)
{
    (void)state;
    hold_in_contest(A, B, name);
    want_and_keep_from_watching(B);
    let_go(A);
    assert_true(has_sent(A, ZK_OP_MULTI, 1));
    zk_proxy_go(B->proxy);
    assert_true(comes_to(B, HOLDS));
    assert_int_equal(count(B, ZK_OP_GET_CHILDREN), 2);
    let_go(B);
}

/* It goes on under another name. */
static void test_pass_rule_6_c11_the_only_one_ahead_has_been_detached(void **state)
{
    (void)state;
    char token[MORTISE_TOKEN_SIZE];
    mortise_hold hold;
    hold_in_contest(A, B, name);
    want_and_keep_from_watching(B);
    A->token = token;
    let_go(A);
    assert_int_equal(A->error, MORTISE_OK);
    zk_proxy_go(B->proxy);
    assert_true(has_sent(B, ZK_OP_GET_CHILDREN, 2));
    assert_int_equal(B->state, WANTS);
    assert_int_equal(mortise_adopt(A->lock, token, &hold), MORTISE_OK);
    assert_true(has_sent(B, ZK_OP_GET_CHILDREN, 3));
    assert_int_equal(B->state, WANTS);
    assert_int_equal(mortise_release(hold), MORTISE_OK); /* not passed on */
    assert_true(comes_to(B, HOLDS));
    assert_int_equal(count(A, ZK_OP_MULTI), 2);
    assert_int_equal(count(B, ZK_OP_GET_CHILDREN), 3);
    let_go(B);
}

static void test_pass_rule_6_one_of_two_ahead_has_gone_meanwhile(void **state)
{
    (void)state;
    hold_in_contest(A, B, name);
    queue_up_for(B, name, 1500);
    zk_proxy_reset_counts(C->proxy);
    zk_proxy_hold(C->proxy, ZK_OP_EXISTS, "");
    want(C);
    assert_true(is_holding_back(C));
    finish(B);
    assert_int_equal(B->error, MORTISE_ETIMEOUT);
    assert_true(has_sent(B, ZK_OP_DELETE, 1));
    zk_proxy_go(C->proxy);
    assert_true(has_sent(C, ZK_OP_GET_CHILDREN, 2));
    assert_int_equal(C->state, WANTS);
    let_go(A);
    assert_true(comes_to(C, HOLDS));
    let_go(C);
}

/* ------------------------------------------------------------ rule 7 */

/* Passes reach B, but nothing of B's reaches the server any more. */
static void test_pass_rule_7_zk_05_a_pass_does_not_prolong_the_lease(void **state)
{
    (void)state;
    hold_in_contest(A, B, name);
    queue_up(B);
    queue_up(C);
    zk_proxy_stall_up(B->proxy, true);
    zk_rest_ms(1200); /* at least a third of the lease is left, and half a tick more to go */
    let_go(A);
    assert_true(comes_to(B, HOLDS));
    int64_t end = zk_now_ms() + LONG;
    while (C->state != HOLDS && zk_now_ms() < end)
        zk_rest_ms(5);
    assert_int_equal(C->state, HOLDS);
    assert_int_equal(overlaps, 0);
    assert_int_equal(mortise_hold_state(B->hold), MORTISE_LOST);
    zk_proxy_stall_up(B->proxy, false);
    let_go(B);
    let_go(C);
}

/* ------------------------------------------------------------ rule 8 */

static void test_pass_rule_8_zk_21_a_pass_for_an_acquire_that_was_given_up(void **state)
{
    (void)state;
    hold_in_contest(A, B, name);
    queue_up_for(B, name, 1500);
    queue_up(C);
    zk_proxy_hold(B->proxy, ZK_OP_DELETE, "");
    finish(B);
    assert_int_equal(B->error, MORTISE_ETIMEOUT);
    want(B); /* the same client anew, and none of this reaches the server */
    assert_true(is_kept_from_queueing(B));
    unsigned heard = zk_proxy_events(B->proxy);
    let_go(A);
    assert_true(has_sent(A, ZK_OP_MULTI, 1));
    assert_true(has_heard(B, heard));
    zk_rest_ms(200);
    assert_int_equal(B->state, WANTS);
    assert_int_equal(C->state, WANTS);
    zk_proxy_go(B->proxy);
    assert_true(comes_to(C, HOLDS));
    assert_int_equal(B->state, WANTS);
    let_go(C);
    assert_true(comes_to(B, HOLDS));
    let_go(B);
}

/* ------------------------------------------------------------ rule 9 */

static void test_pass_rule_9_zk_22_the_pass_is_lost(void **state)
{
    (void)state;
    hold_in_contest(A, B, name);
    queue_up(B);
    zk_proxy_drop(A->proxy, ZK_OP_MULTI);
    let_go(A);
    assert_true(comes_to(B, HOLDS));
    assert_true(zk_proxy_dropped(A->proxy));
    assert_int_equal(count(B, ZK_OP_GET_CHILDREN), 1);
    assert_int_equal(count(A, ZK_OP_MULTI), 1);
    let_go(B);
}

static void test_pass_rule_9_zk_22_the_reply_to_the_pass_is_lost(void **state)
{
    (void)state;
    hold_in_contest(A, B, name);
    queue_up(B);
    zk_proxy_swallow(A->proxy, ZK_OP_MULTI);
    let_go(A);
    assert_true(comes_to(B, HOLDS));
    assert_true(has_sent(A, ZK_OP_MULTI, 2));
    assert_true(has_sent(A, ZK_OP_DELETE, 1)); /* which finds it gone */
    assert_int_equal(zk_tickets(C->client, name), 1);
    let_go(B);
}

static void test_pass_rule_9_the_pass_is_refused(void **state)
{
    (void)state;
    hold_in_contest(A, B, name);
    char path[256];
    queue_up(B);
    snprintf(path, sizeof path, "%s", marker(1));
    assert_int_equal(zk_raw_create(raw, path, false), ZOK);
    queue_up(C);
    let_go(A);
    assert_true(comes_to(B, HOLDS));
    let_go(B);
    assert_true(comes_to(C, HOLDS));
    assert_int_equal(count(B, ZK_OP_MULTI), 1);
    assert_int_equal(count(B, ZK_OP_DELETE), 1);
    assert_int_equal(count(C, ZK_OP_GET_CHILDREN), 2);
    assert_int_equal(zk_raw_delete(raw, path), ZOK);
    let_go(C);
}

static void test_pass_rule_9_no_permission(void **state)
{
    (void)state;
    assert_int_equal(zk_raw_protect(raw, MARKERS, true), ZOK);
    for (unsigned i = 0; i < 2; i++) {
        hold_in_contest(A, B, name);
        queue_up(B);
        let_go(A);
        assert_true(comes_to(B, HOLDS));
        assert_true(has_sent(A, ZK_OP_DELETE, 1));
        assert_int_equal(count(A, ZK_OP_MULTI), i == 0); /* it is not tried again */
        let_go(B);
    }
    assert_int_equal(zk_raw_protect(raw, MARKERS, false), ZOK);
}

static void test_pass_rule_9_no_directory_of_markers(void **state)
{
    (void)state;
    assert_int_equal(zk_raw_delete(raw, MARKERS), ZOK);
    hold_in_contest(A, B, name);
    queue_up(B);
    let_go(A);
    assert_true(comes_to(B, HOLDS));
    assert_true(has_sent(A, ZK_OP_DELETE, 1));
    assert_int_equal(count(A, ZK_OP_CREATE), 1);
    queue_up(C);
    let_go(B); /* now it is there */
    assert_true(comes_to(C, HOLDS));
    assert_int_equal(count(C, ZK_OP_GET_CHILDREN), 1);
    let_go(C);
}

/* ------------------------------------------------------------ rule 10 */

/* All release, and no watch is left on the server. */
static void check_that_no_watch_is_left(struct actor *const *order)
{
    for (; *order; order++) {
        assert_true(comes_to(*order, HOLDS));
        let_go(*order);
        assert_true(has_sent(*order, ZK_OP_MULTI, 1));
    }
    assert_int_equal(zk_place_figure("zk_watch_count"), 0);
}

static void test_pass_rule_10_zk_15_no_watch_is_left_by_a_bare_deletion(void **state)
{
    (void)state;
    hold_in_contest(A, B, name);
    queue_up(B);
    queue_up(C); /* watches the marker of B's */
    assert_int_equal(zk_raw_delete(raw, node(1)), ZOK);
    assert_true(has_sent(C, ZK_OP_REMOVE_WATCHES, 1));
    assert_true(has_sent(B, ZK_OP_GET_DATA, 4)); /* it has queued up again */
    check_that_no_watch_is_left((struct actor *const[]){A, C, B, NULL});
}

static void test_pass_rule_10_a_waiter_that_gave_up_leaves_no_watch(void **state)
{
    (void)state;
    hold_in_contest(A, B, name);
    queue_up(B);
    queue_up_for(C, name, 1500);
    finish(C);
    assert_int_equal(C->error, MORTISE_ETIMEOUT);
    assert_int_equal(zk_raw_delete(raw, node(1)), ZOK);
    assert_true(has_sent(C, ZK_OP_REMOVE_WATCHES, 1));
    assert_true(has_sent(B, ZK_OP_GET_DATA, 3));
    check_that_no_watch_is_left((struct actor *const[]){A, B, NULL});
}

static void test_pass_rule_10_a_waiter_that_queued_again_leaves_no_watch(void **state)
{
    (void)state;
    hold_in_contest(A, B, name);
    queue_up(D);
    queue_up(B); /* watches the marker of D's */
    queue_up(C);
    assert_int_equal(zk_raw_delete(raw, node(2)), ZOK);
    assert_true(has_sent(B, ZK_OP_GET_DATA, 4)); /* it waits for C now */
    assert_true(has_sent(C, ZK_OP_GET_DATA, 3));
    assert_int_equal(zk_raw_delete(raw, node(1)), ZOK);
    assert_true(has_sent(B, ZK_OP_REMOVE_WATCHES, 1));
    assert_true(has_sent(D, ZK_OP_GET_DATA, 4));
    check_that_no_watch_is_left((struct actor *const[]){A, C, B, D, NULL});
}

static void test_pass_rule_10_no_watch_is_left_where_a_node_is_absent(void **state)
{
    (void)state;
    hold_in_contest(A, B, name);
    queue_up(B);
    zk_proxy_reset_counts(C->proxy);
    zk_proxy_hold(C->proxy, ZK_OP_EXISTS, "");
    want(C);
    assert_true(is_holding_back(C));
    let_go(A);
    assert_true(comes_to(B, HOLDS));
    let_go(B);
    assert_true(has_sent(B, ZK_OP_MULTI, 1));
    zk_proxy_go(C->proxy);
    assert_true(comes_to(C, HOLDS));
    assert_true(has_sent(C, ZK_OP_REMOVE_WATCHES, 1));
    check_that_no_watch_is_left((struct actor *const[]){C, NULL});
}

/* They are waited for by deletion alone; of the last one that is the grant. */
static void test_pass_rule_10_nodes_of_others_have_no_markers(void **state)
{
    (void)state;
    static const char *const others[] = {"_c_6f1ed002-ab5a-4000-8000-000000000001-lock-0000000001",
                                         "0123456789abcdef0123456789abcdef-lock-0000000001"};
    char path[256], first[256], keeper[256];
    want(A); /* makes the directory, which the server would take away when it is empty */
    assert_true(comes_to(A, HOLDS));
    snprintf(keeper, sizeof keeper, ROOT "/mortise/%s/keeper", name);
    snprintf(first, sizeof first, ROOT "/mortise/%s/x-lock-0000000000", name);
    assert_int_equal(zk_raw_create(raw, keeper, false), ZOK);
    let_go(A);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, ROOT "/mortise/%s/%s", name, others[i]);
        assert_int_equal(zk_raw_create(raw, first, true), ZOK);
        assert_int_equal(zk_raw_create(raw, path, true), ZOK);
        zk_proxy_reset_counts(B->proxy);
        want(B);
        assert_true(has_sent(B, ZK_OP_GET_DATA, 1));
        assert_int_equal(count(B, ZK_OP_GET_DATA), 1);
        assert_int_equal(zk_raw_delete(raw, path), ZOK);
        assert_true(has_sent(B, ZK_OP_GET_DATA, 3)); /* of the first one and of its own */
        assert_int_equal(count(B, ZK_OP_GET_CHILDREN), 2);
        assert_int_equal(B->state, WANTS);
        assert_int_equal(zk_raw_delete(raw, first), ZOK);
        assert_true(comes_to(B, HOLDS));
        assert_int_equal(count(B, ZK_OP_GET_CHILDREN), 2);
        assert_int_equal(count(B, ZK_OP_EXISTS), 0);
        let_go(B);
    }
    assert_int_equal(zk_raw_delete(raw, keeper), ZOK);
}

/* ------------------------------------------------------------ rule 11 */

static void test_pass_rule_11_a_marker_that_is_there_grants_nothing(void **state)
{
    (void)state;
    hold_in_contest(A, B, name);
    char path[256];
    queue_up(B);
    snprintf(path, sizeof path, "%s", marker(1));
    assert_int_equal(zk_raw_create(raw, path, false), ZOK);
    queue_up(C);
    zk_rest_ms(100);
    assert_int_equal(C->state, WANTS);
    unsigned heard = zk_proxy_events(C->proxy);
    assert_int_equal(zk_raw_set(raw, path), ZOK);
    assert_true(has_heard(C, heard));
    zk_rest_ms(100);
    assert_int_equal(C->state, WANTS);
    let_go(A);
    assert_true(comes_to(B, HOLDS));
    let_go(B);
    assert_true(comes_to(C, HOLDS));
    assert_int_equal(count(B, ZK_OP_DELETE), 1);
    assert_int_equal(zk_raw_delete(raw, path), ZOK);
    let_go(C);
}

/* ------------------------------------------------------------ rule 12 */

static void test_pass_rule_12_the_end_of_the_only_one_ahead_is_the_grant(void **state)
{
    (void)state;
    want(A);
    assert_true(comes_to(A, HOLDS));
    queue_up(B);
    zk_proxy_reset_counts(A->proxy);
    let_go(A);
    assert_true(comes_to(B, HOLDS));
    assert_int_equal(count(A, ZK_OP_MULTI), 0); /* it was not passed on */
    queue_up(C);
    let_go(B); /* and this C is not told of */
    assert_true(comes_to(C, HOLDS));
    assert_true(has_sent(B, ZK_OP_MULTI, 1));
    assert_int_equal(count(B, ZK_OP_GET_CHILDREN), 1);
    assert_int_equal(count(C, ZK_OP_GET_CHILDREN), 1);
    assert_int_equal(count(C, ZK_OP_GET_DATA), 2);
    assert_int_equal(count(C, ZK_OP_EXISTS), 0);
    let_go(C);
}

static void test_pass_rule_12_zk_26_the_end_of_one_of_two_is_not(void **state)
{
    (void)state;
    hold_in_contest(A, B, name);
    queue_up(B);
    queue_up(C);
    assert_int_equal(zk_raw_delete(raw, node(1)), ZOK);
    check_that_c_is_next(3);
}

static void test_pass_rule_12_the_end_before_the_own_watch_is_set_again(void **state)
{
    (void)state;
    hold_in_contest(A, B, name);
    queue_up(B);
    queue_up(C);
    zk_proxy_hold(B->proxy, ZK_OP_GET_DATA, strrchr(node(1), '/'));
    change_and_delete_own(1);
    assert_true(is_holding_back(B));
    assert_true(has_sent(C, ZK_OP_GET_DATA, 4));
    unsigned heard = zk_proxy_events(B->proxy);
    let_go(A);
    assert_true(comes_to(C, HOLDS));
    assert_true(has_heard(B, heard)); /* of the deletion */
    check_that_b_looks();
}

static void test_pass_rule_12_c11_the_only_one_ahead_is_detached_and_adopted(void **state)
{
    (void)state;
    char token[MORTISE_TOKEN_SIZE];
    mortise_hold hold;
    hold_in_contest(A, B, name);
    queue_up(B);
    unsigned heard = zk_proxy_events(B->proxy);
    A->token = token;
    let_go(A);
    assert_int_equal(A->error, MORTISE_OK);
    assert_true(has_sent(B, ZK_OP_GET_CHILDREN, 2));
    assert_int_equal(zk_proxy_events(B->proxy), heard + 1); /* of a change, and of nothing else */
    assert_int_equal(B->state, WANTS);
    assert_int_equal(mortise_adopt(A->lock, token, &hold), MORTISE_OK);
    assert_true(has_sent(B, ZK_OP_GET_CHILDREN, 3));
    assert_int_equal(B->state, WANTS);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    assert_true(comes_to(B, HOLDS));
    assert_int_equal(count(B, ZK_OP_GET_CHILDREN), 3);
    let_go(B);
}

static void test_pass_rule_12_e5_the_only_one_ahead_is_downgraded(void **state)
{
    (void)state;
    mortise_lock *read, *write;
    assert_int_equal(mortise_read_write_new(A->client, name, NULL, &read, &write), MORTISE_OK);
    mortise_hold hold = zk_acquire(write);
    assert_int_equal(mortise_read_write_new(B->client, name, NULL, &read, &write), MORTISE_OK);
    zk_proxy_reset_counts(B->proxy);
    want_this(B, write, LONG);
    assert_true(has_sent(B, ZK_OP_GET_DATA, 2));
    assert_int_equal(mortise_downgrade(hold), MORTISE_OK);
    assert_true(has_sent(B, ZK_OP_GET_CHILDREN, 2));
    assert_int_equal(B->state, WANTS);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    assert_true(comes_to(B, HOLDS));
    assert_int_equal(count(B, ZK_OP_GET_CHILDREN), 2);
    let_go(B);
}

/* ------------------------------------------------------------ the whole */

#define CROWD 12
#define ROUNDS 10
static atomic_uint acquired, active;

/* Holds until all the others wait, so that nobody is passed on to before it is ready. */
static void *go_round(void *argument)
{
    for (int i = 0; i < ROUNDS; i++) {
        mortise_hold hold = zk_acquire(argument);
        unsigned turns = ++acquired;
        int64_t end = zk_now_ms() + SOON;
        while (
            (count(D, ZK_OP_GET_DATA) != 2 * (turns + active - 1) || !zk_proxy_is_idle(D->proxy)) &&
            zk_now_ms() < end)
            zk_rest_ms(1);
        active -= i == ROUNDS - 1;
        assert_int_equal(mortise_release(hold), MORTISE_OK);
    }
    return NULL;
}

static void test_pass_takes_six_requests_and_no_list_after_a_wake(void **state)
{
    (void)state;
    const unsigned all = CROWD * ROUNDS;
    mortise_client *clients[CROWD];
    pthread_t threads[CROWD];
    hold_in_contest(A, B, name);
    zk_proxy_reset_counts(D->proxy);
    acquired = 0;
    active = CROWD;
    for (int i = 0; i < CROWD; i++) {
        clients[i] = zk_open(zk_place_uri(zk_proxy_port(D->proxy), "6s"));
        pthread_create(&threads[i], NULL, go_round, zk_mutex(clients[i], name));
    }
    assert_true(has_sent(D, ZK_OP_GET_DATA, 2 * CROWD));
    let_go(A);
    for (int i = 0; i < CROWD; i++)
        pthread_join(threads[i], NULL);
    assert_true(has_sent(D, ZK_OP_MULTI, all));
    assert_int_equal(count(D, ZK_OP_CREATE2), all);
    assert_int_equal(count(D, ZK_OP_GET_CHILDREN), all);
    assert_int_equal(count(D, ZK_OP_GET_DATA), 2 * all);
    assert_int_equal(count(D, ZK_OP_EXISTS), all - 1); /* the first has only A ahead */
    assert_int_equal(count(D, ZK_OP_MULTI), all);
    assert_int_equal(count(D, ZK_OP_DELETE), 0);
    assert_int_equal(count(D, ZK_OP_REMOVE_WATCHES), 0);
    assert_int_equal(zk_place_figure("zk_watch_count"), 0);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(mortise_close(clients[i]), MORTISE_OK);
}

static int found_entry(void *argument, const mortise_entry *entry)
{
    (void)entry;
    ++*(int *)argument;
    return 0;
}

static void test_markers_are_no_locks(void **state)
{
    (void)state;
    char uri[160];
    int entries = 0;
    hold_in_contest(A, B, name);
    let_go(A);
    assert_true(has_sent(A, ZK_OP_MULTI, 1));
    assert_int_equal(zk_raw_exists(raw, MARKERS), ZOK);
    snprintf(uri, sizeof uri, "%s&namespace=", zk_place_uri(zk_place_port(), "6s"));
    mortise_client *client = zk_open(uri);
    assert_int_equal(mortise_list(client, NULL, found_entry, &entries), MORTISE_OK);
    assert_int_equal(entries, 0);
    mortise_hold none;
    assert_int_equal(mortise_acquire_for(zk_mutex(client, "mortise-markers"), 3000, &none),
                     MORTISE_ENAME);
    assert_int_equal(mortise_close(client), MORTISE_OK);
}

/* ------------------------------------------------------------ defects */

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
static const struct CMUnitTest tests[] = {
    TEST(test_pass_rule_1_all_that_was_ahead_is_gone),
    TEST(test_pass_rule_2_zk_26_a_waiter_that_gives_up_does_not_pass),
    TEST(test_pass_rule_3_a_pass_of_another_lock_is_not_taken),
    TEST(test_pass_rule_3_zk_12_the_markers_directory_stays),
    TEST(test_pass_rule_4_zk_14_a_release_while_the_watches_are_set),
    TEST(test_pass_rule_5_zk_19_the_own_node_is_deleted),
    TEST(test_pass_rule_5_the_own_node_is_changed_and_then_deleted),
    TEST(test_pass_rule_5_the_own_node_cannot_be_watched),
    TEST(test_pass_rule_5_a_pass_before_the_own_watch_is_set_again),
    TEST(test_pass_rule_5_absence_before_the_own_watch_is_set_again),
    TEST(test_pass_rule_5_the_node_ahead_is_changed),
    TEST(test_pass_rule_6_c7_the_only_one_ahead_has_gone_meanwhile),
    TEST(test_pass_rule_6_c11_the_only_one_ahead_has_been_detached),
    TEST(test_pass_rule_6_one_of_two_ahead_has_gone_meanwhile),
    TEST(test_pass_rule_7_zk_05_a_pass_does_not_prolong_the_lease),
    TEST(test_pass_rule_8_zk_21_a_pass_for_an_acquire_that_was_given_up),
    TEST(test_pass_rule_9_zk_22_the_pass_is_lost),
    TEST(test_pass_rule_9_zk_22_the_reply_to_the_pass_is_lost),
    TEST(test_pass_rule_9_the_pass_is_refused),
    TEST(test_pass_rule_9_no_permission),
    TEST(test_pass_rule_9_no_directory_of_markers),
    TEST(test_pass_rule_10_zk_15_no_watch_is_left_by_a_bare_deletion),
    TEST(test_pass_rule_10_a_waiter_that_gave_up_leaves_no_watch),
    TEST(test_pass_rule_10_a_waiter_that_queued_again_leaves_no_watch),
    TEST(test_pass_rule_10_no_watch_is_left_where_a_node_is_absent),
    TEST(test_pass_rule_10_nodes_of_others_have_no_markers),
    TEST(test_pass_rule_11_a_marker_that_is_there_grants_nothing),
    TEST(test_pass_rule_12_the_end_of_the_only_one_ahead_is_the_grant),
    TEST(test_pass_rule_12_zk_26_the_end_of_one_of_two_is_not),
    TEST(test_pass_rule_12_the_end_before_the_own_watch_is_set_again),
    TEST(test_pass_rule_12_c11_the_only_one_ahead_is_detached_and_adopted),
    TEST(test_pass_rule_12_e5_the_only_one_ahead_is_downgraded),
    TEST(test_pass_takes_six_requests_and_no_list_after_a_wake),
    TEST(test_markers_are_no_locks),
};

#ifdef MRT_DEFECTS

static int run_all(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    int missed = zk_place_start(NULL) == 0 ? defect_run("zookeeper_pass", run_all) : -1;
    zk_place_stop(NULL);
    return missed != 0;
}

#else

int main(int argument_count, char **arguments)
{
    if (argument_count == 2)
        cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests(tests, zk_place_start, zk_place_stop);
}

#endif
