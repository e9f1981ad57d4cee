/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the server tells a session by itself is signed, since whoever may publish could send it too.
 *
 * The key is random, and stands in the session's hash: who may read that has rights to the locks.
 * The scripts sign what they publish. A text that was overheard can only be said again, which
 * changes nothing: a place that was once true stays so.
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
