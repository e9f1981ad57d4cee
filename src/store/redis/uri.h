/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis://[user@]host[:port][/db]?session=10s&connect=5s&namespace=...&credentials=/path
 *     &replicas=N&uptime=DURATION
 * rediss://...?tls=verify&tls_ca=/path&tls_cert=/path&tls_key=/path (secure.h)
 * redis+unix://[user@]/path/of/socket?db=0&...
 * redis+sentinel://[user@]sentinel[:port],.../master[/db]?sentinel_credentials=/path&...
 * redis+cluster://[user@]node[:port],...?...
 * rediss+sentinel://..., rediss+cluster://...: the same with TLS, the sentinels too
 *
 * The password is a line in the file of credentials= or in MORTISE_REDIS_AUTH; one in the
 * URI is refused, unseen. That for the sentinels is a line in the file of sentinel_credentials=,
 * of the user that sentinel_user= names.
 */
#ifndef MRT_STORE_REDIS_URI_H
#define MRT_STORE_REDIS_URI_H

#include "base/time.h"
#include "base/uri.h"
#include "store/kit/address.h"
#include "store/kit/resolver.h"

#include <stddef.h>
#include <sys/socket.h>

#define MRT_REDIS_ADDRESSES_MAX 32
#define MRT_REDIS_SECRET_MAX 1024
#define MRT_REDIS_BASE_MAX 260
#define MRT_REDIS_PATH_MAX 512

enum mrt_redis_tls { MRT_REDIS_TLS_OFF, MRT_REDIS_TLS_REQUIRED, MRT_REDIS_TLS_VERIFY };

/* How the server that keeps the locks is found: seek.h. */
enum mrt_redis_way { MRT_REDIS_DIRECT, MRT_REDIS_SENTINEL, MRT_REDIS_CLUSTER };

struct mrt_redis_address {
    enum mrt_redis_way way;
    struct mrt_host hosts[MRT_HOSTS_MAX]; /* of DIRECT one; of the others those to ask */
    size_t host_count;                    /* 0: a socket of this machine */
    char path[108];                       /* of that socket */
    char user[128];                       /* "": the default one */
    char master[128];                     /* SENTINEL: as the sentinels call it */
    char sentinel_user[128];              /* "": the default one */
    unsigned database;
    mrt_time session, connect;
    mrt_time uptime;   /* a server is not used before it has been up so long; 0: at once */
    uint64_t replicas; /* replicas that must have a write before it is reported; 0: none */
    char base[MRT_REDIS_BASE_MAX]; /* how all keys begin; one hash slot */
    enum mrt_redis_tls tls;
    /* Files; "": not given. */
    char tls_ca[MRT_REDIS_PATH_MAX], tls_cert[MRT_REDIS_PATH_MAX], tls_key[MRT_REDIS_PATH_MAX];
    char shown[768]; /* canonical, for people */
};

/* Where a server may be connected to; each address is tried in its turn. */
struct mrt_redis_servers {
    struct mrt_address at[MRT_REDIS_ADDRESSES_MAX];
    size_t count; /* 0: it is not known where */
};

/* 0, or EURI, ENOTSUPPORTED with particulars. */
int mrt_redis_uri_parse(const struct mrt_uri *uri, struct mrt_redis_address *address);
/* The password into secret, "" for none; the caller wipes it. 0, or an error of
   mrt_credentials_read. */
int mrt_redis_secret_read(const struct mrt_uri *uri, const struct mrt_redis_address *address,
                          char secret[MRT_REDIS_SECRET_MAX]);
/* The same of the password for the sentinels. */
int mrt_redis_sentinel_secret_read(const struct mrt_uri *uri,
                                   const struct mrt_redis_address *address,
                                   char secret[MRT_REDIS_SECRET_MAX]);
/* Where to connect to. 0 or EUNREACHABLE. Blocks. */
int mrt_redis_resolve(const struct mrt_redis_address *address, struct mrt_redis_servers *servers);
/* As many of these as are kept. */
void mrt_redis_keep_servers(struct mrt_redis_servers *servers, const struct mrt_addresses *found);

#endif
