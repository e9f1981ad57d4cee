/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frame of SHA-1 and SHA-256 (FIPS 180-4), which servers compute too and so a store does not
 * choose: blocks of 64 bytes, padding, words of 32 bits, and digits. A store has the rounds.
 */
#ifndef MRT_STORE_KIT_HASH_H
#define MRT_STORE_KIT_HASH_H

#include "base/assert.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MRT_HASH_BLOCK 64

/* Copies the bytes into `blocks`, which are all zero, and pads them. Returns the size of the padded
 * text. */
static inline size_t mrt_hash_pad(unsigned char *blocks, size_t room, const void *bytes,
                                  size_t length)
{
    size_t size = (length + 9 + MRT_HASH_BLOCK - 1) / MRT_HASH_BLOCK * MRT_HASH_BLOCK;
    MRT_ASSERT(size <= room);
    memcpy(blocks, bytes, length);
    blocks[length] = 0x80;
    for (size_t i = 0; i < sizeof(uint64_t); i++)
        blocks[size - 1 - i] = (unsigned char)((uint64_t)length * 8 >> 8 * i);
    return size;
}

/* The first 16 words of a block's schedule. */
static inline void mrt_hash_words(const unsigned char *block, uint32_t words[16])
{
    for (int i = 0; i < 16; i++)
        words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
                   (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
}

/* The first `digits` of the hash, in hexadecimal. */
static inline void mrt_hash_text(const uint32_t *state, char *text, int digits)
{
    for (int i = 0; i < digits; i++)
        text[i] = "0123456789abcdef"[state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    text[digits] = '\0';
}

#endif
