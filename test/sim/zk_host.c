/* SPDX-License-Identifier: Apache-2.0 */
/* The ZooKeeper store as a host's, and what it asks of the system that no other store does. */
#include "host.h"
#include "store/zookeeper/operator/operator.h"
#include "zk_wire.h"

#include <sys/socket.h>

/* These wait for their answers in polls of their own; they are tested on real servers. */
int mrt_zk_list(struct mrt_store *store, const char *name, const char *prefix,
                mrt_listed_callback callback, void *argument)
{
    (void)store, (void)name, (void)prefix, (void)callback, (void)argument;
    return MORTISE_ENOTSUPPORTED;
}

int mrt_zk_server(struct mrt_store *store, char *text, size_t size)
{
    (void)store, (void)text, (void)size;
    return MORTISE_ENOTSUPPORTED;
}

static void write_uri(const struct world *world, char *text, size_t size)
{
    static const char *const hosts[] = {"127.0.0.1:2181", "127.0.0.1:2181,127.0.0.1:2182",
                                        "127.0.0.1:2181,127.0.0.1:2182,127.0.0.1:2183"};
    static const char *const one[] = {"127.0.0.1:2181", "127.0.0.1:2182", "127.0.0.1:2183"};
    static const char *const layouts[] = {"curator", "kazoo", "recipe"};
    const char *known = hosts[world->drawn.zk_servers - 1];
    int64_t clients = 0;
    for (int i = 0; i < CLIENTS_MAX; i++)
        clients += world->clients[i].host != NULL;
    if (world->drawn.zk_alone)
        known = one[clients % world->drawn.zk_servers];
    snprintf(text, size, "zk://%s" ZK_CHROOT "?session=%lldms&connect=%lldms&wake=%s&layout=%s",
             known, (long long)(world->drawn.lease_us / 1000),
             (long long)(world->drawn.lease_us / 500), world->drawn.zk_wake_all ? "all" : "one",
             layouts[world->drawn.zk_layout]);
}

const struct host_kind zk_host_kind = {.ops = &mrt_zookeeper_store,
                                       .write_uri = write_uri,
                                       .cut = zk_wires_cut,
                                       .free = zk_wires_free};
