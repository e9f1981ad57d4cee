/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slots of holds. A program may have a hold of a client that it has closed, so a slot is never
 * freed: the closed client gives it back, and the next client that needs one takes it. There are as
 * many as open clients have had at the same time.
 *
 * Invariant: all holds that closed clients gave have a generation below the slot's `first`; those
 * of the client that has the slot now have that or a larger one. So no two holds of a process are
 * equal, and a call on a hold of a closed client touches no client.
 *
 * Threads: any; the list has a mutex, which a fork waits for, so a child finds it unlocked. `first`
 * changes only when the slot is given back, at the end of a client.
 */
#include "api/slot.h"

#include "base/assert.h"

#include <pthread.h>
#include <stdlib.h>

_Static_assert(offsetof(struct mrt_slot, host) ==
                   offsetof(struct mrt_slot, hold) + sizeof(struct mrt_hold),
               "the engine has the host's bytes behind the hold");

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct mrt_slot *spare;

static void lock(void)
{
    pthread_mutex_lock(&mutex);
}

static void unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

static void watch_forks(void)
{
    pthread_atfork(lock, unlock, unlock);
}

static struct mrt_slot *take_spare(void)
{
    lock();
    struct mrt_slot *slot = spare;
    if (slot)
        spare = slot->next;
    unlock();
    return slot;
}

static struct mrt_hold *take(size_t size)
{
    MRT_ASSERT(size == sizeof(struct mrt_hold) + sizeof(struct mrt_hold_host));
    struct mrt_slot *slot = take_spare();
    if (!slot && (slot = calloc(1, sizeof *slot)))
        slot->first = 1;
    if (!slot)
        return NULL;
    slot->hold = (struct mrt_hold){.generation = slot->first};
    slot->host = (struct mrt_hold_host){.upcall = NULL};
    return &slot->hold;
}

static void give_back(struct mrt_hold *hold)
{
    struct mrt_slot *slot = (struct mrt_slot *)((char *)hold - offsetof(struct mrt_slot, hold));
    slot->first = hold->generation + 1;
    lock();
    slot->next = spare;
    spare = slot;
    unlock();
}

void mrt_slot_configure(struct mrt_engine_config *config)
{
    pthread_once(&once, watch_forks);
    config->take_slot = take;
    config->give_back_slot = give_back;
}
