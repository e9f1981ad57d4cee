/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of TLS, and the files that they name. The module is loaded for rediss: and its kin
   alone. */
#include "store/redis/secure.h"

#include "base/error.h"
#include "mortise.h"
#include "store/kit/credentials.h"
#include "store/module.h"

#include <stdlib.h>
#include <string.h>

#define MODULE "mortise-tls.so"
#define KEY_MAX 32768

/* ---------------------------------------------------------------- parameters */

static int read_path(const struct mrt_uri *uri, const char *key, char path[MRT_REDIS_PATH_MAX])
{
    const char *text = mrt_uri_parameter(uri, key);
    if (!text)
        return MORTISE_OK;
    if (*text != '/' || strlen(text) >= MRT_REDIS_PATH_MAX)
        return mrt_error(MORTISE_EURI, "%s= is the absolute path of a file", key);
    memcpy(path, text, strlen(text) + 1);
    return MORTISE_OK;
}

static int read_files(const struct mrt_uri *uri, struct mrt_redis_address *address)
{
    int error = read_path(uri, "tls_ca", address->tls_ca);
    if (!error)
        error = read_path(uri, "tls_cert", address->tls_cert);
    if (!error)
        error = read_path(uri, "tls_key", address->tls_key);
    if (!error && *address->tls_ca && address->tls != MRT_REDIS_TLS_VERIFY)
        error = mrt_error(MORTISE_EURI, "tls_ca= is used with tls=verify only");
    if (!error && !*address->tls_cert != !*address->tls_key)
        error = mrt_error(MORTISE_EURI, "tls_cert= and tls_key= belong together");
    return error;
}

bool mrt_redis_is_secure(const struct mrt_uri *uri)
{
    return strncmp(uri->scheme, "rediss", strlen("rediss")) == 0;
}

int mrt_redis_secure_read(const struct mrt_uri *uri, struct mrt_redis_address *address)
{
    bool secure = mrt_redis_is_secure(uri), off = address->tls == MRT_REDIS_TLS_OFF;
    if (secure && off)
        return mrt_error(MORTISE_EURI, "a %s: URI has no tls=off; redis%s: is without TLS",
                         uri->scheme, uri->scheme + strlen("rediss"));
    if (!secure && (!off || mrt_uri_parameter(uri, "tls_ca") ||
                    mrt_uri_parameter(uri, "tls_cert") || mrt_uri_parameter(uri, "tls_key")))
        return mrt_error(MORTISE_EURI,
                         "tls= and tls_ca=, tls_cert=, tls_key= are of rediss:, rediss+sentinel: "
                         "and rediss+cluster: URIs; %s: is without TLS",
                         uri->scheme);
    return secure ? read_files(uri, address) : MORTISE_OK;
}

/* --------------------------------------------------------------------- files */

static const char *path_of(const struct mrt_redis_address *address, enum mrt_redis_file file)
{
    return file == MRT_REDIS_CA            ? address->tls_ca
           : file == MRT_REDIS_CERTIFICATE ? address->tls_cert
                                           : address->tls_key;
}

/* Notes how the files are; whether they are otherwise than when they were noted before. */
static bool note_files(struct mrt_redis_security *security)
{
    bool changed = false;
    for (enum mrt_redis_file file = 0; file < MRT_REDIS_FILES; file++) {
        struct stat now = {0}, *before = &security->files[file];
        const char *path = path_of(security->address, file);
        if (*path && stat(path, &now) < 0)
            continue; /* as the moment in which it is replaced */
        changed |= now.st_ino != before->st_ino || now.st_size != before->st_size ||
                   now.st_mtim.tv_sec != before->st_mtim.tv_sec ||
                   now.st_mtim.tv_nsec != before->st_mtim.tv_nsec;
        *before = now;
    }
    return changed;
}

static int make_context(const struct mrt_redis_security *security, const char *key,
                        struct mrt_tls_context **context)
{
    const struct mrt_redis_address *address = security->address;
    const struct mrt_tls_options options = {
        .check = address->tls == MRT_REDIS_TLS_VERIFY,
        .ca = *address->tls_ca ? address->tls_ca : NULL,
        .certificate = *address->tls_cert ? address->tls_cert : NULL,
        .key = key,
    };
    char fault[MRT_TLS_FAULT_SIZE];
    *context = security->ops->context_new(&options, fault);
    return *context ? MORTISE_OK : mrt_error(MORTISE_EURI, "%s", fault);
}

static int read_context(const struct mrt_redis_security *security, struct mrt_tls_context **context)
{
    const char *path = security->address->tls_key;
    if (!*path)
        return make_context(security, NULL, context);
    char *key = malloc(KEY_MAX);
    if (!key)
        return MORTISE_ENOMEM;
    int error = mrt_credentials_read_file(path, key, KEY_MAX);
    if (!error)
        error = make_context(security, key, context);
    explicit_bzero(key, KEY_MAX);
    free(key);
    return error;
}

/* ---------------------------------------------------------------- open, close */

static int load(struct mrt_redis_security *security)
{
    union {
        void *symbol;
        mrt_tls_entry *call;
    } entry;
    int error = mrt_module_open(MODULE, "TLS for Redis", MRT_TLS_ENTRY, &entry.symbol);
    if (error)
        return error;
    const struct mrt_tls_ops *ops = entry.call();
    if (strcmp(ops->version, MORTISE_VERSION) != 0)
        return mrt_module_other_version(MODULE);
    security->ops = ops;
    return MORTISE_OK;
}

int mrt_redis_secure_open(struct mrt_redis_security *security,
                          const struct mrt_redis_address *address)
{
    pthread_mutex_init(&security->mutex, NULL);
    security->address = address;
    if (address->tls == MRT_REDIS_TLS_OFF)
        return MORTISE_OK;
    int error = load(security);
    if (error)
        return error;
    note_files(security);
    return read_context(security, &security->context);
}

void mrt_redis_secure_close(struct mrt_redis_security *security)
{
    if (security->context)
        security->ops->context_free(security->context);
    if (security->address)
        pthread_mutex_destroy(&security->mutex);
}

struct mrt_tls *mrt_redis_secure_begin(struct mrt_redis_security *security, const char *name)
{
    struct mrt_tls_context *context = NULL;
    pthread_mutex_lock(&security->mutex);
    bool changed = note_files(security);
    if (changed && read_context(security, &context) == MORTISE_OK) {
        security->ops->context_free(security->context);
        security->context = context;
    } else if (changed) {
        memset(security->files, 0, sizeof security->files); /* they are read again the next time */
    }
    struct mrt_tls *tls = security->ops->begin(security->context, name);
    pthread_mutex_unlock(&security->mutex);
    return tls;
}
