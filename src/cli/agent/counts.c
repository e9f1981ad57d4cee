/* SPDX-License-Identifier: Apache-2.0 */
/* See counts.h. INFO is lines of "key:value"; what is not in it counts as 0. */
#include "cli/agent/counts.h"

#include "base/parameter.h"
#include "base/uri.h"
#include "cli/agent/service.h"
#include "store/agent/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INFO_SIZE 8192

bool mrt_counted_socket(const char *url, char *path, size_t size)
{
    struct mrt_agent_address address;
    struct mrt_uri *uri = malloc(sizeof *uri); /* may have a password */
    bool is_agent = uri && mrt_uri_parse(mrt_uri_choose(url), uri) == MORTISE_OK &&
                    strcmp(uri->scheme, "agent") == 0 &&
                    mrt_agent_address_read(uri, &address) == MORTISE_OK &&
                    strlen(address.path) < size;
    if (is_agent)
        snprintf(path, size, "%s", address.path);
    if (uri)
        explicit_bzero(uri, sizeof *uri);
    free(uri);
    return is_agent;
}

/* The value of a line; "": there is none. */
static const char *find_value(const char *info, const char *key)
{
    size_t size = strlen(key);
    const char *at = info;
    while (at && (strncmp(at, key, size) != 0 || at[size] != ':')) {
        at = strchr(at, '\n');
        at += at != NULL;
    }
    return at ? at + size + 1 : "";
}

static uint64_t read_number(const char *text)
{
    int64_t number = mrt_parse_number(text, strspn(text, "0123456789"), INT64_MAX);
    return number < 0 ? 0 : (uint64_t)number;
}

static uint64_t find_number(const char *info, const char *key)
{
    return read_number(find_value(info, key));
}

/* "32=2,64=1": two of less than 32, and one from there to 64. */
static void read_buckets(const char *text, struct mrt_counted_times *times)
{
    while (*text >= '0' && *text <= '9') {
        uint64_t bound = read_number(text);
        text += strspn(text, "0123456789");
        if (*text != '=' || bound == 0)
            return;
        times->below[__builtin_ctzll(bound)] += read_number(++text);
        text += strspn(text, "0123456789");
        text += *text == ',';
    }
}

static void read_times(const char *info, const char *name, struct mrt_counted_times *times)
{
    char key[32];
    snprintf(key, sizeof key, "%s_count", name);
    times->count = find_number(info, key);
    snprintf(key, sizeof key, "%s_us", name);
    times->sum_us = find_number(info, key);
    snprintf(key, sizeof key, "%s_us_below", name);
    read_buckets(find_value(info, key), times);
}

bool mrt_counted_read(const char *path, struct mrt_counted *counted)
{
    char info[INFO_SIZE];
    if (mrt_agent_ask(path, info, sizeof info) != 0 || info[0] == '-')
        return false;
    *counted = (struct mrt_counted){.clients = find_number(info, "connected_clients"),
                                    .sessions = find_number(info, "sessions"),
                                    .tickets = find_number(info, "tickets"),
                                    .holders = find_number(info, "holders"),
                                    .connections = find_number(info, "connections"),
                                    .refused = find_number(info, "refused"),
                                    .ended = find_number(info, "ended"),
                                    .commands = find_number(info, "commands"),
                                    .grants = find_number(info, "grants")};
    read_times(info, "wait", &counted->waits);
    read_times(info, "hold", &counted->holds);
    return true;
}
