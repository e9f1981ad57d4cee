/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host agent: one process of a host that takes locks at a store for all others of that host.
 *
 * It stands beside the api: the engine and its driver below it are those of a client, and a lock
 * of a connection is a waiter, then a hold, of that engine. So a client of the agent waits in the
 * engine's queue, and the lock is handed on inside the agent as among the threads of a program.
 *
 * When a lock is given back. Mutual exclusion rests on one rule: a hold is released only after
 *  (1) the client has said so: by UNLOCK, or by the end of its connection, or
 *  (2) the agent has ended the connection, and the client either has closed its side, or has had
 *      `lease` to find out, counted from then.
 * A client that stands still cannot read that its connection was ended, and still believes that it
 * holds the lock; so (2) waits.
 *
 * If the agent dies, the store keeps its locks until the agent's session has run out. A store
 * without leases would free them at once; there each ticket carries a delay of `lease`.
 *
 * Threads: one, that calls mrt_agent_run.
 */
#ifndef MRT_AGENT_AGENT_H
#define MRT_AGENT_AGENT_H

#include "base/time.h"

#include <stdbool.h>
#include <sys/types.h>

struct mrt_agent;

struct mrt_agent_options {
    const char *url;    /* of the store; NULL: the library's default */
    const char *socket; /* path */
    int listener;       /* that listens there already; -1: the agent makes it */
    const char *policy; /* path; NULL: only its own user and root are served */
    mrt_time timeout;   /* to open the store */
    mrt_time drain;     /* after a signal: how long holds may go on */
    int stop;           /* a descriptor that is readable once the agent is to end */
    int renew;          /* one that is readable once the policy is to be read again; -1: none is */
    /* Called once the socket accepts connections; NULL: nobody. */
    void (*ready)(void *argument, const char *store);
    /* Called with a line about a client that was refused, or about the policy; NULL: nobody. */
    void (*log)(void *argument, const char *text);
    void *argument;
};

/* Listens and serves until `stop` is readable and all clients have gone, or `drain` is over.
   0, or an error with its particulars: MORTISE_EBUSY if another agent has the socket, those of
   mrt_access_read, and those of mortise_open. */
int mrt_agent_run(const struct mrt_agent_options *options);

#endif
