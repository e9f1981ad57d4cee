/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zk://host:port[,host:port...][/chroot]?session=10s&connect=5s&tick=2s&namespace=...
 * (credentials= and acl= are access.h's)
 *
 * Our own strict parser: the client library's accepts ports it cannot use, and refuses
 * addresses it could. The library is given only literal addresses, because it would resolve names
 * on the loop's thread.
 */
#ifndef MRT_STORE_ZOOKEEPER_URI_H
#define MRT_STORE_ZOOKEEPER_URI_H

#include "base/time.h"
#include "base/uri.h"
#include "store/kit/address.h"
#include "store/kit/resolver.h"
#include "store/zookeeper/names.h"

#define MRT_ZK_SERVERS_SIZE 4096

struct mrt_zk_address {
    struct mrt_host hosts[MRT_HOSTS_MAX];
    size_t host_count;
    char chroot[MRT_ZK_PATH_MAX];    /* "" or "/..." */
    char namespace[MRT_ZK_PATH_MAX]; /* the namespace */
    mrt_time session;                /* the requested session timeout; the server decides */
    mrt_time connect;
    enum mrt_zk_layout layout;
    mrt_time tick; /* the ensemble's; 0: not known */
    int wake_all;  /* waiters for a mutex or a read/write lock watch the list of children */
    char shown[MRT_ZK_SERVERS_SIZE]; /* canonical, for people */
};

/* 0 or MORTISE_EURI with particulars. */
int mrt_zk_uri_parse(const struct mrt_uri *uri, struct mrt_zk_address *address);

/* Of `layout=`: 0 or MORTISE_EURI. */
int mrt_zk_uri_layout(const struct mrt_uri *uri, enum mrt_zk_layout *layout);

/* Literal addresses as the client library takes them. 0 or MORTISE_EUNREACHABLE. Blocks. */
int mrt_zk_resolve(const struct mrt_zk_address *address, char servers[MRT_ZK_SERVERS_SIZE]);
/* The same of the addresses found, sorted, so that the same addresses make the same text. */
void mrt_zk_write_servers(struct mrt_addresses *found, char servers[MRT_ZK_SERVERS_SIZE]);

#endif
