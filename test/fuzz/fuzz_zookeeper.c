/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of a ZooKeeper server, through the client library. */
#include "hostile.h"

extern const struct mrt_store_ops mrt_zookeeper_store;

const char fuzz_uri[] = "zk://127.0.0.1:%u";

const bool fuzz_server_waits = false;

const struct mrt_store_ops *fuzz_store(void)
{
    return &mrt_zookeeper_store;
}
