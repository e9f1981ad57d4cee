/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Redis store. A file calls those below it alone: what takes a reply is at the top, what writes
 * a request or an answer at the bottom.
 *
 *   port.c              commands in, events out, one descriptor
 *   connection.c        the connection for commands: sends them, takes replies in their order
 *   message.c           takes what the server publishes
 *   reply.c, claim_reply.c, copies.c, check.c    what a reply means, and what follows
 *   command.c, claim.c  what a command is sent as; a claim is one key, as other programs keep it
 *   seek.c, referral.c  where the server is: what sentinels and the nodes of a cluster say of it
 *   resume.c            what follows when another server has become the one
 *   push.c, observe.c   the connection for messages, and what waits for them
 *   script.c, error.c   calls of scripts; errors of the server
 *   job.c               a command, from its submission to the delivery of its answer
 *   wire.c, secure.c, uri.c, sign.c    bytes, TLS, addresses and signatures, without state of the
 *                       store
 *   operator.c          mortise_list, revoke, break and server, on a connection of their own
 *   rights.c            the command that gives a user the rights of locks
 *   scripts/            what the server does
 *
 * Threads: calls on one store come one at a time, from any thread; operator.c's at any time.
 */
#ifndef MRT_STORE_REDIS_INTERNAL_H
#define MRT_STORE_REDIS_INTERNAL_H

#include "base/error.h"
#include "base/owner.h"
#include "core/store.h"
#include "store/kit/notes.h"
#include "store/redis/job.h"
#include "store/redis/uri.h"
#include "store/redis/wire.h"

/* A ticket's number, shifted so, is its first fence; numbers stay below 2^48. */
#define MRT_REDIS_FENCE_BITS 15
#define MRT_REDIS_NUMBER_MAX (INT64_C(1) << 48)
#define MRT_REDIS_RECHECK_HELD (5 * MRT_SECOND)
#define MRT_REDIS_RECHECK_MAX MRT_SECOND
#define MRT_REDIS_FAULT_MAX 320

/* A connection as its server calls it, and the run of that server. */
struct mrt_redis_connection {
    int64_t id;      /* 0: not known */
    char server[48]; /* "": not known */
    bool clustered;  /* the server is a node of a cluster, as far as is known */
};

/* Where the server is: seek.h. */
enum mrt_redis_seek_state {
    MRT_REDIS_SEEK_IDLE,
    MRT_REDIS_SEEK_ASK,  /* a sentinel is asked */
    MRT_REDIS_SEEK_NAME, /* the name that it gave is looked up */
    MRT_REDIS_SEEK_DONE  /* `server` is to be tried, or in use */
};

struct mrt_redis_seek {
    enum mrt_redis_seek_state state;
    struct mrt_redis_wire wire; /* to a sentinel */
    unsigned logins;            /* replies that come before that of the sentinel */
    size_t turn;                /* whose turn it is, of the sentinels */
    size_t asked;               /* in this round */
    int error;                  /* of this round: a fault that waiting does not mend */
    mrt_time deadline;
    struct mrt_host host; /* the server as it was named; name "": it was not */
    struct mrt_resolver resolver;
    struct mrt_address server;
    char name[256];                  /* of its host, as the URI or `host` has it */
    bool confirmed;                  /* it has said that it is the one */
    bool referred;                   /* the connection ends because it has named another one */
    unsigned hops;                   /* how many in a row have */
    char fault[MRT_REDIS_FAULT_MAX]; /* why none is known; "": no reason is known either */
};

struct mrt_redis_ticket;

struct mrt_redis_session {
    TAILQ_ENTRY(mrt_redis_session) link;
    struct mrt_id id;
};

/* Notes for the log, each written once for a store. */
enum mrt_redis_note {
    MRT_REDIS_NOTE_CLOCK,
    MRT_REDIS_NOTE_REPLY,
    MRT_REDIS_NOTE_EVICTION,
    MRT_REDIS_NOTE_COPIES,
    MRT_REDIS_NOTE_ACCESS
};

struct mrt_redis_store { // NOLINT(clang-analyzer-optin.performance.Padding): there are few
    struct mrt_sink sink;
    struct mrt_traffic traffic;
    struct mrt_redis_address address;
    char secret[MRT_REDIS_SECRET_MAX];
    struct mrt_redis_security security;
    char sentinel_secret[MRT_REDIS_SECRET_MAX];
    char label[MRT_OWNER_SIZE];
    char lease[24]; /* of sessions and claims, in ms */
    char channel[MRT_REDIS_BASE_MAX + 2 + MRT_ID_TEXT_SIZE];
    char key[MRT_ID_TEXT_SIZE]; /* the key that its messages are signed with, see sign.h */
    struct mrt_notes notes;
    mrt_time timeout;
    int epoll;
    struct mrt_redis_servers servers;
    size_t server_next;
    struct mrt_resolver resolver;
    struct mrt_redis_seek seek;
    struct mrt_redis_ticket *tickets; /* not DIRECT: those that this client may have, by identity */
    bool resumes;                     /* there was a server before this one */
    bool role_awaited;                /* it has not said yet that it is the one */
    bool resume_due; /* resume.c begins again: a part was refused, or there was no memory */
    int64_t newest;  /* the largest number of a ticket that was seen */
    TAILQ_HEAD(, mrt_redis_claim) claims;
    TAILQ_HEAD(, mrt_redis_observer) observers;
    TAILQ_HEAD(, mrt_redis_watch) watches;
    bool unproven; /* a claim could not be extended: the renewal behind that proves nothing */
    uint64_t jitter;
    bool id_asked;        /* on this connection */
    bool server_awaited;  /* the server's identity is being queried on this connection: nothing is
                             sent before */
    bool memory_asked[2]; /* by a session, by a claim */
    struct mrt_redis_connection connection;   /* since it had claims */
    struct mrt_redis_connection earlier;      /* a connection to end, if the server is the same */
    TAILQ_HEAD(, mrt_redis_session) sessions; /* STARTED and not known to have ended */

    struct mrt_redis_wire wire; /* for commands */
    uint64_t epoch;             /* of that connection; higher than that of any before */
    mrt_time deadline;          /* of connecting */
    bool heard;                 /* the server has answered on this connection */
    mrt_time again;             /* when to connect again */
    unsigned failures;
    int refusal; /* why the last connection was refused for good; 0: it was not */
    char refusal_text[MRT_REDIS_FAULT_MAX];
    struct mrt_redis_jobs waiting, sent, held, outbox;
    struct mrt_redis_jobs
        moved; /* sent, not done, to be sent to another server before all others */

    struct mrt_redis_wire push;
    unsigned push_logins; /* replies that come before the subscription's */
    bool push_subscribed;
    mrt_time push_since; /* when that was heard */
    mrt_time push_deadline, push_again;

    /* The server's clock beside ours, at the newest renewal; 0: not known. */
    int64_t server_ms;
    mrt_time server_seen;
    mrt_time server_heard; /* the newest reply */
};

#endif
