/* SPDX-License-Identifier: Apache-2.0 */
/* Claims: claim.c sends their requests, claim_reply.c reads the replies. */
#ifndef MRT_STORE_REDIS_CLAIM_H
#define MRT_STORE_REDIS_CLAIM_H

#include "store/redis/internal.h"

#define MRT_REDIS_TOKEN_SIZE 41 /* 160 bits in hexadecimal digits */

/* A lock of one key, from the first attempt at it until it is given back. */
struct mrt_redis_claim {
    TAILQ_ENTRY(mrt_redis_claim) link;
    struct mrt_id session, ticket;
    bool held;
    bool outcome_unknown; /* an attempt of unknown outcome: the key may be ours */
    bool trying;          /* an attempt is under way */
    bool leaving;         /* it is being released, and so not renewed any longer */
    bool waits;
    uint64_t fence, capacity;
    uint64_t revoked; /* how many revoke requests it has had */
    char token[MRT_REDIS_TOKEN_SIZE];
    char key[];
};

struct mrt_redis_claim *mrt_redis_claim_find(const struct mrt_redis_store *store,
                                             struct mrt_id ticket);
/* Frees it; its key is not touched. */
void mrt_redis_claim_forget(struct mrt_redis_store *store, struct mrt_redis_claim *claim);
/* All of a session, or of all sessions. */
void mrt_redis_claims_forget(struct mrt_redis_store *store, struct mrt_id session);
void mrt_redis_claims_free(struct mrt_redis_store *store);
/* Ends its wait; unsubscribes from its channel, unless another claim of this client waits for the
 * key.
 */
void mrt_redis_claim_stop_waiting(struct mrt_redis_store *store, struct mrt_redis_claim *claim);

/* Whether the job is about a claim; it is marked as such. */
bool mrt_redis_claim_of(struct mrt_redis_store *store, struct mrt_redis_job *job);
/* Writes the request of a command for a claim, or answers the command if it needs none. */
void mrt_redis_claim_put(struct mrt_redis_store *store, struct mrt_redis_job *job);
/* Writes, before a RENEW or a STOP, the requests for the claims of its session. */
void mrt_redis_claims_put(struct mrt_redis_store *store, struct mrt_redis_job *job);
/* The session has ended: releases its claims. */
void mrt_redis_claims_lose(struct mrt_redis_store *store, struct mrt_id session);
/* Writes the EXTEND, SHOW or DELETE of such a job; false: it has no use any longer. */
bool mrt_redis_claim_work_put(struct mrt_redis_store *store, const struct mrt_redis_job *job);
/* Releases the key that an attempt set, without an answer; false: the claim has ended meanwhile. */
bool mrt_redis_claim_undo_put(struct mrt_redis_store *store, const struct mrt_redis_job *job);

/* Whether a claim of this name is refused at this server, as its first answer (INFO) shows. */
bool mrt_redis_claim_is_refused(const struct mrt_redis_store *store, const char *name);
/* Answers a job by that refusal. */
void mrt_redis_claim_refuse(struct mrt_redis_store *store, struct mrt_redis_job *job);

/* claim_reply.c */
/* Takes a reply; false: more belong to the job. */
bool mrt_redis_claim_reply(struct mrt_redis_store *store, struct mrt_redis_job *job,
                           const redisReply *reply);
/* The connection broke before the job's reply came. */
void mrt_redis_claim_unknown(struct mrt_redis_store *store, const struct mrt_redis_job *job);
/* The undoing has been done: a waiting client tries again, and an APPEND is answered.
   False: the claim has ended meanwhile. */
bool mrt_redis_claim_undone(struct mrt_redis_store *store, struct mrt_redis_job *job);
/* A key was released: wakes its waiters. */
void mrt_redis_claim_released(struct mrt_redis_store *store, const char *key);

#endif
