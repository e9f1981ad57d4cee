/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of agent:. The store behind an agent is not known by the URI, and its abilities
 * are those of this store: so the agent is asked when the URI is first looked at. One table is kept
 * for each set of abilities that was met, for as long as the process lives.
 *
 * Threads: any; the list of tables has a mutex, and a table never changes.
 */
#include "base/error.h"
#include "store/agent/internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define GREETING_TIMEOUT (5 * MRT_SECOND)

struct table {
    struct mrt_store_ops ops;
    char can[sizeof((struct mrt_agent_greeting *)0)->can];
    mrt_time lease;
    struct table *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct table *tables;

static int agent_fd(struct mrt_store *store)
{
    return ((struct mrt_agent_store *)store)->epoll;
}

static mrt_time agent_next(struct mrt_store *store)
{
    (void)store;
    return MRT_TIME_NEVER;
}

static bool agent_answers_may_wait(const struct mrt_store *store)
{
    return ((const struct mrt_agent_store *)store)->wire.output.size == 0;
}

static bool agent_asks_apart(const struct mrt_store *store)
{
    (void)store;
    return true;
}

static void agent_traffic(const struct mrt_store *store, struct mrt_traffic *sum)
{
    mrt_traffic_sum(sum, &((const struct mrt_agent_store *)store)->traffic);
}

static mrt_time agent_lease(const struct mrt_store *store)
{
    return ((const struct mrt_agent_store *)store)->greeting.lease;
}

static mrt_time agent_lag(const struct mrt_store *store)
{
    return ((const struct mrt_agent_store *)store)->greeting.lag;
}

static const char *agent_address(const struct mrt_store *store)
{
    return ((const struct mrt_agent_store *)store)->greeting.store;
}

static int choose(const struct mrt_uri *uri, const struct mrt_store_ops **ops);

static const struct mrt_store_ops basis = {
    .scheme = "agent",
    .any_thread = true,
    .choose = choose,
    .open = mrt_agent_open,
    .submit = mrt_agent_submit,
    .fd = agent_fd,
    .next = agent_next,
    .process = mrt_agent_process,
    .answers_may_wait = agent_answers_may_wait,
    .asks_apart = agent_asks_apart,
    .list = mrt_agent_list,
    .revoke = mrt_agent_revoke,
    .break_ticket = mrt_agent_break,
    .server = mrt_agent_server,
    .traffic = agent_traffic,
    .lease = agent_lease,
    .lag = agent_lag,
    .address = agent_address,
    .close = mrt_agent_close,
    .abandon = mrt_agent_abandon,
};
const struct mrt_store_ops mrt_agent_store = {.scheme = "agent", .choose = choose};

static struct mrt_store_ops ops_of(const struct mrt_agent_greeting *greeting)
{
    const char *can = greeting->can;
    struct mrt_store_ops ops = basis;
    ops.values = strchr(can, MRT_AGENT_VALUES);
    ops.cells = strchr(can, MRT_AGENT_CELLS);
    ops.claims_end = strchr(can, MRT_AGENT_CLAIMS_END);
    ops.capabilities = (mortise_capabilities){
        .size = sizeof(mortise_capabilities),
        .fair = strchr(can, MRT_AGENT_FAIR) != NULL,
        .exclusive_fair = strchr(can, MRT_AGENT_EXCLUSIVE_FAIR) != NULL,
        .fence = strchr(can, MRT_AGENT_FENCE) != NULL,
        .notify = strchr(can, MRT_AGENT_NOTIFY) != NULL,
        .across_hosts = strchr(can, MRT_AGENT_ACROSS_HOSTS) != NULL,
        .survives_failover = strchr(can, MRT_AGENT_SURVIVES_FAILOVER) != NULL,
        .durable_fence = strchr(can, MRT_AGENT_DURABLE_FENCE) != NULL,
        .detach = strchr(can, MRT_AGENT_DETACH) != NULL,
        .linger = strchr(can, MRT_AGENT_LINGER) != NULL,
        .lock_delay = strchr(can, MRT_AGENT_LOCK_DELAY) != NULL,
        .lease_ms = greeting->lease / MRT_MILLISECOND};
    return ops;
}

static const struct mrt_store_ops *table_of(const struct mrt_agent_greeting *greeting)
{
    pthread_mutex_lock(&mutex);
    struct table *table = tables;
    while (table && (strcmp(table->can, greeting->can) != 0 || table->lease != greeting->lease))
        table = table->next;
    if (!table && (table = calloc(1, sizeof *table))) {
        table->ops = ops_of(greeting);
        table->lease = greeting->lease;
        memcpy(table->can, greeting->can, sizeof table->can);
        table->next = tables;
        tables = table;
    }
    pthread_mutex_unlock(&mutex);
    return table ? &table->ops : NULL;
}

static int choose(const struct mrt_uri *uri, const struct mrt_store_ops **ops)
{
    struct mrt_agent_address address;
    struct mrt_agent_greeting greeting;
    struct mrt_agent_wire *wire = calloc(1, sizeof *wire);
    if (!wire)
        return MORTISE_ENOMEM;
    int error = mrt_agent_address_read(uri, &address);
    if (error == MORTISE_OK)
        error =
            mrt_agent_wire_greet(wire, &address, "", mrt_time_now() + GREETING_TIMEOUT, &greeting);
    if (error == MORTISE_OK) {
        mrt_agent_wire_close(wire);
        *ops = table_of(&greeting);
        error = *ops ? MORTISE_OK : MORTISE_ENOMEM;
    }
    free(wire);
    return error;
}
