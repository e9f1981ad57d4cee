/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Redis store under faults of its server and of the way to it: real servers, a proxy
 * that understands the protocol, real signals. The ids are those of the catalogue of failures.
 */
#include "cmocka_all.h"
#include "defect_run.h"
#include "live/redis_proxy.h"
#include "live/zookeeper_place.h"
#include "store/redis/script.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define LEASE_MS 1500
#define SLACK_MS 1000 /* until the thread that calls back runs, on a busy machine */
#define DIGEST(name) mrt_redis_scripts[MRT_REDIS_##name].digest

static struct redis_proxy *proxy;
static redisContext *raw;

static const char *uri_with_lease(uint16_t port, int ms)
{
    static char uris[4][128];
    static int next;
    char *uri = uris[next++ % 4];
    snprintf(uri, sizeof uris[0], "redis://127.0.0.1:%u?session=%dms&connect=5s", (unsigned)port,
             ms);
    return uri;
}

static const char *uri_at(uint16_t port)
{
    return uri_with_lease(port, LEASE_MS);
}

static const char *direct(void)
{
    return uri_at(zk_place_port());
}

static const char *by_proxy(void)
{
    return uri_at(redis_proxy_port(proxy));
}

/* The answer to a command of the server's, an integer or the length of a list or text. */
static long long value_of(redisReply *reply)
{
    assert_non_null(reply);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s", reply->str);
    long long value = reply->type == REDIS_REPLY_INTEGER ? reply->integer
                      : reply->type == REDIS_REPLY_ARRAY ? (long long)reply->elements
                                                         : (long long)reply->len;
    freeReplyObject(reply);
    return value;
}

static long long ask(const char *command)
{
    return value_of(redisCommand(raw, command));
}

/* Returns when the server has done all earlier requests: in each turn it reads all that has come.
 */
static void let_server_work(void)
{
    ask("PING");
    ask("PING");
}

/* Does this to each session: `how` is a command of sorted sets, `much` its argument. */
static void set_leases(const char *how, const char *much)
{
    value_of(redisCommand(raw, "EVAL %s 1 {mortise/}sessions %s %s",
                          "for _, s in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do "
                          "redis.call(ARGV[1], KEYS[1], ARGV[2], s) end return 1",
                          how, much));
}

static int set_up(void **state)
{
    (void)state;
    raw = redisConnect("127.0.0.1", zk_place_port());
    assert_int_equal(raw->err, 0);
    ask("FLUSHALL");
    proxy = redis_proxy_start(zk_place_port());
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    redis_proxy_stop(proxy);
    redisFree(raw);
    return 0;
}

/* A hold's fate, as told. */
struct fate {
    atomic_int suspended, lost;
    atomic_llong lost_at;
};

static void note_fate(void *argument, mortise_hold hold, mortise_state state)
{
    struct fate *fate = argument;
    (void)hold;
    if (state == MORTISE_SUSPENDED)
        fate->suspended++;
    if (state == MORTISE_LOST) {
        fate->lost_at = zk_now_ms();
        fate->lost++;
    }
}

static void wait_for(atomic_int *flag)
{
    int64_t end = zk_now_ms() + 20000;
    while (!*flag) {
        assert_true(zk_now_ms() < end);
        zk_rest_ms(5);
    }
}

/* Another client, which acquires on a thread of its own. */
struct heir {
    mortise_client *client;
    mortise_hold hold;
    const mortise_hold *_Atomic rival; /* another client's lock; NULL: none is checked */
    bool overlaps;                     /* that was held still when this was granted */
    atomic_int done;
    pthread_t thread;
};

static void *inherit(void *argument)
{
    struct heir *heir = argument;
    heir->hold = zk_acquire(zk_mutex(heir->client, "m"));
    heir->overlaps = heir->rival && mortise_is_held(*heir->rival);
    heir->done = 1;
    return NULL;
}

static void begin(struct heir *heir, const char *uri)
{
    memset(heir, 0, sizeof *heir);
    heir->client = zk_open(uri);
    assert_int_equal(pthread_create(&heir->thread, NULL, inherit, heir), 0);
}

