/*
 * Leading: a thread that waits for the store reads its answers itself.
 *
 * Were they read by the loop, each wait would cost a switch to the loop and another one to who
 * waits. So a caller whose wait is for the store leads, if it is the only one that is blocked: it
 * sleeps on the store's descriptor, and on one of its own by which others wake it. Callbacks, and
 * timers, stay the loop's.
 *
 * Once one has led soon after another, the loop leaves the store's descriptor alone while somebody
 * leads, and for GRACE afterwards, or each answer would wake both. It looks at the clock instead,
 * and is back by itself in a wait that lasts longer, or when nobody has led for so long. So an
 * event that comes while nobody leads may be read late by GRACE, and what a server refuses, to be
 * asked once more, be asked so late. Where that is too long the loop is called back at once, and
 * stays for a while (`pause`) in which nobody begins to lead:
 *  - others are blocked, or what is told may be urgent (mrt_lead_never);
 *  - the store has something under way that must be read to go on (answers_may_wait);
 *  - the program has just asked to be told of something, or is closing.
 * Nothing of safety hangs on it: how long a hold is valid is computed from the clock.
 *
 * Invariant: the loop never leaves the store's descriptor (`away`) for longer than GRACE. What is
 * there is not lost meanwhile: descriptors tell of it for as long as it has not been read.
 */
#include "io/driver.h"

#include <sys/eventfd.h>

#define GRACE (20 * MRT_MILLISECOND)
#define PAUSE (20 * MRT_MILLISECOND)

void mrt_lead_recall(struct mrt_driver *driver)
{
    struct mrt_lead *lead = &driver->lead;
    lead->grace = 0;
    lead->pause = mrt_time_now() + PAUSE; /* somebody may be leading, and go on */
    if (lead->away > 0)
        mrt_loop_kick(driver);
}

void mrt_lead_never(struct mrt_driver *driver)
{
    if (!driver->lead.never)
        mrt_lead_recall(driver);
    driver->lead.never = true;
}

/* Whether nobody but who leads waits for what the store tells. */
static bool suffices(const struct mrt_driver *driver)
{
    const struct mrt_lead *lead = &driver->lead;
    return lead->blocked == 1 && !lead->never && !driver->draining;
}

mrt_time mrt_lead_until(const struct mrt_driver *driver, mrt_time now)
{
    const struct mrt_lead *lead = &driver->lead;
    mrt_time until = lead->leader ? lead->since + GRACE : lead->grace;
    if (!lead->often || now < lead->pause || now >= until || (lead->leader && !suffices(driver)))
        return 0;
    return until;
}

void mrt_lead_wake(struct mrt_driver *driver)
{
    if (driver->lead.sleeps)
        eventfd_write(driver->lead.fd, 1);
}

void mrt_lead_called(struct mrt_driver *driver)
{
    struct mrt_lead *lead = &driver->lead;
    lead->may_wait = driver->ops->answers_may_wait && driver->ops->answers_may_wait(driver->store);
    if (!lead->may_wait && !lead->leader && lead->grace > 0)
        mrt_lead_recall(driver);
}

static bool may_lead(struct mrt_driver *driver, const struct mrt_wait *wait, mrt_time now)
{
    struct mrt_lead *lead = &driver->lead;
    if (!driver->ops->answers_may_wait || lead->leader || lead->blocked > 1 || lead->never ||
        driver->draining || now < lead->pause || !mrt_waiter_asks(&wait->waiter))
        return false;
    if (lead->fd < 0)
        lead->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return lead->fd >= 0;
}

/* As mrt_loop_sleep, but timers are the loop's. */
static void sleep_until(struct mrt_driver *driver, mrt_time deadline, mrt_time now)
{
    struct mrt_lead *lead = &driver->lead;
    mrt_time left = deadline == MRT_TIME_NEVER ? deadline : deadline - now;
    lead->looks_away = driver->want_process;
    lead->sleeps = true;
    bool came = mrt_loop_poll(driver, lead->fd, !lead->looks_away, left);
    lead->sleeps = lead->looks_away = false;
    driver->want_process |= came;
}

static void stop_leading(struct mrt_driver *driver)
{
    struct mrt_lead *lead = &driver->lead;
    mrt_time now = mrt_time_now();
    lead->leader = NULL;
    if (now >= lead->pause)
        lead->grace = now + GRACE;
    if (!lead->may_wait || !suffices(driver))
        mrt_lead_recall(driver);
}

bool mrt_lead(struct mrt_driver *driver, struct mrt_wait *wait, mrt_time deadline)
{
    struct mrt_lead *lead = &driver->lead;
    mrt_time now = mrt_time_now();
    if (!may_lead(driver, wait, now)) {
        if (lead->leader || lead->grace > 0)
            mrt_lead_recall(driver);
        return false;
    }
    lead->leader = wait;
    lead->since = now;
    lead->often = now < lead->grace;
    for (;;) {
        mrt_driver_flush(driver, mrt_driver_patience(deadline));
        now = mrt_time_now();
        if (wait->waiter.state != MRT_WAITER_WAITING || now >= deadline)
            break;
        sleep_until(driver, deadline, now);
    }
    stop_leading(driver);
    return true;
}
