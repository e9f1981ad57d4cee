/* SPDX-License-Identifier: Apache-2.0 */
/* The memory store: memory:NAME, one server a NAME within this process. */
#ifndef MRT_STORE_MEMORY_MEMORY_H
#define MRT_STORE_MEMORY_MEMORY_H

#include "core/store.h"

extern const struct mrt_store_ops mrt_memory_store;

/*
 * For tests: while frozen, the server of NAME executes commands, but delivers no event. When
 * thawed, it delivers the events held back. Any thread. Without effect if no store of that name is
 * open.
 */
void mrt_memory_freeze(const char *name, bool frozen);

#endif
