/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutexes that are handed on inside the agent, as lists show them: see mutex.h. Nothing here
 * changes anything. Threads: the agent's.
 */
#include "agent/mutex.h"

#include "core/lend.h"

uint64_t mrt_desk_mutex_fence(const struct mrt_desk_mutex *mutex)
{
    uint64_t fence = 0;
    return mrt_id_none(mrt_queue_ticket(mutex->queue, &fence)) || mutex->ticket->is_leaving ? 0
                                                                                            : fence;
}

uint32_t mrt_desk_mutex_place(const struct mrt_desk_mutex *mutex, mrt_time *since)
{
    *since = mutex->call.waiter.since;
    return mutex->hold ? 0 : (uint32_t)mrt_waiter_ahead(&mutex->call.waiter);
}

const struct mrt_desk_ticket *mrt_desk_mutex_next(const struct mrt_desk_mutex *mutex)
{
    const struct mrt_waiter *waiter = mutex->hold ? NULL : &mutex->call.waiter;
    while ((waiter = mrt_queue_next_waiter(mutex->queue, waiter))) {
        const struct mrt_call *call = (const struct mrt_call *)waiter;
        if (call->queued_argument == call) /* else it is a LOCK's */
            return ((const struct mrt_desk_mutex *)call)->ticket;
    }
    return NULL;
}
