/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redis behind real sentinels: a master, two replicas and three sentinels, and failovers while
 * processes compete. All that a failover may lose is lost on purpose, and the fences tell.
 */
#include "cmocka_all.h"
#include "conform/port_client.h"
#include "live/failover.h"
#include "live/zookeeper_place.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define PROCESSES 4
#define ROUNDS 8

static const char *uri(const char *rest)
{
    static char text[512];
    char at[256];
    assert_int_equal(sscanf(zk_place_servers("url"), "%255s", at), 1);
    snprintf(text, sizeof text, "%s%s", at, rest);
    return text;
}

/* A command to a server of this number. */
static redisReply *command_at(int number, const char *command)
{
    redisContext *raw = redisConnect("127.0.0.1", failover_port(number));
    assert_int_equal(raw->err, 0);
    redisReply *reply = redisCommand(raw, command);
    assert_non_null(reply);
    redisFree(raw);
    return reply;
}

static void order(int number, const char *command)
{
    redisReply *reply = command_at(number, command);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s", reply->str);
    freeReplyObject(reply);
}

/* The number of the server that says that it is a master, of the three but for this one; -1: none
   does. */
static int master_beside(int other)
{
    int found = -1;
    for (int i = 0; i < 3 && found < 0; i++) {
        redisReply *reply = i == other ? NULL : command_at(i, "ROLE");
        if (reply && reply->type == REDIS_REPLY_ARRAY &&
            strcmp(reply->element[0]->str, "master") == 0)
            found = i;
        if (reply)
            freeReplyObject(reply);
    }
    return found;
}

static int await_master_beside(int other)
{
    int found;
    int64_t limit = zk_now_ms() + 60000;
    while ((found = master_beside(other)) < 0) {
        assert_true(zk_now_ms() < limit);
        zk_rest_ms(20);
    }
    return found;
}

/* A sentinel gives a fail-over up that has taken 5 s, and begins another by an order alone. It
   refuses an order while one goes on. */
static void demote(int sentinel, int master)
{
    int64_t limit = zk_now_ms() + 120000, next = 0;
    while (master_beside(master) < 0) {
        assert_true(zk_now_ms() < limit);
        if (zk_now_ms() >= next) {
            freeReplyObject(command_at(sentinel, "SENTINEL FAILOVER mymaster"));
            next = zk_now_ms() + 10000;
        }
        zk_rest_ms(20);
    }
}

/* With a copy of each grant the holds go on, and nobody overlaps. Operators reach the new server.
 */
static void test_rd_02_with_copies_a_failover_costs_no_hold(void **state)
{
    (void)state;
    struct failover_counts *counts = failover_begin(uri("?session=60s&replicas=1"), PROCESSES);
    mortise_client *client = zk_open(uri("?session=60s&replicas=1"));
    mortise_hold hold = zk_acquire(zk_mutex(client, "long"));
    failover_wait_turns(counts, 50);
    zk_place_server("kill", 0);
    failover_wait_turns(counts, 100);
    assert_int_equal(mortise_verify(hold, 20000), MORTISE_OK);
    assert_int_equal(zk_tickets(client, "long"), 1);
    mortise_client *watcher = zk_open(uri(""));
    assert_int_equal(zk_tickets(watcher, "long"), 1);
    assert_int_equal(mortise_break(watcher, "long", mortise_hold_fence(hold)), MORTISE_OK);
    assert_int_equal(mortise_verify(hold, 20000), MORTISE_ELOST);
    failover_end(counts, "master killed, replicas=1");
    assert_int_equal(counts->overlaps, 0);
    assert_int_equal(counts->refused, 0);
    mortise_close(watcher);
    mortise_close(client);
}

/* Nothing else tells a holder of it, as the store has no subscription, and renewals go on. */
static void expect_that_an_end_wakes_all(void)
{
    struct port_client idle;
    struct mrt_event woken;
    port_open_session(&idle, uri("?session=60s"));
    order(0, "CLIENT KILL TYPE normal");
    assert_true(port_wait(&idle, MRT_WAKE, (struct mrt_id){0, 0}, 60 * MRT_SECOND, &woken));
    assert_true(mrt_id_equal(woken.session, idle.session));
    port_close(&idle);
}

/* The master is demoted, and lives: it refuses to write, or ends the connections. */
static void test_a_master_that_is_demoted_is_left(void **state)
{
    (void)state;
    expect_that_an_end_wakes_all();
    struct failover_counts *counts = failover_begin(uri("?session=20s"), PROCESSES);
    failover_wait_turns(counts, 100);
    demote(4, 0);
    failover_wait_turns(counts, 100);
    failover_end(counts, "master demoted");
}

/* Until so many clients have come to a server: each looks its session up behind its first write. */
static void await_clients(int number, int count)
{
    int64_t limit = zk_now_ms() + 60000;
    for (int come = 0; come < count; zk_rest_ms(20)) {
        redisReply *reply = command_at(number, "INFO commandstats");
        const char *calls = strstr(reply->str, "cmdstat_hgetall:calls=");
        come = calls ? (int)strtol(strchr(calls, '=') + 1, NULL, 10) : 0;
        freeReplyObject(reply);
        assert_true(zk_now_ms() < limit);
    }
}

static void await_loss(mortise_hold hold)
{
    int64_t limit = zk_now_ms() + 30000; /* less than until the next renewal */
    while (mortise_hold_state(hold) != MORTISE_LOST) {
        assert_true(zk_now_ms() < limit);
        zk_rest_ms(2);
    }
}

