/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader, a thread that waits for the store and reads the store's answers itself: reader.c.
 */
#ifndef MRT_IO_READER_H
#define MRT_IO_READER_H

#include "base/time.h"

#include <stdbool.h>

struct mrt_call;
struct mrt_driver;

/* Which of the threads that wait reads the store's answers itself: reader.c. */
struct mrt_reader {
    struct mrt_call *call;      /* the call of the thread that reads; NULL: no thread reads */
    mrt_time since;             /* when it began */
    mrt_time next_reader_until; /* until then the loop leaves the store to the next reader */
    mrt_time loop_away_until;   /* until then the loop does not wake for the store; 0: it does */
    mrt_time no_reader_until;   /* until then no thread begins to read, and the loop reads */
    bool frequent;              /* a reader came within GRACE of the one before */
    int blocked;                /* threads in mrt_driver_wait */
    bool disabled;              /* mrt_reader_disable */
    bool shared;                /* the program's event loop helps: mrt_reader_help */
    bool prompt;                /* it also calls back at once what its own calls have ended */
    bool helps;                 /* it does now, and makes the callbacks that are due */
    bool may_wait;              /* answers_may_wait, when the store was last called */
    bool sleeps;                /* the reader does */
    bool looks_away;            /* as the loop's */
    int fd;                     /* wakes the reader; -1: none has read */
};

/* At the opening: the program's event loop takes the loop's place where it can, as with
   MORTISE_SHARED_LOOP. */
void mrt_reader_share(struct mrt_driver *driver);
/* Between enter and leave: waits for `wait` as the loop would, if its caller may be the
   reader; false: it may not. It may return early. */
bool mrt_reader_wait(struct mrt_driver *driver, struct mrt_call *wait, mrt_time deadline);
/* The mutex is held in all of these. No thread reads for a while,
   and the loop is back at once. */
void mrt_reader_recall(struct mrt_driver *driver);
/* From now on the loop reads all events of the store, because callbacks may wait for them. */
void mrt_reader_disable(struct mrt_driver *driver);
/* Between enter and leave, in that event loop: reads what the store has answered, and calls back.
   False: another thread is calling the store, and reads it. */
bool mrt_reader_help(struct mrt_driver *driver);
/* Until when the loop leaves the store's descriptor to others; 0: it does not. */
mrt_time mrt_reader_until(const struct mrt_driver *driver, mrt_time now);
/* Wakes the reader, if it sleeps. */
void mrt_reader_wake(struct mrt_driver *driver);
/* The store has been called. */
void mrt_reader_called(struct mrt_driver *driver);

#endif
