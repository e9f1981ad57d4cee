/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's common side: the mutex, settling waiters, carrying commands. See
 * driver.h for how threads share the work.
 */
#include "io/driver.h"

#include "base/error.h"
#include "io/fork.h"
#include "io/loop.h"

#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* How long a caller's thread tries to reach a busy store before the loop takes over. */
#define CALLER_PATIENCE (2 * MRT_MILLISECOND)
/* How long closing waits for a store that keeps nothing of ours for which others could wait. */
#define CLOSE_PATIENCE (100 * MRT_MILLISECOND)

static mortise_hold value_of(struct mrt_hold *hold)
{
    return (mortise_hold){hold, hold->generation};
}

void mrt_driver_post(struct mrt_driver *driver, struct mrt_upcall *upcall)
{
    if (upcall->posted)
        return;
    upcall->posted = true;
    TAILQ_INSERT_TAIL(&driver->upcalls, upcall, link);
    mrt_tell_kick(driver);
}

void mrt_driver_unpost(struct mrt_driver *driver, struct mrt_upcall *upcall)
{
    if (upcall->posted)
        TAILQ_REMOVE(&driver->upcalls, upcall, link);
    upcall->posted = false;
}

/* Notifies the threads whose waiters are DONE or WOKEN. */
void mrt_driver_settle(struct mrt_driver *driver)
{
    struct mrt_waiter *waiter;
    while ((waiter = mrt_engine_next_settled(driver->engine))) {
        struct mrt_call *wait = (struct mrt_call *)waiter;
        if (wait->upcall)
            mrt_driver_post(driver, wait->upcall);
        if (wait == driver->reader.call)
            mrt_reader_wake(driver);
        else if (wait->kind == MRT_CALL_BLOCKING)
            mrt_park_wake(&wait->park);
        if (wait->kind != MRT_CALL_ASYNC)
            continue;
        if (waiter->error == MORTISE_OK)
            wait->hold = value_of(waiter->hold);
        TAILQ_INSERT_TAIL(&driver->completed, wait, link);
    }
    struct mrt_request *observer;
    while ((observer = mrt_engine_next_observed(driver->engine)))
        mrt_driver_post(driver, mrt_observer_host(observer));
    if (mrt_engine_has_contact(driver->engine))
        mrt_driver_post(driver, &driver->listener.upcall);
    if (!TAILQ_EMPTY(&driver->completed) || mrt_engine_has_told(driver->engine))
        mrt_tell_kick(driver);
    mrt_tell_timers(driver);
}

/* Keeps why no server can be reached. The reason in an unsolicited event replaces the one kept,
   because it says most; the reason in an answer only fills a gap. A real answer clears it. */
static void note_trouble(struct mrt_listener *listener, const struct mrt_event *event)
{
    bool unreachable = event->type == MRT_FAILED && event->error == MORTISE_EUNREACHABLE;
    if (unreachable && event->detail && (event->serial == 0 || !*listener->why))
        snprintf(listener->why, sizeof listener->why, "%s", event->detail);
    else if (!unreachable && event->serial != 0 && event->type != MRT_UNKNOWN &&
             event->type != MRT_STOPPED)
        listener->why[0] = '\0';
}

static void deliver(void *context, const struct mrt_event *event)
{
    struct mrt_driver *driver = context;
    pthread_mutex_lock(&driver->mutex);
    if (driver->tap && driver->tap(driver, event)) {
        pthread_mutex_unlock(&driver->mutex);
        return;
    }
    if (event->detail)
        snprintf(driver->store_detail, sizeof driver->store_detail, "%s", event->detail);
    note_trouble(&driver->listener, event);
    mrt_engine_event(driver->engine, event, mrt_time_now());
    mrt_driver_settle(driver);
    pthread_mutex_unlock(&driver->mutex);
}

static void notify(void *context)
{
    struct mrt_driver *driver = context;
    uint64_t one = 1;
    atomic_store(&driver->notified, true);
    if (write(driver->kick_fd, &one, sizeof one) < 0) {
        /* The counter is full: the loop is being woken anyway. */
    }
}

