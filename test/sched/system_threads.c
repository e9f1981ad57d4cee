/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes, conditions, futexes and threads; see system.h. */
#include "system.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#define MUTEXES_MAX 32

/* ------------------------------------------------------------------ mutexes */

struct mutex {
    const pthread_mutex_t *address; /* NULL: free */
    int owner;                      /* -1: nobody */
    int waiters;
};

static struct mutex mutexes[MUTEXES_MAX];

static struct mutex *mutex_of(const pthread_mutex_t *address)
{
    struct mutex *free_one = NULL;
    for (int i = 0; i < MUTEXES_MAX; i++) {
        if (mutexes[i].address == address)
            return &mutexes[i];
        if (!mutexes[i].address && !free_one)
            free_one = &mutexes[i];
    }
    if (!free_one)
        sched_fail("more than %d mutexes", MUTEXES_MAX);
    *free_one = (struct mutex){.address = address, .owner = -1};
    return free_one;
}

static bool is_free(const void *subject)
{
    return ((const struct mutex *)subject)->owner < 0;
}

static void take(struct mutex *mutex)
{
    mutex->waiters++;
    while (mutex->owner >= 0)
        sched_wait("a mutex", is_free, mutex, MRT_TIME_NEVER);
    mutex->waiters--;
    mutex->owner = sched_self();
}

static void let_go(struct mutex *mutex)
{
    if (mutex->owner != sched_self())
        sched_fail("a mutex is let go that this thread does not have");
    mutex->owner = -1;
}

int __real_pthread_mutex_lock(pthread_mutex_t *address);
int __wrap_pthread_mutex_lock(pthread_mutex_t *address);
int __real_pthread_mutex_unlock(pthread_mutex_t *address);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *address);
int __real_pthread_mutex_destroy(pthread_mutex_t *address);
int __wrap_pthread_mutex_destroy(pthread_mutex_t *address);

int __wrap_pthread_mutex_lock(pthread_mutex_t *address)
{
    if (!sched_runs())
        return __real_pthread_mutex_lock(address);
    sched_point();
    struct mutex *mutex = mutex_of(address);
    if (mutex->owner == sched_self())
        sched_fail("a thread locks a mutex twice");
    take(mutex);
    return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *address)
{
    if (!sched_runs())
        return __real_pthread_mutex_unlock(address);
    let_go(mutex_of(address));
    sched_point();
    return 0;
}

int __wrap_pthread_mutex_destroy(pthread_mutex_t *address)
{
    if (!sched_runs())
        return __real_pthread_mutex_destroy(address);
    struct mutex *mutex = mutex_of(address);
    if (mutex->owner >= 0 || mutex->waiters > 0)
        sched_fail("a mutex is destroyed that a thread has or waits for");
    mutex->address = NULL;
    return __real_pthread_mutex_destroy(address);
}

/* ------------------------------------------------------------------ conditions */

/* A thread that waits for a condition, and whether it has been told. */
struct waiting {
    const pthread_cond_t *condition; /* NULL: not waiting */
    bool told;
};

static struct waiting waiting[THREADS_MAX];

static bool was_told(const void *subject)
{
    return ((const struct waiting *)subject)->told;
}

static int wait_for(pthread_cond_t *condition, pthread_mutex_t *address, mrt_time until)
{
    struct mutex *mutex = mutex_of(address);
    struct waiting *own = &waiting[sched_self()];
    *own = (struct waiting){.condition = condition};
    let_go(mutex);
    bool told = sched_wait("a condition", was_told, own, until);
    own->condition = NULL;
    take(mutex);
    return told ? 0 : ETIMEDOUT;
}

int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *address);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *address,
                                  const struct timespec *until);
int __wrap_pthread_cond_signal(pthread_cond_t *condition);
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition);
int __real_pthread_cond_destroy(pthread_cond_t *condition);
int __wrap_pthread_cond_destroy(pthread_cond_t *condition);

int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *address)
{
    return wait_for(condition, address, MRT_TIME_NEVER);
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *address,
                                  const struct timespec *until)
{
    return wait_for(condition, address, until->tv_sec * MRT_SECOND + until->tv_nsec);
}

