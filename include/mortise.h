/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise: distributed locks.
 *
 * A lock here is a lease: a grant that ends by itself when its holder can no longer prove that it
 * lives. Whether it is held is computed from a clock at each call, not remembered. A program that
 * stalls between asking and acting can still be overtaken, so every grant carries a fence, a number
 * that only grows: give it to the resource, and let the resource refuse a number smaller than the
 * largest it has seen.
 *
 * Threads. Every function may be called from any thread unless it says
 * otherwise. A client runs one thread of its own, or none
 * (MORTISE_FOREIGN_LOOP). With mortise_on_lost, mortise_lost_fd or a campaign, where a clock can
 * end a hold, it runs a second one, so that no call of the store delays the callback of a loss.
 * Callbacks run one at a time: on the client's thread, or on the second one from when there is one;
 * or inside mortise_process and the blocking calls where there is none. A callback must not block:
 * the blocking calls answer MORTISE_EDEADLOCK there. No function may be called from a signal
 * handler; a handler may write to mortise_interrupt_fd.
 *
 * Ownership. The caller owns clients and locks and closes or frees them once.
 * A hold is a small value; copy it freely. A copy that has gone stale (released,
 * lost and released, or its client closed) is recognised and harmless for ever: no
 * other hold of the process is equal to it.
 *
 * fork. After fork a child may call nothing but mortise_close, which then only
 * frees memory; everything else answers MORTISE_EFORKED. The parent's locks
 * stay the parent's. A child may open clients of its own. On sqlite: that answers
 * MORTISE_EFORKED too if the parent had the same file open at the fork: open it
 * after the fork, in each process, or exec first.
 *
 * NULL. A NULL client, lock, election or operation is EINVALID where a function returns an error,
 * unless it allows NULL; mortise_url and mortise_lock_name return NULL, and the others do nothing.
 *
 * Structures with a size. A program built with an older header passes a smaller size: fields that
 * it lacks are read as 0 and never written. A size larger than this library's is EINVALID.
 *
 * Times. Durations are milliseconds and say so in their names. Deadlines are
 * absolute nanoseconds of mortise_now_ns, a clock that counts suspended time and
 * that nobody can set. Where the store gives a lease, a hold ends on this clock 3 % of the lease
 * earlier, and at least 10 ms: so no two hold a lock while the client's clock and the server's
 * each run at most 1.5 % too fast or too slow.
 *
 * The header is C99 and C++.
 */
#ifndef MORTISE_H
#define MORTISE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MORTISE_API __attribute__((visibility("default")))
#else
#define MORTISE_API
#endif

#define MORTISE_VERSION "0.2.0"

/* Longest lock name and longest label, in bytes. */
#define MORTISE_NAME_MAX 255
#define MORTISE_LABEL_MAX 127
/* Longest value of a leader or of a cell, in bytes. */
#define MORTISE_VALUE_MAX 4096
/* Longest delay after a crash: a day. */
#define MORTISE_LOCK_DELAY_MAX_MS 86400000

/* ---------------------------------------------------------------- errors */

/*
 * The reaction that each kind of error allows; the text of an error is for people.
 *   BUSY     someone else holds or waits: try later
 *   TIMEOUT  the deadline came first
 *   RETRY    a passing fault: the same call may succeed
 *   LOST     the hold, or the session that carried it, is gone
 *   DENIED   not permitted
 *   USAGE    the call itself is wrong: a fault in the program
 *   CONFIG   the URI, an option or the environment is wrong
 *   UNKNOWN  the outcome is not known: it may or may not have happened
 *   INTERNAL no memory, or a fault in mortise
 */
typedef enum mortise_error_kind {
    MORTISE_KIND_NONE = 0,
    MORTISE_KIND_BUSY,
    MORTISE_KIND_TIMEOUT,
    MORTISE_KIND_RETRY,
    MORTISE_KIND_LOST,
    MORTISE_KIND_DENIED,
    MORTISE_KIND_USAGE,
    MORTISE_KIND_CONFIG,
    MORTISE_KIND_UNKNOWN,
    MORTISE_KIND_INTERNAL
} mortise_error_kind;

/* Plain constants, also for `switch` and for parsers that know no macros. Numbers never change. */
enum mortise_error {
    MORTISE_OK = 0,
    MORTISE_EBUSY = -1,
    MORTISE_ETIMEOUT = -2,
    MORTISE_ECANCELLED = -3,
    MORTISE_ECLOSED = -4,
    MORTISE_ELOST = -5,
    MORTISE_ENOTHELD = -6,
    MORTISE_ENOTOWNER = -7,
    MORTISE_EDEADLOCK = -8,
    MORTISE_EFORKED = -9,
    MORTISE_EINVALID = -10,
    MORTISE_ENAME = -11,
    MORTISE_EURI = -12,
    MORTISE_ESCHEME = -13,
    MORTISE_EPERMISSION = -14,
    MORTISE_EUNSAFE = -15,
    MORTISE_EUNREACHABLE = -16,
    MORTISE_ESTORE = -17,
    MORTISE_EUNKNOWN = -18,
    MORTISE_EMISMATCH = -19,
    MORTISE_ENOTSUPPORTED = -20,
    MORTISE_ENOMEM = -21,
    MORTISE_EINTERNAL = -22,
    MORTISE_EFULL = -23,
    MORTISE_ECONFLICT = -24,
    MORTISE_ESTALE = -25,
    MORTISE_ENOLEADER = -26,
    MORTISE_EDISCONNECTED = -27,
    MORTISE_ESETUP = -28
};

/* X(name, number, kind, text): the one table of their kinds and texts. */
#define MORTISE_ERROR_MAP(X)                                                                   \
    X(EBUSY, MORTISE_EBUSY, BUSY, "held by someone else")                                      \
    X(ETIMEOUT, MORTISE_ETIMEOUT, TIMEOUT, "timed out before the lock was granted")            \
    X(ECANCELLED, MORTISE_ECANCELLED, TIMEOUT, "cancelled")                                    \
    X(ECLOSED, MORTISE_ECLOSED, USAGE, "the client is closed")                                 \
    X(ELOST, MORTISE_ELOST, LOST, "the hold was lost")                                         \
    X(ENOTHELD, MORTISE_ENOTHELD, USAGE, "not held: already released, or never acquired")      \
    X(ENOTOWNER, MORTISE_ENOTOWNER, USAGE, "held by another owner")                            \
    X(EDEADLOCK, MORTISE_EDEADLOCK, USAGE, "would wait for itself")                            \
    X(EFORKED, MORTISE_EFORKED, USAGE, "the client belongs to the parent process")             \
    X(EINVALID, MORTISE_EINVALID, USAGE, "invalid argument")                                   \
    X(ENAME, MORTISE_ENAME, USAGE, "invalid lock name")                                        \
    X(EURI, MORTISE_EURI, CONFIG, "malformed store URI")                                       \
    X(ESCHEME, MORTISE_ESCHEME, CONFIG, "unknown store scheme")                                \
    X(EPERMISSION, MORTISE_EPERMISSION, DENIED, "permission denied")                           \
    X(EUNSAFE, MORTISE_EUNSAFE, CONFIG, "unsafe file or directory")                            \
    X(EUNREACHABLE, MORTISE_EUNREACHABLE, RETRY, "the store cannot be reached")                \
    X(ESTORE, MORTISE_ESTORE, RETRY, "the store reported an error")                            \
    X(EUNKNOWN, MORTISE_EUNKNOWN, UNKNOWN, "the outcome is not known")                         \
    X(EMISMATCH, MORTISE_EMISMATCH, USAGE, "the lock exists with another kind or capacity")    \
    X(ENOTSUPPORTED, MORTISE_ENOTSUPPORTED, CONFIG, "not supported by this store")             \
    X(ENOMEM, MORTISE_ENOMEM, INTERNAL, "out of memory")                                       \
    X(EINTERNAL, MORTISE_EINTERNAL, INTERNAL, "internal error")                                \
    X(EFULL, MORTISE_EFULL, RETRY, "queue is full, or the client has too many locks")          \
    X(ECONFLICT, MORTISE_ECONFLICT, BUSY, "changed by someone else meanwhile")                 \
    X(ESTALE, MORTISE_ESTALE, LOST, "a larger fence has been seen")                            \
    X(ENOLEADER, MORTISE_ENOLEADER, RETRY, "nobody leads")                                     \
    X(EDISCONNECTED, MORTISE_EDISCONNECTED, RETRY, "no answer from the store while acquiring") \
    X(ESETUP, MORTISE_ESETUP, CONFIG, "the store has not been set up: see mortise init")

