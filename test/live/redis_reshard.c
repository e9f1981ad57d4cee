/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real cluster of Redis under processes that compete: the namespace's slot moves to another
 * master and back, and its master is killed. RD-16.
 */
#include "cmocka_all.h"
#include "live/failover.h"
#include "live/zookeeper_place.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROCESSES 4
#define SLOT "13020"
#define PAUSE_MS 700 /* between the announcement of a move and its first key */

static const char *uri(const char *rest)
{
    static char text[512];
    char at[256];
    assert_int_equal(sscanf(zk_place_servers("url"), "%255s", at), 1);
    snprintf(text, sizeof text, "%s/%s", at, rest);
    return text;
}

static redisContext *connect_to(int number, int *port)
{
    *port = failover_port(number);
    redisContext *raw = redisConnect("127.0.0.1", *port);
    assert_int_equal(raw->err, 0);
    return raw;
}

static redisReply *order(redisContext *raw, const char *command)
{
    redisReply *reply = redisCommand(raw, command);
    assert_non_null(reply);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", command, reply->str);
    return reply;
}

static void set_slot(redisContext *raw, const char *how, const char *node)
{
    char command[128];
    snprintf(command, sizeof command, "CLUSTER SETSLOT " SLOT " %s %s", how, node);
    freeReplyObject(order(raw, command));
}

/* As redis-cli does it, key by key; false: the slot is empty. */
static bool move_keys(redisContext *from, int port)
{
    char command[512];
    redisReply *keys = order(from, "CLUSTER GETKEYSINSLOT " SLOT " 3");
    bool any = keys->elements > 0;
    for (size_t i = 0; i < keys->elements; i++) {
        snprintf(command, sizeof command, "MIGRATE 127.0.0.1 %d %s 0 5000", port,
                 keys->element[i]->str);
        freeReplyObject(order(from, command));
    }
    freeReplyObject(keys);
    return any;
}

static void move_slot(int source, int target)
{
    int unused, port;
    redisContext *from = connect_to(source, &unused), *to = connect_to(target, &port);
    redisReply *from_id = order(from, "CLUSTER MYID"), *to_id = order(to, "CLUSTER MYID");
    set_slot(to, "IMPORTING", from_id->str);
    set_slot(from, "MIGRATING", to_id->str);
    zk_rest_ms(PAUSE_MS);
    while (move_keys(from, port))
        continue;
    set_slot(to, "NODE", to_id->str);
    set_slot(from, "NODE", to_id->str);
    freeReplyObject(from_id);
    freeReplyObject(to_id);
    redisFree(from);
    redisFree(to);
}

static void test_rd_16_a_slot_that_moves_costs_no_hold(void **state)
{
    (void)state;
    struct failover_counts *counts = failover_begin(uri("?session=20s"), PROCESSES);
    mortise_client *client = zk_open(uri("?session=20s"));
    mortise_hold hold = zk_acquire(zk_mutex(client, "long"));
    mortise_client *claimer = zk_open(uri("?session=120s"));
    mortise_lock *claim;
    assert_int_equal(mortise_exclusive_new(claimer, "claim", NULL, &claim), MORTISE_OK);
    for (int i = 0; i < 2; i++) {
        mortise_release(zk_acquire(claim));
        failover_wait_turns(counts, 50);
        move_slot(i == 0 ? 2 : 0, i == 0 ? 0 : 2);
        failover_wait_turns(counts, 50);
        mortise_release(zk_acquire(claim)); /* the first that its client hears of the move */
        assert_int_equal(mortise_verify(hold, 20000), MORTISE_OK);
        assert_int_equal(zk_tickets(client, "long"), 1);
    }
    failover_end(counts, "slot moved, and back");
    assert_int_equal(counts->overlaps, 0);
    assert_int_equal(counts->refused, 0);
    assert_int_equal(counts->lost, 0);
    mortise_close(claimer);
    mortise_close(client);
}

/* A server that forgets all must not come back as the master. */
static void wait_for_master(int number)
{
    int unused;
    int64_t limit = zk_now_ms() + 60000;
    redisContext *raw = connect_to(number, &unused);
    for (bool is = false; !is; zk_rest_ms(20)) {
        redisReply *reply = order(raw, "ROLE");
        is = strcmp(reply->element[0]->str, "master") == 0;
        freeReplyObject(reply);
        assert_true(zk_now_ms() < limit);
    }
    redisFree(raw);
}

/* Once the killed one is back, as its replica, there are copies again. */
static void test_rd_02_rd_16_with_copies_a_failover_of_a_cluster_costs_no_hold(void **state)
{
    (void)state;
    struct failover_counts *counts = failover_begin(uri("?session=20s&replicas=1"), PROCESSES);
    mortise_client *client = zk_open(uri("?session=20s&replicas=1"));
    mortise_hold hold = zk_acquire(zk_mutex(client, "long"));
    failover_wait_turns(counts, 50);
    zk_place_server("kill", 2);
    wait_for_master(3);
    zk_place_server("restart", 2);
    failover_wait_turns(counts, 50);
    assert_int_equal(mortise_verify(hold, 20000), MORTISE_OK);
    assert_int_equal(zk_tickets(client, "long"), 1);
    failover_end(counts, "master of a cluster killed, replicas=1");
    assert_int_equal(counts->overlaps, 0);
    assert_int_equal(counts->refused, 0);
    mortise_close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rd_16_a_slot_that_moves_costs_no_hold),
        cmocka_unit_test(test_rd_02_rd_16_with_copies_a_failover_of_a_cluster_costs_no_hold),
    };
    zk_place_settings("", "redis-cluster4");
    return cmocka_run_group_tests(tests, zk_place_start, zk_place_stop);
}
