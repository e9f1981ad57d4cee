/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks: the handles, and acquiring through them, blocking and asynchronously.
 *
 * Every acquire is one mrt_call: on the caller's stack when it blocks, on the heap
 * when it calls back. A blocking acquire allocates nothing.
 */
#include "api/client.h"
#include "base/error.h"
#include "core/recipe.h"
#include "io/loop.h"
#include "store/kit/refusal.h"

#include <stdlib.h>

uint64_t mrt_thread_owner(void)
{
    static _Atomic uint64_t last;
    static _Thread_local uint64_t own;
    if (own == 0)
        own = (atomic_fetch_add(&last, 1) + 1) | MRT_OWNER_IS_THREAD;
    return own;
}

static int take_options(const mortise_lock_options *given, mortise_lock_options *options)
{
    int error = mrt_take_options(given, options, sizeof *options, "mortise_lock_options");
    if (error != MORTISE_OK)
        return error;
    if (options->owner != MORTISE_OWNER_NOBODY && options->owner & MRT_OWNER_IS_THREAD)
        return mrt_error(MORTISE_EINVALID, "an owner id must be below 2^63");
    if (options->flags & ~(uint32_t)MORTISE_WAIT_FOR_SELF)
        return mrt_error(MORTISE_EINVALID, "mortise_lock_options.flags has unknown bits");
    if (options->max_hold_ms < 0)
        return mrt_error(MORTISE_EINVALID, "mortise_lock_options.max_hold_ms is negative");
    if (options->lock_delay_ms < 0 || options->lock_delay_ms > MORTISE_LOCK_DELAY_MAX_MS)
        return mrt_error(MORTISE_EINVALID,
                         "mortise_lock_options.lock_delay_ms is negative, or more than a day");
    return MORTISE_OK;
}

static int check_linger(const mortise_client *client, const struct mrt_recipe *recipe,
                        int64_t linger_ms)
{
    if (linger_ms < 0 || (linger_ms > 0 && (recipe->shared || recipe->claim)))
        return mrt_error(MORTISE_EINVALID,
                         "mortise_lock_options.linger_ms is negative, or not of a mutex");
    if (linger_ms > 0 && !client->driver.ops->capabilities.linger)
        return mrt_error(MORTISE_ENOTSUPPORTED,
                         "the store \"%s\" cannot report waiters, so linger_ms is refused",
                         client->driver.ops->scheme);
    return MORTISE_OK;
}

static int check_delay(const mortise_client *client, const struct mrt_recipe *recipe,
                       int64_t delay_ms)
{
    const struct mrt_store_ops *ops = client->driver.ops;
    if (delay_ms > 0 && (!ops->capabilities.lock_delay || (recipe->claim && ops->claims_end)))
        return mrt_error(MORTISE_ENOTSUPPORTED, "the store \"%s\" has no delay after a crash%s",
                         ops->scheme, recipe->claim ? " for exclusive locks" : "");
    return MORTISE_OK;
}

int mrt_client_queue(mortise_client *client, const char *full, const struct mrt_recipe *recipe,
                     struct mrt_queue **queue)
{
    int error = mrt_engine_queue(client->driver.engine, full, recipe, queue);
    if (error != MORTISE_EMISMATCH)
        return error;
    const struct mrt_recipe *used = mrt_queue_recipe(*queue);
    return mrt_error(error, MRT_REFUSAL_MISMATCH, full + client->prefix_length, used->kind,
                     used->capacity, recipe->kind, recipe->capacity);
}

