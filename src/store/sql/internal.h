/*
 * What the stores on SQL servers have in common: everything but the SQL and the client library.
 *   store.c     the port: commands in, events out, one descriptor
 *   connection.c      the one connection: how it comes, is checked, and goes
 *   request.c   requests and the values of their parameters
 *   answer.c    what a request's outcome means; values.c for values, observers and cells,
 *                   detach.c for tickets that are nobody's
 *   retry.c     what was refused, and is made again; poll.c for waiters that nobody tells
 *   flush.c     removals that may not be on disk yet
 *   notification.c      what the server tells by itself; sign.c: that it is the server
 *   list.c      what is waited for here: mortise_list, mortise_revoke, mortise_break
 *   text.c      parameters of URIs
 *   native/native.h      locks of the server's own, where a connection is the lease (?form=)
 * Each dialect is a module, made of these and of its own files, which provide what is declared
 * last here: how to connect, to send and to read, which statements a request is made of, and what
 * an error means.
 *
 * Threads: calls on one store come one at a time, from any thread.
 *
 * A request is one transaction. Nothing is believed before its end has been acknowledged, for the
 * commit may fail.
 *
 * The epoch is a count of connections. Each session's row has it, raised first thing on a new
 * connection and never lowered, and a ticket is only put in under the row's epoch: so what an old
 * connection has left on the server cannot take effect any more, and what is in the tables is all
 * that there is.
 */
#ifndef MRT_STORE_SQL_INTERNAL_H
#define MRT_STORE_SQL_INTERNAL_H

#include "base/owner.h"
#include "core/store.h"
#include "store/sql/columns.h"
#include "store/sql/text.h"

/* What is done to a lock of the server's own: native/native.h. */
enum mrt_native_step {
    MRT_NATIVE_SETUP,
    MRT_NATIVE_TRY,
    MRT_NATIVE_WAIT,
    MRT_NATIVE_LEAVE,
    MRT_NATIVE_PROVE, /* that the connection is there, and the same */
    MRT_NATIVE_LOOK,  /* the lock, too */
    MRT_NATIVE_LIGHTEN,
    MRT_NATIVE_MAKE, /* the row, and try again */
    MRT_NATIVE_LIST,
    MRT_NATIVE_KILL, /* another connection, which waits */
    MRT_NATIVE_STEPS
};

enum mrt_sql_kind {
    MRT_SQL_DO_SETUP,
    MRT_SQL_DO_START,
    MRT_SQL_DO_RESUME,
    MRT_SQL_DO_STOP,
    MRT_SQL_DO_DIE, /* a STOP that leaves behind what has a delay */
    MRT_SQL_DO_RENEW,
    MRT_SQL_DO_MAKE, /* the row of a queue */
    MRT_SQL_DO_MAKE_CELL,
    MRT_SQL_DO_APPEND,
    MRT_SQL_DO_ADOPT,
    MRT_SQL_DO_DETACH,
    MRT_SQL_DO_VIEW,
    MRT_SQL_DO_REMOVE,
    MRT_SQL_DO_REMOVE_LAST, /* if nobody is behind; else there is no row, and nothing is done */
    MRT_SQL_DO_REMOVE_WITHOUT_NOTIFY,
    MRT_SQL_DO_LIGHTEN,
    MRT_SQL_DO_SET_VALUE,
    MRT_SQL_DO_LISTEN, /* for observers */
    MRT_SQL_DO_OBSERVE,
    MRT_SQL_DO_CELL_GET,
    MRT_SQL_DO_CELL_SET,
    MRT_SQL_DO_REAP,
    MRT_SQL_DO_SWEEP,
    MRT_SQL_DO_LIST,
    MRT_SQL_DO_REVOKE,
    MRT_SQL_DO_BREAK,
    MRT_SQL_DO_NAMED, /* and the steps of a form */
    MRT_SQL_DO_ROW = MRT_SQL_DO_NAMED + (int)MRT_NATIVE_STEPS,
    MRT_SQL_KINDS = MRT_SQL_DO_ROW + (int)MRT_NATIVE_STEPS
};

