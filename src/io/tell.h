/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Telling: the callbacks of the user, and the thread that makes them in time: tell.c.
 */
#ifndef MRT_IO_TELL_H
#define MRT_IO_TELL_H

#include "base/time.h"
#include "io/park.h"

#include <pthread.h>
#include <stdbool.h>

struct mrt_driver;
struct mrt_upcall;

/* The thread that calls back in the loop's place: tell.c. */
struct mrt_teller {
    pthread_t thread;
    struct mrt_park park;
    mrt_time armed; /* what it sleeps until */
    bool begun, stop;
};

/* The mutex is held in all of these but the first and the last. */
/* Whether this thread is in a callback. */
bool mrt_tell_in_callback(void);
/* Whether callbacks are due. */
bool mrt_tell_waits(const struct mrt_driver *driver);
/* Runs them, if no other thread does. */
void mrt_tell(struct mrt_driver *driver);
/* Wakes the thread that runs them. */
void mrt_tell_kick(struct mrt_driver *driver);
/* The engine's timers may have changed. */
void mrt_tell_timers(struct mrt_driver *driver);
/* From this call on, no call of the store delays a callback. 0 or MORTISE_ENOMEM. */
int mrt_tell_in_time(struct mrt_driver *driver);
/* After the loop's end: makes the callbacks that are left. */
void mrt_tell_stop(struct mrt_driver *driver);
/* An upcall: tells the listener. */
void mrt_tell_contact(struct mrt_upcall *upcall);

#endif
