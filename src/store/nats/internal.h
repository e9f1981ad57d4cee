/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store of NATS JetStream. A file calls those below it, and above it by a callback alone:
 *
 *   entry.c                the module's entry
 *   port.c                 commands in, events out, one descriptor
 *   operator.c, sweep.c, ask.c   mortise_list, revoke, break, server, init: calls on a wire of
 *                          their own
 *   session.c              a session's message
 *   append.c, change.c, observe.c, cell.c    commands of a queue
 *   view.c                 what a walk shows of a ticket
 *   queue.c                the commands of a queue in their order, its tickets, its wakes
 *   answer.c               what all commands have in common
 *   walk.c, grave.c        a queue is read; a ticket of a dead session is removed
 *   stream.c, api.c, wire.c, link.c, code.c, text.c, uri.c   streams, messages, requests, the
 *                          connection, replies, texts and addresses, without state of the store
 *   relay.c, unit.c        what comes in the clear is checked before libnats reads it
 *
 * Subjects, below mortise.NAMESPACE, of which each keeps one message:
 *
 *   q.NAME.ID   a ticket's place. Its sequence is its place and its fence, so it never changes
 *   a.NAME.ID   the ticket as it was changed last: lighter, detached, with another value
 *   c.NAME      a cell; its sequence is the version
 *   s.LEASE.ID  a session, in a stream whose messages end after the lease
 *   w.NAME      in no stream: wakes whoever waits there
 *
 * Threads: calls on one store come one at a time, from any thread; operators' at any time.
 */
#ifndef MRT_STORE_NATS_INTERNAL_H
#define MRT_STORE_NATS_INTERNAL_H

#include "base/error.h"
#include "core/store.h"
#include "core/uthash.h"
#include "store/kit/job.h"
#include "store/kit/notes.h"
#include "store/nats/code.h"
#include "store/nats/stream.h"
#include "store/nats/walk.h"

#define MRT_NATS_RECHECK_HELD (10 * MRT_SECOND)
#define MRT_NATS_RECHECK_NEXT MRT_SECOND /* of who is next, and finds that a session has died */
#define MRT_NATS_RECHECK_WAITS (3 * MRT_SECOND)
#define MRT_NATS_RECHECK_LEAST (10 * MRT_MILLISECOND)
#define MRT_NATS_RECHECK_OBSERVED (2 * MRT_SECOND)
#define MRT_NATS_LEFT_MAX 64
#define MRT_NATS_TRIES_MAX 10

enum mrt_nats_note { MRT_NATS_NOTE_REPLY, MRT_NATS_NOTE_ACCESS };

struct mrt_nats_session {
    TAILQ_ENTRY(mrt_nats_session) link;
    struct mrt_id id;
    uint64_t sequence; /* of its newest message that is acknowledged */
    uint64_t count;    /* of the newest sign of life that was sent */
    uint64_t known;    /* of the acknowledged one */
    mrt_time proven;   /* when that was sent */
    mrt_time started;  /* when the first was */
    bool stops;        /* it takes no ticket */
    char subject[MRT_NATS_SUBJECT_SIZE];
};

struct mrt_nats_queue;
struct mrt_nats_job {
    struct mrt_job job; /* the first member */
    struct mrt_nats_store *store;
    struct mrt_nats_queue *queue;     /* NULL: a session's own command */
    struct mrt_nats_session *session; /* of a START, until it is started */
    struct mrt_nats_streams streams;
    int stage;
    unsigned tries, left;
    unsigned wakes, heard; /* of its ticket when its walk began */
    mrt_time sent;         /* when the sign of life was */
    uint64_t count;        /* of the sign of life */
    uint64_t sequence;
    bool fresh, listened, unknown;
    struct mrt_nats_walk walk;
    TAILQ_ENTRY(mrt_nats_job) pause;
    mrt_time again; /* 0: it does not pause */
    void (*resume)(struct mrt_nats_job *job);
};

