/* SPDX-License-Identifier: Apache-2.0 */
/* The connection for commands. */
#ifndef MRT_STORE_REDIS_CONNECTION_H
#define MRT_STORE_REDIS_CONNECTION_H

#include "store/redis/internal.h"

/* Connects if need be, and sends the waiting requests. */
void mrt_redis_connection_send(struct mrt_redis_store *store, mrt_time now);
/* Takes replies. */
void mrt_redis_connection_receive(struct mrt_redis_store *store, mrt_time now);
/* Ends requests that take too long; returns when the next one does. */
void mrt_redis_connection_tick(struct mrt_redis_store *store, mrt_time now);
mrt_time mrt_redis_connection_next(const struct mrt_redis_store *store);
/* Takes what a sentinel has said. */
void mrt_redis_connection_seek(struct mrt_redis_store *store, mrt_time now);

#endif
