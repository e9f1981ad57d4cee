/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A quorum of five real Redis servers, mostly step by step at the port: what a member that forgets
 * does, and what keeps it from doing so; and what becomes of claims whose answers are lost or late.
 */
#include "cmocka_all.h"
#include "conform/port_client.h"
#include "core/rule.h"
#include "live/redis_proxy.h"
#include "live/zookeeper_place.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SESSION "100s" /* longer than all of a test's steps */
#define UPTIME "1800s" /* all have been up for longer by their clocks, but for a restarted one */
#define SETTLES (40 * MRT_SECOND)
#define SERVERS 5

static char servers[256];              /* their URIs, with commas between */
static char members[256];              /* the same, or proxies in front of some */
static struct redis_proxy *proxies[2]; /* of the last two */
static struct port_client first, second;
static long looks_of_ours; /* at the one that is restarted */

static const char *uri_with(const char *more)
{
    static char uri[512];
    snprintf(uri, sizeof uri, "redlock:%s?answer=500ms&session=" SESSION "%s", members, more);
    return uri;
}

static bool holds(const struct mrt_event *view)
{
    return view->type == MRT_VIEW && mrt_rule_grants(view->weight_ahead, 1, 1);
}

/* As soon as enough members will have it. */
static void open_session(struct port_client *client, const char *more)
{
    mrt_time until = mrt_time_now() + SETTLES;
    port_open(client, uri_with(more), "test");
    client->session = port_id();
    while (port_start(client).type != MRT_STARTED)
        assert_true(mrt_time_now() < until);
}

static int close_both(void **state)
{
    (void)state;
    struct port_client *const both[] = {&first, &second};
    for (int i = 0; i < 2; i++)
        if (both[i]->store) {
            port_stop(both[i]);
            port_close(both[i]);
        }
    for (int i = 0; i < 2 && proxies[i]; i++) {
        redis_proxy_stop(proxies[i]);
        proxies[i] = NULL;
    }
    return 0;
}

/* Some members may still be on their way up. One that comes up after the START counts from the next
   renewal on. */
static struct mrt_event acquire(struct port_client *client)
{
    mrt_time until = mrt_time_now() + SETTLES;
    struct mrt_event view = port_append(client, "q", port_id());
    while (!holds(&view)) {
        assert_true(mrt_time_now() < until);
        port_wait(client, MRT_STARTED, (struct mrt_id){1, 1}, 50 * MRT_MILLISECOND, NULL);
        const struct mrt_command renewal = port_command(client, MRT_RENEW);
        port_send(client, &renewal);
        port_wait(client, MRT_STARTED, (struct mrt_id){1, 1}, 50 * MRT_MILLISECOND, NULL);
        view = view.type == MRT_VIEW ? port_refresh(client, "q", &view)
                                     : port_append(client, "q", port_id());
    }
    return view;
}

static uint16_t port_of(int server)
{
    const char *at = servers;
    for (int i = 0; i <= server; i++)
        at = strstr(at, "127.0.0.1:") + strlen("127.0.0.1:");
    return (uint16_t)strtol(at, NULL, 10);
}

static redisContext *connect_to(int server)
{
    redisContext *raw = redisConnect("127.0.0.1", port_of(server));
    assert_int_equal(raw->err, 0);
    return raw;
}

static void tell(int server, const char *command)
{
    redisContext *raw = connect_to(server);
    freeReplyObject(redisCommand(raw, command));
    redisFree(raw);
}

static void tell_last_two(const char *command)
{
    tell(3, command);
    tell(4, command);
}

/* How often a server has been given this command since its counts were reset. */
static long given(int server, const char *command)
{
    char line[32];
    redisContext *raw = connect_to(server);
    redisReply *reply = redisCommand(raw, "INFO commandstats");
    snprintf(line, sizeof line, "cmdstat_%s:calls=", command);
    const char *found = strstr(reply->str, line);
    long count = found ? strtol(found + strlen(line), NULL, 10) : 0;
    freeReplyObject(reply);
    redisFree(raw);
    return count;
}

/* An hour passes for all, also for the server restarted in the test before. */
static int age_all(void **state)
{
    static int hours;
    (void)state;
    hours++;
    looks_of_ours = 0;
    snprintf(members, sizeof members, "%s", servers);
    for (int i = 0; i < SERVERS; i++) {
        char number_and_time[16];
        snprintf(number_and_time, sizeof number_and_time, "%d +%d", i, hours * 3600);
        zk_place_servers_at("clock", number_and_time);
        tell(i, "FLUSHALL");
    }
    return 0;
}

