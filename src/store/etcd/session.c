/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session is a lease, whose number is made of the session's identity, and a key with that lease.
 * So a START that is repeated finds its lease.
 *
 * A leader that is frozen and goes on after another has been elected renews leases that the other
 * counts down. So a renewal counts only if the cluster has the same term afterwards, as a read that
 * a majority confirms says, as the member that acknowledged it had: then no other leader has been
 * elected meanwhile. Otherwise it is sent again. The proof is dated from the sending of the RENEW
 * in any case.
 */
#include "base/assert.h"
#include "store/etcd/queue.h"
#include "store/etcd/reply.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mrt_etcd_session *mrt_etcd_session_find(const struct mrt_etcd_store *store, struct mrt_id id)
{
    struct mrt_etcd_session *session;
    TAILQ_FOREACH (session, &store->sessions, link)
        if (mrt_id_equal(session->id, id))
            return session;
    return NULL;
}

static void end_session(struct mrt_etcd_store *store, struct mrt_etcd_session *session)
{
    if (session->writing)
        mrt_rest_cancel(session->writing);
    mrt_etcd_queues_forget(store, session->id);
    TAILQ_REMOVE(&store->sessions, session, link);
    free(session);
}

void mrt_etcd_session_lose(struct mrt_etcd_store *store, struct mrt_etcd_session *session)
{
    const struct mrt_event event = {.type = MRT_SESSION_LOST,
                                    .session = session->id,
                                    .error = MORTISE_ELOST,
                                    .detail = "etcd: the session's lease has ended"};
    mrt_outbox_add(&store->outbox, event);
    end_session(store, session);
}

static int64_t term_of(struct json_object *json)
{
    return mrt_rest_number(mrt_rest_member(json, "header"), "raft_term");
}

static mrt_time renewal_limit(const struct mrt_etcd_store *store)
{
    return mrt_time_min(store->address.lease / 3, store->address.connect);
}

static void send_keepalive(struct mrt_etcd_job *job, int64_t lease, mrt_rest_done *next)
{
    struct mrt_rest_text text = {0};
    mrt_rest_add(&text, "{\"ID\":\"%" PRId64 "\"}", lease);
    mrt_etcd_job_send(job, "lease/keepalive", &text, -renewal_limit(job->store), next);
}

/* -------------------------------------------------------------------- START */

static void put_key(const struct mrt_etcd_session *session, struct mrt_rest_text *text)
{
    mrt_rest_add(text, "{\"compare\":[],\"success\":[");
    mrt_etcd_put(text, session->key, "", 0, session->lease);
    mrt_rest_add(text, "]}");
}

/* The key stands. */
static void started(void *argument, const struct mrt_rest_reply *reply)
{
    struct mrt_etcd_job *job = argument;
    struct mrt_etcd_store *store = job->store;
    struct mrt_etcd_session *fresh = job->session;
    job->session = NULL;
    if (reply->outcome != MRT_REST_DONE) {
        free(fresh);
        if (reply->error == MORTISE_ELOST) /* the lease has ended: it is made anew */
            mrt_etcd_answer(job, MRT_UNKNOWN);
        else
            mrt_etcd_job_done(job, reply);
        return;
    }
    struct mrt_etcd_session *session = mrt_etcd_session_find(store, fresh->id);
    if (session) {
        free(fresh);
    } else {
        session = fresh;
        TAILQ_INSERT_TAIL(&store->sessions, session, link);
    }
    session->epoch = mrt_etcd_revision(reply->json);
    job->job.event.lease = store->address.lease;
    mrt_etcd_answer(job, MRT_STARTED);
}

static void write_first_key(struct mrt_etcd_job *job)
{
    struct mrt_rest_text text = {0};
    put_key(job->session, &text);
    mrt_etcd_job_send(job, "kv/txn", &text, job->store->address.connect, started);
}

static void kept_alive(void *argument, const struct mrt_rest_reply *reply)
{
    struct mrt_etcd_job *job = argument;
    if (reply->outcome == MRT_REST_DONE)
        write_first_key(job);
    else
        started(job, reply);
}

static void granted(void *argument, const struct mrt_rest_reply *reply)
{
    struct mrt_etcd_job *job = argument;
    if (reply->outcome == MRT_REST_REFUSED && reply->error == MORTISE_EMISMATCH)
        send_keepalive(job, job->session->lease, kept_alive); /* an earlier START has made it */
    else
        kept_alive(job, reply);
}

static void start(struct mrt_etcd_job *job)
{
    struct mrt_etcd_store *store = job->store;
    struct mrt_etcd_session *session = calloc(1, sizeof *session);
    struct mrt_id id = job->job.command.session;
    char text_id[MRT_ID_TEXT_SIZE];
    if (!session) {
        mrt_etcd_fail(job, MORTISE_ENOMEM, "no memory for a session");
        return;
    }
    session->id = id;
    session->store = store;
    session->lease = (int64_t)((id.high ^ id.low) & INT64_MAX);
    session->lease += session->lease == 0;
    mrt_id_format(id, text_id);
    snprintf(session->key, sizeof session->key, "%ss/%s", store->address.base, text_id);
    job->session = session;
    struct mrt_rest_text text = {0};
    mrt_rest_add(&text, "{\"TTL\":\"%" PRId64 "\",\"ID\":\"%" PRId64 "\"}",
                 (store->address.lease + MRT_SECOND - 1) / MRT_SECOND, session->lease);
    mrt_etcd_job_send(job, "lease/grant", &text, store->address.connect, granted);
}

