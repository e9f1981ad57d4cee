/* SPDX-License-Identifier: Apache-2.0 */
/* Users, passwords, databases and sockets of a real Redis server; and what a failover loses. */
#include "base/uri.h"
#include "cmocka_all.h"
#include "conform/port_client.h"
#include "live/noted.h"
#include "live/zookeeper_place.h"
#include "store/redis/rights.h"
#include "store/redis/script.h"

#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PASSWORD "pass word:1"

static redisContext *raw;

static const char *uri(const char *user, const char *tail)
{
    static char uris[4][160];
    static int next;
    char *text = uris[next++ % 4];
    snprintf(text, sizeof uris[0], "redis://%s127.0.0.1:%u/%s", user, (unsigned)zk_place_port(),
             tail);
    return text;
}

static void ask(const char *command)
{
    redisReply *reply = redisCommand(raw, command);
    assert_non_null(reply);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", command, reply->str);
    freeReplyObject(reply);
}

static int set_up(void **state)
{
    (void)state;
    unsetenv("MORTISE_REDIS_AUTH");
    raw = redisConnect("127.0.0.1", zk_place_port());
    assert_int_equal(raw->err, 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unsetenv("MORTISE_REDIS_AUTH");
    redisFree(raw);
    return 0;
}

static int try(mortise_client *client, const char *name, mortise_hold *hold)
{
    return mortise_try_acquire(zk_mutex(client, name), hold);
}

static void run_line(void *argument, const char *text)
{
    char line[1024];
    (void)argument;
    snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
    ask(line);
}

/* As mortise init --print-acl has it. */
static void make_alice(void)
{
    struct mrt_uri parsed;
    ask("ACL SETUSER alice reset");
    redisReply *reply = redisCommand(raw, "ACL SETUSER alice on >%s", PASSWORD);
    assert_string_equal(reply->str, "OK");
    freeReplyObject(reply);
    assert_int_equal(mrt_uri_parse("redis://alice@h/2?replicas=1", &parsed), MORTISE_OK);
    assert_int_equal(mrt_redis_print_rights(&parsed, run_line, NULL), MORTISE_OK);
}

static void *hand_over(void *argument)
{
    mortise_release(zk_acquire(zk_mutex(argument, "acl")));
    return NULL;
}

static void ignore_leader(void *argument, const mortise_leader *leader)
{
    (void)argument;
    (void)leader;
}

static void do_without_locks(mortise_client *client)
{
    mortise_election *election;
    mortise_cell cell;
    mortise_leader leader;
    assert_int_equal(mortise_cell_cas(client, "cell", 0, "x", 1, 0, NULL), MORTISE_OK);
    assert_int_equal(mortise_cell_get(client, "cell", &cell), MORTISE_OK);
    assert_int_equal(mortise_cell_delete(client, "cell", cell.version, 0), MORTISE_OK);
    assert_int_equal(mortise_election_new(client, "e", NULL, &election), MORTISE_OK);
    assert_int_equal(mortise_election_observe(election, ignore_leader, NULL), MORTISE_OK);
    assert_int_equal(mortise_election_campaign(election, 5000), MORTISE_OK);
    assert_int_equal(mortise_election_proclaim(election, "me", 2), MORTISE_OK);
    assert_int_equal(mortise_election_leader(election, &leader), MORTISE_OK);
    assert_int_equal(mortise_election_free(election), MORTISE_OK);
}

static void test_the_rights_that_the_manual_names_suffice(void **state)
{
    (void)state;
    pthread_t thread;
    make_alice();
    setenv("MORTISE_REDIS_AUTH", PASSWORD, 1);
    mortise_client *client = zk_open(uri("alice@", "2")), *other = zk_open(uri("alice@", "2"));
    mortise_hold hold = zk_acquire(zk_mutex(client, "acl"));
    assert_int_equal(pthread_create(&thread, NULL, hand_over, other), 0);
    assert_true(zk_wait_tickets(client, "acl", 2, 10000));
    assert_int_equal(mortise_verify(hold, 5000), MORTISE_OK);
    assert_int_equal(mortise_revoke(other, "acl", 0), MORTISE_OK);
    assert_int_equal(mortise_break(other, "acl", mortise_hold_fence(hold)), MORTISE_OK);
    mortise_release(hold);
    pthread_join(thread, NULL);
    do_without_locks(client);
    mortise_lock *claims[2];
    assert_int_equal(mortise_exclusive_new(client, "x", NULL, &claims[0]), MORTISE_OK);
    assert_int_equal(mortise_exclusive_new(other, "x", NULL, &claims[1]), MORTISE_OK);
    hold = zk_acquire(claims[0]);
    assert_int_equal(mortise_verify(hold, 5000), MORTISE_OK);
    assert_int_equal(mortise_revoke(other, "x", 0), MORTISE_OK); /* it is shown whose it is */
    assert_int_equal(mortise_acquire_for(claims[1], 100, &hold), MORTISE_ETIMEOUT);
    assert_int_equal(zk_tickets(other, "x"), 1);
    assert_int_equal(mortise_close(client), MORTISE_OK);
    assert_int_equal(mortise_close(other), MORTISE_OK);
}

/* Everything of a waiter's ticket, as somebody may have overheard it. */
struct overheard {
    char session[33], ticket[33], number[24];
};

static struct overheard overhear(const char *queue)
{
    struct overheard heard;
    redisReply *entry = redisCommand(raw, "ZRANGE {mortise/}q:%s 1 1 WITHSCORES", queue);
    assert_int_equal(entry->elements, 2);
    snprintf(heard.ticket, sizeof heard.ticket, "%.32s", entry->element[0]->str);
    snprintf(heard.session, sizeof heard.session, "%.32s", entry->element[0]->str + 32);
    snprintf(heard.number, sizeof heard.number, "%s", entry->element[1]->str);
    freeReplyObject(entry);
    return heard;
}

static redisContext *log_in_as_mallory(void)
{
    ask("ACL SETUSER mallory reset on >forger &* +publish +psubscribe +pubsub");
    redisContext *mallory = redisConnect("127.0.0.1", zk_place_port());
    freeReplyObject(redisCommand(mallory, "AUTH mallory forger"));
    redisReply *reply = redisCommand(mallory, "HGETALL {mortise/}queues");
    assert_int_equal(reply->type, REDIS_REPLY_ERROR);
    freeReplyObject(reply);
    return mallory;
}

static void publish(redisContext *mallory, const struct overheard *heard)
{
    static const char *const tails[] = {" 0 0", " 0 0 0123456789abcdef", " 0 0 ", ""};
    redisReply *channels = redisCommand(mallory, "PUBSUB CHANNELS {mortise/}c:*");
    for (size_t i = 0; i < channels->elements; i++)
        for (size_t k = 0; k < sizeof tails / sizeof *tails; k++) {
            const char *number = tails[k][0] ? heard->number : "";
            char text[200];
            snprintf(text, sizeof text, "%s %s%s%s%s", heard->session, heard->ticket,
                     tails[k][0] ? " " : "", number, tails[k]);
            freeReplyObject(
                redisCommand(mallory, "PUBLISH %s %s", channels->element[i]->str, text));
        }
    assert_true(channels->elements > 0);
    freeReplyObject(channels);
}

static void *acquire_in_turn(void *argument)
{
    mortise_release(zk_acquire(zk_mutex(argument, "forged")));
    return NULL;
}

static void test_forged_notifications_grant_nothing(void **state)
{
    (void)state;
    pthread_t thread;
    mortise_client *client = zk_open(uri("", "")), *other = zk_open(uri("", ""));
    mortise_hold held = zk_acquire(zk_mutex(client, "forged"));
    assert_int_equal(pthread_create(&thread, NULL, acquire_in_turn, other), 0);
    assert_true(zk_wait_tickets(client, "forged", 2, 10000));
    redisContext *mallory = log_in_as_mallory();
    const struct overheard heard = overhear("mortise/forged");
    for (int i = 0; i < 20; i++) {
        publish(mallory, &heard);
        zk_rest_ms(10);
        mortise_stats stats = {.size = sizeof stats};
        assert_int_equal(mortise_get_stats(other, &stats), MORTISE_OK);
        assert_int_equal(stats.acquisitions, 0);
    }
    assert_int_equal(mortise_release(held), MORTISE_OK);
    assert_int_equal(pthread_join(thread, NULL), 0);
    redisFree(mallory);
    mortise_close(client);
    mortise_close(other);
}

static void test_h6_a_wrong_password_is_reported_immediately(void **state)
{
    (void)state;
    mortise_hold hold;
    make_alice();
    setenv("MORTISE_REDIS_AUTH", "wrong-" PASSWORD, 1);
    mortise_client *client = zk_open(uri("alice@", ""));
    int64_t began = zk_now_ms();
    for (int i = 0; i < 2; i++)
        assert_int_equal(mortise_acquire_for(zk_mutex(client, "m"), 10000, &hold),
                         MORTISE_EPERMISSION);
    assert_non_null(strstr(mortise_error_detail(), "WRONGPASS"));
    assert_null(strstr(mortise_error_detail(), PASSWORD));
    assert_null(strstr(mortise_url(client), PASSWORD));
    assert_true(zk_now_ms() - began < 5000);
    mortise_close(client);
}

static void test_h6_close_gives_the_reason_that_denied_the_release_and_no_older_one(void **state)
{
    (void)state;
    mortise_hold refused;
    mortise_client *client;
    const mortise_client_options options = {.size = sizeof options, .timeout_ms = 300};
    setenv("MORTISE_REDIS_AUTH", PASSWORD, 1);
    for (int denied = 1; denied >= 0; denied--) {
        make_alice();
        assert_int_equal(mortise_open(uri("alice@", "?session=2s"), &options, &client), 0);
        zk_acquire(zk_mutex(client, denied ? "denied" : "unheard"));
        ask("ACL SETUSER alice -eval -evalsha");
        if (!denied) {
            assert_int_equal(try(client, "older", &refused), MORTISE_EPERMISSION);
            ask("ACL SETUSER alice +eval +evalsha");
            zk_place_server("pause", 0);
        }
        assert_int_equal(mortise_close(client), MORTISE_EUNKNOWN);
        assert_int_equal(strstr(mortise_error_detail(), "NOPERM") != NULL, denied);
        zk_place_server("resume", 0);
    }
}

static void test_a_password_without_a_user_opens_the_server(void **state)
{
    (void)state;
    mortise_hold hold;
    ask("CONFIG SET requirepass secret");
    mortise_client *client = zk_open(uri("", ""));
    assert_int_equal(mortise_acquire_for(zk_mutex(client, "m"), 10000, &hold), MORTISE_EPERMISSION);
    assert_non_null(strstr(mortise_error_detail(), "credentials"));
    mortise_close(client);
    setenv("MORTISE_REDIS_AUTH", "secret", 1);
    client = zk_open(uri("", ""));
    mortise_release(zk_acquire(zk_mutex(client, "m")));
    assert_int_equal(zk_tickets(client, "x"), 0);
    mortise_close(client);
    freeReplyObject(redisCommand(raw, "CONFIG SET requirepass %s", ""));
}

static void test_databases_and_namespaces_are_apart(void **state)
{
    (void)state;
    mortise_hold hold;
    const char *const tails[] = {"0", "3", "3?namespace=other"};
    mortise_client *clients[3];
    for (int i = 0; i < 3; i++) {
        clients[i] = zk_open(uri("", tails[i]));
        assert_int_equal(try(clients[i], "apart", &hold), MORTISE_OK);
    }
    mortise_client *again = zk_open(uri("", "3"));
    assert_int_equal(try(again, "apart", &hold), MORTISE_EBUSY);
    mortise_close(again);
    for (int i = 0; i < 3; i++)
        mortise_close(clients[i]);
    mortise_client *none = zk_open(uri("", "60000"));
    assert_int_equal(mortise_acquire_for(zk_mutex(none, "m"), 5000, &hold), MORTISE_EURI);
    mortise_close(none);
}

/* Without a namespace the name is a key, and might be one of the store's own. */
static void test_se_03_no_exclusive_lock_is_a_key_of_the_store(void **state)
{
    (void)state;
    static const char *const names[] = {"{mortise/}queues", "{/}fence", "{"};
    mortise_client *client = zk_open(uri("", "?namespace="));
    mortise_lock *lock;
    mortise_hold hold;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_int_equal(mortise_exclusive_new(client, names[i], NULL, &lock), MORTISE_OK);
        assert_int_equal(mortise_acquire_for(lock, 3000, &hold), MORTISE_ENAME);
        assert_int_equal(mortise_try_acquire(lock, &hold), MORTISE_ENAME);
    }
    mortise_close(client);
    client = zk_open(uri("", "0"));
    assert_int_equal(try(client, "after", &hold), MORTISE_OK);
    mortise_close(client);
}

