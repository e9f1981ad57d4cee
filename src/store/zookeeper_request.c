/*
 * Requests and watches. Each request has a number; the library hands it back with the
 * answer, and the number is looked up among the session's requests, nearly always the
 * oldest, for a session is answered in order. Every request has a completion: the
 * library calls a null one.
 *
 * A watch is a read of the node's data, not a question whether it exists: that would
 * leave a watch behind for a node that is gone. Its events are hints; nothing is
 * concluded from them but that it is time to look.
 *
 * Watches end with their connection. The library would set them all again on the next
 * one, in a single message that the server refuses, and the connection with it, once
 * they are too many (1 MB; some 10,000). Every ticket looks again then anyhow, and is
 * watched again by that.
 */
#include "store/zookeeper_internal.h"

#include <stdlib.h>
#include <string.h>

_Thread_local struct mrt_zk_session *mrt_zk_entered;

static const void *as_context(uint64_t number)
{
    return (const void *)(uintptr_t)number; // NOLINT(performance-no-int-to-ptr)
}

/* ---------------------------------------------------------------- answers */

static void drop_watch(struct mrt_zk_session *session, struct mrt_zk_watch *watch, bool wake,
                       bool unwatched)
{
    struct mrt_zk_ticket *ticket;
    while ((ticket = TAILQ_FIRST(&watch->tickets))) {
        mrt_zk_unwatch(ticket);
        ticket->unwatched |= unwatched;
        if (wake)
            mrt_zk_wake(session->store, ticket->id);
    }
    HASH_DEL(session->watches, watch);
    free(watch);
}

static struct mrt_zk_watch *find_watch(struct mrt_zk_session *session, uint64_t id)
{
    struct mrt_zk_watch *watch, *next;
    HASH_ITER(hh, session->watches, watch, next)
    if (watch->id == id)
        return watch;
    return NULL;
}

static void watch_set(struct mrt_zk_session *session, uint64_t id, int code)
{
    /* Connection lost: it goes with all the others. */
    struct mrt_zk_watch *watch =
        code == ZOK || !session->connected ? NULL : find_watch(session, id);
    if (!watch)
        return;
    /* Gone before it was watched: look at once. Not to be read: look from time to time. */
    enum mrt_zk_outcome outcome = mrt_zk_code(code)->outcome;
    drop_watch(session, watch, outcome == MRT_ZK_NO_NODE || outcome == MRT_ZK_NOT_DONE,
               outcome == MRT_ZK_NOT_DONE);
}

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

static void answered(const void *context, const struct mrt_zk_reply *reply)
{
    struct mrt_zk_session *session = mrt_zk_entered;
    struct mrt_zk_request *request = session ? take(session, context) : NULL;
    if (!request)
        return;
    if (mrt_zk_code(reply->code)->outcome != MRT_ZK_PERHAPS)
        session->heard = mrt_time_now();
    if (mrt_zk_code(reply->code)->outcome == MRT_ZK_SESSION_OVER)
        mrt_zk_session_over(session, reply->code);
    switch (request->kind) {
    case MRT_ZK_RENEW:
    case MRT_ZK_CLOSE:
        mrt_zk_session_reply(session, request->kind, reply->code);
        break;
    case MRT_ZK_WATCH:
        watch_set(session, request->watch, reply->code);
        break;
    default: {
        struct mrt_zk_ticket *ticket = mrt_zk_ticket_find(session, request->ticket);
        bool makes = request->kind == MRT_ZK_PARENT || request->kind == MRT_ZK_DIRECTORY;
        if (makes && reply->code == ZUNIMPLEMENTED)
            session->store->no_containers = true;
        else if (ticket && ticket->attempt == request->attempt)
            mrt_zk_ticket_reply(session, ticket, request->kind, reply);
    }
    }
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
    answered(context, &(struct mrt_zk_reply){.code = code, .stat = stat});
}

static void on_data(int code, const char *value, int length, const struct Stat *stat,
                    const void *context)
{
    (void)value, (void)length;
    answered(context, &(struct mrt_zk_reply){.code = code, .stat = stat});
}

static void on_names(int code, const struct String_vector *names, const void *context)
{
    answered(context, &(struct mrt_zk_reply){.code = code, .names = names});
}

/* Events of the session come to every watcher, without a path; those are not for here. */
static void on_event(zhandle_t *handle, int type, int state, const char *path, void *context)
{
    struct mrt_zk_session *session = mrt_zk_entered;
    struct mrt_zk_watch *watch = NULL;
    (void)handle, (void)state;
    if (type == ZOO_SESSION_EVENT || !session || !path)
        return;
    HASH_FIND_STR(session->watches, path, watch);
    if (watch && as_context(watch->id) == context)
        drop_watch(session, watch, true, false);
}

/* ---------------------------------------------------------------- sending */

static int send_create(struct mrt_zk_session *session, const char *path, const void *context)
{
    char data[MORTISE_LABEL_MAX + 16];
    int length = snprintf(data, sizeof data, "mutex\n%s", session->store->label);
    return zoo_acreate2(session->handle, path, data, length,
                        mrt_zk_access_nodes(&session->store->access), ZOO_EPHEMERAL_SEQUENTIAL,
                        on_string_stat, context);
}

