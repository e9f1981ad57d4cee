/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds: releasing, and the queries that a hold answers. Every function begins by
 * comparing the generation, so a stale value is found before anything is believed.
 */
#include "api/client.h"
#include "api/slot.h"
#include "base/error.h"
#include "core/recipe.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Of a hold that was checked. */
static mortise_client *client_of(mortise_hold hold)
{
    return mrt_engine_host(((const struct mrt_hold *)hold.slot)->engine);
}

__attribute__((cold)) static int refuse(mortise_hold hold)
{
    return mrt_error(MORTISE_ENOTHELD,
                     hold.slot ? "the client of this hold was closed" : "an empty hold");
}

/* Whether a call on this hold may be made now. `blocking`: not in a callback. */
static inline int check(mortise_hold hold, bool blocking)
{
    if (!hold.slot || !mrt_slot_is_open(hold))
        return refuse(hold);
    return mrt_driver_check(&client_of(hold)->driver, blocking);
}

int mrt_client_check_hold(mortise_hold hold)
{
    return check(hold, true);
}

/* Enters the client of a hold that is live, and gives its slot; else NULL and *error, not
   entered. */
static struct mrt_hold *enter_live(mortise_hold hold, int *error)
{
    *error = check(hold, false);
    if (*error != MORTISE_OK)
        return NULL;
    struct mrt_driver *driver = &client_of(hold)->driver;
    mrt_driver_enter(driver);
    struct mrt_hold *slot = hold.slot;
    if (mrt_hold_live(slot, hold.generation))
        return slot;
    mrt_driver_leave_quietly(driver);
    *error = MORTISE_ENOTHELD;
    return NULL;
}

/* The same for a question whose answer has no room for an error. */
static struct mrt_hold *enter(mortise_hold hold)
{
    int error;
    return enter_live(hold, &error);
}

static void leave(mortise_hold hold)
{
    mrt_driver_leave_quietly(&client_of(hold)->driver);
}

/* After a call whose command for the store nobody waits for. */
static void leave_attending(mortise_hold hold)
{
    mrt_reader_recall(&client_of(hold)->driver); /* the loop reads the answer without delay */
    mrt_driver_leave(&client_of(hold)->driver, MRT_TIME_NEVER);
}

/* The owner that the engine compares with the hold's; 0: it compares none. */
static uint64_t caller_of(const struct mrt_hold *slot)
{
    return slot->owner & MRT_OWNER_IS_THREAD ? mrt_thread_owner() : 0;
}

int mrt_hold_error(const struct mrt_hold *slot, int error)
{
    const mortise_client *client = mrt_engine_host(slot->engine);
    if (error != MORTISE_ENOTOWNER)
        return error;
    return mrt_error(error,
                     "%s is held by thread %" PRIu64 " of this client, and this is thread %" PRIu64
                     ": release it there, or give an owner id or MORTISE_OWNER_NOBODY",
                     mrt_queue_name(slot->queue) + client->prefix_length,
                     slot->owner & ~MRT_OWNER_IS_THREAD, mrt_thread_owner() & ~MRT_OWNER_IS_THREAD);
}

/* Whether it may be a hold of this driver's client. */
static bool is_of(const struct mrt_driver *driver, mortise_hold hold)
{
    return hold.slot && mrt_slot_is_open(hold) && &client_of(hold)->driver == driver;
}

/* Enters the client of what may be a hold, for a call that changes it, and gives its driver; else
   NULL and *error. */
static struct mrt_driver *enter_to_change(mortise_hold hold, int *error)
{
    *error = check(hold, false);
    if (*error != MORTISE_OK)
        return NULL;
    struct mrt_driver *driver = &client_of(hold)->driver;
    mrt_driver_enter(driver);
    return driver;
}

/* Between enter and leave. */
static int release(struct mrt_driver *driver, mortise_hold hold)
{
    struct mrt_hold *slot = hold.slot;
    struct mrt_hold_host *host = slot->host;
    bool nested = mrt_hold_nested(slot, hold.generation);
    mrt_time now = nested ? 0 : mrt_time_now();
    int error = mrt_engine_release(driver->engine, slot, hold.generation, caller_of(slot), now);
    if (error == MORTISE_ENOTHELD || mrt_hold_live(slot, hold.generation) || !host->has_lost_fd)
        return mrt_hold_error(slot, error);
    close(host->lost_fd); /* nobody has the slot again yet: the mutex is held */
    host->has_lost_fd = false;
    return error;
}

int mortise_release(mortise_hold hold)
{
    int error;
    struct mrt_driver *driver = enter_to_change(hold, &error);
    if (!driver)
        return error;
    error = release(driver, hold);
    mrt_driver_leave(driver, MRT_TIME_NEVER);
    return error;
}

