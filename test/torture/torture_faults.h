/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults on demand: calls of this program's objects (the library's among them) to the
 * allocator, or to what gives descriptors and threads, fail from the n-th on, once or
 * for ever. The linker wraps the calls. Allocations are counted, so what is not freed
 * shows without a sanitizer.
 */
#ifndef TEST_TORTURE_FAULTS_H
#define TEST_TORTURE_FAULTS_H

#include <stdbool.h>
#include <stddef.h>

enum fault_kind { FAULT_MEMORY, FAULT_DESCRIPTOR };

/* Call `n` (from 1) fails, and all after it if it is persistent. */
void faults_arm(enum fault_kind kind, size_t n, bool persistent);
/* No more; how many calls have failed. */
size_t faults_disarm(void);
/* Blocks allocated and not freed. */
long faults_live_blocks(void);

#endif