static void test_a_socket_of_this_machine(void **state)
{
    (void)state;
    char text[160];
    mortise_hold hold;
    redisReply *reply = redisCommand(raw, "CONFIG GET dir");
    snprintf(text, sizeof text, "redis+unix://%s/socket", reply->element[1]->str);
    freeReplyObject(reply);
    mortise_client *local = zk_open(text), *remote = zk_open(uri("", ""));
    mortise_hold held = zk_acquire(zk_mutex(local, "socket"));
    assert_int_equal(try(remote, "socket", &hold), MORTISE_EBUSY);
    mortise_release(held);
    assert_true(zk_wait_tickets(remote, "socket", 0, 5000));
    mortise_close(local);
    mortise_close(remote);
}

/* Which an eviction policy may do too. */
static void delete_sessions(void)
{
    redisReply *reply = redisCommand(
        raw, "EVAL %s 0", "return redis.call('DEL', unpack(redis.call('KEYS', '{mortise/}s:*')))");
    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    assert_true(reply->integer > 0);
    freeReplyObject(reply);
}

/* Its tickets stand in their queues, and no session says so. */
static void test_rd_15_rd_22_a_session_that_was_deleted_has_no_ticket(void **state)
{
    (void)state;
    mortise_client *client = zk_open(uri("", "")), *other = zk_open(uri("", ""));
    mortise_hold hold = zk_acquire(zk_mutex(client, "forgotten")), next;
    delete_sessions();
    assert_int_equal(mortise_acquire_for(zk_mutex(other, "forgotten"), 20000, &next), MORTISE_OK);
    assert_int_equal(zk_tickets(other, "forgotten"), 1);
    assert_true(mortise_hold_fence(next) > mortise_hold_fence(hold));
    delete_sessions(); /* the operator meets the ticket first */
    assert_int_equal(mortise_break(client, "forgotten", mortise_hold_fence(next)),
                     MORTISE_ENOTHELD);
    mortise_close(client);
    mortise_close(other);
}

