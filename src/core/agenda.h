/* SPDX-License-Identifier: Apache-2.0 */
/*
 * References to the queues of an engine, and the call that serves one: agenda.c.
 */
#ifndef MRT_CORE_AGENDA_H
#define MRT_CORE_AGENDA_H

#include "base/time.h"

struct mrt_queue;

/* Gives a queue back that mrt_engine_queue has returned, or a reference to one. */
void mrt_queue_put(struct mrt_queue *queue);

/* ---------------------------------------------------- of core only */

void mrt_queue_reference(struct mrt_queue *queue);
/* Frees a queue of `unused`. */
void mrt_queue_free(struct mrt_queue *queue);
/* Brings the queue to the state that follows from its tickets and waiters; called after every
 * change. */
void mrt_queue_serve(struct mrt_queue *queue, mrt_time now);

#endif
