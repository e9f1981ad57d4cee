/*
 * Commands that concern no ticket: OBSERVE, and those of cells. Each has a number, by
 * which its requests' answers and its watches' events find it again; what it does is in
 * values/observe.c and values/cell.c.
 *
 * An OBSERVE stays after its answer until an event of its watches, which is told as CHANGED.
 * Its number stays the same while it is asked again, so the library keeps one watch a
 * path, however often that is.
 */
#include "store/kit/refusal.h"
#include "store/zookeeper/internal.h"

#include <stdlib.h>
#include <string.h>

struct mrt_zk_query *mrt_zk_query_find(struct mrt_zk_session *session, uint64_t number)
{
    struct mrt_zk_query *look;
    HASH_FIND(hh, session->queries, &number, sizeof number, look);
    return look;
}

static struct mrt_zk_query *find_by_id(struct mrt_zk_session *session, struct mrt_id id)
{
    struct mrt_zk_query *look, *next;
    HASH_ITER (hh, session->queries, look, next)
        if (mrt_id_equal(look->id, id))
            return look;
    return NULL;
}

static void free_look(struct mrt_zk_session *session, struct mrt_zk_query *look)
{
    HASH_DEL(session->queries, look);
    free(look);
}

static struct mrt_zk_query *new_look(struct mrt_zk_session *session, struct mrt_id id)
{
    struct mrt_zk_query *look = calloc(1, sizeof *look);
    if (!look)
        return NULL;
    look->number = ++session->numbers;
    look->id = id;
    HASH_ADD(hh, session->queries, number, sizeof look->number, look);
    if (look->hh.tbl)
        return look;
    free(look);
    return NULL;
}

/* ------------------------------------------------------------------ answers */

static void tell_changed(struct mrt_zk_session *session, struct mrt_zk_query *look)
{
    mrt_zk_report(session->store, MRT_CHANGED, look->id);
    free_look(session, look);
}

/* It has been answered; an OBSERVE goes on. */
static void conclude(struct mrt_zk_session *session, struct mrt_zk_query *look,
                     const struct mrt_job *job)
{
    bool waits = job->event.type == MRT_HOLDER && !job->command.once;
    look->job = NULL;
    if (!waits)
        free_look(session, look);
    else if (look->changed)
        tell_changed(session, look);
}

void mrt_zk_query_answer(struct mrt_zk_session *session, struct mrt_zk_query *look,
                         enum mrt_event_type type)
{
    struct mrt_job *job = look->job;
    mrt_zk_answer(session->store, job, type);
    conclude(session, look, job);
}

void mrt_zk_query_answer_code(struct mrt_zk_session *session, struct mrt_zk_query *look, int code)
{
    struct mrt_job *job = look->job;
    mrt_zk_answer_code(session->store, job, code);
    conclude(session, look, job);
}

void mrt_zk_query_refuse(struct mrt_zk_session *session, struct mrt_zk_query *look, int error)
{
    struct mrt_job *job = look->job;
    if (error == MORTISE_ECONFLICT || error == MORTISE_ESTALE)
        mrt_job_set_detail(job, error == MORTISE_ESTALE ? MRT_REFUSAL_FENCE : MRT_REFUSAL_VERSION,
                           job->command.queue);
    mrt_zk_fail(session->store, job, error);
    conclude(session, look, job);
}

bool mrt_zk_query_keep(struct mrt_zk_session *session, struct mrt_zk_query *look, const char *data,
                       int length)
{
    struct mrt_job *job = look->job;
    size_t size = length < 0 ? 0 : (size_t)length;
    if (size > MORTISE_VALUE_MAX)
        size = MORTISE_VALUE_MAX; /* somebody else's */
    if (!mrt_job_set_value(job, data, size)) {
        mrt_zk_query_refuse(session, look, MORTISE_ENOMEM);
        return false;
    }
    return true;
}

/* ------------------------------------------------------------------ requests */

void mrt_zk_query_send(struct mrt_zk_session *session, struct mrt_zk_query *look,
                       enum mrt_zk_request_kind kind, const char *path)
{
    if (!mrt_zk_send_watch(session, kind, look->number, path))
        mrt_zk_query_answer(session, look, MRT_UNKNOWN);
}

static bool is_observer(const struct mrt_zk_query *look)
{
    return look->job->command.type == MRT_OBSERVE;
}

void mrt_zk_query_submit(struct mrt_zk_session *session, struct mrt_job *job, const char *path)
{
    struct mrt_zk_query *look = find_by_id(session, job->command.ticket);
    if (!session->connected || (look && look->job)) {
        mrt_zk_answer(session->store, job, MRT_UNKNOWN); /* watches could not be relied on */
        return;
    }
    if (!look)
        look = new_look(session, job->command.ticket);
    if (!look) {
        mrt_zk_fail(session->store, job, MORTISE_ENOMEM);
        return;
    }
    look->job = job;
    look->changed = false;
    look->tries = 0;
    snprintf(look->path, sizeof look->path, "%s", path);
    if (is_observer(look))
        mrt_zk_observe_begin(session, look);
    else
        mrt_zk_cell_begin(session, look);
}

void mrt_zk_query_reply(struct mrt_zk_session *session, enum mrt_zk_request_kind kind,
                        uint64_t number, const struct mrt_zk_reply *reply)
{
    struct mrt_zk_query *look = mrt_zk_query_find(session, number);
    if (!look || !look->job)
        return;
    if (kind == MRT_ZK_LOOK_SYNC && reply->code != ZOK)
        mrt_zk_query_answer_code(session, look, reply->code); /* what follows may be old */
    else if (kind != MRT_ZK_LOOK_SYNC && is_observer(look))
        mrt_zk_observe_reply(session, look, kind, reply);
    else if (kind != MRT_ZK_LOOK_SYNC)
        mrt_zk_cell_reply(session, look, kind, reply);
}

/* ------------------------------------------------------------------ events */

void mrt_zk_query_event(struct mrt_zk_session *session, uint64_t number)
{
    struct mrt_zk_query *look = mrt_zk_query_find(session, number);
    if (look && look->job)
        look->changed = true;
    else if (look)
        tell_changed(session, look);
}

static void forget(struct mrt_zk_session *session, const char *path)
{
    if (path[0])
        zoo_aremove_all_watches(session->handle, path, ZWATCHTYPE_ANY, 1, NULL, NULL);
}

void mrt_zk_queries_forget(struct mrt_zk_session *session)
{
    struct mrt_zk_query *look, *next;
    HASH_ITER (hh, session->queries, look, next) {
        forget(session, look->path);
        forget(session, look->node);
        if (!look->job)
            tell_changed(session, look);
        else
            look->changed = true;
    }
}

void mrt_zk_queries_end(struct mrt_zk_session *session)
{
    struct mrt_zk_query *look, *next;
    HASH_ITER (hh, session->queries, look, next) {
        if (look->job)
            mrt_zk_answer(session->store, look->job, MRT_UNKNOWN);
        free_look(session, look);
    }
}
