/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pauses between attempts. A pause is twice as long after each failure, up to a limit; clients that
 * failed together are spread over the time from half a pause to one and a half.
 */
#ifndef MRT_BASE_BACKOFF_H
#define MRT_BASE_BACKOFF_H

#include "base/time.h"

/* The pause after so many earlier failures: `first` after none, at most `most`. */
static inline mrt_time mrt_backoff(mrt_time first, mrt_time most, uint64_t failures)
{
    mrt_time pause = first;
    while (failures-- > 0 && pause < most)
        pause *= 2;
    return mrt_time_min(pause, most);
}

/* Half to one and a half times a pause. `chance` is a random number, or one of the client's own. */
static inline mrt_time mrt_backoff_spread(mrt_time pause, uint64_t chance)
{
    return pause / 2 + (mrt_time)(chance % (uint64_t)pause);
}

#endif