/* The library's own MORTISE_VERSION, static: for programs that know no macros, and for reports. */
MORTISE_API const char *mortise_version(void);
/* Text of an error code, one line, static; never NULL. */
MORTISE_API const char *mortise_error_text(int error);
/* Name of an error code, as "ETIMEOUT", static; never NULL. */
MORTISE_API const char *mortise_error_name(int error);
/* The kind of an error; MORTISE_KIND_INTERNAL for a number not in the table. */
MORTISE_API mortise_error_kind mortise_error_kind_of(int error);
/*
 * The particulars of the last call that failed on this thread: which name, which file, what the
 * store said; of EBUSY and ETIMEOUT how long the call has waited, and the holder if it is this
 * client's (mortise_list names others); of ENOTOWNER the thread that holds. For people: the words
 * may change. Never a secret. Empty if there is nothing to add. Valid until this thread's next
 * call. A runtime whose tasks change threads reads it on the thread of the call, before the task
 * can move; of asynchronous operations see mortise_operation_detail.
 */
MORTISE_API const char *mortise_error_detail(void);

/* ---------------------------------------------------------------- client */

typedef struct mortise_client mortise_client;
typedef struct mortise_lock mortise_lock;

/* Nanoseconds of the clock that deadlines are measured on. */
MORTISE_API int64_t mortise_now_ns(void);

enum {
    /* No thread: the caller runs the client through mortise_fd and
       mortise_process; blocking calls run it while they wait. All calls on such
       a client are made from one thread at a time. */
    MORTISE_FOREIGN_LOOP = 1 << 0,
    /* Local waiters are served strictly in the order they came. The default is
       eventually fair: a running thread may retake a lock at once, but a thread that has waited for
       1 ms is handed it directly. */
    MORTISE_STRICT = 1 << 1,
    /* The program is short-lived, as a command is: leave the store cheap to
       open for the next one. On the store agent: its locks pass when the last process that has
       its descriptors has ended. Those of other programs pass when the program itself ends. */
    MORTISE_SHORT_LIVED = 1 << 2,
    /* mortise_list shows this host's name and this process's number beside what the client
       holds and waits for. For people: anybody who may write there can forge it. */
    MORTISE_TELL_PROCESS = 1 << 3,
    /* The client has its thread, and the caller's event loop takes the store's answers where it
       can: it polls mortise_fd for reading, without a limit of time, and calls mortise_process when
       there is something. A program that asks mortise_next_timeout_ms after each call that may end
       in a callback, as an asynchronous acquire or a release, and calls mortise_process at 0,
       spares the thread more; one that has asked once has to go on with that. Callbacks that are
       due then run there, and an answer costs no switch of thread. When the event loop has not
       called for 20 ms, the thread does all that by itself, so a loop that is busy delays no
       renewal. A callback may come on either thread, but never two at a time. */
    MORTISE_SHARED_LOOP = 1 << 4
};

typedef void (*mortise_log_callback)(void *argument, const char *message);
/* `error`: EUNREACHABLE, and why no server answers, as far as that is known, or the store's
   address; or 0 and its address: it answers again. Without secrets; valid during the callback. */
typedef void (*mortise_contact_callback)(void *argument, int error, const char *why);

/* Zero it, set size, then what is needed; a field of 0 or NULL is the default. */
typedef struct mortise_client_options {
    size_t size;    /* sizeof(mortise_client_options) */
    uint32_t flags; /* MORTISE_FOREIGN_LOOP, ... */
    /* How long and how often threads of this client may hand a lock on among
       themselves before its turn ends, if other clients wait. The client learns whether others
       wait when a turn begins, and by a request every budget_ms after. So a client that queues in
       mid-turn waits for at most budget_ms, the hold then in progress, the round trip of that
       request, and the hold in progress when it ends. 0: 2 ms and 16 times. -1: never;
       every release returns the lock to the store first. */
    int32_t budget_ms;
    int32_t budget_count;
    /* How long the store may wait for its server at open, and mortise_close for
       what is still to be released. 0: 5000. */
    int32_t timeout_ms;
    /* Text shown by mortise_list beside what this client holds, for people. Not
       secret. NULL: none. At most MORTISE_LABEL_MAX bytes. */
    const char *label;
    mortise_log_callback log;
    void *log_argument;
    /* An acquire, a campaign or an adoption that waits for the store ends with EDISCONNECTED when
       no server has answered for this time; at most an hour. 0: it waits. */
    int64_t give_up_ms;
    /* Called when the store has owed an answer for 0.7 s, while the client retries, and again when
       the store answers after that. A client without a request under way does not notice. Runs
       where callbacks run: on the client's thread, or in mortise_process. */
    mortise_contact_callback contact;
    void *contact_argument;
} mortise_client_options;

