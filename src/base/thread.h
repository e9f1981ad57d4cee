/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that the library starts and waits for no more. */
#ifndef MRT_BASE_THREAD_H
#define MRT_BASE_THREAD_H

#include <stdbool.h>

/* Runs it on a thread of its own, on which no signal of the program's is delivered; false: there
   is none to be had. */
bool mrt_thread_begin(void *(*run)(void *argument), void *argument);

#endif
