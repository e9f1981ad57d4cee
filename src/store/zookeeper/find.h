/* SPDX-License-Identifier: Apache-2.0 */
/* Where the servers are, when a store is opened: see find.c. */
#ifndef MRT_STORE_ZOOKEEPER_FIND_H
#define MRT_STORE_ZOOKEEPER_FIND_H

#include "base/time.h"

#include <stdbool.h>

struct mrt_store;
struct mrt_job;

/* At opening: 0, also if the servers' names are still being looked up, or will be `later`; or
   MORTISE_EUNREACHABLE. */
int mrt_zk_find_servers(struct mrt_store *store, bool later);
/* Keeps a START while no server is known; false: one is. */
bool mrt_zk_keep_start(struct mrt_store *store, struct mrt_job *job, mrt_time now);
/* The START that was kept, once a server is known, for the caller to begin; NULL: none. */
struct mrt_job *mrt_zk_placed_start(struct mrt_store *store, mrt_time now);
/* Answers UNKNOWN to the START that is kept, if any. */
void mrt_zk_drop_start(struct mrt_store *store);

#endif
