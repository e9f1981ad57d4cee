/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durable holds: the token, and the two calls around core/detach.c.
 *
 * A token is the identity that the ticket has while it is nobody's, drawn from the system's
 * entropy, and the fence of its last hold: "0123...cdef-4711".
 */
#include "api/client.h"
#include "base/assert.h"
#include "base/error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ID_DIGITS (MRT_ID_TEXT_SIZE - 1)

static void write_token(char token[MORTISE_TOKEN_SIZE], struct mrt_id id, uint64_t fence)
{
    char digits[MRT_ID_TEXT_SIZE];
    mrt_id_format(id, digits);
    snprintf(token, MORTISE_TOKEN_SIZE, "%s-%" PRIu64, digits, fence);
}

static bool read_token(const char *token, struct mrt_id *id, uint64_t *fence)
{
    char digits[MRT_ID_TEXT_SIZE], *end = NULL;
    if (strlen(token) < sizeof digits || token[ID_DIGITS] != '-' || token[sizeof digits] < '0' ||
        token[sizeof digits] > '9')
        return false;
    memcpy(digits, token, ID_DIGITS);
    digits[ID_DIGITS] = '\0';
    errno = 0;
    *fence = strtoull(token + sizeof digits, &end, 10);
    return errno == 0 && *end == '\0' && mrt_id_parse(digits, id) && !mrt_id_none(*id);
}

static mortise_client *client_of(const struct mrt_hold *slot)
{
    return mrt_engine_host(slot->engine);
}

/* Whether the store of this client keeps detached tickets, and the caller may wait for it now. */
static int check(mortise_client *client)
{
    struct mrt_driver *driver = &client->driver;
    int error = mrt_driver_check(driver, true);
    if (error == MORTISE_OK && !driver->ops->capabilities.detach)
        error = mrt_error(MORTISE_ENOTSUPPORTED, "the store \"%s\" has no durable holds",
                          driver->ops->scheme);
    return error;
}

/* Whether it can detach locks of this kind. */
static int check_kind(mortise_client *client, const struct mrt_queue *queue)
{
    if (!client->driver.ops->claims_end || !mrt_queue_recipe(queue)->claim)
        return MORTISE_OK;
    return mrt_error(MORTISE_ENOTSUPPORTED, "the store \"%s\" has no durable exclusive locks",
                     client->driver.ops->scheme);
}

int mrt_token_new(mortise_hold hold, char token[MORTISE_TOKEN_SIZE])
{
    struct mrt_id detached_id;
    if (!mrt_id_random(&detached_id))
        return mrt_error(MORTISE_ENOTSUPPORTED, "the system gives no entropy");
    write_token(token, detached_id, mortise_hold_fence(hold));
    return MORTISE_OK;
}

int mrt_hold_detach(mortise_hold hold, const char *token)
{
    struct mrt_hold *slot = hold.slot;
    struct mrt_driver *driver = &client_of(slot)->driver;
    struct mrt_call wait = {.kind = MRT_CALL_BLOCKING, .waiter.deadline = MRT_TIME_NEVER};
    struct mrt_id detached_id = {0, 0};
    uint64_t fence;
    MRT_ASSERT(read_token(token, &detached_id, &fence));
    mrt_driver_enter(driver);
    uint64_t caller = slot->owner & MRT_OWNER_IS_THREAD ? mrt_thread_owner() : 0;
    mrt_time now = mrt_time_now(), deadline = mrt_time_add(now, client_of(slot)->timeout);
    struct mrt_hold_host *host = slot->host;
    int lost_fd = host->has_lost_fd ? host->lost_fd : -1, error = MORTISE_OK;
    if (mrt_hold_live(slot, hold.generation))
        error = check_kind(client_of(slot), slot->queue);
    if (error == MORTISE_OK)
        error = mrt_engine_detach(driver->engine, slot, hold.generation, caller, detached_id,
                                  &wait.waiter, now);
    if (error == MORTISE_OK) {
        host->has_lost_fd = false;
        mrt_driver_wait(driver, &wait, deadline, MORTISE_EUNKNOWN);
        error = mrt_driver_error(driver, wait.waiter.error);
    } else {
        lost_fd = -1;
    }
    mrt_hold_error(slot, error);
    mrt_driver_leave(driver, deadline);
    if (lost_fd >= 0)
        close(lost_fd);
    return error;
}

int mortise_detach(mortise_hold hold, char token[MORTISE_TOKEN_SIZE])
{
    int error = mrt_client_check_hold(hold);
    if (error != MORTISE_OK)
        return error;
    if (!token)
        return mrt_error(MORTISE_EINVALID, "detach needs a place for the token");
    error = check(client_of(hold.slot));
    if (error == MORTISE_OK)
        error = mrt_token_new(hold, token);
    return error == MORTISE_OK ? mrt_hold_detach(hold, token) : error;
}

int mortise_adopt(mortise_lock *lock, const char *token, mortise_hold *hold)
{
    struct mrt_call wait = {.kind = MRT_CALL_BLOCKING};
    struct mrt_waiter *waiter = &wait.waiter;
    if (!lock || !token || !hold)
        return mrt_error(MORTISE_EINVALID, "adopt needs a lock, a token and a place for the hold");
    mortise_client *client = lock->client;
    struct mrt_driver *driver = &client->driver;
    int error = check(client);
    if (error == MORTISE_OK)
        error = check_kind(client, lock->queue);
    if (error != MORTISE_OK)
        return error;
    if (!read_token(token, &waiter->adopts, &waiter->last_fence))
        return mrt_error(MORTISE_EINVALID,
                         "the text is no token: give the one that the detach returned");
    waiter->owner = mrt_lock_owner(lock);
    mrt_lock_fill_wait(lock, &wait);
    waiter->deadline = MRT_TIME_NEVER;
    mrt_driver_enter(driver);
    mrt_time now = mrt_time_now(), deadline = mrt_time_add(now, client->timeout);
    TAILQ_INSERT_TAIL(&lock->waits, &wait, handle_link);
    mrt_engine_adopt(driver->engine, lock->queue, waiter, now);
    error = mrt_lock_wait(lock, &wait, deadline, hold);
    mrt_driver_leave(driver, deadline);
    return error;
}
