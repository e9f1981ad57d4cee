/*
 * The parts of the PostgreSQL store, shared by its files and by nobody else:
 *   postgres.c             the port: commands in, events out, one descriptor
 *   postgres_connection.c  the one connection: how it comes, is checked, and goes
 *   postgres_request.c     requests: the statements of one transaction, sent and read
 *   postgres_answer.c      what a request's outcome means
 *   postgres_code.c        what an SQLSTATE means
 *   postgres_schema.c      mortise init, and postgres_list.c mortise_list
 *   postgres_statements.c, postgres_uri.c  texts
 *
 * Threads: calls on one store come one at a time, from any thread.
 *
 * A request is one transaction: its statements and one Sync, sent in one piece. Requests are
 * answered in the order sent; none waits for another's answer. Nothing is believed before
 * its Sync has been answered, for the commit may fail.
 *
 * The epoch is a count of connections. Each session's row has it, raised first thing on a new
 * connection, and a ticket is only put in under the row's epoch: so what an old connection
 * has left on the server cannot take effect any more, and what is in the tables is all that there
 * is.
 */
#ifndef MRT_STORE_POSTGRES_INTERNAL_H
#define MRT_STORE_POSTGRES_INTERNAL_H

#include "base/owner.h"
#include "core/store.h"
#include "store/postgres_statements.h"
#include "store/postgres_uri.h"

#include <libpq-fe.h>

#define MRT_PG_SCHEMA_VERSION 1
#define MRT_PG_PLAN_MAX 4
#define MRT_PG_COLUMNS_MAX 6
#define MRT_PG_LISTEN MRT_PG_STATEMENT_COUNT /* statements without parameters or a table */
#define MRT_PG_UNLISTEN (MRT_PG_STATEMENT_COUNT + 1)

enum mrt_pg_kind {
    MRT_PG_DO_SETUP,
    MRT_PG_DO_START,
    MRT_PG_DO_RESUME,
    MRT_PG_DO_STOP,
    MRT_PG_DO_RENEW,
    MRT_PG_DO_APPEND,
    MRT_PG_DO_VIEW,
    MRT_PG_DO_REMOVE,
    MRT_PG_DO_REMOVE_QUIETLY,
    MRT_PG_DO_LIGHTEN,
    MRT_PG_DO_REAP,
    MRT_PG_DO_SWEEP,
    MRT_PG_DO_LIST,
    MRT_PG_KINDS
};

struct mrt_pg_request {
    TAILQ_ENTRY(mrt_pg_request) link;
    enum mrt_pg_kind kind;
    struct mrt_command command; /* serial 0: the store's own, nobody waits for it */
    mrt_time begun, sent;
    uint32_t attempts;
    bool reaped; /* the dead have been taken out for it */
    /* What was sent, and how far its results have come. */
    struct {
        int statement;
        bool prepares;
    } step[2 * MRT_PG_PLAN_MAX];
    int steps, at;
    bool failed;
    char sqlstate[6];
    char detail[256]; /* of a failure, and then of the event */
    /* The one row that matters. */
    bool has_row, is_null[MRT_PG_COLUMNS_MAX];
    int64_t column[MRT_PG_COLUMNS_MAX];
    char kind_text[32];
    struct mrt_event event;
    /* LIST */
    const char *name, *prefix;
    PGresult *rows;
    bool done;
};
TAILQ_HEAD(mrt_pg_requests, mrt_pg_request);

/* A session that has been started here and not stopped. */
struct mrt_pg_session {
    TAILQ_ENTRY(mrt_pg_session) link;
    struct mrt_id id;
    int64_t tickets; /* as many as the server should count; -1: not known */
};

enum mrt_pg_state { MRT_PG_IDLE, MRT_PG_CONNECTING, MRT_PG_CHECKING, MRT_PG_READY };

