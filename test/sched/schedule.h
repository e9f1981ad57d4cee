/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler: the threads of a run, of which one runs at a time, in virtual time.
 *
 * A thread is a coroutine on a stack of its own, all in one thread of the system, so a switch
 * costs no system call but one. It gives way only at points: where it takes or leaves a mutex,
 * waits, wakes, looks at the clock or calls the store (system.c, store.c). There the seed decides
 * which thread is next; so a seed is one order of steps, and the same one each time. The
 * library's thread-local variables lie in a section of their own in this build, which is exchanged
 * at each switch.
 *
 * A seed has one of three ways to choose: any thread alike; mostly the one that runs; or the one
 * of the highest priority, which falls at a few points of the run (after PCT by Burckhardt et al.:
 * a fault that needs few orders to be so is found with a known chance). Besides, a thread may be
 * paused for some milliseconds, as by a busy machine.
 *
 * Time stands still while a thread can run. When none can, it goes on to the next instant for
 * which one waits. If there is none, all wait for ever: that is a fault of itself.
 */
#ifndef SCHED_SCHEDULE_H
#define SCHED_SCHEDULE_H

#include "base/time.h"
#include "random.h"

#include <stdio.h>

#define THREADS_MAX 24

#ifndef __has_feature /* gcc says it by a macro */
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define SCHED_SANITIZED 1
#else
#define SCHED_SANITIZED 0
#endif

/* How much of a run is shown: a fault and the notes before it; all notes; and each wait. */
enum sched_trace { SCHED_QUIET, SCHED_NOTES, SCHED_WAITS };

/* Begins a run; the caller is its first thread. */
void sched_begin(uint64_t seed, enum sched_trace trace);
/* All other threads have ended. */
void sched_end(void);
/* Whether a run is under way; outside of one the replaced functions call the system's. */
bool sched_runs(void);

mrt_time sched_now(void);
/* The number of the thread that runs, from 0. */
int sched_self(void);
/* How many there have been. */
int sched_count(void);
const char *sched_name(int thread);

/* Starts a thread; it runs at a later point. */
int sched_start(const char *name, void *(*run)(void *argument), void *argument);
void *sched_join(int thread);

/* Another thread may run now. */
void sched_point(void);
/* Lets others run until `ready` says true, or `until`; says whether it does. The predicate is
   called often, from any stack, and changes nothing. `what` is shown when all wait for ever. */
bool sched_wait(const char *what, bool (*ready)(const void *subject), const void *subject,
                mrt_time until);
void sched_sleep(const char *what, mrt_time length);
/* Whether a thread waits so, or has ended. */
bool sched_waits(int thread, const char *what);

/* For how long threads have been paused in this run, all together; of a pause that goes on, what is
   over. */
mrt_time sched_paused(void);
/* Points so far, and a number that differs if they were of other threads or at other times. */
uint64_t sched_steps(void);
uint64_t sched_hash(void);

/* Called before time goes on to `next`, by no thread in particular; gives an earlier instant at
   which it wants to be called again, or `next`. */
extern mrt_time (*sched_watch)(mrt_time now, mrt_time next);

/* Adds a line to the trace. */
__attribute__((format(printf, 1, 2))) void sched_note(const char *format, ...);
/* The run has shown a fault: says so, with what all threads are at, and ends the process. */
__attribute__((format(printf, 1, 2))) _Noreturn void sched_fail(const char *format, ...);

#endif
