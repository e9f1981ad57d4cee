/*
 * The parts of the ZooKeeper store, shared by its files and by nobody else:
 *   port.c          the port: commands in, one descriptor; answer.c: events out
 *   connection.c  the client library's handle: its socket, its life and its end
 *   lease.c    what proves that it lives, and how long a server may be silent
 *   request.c  requests under way, found again by number
 *   ticket/ticket.c   one ticket's commands, step by step
 *   ticket/append.c   the first of them; ticket/claim.c: those of a claim
 *   ticket/seek.c     nodes whose names do not say whose they are
 *   ticket/remove.c   the last of them, which may pass the lock on
 *   ticket/data.c     what the own node holds, and what others write there
 *   ticket/detach.c   a ticket that changes hands
 *   ticket/view.c     what a directory's children say
 *   watch/watch.c    watches, and who waits for what
 *   watch/pass.c     what follows from their events
 *   ticket/semaphore.c  which of a semaphore's waiters are woken
 *   values/query.c     commands that concern no ticket: found again by number, answered;
 *                      observe.c: the first of a queue, and the watch on it; cell.c: cells
 *   operator/connection.c      questions of operators, on a handle of its own
 *   operator/list.c, operator/revoke_break.c  mortise_list; mortise_revoke, mortise_break
 *   access.c   credentials and ACLs; watch/rights.c: who may make markers; names.c, code.c,
 *              uri.c: rules without state
 *
 * Threads: calls on one store come one at a time, from any thread. The client library
 * counts its requests in one unlocked variable of the process, so all calls into it are
 * made under mrt_zk_library. Nothing is delivered under that mutex, but by the outbox.
 *
 * Memory: what the library is given to hand back is a number, never a pointer. Its
 * callbacks look the number up in the session that the thread has entered; if it is not
 * there any more, or none has been entered, nobody waits for the answer.
 */
#ifndef MRT_STORE_ZOOKEEPER_INTERNAL_H
#define MRT_STORE_ZOOKEEPER_INTERNAL_H

#include "base/owner.h"
#include "core/store.h"
#include "store/kit/notes.h"
#include "store/zookeeper/access.h"
#include "store/zookeeper/answer.h"
#include "store/zookeeper/uri.h"
#include "store/zookeeper/watch/rights.h"

#include <pthread.h>
#include <stdatomic.h>
#include <zookeeper/zookeeper.h>

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element) ((void)(element))
#include <uthash.h>

#define MRT_ZK_FENCE_SPAN (UINT64_C(1) << 12)
/* What Curator's Revoker writes into the node of whom it asks to give up. */
#define MRT_ZK_REVOKE "__REVOKE__"
#define MRT_ZK_RECHECK (5 * MRT_SECOND)
#define MRT_ZK_RECHECK_UNWATCHED MRT_SECOND

enum mrt_zk_watches {
    MRT_ZK_WATCHES_NODE,    /* its end */
    MRT_ZK_WATCHES_MARK,    /* and its change */
    MRT_ZK_WATCHES_CHILDREN /* of a lock's directory */
};

/* What tickets of this session wait for: a node and its marker, or a directory. One a path,
   however many wait; it stays until its event comes, also if nobody waits any more, or until
   the connection ends. */
struct mrt_zk_watch {
    uint64_t id;
    enum mrt_zk_watches kind;
    bool set;    /* the server has said so */
    bool marker; /* its marker is watched too */
    TAILQ_HEAD(, mrt_zk_ticket) tickets;
    UT_hash_handle hh; /* by path */
    UT_hash_handle by_id;
    char path[];
};

/* What a list of children says of a ticket. */
struct mrt_zk_view {
    uint64_t ahead;         /* weight */
    uint64_t before, after; /* of this, what is before and after the one waited for */
    uint64_t count;         /* of tickets ahead */
    bool behind;
    bool claim;                /* a child is called as a claim is */
    struct mrt_zk_place other; /* a ticket of another kind of lock; FOREIGN: there is none */
    int own;                   /* index of its own node; -1: it is not there */
    int misplaced;             /* of a node of another layout; -1: there is none */
    int blocker;               /* of the one that is waited for; -1: any child may be it */
};

