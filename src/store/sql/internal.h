/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common part of the stores on SQL servers: everything but the SQL and the client library.
 *   kinds.h         the kinds of requests
 *   request.c       requests and the values of their parameters; text.c for those of URIs
 *   send.c          on their way; retry.c: refused, and made again; poll.c: when to look again
 *   outbox.c        answered; fault.c: why a connection is of no use
 *   flush.c         removals that may not be on disk yet
 *   session.c, ticket.c, values.c, detach.c   what a request has found; answer.c calls these
 *   observers.c     clients that observe a queue
 *   notification.c  notifications of the server; sign.c: proof that the server sent them
 *   connection.c    the one connection: how it comes, is checked, and goes
 *   store.c         the port: commands in, events out, one descriptor
 *   list.c          requests outside of a session: mortise_list, mortise_revoke, mortise_break
 *   native/         locks of the server's own, where a connection is the lease (?form=)
 * Each dialect is a module, made of these and of its own files, which provide what driver.h
 * declares: how to connect, to send and to read, the statements of a request, and what an error
 * means.
 *
 * Threads: calls on one store come one at a time, from any thread.
 *
 * A request is one transaction. No result of it is believed before its end is acknowledged, because
 * the commit may fail.
 *
 * The epoch is a count of connections. Each session's row has it. A new connection raises it before
 * anything else, and nothing lowers it. A ticket is only put in under the row's epoch. So a command
 * that an old connection has left on the server can no longer take effect, and the tables show the
 * whole state.
 */
#ifndef MRT_STORE_SQL_INTERNAL_H
#define MRT_STORE_SQL_INTERNAL_H

#include "base/owner.h"
#include "core/store.h"
#include "store/kit/resolver.h"
#include "store/sql/columns.h"
#include "store/sql/kinds.h"
#include "store/sql/text.h"

#define MRT_SQL_STEPS_MAX 16
#define MRT_SQL_RECHECK_MAX (5 * MRT_SECOND)

struct mrt_sql_request {
    TAILQ_ENTRY(mrt_sql_request) link;
    enum mrt_sql_kind kind;
    struct mrt_command command; /* serial 0: the store's own, nobody waits for it */
    mrt_time begun;
    mrt_time sent;     /* 0: it has not left yet */
    uint32_t attempts; /* that were refused */
    mrt_time due;      /* of one that rests: when it is made again */
    bool reaped;       /* the dead have been taken out for it */
    bool lost;         /* it was sent before, and its connection went */
    /* The dialect's: what was sent, and how far its results have come. */
    struct {
        int statement;
        bool prepares;
    } step[MRT_SQL_STEPS_MAX];
    int steps, at;
    uint64_t flight; /* its number on the connection, if the dialect counts them */
    bool whole;      /* APPEND: not the short way, which is for a queue that nobody is in */
    struct mrt_sql_removal *removal; /* REMOVE: it need not wait for the disk */
    bool failed;
    char state[6];    /* SQLSTATE, or the server's own number of an error */
    char detail[256]; /* of a failure, and then of the event */
    void *rows;       /* of the statement that matters */
    int64_t affected; /* by it, if it has none; of APPEND, the number that was given */
    struct mrt_event event;
    unsigned char *value; /* the event's */
    /* LIST; REVOKE, BREAK: the number, 0 for all */
    const char *name, *prefix;
    uint64_t number;
    bool done;
};
TAILQ_HEAD(mrt_sql_requests, mrt_sql_request);

/* A session that has been started here and not stopped. */
struct mrt_sql_session {
    TAILQ_ENTRY(mrt_sql_session) link;
    struct mrt_id id;
    int64_t tickets; /* as many as the server should count; -1: not known */
    int64_t asked;   /* the revoke requests' state that the last renewal showed */
};

struct mrt_sql_observer {
    TAILQ_ENTRY(mrt_sql_observer) link;
    struct mrt_id session, id;
    bool looking; /* its OBSERVE has not been answered */
    bool changed; /* in the meantime */
    mrt_time due; /* to be told by, whether there is anything or not */
    char queue[];
};

enum mrt_sql_state { MRT_SQL_IDLE, MRT_SQL_CONNECTING, MRT_SQL_CHECKING, MRT_SQL_READY };

struct mrt_sql_store;
struct mrt_sql_driver;
struct mrt_native;

/* Handle a request on a connection of a native lock: its results have arrived, or will not arrive.
 */
struct mrt_sql_hooks {
    void (*finish)(struct mrt_sql_store *store, struct mrt_sql_request *request);
    void (*finish_lost)(struct mrt_sql_store *store, struct mrt_sql_request *request);
};

struct mrt_sql_store {
    struct mrt_sink sink;
    struct mrt_traffic own_traffic, *traffic; /* of a form's connections, that of the form */
    mortise_log_callback log;
    void *log_argument;
    char label[MRT_OWNER_SIZE];
    struct mrt_uri *uri; /* for connections beside this one; NULL: it is such a one */
    struct mrt_sql_address address;
    struct mrt_sql_driver *driver;
    int epoll;
    TAILQ_HEAD(, mrt_sql_session) sessions;
    TAILQ_HEAD(, mrt_sql_observer) observers;
    TAILQ_HEAD(, mrt_sql_removal) removals; /* answered, and perhaps not on disk */
    int removal_count;                      /* with those of requests */
    struct mrt_sql_requests waiting;        /* for a connection */
    struct mrt_sql_requests resting;        /* until they are made again */
    struct mrt_sql_requests sent;
    struct mrt_sql_requests outbox; /* answered, and not delivered yet */
    struct mrt_resolver resolver;
    /* The connection. */
    bool is_looking; /* CONNECTING: its host's name is being looked up first */
    enum mrt_sql_state state;
    int socket; /* in the epoll descriptor; -1: none */
    uint32_t mask;
    bool was_ready; /* a connection was once checked and found good */
    bool listens;   /* it hears of changes in observed queues */
    /* Each transaction may have another connection of the server: nothing is kept in one, nobody is
       notified, and a server that was restarted need not show. Read by any thread. */
    _Atomic bool pooled;
    uint64_t told; /* number of the connection by the server's greeting; 0: it need not be right */
    uint64_t epoch;
    mrt_time until; /* CONNECTING, CHECKING: when to give up; IDLE: not to connect before */
    uint32_t failures;
    int error; /* why there is no connection */
    char fault[256];
    bool broken; /* the connection is dropped once nothing is being read from it */
    /* The form of this store; a connection of a form has only the kind of its steps. */
    struct mrt_native *form;
    enum mrt_sql_kind steps;           /* 0: of no form */
    const struct mrt_sql_hooks *hooks; /* NULL: of no form */
};

/* The port's store. */
static inline struct mrt_sql_store *mrt_sql_of(struct mrt_store *port)
{
    return (struct mrt_sql_store *)port;
}
static inline const struct mrt_sql_store *mrt_sql_const_of(const struct mrt_store *port)
{
    return (const struct mrt_sql_store *)port;
}

#endif
