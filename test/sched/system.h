/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system as the library sees it in a run: mutexes, conditions, futexes, threads, descriptors
 * and the clock are those of the scheduler. The linker puts these functions in the place of the C
 * library's (CMakeLists.txt), also for what a store calls.
 *
 * A mutex is known by its address from its first use to its destruction. Destroying one that is
 * held or waited for, letting go of another thread's, reading a closed descriptor: each is a fault.
 */
#ifndef SCHED_SYSTEM_H
#define SCHED_SYSTEM_H

#include "schedule.h"

/* Forgets what the run before had. */
void system_begin(void);
/* All descriptors are closed again, and no mutex is held. */
void system_end(void);
/* Frees what the run has, if nobody wrote there since (allocation.c). */
void system_free_kept(void);
/* The same of system_threads.c alone. */
void system_threads_begin(void);
void system_threads_end(void);

/* A descriptor that is readable when `ready` says so. */
int system_descriptor(bool (*ready)(const void *subject), const void *subject);
void system_close(int descriptor);
bool system_readable(int descriptor);
/* As sched_wait, and until there is something to read. */
void system_poll(const char *what, int descriptor, bool (*ready)(const void *subject),
                 const void *subject, mrt_time until);

#endif
