/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors, the clock and entropy; see system.h. */
#include "system.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define FIRST_DESCRIPTOR 100000
#define DESCRIPTORS_MAX 256
#define MEMBERS_MAX 4

/* ------------------------------------------------------------------ descriptors */

enum kind { CLOSED, EVENTS, EPOLL, GIVEN };

struct descriptor {
    enum kind kind;
    uint64_t count;                     /* EVENTS */
    int members[MEMBERS_MAX];           /* EPOLL */
    bool (*ready)(const void *subject); /* GIVEN */
    const void *subject;
};

static struct descriptor descriptors[DESCRIPTORS_MAX];

static struct descriptor *find(int number)
{
    int place = number - FIRST_DESCRIPTOR;
    return place >= 0 && place < DESCRIPTORS_MAX ? &descriptors[place] : NULL;
}

static int open_one(enum kind kind)
{
    for (int i = 0; i < DESCRIPTORS_MAX; i++) {
        if (descriptors[i].kind != CLOSED)
            continue;
        descriptors[i] = (struct descriptor){.kind = kind};
        return FIRST_DESCRIPTOR + i;
    }
    sched_fail("more than %d descriptors", DESCRIPTORS_MAX);
}

static struct descriptor *find_open(int number)
{
    struct descriptor *descriptor = find(number);
    if (!descriptor || descriptor->kind == CLOSED)
        sched_fail("descriptor %d is used, and it is not open", number - FIRST_DESCRIPTOR);
    return descriptor;
}

bool system_readable(int number)
{
    const struct descriptor *descriptor = find_open(number);
    if (descriptor->kind == EVENTS)
        return descriptor->count > 0;
    if (descriptor->kind == GIVEN)
        return descriptor->ready(descriptor->subject);
    for (int i = 0; i < MEMBERS_MAX && descriptor->members[i]; i++)
        if (system_readable(descriptor->members[i]))
            return true;
    return false;
}

int system_descriptor(bool (*ready)(const void *subject), const void *subject)
{
    int number = open_one(GIVEN);
    struct descriptor *descriptor = find_open(number);
    descriptor->ready = ready;
    descriptor->subject = subject;
    return number;
}

void system_close(int number)
{
    *find_open(number) = (struct descriptor){.kind = CLOSED};
}

int __real_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags);
int __real_eventfd_write(int number, eventfd_t value);
int __wrap_eventfd_write(int number, eventfd_t value);
ssize_t __real_write(int number, const void *bytes, size_t size);
ssize_t __wrap_write(int number, const void *bytes, size_t size);
ssize_t __real_read(int number, void *bytes, size_t size);
ssize_t __wrap_read(int number, void *bytes, size_t size);
int __real_close(int number);
int __wrap_close(int number);
int __wrap_epoll_create1(int flags);
int __wrap_epoll_ctl(int epoll, int operation, int number, struct epoll_event *event);
int __wrap_ppoll(struct pollfd *polled, nfds_t count, const struct timespec *timeout,
                 const sigset_t *mask);

int __wrap_eventfd(unsigned count, int flags)
{
    if (!sched_runs())
        return __real_eventfd(count, flags);
    int number = open_one(EVENTS);
    find_open(number)->count = count;
    return number;
}

int __wrap_eventfd_write(int number, eventfd_t value)
{
    if (!find(number))
        return __real_eventfd_write(number, value);
    find_open(number)->count += value;
    sched_point();
    return 0;
}

ssize_t __wrap_write(int number, const void *bytes, size_t size)
{
    uint64_t value;
    if (!find(number) || size != sizeof value)
        return __real_write(number, bytes, size);
    memcpy(&value, bytes, sizeof value);
    __wrap_eventfd_write(number, value);
    return (ssize_t)size;
}

ssize_t __wrap_read(int number, void *bytes, size_t size)
{
    if (!find(number))
        return __real_read(number, bytes, size);
    struct descriptor *descriptor = find_open(number);
    if (descriptor->count == 0) {
        errno = EAGAIN;
        return -1;
    }
    memcpy(bytes, &descriptor->count, size);
    descriptor->count = 0;
    return (ssize_t)size;
}

int __wrap_close(int number)
{
    if (!find(number))
        return __real_close(number);
    system_close(number);
    return 0;
}

int __wrap_epoll_create1(int flags)
{
    (void)flags;
    return open_one(EPOLL);
}

int __wrap_epoll_ctl(int epoll, int operation, int number, struct epoll_event *event)
{
    (void)operation, (void)event;
    int *members = find_open(epoll)->members;
    while (*members)
        members++;
    *members = number;
    return 0;
}

struct polling {
    struct pollfd *polled;
    nfds_t count;
};

static bool any_readable(const void *subject)
{
    const struct polling *polling = subject;
    for (nfds_t i = 0; i < polling->count; i++)
        if (polling->polled[i].fd >= 0 && system_readable(polling->polled[i].fd))
            return true;
    return false;
}

int __wrap_ppoll(struct pollfd *polled, nfds_t count, const struct timespec *timeout,
                 const sigset_t *mask)
{
    struct polling polling = {polled, count};
    mrt_time until = MRT_TIME_NEVER;
    int ready = 0;
    (void)mask;
    if (timeout)
        until = mrt_time_add(sched_now(), timeout->tv_sec * MRT_SECOND + timeout->tv_nsec);
    sched_wait("a poll", any_readable, &polling, until);
    for (nfds_t i = 0; i < count; i++) {
        bool readable = polled[i].fd >= 0 && system_readable(polled[i].fd);
        polled[i].revents = readable ? POLLIN : 0;
        ready += readable;
    }
    return ready;
}

struct either {
    int number;
    bool (*ready)(const void *subject);
    const void *subject;
};

static bool is_either(const void *subject)
{
    const struct either *either = subject;
    return either->ready(either->subject) || system_readable(either->number);
}

void system_poll(const char *what, int number, bool (*ready)(const void *subject),
                 const void *subject, mrt_time until)
{
    const struct either either = {number, ready, subject};
    sched_wait(what, is_either, &either, until);
}

/* ------------------------------------------------------------------ clock, entropy */

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags);

static uint64_t entropy;

/* All clocks are one. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    if (!sched_runs())
        return __real_clock_gettime(clock, time);
    *time =
        (struct timespec){.tv_sec = sched_now() / MRT_SECOND, .tv_nsec = sched_now() % MRT_SECOND};
    return 0;
}

ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags)
{
    unsigned char *to = bytes;
    (void)flags;
    for (size_t i = 0; i < size; i++)
        to[i] = (unsigned char)((entropy += UINT64_C(0x9e3779b97f4a7c15)) >> 56);
    return (ssize_t)size;
}

/* ------------------------------------------------------------------ a run */

void system_begin(void)
{
    entropy = 0;
    memset(descriptors, 0, sizeof descriptors);
    system_threads_begin();
}

void system_end(void)
{
    for (int i = 0; i < DESCRIPTORS_MAX; i++)
        if (descriptors[i].kind != CLOSED)
            sched_fail("descriptor %d is open at the end", i);
    system_threads_end();
    system_free_kept();
}
