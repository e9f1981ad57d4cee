/* SPDX-License-Identifier: Apache-2.0 */
/* The Redis store, and a quorum of five of them, as a host's. */
#include "base/uri.h"
#include "host.h"
#include "redis_server.h"
#include "store/stores.h"

#include <string.h>

static int find_member_store(const struct mrt_uri *uri, const struct mrt_store_ops **ops)
{
    *ops = &mrt_redis_store;
    return strcmp(uri->scheme, "redis") == 0 ? MORTISE_OK : MORTISE_ESCHEME;
}

static int write_rest(const struct profile *p, char *text, size_t size)
{
    return snprintf(text, size, "session=%lldms&connect=%lldms&uptime=%lldms&replicas=%lld",
                    (long long)(p->lease_us / 1000), (long long)host_connect_ms(p),
                    (long long)(p->redis_uptime_us / 1000), (long long)p->redis_replicas);
}

static void write_redis(const struct world *world, char *text, size_t size)
{
    int used = snprintf(text, size, "redis://127.0.0.1:6379?");
    write_rest(&world->drawn, text + used, size - (size_t)used);
}

static void write_redlock(const struct world *world, char *text, size_t size)
{
    int used = snprintf(text, size,
                        "redlock:redis://127.0.0.1:6379,redis://127.0.0.1:6380,redis://"
                        "127.0.0.1:6381,redis://127.0.0.1:6382,redis://127.0.0.1:6383"
                        "?answer=%lldms&",
                        (long long)(world->drawn.lease_us / 5000));
    write_rest(&world->drawn, text + used, size - (size_t)used);
}

const struct host_kind redis_host_kind = {
    .ops = &mrt_redis_store, .write_uri = write_redis, .cut = streams_cut, .free = streams_free};
const struct host_kind redlock_host_kind = {.ops = &mrt_quorum_store,
                                            .find = find_member_store,
                                            .write_uri = write_redlock,
                                            .cut = streams_cut,
                                            .free = streams_free};
