/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time: nanoseconds of CLOCK_BOOTTIME, which counts suspended time and cannot be
 * set. The core gets every instant as an argument and never reads a clock.
 * Arithmetic saturates, so that "for ever" stays for ever.
 */
#ifndef MRT_BASE_TIME_H
#define MRT_BASE_TIME_H

#include <stdint.h>

typedef int64_t mrt_time;

#define MRT_TIME_NEVER INT64_MAX
#define MRT_MICROSECOND INT64_C(1000)
#define MRT_MILLISECOND INT64_C(1000000)
#define MRT_SECOND INT64_C(1000000000)

static inline mrt_time mrt_time_add(mrt_time a, mrt_time b)
{
    mrt_time sum;
    if (__builtin_add_overflow(a, b, &sum))
        return b < 0 ? INT64_MIN : MRT_TIME_NEVER;
    return sum;
}

static inline mrt_time mrt_time_from_ms(int64_t ms)
{
    mrt_time product;
    if (__builtin_mul_overflow(ms, MRT_MILLISECOND, &product))
        return ms < 0 ? INT64_MIN : MRT_TIME_NEVER;
    return product;
}

static inline mrt_time mrt_time_min(mrt_time a, mrt_time b)
{
    return a < b ? a : b;
}

/* Whole milliseconds from `now` on, rounded up; 0: `until` is over. */
static inline int64_t mrt_time_left_ms(mrt_time until, mrt_time now)
{
    return until <= now ? 0 : (until - now - 1) / MRT_MILLISECOND + 1;
}

/* Reads the clock; for the layers outside the core. */
mrt_time mrt_time_now(void);
/* Milliseconds since 1970 by the wall clock, which may be set: for people alone. */
int64_t mrt_time_wall_ms(void);

#endif
