/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the replies to commands. */
#ifndef MRT_STORE_REDIS_REPLY_H
#define MRT_STORE_REDIS_REPLY_H

#include "store/redis/internal.h"

/* Answers the command of a job. */
void mrt_redis_reply(struct mrt_redis_store *store, struct mrt_redis_job *job,
                     const redisReply *reply, mrt_time now);
/* Fills a VIEW; false: a number is out of range. `soonest`: as the script said, in ms. */
bool mrt_redis_view(const struct mrt_redis_store *store, struct mrt_event *event, int64_t number,
                    int64_t ahead, bool behind, int64_t soonest);

#endif