/* A step of the form whose first one is `first`. */
static inline enum mrt_sql_kind mrt_native_kind(enum mrt_sql_kind first, enum mrt_native_step step)
{
    return (enum mrt_sql_kind)((int)first + (int)step);
}

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
    bool whole; /* APPEND: not the short way, which is for a queue that nobody is in */
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
    int64_t asked;   /* what stood for all requests to give tickets up at the last renewal */
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

struct mrt_sql_driver;
struct mrt_native;

struct mrt_store {
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
    /* The connection. */
    enum mrt_sql_state state;
    int socket; /* in the epoll descriptor; -1: none */
    uint32_t mask;
    bool was_ready; /* a connection was once checked and found good */
    bool listens;   /* it hears of changes in observed queues */
    uint64_t epoch;
    mrt_time until; /* CONNECTING, CHECKING: when to give up; IDLE: not to connect before */
    uint32_t failures;
    int error; /* why there is no connection */
    char fault[256];
    bool broken; /* the connection is to be dropped when nothing is being read of it */
    /* Of a form: the store's; a connection of it has the kind of its steps alone. */
    struct mrt_native *form;
    enum mrt_sql_kind steps; /* 0: of no form */
};

/* What is to be done about an error of the server's. */
enum mrt_sql_outcome {
    MRT_SQL_FAILED,         /* nothing was done, and nothing will be */
    MRT_SQL_AGAIN,          /* nothing was done: the same once more */
    MRT_SQL_WITHOUT_NOTIFY, /* nothing was done, because nobody can be told */
    MRT_SQL_ELSEWHERE,      /* nothing was done: this is not the server to ask */
    MRT_SQL_PERHAPS         /* it may have been done */
};
struct mrt_sql_code {
    const char *state; /* or the beginning of several */
    enum mrt_sql_outcome outcome;
    int error;
    const char *advice; /* NULL: the server's own words are enough */
};

/* A parameter's value. */
enum mrt_sql_type { MRT_SQL_NULL, MRT_SQL_NUMBER, MRT_SQL_ID, MRT_SQL_TEXT, MRT_SQL_BYTES };
struct mrt_sql_value {
    const void *data; /* BYTES; else a text: decimal, hexadecimal, or as it is */
    size_t size;      /* BYTES */
    enum mrt_sql_type type;
    char text[MRT_ID_TEXT_SIZE];
};

/* store.c */
/* All of a store but its own memory; mrt_sql_fini also after a failure. */
int mrt_sql_init(struct mrt_store *store, const struct mrt_uri *uri,
                 const struct mrt_store_options *options, struct mrt_sink sink);
void mrt_sql_fini(struct mrt_store *store);
void mrt_sql_deliver(struct mrt_store *store);
int mrt_sql_open(const struct mrt_uri *uri, const struct mrt_store_options *options,
                 struct mrt_sink sink, struct mrt_store **store);
bool mrt_sql_submit(struct mrt_store *store, const struct mrt_command *command, mrt_time patience);
int mrt_sql_fd(struct mrt_store *store);
mrt_time mrt_sql_next(struct mrt_store *store);
void mrt_sql_process(struct mrt_store *store, mrt_time now);
bool mrt_sql_removes(const struct mrt_sql_request *request);
/* Whether it is done as soon as it has been sent, as far as what comes after it is concerned. */
bool mrt_sql_goes_through(const struct mrt_sql_request *request);
bool mrt_sql_answers_may_wait(const struct mrt_store *store);
const char *mrt_sql_address(const struct mrt_store *store);
mrt_time mrt_sql_lease(const struct mrt_store *store);
void mrt_sql_close(struct mrt_store *store);
void mrt_sql_abandon(struct mrt_store *store);
void mrt_sql_answer(struct mrt_store *store, struct mrt_sql_request *request,
                    enum mrt_event_type type);