static int lock_new(mortise_client *client, const char *name, const struct mrt_recipe *recipe,
                    const mortise_lock_options *given, mortise_lock **result)
{
    mortise_lock_options options;
    if (!client || !result)
        return mrt_error(MORTISE_EINVALID, "a lock needs a client and a place for its handle");
    int error = mrt_driver_check(&client->driver, false);
    char full[MRT_FULL_NAME_SIZE];
    if (error == MORTISE_OK)
        error = mrt_client_full_name(client, name, full);
    if (error == MORTISE_OK)
        error = take_options(given, &options);
    if (error == MORTISE_OK)
        error = check_linger(client, recipe, options.linger_ms);
    if (error == MORTISE_OK)
        error = check_delay(client, recipe, options.lock_delay_ms);
    if (error != MORTISE_OK)
        return error;
    mortise_lock *lock = calloc(1, sizeof *lock);
    if (!lock)
        return MORTISE_ENOMEM;
    lock->client = client;
    lock->unowned = options.owner == MORTISE_OWNER_NOBODY;
    lock->owner = lock->unowned ? 0 : options.owner;
    lock->hold_max = mrt_time_from_ms(options.max_hold_ms);
    lock->queued = options.queued;
    lock->queued_argument = options.queued_argument;
    lock->weight = 1;
    TAILQ_INIT(&lock->waits);
    mrt_driver_enter(&client->driver);
    error = mrt_client_queue(client, full, recipe, &lock->queue);
    if (error == MORTISE_OK && options.linger_ms > 0) {
        mrt_queue_linger(lock->queue, mrt_time_from_ms(options.linger_ms));
        mrt_reader_disable(&client->driver); /* other clients wait for a lingering lock, so the loop
                                                must read their news */
    }
    if (error == MORTISE_OK) {
        mrt_queue_delay(lock->queue, mrt_time_from_ms(options.lock_delay_ms), mrt_time_now());
        TAILQ_INSERT_TAIL(&client->locks, lock, link);
        *result = lock;
    } else {
        free(lock);
    }
    mrt_driver_leave(&client->driver, MRT_TIME_NEVER);
    return error;
}

int mortise_mutex_new(mortise_client *client, const char *name, const mortise_lock_options *options,
                      mortise_lock **lock)
{
    return lock_new(client, name, &mrt_mutex, options, lock);
}

int mortise_semaphore_mutex_new(mortise_client *client, const char *name,
                                const mortise_lock_options *given, mortise_lock **lock)
{
    mortise_lock_options options;
    int error = take_options(given, &options);
    if (error == MORTISE_OK)
        error = lock_new(client, name, &mrt_semaphore_mutex, &options, lock);
    if (error == MORTISE_OK)
        (*lock)->unowned |= options.flags & MORTISE_WAIT_FOR_SELF;
    return error;
}

int mortise_exclusive_new(mortise_client *client, const char *name,
                          const mortise_lock_options *options, mortise_lock **lock)
{
    return lock_new(client, name, &mrt_exclusive, options, lock);
}

int mortise_semaphore_new(mortise_client *client, const char *name, uint32_t permits,
                          const mortise_lock_options *given, mortise_lock **lock)
{
    mortise_lock_options options;
    int error = take_options(given, &options);
    if (error != MORTISE_OK)
        return error;
    uint32_t weight = options.permits ? options.permits : 1;
    if (permits == 0 || weight > permits)
        return mrt_error(MORTISE_EINVALID, "%u of %u permits cannot be taken", weight, permits);
    const struct mrt_recipe recipe = mrt_semaphore(permits);
    error = lock_new(client, name, &recipe, &options, lock);
    if (error != MORTISE_OK)
        return error;
    (*lock)->weight = weight;
    (*lock)->unowned = true;
    return MORTISE_OK;
}

int mortise_read_write_new(mortise_client *client, const char *name,
                           const mortise_lock_options *options, mortise_lock **read,
                           mortise_lock **write)
{
    mortise_lock *reading = NULL;
    if (!read || !write)
        return mrt_error(MORTISE_EINVALID, "a read/write lock needs a place for each side");
    int error = lock_new(client, name, &mrt_read_write, options, &reading);
    if (error != MORTISE_OK)
        return error;
    error = lock_new(client, name, &mrt_read_write, options, write);
    if (error != MORTISE_OK) {
        mortise_lock_free(reading);
        return error;
    }
    (*write)->weight = MRT_WRITER; /* a handle that reads weighs 1 already */
    *read = reading;
    return MORTISE_OK;
}

