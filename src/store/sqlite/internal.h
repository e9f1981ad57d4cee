/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The embedded store. A file calls only those below it:
 *
 *   port.c      the port: opening and closing
 *   command.c   commands in, answers out, and the loss of the file
 *   wake.c      waking other processes, and being woken: datagrams and file events
 *   queue.c     tickets: the transactions of APPEND and REFRESH
 *   detach.c    detached tickets: DETACH, and APPEND that adopts
 *   observe.c, cell.c     the first ticket of a queue, and changes of it; cells
 *   list.c, operator.c    mortise_list; requests to give up, and tickets removed
 *   death.c     sessions that have died: their tickets are removed, and then their files
 *   delay.c     tickets that a dead session leaves behind for a while
 *   leave.c     tickets: the transactions of REMOVE and STOP
 *   watch.c     watches on files
 *   session.c   session files, their locks and sockets
 *   ticket.c    tickets of this process, and notes of the wakes after the commit
 *   schema.c    the contents of the database: the table, the counter behind the fences
 *   db.c        the connection: statements, transactions, checkpoints
 *   files.c     the place of the database, and whether it is safe
 *   fork.c      closes what a forked child must not keep
 *
 * Threads: calls on one store are serialised by the caller and may come from any
 * thread. Only fork.c has state that stores share, under its own mutex.
 */
#ifndef MRT_STORE_SQLITE_INTERNAL_H
#define MRT_STORE_SQLITE_INTERNAL_H

#include "base/owner.h"
#include "core/store.h"
#include "store/sqlite/db.h"
#include "store/sqlite/files.h"
#include "store/sqlite/fork.h"

/* Room for a full name of the greatest length. */
#define MRT_SQLITE_QUEUE_MAX 4096
/* The number of a place behind all tickets. */
#define MRT_SQLITE_END ((uint64_t)INT64_MAX)
#define MRT_SQLITE_FENCE_BITS 16
/* A weight ahead that grants nothing: a waiter that receives it reads for itself. */
#define MRT_SQLITE_LOOK UINT64_MAX
/* How long an operator waits for other writers. */
#define MRT_SQLITE_OPERATOR_PATIENCE (5 * MRT_SECOND)

struct mrt_sqlite_session {
    TAILQ_ENTRY(mrt_sqlite_session) link;
    struct mrt_id id;
    struct mrt_sqlite_fork_fd file;   /* locked for as long as the session lives */
    struct mrt_sqlite_fork_fd socket; /* made when a ticket first has to wait */
    bool lost;                        /* SESSION_LOST has been told */
    TAILQ_HEAD(, mrt_sqlite_ticket) tickets;
};

struct mrt_sqlite_ticket {
    TAILQ_ENTRY(mrt_sqlite_ticket) link;
    TAILQ_ENTRY(mrt_sqlite_ticket) bucket_link;
    struct mrt_sqlite_session *session;
    struct mrt_id id;
    uint64_t number, weight, capacity;
    bool valued; /* it has a value, and may be observed */
    char queue[];
};

/* A client of this process that is told, once, that an observed queue may have changed. */
struct mrt_sqlite_observer {
    TAILQ_ENTRY(mrt_sqlite_observer) link;
    struct mrt_id session, id;
};

/* The news for a ticket's session; it is sent from process to process in this form. */
struct mrt_sqlite_place {
    struct mrt_id ticket;
    uint64_t weight_ahead;  /* if this does not grant it: the session looks whom to watch now */
    uint64_t others_behind; /* 0 or 1 */
};

struct mrt_sqlite_wake {
    struct mrt_id session;
    struct mrt_sqlite_place place;
};

/* The wakes to send after the commit. */
struct mrt_sqlite_wakes {
    struct mrt_sqlite_wake *items;
    size_t count, room;
};

struct mrt_sqlite_ids {
    struct mrt_id *items;
    size_t count, room;
};

enum mrt_verdict { MRT_IN_QUEUE, MRT_NO_ROOM, MRT_CROWDED, MRT_MISMATCH, MRT_ABSENT };

#define MRT_SQLITE_BUCKETS 64

/* A sending socket, kept connected: mostly the same neighbours are woken again. */
struct mrt_sqlite_peer {
    int fd; /* -1: none yet */
    struct mrt_id session;
};
#define MRT_SQLITE_PEERS 64

struct mrt_sqlite_store {
    struct mrt_sink sink;
    char address[PATH_MAX + 8];
    char configured[PATH_MAX]; /* the path as the URI has it */
    char label[MRT_OWNER_SIZE];
    bool any_filesystem;
    bool short_lived;
    mrt_time checked; /* when the file was last seen in its place */
    bool fault;       /* the file was found broken just now; the sessions will be told */
    bool broken;      /* they have been; the next START opens file and database anew */

    struct mrt_sqlite_file file;
    struct mrt_sqlite_fork_database *noted;
    struct mrt_sqlite_db db;

    TAILQ_HEAD(, mrt_sqlite_session) sessions;
    TAILQ_HEAD(mrt_sqlite_bucket, mrt_sqlite_ticket) buckets[MRT_SQLITE_BUCKETS];

    int epoll_fd;
    int inotify_fd; /* -1: none yet, or refused */
    struct mrt_sqlite_peer peers[MRT_SQLITE_PEERS];
    bool no_events, no_socket; /* refused by the system: look more often */
    TAILQ_HEAD(, mrt_sqlite_watch) watches;
    TAILQ_HEAD(, mrt_sqlite_observer) observers;
    int observed_wd;      /* of the file that is touched; -1: not watched */
    bool observed_change; /* touch the observers' file after the commit */
    struct mrt_sqlite_wakes wakes;
    struct mrt_sqlite_ids blockers;         /* the sessions that the last look found in the way */
    struct mrt_sqlite_ids dead;             /* sessions whose files are removed after the commit */
    unsigned char value[MORTISE_VALUE_MAX]; /* that an answer has */
};

#endif
