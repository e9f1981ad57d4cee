/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many of a semaphore's permits are in use. Each of the others is covered by a durable hold
 * that no client holds (api/detach.c), so stores and waiters need not know of this.
 *
 * The tokens of these holds are in the cell "NAME/permits", one line each: token, fence of its
 * ticket, permits. A client that changes the cell holds the mutex of that name, and writes with
 * the mutex's fence.
 *
 * Invariant: a line is written before its ticket is detached, and removed after it was adopted.
 * So the permits out of use can always be found. A line without a ticket (its writer died, or an
 * operator broke the ticket) is dropped by the next change: mortise_list shows which tickets exist.
 *
 * Threads: any, but not in a callback: the store is waited for.
 */
#include "api/client.h"
#include "base/assert.h"
#include "base/error.h"
#include "core/recipe.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SUFFIX "/permits"
#define LINES_MAX 32 /* a value has room for more */

struct line {
    char token[MORTISE_TOKEN_SIZE];
    uint64_t fence, permits;
    bool there;
};

/* A change under way. */
struct change {
    mortise_client *client;
    const char *name; /* of the semaphore */
    uint32_t most;
    char cell_name[MORTISE_NAME_MAX + sizeof SUFFIX];
    uint64_t version, fence; /* the cell's name; the mutex's name */
    struct line lines[LINES_MAX + 1];
    size_t count;
};

/* ----------------------------------------------------------------- the cell */

static void parse(struct change *change, const mortise_cell *cell)
{
    char text[MORTISE_VALUE_MAX + 1], *rest = text, *row;
    memcpy(text, cell->value, cell->size);
    text[cell->size] = '\0';
    while (change->count < LINES_MAX && (row = strsep(&rest, "\n"))) {
        struct line *line = &change->lines[change->count];
        *line = (struct line){.there = false};
        if (sscanf(row, "%63s %" SCNu64 " %" SCNu64, line->token, &line->fence, &line->permits) ==
            3)
            change->count++;
    }
}

static int note_detached(void *argument, const mortise_entry *entry)
{
    struct change *change = argument;
    for (size_t i = 0; entry->detached && i < change->count; i++)
        change->lines[i].there |= change->lines[i].fence == entry->fence;
    return 0;
}

static void drop(struct change *change, size_t at)
{
    memmove(&change->lines[at], &change->lines[at + 1],
            (--change->count - at) * sizeof change->lines[0]);
}

/* Reads which permits are out of use now. */
static int read_changes(struct change *change)
{
    mortise_cell cell;
    int error = mortise_cell_get(change->client, change->cell_name, &cell);
    if (error != MORTISE_OK)
        return error;
    change->version = cell.version;
    parse(change, &cell);
    error = mortise_list(change->client, change->name, note_detached, change);
    for (size_t i = change->count; i-- > 0;)
        if (!change->lines[i].there)
            drop(change, i);
    return error;
}

static int store(struct change *change)
{
    char text[MORTISE_VALUE_MAX];
    size_t length = 0;
    for (size_t i = 0; i < change->count; i++)
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "%s %" PRIu64 " %" PRIu64 "\n", change->lines[i].token,
                                   change->lines[i].fence, change->lines[i].permits);
    MRT_ASSERT(length < sizeof text);
    return mortise_cell_cas(change->client, change->cell_name, change->version, text, length,
                            change->fence, &change->version);
}

static uint64_t in_use(const struct change *change)
{
    uint64_t permits = change->most;
    for (size_t i = 0; i < change->count; i++)
        permits -= change->lines[i].permits < permits ? change->lines[i].permits : permits;
    return permits;
}

/* --------------------------------------------------------------- the change */

/* The ends of a handle and of a hold, which keep the particulars of `error`. */
static int free_handle(mortise_lock *lock, int error)
{
    char detail[MRT_ERROR_DETAIL_MAX];
    mrt_error_copy_detail(detail);
    mortise_lock_free(lock);
    return mrt_error(error, "%s", detail);
}

static int give_back(mortise_hold hold, int error)
{
    char detail[MRT_ERROR_DETAIL_MAX];
    mrt_error_copy_detail(detail);
    mortise_release(hold);
    return mrt_error(error, "%s", detail);
}

/* A handle that takes so many permits together. */
static int handle(const struct change *change, uint64_t permits, mortise_lock **lock)
{
    const mortise_lock_options options = {.size = sizeof options, .permits = (uint32_t)permits};
    return mortise_semaphore_new(change->client, change->name, change->most, &options, lock);
}

/* Detaches a hold, and adds its line; the hold ends in any case. */
static int put_away(struct change *change, mortise_hold hold, uint64_t fence, uint64_t permits)
{
    struct line *line = &change->lines[change->count];
    *line = (struct line){.fence = fence, .permits = permits};
    int error = mrt_token_new(hold, line->token);
    change->count++;
    if (error == MORTISE_OK)
        error = store(change);
    if (error == MORTISE_OK)
        return mrt_hold_detach(hold, line->token);
    return give_back(hold, error);
}