static void end(struct heir *heir)
{
    pthread_join(heir->thread, NULL);
    mortise_close(heir->client);
}

/* ------------------------------------------------------------- lost, late, twice */

static void test_rd_08_a_lost_reply_is_asked_for_again(void **state)
{
    (void)state;
    mortise_client *client = zk_open(by_proxy());
    mortise_lock *lock = zk_mutex(client, "m");
    mortise_release(zk_acquire(lock)); /* the server knows the scripts */
    redis_proxy_order(proxy, REDIS_SWALLOW, DIGEST(APPEND), NULL);
    mortise_hold hold = zk_acquire(lock);
    assert_true(redis_proxy_done(proxy));
    assert_int_equal(zk_tickets(client, "m"), 1);
    redis_proxy_order(proxy, REDIS_SWALLOW, DIGEST(REMOVE), NULL);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    assert_true(zk_wait_tickets(client, "m", 0, 10000));
    mortise_release(zk_acquire(lock)); /* a try does not outlast a connection without any reply */
    redis_proxy_order(proxy, REDIS_SWALLOW, DIGEST(APPEND), NULL);
    assert_int_equal(mortise_try_acquire(lock, &hold), MORTISE_OK); /* it is known, or nothing is */
    mortise_release(hold);
    assert_true(zk_wait_tickets(client, "m", 0, 10000));
    redis_proxy_order(proxy, REDIS_SWALLOW, DIGEST(SESSION), NULL);
    hold = zk_acquire(lock);
    while (!redis_proxy_done(proxy)) /* a renewal */
        zk_rest_ms(5);
    zk_rest_ms(LEASE_MS);
    assert_int_equal(mortise_verify(hold, 5000), MORTISE_OK);
    mortise_close(client);
}

static int no_row(void *argument, const mortise_entry *entry)
{
    (void)entry;
    ++*(int *)argument;
    return 0;
}

/* A change that may have been done is not said to have failed; a look is. */
static void test_rd_08_an_operator_is_told_of_an_unknown_outcome(void **state)
{
    (void)state;
    int rows = 0;
    mortise_client *holder = zk_open(direct()), *client = zk_open(by_proxy());
    mortise_hold hold = zk_acquire(zk_mutex(holder, "m"));
    uint64_t fence = mortise_hold_fence(hold);
    assert_int_equal(mortise_revoke(client, "m", fence), MORTISE_OK); /* the script is known */
    assert_int_equal(mortise_list(client, "m", no_row, &rows), MORTISE_OK);
    assert_int_equal(rows, 1);
    redis_proxy_order(proxy, REDIS_SWALLOW, DIGEST(LIST), NULL);
    assert_int_equal(mortise_list(client, "m", no_row, &rows), MORTISE_EUNREACHABLE);
    assert_int_equal(rows, 1);
    redis_proxy_order(proxy, REDIS_ANSWER, DIGEST(OPERATE), "-LOADING not yet");
    assert_int_equal(mortise_error_kind_of(mortise_break(client, "m", fence)), MORTISE_KIND_RETRY);
    assert_int_equal(zk_tickets(holder, "m"), 1);
    redis_proxy_order(proxy, REDIS_SWALLOW, DIGEST(OPERATE), NULL);
    assert_int_equal(mortise_break(client, "m", fence), MORTISE_EUNKNOWN);
    assert_true(redis_proxy_done(proxy));
    assert_int_equal(zk_tickets(holder, "m"), 0); /* it was done */
    mortise_release(hold);
    mortise_close(holder);
    mortise_close(client);
}