__attribute__((format(printf, 4, 5))) void mrt_sql_fail(struct mrt_store *store,
                                                        struct mrt_sql_request *request, int error,
                                                        const char *format, ...);
/* An event that nobody has asked for; false: there was no memory, and it is lost. */
bool mrt_sql_tell(struct mrt_store *store, const struct mrt_event *event);
/* In the program's log. */
void mrt_sql_say(const struct mrt_store *store, const char *text);
struct mrt_sql_session *mrt_sql_find_session(struct mrt_store *store, struct mrt_id id);
void mrt_sql_forget_session(struct mrt_store *store, struct mrt_sql_session *session);

/* What the calls of every store of this kind are; a dialect adds what it is. */
#define MRT_SQL_CALLS                                                                             \
    .any_thread = true, .values = true, .cells = true, .open = mrt_sql_open,                      \
    .submit = mrt_sql_submit, .fd = mrt_sql_fd, .next = mrt_sql_next, .process = mrt_sql_process, \
    .asks_apart = mrt_sql_asks_apart, .list = mrt_sql_list, .revoke = mrt_sql_revoke,             \
    .break_ticket = mrt_sql_break, .server = mrt_sql_server, .traffic = mrt_sql_traffic,          \
    .lease = mrt_sql_lease, .address = mrt_sql_address,                                           \
    .answers_may_wait = mrt_sql_answers_may_wait, .close = mrt_sql_close,                         \
    .abandon = mrt_sql_abandon

/* native/port.c, native/connection.c */
int mrt_native_open_named(const struct mrt_uri *uri, const struct mrt_store_options *options,
                          struct mrt_sink sink, struct mrt_store **store);
int mrt_native_open_row(const struct mrt_uri *uri, const struct mrt_store_options *options,
                        struct mrt_sink sink, struct mrt_store **store);
bool mrt_native_submit(struct mrt_store *store, const struct mrt_command *command,
                       mrt_time patience);
mrt_time mrt_native_next(struct mrt_store *store);
void mrt_native_process(struct mrt_store *store, mrt_time now);
int mrt_native_list(struct mrt_store *store, const char *name, const char *prefix,
                    mrt_listed_callback callback, void *argument);
void mrt_native_close(struct mrt_store *store);
void mrt_native_abandon(struct mrt_store *store);
/* A request on a form's connection has its results, or will have none. */
void mrt_native_finish(struct mrt_store *store, struct mrt_sql_request *request);
void mrt_native_finish_lost(struct mrt_store *store, struct mrt_sql_request *request);
/* After how long the server is to end a wait, which then begins anew; and how long it may let this
   request wait. */
mrt_time mrt_native_wait_limit(const struct mrt_store *store);
mrt_time mrt_native_wait(const struct mrt_store *store, const struct mrt_sql_request *request);

/* What the calls of every form are; `named` or `row`. No session outlives its connections, so a
   claim cannot be detached. */
#define MRT_NATIVE_CALLS(which)                                                               \
    .any_thread = true, .claims_end = true, .open = mrt_native_open_##which,                  \
    .submit = mrt_native_submit, .fd = mrt_sql_fd, .next = mrt_native_next,                   \
    .process = mrt_native_process, .asks_apart = mrt_sql_asks_apart, .list = mrt_native_list, \
    .traffic = mrt_sql_traffic, .lease = mrt_sql_lease, .address = mrt_sql_address,           \
    .close = mrt_native_close, .abandon = mrt_native_abandon,                                 \
    .capabilities = {                                                                         \
        .size = sizeof(mortise_capabilities), .notify = 1, .across_hosts = 1, .lease_ms = 10000}

/* connection.c */
/* Makes the socket's number lead nowhere, so that a library can free its memory without a byte
   reaching the parent's server; false: it cannot. -1 leads nowhere already. */
