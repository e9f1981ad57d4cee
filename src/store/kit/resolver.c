/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A resolver has at most one look-up under way, on a thread of its own. The two share the look-up's
 * memory, and the last of them to use it frees it.
 */
#include "store/kit/resolver.h"

#include "base/thread.h"

#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAUSE MRT_SECOND
#define LOOK_PAUSE (20 * MRT_MILLISECOND)
#define WAIT_PAUSE (200 * MRT_MICROSECOND)

struct mrt_look_up {
    _Atomic int needed; /* by the thread, and by the resolver */
    _Atomic bool ended;
    struct mrt_addresses *found;
    size_t count;
    struct mrt_host hosts[];
};

/* ------------------------------------------------------------------ looking up */

static int look(const struct mrt_host *host, int flags, struct addrinfo **found)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
    char port[8];
    snprintf(port, sizeof port, "%u", (unsigned)host->port);
    *found = NULL;
    return getaddrinfo(host->name, port, &hints, found);
}

static void add(struct mrt_addresses *addresses, const struct addrinfo *info)
{
    if (addresses->count == MRT_ADDRESSES_MAX || info->ai_addrlen > sizeof(struct sockaddr_storage))
        return;
    struct mrt_address *address = &addresses->at[addresses->count++];
    memcpy(&address->socket, info->ai_addr, info->ai_addrlen);
    address->length = info->ai_addrlen;
}

struct mrt_addresses *mrt_resolve(const struct mrt_host *hosts, size_t count)
{
    struct mrt_addresses *addresses = calloc(1, sizeof *addresses);
    for (size_t i = 0; addresses && i < count; i++) {
        struct addrinfo *found;
        int fault = look(&hosts[i], 0, &found);
        if (fault) {
            addresses->fault = fault;
            continue;
        }
        for (const struct addrinfo *info = found; info; info = info->ai_next)
            add(addresses, info);
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
    free(look_up->found);
    free(look_up);
}

static void *run(void *argument)
{
    struct mrt_look_up *look_up = argument;
    look_up->found = mrt_resolve(look_up->hosts, look_up->count);
    atomic_store(&look_up->ended, true);
    leave(look_up);
    return NULL;
}

static struct mrt_look_up *start(const struct mrt_host *hosts, size_t count)
{
    struct mrt_look_up *look_up = calloc(1, sizeof *look_up + count * sizeof *hosts);
    if (!look_up)
        return NULL;
    atomic_init(&look_up->needed, 2);
    look_up->count = count;
    memcpy(look_up->hosts, hosts, count * sizeof *hosts);
    if (mrt_thread_begin(run, look_up))
        return look_up;
    free(look_up);
    return NULL;
}

/* Literal addresses stay where they are. */
static bool has_name(const struct mrt_host *hosts, size_t count)
{
    struct addrinfo *found;
    for (size_t i = 0; i < count; i++) {
        if (look(&hosts[i], AI_NUMERICHOST, &found) != 0)
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
    return resolver->under_way && !atomic_load(&resolver->under_way->ended);
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

struct mrt_addresses *mrt_resolver_wait(struct mrt_resolver *resolver, const struct mrt_host *hosts,
                                        size_t count, mrt_time limit)
{
    const struct timespec pause = {.tv_nsec = WAIT_PAUSE};
    mrt_time end = mrt_time_add(mrt_time_now(), limit);
    resolver->again = 0;
    mrt_resolver_begin(resolver, hosts, count, mrt_time_now());
    if (!resolver->under_way)
        return mrt_resolve(hosts, count); /* there is no thread for it */
    while (mrt_resolver_is_busy(resolver) && mrt_time_now() < end)
        nanosleep(&pause, NULL);
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
