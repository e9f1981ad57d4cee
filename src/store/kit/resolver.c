/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A resolver has at most one look-up under way, on a thread of its own. The two share the look-up's
 * memory, and the last of them to use it frees it.
 */
#include "store/kit/resolver.h"

#include "base/thread.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAUSE MRT_SECOND
#define LOOK_PAUSE (20 * MRT_MILLISECOND)

struct mrt_look_up {
    _Atomic int needed; /* by the thread, and by the resolver */
    pthread_mutex_t mutex;
    pthread_cond_t end; /* signalled when `ended` becomes true, for mrt_resolver_wait */
    bool ended;
    struct mrt_addresses *found;
    size_t count;
    struct mrt_host hosts[];
};

/* ------------------------------------------------------------------ looking up */

static int resolve_host(const struct mrt_host *host, int flags, struct addrinfo **found)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
    char port[8];
    snprintf(port, sizeof port, "%u", (unsigned)host->port);
    *found = NULL;
    return getaddrinfo(host->name, port, &hints, found);
}

static void add(struct mrt_addresses *addresses, const struct addrinfo *info, size_t host)
{
    if (addresses->count == MRT_ADDRESSES_MAX || info->ai_addrlen > sizeof(struct sockaddr_storage))
        return;
    struct mrt_address *address = &addresses->at[addresses->count++];
    memcpy(&address->socket, info->ai_addr, info->ai_addrlen);
    address->length = info->ai_addrlen;
    address->host = (unsigned)host;
}

struct mrt_addresses *mrt_resolve(const struct mrt_host *hosts, size_t count)
{
    struct mrt_addresses *addresses = calloc(1, sizeof *addresses);
    for (size_t i = 0; addresses && i < count; i++) {
        struct addrinfo *found;
        int fault = resolve_host(&hosts[i], 0, &found);
        if (fault) {
            addresses->fault = fault;
            continue;
        }
        for (const struct addrinfo *info = found; info; info = info->ai_next)
            add(addresses, info, i);
        freeaddrinfo(found);
    }
    return addresses;
}

/* ------------------------------------------------------------------ beside the loop */

/* The thread's part and the resolver's end in either order. */
static void leave(struct mrt_look_up *look_up)
{
    if (atomic_fetch_sub(&look_up->needed, 1) > 1)
        return;
    pthread_cond_destroy(&look_up->end);
    pthread_mutex_destroy(&look_up->mutex);
    free(look_up->found);
    free(look_up);
}

static void *run(void *argument)
{
    struct mrt_look_up *look_up = argument;
    look_up->found = mrt_resolve(look_up->hosts, look_up->count);
    pthread_mutex_lock(&look_up->mutex);
    look_up->ended = true;
    pthread_cond_signal(&look_up->end);
    pthread_mutex_unlock(&look_up->mutex);
    leave(look_up);
    return NULL;
}

static void init_end(struct mrt_look_up *look_up)
{
    pthread_condattr_t attributes;
    pthread_mutex_init(&look_up->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&look_up->end, &attributes);
    pthread_condattr_destroy(&attributes);
}

static struct mrt_look_up *start(const struct mrt_host *hosts, size_t count)
{
    struct mrt_look_up *look_up = calloc(1, sizeof *look_up + count * sizeof *hosts);
    if (!look_up)
        return NULL;
    atomic_init(&look_up->needed, 2);
    init_end(look_up);
    look_up->count = count;
    memcpy(look_up->hosts, hosts, count * sizeof *hosts);
    if (mrt_thread_begin(run, look_up))
        return look_up;
    atomic_store(&look_up->needed, 1);
    leave(look_up);
    return NULL;
}

/* Literal addresses stay where they are. */
static bool has_name(const struct mrt_host *hosts, size_t count)
{
    struct addrinfo *found;
    for (size_t i = 0; i < count; i++) {
        if (resolve_host(&hosts[i], AI_NUMERICHOST, &found) != 0)
            return true;
        freeaddrinfo(found);
    }
    return false;
}

void mrt_resolver_init(struct mrt_resolver *resolver, const struct mrt_host *hosts, size_t count,
                       mrt_time now)
{
    resolver->under_way = NULL;
    resolver->fault = 0;
    resolver->again = has_name(hosts, count) ? mrt_time_add(now, PAUSE) : MRT_TIME_NEVER;
}

void mrt_resolver_begin(struct mrt_resolver *resolver, const struct mrt_host *hosts, size_t count,
                        mrt_time now)
{
    if (resolver->under_way || now < resolver->again)
        return;
    resolver->again = mrt_time_add(now, PAUSE);
    resolver->under_way = start(hosts, count);
}

bool mrt_resolver_is_busy(const struct mrt_resolver *resolver)
{
    struct mrt_look_up *look_up = resolver->under_way;
    if (!look_up)
        return false;
    pthread_mutex_lock(&look_up->mutex);
    bool ended = look_up->ended;
    pthread_mutex_unlock(&look_up->mutex);
    return !ended;
}

/* Of a look-up that has ended; NULL: no memory, or there is none. */
static struct mrt_addresses *take(struct mrt_resolver *resolver)
{
    struct mrt_look_up *look_up = resolver->under_way;
    if (!look_up || mrt_resolver_is_busy(resolver))
        return NULL;
    struct mrt_addresses *found = look_up->found;
    look_up->found = NULL;
    resolver->under_way = NULL;
    leave(look_up);
    if (found)
        resolver->fault = found->count > 0 ? 0 : found->fault;
    return found;
}

struct mrt_addresses *mrt_resolver_take(struct mrt_resolver *resolver)
{
    struct mrt_addresses *found = take(resolver);
    if (found && found->count > 0)
        return found;
    free(found);
    return NULL;
}

/* Returns when the look-up has ended, or `limit` later. */
static void wait_for_end(struct mrt_look_up *look_up, mrt_time limit)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    mrt_time end = mrt_time_add(until.tv_sec * MRT_SECOND + until.tv_nsec, limit);
    until.tv_sec = end / MRT_SECOND;
    until.tv_nsec = end % MRT_SECOND;
    pthread_mutex_lock(&look_up->mutex);
    while (!look_up->ended &&
           pthread_cond_timedwait(&look_up->end, &look_up->mutex, &until) != ETIMEDOUT)
        continue;
    pthread_mutex_unlock(&look_up->mutex);
}

struct mrt_addresses *mrt_resolver_wait(struct mrt_resolver *resolver, const struct mrt_host *hosts,
                                        size_t count, mrt_time limit)
{
    resolver->again = 0;
    mrt_resolver_begin(resolver, hosts, count, mrt_time_now());
    if (!resolver->under_way)
        return mrt_resolve(hosts, count); /* there is no thread for it */
    wait_for_end(resolver->under_way, limit);
    return take(resolver);
}

const char *mrt_resolver_fault(const struct mrt_resolver *resolver)
{
    return resolver->fault ? gai_strerror(resolver->fault) : "no name server has answered";
}

mrt_time mrt_resolver_next(const struct mrt_resolver *resolver, mrt_time now)
{
    return resolver->under_way ? mrt_time_add(now, LOOK_PAUSE) : resolver->again;
}

void mrt_resolver_forget(struct mrt_resolver *resolver)
{
    if (resolver->under_way)
        leave(resolver->under_way);
    resolver->under_way = NULL;
}