bool mrt_sql_lead_nowhere(int socket);
/* Everything that is due: connects, reads, sends. */
void mrt_sql_turn(struct mrt_store *store, mrt_time now);
mrt_time mrt_sql_link_next(const struct mrt_store *store);
/* Ends the connection; what was sent has an unknown outcome. */
void mrt_sql_drop(struct mrt_store *store, mrt_time now);
/* The connection is there, and is asked what it is. */
void mrt_sql_check(struct mrt_store *store, mrt_time now);
/* It has been found good. */
void mrt_sql_connected(struct mrt_store *store);
/* It is no good, for this reason; it is dropped soon. */
__attribute__((format(printf, 3, 4))) void mrt_sql_reject(struct mrt_store *store, int error,
                                                          const char *format, ...);
/* The schema's version is this: false if it is another, and then that is why the connection is no
   good. 0: it does not say. */
bool mrt_sql_accept_schema(struct mrt_store *store, int64_t version);
/* An answer to nothing: it says what is in the way of this connection to those whose time may be up
   before they are answered. */
void mrt_sql_tell_fault(struct mrt_store *store, const struct mrt_store *link);
/* SETUP has failed with an error of the server's. */
void mrt_sql_reject_setup(struct mrt_store *store, const struct mrt_sql_request *request);
/* Which events of the connection's socket are waited for; which have come. */
void mrt_sql_watch(struct mrt_store *store, int socket, uint32_t events);
uint32_t mrt_sql_ready(const struct mrt_store *store);

/* request.c */
struct mrt_sql_request *mrt_sql_request_new(enum mrt_sql_kind kind);
void mrt_sql_request_free(struct mrt_sql_request *request);
/* Sends it if there is a connection, or lets it wait. */
void mrt_sql_begin(struct mrt_store *store, struct mrt_sql_request *request, mrt_time now);
/* Sends it now; on failure it is answered. */
void mrt_sql_send(struct mrt_store *store, struct mrt_sql_request *request, mrt_time now);
/* One of the store's own, on behalf of the command. */
void mrt_sql_begin_own(struct mrt_store *store, enum mrt_sql_kind kind,
                       const struct mrt_command *command, mrt_time now);
/* Once more, and `before` that, if it is another kind, one of the store's own. What has not left
   yet stays behind it. */
void mrt_sql_resend(struct mrt_store *store, struct mrt_sql_request *request,
                    enum mrt_sql_kind before, mrt_time now);
/* The value that this letter stands for in a statement's parameters. */
void mrt_sql_value(const struct mrt_store *store, const struct mrt_sql_request *request,
                   char letter, struct mrt_sql_value *value);
/* Columns of the answer's first row; or the first is the number of rows that it changed. */
bool mrt_sql_has_row(const struct mrt_sql_request *request);
bool mrt_sql_is_null(const struct mrt_sql_request *request, int column);
int64_t mrt_sql_number(const struct mrt_sql_request *request, int column);
const char *mrt_sql_text(const struct mrt_sql_request *request, int column);
/* A column of hexadecimal digits becomes the event's value; false: no memory. */
bool mrt_sql_take_value(struct mrt_sql_request *request, int column);
/* The first line of a message of the library's or the server's, without its end. */
void mrt_sql_first_line(const char *message, char *line, size_t size);

/* answer.c */
/* All of a request's results are there. */
void mrt_sql_finish(struct mrt_store *store, struct mrt_sql_request *request, mrt_time now);
/* Its connection is gone. */
void mrt_sql_finish_lost(struct mrt_store *store, struct mrt_sql_request *request);
/* Whether there is a dead session among those that matter, that has not been ended for this
   request yet: then that is done, and the request made again as `again`. The column says how
   long the first of their leases lasts, in microseconds. */
bool mrt_sql_reaps(struct mrt_store *store, struct mrt_sql_request *request, int column,
                   enum mrt_sql_kind again, mrt_time now);
