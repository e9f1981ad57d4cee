/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that compete for one lock while its server is replaced. Two witnesses see what they do:
 * the kernel, by flock() on one file, which tells whether two hold at the same time; and a register
 * that refuses a smaller fence than the largest it has seen, as a fenced resource does.
 */
#ifndef TEST_FAILOVER_H
#define TEST_FAILOVER_H

#include "mortise.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct failover_counts {
    atomic_int stop;
    atomic_int turns;        /* holds that ended */
    atomic_int overlaps;     /* holds that began while the kernel's lock was another's */
    atomic_int refused;      /* writes that the register refused */
    atomic_int same;         /* holds with a fence that another hold had had */
    atomic_int lost;         /* holds that were lost before their end */
    atomic_int errors;       /* acquires that failed */
    atomic_llong last_ms;    /* when the newest hold began */
    atomic_llong gap_ms;     /* the longest time between two beginnings */
    int witness;             /* the caller's, of that file */
    _Atomic uint64_t newest; /* the register: the largest fence */
};

/* The port of a server of this number, of those that tools/servers started. */
int failover_port(int number);
/* Starts so many processes on the lock "m" at this URI. Before any client is opened. */
struct failover_counts *failover_begin(const char *uri, int processes);
/* Waits until there were so many more turns; fails the test after a minute. */
void failover_wait_turns(struct failover_counts *counts, int turns);
/* Ends the processes, prints the counts, and frees nothing. */
void failover_end(struct failover_counts *counts, const char *title);

/* A holder's write to the resource; false: the register refuses it. `first` of this hold. */
bool failover_write(struct failover_counts *counts, uint64_t fence, bool first);

#endif
