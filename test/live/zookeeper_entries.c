/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interference of a server, another program or an administrator with the ZooKeeper store, one case
 * a test: answers refused or falsified by the proxy, nodes deleted or planted by another client,
 * traffic counted and traced.
 */
#include "cmocka_all.h"

#include "live/zk_proxy.h"
#include "live/zk_raw.h"
#include "live/zookeeper_place.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIRECTORY "/test/root/mortise"

static struct zk_proxy *proxy;
static mortise_client *direct, *through; /* to the server; by way of the proxy */

static int begin(void **state)
{
    (void)state;
    mortise_client_options options = {.size = sizeof options, .log = zk_hear};
    zk_said[0] = '\0';
    proxy = zk_proxy_start(zk_place_port());
    direct = zk_open(zk_place_uri(zk_place_port(), "4s"));
    assert_int_equal(mortise_open(zk_place_uri(zk_proxy_port(proxy), "4s"), &options, &through), 0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    mortise_close(direct);
    mortise_close(through);
    zk_proxy_stop(proxy);
    return 0;
}

/* The output of kazoo. */
static const char *raw(const char *command, const char *path)
{
    static char output[65536];
    char line[1024];
    snprintf(line, sizeof line, "%s 127.0.0.1:%u - %s " DIRECTORY "/%s 2>&1", ZK_RAW,
             (unsigned)zk_place_port(), command, path);
    FILE *pipe = popen(line, "re"); // NOLINT(cert-env33-c): all parts are the test's own
    assert_non_null(pipe);
    size_t length = fread(output, 1, sizeof output - 1, pipe);
    output[length] = '\0';
    pclose(pipe);
    return output;
}

static int compare_sequences(const void *a, const void *b)
{
    const char *const *first = a, *const *second = b;
    return strcmp(strrchr(*second, '-'), strrchr(*first, '-'));
}

/* Deletes all nodes of a lock, as an administrator might; the last of them first. */
static void delete_all(const char *name)
{
    char text[4096], path[512], *nodes[16], *rest = text;
    size_t count = 0;
    snprintf(text, sizeof text, "%s", raw("children", name));
    for (char *node; count < 16 && (node = strsep(&rest, "\n"));)
        if (*node)
            nodes[count++] = node;
    qsort(nodes, count, sizeof *nodes, compare_sequences);
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", name, nodes[i]);
        assert_string_equal(raw("delete", path), "");
    }
}

static void release_and_go(mortise_lock *lock, mortise_hold hold)
{
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    assert_int_equal(mortise_release(zk_acquire(lock)), MORTISE_OK);
}

/* An asynchronous acquire. */
struct told {
    pthread_mutex_t mutex;
    bool done;
    int error;
    mortise_hold hold;
};

static void tell(void *argument, int error, mortise_hold hold)
{
    struct told *told = argument;
    pthread_mutex_lock(&told->mutex);
    told->done = true;
    told->error = error;
    told->hold = hold;
    pthread_mutex_unlock(&told->mutex);
}

static void start(mortise_lock *lock, struct told *told)
{
    *told = (struct told){.mutex = PTHREAD_MUTEX_INITIALIZER};
    assert_int_equal(mortise_acquire_async(lock, INT64_MAX, tell, told, NULL), MORTISE_OK);
}

static bool is_done(struct told *told)
{
    pthread_mutex_lock(&told->mutex);
    bool done = told->done;
    pthread_mutex_unlock(&told->mutex);
    return done;
}

static mortise_hold await(struct told *told)
{
    for (int64_t last = zk_now_ms() + 30000; !is_done(told); zk_rest_ms(5))
        assert_true(zk_now_ms() < last);
    assert_int_equal(told->error, MORTISE_OK);
    return told->hold;
}

/* ----------------------------------------------------------- answers refused */

