/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The URI is cut up left to right; every part is checked whole, and written back in
 * one canonical form (`shown`). No credentials can stand in it, so it may be shown.
 */
#include "store/zookeeper/uri.h"

#include "base/error.h"

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_PORT 2181

static int read_chroot(const char *text, struct mrt_zk_address *address)
{
    address->chroot[0] = '\0';
    if (strcmp(text, "") == 0 || strcmp(text, "/") == 0)
        return MORTISE_OK;
    if (strlen(text) >= MRT_ZK_PATH_MAX - 2 * MORTISE_NAME_MAX)
        return mrt_error(MORTISE_EURI, "the path in a zk: URI is too long");
    memcpy(address->chroot, text, strlen(text) + 1);
    if (mrt_uri_decode(address->chroot) < 0)
        return mrt_error(MORTISE_EURI, "the path in a zk: URI has a malformed %% escape");
    return mrt_zk_path_check(address->chroot, MORTISE_EURI);
}

static void write_shown(struct mrt_zk_address *address)
{
    size_t size = sizeof address->shown;
    size_t length = (size_t)snprintf(address->shown, size, "zk://");
    length = mrt_hosts_format(address->hosts, address->host_count, address->shown, size, length);
    if (length < size)
        snprintf(address->shown + length, size - length, "%s", address->chroot);
}

/* TLS that is required and not available must not end in plain text. */
static int refuse_security(const struct mrt_uri *uri)
{
    const char *tls = mrt_uri_parameter(uri, "tls"), *sasl = mrt_uri_parameter(uri, "sasl");
    const char *what = NULL;
    if (strcmp(uri->scheme, "zks") == 0 || (tls && strcmp(tls, "no") != 0))
        what = "TLS";
    else if (sasl && strcmp(sasl, "no") != 0)
        what = "SASL";
    if (!what)
        return MORTISE_OK;
    return mrt_error(MORTISE_ENOTSUPPORTED,
                     "this build of the ZooKeeper client has no %s; a tunnel such as stunnel gives "
                     "TLS (doc/zookeeper.md)",
                     what);
}

int mrt_zk_uri_layout(const struct mrt_uri *uri, enum mrt_zk_layout *layout)
{
    const char *text = mrt_uri_parameter(uri, "layout");
    for (*layout = MRT_ZK_CURATOR; text && mrt_zk_layout_name(*layout); ++*layout)
        if (strcmp(text, mrt_zk_layout_name(*layout)) == 0)
            return MORTISE_OK;
    if (!text)
        return MORTISE_OK;
    return mrt_error(MORTISE_EURI, "layout=%.32s is none of curator, kazoo and recipe", text);
}

static const char *const wake_words[] = {"one", "all", NULL};
static const struct mrt_parameter parameters[] = {
    {"session", MRT_PARAMETER_DURATION, offsetof(struct mrt_zk_address, session),
     100 * MRT_MILLISECOND, 3600 * MRT_SECOND, NULL},
    {"connect", MRT_PARAMETER_DURATION, offsetof(struct mrt_zk_address, connect), MRT_MILLISECOND,
     3600 * MRT_SECOND, NULL},
    {"tick", MRT_PARAMETER_DURATION, offsetof(struct mrt_zk_address, tick), MRT_MILLISECOND,
     3600 * MRT_SECOND, NULL},
    {"wake", MRT_PARAMETER_WORD, offsetof(struct mrt_zk_address, wake_all), 0, 0, wake_words},
    {.key = "layout"},
    {.key = "credentials"},
    {.key = "acl"},
    {.key = "parents"},
    {.key = "tls"},
    {.key = "sasl"},
    {.key = NULL}};

int mrt_zk_uri_parse(const struct mrt_uri *uri, struct mrt_zk_address *address)
{
    memset(address, 0, sizeof *address);
    address->session = 10 * MRT_SECOND;
    address->connect = 5 * MRT_SECOND;
    int error = refuse_security(uri);
    if (error == MORTISE_OK)
        error = mrt_parameters_read(uri, parameters, address);
    if (error == MORTISE_OK)
        error = mrt_zk_uri_layout(uri, &address->layout);
    if (error != MORTISE_OK)
        return error;
    const char *namespace = mrt_uri_parameter(uri, "namespace");
    snprintf(address->namespace, sizeof address->namespace, "%s",
             namespace ? namespace : "mortise");
    if (strncmp(uri->rest, "//", 2) != 0)
        return mrt_error(MORTISE_EURI, "a zk: URI begins as zk://host:port");
    const char *hosts = uri->rest + 2;
    size_t length = strcspn(hosts, "/");
    if (memchr(hosts, '@', length))
        return mrt_error(MORTISE_EURI, "a zk: URI may not carry credentials");
    error =
        mrt_hosts_parse(hosts, length, "a zk:", DEFAULT_PORT, address->hosts, &address->host_count);
    if (error == MORTISE_OK)
        error = read_chroot(hosts + length, address);
    if (error == MORTISE_OK)
        write_shown(address);
    return error;
}

/* ---------------------------------------------------------------- resolving */

/* Adds one literal address with its port; false: no room. */
static bool add_server(const struct mrt_address *address, char servers[MRT_ZK_SERVERS_SIZE])
{
    char literal[INET6_ADDRSTRLEN], port[8];
    size_t at = strlen(servers), left = MRT_ZK_SERVERS_SIZE - at;
    if (getnameinfo((const struct sockaddr *)&address->socket, address->length, literal,
                    sizeof literal, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return true; /* a scoped address that is too long: leave it out */
    int size = snprintf(servers + at, left, "%s%s:%s", at ? "," : "", literal, port);
    if (size > 0 && (size_t)size < left)
        return true;
    servers[at] = '\0';
    return false;
}

static int compare(const void *one, const void *other)
{
    const struct mrt_address *left = one, *right = other;
    return memcmp(&left->socket, &right->socket, sizeof left->socket);
}

void mrt_zk_write_servers(struct mrt_addresses *found, char servers[MRT_ZK_SERVERS_SIZE])
{
    servers[0] = '\0';
    qsort(found->at, found->count, sizeof found->at[0], compare);
    for (size_t i = 0; i < found->count; i++)
        if (!add_server(&found->at[i], servers))
            break;
}

int mrt_zk_resolve(const struct mrt_zk_address *address, char servers[MRT_ZK_SERVERS_SIZE])
{
    struct mrt_addresses *found = mrt_resolve(address->hosts, address->host_count);
    if (!found)
        return MORTISE_ENOMEM;
    mrt_zk_write_servers(found, servers);
    const char *fault = found->fault ? gai_strerror(found->fault) : "no address";
    free(found);
    if (servers[0] == '\0')
        return mrt_error(MORTISE_EUNREACHABLE, "no host of %s is known: %s", address->shown, fault);
    return MORTISE_OK;
}