/*
 * Opens a client on the store that `uri` names:
 *   sqlite:///absolute/path, sqlite:relative/path   a file on this machine
 *   zk://host:port,host:port/chroot?session=10s      a ZooKeeper ensemble (layout=curator, kazoo,
 *                                                    recipe: the programs it shares locks with)
 *   redis://user@host:port/db?session=10s            a Redis server
 *   postgresql://user@host:port/database?lease=10s   a schema of a PostgreSQL database
 *   mysql://user@host:port/database?lease=10s        a database of a MariaDB server
 *   etcd://host:port,host:port?lease=10s             a cluster of etcd
 *   nats://host:port,host:port?lease=10s             a server or a cluster of NATS with JetStream
 *   k8s://host:port/namespace?lease=15s              Leases of a Kubernetes API server; no order
 *   redlock:URI,URI,URI?answer=50ms                  a majority of such stores, of any kinds; no
 *                                                    fence, no order
 *   memory:NAME                                      this process alone
 * NULL or "": $MORTISE_URL, else the embedded file locks.db in
 * $XDG_STATE_HOME/mortise (by default ~/.local/state/mortise, or, where that cannot be, mortise in
 * the first of $STATE_DIRECTORY, $RUNTIME_DIRECTORY and $XDG_RUNTIME_DIR that is set; for root
 * /var/lib/mortise), which is created. A program with more rights than its user (set-user-ID)
 * heeds no variable, and gets no store that is in a module.
 * Query parameters: namespace=TEXT (default "mortise"; empty for none) is put
 * before every name with a "/". queue_max=N: an acquire that would have to wait behind
 * N clients that wait already ends with EFULL; by default any number may. The
 * threads of one client wait in one place, and count once. A client whose turn is over
 * queues again, and may find the queue full too.
 *   tickets_max=20000  A client holds or waits for at most so many locks, 1 to 1,000,000; a further
 *                   acquire ends with EFULL. So one client cannot fill a store that others use.
 *   recheck=200ms   A client that waits, holds or observes looks again after so long at the latest,
 *                   told or not: 50ms to 5s. A store's own time, up to 5 s, counts if it is less.
 *   retry=10ms..1s  The pause before a failure is repeated: doubled from the one to the other, and
 *                   spread by a half. The first is 1ms to 1s, the second at most 60s.
 *   attempts=10     How often a request that has failed is repeated: 1 to 1000. A session, and a
 *                   store that is away, is asked for as long as somebody waits.
 *   give_up=30s     As give_up_ms, and goes before it: 100ms to 1h.
 * Some stores are in modules of their own, loaded here; where one is not installed, and in a
 * build without a store, ENOTSUPPORTED says what is missing.
 * 0 and *client; or EURI, ESCHEME, EUNSAFE, EPERMISSION, EUNREACHABLE,
 * ENOTSUPPORTED, EINVALID, ENOMEM and *client untouched.
 */
MORTISE_API int mortise_open(const char *uri, const mortise_client_options *options,
                             mortise_client **client);

/*
 * Opens a client on a majority of `count` stores (1 to 15) that know nothing of each other, as
 * "redlock:" with their URIs does, but that each URI has parameters of its own, such as
 * credentials= and session=. All must name the same namespace=, or none. A member is waited for
 * no longer than `answer_ms` (1 to 10000; 0: 50, or a 50th of the lease if that is less, but at
 * least 5) in a round. The strings are copied.
 * 0 and *client; or EINVALID, EURI (one of these cannot be a member, or is named twice), and as
 * mortise_open.
 */
MORTISE_API int mortise_open_quorum(const char *const *uris, size_t count, int32_t answer_ms,
                                    const mortise_client_options *options, mortise_client **client);

typedef void (*mortise_text_callback)(void *argument, const char *text);

/*
 * Creates in the store that `uri` names what it needs before its first use: on an SQL server the
 * schema. Existing objects stay as they are, and several programs may do this at the same time. If
 * `print` is not NULL, nothing is executed and no server is contacted: `print` receives the
 * statements, which an administrator can run. Stores that need nothing answer 0. Waits for the
 * server.
 * 0; or ESETUP (no such database), EPERMISSION, ESTORE, and as mortise_open.
 */
MORTISE_API int mortise_init(const char *uri, mortise_text_callback print, void *argument);

/*
 * Releases what is held, frees all waiters with MORTISE_ECLOSED, waits until the store has
 * acknowledged, stops the thread and frees everything, also the client's locks and elections. It
 * waits for timeout_ms at most; without an open session nothing is held or queued, and 0.1 s is the
 * most. No other call on this client or its holds may run meanwhile, except calls that already
 * wait: this call ends them. It then waits, beyond timeout_ms too, for calls that work on more than
 * one answer of the store: a mortise_acquire_all that is blocked on a lock of another client, a
 * mortise_cell_update whose `change` runs, a change of permits, a list, a break. NULL is allowed.
 * Afterwards a use of the client, its locks or elections is a use of freed memory; but a call on
 * one of its holds answers as on any stale hold, for ever: ENOTHELD, MORTISE_RELEASED, 0 or "".
 * 0; or EUNKNOWN: the time was up, and the store ends the session by itself (if it refused to
 * release, mortise_error_detail says why). Everything is freed in both cases.
 * EDEADLOCK in a callback, and nothing is freed.
 */
MORTISE_API int mortise_close(mortise_client *client);

/* The store's address without secrets, "sqlite:/var/lib/mortise/locks.db"; owned by the client. */
MORTISE_API const char *mortise_url(const mortise_client *client);

/*
 * The product and version of the store's server, as "ZooKeeper 3.8.0, leader", for people; on
 * sqlite: the library. Sends a request that waits for no lock. On Redis, PostgreSQL and MariaDB it
 * also reads the user's rights, and logs if they exceed what locks need, or if others get in
 * without a password. `text` is cut at its end.
 * 0; ENOTSUPPORTED: the store has no server, or the server reports no version; EINVALID; else as
 * mortise_list, EDEADLOCK inside a callback.
 */
MORTISE_API int mortise_server(mortise_client *client, char *text, size_t size);

/*
 * The promises that a store makes. Sends no request.
 * 0; EINVALID: size is not set.
 */
typedef struct mortise_capabilities {
    size_t size;           /* set by the caller: sizeof(mortise_capabilities) */
    int fair;              /* waiters of all processes are served in order; see exclusive_fair */
    int fence;             /* every grant carries a fence */
    int notify;            /* waiters are woken; they need not poll */
    int across_hosts;      /* clients on several hosts exclude each other */
    int survives_failover; /* no grant is lost when a server is replaced */
    int durable_fence;     /* fences rise across a power cut */
    int64_t lease_ms;      /* session lease; 0: the operating system tells of death */
    int detach;            /* mortise_detach and mortise_adopt are there */
    int linger;            /* mortise_lock_options.linger_ms is there */
    int lock_delay;        /* mortise_lock_options.lock_delay_ms is there */
    int exclusive_fair;    /* waiters of a mortise_exclusive_new are served in order, too */
    /* The least that mortise_hold_remaining_ms shows between two renewals, as long as the store
       answers without delay; 0 where lease_ms is, or where a lease is too short to be renewed. A
       client that needs time to stop its work before a lease ends has less than this. */
    int64_t lease_left_ms;
} mortise_capabilities;
MORTISE_API int mortise_get_capabilities(const mortise_client *client,
                                         mortise_capabilities *capabilities);

/*
 * Counters since open, for tests and metrics. Sends no request.
 * 0; EINVALID: size is not set; EFORKED.
 */
typedef struct mortise_stats {
    size_t size;           /* set by the caller: sizeof(mortise_stats) */
    uint64_t acquisitions; /* holds granted, nested ones not counted */
    uint64_t nested;       /* acquisitions by the owner of a hold */
    uint64_t handovers;    /* grants passed on inside the process */
    uint64_t commands;     /* requests made of the store */
    uint64_t losses;       /* holds lost */
    /* The traffic of the store with its server for that: requests, each with an answer, and how
       often it had to wait for one; requests that leave together share a round trip. On SQLite:
       statements, and transactions. On "memory": none. */
    uint64_t requests;
    uint64_t round_trips;
} mortise_stats;
MORTISE_API int mortise_get_stats(mortise_client *client, mortise_stats *stats);

/* ----------------------------------------------------------------- locks */

/*
 * owner of mortise_lock_options: each thread is an owner of its own, and no later one is the same.
 * A thread that exits does not release its holds, because its work may be half done. The
 * lock stays held, and no thread can release it: the hold ends with mortise_close, max_hold_ms,
 * mortise_break or a loss. Give an owner id if other threads must release the holds of a thread
 * that exits.
 */