#define SESSION "0000000000000000000000000000000a"
#define TICKET "0000000000000000000000000000000b"

static void write_script(enum mrt_redis_script_name name, const char *words, const char *last)
{
    char format[160];
    snprintf(format, sizeof format, "EVAL %%b 1 {mortise/}sessions " SESSION " 1 %s %%s", words);
    redisAppendCommand(raw, format, mrt_redis_scripts[name].text, mrt_redis_scripts[name].length,
                       last);
}

/* The number of a ticket in a server that knows nothing of another. */
static long long read_number(void)
{
    long long number = 0;
    for (int i = 0; i < 3; i++) {
        redisReply *reply;
        assert_int_equal(redisGetReply(raw, (void **)&reply), REDIS_OK);
        if (i == 2) {
            assert_int_equal(reply->elements, 5);
            number = reply->element[1]->integer;
        }
        freeReplyObject(reply);
    }
    return number;
}

/* All is in one write, so most are in one millisecond. */
static void test_rd_22_fences_rise_though_the_last_was_forgotten_a_moment_ago(void **state)
{
    enum { TIMES = 50 };
    (void)state;
    for (int i = 0; i < TIMES; i++) {
        redisAppendCommand(raw, "FLUSHALL");
        write_script(MRT_REDIS_SESSION, "start 10000 channel label", "key");
        write_script(MRT_REDIS_APPEND, TICKET " q mutex 1 1 0 0 :", "");
    }
    long long last = 0;
    for (int i = 0; i < TIMES; i++) {
        long long number = read_number();
        assert_true(number > last);
        last = number;
    }
    ask("FLUSHALL");
}

