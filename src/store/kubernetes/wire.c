/* SPDX-License-Identifier: Apache-2.0 */
/* See wire.h. */
#include "store/kubernetes/wire.h"

#include "base/error.h"
#include "base/name.h"
#include "base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ------------------------------------------------------------------ the token */

static const char *fault_of(const struct stat *status)
{
    if (!S_ISREG(status->st_mode))
        return "is not a plain file";
    if (status->st_uid != geteuid() && status->st_uid != 0)
        return "belongs to another user";
    return status->st_mode & (S_IWGRP | S_IWOTH) ? "can be written by others" : NULL;
}

static int read_token(const char *path, int fd, char *token, size_t size)
{
    ssize_t got = read(fd, token, size);
    size_t length = got > 0 ? (size_t)got : 0;
    if (length > 0 && length < size && token[length - 1] == '\n')
        length--;
    bool fine = length > 0 && length < size && !memchr(token, ' ', length) &&
                mrt_text_is_clean(token, length);
    token[fine ? length : 0] = '\0';
    return fine ? MORTISE_OK
                : mrt_error(MORTISE_EURI, "credentials %s are not one line, a token", path);
}

/* Opens the token's file if it is safe: its descriptor, or a code. */
static int open_token(const char *path, struct stat *status)
{
    char text[128];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return mrt_error(errno == EACCES ? MORTISE_EPERMISSION : MORTISE_EUNREACHABLE,
                         "credentials %s: %s", path, mrt_system_text(errno, text, sizeof text));
    const char *fault = fstat(fd, status) < 0 ? "cannot be looked at" : fault_of(status);
    if (!fault)
        return fd;
    close(fd);
    return mrt_error(MORTISE_EUNSAFE, "credentials %s %s", path, fault);
}

int mrt_k8s_token_check(const struct mrt_k8s_address *address)
{
    char token[MRT_REST_TOKEN_MAX - 8];
    struct stat status;
    if (!address->token[0])
        return MORTISE_OK;
    int fd = open_token(address->token, &status);
    if (fd < 0)
        return fd;
    int error = read_token(address->token, fd, token, sizeof token);
    close(fd);
    explicit_bzero(token, sizeof token);
    return error;
}

/* Reads the token if its file is another one than at the last time. */
static void refresh_token(struct mrt_k8s_wire *wire)
{
    const char *path = wire->address->token;
    struct stat status;
    if (!*path || (*wire->token && stat(path, &status) == 0 && status.st_ino == wire->file &&
                   status.st_mtim.tv_sec == wire->changed.tv_sec &&
                   status.st_mtim.tv_nsec == wire->changed.tv_nsec))
        return;
    explicit_bzero(wire->token, sizeof wire->token);
    int fd = open_token(path, &status);
    if (fd < 0)
        return; /* the server refuses the call, and the next one tries it again */
    wire->changed = status.st_mtim;
    wire->file = status.st_ino;
    read_token(path, fd, wire->token, sizeof wire->token);
    close(fd);
}

static void authorize(const struct mrt_rest_call *call, char text[MRT_REST_TOKEN_MAX])
{
    struct mrt_k8s_wire *wire = call->wire->owner;
    refresh_token(wire);
    *text = '\0';
    if (*wire->token)
        snprintf(text, MRT_REST_TOKEN_MAX, "Bearer %s", wire->token);
}

/* ----------------------------------------------------------------- answers */

static const struct {
    long status;
    int error;
} refusals[] = {
    {400, MORTISE_ESTORE},   {401, MORTISE_EPERMISSION},  {403, MORTISE_EPERMISSION},
    {404, MORTISE_ENOTHELD}, {405, MORTISE_ESTORE},       {409, MORTISE_ECONFLICT},
    {410, MORTISE_ESTORE},   {413, MORTISE_ESTORE},       {415, MORTISE_ESTORE},
    {422, MORTISE_ESTORE},   {429, MORTISE_EUNREACHABLE}, /* too many requests: later */
};

