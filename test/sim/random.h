/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulator's random numbers: xoshiro256** by Blackman and Vigna, seeded by
 * SplitMix64. Integers only, so that a seed means the same on every compiler. For the
 * same reason no two numbers may be drawn in one expression or initializer: the
 * order of evaluation is the compiler's.
 */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct random {
    uint64_t state[4];
};

static inline void random_seed(struct random *random, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        seed += UINT64_C(0x9e3779b97f4a7c15);
        uint64_t z = seed;
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        random->state[i] = z ^ z >> 31;
    }
}

static inline uint64_t random_rotate(uint64_t x, int k)
{
    return x << k | x >> (64 - k);
}

static inline uint64_t random_next(struct random *random)
{
    uint64_t *s = random->state, result = random_rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = random_rotate(s[3], 45);
    return result;
}

/* 0 .. limit - 1; 0 for a limit of 0. */
static inline int64_t random_below(struct random *random, int64_t limit)
{
    return limit > 0 ? (int64_t)(random_next(random) % (uint64_t)limit) : 0;
}

/* low .. high */
static inline int64_t random_between(struct random *random, int64_t low, int64_t high)
{
    return low + random_below(random, high - low + 1);
}

/* True in `chance` of 10,000 cases. */
static inline bool random_chance(struct random *random, int64_t chance)
{
    return chance > 0 && random_below(random, 10000) < chance;
}

#endif
