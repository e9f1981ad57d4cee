/* SPDX-License-Identifier: Apache-2.0 */
/* In the place of the C library's, for all that is linked. */
#include "live/wall_clock.h"

#include <sys/syscall.h>
#include <unistd.h>

_Atomic time_t wall_clock_step;

int clock_gettime(clockid_t clock, struct timespec *time)
{
    long result = syscall(SYS_clock_gettime, clock, time);
    if (clock == CLOCK_REALTIME)
        time->tv_sec += wall_clock_step;
    return (int)result;
}
