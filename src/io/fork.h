/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notices a fork. A child must not touch what it shares with its parent: its
 * store's connection, its descriptors, its mutexes as they stood.
 */
#ifndef MRT_IO_FORK_H
#define MRT_IO_FORK_H

#include <stdint.h>

/* Installs the handler, once. */
void mrt_fork_watch(void);
/* Grows by one in each forked child. */
uint64_t mrt_fork_generation(void);

#endif
