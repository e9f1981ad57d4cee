/* SPDX-License-Identifier: Apache-2.0 */
/* The wall clock of a test program is the test's to set; the other clocks go on. */
#ifndef TEST_WALL_CLOCK_H
#define TEST_WALL_CLOCK_H

#include <time.h>

/* So far ahead, in seconds. */
extern _Atomic time_t wall_clock_step;

#endif
