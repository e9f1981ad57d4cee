/* SPDX-License-Identifier: Apache-2.0 */
/* The connection for messages. Correctness does not need it; it only saves waiting time.
 */
#ifndef MRT_STORE_REDIS_PUSH_H
#define MRT_STORE_REDIS_PUSH_H

#include "store/redis/internal.h"

/* Writes SUBSCRIBE or UNSUBSCRIBE for a channel of this kind, to be sent by the next flush. */
void mrt_redis_push_put(struct mrt_redis_store *store, const char *command, const char *kind,
                        const char *name);
/* Subscribes to a claim's channel, or leaves it. */
void mrt_redis_push_listen(struct mrt_redis_store *store, const char *key, mrt_time now);
void mrt_redis_push_ignore(struct mrt_redis_store *store, const char *key);
/* Keeps the answered job of a ticket that has to wait, until a message that its wait is over would
   be received; false: the caller delivers it now. */
bool mrt_redis_push_hold(struct mrt_redis_store *store, struct mrt_redis_job *job, mrt_time now);
/* Keeps an OBSERVE until the subscription to its queue is confirmed; false: the caller sends it. */
bool mrt_redis_push_hold_observe(struct mrt_redis_store *store, struct mrt_redis_job *job,
                                 mrt_time now);
/* The subscription to the client's own channel is confirmed. */
void mrt_redis_push_subscribed(struct mrt_redis_store *store, mrt_time now);
/* Lets all tickets of this client be refreshed. */
void mrt_redis_wake_all(struct mrt_redis_store *store);
void mrt_redis_push_close(struct mrt_redis_store *store, mrt_time now);
/* Closes it if it is too slow; and when that is. */
void mrt_redis_push_tick(struct mrt_redis_store *store, mrt_time now);
mrt_time mrt_redis_push_next(const struct mrt_redis_store *store);

/* message.c: reads the connection. */
void mrt_redis_messages_receive(struct mrt_redis_store *store, mrt_time now);

#endif
