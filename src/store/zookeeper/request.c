/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests. Each has a number; the library hands it back with the answer, and the number
 * is sought among the session's requests, nearly always the oldest, because a session is
 * answered in order. Every request has a completion: the library calls a null one.
 * Watches have numbers of the same series, which the library hands back with their events.
 *
 * A multi that is sent creates ordinary nodes only: answers to other creates in one make
 * the library abort. The results of its operations are ignored; the code of the whole is
 * all that is needed.
 *
 * Threads: as the port's own calls, under mrt_zk_library.
 */
#include "store/zookeeper/request.h"

#include "base/assert.h"
#include "store/zookeeper/close.h"
#include "store/zookeeper/ticket/record.h"
#include "store/zookeeper/values/query.h"

#include <stdlib.h>

static void *as_context(uint64_t number)
{
    return (void *)(uintptr_t)number; // NOLINT(performance-no-int-to-ptr)
}

/* ---------------------------------------------------------------- answers */

static struct mrt_zk_request *take(struct mrt_zk_session *session, const void *context)
{
    struct mrt_zk_request *request;
    TAILQ_FOREACH (request, &session->requests, link)
        if (as_context(request->id) == context)
            break;
    if (request)
        TAILQ_REMOVE(&session->requests, request, link);
    return request;
}

static struct mrt_zk_query *find_query(const struct mrt_zk_session *session, uint64_t number)
{
    struct mrt_zk_query *query;
    HASH_FIND(hh, session->queries, &number, sizeof number, query);
    return query;
}

/* Each reply may end the ticket that the next one is for. */
static void reply_to(struct mrt_zk_session *session, const struct mrt_zk_request *request,
                     const struct mrt_zk_reply *reply)
{
    const struct mrt_zk_step *step = request->step;
    if (step->session_reply)
        step->session_reply(session, reply);
    if (step->number_reply)
        step->number_reply(session, request->watch, reply);
    struct mrt_zk_query *query = step->query_reply ? find_query(session, request->watch) : NULL;
    if (query && query->job)
        step->query_reply(session, query, reply);
    struct mrt_zk_ticket *ticket =
        step->ticket_reply ? mrt_zk_ticket_find(session, request->ticket) : NULL;
    if (ticket && (step->any_attempt || ticket->attempt == request->attempt))
        step->ticket_reply(session, ticket, reply);
}

static void answered(const void *context, const struct mrt_zk_reply *reply)
{
    struct mrt_zk_session *session = mrt_zk_entered;
    struct mrt_zk_request *request = session ? take(session, context) : NULL;
    if (!request)
        return;
    mrt_traffic_answered(&session->store->traffic);
    if (mrt_zk_code(reply->code)->outcome != MRT_ZK_PERHAPS)
        session->heard = mrt_time_now();
    if (mrt_zk_code(reply->code)->outcome == MRT_ZK_SESSION_OVER)
        mrt_zk_session_over(session, reply->code);
    reply_to(session, request, reply);
    free(request);
}

static void on_void(int code, const void *context)
{
    answered(context, &(struct mrt_zk_reply){.code = code});
}

static void on_string(int code, const char *text, const void *context)
{
    answered(context, &(struct mrt_zk_reply){.code = code, .text = text});
}

static void on_string_stat(int code, const char *text, const struct Stat *stat, const void *context)
{
    answered(context, &(struct mrt_zk_reply){.code = code, .text = text, .stat = stat});
}

static void on_stat(int code, const struct Stat *stat, const void *context)
{
    answered(context, &(struct mrt_zk_reply){.code = code, .stat = stat, .length = -1});
}

static void on_data(int code, const char *value, int length, const struct Stat *stat,
                    const void *context)
{
    answered(context,
             &(struct mrt_zk_reply){.code = code, .text = value, .length = length, .stat = stat});
}

static void on_names(int code, const struct String_vector *names, const struct Stat *stat,
                     const void *context)
{
    answered(context, &(struct mrt_zk_reply){.code = code, .stat = stat, .names = names});
}

static void on_rights(int code, struct ACL_vector *rights, struct Stat *stat, const void *context)
{
    answered(context, &(struct mrt_zk_reply){.code = code, .stat = stat, .rights = rights});
}

struct mrt_zk_session *mrt_zk_event_session(int type, const char *path)
{
    return type != ZOO_SESSION_EVENT && path ? mrt_zk_entered : NULL;
}

/* ------------------------------------------------------- calls of the library */

static watcher_fn watcher_of(const struct mrt_zk_outgoing *request)
{
    return request->watch != 0 ? request->step->event : NULL;
}

int mrt_zk_send_exists(const struct mrt_zk_outgoing *request)
{
    return zoo_awexists(request->session->handle, request->path, watcher_of(request),
                        as_context(request->watch), on_stat, as_context(request->id));
}

int mrt_zk_send_get(const struct mrt_zk_outgoing *request)
{
    return zoo_awget(request->session->handle, request->path, watcher_of(request),
                     as_context(request->watch), on_data, as_context(request->id));
}