static bool key_is_there(const char *key)
{
    redisReply *reply = redisCommand(raw, "EXISTS %s", key);
    bool there = reply->integer > 0;
    freeReplyObject(reply);
    return there;
}

static void wait_for_loss(mortise_hold hold)
{
    int64_t end = zk_now_ms() + 20000;
    while (mortise_is_held(hold)) {
        assert_true(zk_now_ms() < end);
        zk_rest_ms(5);
    }
}

static void test_rd_02_a_grant_that_too_few_replicas_have_is_released(void **state)
{
    (void)state;
    mortise_hold hold, again;
    mortise_lock *claim;
    mortise_client *client = zk_open(uri("", "?session=6s&replicas=1"));
    assert_int_equal(mortise_exclusive_new(client, "c", NULL, &claim), MORTISE_OK);
    hold = zk_acquire(zk_mutex(client, "copied"));
    mortise_release(zk_acquire(claim));
    zk_place_server("pause", 1);
    assert_int_equal(try(client, "n", &again), MORTISE_ESTORE);
    assert_non_null(strstr(mortise_error_detail(), "0 of 1 replicas"));
    assert_int_equal(zk_tickets(client, "n"), 0);
    assert_int_equal(mortise_try_acquire(claim, &again), MORTISE_ESTORE);
    assert_false(key_is_there("mortise/c"));
    wait_for_loss(hold); /* its renewals proved nothing */
    zk_place_server("resume", 1);
    mortise_release(zk_acquire(zk_mutex(client, "n")));
    mortise_release(zk_acquire(claim));
    mortise_close(client);
}

