/* SPDX-License-Identifier: Apache-2.0 */
/* Observers of elections, and the queues whose channels are subscribed to for them. */
#ifndef MRT_STORE_REDIS_OBSERVE_H
#define MRT_STORE_REDIS_OBSERVE_H

#include "store/redis/internal.h"

/* An observer is told of one change. */
struct mrt_redis_observer {
    TAILQ_ENTRY(mrt_redis_observer) link;
    struct mrt_id session, id;
    char queue[];
};

/* A queue whose changes are listened for. */
struct mrt_redis_watch {
    TAILQ_ENTRY(mrt_redis_watch) link;
    bool stands; /* the subscription */
    char queue[];
};

struct mrt_redis_watch *mrt_redis_watch_find(const struct mrt_redis_store *store,
                                             const char *queue);
/* NULL: no memory. */
struct mrt_redis_watch *mrt_redis_watch_add(struct mrt_redis_store *store, const char *queue);
void mrt_redis_watch_free(struct mrt_redis_store *store, struct mrt_redis_watch *watch);

/* Makes the observer that an OBSERVE asks for, unless it is there; false: no memory. */
bool mrt_redis_observer_add(struct mrt_redis_store *store, const struct mrt_command *command);
/* Tells the observers of a queue, of all if NULL, and frees them; how many there were. */
unsigned mrt_redis_observers_tell(struct mrt_redis_store *store, const char *queue);
void mrt_redis_observers_forget(struct mrt_redis_store *store, struct mrt_id session);
/* Sends the kept OBSERVE commands of a queue; NULL: of all queues, and no CHANGED can follow. */
void mrt_redis_observe_release(struct mrt_redis_store *store, const char *queue);
/* Frees observers and watches. */
void mrt_redis_observe_free(struct mrt_redis_store *store);

#endif
