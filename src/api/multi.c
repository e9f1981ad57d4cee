/*
 * Several locks as one: all of them or none.
 *
 * They are acquired one after the other in an order that is the same for everybody: by
 * the store's address as the client was given it, then by name. So of those who want the
 * same ones, whoever has the first is ahead of the others for all, and no circle of waiting
 * can close, if all spell the addresses alike. Of the two sides of a read/write lock the
 * heavier comes first, for its owner may then read as well.
 *
 * A lock that is there twice would wait for itself, unless its owner's second acquire
 * nests: that is refused before anything is acquired.
 *
 * Threads: any; there is no state between calls.
 */
#include "api/client.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* A lock, and its place in the caller's list. */
struct part {
    mortise_lock *lock;
    size_t place;
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

/* Whether who has acquired one of two handles of a lock may acquire the other as well. */
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
        parts[i] = (struct part){locks[i], i};
    qsort(parts, count, sizeof *parts, order);
    int error = check_repeated(parts, count);
    if (error == MORTISE_OK)
        *result = parts;
    else
        free(parts);
    return error;
}

static int acquire_one(mortise_lock *lock, int64_t timeout_ms, int64_t deadline_ns,
                       mortise_hold *hold)
{
    if (timeout_ms == 0)
        return mortise_try_acquire(lock, hold);
    return mortise_acquire_until(lock, deadline_ns, hold);
}

static bool complete(mortise_lock *const *locks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!locks[i])
            return false;
    return count > 0;
}

int mortise_acquire_all(mortise_lock *const *locks, size_t count, int64_t timeout_ms,
                        mortise_hold *holds)
{
    struct part *parts = NULL;
    if (!locks || !holds || !complete(locks, count))
        return mrt_error(MORTISE_EINVALID, "acquire_all needs locks, and a place for each hold");
    int error = put_in_order(locks, count, &parts);
    if (error != MORTISE_OK)
        return error;
    mrt_time deadline = MRT_TIME_NEVER;
    if (timeout_ms >= 0)
        deadline = mrt_time_add(mrt_time_now(), mrt_time_from_ms(timeout_ms));
    size_t taken = 0;
    while (taken < count && error == MORTISE_OK) {
        const struct part *part = &parts[taken];
        error = acquire_one(part->lock, timeout_ms, deadline, &holds[part->place]);
        taken += error == MORTISE_OK;
    }
    if (error != MORTISE_OK) {
        char detail[MRT_ERROR_DETAIL_MAX];
        mrt_error_copy_detail(detail);
        while (taken > 0)
            mortise_release(holds[parts[--taken].place]);
        mrt_error(error, "%s", detail);
    }
    free(parts);
    return error;
}
