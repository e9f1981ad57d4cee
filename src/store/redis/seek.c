/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeks the server that keeps the locks: a state machine beside the connection for commands, which
 * begins it when it has nowhere to go.
 *
 * Sentinels are asked one after the other, each for a part of connect=, so that a round of all ends
 * within connect=. The one that answered is the first of the next round, unless the server that it
 * named turned out to be away or no master. A round in vain counts as an attempt to connect in
 * vain: the pause behind it grows.
 *
 * A name that a sentinel or a node gives instead of an address is looked up on another thread.
 *
 * Threads: the store's turns. Operators read what is known to be the server at any time: `servers`
 * and the server that was named change under a mutex.
 */
#include "store/redis/seek.h"

#include "base/error.h"
#include "store/redis/referral.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* ------------------------------------------------------------------ what is known */

/* The name by which the URI calls the host of one of its addresses. */
static const char *name_in_uri(const struct mrt_redis_store *store,
                               const struct mrt_address *server)
{
    return store->address.hosts[server->host].name;
}

bool mrt_redis_seek_known(const struct mrt_redis_store *store, struct mrt_address *server,
                          struct mrt_host *host)
{
    const struct mrt_redis_servers *servers = &store->servers;
    const struct mrt_redis_seek *seek = &store->seek;
    bool direct = store->address.way == MRT_REDIS_DIRECT;
    pthread_mutex_lock(&mutex);
    bool known = direct ? servers->count > 0 : seek->confirmed;
    if (known) {
        *server = direct ? servers->at[store->server_next % servers->count] : seek->server;
        snprintf(host->name, sizeof host->name, "%s",
                 direct ? name_in_uri(store, server) : seek->name);
    }
    pthread_mutex_unlock(&mutex);
    return known;
}

static void set_server(struct mrt_redis_seek *seek, const struct mrt_address *server,
                       const char *name)
{
    pthread_mutex_lock(&mutex);
    seek->server = *server;
    snprintf(seek->name, sizeof seek->name, "%s", name);
    pthread_mutex_unlock(&mutex);
    seek->state = MRT_REDIS_SEEK_DONE;
}

static void confirm(struct mrt_redis_seek *seek, bool confirmed)
{
    pthread_mutex_lock(&mutex);
    seek->confirmed = confirmed;
    pthread_mutex_unlock(&mutex);
}

/* The hosts of the URI may be somewhere else than before. */
static void take_found(struct mrt_redis_store *store)
{
    struct mrt_addresses *found = mrt_resolver_take(&store->resolver);
    if (!found)
        return;
    pthread_mutex_lock(&mutex);
    mrt_redis_keep_servers(&store->servers, found);
    store->server_next = 0;
    pthread_mutex_unlock(&mutex);
    free(found);
}

/* The next one of the URI; NULL: none is known. */
static const struct mrt_address *next_of_uri(struct mrt_redis_store *store)
{
    const struct mrt_redis_servers *servers = &store->servers;
    if (servers->count == 0)
        return NULL;
    pthread_mutex_lock(&mutex);
    size_t at = store->server_next++ % servers->count;
    pthread_mutex_unlock(&mutex);
    return &servers->at[at];
}

/* Chooses one of the nodes that the URI names. */
static void choose_node(struct mrt_redis_store *store)
{
    struct mrt_redis_seek *seek = &store->seek;
    const struct mrt_address *node = next_of_uri(store);
    if (!node)
        return;
    seek->host.name[0] = '\0';
    set_server(seek, node, name_in_uri(store, node));
}

const struct mrt_address *mrt_redis_seek_take(struct mrt_redis_store *store, const char **name)
{
    take_found(store);
    if (store->address.way == MRT_REDIS_DIRECT)
        next_of_uri(store);
    else if (store->address.way == MRT_REDIS_CLUSTER && store->seek.state != MRT_REDIS_SEEK_DONE)
        choose_node(store);
    return mrt_redis_seek_current(store, name);
}

const struct mrt_address *mrt_redis_seek_current(const struct mrt_redis_store *store,
                                                 const char **name)
{
    const struct mrt_redis_servers *servers = &store->servers;
    const struct mrt_redis_seek *seek = &store->seek;
    if (store->address.way != MRT_REDIS_DIRECT) {
        *name = seek->name;
        return seek->state == MRT_REDIS_SEEK_DONE ? &seek->server : NULL;
    }
    if (servers->count == 0)
        return NULL;
    const struct mrt_address *last =
        &servers->at[(store->server_next + servers->count - 1) % servers->count];
    *name = name_in_uri(store, last);
    return last;
}

size_t mrt_redis_seek_attempts(const struct mrt_redis_store *store)
{
    return store->address.way == MRT_REDIS_SENTINEL ? 1 : store->servers.count;
}

/* ------------------------------------------------------------------ a server was named */

