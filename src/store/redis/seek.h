/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the server is that keeps the locks.
 *
 *   redis:            the URI names it; each of its addresses is tried in its turn
 *   redis+sentinel:   one of the sentinels that the URI names has to name it
 *   redis+cluster:    one of the nodes that the URI names is it, or names it
 *
 * With TLS a certificate has to be of the name by which its server is called: by the URI, by a
 * sentinel, or by another node.
 */
#ifndef MRT_STORE_REDIS_SEEK_H
#define MRT_STORE_REDIS_SEEK_H

#include "store/redis/internal.h"

/* Whether it is known where to connect to; if not, seeks it. */
bool mrt_redis_seek_begin(struct mrt_redis_store *store, mrt_time now);
/* The address to connect to now, and the server's name; NULL: none is known. */
const struct mrt_address *mrt_redis_seek_take(struct mrt_redis_store *store, const char **name);
/* Where commands go now, after that; NULL: nowhere. */
const struct mrt_address *mrt_redis_seek_current(const struct mrt_redis_store *store,
                                                 const char **name);
/* The same from any thread, of a server that is known to be the one; false: it is not known. */
bool mrt_redis_seek_known(const struct mrt_redis_store *store, struct mrt_address *server,
                          struct mrt_host *host);

/* The reply to mrt_redis_referral_check_put. Whether the connection may go on. */
bool mrt_redis_seek_check(struct mrt_redis_store *store, const redisReply *reply, mrt_time now);
/* A node names another one; false: too many have in a row. */
bool mrt_redis_seek_refer(struct mrt_redis_store *store, const struct mrt_host *host, mrt_time now);
/* The connection has ended. True: the next one goes to where this one referred to. */
bool mrt_redis_seek_end(struct mrt_redis_store *store);
/* How many attempts in vain mean that no server can be reached. */
size_t mrt_redis_seek_attempts(const struct mrt_redis_store *store);

/* Reads the connection to a sentinel; false: none of them has named a server. */
bool mrt_redis_seek_receive(struct mrt_redis_store *store, mrt_time now);
/* The same of what takes too long; and when that is. */
bool mrt_redis_seek_tick(struct mrt_redis_store *store, mrt_time now);
mrt_time mrt_redis_seek_next(const struct mrt_redis_store *store);
bool mrt_redis_seek_is_busy(const struct mrt_redis_store *store);
void mrt_redis_seek_free(struct mrt_redis_store *store);

#endif