static void test_zk_31_zk_36_a_request_refused_with_a_passing_code_is_repeated(void **state)
{
    (void)state;
    static const enum zk_opcode operations[] = {ZK_OP_CREATE2, ZK_OP_GET_CHILDREN, ZK_OP_DELETE};
    static const int codes[] = {-118 /* session moved */, -127 /* throttled */};
    mortise_lock *lock = zk_mutex(through, "refused");
    assert_int_equal(mortise_release(zk_acquire(lock)), MORTISE_OK);
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        for (size_t k = 0; k < sizeof codes / sizeof codes[0]; k++) {
            assert_true(zk_wait_tickets(direct, "refused", 0, 5000));
            print_message("operation %d, code %d\n", (int)operations[i], codes[k]);
            zk_proxy_refuse(proxy, operations[i], codes[k]);
            mortise_hold hold = zk_acquire(lock);
            assert_int_equal(zk_tickets(direct, "refused"), 1);
            assert_int_equal(mortise_release(hold), MORTISE_OK);
            for (int64_t last = zk_now_ms() + 5000; !zk_proxy_refused(proxy); zk_rest_ms(5))
                assert_true(zk_now_ms() < last);
        }
    assert_true(zk_wait_tickets(direct, "refused", 0, 5000));
}

static void test_zk_36_an_unknown_code_is_an_error_of_the_store(void **state)
{
    (void)state;
    mortise_lock *lock = zk_mutex(through, "strange");
    /* Without a child the server deletes the directory, and a create more makes it anew. */
    mortise_hold child = zk_acquire(zk_mutex(direct, "strange/child"));
    assert_int_equal(mortise_release(zk_acquire(lock)), MORTISE_OK);
    zk_proxy_reset_counts(proxy);
    zk_proxy_refuse(proxy, ZK_OP_CREATE2, -4711);
    mortise_hold hold;
    int error = mortise_acquire_for(lock, 10000, &hold);
    assert_true(zk_proxy_refused(proxy));
    assert_in_range(zk_proxy_count(proxy, ZK_OP_CREATE2), 1, 2); /* no storm */
    if (error == MORTISE_OK)
        assert_int_equal(mortise_release(hold), MORTISE_OK);
    assert_true(zk_wait_tickets(direct, "strange", 0, 5000));
    assert_int_equal(mortise_release(child), MORTISE_OK);
}

static void test_c7_the_one_ahead_is_gone_before_it_is_watched(void **state)
{
    (void)state;
    mortise_hold held = zk_acquire(zk_mutex(direct, "c7"));
    struct told told;
    assert_int_equal(mortise_release(zk_acquire(zk_mutex(through, "c7/warm"))), MORTISE_OK);
    zk_proxy_reset_counts(proxy);
    zk_proxy_refuse(proxy, ZK_OP_GET_DATA, -101 /* no node */);
    int64_t before = zk_now_ms();
    start(zk_mutex(through, "c7"), &told);
    while (zk_proxy_count(proxy, ZK_OP_GET_DATA) < 2) { /* looked again, and watched */
        assert_true(zk_now_ms() < before + 4500);       /* and not by the recheck every 5 s */
        zk_rest_ms(5);
    }
    assert_int_equal(zk_tickets(direct, "c7"), 2); /* it keeps its place */
    assert_int_equal(mortise_release(held), MORTISE_OK);
    assert_int_equal(mortise_release(await(&told)), MORTISE_OK);
}

/* --------------------------------------------------------- answers falsified */