/* ------------------------------------------------------------------ at the port */

static struct port_client low;

/* The client whose WAIT the server has, as the server calls it; 0: none. */
static long who_waits(void)
{
    char *rest = NULL;
    redisReply *reply = redisCommand(raw, "CLIENT LIST");
    assert_non_null(reply);
    char *line = strtok_r(reply->str, "\n", &rest);
    while (line && (!strstr(line, " flags=b ") || !strstr(line, " cmd=wait ")))
        line = strtok_r(NULL, "\n", &rest);
    long id = line ? strtol(line + strlen("id="), NULL, 10) : 0;
    freeReplyObject(reply);
    return id;
}

/* Lets the store work until the command of this serial is answered. */
static struct mrt_event wait_for_answer(uint64_t serial)
{
    int64_t end = zk_now_ms() + 20000;
    for (;;) {
        for (size_t i = 0; i < low.count; i++)
            if (low.events[i].serial == serial)
                return low.events[i];
        assert_true(zk_now_ms() < end);
        port_wait(&low, MRT_CHANGED, port_id(), MRT_MILLISECOND, NULL); /* which never comes */
    }
}

/* A look finds the key free and takes it, and the replicas are asked. Behind that a renewal finds
   that the session has ended, before it is known that the key has been given back. */
static void
test_rd_02_a_refresh_whose_session_ends_while_its_grant_is_undone_is_answered(void **state)
{
    (void)state;
    char unblock[48];
    long waits = 0;
    port_kind = "exclusive";
    port_open_session(&low, uri("", "?session=60s&replicas=1"));
    ask("SET undone theirs");
    struct mrt_event view = port_append(&low, "undone", port_id());
    assert_true(view.weight_ahead > 0);
    zk_place_server("pause", 1);
    ask("DEL undone {mortise/}sessions");
    struct mrt_command look = port_command(&low, MRT_REFRESH);
    look.ticket = view.ticket;
    look.queue = "undone";
    assert_true(low.ops->submit(low.store, &look, MRT_TIME_NEVER));
    for (int64_t end = zk_now_ms() + 20000; waits == 0; waits = who_waits()) {
        assert_true(zk_now_ms() < end);
        low.ops->process(low.store, mrt_time_now());
    }
    struct mrt_command renewal = port_command(&low, MRT_RENEW);
    assert_true(low.ops->submit(low.store, &renewal, MRT_TIME_NEVER));
    snprintf(unblock, sizeof unblock, "CLIENT UNBLOCK %ld", waits);
    ask(unblock);
    zk_place_server("resume", 1);
    assert_int_equal(wait_for_answer(renewal.serial).error, MORTISE_ELOST);
    assert_int_equal(wait_for_answer(look.serial).type, MRT_GONE);
    assert_false(key_is_there("undone"));
    port_close(&low);
}

/* A change that too few replicas have may have been done, and is repeated until its outcome is
 * known. */