void mrt_sql_session_ended(struct mrt_store *store, struct mrt_sql_request *request);
/* How long such a lease lasts, within reason; 0: there is none. */
mrt_time mrt_sql_lease_left(const struct mrt_store *store, const struct mrt_sql_request *request,
                            int column);
/* How many tickets the server should count for the session has changed; is not known any more, so
   the next renewal has all looked at. */
void mrt_sql_count_tickets(struct mrt_store *store, struct mrt_id session, int change);
void mrt_sql_lose_count(struct mrt_store *store, struct mrt_id session);

/* retry.c */
/* Whether a request that was refused has time left. */
bool mrt_sql_may_retry(const struct mrt_store *store, const struct mrt_sql_request *request,
                       mrt_time now);
/* It is made again, which is counted: at once, or after a pause if it is not the first time, as
   long as the count says. The other one stays behind all that is under way. */
void mrt_sql_retry(struct mrt_store *store, struct mrt_sql_request *request, mrt_time now);
void mrt_sql_retry_behind(struct mrt_store *store, struct mrt_sql_request *request, mrt_time now);
/* The row that it needs is made first, as `kind`, and the request made again. */
void mrt_sql_make(struct mrt_store *store, struct mrt_sql_request *request, enum mrt_sql_kind kind,
                  mrt_time now);
/* Makes those whose pause is over; when the next one's is; all wait for a connection instead. */
void mrt_sql_rested(struct mrt_store *store, mrt_time now);
mrt_time mrt_sql_rest_next(const struct mrt_store *store);
void mrt_sql_rest_no_more(struct mrt_store *store);

/* poll.c */
/* How long after a look at a ticket of this age, which so many are before, the next one is due:
   at most MRT_SQL_RECHECK_MAX. */
mrt_time mrt_sql_poll(mrt_time age, uint64_t place, uint64_t chance);
/* Such a chance, below 2^32: another for each client, and for each `which` of a request. */
uint64_t mrt_sql_chance(const struct mrt_command *command, int64_t which);

/* detach.c */
void mrt_sql_finish_detach(struct mrt_store *store, struct mrt_sql_request *request);
void mrt_sql_finish_adopt(struct mrt_store *store, struct mrt_sql_request *request, mrt_time now);

/* flush.c */
/* A new REMOVE need not wait for the disk, if it can be remembered. */
void mrt_sql_note_unflushed(struct mrt_store *store, struct mrt_sql_request *request);
/* Any request is answered so, or its outcome is not known (MRT_UNKNOWN). */
void mrt_sql_removal_answered(struct mrt_store *store, struct mrt_sql_request *request,
                              enum mrt_event_type type);
/* A commit that waited for the disk has been answered. */
void mrt_sql_on_disk(struct mrt_store *store);
void mrt_sql_connection_lost(struct mrt_store *store);
/* Sends again what is due. */
void mrt_sql_remove_again(struct mrt_store *store, mrt_time now);
void mrt_sql_removals_free(struct mrt_store *store);

/* notification.c */
/* On the channel of a session, whose name the prefix is taken from. */
void mrt_sql_notification(struct mrt_store *store, const char *channel, const char *text);

/* values.c */
/* Before an OBSERVE is sent. */
void mrt_sql_observe(struct mrt_store *store, const struct mrt_command *command, mrt_time now);
/* Hears of changes from now on, if anybody observes anything and there is a connection. */
void mrt_sql_listen(struct mrt_store *store, mrt_time now);
void mrt_sql_unobserve(struct mrt_store *store, struct mrt_id id);
void mrt_sql_unobserve_all(struct mrt_store *store, const struct mrt_sql_session *session);
void mrt_sql_observed_changed(struct mrt_store *store, const char *queue);
void mrt_sql_observers_due(struct mrt_store *store, mrt_time now);
mrt_time mrt_sql_observers_next(const struct mrt_store *store);
void mrt_sql_finish_observe(struct mrt_store *store, struct mrt_sql_request *request, mrt_time now);
void mrt_sql_finish_cell(struct mrt_store *store, struct mrt_sql_request *request, mrt_time now);

