/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells: a value with a version; a write names the version it changes.
 *
 * Threads: any, but not in a callback: the store is waited for.
 */
#include "api/client.h"
#include "base/backoff.h"
#include "base/error.h"
#include "base/id.h"

#include <string.h>

#define PAUSE_FIRST (MRT_MILLISECOND / 2)
#define PAUSE_MOST (128 * MRT_MILLISECOND)

/* Checks that the store can be queried now. 0 and the full name, or an error. */
static int prepare(mortise_client *client, const char *name, char full[MRT_FULL_NAME_SIZE])
{
    if (!client)
        return mrt_error(MORTISE_EINVALID, "a cell needs a client");
    int error = mrt_driver_check(&client->driver, true);
    if (error == MORTISE_OK && !client->driver.ops->cells)
        error = mrt_error(MORTISE_ENOTSUPPORTED, "this store keeps no cells");
    return error == MORTISE_OK ? mrt_client_full_name(client, name, full) : error;
}

static mrt_time patience(const mortise_client *client)
{
    return mrt_time_add(mrt_time_now(), client->timeout);
}

static int read_cell(mortise_client *client, const char *full, mrt_time deadline,
                     mortise_cell *cell)
{
    struct mrt_answer answer = {0};
    const struct mrt_command wanted = {.type = MRT_CELL_GET, .queue = full};
    int error = mrt_client_ask(client, &wanted, deadline, &answer);
    if (error != MORTISE_OK)
        return error;
    cell->version = answer.version;
    cell->fence = answer.fence;
    cell->size = answer.value_size;
    memcpy(cell->value, answer.value, answer.value_size);
    return MORTISE_OK;
}

static int write_cell(mortise_client *client, struct mrt_command *wanted, mrt_time deadline,
                      uint64_t *new_version)
{
    struct mrt_answer answer = {0};
    wanted->type = MRT_CELL_SET;
    int error = mrt_client_ask(client, wanted, deadline, &answer);
    if (error == MORTISE_OK && new_version)
        *new_version = answer.version;
    return error;
}

int mortise_cell_get(mortise_client *client, const char *name, mortise_cell *cell)
{
    char full[MRT_FULL_NAME_SIZE];
    if (!cell)
        return mrt_error(MORTISE_EINVALID, "there is no place for the cell");
    int error = prepare(client, name, full);
    return error == MORTISE_OK ? read_cell(client, full, patience(client), cell) : error;
}

int mortise_cell_cas(mortise_client *client, const char *name, uint64_t version, const void *value,
                     size_t size, uint64_t fence, uint64_t *new_version)
{
    char full[MRT_FULL_NAME_SIZE];
    int error = prepare(client, name, full);
    if (error == MORTISE_OK && size > 0 && !value)
        error = mrt_error(MORTISE_EINVALID, "the value is NULL, and its size %zu", size);
    if (error == MORTISE_OK && size > MORTISE_VALUE_MAX)
        error = mrt_error(MORTISE_EINVALID, "a value has at most %d bytes", MORTISE_VALUE_MAX);
    if (error != MORTISE_OK)
        return error;
    struct mrt_command wanted = {.queue = full,
                                 .version = version,
                                 .fence = fence,
                                 .value = size > 0 ? value : "",
                                 .value_size = size};
    return write_cell(client, &wanted, patience(client), new_version);
}

int mortise_cell_delete(mortise_client *client, const char *name, uint64_t version, uint64_t fence)
{
    char full[MRT_FULL_NAME_SIZE];
    int error = prepare(client, name, full);
    struct mrt_command wanted = {.queue = full, .version = version, .fence = fence};
    return error == MORTISE_OK ? write_cell(client, &wanted, patience(client), NULL) : error;
}

static mrt_time pause_after(struct mrt_id *chance, unsigned conflicts)
{
    chance->low = chance->low * UINT64_C(6364136223846793005) + chance->high; /* Knuth's */
    return mrt_backoff_spread(mrt_backoff(PAUSE_FIRST, PAUSE_MOST, conflicts), chance->low >> 33);
}