struct mrt_zk_ticket {
    struct mrt_id id;
    struct mrt_jobs jobs;      /* the first is being done */
    uint64_t attempt;          /* answers of an earlier one are dropped */
    unsigned tries;            /* of creating, because the directory was gone, ... */
    unsigned deletes;          /* under way, of a REMOVE */
    bool created;              /* its node is known: `node`, `place`, `czxid` */
    bool outcome_unknown;      /* a create of unknown outcome: there may be a node, or one more */
    bool held;                 /* the newest VIEW granted */
    bool recovering;           /* looking for a node of an earlier create */
    bool unwatched;            /* what is ahead cannot be watched */
    bool barred;               /* a directory could not be made, for want of the right */
    bool unpassed;             /* its own node cannot be watched, so nothing is passed to it */
    bool behind;               /* the newest view: another is queued behind */
    bool waited;               /* some view did not grant */
    bool lingers;              /* who has it wants to hear of who queues behind */
    bool mark_due;             /* its node is to be marked, and is not known to be */
    bool own_known;            /* watched by `own_watch`, and no event of it is missing */
    uint64_t own_watch;        /* number of the watch on its own node; 0: none */
    uint64_t before, after;    /* the newest view: weight before and after the one waited for */
    struct mrt_zk_place place; /* as the command had it, and then as its node says */
    int64_t czxid;             /* of its first node */
    uint64_t ahead;            /* the newest view: tickets ahead; 0: not known */
    int64_t revoked;           /* the newest change of its data that asked to give up */
    int32_t data_version;      /* of its data, as read or written last */
    struct mrt_zk_place other; /* what refused it; of a claim: who else is there */
    int refusal;    /* code of the library to answer with once the node is deleted; 0: BLOCKED */
    bool probing;   /* that a child is called as a claim was seen by a PROBE */
    bool unclaimed; /* and it is a directory */
    bool waits;     /* a claim that waits, without a node */
    int listed;     /* code of a claim's newest list */
    int32_t listed_version; /* of the directory's data, by that list */
    int32_t version;        /* the same when the claim was found to be ours */
    struct mrt_zk_watch *watch;
    TAILQ_ENTRY(mrt_zk_ticket) watch_link;
    UT_hash_handle hh;                  /* by id */
    UT_hash_handle by_own;              /* by own_watch */
    char (*suspects)[MRT_ZK_NODE_SIZE]; /* nodes that may be its own, until that is known */
    int suspect_count, suspect_at;
    char uuid[MRT_ZK_UUID_SIZE]; /* "": the names of its nodes have none */
    char node[MRT_ZK_NODE_SIZE]; /* name within the directory */
    char path[MRT_ZK_PATH_MAX];
};