/* The server does not answer a list for longer than a lease. */
static void test_a_list_that_is_not_answered_costs_nobody_a_hold(void **state)
{
    (void)state;
    int rows = 0;
    mortise_client_options options = {.size = sizeof options, .timeout_ms = 2 * LEASE_MS};
    mortise_client *client;
    assert_int_equal(mortise_open(by_proxy(), &options, &client), MORTISE_OK);
    mortise_hold hold = zk_acquire(zk_mutex(client, "m"));
    assert_int_equal(mortise_list(client, "m", no_row, &rows), MORTISE_OK);
    redis_proxy_order(proxy, REDIS_HOLD, DIGEST(LIST), NULL);
    assert_int_equal(mortise_list(client, "m", no_row, &rows), MORTISE_EUNREACHABLE);
    assert_true(redis_proxy_done(proxy));
    redis_proxy_go(proxy);
    assert_int_equal(mortise_hold_state(hold), MORTISE_HELD);
    assert_int_equal(mortise_verify(hold, 5000), MORTISE_OK);
    mortise_release(hold);
    mortise_close(client);
}

static void test_rd_10_a_command_of_an_earlier_connection_is_refused(void **state)
{
    (void)state;
    mortise_hold hold;
    mortise_client *client = zk_open(by_proxy()), *other = zk_open(direct());
    mortise_release(zk_acquire(zk_mutex(client, "m")));
    redis_proxy_forget(proxy);
    redis_proxy_order(proxy, REDIS_HOLD, DIGEST(APPEND), NULL);
    /* The client gives the connection up, and does all on another one. */
    mortise_release(zk_acquire(zk_mutex(client, "late")));
    assert_true(redis_proxy_done(proxy));
    assert_true(zk_wait_tickets(other, "late", 0, 10000));
    redis_proxy_go(proxy);
    int64_t limit = zk_now_ms() + 10000;
    while (redis_proxy_seen(proxy, DIGEST(APPEND)) < 2)
        assert_true(zk_now_ms() < limit);
    let_server_work();
    assert_int_equal(zk_tickets(other, "late"), 0);
    assert_int_equal(mortise_try_acquire(zk_mutex(other, "late"), &hold), MORTISE_OK);
    mortise_close(client);
    mortise_close(other);
}

static void test_rd_14_the_scripts_are_sent_again_whenever_they_are_gone(void **state)
{
    (void)state;
    struct heir heir;
    mortise_client *client = zk_open(direct());
    for (int i = 0; i < 5; i++) {
        ask("SCRIPT FLUSH");
        mortise_hold hold = zk_acquire(zk_mutex(client, "m"));
        ask("SCRIPT FLUSH");
        assert_int_equal(mortise_verify(hold, 5000), MORTISE_OK);
        begin(&heir, direct());
        assert_true(zk_wait_tickets(client, "m", 2, 10000));
        ask("SCRIPT FLUSH");
        mortise_release(hold);
        ask("SCRIPT FLUSH");
        end(&heir);
    }
    assert_true(zk_wait_tickets(client, "m", 0, 10000));
    mortise_close(client);
}

static void test_rd_20_lost_pushes_cost_time_only(void **state)
{
    (void)state;
    struct heir heir;
    mortise_client *client = zk_open(direct());
    for (int cut = 0; cut < 2; cut++) {
        mortise_hold hold = zk_acquire(zk_mutex(client, "m"));
        redis_proxy_drop_pushes(proxy, !cut);
        begin(&heir, by_proxy());
        assert_true(zk_wait_tickets(client, "m", 2, 10000));
        if (cut)
            redis_proxy_cut(proxy);
        mortise_release(hold);
        end(&heir);
    }
    mortise_close(client);
}

/* ------------------------------------------------------------------------- loss */

/* The loss is told when what remained is over. An answer that was under way may have added to that
   first. */
static void expect_loss_in_time(mortise_hold hold, struct fate *fate)
{
    int64_t limit = zk_now_ms() + 20000, ends = 0;
    while (!fate->lost) {
        int64_t now = zk_now_ms(), remaining = mortise_hold_remaining_ms(hold);
        assert_true(now < limit);
        assert_true(remaining <= LEASE_MS);
        if (remaining > 0 && now + remaining > ends)
            ends = now + remaining;
        zk_rest_ms(1);
    }
    assert_true(ends > 0);
    assert_true(fate->lost_at <= ends + SLACK_MS);
}

