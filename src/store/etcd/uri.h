/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etcd://[user@]host[:2379][,host[:port]...][/]?lease=10s&connect=5s&namespace=mortise
 *     &credentials=/path&tls=off|required|verify&tls_ca=/path
 * etcds://... is the same with tls=verify, if the URI has no tls=.
 *
 * The password of the user is a line in the file of credentials= or in MORTISE_ETCD_AUTH; one in
 * the URI is refused, unseen.
 */
#ifndef MRT_STORE_ETCD_URI_H
#define MRT_STORE_ETCD_URI_H

#include "base/name.h"
#include "base/uri.h"
#include "store/kit/address.h"

#define MRT_ETCD_BASE_SIZE (MRT_NAMESPACE_MAX + 16)

struct mrt_etcd_address {
    struct mrt_servers servers;
    mrt_time lease, connect;
    char prefix[MRT_NAMESPACE_MAX + 2]; /* of all names */
    char base[MRT_ETCD_BASE_SIZE];      /* of the keys of sessions and cells */
};

/* 0, or MORTISE_EURI with particulars. */
int mrt_etcd_uri_parse(const struct mrt_uri *uri, struct mrt_etcd_address *address);
/* The password into secret, "" for none; the caller wipes it. 0, or an error of
   mrt_credentials_read. */
int mrt_etcd_secret_read(const struct mrt_uri *uri, const struct mrt_etcd_address *address,
                         char secret[MRT_SECRET_MAX]);

#endif
