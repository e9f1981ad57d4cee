/* SPDX-License-Identifier: Apache-2.0 */
/* Registration of descriptors with epoll. Removal is a plain epoll_ctl(epoll, EPOLL_CTL_DEL, fd,
   NULL). */
#ifndef MRT_BASE_EPOLL_H
#define MRT_BASE_EPOLL_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

/* Registers a descriptor for these events, or changes those of one that is registered. `tag` comes
   back with each event. False: the system refuses it. */
static inline bool mrt_epoll_watch(int epoll, int fd, uint32_t events, void *tag)
{
    struct epoll_event event = {.events = events, .data.ptr = tag};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0 ||
           (errno == EEXIST && epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event) == 0);
}

#endif