/* A ticket of a session of this store. */
struct mrt_nats_record {
    TAILQ_ENTRY(mrt_nats_record) link;
    struct mrt_id session, ticket;
    char name[MRT_ID_TEXT_SIZE]; /* the last part of its subject */
    uint64_t sequence;           /* 0: not known */
    uint64_t attribute;          /* sequence of its change, as read last; 0: none */
    bool doomed;                 /* it is removed before it may come again */
    bool unowned;  /* it may be nobody's: its adoption, or detaching, may have been done or not */
    bool doubtful; /* a publish of it may arrive late: what takes its place stays */
    uint64_t capacity, weight, revoked;
    bool seen; /* it is in the queue; what follows is as its newest VIEW says */
    bool granted, others_behind, told;
    unsigned wakes; /* that have come, told or not */
    unsigned heard; /* departures that have been heard of; the newest are in `left` */
    uint64_t left[MRT_NATS_LEFT_MAX];
    bool watch_closely, linger;
    mrt_time checked, check_again; /* when the sessions ahead were looked up, and are again */
    struct mrt_nats_ahead {
        uint64_t sequence, weight;
    } * ahead; /* what is known to be ahead */
    size_t ahead_count;
};

/* Is told of one change. */
struct mrt_nats_observer {
    TAILQ_ENTRY(mrt_nats_observer) link;
    struct mrt_id session, id;
    mrt_time until; /* told in any case, since nobody may find that the leader is dead */
};

/* A session ahead of a ticket of this store's, as it was seen last. */
struct mrt_nats_sight {
    struct mrt_id session;
    uint64_t sequence; /* of its newest sign of life; 0: it is dead */
    mrt_time since;    /* since when it has been so, at the latest */
};
#define MRT_NATS_SIGHTS 128

struct mrt_nats_queue {
    UT_hash_handle hh;
    TAILQ_ENTRY(mrt_nats_queue) link; /* if it is active */
    bool active;                      /* it has commands, or listens, or needs to */
    struct mrt_nats_store *store;
    struct mrt_jobs jobs; /* the first is under way, if `busy` */
    bool busy, cell;
    TAILQ_HEAD(, mrt_nats_record) records;
    TAILQ_HEAD(, mrt_nats_observer) observers;
    natsSubscription *ear; /* NULL: it does not listen */
    unsigned generation;   /* the connection's on which it listens */
    bool deaf;             /* it ceased to listen, and tickets have not been woken since */
    mrt_time unneeded;     /* since when nobody needs to listen; 0: somebody does */
    char *token;           /* its name in subjects */
    char key[];            /* 'c' or 'q' and its name */
};

struct mrt_nats_store {
    struct mrt_nats_address address;
    char secret[MRT_SECRET_MAX];
    char label[MRT_OWNER_SIZE];
    struct mrt_nats_wire wire;
    struct mrt_outbox outbox;
    struct mrt_notes notes;
    mrt_time timeout;
    bool inside;       /* a thread is in submit or process, as a forked child may find */
    uint64_t replicas; /* of the stream of tickets; 0: not known */
    /* Begins a command of a queue. */
    void (*begin)(struct mrt_nats_job *job, struct mrt_nats_session *session);
    struct mrt_nats_sight sights[MRT_NATS_SIGHTS];
    unsigned newest_sight;
    struct mrt_jobs jobs; /* of sessions, under way */
    TAILQ_HEAD(, mrt_nats_job) pauses;
    TAILQ_HEAD(, mrt_nats_session) sessions;
    struct mrt_nats_queue *queues; /* all, by key */
    TAILQ_HEAD(, mrt_nats_queue) active;
};

extern const struct mrt_store_ops mrt_nats_store; /* port.c */

static inline uint64_t mrt_nats_fence(uint64_t sequence)
{
    return sequence << MRT_NATS_FENCE_BITS;
}

/* session.c: NULL: it has not been started, or has ended. */
struct mrt_nats_session *mrt_nats_session_find(struct mrt_nats_store *store, struct mrt_id id);
/* Whether the client of a session knows by now that it has ended; the judge is the job. `sequence`:
   of the session's newest message, which is a sign of life; 0: it is dead. */
bool mrt_nats_session_knows(struct mrt_nats_grave *grave, uint64_t sequence);
/* Those whose lease is over are lost. */
void mrt_nats_sessions_tick(struct mrt_nats_store *store);
/* START, STOP, RENEW. Takes the job. */
void mrt_nats_session_submit(struct mrt_nats_store *store, struct mrt_nats_job *job);

#endif
