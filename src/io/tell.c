/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Telling: calls the user's callbacks, and makes the descriptors of lost holds readable.
 *
 * Callbacks run one at a time and without the mutex; they may call anything that does not block.
 * The thread that begins to call back (`calling`) goes on until no callback is left.
 *
 * By default the loop calls back. But the loop also calls the store, and a call that hangs would
 * delay the news that a lease has run out. So once a program needs a callback in time, a thread of
 * its own calls back in the loop's place: the teller. It also runs the engine's timers, and never
 * calls the store. A callback does not call the store either, on any thread: the loop carries the
 * commands that a callback makes. A foreign loop is the program's own thread, and has no teller.
 */
#include "io/tell.h"

#include "base/error.h"
#include "io/driver.h"
#include "io/loop.h"

#include <stdlib.h>
#include <sys/eventfd.h>

static _Thread_local int callbacks_deep;

bool mrt_tell_in_callback(void)
{
    return callbacks_deep > 0;
}

bool mrt_tell_waits(const struct mrt_driver *driver)
{
    return !TAILQ_EMPTY(&driver->completed) || !TAILQ_EMPTY(&driver->upcalls) ||
           mrt_engine_has_told(driver->engine);
}

/* The callback may free the handle; until it has begun the wait may be cancelled. */
static void call_completed(struct mrt_driver *driver)
{
    struct mrt_call *wait = TAILQ_FIRST(&driver->completed);
    TAILQ_REMOVE(&driver->completed, wait, link);
    TAILQ_REMOVE(wait->handle, wait, handle_link);
    char detail[MRT_ERROR_DETAIL_MAX];
    mrt_error_clear();
    /* mortise_close gave it back before this callback. */
    if (wait->waiter.error == MORTISE_OK && !mrt_hold_live(wait->hold.slot, wait->hold.generation))
        wait->waiter.error = MORTISE_ECLOSED;
    if (mrt_driver_outcome(driver, &wait->waiter) != MORTISE_OK) {
        mrt_error_copy_detail(detail);
        wait->detail = detail;
    }
    pthread_mutex_unlock(&driver->mutex);
    callbacks_deep++;
    wait->callback(wait->argument, wait->waiter.error, wait->hold);
    callbacks_deep--;
    free(wait);
    pthread_mutex_lock(&driver->mutex);
}

static void call_asked(struct mrt_driver *driver, struct mrt_hold *hold)
{
    mortise_hold value = {hold, hold->generation};
    const struct mrt_hold_host *host = hold->host;
    mortise_revoke_callback callback = host->revoke_callback;
    void *argument = host->revoke_argument;
    if (!callback)
        return;
    pthread_mutex_unlock(&driver->mutex);
    callbacks_deep++;
    callback(argument, value);
    callbacks_deep--;
    pthread_mutex_lock(&driver->mutex);
}

/* The waiter may be freed once the mutex is unlocked. */
static void call_placed(struct mrt_driver *driver, const struct mrt_waiter *waiter)
{
    const struct mrt_call *wait = (const struct mrt_call *)waiter;
    mortise_queued_callback callback = wait->queued;
    void *argument = wait->queued_argument;
    uint64_t place = waiter->place;
    pthread_mutex_unlock(&driver->mutex);
    callbacks_deep++;
    callback(argument, place);
    callbacks_deep--;
    pthread_mutex_lock(&driver->mutex);
}

static void call_told(struct mrt_driver *driver, struct mrt_hold *hold)
{
    mortise_hold value = {hold, hold->generation};
    mortise_state state = hold->told;
    const struct mrt_hold_host *host = hold->host;
    mortise_state_callback callback = host->callback;
    void *argument = host->argument;
    if (state == MORTISE_LOST && host->has_lost_fd)
        eventfd_write(host->lost_fd, 1);
    if (host->upcall)
        mrt_driver_post(driver, host->upcall);
    if (!callback)
        return;
    pthread_mutex_unlock(&driver->mutex);
    callbacks_deep++;
    callback(argument, value, state);
    callbacks_deep--;
    pthread_mutex_lock(&driver->mutex);
}

