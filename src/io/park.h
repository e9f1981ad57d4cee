/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a thread sleeps until another one wakes it: one word and a futex. A wake
 * that comes first is remembered, so none is lost; waking a thread that is not
 * asleep makes no system call.
 */
#ifndef MRT_IO_PARK_H
#define MRT_IO_PARK_H

#include "base/time.h"

#include <stdatomic.h>

struct mrt_park {
    _Atomic uint32_t word;
};

/* Sleeps until woken or `until`; may also return early. Takes the wake. */
void mrt_park_wait(struct mrt_park *park, mrt_time until);
/* Any thread. The park may be gone as soon as its owner has seen the wake. */
void mrt_park_wake(struct mrt_park *park);

#endif
