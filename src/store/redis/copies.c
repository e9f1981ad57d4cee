/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replicas=N, from the reply to WAIT on (job.c asks). A grant that fewer replicas have is given
 * back, and fails; a renewal proves nothing then, and a durable hold has not changed hands yet for
 * all that is known.
 *
 * It does not make a failover safe: which replica is promoted does not depend on it. It
 * makes the loss of a grant by one rarer.
 */
#include "store/redis/copies.h"

#include "base/assert.h"
#include "store/redis/claim.h"
#include "store/redis/command.h"

/* Too few have it: a promoted replica may not know of it. */
static void undo(struct mrt_redis_store *store, struct mrt_redis_job *job)
{
    mrt_note(&store->notes, MRT_REDIS_NOTE_COPIES,
             "%lld of %llu replicas have what was written; until there are so many no lock is "
             "granted",
             job->copies, (unsigned long long)store->address.replicas);
    bool durable = job->command.type == MRT_DETACH || job->command.adopt;
    if (job->event.type != MRT_VIEW || durable ||
        (job->command.claim && !mrt_redis_claim_undo_put(store, job))) {
        mrt_redis_answer(store, job, MRT_UNKNOWN);
        return;
    }
    if (!job->command.claim)
        mrt_redis_remove_put(store, job);
    job->stage = MRT_REDIS_UNDOING;
    job->since = mrt_time_now();
    TAILQ_INSERT_TAIL(&store->sent, job, link);
}

static void undone(struct mrt_redis_store *store, struct mrt_redis_job *job)
{
    if (job->command.claim && !mrt_redis_claim_undone(store, job))
        mrt_redis_answer(store, job, MRT_GONE);
    else if (job->command.claim && mrt_redis_claim_is_refused(store, job->command.queue))
        mrt_redis_claim_refuse(store, job);
    else if (job->command.type == MRT_APPEND)
        mrt_redis_fail(store, job, MORTISE_ESTORE, "%lld of %llu replicas have the lock",
                       job->copies, (unsigned long long)store->address.replicas);
}

void mrt_redis_copies_reply(struct mrt_redis_store *store, struct mrt_redis_job *job,
                            const redisReply *reply)
{
    MRT_ASSERT(job->stage != MRT_REDIS_ASKED);
    if (job->stage == MRT_REDIS_UNDOING && reply->type == REDIS_REPLY_ERROR) {
        mrt_redis_answer(store, job, MRT_UNKNOWN);
    } else if (job->stage == MRT_REDIS_UNDOING) {
        undone(store, job);
    } else if (reply->type == REDIS_REPLY_ERROR) {
        mrt_note(&store->notes, MRT_REDIS_NOTE_REPLY, "%.150s", reply->str);
        undo(store, job);
    } else {
        job->copies = reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
        if (job->copies >= (int64_t)store->address.replicas)
            mrt_redis_answer(store, job, job->event.type);
        else
            undo(store, job);
    }
}