static void test_zk_02_a_lookup_goes_behind_a_write(void **state)
{
    (void)state;
    mortise_lock *lock = zk_mutex(through, "lookup");
    mortise_hold child = zk_acquire(zk_mutex(direct, "lookup/child")); /* keeps the directory */
    assert_int_equal(mortise_release(zk_acquire(lock)), MORTISE_OK);
    assert_true(zk_wait_tickets(direct, "lookup", 0, 5000));
    zk_proxy_reset_counts(proxy);
    zk_proxy_swallow(proxy, ZK_OP_CREATE2);
    mortise_hold hold = zk_acquire(lock);
    enum zk_opcode trace[64];
    size_t count = zk_proxy_trace(proxy, trace, 64), lookup = 1;
    while (lookup < count &&
           !(trace[lookup] == ZK_OP_GET_CHILDREN && trace[lookup - 1] == ZK_OP_DELETE))
        lookup++;
    assert_true(lookup < count); /* and this list finds the node: there is no second create */
    assert_int_equal(zk_proxy_count(proxy, ZK_OP_CREATE2), 1);
    release_and_go(lock, hold);
    assert_int_equal(mortise_release(child), MORTISE_OK);
}

static int note_first(void *argument, const mortise_entry *entry)
{
    *(uint64_t *)argument = entry->fence;
    return 1;
}

static void test_zk_03_a_node_of_another_session_is_not_adopted(void **state)
{
    (void)state;
    mortise_lock *lock = zk_mutex(through, "foreign-owner");
    assert_int_equal(mortise_release(zk_acquire(lock)), MORTISE_OK);
    zk_proxy_reset_counts(proxy);
    zk_proxy_falsify_owner(proxy);
    zk_proxy_swallow(proxy, ZK_OP_CREATE2);
    struct told told;
    start(lock, &told); /* it waits behind the node that is not its own, as it has to believe */
    assert_true(zk_wait_tickets(direct, "foreign-owner", 2, 10000));
    assert_true(zk_proxy_swallowed(proxy));
    assert_false(is_done(&told));
    uint64_t first = 0;
    assert_int_equal(mortise_list(direct, "foreign-owner", note_first, &first), MORTISE_OK);
    assert_int_equal(mortise_break(direct, "foreign-owner", first), MORTISE_OK);
    release_and_go(lock, await(&told));
    assert_true(zk_wait_tickets(direct, "foreign-owner", 0, 5000));
}

static void test_zk_04_a_session_silently_replaced_is_lost(void **state)
{
    (void)state;
    mortise_lock *lock = zk_mutex(through, "replaced");
    mortise_hold hold = zk_acquire(lock);
    int64_t before = zk_now_ms();
    zk_proxy_falsify_session(proxy);
    zk_proxy_cut(proxy);
    while (mortise_is_held(hold)) {
        assert_true(zk_now_ms() < before + 3000); /* by the answer, not by the clock */
        zk_rest_ms(1);
    }
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    assert_int_equal(mortise_release(zk_acquire(lock)), MORTISE_OK);
}

static void test_zk_41_a_server_that_only_answers_pings(void **state)
{
    (void)state;
    mortise_lock *lock = zk_mutex(through, "zombie");
    mortise_hold hold = zk_acquire(lock), none;
    int64_t before = zk_now_ms();
    zk_proxy_mute(proxy, true);
    assert_int_equal(mortise_acquire_for(zk_mutex(through, "zombie/2"), 300, &none),
                     MORTISE_ETIMEOUT);
    for (int64_t now = before; mortise_is_held(hold); now = zk_now_ms()) {
        assert_true(now < before + 4100); /* pings prove nothing */
        zk_rest_ms(1);
    }
    zk_proxy_mute(proxy, false);
    zk_proxy_cut(proxy);
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    assert_int_equal(mortise_release(zk_acquire(lock)), MORTISE_OK);
}

static void test_zk_43_c12_the_session_timeout_that_the_server_grants_is_used(void **state)
{
    (void)state;
    mortise_client *brief = zk_open(zk_place_uri(zk_place_port(), "100ms"));
    mortise_client *lasting = zk_open(zk_place_uri(zk_place_port(), "3600s"));
    mortise_hold held = zk_acquire(zk_mutex(brief, "43/brief"));
    assert_in_range(mortise_hold_remaining_ms(held), 1, 1000); /* two ticks */
    zk_rest_ms(300);
    assert_true(mortise_is_held(held));
    held = zk_acquire(zk_mutex(lasting, "43/lasting"));
    assert_in_range(mortise_hold_remaining_ms(held), 1001, 10000); /* twenty */
    assert_int_equal(mortise_close(brief), MORTISE_OK);
    assert_int_equal(mortise_close(lasting), MORTISE_OK);
}

