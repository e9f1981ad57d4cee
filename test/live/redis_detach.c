/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durable holds, locks that linger, and what the dead leave behind for a while, on a real Redis
 * server: replies that are lost, a connection that breaks, what goes along when a ticket changes
 * hands, and dead whom nobody has come upon. conform_detach, conform_linger, conform_delay and
 * their api_ suites test on every store the promises of the port and the interface.
 */
#include "cmocka_all.h"
#include "conform/port_client.h"
#include "live/redis_proxy.h"
#include "live/zookeeper_place.h"
#include "store/redis/script.h"

#include <stdio.h>

#define DIGEST(name) mrt_redis_scripts[MRT_REDIS_##name].digest

static struct redis_proxy *proxy;
static mortise_client *direct, *through; /* to the server; by way of the proxy */
static struct port_client first, second;
static char token[MORTISE_TOKEN_SIZE];

static const char *uri_at(uint16_t port)
{
    static char uri[64];
    snprintf(uri, sizeof uri, "redis://127.0.0.1:%u?session=10s", (unsigned)port);
    return uri;
}

static int begin(void **state)
{
    (void)state;
    proxy = redis_proxy_start(zk_place_port());
    direct = zk_open(uri_at(zk_place_port()));
    through = zk_open(uri_at(redis_proxy_port(proxy)));
    return 0;
}

static int end(void **state)
{
    (void)state;
    mortise_close(direct);
    mortise_close(through);
    redis_proxy_stop(proxy);
    return 0;
}

static int begin_at_port(void **state)
{
    (void)state;
    port_open_session(&first, uri_at(zk_place_port()));
    port_open_session(&second, uri_at(zk_place_port()));
    return 0;
}

static int end_at_port(void **state)
{
    (void)state;
    port_stop(&first);
    port_stop(&second);
    port_close(&first);
    port_close(&second);
    return 0;
}

/* Once there and back; `lost`: each reply is lost once. */
static void change_hands(mortise_lock *lock, bool lost)
{
    mortise_hold hold = zk_acquire(lock);
    uint64_t fence = mortise_hold_fence(hold);
    if (lost)
        redis_proxy_order(proxy, REDIS_SWALLOW, DIGEST(DETACH), NULL);
    assert_int_equal(mortise_detach(hold, token), MORTISE_OK);
    assert_true(!lost || redis_proxy_done(proxy));
    assert_int_equal(zk_tickets(direct, "hands"), 1);
    if (lost)
        redis_proxy_order(proxy, REDIS_SWALLOW, DIGEST(ADOPT), NULL);
    assert_int_equal(mortise_adopt(lock, token, &hold), MORTISE_OK);
    assert_true(!lost || redis_proxy_done(proxy));
    assert_true(mortise_hold_fence(hold) > fence);
    assert_int_equal(mortise_verify(hold, 10000), MORTISE_OK);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    assert_true(zk_wait_tickets(direct, "hands", 0, 20000));
}

static void test_c11_rd_08_lost_replies_to_detach_and_adopt_are_asked_for_again(void **state)
{
    (void)state;
    mortise_lock *lock = zk_mutex(through, "hands");
    change_hands(lock, false); /* from here on the server knows the scripts */
    change_hands(lock, true);
}

static void wait_for_requests(const char *part, unsigned count)
{
    int64_t until = zk_now_ms() + 60000;
    while (redis_proxy_seen(proxy, part) < count) {
        assert_true(zk_now_ms() < until);
        zk_rest_ms(2);
    }
}

/* A change published while nobody listened is seen by a look, which listens anew. */
static void test_rd_20_a_lock_that_lingers_listens_again(void **state)
{
    (void)state;
    mortise_lock *lock;
    mortise_hold hold;
    const mortise_lock_options options = {.size = sizeof options, .linger_ms = 3600000};
    assert_int_equal(mortise_mutex_new(through, "lingers", &options, &lock), MORTISE_OK);
    mortise_release(zk_acquire(lock));
    wait_for_requests("SUBSCRIBE", 1);
    redis_proxy_cut(proxy);
    wait_for_requests("SUBSCRIBE", 2);
    assert_int_equal(mortise_acquire_for(zk_mutex(direct, "lingers"), 20000, &hold), MORTISE_OK);
    mortise_release(hold);
}

/* ------------------------------------------------------------------ at the port */

static struct mrt_event detach(const char *queue, const struct mrt_event *view,
                               struct mrt_id detached_id)
{
    struct mrt_command command = port_command(&first, MRT_DETACH);
    command.ticket = view->ticket;
    command.fence = view->fence;
    command.queue = queue;
    command.weight = 1;
    command.detached_id = detached_id;
    return port_send(&first, &command);
}

static struct mrt_event adopt(const char *queue, struct mrt_id detached_id, const char *kind)
{
    struct mrt_command command = port_command(&second, MRT_APPEND);
    command.ticket = detached_id;
    command.queue = queue;
    command.kind = kind;
    command.capacity = command.weight = 1;
    command.adopt = true;
    return port_send(&second, &command);
}

