/* SPDX-License-Identifier: Apache-2.0 */
/* The server's report about itself (INFO). */
#ifndef MRT_STORE_REDIS_CHECK_H
#define MRT_STORE_REDIS_CHECK_H

#include "store/redis/internal.h"

/* Queries, before this job or behind all jobs, which server it is and how long it has been up;
 * false: no memory. */
bool mrt_redis_check_server(struct mrt_redis_store *store, struct mrt_redis_job *next);
/* Keeps the server's identity. Whether it has been up long enough; if not, keeps why the connection
 * is refused. */
bool mrt_redis_check_server_reply(struct mrt_redis_store *store, const redisReply *reply);
/* Queries, before the first job of its kind, whether the server may drop keys. */
void mrt_redis_check_memory(struct mrt_redis_store *store, struct mrt_redis_job *job);
void mrt_redis_check_memory_reply(struct mrt_redis_store *store, const redisReply *reply);

#endif
