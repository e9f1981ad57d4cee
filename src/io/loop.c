/*
 * The loop: what waits for the store, for timers and for kicks, and calls back.
 *
 * It has two descriptors and one time to wait for, which ppoll does alone. In a
 * client of its own thread it runs there, with all signals blocked so that none
 * of the program's lands on it. With MORTISE_FOREIGN_LOOP the caller runs it, in
 * mortise_process or while a blocking call waits.
 *
 * Callbacks run without the mutex; they may call anything that does not block.
 */
#include "io/driver.h"

#include "base/error.h"
#include "core/defect.h"

#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* How long the loop lets a busy store keep it from its timers. */
#define LOOP_PATIENCE (20 * MRT_MILLISECOND)

static _Thread_local int callbacks_deep;

bool mrt_loop_in_callback(void)
{
    return callbacks_deep > 0;
}

void mrt_loop_kick(struct mrt_driver *driver)
{
    uint64_t one = 1;
    if (driver->kicked || driver->foreign)
        return; /* a foreign loop asks for the time and what is to do before it sleeps */
    driver->kicked = true;
    if (write(driver->kick_fd, &one, sizeof one) < 0) {
        /* The counter is full: the loop is being woken anyway. */
    }
}

mrt_time mrt_loop_next(const struct mrt_driver *driver)
{
    if (driver->driving) /* who calls the store looks at its time afterwards */
        return mrt_engine_next_time(driver->engine);
    /* What the store did not take may have been given up since. */
    if (driver->stalled && mrt_engine_has_command(driver->engine))
        return 0;
    return mrt_time_min(mrt_engine_next_time(driver->engine), driver->store_next);
}

/* -------------------------------------------------------------- callbacks */

static void call_completed(struct mrt_driver *driver)
{
    struct mrt_wait *wait = TAILQ_FIRST(&driver->completed);
    TAILQ_REMOVE(&driver->completed, wait, link);
    mrt_error_clear();
    mrt_driver_error(driver, wait->waiter.error);
    pthread_mutex_unlock(&driver->mutex);
    callbacks_deep++;
    wait->callback(wait->argument, wait->waiter.error, wait->hold);
    callbacks_deep--;
    pthread_mutex_lock(&driver->mutex);
    wait->finished(wait);
}

static void call_asked(struct mrt_driver *driver, struct mrt_hold *hold)
{
    mortise_hold value = {hold, hold->generation};
    mortise_revoke_callback callback = hold->revoke_callback;
    void *argument = hold->revoke_argument;
    if (!callback)
        return;
    pthread_mutex_unlock(&driver->mutex);
    callbacks_deep++;
    callback(argument, value);
    callbacks_deep--;
    pthread_mutex_lock(&driver->mutex);
}

/* The waiter may be gone once the mutex is let go. */
static void call_placed(struct mrt_driver *driver, const struct mrt_waiter *waiter)
{
    const struct mrt_wait *wait = (const struct mrt_wait *)waiter;
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
    mortise_state_callback callback = hold->callback;
    void *argument = hold->argument;
    if (state == MORTISE_LOST && hold->lost_fd >= 0)
        eventfd_write(hold->lost_fd, 1);
    if (hold->upcall)
        mrt_driver_post(driver, hold->upcall);
    if (!callback)
        return;
    pthread_mutex_unlock(&driver->mutex);
    callbacks_deep++;
    callback(argument, value, state);
    callbacks_deep--;
    pthread_mutex_lock(&driver->mutex);
}

/* What is posted meanwhile waits for the next turn: timers have theirs in between. */
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

/* ------------------------------------------------------------------- turns */

static bool may_call_back(const struct mrt_driver *driver)
{
    bool left_to_leader = MRT_DEFECT(LEADER_CALLS_BACK) && driver->lead.leader &&
                          pthread_equal(driver->thread, pthread_self());
    return callbacks_deep == 0 && !left_to_leader;
}

void mrt_loop_turn(struct mrt_driver *driver, mrt_time patience)
{
    mrt_time now = mrt_time_now();
    mrt_engine_tick(driver->engine, now);
    if (atomic_exchange(&driver->notified, false) || now >= driver->store_next)
        driver->want_process = true;
    mrt_driver_flush(driver, patience);
    if (may_call_back(driver))
        call_back(driver);
}

