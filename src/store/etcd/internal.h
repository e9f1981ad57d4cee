/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The etcd store. A file calls those below it, and above it by a callback alone:
 *
 *   entry.c                the module's entry
 *   port.c                 commands in, events out, one descriptor
 *   operator.c, server.c   mortise_list, revoke, break, server: calls on a wire of their own
 *   session.c              a lease, and the key of a session
 *   append.c, change.c, observe.c, cell.c    commands of a queue
 *   queue.c                the commands of a queue in their order, its tickets, its watch
 *   reply.c                what every transaction of a session has in common
 *   view.c, ticket.c       a queue at one revision; what a ticket's key holds
 *   spare.c                names of keys that can be used again
 *   wire.c, code.c, text.c, uri.c    calls (on store/rest), errors, texts and addresses, without
 *                                    state of the store
 *   rights.c               what --print-acl prints
 *
 * Keys: below the namespace's prefix, NAME/ID of tickets, .mortise/s/ID of sessions, and
 * .mortise/c/NAME of cells. Tickets and a session's key have the session's lease.
 *
 * A change is a transaction with the condition that the session's key was last written when this
 * client wrote it (`epoch`). So a session that has ended changes nothing, and neither does a
 * transaction of unknown outcome that arrives late: the key is written anew before the next
 * command.
 *
 * Threads: calls on one store come one at a time, from any thread; operators' at any time.
 */
#ifndef MRT_STORE_ETCD_INTERNAL_H
#define MRT_STORE_ETCD_INTERNAL_H

#include "base/error.h"
#include "core/store.h"
#include "core/uthash.h"
#include "store/etcd/view.h"
#include "store/etcd/wire.h"
#include "store/kit/job.h"
#include "store/kit/notes.h"

#define MRT_ETCD_NAME_SIZE (MRT_FULL_NAME_SIZE + 64)
#define MRT_ETCD_RECHECK_HELD (10 * MRT_SECOND)
#define MRT_ETCD_RECHECK_WAITS (3 * MRT_SECOND)
#define MRT_ETCD_TRIES_MAX 10

enum mrt_etcd_note { MRT_ETCD_NOTE_REPLY, MRT_ETCD_NOTE_ACCESS };

struct mrt_etcd_session {
    TAILQ_ENTRY(mrt_etcd_session) link;
    struct mrt_id id;
    int64_t lease;
    int64_t epoch; /* revision of its key's newest write */
    bool doubtful; /* the outcome of a change is unknown: the key is written before the next one */
    struct mrt_rest_call *writing; /* that is under way */
    struct mrt_etcd_store *store;
    char key[MRT_ETCD_NAME_SIZE];
};

struct mrt_etcd_spare;
struct mrt_etcd_queue;
struct mrt_etcd_job {
    struct mrt_job job; /* the first member */
    struct mrt_etcd_store *store;
    struct mrt_etcd_queue *queue;     /* NULL: a session's own command */
    struct mrt_etcd_session *session; /* of a session's own command, while it is started */
    int stage;
    unsigned tries;
    int64_t epoch;    /* the session's when the call was sent */
    int64_t revision; /* that a condition of the call names */
    int64_t term;     /* of the member that has renewed the lease */
    mrt_rest_done *next;
};

/* A ticket of a session of this store. */
struct mrt_etcd_record {
    TAILQ_ENTRY(mrt_etcd_record) link;
    struct mrt_id session, ticket;
    int64_t lease;
    char name[MRT_ETCD_SUFFIX_SIZE]; /* of its key, below the queue's */
    bool named;                      /* by this store: it did not adopt the ticket */
    int64_t created;                 /* its key's create_revision; 0: not known */
    uint64_t capacity, revoked;
    bool seen; /* it is in the queue; what follows is as its newest VIEW says */
    bool granted, others_behind, told;
    bool watch_closely, linger;
};

/* Is told of one change. */
struct mrt_etcd_observer {
    TAILQ_ENTRY(mrt_etcd_observer) link;
    struct mrt_id session, id;
    int64_t created, modified; /* of the first entry; 0: there is none */
};

struct mrt_etcd_queue {
    UT_hash_handle hh;
    TAILQ_ENTRY(mrt_etcd_queue) link; /* if it is active */
    bool active;                      /* it has commands, or a watch, or needs one */
    struct mrt_etcd_store *store;
    struct mrt_jobs jobs; /* the first is under way, if `busy` */
    bool busy;
    TAILQ_HEAD(, mrt_etcd_record) records;
    TAILQ_HEAD(, mrt_etcd_observer) observers;
    struct mrt_etcd_view view; /* the newest; the watch changes it */
    struct mrt_rest_call *watch;
    bool broken;       /* the watch cannot go on: it is begun again from a new view */
    mrt_time again;    /* when it may begin again */
    mrt_time unneeded; /* since when nobody needs it; 0: it is needed */
    unsigned failures;
    bool cell;
    char directory[]; /* the name and a slash; of a cell its key */
};

struct mrt_etcd_store {
    struct mrt_etcd_address address;
    char secret[MRT_SECRET_MAX];
    char label[MRT_OWNER_SIZE];
    struct mrt_etcd_wire wire;
    struct mrt_outbox outbox;
    struct mrt_notes notes;
    mrt_time timeout;
    /* Begins a command of a queue. `session` NULL: there is none, or it has ended. */
    void (*begin)(struct mrt_etcd_job *job, struct mrt_etcd_session *session);
    uint64_t chance;
    bool inside;          /* a thread is in submit or process, as a forked child may find */
    struct mrt_jobs jobs; /* of sessions, under way */
    TAILQ_HEAD(, mrt_etcd_session) sessions;
    unsigned watches;
    struct mrt_etcd_queue *queues;                      /* all, by directory */
    TAILQ_HEAD(mrt_etcd_spares, mrt_etcd_spare) spares; /* spare.c */
    unsigned spare_count;
    TAILQ_HEAD(, mrt_etcd_queue) active;
};

extern const struct mrt_store_ops mrt_etcd_store; /* port.c */

/* session.c: NULL: it has not been started, or has ended. */
struct mrt_etcd_session *mrt_etcd_session_find(const struct mrt_etcd_store *store,
                                               struct mrt_id id);
/* START, STOP, RENEW. Takes the job. */
void mrt_etcd_session_submit(struct mrt_etcd_store *store, struct mrt_etcd_job *job);
/* The session has ended without a STOP: its tickets are gone, and the client is told. */
void mrt_etcd_session_lose(struct mrt_etcd_store *store, struct mrt_etcd_session *session);
/* Writes the key of a session that is in doubt. */
void mrt_etcd_session_settle(struct mrt_etcd_store *store, struct mrt_etcd_session *session);

#endif
