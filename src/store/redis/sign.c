/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-1 (FIPS 180-4) of short texts, the one hash that Redis's scripts have. Only that nobody can
   find the key matters here, and no collision helps with that. */
#include "store/redis/sign.h"

#include "store/kit/hash.h"

#include <stdio.h>

#define TEXT_MAX 200
#define ROUNDS 80

static uint32_t turned(uint32_t word, int by)
{
    return word << by | word >> (32 - by);
}

static uint32_t mix(int round, const uint32_t s[5])
{
    if (round < 20)
        return ((s[1] & s[2]) | (~s[1] & s[3])) + 0x5a827999;
    if (round >= 40 && round < 60)
        return ((s[1] & s[2]) | (s[1] & s[3]) | (s[2] & s[3])) + 0x8f1bbcdc;
    return (s[1] ^ s[2] ^ s[3]) + (round < 40 ? 0x6ed9eba1 : 0xca62c1d6);
}

static void add_block(uint32_t state[5], const unsigned char *bytes)
{
    uint32_t words[ROUNDS], s[5];
    mrt_hash_words(bytes, words);
    for (int i = 16; i < ROUNDS; i++)
        words[i] = turned(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
    memcpy(s, state, sizeof s);
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t next = turned(s[0], 5) + mix(i, s) + s[4] + words[i];
        memmove(s + 1, s, 4 * sizeof s[0]);
        s[2] = turned(s[2], 30);
        s[0] = next;
    }
    for (int i = 0; i < 5; i++)
        state[i] += s[i];
}

void mrt_redis_sha1(const void *bytes, size_t length, char text[MRT_REDIS_SHA1_SIZE])
{
    unsigned char blocks[TEXT_MAX + 2 * MRT_HASH_BLOCK] = {0};
    uint32_t state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    MRT_ASSERT(length <= TEXT_MAX);
    size_t size = mrt_hash_pad(blocks, sizeof blocks, bytes, length);
    for (size_t at = 0; at < size; at += MRT_HASH_BLOCK)
        add_block(state, blocks + at);
    mrt_hash_text(state, text, MRT_REDIS_SHA1_SIZE - 1);
}

void mrt_redis_sign(const char *key, const char *text, size_t length,
                    char sign[MRT_REDIS_SIGN_SIZE])
{
    char signed_text[TEXT_MAX], digest[MRT_REDIS_SHA1_SIZE];
    int size = snprintf(signed_text, sizeof signed_text, "%s%.*s", key, (int)length, text);
    MRT_ASSERT(size > 0 && size < TEXT_MAX);
    mrt_redis_sha1(signed_text, (size_t)size, digest);
    snprintf(sign, MRT_REDIS_SIGN_SIZE, "%.*s", MRT_REDIS_SIGN_SIZE - 1, digest);
}
