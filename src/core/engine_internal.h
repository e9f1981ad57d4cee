/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of an engine. Of core only. From the top down, each file calls those below it alone:
 *   engine.c          commands out, events in, timers, the life of the whole
 *   calls.c           the calls that name a time
 *   session_answer.c  the session's beginning and end
 *   contact.c         silence of the store
 *   ticket_answer.c   what the store says of a ticket
 *   acquire.c         an acquire's beginning and end
 *   detach.c          tickets that outlive their session, and are adopted
 *   exclusive.c       policy: which waiter of this process has the lock next
 *   shared.c          policy: each waiter has a ticket of its own
 *   request.c         what is asked of the store beside tickets: cells, and who holds a queue
 *   queue.c           what happens to a queue's waiters and tickets
 *   session.c         is the session alive, and until when
 *   lend.c            what a host sees of a queue whose lock it lends to others
 *   hold.c            slots of holds, their states and ends, and what is told of them
 *   ticket.c          one place in one queue of the store: a state machine
 *   verify.c          asking the store whether a hold is there
 *   waiter.c          a call that waits, and its place in a queue
 *   agenda.c          the queues there are
 *   outbox.c          commands on their way
 */
#ifndef MRT_CORE_ENGINE_INTERNAL_H
#define MRT_CORE_ENGINE_INTERNAL_H

#include "base/heap.h"
#include "core/engine.h"
#include "core/outbox.h"
#include "core/queue.h"
#include "core/session.h"
#include "core/ticket.h"

TAILQ_HEAD(mrt_command_list, mrt_command);

/* The structure that a timer is embedded in. */
enum mrt_timer_kind {
    MRT_TIMER_WAITER,
    MRT_TIMER_TICKET,
    MRT_TIMER_HOLD,
    MRT_TIMER_REQUEST,
    MRT_TIMER_SESSION,
    MRT_TIMER_CONTACT
};

struct mrt_engine {
    struct mrt_engine_config config;
    uint64_t identities, serial;
    struct mrt_heap timers;
    struct mrt_session session;
    struct mrt_queue *queues_by_name;
    struct mrt_queue_list queues;
    struct mrt_queue_list unused; /* without references; freed when no call is under way */
    struct mrt_ticket *tickets_by_id;
    struct mrt_ticket_list free_tickets;
    struct mrt_ticket_list loose_tickets; /* LEAVING and ORPHAN */
    struct mrt_hold_list free_holds;
    struct mrt_command_list outbox, outstanding;
    struct mrt_waiter_list settled, placed;
    struct mrt_hold_list told, asked;
    struct mrt_request_list requests, observed;
    bool closing;
    mrt_time silent_since; /* contact.c; 0: all commands are answered */
    bool away, away_told;
    struct mrt_timer contact;
    struct mrt_engine_counters counters;
};

#endif
