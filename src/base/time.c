/* SPDX-License-Identifier: Apache-2.0 */
/* The one place that reads the clock leases and deadlines are measured on. */
#include "base/time.h"

#include <time.h>

mrt_time mrt_time_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (mrt_time)now.tv_sec * MRT_SECOND + now.tv_nsec;
}