static void lose_while(void (*stall)(bool stalled), const char *uri, bool others_go_on)
{
    struct fate fate = {0};
    struct heir heir;
    mortise_client *client = zk_open(uri);
    mortise_hold hold = zk_acquire(zk_mutex(client, "m"));
    mortise_on_lost(hold, note_fate, &fate);
    if (others_go_on) {
        begin(&heir, direct());
        heir.rival = &hold;
    }
    stall(true);
    expect_loss_in_time(hold, &fate);
    assert_int_equal(fate.suspended, 1);
    assert_int_equal(mortise_is_held(hold), 0);
    if (others_go_on)
        pthread_join(heir.thread, NULL);
    if (others_go_on) {
        assert_false(heir.overlaps); /* by the clock: the thread that calls back may run later */
        assert_true(mortise_hold_fence(heir.hold) > mortise_hold_fence(hold));
    }
    stall(false);
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    if (others_go_on)
        mortise_close(heir.client);
    zk_acquire(zk_mutex(client, "m")); /* it recovers by itself */
    mortise_close(client);
}

static void stall_proxy(bool stalled)
{
    redis_proxy_stall(proxy, stalled);
}

static void stop_server(bool stopped)
{
    zk_place_server(stopped ? "pause" : "resume", 0);
}

static void test_rd_09_rd_11_rd_13_l3_loss_is_told_before_another_holds(void **state)
{
    (void)state;
    lose_while(stall_proxy, by_proxy(), true);
}

static void test_rd_13_loss_is_told_when_the_server_stops(void **state)
{
    (void)state;
    lose_while(stop_server, direct(), false);
}

/* It is waited for longer than that without being given up (EDISCONNECTED), so only the deadline
   can end it. */
static void test_rd_17_a_stopped_server_delays_no_caller_past_its_deadline(void **state)
{
    (void)state;
    mortise_hold hold;
    mortise_client *client = zk_open(uri_with_lease(zk_place_port(), 120000));
    mortise_release(zk_acquire(zk_mutex(client, "m")));
    stop_server(true);
    int error = mortise_acquire_for(zk_mutex(client, "m"), 200, &hold);
    stop_server(false);
    assert_int_equal(error, MORTISE_ETIMEOUT);
    mortise_release(zk_acquire(zk_mutex(client, "m")));
    mortise_close(client);
}

static void test_rd_12_a_released_lock_and_a_closed_session_leave_no_key(void **state)
{
    (void)state;
    mortise_client *client = zk_open(by_proxy());
    mortise_hold hold = zk_acquire(zk_mutex(client, "m")), other;
    assert_int_equal(ask("ZCARD {mortise/}sessions"), 1);
    assert_int_equal(mortise_acquire_for(zk_mutex(client, "m"), 20, &other), MORTISE_OK);
    mortise_release(other);
    mortise_release(hold);
    mortise_close(client);
    assert_int_equal(ask("ZCARD {mortise/}sessions"), 0);
    assert_int_equal(ask("KEYS {mortise/}*"), 2); /* the counters alone */
    assert_int_equal(ask("EXISTS {mortise/}fence"), 1);
    assert_int_equal(ask("HLEN {mortise/}queues"), 1);
    redis_proxy_forget(proxy);
    zk_rest_ms(LEASE_MS / 2);
    assert_int_equal(redis_proxy_seen(proxy, "renew"), 0);
}

static void test_one_renewal_for_any_number_of_locks(void **state)
{
    (void)state;
    char name[16];
    mortise_client *client = zk_open(uri_with_lease(redis_proxy_port(proxy), 3 * LEASE_MS));
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "many%d", i);
        zk_acquire(zk_mutex(client, name));
    }
    redis_proxy_forget(proxy);
    zk_rest_ms(3 * LEASE_MS);
    assert_in_range(redis_proxy_seen(proxy, DIGEST(SESSION)), 1, 6);
    assert_int_equal(redis_proxy_seen(proxy, DIGEST(REFRESH)), 0);
    mortise_close(client);
}

/* Several locks, and whether they have been asked for, whatever the server answers. */
#define SEVERAL 3
struct several {
    mortise_lock *locks[SEVERAL];
    int error;
};

