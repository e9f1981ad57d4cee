/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop: what waits for the store, for timers and for kicks, and calls back (tell.c).
 *
 * It has two descriptors, or three, and one time to wait for, which ppoll does alone. In a
 * client of its own thread it runs there, with all signals blocked so that none
 * of the program's lands on it. With MORTISE_FOREIGN_LOOP the caller runs it, in
 * mortise_process or while a blocking call waits.
 */
#include "io/loop.h"

#include "base/error.h"
#include "io/driver.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* How long a busy store may delay the loop's timers. */
#define LOOP_PATIENCE (20 * MRT_MILLISECOND)

void mrt_loop_kick(struct mrt_driver *driver)
{
    uint64_t one = 1;
    if (driver->kicked || driver->foreign)
        return; /* a foreign loop reads the time and the pending work before it sleeps */
    driver->kicked = true;
    if (write(driver->kick_fd, &one, sizeof one) < 0) {
        /* The counter is full: the loop is being woken anyway. */
    }
}

mrt_time mrt_loop_next(const struct mrt_driver *driver)
{
    if (driver->driving) /* a thread that calls the store reads its time afterwards */
        return mrt_engine_next_time(driver->engine);
    /* A stalled driver has nothing to carry if the engine has since withdrawn its commands. */
    if (driver->stalled && (driver->want_process || mrt_engine_has_command(driver->engine)))
        return 0;
    return mrt_time_min(mrt_engine_next_time(driver->engine), driver->store_next);
}

/* ------------------------------------------------------------------- turns */

static bool calls_back(const struct mrt_driver *driver)
{
    return !driver->teller.begun;
}

/* Ends all blocking calls. */
static void interrupt(struct mrt_driver *driver, mrt_time now)
{
    char bytes[64];
    struct mrt_call *wait;
    while (read(driver->interrupt[0], bytes, sizeof bytes) > 0)
        continue;
    driver->interrupted = false;
    TAILQ_FOREACH (wait, &driver->blocked, blocked_link)
        mrt_engine_cancel(driver->engine, &wait->waiter, MORTISE_ECANCELLED, now);
}

void mrt_loop_turn(struct mrt_driver *driver, mrt_time patience)
{
    mrt_time now = mrt_time_now();
    if (driver->interrupted)
        interrupt(driver, now);
    mrt_engine_tick(driver->engine, now);
    if (atomic_exchange(&driver->notified, false) || now >= driver->store_next)
        driver->want_process = true;
    mrt_driver_flush(driver, patience);
    if (calls_back(driver))
        mrt_tell(driver);
}

/* When the loop calls back next: soon, if another thread is in a callback, which may last. */
static mrt_time callbacks_next(const struct mrt_driver *driver, mrt_time now)
{
    if (!calls_back(driver) || !mrt_tell_waits(driver))
        return MRT_TIME_NEVER;
    return driver->calling ? now + LOOP_PATIENCE : now;
}

mrt_time mrt_loop_left(const struct mrt_driver *driver)
{
    mrt_time next = mrt_loop_next(driver);
    if (driver->reader.shared) /* its thread has the timers */
        return mrt_tell_waits(driver) && !driver->calling ? 0 : MRT_TIME_NEVER;
    if (mrt_tell_waits(driver))
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
        {kick == driver->kick_fd ? driver->interrupt[0] : -1, POLLIN, 0},
    };
    struct timespec timeout = {left / MRT_SECOND, left % MRT_SECOND};
    uint64_t count;
    pthread_mutex_unlock(&driver->mutex);
    int ready = ppoll(descriptors, 3, left == MRT_TIME_NEVER ? NULL : &timeout, NULL);
    if (ready > 0 && descriptors[0].revents && read(kick, &count, sizeof count) < 0) {
        /* Another thread's read was first. */
    }
    pthread_mutex_lock(&driver->mutex);
    driver->interrupted |= ready > 0 && descriptors[2].revents;
    return ready > 0 && descriptors[1].revents;
}