/* ---------------------------------------------------- directories */

#define NO_NODE (-101)
#define UNIMPLEMENTED (-6)

static const char *const f11[] = {DIRECTORY "/f11", DIRECTORY "/f11/deep",
                                  DIRECTORY "/f11/deep/er"};

/* They are made on the way, stay while they are used, and are gone a while after. */
static void test_f11_directories_that_nobody_uses_disappear(void **state)
{
    (void)state;
    struct zk_raw *hand = zk_raw_open(zk_place_port());
    mortise_lock *lock = zk_mutex(direct, "f11/deep/er");
    assert_int_equal(zk_raw_exists(hand, f11[0]), NO_NODE);
    for (int round = 0; round < 2; round++) {
        mortise_hold hold = zk_acquire(lock);
        zk_rest_ms(round == 0 ? 2500 : 0); /* empty ones are looked for each second */
        for (int i = 0; i < 3; i++)
            assert_int_equal(zk_raw_exists(hand, f11[i]), 0);
        assert_int_equal(mortise_release(hold), MORTISE_OK);
        for (int64_t last = zk_now_ms() + 20000; zk_raw_exists(hand, f11[0]) != NO_NODE;
             zk_rest_ms(20))
            assert_true(zk_now_ms() < last);
    }
    zk_raw_close(hand);
}

/* A server before 3.5 knows no containers: plain nodes are made, which stay, and it is not asked
   for one again. */
static void test_f11_a_server_without_containers(void **state)
{
    (void)state;
    struct zk_raw *hand = zk_raw_open(zk_place_port());
    zk_proxy_refuse_all(proxy, ZK_OP_CREATE_CONTAINER, UNIMPLEMENTED);
    mortise_hold hold = zk_acquire(zk_mutex(through, "plain/deep/er"));
    assert_true(zk_proxy_refused(proxy));
    unsigned asked = zk_proxy_count(proxy, ZK_OP_CREATE_CONTAINER);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    hold = zk_acquire(zk_mutex(through, "plain/next"));
    assert_int_equal(zk_proxy_count(proxy, ZK_OP_CREATE_CONTAINER), asked);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    assert_true(zk_wait_tickets(direct, "plain/next", 0, 5000));
    zk_rest_ms(2500);
    assert_int_equal(zk_raw_exists(hand, DIRECTORY "/plain/deep/er"), 0);
    assert_int_equal(zk_raw_exists(hand, DIRECTORY "/plain/next"), 0);
    zk_raw_close(hand);
}

/* ---------------------------------------------------- nodes deleted, planted */

static void test_zk_13_the_holders_node_is_deleted(void **state)
{
    (void)state;
    mortise_lock *lock = zk_mutex(through, "deleted");
    mortise_hold hold = zk_acquire(lock);
    delete_all("deleted");
    assert_int_equal(mortise_verify(hold, 5000), MORTISE_ELOST);
    assert_false(mortise_is_held(hold));
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    hold = zk_acquire(lock);
    delete_all("deleted");
    for (int64_t last = zk_now_ms() + 8000; mortise_is_held(hold); zk_rest_ms(5))
        assert_true(zk_now_ms() < last); /* nobody asked: the look each 5 s */
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    assert_int_equal(mortise_release(zk_acquire(lock)), MORTISE_OK);
}