static void *acquire_several(void *argument)
{
    struct several *several = argument;
    mortise_hold holds[SEVERAL];
    several->error = mortise_acquire_all(several->locks, SEVERAL, -1, holds);
    return NULL;
}

static void test_e6_free_locks_are_asked_for_in_one_go(void **state)
{
    (void)state;
    static const char *const names[SEVERAL] = {"first", "second", "third"};
    struct several several = {.error = -1};
    pthread_t thread;
    mortise_client *client = zk_open(uri_with_lease(redis_proxy_port(proxy), 60000));
    mortise_release(zk_acquire(zk_mutex(client, "m"))); /* the server knows the scripts */
    for (int i = 0; i < SEVERAL; i++)
        several.locks[i] = zk_mutex(client, names[i]);
    stop_server(true);
    assert_int_equal(pthread_create(&thread, NULL, acquire_several, &several), 0);
    int64_t limit = zk_now_ms() + 10000;
    int asked = 0;
    while (asked < SEVERAL && zk_now_ms() < limit)
        asked += redis_proxy_seen(proxy, names[asked]) > 0;
    stop_server(false); /* which has answered nothing */
    pthread_join(thread, NULL);
    assert_int_equal(several.error, MORTISE_OK);
    assert_int_equal(asked, SEVERAL);
    mortise_close(client);
}

/* ------------------------------------------------------------ servers that forget */

static void expect_loss_and_a_higher_fence(const char *command)
{
    struct fate fate = {0};
    mortise_client *client = zk_open(direct());
    mortise_hold hold = zk_acquire(zk_mutex(client, "m"));
    mortise_on_lost(hold, note_fate, &fate);
    uint64_t fence = mortise_hold_fence(hold);
    if (command) {
        ask(command);
    } else {
        zk_place_server("kill", 0);
        zk_place_server("restart", 0);
    }
    wait_for(&fate.lost);
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    hold = zk_acquire(zk_mutex(client, "m"));
    assert_true(mortise_hold_fence(hold) > fence);
    mortise_close(client);
}

static void test_rd_22_flushall_is_a_loss_and_fences_still_rise(void **state)
{
    (void)state;
    expect_loss_and_a_higher_fence("FLUSHALL");
}

static void test_rd_05_rd_19_rd_21_kill_and_restart_without_persistence(void **state)
{
    (void)state;
    expect_loss_and_a_higher_fence(NULL); /* with the signal's own disposition: see main */
    redisReconnect(raw);
}

static void test_rd_22_a_queue_key_of_another_type_is_an_error(void **state)
{
    (void)state;
    mortise_hold hold;
    mortise_client *client = zk_open(direct());
    ask("SET {mortise/}q:mortise/clash x");
    assert_int_equal(mortise_acquire_for(zk_mutex(client, "clash"), 5000, &hold),
                     MORTISE_EMISMATCH);
    assert_non_null(strstr(mortise_error_detail(), "WRONGTYPE"));
    mortise_close(client);
}

/* As a step of the server's clock does it: forward, the lease is over; back, it is far off. */
static void test_rd_03_rd_04_the_servers_clock_is_set(void **state)
{
    (void)state;
    struct fate fate = {0};
    struct heir heir;
    mortise_client *client = zk_open(direct());
    mortise_hold hold = zk_acquire(zk_mutex(client, "m"));
    mortise_on_lost(hold, note_fate, &fate);
    set_leases("ZADD", "1");
    wait_for(&fate.lost);
    mortise_release(hold);
    mortise_close(client);

    client = zk_open(by_proxy());
    zk_acquire(zk_mutex(client, "m"));
    redis_proxy_stall(proxy, true);
    set_leases("ZINCRBY", "3600000");
    begin(&heir, direct());
    end(&heir); /* it has not waited for an hour */
    redis_proxy_stall(proxy, false);
    mortise_close(client);
}

/* Nobody wants what it had: a renewal of another session sees that the dead one's lease ends too
 * late.
 */
