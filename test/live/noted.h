/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acquires and releases that are written down for the checker of histories (chaos/history.h), where
 * one program plays all processes: for faults that must be found where a store promises less.
 */
#ifndef TEST_NOTED_H
#define TEST_NOTED_H

#include "chaos/history.h"
#include "mortise.h"

void noted_begin(void);
/* As zk_acquire; it has to be held then. */
mortise_hold noted_acquire(mortise_lock *lock, unsigned process);
void noted_release(mortise_hold hold, unsigned process);
/* The process ends. */
void noted_leave(unsigned process);
/* The judgement, until the next; prints the first fault. */
const struct chaos_verdict *noted_judge(void);

#endif