struct change {
    mortise_cell_change apply;
    void *argument;
    uint64_t fence;
};

/* Reads, changes and writes until nobody else wrote meanwhile. `chance`: of the pauses. */
static int update(mortise_client *client, const char *full, const struct change *change,
                  mrt_time deadline, struct mrt_id *chance)
{
    int error = MORTISE_OK;
    for (unsigned conflicts = 0; error == MORTISE_OK; conflicts++) {
        mortise_cell cell;
        error = read_cell(client, full, deadline, &cell);
        if (error == MORTISE_OK)
            error = change->apply(change->argument, &cell);
        if (error == MORTISE_OK && cell.size > MORTISE_VALUE_MAX)
            error = mrt_error(MORTISE_EINVALID, "a value has at most %d bytes", MORTISE_VALUE_MAX);
        if (error != MORTISE_OK)
            break;
        struct mrt_command wanted = {.queue = full,
                                     .version = cell.version,
                                     .fence = change->fence,
                                     .value = cell.value,
                                     .value_size = cell.size};
        error = write_cell(client, &wanted, deadline, NULL);
        if (error != MORTISE_ECONFLICT)
            break;
        mrt_time again = mrt_time_now() + pause_after(chance, conflicts);
        error = again < deadline ? MORTISE_OK : MORTISE_ETIMEOUT;
        if (error == MORTISE_OK)
            mrt_driver_sleep_until(&client->driver, again);
    }
    return error;
}

int mortise_cell_update(mortise_client *client, const char *name, mortise_cell_change change,
                        void *argument, uint64_t fence, int64_t timeout_ms)
{
    char full[MRT_FULL_NAME_SIZE];
    int error = prepare(client, name, full);
    struct mrt_id chance = {1, 1};
    if (error == MORTISE_OK && !change)
        error = mrt_error(MORTISE_EINVALID, "mortise_cell_update needs a function");
    if (error == MORTISE_OK && !mrt_id_random(&chance))
        error = mrt_error(MORTISE_EINTERNAL, "the system gives no entropy");
    if (error != MORTISE_OK)
        return error;
    mrt_time deadline = timeout_ms < 0 ? MRT_TIME_NEVER
                                       : mrt_time_add(mrt_time_now(), mrt_time_from_ms(timeout_ms));
    const struct change wanted = {change, argument, fence};
    mrt_driver_pin(&client->driver);
    error = update(client, full, &wanted, deadline, &chance);
    mrt_driver_unpin(&client->driver);
    return error;
}

/* ------------------------------------------------------------------ under a hold */

static int fence_of(mortise_hold hold, uint64_t *fence)
{
    int error = mrt_hold_fence(hold, fence);
    if (error == MORTISE_OK && *fence == 0)
        error = mrt_error(MORTISE_ENOTSUPPORTED, "the store of this hold gives no fences, so the "
                                                 "cell could not refuse a superseded holder");
    return error;
}

int mortise_cell_cas_held(mortise_client *client, const char *name, uint64_t version,
                          const void *value, size_t size, mortise_hold hold, uint64_t *new_version)
{
    uint64_t fence;
    int error = fence_of(hold, &fence);
    return error ? error : mortise_cell_cas(client, name, version, value, size, fence, new_version);
}

int mortise_cell_delete_held(mortise_client *client, const char *name, uint64_t version,
                             mortise_hold hold)
{
    uint64_t fence;
    int error = fence_of(hold, &fence);
    return error ? error : mortise_cell_delete(client, name, version, fence);
}

int mortise_cell_update_held(mortise_client *client, const char *name, mortise_cell_change change,
                             void *argument, mortise_hold hold, int64_t timeout_ms)
{
    uint64_t fence;
    int error = fence_of(hold, &fence);
    return error ? error : mortise_cell_update(client, name, change, argument, fence, timeout_ms);
}
