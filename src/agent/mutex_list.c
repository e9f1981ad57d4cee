/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutexes that are handed on inside the agent, as operators see them: see mutex.h.
 *
 * The store lists one ticket of the agent for all clients that hold or wait here. In a list that is
 * asked of the agent, rows of those clients stand in its place. Each has its own fence: the one
 * that holds, that of its hold; those that wait, the fences that they will have if the ticket's
 * turn lasts so long, or, where they are not known, their numbers. The number is each row's id, so
 * that those who observe recognise a ticket whose fence changes. LOCKs have no rows here: the row
 * of the agent's ticket stays for one that is first.
 *
 * Rows of the store were read before the clients' are added, so they may be older. Rows
 * ahead of the agent's ticket are left out if that ticket is held now: those tickets have gone. So
 * are tickets of the agent that have left since, and places are counted anew.
 *
 * A revoke or a break of such a fence or number is done here; the store knows the agent's ticket
 * alone.
 *
 * Threads: the agent's.
 */
#include "agent/mutex.h"
#include "agent/peer.h"
#include "agent/worker.h"

#include "core/lend.h"
#include "core/uthash.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A queue whose clients are listed. */
struct shown {
    struct mrt_queue *queue;
    struct mrt_desk_mutex *holder; /* NULL: nobody holds it, or a LOCK */
    bool is_done;
    UT_hash_handle hh; /* by name */
};

/* Rows of one queue on their way into the list. */
struct merge {
    const struct mrt_agent *agent;
    struct mrt_operation *operation;
    struct mrt_rows rows; /* of all queues so far */
    uint32_t next;        /* the place of the next one that waits */
};

static bool is_holder(const struct mrt_desk_mutex *mutex)
{
    const struct mrt_hold *holder = mrt_queue_holder(mutex->queue);
    const struct mrt_hold *own = mutex->hold ? mutex->hold : mutex->call.waiter.hold;
    return holder && holder == own;
}

static bool is_waiter(const struct mrt_desk_mutex *mutex)
{
    return mutex->calls && !mutex->hold && mutex->asked.type != MRT_DETACH &&
           mutex->call.waiter.state == MRT_WAITER_WAITING;
}

/* The client that waits; NULL: it is a LOCK. */
static struct mrt_desk_mutex *mutex_of(struct mrt_waiter *waiter)
{
    struct mrt_call *call = (struct mrt_call *)waiter;
    return call->queued_argument == call ? (struct mrt_desk_mutex *)call : NULL;
}

/* The fence of its hold, or of the one that it will have; 0: it is not known. */
static uint64_t fence_of(struct mrt_desk_mutex *mutex)
{
    if (is_holder(mutex))
        return mrt_queue_holder(mutex->queue)->fence;
    return is_waiter(mutex) ? mrt_waiter_reserve(&mutex->call.waiter) : 0;
}

/* ------------------------------------------------------------------------- rows */

