/*
 * A quorum of five real Redis servers, step by step at the port: what a member that forgets does,
 * and what keeps it from doing so.
 */
#include "cmocka_all.h"
#include "conform/port_client.h"
#include "core/rule.h"
#include "live/zookeeper_place.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SESSION "8s" /* longer than all of a test's steps */
#define UPTIME "4s"  /* longer than from the restart on */
#define SETTLES (15 * MRT_SECOND)

static struct port_client first, second;

static const char *uri_with(const char *more)
{
    static char uri[512];
    const char *urls = zk_place_servers("urls");
    int length = (int)strcspn(urls, "\n");
    snprintf(uri, sizeof uri, "redlock:%.*s?answer=500ms&session=" SESSION "%s", length, urls,
             more);
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

/* Somebody else has it at the last two; or has it no more. */
static void occupy(bool has)
{
    const char *at = zk_place_servers("urls");
    for (int i = 0; i < 5; i++) {
        at = strstr(at, "127.0.0.1:") + strlen("127.0.0.1:");
        if (i < 3)
            continue;
        redisContext *raw = redisConnect("127.0.0.1", (int)strtol(at, NULL, 10));
        freeReplyObject(redisCommand(raw, has ? "SET q else" : "DEL q"));
        redisFree(raw);
    }
}

/* The first has three of five; one of these restarts, and forgets; the second asks. */
static bool a_second_one_gets_in(const char *more)
{
    open_session(&first, more);
    occupy(true);
    acquire(&first);
    occupy(false);
    zk_place_server("kill", 2);
    zk_place_server("restart", 2);
    port_open(&second, uri_with(more), "test");
    second.session = port_id();
    assert_int_equal(port_start(&second).type, MRT_STARTED);
    mrt_time until = mrt_time_now() + MRT_SECOND; /* enough for all members to be up */
    bool in = false;
    while (!in && mrt_time_now() < until) {
        struct mrt_event view = port_try(&second, "q", port_id());
        in = holds(&view);
        port_wait(&second, MRT_STARTED, (struct mrt_id){1, 1}, 50 * MRT_MILLISECOND, NULL);
    }
    assert_int_equal(port_tickets(&first, "q"), 1); /* where it is remembered */
    return in;
}

/* The violation that the manual names: it must be seen here, or the witness is blind. */
static void test_rd_05_m11_a_member_that_forgets_lets_a_second_one_in(void **state)
{
    (void)state;
    assert_true(a_second_one_gets_in(""));
}

static void test_rd_05_m11_one_that_has_just_come_up_is_not_counted(void **state)
{
    (void)state;
    assert_false(a_second_one_gets_in("&uptime=" UPTIME));
}

#define TEST(name) cmocka_unit_test_teardown(name, close_both)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_rd_05_m11_a_member_that_forgets_lets_a_second_one_in),
        TEST(test_rd_05_m11_one_that_has_just_come_up_is_not_counted),
    };
    port_kind = "exclusive";
    zk_place_settings("", "redis5");
    if (zk_place_start(NULL) < 0)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    zk_place_stop(NULL);
    return failed != 0;
}
