/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The URI is cut up left to right, and written back in one canonical form (`shown`). No secret can
 * stand in it: a token is in a file, which is read for each call that needs it (wire.c).
 */
#include "store/kubernetes/uri.h"

#include "base/error.h"
#include "base/listen.h"
#include "store/kubernetes/name.h"
#include "store/rest/wire.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAMILY "a k8s:"
#define DEFAULT_PORT 443
#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount/"
#define LABEL_MAX 63

static bool is_label(const char *text)
{
    return mrt_k8s_is_name(text, LABEL_MAX) && !strchr(text, '.');
}

/* The URI's own value goes before. */
static void set_default(char *path, const char *value)
{
    if (!*path)
        snprintf(path, MRT_K8S_PATH_MAX, "%s", value);
}

/* Any user may read it, and it is no secret. */
static void read_namespace(char space[MRT_K8S_NAMESPACE_SIZE])
{
    FILE *file = fopen(ACCOUNT "namespace", "re");
    size_t length = file ? fread(space, 1, MRT_K8S_NAMESPACE_SIZE - 1, file) : 0;
    if (file)
        fclose(file);
    space[length] = '\0';
    space[strcspn(space, "\n")] = '\0';
}

static int take_pod(struct mrt_k8s_address *address)
{
    const char *host = secure_getenv("KUBERNETES_SERVICE_HOST");
    const char *port = secure_getenv("KUBERNETES_SERVICE_PORT");
    struct mrt_host *first = &address->hosts[0];
    int number = port ? mrt_uri_port(port, strlen(port)) : DEFAULT_PORT;
    if (!host || !*host || strlen(host) >= sizeof first->name || number <= 0)
        return mrt_error(MORTISE_EURI, "k8s: without a host is for a pod, where "
                                       "KUBERNETES_SERVICE_HOST and _PORT name the server; "
                                       "elsewhere: k8s://host:port/NAMESPACE");
    snprintf(first->name, sizeof first->name, "%s", host);
    first->port = (uint16_t)number;
    address->host_count = 1;
    set_default(address->token, ACCOUNT "token");
    set_default(address->tls_ca, ACCOUNT "ca.crt");
    if (!*address->space)
        read_namespace(address->space);
    return MORTISE_OK;
}

static int take_place(const char *rest, struct mrt_k8s_address *address)
{
    if (!*rest)
        return take_pod(address);
    if (strncmp(rest, "//", 2) != 0)
        return mrt_error(MORTISE_EURI, "a k8s: URI begins as k8s://host:port/NAMESPACE");
    const char *hosts = rest + 2;
    size_t length = strcspn(hosts, "/");
    const char *space = hosts[length] ? hosts + length + 1 : "";
    if (strlen(space) >= sizeof address->space || strchr(hosts, '@'))
        return mrt_error(MORTISE_EURI, "a k8s: URI is k8s://host:port/NAMESPACE, without a user");
    snprintf(address->space, sizeof address->space, "%s", space);
    if (length == 0)
        return take_pod(address);
    return mrt_hosts_parse(hosts, length, FAMILY, DEFAULT_PORT, address->hosts,
                           &address->host_count);
}

static int check(const struct mrt_k8s_address *address)
{
    const char *const paths[] = {address->token, address->tls_ca, address->tls_cert,
                                 address->tls_key};
    if (!is_label(address->space))
        return mrt_error(MORTISE_EURI,
                         "\"%.63s\" is no namespace of Kubernetes: k8s://host:port/NAMESPACE",
                         address->space);
    if (address->lease % MRT_SECOND != 0)
        return mrt_error(MORTISE_EURI, "lease= of a k8s: URI is in whole seconds");
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        if (*paths[i] && *paths[i] != '/')
            return mrt_error(MORTISE_EURI, "credentials=, tls_ca=, tls_cert= and tls_key= are "
                                           "absolute paths of files");
    if (!*address->tls_cert != !*address->tls_key)
        return mrt_error(MORTISE_EURI, "tls_cert= and tls_key= go together");
    for (size_t i = 0; i < address->host_count && address->tls == MRT_ADDRESS_TLS_OFF; i++)
        if (mrt_listens_for_others(address->hosts[i].name))
            return mrt_error(MORTISE_EURI,
                             "tls=off is for a server on this host alone, not for %.200s",
                             address->hosts[i].name);
    return MORTISE_OK;
}

static void write_shown(struct mrt_k8s_address *address)
{
    size_t size = sizeof address->shown;
    int begin = snprintf(address->shown, size, "k8s://");
    size_t length =
        mrt_hosts_format(address->hosts, address->host_count, address->shown, size, (size_t)begin);
    if (length < size)
        snprintf(address->shown + length, size - length, "/%s", address->space);
}

/* MRT_ADDRESS_TLS_REQUIRED, which checks nothing, is not offered. */
static const char *const tls_words[] = {"off", "verify", NULL};
#define AT(member) offsetof(struct mrt_k8s_address, member)
static const struct mrt_parameter parameters[] = {
    {"lease", MRT_PARAMETER_DURATION, AT(lease), MRT_SECOND, 3600 * MRT_SECOND, NULL},
    {"connect", MRT_PARAMETER_DURATION, AT(connect), MRT_MILLISECOND, 3600 * MRT_SECOND, NULL},
    {"credentials", MRT_PARAMETER_TEXT, AT(token), 0, MRT_K8S_PATH_MAX, NULL},
    {"tls", MRT_PARAMETER_WORD, AT(tls), 0, 0, tls_words},
    {"tls_ca", MRT_PARAMETER_TEXT, AT(tls_ca), 0, MRT_K8S_PATH_MAX, NULL},
    {"tls_cert", MRT_PARAMETER_TEXT, AT(tls_cert), 0, MRT_K8S_PATH_MAX, NULL},
    {"tls_key", MRT_PARAMETER_TEXT, AT(tls_key), 0, MRT_K8S_PATH_MAX, NULL},
    {.key = NULL}};

int mrt_k8s_uri_parse(const struct mrt_uri *uri, struct mrt_k8s_address *address)
{
    memset(address, 0, sizeof *address);
    address->lease = 15 * MRT_SECOND;
    address->connect = 5 * MRT_SECOND;
    address->tls = 1;
    int error = mrt_parameters_read(uri, parameters, address);
    address->tls = address->tls == 0 ? MRT_ADDRESS_TLS_OFF : MRT_ADDRESS_TLS_VERIFY;
    if (error == MORTISE_OK)
        error = take_place(uri->rest, address);
    if (error == MORTISE_OK)
        error = check(address);
    if (error == MORTISE_OK)
        write_shown(address);
    return error;
}
