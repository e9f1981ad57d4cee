/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The TLS of the connections of one store (rediss:, rediss+sentinel:, rediss+cluster:), by these
 * parameters:
 *
 *   tls=verify          the certificate and its name are checked; required: only encrypted
 *   tls_ca=/path        the CAs that are accepted, in place of the system's
 *   tls_cert=/path      the client's certificate, and those above it
 *   tls_key=/path       its private key; a file that nobody else can read, as credentials=
 *
 * Threads: any, once opened. A file that has been replaced is read at the next connection; if that
 * fails, what was read before is used.
 */
#ifndef MRT_STORE_REDIS_SECURE_H
#define MRT_STORE_REDIS_SECURE_H

#include "base/uri.h"
#include "store/redis/uri.h"
#include "tls/tls.h"

#include <pthread.h>
#include <sys/stat.h>

enum mrt_redis_file { MRT_REDIS_CA, MRT_REDIS_CERTIFICATE, MRT_REDIS_KEY, MRT_REDIS_FILES };

struct mrt_redis_security {
    const struct mrt_redis_address *address;
    const struct mrt_tls_ops *ops; /* NULL: the connections are not encrypted */
    struct mrt_tls_context *context;
    struct stat files[MRT_REDIS_FILES]; /* as they were when they were read */
    pthread_mutex_t mutex;
};

/* rediss: and its kin. */
bool mrt_redis_is_secure(const struct mrt_uri *uri);
/* tls= and its kin. 0 or MORTISE_EURI. */
int mrt_redis_secure_read(const struct mrt_uri *uri, struct mrt_redis_address *address);
/* Loads what rediss: needs; the address stays. 0, or ENOTSUPPORTED, EURI, EUNSAFE, EPERMISSION,
   EUNREACHABLE with particulars. */
int mrt_redis_secure_open(struct mrt_redis_security *security,
                          const struct mrt_redis_address *address);
void mrt_redis_secure_close(struct mrt_redis_security *security);
/* For a connection to a server whose certificate has to be of this name; NULL: no memory. */
struct mrt_tls *mrt_redis_secure_begin(struct mrt_redis_security *security, const char *name);

#endif
