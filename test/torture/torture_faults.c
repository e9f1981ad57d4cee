/* SPDX-License-Identifier: Apache-2.0 */
/* Wrapped calls; see torture_faults.h. Threads: any. */
#include "torture_faults.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/types.h>

static _Atomic bool armed, for_ever;
static _Atomic int armed_kind;
static _Atomic size_t calls, failing, failed;
static _Atomic long live;

void faults_arm(enum fault_kind kind, size_t n, bool persistent)
{
    calls = 0;
    failed = 0;
    failing = n;
    for_ever = persistent;
    armed_kind = kind;
    armed = true;
}

size_t faults_disarm(void)
{
    armed = false;
    return failed;
}

long faults_live_blocks(void)
{
    return live;
}

static bool fails(enum fault_kind kind, int error)
{
    if (!armed || armed_kind != (int)kind)
        return false;
    size_t call = ++calls;
    if (call != failing && !(for_ever && call > failing))
        return false;
    failed++;
    errno = error;
    return true;
}

static void *counted(void *block)
{
    if (block)
        live++;
    return block;
}

/* ------------------------------------------------------------------- memory */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
char *__real_strdup(const char *text);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
char *__wrap_strdup(const char *text);
int __wrap_asprintf(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));
int __wrap___asprintf_chk(char **text, int flag, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void __wrap_free(void *block);

void *__wrap_malloc(size_t size)
{
    return fails(FAULT_MEMORY, ENOMEM) ? NULL : counted(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails(FAULT_MEMORY, ENOMEM) ? NULL : counted(__real_calloc(count, size));
}

void *__wrap_realloc(void *block, size_t size)
{
    if (fails(FAULT_MEMORY, ENOMEM))
        return NULL;
    void *moved = __real_realloc(block, size);
    return block ? moved : counted(moved);
}

char *__wrap_strdup(const char *text)
{
    return fails(FAULT_MEMORY, ENOMEM) ? NULL : counted(__real_strdup(text));
}

static int print(char **text, const char *format, va_list arguments)
{
    *text = NULL;
    if (fails(FAULT_MEMORY, ENOMEM))
        return -1;
    int length = vasprintf(text, format, arguments);
    if (length >= 0)
        live++;
    return length;
}

int __wrap_asprintf(char **text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = print(text, format, arguments);
    va_end(arguments);
    return length;
}

/* The checks of the C library in a build that is hardened. */
int __wrap___asprintf_chk(char **text, int flag, const char *format, ...)
{
    va_list arguments;
    (void)flag;
    va_start(arguments, format);
    int length = print(text, format, arguments);
    va_end(arguments);
    return length;
}

void __wrap_free(void *block)
{
    if (block)
        live--;
    __real_free(block);
}

/* --------------------------------------------------- descriptors and threads */

#define WRAP_FD(name, parameters, arguments)                                   \
    int __real_##name parameters;                                              \
    int __wrap_##name parameters;                                              \
    int __wrap_##name parameters                                               \
    {                                                                          \
        return fails(FAULT_DESCRIPTOR, EMFILE) ? -1 : __real_##name arguments; \
    }

WRAP_FD(eventfd, (unsigned count, int flags), (count, flags))
WRAP_FD(epoll_create1, (int flags), (flags))
WRAP_FD(inotify_init1, (int flags), (flags))
WRAP_FD(inotify_add_watch, (int fd, const char *path, unsigned mask), (fd, path, mask))
WRAP_FD(socket, (int domain, int type, int protocol), (domain, type, protocol))

int __real_open(const char *path, int flags, mode_t mode);
int __real_openat(int directory, const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, ...);
int __wrap_openat(int directory, const char *path, int flags, ...);

static mode_t mode_of(int flags, va_list arguments)
{
    return flags & O_CREAT ? (mode_t)va_arg(arguments, unsigned) : 0;
}

int __wrap_open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return fails(FAULT_DESCRIPTOR, EMFILE) ? -1 : __real_open(path, flags, mode);
}

int __wrap_openat(int directory, const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return fails(FAULT_DESCRIPTOR, EMFILE) ? -1 : __real_openat(directory, path, flags, mode);
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*body)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*body)(void *), void *argument);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*body)(void *), void *argument)
{
    if (fails(FAULT_DESCRIPTOR, EAGAIN))
        return EAGAIN;
    return __real_pthread_create(thread, attributes, body, argument);
}