static int lower(struct change *change, uint64_t by, int64_t timeout_ms)
{
    mortise_lock *lock;
    mortise_hold hold;
    if (change->count == LINES_MAX)
        return mrt_error(MORTISE_EFULL, "%s was lowered in too many steps", change->name);
    int error = handle(change, by, &lock);
    if (error != MORTISE_OK)
        return error;
    error = mortise_acquire_for(lock, timeout_ms, &hold);
    if (error == MORTISE_EBUSY)
        error = MORTISE_ETIMEOUT;
    if (error == MORTISE_OK)
        error = put_away(change, hold, mortise_hold_fence(hold), by);
    return free_handle(lock, error);
}

/* Brings back the newest line's permits, or `by` of them; *done: how many. */
static int bring_back(struct change *change, uint64_t by, uint64_t *done)
{
    const struct line line = change->lines[change->count - 1];
    mortise_lock *lock;
    mortise_hold hold;
    int error = handle(change, line.permits, &lock);
    if (error != MORTISE_OK)
        return error;
    error = mortise_adopt(lock, line.token, &hold);
    change->count--;
    *done = line.permits < by ? line.permits : by;
    if (error == MORTISE_OK && line.permits > by) {
        error = mrt_hold_lighten(hold, line.permits - by);
        if (error == MORTISE_OK)
            error = put_away(change, hold, line.fence, line.permits - by);
    } else if (error == MORTISE_OK) {
        error = mortise_release(hold);
    }
    error = free_handle(lock, error);
    return error == MORTISE_ENOTHELD ? MORTISE_OK
                                     : error; /* broken since: its permits are back in use */
}

static int raise_by(struct change *change, uint64_t by)
{
    int error = MORTISE_OK;
    while (error == MORTISE_OK && by > 0 && change->count > 0) {
        uint64_t done = 0;
        error = bring_back(change, by, &done);
        by -= done;
    }
    return error == MORTISE_OK ? store(change) : error;
}

/* 0, and the facts that are known without a request. */
static int prepare(mortise_lock *semaphore, struct change *change)
{
    memset(change, 0, sizeof *change);
    const struct mrt_recipe *recipe = semaphore ? mrt_queue_recipe(semaphore->queue) : NULL;
    if (!recipe || strcmp(recipe->kind, mrt_semaphore(1).kind) != 0)
        return mrt_error(MORTISE_EINVALID, "not a semaphore");
    change->client = semaphore->client;
    change->name = mortise_lock_name(semaphore);
    change->most = (uint32_t)recipe->capacity;
    snprintf(change->cell_name, sizeof change->cell_name, "%s" SUFFIX, change->name);
    const struct mrt_store_ops *ops = change->client->driver.ops;
    if (!ops->cells || !ops->capabilities.detach)
        return mrt_error(MORTISE_ENOTSUPPORTED, "the store \"%s\" has no changing permits",
                         ops->scheme);
    return MORTISE_OK;
}

int mortise_semaphore_get_permits(mortise_lock *semaphore, uint32_t *permits)
{
    struct change change;
    if (!permits)
        return mrt_error(MORTISE_EINVALID, "there is no place for the number");
    int error = prepare(semaphore, &change);
    if (error != MORTISE_OK)
        return error;
    mrt_lock_pin(semaphore);
    error = read_changes(&change);
    mrt_lock_unpin(semaphore);
    if (error == MORTISE_OK)
        *permits = (uint32_t)in_use(&change);
    return error;
}

static int set(struct change *change, uint32_t permits, int64_t timeout_ms)
{
    int error = read_changes(change);
    if (error != MORTISE_OK)
        return error;
    uint64_t now = in_use(change);
    if (permits == now)
        return MORTISE_OK;
    return permits < now ? lower(change, now - permits, timeout_ms)
                         : raise_by(change, permits - now);
}

int mortise_semaphore_set_permits(mortise_lock *semaphore, uint32_t permits, int64_t timeout_ms)
{
    struct change change;
    mortise_lock *mutex;
    mortise_hold hold;
    int error = prepare(semaphore, &change);
    if (error == MORTISE_OK && permits > change.most)
        error =
            mrt_error(MORTISE_EINVALID, "%u permits of %u cannot be in use", permits, change.most);
    if (error != MORTISE_OK)
        return error;
    MRT_ASSERT(change.client);
    /* The wait for other changes is at least as long as that for the store. */
    mrt_time least = change.client->timeout / MRT_MILLISECOND;
    error = mortise_mutex_new(change.client, change.cell_name, NULL, &mutex);
    if (error != MORTISE_OK)
        return error;
    mrt_lock_pin(semaphore);
    error = mortise_acquire_for(mutex, timeout_ms >= 0 && timeout_ms < least ? least : timeout_ms,
                                &hold);
    if (error == MORTISE_OK) {
        change.fence = mortise_hold_fence(hold);
        error = give_back(hold, set(&change, permits, timeout_ms));
    }
    error = free_handle(mutex, error);
    mrt_lock_unpin(semaphore);
    return error;
}
