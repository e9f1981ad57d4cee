/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes of clients, by their pidfds: those that have locks themselves (BIND PROCESS), and those
 * whose end is that of their session: process.c.
 */
#ifndef MRT_AGENT_PROCESS_H
#define MRT_AGENT_PROCESS_H

#include "agent/peer.h"

/* The process that made this connection, if it has locks; NULL: it has none. */
struct mrt_peer *mrt_process_find(const struct mrt_peer *peer);
/* The same, made if there is none; NULL: the process has ended, or is not seen here, or
   there is no descriptor for it. */
struct mrt_peer *mrt_process_open(struct mrt_peer *peer);
void mrt_process_forget(struct mrt_peer *process);
/* Ends the peer with the process that connected, from now on; not if that is not seen here. False:
   there is no descriptor for it. */
bool mrt_process_watch(struct mrt_peer *peer);
void mrt_process_unwatch(struct mrt_peer *peer);
/* The tag of its pidfd in the epoll: an address within the peer, which has that of the peer. */
static inline void *mrt_process_tag(struct mrt_peer *peer)
{
    return (char *)peer + 1;
}

#endif
