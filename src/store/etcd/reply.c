/* SPDX-License-Identifier: Apache-2.0 */
/* See reply.h. A job that is answered is its outbox's: no line here uses it afterwards. */
#include "store/etcd/reply.h"

#include "base/assert.h"
#include "store/etcd/queue.h"

#include <stdlib.h>

void mrt_etcd_job_send(struct mrt_etcd_job *job, const char *path, struct mrt_rest_text *body,
                       mrt_time limit, mrt_rest_done *next)
{
    if (!mrt_etcd_send(&job->store->wire, path, body, limit, next, job))
        mrt_etcd_fail(job, MORTISE_ENOMEM, "no memory for a request");
}

void mrt_etcd_txn_begin(struct mrt_etcd_job *job, const struct mrt_etcd_session *session,
                        struct mrt_rest_text *text)
{
    job->epoch = session->epoch;
    mrt_rest_add(text, "{\"compare\":[");
    mrt_etcd_if(text, session->key, "MOD", session->epoch);
}

void mrt_etcd_txn_then(struct mrt_rest_text *text)
{
    mrt_rest_add(text, "],\"success\":[");
}

void mrt_etcd_txn_else(const struct mrt_etcd_session *session, struct mrt_rest_text *text)
{
    mrt_rest_add(text, "],\"failure\":[");
    mrt_etcd_get(text, session->key);
}

void mrt_etcd_txn_send(struct mrt_etcd_job *job, struct mrt_rest_text *text, mrt_rest_done *next)
{
    mrt_rest_add(text, "]}");
    mrt_etcd_job_send(job, "kv/txn", text, job->store->address.connect, next);
}

/* ----------------------------------------------------------------- answers */

/* The queue's next command may begin. */
static void leave(struct mrt_etcd_job *job)
{
    if (job->queue)
        mrt_etcd_queue_leave(job->queue, job);
    else
        TAILQ_REMOVE(&job->store->jobs, &job->job, link);
}

void mrt_etcd_answer(struct mrt_etcd_job *job, enum mrt_event_type type)
{
    struct mrt_etcd_session *session = mrt_etcd_session_find(job->store, job->job.command.session);
    if (type == MRT_UNKNOWN && session && job->job.command.type != MRT_RENEW)
        session->doubtful = true;
    leave(job);
    mrt_outbox_answer(&job->store->outbox, &job->job, type);
}

void mrt_etcd_fail(struct mrt_etcd_job *job, int error, const char *format, ...)
{
    va_list arguments;
    leave(job);
    va_start(arguments, format);
    mrt_job_set_detail_list(&job->job, "etcd: ", format, arguments);
    va_end(arguments);
    mrt_outbox_fail(&job->store->outbox, &job->job, error);
}

void mrt_etcd_refuse(struct mrt_etcd_job *job)
{
    leave(job);
    mrt_outbox_refuse(&job->store->outbox, &job->job);
}

bool mrt_etcd_job_done(struct mrt_etcd_job *job, const struct mrt_rest_reply *reply)
{
    struct mrt_etcd_store *store = job->store;
    switch (reply->outcome) {
    case MRT_REST_DONE:
        return true;
    case MRT_REST_UNKNOWN:
        mrt_job_set_detail(&job->job, "etcd: %s", reply->text);
        mrt_note(&store->notes, MRT_ETCD_NOTE_REPLY, "%s", reply->text);
        mrt_etcd_answer(job, MRT_UNKNOWN);
        return false;
    default:
        break;
    }
    struct mrt_etcd_session *session = mrt_etcd_session_find(store, job->job.command.session);
    if (reply->error == MORTISE_ELOST && session) {
        mrt_etcd_session_lose(store, session);
        mrt_etcd_refuse(job);
    } else {
        mrt_etcd_fail(job, reply->error, "%s", reply->text);
    }
    return false;
}

/* ----------------------------------------------------------------- transactions */

int64_t mrt_etcd_revision(struct json_object *json)
{
    return mrt_rest_number(mrt_rest_member(json, "header"), "revision");
}

struct json_object *mrt_etcd_txn_range(const struct mrt_rest_reply *reply, size_t index)
{
    struct json_object *responses = mrt_rest_member(reply->json, "responses");
    if (!json_object_is_type(responses, json_type_array) ||
        index >= json_object_array_length(responses))
        return NULL;
    return mrt_rest_member(json_object_array_get_idx(responses, index), "response_range");
}

enum mrt_etcd_verdict mrt_etcd_txn_verdict(struct mrt_etcd_job *job,
                                           const struct mrt_rest_reply *reply)
{
    struct mrt_etcd_store *store = job->store;
    if (!mrt_etcd_job_done(job, reply))
        return MRT_ETCD_ANSWERED;
    if (json_object_get_boolean(mrt_rest_member(reply->json, "succeeded")))
        return MRT_ETCD_SUCCEEDED;
    struct json_object *range = mrt_etcd_txn_range(reply, 0);
    struct json_object *kvs = mrt_rest_member(range, "kvs");
    struct mrt_etcd_session *session = mrt_etcd_session_find(store, job->job.command.session);
    if (!range) { /* no reply to this request */
        mrt_etcd_answer(job, MRT_UNKNOWN);
        return MRT_ETCD_ANSWERED;
    }
    bool there = json_object_is_type(kvs, json_type_array) && json_object_array_length(kvs) == 1;
    if (!session || !there) {
        if (session)
            mrt_etcd_session_lose(store, session);
        mrt_etcd_refuse(job);
        return MRT_ETCD_ANSWERED;
    }
    if (mrt_rest_number(json_object_array_get_idx(kvs, 0), "mod_revision") == job->epoch)
        return MRT_ETCD_OTHERWISE;
    if (++job->tries <= MRT_ETCD_TRIES_MAX)
        return MRT_ETCD_AGAIN;
    mrt_etcd_answer(job, MRT_UNKNOWN);
    return MRT_ETCD_ANSWERED;
}