enum mrt_zk_request_kind {
    MRT_ZK_RENEW,
    MRT_ZK_CLOSE,         /* the sync before a polite end */
    MRT_ZK_WATCH,         /* sets a watch on what is waited for */
    MRT_ZK_WATCH_OWN,     /* on the own node */
    MRT_ZK_WATCH_MARKER,  /* on the marker of what is waited for */
    MRT_ZK_UNWATCH,       /* takes a marker's watch away */
    MRT_ZK_PARENT,        /* creates a directory above a lock's */
    MRT_ZK_DIRECTORY,     /* and that; what becomes of them shows in the next create */
    MRT_ZK_MARKERS,       /* creates that of the markers */
    MRT_ZK_OWN_RIGHTS,    /* reads the ACL of a node that this session has made */
    MRT_ZK_MARKER_RIGHTS, /* and of the markers' directory */
    MRT_ZK_SYNC,          /* so that the list behind it is not an old one */
    MRT_ZK_BARRIER,       /* so that it has all that an earlier connection has sent */
    MRT_ZK_CREATE,
    MRT_ZK_VIEW,           /* lists */
    MRT_ZK_WATCH_CHILDREN, /* lists, and watches that */
    MRT_ZK_MARK,           /* says that a semaphore's ticket is granted */
    MRT_ZK_MARK_READ,      /* reads what somebody else has written there */
    MRT_ZK_PROBE,          /* lists before a try */
    MRT_ZK_FIND_CREATED,   /* lists to find a node of an earlier create */
    MRT_ZK_SEEK,           /* reads whose each is that may be one */
    MRT_ZK_STILL,          /* whether the own one is the one that was made */
    MRT_ZK_PURGE,          /* lists to find what is to be deleted */
    MRT_ZK_DELETE,
    MRT_ZK_PASS,    /* deletes, and says that it was the holder's */
    MRT_ZK_LIGHTEN, /* makes a writer's node a reader's, of the same sequence */
    MRT_ZK_SET,     /* changes the value of the own node */
    MRT_ZK_READ,    /* reads what somebody else has written there */
    MRT_ZK_HEIR,    /* lists to find a ticket that has changed hands, or is to */
    MRT_ZK_HEIR_OWNER,
    MRT_ZK_HEIR_READ,
    MRT_ZK_DETACH,       /* makes the node anew, persistent and called otherwise */
    MRT_ZK_TAKE,         /* and such a one this session's */
    MRT_ZK_UNDO,         /* deletes the node of a failed try, or of a refused acquire */
    MRT_ZK_CLAIM_CREATE, /* creates a claim's node, and counts it */
    MRT_ZK_CLAIM_LIST,
    MRT_ZK_CLAIM_READ,
    MRT_ZK_CLAIM_DELETE, /* deletes a claim's node, if nobody has claimed since */
    MRT_ZK_CLAIM_STAT,   /* asks whether the child called as a claim is one */
    MRT_ZK_LOOK_SYNC,    /* and from here on those of a look, which `watch` is the number of */
    MRT_ZK_LOOK_LIST,
    MRT_ZK_LOOK_WATCHING, /* lists, and watches the directory */
    MRT_ZK_LOOK_MISSING,  /* watches for the directory to be made */
    MRT_ZK_LOOK_FIRST,    /* reads the first node, and watches it */
    MRT_ZK_CELL_READ,
    MRT_ZK_CELL_WRITE,
    MRT_ZK_CELL_MAKE
};

/* A command that concerns no ticket, until it is answered; an OBSERVE until its CHANGED. */
struct mrt_zk_query {
    uint64_t number; /* of its requests and its watches */
    struct mrt_id id;
    struct mrt_job *job; /* NULL: answered */
    bool changed;        /* an event came before the answer */
    unsigned tries;
    uint64_t fence;  /* CELL_SET: the largest, to be written */
    int32_t version; /* CELL_SET: of the node as it was read */
    bool unread;     /* CELL_SET: and that was before the command came */
    UT_hash_handle hh;
    char path[MRT_ZK_PATH_MAX + 32];  /* of the queue's directory, or of the cell */
    char node[MRT_ZK_PATH_MAX + 300]; /* OBSERVE: the one that is watched */
};

struct mrt_zk_request {
    TAILQ_ENTRY(mrt_zk_request) link; /* in the order they were sent */
    uint64_t id;
    enum mrt_zk_request_kind kind;
    struct mrt_id ticket;
    uint64_t attempt;
    uint64_t watch;
};

struct mrt_zk_reply {
    int code;
    const char *text; /* with `length`: what a node holds */
    int length;
    const struct Stat *stat;
    const struct String_vector *names;
    const struct ACL_vector *rights;
};

/* What a session has read or written of a cell last: a write of that needs no look before it. */
struct mrt_zk_seen {
    bool known;
    uint64_t version, fence; /* the cell's */
    int32_t node_version;
    char path[MRT_ZK_PATH_MAX + 32];
};

