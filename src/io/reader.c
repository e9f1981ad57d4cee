/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader: a thread that waits for the store reads the store's answers itself.
 *
 * If the loop read them, each wait would cost a switch to the loop and a second one to the thread
 * that waits. So a caller whose call waits for the store becomes the reader if it is the only
 * blocked thread: it sleeps on the store's descriptor, and on a descriptor of its own by which
 * other threads wake it. Callbacks and timers stay with the loop.
 *
 * When one reader soon follows another, the loop leaves the store's descriptor alone while there is
 * a reader, and for GRACE afterwards; otherwise each answer would wake both. The loop sleeps by the
 * clock instead. It comes back by itself in a wait that lasts longer than GRACE, and when no thread
 * has read for GRACE. So an event that arrives without a reader may be read GRACE late, and a
 * refused request may be repeated that much later. Where that is too long the loop is called back
 * immediately, and for a while (`no_reader_until`) no thread becomes the reader:
 *  - other threads are blocked, or an event may be urgent (mrt_reader_disable);
 *  - the store has something under way that must be read to go on (answers_may_wait);
 *  - the program has just registered a callback, or is closing.
 * With MORTISE_SHARED_LOOP the program's event loop is in the reader's place (mrt_reader_help). It
 * sleeps where the library does not see it, so each of its calls counts as one reader that comes
 * and goes, and the loop stays away for GRACE after it. It makes the callbacks that are due, in the
 * loop's and in the teller's place, which are not woken for them meanwhile.
 *
 * Safety does not depend on any of this: how long a hold is valid is computed from the clock.
 *
 * Invariant: the loop never leaves the store's descriptor (`loop_away_until`) for longer than
 * GRACE. Nothing is lost meanwhile: a descriptor stays readable until it has been read.
 */
#include "io/reader.h"

#include "io/driver.h"
#include "io/loop.h"

#include <sys/eventfd.h>

#define GRACE (20 * MRT_MILLISECOND)
#define PAUSE (20 * MRT_MILLISECOND)

void mrt_reader_recall(struct mrt_driver *driver)
{
    struct mrt_reader *reader = &driver->reader;
    reader->next_reader_until = 0;
    reader->no_reader_until = mrt_time_now() + PAUSE; /* if there is a reader, it goes on */
    if (reader->loop_away_until > 0)
        mrt_loop_kick(driver);
}

void mrt_reader_disable(struct mrt_driver *driver)
{
    if (!driver->reader.disabled)
        mrt_reader_recall(driver);
    driver->reader.disabled = true;
}

void mrt_reader_share(struct mrt_driver *driver)
{
    pthread_mutex_lock(&driver->mutex);
    driver->reader.shared = driver->reader.disabled = true;
    pthread_mutex_unlock(&driver->mutex);
}

/* The loop may leave the store to the program's event loop, which polls it. */
static void note_help(struct mrt_driver *driver)
{
    struct mrt_reader *reader = &driver->reader;
    mrt_time now = mrt_time_now();
    if (!reader->may_wait || reader->blocked > 0 || driver->draining ||
        now < reader->no_reader_until)
        return;
    reader->frequent = now < reader->next_reader_until;
    reader->next_reader_until = now + GRACE;
}

bool mrt_reader_help(struct mrt_driver *driver)
{
    struct mrt_reader *reader = &driver->reader;
    note_help(driver);
    driver->want_process |= mrt_loop_poll(driver, -1, true, 0);
    bool free = !driver->driving;
    reader->helps = true;
    mrt_driver_flush(driver, mrt_driver_patience(MRT_TIME_NEVER));
    reader->helps = false;
    mrt_tell(driver);
    return free;
}

/* Whether only the reader waits for events of the store. */
static bool suffices(const struct mrt_driver *driver)
{
    const struct mrt_reader *reader = &driver->reader;
    return reader->blocked == 1 && !reader->disabled && !driver->draining;
}

mrt_time mrt_reader_until(const struct mrt_driver *driver, mrt_time now)
{
    const struct mrt_reader *reader = &driver->reader;
    mrt_time until = reader->call ? reader->since + GRACE : reader->next_reader_until;
    if (!reader->frequent || now < reader->no_reader_until || now >= until ||
        (reader->call && !suffices(driver)))
        return 0;
    return until;
}

void mrt_reader_wake(struct mrt_driver *driver)
{
    if (driver->reader.sleeps)
        eventfd_write(driver->reader.fd, 1);
}

void mrt_reader_called(struct mrt_driver *driver)
{
    struct mrt_reader *reader = &driver->reader;
    reader->may_wait =
        driver->ops->answers_may_wait && driver->ops->answers_may_wait(driver->store);
    if (!reader->may_wait && !reader->call && reader->next_reader_until > 0)
        mrt_reader_recall(driver);
}

static bool may_read(struct mrt_driver *driver, const struct mrt_call *wait, mrt_time now)
{
    struct mrt_reader *reader = &driver->reader;
    if (!driver->ops->answers_may_wait || reader->call || reader->blocked > 1 || reader->disabled ||
        driver->draining || now < reader->no_reader_until || !mrt_waiter_asks(&wait->waiter))
        return false;
    if (reader->fd < 0)
        reader->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return reader->fd >= 0;
}

/* As mrt_loop_sleep, without timers, which the loop serves. */
static void sleep_until(struct mrt_driver *driver, mrt_time deadline, mrt_time now)
{
    struct mrt_reader *reader = &driver->reader;
    mrt_time left = deadline == MRT_TIME_NEVER ? deadline : deadline - now;
    reader->looks_away = driver->want_process;
    reader->sleeps = true;
    bool came = mrt_loop_poll(driver, reader->fd, !reader->looks_away, left);
    reader->sleeps = reader->looks_away = false;
    driver->want_process |= came;
}

static void stop_reading(struct mrt_driver *driver)
{
    struct mrt_reader *reader = &driver->reader;
    mrt_time now = mrt_time_now();
    reader->call = NULL;
    if (now >= reader->no_reader_until)
        reader->next_reader_until = now + GRACE;
    if (!reader->may_wait || !suffices(driver))
        mrt_reader_recall(driver);
}

bool mrt_reader_wait(struct mrt_driver *driver, struct mrt_call *wait, mrt_time deadline)
{
    struct mrt_reader *reader = &driver->reader;
    mrt_time now = mrt_time_now();
    if (!may_read(driver, wait, now)) {
        if (reader->call || reader->next_reader_until > 0)
            mrt_reader_recall(driver);
        return false;
    }
    reader->call = wait;
    reader->since = now;
    reader->frequent = now < reader->next_reader_until;
    for (;;) {
        mrt_driver_flush(driver, mrt_driver_patience(deadline));
        now = mrt_time_now();
        if (wait->waiter.state != MRT_WAITER_WAITING || now >= deadline)
            break;
        sleep_until(driver, deadline, now);
    }
    stop_reading(driver);
    return true;
}
