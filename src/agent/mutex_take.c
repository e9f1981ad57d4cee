/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of clients whose mutexes are handed on inside the agent: see mutex.c.
 *
 * An APPEND becomes an acquire, and a REMOVE a release. A REFRESH of what is held looks at the
 * store, and so does a DETACH, by which the agent's ticket becomes the client's. A command that
 * comes while another one of its ticket is under way waits behind it.
 *
 * Threads: the agent's.
 */
#include "agent/mutex.h"
#include "agent/peer.h"

#include "base/assert.h"
#include "core/lend.h"
#include "store/agent/frame.h"

#include <stdlib.h>

/* Whether an APPEND asks for no more than the agent's own queue can give. */
static bool asks_for_mutex(const struct mrt_frame_command *frame)
{
    const struct mrt_command *command = &frame->command;
    return mrt_desk_is_mutex(frame) && !command->claim && !command->adopt && !command->linger &&
           command->delay == 0 && command->queue_max == 0 && !frame->has_value;
}

/* The queue in which it waits; NULL: there is no memory, or it is of another kind. */
static struct mrt_queue *open_queue(struct mrt_agent *agent, const char *name)
{
    struct mrt_queue *queue;
    if (mrt_engine_queue(agent->driver.engine, name, &mrt_mutex, &queue) != MORTISE_OK)
        return NULL;
    if (!agent->has_lease && agent->driver.ops->capabilities.lock_delay)
        mrt_queue_delay(queue, agent->lease, mrt_time_now()); /* rule 3 */
    return queue;
}

bool mrt_desk_mutex_begin(struct mrt_desk_ticket *ticket, const struct mrt_frame_command *frame)
{
    struct mrt_agent *agent = ticket->session->agent;
    bool has_limits = ticket->user; /* which are those of tickets of the store */
    bool is_plain = !has_limits && asks_for_mutex(frame);
    struct mrt_queue *queue = is_plain ? open_queue(agent, ticket->queue) : NULL;
    struct mrt_desk_mutex *mutex = queue ? mrt_desk_mutex_new(ticket, queue) : NULL;
    if (!mutex) {
        if (queue)
            mrt_queue_put(queue);
        return false;
    }
    mutex->asked = frame->command;
    mutex->wants_place = frame->command.wants_place;
    mutex->watches = frame->command.watch_closely;
    mrt_desk_mutex_wait(mutex, true);
    struct mrt_waiter *waiter = mrt_desk_mutex_call(mutex);
    waiter->takes_share = true;
    waiter->try_only = frame->command.try_only;
    waiter->expect_free = frame->command.expect_free;
    waiter->wants_place = mutex->wants_place;
    mrt_engine_acquire(agent->driver.engine, queue, waiter, mrt_time_now());
    mrt_desk_mutex_check(mutex);
    return true;
}

uint64_t mrt_desk_mutex_waiters(const struct mrt_agent *agent, const char *name)
{
    struct mrt_queue *queue;
    const struct mrt_waiter *waiter = NULL;
    uint64_t count = 0;
    if (mrt_engine_queue(agent->driver.engine, name, &mrt_mutex, &queue) != MORTISE_OK)
        return 0;
    while ((waiter = mrt_queue_next_waiter(queue, waiter)))
        count++;
    if (count > 0 && mrt_queue_waits(queue))
        count--; /* for it the store has a ticket */
    mrt_queue_put(queue);
    return count;
}

/* Answers at once if it waits, else once the store has been asked. */
static void refresh(struct mrt_desk_mutex *mutex, const struct mrt_command *command)
{
    struct mrt_engine *engine = mutex->agent->driver.engine;
    mutex->watches |= command->watch_closely;
    if (mutex->has_failed) {
        mrt_desk_mutex_end(mutex, MRT_GONE, MORTISE_OK);
    } else if (!mutex->hold) {
        mrt_desk_mutex_answer(mutex, mrt_desk_mutex_view(mutex));
    } else {
        struct mrt_waiter *waiter = mrt_desk_mutex_call(mutex);
        mrt_engine_verify(engine, mutex->hold, waiter, mrt_time_now());
        if (mutex->watches)
            mrt_engine_listen(mutex->hold, true);
        mrt_desk_mutex_check(mutex);
    }
}

