/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls of libpq. It is a shared library, so the linker's --wrap does not reach it;
 * but a program's own functions stand before the C library's. For descriptors that a host has
 * given out these lead where --wrap leads, for all others to the system. Where they are defined
 * nothing is wrapped but by its own name, so __real_ functions come here too.
 */
#undef _FILE_OFFSET_BITS /* the declaration of fcntl */
#include "host.h"

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

int __wrap_socket(int family, int type, int protocol);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t length);
int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *size);
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags);
int __wrap_close(int fd);

static bool is_ours(int fd)
{
    return fd >= HOST_DESCRIPTORS;
}

SHOWN int socket(int family, int type, int protocol)
{
    return host_current ? __wrap_socket(family, type, protocol)
                        : (int)syscall(SYS_socket, family, type, protocol);
}

SHOWN int connect(int fd, const struct sockaddr *address, socklen_t length)
{
    return is_ours(fd) ? __wrap_connect(fd, address, length)
                       : (int)syscall(SYS_connect, fd, address, length);
}

SHOWN int getsockopt(int fd, int level, int option, void *value, socklen_t *size)
{
    return is_ours(fd) ? __wrap_getsockopt(fd, level, option, value, size)
                       : (int)syscall(SYS_getsockopt, fd, level, option, value, size);
}

SHOWN int setsockopt(int fd, int level, int option, const void *value, socklen_t size)
{
    return is_ours(fd) ? 0 : (int)syscall(SYS_setsockopt, fd, level, option, value, size);
}

SHOWN int getsockname(int fd, struct sockaddr *address, socklen_t *length)
{
    if (!is_ours(fd))
        return (int)syscall(SYS_getsockname, fd, address, length);
    memset(address, 0, *length);
    return 0;
}

SHOWN ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
    return is_ours(fd) ? __wrap_send(fd, bytes, size, flags)
                       : (ssize_t)syscall(SYS_sendto, fd, bytes, size, flags, NULL, 0);
}

SHOWN ssize_t recv(int fd, void *bytes, size_t size, int flags)
{
    return is_ours(fd) ? __wrap_recv(fd, bytes, size, flags)
                       : (ssize_t)syscall(SYS_recvfrom, fd, bytes, size, flags, NULL, NULL);
}

SHOWN int close(int fd)
{
    return is_ours(fd) ? __wrap_close(fd) : (int)syscall(SYS_close, fd);
}

SHOWN int fcntl(int fd, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    long argument = va_arg(arguments, long);
    va_end(arguments);
    return is_ours(fd) ? 0 : (int)syscall(SYS_fcntl, fd, command, argument);
}

/* libpq's questions about one descriptor: whether there is more, or an end; and, when only a part
 * of a startup was taken, whether it may send the rest. */
SHOWN int poll_one(struct pollfd *descriptors, nfds_t count, int timeout) __asm__("poll");
int poll_one(struct pollfd *descriptors, nfds_t count, int timeout)
{
    if (count != 1 || !is_ours(descriptors[0].fd))
        return (int)syscall(SYS_poll, descriptors, count, timeout);
    const struct host_socket *stream = host_socket_of(host_current, descriptors[0].fd);
    uint32_t state = stream ? stream->state(stream) : EPOLLERR | EPOLLIN;
    uint32_t asked = (uint32_t)descriptors[0].events | EPOLLERR | EPOLLHUP;
    descriptors[0].revents = (short)(state & asked);
    return descriptors[0].revents != 0;
}