void mrt_tell_contact(struct mrt_upcall *upcall)
{
    struct mrt_listener *listener = (struct mrt_listener *)upcall;
    struct mrt_driver *driver =
        (struct mrt_driver *)((char *)listener - offsetof(struct mrt_driver, listener));
    char why[sizeof listener->why];
    bool away;
    if (!mrt_engine_next_contact(driver->engine, &away))
        return; /* it has been silent, and answers */
    const char *address = driver->ops->address(driver->store);
    snprintf(why, sizeof why, "%s", away && *listener->why ? listener->why : address);
    listener->why[0] = '\0';
    pthread_mutex_unlock(&driver->mutex);
    listener->callback(listener->argument, away ? MORTISE_EUNREACHABLE : MORTISE_OK, why);
    pthread_mutex_lock(&driver->mutex);
}

/* Upcalls posted meanwhile wait for the next turn: timers have theirs in between. */
static void call_upcalls(struct mrt_driver *driver)
{
    const struct mrt_upcall *last = TAILQ_LAST(&driver->upcalls, mrt_upcall_list);
    struct mrt_upcall *upcall = NULL;
    while (upcall != last && (upcall = TAILQ_FIRST(&driver->upcalls))) {
        mrt_driver_unpost(driver, upcall);
        callbacks_deep++;
        upcall->run(upcall);
        callbacks_deep--;
        pthread_cond_broadcast(&driver->idle);
    }
}

static void call_back(struct mrt_driver *driver)
{
    struct mrt_hold *hold;
    const struct mrt_waiter *waiter;
    while (!TAILQ_EMPTY(&driver->completed))
        call_completed(driver);
    while ((waiter = mrt_engine_next_placed(driver->engine)))
        call_placed(driver, waiter);
    while ((hold = mrt_engine_next_asked(driver->engine)))
        call_asked(driver, hold);
    while ((hold = mrt_engine_next_told(driver->engine)))
        call_told(driver, hold);
    call_upcalls(driver);
}

void mrt_tell(struct mrt_driver *driver)
{
    if (driver->calling)
        return;
    driver->calling = true;
    call_back(driver);
    driver->calling = false;
    if (mrt_tell_waits(driver) && (driver->teller.begun || driver->reader.shared))
        mrt_tell_kick(driver); /* other threads have left it to this one */
}

/* ------------------------------------------------------------------ the teller */

void mrt_tell_kick(struct mrt_driver *driver)
{
    if (driver->reader.helps || driver->calling)
        return; /* it calls back next, or looks again at the end */
    if (!driver->teller.begun && driver->reader.prompt && driver->reader.loop_away_until > 0)
        return; /* the program's event loop calls back, or the loop when it is back */
    if (!driver->teller.begun)
        mrt_loop_kick(driver);
    else
        mrt_park_wake(&driver->teller.park);
}

void mrt_tell_timers(struct mrt_driver *driver)
{
    struct mrt_teller *teller = &driver->teller;
    if (teller->begun && mrt_engine_next_time(driver->engine) < teller->armed)
        mrt_park_wake(&teller->park);
}

static void *teller_thread(void *argument)
{
    struct mrt_driver *driver = argument;
    struct mrt_teller *teller = &driver->teller;
    pthread_mutex_lock(&driver->mutex);
    while (!teller->stop) {
        mrt_engine_tick(driver->engine, mrt_time_now());
        mrt_driver_settle(driver);
        if (mrt_engine_has_command(driver->engine))
            mrt_loop_kick(driver);
        if (mrt_tell_waits(driver) && !driver->calling) {
            mrt_tell(driver);
            continue;
        }
        teller->armed = mrt_engine_next_time(driver->engine);
        pthread_mutex_unlock(&driver->mutex);
        mrt_park_wait(&teller->park, teller->armed);
        pthread_mutex_lock(&driver->mutex);
    }
    while (mrt_tell_waits(driver))
        mrt_tell(driver);
    pthread_mutex_unlock(&driver->mutex);
    return NULL;
}

int mrt_tell_in_time(struct mrt_driver *driver)
{
    struct mrt_teller *teller = &driver->teller;
    if (teller->begun || driver->foreign)
        return MORTISE_OK;
    teller->begun = mrt_loop_thread(&teller->thread, teller_thread, driver);
    if (!teller->begun)
        return mrt_error(MORTISE_ENOMEM, "cannot start the thread that tells of losses: "
                                         "raise the limit of threads (ulimit -u) or of memory");
    return MORTISE_OK;
}

void mrt_tell_stop(struct mrt_driver *driver)
{
    struct mrt_teller *teller = &driver->teller;
    if (!teller->begun)
        return;
    pthread_mutex_lock(&driver->mutex);
    teller->stop = true;
    mrt_park_wake(&teller->park);
    pthread_mutex_unlock(&driver->mutex);
    pthread_join(teller->thread, NULL);
}
