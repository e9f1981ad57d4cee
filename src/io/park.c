/* SPDX-License-Identifier: Apache-2.0 */
/* The futex behind a park: IDLE, WOKEN (not seen yet), ASLEEP. */
#include "io/park.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { IDLE, WOKEN, ASLEEP };

/* Deadlines are on the boot-time clock, which futexes do not know: sleep for what is left. */
static void sleep_for(struct mrt_park *park, mrt_time left)
{
    struct timespec timeout = {.tv_sec = left / MRT_SECOND, .tv_nsec = left % MRT_SECOND};
    syscall(SYS_futex, &park->word, FUTEX_WAIT_PRIVATE, ASLEEP,
            left == MRT_TIME_NEVER ? NULL : &timeout, NULL, 0);
}

void mrt_park_wait(struct mrt_park *park, mrt_time until)
{
    uint32_t expected = IDLE;
    if (atomic_compare_exchange_strong(&park->word, &expected, ASLEEP)) {
        mrt_time left = until;
        if (until != MRT_TIME_NEVER)
            left = until - mrt_time_now();
        if (left > 0)
            sleep_for(park, left);
    }
    atomic_store(&park->word, IDLE);
}

void mrt_park_wake(struct mrt_park *park)
{
    if (atomic_exchange(&park->word, WOKEN) == ASLEEP)
        syscall(SYS_futex, &park->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
