/* SPDX-License-Identifier: Apache-2.0 */
/* Replies to WAIT, and to the undoing that may follow. */
#ifndef MRT_STORE_REDIS_COPIES_H
#define MRT_STORE_REDIS_COPIES_H

#include "store/redis/internal.h"

void mrt_redis_copies_reply(struct mrt_redis_store *store, struct mrt_redis_job *job,
                            const redisReply *reply);

#endif