/* A node of the same name takes its place, which belongs to no session: a list does not show it. */
static void test_zk_13_the_holders_node_is_replaced_by_another(void **state)
{
    (void)state;
    char path[256];
    struct zk_raw *hand = zk_raw_open(zk_place_port());
    mortise_hold hold = zk_acquire(zk_mutex(through, "usurped"));
    assert_int_equal(zk_raw_children(hand, DIRECTORY "/usurped"), 1);
    snprintf(path, sizeof path, DIRECTORY "/usurped/%s", zk_raw_name(hand, 0));
    assert_int_equal(zk_raw_delete(hand, path), 0);
    assert_int_equal(zk_raw_create(hand, path, false), 0);
    for (int64_t last = zk_now_ms() + 8000; mortise_is_held(hold); zk_rest_ms(5))
        assert_true(zk_now_ms() < last); /* by the look each 5 s */
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    assert_int_equal(zk_raw_exists(hand, path), 0); /* it is not ours to delete */
    assert_int_equal(zk_raw_delete(hand, path), 0);
    zk_raw_close(hand);
}

static void test_zk_13_c9_c10_all_nodes_are_deleted_under_a_waiter(void **state)
{
    (void)state;
    mortise_hold held = zk_acquire(zk_mutex(direct, "swept"));
    struct told told;
    start(zk_mutex(through, "swept"), &told);
    assert_true(zk_wait_tickets(direct, "swept", 2, 5000));
    delete_all("swept");
    mortise_hold hold = await(&told); /* with a new node */
    assert_int_equal(zk_tickets(direct, "swept"), 1);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    assert_int_equal(mortise_verify(held, 5000), MORTISE_ELOST);
    assert_int_equal(mortise_release(held), MORTISE_ELOST);
}

static void test_zk_33_foreign_names_are_not_counted_and_are_reported_once(void **state)
{
    (void)state;
    mortise_lock *lock = zk_mutex(through, "salted");
    mortise_hold hold = zk_acquire(lock);
    char path[128];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "salted/stray-lock-%d", i);
        assert_string_equal(raw("make", path), "");
    }
    assert_int_equal(mortise_verify(hold, 5000), MORTISE_OK);
    for (int i = 0; i < 3; i++)
        release_and_go(lock, i ? zk_acquire(lock) : hold);
    char *first = strstr(zk_said, "stray-lock-");
    assert_non_null(first);
    assert_null(strstr(first + 1, "stray-lock-"));
    assert_true(zk_wait_tickets(direct, "salted", 0, 20000));
}

static void test_zk_32_an_orphan_at_the_head_blocks_and_is_shown(void **state)
{
    (void)state;
    assert_string_equal(raw("make", "orphan/x-lock-0000000000"), "");
    mortise_lock *lock = zk_mutex(through, "orphan");
    mortise_hold hold;
    assert_int_equal(zk_tickets(direct, "orphan"), 1);
    assert_int_equal(mortise_try_acquire(lock, &hold), MORTISE_EBUSY);
    assert_int_equal(mortise_acquire_for(lock, 300, &hold), MORTISE_ETIMEOUT);
    assert_string_equal(raw("delete", "orphan/x-lock-0000000000"), "");
    assert_int_equal(mortise_release(zk_acquire(lock)), MORTISE_OK);
}

/* ---------------------------------------------------------- what goes over it */

static void test_zk_29_a_list_is_behind_a_sync(void **state)
{
    (void)state;
    mortise_client *client = zk_open(zk_place_uri(zk_proxy_port(proxy), "4s"));
    zk_proxy_reset_counts(proxy);
    assert_int_equal(zk_tickets(client, "anything"), 0);
    enum zk_opcode trace[4];
    assert_true(zk_proxy_trace(proxy, trace, 4) >= 2);
    assert_int_equal(trace[0], ZK_OP_SYNC);
    assert_int_equal(trace[1], ZK_OP_GET_CHILDREN);
    assert_int_equal(mortise_close(client), MORTISE_OK);
}

