/* SPDX-License-Identifier: Apache-2.0 */
/* Commands as calls of scripts, one each. */
#ifndef MRT_STORE_REDIS_COMMAND_H
#define MRT_STORE_REDIS_COMMAND_H

#include "store/redis/job.h"

void mrt_redis_command_put(struct mrt_redis_store *store, const struct mrt_redis_job *job);
/* Takes the job's ticket out, without an answer. */
void mrt_redis_remove_put(struct mrt_redis_store *store, const struct mrt_redis_job *job);

#endif