/* Releases of neighbouring holds of one client are sent to the store together. */
int mortise_release_all(const mortise_hold *holds, size_t count)
{
    int error = MORTISE_OK, result;
    if (!holds && count > 0)
        return mrt_error(MORTISE_EINVALID, "release_all needs holds");
    for (size_t i = 0; i < count; i++) {
        struct mrt_driver *driver = enter_to_change(holds[i], &result);
        if (driver)
            result = release(driver, holds[i]);
        while (driver && i + 1 < count && is_of(driver, holds[i + 1])) {
            int next = release(driver, holds[++i]);
            result = result ? result : next;
        }
        if (driver)
            mrt_driver_leave(driver, MRT_TIME_NEVER);
        error = error ? error : result;
    }
    return error;
}

/* `kind`: the kind of lock that it must be; NULL: any. */
static int lighten(mortise_hold hold, const char *kind, uint64_t weight)
{
    int error;
    struct mrt_driver *driver = enter_to_change(hold, &error);
    if (!driver)
        return error;
    struct mrt_hold *slot = hold.slot;
    if (!mrt_hold_live(slot, hold.generation))
        error = MORTISE_ENOTHELD;
    else if (kind && strcmp(mrt_queue_recipe(slot->queue)->kind, kind) != 0)
        error = mrt_error(MORTISE_EINVALID, "not a hold of a %s lock", kind);
    else
        error = mrt_engine_lighten(driver->engine, slot, hold.generation, caller_of(slot), weight,
                                   mrt_time_now());
    mrt_hold_error(slot, error);
    mrt_driver_leave(driver, MRT_TIME_NEVER);
    return error;
}

int mortise_downgrade(mortise_hold hold)
{
    return lighten(hold, mrt_read_write.kind, MRT_READER);
}

int mrt_hold_lighten(mortise_hold hold, uint64_t weight)
{
    return lighten(hold, NULL, weight);
}

uint64_t mortise_hold_fence(mortise_hold hold)
{
    const struct mrt_hold *slot = enter(hold);
    uint64_t fence = slot ? slot->fence : 0;
    if (slot)
        leave(hold);
    return fence;
}

int mrt_hold_fence(mortise_hold hold, uint64_t *fence)
{
    int error;
    const struct mrt_hold *slot = enter_live(hold, &error);
    if (!slot)
        return error;
    bool lost = mrt_hold_state(slot, mrt_time_now()) == MORTISE_LOST;
    *fence = slot->fence;
    leave(hold);
    return lost ? MORTISE_ELOST : MORTISE_OK;
}

mortise_state mortise_hold_state(mortise_hold hold)
{
    const struct mrt_hold *slot = enter(hold);
    mortise_state state = slot ? mrt_hold_state(slot, mrt_time_now()) : MORTISE_RELEASED;
    if (slot)
        leave(hold);
    return state;
}

int mortise_is_held(mortise_hold hold)
{
    mortise_state state = mortise_hold_state(hold);
    return state == MORTISE_HELD || state == MORTISE_SUSPENDED;
}

int64_t mortise_hold_remaining_ms(mortise_hold hold)
{
    const struct mrt_hold *slot = enter(hold);
    if (!slot)
        return 0;
    mrt_time until = mrt_hold_valid_until(slot);
    leave(hold);
    if (until == MRT_TIME_NEVER)
        return INT64_MAX;
    mrt_time left = until - mrt_time_now();
    return left > 0 ? left / MRT_MILLISECOND : 0;
}

uint32_t mortise_hold_count(mortise_hold hold)
{
    const struct mrt_hold *slot = enter(hold);
    uint32_t count = slot ? slot->count : 0;
    if (slot)
        leave(hold);
    return count;
}

uint64_t mortise_hold_owner(mortise_hold hold)
{
    const struct mrt_hold *slot = enter(hold);
    uint64_t owner = slot ? slot->owner & ~MRT_OWNER_IS_THREAD : 0;
    if (slot)
        leave(hold);
    return owner;
}

const char *mortise_hold_name(mortise_hold hold)
{
    const struct mrt_hold *slot = enter(hold);
    if (!slot)
        return "";
    const char *name = mrt_queue_name(slot->queue) + client_of(hold)->prefix_length;
    leave(hold);
    return name;
}