/* The token, or the lack of one, is not accepted. */
static void say_unknown(struct mrt_k8s_wire *wire, struct mrt_rest_verdict *verdict)
{
    const char *path = wire->address->token;
    verdict->text = wire->said;
    verdict->again = *path;
    explicit_bzero(wire->token, sizeof wire->token);
    if (*path)
        snprintf(wire->said, sizeof wire->said, "the server does not know the token of %.80s",
                 path);
    else
        snprintf(wire->said, sizeof wire->said,
                 "the server wants a token or a certificate: credentials=, tls_cert=");
}

/* The server's own words are too long for a line. */
static void say_forbidden(struct mrt_k8s_wire *wire, const struct mrt_rest_call *call,
                          struct mrt_rest_verdict *verdict)
{
    bool reads = strcmp(call->method, "GET") == 0, one = strstr(call->path, "/leases/");
    const char *verb = !reads       ? strcmp(call->method, "PUT") == 0 ? "update" : "create"
                       : call->line ? "watch"
                       : one        ? "get"
                                    : "list";
    snprintf(wire->said, sizeof wire->said,
             "this account may not %s leases in the namespace \"%s\"", verb, wire->address->space);
    verdict->text = wire->said;
    verdict->advice = ": mortise init --print-acl prints the Role it needs";
}

static void refused(const struct mrt_rest_call *call, size_t row, const char *message,
                    struct mrt_rest_verdict *verdict)
{
    struct mrt_k8s_wire *wire = call->wire->owner;
    verdict->outcome = MRT_REST_REFUSED;
    verdict->error = refusals[row].error;
    verdict->text = *message ? message : "refused, without words";
    if (refusals[row].status == 401)
        say_unknown(wire, verdict);
    else if (refusals[row].status == 403)
        say_forbidden(wire, call, verdict);
}

static bool is_status(struct json_object *json)
{
    return strcmp(mrt_rest_string(json, "kind"), "Status") == 0;
}

static void judge(const struct mrt_rest_call *call, long status, struct json_object *json,
                  struct mrt_rest_verdict *verdict)
{
    const char *message = mrt_rest_string(json, "message");
    if (status >= 200 && status < 300 &&
        (json_object_is_type(json, json_type_object) || call->line))
        return;
    /* A proxy before the server says nothing about Leases by its own 404. */
    bool is_word = (status != 404 && status != 409) || is_status(json);
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        if (refusals[i].status == status && is_word) {
            refused(call, i, message, verdict);
            return;
        }
    verdict->outcome = MRT_REST_UNKNOWN;
    verdict->error = status >= 500 ? MORTISE_EUNREACHABLE : MORTISE_ESTORE;
    verdict->text = *message ? message : "the answer is not the API server's";
    verdict->next_host = true;
}

static struct json_object *take_line(struct json_object *json)
{
    return *mrt_rest_string(json, "type") ? json : NULL;
}

static const struct mrt_rest_family family = {
    .name = "Kubernetes", .authorize = authorize, .judge = judge, .take_line = take_line};

/* ------------------------------------------------------------------ the wire */

int mrt_k8s_wire_open(struct mrt_k8s_wire *wire, const struct mrt_k8s_address *address)
{
    *wire = (struct mrt_k8s_wire){.address = address};
    const struct mrt_rest_server server = {.family = &family,
                                           .hosts = address->hosts,
                                           .host_count = address->host_count,
                                           .connect = address->connect,
                                           .tls = address->tls,
                                           .tls_ca = address->tls_ca,
                                           .tls_cert = address->tls_cert,
                                           .tls_key = address->tls_key};
    return mrt_rest_wire_open(&wire->rest, &server, wire);
}

void mrt_k8s_wire_close(struct mrt_k8s_wire *wire)
{
    mrt_rest_wire_close(&wire->rest);
    explicit_bzero(wire->token, sizeof wire->token);
}

void mrt_k8s_target(const struct mrt_k8s_address *address, const char *name, const char *query,
                    char target[MRT_K8S_TARGET_SIZE])
{
    snprintf(target, MRT_K8S_TARGET_SIZE,
             "apis/coordination.k8s.io/v1/namespaces/%s/leases%s%s%s%s", address->space,
             name ? "/" : "", name ? name : "", *query ? "?" : "", query);
}