static void name_server(struct mrt_redis_store *store, const struct mrt_host *host, mrt_time now)
{
    struct mrt_redis_seek *seek = &store->seek;
    seek->host = *host;
    mrt_resolver_forget(&seek->resolver);
    mrt_resolver_init(&seek->resolver, host, 1, 0);
    if (seek->resolver.again != MRT_TIME_NEVER) {
        seek->state = MRT_REDIS_SEEK_NAME;
        seek->deadline = mrt_time_add(now, store->address.connect);
        mrt_resolver_begin(&seek->resolver, host, 1, now);
        return;
    }
    struct mrt_addresses *found = mrt_resolve(host, 1); /* an address: nobody is asked */
    seek->state = MRT_REDIS_SEEK_IDLE;
    if (found && found->count > 0)
        set_server(seek, &found->at[0], host->name);
    free(found);
}

/* The look-up has ended, or has taken too long; false: nothing was found. */
static bool take_name(struct mrt_redis_store *store, mrt_time now)
{
    struct mrt_redis_seek *seek = &store->seek;
    struct mrt_addresses *found = mrt_resolver_take(&seek->resolver);
    if (found)
        set_server(seek, &found->at[0], seek->host.name);
    free(found);
    if (found || (mrt_resolver_is_busy(&seek->resolver) && now < seek->deadline))
        return true;
    snprintf(seek->fault, sizeof seek->fault, "%.100s, which was named as the server: %s",
             seek->host.name, mrt_resolver_fault(&seek->resolver));
    mrt_resolver_forget(&seek->resolver);
    seek->state = MRT_REDIS_SEEK_IDLE;
    return false;
}

/* ------------------------------------------------------------------ sentinels */

/* The one that is asked now has not named a server. The faults that waiting does not mend are shown
   before others. */
static void note_fault(struct mrt_redis_store *store, int error, const char *text)
{
    struct mrt_redis_seek *seek = &store->seek;
    char host[MRT_HOST_TEXT_SIZE];
    size_t at = seek->turn % store->servers.count;
    mrt_host_format(&store->address.hosts[store->servers.at[at].host], host);
    mrt_redis_wire_close(&seek->wire);
    seek->turn++;
    seek->asked++;
    if (seek->asked > 1 && seek->error != MORTISE_OK && error == MORTISE_OK)
        return;
    seek->error = error;
    snprintf(seek->fault, sizeof seek->fault, "no sentinel names the master %.32s; %.60s: %.160s",
             store->address.master, host, text);
}

/* Asks the next one; false: all have been asked in vain. */
static bool ask_next(struct mrt_redis_store *store, mrt_time now)
{
    struct mrt_redis_seek *seek = &store->seek;
    const struct mrt_redis_servers *servers = &store->servers;
    while (seek->asked < servers->count) {
        const struct mrt_address *sentinel = &servers->at[seek->turn % servers->count];
        seek->deadline = mrt_time_add(now, store->address.connect / (mrt_time)servers->count);
        if (mrt_redis_wire_open(&seek->wire, sentinel, name_in_uri(store, sentinel),
                                store->epoll)) {
            seek->logins =
                mrt_redis_referral_put(&seek->wire, &store->address, store->sentinel_secret);
            if (mrt_redis_wire_flush(&seek->wire))
                return true;
        }
        note_fault(store, MORTISE_OK, mrt_redis_wire_trouble(&seek->wire));
    }
    seek->state = MRT_REDIS_SEEK_IDLE;
    return false;
}

bool mrt_redis_seek_begin(struct mrt_redis_store *store, mrt_time now)
{
    struct mrt_redis_seek *seek = &store->seek;
    if (store->address.way == MRT_REDIS_DIRECT || seek->state == MRT_REDIS_SEEK_DONE)
        return true;
    if (store->address.way == MRT_REDIS_CLUSTER)
        return seek->state == MRT_REDIS_SEEK_IDLE;
    if (seek->state != MRT_REDIS_SEEK_IDLE)
        return false;
    take_found(store);
    if (store->servers.count == 0)
        return true; /* and the attempt to connect fails */
    seek->state = MRT_REDIS_SEEK_ASK;
    seek->asked = 0;
    seek->error = MORTISE_OK;
    if (!*seek->fault)
        snprintf(seek->fault, sizeof seek->fault, "no sentinel has named the master %.32s yet",
                 store->address.master);
    return !ask_next(store, now); /* then too it fails */
}

/* The reply to the login, or to the request; false: this sentinel is of no use. */
static bool take_referral(void *context, const redisReply *reply, mrt_time now)
{
    struct mrt_redis_store *store = context;
    struct mrt_redis_seek *seek = &store->seek;
    struct mrt_host host;
    char fault[MRT_REDIS_FAULT_SIZE];
    int error;
    if (seek->state != MRT_REDIS_SEEK_ASK)
        return false; /* more than was requested */
    if (seek->logins > 0 && reply->type != REDIS_REPLY_ERROR) {
        seek->logins--;
        return true;
    }
    if (mrt_redis_referral_read(&store->address, reply, &host, &error, fault) ==
        MRT_REDIS_OTHER_SERVER)
        name_server(store, &host, now);
    else
        note_fault(store, error, fault);
    return false;
}