/* Whether callbacks wait for the caller to run them. */
static bool has_callbacks(const struct mrt_driver *driver)
{
    return !TAILQ_EMPTY(&driver->completed) || !TAILQ_EMPTY(&driver->upcalls) ||
           mrt_engine_has_told(driver->engine);
}

mrt_time mrt_loop_left(const struct mrt_driver *driver)
{
    mrt_time next = mrt_loop_next(driver);
    if (has_callbacks(driver))
        return 0;
    if (next == MRT_TIME_NEVER)
        return next;
    mrt_time left = next - mrt_time_now();
    return left > 0 ? left : 0;
}

bool mrt_loop_poll(struct mrt_driver *driver, int kick, bool store, mrt_time left)
{
    struct pollfd descriptors[] = {
        {kick, POLLIN, 0},
        {store ? driver->store_fd : -1, POLLIN, 0},
    };
    struct timespec timeout = {left / MRT_SECOND, left % MRT_SECOND};
    uint64_t count;
    pthread_mutex_unlock(&driver->mutex);
    int ready = ppoll(descriptors, 2, left == MRT_TIME_NEVER ? NULL : &timeout, NULL);
    if (ready > 0 && descriptors[0].revents && read(kick, &count, sizeof count) < 0) {
        /* Another thread's read was first. */
    }
    pthread_mutex_lock(&driver->mutex);
    return ready > 0 && descriptors[1].revents;
}

static void wait_for(struct mrt_driver *driver, mrt_time left)
{
    driver->looks_away = driver->want_process;
    bool store = !driver->looks_away && driver->lead.away == 0;
    driver->want_process |= mrt_loop_poll(driver, driver->kick_fd, store, left);
    driver->looks_away = false;
    driver->lead.away = 0;
}

void mrt_loop_look(struct mrt_driver *driver)
{
    wait_for(driver, 0);
}

void mrt_loop_sleep(struct mrt_driver *driver, mrt_time until)
{
    mrt_time now = mrt_time_now();
    mrt_time next = has_callbacks(driver) ? now : mrt_loop_next(driver);
    /* A time once set is kept, though its timer may be gone: else every short hold would
       move it away and the next one would have to wake the loop to move it back. */
    mrt_time kept = driver->armed > now ? driver->armed : MRT_TIME_NEVER;
    driver->armed = mrt_time_min(next, kept);
    driver->kicked = false;
    mrt_time wake = mrt_time_min(driver->armed, until);
    driver->lead.away = mrt_lead_until(driver, now);
    if (driver->lead.away > 0)
        wake = mrt_time_min(wake, driver->lead.away);
    wait_for(driver, wake == MRT_TIME_NEVER ? wake : wake > now ? wake - now : 0);
}

static void *loop_thread(void *argument)
{
    struct mrt_driver *driver = argument;
    pthread_mutex_lock(&driver->mutex);
    while (!driver->stop) {
        mrt_loop_turn(driver, mrt_time_now() + LOOP_PATIENCE);
        if (!driver->stop)
            mrt_loop_sleep(driver, MRT_TIME_NEVER);
    }
    while (has_callbacks(driver))
        call_back(driver);
    pthread_mutex_unlock(&driver->mutex);
    return NULL;
}

int mrt_loop_start(struct mrt_driver *driver)
{
    if (driver->foreign)
        return MORTISE_OK;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&driver->thread, NULL, loop_thread, driver);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return mrt_error(MORTISE_ENOMEM, "no thread to be had for the client's loop");
    driver->has_thread = true;
    return MORTISE_OK;
}

void mrt_loop_stop(struct mrt_driver *driver)
{
    pthread_mutex_lock(&driver->mutex);
    driver->stop = true;
    driver->kicked = false;
    mrt_loop_kick(driver);
    while (!driver->has_thread && has_callbacks(driver))
        call_back(driver);
    pthread_mutex_unlock(&driver->mutex);
    if (driver->has_thread)
        pthread_join(driver->thread, NULL);
}

/* ---------------------------------------------------------- a foreign loop */

static bool watch(int epoll_fd, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

int mrt_loop_fd(struct mrt_driver *driver)
{
    if (driver->epoll_fd >= 0)
        return driver->epoll_fd;
    int fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0)
        return MORTISE_ENOMEM;
    if (!watch(fd, driver->kick_fd) || !watch(fd, driver->store_fd)) {
        close(fd);
        return MORTISE_ENOMEM;
    }
    driver->epoll_fd = fd;
    return fd;
}
