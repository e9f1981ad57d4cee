/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers that say nothing: one that was never there but for its port, one that stands still while
 * it has a session. A hold is lost only if no other server could have kept it.
 */
#include "cmocka_all.h"

#include "live/stall.h"
#include "live/zookeeper_place.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SERVERS 3

static unsigned ports[SERVERS];

/* A port that takes connections and never answers; the socket. */
static int listen_silently(unsigned *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

/* The server that this process has a connection to, of several; -1: none. */
static int connected_server(void)
{
    DIR *directory = opendir("/proc/self/fd");
    struct dirent *entry;
    int found = -1;
    while ((entry = readdir(directory))) {
        struct sockaddr_in peer;
        socklen_t length = sizeof peer;
        int fd = (int)strtol(entry->d_name, NULL, 10);
        if (getpeername(fd, (struct sockaddr *)&peer, &length) < 0 || peer.sin_family != AF_INET)
            continue;
        for (int i = 0; i < SERVERS; i++)
            if (ntohs(peer.sin_port) == ports[i])
                found = i;
    }
    closedir(directory);
    return found;
}

static bool follows(int server)
{
    char answer[1024];
    size_t length = 0;
    ssize_t got;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)ports[server])};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(write(fd, "srvr", 4), 4);
    while ((got = read(fd, answer + length, sizeof answer - 1 - length)) > 0)
        length += (size_t)got;
    close(fd);
    answer[length] = '\0';
    return strstr(answer, "Mode: follower");
}

/* A client that is connected to a follower, which is told, and has the lock. */
static mortise_client *hold_at_follower(const char *session, const char *name, int *server,
                                        mortise_hold *hold)
{
    char uri[256];
    snprintf(uri, sizeof uri, "zk://127.0.0.1:%u,127.0.0.1:%u,127.0.0.1:%u/still?session=%s",
             ports[0], ports[1], ports[2], session);
    for (int tries = 0; tries < 40; tries++) {
        mortise_client *client = zk_open(uri);
        *hold = zk_acquire(zk_mutex(client, name));
        *server = connected_server();
        if (follows(*server))
            return client;
        assert_int_equal(mortise_close(client), MORTISE_OK);
    }
    fail_msg("no client comes to a follower");
    return NULL;
}

static bool stays_held(mortise_hold hold, int ms)
{
    for (int64_t end = zk_now_ms() + ms; zk_now_ms() < end; zk_rest_ms(20))
        if (mortise_hold_state(hold) == MORTISE_LOST)
            return false;
    return true;
}

/* Of three addresses two are silent, and most clients come to one of these first. */
static bool outlives_silent_addresses(void)
{
    enum { CLIENTS = 5 };
    bool kept = true;
    mortise_client *clients[CLIENTS];
    mortise_hold holds[CLIENTS];
    unsigned silent[2];
    char uri[256], name[16];
    int first = listen_silently(&silent[0]), second = listen_silently(&silent[1]);
    snprintf(uri, sizeof uri,
             "zk://127.0.0.1:%u,127.0.0.1:%u,127.0.0.1:%u/still?session=6s&connect=20s", silent[0],
             silent[1], ports[0]);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = zk_open(uri);
        snprintf(name, sizeof name, "silent/%d", i);
        mortise_lock *lock = zk_mutex(clients[i], name);
        int64_t before = zk_now_ms();
        holds[i] = zk_acquire(lock);
        print_message("granted after %d ms\n", (int)(zk_now_ms() - before));
    }
    for (int i = 0; i < CLIENTS; i++)
        kept = stays_held(holds[i], i == 0 ? 4000 : 1) && kept;
    for (int i = 0; i < CLIENTS; i++) {
        kept = mortise_release(holds[i]) == MORTISE_OK && kept;
        mortise_close(clients[i]);
    }
    close(first);
    close(second);
    return kept;
}

static void test_silent_addresses_cost_time_and_no_hold(void **state)
{
    (void)state;
    assert_true(stall_succeeds(outlives_silent_addresses, NULL));
}

static bool outlives_a_follower(const char *session, int ms)
{
    int server;
    mortise_hold hold;
    mortise_client *client = hold_at_follower(session, "follower", &server, &hold);
    zk_rest_ms(ms / 2); /* what making the session proved is used up */
    zk_place_server("pause", server);
    bool kept = stays_held(hold, ms * 3 / 2) && connected_server() != server &&
                mortise_verify(hold, 5000) == MORTISE_OK;
    zk_place_server("resume", server);
    kept = kept && stays_held(hold, 500) && mortise_release(hold) == MORTISE_OK;
    assert_int_equal(mortise_close(client), MORTISE_OK);
    return kept;
}

/* The two rules for the lag, by the session. */
static bool outlives_a_follower_4s(void)
{
    return outlives_a_follower("4s", 4000);
}

static bool outlives_a_follower_6s(void)
{
    return outlives_a_follower("6s", 6000);
}

static void test_zk_44_a_follower_that_stands_still_costs_no_hold(void **state)
{
    (void)state;
    assert_true(stall_succeeds(outlives_a_follower_4s, NULL));
    assert_true(stall_succeeds(outlives_a_follower_6s, NULL));
}

/* Connections in a table of the kernel's to a server that has not closed them, though its client
   has. */
static int count_left_in(const char *table, unsigned port)
{
    enum { CLOSE_WAIT = 8 }; /* of the kernel's TCP states */
    FILE *file = fopen(table, "re");
    char line[256];
    int found = 0;
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        unsigned at, state;
        if (sscanf(line, " %*d: %*[^:]:%x %*[^:]:%*x %x", &at, &state) == 2)
            found += at == port && state == CLOSE_WAIT;
    }
    fclose(file);
    return found;
}