static void test_q_a_value_stays_with_a_detached_ticket(void **state)
{
    (void)state;
    struct mrt_id detached_id = port_id();
    struct mrt_event held = port_append_value(&first, "value", "kept");
    assert_int_equal(detach("value", &held, detached_id).type, MRT_VIEW);
    assert_true(port_observe(&first, "value", (struct mrt_id){0, 0}).fence == held.fence);
    assert_string_equal(first.value, "kept");
    struct mrt_event view = adopt("value", detached_id, "election");
    assert_int_equal(view.type, MRT_VIEW);
    port_observe(&first, "value", (struct mrt_id){0, 0});
    assert_string_equal(first.value, "kept");
    assert_int_equal(port_set_value(&second, "value", &view, "new").type, MRT_VIEW);
    port_observe(&first, "value", (struct mrt_id){0, 0});
    assert_string_equal(first.value, "new");
}

static void test_q_m_a_revoke_request_stays_with_a_detached_ticket(void **state)
{
    (void)state;
    struct mrt_id detached_id = port_id();
    struct mrt_event held = port_append(&first, "asked", port_id());
    assert_int_equal(second.ops->revoke(second.store, "asked", 0), MORTISE_OK);
    assert_int_equal(detach("asked", &held, detached_id).type, MRT_VIEW);
    assert_int_equal(second.ops->revoke(second.store, "asked", held.fence), MORTISE_OK);
    assert_int_equal(adopt("asked", detached_id, port_kind).revoked, 2);
}

static struct mrt_event append(struct port_client *client, const char *queue, uint64_t capacity,
                               uint64_t weight, mrt_time delay)
{
    struct mrt_command command = port_command(client, MRT_APPEND);
    command.ticket = port_id();
    command.queue = queue;
    command.kind = "semaphore";
    command.capacity = capacity;
    command.weight = weight;
    command.delay = delay;
    return port_send(client, &command);
}

/* The first one's lease has run out by the server's clock, and no script has seen it yet. */
static void end_lease(void)
{
    char session[MRT_ID_TEXT_SIZE];
    redisContext *raw = redisConnect("127.0.0.1", zk_place_port());
    mrt_id_format(first.session, session);
    redisReply *reply = redisCommand(raw, "EVAL %s 1 {mortise/}sessions %s",
                                     "return redis.call('ZADD', KEYS[1], 'CH', "
                                     "redis.call('TIME')[1] * 1000 - 1, ARGV[1])",
                                     session);
    assert_int_equal(reply->integer, 1);
    freeReplyObject(reply);
    redisFree(raw);
}

static int note_delay(void *argument, const struct mrt_listed *row)
{
    *(int64_t *)argument = row->entry.delay_ms;
    return 0;
}

static void test_s_a_list_shows_the_delay_of_a_death_that_nobody_noticed(void **state)
{
    (void)state;
    int64_t delay_ms = 0;
    append(&first, "unseen", 1, 1, 3600 * MRT_SECOND);
    end_lease();
    assert_int_equal(second.ops->list(second.store, "unseen", NULL, note_delay, &delay_ms), 0);
    assert_in_range(delay_ms, 3500000, 3600000);
    assert_int_equal(append(&second, "unseen", 1, 1, 0).weight_ahead, 1); /* comes upon him */
    assert_int_equal(append(&second, "unseen", 1, 1, 0).weight_ahead, 2);
}

/* A release tells the tickets behind it their weight ahead, without that of the dead. */
static void test_s_a_release_counts_the_tickets_that_dead_sessions_leave(void **state)
{
    (void)state;
    struct mrt_event one = append(&second, "counted", 2, 1, 0);
    append(&first, "counted", 2, 1, 3600 * MRT_SECOND);
    struct mrt_event both = append(&second, "counted", 2, 2, 0), told;
    assert_int_equal(both.weight_ahead, 2);
    end_lease();
    assert_int_equal(port_remove(&second, "counted", one.ticket, one.fence).type, MRT_REMOVED);
    while (port_wait(&second, MRT_VIEW, both.ticket, 50 * MRT_MILLISECOND, &told))
        assert_int_equal(told.weight_ahead, 1);
    assert_int_equal(port_refresh(&second, "counted", &both).weight_ahead, 1);
}

#define AT_PORT(name) cmocka_unit_test_setup_teardown(name, begin_at_port, end_at_port)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_c11_rd_08_lost_replies_to_detach_and_adopt_are_asked_for_again, begin, end),
        cmocka_unit_test_setup_teardown(test_rd_20_a_lock_that_lingers_listens_again, begin, end),
        AT_PORT(test_q_a_value_stays_with_a_detached_ticket),
        AT_PORT(test_q_m_a_revoke_request_stays_with_a_detached_ticket),
        AT_PORT(test_s_a_list_shows_the_delay_of_a_death_that_nobody_noticed),
        AT_PORT(test_s_a_release_counts_the_tickets_that_dead_sessions_leave),
    };
    zk_place_settings("", "redis");
    return cmocka_run_group_tests(tests, zk_place_start, zk_place_stop);
}