static void test_rd_03_a_session_that_died_before_the_clock_was_set_back_ends(void **state)
{
    (void)state;
    mortise_client *client = zk_open(by_proxy()),
                   *other = zk_open(uri_with_lease(zk_place_port(), LEASE_MS / 3));
    zk_acquire(zk_mutex(client, "m"));
    redis_proxy_stall(proxy, true);
    set_leases("ZINCRBY", "3600000");
    mortise_hold kept = zk_acquire(zk_mutex(other, "o"));
    int64_t limit = zk_now_ms() + 20000;
    while (ask("EXISTS {mortise/}q:mortise/m") > 0) {
        assert_true(zk_now_ms() < limit);
        zk_rest_ms(5);
        if (mortise_hold_state(kept) == MORTISE_LOST) { /* on a busy machine */
            mortise_release(kept);
            kept = zk_acquire(zk_mutex(other, "o"));
        }
    }
    redis_proxy_stall(proxy, false);
    mortise_close(client);
    mortise_close(other);
}

/* ------------------------------------------------------------------ refused writes */

static void test_rd_15_rd_16_errors_of_the_server(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int error;
    } rows[] = {
        {"-LOADING x", MORTISE_ESTORE},
        {"-MISCONF x", MORTISE_ESTORE},
        {"-OOM x", MORTISE_ESTORE},
        {"-READONLY x", MORTISE_ESTORE},
        {"-NOREPLICAS x", MORTISE_ESTORE},
        {"-BUSY x", MORTISE_ESTORE},
        {"-CLUSTERDOWN x", MORTISE_ESTORE},
        {"-MASTERDOWN x", MORTISE_ESTORE},
        {"-TRYAGAIN x", MORTISE_ESTORE},
        {"-ASK 1 h:1", MORTISE_ESTORE},
        {"-MOVED 1 h:1", MORTISE_ENOTSUPPORTED},
        {"-NOPERM x", MORTISE_EPERMISSION},
        {"-NOAUTH x", MORTISE_EPERMISSION},
    };
    mortise_hold hold;
    mortise_client *client = zk_open(by_proxy());
    mortise_lock *lock = zk_mutex(client, "m");
    hold = zk_acquire(lock);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mortise_hold other;
        char word[16];
        snprintf(word, sizeof word, "%.*s", (int)strcspn(rows[i].text + 1, " "), rows[i].text + 1);
        redis_proxy_order(proxy, REDIS_ANSWER, DIGEST(APPEND), rows[i].text);
        assert_int_equal(mortise_try_acquire(zk_mutex(client, "e"), &other), rows[i].error);
        assert_non_null(strstr(mortise_error_detail(), word));
        assert_int_equal(zk_tickets(client, "e"), 0);
        if (rows[i].error != MORTISE_ESTORE)
            continue;
        redis_proxy_order(proxy, REDIS_ANSWER, DIGEST(APPEND), rows[i].text);
        other = zk_acquire(zk_mutex(client, "e")); /* which tries again */
        redis_proxy_order(proxy, REDIS_ANSWER, DIGEST(REMOVE), rows[i].text);
        mortise_release(other);
        assert_true(zk_wait_tickets(client, "e", 0, 10000));
        redis_proxy_order(proxy, REDIS_ANSWER, DIGEST(REFRESH), rows[i].text);
        assert_int_equal(mortise_verify(hold, 10000), MORTISE_OK);
        assert_true(redis_proxy_done(proxy));
    }
    redis_proxy_order(proxy, REDIS_ANSWER, DIGEST(SESSION), "-READONLY x");
    while (!redis_proxy_done(proxy))
        zk_rest_ms(5);
    zk_rest_ms(LEASE_MS);
    assert_int_equal(mortise_hold_state(hold), MORTISE_HELD);
    mortise_close(client);
}

static void keep_log(void *argument, const char *message)
{
    snprintf(argument, 256, "%s", message);
}

