/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The URI is cut up left to right. Every part is checked whole, and written back in one canonical
 * form (`shown`), which contains no password and so may be shown. A part that may be a password
 * by mistake is not quoted.
 */
#include "store/redis/uri.h"

#include "base/error.h"
#include "store/kit/credentials.h"
#include "store/redis/secure.h"

#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#define DEFAULT_PORT 6379 /* also of rediss: */
#define SENTINEL_PORT 26379
#define SESSION_MIN_MS 100
#define DATABASE_MAX 65535
#define REPLICAS_MAX 100
#define VARIABLE "MORTISE_REDIS_AUTH"

/* "user@" at the beginning of `text` into the address; what follows it, or NULL. */
static const char *take_user(const char *text, struct mrt_redis_address *address)
{
    size_t authority = strcspn(text, "/");
    const char *at = memrchr(text, '@', authority);
    if (!at)
        return text;
    size_t length = (size_t)(at - text);
    if (memchr(text, ':', length)) {
        mrt_error(MORTISE_EURI, "a redis: URI may not carry a password: put it into the file of "
                                "credentials=/path, or into " VARIABLE);
        return NULL;
    }
    if (length > 0 && length < sizeof address->user) {
        memcpy(address->user, text, length);
        if (mrt_uri_decode(address->user) == 0 && address->user[0] && !strchr(address->user, ' '))
            return at + 1;
    }
    mrt_error(MORTISE_EURI, "the user in a redis: URI is not well formed");
    return NULL;
}

static int take_database(const char *text, struct mrt_redis_address *address)
{
    int64_t number = *text ? mrt_parse_number(text, strlen(text), DATABASE_MAX) : 0;
    if (number < 0)
        return mrt_error(MORTISE_EURI, "the database in a redis: URI is not a number");
    address->database = (unsigned)number;
    return MORTISE_OK;
}

static uint16_t port_by_default(const struct mrt_redis_address *address)
{
    return address->way == MRT_REDIS_SENTINEL ? SENTINEL_PORT : DEFAULT_PORT;
}

/* One host, or a list of them by commas. */
static int take_hosts(const char *text, size_t length, struct mrt_redis_address *address)
{
    static const char *const forms[] = {
        [MRT_REDIS_DIRECT] = "a redis: URI begins as redis://host:port",
        [MRT_REDIS_SENTINEL] = "a redis+sentinel: URI is redis+sentinel://host:port,host/master",
        [MRT_REDIS_CLUSTER] = "a redis+cluster: URI begins as redis+cluster://host:port,host",
    };
    const char *end = text + length;
    if (address->way == MRT_REDIS_DIRECT && memchr(text, ',', length))
        return mrt_error(MORTISE_EURI, "a redis: URI names one server; redis+sentinel: and "
                                       "redis+cluster: name several");
    for (;;) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        size_t part = (size_t)((comma ? comma : end) - text);
        if (address->host_count == MRT_REDIS_HOSTS_MAX)
            return mrt_error(MORTISE_EURI, "more than %d servers in a URI", MRT_REDIS_HOSTS_MAX);
        int error = mrt_host_parse(text, part, port_by_default(address), forms[address->way],
                                   &address->hosts[address->host_count++]);
        if (error || !comma)
            return error;
        text = comma + 1;
    }
}

