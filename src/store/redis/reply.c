/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the reply to a command. A script answers with a list that begins with a word; an error
 * comes from the server.
 */
#include "store/redis/reply.h"

#include "base/assert.h"
#include "store/kit/refusal.h"
#include "store/redis/claim.h"
#include "store/redis/error.h"
#include "store/redis/observe.h"
#include "store/redis/push.h"

#include <stdlib.h>

static void reply_error(struct mrt_redis_store *store, struct mrt_redis_job *job, const char *text)
{
    int error;
    const char *advice;
    if (mrt_redis_classify(text, &error, &advice) == MRT_REDIS_UNKNOWN) {
        mrt_note(&store->notes, MRT_REDIS_NOTE_REPLY, "%.150s", text);
        mrt_redis_answer(store, job, MRT_UNKNOWN);
        return;
    }
    mrt_redis_fail(store, job, error, "%.120s%s", text, advice);
}

/* ------------------------------------------------------------------- words */

static int64_t integer(const redisReply *reply, size_t index)
{
    if (index >= reply->elements || reply->element[index]->type != REDIS_REPLY_INTEGER)
        return -1;
    return reply->element[index]->integer;
}

static const char *word(const redisReply *reply, size_t index)
{
    if (reply->type != REDIS_REPLY_ARRAY || index >= reply->elements ||
        reply->element[index]->type != REDIS_REPLY_STRING)
        return "";
    return reply->element[index]->str;
}

/* A third of the lease, or when one of those in the way may be dead: the server may have
   told, and it may have been lost. */
static mrt_time recheck_of(const struct mrt_redis_store *store, int64_t soonest)
{
    if (soonest == 0)
        return MRT_REDIS_RECHECK_HELD;
    mrt_time third = mrt_time_min(store->address.session / 3, MRT_REDIS_RECHECK_MAX);
    return mrt_time_min(third, mrt_time_from_ms(soonest + 1));
}

bool mrt_redis_view(const struct mrt_redis_store *store, struct mrt_event *event, int64_t number,
                    int64_t ahead, bool behind, int64_t soonest)
{
    if (number <= 0 || number >= MRT_REDIS_NUMBER_MAX || ahead < 0 || soonest < 0)
        return false;
    event->fence = (uint64_t)number << MRT_REDIS_FENCE_BITS;
    event->fence_span = UINT64_C(1) << MRT_REDIS_FENCE_BITS;
    event->weight_ahead = (uint64_t)ahead;
    event->others_behind = behind;
    event->recheck = recheck_of(store, soonest);
    return true;
}

static void reply_view(struct mrt_redis_store *store, struct mrt_redis_job *job,
                       const redisReply *reply, mrt_time now)
{
    int64_t soonest = integer(reply, 4);
    if (!mrt_redis_view(store, &job->event, integer(reply, 1), integer(reply, 2),
                        integer(reply, 3) > 0, soonest)) {
        mrt_redis_answer(store, job, MRT_UNKNOWN);
        return;
    }
    job->event.revoked = integer(reply, 5) > 0 ? (uint64_t)integer(reply, 5) : 0;
    job->event.place = integer(reply, 6) > 0 ? (uint64_t)integer(reply, 6) : 0;
    bool listens = soonest > 0 || job->command.watch_closely || job->command.linger;
    if (!listens || !mrt_redis_push_hold(store, job, now))
        mrt_redis_answer(store, job, MRT_VIEW);
}

/* The value of an answer, kept until that is delivered; false: no memory. */
static bool keep_value(struct mrt_redis_job *job, const redisReply *value)
{
    if (value->type != REDIS_REPLY_STRING || (size_t)value->len > MORTISE_VALUE_MAX)
        return false;
    job->value = malloc((size_t)value->len + 1);
    if (!job->value)
        return false;
    memcpy(job->value, value->str, (size_t)value->len);
    job->event.value = job->value;
    job->event.value_size = (size_t)value->len;
    return true;
}

static void reply_holder(struct mrt_redis_store *store, struct mrt_redis_job *job,
                         const redisReply *reply)
{
    int64_t number = integer(reply, 1), soonest = integer(reply, 2);
    if (number < 0 || number >= MRT_REDIS_NUMBER_MAX || reply->elements < 4 ||
        !keep_value(job, reply->element[3])) {
        mrt_redis_answer(store, job, MRT_UNKNOWN);
        return;
    }
    job->event.fence = (uint64_t)number << MRT_REDIS_FENCE_BITS;
    job->event.recheck = recheck_of(store, soonest > 0 ? soonest : INT32_MAX);
    mrt_redis_answer(store, job, MRT_HOLDER);
}

static void reply_cell(struct mrt_redis_store *store, struct mrt_redis_job *job,
                       const redisReply *reply)
{
    bool written = job->command.type == MRT_CELL_SET;
    if (reply->elements < 4 || (!written && !keep_value(job, reply->element[3]))) {
        mrt_redis_answer(store, job, MRT_UNKNOWN);
        return;
    }
    job->event.version = strtoull(word(reply, 1), NULL, 10);
    job->event.fence = strtoull(word(reply, 2), NULL, 10);
    mrt_redis_answer(store, job, MRT_CELL);
}

static void forget_session(struct mrt_redis_store *store, struct mrt_id id)
{
    struct mrt_redis_session *session;
    TAILQ_FOREACH (session, &store->sessions, link)
        if (mrt_id_equal(session->id, id))
            break;
    if (!session)
        return;
    TAILQ_REMOVE(&store->sessions, session, link);
    free(session);
}

static void remember_session(struct mrt_redis_store *store, struct mrt_id id)
{
    struct mrt_redis_session *session;
    forget_session(store, id);
    session = calloc(1, sizeof *session);
    if (!session)
        return; /* it is not woken when its pushes may have been lost: it looks by itself */
    session->id = id;
    TAILQ_INSERT_TAIL(&store->sessions, session, link);
}