/* Lines of the log, under this mutex. */
static const char *log_of(const char *policy, bool claim)
{
    static char said[256];
    mortise_client *client;
    mortise_lock *lock;
    const mortise_client_options options = {
        .size = sizeof options, .log = keep_log, .log_argument = said};
    said[0] = '\0';
    value_of(redisCommand(raw, "CONFIG SET maxmemory-policy %s", policy));
    assert_int_equal(mortise_open(direct(), &options, &client), MORTISE_OK);
    int error = claim ? mortise_exclusive_new(client, "m", NULL, &lock)
                      : mortise_mutex_new(client, "m", NULL, &lock);
    assert_int_equal(error, MORTISE_OK);
    mortise_release(zk_acquire(lock));
    mortise_close(client);
    return said;
}

static void test_rd_15_a_server_that_may_drop_keys_is_reported(void **state)
{
    (void)state;
    ask("CONFIG SET maxmemory 100mb");
    assert_string_equal(log_of("noeviction", true), "");
    assert_non_null(strstr(log_of("allkeys-lru", false), "maxmemory-policy allkeys-lru): locks"));
    assert_string_equal(log_of("volatile-ttl", false), "");
    assert_non_null(strstr(log_of("volatile-ttl", true), "maxmemory-policy volatile-ttl): claims"));
    ask("CONFIG SET maxmemory 0");
    assert_string_equal(log_of("allkeys-lru", false), "");
    ask("CONFIG SET maxmemory-policy noeviction");
}

static void test_rd_02_too_few_replicas_is_an_error_that_leaves_nothing(void **state)
{
    (void)state;
    mortise_hold hold;
    mortise_client *client = zk_open(direct());
    mortise_release(zk_acquire(zk_mutex(client, "m")));
    assert_true(zk_wait_tickets(client, "m", 0, 10000)); /* or its removal would be refused too */
    ask("CONFIG SET min-replicas-to-write 1");
    assert_int_equal(mortise_try_acquire(zk_mutex(client, "m"), &hold), MORTISE_ESTORE);
    assert_non_null(strstr(mortise_error_detail(), "NOREPLICAS"));
    ask("CONFIG SET min-replicas-to-write 0");
    assert_int_equal(zk_tickets(client, "m"), 0);
    mortise_close(client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static const struct CMUnitTest tests[] = {
    TEST(test_rd_08_a_lost_reply_is_asked_for_again),
    TEST(test_rd_08_an_operator_is_told_of_an_unknown_outcome),
    TEST(test_a_list_that_is_not_answered_costs_nobody_a_hold),
    TEST(test_rd_10_a_command_of_an_earlier_connection_is_refused),
    TEST(test_rd_14_the_scripts_are_sent_again_whenever_they_are_gone),
    TEST(test_rd_20_lost_pushes_cost_time_only),
    TEST(test_rd_09_rd_11_rd_13_l3_loss_is_told_before_another_holds),
    TEST(test_rd_13_loss_is_told_when_the_server_stops),
    TEST(test_rd_17_a_stopped_server_delays_no_caller_past_its_deadline),
    TEST(test_rd_12_a_released_lock_and_a_closed_session_leave_no_key),
    TEST(test_one_renewal_for_any_number_of_locks),
    TEST(test_e6_free_locks_are_asked_for_in_one_go),
    TEST(test_rd_22_flushall_is_a_loss_and_fences_still_rise),
    TEST(test_rd_22_a_queue_key_of_another_type_is_an_error),
    TEST(test_rd_03_rd_04_the_servers_clock_is_set),
    TEST(test_rd_03_a_session_that_died_before_the_clock_was_set_back_ends),
    TEST(test_rd_15_rd_16_errors_of_the_server),
    TEST(test_rd_15_a_server_that_may_drop_keys_is_reported),
    TEST(test_rd_02_too_few_replicas_is_an_error_that_leaves_nothing),
    TEST(test_rd_05_rd_19_rd_21_kill_and_restart_without_persistence),
};

static int run_all(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#ifdef MRT_DEFECTS

static int run(void)
{
    return defect_run("redis_faults", run_all);
}
#else
static int run(void)
{
    return run_all();
}
#endif

int main(void)
{
    zk_place_settings("", "redis");
    if (zk_place_start(NULL) < 0)
        return 1;
    signal(SIGPIPE, SIG_DFL); /* a write to what has gone must not end us */
    int failed = run();
    zk_place_stop(NULL);
    return failed != 0;
}
