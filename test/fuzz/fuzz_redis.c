/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of a Redis server. */
#include "hostile.h"

extern const struct mrt_store_ops mrt_redis_store;

const char fuzz_uri[] = "redis://127.0.0.1:%u/0";

const bool fuzz_server_waits = false;

const struct mrt_store_ops *fuzz_store(void)
{
    return &mrt_redis_store;
}