static int send_parent(struct mrt_zk_session *session, const char *path,
                       const struct ACL_vector *acl, const void *context)
{
    const struct mrt_store *store = session->store;
    bool container = !store->no_containers && strlen(path) > strlen(store->address.chroot);
    return zoo_acreate(session->handle, path, "", 0, acl,
                       container ? ZOO_CONTAINER : ZOO_PERSISTENT, on_string, context);
}

static int post(struct mrt_zk_session *session, const struct mrt_zk_request *request,
                const char *path)
{
    zhandle_t *handle = session->handle;
    const void *context = as_context(request->id);
    switch (request->kind) {
    case MRT_ZK_RENEW:
    case MRT_ZK_CLOSE:
    case MRT_ZK_SYNC:
        return zoo_async(handle, path, on_string, context);
    case MRT_ZK_PARENT:
        return send_parent(session, path, mrt_zk_access_parents(&session->store->access), context);
    case MRT_ZK_DIRECTORY:
        return send_parent(session, path, mrt_zk_access_nodes(&session->store->access), context);
    case MRT_ZK_CREATE:
        return send_create(session, path, context);
    case MRT_ZK_OWNER:
        return zoo_aexists(handle, path, 0, on_stat, context);
    case MRT_ZK_DELETE:
    case MRT_ZK_UNDO:
        return zoo_adelete(handle, path, -1, on_void, context);
    case MRT_ZK_WATCH:
        return zoo_awget(handle, path, on_event, (void *)(uintptr_t)request->watch, on_data,
                         context);
    default:
        return zoo_aget_children(handle, path, 0, on_names, context);
    }
}

static struct mrt_zk_request *new_request(struct mrt_zk_session *session,
                                          enum mrt_zk_request_kind kind)
{
    struct mrt_zk_request *request = calloc(1, sizeof *request);
    if (!request)
        return NULL;
    request->id = ++session->numbers;
    request->kind = kind;
    TAILQ_INSERT_TAIL(&session->requests, request, link);
    return request;
}

static int post_or_forget(struct mrt_zk_session *session, struct mrt_zk_request *request,
                          const char *path)
{
    int code = post(session, request, path);
    if (code == ZOK)
        return code;
    TAILQ_REMOVE(&session->requests, request, link);
    free(request);
    return code;
}

bool mrt_zk_send(struct mrt_zk_session *session, enum mrt_zk_request_kind kind,
                 struct mrt_zk_ticket *ticket, const char *path, int *code)
{
    struct mrt_zk_request *request = new_request(session, kind);
    *code = ZSYSTEMERROR;
    if (!request)
        return false;
    if (ticket) {
        request->ticket = ticket->id;
        request->attempt = ticket->attempt;
    }
    *code = post_or_forget(session, request, path);
    return *code == ZOK;
}

/* ---------------------------------------------------------------- watches */

static struct mrt_zk_watch *new_watch(struct mrt_zk_session *session, const char *path)
{
    size_t size = strlen(path) + 1;
    struct mrt_zk_watch *watch = calloc(1, sizeof *watch + size);
    if (!watch)
        return NULL;
    memcpy(watch->path, path, size);
    watch->id = ++session->numbers;
    TAILQ_INIT(&watch->tickets);
    HASH_ADD_STR(session->watches, path, watch);
    if (!watch->hh.tbl) {
        free(watch);
        return NULL;
    }
    return watch;
}

static struct mrt_zk_watch *set_watch(struct mrt_zk_session *session, const char *path)
{
    struct mrt_zk_watch *watch = session->connected ? new_watch(session, path) : NULL;
    if (!watch)
        return NULL;
    struct mrt_zk_request *request = new_request(session, MRT_ZK_WATCH);
    if (request)
        request->watch = watch->id;
    if (request && post_or_forget(session, request, path) == ZOK)
        return watch;
    drop_watch(session, watch, false, false);
    return NULL;
}

bool mrt_zk_watch(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket, const char *node)
{
    char path[MRT_ZK_PATH_MAX + 256];
    struct mrt_zk_watch *watch;
    if (ticket->unwatched)
        return false;
    snprintf(path, sizeof path, "%s/%s", ticket->path, node);
    HASH_FIND_STR(session->watches, path, watch);
    if (!watch)
        watch = set_watch(session, path);
    if (watch == ticket->watch)
        return watch;
    mrt_zk_unwatch(ticket);
    if (watch) {
        ticket->watch = watch;
        TAILQ_INSERT_TAIL(&watch->tickets, ticket, watch_link);
    }
    return watch;
}

void mrt_zk_unwatch(struct mrt_zk_ticket *ticket)
{
    if (ticket->watch)
        TAILQ_REMOVE(&ticket->watch->tickets, ticket, watch_link);
    ticket->watch = NULL;
}

void mrt_zk_watches_forget(struct mrt_zk_session *session)
{
    struct mrt_zk_watch *watch, *next;
    HASH_ITER(hh, session->watches, watch, next)
    {
        zoo_aremove_all_watches(session->handle, watch->path, ZWATCHTYPE_DATA, 1, NULL, NULL);
        drop_watch(session, watch, false, false);
    }
}

void mrt_zk_requests_free(struct mrt_zk_session *session)
{
    struct mrt_zk_request *request;
    struct mrt_zk_watch *watch, *next;
    while ((request = TAILQ_FIRST(&session->requests))) {
        TAILQ_REMOVE(&session->requests, request, link);
        free(request);
    }
    HASH_ITER(hh, session->watches, watch, next)
    drop_watch(session, watch, false, false);
}
