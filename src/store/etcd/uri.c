/* SPDX-License-Identifier: Apache-2.0 */
/* See uri.h. */
#include "store/etcd/uri.h"

#include "base/error.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct mrt_servers_form form = {
    .scheme = "etcd", .family = "an etcd:", .variable = "MORTISE_ETCD_AUTH", .port = 2379};
#define AT(member) offsetof(struct mrt_etcd_address, member)
static const struct mrt_parameter parameters[] = {
    {"lease", MRT_PARAMETER_DURATION, AT(lease), MRT_SECOND, 3600 * MRT_SECOND, NULL},
    {"connect", MRT_PARAMETER_DURATION, AT(connect), MRT_MILLISECOND, 3600 * MRT_SECOND, NULL},
    {.key = "credentials"},
    {"tls", MRT_PARAMETER_WORD, AT(servers.tls), 0, 0, mrt_tls_words},
    {"tls_ca", MRT_PARAMETER_TEXT, AT(servers.tls_ca), 0, MRT_CA_PATH_MAX, NULL},
    {.key = NULL}};

int mrt_etcd_uri_parse(const struct mrt_uri *uri, struct mrt_etcd_address *address)
{
    memset(address, 0, sizeof *address);
    address->lease = 10 * MRT_SECOND;
    address->connect = 5 * MRT_SECOND;
    int error = mrt_parameters_read(uri, parameters, address);
    if (error == MORTISE_OK)
        error = mrt_namespace_prefix(mrt_uri_parameter(uri, "namespace"), address->prefix);
    snprintf(address->base, sizeof address->base, "%s.mortise/", address->prefix);
    if (error == MORTISE_OK)
        error = mrt_servers_parse(uri, &form, &address->servers);
    return error;
}

int mrt_etcd_secret_read(const struct mrt_uri *uri, const struct mrt_etcd_address *address,
                         char secret[MRT_SECRET_MAX])
{
    return mrt_servers_secret_read(uri, &form, &address->servers, secret);
}