bool mrt_redis_seek_receive(struct mrt_redis_store *store, mrt_time now)
{
    struct mrt_redis_seek *seek = &store->seek;
    size_t asked = seek->asked;
    if (seek->wire.state == MRT_REDIS_CLOSED ||
        mrt_redis_wire_read(&seek->wire, now, take_referral, store))
        return true;
    if (seek->state == MRT_REDIS_SEEK_ASK && seek->asked == asked)
        note_fault(store, MORTISE_OK, mrt_redis_wire_trouble(&seek->wire));
    mrt_redis_wire_close(&seek->wire);
    return seek->state != MRT_REDIS_SEEK_ASK || ask_next(store, now);
}

/* ------------------------------------------------------------------ time */

bool mrt_redis_seek_is_busy(const struct mrt_redis_store *store)
{
    return store->seek.state == MRT_REDIS_SEEK_ASK || store->seek.state == MRT_REDIS_SEEK_NAME;
}

bool mrt_redis_seek_tick(struct mrt_redis_store *store, mrt_time now)
{
    struct mrt_redis_seek *seek = &store->seek;
    if (seek->state == MRT_REDIS_SEEK_NAME)
        return take_name(store, now);
    if (seek->state != MRT_REDIS_SEEK_ASK || now < seek->deadline)
        return true;
    seek->wire.error = ETIMEDOUT;
    note_fault(store, MORTISE_OK, mrt_redis_wire_trouble(&seek->wire));
    return ask_next(store, now);
}

mrt_time mrt_redis_seek_next(const struct mrt_redis_store *store)
{
    const struct mrt_redis_seek *seek = &store->seek;
    if (!mrt_redis_seek_is_busy(store))
        return MRT_TIME_NEVER;
    if (seek->state == MRT_REDIS_SEEK_NAME)
        return mrt_time_min(seek->deadline, mrt_resolver_next(&seek->resolver, mrt_time_now()));
    return seek->deadline;
}

/* ------------------------------------------------------------------ the connection */

bool mrt_redis_seek_refer(struct mrt_redis_store *store, const struct mrt_host *host, mrt_time now)
{
    struct mrt_redis_seek *seek = &store->seek;
    if (++seek->hops > MRT_REDIS_HOPS_MAX) {
        snprintf(seek->fault, sizeof seek->fault,
                 "the nodes of the cluster name each other for this namespace, the last %.100s:%u",
                 host->name, (unsigned)host->port);
        return false;
    }
    name_server(store, host, now);
    seek->referred = seek->state != MRT_REDIS_SEEK_IDLE;
    return seek->referred;
}

bool mrt_redis_seek_check(struct mrt_redis_store *store, const redisReply *reply, mrt_time now)
{
    struct mrt_redis_seek *seek = &store->seek;
    struct mrt_host host;
    char fault[MRT_REDIS_FAULT_SIZE];
    int error;
    enum mrt_redis_referral referral =
        mrt_redis_referral_check(&store->address, reply, seek->name, &host, &error, fault);
    if (referral == MRT_REDIS_THIS_SERVER) {
        seek->hops = 0;
        seek->fault[0] = '\0';
        confirm(seek, true);
        return true;
    }
    store->heard = false; /* by what is looked for */
    if (referral == MRT_REDIS_OTHER_SERVER) {
        mrt_redis_seek_refer(store, &host, now);
        return false;
    }
    seek->turn++; /* what that sentinel named is of no use */
    seek->state = MRT_REDIS_SEEK_IDLE;
    if (*seek->host.name)
        snprintf(seek->fault, sizeof seek->fault, "%.60s:%u %.120s", seek->host.name,
                 (unsigned)seek->host.port, fault);
    else
        snprintf(seek->fault, sizeof seek->fault, "%.190s", fault);
    store->refusal = error;
    snprintf(store->refusal_text, sizeof store->refusal_text, "%s", seek->fault);
    return false;
}

bool mrt_redis_seek_end(struct mrt_redis_store *store)
{
    struct mrt_redis_seek *seek = &store->seek;
    bool referred = seek->referred;
    if (store->address.way == MRT_REDIS_DIRECT)
        return false;
    if (seek->state == MRT_REDIS_SEEK_DONE && !referred && !seek->confirmed) {
        seek->turn++;
        if (!store->heard && *seek->host.name)
            snprintf(seek->fault, sizeof seek->fault, "%.80s:%u, which was named as the server: %s",
                     seek->host.name, (unsigned)seek->host.port,
                     mrt_redis_wire_trouble(&store->wire));
    }
    if (seek->confirmed)
        confirm(seek, false);
    seek->referred = false;
    if (!referred)
        seek->hops = 0;
    if (!referred && !mrt_redis_seek_is_busy(store))
        seek->state = MRT_REDIS_SEEK_IDLE;
    return referred;
}

void mrt_redis_seek_free(struct mrt_redis_store *store)
{
    mrt_redis_wire_close(&store->seek.wire);
    mrt_resolver_forget(&store->seek.resolver);
    explicit_bzero(store->sentinel_secret, sizeof store->sentinel_secret);
}
