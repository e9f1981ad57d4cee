/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The URI is cut up left to right. Every part is checked whole, and written back in one canonical
 * form (`shown`), which contains no password. A part that may be a password by mistake is not
 * quoted.
 */
#include "store/nats/uri.h"

#include "base/error.h"
#include "base/listen.h"
#include "store/kit/credentials.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define FAMILY "a nats:"
#define DEFAULT_PORT 4222
#define VARIABLE "MORTISE_NATS_AUTH"
#define SPACE_MAX 180 /* a stream's name has at most 255 bytes */

static int take_hosts(const char *text, struct mrt_nats_address *address)
{
    size_t length = strcspn(text, "/");
    if (text[length] && text[length + 1])
        return mrt_error(MORTISE_EURI,
                         "a nats: URI has no path: namespace= says where its names begin");
    return mrt_hosts_parse(text, length, FAMILY, DEFAULT_PORT, address->hosts,
                           &address->host_count);
}

static int take_tls(const struct mrt_uri *uri, struct mrt_nats_address *address, bool secret)
{
    bool secure = strcmp(uri->scheme, "natss") == 0;
    if (secure && !mrt_uri_parameter(uri, "tls"))
        address->tls = MRT_NATS_TLS_VERIFY;
    if (secure && address->tls == MRT_NATS_TLS_OFF)
        return mrt_error(MORTISE_EURI, "a natss: URI has no tls=off");
    if (address->tls_ca[0] && address->tls != MRT_NATS_TLS_VERIFY)
        return mrt_error(MORTISE_EURI, "tls_ca= is used with tls=verify only");
    if (secret && address->tls == MRT_NATS_TLS_OFF)
        for (size_t i = 0; i < address->host_count; i++) {
            const char *name = address->hosts[i].name;
            if (mrt_listens_for_others(name) && !mrt_uri_parameter(uri, "tls"))
                return mrt_error(MORTISE_EURI,
                                 "the password would go to %.200s unencrypted: use "
                                 "natss:, or allow it by tls=off",
                                 name);
        }
    return MORTISE_OK;
}

static void write_shown(const struct mrt_uri *uri, struct mrt_nats_address *address)
{
    size_t size = sizeof address->shown;
    int length = snprintf(address->shown, size, "%s://%s%s", uri->scheme, address->user,
                          address->user[0] ? "@" : "");
    mrt_hosts_format(address->hosts, address->host_count, address->shown, size, (size_t)length);
}

static const char *const tls_words[] = {"off", "required", "verify", NULL};
static const struct mrt_parameter parameters[] = {
    {"lease", MRT_PARAMETER_DURATION, offsetof(struct mrt_nats_address, lease), MRT_SECOND,
     3600 * MRT_SECOND, NULL},
    {"connect", MRT_PARAMETER_DURATION, offsetof(struct mrt_nats_address, connect), MRT_MILLISECOND,
     3600 * MRT_SECOND, NULL},
    {"replicas", MRT_PARAMETER_NUMBER, offsetof(struct mrt_nats_address, replicas), 1, 5, NULL},
    {"credentials", MRT_PARAMETER_OTHER, 0, 0, 0, NULL},
    {"tls", MRT_PARAMETER_WORD, offsetof(struct mrt_nats_address, tls), 0, 0, tls_words},
    {"tls_ca", MRT_PARAMETER_TEXT, offsetof(struct mrt_nats_address, tls_ca), 0,
     sizeof(((struct mrt_nats_address *)NULL)->tls_ca), NULL},
    {.key = NULL}};

void mrt_nats_sessions_stream(const struct mrt_nats_address *address, uint64_t lease,
                              char name[MRT_NATS_BASE_SIZE])
{
    snprintf(name, MRT_NATS_BASE_SIZE, "mortise_s_%.*s_%" PRIu64, SPACE_MAX,
             address->tickets + sizeof "mortise_q_" - 1, lease);
}

/* The names of the namespace's subjects and streams. */
static int name_streams(const char *prefix, struct mrt_nats_address *address)
{
    char token[MRT_NATS_BASE_SIZE];
    size_t length = strlen(prefix);
    length -= length > 0; /* the slash */
    mrt_nats_token(prefix, length, token, sizeof token);
    if (strlen(token) > SPACE_MAX)
        return mrt_error(MORTISE_EURI,
                         "namespace= is too long for the name of a stream: %zu bytes, at most %d",
                         strlen(token), SPACE_MAX);
    for (char *c = token; *c; c++)
        if (*c == '/')
            return mrt_error(MORTISE_EURI, "namespace= of a nats: URI contains no /");
    snprintf(address->base, sizeof address->base, "mortise.%.*s", SPACE_MAX, token);
    snprintf(address->tickets, sizeof address->tickets, "mortise_q_%.*s", SPACE_MAX, token);
    mrt_nats_sessions_stream(address, (uint64_t)(address->lease / MRT_MILLISECOND),
                             address->sessions);
    return MORTISE_OK;
}

int mrt_nats_uri_parse(const struct mrt_uri *uri, struct mrt_nats_address *address)
{
    char prefix[MRT_NAMESPACE_MAX + 2];
    memset(address, 0, sizeof *address);
    address->lease = 10 * MRT_SECOND;
    address->connect = 5 * MRT_SECOND;
    int error = mrt_parameters_read(uri, parameters, address);
    if (error == MORTISE_OK)
        error = mrt_namespace_prefix(mrt_uri_parameter(uri, "namespace"), prefix);
    if (error == MORTISE_OK && strncmp(uri->rest, "//", 2) != 0)
        error = mrt_error(MORTISE_EURI, "a nats: URI begins as nats://host:port");
    if (error == MORTISE_OK)
        error = name_streams(prefix, address);
    if (error != MORTISE_OK)
        return error;
    const char *hosts =
        mrt_user_parse(uri->rest + 2, FAMILY, VARIABLE, address->user, sizeof address->user);
    error = hosts ? take_hosts(hosts, address) : MORTISE_EURI;
    if (error == MORTISE_OK)
        error = take_tls(uri, address, address->user[0] || mrt_uri_parameter(uri, "credentials"));
    if (error == MORTISE_OK)
        write_shown(uri, address);
    return error;
}

int mrt_nats_secret_read(const struct mrt_uri *uri, const struct mrt_nats_address *address,
                         char secret[MRT_NATS_SECRET_MAX])
{
    char origin[MRT_CREDENTIALS_ORIGIN_SIZE];
    secret[0] = '\0';
    if (!address->user[0] && !mrt_uri_parameter(uri, "credentials"))
        return MORTISE_OK;
    int error = mrt_credentials_read(uri, VARIABLE, secret, MRT_NATS_SECRET_MAX, origin);
    if (error == MORTISE_OK && !mrt_text_is_clean(secret, strlen(secret)))
        error = mrt_error(MORTISE_EURI, "credentials %s are not one line, the password", origin);
    else if (error == MORTISE_OK && !secret[0])
        error = mrt_error(MORTISE_EURI, "a nats: URI with a user needs that user's password, by "
                                        "credentials=/path or " VARIABLE);
    return error;
}