void mrt_lock_pin(mortise_lock *lock)
{
    lock->uses++;
    mrt_driver_pin(&lock->client->driver);
}

void mrt_lock_unpin(mortise_lock *lock)
{
    struct mrt_driver *driver = &lock->client->driver;
    lock->uses--;
    mrt_driver_unpin(driver);
}

int mortise_lock_free(mortise_lock *lock)
{
    mrt_error_clear();
    if (!lock)
        return MORTISE_OK;
    struct mrt_driver *driver = &lock->client->driver;
    int error = mrt_driver_check(driver, false);
    if (error != MORTISE_OK)
        return error; /* in a forked child mortise_close frees it */
    mrt_driver_enter(driver);
    if (lock->uses > 0 || !TAILQ_EMPTY(&lock->waits)) {
        error = mrt_error(MORTISE_EINVALID,
                          "%s: an acquire uses this handle: end it with mortise_cancel_waiters, "
                          "and free the handle after the acquire has returned or called back",
                          mortise_lock_name(lock));
        mrt_driver_leave_quietly(driver);
        return error;
    }
    mrt_queue_put(lock->queue);
    TAILQ_REMOVE(&lock->client->locks, lock, link);
    mrt_driver_leave(driver, MRT_TIME_NEVER);
    free(lock);
    return MORTISE_OK;
}

const char *mortise_lock_name(const mortise_lock *lock)
{
    return lock ? mrt_queue_name(lock->queue) + lock->client->prefix_length : NULL;
}

uint64_t mrt_lock_owner(const mortise_lock *lock)
{
    return lock->unowned ? 0 : lock->owner ? lock->owner : mrt_thread_owner();
}

void mrt_lock_fill_wait(const mortise_lock *lock, struct mrt_call *wait)
{
    wait->queued = lock->queued;
    wait->queued_argument = lock->queued_argument;
    wait->waiter.weight = lock->weight;
    wait->waiter.hold_max = lock->hold_max;
    wait->waiter.wants_place = lock->queued != NULL;
}

/* --------------------------------------------------------------- blocking */

void mrt_lock_begin(mortise_lock *lock, struct mrt_call *wait, uint64_t owner, bool try_only,
                    bool expect_free)
{
    struct mrt_waiter *waiter = &wait->waiter;
    *wait = (struct mrt_call){.kind = MRT_CALL_BLOCKING};
    waiter->owner = owner;
    mrt_lock_fill_wait(lock, wait);
    waiter->deadline = MRT_TIME_NEVER;
    waiter->try_only = try_only;
    waiter->expect_free = expect_free;
    waiter->competes = true;
    TAILQ_INSERT_TAIL(&lock->waits, wait, handle_link);
    mrt_engine_acquire(lock->client->driver.engine, lock->queue, waiter, mrt_time_now());
}

int mrt_lock_wait(mortise_lock *lock, struct mrt_call *wait, mrt_time deadline, mortise_hold *hold)
{
    struct mrt_driver *driver = &lock->client->driver;
    struct mrt_waiter *waiter = &wait->waiter;
    if (waiter->state != MRT_WAITER_DONE)
        mrt_driver_wait(driver, wait, deadline, MORTISE_ETIMEOUT);
    TAILQ_REMOVE(&lock->waits, wait, handle_link);
    int error = mrt_driver_outcome(driver, waiter);
    if (error == MORTISE_OK)
        *hold = (mortise_hold){waiter->hold, waiter->hold->generation};
    return error;
}

/* `since`: the caller waits from then on, also for the client's mutex; MRT_TIME_NEVER: from when
   it has the mutex. */
