/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256, for names and signs that servers compute, too. */
#ifndef MRT_STORE_KIT_SHA256_H
#define MRT_STORE_KIT_SHA256_H

#include <stddef.h>

#define MRT_SHA256_MAX 512

/* The first `digits` (at most 64) of the hash of at most MRT_SHA256_MAX bytes, in hexadecimal. */
void mrt_sha256(const void *bytes, size_t length, char *text, int digits);

#endif
