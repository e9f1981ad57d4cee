/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Kubernetes store. A file calls those below it, and above it by a callback alone:
 *
 *   entry.c            the module's entry
 *   port.c             commands in, events out, one descriptor
 *   operator.c         mortise_list, revoke, break, server, init: calls on a wire of their own
 *   session.c          START, STOP, and RENEW, which renews each Lease that is held
 *   command.c          a command of a lock: what it wants of the Lease
 *   ticket.c           the steps of a command: reading and writing the Lease
 *   queue.c            the commands of a lock in their order, its tickets and observers, its watch
 *   lease.c, name.c    what is in a Lease, and how it is called
 *   wire.c, uri.c      requests and addresses
 *   rights.c           what --print-acl prints
 *
 * A lock is one Lease, kept by the rule of client-go's leader election, so that both exclude each
 * other. The Lease has one holder and no queue: every ticket is a claim (clause l of the port).
 *
 *   take    a Lease that is not there is created; one without a holder, or whose record has not
 *           changed for its leaseDurationSeconds since this client first saw it, by this client's
 *           clock, is written. The server takes one of several writes of the same
 *           resourceVersion. leaseTransitions rises by one with each holder; the fence is that
 *           number and one, so it is never 0.
 *   hold    the holder's identity is its ticket's, which nobody else draws, so a client knows its
 *           own write again whose answer was lost. After such a write the Lease is read before
 *           anything is concluded.
 *   renew   There is no session at the server. A RENEW writes each Lease that the session holds,
 *           and is answered when all are written: what it proves is dated from the RENEW, before
 *           any of them was sent. A Lease that is another's by now is one ticket's loss, and no
 *           reason to end the session: its ticket is woken, and the look that follows finds it
 *           GONE. A Lease that could not be written proves nothing, so neither does the RENEW.
 *           A Lease that was written before the newest RENEW began, and is granted after it, would
 *           be believed from that RENEW on: so it is written once more before the grant is told.
 *   end     A Lease is released by its holder's write of no holder. A holder that dies is found
 *           out by others alone, each after a whole lease of its own watching: the server ends
 *           nothing. So a `try` finds the lock of a dead holder taken unless this client has been
 *           watching.
 *
 * Nothing holds longer than its record counts for others if their clocks run at most 1.5 % faster
 * or slower than they should, as everywhere in mortise. client-go's holders stop at their
 * RenewDeadline, which is shorter than their lease. Older versions of it wait for the LeaseDuration
 * of their own configuration, and not for the record's: beside them `lease` must not be longer.
 *
 * Threads: calls on one store come one at a time, from any thread; operators' at any time.
 */
#ifndef MRT_STORE_KUBERNETES_INTERNAL_H
#define MRT_STORE_KUBERNETES_INTERNAL_H

#include "base/error.h"
#include "base/owner.h"
#include "core/store.h"
#include "core/uthash.h"
#include "store/kit/job.h"
#include "store/kit/notes.h"
#include "store/kubernetes/lease.h"
#include "store/kubernetes/name.h"
#include "store/kubernetes/wire.h"

#define MRT_K8S_TRIES_MAX 10
#define MRT_K8S_KIND_SIZE 32

enum mrt_k8s_note { MRT_K8S_NOTE_REPLY, MRT_K8S_NOTE_WATCH };

struct mrt_k8s_job;
struct mrt_k8s_session {
    TAILQ_ENTRY(mrt_k8s_session) link;
    struct mrt_id id;
    mrt_time renewed; /* when the newest RENEW began */
    struct mrt_k8s_job *renewal, *stop;
    unsigned leaving; /* tickets that the STOP removes */
    bool ended;       /* a STOP has come */
    bool failed;      /* a part of the renewal, or of the STOP, has failed */
    char detail[MRT_JOB_DETAIL_SIZE];
};