static void test_c5_f24_an_acquire_creates_lists_and_watches_in_this_order(void **state)
{
    (void)state;
    mortise_hold held = zk_acquire(zk_mutex(direct, "order"));
    assert_int_equal(mortise_release(zk_acquire(zk_mutex(through, "order/warm"))), MORTISE_OK);
    assert_true(zk_wait_tickets(direct, "order/warm", 0, 5000));
    mortise_client *client = zk_open(zk_place_uri(zk_place_port(), "4s"));
    struct told first, told;
    start(zk_mutex(client, "order"), &first);
    assert_true(zk_wait_tickets(direct, "order", 2, 5000));
    zk_rest_ms(50);
    zk_proxy_reset_counts(proxy);
    start(zk_mutex(through, "order"), &told);
    assert_true(zk_wait_tickets(direct, "order", 3, 5000));
    zk_rest_ms(50);
    /* The own node is watched, the marker of the one ahead, and that one. */
    enum zk_opcode trace[16], expected[] = {ZK_OP_CREATE2, ZK_OP_GET_CHILDREN, ZK_OP_GET_DATA,
                                            ZK_OP_EXISTS, ZK_OP_GET_DATA};
    size_t count = zk_proxy_trace(proxy, trace, 16), at = 0;
    for (size_t i = 0; i < count; i++)
        if (trace[i] != ZK_OP_SYNC) /* a sign of life */
            assert_true(at < 5 && trace[i] == expected[at++]);
    assert_int_equal(at, 5);
    assert_int_equal(mortise_release(held), MORTISE_OK);
    assert_int_equal(mortise_release(await(&first)), MORTISE_OK);
    assert_int_equal(mortise_close(client), MORTISE_OK);
    assert_int_equal(mortise_release(await(&told)), MORTISE_OK);
}

static void test_c15_a_waiter_does_not_poll(void **state)
{
    (void)state;
    mortise_hold held = zk_acquire(zk_mutex(direct, "idle"));
    struct told told;
    start(zk_mutex(through, "idle"), &told);
    assert_true(zk_wait_tickets(direct, "idle", 2, 5000));
    zk_rest_ms(100);
    zk_proxy_reset_counts(proxy);
    int64_t before = zk_now_ms();
    zk_rest_ms(4000);
    int64_t looks = (zk_now_ms() - before) / 5000 + 1;
    assert_in_range(zk_proxy_count(proxy, ZK_OP_GET_CHILDREN), 0, looks);
    assert_in_range(zk_proxy_count(proxy, ZK_OP_GET_DATA), 0, looks);
    assert_int_equal(mortise_release(held), MORTISE_OK);
    assert_int_equal(mortise_release(await(&told)), MORTISE_OK);
}

static void test_c1_c14_a_path_of_five_levels_and_the_nodes_name(void **state)
{
    (void)state;
    mortise_hold hold = zk_acquire(zk_mutex(through, "one/two/three/four/five"));
    const char *node = raw("children", "one/two/three/four/five");
    assert_true(strncmp(node, "_c_", 3) == 0);
    assert_non_null(strstr(node, "-lock-0000000000\n"));
    assert_int_equal(mortise_release(hold), MORTISE_OK);
}

static void test_c2_the_order_of_grants_is_that_of_the_nodes(void **state)
{
    (void)state;
    enum { WAITERS = 6 };
    mortise_client *clients[WAITERS];
    struct told told[WAITERS];
    mortise_hold hold = zk_acquire(zk_mutex(direct, "fifo"));
    for (int i = 0; i < WAITERS; i++) {
        clients[i] = zk_open(zk_place_uri(zk_place_port(), "4s"));
        start(zk_mutex(clients[i], "fifo"), &told[i]);
        assert_true(zk_wait_tickets(direct, "fifo", i + 2, 5000));
    }
    for (int i = 0; i < WAITERS; i++) {
        uint64_t fence = mortise_hold_fence(hold);
        assert_int_equal(mortise_release(hold), MORTISE_OK);
        hold = await(&told[i]);
        assert_true(mortise_hold_fence(hold) > fence);
        for (int k = i + 1; k < WAITERS; k++)
            assert_false(is_done(&told[k]));
    }
    for (int i = 0; i < WAITERS; i++)
        assert_int_equal(mortise_close(clients[i]), MORTISE_OK);
}