static void wait_for(struct mrt_driver *driver, mrt_time left)
{
    driver->looks_away = driver->want_process;
    bool store = !driver->looks_away && driver->reader.loop_away_until == 0;
    driver->want_process |= mrt_loop_poll(driver, driver->kick_fd, store, left);
    driver->looks_away = false;
    driver->reader.loop_away_until = 0;
}

void mrt_loop_look(struct mrt_driver *driver)
{
    wait_for(driver, 0);
}

void mrt_loop_sleep(struct mrt_driver *driver, mrt_time until)
{
    mrt_time now = mrt_time_now();
    mrt_time next = mrt_time_min(callbacks_next(driver, now), mrt_loop_next(driver));
    /* A time once set is kept, even if its timer is gone. Otherwise each short hold would move the
     * time away, and the next one would wake the loop to move it back. */
    mrt_time kept = driver->armed > now ? driver->armed : MRT_TIME_NEVER;
    driver->armed = mrt_time_min(next, kept);
    driver->kicked = false;
    mrt_time wake = mrt_time_min(driver->armed, until);
    driver->reader.loop_away_until = mrt_reader_until(driver, now);
    if (driver->reader.loop_away_until > 0)
        wake = mrt_time_min(wake, driver->reader.loop_away_until);
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
    while (!driver->teller.begun && mrt_tell_waits(driver))
        mrt_tell(driver);
    pthread_mutex_unlock(&driver->mutex);
    return NULL;
}

bool mrt_loop_thread(pthread_t *thread, void *(*run)(void *argument), struct mrt_driver *driver)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(thread, NULL, run, driver);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return !failed;
}

int mrt_loop_start(struct mrt_driver *driver)
{
    if (driver->foreign)
        return MORTISE_OK;
    driver->has_thread = mrt_loop_thread(&driver->thread, loop_thread, driver);
    if (!driver->has_thread)
        return mrt_error(MORTISE_ENOMEM, "cannot start the client's thread: "
                                         "raise the limit of threads (ulimit -u) or of memory");
    return MORTISE_OK;
}

void mrt_loop_stop(struct mrt_driver *driver)
{
    pthread_mutex_lock(&driver->mutex);
    driver->stop = true;
    driver->kicked = false;
    mrt_loop_kick(driver);
    while (!driver->has_thread && mrt_tell_waits(driver))
        mrt_tell(driver);
    pthread_mutex_unlock(&driver->mutex);
    if (driver->has_thread)
        pthread_join(driver->thread, NULL);
    mrt_tell_stop(driver);
}

/* ---------------------------------------------------------- a foreign loop */

static bool watch(int epoll_fd, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

int mrt_loop_interrupt_fd(struct mrt_driver *driver)
{
    if (driver->interrupt[1] >= 0)
        return driver->interrupt[1];
    if (pipe2(driver->interrupt, O_CLOEXEC | O_NONBLOCK) != 0)
        return mrt_error(MORTISE_ENOMEM, "no descriptors left for a pipe");
    if (driver->epoll_fd >= 0 && driver->foreign)
        watch(driver->epoll_fd, driver->interrupt[0]);
    mrt_loop_kick(driver);
    return driver->interrupt[1];
}

int mrt_loop_fd(struct mrt_driver *driver)
{
    if (driver->epoll_fd >= 0)
        return driver->epoll_fd;
    if (driver->reader.shared && driver->store_fd >= 0)
        return driver->store_fd; /* the rest is for the client's thread */
    int fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0)
        return MORTISE_ENOMEM;
    bool own = !driver->reader.shared;
    if (!watch(fd, own ? driver->kick_fd : -1) || !watch(fd, driver->store_fd) ||
        !watch(fd, own ? driver->interrupt[0] : -1)) {
        close(fd);
        return MORTISE_ENOMEM;
    }
    driver->epoll_fd = fd;
    return fd;
}