#define MRT_ZK_PARTS_MAX 3 /* of a multi */

/* The parts that live as long as a handle, which may outlive its session. */
struct mrt_zk_closing {
    zhandle_t *handle;
    zoo_op_result_t results[MRT_ZK_PARTS_MAX]; /* written by the library, and not read */
    int socket;                                /* the connection's, which the library closes */
    int done;                                  /* an event's descriptor; -1: none */
    int code;                                  /* of the library's close; when it has ended */
    atomic_bool ended;
    atomic_int users;
};

struct mrt_zk_session {
    struct mrt_id id;
    struct mrt_store *store;
    zhandle_t *handle;
    int64_t server_id; /* 0: not established yet */
    int timeout_ms;    /* as negotiated */
    bool connected;
    bool told;      /* STARTED */
    bool tainted;   /* the library has closed its socket without clearing up */
    bool over;      /* expired, refused or replaced by the server */
    bool stopping;  /* STOP was asked for: close as soon as it can be done politely */
    bool close_now; /* and that is now */
    bool gathering; /* what is sent waits for the end of the entry */
    int over_error;
    int socket, mask; /* as the epoll descriptor knows them; -1, 0: not at all */
    unsigned failures;
    unsigned attempts; /* to connect, since a sync was answered */
    mrt_time heard;    /* newest answer */
    mrt_time deadline; /* of connecting */
    mrt_time began;    /* the newest attempt to connect */
    mrt_time attached; /* the one that the leader has said yes to last */
    mrt_time since;    /* when it did */
    mrt_time asked;    /* the newest sync of the session's own was sent */
    struct mrt_job *start, *stop, *renew;
    uint64_t numbers;
    TAILQ_HEAD(, mrt_zk_request) requests;
    struct mrt_zk_ticket *tickets;
    struct mrt_zk_ticket *tickets_by_own;
    struct mrt_zk_watch *watches, *watches_by_id;
    struct mrt_zk_query *queries;
    struct mrt_zk_seen seen;
    struct mrt_zk_rights rights;
    struct mrt_zk_closing *closing;
};

/* What is said in the log, once each for a store. */
enum mrt_zk_note {
    MRT_ZK_NOTE_FOREIGN,
    MRT_ZK_NOTE_MISPLACED,
    MRT_ZK_NOTE_OPEN,
    MRT_ZK_NOTE_NO_DELETE,
    MRT_ZK_NOTE_OPEN_MARKERS
};

struct mrt_store {
    struct mrt_traffic traffic;
    struct mrt_zk_address address;
    struct mrt_zk_access access;
    char servers[MRT_ZK_SERVERS_SIZE];
    struct mrt_resolver resolver;
    struct mrt_job *unplaced; /* a START that comes before any server is known */
    mrt_time unplaced_until;
    char label[MRT_OWNER_SIZE];
    struct mrt_notes notes;
    bool no_containers; /* the server is too old for them */
    bool no_unwatching; /* and for taking watches away */
    bool no_markers;    /* their directory may not be made, or the server has no multi */
    mrt_time timeout;
    int epoll;
    mrt_time next;
    struct mrt_zk_session *session;
    struct mrt_id unproven;         /* session given up without the server's word */
    struct mrt_zk_closing *closing; /* of the session before; NULL: it has ended */
    struct mrt_job *stop;           /* waits for that */
    struct mrt_outbox outbox;
};

extern pthread_mutex_t mrt_zk_library;
/* Whose callbacks the library is running on this thread; NULL: none that matter. */
extern _Thread_local struct mrt_zk_session *mrt_zk_entered;

/* A VIEW that was not asked for: ticket/ticket.c. */
void mrt_zk_report_view(struct mrt_store *store, struct mrt_zk_ticket *ticket, uint64_t ahead);