int __wrap_pthread_cond_signal(pthread_cond_t *condition)
{
    for (int i = 0; i < THREADS_MAX; i++) {
        if (waiting[i].condition != condition || waiting[i].told)
            continue;
        waiting[i].told = true;
        break;
    }
    sched_point();
    return 0;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *condition)
{
    for (int i = 0; i < THREADS_MAX; i++)
        if (waiting[i].condition == condition)
            waiting[i].told = true;
    sched_point();
    return 0;
}

int __wrap_pthread_cond_destroy(pthread_cond_t *condition)
{
    for (int i = 0; i < THREADS_MAX; i++)
        if (sched_runs() && waiting[i].condition == condition)
            sched_fail("a condition is destroyed that a thread waits for");
    return __real_pthread_cond_destroy(condition);
}

/* ------------------------------------------------------------------ futexes */

struct sleeper {
    const uint32_t *word; /* NULL: not asleep */
    bool woken;
};

static struct sleeper sleepers[THREADS_MAX];

static bool was_woken(const void *subject)
{
    return ((const struct sleeper *)subject)->woken;
}

static long sleep_on(const uint32_t *word, uint32_t expected, const struct timespec *timeout)
{
    sched_point();
    if (*word != expected) {
        errno = EAGAIN;
        return -1;
    }
    mrt_time until = MRT_TIME_NEVER;
    if (timeout)
        until = mrt_time_add(sched_now(), timeout->tv_sec * MRT_SECOND + timeout->tv_nsec);
    struct sleeper *own = &sleepers[sched_self()];
    *own = (struct sleeper){.word = word};
    bool woken = sched_wait("a wake", was_woken, own, until);
    own->word = NULL;
    errno = woken ? 0 : ETIMEDOUT;
    return woken ? 0 : -1;
}

static long wake(const uint32_t *word)
{
    long woken = 0;
    for (int i = 0; i < THREADS_MAX && woken == 0; i++) {
        if (sleepers[i].word != word || sleepers[i].woken)
            continue;
        sleepers[i].woken = true;
        woken++;
    }
    sched_point();
    return woken;
}

long __wrap_syscall(long number, ...);

long __wrap_syscall(long number, ...)
{
    va_list arguments;
    va_start(arguments, number);
    const uint32_t *word = va_arg(arguments, const uint32_t *);
    int operation = va_arg(arguments, int);
    uint32_t value = va_arg(arguments, uint32_t);
    const struct timespec *timeout = va_arg(arguments, const struct timespec *);
    va_end(arguments);
    if (number != SYS_futex || !sched_runs())
        abort();
    return operation == FUTEX_WAIT_PRIVATE ? sleep_on(word, value, timeout) : wake(word);
}

/* ------------------------------------------------------------------ threads */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*run)(void *argument), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*run)(void *argument), void *argument);
int __real_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result);
pthread_t __real_pthread_self(void);
pthread_t __wrap_pthread_self(void);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*run)(void *argument), void *argument)
{
    if (!sched_runs())
        return __real_pthread_create(thread, attributes, run, argument);
    char name[24];
    snprintf(name, sizeof name, "loop%d", sched_count());
    *thread = (pthread_t)sched_start(name, run, argument);
    sched_point();
    return 0;
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
    if (!sched_runs())
        return __real_pthread_join(thread, result);
    void *given = sched_join((int)thread);
    if (result)
        *result = given;
    return 0;
}

pthread_t __wrap_pthread_self(void)
{
    return sched_runs() ? (pthread_t)sched_self() : __real_pthread_self();
}

/* ------------------------------------------------------------------ a run */

void system_threads_begin(void)
{
    memset(mutexes, 0, sizeof mutexes);
    memset(waiting, 0, sizeof waiting);
    memset(sleepers, 0, sizeof sleepers);
}

void system_threads_end(void)
{
    for (int i = 0; i < MUTEXES_MAX; i++)
        if (mutexes[i].address && mutexes[i].owner >= 0)
            sched_fail("a mutex is held at the end");
}