/* Both replicas have heard nothing of the newest grant and of a release, and their clocks are an
   hour behind. The new master first refuses all writes. The holder learns of its loss by the next
   connection, as its lease is longer than this test; until then others hold too, which the kernel
   sees, and the fences tell. */
static void test_rd_01_rd_03_what_a_failover_loses_is_fenced(void **state)
{
    (void)state;
    struct failover_counts *counts = failover_begin(uri("?session=120s"), PROCESSES);
    mortise_client *client = zk_open(uri("?session=120s"));
    mortise_capabilities can = {.size = sizeof can};
    mortise_get_capabilities(client, &can);
    assert_int_equal(can.survives_failover, 0);
    mortise_hold released = zk_acquire(zk_mutex(client, "released"));
    mortise_client *quiet = zk_open(uri("?session=120s"));
    mortise_release(zk_acquire(zk_mutex(quiet, "quiet"))); /* its session begins */
    zk_rest_ms(300);                                       /* the replicas have that */
    zk_place_servers_at("clock", "1 -3600");
    zk_place_servers_at("clock", "2 -3600");
    order(1, "REPLICAOF 127.0.0.1 1");
    order(2, "REPLICAOF 127.0.0.1 1");
    order(1, "CONFIG SET min-replicas-to-write 2");
    order(2, "CONFIG SET min-replicas-to-write 2");
    assert_int_equal(mortise_release(released), MORTISE_OK);
    assert_true(zk_wait_tickets(client, "released", 0, 10000));
    mortise_hold unheard = zk_acquire(zk_mutex(quiet, "quiet"));
    mortise_hold hold = zk_acquire(zk_mutex(client, "m"));
    assert_int_equal(flock(counts->witness, LOCK_EX | LOCK_NB), 0);
    assert_true(failover_write(counts, mortise_hold_fence(hold), true));
    int before = counts->overlaps;
    assert_int_equal(before, 0);
    zk_place_server("kill", 0);
    await_clients(await_master_beside(0), PROCESSES + 2);
    order(1, "CONFIG SET min-replicas-to-write 0");
    order(2, "CONFIG SET min-replicas-to-write 0");
    failover_wait_turns(counts, 20); /* others hold */
    assert_true(counts->overlaps > 0);
    assert_false(failover_write(counts, mortise_hold_fence(hold), false));
    await_loss(hold);
    await_loss(unheard); /* of a client that had nothing to send */
    flock(counts->witness, LOCK_UN);
    mortise_client *other = zk_open(uri("?session=120s"));
    mortise_release(zk_acquire(zk_mutex(other, "released"))); /* it did not come back for long */
    failover_end(counts, "master killed, replicas behind");
    mortise_close(other);
    mortise_close(quiet);
    mortise_close(client);
}

/* Whether two replicas follow this server, and the sentinels agree: it may be replaced. */
static bool is_replaceable(int master)
{
    redisReply *info = command_at(master, "INFO replication"),
               *quorum = command_at(3, "SENTINEL CKQUORUM mymaster");
    bool is = quorum->type == REDIS_REPLY_STATUS && strstr(info->str, "connected_slaves:2") &&
              !strstr(info->str, "state=wait") && !strstr(info->str, "state=send");
    freeReplyObject(info);
    freeReplyObject(quorum);
    return is;
}

/* One that came back says that it is the master until the sentinels demote it. */
static int await_replaceable_master(void)
{
    int64_t limit = zk_now_ms() + 60000;
    for (;;) {
        for (int i = 0; i < 3; i++)
            if (is_replaceable(i))
                return i;
        assert_true(zk_now_ms() < limit);
        zk_rest_ms(50);
    }
}

/* Again and again, by turns demoted and killed; the killed one comes back as a replica. One hold
   lasts through all. */
static void test_rd_02_many_failovers(void **state)
{
    (void)state;
    struct failover_counts *counts = failover_begin(uri("?session=60s&replicas=2"), PROCESSES);
    mortise_client *client = zk_open(uri("?session=60s&replicas=2"));
    mortise_hold hold = zk_acquire(zk_mutex(client, "long"));
    for (int round = 0; round < ROUNDS; round++) {
        int master = await_replaceable_master();
        failover_wait_turns(counts, 100);
        if (round % 2 == 0) {
            demote(3, master);
        } else {
            zk_place_server("kill", master);
            await_master_beside(master);
            zk_place_server("restart", master);
        }
        assert_int_equal(mortise_verify(hold, 60000), MORTISE_OK);
    }
    failover_end(counts, "many failovers, replicas=2");
    assert_int_equal(counts->overlaps, 0);
    assert_int_equal(counts->refused, 0);
    mortise_close(client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, zk_place_start, zk_place_stop)

int main(int count, char **arguments)
{
    const struct CMUnitTest many[] = {TEST(test_rd_02_many_failovers)};
    const struct CMUnitTest tests[] = {
        TEST(test_rd_02_with_copies_a_failover_costs_no_hold),
        TEST(test_a_master_that_is_demoted_is_left),
        TEST(test_rd_01_rd_03_what_a_failover_loses_is_fenced),
    };
    zk_place_settings("--clock " SET_CLOCK, "redis-sentinel");
    if (count > 1 && strcmp(arguments[1], "many") == 0)
        return cmocka_run_group_tests(many, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