/* connection.c. All but the last with mrt_zk_library held. */
/* A handle of the library's for this store; NULL: no memory. */
zhandle_t *mrt_zk_handle(const struct mrt_store *store, const char *servers, watcher_fn watcher);
bool mrt_zk_session_start(struct mrt_store *store, struct mrt_job *job, mrt_time now);
void mrt_zk_session_stop(struct mrt_zk_session *session, struct mrt_job *job, mrt_time now);
void mrt_zk_session_renew(struct mrt_zk_session *session, struct mrt_job *job);
void mrt_zk_session_reply(struct mrt_zk_session *session, enum mrt_zk_request_kind kind, int code);
/* Notes that the server has ended it, for this reason of the library. */
void mrt_zk_session_over(struct mrt_zk_session *session, int code);
/* Why an attempt to connect failed, by the errno behind the library's call. */
const char *mrt_zk_trouble(int error);
/* What is sent until the next turn has ended goes in one piece. */
void mrt_zk_session_gather(struct mrt_zk_session *session);
/* Lets the library work: read what has come, write, notice time-outs. */
void mrt_zk_session_turn(struct mrt_zk_session *session, mrt_time now);
/* Its tickets, watches and commands come to an end, with an answer each. */
void mrt_zk_session_clear(struct mrt_zk_session *session);
void mrt_zk_session_free(struct mrt_zk_session *session);

/* close.c, without the mutex. */
/* What the end of a handle will need; NULL: no memory. */
struct mrt_zk_closing *mrt_zk_close_prepare(void);
/* Begins to close the session's handle; the caller lets the result go. */
struct mrt_zk_closing *mrt_zk_close_begin(struct mrt_zk_session *session);
bool mrt_zk_close_has_ended(const struct mrt_zk_closing *closing);
/* Has the epoll descriptor wake when it ends. */
void mrt_zk_close_watch(const struct mrt_zk_closing *closing, int epoll);
void mrt_zk_close_wait(const struct mrt_zk_closing *closing, mrt_time patience);
void mrt_zk_close_let_go(struct mrt_zk_closing *closing);
/* Closes the session's handle in this call. */
void mrt_zk_close_here(struct mrt_zk_session *session);

/* lease.c */
/* How old a sign of life must be to be proven by the next one; `tick` 0: not known. */
mrt_time mrt_zk_proof_lag(mrt_time lease, mrt_time tick);
/* Fills in STARTED's part of it; false: the session is too short, and `why`. */
bool mrt_zk_lease_begin(struct mrt_zk_session *session, struct mrt_event *event, char *why,
                        size_t size);
/* When the connection is given up if nothing comes until then. */
mrt_time mrt_zk_given_up_at(const struct mrt_zk_session *session);
/* Whether there was an attempt for each of the servers since a sync was answered. */
bool mrt_zk_has_tried_all(const struct mrt_zk_session *session);

/* request.c. False: not sent; `code` says why. */
bool mrt_zk_send(struct mrt_zk_session *session, enum mrt_zk_request_kind kind,
                 struct mrt_zk_ticket *ticket, const char *path, int *code);
/* For a watch with that number. */
bool mrt_zk_send_watch(struct mrt_zk_session *session, enum mrt_zk_request_kind kind,
                       uint64_t watch, const char *path);
void mrt_zk_requests_free(struct mrt_zk_session *session);

/* values/query.c */
/* `path` is the queue's directory, or the cell's. */
void mrt_zk_query_submit(struct mrt_zk_session *session, struct mrt_job *job, const char *path);
void mrt_zk_query_reply(struct mrt_zk_session *session, enum mrt_zk_request_kind kind,
                        uint64_t number, const struct mrt_zk_reply *reply);
void mrt_zk_query_event(struct mrt_zk_session *session, uint64_t number);
struct mrt_zk_query *mrt_zk_query_find(struct mrt_zk_session *session, uint64_t number);
/* The connection has ended, and the watches with it. */
void mrt_zk_queries_forget(struct mrt_zk_session *session);
/* Answers all, and frees them. */
void mrt_zk_queries_end(struct mrt_zk_session *session);
void mrt_zk_query_answer(struct mrt_zk_session *session, struct mrt_zk_query *look,
                         enum mrt_event_type type);
