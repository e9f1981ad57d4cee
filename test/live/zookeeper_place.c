/* SPDX-License-Identifier: Apache-2.0 */
/* The server's directory and port are kept here; a program has one server. */
#include "live/zookeeper_place.h"

#include "cmocka_all.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static char directory[128];
static uint16_t port;
static const char *settings = "", *kind = "zk";

const char *zk_place_servers(const char *command)
{
    static char output[16384];
    char line[512];
    snprintf(line, sizeof line, "%s %s %s 2>&1", ZK_SERVERS, command, directory);
    FILE *pipe = popen(line, "re"); // NOLINT(cert-env33-c): all parts are the test's own
    assert_non_null(pipe);
    size_t length = fread(output, 1, sizeof output - 1, pipe);
    output[length] = '\0';
    pclose(pipe);
    return output;
}

void zk_place_servers_at(const char *command, const char *arguments)
{
    char line[512];
    snprintf(line, sizeof line, "%s %s %s %s", ZK_SERVERS, command, directory, arguments);
    assert_int_equal(system(line), 0); // NOLINT(cert-env33-c): all parts are the test's own
}

void zk_place_settings(const char *text, const char *servers)
{
    settings = text;
    kind = servers;
}

void zk_place_server(const char *command, int number)
{
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    zk_place_servers_at(command, text);
}

int zk_place_start(void **state)
{
    (void)state;
    char command[256];
    signal(SIGPIPE, SIG_IGN);
    snprintf(command, sizeof command, "%s start %s", settings, kind);
    const char *output = zk_place_servers(command);
    unsigned number = 0;
    const char *address = strstr(output, "127.0.0.1:");
    if (!address || sscanf(output, "%127s", directory) != 1 ||
        sscanf(address, "127.0.0.1:%u", &number) != 1) {
        print_error("%s\n", output);
        directory[0] = '\0';
        return -1;
    }
    port = (uint16_t)number;
    return 0;
}

int zk_place_stop(void **state)
{
    (void)state;
    if (directory[0])
        zk_place_servers("stop");
    return 0;
}

uint16_t zk_place_port(void)
{
    return port;
}

const char *zk_place_uri(uint16_t at, const char *session)
{
    static char uris[8][128];
    static int next;
    char *uri = uris[next++ % 8];
    snprintf(uri, sizeof uris[0], "zk://127.0.0.1:%u/test/root?session=%s&connect=10s",
             (unsigned)at, session);
    return uri;
}

long zk_place_figure(const char *name)
{
    const char *found = strstr(zk_place_servers("mntr"), name);
    return found ? strtol(found + strlen(name), NULL, 10) : -1;
}

mortise_client *zk_open(const char *uri)
{
    mortise_client *client = NULL;
    int error = mortise_open(uri, NULL, &client);
    if (error)
        print_error("%s: %s\n", uri, mortise_error_detail());
    assert_int_equal(error, MORTISE_OK);
    return client;
}

mortise_lock *zk_mutex(mortise_client *client, const char *name)
{
    mortise_lock *lock = NULL;
    assert_int_equal(mortise_mutex_new(client, name, NULL, &lock), MORTISE_OK);
    return lock;
}

mortise_hold zk_acquire(mortise_lock *lock)
{
    mortise_hold hold = {0};
    int error = mortise_acquire_for(lock, 20000, &hold);
    if (error)
        print_error("%s: %s\n", mortise_error_text(error), mortise_error_detail());
    assert_int_equal(error, MORTISE_OK);
    return hold;
}

static int count_entry(void *argument, const mortise_entry *entry)
{
    int *count = argument;
    (void)entry;
    ++*count;
    return 0;
}

/* A server may be too busy to answer in time: it is asked again. */
int zk_tickets(mortise_client *client, const char *name)
{
    int count, error;
    int64_t end = zk_now_ms() + 60000;
    do {
        count = 0;
        error = mortise_list(client, name, count_entry, &count);
    } while (mortise_error_kind_of(error) == MORTISE_KIND_RETRY && zk_now_ms() < end);
    assert_int_equal(error, MORTISE_OK);
    return count;
}

bool zk_wait_tickets(mortise_client *client, const char *name, int count, int ms)
{
    int64_t end = zk_now_ms() + ms;
    while (zk_tickets(client, name) != count) {
        if (zk_now_ms() > end)
            return false;
        zk_rest_ms(10);
    }
    return true;
}

void zk_rest_ms(int ms)
{
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&pause, NULL);
}

int64_t zk_now_ms(void)
{
    return mortise_now_ns() / 1000000;
}

char zk_said[8192];

void zk_hear(void *argument, const char *text)
{
    (void)argument;
    size_t length = strlen(zk_said);
    snprintf(zk_said + length, sizeof zk_said - length, "%s\n", text);
}