/* Sentinel allows letters, digits and ".-_" in it. */
static int take_master(const char **text, struct mrt_redis_address *address)
{
    size_t length = strcspn(*text, "/");
    if (length == 0 || length >= sizeof address->master ||
        strspn(*text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") !=
            length)
        return mrt_error(MORTISE_EURI, "a redis+sentinel: URI names the master behind its hosts: "
                                       "redis+sentinel://host:port,host/master");
    memcpy(address->master, *text, length);
    *text += length + ((*text)[length] == '/');
    return MORTISE_OK;
}

static int take_servers(const char *text, struct mrt_redis_address *address)
{
    size_t length = strcspn(text, "/");
    int error = take_hosts(text, length, address);
    text += length + (text[length] == '/');
    if (error == MORTISE_OK && address->way == MRT_REDIS_SENTINEL)
        error = take_master(&text, address);
    if (error == MORTISE_OK)
        error = take_database(text, address);
    if (error == MORTISE_OK && address->way == MRT_REDIS_CLUSTER && address->database > 0)
        error = mrt_error(MORTISE_EURI, "a cluster of Redis has the database 0 alone");
    return error;
}

static int take_path(const char *text, const struct mrt_uri *uri, struct mrt_redis_address *address)
{
    const char *database = mrt_uri_parameter(uri, "db");
    size_t length = strlen(text);
    if (*text != '/' || length >= sizeof address->path)
        return mrt_error(MORTISE_EURI, "a redis+unix: URI is redis+unix:///path/of/socket, of less "
                                       "than 108 bytes");
    memcpy(address->path, text, length + 1);
    if (mrt_uri_decode(address->path) < 0)
        return mrt_error(MORTISE_EURI, "the path in a redis+unix: URI has a malformed %% escape");
    return take_database(database ? database : "", address);
}

/* The text in braces decides a key's slot. The slash in it keeps it from being empty; a brace in
   the namespace would end it early. */
static int take_namespace(const struct mrt_uri *uri, struct mrt_redis_address *address)
{
    const char *space = mrt_uri_parameter(uri, "namespace");
    if (!space)
        space = "mortise";
    if (strpbrk(space, "{}"))
        return mrt_error(MORTISE_EURI, "the namespace of a redis: URI has no { and no }");
    int length = snprintf(address->base, sizeof address->base, "{%s/}", space);
    if (length < 0 || (size_t)length >= sizeof address->base)
        return mrt_error(MORTISE_EURI, "the namespace of a redis: URI is too long");
    return MORTISE_OK;
}

static int take_replicas(const struct mrt_uri *uri, struct mrt_redis_address *address)
{
    const char *text = mrt_uri_parameter(uri, "replicas");
    int64_t number = text ? mrt_parse_number(text, strlen(text), REPLICAS_MAX) : 0;
    if (number < 0)
        return mrt_error(MORTISE_EURI, "replicas=%.32s is not a number of at most %d", text,
                         REPLICAS_MAX);
    address->replicas = (unsigned)number;
    return MORTISE_OK;
}

static int take_sentinel_user(const struct mrt_uri *uri, struct mrt_redis_address *address)
{
    const char *user = mrt_uri_parameter(uri, "sentinel_user");
    const char *secret = mrt_uri_parameter(uri, "sentinel_credentials");
    if ((user || secret) && address->way != MRT_REDIS_SENTINEL)
        return mrt_error(MORTISE_EURI, "sentinel_user= and sentinel_credentials= belong to "
                                       "redis+sentinel: URIs");
    if (!user)
        return MORTISE_OK;
    if (!*user || strlen(user) >= sizeof address->sentinel_user || strchr(user, ' '))
        return mrt_error(MORTISE_EURI, "sentinel_user= is not the name of a user");
    if (!secret)
        return mrt_error(MORTISE_EURI, "sentinel_user= needs that user's password, by "
                                       "sentinel_credentials=/path");
    memcpy(address->sentinel_user, user, strlen(user) + 1);
    return MORTISE_OK;
}

static void write_shown(const struct mrt_uri *uri, struct mrt_redis_address *address)
{
    const char *at = address->user[0] ? "@" : "";
    char host[MRT_HOST_TEXT_SIZE], *shown = address->shown;
    size_t size = sizeof address->shown, length;
    if (address->path[0]) {
        snprintf(shown, size, "redis+unix://%s%s%s?db=%u", address->user, at, address->path,
                 address->database);
        return;
    }
    length = (size_t)snprintf(shown, size, "%s://%s%s", uri->scheme, address->user, at);
    for (size_t i = 0; i < address->host_count && length < size; i++) {
        mrt_host_format(&address->hosts[i], host);
        length += (size_t)snprintf(shown + length, size - length, "%s%s", i > 0 ? "," : "", host);
    }
    if (length < size)
        length += (size_t)snprintf(shown + length, size - length, "%s%s",
                                   *address->master ? "/" : "", address->master);
    if (length < size && address->way != MRT_REDIS_CLUSTER)
        snprintf(shown + length, size - length, "/%u", address->database);
}

static int take_rest(const struct mrt_uri *uri, struct mrt_redis_address *address)
{
    bool local = strcmp(uri->scheme, "redis+unix") == 0;
    if (strcmp(uri->scheme, "redis+sentinel") == 0)
        address->way = MRT_REDIS_SENTINEL;
    else if (strcmp(uri->scheme, "redis+cluster") == 0)
        address->way = MRT_REDIS_CLUSTER;
    if (strncmp(uri->rest, "//", 2) != 0)
        return mrt_error(MORTISE_EURI, "a %s: URI begins as %s://", uri->scheme, uri->scheme);
    if (!local && mrt_uri_parameter(uri, "db"))
        return mrt_error(MORTISE_EURI, "the database of a redis: URI is its path: "
                                       "redis://host:port/0");
    const char *rest = take_user(uri->rest + 2, address);
    if (!rest)
        return MORTISE_EURI;
    return local ? take_path(rest, uri, address) : take_servers(rest, address);
}

int mrt_redis_uri_parse(const struct mrt_uri *uri, struct mrt_redis_address *address)
{
    static const char *const known[] = {MRT_URI_COMMON,
                                        "session",
                                        "connect",
                                        "credentials",
                                        "db",
                                        "replicas",
                                        "uptime",
                                        "tls",
                                        "tls_ca",
                                        "tls_cert",
                                        "tls_key",
                                        "sentinel_user",
                                        "sentinel_credentials",
                                        NULL};
    memset(address, 0, sizeof *address);
    address->session = 10 * MRT_SECOND;
    address->connect = 5 * MRT_SECOND;
    int error = mrt_uri_check_parameters(uri, known);
    if (error == MORTISE_OK)
        error = mrt_address_duration(uri, "session", SESSION_MIN_MS, &address->session);
    if (error == MORTISE_OK)
        error = mrt_address_duration(uri, "connect", 1, &address->connect);
    if (error == MORTISE_OK)
        error = mrt_address_duration(uri, "uptime", 0, &address->uptime);
    if (error == MORTISE_OK)
        error = mrt_redis_secure_read(uri, address);
    if (error == MORTISE_OK)
        error = take_replicas(uri, address);
    if (error == MORTISE_OK)
        error = take_namespace(uri, address);
    if (error == MORTISE_OK)
        error = take_rest(uri, address);
    if (error == MORTISE_OK)
        error = take_sentinel_user(uri, address);
    if (error == MORTISE_OK)
        write_shown(uri, address);
    return error;
}

/* One line; "" for none. `variable`: NULL: a file alone. */
static int read_secret(const struct mrt_uri *uri, const char *key, const char *variable,
                       char secret[MRT_REDIS_SECRET_MAX])
{
    char origin[MRT_CREDENTIALS_ORIGIN_SIZE];
    int error = mrt_credentials_read_as(uri, key, variable, secret, MRT_REDIS_SECRET_MAX, origin);
    if (error == MORTISE_OK && strpbrk(secret, "\r\n"))
        error = mrt_error(MORTISE_EURI, "credentials %s are not one line, the password", origin);
    return error;
}

int mrt_redis_secret_read(const struct mrt_uri *uri, const struct mrt_redis_address *address,
                          char secret[MRT_REDIS_SECRET_MAX])
{
    int error = read_secret(uri, "credentials", VARIABLE, secret);
    if (error == MORTISE_OK && address->user[0] && !secret[0])
        error = mrt_error(MORTISE_EURI, "a redis: URI with a user needs that user's password, by "
                                        "credentials=/path or " VARIABLE);
    return error;
}

int mrt_redis_sentinel_secret_read(const struct mrt_uri *uri,
                                   const struct mrt_redis_address *address,
                                   char secret[MRT_REDIS_SECRET_MAX])
{
    if (address->way != MRT_REDIS_SENTINEL)
        return MORTISE_OK;
    return read_secret(uri, "sentinel_credentials", NULL, secret);
}

/* ---------------------------------------------------------------- resolving */

static int resolve_path(const struct mrt_redis_address *address, struct mrt_address *server)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    memcpy(local.sun_path, address->path, strlen(address->path) + 1);
    memcpy(&server->socket, &local, sizeof local);
    server->length = sizeof local;
    return MORTISE_OK;
}

void mrt_redis_keep_servers(struct mrt_redis_servers *servers, const struct mrt_addresses *found)
{
    servers->count =
        found->count < MRT_REDIS_ADDRESSES_MAX ? found->count : MRT_REDIS_ADDRESSES_MAX;
    memcpy(servers->at, found->at, servers->count * sizeof found->at[0]);
}

int mrt_redis_resolve(const struct mrt_redis_address *address, struct mrt_redis_servers *servers)
{
    servers->count = 1;
    if (address->path[0])
        return resolve_path(address, &servers->at[0]);
    struct mrt_addresses *found = mrt_resolve(address->hosts, address->host_count);
    if (!found)
        return MORTISE_ENOMEM;
    int fault = found->fault;
    mrt_redis_keep_servers(servers, found);
    free(found);
    if (servers->count == 0)
        return mrt_error(MORTISE_EUNREACHABLE, "%s: %s", address->shown, gai_strerror(fault));
    return MORTISE_OK;
}