static int64_t wall_ms(mrt_time at)
{
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    int64_t now = (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000;
    return now - (mrt_time_now() - at) / MRT_MILLISECOND;
}

static void insert_row(struct merge *merge, struct mrt_row *row, bool holds)
{
    row->listed.entry.place = holds ? 0 : merge->next++;
    STAILQ_INSERT_TAIL(&merge->rows, row, link);
}

static void put_mutex(struct merge *merge, struct mrt_desk_mutex *mutex, bool holds)
{
    uint64_t fence = fence_of(mutex);
    mrt_time since = mutex->hold ? mutex->granted_at : mutex->call.waiter.since;
    char claim[MRT_CLAIM_SIZE];
    if (mutex->since_wall_ms == 0)
        mutex->since_wall_ms = wall_ms(since);
    mrt_claim_format(mutex->ticket->id, claim);
    const struct mrt_listed listed = {.claim = claim,
                                      .entry = {.size = sizeof(mortise_entry),
                                                .name = mutex->ticket->queue,
                                                .kind = mrt_mutex.kind,
                                                .label = mutex->ticket->session->owner,
                                                .fence = fence ? fence : mutex->number,
                                                .id = mutex->number,
                                                .weight = mrt_mutex.capacity,
                                                .capacity = mrt_mutex.capacity,
                                                .since_wall_ms = mutex->since_wall_ms}};
    struct mrt_row *row = mrt_row_new(&listed);
    if (row)
        insert_row(merge, row, holds);
    else
        merge->operation->error = MORTISE_ENOMEM;
}

/* Puts the clients of a queue. `own`: the row of the agent's ticket, which is kept for a LOCK that
   is first, or freed; NULL: there is none. */
static void put_clients(struct merge *merge, const struct shown *shown, struct mrt_row *own)
{
    struct mrt_waiter *waiter = NULL;
    bool is_first = !mrt_queue_holder(shown->queue);
    struct mrt_row *kept = NULL;
    if (shown->holder)
        put_mutex(merge, shown->holder, true);
    else if (!is_first)
        kept = own;
    if (kept)
        insert_row(merge, kept, true);
    for (; (waiter = mrt_queue_next_waiter(shown->queue, waiter)); is_first = false) {
        struct mrt_desk_mutex *mutex = mutex_of(waiter);
        if (mutex && !waiter->try_only)
            put_mutex(merge, mutex, false);
        else if (!mutex && is_first && own)
            insert_row(merge, kept = own, false);
        else if (!mutex)
            merge->next++;
    }
    if (own && !kept)
        mrt_row_free(own);
}

static bool has_fence(const struct mrt_rows *rows, uint64_t fence)
{
    const struct mrt_row *row;
    STAILQ_FOREACH(row, rows, link)
    if (row->listed.entry.fence == fence)
        return true;
    return false;
}

/* Whether it is of a ticket of the agent itself, and not of a client's, or nobody's. */
static bool is_of_agent(const struct mrt_agent *agent, const struct mrt_row *row)
{
    const mortise_entry *entry = &row->listed.entry;
    return !row->is_known && !entry->detached && entry->delay_ms == 0 &&
           strcmp(entry->label, agent->owner) == 0;
}

/* Puts the rows of a queue: those of the store, which are used up, and its clients. */
static void put_queue(struct merge *merge, struct shown *shown, struct mrt_rows *listed)
{
    uint64_t fence = 0;
    bool is_there =
        !mrt_id_none(mrt_queue_ticket(shown->queue, &fence)) && has_fence(listed, fence);
    bool is_ahead = is_there && mrt_queue_holder(shown->queue);
    struct mrt_row *row;
    merge->next = 1;
    shown->is_done = true;
    while ((row = STAILQ_FIRST(listed))) {
        STAILQ_REMOVE_HEAD(listed, link);
        const mortise_entry *entry = &row->listed.entry;
        if (is_there && entry->fence == fence) {
            put_clients(merge, shown, row);
            is_ahead = false;
        } else if (is_ahead || is_of_agent(merge->agent, row)) {
            mrt_row_free(row);
        } else {
            insert_row(merge, row, entry->place == 0);
        }
    }
    if (!is_there)
        put_clients(merge, shown, NULL);
}

static bool is_wanted(const struct mrt_operation *operation, const char *name)
{
    return operation->by_prefix ? strncmp(name, operation->name, strlen(operation->name)) == 0
                                : strcmp(name, operation->name) == 0;
}

/* The queues that the list asks for and that clients hold or wait for here. */
static struct shown *collect(const struct mrt_desk *desk, struct mrt_operation *operation)
{
    const struct mrt_desk_ticket *ticket, *next;
    struct shown *all = NULL, *shown;
    HASH_ITER (hh, desk->tickets, ticket, next) {
        if (!ticket->mutex || ticket->is_leaving || !is_wanted(operation, ticket->queue))
            continue;
        const char *name = mrt_queue_name(ticket->mutex->queue);
        HASH_FIND(hh, all, name, strlen(name), shown);
        if (!shown && (shown = calloc(1, sizeof *shown))) {
            shown->queue = ticket->mutex->queue;
            HASH_ADD_KEYPTR(hh, all, name, strlen(name), shown);
        }
        if (!shown || !shown->hh.tbl) {
            operation->error = MORTISE_ENOMEM;
            free(shown);
            break;
        }
        if (is_holder(ticket->mutex))
            shown->holder = ticket->mutex;
    }
    return all;
}

/* Moves the first rows that have one name, which are a queue. */
static const char *take_queue(struct mrt_rows *rows, struct mrt_rows *queue)
{
    struct mrt_row *row = STAILQ_FIRST(rows);
    const char *name = row->listed.entry.name;
    do {
        STAILQ_REMOVE_HEAD(rows, link);
        STAILQ_INSERT_TAIL(queue, row, link);
        row = STAILQ_FIRST(rows);
    } while (row && strcmp(row->listed.entry.name, name) == 0);
    return name;
}

void mrt_desk_mutex_list(struct mrt_agent *agent, struct mrt_operation *operation)
{
    struct shown *all = collect(&agent->desk, operation), *shown, *next;
    struct merge merge = {.agent = agent, .operation = operation};
    struct mrt_rows queue = STAILQ_HEAD_INITIALIZER(queue);
    STAILQ_INIT(&merge.rows);
    while (all && !STAILQ_EMPTY(&operation->rows)) {
        const char *name = take_queue(&operation->rows, &queue);
        HASH_FIND(hh, all, name, strlen(name), shown);
        if (shown && !shown->is_done)
            put_queue(&merge, shown, &queue);
        STAILQ_CONCAT(&merge.rows, &queue);
    }
    HASH_ITER (hh, all, shown, next) {
        if (!shown->is_done)
            put_queue(&merge, shown, &queue);
        HASH_DEL(all, shown);
        free(shown);
    }
    STAILQ_CONCAT(&operation->rows, &merge.rows);
}

/* -------------------------------------------------------------------- operations */

bool mrt_desk_mutex_operate(struct mrt_agent *agent, struct mrt_operation *operation)
{
    struct mrt_desk_ticket *ticket, *next;
    uint64_t wanted = operation->fence, fence = 0;
    bool has_passed = wanted >= MRT_WAITING_NUMBER;
    if (operation->kind != MRT_OPERATION_REVOKE && operation->kind != MRT_OPERATION_BREAK)
        return false;
    HASH_ITER (hh, agent->desk.tickets, ticket, next) {
        struct mrt_desk_mutex *mutex = ticket->mutex;
        if (!mutex || ticket->is_leaving || strcmp(ticket->queue, operation->name) != 0)
            continue;
        bool holds = is_holder(mutex);
        bool is_meant = wanted > 0 && (wanted == mutex->number || wanted == fence_of(mutex));
        if (is_meant && holds && operation->kind == MRT_OPERATION_REVOKE) {
            mrt_desk_mutex_revoke(mutex);
            return true;
        }
        if (is_meant && operation->kind == MRT_OPERATION_BREAK && (holds || is_waiter(mutex))) {
            mrt_desk_mutex_break(mutex);
            return true;
        }
        /* The client that had the first fence of the agent's ticket has handed it on. */
        has_passed |= holds && !mrt_id_none(mrt_queue_ticket(mutex->queue, &fence)) && wanted > 0 &&
                      wanted == fence;
    }
    if (has_passed)
        operation->error = MORTISE_ENOTHELD;
    return has_passed;
}
