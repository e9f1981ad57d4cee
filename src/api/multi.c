/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several locks as one: all of them or none.
 *
 * They are acquired one after the other, in an order that is the same for every client: by the
 * store's address as the client was given it, then by name. So of several clients that want the
 * same locks, the one that holds the first is ahead of the others for all of them. No circle of
 * waiting can close if all clients spell the addresses alike. Of the two sides of a read/write
 * lock the writers' comes first, because its owner may then read as well.
 *
 * A client that waits for a lock holds those that sort before it, and nothing else. But free locks
 * can be acquired immediately: the first is acquired and those behind it are tried together, in the
 * hope that they are free, which takes one round trip for all of them. If one of these tries fails,
 * the locks behind it are released, and the call waits for that lock. A lock that had to be waited
 * for is likely to be in use again: in some later calls it is held before any lock behind it is
 * requested.
 *
 * While the call waits for a later lock, it may lose an earlier one, with the session or by an
 * operator. That lock and those behind it are then released and acquired again. The call succeeds
 * with all of them held, except those that have ended by their own max_hold_ms.
 *
 * A lock that is listed twice would wait for itself, unless its owner's second acquire
 * nests. Such a list is refused before anything is acquired.
 *
 * Threads: any. Between calls a lock remembers that it was in use, as a hint.
 */
#include "api/client.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* After a lock was in use, so many calls do not try the locks behind it, which keeps wasted tries
 * few. */
#define ALONE_CALLS 8

/* A lock, and its place in the caller's list. */
struct part {
    mortise_lock *lock;
    size_t place;
    struct mrt_call wait;
    mortise_hold hold;
    int error;
};

/* A call: its locks in order, and how far it has got. */
struct call {
    struct part *parts;
    size_t count, taken; /* all before it are held */
    mrt_time begun, deadline;
    bool try_only;
};

static int order(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    const mortise_lock *p = x->lock, *q = y->lock;
    int result = strcmp(mortise_url(p->client), mortise_url(q->client));
    if (result == 0)
        result = strcmp(mrt_queue_name(p->queue), mrt_queue_name(q->queue));
    if (result == 0)
        result = (p->weight < q->weight) - (p->weight > q->weight);
    return result ? result : (x->place > y->place) - (x->place < y->place);
}

static bool is_same_lock(const mortise_lock *a, const mortise_lock *b)
{
    return strcmp(mrt_queue_name(a->queue), mrt_queue_name(b->queue)) == 0 &&
           strcmp(mortise_url(a->client), mortise_url(b->client)) == 0;
}

/* Whether the holder of one of two handles of a lock may acquire the other as well. */
static bool nests(const mortise_lock *a, const mortise_lock *b)
{
    return a->queue == b->queue && a->owner == b->owner && !a->unowned && !b->unowned &&
           mrt_queue_recipe(a->queue)->reentrant;
}

/* Handles of one lock stand side by side; if any two of them differ, two neighbours do. */
static int check_repeated(const struct part *parts, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const mortise_lock *lock = parts[i].lock, *before = parts[i - 1].lock;
        if (is_same_lock(lock, before) && !nests(lock, before))
            return mrt_error(MORTISE_EDEADLOCK, "%s would be acquired twice, and wait for itself",
                             mortise_lock_name(lock));
    }
    return MORTISE_OK;
}

static int put_in_order(mortise_lock *const *locks, size_t count, struct part **result)
{
    struct part *parts = calloc(count, sizeof *parts);
    if (!parts)
        return MORTISE_ENOMEM;
    for (size_t i = 0; i < count; i++)
        parts[i] = (struct part){.lock = locks[i], .place = i};
    qsort(parts, count, sizeof *parts, order);
    int error = check_repeated(parts, count);
    if (error == MORTISE_OK)
        *result = parts;
    else
        free(parts);
    return error;
}

/* ------------------------------------------------------------------- rounds */

/* The end of the locks that are requested in one go: behind one that was in use, and before one
 * that nests, because it needs the hold that it nests in. */
static size_t round_end(const struct call *call)
{
    const struct part *parts = call->parts;
    size_t end = call->taken + 1;
    while (end < call->count && parts[end - 1].lock->contended_calls_left == 0 &&
           !is_same_lock(parts[end].lock, parts[end - 1].lock))
        end++;
    return end;
}

/* Requests the locks of one client together; returns where those of the next client begin. */
static size_t begin_some(const struct call *call, size_t from, size_t end)
{
    mortise_client *client = call->parts[from].lock->client;
    mrt_driver_enter(&client->driver);
    for (; from < end && call->parts[from].lock->client == client; from++) {
        struct part *part = &call->parts[from];
        bool try_only = call->try_only || from > call->taken,
             expect_free = part->lock->contended_calls_left == 0;
        if (!expect_free)
            part->lock->contended_calls_left--;
        mrt_lock_begin(part->lock, &part->wait, mrt_lock_owner(part->lock), try_only, expect_free);
    }
    mrt_driver_leave(&client->driver, call->deadline);
    return from;
}

static void end_one(struct part *part, mrt_time deadline)
{
    struct mrt_driver *driver = &part->lock->client->driver;
    mrt_driver_enter(driver);
    part->error = mrt_lock_wait(part->lock, &part->wait, deadline, &part->hold);
    mrt_driver_leave(driver, deadline);
}