static int acquire(mortise_lock *lock, mrt_time since, mrt_time deadline, bool try_only,
                   mortise_hold *hold)
{
    if (!lock || !hold)
        return mrt_error(MORTISE_EINVALID, "acquire needs a lock and a place for the hold");
    struct mrt_driver *driver = &lock->client->driver;
    int error = mrt_driver_check(driver, true);
    if (error != MORTISE_OK)
        return error;
    uint64_t owner = mrt_lock_owner(lock);
    mrt_driver_enter(driver);
    struct mrt_hold *own = mrt_engine_nest(lock->queue, owner);
    if (own) {
        *hold = (mortise_hold){own, own->generation};
        mrt_driver_leave_quietly(driver);
        return MORTISE_OK;
    }
    struct mrt_call wait;
    mrt_lock_begin(lock, &wait, owner, try_only, false);
    wait.waiter.since = mrt_time_min(since, wait.waiter.since);
    error = mrt_lock_wait(lock, &wait, deadline, hold);
    mrt_driver_leave(driver, deadline);
    return error;
}

int mortise_acquire(mortise_lock *lock, mortise_hold *hold)
{
    return acquire(lock, MRT_TIME_NEVER, MRT_TIME_NEVER, false, hold);
}

int mortise_try_acquire(mortise_lock *lock, mortise_hold *hold)
{
    mrt_time limit = lock ? mrt_time_add(mrt_time_now(), lock->client->timeout) : 0;
    return acquire(lock, MRT_TIME_NEVER, limit, true, hold);
}

int mortise_acquire_for(mortise_lock *lock, int64_t timeout_ms, mortise_hold *hold)
{
    if (timeout_ms == 0)
        return mortise_try_acquire(lock, hold);
    if (timeout_ms < 0)
        return mortise_acquire(lock, hold);
    mrt_time now = mrt_time_now();
    return acquire(lock, now, mrt_time_add(now, mrt_time_from_ms(timeout_ms)), false, hold);
}

int mortise_acquire_until(mortise_lock *lock, int64_t deadline_ns, mortise_hold *hold)
{
    return acquire(lock, MRT_TIME_NEVER, deadline_ns, false, hold);
}

int mortise_cancel_waiters(mortise_lock *lock)
{
    if (!lock)
        return mrt_error(MORTISE_EINVALID, "cancel_waiters needs a lock");
    struct mrt_driver *driver = &lock->client->driver;
    int error = mrt_driver_check(driver, false);
    if (error != MORTISE_OK)
        return error;
    struct mrt_call *wait;
    mrt_driver_enter(driver);
    TAILQ_FOREACH (wait, &lock->waits, handle_link)
        mrt_engine_cancel(driver->engine, &wait->waiter, MORTISE_ECANCELLED, mrt_time_now());
    mrt_driver_leave(driver, MRT_TIME_NEVER);
    return MORTISE_OK;
}

/* ------------------------------------------------------------ asynchronous */

struct mortise_operation {
    struct mrt_call wait; /* first */
    mortise_client *client;
};

static int begin_async(mortise_lock *lock, int64_t deadline_ns, bool try_only,
                       mortise_acquire_callback callback, void *argument,
                       mortise_operation **result)
{
    if (!lock || !callback)
        return mrt_error(MORTISE_EINVALID, "acquire_async needs a lock and a callback");
    struct mrt_driver *driver = &lock->client->driver;
    int error = mrt_driver_check(driver, false);
    if (error != MORTISE_OK)
        return error;
    mortise_operation *operation = calloc(1, sizeof *operation);
    if (!operation)
        return MORTISE_ENOMEM;
    operation->client = lock->client;
    struct mrt_call *wait = &operation->wait;
    wait->kind = MRT_CALL_ASYNC;
    wait->callback = callback;
    wait->argument = argument;
    wait->handle = &lock->waits;
    wait->waiter.owner = lock->unowned ? 0 : lock->owner;
    mrt_lock_fill_wait(lock, wait);
    wait->waiter.deadline = deadline_ns;
    wait->waiter.try_only = try_only;
    mrt_driver_enter(driver);
    mrt_reader_disable(driver);
    mrt_engine_acquire(driver->engine, lock->queue, &wait->waiter, mrt_time_now());
    TAILQ_INSERT_TAIL(&lock->waits, wait, handle_link);
    if (wait->waiter.state == MRT_WAITER_DONE)
        mrt_engine_settle(driver->engine, &wait->waiter);
    if (result)
        *result = operation;
    mrt_driver_leave(driver, MRT_TIME_NEVER);
    return MORTISE_OK;
}