#define MORTISE_OWNER_THREAD 0
/*
 * Nobody owns what is acquired, as after mortise_acquire_async: any thread may release it. An
 * acquire while it is held waits, also in the thread that has it. For programs whose tasks change
 * threads, as in Go, Node, Java, .NET and all thread pools: give this, or an owner id a task.
 */
#define MORTISE_OWNER_NOBODY (~(uint64_t)0)

enum {
    /* Of a semaphore mutex: an owner that acquires it again waits, for ever if nobody
       else releases it. Anybody may release it then. The default is MORTISE_EDEADLOCK. */
    MORTISE_WAIT_FOR_SELF = 1 << 0
};

/* `ahead`: how many tickets are before this client's in the queue, holders included. */
typedef void (*mortise_queued_callback)(void *argument, uint64_t ahead);

/* Zero it, set size, then what is needed; a field of 0 is the default. */
typedef struct mortise_lock_options {
    size_t size; /* sizeof(mortise_lock_options) */
    /* The owner of what is acquired through this handle: MORTISE_OWNER_THREAD,
       MORTISE_OWNER_NOBODY, or a number of the program's own, below 2^63, that stands for a task,
       a connection, ... */
    uint64_t owner;
    uint32_t flags;
    /* Of a semaphore: how many permits each acquire through this handle takes. 0: 1. */
    uint32_t permits;
    /* Called when an acquire through this handle is queued in the store behind others, and
       when its place is seen to have changed: at each look of the client at the store, which may be
       seconds apart. Threads of one client wait in one place. It may come a moment after the
       acquire has ended. NULL: not called. Not on every store. */
    mortise_queued_callback queued;
    void *queued_argument;
    /* A hold ends by itself after this time, however often it was acquired again: then it is LOST,
       and the lock is released. A tenth of the time earlier, the callback of mortise_on_revoke is
       called. 0: never. */
    int64_t max_hold_ms;
    /* Of a mutex: the client keeps the lock for this time after the last release, or until another
       client queues for it, which the store reports immediately. An acquire of this client
       meanwhile sends no request. 0: the release returns it. ENOTSUPPORTED where the store cannot
       report waiters (mortise_capabilities.linger). Ignored if budget_ms is -1, and for tickets
       that the client queued before any handle set it. */
    int64_t linger_ms;
    /* If the client's session dies while it holds the lock, no client is granted it (or that part
       of it) for this time: writes that the dead holder had sent, to a disk or another server, can
       arrive before the next holder begins. The time starts at the end of the lease, or of the
       process where the system reports it; this client waits too. Not after a release,
       mortise_close, max_hold_ms or mortise_break, which also ends such a delay: mortise_list shows
       it. The longest of all handles of this client and name counts, and a turn under way ends if
       it was begun without. On SQLite an acquire with it waits for the disk. At most
       MORTISE_LOCK_DELAY_MAX_MS; 0: none. It only makes what fences prevent less likely.
       ENOTSUPPORTED: mortise_capabilities.lock_delay. Source: the lock-delay of Chubby. */
    int64_t lock_delay_ms;
} mortise_lock_options;

/*
 * A reentrant mutex: one owner at a time, across threads, handles, clients, processes and machines.
 * The owner may acquire it again, and must release as often. Makes no request; the store hears of
 * the name at the first acquire. `name`: 1 to MORTISE_NAME_MAX bytes of UTF-8 without control
 * characters; "/" makes a hierarchy for mortise_list. A name that only the store refuses
 * (doc/zookeeper.md) is ENAME at the first acquire. `options` may be NULL.
 * 0 and *lock; or ENAME, EINVALID, EFORKED, ENOMEM; EMISMATCH: this client uses the name for
 * another kind of lock; ENOTSUPPORTED: the store cannot keep linger_ms or lock_delay_ms.
 */
MORTISE_API int mortise_mutex_new(mortise_client *client, const char *name,
                                  const mortise_lock_options *options, mortise_lock **lock);

/*
 * A mutex that is not reentrant: its owner's second acquire is MORTISE_EDEADLOCK at once,
 * or waits like anyone's (MORTISE_WAIT_FOR_SELF).
 * Errors as mortise_mutex_new.
 */
MORTISE_API int mortise_semaphore_mutex_new(mortise_client *client, const char *name,
                                            const mortise_lock_options *options,
                                            mortise_lock **lock);

/*
 * A reentrant mutex that promises no order among clients: the oldest recipe, create what
 * is not there and wait until it is gone. On ZooKeeper and Redis the first client to ask after a
 * release is next, so a client may wait for ever while others come and go; each release wakes all
 * waiters (a herd: N of them cost N attempts), mortise_list shows only the holder, and queue_max
 * does not count. On sqlite, memory, postgresql and mysql it waits in the queue as a mutex does,
 * and is as fair (with form=, in the server's order). No other kind of lock may have the name
 * meanwhile: MORTISE_EMISMATCH; but on Redis it is the one key that other programs keep
 * (doc/redis.md), and apart from all else.
 * Errors as mortise_mutex_new.
 */
MORTISE_API int mortise_exclusive_new(mortise_client *client, const char *name,
                                      const mortise_lock_options *options, mortise_lock **lock);

/*
 * A semaphore of `permits` permits, at least 1. An acquire takes as many as its handle's options
 * say, all together or none. Acquires are served in order: an acquire of many permits is not
 * overtaken by acquires of few. A permit has no owner: an acquire never nests, and any thread may
 * release a hold. All users of the name must give the same number of permits: while others use
 * another number, acquires answer MORTISE_EMISMATCH, whose detail has both.
 * Errors as mortise_mutex_new; EINVALID for no permits, or a handle that takes more than there are.
 * Source: Dijkstra's counting semaphore, as a queue of weighted tickets.
 */
MORTISE_API int mortise_semaphore_new(mortise_client *client, const char *name, uint32_t permits,
                                      const mortise_lock_options *options, mortise_lock **lock);

/*
 * Changes how many of a semaphore's permits are in use, for all clients and until it is changed
 * again: 0 (it is closed) to as many as its handles say, the most that it can have. Lowering takes
 * permits out of use when their holders have released them, in the order of all waiters. The call
 * waits for them at most timeout_ms (0: it does not wait; negative: for ever); no holder loses a
 * permit. Raising takes effect immediately. mortise_list shows permits out of use as detached, and
 * mortise_break brings them back. The cell "NAME/permits" keeps their tokens: do not write to it.
 * Two simultaneous changes are made one after the other.
 * 0; ETIMEOUT: nothing has changed; EINVALID: not a semaphore, or more than it can have; ENAME: too
 * long to have "/permits" behind it; EFULL: changed in too many small steps, raise it once;
 * ENOTSUPPORTED: a store without mortise_detach and cells; else as mortise_acquire, mortise_detach
 * and mortise_cell_cas. A client that dies meanwhile leaves it somewhere between.
 */
MORTISE_API int mortise_semaphore_set_permits(mortise_lock *semaphore, uint32_t permits,
                                              int64_t timeout_ms);
/*
 * Reads how many are in use.
 * 0; else as mortise_cell_get and mortise_list.
 */
MORTISE_API int mortise_semaphore_get_permits(mortise_lock *semaphore, uint32_t *permits);