/* The restarted one has been asked a second time how long it has been up, so what it said the
   first time has been heard; and the last two have been asked for the lock, so they are up. */
static bool all_have_answered(void)
{
    long looks =
        given(2, "info") - looks_of_ours++; /* except this server, which does not count yet */
    return looks > 1 && given(3, "set") > 0 && given(4, "set") > 0;
}

/* The first has three of five; one of these restarts, and forgets; the second asks, until it gets
   in or `is_over`. */
static bool a_second_one_gets_in(const char *more, bool (*is_over)(void))
{
    open_session(&first, more);
    tell_last_two("SET q else");
    acquire(&first);
    tell_last_two("DEL q");
    tell_last_two("CONFIG RESETSTAT");
    zk_place_server("kill", 2);
    zk_place_server("restart", 2);
    open_session(&second, more);
    mrt_time until = mrt_time_now() + SETTLES;
    bool in = false, over = false;
    while (!in && !over && mrt_time_now() < until) {
        over = is_over && is_over();
        port_wait(&second, MRT_STARTED, (struct mrt_id){1, 1}, 50 * MRT_MILLISECOND, NULL);
        struct mrt_event view = port_try(&second, "q", port_id());
        in = holds(&view);
    }
    assert_true(in || over);
    /* Two members still have the first's claim: it is listed behind the second's. */
    assert_int_equal(port_tickets(&first, "q"), in ? 2 : 1);
    return in;
}

/* The violation that the manual names: it must be seen here, or the witness is blind. */
static void test_rd_05_a_member_that_forgets_lets_a_second_one_in(void **state)
{
    (void)state;
    assert_true(a_second_one_gets_in("", NULL));
}

static void test_rd_05_a_member_that_has_just_come_up_is_not_counted(void **state)
{
    (void)state;
    assert_false(a_second_one_gets_in("&uptime=" UPTIME, all_have_answered));
}

/* ------------------------------------------------------------------ keys that are deleted */

static bool has_key(redisContext *raw, const char *key)
{
    redisReply *reply = redisCommand(raw, "EXISTS %s", key);
    bool there = reply->integer == 1;
    freeReplyObject(reply);
    return there;
}

static int count_of(const char *key)
{
    int count = 0;
    for (int i = 0; i < SERVERS; i++) {
        redisContext *raw = connect_to(i);
        count += has_key(raw, key);
        redisFree(raw);
    }
    return count;
}

/* None of them is still to be given it. */
static struct mrt_event acquire_at_all(struct port_client *client)
{
    mrt_time until = mrt_time_now() + SETTLES;
    struct mrt_event view = acquire(client);
    while (count_of("q") < SERVERS) {
        assert_true(mrt_time_now() < until);
        port_remove(client, "q", view.ticket, 0);
        view = acquire(client);
    }
    return view;
}

static enum mrt_event_type renew(struct port_client *client)
{
    const struct mrt_command renewal = port_command(client, MRT_RENEW);
    return port_send(client, &renewal).type;
}

static void test_m9_rd_11_rd_22_a_renewal_proves_no_lock_whose_keys_are_gone(void **state)
{
    (void)state;
    open_session(&first, "");
    struct mrt_event view = acquire_at_all(&first);
    while (renew(&first) != MRT_RENEWED) /* all know the scripts then */
        continue;
    for (int i = 0; i < 3; i++)
        tell(i, "DEL q"); /* their sessions stay */
    assert_int_equal(renew(&first), MRT_UNKNOWN);
    assert_true(port_wait(&first, MRT_WAKE, view.ticket, SETTLES, NULL));
    assert_int_equal(port_refresh(&first, "q", &view).type, MRT_GONE);
    assert_int_equal(renew(&first), MRT_RENEWED);
}

static int note_place(void *argument, const struct mrt_listed *row)
{
    char *places = argument;
    snprintf(places + strlen(places), 2, "%u", row->entry.place);
    return 0;
}

static const char *places(void)
{
    static char shown[16];
    *shown = '\0';
    assert_int_equal(first.ops->list(first.store, "q", NULL, note_place, shown), MORTISE_OK);
    return shown;
}