static void write_and_delete(int count)
{
    char name[32];
    uint64_t version;
    for (int i = 0; i < count; i++) {
        mortise_cell cell;
        snprintf(name, sizeof name, "cells/%d", i);
        assert_int_equal(mortise_cell_get(direct, name, &cell), MORTISE_OK);
        assert_int_equal(mortise_cell_cas(direct, name, cell.version, "x", 1, 0, &version), 0);
        assert_int_equal(mortise_cell_delete(direct, name, version, 0), MORTISE_OK);
    }
}

/* Each name has a directory, and a node in that. */
static void expect_nodes(struct zk_raw *raw, int count)
{
    char path[64];
    assert_int_equal(zk_raw_children(raw, "/test/root/mortise/cells"), count);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "/test/root/mortise/cells/%d", i);
        assert_int_equal(zk_raw_children(raw, path), 1);
    }
}

static int write_cell(mortise_client *client, uint64_t *version, uint64_t fence)
{
    return mortise_cell_cas(client, "seen", *version, "x", 1, fence, version);
}

static void expect_cell_requests(unsigned reads, unsigned writes)
{
    assert_int_equal(zk_proxy_count(proxy, ZK_OP_GET_DATA), reads);
    assert_int_equal(zk_proxy_count(proxy, ZK_OP_SET_DATA), writes);
    zk_proxy_reset_counts(proxy);
}

/* A client writes without another read where it has read or written last. */
static void test_k3_a_cell_that_was_seen_is_written_at_once(void **state)
{
    (void)state;
    uint64_t version = 0, old;
    assert_int_equal(write_cell(direct, &version, 7), MORTISE_OK);
    old = version;
    zk_proxy_reset_counts(proxy);
    assert_int_equal(write_cell(through, &version, 0), MORTISE_OK);
    expect_cell_requests(1, 1);
    assert_int_equal(write_cell(through, &version, 7), MORTISE_OK);
    expect_cell_requests(0, 1);
    assert_int_equal(write_cell(through, &version, 6), MORTISE_ESTALE); /* than another's */
    expect_cell_requests(1, 0);
    assert_int_equal(write_cell(through, &old, 0), MORTISE_ECONFLICT);
    expect_cell_requests(1, 0);
    assert_int_equal(mortise_cell_delete(through, "seen", version, 7), MORTISE_OK);
    expect_cell_requests(0, 1);
    version = 0;
    assert_int_equal(write_cell(through, &version, 7), MORTISE_OK);
    expect_cell_requests(0, 1);
}

static void test_k3_a_cell_that_others_have_written_since(void **state)
{
    (void)state;
    mortise_cell cell;
    uint64_t version = 0, changed;
    assert_int_equal(mortise_cell_cas(direct, "since", 0, "x", 1, 0, &version), MORTISE_OK);
    assert_int_equal(mortise_cell_get(through, "since", &cell), MORTISE_OK);
    assert_int_equal(mortise_cell_cas(direct, "since", version, "y", 1, 8, &changed), MORTISE_OK);
    zk_proxy_reset_counts(proxy);
    assert_int_equal(mortise_cell_cas(through, "since", version, "z", 1, 0, NULL),
                     MORTISE_ECONFLICT);
    expect_cell_requests(0, 1);
    assert_int_equal(mortise_cell_get(through, "since", &cell), MORTISE_OK);
    assert_int_equal(cell.version, changed);
    assert_int_equal(mortise_cell_cas(direct, "since", changed, "y", 1, 9, &version), MORTISE_OK);
    assert_int_equal(mortise_cell_cas(through, "since", changed, "z", 1, 8, NULL), MORTISE_ESTALE);
    expect_cell_requests(2, 1); /* the newer fence is read */
}