/* list.c */
bool mrt_sql_asks_apart(const struct mrt_store *store);
/* The server's own word of its version, from a connection made for the call. */
int mrt_sql_tell_version(const struct mrt_store *store,
                         const char *(*version_of)(const struct mrt_store *asker), char *text,
                         size_t size);
/* In the wire of each dialect. */
int mrt_sql_server(struct mrt_store *store, char *text, size_t size);
void mrt_sql_traffic(const struct mrt_store *store, struct mrt_traffic *sum);
int mrt_sql_list(struct mrt_store *store, const char *name, const char *prefix,
                 mrt_listed_callback callback, void *argument);
int mrt_sql_revoke(struct mrt_store *store, const char *name, uint64_t fence);
int mrt_sql_break(struct mrt_store *store, const char *name, uint64_t fence);

/* ------------------------------------------------------------------ of each dialect */

/* What the product is called, and whether its server tells waiters and observers. */
extern const char mrt_sql_product[];
extern const bool mrt_sql_notifies;
/* Whether a REMOVE can leave it to the server when it is on disk. */
extern const bool mrt_sql_async_commit;
/* Whether there is a MRT_SQL_DO_REMOVE_LAST. */
extern const bool mrt_sql_removes_last;
/* Of the schema: mortise init makes it so, of any older one too. */
extern const int mrt_sql_schema_version;
/* Whether its locks by name can be shared. */
extern const bool mrt_sql_named_shares;
/* Whether it can be seen of all rows, without touching one, which are locked. */
extern const bool mrt_sql_shows_rows;

/* Makes the store's driver and fills its address; 0, or a code with particulars. */
int mrt_sql_driver_open(struct mrt_store *store, const struct mrt_uri *uri);
/* Ends and frees everything. */
void mrt_sql_driver_free(struct mrt_store *store);
/* In a forked child: the connection is made to lead nowhere. */
void mrt_sql_driver_abandon(struct mrt_store *store);
/* Begins a connection; goes on with it, until mrt_sql_check or mrt_sql_reject. */
void mrt_sql_driver_connect(struct mrt_store *store);
void mrt_sql_driver_go_on(struct mrt_store *store, mrt_time now);
void mrt_sql_driver_disconnect(struct mrt_store *store);
/* The request is to leave. It is the last of store->sent; a RENEW is before what has not left. */
void mrt_sql_driver_send(struct mrt_store *store, struct mrt_sql_request *request, mrt_time now);
/* Takes what has arrived, sends what is left, and sees to it that there will be an event. */
void mrt_sql_driver_turn(struct mrt_store *store, mrt_time now);
/* What SETUP has answered: mrt_sql_connected or mrt_sql_reject. */
void mrt_sql_driver_check(struct mrt_store *store, const struct mrt_sql_request *request);
/* Whether a RENEW comes from where SETUP did. */
bool mrt_sql_driver_same(const struct mrt_store *store, const struct mrt_sql_request *request);
/* Whether a RENEW, or a form's proof, says that its server can still be written to; true where
   no server ceases to be so without ending its connections. */
bool mrt_sql_driver_writable(const struct mrt_sql_request *request);
/* The server's number of the connection, if it goes on with a wait whose client has left until it
   is told; 0: it finds out. */
uint64_t mrt_sql_driver_to_kill(const struct mrt_store *store);
const struct mrt_sql_code *mrt_sql_code(const char *state);
/* Rows, first is 0; a NULL is NULL. */
int mrt_sql_rows_count(void *rows);
const char *mrt_sql_rows_text(void *rows, int row, int column);
void mrt_sql_rows_free(void *rows);

#endif
