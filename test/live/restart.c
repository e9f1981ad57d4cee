/* SPDX-License-Identifier: Apache-2.0 */
/*
 * H5: a server is killed under a holder and 50 waiters, and comes up again on the same data. One
 * program for every kind of server: `test_restart KIND SETTINGS [PATTERN]`, SETTINGS being options
 * of tools/servers.
 *
 * Nobody may wait for ever, and two may never hold at a time. If the server is back within the
 * lease, and has kept what it was told, the hold is kept and the waiters are served in their order;
 * if it is away for longer, the hold is lost, which its client knows by the clock alone, and the
 * waiters' places are lost too: they queue anew.
 */
#include "cmocka_all.h"
#include "live/zookeeper_place.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define WAITERS 50
#define IN_ORDER_MS 5000 /* half of the lease: no waiter's can have ended, however old it was */
#define SERVED_MS 60000  /* the machine may be busy; most take a second or two */

static const char *kind;
static _Atomic int inside, overlaps, refused, order;
static _Atomic uint64_t last_fence;
static _Atomic int away, back;

static struct waiter {
    mortise_client *client;
    _Atomic int place; /* in the order of grants, from 1 */
} waiters[WAITERS];

static const char *uri_of(int lease_s)
{
    static char uri[256];
    const char *url = zk_place_servers("url");
    const char *path = strcmp(kind, "zk") == 0 ? "/restart" : "";
    const char *word = strcmp(kind, "zk") == 0 || strcmp(kind, "redis") == 0 ? "session" : "lease";
    snprintf(uri, sizeof uri, "%.*s%s?%s=%ds", (int)strcspn(url, "\n"), url, path, word, lease_s);
    return uri;
}

/* The contact callbacks of the holder's client. */
static void note_contact(void *argument, int error, const char *why)
{
    (void)argument;
    print_message("# %s: %s\n", error ? "away" : "back", why);
    assert_true(strlen(why) > 0);
    atomic_fetch_add(error ? &away : &back, 1);
    assert_int_equal(error, away > back ? MORTISE_EUNREACHABLE : MORTISE_OK);
}

static mortise_client *open_listening(const char *uri)
{
    mortise_client *client;
    const mortise_client_options options = {.size = sizeof options, .contact = note_contact};
    away = back = 0;
    assert_int_equal(mortise_open(uri, &options, &client), MORTISE_OK);
    return client;
}

static void take_turn(void *argument, int error, mortise_hold hold)
{
    struct waiter *waiter = argument;
    if (error != MORTISE_OK || !mortise_is_held(hold)) {
        print_error("%s: %s\n", mortise_error_text(error), mortise_error_detail());
        atomic_fetch_add(&refused, 1);
        return;
    }
    uint64_t fence = mortise_hold_fence(hold);
    if (atomic_fetch_add(&inside, 1) > 0 || fence <= atomic_exchange(&last_fence, fence))
        atomic_fetch_add(&overlaps, 1);
    zk_rest_ms(2);
    atomic_store(&waiter->place, 1 + atomic_fetch_add(&order, 1));
    atomic_fetch_sub(&inside, 1);
    mortise_release(hold);
}

/* In the order of their numbers. */
static void queue_all(mortise_client *client, const char *uri, const char *name)
{
    for (int i = 0; i < WAITERS; i++) {
        waiters[i].client = zk_open(uri);
        waiters[i].place = 0;
        assert_int_equal(mortise_acquire_async(zk_mutex(waiters[i].client, name), INT64_MAX,
                                               take_turn, &waiters[i], NULL),
                         MORTISE_OK);
        assert_true(zk_wait_tickets(client, name, i + 2, 20000));
    }
}

static void await_all_served(void)
{
    for (int64_t end = zk_now_ms() + SERVED_MS; atomic_load(&order) < WAITERS; zk_rest_ms(5)) {
        assert_true(zk_now_ms() < end);
        assert_int_equal(refused, 0);
    }
    for (int i = 0; i < WAITERS; i++)
        mortise_close(waiters[i].client);
    assert_int_equal(overlaps, 0);
    assert_int_equal(refused, 0);
}

static mortise_hold begin(mortise_client *holder, const char *uri, const char *name)
{
    mortise_hold hold = zk_acquire(zk_mutex(holder, name));
    inside = overlaps = refused = order = 0;
    last_fence = mortise_hold_fence(hold);
    queue_all(holder, uri, name);
    return hold;
}

/* Until the server is up and the client has news of its session, or knows that the hold is lost. */
static int fate(mortise_hold hold)
{
    int error = MORTISE_EUNREACHABLE;
    for (int64_t end = zk_now_ms() + SERVED_MS; error != MORTISE_OK && error != MORTISE_ELOST;) {
        assert_true(zk_now_ms() < end);
        error = mortise_verify(hold, 5000);
    }
    return error;
}

static void test_h5_a_hold_survives_a_server_that_is_back_within_the_lease(void **state)
{
    (void)state;
    const char *uri = uri_of(10);
    assert_int_equal(mortise_init(uri, NULL, NULL), MORTISE_OK);
    mortise_client *holder = open_listening(uri);
    mortise_hold hold = begin(holder, uri, "short");
    int64_t killed = zk_now_ms(), lease_ends = killed + mortise_hold_remaining_ms(hold);
    zk_place_servers("kill");
    zk_place_servers("restart");
    int error = fate(hold);
    if (error == MORTISE_ELOST && zk_now_ms() >= lease_ends)
        print_message("# the server was not back within the lease\n");
    else
        assert_int_equal(error, MORTISE_OK);
    if (error == MORTISE_OK) {
        zk_rest_ms(200);
        assert_int_equal(order, 0);
        assert_int_equal(mortise_release(hold), MORTISE_OK);
    }
    await_all_served();
    int64_t served_ms = zk_now_ms() - killed;
    print_message("# all were served %lld ms after the server's end\n", (long long)served_ms);
    bool in_order = error == MORTISE_OK && served_ms < IN_ORDER_MS;
    if (!in_order)
        print_message("# no waiter's lease is certain to have lasted\n");
    for (int i = 0; i < WAITERS && in_order; i++)
        assert_int_equal(waiters[i].place, i + 1);
    mortise_close(holder);
}

static void test_h5_a_hold_is_lost_when_the_server_is_away_for_longer_than_the_lease(void **state)
{
    (void)state;
    enum { LEASE_S = 3 };
    const char *uri = uri_of(LEASE_S);
    assert_int_equal(mortise_init(uri, NULL, NULL), MORTISE_OK);
    mortise_client *holder = open_listening(uri);
    mortise_hold hold = begin(holder, uri, "long");
    zk_place_servers("kill");
    zk_rest_ms(2 * LEASE_S * 1000);
    assert_int_equal(mortise_is_held(hold), 0);
    assert_int_equal(mortise_hold_state(hold), MORTISE_LOST);
    assert_int_equal(order, 0);
    zk_place_servers("restart");
    await_all_served();
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    assert_int_equal(away, 1); /* its renewals were not answered */
    mortise_close(holder);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_h5_a_hold_survives_a_server_that_is_back_within_the_lease),
        cmocka_unit_test(test_h5_a_hold_is_lost_when_the_server_is_away_for_longer_than_the_lease),
    };
    if (count < 3)
        return 64;
    kind = arguments[1];
    zk_place_settings(arguments[2], kind);
    if (count > 3)
        cmocka_set_test_filter(arguments[3]);
    return cmocka_run_group_tests(tests, zk_place_start, zk_place_stop);
}