/* -------------------------------------------------------------------- RENEW */

static void send_renewal(struct mrt_etcd_job *job, const struct mrt_etcd_session *session);

static void confirmed(void *argument, const struct mrt_rest_reply *reply)
{
    struct mrt_etcd_job *job = argument;
    struct mrt_etcd_store *store = job->store;
    struct mrt_etcd_session *session = mrt_etcd_session_find(store, job->job.command.session);
    if (!mrt_etcd_job_done(job, reply))
        return;
    if (!session) {
        mrt_etcd_refuse(job);
        return;
    }
    if (mrt_rest_number(reply->json, "count") != 1) {
        mrt_etcd_session_lose(store, session);
        mrt_etcd_refuse(job);
        return;
    }
    if (term_of(reply->json) == job->term)
        mrt_etcd_answer(job, MRT_RENEWED);
    else if (++job->tries < MRT_ETCD_TRIES_MAX)
        send_renewal(job, session);
    else
        mrt_etcd_answer(job, MRT_UNKNOWN);
}

static void renewed(void *argument, const struct mrt_rest_reply *reply)
{
    struct mrt_etcd_job *job = argument;
    struct mrt_etcd_store *store = job->store;
    struct mrt_etcd_session *session = mrt_etcd_session_find(store, job->job.command.session);
    if (!mrt_etcd_job_done(job, reply))
        return;
    struct json_object *result = mrt_rest_member(reply->json, "result");
    if (!session || (result && mrt_rest_number(result, "TTL") <= 0)) {
        if (session)
            mrt_etcd_session_lose(store, session);
        mrt_etcd_refuse(job);
        return;
    }
    if (!result) {
        mrt_etcd_answer(job, MRT_UNKNOWN);
        return;
    }
    job->term = term_of(result);
    struct mrt_rest_text text = {0};
    mrt_rest_add(&text, "{");
    mrt_rest_add_bytes(&text, "key", session->key, strlen(session->key));
    mrt_rest_add(&text, ",\"count_only\":true}");
    mrt_etcd_job_send(job, "kv/range", &text, -renewal_limit(store), confirmed);
}

static void send_renewal(struct mrt_etcd_job *job, const struct mrt_etcd_session *session)
{
    send_keepalive(job, session->lease, renewed);
}

/* --------------------------------------------------------------------- STOP */

static void stopped(void *argument, const struct mrt_rest_reply *reply)
{
    struct mrt_etcd_job *job = argument;
    struct mrt_etcd_session *session = mrt_etcd_session_find(job->store, job->job.command.session);
    bool ended = reply->outcome == MRT_REST_DONE ||
                 (reply->outcome == MRT_REST_REFUSED && reply->error == MORTISE_ELOST);
    if (ended && session)
        end_session(job->store, session);
    if (ended)
        mrt_etcd_answer(job, MRT_STOPPED);
    else
        mrt_etcd_job_done(job, reply);
}

static void stop(struct mrt_etcd_job *job, const struct mrt_etcd_session *session)
{
    struct mrt_rest_text text = {0};
    mrt_rest_add(&text, "{\"ID\":\"%" PRId64 "\"}", session->lease);
    mrt_etcd_job_send(job, "lease/revoke", &text, job->store->address.connect, stopped);
}

void mrt_etcd_session_submit(struct mrt_etcd_store *store, struct mrt_etcd_job *job)
{
    const struct mrt_etcd_session *session = mrt_etcd_session_find(store, job->job.command.session);
    if (job->job.command.type == MRT_START)
        start(job);
    else if (!session)
        mrt_etcd_refuse(job);
    else if (job->job.command.type == MRT_RENEW)
        send_renewal(job, session);
    else
        stop(job, session);
}

/* -------------------------------------------------------------------- doubt */

static void settled(void *argument, const struct mrt_rest_reply *reply)
{
    struct mrt_etcd_session *session = argument;
    struct mrt_etcd_store *store = session->store;
    session->writing = NULL;
    if (reply->outcome == MRT_REST_DONE) {
        session->epoch = mrt_etcd_revision(reply->json);
        session->doubtful = false;
        mrt_etcd_queues_resume(store);
    } else if (reply->outcome == MRT_REST_REFUSED && reply->error == MORTISE_ELOST) {
        mrt_etcd_session_lose(store, session);
        mrt_etcd_queues_resume(store);
    } else { /* the commands that wait are answered likewise, and may come again */
        mrt_etcd_queues_fail(store, session->id, reply);
    }
}

void mrt_etcd_session_settle(struct mrt_etcd_store *store, struct mrt_etcd_session *session)
{
    static const struct mrt_rest_reply no_memory = {
        .outcome = MRT_REST_REFUSED, .error = MORTISE_ENOMEM, .text = "no memory for a request"};
    struct mrt_rest_text text = {0};
    if (session->writing)
        return;
    put_key(session, &text);
    session->writing =
        mrt_etcd_send(&store->wire, "kv/txn", &text, store->address.connect, settled, session);
    if (!session->writing)
        mrt_etcd_queues_fail(store, session->id, &no_memory);
}