/* Of a hold that is not lost; leaves its client. */
static int read_node(struct mrt_driver *driver, const struct mrt_hold *slot,
                     char node[MORTISE_NODE_SIZE])
{
    uint64_t number = 0;
    struct mrt_id ticket = mrt_hold_ticket(slot, &number);
    int length = snprintf(node, MORTISE_NODE_SIZE, "%s", mrt_queue_name(slot->queue));
    bool found = true;
    if (driver->ops->node) {
        mrt_driver_borrow_store(driver);
        found = driver->ops->node(driver->store, ticket, node);
        mrt_driver_give_back_store(driver);
    } else if (number > 0) {
        snprintf(node + length, MORTISE_NODE_SIZE - (size_t)length, " %" PRIu64, number);
    }
    mrt_driver_leave(driver, MRT_TIME_NEVER);
    return found ? MORTISE_OK : MORTISE_ELOST;
}

int mortise_hold_node(mortise_hold hold, char *text, size_t size)
{
    char node[MORTISE_NODE_SIZE];
    int error = check(hold, true);
    if (error != MORTISE_OK)
        return error;
    struct mrt_driver *driver = &client_of(hold)->driver;
    if (!driver->ops->capabilities.fence)
        return mrt_error(MORTISE_ENOTSUPPORTED, "the store \"%s\" keeps no tickets",
                         driver->ops->scheme);
    const struct mrt_hold *slot = enter_live(hold, &error);
    if (!slot)
        return error;
    if (!slot->ticket) {
        leave(hold);
        return MORTISE_ELOST;
    }
    error = read_node(driver, slot, node);
    size_t length = strlen(node);
    if (error == MORTISE_OK && (!text || length >= size))
        return mrt_error(MORTISE_EINVALID, "the node of a hold takes %zu bytes", length + 1);
    if (error == MORTISE_OK)
        memcpy(text, node, length + 1);
    return error;
}

int mortise_verify(mortise_hold hold, int64_t timeout_ms)
{
    int error = check(hold, true);
    if (error != MORTISE_OK)
        return error;
    struct mrt_driver *driver = &client_of(hold)->driver;
    struct mrt_hold *slot = enter_live(hold, &error);
    if (!slot)
        return error;
    struct mrt_call wait = {.kind = MRT_CALL_BLOCKING, .waiter.deadline = MRT_TIME_NEVER};
    mrt_time now = mrt_time_now();
    mrt_engine_verify(driver->engine, slot, &wait.waiter, now);
    mrt_time deadline =
        timeout_ms < 0 ? MRT_TIME_NEVER : mrt_time_add(now, mrt_time_from_ms(timeout_ms));
    mrt_driver_wait(driver, &wait, deadline, MORTISE_ETIMEOUT);
    mrt_driver_leave(driver, deadline);
    return wait.waiter.error;
}

/* Makes sure that a loss is reported in time. The loss of a hold that no clock can end comes from
 * the store. */
static int tell_in_time(const struct mrt_hold *slot)
{
    if (!slot->ticket || mrt_hold_valid_until(slot) == MRT_TIME_NEVER)
        return MORTISE_OK;
    return mrt_tell_in_time(&((mortise_client *)mrt_engine_host(slot->engine))->driver);
}

int mortise_on_lost(mortise_hold hold, mortise_state_callback callback, void *argument)
{
    int error;
    struct mrt_hold *slot = enter_live(hold, &error);
    if (!slot)
        return error;
    error = slot->ticket ? MORTISE_OK : MORTISE_ELOST;
    if (error == MORTISE_OK && callback)
        error = tell_in_time(slot);
    if (error == MORTISE_OK) {
        struct mrt_hold_host *host = slot->host;
        host->callback = callback;
        host->argument = argument;
    }
    mrt_engine_attend(slot);
    leave_attending(hold);
    return error;
}

int mortise_on_revoke(mortise_hold hold, mortise_revoke_callback callback, void *argument)
{
    int error;
    struct mrt_hold *slot = enter_live(hold, &error);
    if (!slot)
        return error;
    struct mrt_hold_host *host = slot->host;
    error = slot->ticket ? MORTISE_OK : MORTISE_ELOST;
    host->revoke_callback = callback;
    host->revoke_argument = argument;
    mrt_engine_listen(slot, callback != NULL);
    leave_attending(hold);
    return error;
}

int mortise_lost_fd(mortise_hold hold)
{
    int error;
    struct mrt_hold *slot = enter_live(hold, &error);
    if (!slot)
        return error;
    struct mrt_hold_host *host = slot->host;
    bool in_time = tell_in_time(slot) == MORTISE_OK;
    if (in_time && !host->has_lost_fd) {
        host->lost_fd = eventfd(slot->ticket ? 0 : 1, EFD_CLOEXEC | EFD_NONBLOCK);
        host->has_lost_fd = host->lost_fd >= 0;
    }
    int fd = host->has_lost_fd ? host->lost_fd : -1;
    mrt_engine_attend(slot);
    leave_attending(hold);
    return in_time && fd >= 0 ? fd : MORTISE_ENOMEM;
}