void mrt_zk_query_answer_code(struct mrt_zk_session *session, struct mrt_zk_query *look, int code);
/* FAILED with an error of mortise's. */
void mrt_zk_query_refuse(struct mrt_zk_session *session, struct mrt_zk_query *look, int error);
/* What the answer has for a value; false: no memory, and it is answered. */
bool mrt_zk_query_keep(struct mrt_zk_session *session, struct mrt_zk_query *look, const char *data,
                       int length);
/* Sends; if that cannot be done the command ends. */
void mrt_zk_query_send(struct mrt_zk_session *session, struct mrt_zk_query *look,
                       enum mrt_zk_request_kind kind, const char *path);

/* values/observe.c */
void mrt_zk_observe_begin(struct mrt_zk_session *session, struct mrt_zk_query *look);
void mrt_zk_observe_reply(struct mrt_zk_session *session, struct mrt_zk_query *look,
                          enum mrt_zk_request_kind kind, const struct mrt_zk_reply *reply);

/* values/cell.c */
void mrt_zk_cell_begin(struct mrt_zk_session *session, struct mrt_zk_query *look);
void mrt_zk_cell_reply(struct mrt_zk_session *session, struct mrt_zk_query *look,
                       enum mrt_zk_request_kind kind, const struct mrt_zk_reply *reply);
/* What the node is to hold. */
#define MRT_ZK_CELL_MAX (MORTISE_VALUE_MAX + 64)
int mrt_zk_cell_data(const struct mrt_zk_query *look, char data[MRT_ZK_CELL_MAX]);

/* watch/watch.c */
/* The ticket waits for `node`, as the view of `before` and `after` has it. */
void mrt_zk_wait(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, const char *node);
/* It waits for any child to come or go. False: no watch is known to be set. */
bool mrt_zk_wait_children(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);
/* It waits no more, and nothing that comes grants it. */
void mrt_zk_unwait(struct mrt_zk_ticket *ticket);
/* Nor does its own node's end concern it. */
void mrt_zk_disown(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);
/* Its own node is to be watched for what others do to it. */
void mrt_zk_attend(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);
/* Number of a new watch, for a list to set; 0: there is one already. False: no memory. */
bool mrt_zk_watch_children(struct mrt_zk_session *session, const char *path, uint64_t *number);
/* What it was for is gone, or cannot be watched: whoever still waits for it is to look. */
void mrt_zk_watch_drop(struct mrt_zk_session *session, struct mrt_zk_watch *watch);
void mrt_zk_watch_free(struct mrt_zk_session *session, struct mrt_zk_watch *watch);
/* Takes them from the library too, before it has another connection. */
void mrt_zk_watches_forget(struct mrt_zk_session *session);
void mrt_zk_watches_free(struct mrt_zk_session *session);

/* ticket/semaphore.c */
/* Whether a ticket at this place marks its node when it is granted. */
bool mrt_zk_marks(const struct mrt_zk_place *place);
/* Whether others may wait for the ticket's mark, now that it is granted. */
bool mrt_zk_mark_due(const struct mrt_zk_ticket *ticket, const struct Stat *directory);
/* Marks its node if that is due. */
void mrt_zk_mark(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);
void mrt_zk_marked(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                   enum mrt_zk_request_kind kind, const struct mrt_zk_reply *reply);
/* The node that is waited for is as this says. */
void mrt_zk_mark_seen(struct mrt_zk_session *session, struct mrt_zk_watch *watch,
                      const struct Stat *node);

