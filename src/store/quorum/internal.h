/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The quorum store. A file calls those below it alone:
 *
 *   port.c      the port: the URI, the members' descriptors, commands in, answers out
 *   list.c      mortise_list, by majority
 *   session.c   START, RENEW and STOP, by majority
 *   member.c    one member: its session, and what it answers
 *   claim.c     one ticket: a round of claims, and letting them go
 *   request.c   what a member is asked, until its answer is acted upon
 *
 * Threads: calls come one at a time. A member delivers only while it is called.
 */
#ifndef MRT_STORE_QUORUM_INTERNAL_H
#define MRT_STORE_QUORUM_INTERNAL_H

#include "core/store.h"
#include "store/kit/address.h"

#include <stdatomic.h>

#define MRT_QUORUM_MEMBERS_MAX 15
#define MRT_QUORUM_SIGNS 8 /* as the engine remembers */

enum mrt_quorum_phase { MRT_QUORUM_DOWN, MRT_QUORUM_STARTING, MRT_QUORUM_UP, MRT_QUORUM_STOPPING };

struct mrt_quorum_member {
    const struct mrt_store_ops *ops;
    struct mrt_store *store;
    struct mrt_quorum_store *quorum;
    unsigned index;
    enum mrt_quorum_phase phase;
    struct mrt_id session; /* of its own; another one after each loss */
    bool lost;             /* it has lost its session; not handled yet */
    _Atomic bool notified; /* its process is due */
    bool unreachable;      /* it has said so since it last answered */
    mrt_time start_at;     /* DOWN: when to try again */
    mrt_time lease, proof_lag;
    mrt_time starting; /* when its START was sent */
    mrt_time heard;    /* when the newest answered sign of life was sent */
    mrt_time proof; /* when the newest proven sign of life was sent, with regard to the member's own
                       proof_lag */
    struct {
        mrt_time sent, answered;
    } signs[MRT_QUORUM_SIGNS];
    unsigned sign_count;
};

struct mrt_quorum_store {
    struct mrt_sink sink;
    mrt_store_finder *find; /* of the members' stores */
    struct mrt_quorum_member members[MRT_QUORUM_MEMBERS_MAX];
    unsigned count, majority;
    mrt_time resolve_until; /* opening waits for no name of a member after that */
    unsigned unresolved;    /* members whose address was unknown at opening */
    mrt_time limit;         /* for a member's answer; 0: see mrt_quorum_limit */
    mrt_time timeout;       /* for START and STOP */
    int epoll;
    mrt_time worked_at;    /* when it last served its timers */
    struct mrt_id session; /* the engine's; none: not open */
    bool wanted;           /* members that are down are started */
    bool started;          /* STARTED was answered */
    uint64_t rounds; /* rounds of all tickets together, so that a ticket that comes again uses no
                        number twice */
    uint64_t identities, serial;
    struct mrt_id seed;
    TAILQ_HEAD(, mrt_quorum_ticket) tickets;
    TAILQ_HEAD(, mrt_quorum_request) requests;
    struct {
        uint64_t serial; /* of the engine's command; 0: none is under way */
        enum mrt_command_type type;
        mrt_time enough_at; /* STOP: from then on a majority will do */
        mrt_time decide_at;
        int error;
        char detail[160];
    } session_command;
    uint64_t renewals;   /* rounds of RENEW that have been sent */
    mrt_time renewed_at; /* when the newest of them was; 0: none was */
    mrt_time proven;     /* the newest date reported to the engine */
    mrt_time lease;
    char address[MORTISE_NAME_MAX * 4];
};

/* Answers a command of the engine, or delivers an event that no command asked for. */
static inline void mrt_quorum_deliver(const struct mrt_quorum_store *store, struct mrt_event event)
{
    store->sink.deliver(store->sink.context, &event);
}

/* A new identity of the store's own, for a session or a claim at members. */
static inline struct mrt_id mrt_quorum_identity(struct mrt_quorum_store *store)
{
    return (struct mrt_id){store->seed.high, store->seed.low + ++store->identities};
}

/* How long a member may take for an answer. */
mrt_time mrt_quorum_limit(const struct mrt_quorum_store *store);

#endif
