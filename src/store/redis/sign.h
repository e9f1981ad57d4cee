/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages that the server publishes to a session are signed, because any client that may publish
 * could send one too.
 *
 * The key is random, and is kept in the session's hash: a client that may read the hash has rights
 * to the locks. The scripts sign what they publish. A message that somebody overhears can only be
 * repeated, which is harmless: a weight ahead that was once true stays an upper bound.
 */
#ifndef MRT_STORE_REDIS_SIGN_H
#define MRT_STORE_REDIS_SIGN_H

#include <stddef.h>

#define MRT_REDIS_SIGN_SIZE 17
#define MRT_REDIS_SHA1_SIZE 41

/* 16 hexadecimal digits, which stand behind "TICKET WHAT". */
void mrt_redis_sign(const char *key, const char *text, size_t length,
                    char sign[MRT_REDIS_SIGN_SIZE]);
/* As redis.sha1hex has it; of at most 200 bytes. */
void mrt_redis_sha1(const void *bytes, size_t length, char text[MRT_REDIS_SHA1_SIZE]);

#endif
