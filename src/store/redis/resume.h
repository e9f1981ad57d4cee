/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that follow when another server has become the one that keeps the locks. */
#ifndef MRT_STORE_REDIS_RESUME_H
#define MRT_STORE_REDIS_RESUME_H

#include "store/redis/internal.h"

/* A command that is submitted, and an event that is delivered, of a command or of none: keeps which
   tickets this client may have. */
void mrt_redis_resume_submitted(struct mrt_redis_store *store, const struct mrt_command *command);
void mrt_redis_resume_delivered(struct mrt_redis_store *store, const struct mrt_command *command,
                                const struct mrt_event *event);
void mrt_redis_resume_free(struct mrt_redis_store *store);

/* The server has said that it is the one: sends what brings it and this client to one state. */
void mrt_redis_resume_begin(struct mrt_redis_store *store);
/* The reply to HAS. */
void mrt_redis_resume_reply(struct mrt_redis_store *store, const struct mrt_redis_job *job,
                            const redisReply *reply);

#endif