/*
 * A read/write lock, as two handles: any number of readers hold it together, or one writer alone,
 * and both wait for tickets queued before theirs, so neither starves. Each side is reentrant, and
 * the owner of the write side may acquire the read side as well; an owner that holds only the read
 * side and acquires the write side gets MORTISE_EDEADLOCK immediately. A holder that releases the
 * write side first goes on as a reader in the same place: a writer that waits behind does not come
 * in between.
 * 0 and both handles, to be freed one by one; or an error as mortise_mutex_new, and none.
 * Source: the shared locks of ZooKeeper's recipes, in Courtois, Heymans and Parnas' terms.
 */
MORTISE_API int mortise_read_write_new(mortise_client *client, const char *name,
                                       const mortise_lock_options *options, mortise_lock **read,
                                       mortise_lock **write);

/*
 * Frees a handle. Holds acquired through it stay held until they are released. NULL is allowed.
 * 0; EINVALID, and nothing is freed: a call on this handle waits or is in progress in another
 * thread, or an asynchronous acquire has not called back. mortise_cancel_waiters ends them; free
 * the handle after they have returned. EFORKED (mortise_close frees it).
 */
MORTISE_API int mortise_lock_free(mortise_lock *lock);

/* The name of the lock; owned by the handle. */
MORTISE_API const char *mortise_lock_name(const mortise_lock *lock);

/* ----------------------------------------------------------------- holds */

/* A hold, by value. All bits zero: none. */
typedef struct mortise_hold {
    void *slot;
    uint64_t generation;
} mortise_hold;

typedef enum mortise_state {
    MORTISE_RELEASED = 0, /* given back, stale, or never held */
    MORTISE_HELD,         /* an answer of the store proves it */
    MORTISE_SUSPENDED,    /* still held, but the store is not answering */
    MORTISE_LOST
} mortise_state;

/*
 * Waits until the lock is held, for ever.
 * 0 and *hold; a nested acquisition gives the same hold again, one count deeper.
 * ECANCELLED (mortise_cancel_waiters), ECLOSED, EFORKED, EDEADLOCK (inside a callback), ELOST
 * (nested in a hold that was lost: release it first), EMISMATCH, ENOMEM, and faults that the store
 * finds: ENAME, EUNSAFE, EPERMISSION, EFULL, and, if it still refuses a ticket after some seconds
 * of retries, ESTORE. A store that is away is waited for. EDISCONNECTED: give_up_ms has passed
 * without an answer. Opening a session is retried until the deadline, unless a retry cannot help:
 * ESETUP, ENOTSUPPORTED.
 * ESTALE: the store granted the lock with a fence that is not larger than an earlier one of this
 * client's: the store was wiped, or restored from a backup, and a resource that keeps fences would
 * refuse this one. Other clients do not notice. After each error nothing is held and nothing stays
 * queued.
 * Source: the ticket queue of Lamport's bakery, as ZooKeeper's lock recipe lays it out; eventual
 * fairness inside the process as in Go's sync.Mutex.
 */
MORTISE_API int mortise_acquire(mortise_lock *lock, mortise_hold *hold);
/* The same without waiting: EBUSY if the lock is not free now; leaves nothing behind. EDISCONNECTED
   if the store does not answer within the client's timeout_ms, or as soon as all its servers refuse
   connections. */
MORTISE_API int mortise_try_acquire(mortise_lock *lock, mortise_hold *hold);
/* The same until timeout_ms from now, the whole call included: ETIMEOUT. 0: try. Negative: for
   ever. EDISCONNECTED instead if the store is the cause: there is no session yet, or the connection
   was lost. Nothing is held, and a ticket that may be queued is removed as soon as possible. */
MORTISE_API int mortise_acquire_for(mortise_lock *lock, int64_t timeout_ms, mortise_hold *hold);
/* The same until deadline_ns of mortise_now_ns; INT64_MAX: for ever. */
MORTISE_API int mortise_acquire_until(mortise_lock *lock, int64_t deadline_ns, mortise_hold *hold);

/*
 * Ends all acquires that wait on this handle now, from any thread: they answer ECANCELLED.
 * 0; EFORKED.
 */
MORTISE_API int mortise_cancel_waiters(mortise_lock *lock);

/*
 * A descriptor for writing: any bytes written into it end, with ECANCELLED, all calls in which
 * threads wait on this client now. A signal handler may write there, though it may call no function
 * of this library; and so may a runtime that writes a byte at each signal (Python's
 * signal.set_wakeup_fd). A call that begins later waits. It is made at the first call, does not
 * block, and is closed by mortise_close.
 * Negative: ENOMEM, EINVALID, EFORKED.
 */
MORTISE_API int mortise_interrupt_fd(mortise_client *client);

/*
 * Releases one count, and with the last one the lock. Does not wait for the store's answer: the
 * release is retried until it is proven or the session is dead.
 * 0; ELOST: the hold had been lost, and is now forgotten; ENOTHELD: stale, also when its client is
 * closed; ENOTOWNER: another thread's, also if that has exited (MORTISE_OWNER_THREAD), nothing
 * changed; EFORKED.
 */
MORTISE_API int mortise_release(mortise_hold hold);

/*
 * Makes a hold of a write side one of the read side, with its count and its fence, and
 * grants the readers that wait next. Does not wait for the store.
 * 0; EINVALID: not a hold of a write side; ELOST, ENOTHELD, ENOTOWNER, EFORKED as
 * mortise_release.
 */
MORTISE_API int mortise_downgrade(mortise_hold hold);

/*
 * Several locks as one, of any kind and also of different stores: acquires all `count` of them or
 * none, within timeout_ms in all (negative: for ever), and fills holds[i] for locks[i]. With
 * timeout_ms 0 the call waits for no lock, and gives up on a store that has not answered when the
 * client's timeout_ms has passed since the call began. When one lock fails, the call releases those
 * it has acquired. A lock that is lost while the call waits for another is acquired again, within
 * the same time, unless it has ended by its own max_hold_ms. The order is the library's own, by
 * mortise_url and then by name, so two calls for the same locks cannot wait for each other,
 * whatever their lists' order. That holds among programs that spell the stores' addresses alike:
 * one store under two spellings is two to this call. Free locks are requested in one go, so all of
 * them take a round trip or two. Where one is in use, those behind it may be taken and given back
 * for a moment; while the call waits for it, it holds none of them.
 * 0; or what mortise_acquire says of the one that failed; EINVALID for no locks; EDEADLOCK, and
 * nothing is acquired, if a lock is there twice and the second would not nest: by another client or
 * another owner, or not of a reentrant kind.
 * Source: the ordered resources of Havender, 1968; Curator's InterProcessMultiLock.
 */
MORTISE_API int mortise_acquire_all(mortise_lock *const *locks, size_t count, int64_t timeout_ms,
                                    mortise_hold *holds);
/*
 * Releases all, whatever becomes of each.
 * 0, or the first error, as mortise_release.
 */
MORTISE_API int mortise_release_all(const mortise_hold *holds, size_t count);

/* Number that grows with every grant of this lock, nested ones not counted; 0: stale hold,
   or a store without fences (mortise_get_capabilities). Within a client the fences of a lock only
   rise, as long as any of its handles is there: see ESTALE of mortise_acquire. */