/* One call of the store. The mutex is held, and let go meanwhile. False: nothing to do.
   `promised`: the store was told that more follows, and keeps back what it has to send. */
static bool carry_one(struct mrt_driver *driver, mrt_time patience, bool *promised)
{
    struct mrt_command *command = mrt_engine_next_command(driver->engine, mrt_time_now());
    if (command) {
        bool more = command->more;
        pthread_mutex_unlock(&driver->mutex);
        bool taken = driver->ops->submit(driver->store, command, patience);
        pthread_mutex_lock(&driver->mutex);
        if (taken) {
            *promised = more;
        } else {
            mrt_engine_unsubmit(driver->engine, command, mrt_time_now());
            driver->stalled = true;
            driver->want_process |= *promised; /* it may be given up before it is taken */
        }
        return taken;
    }
    if (!driver->want_process && !*promised)
        return false;
    driver->want_process = *promised = false;
    pthread_mutex_unlock(&driver->mutex);
    driver->ops->process(driver->store, mrt_time_now());
    pthread_mutex_lock(&driver->mutex);
    if (driver->looks_away)
        mrt_loop_kick(driver);
    if (driver->reader.looks_away)
        mrt_reader_wake(driver);
    return true;
}

/* The store has been called, and can be called by others now. */
static void stop_driving(struct mrt_driver *driver)
{
    driver->store_next = driver->ops->next(driver->store);
    mrt_reader_called(driver);
    driver->driving = false;
    if (driver->borrowers > 0 || driver->draining)
        pthread_cond_broadcast(&driver->idle);
}

static void pump(struct mrt_driver *driver, mrt_time patience)
{
    if (driver->driving)
        return;
    bool promised = false;
    driver->driving = true;
    driver->stalled = false;
    while (carry_one(driver, patience, &promised) && !driver->stalled) {
        driver->stalled = mrt_time_now() >= patience;
        driver->want_process |= driver->stalled && promised;
    }
    stop_driving(driver);
}

mrt_time mrt_driver_patience(mrt_time deadline)
{
    return mrt_time_min(deadline, mrt_time_now() + CALLER_PATIENCE);
}

void mrt_driver_enter(struct mrt_driver *driver)
{
    pthread_mutex_lock(&driver->mutex);
    driver->inside++;
}

/* Whether this thread calls the store. A callback leaves that to the loop, so that the store does
 * not delay the callbacks behind it. */
static bool carries(const struct mrt_driver *driver)
{
    return driver->foreign || (driver->ops->any_thread && !mrt_tell_in_callback());
}

/* Fetches all effects. The mutex is held, and let go while the store is called. */
void mrt_driver_flush(struct mrt_driver *driver, mrt_time patience)
{
    mrt_driver_settle(driver);
    if (driver->want_process || mrt_engine_has_command(driver->engine)) {
        if (carries(driver))
            pump(driver, patience);
        else if (!driver->driving)
            driver->stalled = true;
    }
    mrt_time next = mrt_loop_next(driver);
    if (next < driver->armed) {
        driver->armed = next;
        mrt_loop_kick(driver);
    }
}

void mrt_driver_leave(struct mrt_driver *driver, mrt_time deadline)
{
    bool busy = driver->want_process || mrt_engine_has_command(driver->engine);
    mrt_driver_flush(driver, busy ? mrt_driver_patience(deadline) : 0);
    mrt_driver_leave_quietly(driver);
}

void mrt_driver_leave_quietly(struct mrt_driver *driver)
{
    if (--driver->inside == 0 && driver->draining)
        pthread_cond_broadcast(&driver->idle);
    pthread_mutex_unlock(&driver->mutex);
}

void mrt_driver_pin(struct mrt_driver *driver)
{
    pthread_mutex_lock(&driver->mutex);
    driver->inside++;
    pthread_mutex_unlock(&driver->mutex);
}

void mrt_driver_unpin(struct mrt_driver *driver)
{
    pthread_mutex_lock(&driver->mutex);
    mrt_driver_leave_quietly(driver);
}