/* Also before a renewal has said whose the keys are, and another program's. */
static void test_a_list_shows_the_claim_that_a_majority_has(void **state)
{
    (void)state;
    open_session(&first, "");
    struct mrt_event view = acquire_at_all(&first);
    assert_string_equal(places(), "0");
    tell(0, "DEL q");
    tell(1, "SET q theirs PX 100000");
    assert_string_equal(places(), "01");
    tell(2, "SET q theirs PX 100000");
    tell(3, "SET q another PX 100000");
    assert_string_equal(places(), "123");
    tell(0, "SET q theirs PX 100000");
    assert_string_equal(places(), "012");
    port_remove(&first, "q", view.ticket, 0);
    for (int i = 0; i < SERVERS; i++)
        tell(i, "DEL q");
}

/* A claim that another client takes for as long as our lease is, after our newest proof, outlasts
 * our hold.
 */
static void test_m9_rd_15_rd_22_a_lock_is_lost_before_its_new_holder_may_lose_it(void **state)
{
    (void)state;
    char uri[512];
    mortise_hold hold;
    snprintf(uri, sizeof uri, "redlock:%s?answer=500ms&session=2s&namespace=", servers);
    mortise_client *client = zk_open(uri);
    hold = zk_acquire(zk_mutex(client, "taken"));
    for (int i = 0; i < 3; i++)
        tell(i, "SET taken theirs PX 2000");
    redisContext *raw = connect_to(2);
    for (;;) {
        bool theirs = has_key(raw, "taken");
        if (!mortise_is_held(hold))
            break;
        assert_true(theirs);
    }
    redisFree(raw);
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    mortise_close(client);
}

/* ------------------------------------------------------------------ answers that do not come */

static int age_all_behind_proxies(void **state)
{
    age_all(state);
    size_t length = 0;
    for (int i = 0; i < SERVERS; i++) {
        uint16_t port = port_of(i);
        if (i >= 3) {
            proxies[i - 3] = redis_proxy_start(port);
            port = redis_proxy_port(proxies[i - 3]);
        }
        length += (size_t)snprintf(members + length, sizeof members - length,
                                   "%sredis://127.0.0.1:%u", i ? "," : "", (unsigned)port);
    }
    return 0;
}

static void rest(void)
{
    port_wait(&first, MRT_STARTED, (struct mrt_id){1, 1}, 20 * MRT_MILLISECOND, NULL);
}

static void await_nowhere(void)
{
    mrt_time until =
        mrt_time_now() + SETTLES; /* less than the lease, so that is not what ends it */
    while (count_of("q") > 0) {
        assert_true(mrt_time_now() < until);
        rest();
    }
}

/* The session is up at all, so all are asked from now on. */
static void open_at_all(void)
{
    open_session(&first, "");
    struct mrt_event view = acquire_at_all(&first);
    port_remove(&first, "q", view.ticket, 0);
    await_nowhere();
    tell_last_two("CONFIG RESETSTAT");
}

/* One of the last two gets the next claim late, the other's answer to it is lost. */
static void part_with_answers(void)
{
    static const char claim[] = "SET\r\n$1\r\nq\r\n";
    redis_proxy_order(proxies[0], REDIS_HOLD, claim, NULL);
    redis_proxy_order(proxies[1], REDIS_SWALLOW, claim, NULL);
}

/* Both servers have had the claim, one of them only now. */
static void go_on(void)
{
    mrt_time until = mrt_time_now() + SETTLES;
    while (!redis_proxy_done(proxies[0]) || !redis_proxy_done(proxies[1])) {
        assert_true(mrt_time_now() < until);
        rest();
    }
    redis_proxy_go(proxies[0]);
    while (given(3, "set") == 0 || given(4, "set") == 0) {
        assert_true(mrt_time_now() < until);
        rest();
    }
}

static void test_m6_rd_10_a_round_that_fails_leaves_nothing_where_nobody_has_answered(void **state)
{
    (void)state;
    open_at_all();
    part_with_answers();
    for (int i = 0; i < 3; i++)
        tell(i, "SET q else");
    assert_int_equal(port_try(&first, "q", port_id()).type, MRT_BLOCKED);
    for (int i = 0; i < 3; i++)
        tell(i, "DEL q");
    go_on();
    await_nowhere();
}

