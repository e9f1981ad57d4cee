/* SPDX-License-Identifier: Apache-2.0 */
/* How sentinels and the nodes of a cluster name the server that keeps the locks: requests and
   replies, without state. seek.c and operator.c find it by them. */
#ifndef MRT_STORE_REDIS_REFERRAL_H
#define MRT_STORE_REDIS_REFERRAL_H

#include "store/redis/wire.h"

#define MRT_REDIS_FAULT_SIZE 200
#define MRT_REDIS_HOPS_MAX 5 /* how many nodes in a row may name another one */

enum mrt_redis_referral {
    MRT_REDIS_THIS_SERVER,
    MRT_REDIS_OTHER_SERVER, /* `host` is it */
    MRT_REDIS_NO_SERVER     /* `fault` says why not; `error`: 0, or why never */
};

/* Writes to a sentinel a login and the request of the master's address; returns how many replies
   come before that to the request. */
unsigned mrt_redis_referral_put(struct mrt_redis_wire *wire,
                                const struct mrt_redis_address *address, const char *secret);
/* Reads a sentinel's reply to the request, or to the login if that is an error. */
enum mrt_redis_referral mrt_redis_referral_read(const struct mrt_redis_address *address,
                                                const redisReply *reply, struct mrt_host *host,
                                                int *error, char fault[MRT_REDIS_FAULT_SIZE]);

/* Writes to a server the request whether it is the one, behind the login; and reads the reply. A
   node that names no host means the one that it is called by, `here`. */
void mrt_redis_referral_check_put(struct mrt_redis_wire *wire,
                                  const struct mrt_redis_address *address);
enum mrt_redis_referral mrt_redis_referral_check(const struct mrt_redis_address *address,
                                                 const redisReply *reply, const char *here,
                                                 struct mrt_host *host, int *error,
                                                 char fault[MRT_REDIS_FAULT_SIZE]);
/* Whether an error of a node says that another one keeps the slot of this namespace. */
bool mrt_redis_referral_moved(const struct mrt_redis_address *address, const redisReply *reply,
                              const char *here, struct mrt_host *host);
/* Whether an error says that the server is a replica. */
bool mrt_redis_referral_is_replica(const redisReply *reply);

/* The slot in a cluster of all keys that begin with "{...}". */
unsigned mrt_redis_slot(const char *base);

#endif