/* The server's clock should pass as ours does: its leases end by it. */
static void compare_clocks(struct mrt_redis_store *store, int64_t server_ms, mrt_time now)
{
    int64_t here = (now - store->server_seen) / MRT_MILLISECOND;
    int64_t there = server_ms - store->server_ms;
    int64_t apart = there - here;
    int64_t most = here / 20 > 500 ? here / 20 : 500;
    if (store->server_ms > 0 && (apart > most || apart < -most))
        mrt_note(&store->notes, MRT_REDIS_NOTE_CLOCK,
                 "the server's clock moved by %lld ms while %lld ms passed: locks may be "
                 "lost early, or kept too long",
                 (long long)there, (long long)here);
    store->server_ms = server_ms;
    store->server_seen = now;
}

static void reply_alive(struct mrt_redis_store *store, struct mrt_redis_job *job,
                        const redisReply *reply, mrt_time now)
{
    if (integer(reply, 1) > 0)
        compare_clocks(store, integer(reply, 1), now);
    if (job->command.type == MRT_RENEW) {
        bool proven = !store->unproven;
        mrt_redis_answer(store, job, proven ? MRT_RENEWED : MRT_UNKNOWN);
        return;
    }
    remember_session(store, job->command.session);
    job->event.lease = store->address.session;
    mrt_redis_answer(store, job, MRT_STARTED);
}

static void reply_lost(struct mrt_redis_store *store, struct mrt_redis_job *job,
                       const redisReply *reply, mrt_time now)
{
    if (integer(reply, 1) > 0)
        compare_clocks(store, integer(reply, 1), now); /* which may be why */
    struct mrt_event *event =
        mrt_redis_tell(store, MRT_SESSION_LOST, job->command.session, (struct mrt_id){0, 0});
    if (event)
        event->error = MORTISE_ELOST;
    forget_session(store, job->command.session);
    mrt_redis_claims_lose(store, job->command.session);
    mrt_redis_observers_forget(store, job->command.session);
    if (job->command.type == MRT_REFRESH || job->command.type == MRT_LIGHTEN ||
        job->command.type == MRT_SET_VALUE)
        mrt_redis_answer(store, job, MRT_GONE);
    else
        mrt_redis_fail(store, job, MORTISE_ELOST, "the session has ended");
}

static void reply_stopped(struct mrt_redis_store *store, struct mrt_redis_job *job)
{
    forget_session(store, job->command.session);
    mrt_redis_claims_forget(store, job->command.session);
    mrt_redis_observers_forget(store, job->command.session);
    mrt_redis_answer(store, job, MRT_STOPPED);
}

static void reply_other(struct mrt_redis_store *store, struct mrt_redis_job *job,
                        const redisReply *reply)
{
    const char *is = word(reply, 1), *kind = strchr(is, ' ');
    const struct mrt_command *command = &job->command;
    mrt_redis_fail(store, job, MORTISE_EMISMATCH,
                   "%.80s is in use as a %.30s of capacity %.*s, not a %.30s of capacity %llu",
                   command->queue, kind ? kind + 1 : "?", (int)strcspn(is, " "), is, command->kind,
                   (unsigned long long)command->capacity);
}

void mrt_redis_reply(struct mrt_redis_store *store, struct mrt_redis_job *job,
                     const redisReply *reply, mrt_time now)
{
    const char *said = word(reply, 0);
    if (reply->type == REDIS_REPLY_ERROR)
        reply_error(store, job, reply->str);
    else if (strcmp(said, "VIEW") == 0)
        reply_view(store, job, reply, now);
    else if (strcmp(said, "ALIVE") == 0)
        reply_alive(store, job, reply, now);
    else if (strcmp(said, "REMOVED") == 0)
        mrt_redis_answer(store, job, MRT_REMOVED);
    else if (strcmp(said, "BLOCKED") == 0)
        mrt_redis_answer(store, job, MRT_BLOCKED);
    else if (strcmp(said, "GONE") == 0)
        mrt_redis_answer(store, job, MRT_GONE);
    else if (strcmp(said, "STOPPED") == 0)
        reply_stopped(store, job);
    else if (strcmp(said, "LOST") == 0)
        reply_lost(store, job, reply, now);
    else if (strcmp(said, "FULL") == 0)
        mrt_redis_fail(store, job, MORTISE_EFULL, "%llu are waiting for %.100s already",
                       (unsigned long long)job->command.queue_max, job->command.queue);
    else if (strcmp(said, "HOLDER") == 0)
        reply_holder(store, job, reply);
    else if (strcmp(said, "CELL") == 0)
        reply_cell(store, job, reply);
    else if (strcmp(said, "CONFLICT") == 0)
        mrt_redis_fail(store, job, MORTISE_ECONFLICT, "%.100s has another version",
                       job->command.queue);
    else if (strcmp(said, "OVERTAKEN") == 0)
        mrt_redis_fail(store, job, MORTISE_ESTALE, "%.100s has seen a larger fence",
                       job->command.queue);
    else if (strcmp(said, "OTHER") == 0)
        reply_other(store, job, reply);
    else if (strcmp(said, "NONE") == 0)
        mrt_redis_fail(store, job, MORTISE_ENOTHELD, "no detached hold of %.100s has that token",
                       job->command.queue);
    else if (strcmp(said, "MISMATCH") == 0)
        mrt_redis_fail(store, job, MORTISE_EMISMATCH, MRT_REFUSAL_ADOPT);
    else
        mrt_redis_answer(store, job, MRT_UNKNOWN); /* STALE, and what is not ours */
}