static int count_left_connections(unsigned port)
{
    return count_left_in("/proc/net/tcp", port) + count_left_in("/proc/net/tcp6", port);
}

/* Or the loss. */
static void await_renewal(mortise_hold hold)
{
    int64_t left = mortise_hold_remaining_ms(hold);
    for (int64_t last = left; left > 0 && left <= last; left = mortise_hold_remaining_ms(hold)) {
        last = left;
        zk_rest_ms(5);
    }
}

/* There is no other server: what counts is what is left of the lease, more than half of it. Of two
   attempts to attach the session the server may answer the one that was given up. */
static bool outlives_the_only_server(void)
{
    char uri[128];
    pid_t server = (pid_t)strtol(zk_place_servers("pid"), NULL, 10);
    snprintf(uri, sizeof uri, "zk://127.0.0.1:%u/still?session=6s", ports[0]);
    mortise_client *client = zk_open(uri);
    mortise_hold hold = zk_acquire(zk_mutex(client, "alone"));
    zk_rest_ms(3000);
    await_renewal(hold);
    zk_rest_ms(600); /* the next is due soon */
    assert_int_equal(kill(server, SIGSTOP), 0);
    bool kept = stays_held(hold, 2500);
    kept = count_left_connections(ports[0]) == 1 && kept;
    assert_int_equal(kill(server, SIGCONT), 0);
    kept = kept && stays_held(hold, 4000) && mortise_verify(hold, 5000) == MORTISE_OK &&
           mortise_release(hold) == MORTISE_OK;
    assert_int_equal(mortise_close(client), MORTISE_OK);
    return kept;
}

static void test_zk_44_the_only_server_stands_still_for_less_than_half_the_session(void **state)
{
    (void)state;
    assert_true(stall_succeeds(outlives_the_only_server, NULL));
}

static void test_a_session_shorter_than_the_tick_of_the_uri_is_refused(void **state)
{
    (void)state;
    char uri[128];
    mortise_hold none;
    snprintf(uri, sizeof uri, "zk://127.0.0.1:%u/still?session=2s&tick=3s", ports[0]);
    mortise_client *client = zk_open(uri);
    assert_int_equal(mortise_acquire_for(zk_mutex(client, "tick"), 10000, &none),
                     MORTISE_ENOTSUPPORTED);
    assert_non_null(strstr(mortise_error_detail(), "session of 2000 ms, less than tick=3000ms"));
    assert_int_equal(mortise_close(client), MORTISE_OK);
}

static bool keeps_a_short_session(void)
{
    char uri[128];
    snprintf(uri, sizeof uri, "zk://127.0.0.1:%u/still?session=2s&tick=500ms", ports[0]);
    mortise_client *client = zk_open(uri);
    mortise_hold hold = zk_acquire(zk_mutex(client, "tick"));
    bool kept = stays_held(hold, 2500);
    assert_int_equal(mortise_close(client), MORTISE_OK);
    return kept;
}

static void test_a_session_longer_than_the_tick_of_the_uri_is_kept(void **state)
{
    (void)state;
    assert_true(stall_succeeds(keeps_a_short_session, NULL));
}

/* The library's close of a server that falls silent just then: it takes seconds. */
int __real_zookeeper_close(void *handle);
int __wrap_zookeeper_close(void *handle);
static _Atomic int close_takes_ms;

int __wrap_zookeeper_close(void *handle)
{
    zk_rest_ms(close_takes_ms);
    return __real_zookeeper_close(handle);
}

static int64_t close_within(int patience_ms, int expected)
{
    char uri[128];
    mortise_client *client;
    snprintf(uri, sizeof uri, "zk://127.0.0.1:%u/still?session=4s", ports[0]);
    const mortise_client_options options = {.size = sizeof options, .timeout_ms = patience_ms};
    assert_int_equal(mortise_open(uri, &options, &client), MORTISE_OK);
    zk_acquire(zk_mutex(client, "slow-end"));
    int64_t begin = zk_now_ms();
    assert_int_equal(mortise_close(client), expected);
    return zk_now_ms() - begin;
}

static void test_the_end_of_a_session_is_waited_for_as_long_as_the_caller_says(void **state)
{
    (void)state;
    close_takes_ms = 1200;
    assert_in_range(close_within(10000, MORTISE_OK), 1200, 5000);
    close_takes_ms = 4000;
    assert_in_range(close_within(500, MORTISE_EUNKNOWN), 400, 2500);
    close_takes_ms = 0;
}

static int begin_all(void **state)
{
    int error = zk_place_start(state);
    if (error)
        return error;
    const char *url = zk_place_servers("url");
    return sscanf(url, "zk://127.0.0.1:%u,127.0.0.1:%u,127.0.0.1:%u", &ports[0], &ports[1],
                  &ports[2]) == SERVERS
               ? 0
               : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_silent_addresses_cost_time_and_no_hold),
        cmocka_unit_test(test_zk_44_a_follower_that_stands_still_costs_no_hold),
        cmocka_unit_test(test_zk_44_the_only_server_stands_still_for_less_than_half_the_session),
        cmocka_unit_test(test_a_session_shorter_than_the_tick_of_the_uri_is_refused),
        cmocka_unit_test(test_a_session_longer_than_the_tick_of_the_uri_is_kept),
        cmocka_unit_test(test_the_end_of_a_session_is_waited_for_as_long_as_the_caller_says),
    };
    zk_place_settings("", "zk3");
    return cmocka_run_group_tests(tests, begin_all, zk_place_stop);
}