MORTISE_API uint64_t mortise_hold_fence(mortise_hold hold);
/* The state of the hold, computed now, without a request. */
MORTISE_API mortise_state mortise_hold_state(mortise_hold hold);
/* 1 if HELD or SUSPENDED at this instant, else 0. */
MORTISE_API int mortise_is_held(mortise_hold hold);
/* How long it stays held if the store never answers again; INT64_MAX: for ever; 0: not held. */
MORTISE_API int64_t mortise_hold_remaining_ms(mortise_hold hold);
/* Nesting depth; 0: stale. */
MORTISE_API uint32_t mortise_hold_count(mortise_hold hold);
/* The owner, a thread's number or the id given; 0: stale, acquired by mortise_acquire_async, or
   MORTISE_OWNER_NOBODY. */
MORTISE_API uint64_t mortise_hold_owner(mortise_hold hold);
/* Name of the lock, valid until the hold is released; "" for a stale hold. */
MORTISE_API const char *mortise_hold_name(mortise_hold hold);
/*
 * Writes what the hold is in its store, for programs that check or watch it there without mortise.
 * On ZooKeeper the path of its node, whose last ten characters are its sequence; a downgrade and an
 * adoption give it another node. Elsewhere the lock's full name and, behind a space, the number of
 * its ticket: the columns queue and number of the tickets' table in SQL stores, the score in the
 * queue's sorted set on Redis. An exclusive lock on Redis is the key of that name, without a
 * number. Sends no request, but waits for one that is being sent.
 * 0; ENOTHELD, ELOST, EFORKED; EINVALID: `size` is too small, which MORTISE_NODE_SIZE never is;
 * ENOTSUPPORTED: the store keeps no tickets (mortise_capabilities.fence is 0); EDEADLOCK inside a
 * callback.
 * Source: getId of canal's DistributedLock; the lockPath of Curator's LockData.
 */
#define MORTISE_NODE_SIZE 2304
MORTISE_API int mortise_hold_node(mortise_hold hold, char *text, size_t size);
/*
 * Reads from the store whether it is held there, and waits for that at most timeout_ms (negative:
 * for ever).
 * 0: held there now; ELOST, ENOTHELD; ETIMEOUT: no answer in time; ECANCELLED
 * (mortise_interrupt_fd), ECLOSED, EFORKED, EDEADLOCK inside a callback.
 */
MORTISE_API int mortise_verify(mortise_hold hold, int64_t timeout_ms);

/*
 * Reports a hold's changes of state: called with SUSPENDED, HELD (resumed) and LOST as they happen,
 * in this order; nothing follows LOST, nor a release. One callback a hold, the newest counts; NULL
 * for none. The callback for the end of a lease comes on time by the clock, also while a call of
 * the store is blocked, but after a callback under way. With MORTISE_FOREIGN_LOOP mortise_process
 * makes it: mortise_next_timeout_ms says when. The callback runs in a thread of the client's, so it
 * cannot release a hold that belongs to the thread that acquired it (ENOTOWNER): stop the work
 * there, and release it where it was acquired.
 * 0; ELOST if it is lost already (no call follows); ENOTHELD, EFORKED; ENOMEM: no thread for it.
 */
typedef void (*mortise_state_callback)(void *argument, mortise_hold hold, mortise_state state);
MORTISE_API int mortise_on_lost(mortise_hold hold, mortise_state_callback callback, void *argument);
/*
 * A descriptor that becomes readable when the hold is lost, for poll. The library owns it and
 * closes it at the release. Close-on-exec. Of a hold that is lost already it is readable.
 * Negative: ENOTHELD, EFORKED, ENOMEM.
 */
MORTISE_API int mortise_lost_fd(mortise_hold hold);

/*
 * Called when an operator requests that the holder gives the lock up (mortise_revoke, or Curator's
 * Revoker). A holder that does nothing declines. A request that came before, while this hold was
 * held and no callback was set, is delivered immediately. Several requests may come as one call.
 * One callback a hold, the newest counts; NULL for none. Nothing follows LOST, nor a release.
 * Threads of a client with such a request do not hand the lock on among themselves: it goes to the
 * next waiter in the store.
 * 0; ELOST if it is lost already; ENOTHELD, EFORKED.
 * Source: Curator's Revocable and RevocationListener.
 */
typedef void (*mortise_revoke_callback)(void *argument, mortise_hold hold);
MORTISE_API int mortise_on_revoke(mortise_hold hold, mortise_revoke_callback callback,
                                  void *argument);

/* -------------------------------------------------------------- durable holds */

#define MORTISE_TOKEN_SIZE 64

/*
 * Ends a hold and leaves the lock taken, without a holder, until a client with `token` adopts it.
 * No session carries it, so no death, pause or lost connection ends it: it outlives this client,
 * this process and this machine. That is its risk too: if the token is lost the lock stays taken
 * for ever, unless an operator breaks it (mortise_break; mortise_list shows it as detached). On
 * "memory:" it lasts as long as the name has clients. Fills in `token`, a text, before it sends the
 * request, so that the token is there with EUNKNOWN too. Any client that has the token can take the
 * lock, so keep it like a key; but a client with write access to the store needs no token: it
 * prevents mistakes, not attacks. Waits for the store, at most the client's timeout_ms.
 * 0: it is on the store's disk, if it has one; EUNKNOWN: it was detached, or was not and the hold
 * is lost: mortise_adopt tells; ELOST: the hold is lost; ESTORE, EPERMISSION, ...: refused, and the
 * lock released. Nothing has changed: ENOTSUPPORTED; EINVALID: held more than once; ENOTHELD,
 * ENOTOWNER, EFORKED, EDEADLOCK inside a callback.
 * Source: the trade between ephemeral and persistent nodes in ZooKeeper's lock recipes.
 */
MORTISE_API int mortise_detach(mortise_hold hold, char token[MORTISE_TOKEN_SIZE]);
/*
 * Acquires by a ticket that was detached, through a handle of the same name, kind and size. It
 * does not wait for the lock, only for the store, at most the client's timeout_ms. From then on
 * it is a hold as any other, lost with its session; its fence is larger than the one before,
 * or the same where a ticket has but one. The token is used up: detached again it has another.
 * 0 and *hold; ENOTHELD: no such ticket, or adopted already; EMISMATCH: of another kind, capacity,
 * side or number of permits; EBUSY: this client is adopting it, or another ticket of a lock that
 * has but one at a time: ask again; EINVALID: no token; ENOTSUPPORTED; else as mortise_acquire.
 * An adoption that is given up in time leaves the ticket as it was. If the session ends while the
 * outcome is unknown, the lock may be released: then ENOTHELD follows.
 */
MORTISE_API int mortise_adopt(mortise_lock *lock, const char *token, mortise_hold *hold);

/* --------------------------------------------------- asynchronous, foreign loop */

typedef struct mortise_operation mortise_operation;
/* error as mortise_acquire, mortise_error_detail too; hold valid if it is 0. */
typedef void (*mortise_acquire_callback)(void *argument, int error, mortise_hold hold);

/*
 * Starts to acquire and returns; `callback` is called once, never from inside
 * this call. The hold has no owner: any thread may release it, and it is not reentrant, unless the
 * handle has an owner id. `operation` (may be NULL) is for mortise_cancel and is mortise's; it ends
 * with the callback.
 * 0; or ENOMEM, ECLOSED, EFORKED, EINVALID, and no callback follows.
 */
MORTISE_API int mortise_acquire_async(mortise_lock *lock, int64_t deadline_ns,
                                      mortise_acquire_callback callback, void *argument,
                                      mortise_operation **operation);
