/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue's policy, as data: how the waiters of this process share what the store grants.
 *
 * `serve` brings the queue to where it should be, and is called after every change of it. `granted`
 * is called when the store has granted a ticket of the queue, and before it is served. `released`
 * is called when a hold of the ticket has gone or become lighter, and before it is served.
 */
#ifndef MRT_CORE_POLICY_H
#define MRT_CORE_POLICY_H

#include "base/time.h"

struct mrt_queue;
struct mrt_ticket;

struct mrt_policy {
    void (*serve)(struct mrt_queue *queue, mrt_time now);
    void (*granted)(struct mrt_queue *queue, mrt_time now);
    void (*released)(struct mrt_ticket *ticket);
};

#endif
