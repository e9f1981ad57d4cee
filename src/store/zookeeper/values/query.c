/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands that concern no ticket: OBSERVE, and those of cells. Each has a number, by
 * which its requests' answers and its watches' events find it again; what it does is in
 * values/observe.c and values/cell.c.
 *
 * An OBSERVE stays after its answer until an event of its watches, which is told as CHANGED.
 * Its number stays the same while it is asked again, so the library keeps one watch a
 * path, however often that is.
 */
#include "store/zookeeper/values/query.h"

#include "base/assert.h"
#include "store/kit/refusal.h"
#include "store/zookeeper/answer.h"

#include <stdlib.h>
static mrt_zk_query_reply synced;
static const struct mrt_zk_step sync_step = {.send = mrt_zk_send_sync, .query_reply = synced};

static struct mrt_zk_query *find_by_id(struct mrt_zk_session *session, struct mrt_id id)
{
    struct mrt_zk_query *query, *next;
    HASH_ITER (hh, session->queries, query, next)
        if (mrt_id_equal(query->id, id))
            return query;
    return NULL;
}

static void free_query(struct mrt_zk_session *session, struct mrt_zk_query *query)
{
    HASH_DEL(session->queries, query);
    free(query);
}

static struct mrt_zk_query *new_query(struct mrt_zk_session *session, struct mrt_id id)
{
    struct mrt_zk_query *query = calloc(1, sizeof *query);
    if (!query)
        return NULL;
    query->number = ++session->numbers;
    query->id = id;
    HASH_ADD(hh, session->queries, number, sizeof query->number, query);
    if (query->hh.tbl)
        return query;
    free(query);
    return NULL;
}

/* ------------------------------------------------------------------ answers */

static void report_changed(struct mrt_zk_session *session, struct mrt_zk_query *query)
{
    mrt_zk_report(session->store, MRT_CHANGED, query->id);
    free_query(session, query);
}

/* It has been answered; an OBSERVE goes on. */
static void conclude(struct mrt_zk_session *session, struct mrt_zk_query *query,
                     const struct mrt_job *job)
{
    bool waits = job->event.type == MRT_HOLDER && !job->command.once;
    query->job = NULL;
    if (!waits)
        free_query(session, query);
    else if (query->changed)
        report_changed(session, query);
}

void mrt_zk_query_answer(struct mrt_zk_session *session, struct mrt_zk_query *query,
                         enum mrt_event_type type)
{
    struct mrt_job *job = query->job;
    MRT_ASSERT(job);
    mrt_zk_answer(session->store, job, type);
    conclude(session, query, job);
}

void mrt_zk_query_answer_code(struct mrt_zk_session *session, struct mrt_zk_query *query, int code)
{
    struct mrt_job *job = query->job;
    mrt_zk_answer_code(session->store, job, code);
    conclude(session, query, job);
}

void mrt_zk_query_refuse(struct mrt_zk_session *session, struct mrt_zk_query *query, int error)
{
    struct mrt_job *job = query->job;
    if (error == MORTISE_ECONFLICT || error == MORTISE_ESTALE)
        mrt_job_set_detail(job, error == MORTISE_ESTALE ? MRT_REFUSAL_FENCE : MRT_REFUSAL_VERSION,
                           job->command.queue);
    mrt_zk_fail(session->store, job, error);
    conclude(session, query, job);
}

bool mrt_zk_query_keep(struct mrt_zk_session *session, struct mrt_zk_query *query, const char *data,
                       int length)
{
    struct mrt_job *job = query->job;
    size_t size = length < 0 ? 0 : (size_t)length;
    if (size > MORTISE_VALUE_MAX)
        size = MORTISE_VALUE_MAX; /* somebody else's */
    if (!mrt_job_set_value(job, data, size)) {
        mrt_zk_query_refuse(session, query, MORTISE_ENOMEM);
        return false;
    }
    return true;
}

/* ------------------------------------------------------------------ requests */

void mrt_zk_query_send(struct mrt_zk_session *session, struct mrt_zk_query *query,
                       const struct mrt_zk_step *step, const char *path)
{
    if (mrt_zk_send(session, step, NULL, query->number, path) != ZOK)
        mrt_zk_query_answer(session, query, MRT_UNKNOWN);
}

bool mrt_zk_query_sync(struct mrt_zk_session *session, const struct mrt_zk_query *query)
{
    return mrt_zk_send(session, &sync_step, NULL, query->number, query->path) == ZOK;
}

static void synced(struct mrt_zk_session *session, struct mrt_zk_query *query,
                   const struct mrt_zk_reply *reply)
{
    if (reply->code != ZOK) /* the read that follows may be old */
        mrt_zk_query_answer_code(session, query, reply->code);
}

struct mrt_zk_query *mrt_zk_query_new(struct mrt_zk_session *session, struct mrt_job *job,
                                      const char *path)
{
    struct mrt_zk_query *query = find_by_id(session, job->command.ticket);
    if (!session->connected || (query && query->job)) {
        mrt_zk_answer(session->store, job, MRT_UNKNOWN); /* watches could not be relied on */
        return NULL;
    }
    if (!query)
        query = new_query(session, job->command.ticket);
    if (!query) {
        mrt_zk_fail(session->store, job, MORTISE_ENOMEM);
        return NULL;
    }
    query->job = job;
    query->changed = false;
    query->tries = 0;
    snprintf(query->path, sizeof query->path, "%s", path);
    return query;
}

/* ------------------------------------------------------------------ events */

void mrt_zk_query_event(zhandle_t *handle, int type, int state, const char *path, void *context)
{
    struct mrt_zk_session *session = mrt_zk_event_session(type, path);
    struct mrt_zk_query *query = NULL;
    uint64_t number = (uintptr_t)context;
    (void)handle, (void)state;
    if (session)
        HASH_FIND(hh, session->queries, &number, sizeof number, query);
    if (query && query->job)
        query->changed = true;
    else if (query)
        report_changed(session, query);
}

static void forget(struct mrt_zk_session *session, const char *path)
{
    if (path[0])
        zoo_aremove_all_watches(session->handle, path, ZWATCHTYPE_ANY, 1, NULL, NULL);
}

void mrt_zk_queries_forget(struct mrt_zk_session *session)
{
    struct mrt_zk_query *query, *next;
    HASH_ITER (hh, session->queries, query, next) {
        forget(session, query->path);
        forget(session, query->node);
        if (!query->job)
            report_changed(session, query);
        else
            query->changed = true;
    }
}

void mrt_zk_queries_end(struct mrt_zk_session *session)
{
    struct mrt_zk_query *query, *next;
    HASH_ITER (hh, session->queries, query, next) {
        if (query->job)
            mrt_zk_answer(session->store, query->job, MRT_UNKNOWN);
        free_query(session, query);
    }
}