static void test_rd_02_c11_a_detach_or_adoption_is_unknown_until_replicas_have_it(void **state)
{
    (void)state;
    port_kind = "mutex";
    port_open_session(&low, uri("", "?session=8s&replicas=1"));
    struct mrt_event held = port_append(&low, "durable", port_id());
    struct mrt_command leave = port_command(&low, MRT_DETACH), take = leave;
    leave.ticket = held.ticket;
    leave.queue = take.queue = "durable";
    leave.weight = take.weight = take.capacity = 1;
    leave.detached_id = take.ticket = port_id();
    take.type = MRT_APPEND;
    take.kind = port_kind;
    take.adopt = true;
    take.serial = ++low.serial;
    zk_place_server("pause", 1);
    assert_int_equal(port_send(&low, &leave).type, MRT_UNKNOWN);
    assert_int_equal(port_send(&low, &take).type, MRT_UNKNOWN);
    zk_place_server("resume", 1);
    take.serial = ++low.serial;
    struct mrt_event view = port_send(&low, &take);
    assert_int_equal(view.type, MRT_VIEW);
    assert_int_equal(view.fence, held.fence);
    assert_int_equal(port_tickets(&low, "durable"), 1);
    port_stop(&low);
    port_close(&low);
}

/* ------------------------------------------------------------------ a failover */

/* One overlap, and nothing else that would be wrong: the fences tell. */
static void expect_an_overlap(void)
{
    const struct chaos_verdict *verdict = noted_judge();
    assert_int_equal(verdict->holds, 2);
    assert_int_equal(verdict->overlaps, 1);
    assert_int_equal(verdict->fences, 0);
    assert_int_equal(chaos_faults(verdict), 1);
}

/* The violation that the capabilities name, which the checker of histories has to find here, as it
   must find it nowhere else. */
static void test_rd_01_l8_a_failover_to_a_replica_that_lags_gives_the_lock_twice(void **state)
{
    (void)state;
    mortise_client *client = zk_open(uri("", "?session=120s"));
    mortise_capabilities can = {.size = sizeof can};
    mortise_get_capabilities(client, &can);
    assert_int_equal(can.survives_failover, 0);
    char *replica = strrchr(zk_place_servers("urls"), ':');
    assert_non_null(replica);
    int port = (int)strtol(replica + 1, NULL, 10);
    redisContext *second = redisConnect("127.0.0.1", port);
    freeReplyObject(
        redisCommand(second, "REPLICAOF 127.0.0.1 1")); /* it hears nothing after this */
    noted_begin();
    mortise_hold hold = noted_acquire(zk_mutex(client, "m"), 1);
    zk_place_server("kill", 0);
    freeReplyObject(redisCommand(second, "REPLICAOF NO ONE"));
    redisFree(second);
    char promoted[64];
    snprintf(promoted, sizeof promoted, "redis://127.0.0.1:%d", port);
    mortise_client *other = zk_open(promoted);
    mortise_hold again = noted_acquire(zk_mutex(other, "m"), 2);
    assert_true(mortise_is_held(hold)); /* and so believes the first */
    noted_release(again, 2);
    noted_leave(2);
    noted_release(hold, 1);
    noted_leave(1);
    expect_an_overlap();
    mortise_close(other);
    mortise_close(client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_rights_that_the_manual_names_suffice),
        TEST(test_forged_notifications_grant_nothing),
        TEST(test_h6_a_wrong_password_is_reported_immediately),
        TEST(test_h6_close_gives_the_reason_that_denied_the_release_and_no_older_one),
        TEST(test_a_password_without_a_user_opens_the_server),
        TEST(test_databases_and_namespaces_are_apart),
        TEST(test_se_03_no_exclusive_lock_is_a_key_of_the_store),
        TEST(test_a_socket_of_this_machine),
        TEST(test_rd_15_rd_22_a_session_that_was_deleted_has_no_ticket),
        TEST(test_rd_22_fences_rise_though_the_last_was_forgotten_a_moment_ago),
        TEST(test_rd_02_a_grant_that_too_few_replicas_have_is_released),
        TEST(test_rd_02_a_refresh_whose_session_ends_while_its_grant_is_undone_is_answered),
        TEST(test_rd_02_c11_a_detach_or_adoption_is_unknown_until_replicas_have_it),
        TEST(test_rd_01_l8_a_failover_to_a_replica_that_lags_gives_the_lock_twice),
    };
    zk_place_settings("", "redis-replica");
    if (zk_place_start(NULL) < 0)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    zk_place_stop(NULL);
    return failed != 0;
}