static void test_k3_a_lost_write_of_a_cell_that_was_seen_is_repeated(void **state)
{
    (void)state;
    mortise_cell cell;
    uint64_t version = 0;
    assert_int_equal(mortise_cell_cas(through, "lost", 0, "x", 1, 0, &version), MORTISE_OK);
    zk_proxy_swallow(proxy, ZK_OP_SET_DATA);
    assert_int_equal(mortise_cell_cas(through, "lost", version, "y", 1, 0, &version), MORTISE_OK);
    assert_true(zk_proxy_swallowed(proxy));
    assert_int_equal(mortise_cell_get(direct, "lost", &cell), MORTISE_OK);
    assert_int_equal(cell.version, version);
    zk_proxy_reset_counts(proxy);
    zk_proxy_drop(proxy, ZK_OP_SET_DATA);
    assert_int_equal(mortise_cell_cas(through, "lost", version, "z", 1, 0, &version), MORTISE_OK);
    assert_true(zk_proxy_dropped(proxy));
    assert_int_equal(mortise_cell_get(direct, "lost", &cell), MORTISE_OK);
    assert_memory_equal(cell.value, "z", 1);
}

/* Only the server keeps a deleted cell's version and fence. */
static void test_k1_cells_that_are_deleted_pile_up_nothing_here(void **state)
{
    (void)state;
    const int count = 100;
    struct zk_raw *raw = zk_raw_open(zk_place_port());
    assert_non_null(raw);
    write_and_delete(count);
    expect_nodes(raw, count);
    size_t memory = mallinfo2().uordblks;
    write_and_delete(count);
    assert_true(mallinfo2().uordblks < memory + (size_t)count * 1000);
    expect_nodes(raw, count);
    zk_raw_close(raw);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        TEST(test_zk_31_zk_36_a_request_refused_with_a_passing_code_is_repeated),
        TEST(test_zk_36_an_unknown_code_is_an_error_of_the_store),
        TEST(test_k1_cells_that_are_deleted_pile_up_nothing_here),
        TEST(test_k3_a_cell_that_was_seen_is_written_at_once),
        TEST(test_k3_a_cell_that_others_have_written_since),
        TEST(test_k3_a_lost_write_of_a_cell_that_was_seen_is_repeated),
        TEST(test_c7_the_one_ahead_is_gone_before_it_is_watched),
        TEST(test_zk_02_a_lookup_goes_behind_a_write),
        TEST(test_zk_03_a_node_of_another_session_is_not_adopted),
        TEST(test_zk_04_a_session_silently_replaced_is_lost),
        TEST(test_zk_41_a_server_that_only_answers_pings),
        TEST(test_zk_43_c12_the_session_timeout_that_the_server_grants_is_used),
        TEST(test_f11_directories_that_nobody_uses_disappear),
        TEST(test_f11_a_server_without_containers),
        TEST(test_zk_13_the_holders_node_is_deleted),
        TEST(test_zk_13_the_holders_node_is_replaced_by_another),
        TEST(test_zk_13_c9_c10_all_nodes_are_deleted_under_a_waiter),
        TEST(test_zk_33_foreign_names_are_not_counted_and_are_reported_once),
        TEST(test_zk_32_an_orphan_at_the_head_blocks_and_is_shown),
        TEST(test_zk_29_a_list_is_behind_a_sync),
        TEST(test_c5_f24_an_acquire_creates_lists_and_watches_in_this_order),
        TEST(test_c15_a_waiter_does_not_poll),
        TEST(test_c1_c14_a_path_of_five_levels_and_the_nodes_name),
        TEST(test_c2_the_order_of_grants_is_that_of_the_nodes),
    };
    if (count == 2)
        cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests(tests, zk_place_start, zk_place_stop);
}
