/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that the library starts and never joins. */
#ifndef MRT_BASE_THREAD_H
#define MRT_BASE_THREAD_H

#include <stdbool.h>

/* Runs the function on a new thread, which receives none of the program's signals. False: the
   thread could not be started. */
bool mrt_thread_begin(void *(*run)(void *argument), void *argument);

#endif
