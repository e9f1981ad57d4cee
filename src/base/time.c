/* SPDX-License-Identifier: Apache-2.0 */
/* The one place that reads the clock leases and deadlines are measured on; and the wall clock. */
#include "base/time.h"

#include <time.h>

mrt_time mrt_time_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (mrt_time)now.tv_sec * MRT_SECOND + now.tv_nsec;
}

int64_t mrt_time_wall_ms(void)
{
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    return (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / MRT_MILLISECOND;
}