/* ticket/data.c */
/* The ticket's place, as light as its command wants it. */
struct mrt_zk_place mrt_zk_lighter_place(const struct mrt_zk_ticket *ticket);
/* What the node is called after its LIGHTEN; false: it is not heavier than that. */
bool mrt_zk_lighter(const struct mrt_zk_ticket *ticket, char node[MRT_ZK_NODE_SIZE]);
/* A reply to reading the own node, or to writing it: `length` -1, and no text. */
void mrt_zk_data_known(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                       const struct mrt_zk_reply *reply);
/* The version that the own node must have to be written over. */
int32_t mrt_zk_data_version(const struct mrt_zk_ticket *ticket);
/* LIGHTEN and SET_VALUE, and the answers to what they send. */
void mrt_zk_data_begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);
void mrt_zk_data_reply(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                       enum mrt_zk_request_kind kind, const struct mrt_zk_reply *reply);

/* watch/pass.c */
void mrt_zk_watch_reply(struct mrt_zk_session *session, enum mrt_zk_request_kind kind,
                        uint64_t number, const struct mrt_zk_reply *reply);
void mrt_zk_watch_event(struct mrt_zk_session *session, uint64_t number, int type,
                        const char *path);
/* Whether nothing else is in its way than what it waits for, by its newest view. */
bool mrt_zk_waits_for_last(const struct mrt_zk_ticket *ticket);
/* The path of the marker of the node at `path`. */
void mrt_zk_marker_path(const struct mrt_store *store, const char *path, char *marker, size_t size);

/* ticket/view.c */
/* The transaction that a ticket's fence is: of its first node. */
int64_t mrt_zk_first_czxid(const struct mrt_zk_place *place, const struct Stat *stat);
struct mrt_zk_view mrt_zk_view_of(struct mrt_store *store, const struct mrt_zk_ticket *ticket,
                                  const struct String_vector *names);
/* The particulars of MRT_ZK_MISPLACED, for the command's answer. */
void mrt_zk_keep_misplaced(const struct mrt_store *store, struct mrt_job *job, const char *node);
/* Whether so many or more wait ahead of the ticket. */
bool mrt_zk_crowded(const struct mrt_zk_ticket *ticket, const struct mrt_zk_view *view,
                    const struct String_vector *names, uint64_t most);

/* ticket/ticket.c */
/* `path` is the queue's directory. */
void mrt_zk_ticket_submit(struct mrt_zk_session *session, struct mrt_job *job, const char *path);
void mrt_zk_ticket_reply(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                         enum mrt_zk_request_kind kind, const struct mrt_zk_reply *reply);
struct mrt_zk_ticket *mrt_zk_ticket_find(struct mrt_zk_session *session, struct mrt_id id);
/* Its command is answered; the next one begins, or a ticket without a node goes. */
void mrt_zk_ticket_answer(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                          enum mrt_event_type type);
void mrt_zk_ticket_answer_code(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                               int code);
/* FAILED, whatever the code is: nothing has been changed. */
void mrt_zk_ticket_fail(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int code);
/* Sends; if that cannot be done the command ends. False: it has ended. */
bool mrt_zk_ticket_send(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                        enum mrt_zk_request_kind kind, const char *path);
bool mrt_zk_ticket_send_node(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                             enum mrt_zk_request_kind kind, const char *node);
/* Whether it is woken with all others, as the oldest form of the recipe has it. */
bool mrt_zk_ticket_herds(const struct mrt_zk_session *session, const struct mrt_zk_ticket *ticket);
/* VIEW, or if it does not grant the list has to be one with a watch, WATCH_CHILDREN. */
enum mrt_zk_request_kind mrt_zk_ticket_view(const struct mrt_zk_session *session,
                                            const struct mrt_zk_ticket *ticket);
/* Has the server catch up: by a sync; by a write where an earlier connection may have made a node
   of the ticket (ticket/seek.c). False: it cannot be sent, and the command is answered. */
