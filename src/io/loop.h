/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop, which waits for the store, for timers and for kicks: loop.c.
 */
#ifndef MRT_IO_LOOP_H
#define MRT_IO_LOOP_H

#include "base/time.h"

#include <pthread.h>
#include <stdbool.h>

struct mrt_driver;

int mrt_loop_start(struct mrt_driver *driver);
void mrt_loop_stop(struct mrt_driver *driver);
/* Wakes the loop; the mutex is held. */
void mrt_loop_kick(struct mrt_driver *driver);
/* One turn without sleeping: timers, the store, callbacks. The mutex is held. */
void mrt_loop_turn(struct mrt_driver *driver, mrt_time patience);
/* Waits at most `left` for `kick`, and for the store's descriptor if `store`: true if that has
   something. The mutex is held, and let go meanwhile. */
bool mrt_loop_poll(struct mrt_driver *driver, int kick, bool store, mrt_time left);
/* Sleeps until something is to do, or `until`. The mutex is held, and let go meanwhile. */
void mrt_loop_sleep(struct mrt_driver *driver, mrt_time until);
/* Reads the state of the descriptors, without sleeping. The mutex is held. */
void mrt_loop_look(struct mrt_driver *driver);
/* How long the loop may sleep from now; MRT_TIME_NEVER: until a descriptor is ready. */
mrt_time mrt_loop_left(const struct mrt_driver *driver);
mrt_time mrt_loop_next(const struct mrt_driver *driver);
int mrt_loop_fd(struct mrt_driver *driver);
/* Starts a thread with all signals blocked; false: it could not be started. */
bool mrt_loop_thread(pthread_t *thread, void *(*run)(void *argument), struct mrt_driver *driver);
/* Between enter and leave: the end of a pipe into which a byte ends all that threads wait for; or a
   negative error. */
int mrt_loop_interrupt_fd(struct mrt_driver *driver);

#endif