int mrt_zk_send_list(const struct mrt_zk_outgoing *request)
{
    return zoo_awget_children2(request->session->handle, request->path, watcher_of(request),
                               as_context(request->watch), on_names, as_context(request->id));
}

int mrt_zk_send_sync(const struct mrt_zk_outgoing *request)
{
    return zoo_async(request->session->handle, request->path, on_string, as_context(request->id));
}

int mrt_zk_send_rights(const struct mrt_zk_outgoing *request)
{
    return zoo_aget_acl(request->session->handle, request->path, on_rights,
                        as_context(request->id));
}

int mrt_zk_send_set(const struct mrt_zk_outgoing *request)
{
    return zoo_aset(request->session->handle, request->path, request->data, request->length,
                    request->version, on_stat, as_context(request->id));
}

int mrt_zk_send_delete(const struct mrt_zk_outgoing *request)
{
    return zoo_adelete(request->session->handle, request->path, request->version, on_void,
                       as_context(request->id));
}

int mrt_zk_send_create(const struct mrt_zk_outgoing *request)
{
    return zoo_acreate(request->session->handle, request->path, request->data, request->length,
                       request->rights, request->mode, on_string, as_context(request->id));
}

int mrt_zk_send_create_stat(const struct mrt_zk_outgoing *request)
{
    return zoo_acreate2(request->session->handle, request->path, request->data, request->length,
                        request->rights, request->mode, on_string_stat, as_context(request->id));
}

int mrt_zk_send_multi(const struct mrt_zk_outgoing *request)
{
    MRT_ASSERT(request->part_count > 0);
    return zoo_amulti(request->session->handle, request->part_count, request->parts,
                      request->session->closing->results, on_void, as_context(request->id));
}

/* The library wants a pointer to a function here, and takes it for the function. */
int mrt_zk_send_unwatch(const struct mrt_zk_outgoing *request)
{
    return zoo_aremove_all_watches(request->session->handle, request->path, ZWATCHTYPE_DATA, 0,
                                   (void_completion_t *)on_void, as_context(request->id));
}

/* ---------------------------------------------------------------- sending */

/* Sets what the step's call carries; the rest of the room stays as it is. */
static void fill(struct mrt_zk_outgoing *out, struct mrt_zk_session *session,
                 const struct mrt_zk_request *request, const char *path)
{
    out->session = session;
    out->step = request->step;
    out->query = request->step->query_reply ? find_query(session, request->watch) : NULL;
    out->path = path;
    out->id = request->id;
    out->watch = request->watch;
    out->data = "";
    out->length = 0;
    out->version = -1;
    out->mode = ZOO_PERSISTENT;
    out->rights = mrt_zk_access_nodes(&session->store->access);
    out->part_count = 0;
    if (out->step->payload)
        out->step->payload(out);
}

static struct mrt_zk_request *new_request(struct mrt_zk_session *session,
                                          const struct mrt_zk_step *step)
{
    MRT_ASSERT(step->send);
    struct mrt_zk_request *request = calloc(1, sizeof *request);
    if (!request)
        return NULL;
    request->id = ++session->numbers;
    request->step = step;
    TAILQ_INSERT_TAIL(&session->requests, request, link);
    return request;
}

static void not_sent(struct mrt_zk_session *session, struct mrt_zk_request *request, int code)
{
    if (request->step->watch)
        request->step->number_reply(session, request->watch, &(struct mrt_zk_reply){.code = code});
    TAILQ_REMOVE(&session->requests, request, link);
    free(request);
}

int mrt_zk_send(struct mrt_zk_session *session, const struct mrt_zk_step *step,
                const struct mrt_zk_ticket *ticket, uint64_t number, const char *path)
{
    struct mrt_zk_outgoing out;
    struct mrt_zk_request *request = new_request(session, step);
    if (!request)
        return ZSYSTEMERROR;
    out.ticket = ticket;
    request->ticket = ticket ? ticket->id : (struct mrt_id){0, 0};
    request->attempt = ticket ? ticket->attempt : 0;
    request->watch = number;
    bool watched = !step->watch || step->watch(session, path, &request->watch);
    mrt_zk_session_gather(session);
    int code = !watched ? ZSYSTEMERROR : ZINVALIDSTATE;
    /* Of a session that has expired the library frees, in zoo_amulti, what it has not set. */
    if (watched && zoo_state(session->handle) >= 0) {
        fill(&out, session, request, path);
        code = step->send(&out);
    }
    if (code == ZOK)
        mrt_traffic_sent(&session->store->traffic);
    else
        not_sent(session, request, code);
    return code;
}

void mrt_zk_requests_free(struct mrt_zk_session *session)
{
    struct mrt_zk_request *request;
    while ((request = TAILQ_FIRST(&session->requests))) {
        TAILQ_REMOVE(&session->requests, request, link);
        mrt_traffic_answered(&session->store->traffic);
        free(request);
    }
}