/* The same without waiting, as mortise_try_acquire: the callback has EBUSY if the lock is not free
   now. */
MORTISE_API int mortise_try_acquire_async(mortise_lock *lock, mortise_acquire_callback callback,
                                          void *argument, mortise_operation **operation);
/*
 * The particulars of the error that the callback of this operation was given, as
 * mortise_error_detail has them, but whatever the callback calls and on every thread. To be called
 * while the callback runs; the text is the library's, and ends with the callback: copy it. Empty
 * if there is nothing to add, with error 0, and before the callback; NULL is allowed.
 */
MORTISE_API const char *mortise_operation_detail(const mortise_operation *operation);
/*
 * Ends an operation whose callback has not run: the callback then has ECANCELLED, or the hold if
 * the grant was first. Any thread may call this, but not after the callback has begun.
 */
MORTISE_API void mortise_cancel(mortise_operation *operation);

/*
 * Of a client with MORTISE_FOREIGN_LOOP: poll the descriptor for reading, for at most
 * mortise_next_timeout_ms, then call mortise_process, which does not block. Of one with
 * MORTISE_SHARED_LOOP: poll it for reading, and stop that before mortise_close.
 * Negative: EINVALID for another client, which has a thread; EFORKED; ENOMEM.
 */
MORTISE_API int mortise_fd(const mortise_client *client);
/*
 * The longest time to poll for; -1: no limit. With MORTISE_SHARED_LOOP 0 if callbacks are due, else
 * -1.
 * Negative: EINVALID for another client, which has a thread; EFORKED.
 */
MORTISE_API int mortise_next_timeout_ms(mortise_client *client);
/*
 * Reads what the store has answered, and calls back.
 * 0; EINVALID for another client, which has a thread; EFORKED; EDEADLOCK inside a callback.
 * EBUSY, with MORTISE_SHARED_LOOP: the client's thread is calling the store now, and reads what
 * there is: poll again in a millisecond.
 */
MORTISE_API int mortise_process(mortise_client *client);

/* -------------------------------------------------------------- elections */

typedef struct mortise_election mortise_election;

/* The leader of an election. */
typedef struct mortise_leader {
    uint64_t fence; /* of the term, and of its leader's hold; 0: nobody leads */
    size_t size;    /* of the value that the leader proclaims */
    unsigned char value[MORTISE_VALUE_MAX];
} mortise_leader;

/* The fence of the term that begins, or has ended. */
typedef void (*mortise_term_callback)(void *argument, uint64_t fence);
typedef void (*mortise_campaign_callback)(void *argument, int error);
typedef void (*mortise_leader_callback)(void *argument, const mortise_leader *leader);

/* Zero it, set size, then what is needed; a field of 0 or NULL is the default. */
typedef struct mortise_election_options {
    size_t size; /* sizeof(mortise_election_options) */
    /* The value that this candidate proclaims when it leads, at most MORTISE_VALUE_MAX bytes;
       copied. */
    const void *value;
    size_t value_size;
    /* Called in turns, elected first: each elected is followed by one deposed, whatever ended the
       term: resigning, the loss of the hold, mortise_close. They are called one after the
       other, so a slow elected delays deposed: ask mortise_election_is_leader before acting. */
    mortise_term_callback elected;
    mortise_term_callback deposed;
    void *argument;
} mortise_election_options;

/*
 * A candidate in the election `name`: of all candidates one at most leads at any time, the next
 * in order of their campaigns. Makes no request. `options` may be NULL.
 * 0 and *election; or ENAME, EINVALID, EFORKED, ENOMEM, EMISMATCH (this client uses the name
 * otherwise), ENOTSUPPORTED (the store keeps no values).
 * Source: Chubby's and ZooKeeper's election by a lock, with etcd's verbs. On ZooKeeper a
 * candidate is an ephemeral `lock-` node below the election's, its data the value: Curator's
 * LeaderSelector and kazoo's Election take part (doc/zookeeper.md).
 */
MORTISE_API int mortise_election_new(mortise_client *client, const char *name,
                                     const mortise_election_options *options,
                                     mortise_election **election);
/*
 * Resigns, waits until `deposed` has been called, and frees. Nothing is called afterwards. NULL is
 * allowed.
 * 0; EDEADLOCK inside a callback; EFORKED (mortise_close frees it).
 */
MORTISE_API int mortise_election_free(mortise_election *election);

/*
 * Waits until this candidate leads, at most timeout_ms; 0: without waiting; negative: for ever.
 * `elected` is called too, before or after the return. After the end of a term it may run
 * again at once.
 * 0; EBUSY, ETIMEOUT; ECANCELLED (resigned meanwhile); EDEADLOCK: it leads or campaigns
 * already, or inside a callback; else as mortise_acquire.
 */
MORTISE_API int mortise_election_campaign(mortise_election *election, int64_t timeout_ms);
/*
 * Starts to campaign and returns; `callback` (may be NULL) is called once: with 0 after `elected`,
 * or with the error.
 * 0; or ENOMEM, ECLOSED, EFORKED, EDEADLOCK, EINVALID, and no callback follows.
 */
MORTISE_API int mortise_election_campaign_async(mortise_election *election, int64_t deadline_ns,
                                                mortise_campaign_callback callback, void *argument);
/*
 * Changes the value, for this term and those to come. Does not wait for the store: the write is
 * retried until it is proven or the term is over.
 * 0; ENOMEM, EINVALID, EFORKED.
 */
MORTISE_API int mortise_election_proclaim(mortise_election *election, const void *value,
                                          size_t size);
/*
 * Ends the leadership, or the campaign. Does not wait for the store.
 * 0; ELOST: the term had ended by itself; ENOTHELD: it neither leads nor campaigns; EFORKED.
 */
MORTISE_API int mortise_election_resign(mortise_election *election);

/* Whether it leads at this instant: 0 from the end of its lease on, whether or not anything has
   been heard since. Without a request. */
MORTISE_API int mortise_election_is_leader(mortise_election *election);
/* The fence of its term, to pass along with the leader's writes; 0: it does not lead. */
MORTISE_API uint64_t mortise_election_fence(mortise_election *election);
/*
 * The hold by which it leads. All calls on holds accept it, except those that release or change it:
 * use mortise_election_resign.
 * 0 and *hold; ENOTHELD: it does not lead; EINVALID, EFORKED.
 */
MORTISE_API int mortise_election_hold(mortise_election *election, mortise_hold *hold);

/*
 * Reads from the store who leads; the caller need not be a candidate. The answer is true at some
 * moment during the call; a leader that has lost its connection is shown until the store ends its
 * session. A refusal by every server ends it.
 * 0 and *leader; ENOLEADER; else as mortise_cell_get.
 */
MORTISE_API int mortise_election_leader(mortise_election *election, mortise_leader *leader);
/*
 * Calls back with who leads now, and with every change of leader or value from then on; fence 0:
 * nobody leads. If changes follow each other quickly some may be left out, but never the newest.
 * Goes on across the loss of the session. A new call takes the place of the last; NULL ends it, but
 * for a callback under way.
 * 0; ENOMEM, EFORKED.
 */
MORTISE_API int mortise_election_observe(mortise_election *election,
                                         mortise_leader_callback callback, void *argument);

/* ------------------------------------------------------------------ cells */

