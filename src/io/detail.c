/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The particulars of an error. Of a call that ended without the lock: which lock, how long the call
 * has waited, and the holder that this client has seen; else what the store said last.
 *
 * Only holders of this client are known: a store reports how much is ahead of a ticket, not whose
 * it is. So no particulars cost a request. They are written when the error reaches its caller, on
 * that thread.
 *
 * Threads: the mutex is held.
 */
#include "base/error.h"
#include "core/queue.h"
#include "io/driver.h"

#include <inttypes.h>
#include <stdio.h>

#define HOLDER_SIZE 96

int mrt_driver_error(const struct mrt_driver *driver, int error)
{
    if (error == MORTISE_OK)
        return error;
    mortise_error_kind kind = mortise_error_kind_of(error);
    bool from_store = kind == MORTISE_KIND_RETRY || kind == MORTISE_KIND_DENIED ||
                      kind == MORTISE_KIND_CONFIG || error == MORTISE_EMISMATCH ||
                      error == MORTISE_ENAME;
    const char *detail = driver->store_detail;
    if (error == MORTISE_ESTALE)
        return mrt_error(error,
                         "%s: a larger fence has been seen: another holder's, or the store was "
                         "wiped or restored from a backup",
                         driver->ops->address(driver->store));
    if (error == MORTISE_EDISCONNECTED)
        return mrt_error(error, "%s", *detail ? detail : driver->ops->address(driver->store));
    if (error == MORTISE_EUNREACHABLE && !*detail)
        return mrt_error(error, "no answer from %s", driver->ops->address(driver->store));
    return from_store && *detail ? mrt_error(error, "%s", detail) : error;
}

static const struct mrt_hold *holder_here(const struct mrt_queue *queue)
{
    const struct mrt_hold *hold;
    TAILQ_FOREACH (hold, &queue->holds, link)
        if (hold->ticket)
            return hold;
    return NULL;
}

static void describe_holder(const struct mrt_waiter *waiter, char text[HOLDER_SIZE])
{
    const struct mrt_hold *hold = holder_here(waiter->queue);
    if (!hold && !TAILQ_EMPTY(&waiter->queue->waiters))
        snprintf(text, HOLDER_SIZE, "in use: others of this client wait for it");
    else if (!hold && waiter->place > 0)
        snprintf(text, HOLDER_SIZE, "in use by other clients, %" PRIu64 " tickets ahead",
                 waiter->place);
    else if (!hold)
        snprintf(text, HOLDER_SIZE, "in use by another client");
    else if (!hold->owner)
        snprintf(text, HOLDER_SIZE, "held by this client, for no owner");
    else
        snprintf(text, HOLDER_SIZE, "held by %s %" PRIu64 " of this client",
                 hold->owner & MRT_OWNER_IS_THREAD ? "thread" : "owner",
                 hold->owner & ~MRT_OWNER_IS_THREAD);
}

/* An adoption waits for the store alone, not for a holder. */
int mrt_driver_outcome(const struct mrt_driver *driver, const struct mrt_waiter *waiter)
{
    int error = waiter->error;
    if (error == MORTISE_OK || !waiter->queue || !mrt_id_none(waiter->adopts))
        return mrt_driver_error(driver, error);
    const char *name = mrt_queue_name(waiter->queue) + driver->prefix_length;
    mrt_time waited = mrt_time_now() - waiter->since;
    char holder[HOLDER_SIZE];
    describe_holder(waiter, holder);
    if (error == MORTISE_EBUSY)
        return mrt_error(error, "%s is %s", name, holder);
    if (error == MORTISE_ETIMEOUT)
        return mrt_error(error, "waited %" PRId64 ".%03" PRId64 " s for %s, which is %s",
                         waited / MRT_SECOND, waited % MRT_SECOND / MRT_MILLISECOND, name, holder);
    if (error == MORTISE_EDEADLOCK)
        return mrt_error(error, "%s is held by the same owner, and this acquire does not nest",
                         name);
    if (error == MORTISE_EFULL && waiter->limit > 0)
        return mrt_error(error,
                         "%s: this client holds or waits for %" PRIu64 " locks already, the limit "
                         "that tickets_max=%" PRIu64 " sets: release some, or raise tickets_max= "
                         "in the store's URI",
                         name, waiter->limit, waiter->limit);
    return mrt_driver_error(driver, error);
}
