/* SPDX-License-Identifier: Apache-2.0 */
/* Tests whose leases end if the machine stands still. */
#ifndef TEST_LIVE_STALL_H
#define TEST_LIVE_STALL_H

#include <stdbool.h>

/* Whether `is_so` succeeds. A failure counts, unless a thread that sleeps for a moment at a time
   woke late meanwhile: then the machine stood still, and after `restore` (NULL: nothing) it is
   tried again. */
bool stall_succeeds(bool (*is_so)(void), void (*restore)(void));

#endif
