/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the servers are, when a store is opened. A name server that is slow delays the first
 * session and not the opening: the store waits for it no longer than MRT_RESOLVE_AT_OPEN, and a
 * START that comes while no server is known is kept until one is, until the look-up fails, or for
 * connect=.
 *
 * Invariant: `unplaced` is set only while `servers` is empty. Threads: as the port's own calls.
 */
#include "store/zookeeper/find.h"

#include "base/assert.h"
#include "base/error.h"
#include "store/zookeeper/answer.h"
#include "store/zookeeper/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int mrt_zk_find_servers(struct mrt_store *store, bool later)
{
    const struct mrt_zk_address *address = &store->address;
    struct mrt_resolver *resolver = &store->resolver;
    mrt_resolver_init(resolver, address->hosts, address->host_count, 0);
    if (resolver->again == MRT_TIME_NEVER)
        return mrt_zk_resolve(address, store->servers);
    if (later) {
        mrt_resolver_begin(resolver, address->hosts, address->host_count, mrt_time_now());
        return MORTISE_OK;
    }
    struct mrt_addresses *found =
        mrt_resolver_wait(resolver, address->hosts, address->host_count, MRT_RESOLVE_AT_OPEN);
    if (found)
        mrt_zk_write_servers(found, store->servers);
    free(found);
    if (store->servers[0] || resolver->under_way)
        return MORTISE_OK;
    return mrt_error(MORTISE_EUNREACHABLE, "no host of %s is known: %s", address->shown,
                     mrt_resolver_fault(resolver));
}

bool mrt_zk_keep_start(struct mrt_store *store, struct mrt_job *job, mrt_time now)
{
    if (store->servers[0])
        return false;
    mrt_zk_drop_start(store);
    MRT_ASSERT(!store->unplaced && !store->servers[0]);
    store->unplaced = job;
    store->unplaced_until = mrt_time_add(now, store->address.connect);
    return true;
}

void mrt_zk_drop_start(struct mrt_store *store)
{
    struct mrt_job *job = store->unplaced;
    store->unplaced = NULL;
    if (job)
        mrt_zk_answer(store, job, MRT_UNKNOWN);
}

static void fail(struct mrt_store *store)
{
    char why[256];
    struct mrt_job *job = store->unplaced;
    store->unplaced = NULL;
    snprintf(why, sizeof why, "%.150s: %s", store->address.shown,
             mrt_resolver_fault(&store->resolver));
    mrt_zk_fail_with(store, job, MORTISE_EUNREACHABLE, why);
    mrt_zk_report_unreachable(store, why);
}

struct mrt_job *mrt_zk_placed_start(struct mrt_store *store, mrt_time now)
{
    struct mrt_job *job = store->unplaced;
    if (!job)
        return NULL;
    struct mrt_addresses *found = mrt_resolver_take(&store->resolver);
    if (found)
        mrt_zk_write_servers(found, store->servers);
    free(found);
    if (store->servers[0]) {
        store->unplaced = NULL;
        return job;
    }
    mrt_resolver_begin(&store->resolver, store->address.hosts, store->address.host_count, now);
    if (mrt_resolver_is_busy(&store->resolver) && now < store->unplaced_until)
        store->next = mrt_time_min(mrt_resolver_next(&store->resolver, now), store->unplaced_until);
    else
        fail(store);
    return NULL;
}