static void detach(struct mrt_desk_mutex *mutex, const struct mrt_command *command)
{
    struct mrt_engine *engine = mutex->agent->driver.engine;
    struct mrt_hold *hold = mutex->hold;
    if (!hold) {
        mrt_desk_mutex_end(mutex, MRT_GONE, MORTISE_OK);
        return;
    }
    struct mrt_waiter *waiter = mrt_desk_mutex_call(mutex);
    mutex->left = mrt_queue_any_ticket(mutex->queue);
    int error = mrt_engine_detach(engine, hold, mutex->generation, 0, command->detached_id, waiter,
                                  mrt_time_now());
    if (error == MORTISE_OK) {
        mutex->hold = NULL;
        mrt_desk_mutex_check(mutex);
        return;
    }
    mutex->calls = false;
    mrt_desk_mutex_detached(mutex, error);
}

/* Does what is asked; the mutex may be freed. */
static void obey(struct mrt_desk_mutex *mutex)
{
    const struct mrt_command command = mutex->asked;
    MRT_ASSERT(command.serial > 0 && !mutex->ticket->is_leaving);
    switch (command.type) {
    case MRT_APPEND:
    case MRT_REFRESH:
        refresh(mutex, &command);
        break;
    case MRT_REMOVE:
        mrt_desk_mutex_leave(mutex);
        break;
    case MRT_DETACH:
        detach(mutex, &command);
        break;
    default:
        mrt_desk_mutex_answer(mutex,
                              (struct mrt_event){.type = MRT_FAILED,
                                                 .error = MORTISE_EINVALID,
                                                 .detail = "a mutex has one weight, and no value"});
    }
}

bool mrt_desk_mutex_take(struct mrt_desk_mutex *mutex, const struct mrt_command *command)
{
    struct mrt_desk_later *later;
    if (mutex->asked.serial == 0) {
        mutex->asked = *command;
        obey(mutex);
        return true;
    }
    later = calloc(1, sizeof *later);
    if (!later)
        return false;
    later->command = *command;
    STAILQ_INSERT_TAIL(&mutex->later, later, link);
    mrt_desk_mutex_wait(mutex, true);
    return true;
}

/* ------------------------------------------------------------------------ turns */

/* Whether its APPEND waits for what the store says of the agent's ticket. */
static bool is_unanswered(const struct mrt_desk_mutex *mutex)
{
    return mutex->asked.serial > 0 && mutex->asked.type == MRT_APPEND && mutex->calls;
}

static bool stands_in_queue(const struct mrt_desk_mutex *mutex)
{
    uint64_t fence;
    return !mutex->asked.try_only && mutex->call.waiter.state == MRT_WAITER_WAITING &&
           !mrt_id_none(mrt_queue_ticket(mutex->queue, &fence));
}

/* Looks at those that wait to be told; true: one of them has gone on, so others may. */
static bool look_at_pending(struct mrt_agent *agent)
{
    struct mrt_desk_mutex *mutex, *next;
    bool more = false;
    TAILQ_FOREACH_SAFE (mutex, &agent->desk.pending, link, next) {
        if (mutex->ticket->is_leaving) {
            mrt_desk_mutex_finish(mutex);
            continue;
        }
        if (is_unanswered(mutex) && stands_in_queue(mutex))
            mrt_desk_mutex_answer(mutex, mrt_desk_mutex_view(mutex));
        mrt_desk_mutex_wait(mutex, is_unanswered(mutex) || !STAILQ_EMPTY(&mutex->later));
        if (mutex->asked.serial == 0 && mrt_desk_mutex_next(mutex)) {
            obey(mutex);
            more = true;
        }
    }
    return more;
}

void mrt_desk_mutex_turn(struct mrt_agent *agent)
{
    while (look_at_pending(agent))
        ;
}
