/* SPDX-License-Identifier: Apache-2.0 */
/* See uri.h. The namespace becomes names of subjects and of streams. */
#include "store/nats/uri.h"

#include "base/error.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define SPACE_MAX 180 /* a stream's name has at most 255 bytes */

static const struct mrt_servers_form form = {.scheme = "nats",
                                             .family = "a nats:",
                                             .variable = "MORTISE_NATS_AUTH",
                                             .port = 4222,
                                             .tokens = true};
#define AT(member) offsetof(struct mrt_nats_address, member)
static const struct mrt_parameter parameters[] = {
    {"lease", MRT_PARAMETER_DURATION, AT(lease), MRT_SECOND, 3600 * MRT_SECOND, NULL},
    {"connect", MRT_PARAMETER_DURATION, AT(connect), MRT_MILLISECOND, 3600 * MRT_SECOND, NULL},
    {"replicas", MRT_PARAMETER_NUMBER, AT(replicas), 1, 5, NULL},
    {.key = "credentials"},
    {"tls", MRT_PARAMETER_WORD, AT(servers.tls), 0, 0, mrt_tls_words},
    {"tls_ca", MRT_PARAMETER_TEXT, AT(servers.tls_ca), 0, MRT_CA_PATH_MAX, NULL},
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
    if (error == MORTISE_OK)
        error = name_streams(prefix, address);
    if (error == MORTISE_OK)
        error = mrt_servers_parse(uri, &form, &address->servers);
    return error;
}

int mrt_nats_secret_read(const struct mrt_uri *uri, const struct mrt_nats_address *address,
                         char secret[MRT_SECRET_MAX])
{
    return mrt_servers_secret_read(uri, &form, &address->servers, secret);
}
