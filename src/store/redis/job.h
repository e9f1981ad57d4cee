/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job: a command until it is answered, and then its answer until that is delivered; or a request
 * of the store's own, which has no answer.
 *
 * Invariant: a job is in exactly one of the store's five lists: waiting (not sent), sent (in the
 * order sent, which is the order of the replies), moved (refused by a server that named another
 * one, and waiting for that), held (answered or not sent, until a subscription
 * stands), outbox (to be delivered).
 */
#ifndef MRT_STORE_REDIS_JOB_H
#define MRT_STORE_REDIS_JOB_H

#include "core/store.h"

struct mrt_redis_store;

enum mrt_redis_work {
    MRT_REDIS_COMMAND,
    MRT_REDIS_LOGIN,  /* AUTH and SELECT, at the beginning of a connection */
    MRT_REDIS_ROLE,   /* whether this server is the one */
    MRT_REDIS_RAISE,  /* the numbers of tickets, to where they were */
    MRT_REDIS_HAS,    /* which tickets a session has */
    MRT_REDIS_PURGE,  /* takes out a ticket that came back */
    MRT_REDIS_ID,     /* the server's number of the connection */
    MRT_REDIS_KILL,   /* ends an earlier connection at the server */
    MRT_REDIS_SERVER, /* queries the server's identity and uptime */
    MRT_REDIS_MEMORY, /* whether the server may drop keys */
    MRT_REDIS_EXTEND, /* of a claim, before the renewal of its session */
    MRT_REDIS_SHOW,   /* shows operators whose a claim is, and fetches their requests */
    MRT_REDIS_DELETE  /* of a claim, before the end of its session */
};

enum mrt_redis_stage {
    MRT_REDIS_ASKED,
    MRT_REDIS_COPYING, /* done; replicas are waited for */
    MRT_REDIS_UNDOING  /* too few replicas have it */
};

struct mrt_redis_job {
    TAILQ_ENTRY(mrt_redis_job) link;
    struct mrt_command command;
    struct mrt_event event;
    enum mrt_redis_work work;
    enum mrt_redis_stage stage;
    long long copies; /* UNDOING: how many replicas have the write */
    unsigned attempt; /* of a claim's job: how many replies it will have; 0: of no claim */
    unsigned replies; /* of these: how many have come */
    bool taken;       /* one reply said that the key is ours */
    bool looks;       /* none did, and the key is looked at */
    int64_t number;   /* and this is the fence's */
    bool whole;       /* the text sent was a script, not its digest */
    bool deaf;        /* an OBSERVE that no CHANGED can follow */
    bool repeated;    /* it was sent once before the subscription was confirmed */
    void *value;      /* its event's, or NULL */
    mrt_time since;   /* when it was submitted, and then when it was sent */
    char detail[256];
};
TAILQ_HEAD(mrt_redis_jobs, mrt_redis_job);

/* Adds a request of the store's own to `sent`, before `next` or at the end; NULL: no memory. */
struct mrt_redis_job *mrt_redis_job_add(struct mrt_redis_store *store, enum mrt_redis_work work,
                                        struct mrt_redis_job *next);
void mrt_redis_jobs_free(struct mrt_redis_jobs *jobs);
/* How long a reply may take. */
mrt_time mrt_redis_answer_limit(const struct mrt_redis_store *store);

/* These take a job that is in no list. An answer that so many replicas must have (replicas=N) is
   sent to them first: copies.c goes on. */
void mrt_redis_answer(struct mrt_redis_store *store, struct mrt_redis_job *job,
                      enum mrt_event_type type);
__attribute__((format(printf, 4, 5))) void mrt_redis_fail(struct mrt_redis_store *store,
                                                          struct mrt_redis_job *job, int error,
                                                          const char *format, ...);
/* An event that no command asked for, of a ticket or of none; NULL: no memory. It is in the outbox
   already. */
struct mrt_event *mrt_redis_tell(struct mrt_redis_store *store, enum mrt_event_type type,
                                 struct mrt_id session, struct mrt_id ticket);
/* Empties the outbox; then the log is written. */
void mrt_redis_deliver(struct mrt_redis_store *store);

#endif
