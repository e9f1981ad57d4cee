/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies to the requests of a claim, and what follows from them: the claim is held; another
 * holder has it, and it is requested again; it is gone. claim.c makes the requests.
 */
#include "store/redis/claim.h"

#include "base/assert.h"
#include "store/redis/error.h"
#include "store/redis/push.h"

#include <stdio.h>
#include <string.h>

#define RECHECK_MIN (50 * MRT_MILLISECOND)
#define RECHECK_SPREAD (100 * MRT_MILLISECOND)

static void view_held(struct mrt_redis_store *store, struct mrt_redis_job *job,
                      const struct mrt_redis_claim *claim)
{
    job->event.fence = claim->fence;
    job->event.fence_span = UINT64_C(1) << MRT_REDIS_FENCE_BITS;
    job->event.weight_ahead = 0;
    job->event.others_behind = true; /* nobody knows */
    job->event.recheck = MRT_REDIS_RECHECK_HELD;
    job->event.revoked = claim->revoked;
    bool listens = job->command.watch_closely && job->attempt == 0;
    if (!listens || !mrt_redis_push_hold(store, job, job->since))
        mrt_redis_answer(store, job, MRT_VIEW);
}

static void view_waiting(struct mrt_redis_store *store, struct mrt_redis_job *job,
                         struct mrt_redis_claim *claim)
{
    if (!claim->waits) {
        claim->waits = true;
        mrt_redis_push_listen(store, claim->key, job->since);
    }
    store->jitter = store->jitter * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    job->event.fence = 0;
    job->event.fence_span = 1;
    job->event.weight_ahead = claim->capacity;
    job->event.recheck = RECHECK_MIN + (mrt_time)(store->jitter >> 33) % RECHECK_SPREAD;
    mrt_redis_answer(store, job, MRT_VIEW);
}

static void blocked(struct mrt_redis_store *store, struct mrt_redis_job *job,
                    struct mrt_redis_claim *claim)
{
    if (job->command.try_only) {
        mrt_redis_claim_forget(store, claim);
        mrt_redis_answer(store, job, MRT_BLOCKED);
    } else {
        view_waiting(store, job, claim);
    }
}

/* Before it is answered that somebody has it. */
static void get_key(struct mrt_redis_store *store, struct mrt_redis_job *job,
                    const struct mrt_redis_claim *claim)
{
    job->looks = true;
    job->since = mrt_time_now();
    TAILQ_INSERT_TAIL(&store->sent, job, link);
    mrt_redis_wire_words(&store->wire, "GET", claim->key, NULL);
}

static void key_reply(struct mrt_redis_store *store, struct mrt_redis_job *job,
                      struct mrt_redis_claim *claim, const redisReply *reply)
{
    int error = 0;
    const char *advice;
    if (reply->type == REDIS_REPLY_ERROR)
        mrt_redis_classify(reply->str, &error, &advice);
    if (error != MORTISE_EMISMATCH) {
        blocked(store, job, claim);
        return;
    }
    mrt_redis_claim_forget(store, claim);
    mrt_redis_fail(store, job, error, "%.120s%s", reply->str, advice);
}

/* The server has said meanwhile that the key may not be used. */
static void refuse(struct mrt_redis_store *store, struct mrt_redis_job *job,
                   struct mrt_redis_claim *claim)
{
    if (job->taken && mrt_redis_claim_undo_put(store, job)) {
        job->stage = MRT_REDIS_UNDOING;
        job->since = mrt_time_now();
        TAILQ_INSERT_TAIL(&store->sent, job, link);
        return;
    }
    mrt_redis_claim_forget(store, claim);
    mrt_redis_claim_refuse(store, job);
}

/* All replies to an attempt have come. */
static void attempted(struct mrt_redis_store *store, struct mrt_redis_job *job,
                      struct mrt_redis_claim *claim)
{
    claim->outcome_unknown = false;
    if (mrt_redis_claim_is_refused(store, job->command.queue)) {
        refuse(store, job, claim);
    } else if (job->taken && job->number > 0 && job->number < MRT_REDIS_NUMBER_MAX) {
        mrt_redis_claim_stop_waiting(store, claim);
        claim->held = true;
        claim->fence = (uint64_t)job->number << MRT_REDIS_FENCE_BITS;
        view_held(store, job, claim);
    } else if (job->taken) {
        claim->outcome_unknown = true; /* without a fence it is asked for again */
        mrt_redis_answer(store, job, MRT_UNKNOWN);
    } else if (job->command.type == MRT_APPEND) {
        get_key(store, job, claim);
    } else {
        view_waiting(store, job, claim);
    }
}