static void give_back(const struct part *parts, size_t from, size_t end)
{
    for (size_t i = end; i > from; i--)
        if (parts[i - 1].error == MORTISE_OK)
            mortise_release(parts[i - 1].hold);
}

/* Whether its acquire has ended. A waiter that was woken competes for the lock first. */
static bool is_over(struct part *part, mrt_time deadline)
{
    struct mrt_driver *driver = &part->lock->client->driver;
    mrt_driver_enter(driver);
    mrt_engine_retry(driver->engine, &part->wait.waiter, mrt_time_now());
    bool over = part->wait.waiter.state == MRT_WAITER_DONE;
    mrt_driver_leave(driver, deadline);
    return over;
}

/* The error once more, with its particulars for this thread. */
static int report_error(const struct part *part)
{
    struct mrt_driver *driver = &part->lock->client->driver;
    mrt_error_clear();
    mrt_driver_enter(driver);
    int error = mrt_driver_outcome(driver, &part->wait.waiter);
    mrt_driver_leave_quietly(driver);
    return error;
}

/* When a try is given up. A call that does not wait has its client's time once for all locks. */
static mrt_time try_limit(const struct call *call, const struct part *part)
{
    mrt_time from = call->try_only ? call->begun : mrt_time_now();
    return mrt_time_min(call->deadline, mrt_time_add(from, part->lock->client->timeout));
}

/* Takes one lock more, or several. Nothing behind a lock is held while that one is waited for. */
static int take_some(struct call *call)
{
    struct part *parts = call->parts;
    size_t first = call->taken, end = round_end(call);
    for (size_t i = first; i < end;)
        i = begin_some(call, i, end);
    for (size_t i = first + 1; i < end; i++)
        end_one(&parts[i], try_limit(call, &parts[i]));
    if (!call->try_only && !is_over(&parts[first], call->deadline)) {
        parts[first].lock->contended_calls_left = ALONE_CALLS;
        give_back(parts, first + 1, end);
        end = first + 1;
    }
    end_one(&parts[first], call->try_only ? try_limit(call, &parts[first]) : call->deadline);
    while (call->taken < end && parts[call->taken].error == MORTISE_OK)
        call->taken++;
    if (call->taken == end)
        return MORTISE_OK;
    struct part *failed = &parts[call->taken];
    give_back(parts, call->taken + 1, end);
    failed->lock->contended_calls_left = ALONE_CALLS;
    return call->try_only || call->taken == first ? report_error(failed) : MORTISE_OK;
}

/* A hold that ended by its own max_hold_ms would only end again. */
static bool is_lost(const struct part *part)
{
    struct mrt_driver *driver = &part->lock->client->driver;
    const struct mrt_hold *hold = part->hold.slot;
    mrt_driver_enter(driver);
    mrt_time now = mrt_time_now();
    bool lost = now < hold->ends && mrt_hold_state(hold, now) == MORTISE_LOST;
    mrt_driver_leave_quietly(driver);
    return lost;
}

/* Releases the holds that were lost while the rest was acquired, and those behind them. */
static void drop_lost(struct call *call)
{
    size_t first = 0;
    while (first < call->taken && !is_lost(&call->parts[first]))
        first++;
    give_back(call->parts, first, call->taken);
    call->taken = first;
}

static bool complete(mortise_lock *const *locks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!locks[i])
            return false;
    return count > 0;
}

static int check_clients(const struct call *call)
{
    int error = MORTISE_OK;
    for (size_t i = 0; i < call->count && error == MORTISE_OK; i++)
        error = mrt_driver_check(&call->parts[i].lock->client->driver, true);
    return error;
}

static int acquire_in_order(struct call *call)
{
    int error = MORTISE_OK;
    char detail[MRT_ERROR_DETAIL_MAX];
    while (call->taken < call->count && error == MORTISE_OK) {
        error = take_some(call);
        if (call->taken == call->count)
            drop_lost(call);
    }
    if (error == MORTISE_OK)
        return error;
    mrt_error_copy_detail(detail);
    give_back(call->parts, 0, call->taken);
    return mrt_error(error, "%s", detail);
}

/* It is inside each of its clients until it has made its last release. */
static int acquire_inside(struct call *call)
{
    for (size_t i = 0; i < call->count; i++)
        mrt_lock_pin(call->parts[i].lock);
    int error = acquire_in_order(call);
    for (size_t i = 0; i < call->count; i++)
        mrt_lock_unpin(call->parts[i].lock);
    return error;
}

int mortise_acquire_all(mortise_lock *const *locks, size_t count, int64_t timeout_ms,
                        mortise_hold *holds)
{
    struct call call = {.count = count,
                        .begun = mrt_time_now(),
                        .deadline = MRT_TIME_NEVER,
                        .try_only = timeout_ms == 0};
    if (!locks || !holds || !complete(locks, count))
        return mrt_error(MORTISE_EINVALID, "acquire_all needs locks, and a place for each hold");
    int error = put_in_order(locks, count, &call.parts);
    if (error != MORTISE_OK)
        return error;
    if (timeout_ms > 0)
        call.deadline = mrt_time_add(call.begun, mrt_time_from_ms(timeout_ms));
    error = check_clients(&call);
    if (error == MORTISE_OK)
        error = acquire_inside(&call);
    for (size_t i = 0; error == MORTISE_OK && i < count; i++)
        holds[call.parts[i].place] = call.parts[i].hold;
    free(call.parts);
    return error;
}
