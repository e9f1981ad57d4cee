/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The URI is cut up left to right; every part is checked whole, and written back in
 * one canonical form (`shown`). No credentials can stand in it, so it may be shown.
 */
#include "store/zookeeper/uri.h"

#include "base/error.h"

#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_PORT 2181
#define SESSION_MIN_MS 100

static int read_hosts(const char *text, size_t length, struct mrt_zk_address *address)
{
    const char *end = text + length;
    char form[80];
    for (;;) {
        size_t part = strcspn(text, ",");
        if (part > (size_t)(end - text))
            part = (size_t)(end - text);
        if (address->host_count == MRT_ZK_HOSTS_MAX)
            return mrt_error(MORTISE_EURI, "more than %d hosts in a zk: URI", MRT_ZK_HOSTS_MAX);
        if (memchr(text, '@', part))
            return mrt_error(MORTISE_EURI, "a zk: URI may not carry credentials");
        /* It may be part of a password: it is not quoted. */
        snprintf(form, sizeof form, "host %zu in a zk: URI is not of the form host:port",
                 address->host_count + 1);
        int error =
            mrt_host_parse(text, part, DEFAULT_PORT, form, &address->hosts[address->host_count++]);
        if (error)
            return error;
        if (text + part == end)
            return MORTISE_OK;
        text += part + 1;
    }
}

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
    size_t at = (size_t)snprintf(address->shown, sizeof address->shown, "zk://");
    for (size_t i = 0; i < address->host_count && at < sizeof address->shown; i++) {
        char text[MRT_HOST_TEXT_SIZE];
        mrt_host_format(&address->hosts[i], text);
        at += (size_t)snprintf(address->shown + at, sizeof address->shown - at, "%s%s",
                               i ? "," : "", text);
    }
    if (at < sizeof address->shown)
        snprintf(address->shown + at, sizeof address->shown - at, "%s", address->chroot);
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

static int read_wake(const struct mrt_uri *uri, bool *all)
{
    const char *text = mrt_uri_parameter(uri, "wake");
    *all = text && strcmp(text, "all") == 0;
    if (!text || *all || strcmp(text, "one") == 0)
        return MORTISE_OK;
    return mrt_error(MORTISE_EURI, "wake=%.32s is neither \"one\" nor \"all\"", text);
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

int mrt_zk_uri_parse(const struct mrt_uri *uri, struct mrt_zk_address *address)
{
    static const char *const known[] = {MRT_URI_COMMON, "session",     "connect", "tick",
                                        "wake",         "credentials", "acl",     "tls",
                                        "sasl",         "layout",      "parents", NULL};
    memset(address, 0, sizeof *address);
    address->session = 10 * MRT_SECOND;
    address->connect = 5 * MRT_SECOND;
    int error = refuse_security(uri);
    if (error == MORTISE_OK)
        error = mrt_uri_check_parameters(uri, known);
    if (error == MORTISE_OK)
        error = mrt_address_duration(uri, "session", SESSION_MIN_MS, &address->session);
    if (error == MORTISE_OK)
        error = read_wake(uri, &address->wake_all);
    if (error == MORTISE_OK)
        error = mrt_zk_uri_layout(uri, &address->layout);
    if (error == MORTISE_OK)
        error = mrt_address_duration(uri, "connect", 1, &address->connect);
    if (error == MORTISE_OK)
        error = mrt_address_duration(uri, "tick", 1, &address->tick);
    if (error != MORTISE_OK)
        return error;
    const char *namespace = mrt_uri_parameter(uri, "namespace");
    snprintf(address->namespace, sizeof address->namespace, "%s",
             namespace ? namespace : "mortise");
    if (strncmp(uri->rest, "//", 2) != 0)
        return mrt_error(MORTISE_EURI, "a zk: URI begins as zk://host:port");
    const char *hosts = uri->rest + 2;
    size_t length = strcspn(hosts, "/");
    error = read_hosts(hosts, length, address);
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