/* One of the replies to an attempt; false: more are to come. */
static bool attempt_reply(struct mrt_redis_store *store, struct mrt_redis_job *job,
                          struct mrt_redis_claim *claim, const redisReply *reply)
{
    unsigned last = job->attempt - 1, at = job->replies++;
    if (reply->type == REDIS_REPLY_ERROR && job->event.error == 0) {
        const char *advice;
        enum mrt_redis_outcome outcome = mrt_redis_classify(reply->str, &job->event.error, &advice);
        snprintf(job->detail, sizeof job->detail, "%.120s%s", reply->str, advice);
        if (outcome == MRT_REDIS_UNKNOWN)
            job->taken = true; /* perhaps: number stays 0 */
    } else if (at == last) {
        job->number = reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
    } else if (reply->type == REDIS_REPLY_STATUS ||
               (reply->type == REDIS_REPLY_INTEGER && reply->integer == 1)) {
        job->taken = true;
    }
    if (at < last)
        return false;
    claim->trying = false;
    if (job->event.error && !job->taken) {
        char detail[sizeof job->detail];
        memcpy(detail, job->detail, sizeof detail);
        claim->outcome_unknown = false;
        if (job->command.type == MRT_APPEND)
            mrt_redis_claim_forget(store, claim);
        mrt_redis_fail(store, job, job->event.error, "%.200s", detail);
        return true;
    }
    if (job->event.error)
        job->number = 0;
    job->event.error = 0;
    job->detail[0] = '\0';
    attempted(store, job, claim);
    return true;
}

static void extended(struct mrt_redis_store *store, struct mrt_redis_claim *claim,
                     const redisReply *reply)
{
    if (!claim || claim->leaving)
        return; /* there is nothing to be proven of it */
    if (reply->type == REDIS_REPLY_ERROR)
        store->unproven = true;
    if (reply->type != REDIS_REPLY_INTEGER || reply->integer == 1 || !claim->held)
        return;
    store->unproven = true;
    mrt_redis_tell(store, MRT_WAKE, claim->session, claim->ticket); /* which then finds it gone */
}

static void shown(struct mrt_redis_store *store, struct mrt_redis_claim *claim,
                  const redisReply *reply)
{
    if (!claim || reply->type != REDIS_REPLY_INTEGER || (uint64_t)reply->integer <= claim->revoked)
        return;
    claim->revoked = (uint64_t)reply->integer;
    struct mrt_event *event = mrt_redis_tell(store, MRT_REVOKED, claim->session, claim->ticket);
    if (event)
        event->revoked = claim->revoked;
}

static void verified(struct mrt_redis_store *store, struct mrt_redis_job *job,
                     struct mrt_redis_claim *claim, const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_INTEGER) {
        mrt_redis_answer(store, job, MRT_UNKNOWN);
    } else if (reply->integer == 1) {
        view_held(store, job, claim);
    } else {
        mrt_redis_claim_forget(store, claim);
        mrt_redis_answer(store, job, MRT_GONE);
    }
}

bool mrt_redis_claim_reply(struct mrt_redis_store *store, struct mrt_redis_job *job,
                           const redisReply *reply)
{
    struct mrt_redis_claim *claim = mrt_redis_claim_find(store, job->command.ticket);
    bool removes = job->command.type == MRT_REMOVE;
    if (job->work == MRT_REDIS_EXTEND)
        extended(store, claim, reply);
    if (job->work == MRT_REDIS_SHOW)
        shown(store, claim, reply);
    if (job->work != MRT_REDIS_COMMAND)
        return true;
    if (removes && reply->type == REDIS_REPLY_INTEGER) {
        if (claim)
            mrt_redis_claim_forget(store, claim);
        mrt_redis_answer(store, job, MRT_REMOVED);
    } else if (!claim && job->attempt > job->replies + 1) {
        job->replies++;
        return false;
    } else if (removes || !claim) {
        mrt_redis_answer(store, job, MRT_UNKNOWN);
    } else if (job->looks) {
        key_reply(store, job, claim, reply);
    } else if (job->attempt > 0) {
        return attempt_reply(store, job, claim, reply);
    } else {
        verified(store, job, claim, reply);
    }
    return true;
}

bool mrt_redis_claim_undone(struct mrt_redis_store *store, struct mrt_redis_job *job)
{
    struct mrt_redis_claim *claim = mrt_redis_claim_find(store, job->command.ticket);
    if (!claim)
        return false;
    claim->outcome_unknown = claim->leaving = false;
    if (job->command.type == MRT_APPEND || mrt_redis_claim_is_refused(store, job->command.queue))
        mrt_redis_claim_forget(store, claim);
    else
        view_waiting(store, job, claim);
    return true;
}

void mrt_redis_claim_unknown(struct mrt_redis_store *store, const struct mrt_redis_job *job)
{
    struct mrt_redis_claim *claim = mrt_redis_claim_find(store, job->command.ticket);
    if (!claim || claim->held || job->command.type == MRT_REMOVE)
        return;
    claim->trying = false;
    claim->outcome_unknown = true;
}

void mrt_redis_claim_released(struct mrt_redis_store *store, const char *key)
{
    const struct mrt_redis_claim *claim;
    TAILQ_FOREACH (claim, &store->claims, link)
        if (claim->waits && strcmp(claim->key, key) == 0)
            mrt_redis_tell(store, MRT_WAKE, claim->session, claim->ticket);
}