int mortise_acquire_async(mortise_lock *lock, int64_t deadline_ns,
                          mortise_acquire_callback callback, void *argument,
                          mortise_operation **result)
{
    return begin_async(lock, deadline_ns, false, callback, argument, result);
}

int mortise_try_acquire_async(mortise_lock *lock, mortise_acquire_callback callback, void *argument,
                              mortise_operation **result)
{
    mrt_time limit = lock ? mrt_time_add(mrt_time_now(), lock->client->timeout) : 0;
    return begin_async(lock, limit, true, callback, argument, result);
}

void mortise_cancel(mortise_operation *operation)
{
    if (!operation || mrt_driver_check(&operation->client->driver, false) != MORTISE_OK)
        return;
    struct mrt_driver *driver = &operation->client->driver;
    mrt_driver_enter(driver);
    mrt_engine_cancel(driver->engine, &operation->wait.waiter, MORTISE_ECANCELLED, mrt_time_now());
    mrt_driver_leave(driver, MRT_TIME_NEVER);
}

const char *mortise_operation_detail(const mortise_operation *operation)
{
    return operation && operation->wait.detail ? operation->wait.detail : "";
}

int mortise_interrupt_fd(mortise_client *client)
{
    int error = mrt_client_check(client, false);
    if (error != MORTISE_OK)
        return error;
    mrt_driver_enter(&client->driver);
    int fd = mrt_loop_interrupt_fd(&client->driver);
    mrt_driver_leave_quietly(&client->driver);
    return fd;
}

/* ------------------------------------------------------------ foreign loop */

/* Whether the caller may run this client. */
static int check_foreign(const mortise_client *client, bool blocking)
{
    int error = mrt_client_check(client, blocking);
    if (error == MORTISE_OK && !client->driver.foreign && !client->driver.reader.shared)
        error = mrt_error(MORTISE_EINVALID, "this client has a thread of its own: open it with "
                                            "MORTISE_FOREIGN_LOOP or MORTISE_SHARED_LOOP to run "
                                            "it yourself");
    return error;
}

int mortise_fd(const mortise_client *client)
{
    int error = check_foreign(client, false);
    return error == MORTISE_OK ? mrt_loop_fd((struct mrt_driver *)&client->driver) : error;
}

int mortise_next_timeout_ms(mortise_client *client)
{
    int error = check_foreign(client, false);
    if (error != MORTISE_OK)
        return error;
    struct mrt_driver *driver = &client->driver;
    mrt_driver_enter(driver);
    mrt_time left = mrt_loop_left(driver);
    driver->reader.prompt |= driver->reader.shared;
    mrt_driver_leave_quietly(driver);
    if (left == MRT_TIME_NEVER)
        return -1;
    mrt_time ms = left / MRT_MILLISECOND + (left % MRT_MILLISECOND > 0);
    return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

int mortise_process(mortise_client *client)
{
    int error = check_foreign(client, true);
    if (error != MORTISE_OK)
        return error;
    struct mrt_driver *driver = &client->driver;
    mrt_driver_enter(driver);
    if (driver->reader.shared) {
        error = mrt_reader_help(driver) ? MORTISE_OK : MORTISE_EBUSY;
        mrt_driver_leave(driver, MRT_TIME_NEVER);
        return error;
    }
    mrt_loop_look(driver);
    mrt_loop_turn(driver, mrt_driver_patience(MRT_TIME_NEVER));
    mrt_driver_leave_quietly(driver);
    return MORTISE_OK;
}