void mrt_driver_wait(struct mrt_driver *driver, struct mrt_call *wait, mrt_time deadline, int error)
{
    struct mrt_waiter *waiter = &wait->waiter;
    driver->inside++;
    driver->reader.blocked++;
    TAILQ_INSERT_TAIL(&driver->blocked, wait, blocked_link);
    while (waiter->state != MRT_WAITER_DONE) {
        mrt_time now = mrt_time_now();
        if (waiter->state == MRT_WAITER_WOKEN) {
            mrt_engine_retry(driver->engine, waiter, now);
        } else if (now >= deadline) {
            mrt_engine_cancel(driver->engine, waiter, error, now);
        } else if (driver->foreign) {
            mrt_loop_turn(driver, mrt_driver_patience(deadline));
            if (waiter->state == MRT_WAITER_WAITING)
                mrt_loop_sleep(driver, deadline);
            continue;
        } else if (mrt_reader_wait(driver, wait, deadline)) {
            continue;
        } else {
            mrt_driver_leave(driver, deadline);
            mrt_park_wait(&wait->park, deadline);
            mrt_driver_enter(driver);
            continue;
        }
        mrt_driver_settle(driver);
    }
    TAILQ_REMOVE(&driver->blocked, wait, blocked_link);
    driver->reader.blocked--;
    driver->inside--;
}

void mrt_driver_wait_upcalls(struct mrt_driver *driver, bool (*done)(const void *subject),
                             const void *subject)
{
    while (!done(subject)) {
        if (driver->foreign)
            mrt_loop_turn(driver, mrt_driver_patience(MRT_TIME_NEVER));
        else
            pthread_cond_wait(&driver->idle, &driver->mutex);
    }
}

void mrt_driver_sleep_until(struct mrt_driver *driver, mrt_time until)
{
    struct mrt_park nobody = {0};
    for (mrt_time now = mrt_time_now(); now < until; now = mrt_time_now()) {
        if (!driver->foreign) {
            mrt_park_wait(&nobody, until);
            continue;
        }
        mrt_driver_enter(driver);
        mrt_loop_turn(driver, mrt_driver_patience(until));
        mrt_loop_sleep(driver, until);
        mrt_driver_leave_quietly(driver);
    }
}

void mrt_driver_borrow_store(struct mrt_driver *driver)
{
    driver->borrowers++;
    while (driver->driving)
        pthread_cond_wait(&driver->idle, &driver->mutex);
    driver->borrowers--;
    driver->driving = true;
    driver->stalled = false;
    pthread_mutex_unlock(&driver->mutex);
}

void mrt_driver_give_back_store(struct mrt_driver *driver)
{
    pthread_mutex_lock(&driver->mutex);
    stop_driving(driver);
}

int mrt_driver_check(const struct mrt_driver *driver, bool blocking)
{
    mrt_error_clear();
    if (driver->fork_generation != mrt_fork_generation())
        return MORTISE_EFORKED;
    if (blocking && mrt_tell_in_callback())
        return mrt_error(MORTISE_EDEADLOCK, "a callback may not wait");
    return MORTISE_OK;
}

/* ------------------------------------------------------------ open, close */

static void close_lost_fd(struct mrt_hold *hold)
{
    const struct mrt_hold_host *host = hold->host;
    if (host->has_lost_fd)
        close(host->lost_fd);
}

static void close_own(struct mrt_driver *driver)
{
    const int own[] = {driver->kick_fd, driver->epoll_fd, driver->reader.fd, driver->interrupt[0],
                       driver->interrupt[1]};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (own[i] >= 0)
            close(own[i]);
}

static void free_parts(struct mrt_driver *driver)
{
    if (driver->engine)
        mrt_engine_each_hold(driver->engine, close_lost_fd);
    mrt_engine_free(driver->engine);
    close_own(driver);
    pthread_cond_destroy(&driver->idle);
    pthread_mutex_destroy(&driver->mutex);
}

static void init_locks(struct mrt_driver *driver)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
#ifdef __GLIBC__
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
#endif
    pthread_mutex_init(&driver->mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&driver->idle, &clock);
    pthread_condattr_destroy(&clock);
}

