/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where hosts are. A look-up takes as long as the system's resolver lets it, and a loop must not
 * wait for that: so it has it done on another thread, which outlives the resolver if it must, and
 * fetches what was found when it comes by. Hosts are looked up once when a store is opened, which
 * waits for that no longer than MRT_RESOLVE_AT_OPEN, and again while it has no connection: they may
 * have moved. Meanwhile the addresses that are known are tried.
 *
 * Threads: a resolver is its store's. With the thread it shares what the thread has found, under a
 * mutex until that has ended, and a count of the two. mrt_resolver_wait sleeps on a condition.
 */
#ifndef MRT_STORE_KIT_RESOLVER_H
#define MRT_STORE_KIT_RESOLVER_H

#include "base/time.h"
#include "store/kit/address.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#define MRT_ADDRESSES_MAX 64

struct mrt_address {
    struct sockaddr_storage socket;
    socklen_t length;
    unsigned host; /* which of the hosts it is of */
};

struct mrt_addresses {
    size_t count;
    int fault; /* error of getaddrinfo for a host that is missing; 0: all are there */
    struct mrt_address at[MRT_ADDRESSES_MAX];
};

/* The known addresses of these hosts, in their order; NULL: no memory. The caller frees
   it. Blocks. */
struct mrt_addresses *mrt_resolve(const struct mrt_host *hosts, size_t count);

struct mrt_look_up;
struct mrt_resolver {
    struct mrt_look_up *under_way;
    mrt_time again; /* not before */
    int fault;      /* error of getaddrinfo, if the last look-up found nothing; else 0 */
};

/* Begins with these hosts, as looked up at `now`: no look-up starts within a second of that, and
   none ever if all are literal addresses. */
void mrt_resolver_init(struct mrt_resolver *resolver, const struct mrt_host *hosts, size_t count,
                       mrt_time now);
/* Starts a look-up beside the caller, unless one is under way or it is too soon. */
void mrt_resolver_begin(struct mrt_resolver *resolver, const struct mrt_host *hosts, size_t count,
                        mrt_time now);
/* The addresses found since the last call; NULL: the look-up is under way, or found none. The
   caller frees them. */
struct mrt_addresses *mrt_resolver_take(struct mrt_resolver *resolver);
/* Looks up and waits for at most `limit`: as mrt_resolve; or NULL, and the look-up goes on. */
struct mrt_addresses *mrt_resolver_wait(struct mrt_resolver *resolver, const struct mrt_host *hosts,
                                        size_t count, mrt_time limit);
/* Whether a look-up is under way. */
bool mrt_resolver_is_busy(const struct mrt_resolver *resolver);
/* Why no address was found, or not yet, for people. */
const char *mrt_resolver_fault(const struct mrt_resolver *resolver);
/* When a caller that waits for the look-up should call again. */
mrt_time mrt_resolver_next(const struct mrt_resolver *resolver, mrt_time now);
/* Gives up the look-up under way: its result is not used. */
void mrt_resolver_forget(struct mrt_resolver *resolver);

#endif