/* A value with a version. */
typedef struct mortise_cell {
    uint64_t version; /* grows with every write, for ever; 0: there is no such cell */
    uint64_t fence;   /* the largest that it was written with */
    size_t size;
    unsigned char value[MORTISE_VALUE_MAX];
} mortise_cell;

/*
 * Reads a cell, as it is at some moment during the call. Cells have names of their own, so
 * one may be called as a lock is. They stay when their makers go.
 * Waits for the store at most the client's timeout_ms.
 * 0, also if there is none (version 0); ENAME, EINVALID, ENOTSUPPORTED (the store keeps none),
 * ETIMEOUT, EUNREACHABLE, ESTORE, EPERMISSION, ESETUP, ECANCELLED (mortise_interrupt_fd), ECLOSED,
 * EFORKED, EDEADLOCK inside a callback.
 */
MORTISE_API int mortise_cell_get(mortise_client *client, const char *name, mortise_cell *cell);
/*
 * Writes a cell, if `version` is still its version; 0: makes it, if there is none. new_version may
 * be NULL. `fence`: of the hold that gives the right to write; 0: none, and none is compared,
 * whatever lock is held (see mortise_cell_cas_held). A cell remembers the largest it was given,
 * also when it is deleted, and refuses a smaller one: a superseded holder can therefore no longer
 * write, even before it notices.
 * 0; ECONFLICT: it has another version; ESTALE: a larger fence has been seen; EUNKNOWN: the cell
 * may or may not have been written; else as mortise_cell_get. On SQLite a power cut may take the
 * newest writes back, in their order.
 * Source: Kung and Robinson's optimistic concurrency control; fences as in Chubby's sequencers.
 */
MORTISE_API int mortise_cell_cas(mortise_client *client, const char *name, uint64_t version,
                                 const void *value, size_t size, uint64_t fence,
                                 uint64_t *new_version);
/* The same, and there is no cell afterwards. */
MORTISE_API int mortise_cell_delete(mortise_client *client, const char *name, uint64_t version,
                                    uint64_t fence);
/*
 * The same two with the fence of a hold, of this client or another. A fence of 0 is not compared,
 * so a hold that has none (of redlock) would guard nothing, and is refused.
 * Errors as mortise_cell_cas; ENOTSUPPORTED: the store of the hold gives no fences; ELOST,
 * ENOTHELD: it is not held; EFORKED.
 */
MORTISE_API int mortise_cell_cas_held(mortise_client *client, const char *name, uint64_t version,
                                      const void *value, size_t size, mortise_hold hold,
                                      uint64_t *new_version);
MORTISE_API int mortise_cell_delete_held(mortise_client *client, const char *name, uint64_t version,
                                         mortise_hold hold);
/* Changes *cell's size and value in place; not 0: stop, and that is the result. May be called
   several times, and may call anything. */
typedef int (*mortise_cell_change)(void *argument, mortise_cell *cell);
/*
 * Reads, changes and writes; if another client wrote meanwhile, repeats that after a pause of 0.5
 * ms that doubles to 128 ms and is spread by a half; for at most timeout_ms (negative: for ever).
 * 0; ETIMEOUT: another client wrote each time; what `change` returned; else as
 * mortise_cell_cas.
 */
MORTISE_API int mortise_cell_update(mortise_client *client, const char *name,
                                    mortise_cell_change change, void *argument, uint64_t fence,
                                    int64_t timeout_ms);
/* The same with the fence of a hold, as mortise_cell_cas_held. */
MORTISE_API int mortise_cell_update_held(mortise_client *client, const char *name,
                                         mortise_cell_change change, void *argument,
                                         mortise_hold hold, int64_t timeout_ms);

/* --------------------------------------------------------------- operator */

/* One ticket in a queue. Texts are valid during the callback. */
typedef struct mortise_entry {
    size_t size;           /* of the library's structure: fields behind it are not there */
    const char *name;      /* lock name, without the namespace */
    const char *kind;      /* "mutex", "semaphore", "read-write", ... */
    const char *label;     /* what the client chose to tell, or "" */
    uint64_t fence;        /* of this ticket; a holder's first grant */
    uint32_t place;        /* 0: holds; 1: next; ... */
    int64_t since_wall_ms; /* when it queued or was granted, in ms since 1970; 0: not known */
    const char *host;      /* of a client that tells of its process, at most 64 bytes; or "" */
    int64_t pid;           /* of the same; or 0 */
    /* How much it takes of what there is: 1 of 1; permits; a reader 1, a writer all.
       0 of 0: the store does not say. */
    uint64_t weight, capacity;
    int detached; /* nobody's, by mortise_detach: no process, and no session, has it */
    /* Not 0: nobody's too, for so long yet, as its holder has died (lock_delay_ms). */
    int64_t delay_ms;
    const char *node; /* on ZooKeeper the path of its node, with its sequence at the end; or "" */
    /* Tells this ticket from all others of the lock, and never changes: the fence; 0 if the store
       has none. A host agent hands mutexes on itself: there it is a number from 2^62 on, because
       the fence of a client that waits may change. `fence` is that number, too, until the client's
       fence is known. */
    uint64_t id;
} mortise_entry;

/* Return non-zero to stop. */
typedef int (*mortise_entry_callback)(void *argument, const mortise_entry *entry);

/*
 * Holders and waiters of the lock `name` (NULL: of all locks), each queue in
 * order. Shows what the store held at one instant during the call. `callback` is called on
 * this thread when all of it has been read. Nothing is held then: it may take its time, and call
 * anything, what blocks and this client too. A server that takes long, and a long list, keep no
 * hold of the client from being renewed; but with MORTISE_FOREIGN_LOOP nothing else is done
 * meanwhile.
 * 0; or ENAME, EUNREACHABLE, ESTORE, EPERMISSION, ENOMEM, ECLOSED, EFORKED, and no row is shown;
 * EDEADLOCK inside a client's callback.
 */
MORTISE_API int mortise_list(mortise_client *client, const char *name,
                             mortise_entry_callback callback, void *argument);

/*
 * Requests that the holder of the entry with this fence in mortise_list gives `name` up; 0: all
 * holders. A holder may ignore the request (mortise_on_revoke). It arrives as soon as the store can
 * deliver it, at the latest at the client's next recheck. On ZooKeeper it overwrites what the
 * holder's node says of its owner.
 * 0; ENOTHELD: no such holder; EUNKNOWN: the store did not answer, and the request may have been
 * made; ENAME, EUNREACHABLE, EPERMISSION, ESTORE, EDEADLOCK inside a client's callback, ECLOSED,
 * EFORKED, ENOTSUPPORTED.
 */
MORTISE_API int mortise_revoke(mortise_client *client, const char *name, uint64_t fence);

/*
 * Removes the ticket with this fence in mortise_list from the queue of `name`, a holder's or a
 * waiter's, and no other ticket, also none that was queued since. The next in the queue is granted
 * immediately, although the holder may not know yet: its client reports the hold as LOST once the
 * store tells it or it next checks. Until then only fences protect the resource; a lock that
 * lingers there (linger_ms) may even be acquired again until then. A waiter queues again at the
 * back.
 * 0; ENOTHELD: no such ticket; else as mortise_revoke.
 */
MORTISE_API int mortise_break(mortise_client *client, const char *name, uint64_t fence);

#ifdef __cplusplus
}
#endif

#endif
