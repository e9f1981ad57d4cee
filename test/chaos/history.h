/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The view that several processes had of one lock, written down by all of them in one file, and the
 * judgement on it. A line is an event:
 *
 *     TIME KIND PROCESS NUMBER UNTIL
 *
 * TIME and UNTIL are nanoseconds of mortise_now_ns, which all processes of a machine share.
 *
 *     ask                 about to acquire
 *     got, still          held at TIME, NUMBER is the fence; stays so until UNTIL, it believes
 *     release             about to release
 *     lost                seen to be no longer held
 *     failed              the acquire ended without the lock
 *     left                the process has ended by itself
 *     dead                it was killed, and is known to be dead
 *     cut, heal           (of process 0) a fault begins; all is well again, NUMBER is the scene
 *
 * A hold begins with `got` and ends with the first of `release`, `lost`, `dead` and the last
 * UNTIL. TIME of got and still is read before the question whether it is held, so that a
 * process stopped in between claims nothing that it was not told.
 */
#ifndef TEST_CHAOS_HISTORY_H
#define TEST_CHAOS_HISTORY_H

#include <stdint.h>
#include <stdio.h>

#define CHAOS_PROCESSES 4096
#define CHAOS_HEALS 4096

struct chaos_verdict {
    unsigned long events, holds, failed, lost, dead;
    unsigned long overlaps;  /* holds that began before an earlier one had ended */
    int64_t longest_overlap; /* nanoseconds */
    unsigned long fences;    /* that did not rise */
    unsigned long unserved;  /* living processes that got nothing between a heal and the next cut */
    unsigned long broken;    /* events that cannot follow what was before, or are none */
    char first[160];         /* the first fault, in words */
    unsigned heals;
    struct chaos_heal {
        uint64_t scene;
        int64_t longest; /* until the last surviving process got the lock */
    } heal[CHAOS_HEALS];
};

/* Reads the events, in any order, and judges. 0, or -1 for no memory. */
int chaos_history_check(FILE *history, struct chaos_verdict *verdict);
unsigned long chaos_faults(const struct chaos_verdict *verdict);

#endif