int mrt_driver_open(struct mrt_driver *driver, const struct mrt_engine_config *config,
                    const struct mrt_store_ops *ops, const struct mrt_uri *uri,
                    const struct mrt_store_options *options, bool foreign,
                    mortise_contact_callback contact, void *argument)
{
    memset(driver, 0, sizeof *driver);
    driver->listener = (struct mrt_listener){
        .upcall.run = mrt_tell_contact, .callback = contact, .argument = argument};
    driver->ops = ops;
    driver->foreign = foreign;
    driver->armed = driver->store_next = MRT_TIME_NEVER;
    driver->epoll_fd = driver->reader.fd = driver->interrupt[0] = driver->interrupt[1] = -1;
    mrt_fork_watch();
    driver->fork_generation = mrt_fork_generation();
    driver->sink = (struct mrt_sink){deliver, notify, driver};
    TAILQ_INIT(&driver->completed);
    TAILQ_INIT(&driver->blocked);
    TAILQ_INIT(&driver->upcalls);
    init_locks(driver);
    struct mrt_engine_config own = *config;
    own.hold_host_size = sizeof(struct mrt_hold_host);
    int error = mrt_engine_new(&own, &driver->engine);
    driver->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (error == MORTISE_OK && driver->kick_fd < 0)
        error = mrt_error(MORTISE_ENOMEM, "no descriptor left for an eventfd");
    if (error == MORTISE_OK)
        error = ops->open(uri, options, driver->sink, &driver->store);
    if (error != MORTISE_OK) {
        free_parts(driver);
        return error;
    }
    driver->store_fd = ops->fd(driver->store);
    error = mrt_loop_start(driver);
    if (error != MORTISE_OK) {
        ops->close(driver->store);
        free_parts(driver);
    }
    return error;
}

/* Waits until the store has confirmed and no blocking call is left, or `until`. */
static void drain(struct mrt_driver *driver, mrt_time until)
{
    while (!mrt_engine_closed(driver->engine) || driver->inside > 0) {
        mrt_time now = mrt_time_now();
        if (now >= until && driver->inside == 0)
            return;
        mrt_time step = mrt_time_min(until, now + 100 * MRT_MILLISECOND);
        if (driver->foreign) {
            mrt_loop_turn(driver, step);
            if (!mrt_engine_closed(driver->engine))
                mrt_loop_sleep(driver, step);
            continue;
        }
        struct timespec wake;
        clock_gettime(CLOCK_MONOTONIC, &wake);
        wake.tv_nsec += 10 * MRT_MILLISECOND;
        wake.tv_sec += wake.tv_nsec / MRT_SECOND;
        wake.tv_nsec %= MRT_SECOND;
        pthread_cond_timedwait(&driver->idle, &driver->mutex, &wake);
    }
}

int mrt_driver_close(struct mrt_driver *driver, mrt_time until)
{
    char why[sizeof driver->store_detail]; /* particulars of a failure since this call began */
    mrt_driver_enter(driver);
    driver->store_detail[0] = '\0';
    mrt_engine_close(driver->engine, mrt_time_now());
    mrt_driver_leave(driver, until);
    pthread_mutex_lock(&driver->mutex);
    driver->draining = true;
    mrt_reader_recall(driver);
    bool owes = mrt_engine_owes(driver->engine);
    drain(driver, owes ? until : mrt_time_min(until, mrt_time_now() + CLOSE_PATIENCE));
    bool closed = !owes || mrt_engine_closed(driver->engine);
    pthread_mutex_unlock(&driver->mutex);
    mrt_loop_stop(driver);
    memcpy(why, driver->store_detail, sizeof why);
    driver->ops->close(driver->store);
    free_parts(driver);
    if (!closed && why[0])
        return mrt_error(MORTISE_EUNKNOWN, "%s: %s", mortise_error_text(MORTISE_EUNKNOWN), why);
    return closed ? MORTISE_OK : MORTISE_EUNKNOWN;
}

static void leave_hold(struct mrt_hold *hold)
{
    close_lost_fd(hold);
    mrt_hold_free(hold);
}

/* Lists are read here, and not changed: a thread of the parent may have been changing one. */
void mrt_driver_abandon(struct mrt_driver *driver)
{
    driver->ops->abandon(driver->store);
    mrt_engine_each_hold(driver->engine, leave_hold);
    close_own(driver);
}
