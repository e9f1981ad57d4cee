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
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#define FAMILY "a redis:"
#define DEFAULT_PORT 6379 /* with TLS too, and so is the next */
#define SENTINEL_PORT 26379
#define DATABASE_MAX 65535
#define VARIABLE "MORTISE_REDIS_AUTH"

static int take_database(const char *text, struct mrt_redis_address *address)
{
    int64_t number = *text ? mrt_parse_number(text, strlen(text), DATABASE_MAX) : 0;
    if (number < 0)
        return mrt_error(MORTISE_EURI, "the database in a redis: URI is not a number");
    address->database = (unsigned)number;
    return MORTISE_OK;
}

/* One host, or a list of them by commas. */
static int take_hosts(const char *text, size_t length, struct mrt_redis_address *address)
{
    uint16_t port = address->way == MRT_REDIS_SENTINEL ? SENTINEL_PORT : DEFAULT_PORT;
    if (address->way == MRT_REDIS_DIRECT && memchr(text, ',', length))
        return mrt_error(MORTISE_EURI, "a redis: URI names one server; redis+sentinel: and "
                                       "redis+cluster: name several");
    return mrt_hosts_parse(text, length, FAMILY, port, address->hosts, &address->host_count);
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
    char *shown = address->shown;
    size_t size = sizeof address->shown, length;
    if (address->path[0]) {
        snprintf(shown, size, "redis+unix://%s%s%s?db=%u", address->user, at, address->path,
                 address->database);
        return;
    }
    length = (size_t)snprintf(shown, size, "%s://%s%s", uri->scheme, address->user, at);
    length = mrt_hosts_format(address->hosts, address->host_count, shown, size, length);
    if (length < size)
        length += (size_t)snprintf(shown + length, size - length, "%s%s",
                                   *address->master ? "/" : "", address->master);
    if (length < size && address->way != MRT_REDIS_CLUSTER)
        snprintf(shown + length, size - length, "/%u", address->database);
}

static int take_rest(const struct mrt_uri *uri, struct mrt_redis_address *address)
{
    const char *plus = strchr(uri->scheme, '+');
    bool local = plus && strcmp(plus, "+unix") == 0;
    if (plus && strcmp(plus, "+sentinel") == 0)
        address->way = MRT_REDIS_SENTINEL;
    else if (plus && strcmp(plus, "+cluster") == 0)
        address->way = MRT_REDIS_CLUSTER;
    if (strncmp(uri->rest, "//", 2) != 0)
        return mrt_error(MORTISE_EURI, "a %s: URI begins as %s://", uri->scheme, uri->scheme);
    if (!local && mrt_uri_parameter(uri, "db"))
        return mrt_error(MORTISE_EURI, "the database of a redis: URI is its path: "
                                       "redis://host:port/0");
    const char *rest =
        mrt_user_parse(uri->rest + 2, FAMILY, VARIABLE, address->user, sizeof address->user);
    if (!rest)
        return MORTISE_EURI;
    if (strchr(address->user, ' '))
        return mrt_error(MORTISE_EURI,
                         "the user \"%.64s\" has a space, which Redis allows in no user's name: "
                         "give the name that ACL LIST shows",
                         address->user);
    return local ? take_path(rest, uri, address) : take_servers(rest, address);
}

static const char *const tls_words[] = {"off", "required", "verify", NULL};
static const struct mrt_parameter parameters[] = {
    {"session", MRT_PARAMETER_DURATION, offsetof(struct mrt_redis_address, session),
     100 * MRT_MILLISECOND, 3600 * MRT_SECOND, NULL},
    {"connect", MRT_PARAMETER_DURATION, offsetof(struct mrt_redis_address, connect),
     MRT_MILLISECOND, 3600 * MRT_SECOND, NULL},
    {"uptime", MRT_PARAMETER_DURATION, offsetof(struct mrt_redis_address, uptime), 0,
     3600 * MRT_SECOND, NULL},
    {"replicas", MRT_PARAMETER_NUMBER, offsetof(struct mrt_redis_address, replicas), 0, 100, NULL},
    {"tls", MRT_PARAMETER_WORD, offsetof(struct mrt_redis_address, tls), 0, 0, tls_words},
    {.key = "tls_ca"},
    {.key = "tls_cert"},
    {.key = "tls_key"},
    {.key = "credentials"},
    {.key = "sentinel_user"},
    {.key = "sentinel_credentials"},
    {.key = "db"},
    {.key = NULL}};

int mrt_redis_uri_parse(const struct mrt_uri *uri, struct mrt_redis_address *address)
{
    memset(address, 0, sizeof *address);
    address->session = 10 * MRT_SECOND;
    address->connect = 5 * MRT_SECOND;
    address->tls = mrt_redis_is_secure(uri) ? MRT_REDIS_TLS_VERIFY : MRT_REDIS_TLS_OFF;
    int error = mrt_parameters_read(uri, parameters, address);
    if (error == MORTISE_OK)
        error = mrt_redis_secure_read(uri, address);
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