struct mrt_k8s_queue;
struct mrt_k8s_ticket {
    TAILQ_ENTRY(mrt_k8s_ticket) link;
    struct mrt_k8s_queue *queue;
    struct mrt_k8s_session *session;
    struct mrt_id id;
    char kind[MRT_K8S_KIND_SIZE];
    void *value; /* NULL: none */
    size_t value_size;
    bool valued;   /* the Lease has the value */
    bool held;     /* as its newest VIEW said */
    bool lost;     /* it was held, and the Lease is another's for sure */
    bool doubtful; /* a write of unknown outcome may be under way */
    bool told;     /* it has been woken, or a command of it is under way */
    bool watch_closely;
    uint64_t revoked; /* the newest request that was told */
    int64_t ahead;    /* the wall clock, of the monotonic one */
    mrt_time sent;    /* when the newest write was sent that made it the holder; 0: none */
    struct mrt_rest_call *renewal;
    mrt_time renewing; /* when the write under way was sent */
    unsigned renewals; /* attempts of this RENEW */
    bool proves;       /* the RENEW waits for it */
};

/* Is told of one change. */
struct mrt_k8s_observer {
    TAILQ_ENTRY(mrt_k8s_observer) link;
    struct mrt_k8s_session *session;
    struct mrt_id id;
    uint64_t fence; /* as it was told; 0: nobody leads */
    char *value;    /* of the Lease, as it stands there */
};

struct mrt_k8s_job {
    struct mrt_job job; /* the first member */
    struct mrt_k8s_store *store;
    struct mrt_k8s_queue *queue;     /* NULL: a session's own command */
    struct mrt_k8s_session *session; /* of a STOP's part */
    mrt_time sent;                   /* the write under way */
    unsigned tries;
    bool fresh; /* the ticket is this APPEND's */
    bool doubt; /* a write's outcome is unknown */
};

struct mrt_k8s_queue {
    UT_hash_handle hh;
    TAILQ_ENTRY(mrt_k8s_queue) link;
    struct mrt_k8s_store *store;
    struct mrt_jobs jobs; /* the first is under way, if `busy` */
    bool busy;
    TAILQ_HEAD(, mrt_k8s_ticket) tickets;
    TAILQ_HEAD(, mrt_k8s_observer) observers;
    struct mrt_k8s_lease lease;
    struct mrt_rest_call *watch; /* or the list that it begins with */
    char version[64];            /* from which a watch can go on; "": from that of a list */
    bool refuted;                /* a write showed that the known version is not the server's */
    bool broken;                 /* the watch cannot go on */
    bool anew;                   /* the next one begins with a list */
    mrt_time again;              /* when it may begin again */
    mrt_time released;           /* when a ticket of this client was released */
    mrt_time idle;               /* since when nobody needs its watch; 0: somebody does */
    unsigned failures;
    char name[MRT_K8S_NAME_SIZE]; /* of the Lease */
    char full[];
};

struct mrt_k8s_store {
    struct mrt_k8s_address address;
    char owner[MRT_OWNER_SIZE];
    struct mrt_k8s_wire wire;
    struct mrt_outbox outbox;
    struct mrt_notes notes;
    mrt_time timeout;
    /* Begins a command of a lock. */
    void (*begin)(struct mrt_k8s_job *job);
    uint64_t chance;
    bool inside;          /* a thread is in submit or process, as a forked child may find */
    struct mrt_jobs jobs; /* of sessions */
    TAILQ_HEAD(, mrt_k8s_session) sessions;
    struct mrt_k8s_queue *by_name; /* all queues, by their full names */
    TAILQ_HEAD(, mrt_k8s_queue) queues;
    unsigned watches;
};

extern const struct mrt_store_ops mrt_k8s_store; /* port.c */

/* session.c: START, STOP, RENEW. Takes the job. */
void mrt_k8s_session_submit(struct mrt_k8s_store *store, struct mrt_k8s_job *job);
/* Answers what has come to its end. */
void mrt_k8s_sessions_tick(struct mrt_k8s_store *store);

/* How long a call may take that a renewal waits for. */
static inline mrt_time mrt_k8s_limit(const struct mrt_k8s_store *store)
{
    return mrt_time_min(store->address.lease / 3, store->address.connect);
}

#endif
