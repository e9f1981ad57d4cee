/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client is closed while its store is away. Nothing of the client ever reached the store, so the
 * close waits for no answer: it adds 100 ms at most. The test prints what it measured; one that
 * waits does so for ten minutes.
 */
#include "api/api_fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

#define MOST_MS 60000

/* A server that takes connections and never answers: its port. */
static int open_silent(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(bind(server, (const struct sockaddr *)&address, sizeof address) == 0);
    check(listen(server, 64) == 0);
    check(getsockname(server, (struct sockaddr *)&address, &length) == 0);
    *port = ntohs(address.sin_port);
    return server;
}

static const char *const forms[] = {
#ifdef MORTISE_ZOOKEEPER
    "zk://127.0.0.1:%d?connect=600s",
#endif
#ifdef MORTISE_REDIS
    "redis://127.0.0.1:%d?connect=600s",
    "redlock:redis://127.0.0.1:%d?connect=600s",
#endif
#ifdef MORTISE_POSTGRES
    "postgresql://u@127.0.0.1:%d/d?connect=600s",
    "postgresql://u@127.0.0.1:%d/d?form=advisory&connect=600s",
#endif
#ifdef MORTISE_MARIADB
    "mysql://u@127.0.0.1:%d/d?connect=600s",
    "mysql://u@127.0.0.1:%d/d?form=row&connect=600s",
#endif
    NULL};

/* Closes behind an acquire that has waited in vain, and behind one that has not waited. */
static void close_in_time(const char *form, int port)
{
    const mortise_client_options options = {.size = sizeof options, .timeout_ms = 600000};
    char uri[128];
    for (int64_t timeout_ms = 0; timeout_ms <= 200; timeout_ms += 200) {
        mortise_client *client;
        mortise_hold hold;
        snprintf(uri, sizeof uri, form, port);
        check(mortise_open(uri, &options, &client) == MORTISE_OK);
        if (timeout_ms > 0)
            check(mortise_acquire_for(api_lock(client, "x"), timeout_ms, &hold) != MORTISE_OK);
        int64_t began = mortise_now_ns();
        mortise_close(client);
        int64_t ms = api_ms_since(began);
        print_message("# %s: closed in %lld ms\n", uri, (long long)ms);
        check(ms < MOST_MS);
    }
}

static void test_closing_waits_for_nothing_that_was_never_sent(void **state)
{
    int silent, server = open_silent(&silent);
    (void)state;
    for (const char *const *form = forms; *form; form++) {
        close_in_time(*form, 1); /* refused */
        close_in_time(*form, silent);
    }
    close(server);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closing_waits_for_nothing_that_was_never_sent),
    };
    int code = api_begin(argc, argv);
    return code ? code : api_end(cmocka_run_group_tests(tests, NULL, NULL));
}