bool mrt_zk_ticket_catch_up(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);
/* Lists the children, behind that if it must not be an old list. */
void mrt_zk_ticket_list(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                        enum mrt_zk_request_kind kind, bool fresh);
/* Whether it is granted with so much weight ahead. */
bool mrt_zk_ticket_fits(const struct mrt_zk_ticket *ticket, uint64_t ahead);
/* Keeps the node's name, and what it is now; false: it cannot be one of ours. */
bool mrt_zk_ticket_keep(struct mrt_zk_ticket *ticket, const char *node);
/* Takes the newest view, with its fence, into an event. */
void mrt_zk_ticket_describe(struct mrt_zk_ticket *ticket, struct mrt_event *event, uint64_t ahead);
/* Its node is no more, or was never made. */
void mrt_zk_ticket_gone(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);
/* Answers with the newest view. */
void mrt_zk_ticket_show(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                        uint64_t ahead);
/* Answers all its commands as those of an ended session are. */
void mrt_zk_ticket_end(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);

/* ticket/append.c */
/* Makes the directory `path`, and with `all` those above it, without waiting for answers. */
void mrt_zk_send_parents(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                         const char *path, bool all);
void mrt_zk_append_begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);
void mrt_zk_append_reply(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                         enum mrt_zk_request_kind kind, const struct mrt_zk_reply *reply);
/* Why the ticket may not stand after its first view; ZOK: it may. */
int mrt_zk_append_refusal(const struct mrt_zk_ticket *ticket, const struct mrt_command *command,
                          const struct mrt_zk_view *view, const struct String_vector *names);
/* Takes its node back, and answers with that code then. */
void mrt_zk_append_undo(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, int refusal);

/* A node of an earlier create has been sought, and found if `created`. */
void mrt_zk_append_sought(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);
/* Asks for the directory, which is not there; false: the command ends with `code`. */
bool mrt_zk_append_directory(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                             int code);

/* ticket/seek.c */
/* Looks for nodes of earlier creates among these names, for an APPEND or a REMOVE. */
void mrt_zk_seek_begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                       const struct String_vector *names);
void mrt_zk_seek_reply(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                       const struct mrt_zk_reply *reply);

/* ticket/claim.c */
void mrt_zk_claim_begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);
void mrt_zk_claim_reply(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                        enum mrt_zk_request_kind kind, const struct mrt_zk_reply *reply);
/* Whether a node called as a claim is one: a directory may be called so too. */
bool mrt_zk_is_claim(const struct Stat *stat);
/* Of a ticket with a place in an order: asks whether what the view shows is a claim. False:
   it shows none. */
bool mrt_zk_claim_asked(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                        const struct mrt_zk_view *view, bool probing);

/* ticket/detach.c */
/* DETACH, and APPEND with `adopt`. */
void mrt_zk_detach_begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);
void mrt_zk_adopt_begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);
void mrt_zk_heir_reply(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                       enum mrt_zk_request_kind kind, const struct mrt_zk_reply *reply);
/* What the node is to be called once the command is done. */
void mrt_zk_heir_node(const struct mrt_zk_ticket *ticket, char node[MRT_ZK_NODE_SIZE]);

/* ticket/remove.c */
void mrt_zk_remove_begin(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);
void mrt_zk_remove_reply(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                         enum mrt_zk_request_kind kind, const struct mrt_zk_reply *reply);
/* None of its nodes is left. */
void mrt_zk_remove_done(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);
/* Who may create in a directory but not delete cannot release: only the session's end does. */
void mrt_zk_note_no_delete(struct mrt_zk_session *session, const struct mrt_zk_ticket *ticket,
                           int code);

/* operator/revoke_break.c */
int mrt_zk_revoke(struct mrt_store *store, const char *name, uint64_t fence);
int mrt_zk_break(struct mrt_store *store, const char *name, uint64_t fence);

/* operator/server.c */
int mrt_zk_server(struct mrt_store *store, char *text, size_t size);
/* operator/list.c */
int mrt_zk_list(struct mrt_store *store, const char *name, const char *prefix,
                mrt_listed_callback callback, void *argument);

#endif