struct mrt_store {
    struct mrt_sink sink;
    mortise_log_callback log;
    void *log_argument;
    char label[MRT_OWNER_SIZE];
    struct mrt_pg_address address;
    int epoll;
    TAILQ_HEAD(, mrt_pg_session) sessions;
    struct mrt_pg_requests waiting; /* for a connection */
    struct mrt_pg_requests sent;
    struct mrt_pg_requests outbox; /* answered, and not delivered yet */
    /* The connection. */
    enum mrt_pg_state state;
    PGconn *connection;
    int socket; /* in the epoll descriptor; -1: none */
    uint32_t mask;
    bool prepared[MRT_PG_STATEMENT_COUNT];
    bool was_ready;  /* a connection was once checked and found good */
    int64_t backend; /* the server's process */
    uint64_t epoch;
    mrt_time until; /* CONNECTING, CHECKING: when to give up; IDLE: not to connect before */
    uint32_t failures;
    int error; /* why there is no connection */
    char fault[256];
    bool broken; /* the connection is to be dropped when nothing is being read of it */
};

/* What is to be done about an SQLSTATE. */
enum mrt_pg_outcome {
    MRT_PG_FAILED,    /* nothing was done, and nothing will be */
    MRT_PG_AGAIN,     /* nothing was done: the same once more */
    MRT_PG_QUIETLY,   /* nothing was done, because nobody can be told */
    MRT_PG_ELSEWHERE, /* nothing was done: this is not the server to ask */
    MRT_PG_PERHAPS    /* it may have been done */
};
struct mrt_pg_code {
    const char *state; /* or the beginning of several */
    enum mrt_pg_outcome outcome;
    int error;
    const char *advice; /* NULL: the server's own words are enough */
};

/* postgres_code.c */
const struct mrt_pg_code *mrt_pg_code(const char *sqlstate);
/* The SQLSTATE in a connection's error message of verbosity VERBOSE, or "". */
void mrt_pg_code_in(const char *message, char sqlstate[6]);
/* The first line of a message of libpq's or the server's, without its end. */
void mrt_pg_first_line(const char *message, char *line, size_t size);

/* postgres.c */
void mrt_pg_answer(struct mrt_store *store, struct mrt_pg_request *request,
                   enum mrt_event_type type);
__attribute__((format(printf, 4, 5))) void mrt_pg_fail(struct mrt_store *store,
                                                       struct mrt_pg_request *request, int error,
                                                       const char *format, ...);
/* An event that nobody has asked for; lost if there is no memory. */
void mrt_pg_tell(struct mrt_store *store, const struct mrt_event *event);
struct mrt_pg_session *mrt_pg_find_session(struct mrt_store *store, struct mrt_id id);
void mrt_pg_forget_session(struct mrt_store *store, struct mrt_pg_session *session);

/* postgres_connection.c */
/* A library does not print, and libpq would. */
void mrt_pg_ignore_notice(void *context, const PGresult *result);
/* Everything that is due: connects, reads, sends. */
void mrt_pg_turn(struct mrt_store *store, mrt_time now);
mrt_time mrt_pg_next(const struct mrt_store *store);
/* Ends the connection; what was sent has an unknown outcome. */
void mrt_pg_drop(struct mrt_store *store, mrt_time now);
/* The connection has been found good. */
void mrt_pg_connected(struct mrt_store *store);
/* It is no good, for this reason; it is dropped soon. */
__attribute__((format(printf, 3, 4))) void mrt_pg_reject(struct mrt_store *store, int error,
                                                         const char *format, ...);

/* postgres_request.c */
struct mrt_pg_request *mrt_pg_request_new(enum mrt_pg_kind kind);
void mrt_pg_request_free(struct mrt_pg_request *request);
/* Sends it if there is a connection, or lets it wait. */
void mrt_pg_submit(struct mrt_store *store, struct mrt_pg_request *request, mrt_time now);
/* Sends it now; on failure it is answered. */
void mrt_pg_send(struct mrt_store *store, struct mrt_pg_request *request, mrt_time now);
/* Takes what has arrived. */
void mrt_pg_read(struct mrt_store *store, mrt_time now);

/* postgres_answer.c */
/* All of a request's results are there. */
void mrt_pg_finish(struct mrt_store *store, struct mrt_pg_request *request, mrt_time now);
/* Its connection is gone. */
void mrt_pg_finish_lost(struct mrt_store *store, struct mrt_pg_request *request);
void mrt_pg_notified(struct mrt_store *store, const PGnotify *notification);

/* postgres_list.c */
int mrt_pg_list(struct mrt_store *store, const char *name, const char *prefix,
                mortise_entry_callback callback, void *argument);

/* postgres_schema.c */
int mrt_pg_init(const struct mrt_uri *uri, mortise_text_callback print, void *argument);

#endif
