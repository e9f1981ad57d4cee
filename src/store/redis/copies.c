/*
 * replicas=N: what is told as done has been copied to so many replicas (WAIT). A grant that fewer
 * have is given back, and fails; a renewal proves nothing then, and a durable hold has not changed
 * hands yet for all that is known. WAIT also covers whatever this client wrote before, so nothing
 * else needs it.
 *
 * It does not make a failover safe: which replica is promoted does not depend on it. It
 * makes the loss of a grant by one rarer.
 *
 * The connection waits with it; so long as half of what an answer may take.
 */
#include "store/redis/internal.h"

#include <stdio.h>
#include <string.h>

bool mrt_redis_copies_needed(const struct mrt_redis_store *store, const struct mrt_redis_job *job)
{
    if (store->address.replicas == 0 || job->stage != MRT_REDIS_ASKED)
        return false;
    return job->event.type == MRT_RENEWED ||
           (job->event.type == MRT_VIEW &&
            (job->command.type == MRT_APPEND || job->command.type == MRT_DETACH ||
             (job->attempt > 0 && job->event.fence > 0)));
}

void mrt_redis_copies_ask(struct mrt_redis_store *store, struct mrt_redis_job *job)
{
    char count[16], limit[24];
    job->stage = MRT_REDIS_COPYING;
    if (store->wire.state != MRT_REDIS_OPEN) {
        mrt_redis_answer(store, job, MRT_UNKNOWN);
        return;
    }
    snprintf(count, sizeof count, "%u", store->address.replicas);
    snprintf(limit, sizeof limit, "%lld",
             (long long)(mrt_redis_answer_limit(store) / 2 / MRT_MILLISECOND));
    const struct mrt_redis_text words[] = {
        {"WAIT", 4}, {count, strlen(count)}, {limit, strlen(limit)}};
    job->since = mrt_time_now();
    TAILQ_INSERT_TAIL(&store->sent, job, link);
    mrt_redis_wire_put(&store->wire, words, 3);
    mrt_redis_wire_flush(&store->wire); /* if it has broken, that shows when it is read */
}

/* Too few have it: whatever is promoted may not know of it. */
static void undo(struct mrt_redis_store *store, struct mrt_redis_job *job)
{
    mrt_note(&store->notes, MRT_REDIS_NOTE_COPIES,
             "%lld of %u replicas have what was written; until there are so many no lock is "
             "granted",
             job->copies, store->address.replicas);
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
    else if (job->command.type == MRT_APPEND)
        mrt_redis_fail(store, job, MORTISE_ESTORE, "%lld of %u replicas have the lock", job->copies,
                       store->address.replicas);
}

void mrt_redis_copies_reply(struct mrt_redis_store *store, struct mrt_redis_job *job,
                            const redisReply *reply)
{
    if (job->stage == MRT_REDIS_UNDOING && reply->type == REDIS_REPLY_ERROR) {
        mrt_redis_answer(store, job, MRT_UNKNOWN);
    } else if (job->stage == MRT_REDIS_UNDOING) {
        undone(store, job);
    } else if (reply->type == REDIS_REPLY_ERROR) {
        mrt_note(&store->notes, MRT_REDIS_NOTE_REPLY, "%.150s", reply->str);
        undo(store, job);
    } else {
        job->copies = reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
        if (job->copies >= store->address.replicas)
            mrt_redis_answer(store, job, job->event.type);
        else
            undo(store, job);
    }
}