static void test_m7_rd_10_a_release_before_all_have_answered_leaves_nothing(void **state)
{
    (void)state;
    open_at_all();
    part_with_answers();
    struct mrt_event view = acquire(&first);
    port_remove(&first, "q", view.ticket, 0);
    go_on();
    await_nowhere();
}

static void test_m6_m7_a_released_claim_is_not_left_at_a_server_that_stood_still(void **state)
{
    (void)state;
    open_at_all();
    zk_place_server("pause", 4);
    struct mrt_event view = acquire(&first);
    port_remove(&first, "q", view.ticket, 0);
    zk_place_server("resume", 4);
    mrt_time until = mrt_time_now() + SETTLES;
    while (given(4, "set") == 0) {
        assert_true(mrt_time_now() < until);
        rest();
    }
    await_nowhere();
}

/* ------------------------------------------------------------------ a server that is another */

static int64_t id_of(redisContext *raw)
{
    redisReply *reply = redisCommand(raw, "CLIENT ID");
    assert_non_null(reply);
    int64_t id = reply->integer;
    freeReplyObject(reply);
    return id;
}

/* A connection to that server whose number there is at least this. */
static redisContext *connect_beyond(int server, int64_t id)
{
    redisContext *raw = connect_to(server);
    while (id_of(raw) < id) {
        redisFree(raw);
        raw = connect_to(server);
    }
    return raw;
}

static bool is_alive(redisContext *raw)
{
    redisReply *reply = redisCommand(raw, "PING");
    bool alive = reply != NULL;
    freeReplyObject(reply);
    return alive;
}

/* The address leads to another server than before, where somebody else's connection has the number
   that the client's last one had. */
static void test_rd_10_a_connection_is_ended_only_at_the_server_that_numbered_it(void **state)
{
    (void)state;
    enum { CLIENTS = 20 };
    char uri[128];
    mortise_lock *lock;
    redisContext *theirs[CLIENTS], *last = connect_to(4);
    int64_t newest = id_of(last);
    redisFree(last);
    redisFree(connect_beyond(3, newest + 50));
    redisContext *before = connect_to(3);
    snprintf(uri, sizeof uri,
             "redis://127.0.0.1:%u?session=2s&namespace=", (unsigned)redis_proxy_port(proxies[0]));
    mortise_client *client = zk_open(uri);
    assert_int_equal(mortise_exclusive_new(client, "moved", NULL, &lock), MORTISE_OK);
    mortise_hold hold = zk_acquire(lock);
    theirs[0] = connect_beyond(4, id_of(before));
    for (int i = 1; i < CLIENTS; i++)
        theirs[i] = connect_to(4);
    redis_proxy_move(proxies[0], port_of(4));
    mrt_time until = mrt_time_now() + SETTLES;
    while (mortise_hold_state(hold) != MORTISE_LOST) /* the new server has answered */
        assert_true(mrt_time_now() < until);
    for (int i = 0; i < CLIENTS; i++) {
        assert_true(is_alive(theirs[i]));
        redisFree(theirs[i]);
    }
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    redisFree(before);
    mortise_close(client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, age_all, close_both)
#define PROXIED(name) cmocka_unit_test_setup_teardown(name, age_all_behind_proxies, close_both)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_m9_rd_11_rd_22_a_renewal_proves_no_lock_whose_keys_are_gone),
        TEST(test_a_list_shows_the_claim_that_a_majority_has),
        TEST(test_m9_rd_15_rd_22_a_lock_is_lost_before_its_new_holder_may_lose_it),
        PROXIED(test_m6_rd_10_a_round_that_fails_leaves_nothing_where_nobody_has_answered),
        PROXIED(test_rd_10_a_connection_is_ended_only_at_the_server_that_numbered_it),
        PROXIED(test_m7_rd_10_a_release_before_all_have_answered_leaves_nothing),
        TEST(test_m6_m7_a_released_claim_is_not_left_at_a_server_that_stood_still),
        TEST(test_rd_05_a_member_that_forgets_lets_a_second_one_in),
        TEST(test_rd_05_a_member_that_has_just_come_up_is_not_counted),
    };
    port_kind = "exclusive";
    zk_place_settings("--clock " SET_CLOCK, "redis5");
    if (zk_place_start(NULL) < 0)
        return 1;
    sscanf(zk_place_servers("urls"), "%255s", servers);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    zk_place_stop(NULL);
    return failed != 0;
}
